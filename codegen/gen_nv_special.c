/* Functions of fp32 on a GPU that are neither waves nor powers: roots, lengths, the
   complement of the error function; exact remainders. */
#include "codegen/gen_nv_math.h"

/* 2^(log2 / 3), and a step of Newton's whose rest t^3 - a is computed in two parts:
   within 1 ulp. */
Num
nv_cbrt(Gen *g, Num *x)
{
    LLVMValueRef tiny = less(g, size_of(g, x[0]), 0x1p-80);
    Num a = size_of(g, x[0]);
    a = where(g, tiny, times(g, a, 0x1p60), a);
    Num t = nv_ex2(g, times(g, nv_lg2(g, a), 1.0 / 3.0));
    Num s = mul(g, t, t), low = gen_fma(g, t, t, minus(g, s));
    Num rest = gen_fma(g, s, t, minus(g, a));
    rest = gen_fma(g, low, t, rest);
    Num y = gen_fma(g, mul(g, rest, nv_rcp(g, s)), number(g, -1.0 / 3.0), t);
    y = where(g, tiny, times(g, y, 0x1p-20), y);
    LLVMValueRef plain = both(g, more(g, a, 0.0), less(g, a, __builtin_inf()));
    return where(g, plain, with_sign(g, y, x[0]), x[0]);
}

Num
nv_hypot(Gen *g, Num *x)
{
    Num a = size_of(g, x[0]), b = size_of(g, x[1]), factor,
        inf = number(g, __builtin_inf());
    Num in[2] = {a, b};
    Num most = ll_intrinsic1(g->b, "llvm.maximum", in, 2);
    Num least = ll_intrinsic1(g->b, "llvm.minimum", in, 2);
    Num back = nv_unscaled(g, most, &factor);
    most = mul(g, most, factor);
    least = mul(g, least, factor);
    Num y = nv_root(g, gen_fma(g, most, most, mul(g, least, least)));
    y = mul(g, y, back);
    LLVMValueRef large =
        either(g, equal(g, a, __builtin_inf()), equal(g, b, __builtin_inf()));
    return where(g, large, inf, y);
}

/* e^-a^2 p(t) / (1 + 2 a), t = (a - 2) / (a + 2); the square in two parts. 1.0 of it for
   a >= 0, 2 less that below. Beyond 10.1 it is 0. */
Num
nv_erfc(Gen *g, Num *x)
{
    static const double c[] = {
        1.27697837,    -0.0927641168, -0.166030034,  0.164057419,    -0.0542177185,
        -0.0080715837, 0.00867268536, 0.00134582166, -0.00126969477, -0.000433958106};
    Num a = lesser(g, size_of(g, x[0]), 10.125);
    LLVMValueRef n;
    /* either quotient with what the first product leaves of its dividend */
    Num r = nv_rcp(g, plus(g, a, 2.0)), t = mul(g, plus(g, a, -2.0), r);
    Num rest = gen_fma(g, plus(g, t, 1.0), number(g, -2.0), a);
    t = gen_fma(g, gen_fma(g, minus(g, t), a, rest), r, t);
    Num p = gen_polynomial(g, t, c, 10);
    r = nv_rcp(g, gen_fma(g, a, number(g, 2.0), number(g, 1.0)));
    Num q = mul(g, p, r);
    rest = gen_fma(g, mul(g, q, a), number(g, -2.0), sub(g, p, q));
    p = gen_fma(g, rest, r, q);
    Num s = mul(g, a, a), low = gen_fma(g, a, a, minus(g, s));
    Num y = mul(g, nv_exponential(g, minus(g, s), minus(g, low), &n), p);
    y = nv_scaled(g, y, n);
    return where(g, less(g, x[0], 0.0), sub(g, number(g, 2.0), y), y);
}
