/* Functions of fp64 on every target beside long double's: within 4 ulp on the CPU, on a
   GPU within what is measured there (tests/oracle/math_double.py has more arguments);
   special values included. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "tests/run/support/device.h"
#include "tests/run/support/harness.h"

enum { N = 1024 };

typedef struct Function {
    const char *name;
    double ulp;       /* on a GPU */
    double low, high; /* where arguments are drawn from */
    long double (*one)(long double x);
    long double (*two)(long double x, long double y);
} Function;

static long double
reciprocal_root(long double x)
{
    return 1 / sqrtl(x);
}

static long double
ten_to(long double x)
{
    return powl(10, x);
}

/* sin(pi x), with signs of zero as x has them */
static long double
sine_of_turns(long double x)
{
    long double r = x - 2 * rintl(x / 2);
    if (x == 0 || r == 0)
        return copysignl(0, x);
    if (fabsl(r) > 0.5L)
        r = copysignl(1, r) - r;
    return r == 0 ? copysignl(0, x) : sinl(r * 3.14159265358979323846264338327950288L);
}

static long double
cosine_of_turns(long double x)
{
    long double r = fabsl(x - 2 * rintl(x / 2)); /* 0 .. 1 */
    return r == 0.5L ? 0 : sinl((0.5L - r) * 3.14159265358979323846264338327950288L);
}

static const Function functions[] = {
    {"tl.exp", 1, -708, 709, expl, 0},
    {"tl.exp2", 1, -1022, 1023, exp2l, 0},
    {"libdevice.exp10", 1, -307, 308, ten_to, 0},
    {"libdevice.expm1", 1, -40, 700, expm1l, 0},
    {"tl.log", 2, 0, 100, logl, 0},
    {"tl.log2", 1, 0, 100, log2l, 0},
    {"libdevice.log10", 1, 0, 100, log10l, 0},
    {"libdevice.log1p", 1, -1, 10, log1pl, 0},
    {"tl.sin", 2, -1e3, 1e3, sinl, 0},
    {"tl.cos", 2, -1e3, 1e3, cosl, 0},
    {"libdevice.tan", 2, -1e3, 1e3, tanl, 0},
    {"libdevice.sinpi", 2, -1e3, 1e3, sine_of_turns, 0},
    {"libdevice.cospi", 2, -1e3, 1e3, cosine_of_turns, 0},
    {"libdevice.asin", 2, -1, 1, asinl, 0},
    {"libdevice.acos", 2, -1, 1, acosl, 0},
    {"libdevice.atan", 2, -10, 10, atanl, 0},
    {"libdevice.sinh", 2, -700, 700, sinhl, 0},
    {"libdevice.cosh", 1, -700, 700, coshl, 0},
    {"libdevice.tanh", 2, -20, 20, tanhl, 0},
    {"tl.sqrt", 0.5, 0, 100, sqrtl, 0},
    {"tl.rsqrt", 2, 0, 100, reciprocal_root, 0},
    {"libdevice.cbrt", 1, -100, 100, cbrtl, 0},
    {"tl.erf", 2, -6, 6, erfl, 0},
    {"libdevice.erfc", 3, -6, 26, erfcl, 0},
    {"libdevice.tgamma", 6, -170, 171, tgammal, 0},
    {"libdevice.lgamma", 4, 0, 1e4, lgammal, 0},
    {"libdevice.pow", 1, 0, 100, 0, powl},
    {"libdevice.atan2", 2, -10, 10, 0, atan2l},
    {"libdevice.hypot", 2, -10, 10, 0, hypotl},
    {"libdevice.fmod", 0, -1e6, 1e6, 0, fmodl},
};

/* Zeros, infinities and ends of ranges, then numbers around 0, then any of the range. */
static double
operand(Env *env, const Function *f, int i)
{
    static const double odd[] = {0,   1,         INFINITY, NAN,    0x1p-1074, 0x1p-1022,
                                 2,   0x1p-54,   0.5,      1e-310, 1.5,       1e-300,
                                 1e22, 0x1p1023, 171.5,    -170.5};
    enum { ODD = sizeof odd / sizeof *odd };
    if (i < 2 * ODD)
        return i % 2 ? -odd[i / 2] : odd[i / 2];
    double part = (double)(env_random(env) >> 11) * 0x1p-53;
    double x = f->low + (f->high - f->low) * part;
    double near = ldexp(part * 2 - 1, -(int)(env_random(env) % 16));
    return i % 2 && near > f->low && near < f->high ? near : x;
}

static void
check(const Function *f, double x, double y, double got, long double want, double bound)
{
    double rounded = (double)want;
    if (strstr(f->name, "lgamma") && x > -10.001 && x < -2.264)
        return; /* around its zeros */
    bool good = isnan(want) ? isnan(got) : got == rounded;
    if (good && rounded == 0 && want == 0)
        good = signbit(got) == signbit(rounded);
    if (!good && isfinite(want)) {
        int e = want == 0 ? -1022 : ilogbl(want);
        long double ulp = ldexpl(1, (e < -1022 ? -1022 : e) - 52);
        long double there = isinf(got) ? copysignl(0x1p1024L, got) : got;
        good = fabsl(there - want) <= bound * ulp;
    }
    ck_assert_msg(good, "%s of %a, %a is %a, not %a", f->name, x, y, got, rounded);
}

START_TEST(within_bounds)
{
    const Function *f = &functions[_i];
    char text[512];
    snprintf(text, sizeof text,
             "import triton\n"
             "import triton.language as tl\n"
             "from triton.language.extra import libdevice\n"
             "@triton.jit\n"
             "def k(a, b, out, BLOCK: tl.constexpr):\n"
             "    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)\n"
             "    tl.store(out + i, %s(tl.load(a + i)%s))\n",
             f->name, f->two ? ", tl.load(b + i)" : "");
    Env env = env_open_text("functions_double.tk", text);
    Buf x = buf_poison(&env, SDC_FP64, 0, DIMS(N));
    Buf y = buf_poison(&env, SDC_FP64, 0, DIMS(N));
    Buf out = buf_poison(&env, SDC_FP64, 0, DIMS(N));
    for (int i = 0; i < N; i++) {
        buf_set(&x, i, operand(&env, f, i));
        buf_set(&y, i, operand(&env, f, (i * 37 + 11) % N));
    }
    bool ran = LAUNCH(&env, "k", sdc_grid(N / 256, 1, 1), "BLOCK=256", buf_arg(&x),
                      buf_arg(&y), buf_arg(&out));
    const double *got = buf_doubles(&env, &out);
    for (int i = 0; ran && i < N; i++) {
        double a = buf_get(&x, i), b = buf_get(&y, i);
        check(f, a, b, got[i], f->one ? f->one(a) : f->two(a, b),
              device_wanted() ? f->ulp : f->ulp > 0.5 ? 4 : f->ulp);
    }
    env_close(&env);
}
END_TEST

int
main(void)
{
    int n = (int)(sizeof functions / sizeof *functions);
    TCase *tc = tcase_create("functions_double");
    tcase_set_timeout(tc, 0);
    tcase_add_loop_test(tc, within_bounds, 0, n);
    Suite *suite = suite_create("functions_double");
    suite_add_tcase(suite, tc);
    return suite_finish("functions_double", suite);
}
