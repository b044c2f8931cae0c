/* Functions of libdevice in fp32 on every target, within the bounds that CUDA's
   documentation gives for its own (on the CPU within 4 ulp), special values included. The
   exhaustive look at a GPU's code is tests/oracle/math_error.py. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "tests/run/support/device.h"
#include "tests/run/support/harness.h"

enum { N = 2048 };

typedef struct Function {
    const char *name;
    double ulp; /* on a GPU */
    double (*one)(double x);
    double (*two)(double x, double y);
} Function;

static double
ten_to(double x)
{
    return pow(10, x);
}

static const Function functions[] = {
    {"sin", 2, sin, 0},       {"cos", 2, cos, 0},
    {"tan", 4, tan, 0},       {"asin", 2, asin, 0},
    {"acos", 2, acos, 0},     {"atan", 2, atan, 0},
    {"atan2", 3, 0, atan2},   {"expm1", 1, expm1, 0},
    {"exp10", 2, ten_to, 0},  {"sinh", 3, sinh, 0},
    {"cosh", 2, cosh, 0},     {"tanh", 2, tanh, 0},
    {"log", 1, log, 0},       {"log2", 1, log2, 0},
    {"log10", 2, log10, 0},   {"log1p", 1, log1p, 0},
    {"asinh", 3, asinh, 0},   {"acosh", 4, acosh, 0},
    {"atanh", 3, atanh, 0},   {"pow", 4, 0, pow},
    {"cbrt", 1, cbrt, 0},     {"hypot", 3, 0, hypot},
    {"erf", 2, erf, 0},       {"erfc", 4, erfc, 0},
    {"tgamma", 5, tgamma, 0}, {"lgamma", 6, lgamma, 0},
    {"fmod", 0, 0, fmod},     {"remainder", 0, 0, remainder},
};

/* Zeros, ends of ranges, numbers beside them, then any bits, then numbers of common size.
 */
static float
operand(Env *env, int i)
{
    static const float odd[] = {0,
                                1,
                                INFINITY,
                                NAN,
                                0x1p-149f,
                                0x1p-126f,
                                0x1p-24f,
                                0.5f,
                                0.575f,
                                2,
                                0.41f,
                                0x1.8p0f,
                                0.75f,
                                3,
                                10.125f,
                                88.72f,
                                88.73f,
                                89.4f,
                                89.6f,
                                38.5f,
                                38.6f,
                                -44.9f,
                                1e13f,
                                1.1e13f,
                                1e30f,
                                0x1p50f,
                                0x1p51f,
                                0x1p64f,
                                0x1p126f,
                                0x1p127f,
                                0x1p-127f,
                                0x1.fffffep-1f,
                                0x1.000002p0f,
                                0x1.fffffep127f};
    enum { ODD = sizeof odd / sizeof *odd };
    if (i < 2 * ODD)
        return i % 2 ? -odd[i / 2] : odd[i / 2];
    uint32_t bits = (uint32_t)env_random(env);
    if (i % 4)
        bits = (bits & 0x87ffffff) | (i % 8 < 4 ? 0x38000000 : 0x40000000);
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

static void
check(const Function *f, double x, double y, double got, double want, double bound)
{
    double rounded = (double)(float)want;
    if (!strcmp(f->name, "lgamma") && x > -10.001 && x < -2.264)
        return; /* around its zeros */
    bool good = isnan(want) ? isnan(got) : got == rounded;
    if (good && want == 0)
        good = signbit(got) == signbit(want);
    if (!good && isfinite(want)) {
        int e = want == 0 ? -126 : ilogb(want);
        double ulp = ldexp(1, (e < -126 ? -126 : e) - 23);
        if (isinf(got)) /* the end of the range, and an ulp */
            got = copysign(0x1p128, got);
        good = fabs(got - want) <= bound * ulp;
    }
    ck_assert_msg(good, "%s of %a, %a is %a, not %a", f->name, x, y, got, rounded);
}

START_TEST(within_bounds)
{
    const Function *f = &functions[_i];
    char text[512];
    bool basic = f->one && (!strcmp(f->name, "sin") || !strcmp(f->name, "cos"));
    snprintf(text, sizeof text,
             "import triton\n"
             "import triton.language as tl\n"
             "from triton.language.extra import libdevice\n"
             "@triton.jit\n"
             "def k(a, b, out, BLOCK: tl.constexpr):\n"
             "    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)\n"
             "    tl.store(out + i, %s.%s(tl.load(a + i)%s))\n",
             basic ? "tl.math" : "libdevice", f->name, f->two ? ", tl.load(b + i)" : "");
    Env env = env_open_text("functions.tk", text);
    Buf x = buf_poison(&env, SDC_FP32, 0, DIMS(N));
    Buf y = buf_poison(&env, SDC_FP32, 0, DIMS(N));
    Buf out = buf_poison(&env, SDC_FP32, 0, DIMS(N));
    for (int i = 0; i < N; i++) {
        buf_set(&x, i, (double)operand(&env, i));
        buf_set(&y, i, (double)operand(&env, (i * 37 + 11) % N));
    }
    bool ran = LAUNCH(&env, "k", sdc_grid(N / 256, 1, 1), "BLOCK=256", buf_arg(&x),
                      buf_arg(&y), buf_arg(&out));
    const double *got = buf_doubles(&env, &out);
    double bound = device_wanted() || f->ulp > 4 ? f->ulp : 4;
    for (int i = 0; ran && i < N; i++) {
        double a = buf_get(&x, i), b = buf_get(&y, i);
        check(f, a, b, got[i], f->one ? f->one(a) : f->two(a, b), bound);
    }
    env_close(&env);
}
END_TEST

int
main(void)
{
    int n = (int)(sizeof functions / sizeof *functions);
    TCase *tc = tcase_create("functions");
    tcase_set_timeout(tc, 0);
    tcase_add_loop_test(tc, within_bounds, 0, n);
    Suite *suite = suite_create("functions");
    suite_add_tcase(suite, tc);
    return suite_finish("functions", suite);
}
