/* Logarithms of fp32 on a GPU, what is made of them, and powers, whose logarithm has to
   be good to 2^-31. */
#include "codegen/gen_nv_math.h"

static const double log2_e = 1.4426950408889634, log2_e_high = 1.4426950216293335;
static const double log10_2 = 0.30102999566398120, log10_2_high = 0.301025390625;

/* The exponent of x = m 2^e with m in [least, 2 least), in its place among the bits. */
static LLVMValueRef
exponent(Gen *g, LLVMValueRef bits, uint32_t least)
{
    LLVMValueRef e = LLVMBuildSub(g->b, bits, ll_int(g->i32, least), "");
    return LLVMBuildAnd(g->b, e, ll_int(g->i32, (int32_t)0xff800000), "");
}

/* r, but for x that is `zero` (-inf), below (NaN), infinite or NaN (x): x inf + inf is
   what the last three give. */
static Num
checked(Gen *g, Num x, double zero, Num r)
{
    Num inf = number(g, __builtin_inf());
    LLVMValueRef inside;
    if (zero == 0) /* as integers the negative floats are beyond 2^31 */
        inside = LLVMBuildICmp(g->b, LLVMIntULT, bits_of(g, x),
                               ll_int(g->i32, 0x7f800000), "");
    else
        inside = both(g, more(g, x, zero), less(g, x, __builtin_inf()));
    r = where(g, inside, r, gen_fma(g, x, inf, inf));
    return where(g, equal(g, x, zero), minus(g, inf), r);
}

/* x = m * 2^i, sqrt(1/2) <= m < sqrt(2): log(1 + f) as a polynomial in f = m - 1, plus i
   * log 2; within 0.9 ulp, to base 10 1.9 (lg2.approx is 2^-22 off near 1, where the
   logarithm is as small as that). */
Num
nv_log(Gen *g, Num x, LogBase base)
{
    static const double c[] = {-0.499999881, 0.333333164,  -0.250016272,
                               0.200024769,  -0.166080266, 0.141734108,
                               -0.132466659, 0.129526481,  -0.0766209513};
    LLVMValueRef tiny = less(g, x, 0x1p-126);
    Num a = where(g, tiny, times(g, x, 0x1p23), x);
    Num lift = where(g, tiny, number(g, -23.0), number(g, 0.0));
    LLVMValueRef bits = bits_of(g, a), e = exponent(g, bits, 0x3f3504f3);
    Num m = of_bits(g, LLVMBuildSub(g->b, bits, e, ""));
    Num i = gen_fma(g, LLVMBuildSIToFP(g->b, e, g->f32, ""), number(g, 0x1p-23), lift);
    Num f = plus(g, m, -1.0), s = mul(g, f, f), p = gen_polynomial(g, f, c, 9);
    Num r = gen_fma(g, p, s, f);
    switch (base) {
    case LOG_E: r = gen_fma(g, i, number(g, 0.693147182), r); break;
    case LOG_2: { /* f times 1 / log 2 in two parts, and what its sum with i loses */
        Num high = times(g, f, log2_e_high), sum = add(g, i, high);
        Num low = gen_fma(g, f, number(g, log2_e_high), minus(g, high));
        low = gen_fma(g, f, number(g, log2_e - log2_e_high), low);
        low = add(g, low, sub(g, high, sub(g, sum, i)));
        r = add(g, gen_fma(g, mul(g, p, s), number(g, log2_e), low), sum);
        break;
    }
    case LOG_10: /* of log10(2) the first part has 13 bits: times i it is exact */
        r = gen_fma(g, r, number(g, 0.43429448190325182),
                    times(g, i, log10_2 - log10_2_high));
        r = gen_fma(g, i, number(g, log10_2_high), r);
        break;
    }
    return checked(g, a, 0.0, r);
}

/* With 2^e about 1 + x: f = x / 2^e + (1 / 2^e - 1) is exact but for the last bit of
   a small x. 4 / 2^e: 1 / 2^128 would be none of the normal numbers. */
