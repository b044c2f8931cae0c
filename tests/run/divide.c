/* A tile divided by one number: within two ulp also where the number's reciprocal is no
   normal number. */
#include <float.h>
#include <math.h>

#include "tests/run/support/harness.h"

enum { N = 256 };

static const char source[] =
    "import triton\n"
    "import triton.language as tl\n"
    "@triton.jit\n"
    "def divide(x_ptr, out_ptr, by, B: tl.constexpr):\n"
    "    i = tl.arange(0, B)\n"
    "    tl.store(out_ptr + i, tl.load(x_ptr + i) / by)\n";

static void
divide_by(float by)
{
    Env env = env_open_text("divide.tk", source);
    Buf x = buf_poison(&env, SDC_FP32, 0, DIMS(N));
    Buf out = buf_poison(&env, SDC_FP32, 0, DIMS(N));
    for (int i = 0; i < N; i++) {
        /* quotients from 2^-20 to 2^20, and zero */
        double q = ldexp(1 + (double)(env_random(&env) % 1000) / 1000, i % 40 - 20);
        double v = i % 16 ? q * fabs((double)by) : 0;
        buf_set(&x, i, v > FLT_MAX ? 0 : v);
    }
    bool ran = LAUNCH(&env, "divide", sdc_grid(1, 1, 1), "B=256", buf_arg(&x),
                      buf_arg(&out), sdc_float(by));
    const double *got = buf_doubles(&env, &out);
    for (int i = 0; ran && i < N; i++) {
        double want = buf_get(&x, i) / (double)by;
        double ulp = ldexp(1, (want != 0 ? ilogb(want) : 0) - 23);
        ck_assert_msg(fabs(got[i] - want) <= 2 * ulp, "%a / %a is %a, not %a",
                      buf_get(&x, i), (double)by, want, got[i]);
    }
    env_close(&env);
}

START_TEST(by_ordinary_numbers)
{
    divide_by(3.0f);
    divide_by(-0x1.234p-30f);
    divide_by(0x1p126f);
    divide_by(0x1.fp-126f);
}
END_TEST

START_TEST(by_extreme_numbers)
{
    divide_by(0x1.8p127f);
    divide_by(0x1p-130f);
    divide_by(-0x1p-148f);
}
END_TEST

int
main(void)
{
    return RUN_TESTS("divide", by_ordinary_numbers, by_extreme_numbers);
}
