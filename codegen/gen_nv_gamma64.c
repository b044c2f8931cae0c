/* The gamma function of fp64 on a GPU: y^(y - 1/2) e^-y times a polynomial of 1 / y for
   y >= 2, below 2 gamma(a + 2) / (a (a + 1)), below 0 Euler's reflection. The power is
   libclc's, good to half an ulp, and what it and the exponential are given is exact: an
   error there comes out up to a thousand times as large (libclc's own gamma is off by
   that). */
#include "codegen/gen_nv_math.h"

#include "ir/base/util.h"

/* sin(pi a), a >= 0; NaN of infinity */
static Num
sine_of_turns(Gen *g, Num a)
{
    static const double pi = 3.14159265358979311600, pi_low = 1.2246467991473532e-16;
    static const double s_c[] = {-5.1677127800499703,   2.5501640398773424,
                                 -0.59926452932034802,  0.082145886582039529,
                                 -0.007370429926588924, 0.00046628317884578086,
                                 -2.1719327318139681e-5};
    static const double c_c[] = {1.0,
                                 -4.934802200544679,
                                 4.0587121264167685,
                                 -1.3352627688545871,
                                 0.23533063035868074,
                                 -0.025806891379934818,
                                 0.0019295740307568184,
                                 -0.00010463363537659769,
                                 4.2644994015849155e-6};
    Num whole = times(g, a, 0.5);
    whole = ll_intrinsic1(g->b, "llvm.trunc", &whole, 1);
    Num r = gen_fma(g, whole, ll_float(g->f64, -2.0), a), q = times(g, r, 2.0);
    q = ll_intrinsic1(g->b, "llvm.rint", &q, 1);
    r = gen_fma(g, q, ll_float(g->f64, -0.5), r);
    Num s = mul(g, r, r);
    Num rest = gen_fma(g, gen_polynomial(g, s, s_c, COUNT_OF(s_c)), s,
                       ll_float(g->f64, pi_low));
    Num sine = gen_fma(g, r, ll_float(g->f64, pi), mul(g, r, rest));
    Num cosine = gen_polynomial(g, s, c_c, COUNT_OF(c_c));
    /* q is 0 .. 4 */
    Num y = where(g, either(g, equal(g, q, 1.0), equal(g, q, 3.0)), cosine, sine);
    LLVMValueRef back = both(g, more(g, q, 1.5), less(g, q, 3.5));
    return where(g, back, minus(g, y), y);
}

static Num
gamma_of(Gen *g, Num x)
{
    static const double series[] = {
        2.5066282746309989,     0.20888568955306108,    0.008703570349855921,
        -0.0067210881482839685, -0.00057526493280238549, 0.0019663861491793322,
        0.00016236665268277105, -0.0013872320338734127, -0.00065882397851780889,
        0.0040887625520703323,  -0.0046249448275712084, 0.0010086090820659135,
        0.0027580817930575345,  -0.0028945749924405217, 0.0009512269261471955};
    static const double digamma[] = {2.54760647, -6.11646318, 3.74731612};
    static const double pi = 3.14159265358979311600;
    Num a = size_of(g, x), zero = ll_float(g->f64, 0.0), one = ll_float(g->f64, 1.0);
    LLVMValueRef small = less(g, a, 2.0), below = less(g, x, 0.0);
    Num a2 = plus(g, a, 2.0), y = where(g, small, a2, lesser(g, a, 190.0));
    Num rest = where(g, small, sub(g, a, plus(g, a2, -2.0)), zero);
    Num t = div(g, one, y), half = plus(g, times(g, y, 0.5), -0.25);

    Num root = nv_library(g, "_Z3powdd", (Num[]){y, half}, 2);
    Num down = nv_exp64(g, minus(g, y), false);
    Num slope = mul(g, gen_polynomial(g, t, digamma, COUNT_OF(digamma)), rest);
    Num p = gen_polynomial(g, t, series, COUNT_OF(series));
    p = gen_fma(g, p, slope, p);
    p = mul(g, mul(g, root, down), p); /* gamma(y) is root times this */

    Num a1 = plus(g, a, 1.0), sine = sine_of_turns(g, a);
    Num above = div(g, mul(g, p, root), where(g, small, mul(g, a, a1), one));
    Num up = where(g, small, times(g, a1, -pi), ll_float(g->f64, -pi));
    Num over = mul(g, sine, where(g, small, one, a));
    Num reflected = div(g, div(g, up, mul(g, over, p)), root);
    Num r = where(g, below, reflected, above);
    r = where(g, less(g, a, 0x1p-54), div(g, one, x), r);
    Num pole = where(g, equal(g, sine, 0.0), ll_float(g->f64, __builtin_nan("")), r);
    return where(g, both(g, below, more(g, a, 0.5)), pole, r);
}

Num
nv_tgamma64(Gen *g, Num *x)
{
    return nv_called(g, "gamma_f64", gamma_of, x[0]);
}
