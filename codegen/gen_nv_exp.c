/* Powers and hyperbolic functions of fp32 on a GPU, and the hardware's approximations.
   The hardware's 2^x would do for none of the functions that subtract 1 or a reciprocal:
   e^x is a polynomial here, whose terms each such function takes as it needs them. */
#include "codegen/gen_nv_math.h"

#include "codegen/ptx.h"

static const double log2_e = 1.4426950408889634;
static const double log10_2 = 0.30102999566398120, log10_2_high = 0.301025390625;

static Num
one_instruction(Gen *g, const char *text, Num x)
{
    return ptx_asm(g, text, "=f,f", g->f32, &x, 1, false);
}

Num
nv_ex2(Gen *g, Num x)
{
    return one_instruction(g, "ex2.approx.ftz.f32 $0, $1;", x);
}

Num
nv_ex2_gradual(Gen *g, Num x)
{
    return one_instruction(g, "ex2.approx.f32 $0, $1;", x);
}

Num
nv_lg2(Gen *g, Num x)
{
    return one_instruction(g, "lg2.approx.f32 $0, $1;", x);
}

Num
nv_rcp(Gen *g, Num x)
{
    return one_instruction(g, "rcp.approx.ftz.f32 $0, $1;", x);
}

Num
nv_root(Gen *g, Num x)
{
    return one_instruction(g, "sqrt.approx.ftz.f32 $0, $1;", x);
}

Num
nv_rsqrt(Gen *g, Num x)
{
    return one_instruction(g, "rsqrt.approx.ftz.f32 $0, $1;", x);
}

Num
nv_unscaled(Gen *g, Num x, Num *factor)
{
    LLVMValueRef in[2] = {
        LLVMBuildAnd(g->b, bits_of(g, x), ll_int(g->i32, 0x7f800000), ""),
        ll_int(g->i32, 0x00800000)};
    in[0] = ll_intrinsic1(g->b, "llvm.umax", in, 2);
    in[1] = ll_int(g->i32, 0x7e800000);
    LLVMValueRef bits = ll_intrinsic1(g->b, "llvm.umin", in, 2);
    *factor = of_bits(g, LLVMBuildSub(g->b, ll_int(g->i32, 0x7f000000), bits, ""));
    return of_bits(g, bits);
}

/* 2^n, -126 <= n <= 127 */
static Num
two_to(Gen *g, LLVMValueRef n)
{
    n = LLVMBuildShl(g->b, n, ll_int(g->i32, 23), "");
    return of_bits(g, LLVMBuildAdd(g->b, n, ll_int(g->i32, 0x3f800000), ""));
}

Num
nv_scaled(Gen *g, Num y, LLVMValueRef n)
{
    LLVMValueRef half = LLVMBuildAShr(g->b, n, ll_int(g->i32, 1), "");
    LLVMValueRef rest = LLVMBuildSub(g->b, n, half, "");
    return mul(g, mul(g, y, two_to(g, half)), two_to(g, rest));
}

/* The nearest whole number to x * scale, and the same as an integer: adding 1.5 * 2^23
   leaves it in the low bits of the sum. */
static Num
nearest(Gen *g, Num x, double scale, LLVMValueRef *n)
{
    Num magic = number(g, 12582912.0), sum = gen_fma(g, x, number(g, scale), magic);
    *n = LLVMBuildSub(g->b, bits_of(g, sum), ll_int(g->i32, 0x4b400000), "");
    return sub(g, sum, magic);
}

/* x - k log 2 */
static Num
log2_off(Gen *g, Num x, Num k)
{
    Num f = gen_fma(g, k, number(g, -0.693145751953125), x);
    return gen_fma(g, k, number(g, -1.42860677e-6), f);
}

Num
nv_exponential(Gen *g, Num x, Num low, LLVMValueRef *n)
{
    static const double c[] = {0.5, 0.166665152, 0.041666586, 0.00836932566,
                               0.00139209582};
    Num f = log2_off(g, x, nearest(g, x, log2_e, n));
    f = low ? add(g, f, low) : f;
    return plus(g, gen_fma(g, mul(g, f, f), gen_polynomial(g, f, c, 5), f), 1.0);
}

