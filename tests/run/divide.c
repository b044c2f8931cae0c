/* A tile divided by one number: within two ulp also where the number's reciprocal is no
   normal number. Quotients and roots that are asked for rightly rounded are right to the
   last bit, of each type. */
#include <float.h>
#include <math.h>
#include <string.h>

#include "tests/run/support/harness.h"

enum { N = 256 };

static const char source[] =
    "import triton\n"
    "import triton.language as tl\n"
    "@triton.jit\n"
    "def divide(x_ptr, out_ptr, by, B: tl.constexpr):\n"
    "    i = tl.arange(0, B)\n"
    "    tl.store(out_ptr + i, tl.load(x_ptr + i) / by)\n"
    "@triton.jit\n"
    "def exact(x_ptr, y_ptr, out_ptr, by, B: tl.constexpr):\n"
    "    i = tl.arange(0, B)\n"
    "    x, y = tl.load(x_ptr + i), tl.load(y_ptr + i)\n"
    "    tl.store(out_ptr + i, tl.fdiv(x, y, ieee_rounding=True))\n"
    "    by = tl.cast(by, x.dtype)\n"
    "    tl.store(out_ptr + B + i, tl.math.fdiv(x, by, ieee_rounding=True))\n"
    "    tl.store(out_ptr + 2 * B + i, tl.fdiv(x, 3.0, True))\n"
    "    tl.store(out_ptr + 3 * B + i, tl.fdiv(tl.full((B,), 1.0, x.dtype), y, True))\n"
    "@triton.jit\n"
    "def exact_fp32(x_ptr, y_ptr, out_ptr, B: tl.constexpr):\n"
    "    i = tl.arange(0, B)\n"
    "    x, y = tl.load(x_ptr + i), tl.load(y_ptr + i)\n"
    "    tl.store(out_ptr + i, tl.math.div_rn(x, y))\n"
    "    tl.store(out_ptr + B + i, tl.math.sqrt_rn(tl.abs(x)))\n";

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

/* Mantissas at random, exponents of the whole range: small quotients are subnormal. */
static double
any_number(Env *env, SdcDtype t)
{
    int most = t == SDC_FP64 ? 1022 : t == SDC_FP16 ? 14 : 126;
    double m = 1 + (double)(env_random(env) % (1 << 30)) / (1 << 30);
    int e = (int)(env_random(env) % (uint64_t)(2 * most + 1)) - most;
    return ldexp(env_random(env) % 2 ? m : -m, e);
}

/* want has more than twice the bits of the type, so that rounding it once more rounds the
   exact value. Of fp64 it is the right one already. */
static void
check_exact(Env *env, const Buf *out, int64_t i, const double *got, double want,
            const char *what)
{
    Buf one = buf_poison(env, out->dtype, 0, DIMS(1));
    buf_set(&one, 0, want);
    double rounded = buf_get(&one, 0);
    ck_assert_msg(memcmp(&rounded, &got[i], sizeof rounded) == 0, "%s is %a, not %a",
                  what, rounded, got[i]);
}

static void
exact_in(SdcDtype t)
{
    Env env = env_open_text("divide.tk", source);
    Buf x = buf_poison(&env, t, 0, DIMS(N)), y = buf_poison(&env, t, 0, DIMS(N));
    Buf out = buf_poison(&env, t, 0, DIMS(4 * N));
    double by = 0x1.23456789abcdfp3;
    for (int i = 0; i < N; i++) {
        buf_set(&x, i, any_number(&env, t));
        buf_set(&y, i, any_number(&env, t));
    }
    Buf one = buf_poison(&env, t, 0, DIMS(1));
    buf_set(&one, 0, t == SDC_FP64 ? (float)by : by);
    bool ran = LAUNCH(&env, "exact", sdc_grid(1, 1, 1), "B=256", buf_arg(&x), buf_arg(&y),
                      buf_arg(&out), sdc_float(by));
    const double *got = buf_doubles(&env, &out);
    for (int i = 0; ran && i < N; i++) {
        double a = buf_get(&x, i), b = buf_get(&y, i);
        check_exact(&env, &out, i, got, a / b, "x / y");
        check_exact(&env, &out, N + i, got, a / buf_get(&one, 0), "x / by");
        check_exact(&env, &out, 2 * N + i, got, a / 3.0, "x / 3");
        check_exact(&env, &out, 3 * N + i, got, 1 / b, "1 / y");
    }
    if (ran && t == SDC_FP32) {
        ran = LAUNCH(&env, "exact_fp32", sdc_grid(1, 1, 1), "B=256", buf_arg(&x),
                     buf_arg(&y), buf_arg(&out));
        got = buf_doubles(&env, &out);
        for (int i = 0; ran && i < N; i++) {
            double a = buf_get(&x, i), b = buf_get(&y, i);
            check_exact(&env, &out, i, got, a / b, "div_rn");
            check_exact(&env, &out, N + i, got, sqrt(fabs(a)), "sqrt_rn");
        }
    }
    env_close(&env);
}

START_TEST(exactly)
{
    exact_in(SDC_FP32);
    exact_in(SDC_FP64);
    exact_in(SDC_FP16);
    exact_in(SDC_BF16);
}
END_TEST

int
main(void)
{
    return RUN_TESTS("divide", by_ordinary_numbers, by_extreme_numbers, exactly);
}
