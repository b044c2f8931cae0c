/* The gamma function of fp32 on a GPU and its logarithm: Stirling's series with a
   logarithm in two parts, polynomials around 1 and 2, Euler's reflection below 0. Each is
   a function of its own that a kernel calls: a tile would repeat its hundred
   instructions. */
#include "codegen/gen_nv_math.h"

static const double log2_e = 1.4426950408889634, log2_e_high = 1.4426950216293335;

/* y log2(y) - y log2(e) - log2(y) / 2 of y + rest as a pair, y >= 2; *series: what is to
   be added as a natural logarithm, but for log(2 pi) / 2. */
static Num
stirling(Gen *g, Num y, Num rest, Num *low, Num *series)
{
    static const double c[] = {0.0833317861, 3.37394013e-5, -0.00301299477,
                               0.000687537948};
    Num h, l, v = nv_rcp(g, y), t = plus(g, y, -0.5);
    nv_log2_pair(g, y, &h, &l);
    *series = mul(g, gen_polynomial(g, v, c, 4), v);
    Num top = mul(g, t, h);
    *low = gen_fma(g, t, l, gen_fma(g, t, h, minus(g, top)));
    Num less_this = times(g, y, log2_e_high);
    Num lost = gen_fma(g, y, number(g, log2_e_high), minus(g, less_this));
    lost = gen_fma(g, y, number(g, log2_e - log2_e_high), lost);
    Num high = sub(g, top, less_this), back = sub(g, high, top);
    Num error = sub(g, sub(g, top, sub(g, high, back)), add(g, less_this, back));
    *low = add(g, sub(g, *low, lost), error);
    /* the slope is digamma(y), nearly log(y) - 1 / 2 y */
    *low = gen_fma(g, rest, gen_fma(g, v, number(g, -0.5 * log2_e), h), *low);
    return high;
}

/* 2^32 sin(pi a) of a >= 0 */
static Num
sine_of_turns(Gen *g, Num a)
{
    static const double s_c[] = {-8.74227766e-8, -5.16771269, 2.55016279, -0.59920609,
                                 0.0810304284};
    static const double c_c[] = {1.0, -4.93480206, 4.05870771, -1.33505845, 0.231429577};
    Num whole = times(g, a, 0.5);
    whole = ll_intrinsic1(g->b, "llvm.trunc", &whole, 1);
    Num r = gen_fma(g, whole, number(g, -2.0), a), q = times(g, r, 2.0);
    q = ll_intrinsic1(g->b, "llvm.rint", &q, 1);
    r = gen_fma(g, q, number(g, -0.5), r);
    Num s = mul(g, r, r), wide = times(g, r, 0x1p32);
    Num sine = mul(g, gen_polynomial(g, s, s_c, 5), wide);
    sine = gen_fma(g, wide, number(g, 3.14159274), sine);
    Num cosine = times(g, gen_polynomial(g, s, c_c, 5), 0x1p32);
    /* q is 0 .. 4 */
    Num y = where(g, either(g, equal(g, q, 1.0), equal(g, q, 3.0)), cosine, sine);
    LLVMValueRef back = both(g, more(g, q, 1.5), less(g, q, 3.5));
    return where(g, back, minus(g, y), y);
}

/* Below 2 by gamma(a + 2) / (a (a + 1)); below 0 -pi / (a sin(pi a) gamma(a)). The
   divisor is 2^32 times what it should be: the smallest have a reciprocal, too. */
