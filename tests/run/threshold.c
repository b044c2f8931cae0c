/* Random floats against a bound: the comparison of integers that takes their place agrees
   for every bound and around every boundary. */
#include <math.h>
#include <stdint.h>
#include <stdlib.h>

#include "tests/run/support/harness.h"

enum { N = 4096 };

/* The bits come from memory, made to a float as tl.rand does it. */
static const char source[] =
    "import triton\n"
    "import triton.language as tl\n"
    "@triton.jit\n"
    "def compare(x_ptr, out_ptr, p, B: tl.constexpr):\n"
    "    i = tl.arange(0, B)\n"
    "    x = tl.load(x_ptr + i)\n"
    "    u = tl.where(x < 0, -x - 1, x).to(tl.float32) * 4.6566127342e-10\n"
    "    bits = (u > p).to(tl.int32) + (u >= p).to(tl.int32) * 2\n"
    "    bits += (u < p).to(tl.int32) * 4 + (u <= p).to(tl.int32) * 8\n"
    "    bits += (p > u).to(tl.int32) * 16 + (p >= u).to(tl.int32) * 32\n"
    "    bits += (p < u).to(tl.int32) * 64 + (p <= u).to(tl.int32) * 128\n"
    "    tl.store(out_ptr + i, bits)\n";

static float
random_float(int32_t x)
{
    return (float)(x < 0 ? -x - 1 : x) * 4.6566127342e-10F;
}

static int
compared(float u, float p)
{
    return (u > p) + (u >= p) * 2 + (u < p) * 4 + (u <= p) * 8 + (p > u) * 16 +
           (p >= u) * 32 + (p < u) * 64 + (p <= u) * 128;
}

/* The first y whose float is at least p. */
static int64_t
boundary(float p)
{
    int64_t lo = 0, hi = INT64_C(1) << 31;
    while (lo < hi) {
        int64_t mid = (lo + hi) / 2;
        if (random_float((int32_t)mid) >= p)
            hi = mid;
        else
            lo = mid + 1;
    }
    return lo;
}

static int32_t
sample(Env *env, int64_t near, int i)
{
    int64_t y = near + i / 2 % 1024 - 512;
    if (i >= N / 2)
        y = (int64_t)(env_random(env) >> (33 + env_random(env) % 31));
    else if (i >= N / 4)
        y = (INT64_C(1) << (i / 32 % 32)) + i / 2 % 16 - 8;
    y = y < 0 ? 0 : y > INT32_MAX ? INT32_MAX : y;
    return (int32_t)(i % 2 ? -y - 1 : y);
}

static void
against(Env *env, float p)
{
    Buf x = buf_poison(env, SDC_I32, 0, DIMS(N));
    Buf out = buf_poison(env, SDC_I32, 0, DIMS(N));
    int64_t near = boundary(p);
    for (int i = 0; i < N; i++)
        buf_set(&x, i, sample(env, near, i));
    bool ran = LAUNCH(env, "compare", sdc_grid(1, 1, 1), "B=4096", buf_arg(&x),
                      buf_arg(&out), sdc_float(p));
    const double *got = buf_doubles(env, &out);
    for (int i = 0; ran && i < N; i++) {
        int32_t bits = (int32_t)buf_get(&x, i);
        ck_assert_msg((int)got[i] == compared(random_float(bits), p),
                      "bits %d against %a: %d", bits, (double)p, (int)got[i]);
    }
}

START_TEST(by_every_exponent)
{
    Env env = env_open_text("threshold.tk", source);
    for (int e = -149; e < 2; e++) {
        float p = ldexpf(1, e);
        against(&env, p);
        against(&env, nextafterf(p, 0));
        against(&env, ldexpf((float)(env_random(&env) % (1 << 24)), e - 24));
    }
    env_close(&env);
}
END_TEST

START_TEST(by_what_no_number_reaches)
{
    Env env = env_open_text("threshold.tk", source);
    static const float bound[] = {0.0F,      -0.0F,          -0x1p-149F,    -0.5F,
                                  -INFINITY, INFINITY,       NAN,           1.0F,
                                  0x1p31F,   0x1.fffffep-1F, 0x1.fffffcp-1F};
    for (int i = 0; i < (int)(sizeof bound / sizeof *bound); i++)
        against(&env, bound[i]);
    env_close(&env);
}
END_TEST

int
main(void)
{
    return RUN_TESTS("threshold", by_every_exponent, by_what_no_number_reaches);
}
