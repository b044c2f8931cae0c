/* An array shifted in place: a tile is read whole before it is written, though strips
   are computed one after another. On a GPU many threads load and store a tile, and as in
   Triton none waits for another by itself: there kernels say where (`WAIT`). */
#include "tests/run/support/harness.h"

#include <stdlib.h>
#include <string.h>

enum { N = 300 };

static const char source[] =
    "import triton\n"
    "import triton.language as tl\n"
    "@triton.jit\n"
    "def shift(p, n, FROM: tl.constexpr, TO: tl.constexpr, B: tl.constexpr,\n"
    "          WAIT: tl.constexpr):\n"
    "    i = tl.arange(0, B)\n"
    "    x = tl.load(p + FROM + i, mask=i < n)\n"
    "    if WAIT:\n"
    "        tl.debug_barrier()\n"
    "    tl.store(p + TO + i, x * 2, mask=i < n)\n"
    "@triton.jit\n"
    "def turn(p, n, B: tl.constexpr, WAIT: tl.constexpr):\n"
    "    i = tl.arange(0, B)\n"
    "    x = tl.load(p + i, mask=i < n)\n"
    "    y = tl.load(p + n - 1 - i, mask=i < n)\n"
    "    if WAIT:\n"
    "        tl.debug_barrier()\n"
    "    tl.store(p + n - 1 - i, x + 1, mask=i < n)\n"
    "    if WAIT:\n"
    "        tl.debug_barrier()\n"
    "    tl.store(p + i, y, mask=i < n // 2)\n"
    "@triton.jit\n"
    "def beside(x, total, out, n, B: tl.constexpr):\n"
    "    i = tl.arange(0, B)\n"
    "    v = tl.load(x + i, mask=i < n, other=0)\n"
    "    s = tl.sum(v, 0)\n"
    "    tl.store(total, s)\n"
    "    tl.store(out + i, v - s, mask=i < n)\n";

/* Whether kernels have to say it: the tests begin with this value of WAIT. */
static int
must_wait(void)
{
    const char *target = getenv("SDC_TEST_TARGET");
    return target && (strncmp(target, "cuda", 4) == 0 || strncmp(target, "sm_", 3) == 0);
}

START_TEST(shifts)
{
    static const int steps[][2] = {{0, 1}, {1, 0}, {0, 40}, {40, 0}, {0, 0}};
    Env env = env_open_text("inplace.tk", source);
    enum { STEPS = sizeof(steps) / sizeof(steps[0]) };
    for (int k = STEPS * must_wait(); k < 2 * STEPS; k++) {
        int from = steps[k % STEPS][0], to = steps[k % STEPS][1], n = N - 40;
        Buf a = buf_random(&env, SDC_FP32, 0, DIMS(N));
        const double *before = buf_doubles(&env, &a);
        double *want = buf_doubles(&env, &a);
        for (int i = 0; i < n; i++)
            want[to + i] = 2 * before[from + i];
        LAUNCH(&env, "shift", sdc_grid(1, 1, 1),
               env_text(&env, "FROM=%d TO=%d B=512 WAIT=%d", from, to, k / STEPS),
               buf_arg(&a), sdc_int(n));
        buf_check(&env, &a, env_text(&env, "from %d to %d", from, to), want, NULL);
    }
    env_close(&env);
}
END_TEST

/* Two pointers of one tile into one array: the later store wins where both write. */
START_TEST(turns)
{
    Env env = env_open_text("inplace.tk", source);
    for (int wait = must_wait(); wait < 2; wait++) {
        Buf a = buf_random(&env, SDC_I64, 0, DIMS(N));
        const double *before = buf_doubles(&env, &a);
        double *want = env_doubles(&env, N);
        for (int i = 0; i < N; i++)
            want[N - 1 - i] = before[i] + 1;
        for (int i = 0; i < N / 2; i++)
            want[i] = before[N - 1 - i];
        LAUNCH(&env, "turn", sdc_grid(1, 1, 1), env_text(&env, "B=512 WAIT=%d", wait),
               buf_arg(&a), sdc_int(N));
        buf_check(&env, &a, "turned", want, NULL);
    }
    env_close(&env);
}
END_TEST

/* Two parameters with one array: what was loaded before one number of it was written is
   what it was. */
START_TEST(one_array_twice)
{
    Env env = env_open_text("inplace.tk", source);
    Buf x = buf_random(&env, SDC_I32, 0, DIMS(N));
    Buf out = buf_poison(&env, SDC_I32, 0, DIMS(N));
    const double *before = buf_doubles(&env, &x);
    double *want = env_doubles(&env, N), sum = 0;
    for (int i = 0; i < N; i++)
        sum += before[i];
    sum = (int32_t)(uint32_t)(int64_t)sum;
    for (int i = 0; i < N; i++)
        want[i] = (int32_t)((uint32_t)(int64_t)before[i] - (uint32_t)(int64_t)sum);
    LAUNCH(&env, "beside", sdc_grid(1, 1, 1), "B=512", buf_arg(&x), buf_arg(&x),
           buf_arg(&out), sdc_int(N));
    buf_check(&env, &out, "less the sum", want, NULL);
    env_close(&env);
}
END_TEST

int
main(void)
{
    return RUN_TESTS("inplace", shifts, turns, one_array_twice);
}
