/* log and log2 of f32 within 4 ulp of the value on every target, above all near 1, where
   the logarithm is small and the hardware's of a GPU only absolutely good. */
#include <math.h>
#include <string.h>

#include "tests/run/support/harness.h"

enum { N = 4096 };

static const char source[] =
    "import triton\n"
    "import triton.language as tl\n"
    "@triton.jit\n"
    "def logs(x, e, two, BLOCK: tl.constexpr):\n"
    "    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)\n"
    "    v = tl.load(x + i)\n"
    "    tl.store(e + i, tl.log(v))\n"
    "    tl.store(two + i, tl.log2(v))\n";

static float
operand(Env *env, int i)
{
    static const float odd[] = {0.0f, -0.0f, 1.0f, -1.0f, INFINITY, -INFINITY, NAN,
                                0x1p-149f, 0x1p-126f, 0x1.fffffep127f, 2.0f, 0.5f};
    if (i < (int)(sizeof odd / sizeof *odd))
        return odd[i];
    if (i % 2) /* beside 1 */
        return 1.0f + (float)(i % 4 - 2) * (float)ldexp(1 + i % 7, -(i / 4 % 23) - 1);
    uint32_t bits = (uint32_t)(env_random(env) & 0x7fffffff);
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

static void
check(const char *what, double x, double got, double want)
{
    bool good = isnan(want) ? isnan(got) : got == want;
    if (!good && isfinite(want)) {
        double ulp = want == 0 ? 0x1p-149 : ldexp(1, ilogb(want) - 23);
        good = fabs(got - want) <= 4 * ulp;
    }
    ck_assert_msg(good, "%s of %a is %a, not %a", what, x, got, want);
}

START_TEST(within_bounds)
{
    Env env = env_open_text("logs.tk", source);
    Buf x = buf_poison(&env, SDC_FP32, 0, DIMS(N));
    Buf e = buf_poison(&env, SDC_FP32, 0, DIMS(N));
    Buf two = buf_poison(&env, SDC_FP32, 0, DIMS(N));
    for (int i = 0; i < N; i++)
        buf_set(&x, i, (double)operand(&env, i));
    bool ran = LAUNCH(&env, "logs", sdc_grid(N / 256, 1, 1), "BLOCK=256", buf_arg(&x),
                      buf_arg(&e), buf_arg(&two));
    const double *got = buf_doubles(&env, &e), *got2 = buf_doubles(&env, &two);
    for (int i = 0; ran && i < N; i++) {
        double v = buf_get(&x, i);
        check("log", v, got[i], log(v));
        check("log2", v, got2[i], log2(v));
    }
    env_close(&env);
}
END_TEST

int
main(void)
{
    return RUN_TESTS("logarithm", within_bounds);
}