static Num
gamma_of(Gen *g, Num x)
{
    Num a = size_of(g, x), one = number(g, 1.0), zero = number(g, 0.0), low, series;
    LLVMValueRef small = less(g, a, 2.0), below = less(g, x, 0.0), n;
    Num y = where(g, small, plus(g, a, 2.0), lesser(g, a, 50.0));
    Num rest = where(g, small, sub(g, a, plus(g, y, -2.0)), zero);
    Num high = stirling(g, y, rest, &low, &series);
    low = gen_fma(g, series, number(g, log2_e), low);
    high = where(g, below, minus(g, high), high);
    low = where(g, below, minus(g, low), low);
    Num p = nv_power_of_pair(g, high, low, &n);
    Num a1 = plus(g, a, 1.0), turns = sine_of_turns(g, a);
    Num above = where(g, small, mul(g, times(g, a, 0x1p32), a1), number(g, 0x1p32));
    Num divisor = where(g, below, where(g, small, turns, mul(g, turns, a)), above);
    Num up = times(g, where(g, small, a1, one), -1.25331414);
    up = where(g, below, up, number(g, 2.50662827));
    Num q = nv_rcp(g, divisor);
    q = gen_fma(g, gen_fma(g, minus(g, q), divisor, one), q, q);
    n = LLVMBuildAdd(g->b, n, ll_int(g->i32, 32), "");
    y = nv_scaled(g, mul(g, mul(g, p, up), q), n);
    y = where(g, equal(g, a, 0.0), with_sign(g, number(g, __builtin_inf()), x), y);
    return where(g, LLVMBuildFCmp(g->b, LLVMRealUNO, x, x, ""), x, y);
}

static Num
log_gamma_of(Gen *g, Num x)
{
    static const double near1[] = {-0.577215672, 0.82246691,   -0.400684744,  0.270594835,
                                   -0.207434475, 0.169121787,  -0.14303112,   0.131212652,
                                   -0.121393725, 0.0648382977, -0.0411342867, 0.180427179,
                                   -0.190242633};
    static const double near2[] = {
        0.422784328,   0.322467029,    -0.0673520565,  0.0205808394,    -0.00738628861,
        0.00288939546, -0.00119806489, 0.000527147204, -0.000215248103, 5.01047289e-5};
    const double log_2 = 0.69314718055994531, log_2_high = 0.693147182464599609375;
    Num a = size_of(g, x), low, series, zero = number(g, 0.0), one = number(g, 1.0);
    LLVMValueRef tiny = less(g, a, 0.5);
    LLVMValueRef reflected = both(g, less(g, x, 0.0), LLVMBuildNot(g->b, tiny, ""));
    LLVMValueRef large = more(g, a, 1e10);
    Num t1 = where(g, tiny, x, plus(g, a, -1.0)), t2 = plus(g, a, -2.0);
    Num y = mul(g, gen_polynomial(g, t1, near1, 13), t1);
    Num beyond = mul(g, gen_polynomial(g, t2, near2, 10), t2);
    y = where(g, less(g, a, 1.5), y, beyond);

    Num at = where(g, large, one, greater(g, a, 3.0)), h, l;
    Num high = stirling(g, at, zero, &low, &series);
    series =
        gen_fma(g, high, number(g, log_2 - log_2_high), plus(g, series, 0.918938533));
    beyond = gen_fma(g, low, number(g, log_2_high), series);
    beyond = gen_fma(g, high, number(g, log_2_high), beyond);
    nv_log2_pair(g, a, &h, &l); /* a (log(a) - 1), all else is too small */
    h = mul(g, a, gen_fma(g, h, number(g, log_2), number(g, -1.0)));
    y = where(g, less(g, a, 3.0), y, where(g, large, h, beyond));

    Num product = times(g, mul(g, size_of(g, sine_of_turns(g, a)), a), 0x1p-32);
    product = times(g, product, 0.31830988618379067);
    Num log = nv_log(g, where(g, tiny, a, where(g, reflected, product, one)), LOG_E);
    y = sub(g, where(g, reflected, minus(g, y), y), log);
    LLVMValueRef pole = equal(g, log, -__builtin_inf());
    pole = either(g, pole, equal(g, a, __builtin_inf()));
    y = where(g, pole, number(g, __builtin_inf()), y);
    return where(g, LLVMBuildFCmp(g->b, LLVMRealUNO, x, x, ""), x, y);
}

Num
nv_tgamma(Gen *g, Num *x)
{
    return nv_called(g, "gamma_f32", gamma_of, x[0]);
}

Num
nv_lgamma(Gen *g, Num *x)
{
    return nv_called(g, "log_gamma_f32", log_gamma_of, x[0]);
}
