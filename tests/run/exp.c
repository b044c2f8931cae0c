/* exp and exp2 of f32 (and erf where it is added to 1) on the CPU over the whole range of
   floats, in strips and as scalars: within 1.5 ulp of the value (of the spacing of the
   least normal numbers below them), NaN and infinities included. Operands that are known
   not to be above 0 take a code of their own; what one float gives is the same in strips
   and alone. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tests/run/support/harness.h"

static const char kernels[] =
    "import triton\n"
    "import triton.language as tl\n"
    "@triton.jit\n"
    "def powers(x, e, e2, n, BLOCK: tl.constexpr):\n"
    "    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)\n"
    "    v = tl.load(x + i, mask=i < n)\n"
    "    tl.store(e + i, tl.exp(v), mask=i < n)\n"
    "    tl.store(e2 + i, tl.exp2(v), mask=i < n)\n"
    "@triton.jit\n"
    "def below(x, e, e2, n, BLOCK: tl.constexpr):\n"
    "    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)\n"
    "    v = tl.load(x + i, mask=i < n)\n"
    "    high = tl.maximum(v, 0.0)\n"
    "    tl.store(e + i, tl.exp(v - high), mask=i < n)\n"
    "    tl.store(e2 + i, tl.exp2(v - high), mask=i < n)\n"
    "@triton.jit\n"
    "def beside_one(x, e, e2, n, BLOCK: tl.constexpr):\n"
    "    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)\n"
    "    v = tl.load(x + i, mask=i < n)\n"
    "    tl.store(e + i, 1.0 + tl.erf(v), mask=i < n)\n"
    "    tl.store(e2 + i, 1.0 - tl.erf(v), mask=i < n)\n"
    "@triton.jit\n"
    "def alone(x, e, e2, n, BLOCK: tl.constexpr):\n"
    "    for i in range(n):\n"
    "        tl.store(e + i, tl.exp(tl.load(x + i)))\n"
    "        tl.store(e2 + i, tl.exp2(tl.load(x + i)))\n";

enum { N = 1 << 16, ROUNDS = 32 };

static double
ulps(float got, double want)
{
    if (isnan(want))
        return isnan(got) ? 0 : INFINITY;
    if (isinf((float)want) || isinf(got))
        return isinf(got) && want >= 0x1.ffffffp127 ? 0 : INFINITY;
    int e;
    frexp(want, &e);
    return fabs(got - want) / fmax(ldexp(1, e - 24), 0x1p-149);
}

static void
run(Env *env, const char *kernel, int n, float *x, float *e, float *e2)
{
    int programs = strcmp(kernel, "alone") ? n / 256 : 1;
    LAUNCH(env, kernel, sdc_grid(programs, 1, 1), "BLOCK=256", sdc_ptr(SDC_FP32, x),
           sdc_ptr(SDC_FP32, e), sdc_ptr(SDC_FP32, e2), sdc_int(n));
}

static void
accurate(const char *kernel, bool below)
{
    Env env = env_open_text("exp", kernels);
    float *x = env_alloc(&env, N * sizeof *x), *e = env_alloc(&env, N * sizeof *e);
    float *e2 = env_alloc(&env, N * sizeof *e2);
    double worst = 0;
    for (uint32_t r = 0; r < ROUNDS; r++) {
        /* Every 2039th float, then every one near the ends of the range. */
        for (uint32_t i = 0; i < N; i++) {
            uint32_t bits = (r * N + i) * 2039;
            if (r == 0)
                bits = (i & 1 ? 0xc2cff1b4u : 0x42b17218u) - N / 4 + i / 2;
            memcpy(&x[i], &bits, sizeof bits);
        }
        run(&env, kernel, N, x, e, e2);
        for (int i = 0; i < N; i++) {
            double v = below && x[i] > 0 ? (isinf(x[i]) ? NAN : 0) : (double)x[i];
            worst = fmax(worst, fmax(ulps(e[i], exp(v)), ulps(e2[i], exp2(v))));
        }
    }
    ck_assert_msg(worst < 1.5, "%s: %g ulp", kernel, worst);
    env_close(&env);
}

START_TEST(any_operand)
{
    accurate("powers", false);
}
END_TEST

START_TEST(never_above_0)
{
    accurate("below", true);
}
END_TEST

/* The error function, whose error counts beside 1. */
START_TEST(erf_beside_one)
{
    Env env = env_open_text("exp", kernels);
    float *x = env_alloc(&env, N * sizeof *x), *e = env_alloc(&env, N * sizeof *e);
    float *e2 = env_alloc(&env, N * sizeof *e2);
    double worst = 0;
    for (uint32_t r = 0; r < ROUNDS; r++) {
        for (uint32_t i = 0; i < N; i++) {
            uint32_t bits = (r * N + i) * 2039;
            memcpy(&x[i], &bits, sizeof bits);
        }
        run(&env, "beside_one", N, x, e, e2);
        for (int i = 0; i < N; i++) {
            double v = erf(x[i]), off = fmax(fabs(e[i] - 1 - v), fabs(e2[i] - 1 + v));
            bool same = isnan(v) == isnan(e[i]) && isnan(v) == isnan(e2[i]);
            worst = fmax(worst, same ? fmax(0, off) : INFINITY);
        }
    }
    ck_assert_msg(worst < 0x1.6p-23, "%g of 2^-23", worst * 0x1p23);
    env_close(&env);
}
END_TEST

START_TEST(scalars_like_strips)
{
    enum { FEW = 256 };
    Env env = env_open_text("exp", kernels);
    float x[FEW], out[4][FEW];
    for (int i = 0; i < FEW; i++)
        x[i] = (float)(env_normal(&env) * 40);
    x[0] = INFINITY;
    x[1] = -INFINITY;
    x[2] = 0;
    run(&env, "powers", FEW, x, out[0], out[1]);
    run(&env, "alone", FEW, x, out[2], out[3]);
    ck_assert_mem_eq(out[0], out[2], sizeof out[0]);
    ck_assert_mem_eq(out[1], out[3], sizeof out[1]);
    ck_assert(isinf(out[0][0]) && out[0][1] == 0 && out[0][2] == 1);
    env_close(&env);
}
END_TEST

int
main(void)
{
    /* A GPU has an exponential of its own, with other bounds. */
    if (getenv("SDC_TEST_TARGET"))
        return 0;
    return RUN_TESTS("exp", any_operand, never_above_0, erf_beside_one,
                     scalars_like_strips);
}