/* Below 0.41 nothing is taken off: 2^n - 1 and the rest would cancel. */
Num
nv_expm1(Gen *g, Num *x)
{
    static const double c[] = {0.5,           0.166666672,   0.0416663066,
                               0.00833323691, 0.00139520795, 0.000199274466};
    LLVMValueRef n, near = less(g, size_of(g, x[0]), 0.41);
    Num y = lesser(g, greater(g, x[0], -26.0), 89.0); /* beyond, -1 and infinity */
    Num k = nearest(g, y, log2_e, &n), f;
    k = where(g, near, number(g, 0.0), k);
    n = where(g, near, ll_int(g->i32, 0), n);
    f = log2_off(g, y, k);
    Num p = gen_fma(g, mul(g, f, f), gen_polynomial(g, f, c, 6), f);
    /* 2^(n - 1), which never overflows; less 1/2 exactly, or p less so much */
    Num half = two_to(g, LLVMBuildSub(g->b, n, ll_int(g->i32, 1), ""));
    LLVMValueRef large = LLVMBuildICmp(g->b, LLVMIntSGT, n, ll_int(g->i32, 22), "");
    LLVMValueRef in[2] = {n, ll_int(g->i32, 100)};
    n = ll_intrinsic1(g->b, "llvm.smin", in, 2);
    p = where(g, large, sub(g, p, two_to(g, LLVMBuildNeg(g->b, n, ""))), p);
    y = gen_fma(g, p, half, where(g, large, half, plus(g, half, -0.5)));
    return where(g, less(g, size_of(g, x[0]), 0x1p-24), x[0], add(g, y, y));
}

Num
nv_exp10(Gen *g, Num *x)
{
    static const double c[] = {2.30258512, 2.65094924,  2.03465652,
                               1.1712321,  0.541835725, 0.208098173};
    LLVMValueRef n;
    Num y = lesser(g, greater(g, x[0], -46.0), 39.0);
    Num k = nearest(g, y, 3.3219280948873623, &n);
    Num f = gen_fma(g, k, number(g, -log10_2_high), y);
    f = gen_fma(g, k, number(g, log10_2_high - log10_2), f);
    return nv_scaled(g, gen_fma(g, f, gen_polynomial(g, f, c, 6), number(g, 1.0)), n);
}

/* e^size / 4, and its reciprocal / 8 = e^-size / 2: neither overflows where their sum
   does not. From 89.5 on all is infinite. */
static Num
quarter(Gen *g, Num size, Num *other)
{
    LLVMValueRef n;
    Num y = nv_exponential(g, lesser(g, size, 89.5), NULL, &n);
    y = mul(g, y, two_to(g, LLVMBuildSub(g->b, n, ll_int(g->i32, 2), "")));
    *other = times(g, nv_rcp(g, y), 0.125);
    return y;
}

Num
nv_cosh(Gen *g, Num *x)
{
    Num other, y = quarter(g, size_of(g, x[0]), &other);
    return gen_fma(g, y, number(g, 2.0), other);
}

Num
nv_sinh(Gen *g, Num *x)
{
    static const double c[] = {0.166666672, 0.00833331142, 0.000198426351, 2.78392554e-6};
    Num size = size_of(g, x[0]), s = mul(g, x[0], x[0]);
    Num other, y = quarter(g, size, &other);
    y = with_sign(g, gen_fma(g, y, number(g, 2.0), minus(g, other)), x[0]);
    Num near = gen_fma(g, mul(g, s, x[0]), gen_polynomial(g, s, c, 4), x[0]);
    return where(g, less(g, size, 1.0), near, y);
}

/* Near 0 x + x^3 p(x^2), fitted, from 0.9 on 1 - 2 / (1 + e^2x): within 2.5 ulp, the
   hardware's errors included. */
Num
nv_tanh(Gen *g, Num *x)
{
    static const double p[] = {-0.333332121, 0.133303598,    -0.0537214838,
                               0.0209041145, -0.00686004246, 0.00130395428};
    Num size = size_of(g, x[0]), s = mul(g, x[0], x[0]);
    Num near = gen_fma(g, gen_polynomial(g, s, p, 6), mul(g, s, x[0]), x[0]);
    Num e = nv_rcp(g, plus(g, nv_ex2(g, times(g, size, 2 * log2_e)), 1.0));
    e = gen_fma(g, e, number(g, -2.0), number(g, 1.0));
    return with_sign(g, where(g, less(g, size, 0.9), near, e), x[0]);
}

/* ---- by the hardware's approximations alone, as CUDA's intrinsics of these names */
Num
nv_fast_sin(Gen *g, Num *x)
{
    return one_instruction(g, "sin.approx.ftz.f32 $0, $1;", x[0]);
}

Num
nv_fast_cos(Gen *g, Num *x)
{
    return one_instruction(g, "cos.approx.ftz.f32 $0, $1;", x[0]);
}

Num
nv_fast_tan(Gen *g, Num *x)
{
    return mul(g, nv_fast_sin(g, x), nv_rcp(g, nv_fast_cos(g, x)));
}

Num
nv_fast_log(Gen *g, Num *x)
{
    return times(g, nv_lg2(g, x[0]), 0.69314718055994531);
}

Num
nv_fast_log2(Gen *g, Num *x)
{
    return nv_lg2(g, x[0]);
}

Num
nv_fast_log10(Gen *g, Num *x)
{
    return times(g, nv_lg2(g, x[0]), log10_2);
}

Num
nv_fast_exp10(Gen *g, Num *x)
{
    return nv_ex2(g, times(g, x[0], 3.3219280948873623));
}

Num
nv_fast_pow(Gen *g, Num *x)
{
    return nv_ex2(g, mul(g, x[1], nv_lg2(g, x[0])));
}