static Num
nv_log1p(Gen *g, Num x, Num more_of)
{
    static const double c[] = {-0.5,         0.333334595,  -0.250001401,
                               0.199904144,  -0.166454464, 0.144819781,
                               -0.131811902, 0.104773909,  -0.0449900441};
    LLVMValueRef e = exponent(g, bits_of(g, plus(g, x, 1.0)), 0x3f400000);
    Num part = of_bits(g, LLVMBuildSub(g->b, bits_of(g, x), e, ""));
    Num four = of_bits(g, LLVMBuildSub(g->b, ll_int(g->i32, 0x40800000), e, ""));
    Num f = add(g, part, gen_fma(g, four, number(g, 0.25), number(g, -1.0)));
    Num i = LLVMBuildSIToFP(g->b, e, g->f32, "");
    i = more_of ? gen_fma(g, i, number(g, 0x1p-23), more_of) : times(g, i, 0x1p-23);
    Num r = gen_fma(g, gen_polynomial(g, f, c, 9), mul(g, f, f), f);
    r = gen_fma(g, i, number(g, 0.693147182), r);
    r = checked(g, x, -1.0, r);
    return where(g, less(g, size_of(g, x), 0x1p-24), x, r);
}

Num
nv_log1p_of(Gen *g, Num *x)
{
    return nv_log1p(g, x[0], NULL);
}

Num
nv_log10(Gen *g, Num *x)
{
    return nv_log(g, x[0], LOG_10);
}

/* log1p(u), or of u beyond 2^50 log(2 u). */
static Num
inverse(Gen *g, Num size, Num u)
{
    LLVMValueRef large = more(g, size, 0x1p50);
    Num one = where(g, large, number(g, 1.0), number(g, 0.0));
    return nv_log1p(g, where(g, large, size, u), one);
}

Num
nv_asinh(Gen *g, Num *x)
{
    Num a = size_of(g, x[0]), s = mul(g, a, a);
    Num root = nv_root(g, plus(g, s, 1.0));
    Num u = gen_fma(g, s, nv_rcp(g, plus(g, root, 1.0)), a);
    return with_sign(g, inverse(g, a, u), x[0]);
}

Num
nv_acosh(Gen *g, Num *x)
{
    Num t = plus(g, x[0], -1.0);
    Num u = add(g, t, nv_root(g, gen_fma(g, t, t, add(g, t, t))));
    u = where(g, less(g, x[0], 1.0), number(g, __builtin_nan("")), u);
    return inverse(g, x[0], u);
}

Num
nv_atanh(Gen *g, Num *x)
{
    Num a = size_of(g, x[0]), rest = sub(g, number(g, 1.0), a);
    rest = where(g, more(g, a, 1.0), number(g, __builtin_nan("")), rest);
    /* 2 a / (1 - a) */
    Num two = add(g, a, a), u = gen_fma(g, mul(g, two, nv_rcp(g, rest)), a, two);
    return with_sign(g, times(g, nv_log1p(g, u, NULL), 0.5), x[0]);
}

/* With a = m 2^e, z = (m - 1) / (m + 1): e + 2 atanh(z) / log 2. */
void
nv_log2_pair(Gen *g, Num a, Num *high, Num *low)
{
    static const double c[] = {0.333333313, 0.200001687, 0.142685801, 0.117925845};
    LLVMValueRef tiny = less(g, a, 0x1p-126);
    Num normal = where(g, tiny, times(g, a, 0x1p24), a);
    Num lift = where(g, tiny, number(g, -24.0), number(g, 0.0));
    LLVMValueRef bits = bits_of(g, normal);
    LLVMValueRef e = exponent(g, bits, 0x3f3504f3);
    Num m = of_bits(g, LLVMBuildSub(g->b, bits, e, ""));
    Num i = gen_fma(g, LLVMBuildSIToFP(g->b, e, g->f32, ""), number(g, 0x1p-23), lift);
    Num f = plus(g, m, -1.0), r = nv_rcp(g, plus(g, m, 1.0));
    Num z = mul(g, f, r);
    /* what is left of f - z (2 + f), exact */
    Num rest = gen_fma(g, minus(g, z), f, gen_fma(g, z, number(g, -2.0), f));
    rest = mul(g, rest, r);
    Num sum = add(g, z, rest), s = mul(g, sum, sum);
    rest = sub(g, rest, sub(g, sum, z));
    Num tail = gen_fma(g, mul(g, s, sum), gen_polynomial(g, s, c, 4), rest);
    Num h = add(g, sum, tail), l = sub(g, tail, sub(g, h, sum));
    /* times 2 log2 e */
    Num two = number(g, 2.885390043258667);
    Num top = mul(g, h, two);
    Num bottom = gen_fma(g, h, two, minus(g, top));
    bottom = gen_fma(g, h, number(g, 2 * log2_e - 2.885390043258667),
                     gen_fma(g, l, two, bottom));
    *high = add(g, i, top);
    *low = add(g, bottom, sub(g, top, sub(g, *high, i)));
}

Num
nv_power_of_pair(Gen *g, Num high, Num low, LLVMValueRef *n)
{
    static const double c[] = {0.693147182,   0.240226507,   0.0555036031,
                               0.00961803831, 0.00133916538, 0.000154725669};
    Num y = lesser(g, greater(g, high, -200.0), 200.0);
    Num magic = number(g, 12582912.0), sum = add(g, y, magic);
    *n = LLVMBuildSub(g->b, bits_of(g, sum), ll_int(g->i32, 0x4b400000), "");
    low = where(g, less(g, size_of(g, high), 200.0), low, number(g, 0.0));
    Num f = add(g, sub(g, y, sub(g, sum, magic)), low);
    return gen_fma(g, f, gen_polynomial(g, f, c, 6), number(g, 1.0));
}

static LLVMValueRef
is_whole(Gen *g, Num x)
{
    Num whole = ll_intrinsic1(g->b, "llvm.trunc", &x, 1);
    return LLVMBuildFCmp(g->b, LLVMRealOEQ, whole, x, "");
}

Num
nv_pow(Gen *g, Num *x)
{
    Num a = size_of(g, x[0]), y = x[1], high, low, one = number(g, 1.0);
    LLVMValueRef none = LLVMBuildFCmp(g->b, LLVMRealUNO, a, y, "");
    nv_log2_pair(g, a, &high, &low);
    high = where(g, equal(g, a, 0.0), number(g, -__builtin_inf()), high);
    high = where(g, equal(g, a, __builtin_inf()), a, high);
    Num top = mul(g, y, high);
    Num bottom = gen_fma(g, y, low, gen_fma(g, y, high, minus(g, top)));
    LLVMValueRef n;
    Num r = nv_power_of_pair(g, top, bottom, &n);
    r = nv_scaled(g, r, n);
    r = where(g, equal(g, a, 1.0), one, r); /* y may be infinite */
    LLVMValueRef whole = is_whole(g, y);
    LLVMValueRef odd =
        both(g, whole, LLVMBuildNot(g->b, is_whole(g, times(g, y, 0.5)), ""));
    LLVMValueRef negative =
        LLVMBuildICmp(g->b, LLVMIntSLT, bits_of(g, x[0]), ll_int(g->i32, 0), "");
    r = where(g, both(g, odd, negative), minus(g, r), r);
    /* of a negative finite number only whole powers are */
    LLVMValueRef finite = both(g, less(g, x[0], 0.0), more(g, x[0], -__builtin_inf()));
    none = either(g, none, both(g, finite, LLVMBuildNot(g->b, whole, "")));
    r = where(g, none, number(g, __builtin_nan("")), r);
    return where(g, either(g, equal(g, y, 0.0), equal(g, x[0], 1.0)), one, r);
}
