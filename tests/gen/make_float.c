/* Floats: exact arithmetic, single operations on any bits, conversions in both directions
   within what is defined, and functions that are compared within a tolerance. */
#include <math.h>

#include "tests/gen/gen.h"

static int
bits_of(double bound, int frac)
{
    return (int)ceil(log2(bound * ldexp(1, frac) + 1));
}

Value *
small(Gen *g, Value *v, int bits, int frac)
{
    if (!(v->flags & V_WILD) && v->frac <= frac && bits_of(v->bound, v->frac) <= bits)
        return v;
    if (frac > bits - 2)
        frac = bits > 2 ? bits - 2 : 0;
    double b = ldexp(1, bits - frac) - 1;
    if (b > 1024)
        b = 1024;
    const char *tl = dt_info[v->t.dt].tl;
    bool is64 = v->t.dt == F64;
    Value *c =
        let(g, with_dt(v->t, is64 ? F64 : F32), "tl.minimum(tl.maximum($%s, %g), %g)", v,
            is64 || v->t.dt == F32 ? "" : ".to(tl.float32)", -b, b);
    like(c, v);
    if (v->flags & V_WILD || v->frac > frac) {
        Value *f = let(g, c->t, frac ? "tl.floor($ * %g) * %g" : "tl.floor($)", c,
                       ldexp(1, frac), ldexp(1, -frac));
        c = f;
    }
    unsigned zero = v->flags & V_WILD ? V_ZERO : v->flags & V_ZERO;
    flt(c, b, v->flags & V_WILD || v->frac > frac ? frac : v->frac, zero);
    if (c->t.dt != v->t.dt) {
        Value *n = let(g, v->t, "$.to(tl.%s)", c, tl);
        c = like(n, c);
    }
    return c;
}

static Value *
operand(Gen *g, Value *v, int bits)
{
    return small(g, v, bits < 2 ? 2 : bits, bits > 8 ? 3 : bits > 4 ? 1 : 0);
}

Value *
make_float(Gen *g)
{
    Value *a = pick(g, (Want){.dts = FLOATS, .never = V_WILD});
    if (!a)
        return NULL;
    unsigned dts = BIT(a->t.dt);
    if (a->t.dt == F32 || a->t.dt == F64)
        dts = FLOATS;
    Value *b = pick(g, (Want){.dts = dts, .into = &a->t, .never = V_WILD});
    Dt dt = joint_dt((Dt)a->t.dt, (Dt)b->t.dt);
    int p = dt_info[a->t.dt].mant < dt_info[b->t.dt].mant ? dt_info[a->t.dt].mant
                                                          : dt_info[b->t.dt].mant;
    unsigned zero = (a->flags | b->flags) & V_ZERO;
    int how = between(g, 0, 9);
    if (how < 2) { /* with a literal */
        const char *k = one_of(g, "0.5|2.0|1.0|-1.0|1.5|0.0|4.0");
        if (how == 0) {
            a = operand(g, a, dt_info[a->t.dt].mant - 4);
            Value *v = let(g, a->t, chance(g, 50) ? "$ * %s" : "$ * %s", a, k);
            return flt(v, a->bound * 4, a->frac + 1, a->flags & V_ZERO);
        }
        a = operand(g, a, dt_info[a->t.dt].mant - 4);
        Value *v = let(g, a->t, chance(g, 50) ? "$ + %s" : "$ - %s", a, k);
        return flt(v, a->bound + 4, a->frac > 1 ? a->frac : 1, a->flags & V_ZERO);
    }
    if (how < 5) {
        a = operand(g, a, (p - 1) / 2);
        b = operand(g, b, (p - 1) / 2);
        Value *v = let(g, with_dt(a->t, dt), "$ * $", a, b);
        return flt(v, a->bound * b->bound, a->frac + b->frac, zero);
    }
    if (how == 5 && a->t.dt == b->t.dt && a->t.dt == F32) {
        a = operand(g, a, 10);
        b = operand(g, b, 10);
        Value *v = let(g, with_dt(a->t, dt), "tl.fma($, $, $)", a, b, a);
        return flt(v, a->bound * b->bound + a->bound, a->frac + b->frac, zero);
    }
    a = operand(g, a, p - 3);
    b = operand(g, b, p - 3);
    if (bits_of(a->bound + b->bound, a->frac > b->frac ? a->frac : b->frac) > p)
        return NULL;
    Value *v = let(g, with_dt(a->t, dt), chance(g, 50) ? "$ + $" : "$ - $", a, b);
    return flt(v, a->bound + b->bound, a->frac > b->frac ? a->frac : b->frac, zero);
}

/* One operation on any bits, NaN, infinities and denormals among them. */
Value *
make_wild(Gen *g)
{
    Value *a = pick(g, (Want){.dts = FLOATS, .never = V_ZERO});
    if (!a)
        return NULL;
    unsigned wild = V_WILD | (a->flags & V_ZERO);
    int how = between(g, 0, 7);
    Type t = a->t;
    if (how == 0) {
        Dt dt = dt_of(g, FLOATS);
        const char *rtz = (dt == F16 || dt == BF16) && t.dt == F32 && chance(g, 30)
                              ? ", fp_downcast_rounding=\"rtz\""
                              : "";
        return flt(let(g, with_dt(t, dt), "$.to(tl.%s%s)", a, dt_info[dt].tl, rtz), 0, 0,
                   wild);
    }
    if (how == 1)
        return flt(let(g, with_dt(t, I1), "$ != $", a, a), 1, 0, 0);
    if (how == 2 && t.dt == F32)
        return flt(let(g, t, "tl.%s($)", one_of(g, "floor|ceil|sqrt_rn|abs"), a), 0, 0,
                   wild | V_PROD | V_ZERO);
    if (how == 3) {
        const char *k = one_of(g, "float(\"inf\")|float(\"-inf\")|float(\"nan\")|1e-40|"
                                  "-0.0|3.4e38|65504.0|1e-7");
        Value *c = pick(g, (Want){.dts = BOOLS, .into = &t});
        if (!c)
            return NULL;
        return flt(let(g, t, "tl.where($, %s, $).to(tl.%s)", c, k, a, dt_info[t.dt].tl),
                   0, 0, wild);
    }
    Value *b = pick(g, (Want){.dts = BIT(t.dt), .into = &t, .never = V_PROD});
    if (!b || a->flags & V_PROD)
        return NULL;
    if (how == 4 && t.dt == F32)
        return flt(let(g, t, "tl.div_rn($, $)", a, b), 0, 0, V_WILD | V_PROD);
    if (how == 5 && t.dt == F32 && chance(g, 30))
        return flt(let(g, t, "$ %% $", a, b), 0, 0, V_WILD | V_ZERO);
    if (how == 5)
        return flt(let(g, t, "$ * $", a, b), 0, 0, V_WILD | V_PROD);
    return flt(let(g, t, chance(g, 50) ? "$ + $" : "$ - $", a, b), 0, 0, V_WILD | V_ZERO);
}

/* What is not exact goes to a buffer that is compared within a tolerance, no further. */
Value *
make_near(Gen *g)
{
    Value *a = pick(g, (Want){.dts = BIT(F32), .never = V_WILD, .min_rank = 1});
    if (!a || g->quiet || numel(&a->t) > g->tree->n)
        return NULL;
    a = small(g, a, 8, 2);
    Value *v;
    int how = between(g, 0, 6);
    if (how == 0)
        v = let(g, a->t, "$ / (tl.abs($) + 0.5)", a, a);
    else if (how == 1)
        v = let(g, a->t, "tl.exp(tl.minimum($, 8.0))", a);
    else if (how == 2)
        v = let(g, a->t, "tl.log(tl.abs($) + 1.5)", a);
    else if (how == 3)
        v = let(g, a->t, "tl.sqrt(tl.abs($))", a);
    else if (how == 4)
        v = let(g, a->t, "tl.sigmoid($)", a);
    else if (how == 5)
        v = let(g, a->t, "tl.rsqrt(tl.abs($) + 0.25)", a);
    else
        v = let(g, a->t, "tl.exp2($ * 0.125)", a);
    g->nval--; /* not to be used */
    Tree *t = g->tree;
    t->near = true;
    int at = t->slots[BUF_NEAR][F32]++ * t->nprog * t->n;
    act(g, "tl.store(t_fp32 + (pid * %d + %d) + %s, $)", t->n, at, offsets(g, &v->t), v);
    return a;
}

static Value *
float_to_int(Gen *g, Value *a, Dt dt)
{
    if (dt == I1) {
        return a->flags & V_WILD ? NULL : let(g, with_dt(a->t, I1), "$.to(tl.int1)", a);
    }
    double low = BIT(dt) & UINTS ? 0 : -100, high = 100;
    if (dt_info[dt].bits > 8 && chance(g, 40)) {
        high = 30000;
        low = BIT(dt) & UINTS ? 0 : -30000;
    }
    Type t = with_dt(a->t, dt);
    if (!(a->flags & V_WILD) && a->bound <= high && (low < 0 || chance(g, 0)))
        return let(g, t, "$.to(tl.%s)", a, dt_info[dt].tl);
    /* minimum and maximum drop a NaN for the other operand */
    return let(g, t, "tl.minimum(tl.maximum($, %g), %g).to(tl.%s)", a, low, high,
               dt_info[dt].tl);
}

Value *
make_cast(Gen *g)
{
    Value *a = pick(g, (Want){.dts = ALL});
    if (!a)
        return NULL;
    if (BIT(a->t.dt) & FP8S) {
        Dt dt = dt_of(g, FLOATS);
        return like(let(g, with_dt(a->t, dt), "$.to(tl.%s)", a, dt_info[dt].tl), a);
    }
    Dt dt = dt_of(g, NUMS | BOOLS | (BIT(a->t.dt) & FLOATS ? FP8S : 0));
    Type t = with_dt(a->t, dt);
    const char *tl = dt_info[dt].tl;
    if (BIT(a->t.dt) & FLOATS) {
        if (!(BIT(dt) & (FLOATS | FP8S)))
            return float_to_int(g, a, dt);
        if (BIT(dt) & FP8S && a->t.dt == F32 && chance(g, 50)) { /* rounded */
            a = let(g, a->t, "tl.minimum(tl.maximum($, -400.0), 400.0)", a);
            return flt(let(g, t, "$.to(tl.%s)", a, tl), 0, 0, V_WILD | V_ZERO);
        }
        if (BIT(dt) & FLOATS && chance(g, 40)) {
            unsigned zero = a->flags & V_ZERO;
            return flt(let(g, t, "$.to(tl.%s)", a, tl), 0, 0, V_WILD | zero);
        }
        a = small(g, a, dt_info[dt].mant, dt == E4 || dt == E5 ? 1 : 4);
        return like(let(g, t, "$.to(tl.%s)", a, tl), a);
    }
    if (BIT(dt) & FLOATS && a->t.dt != I1 && chance(g, 35)) /* rounded, or infinite */
        return flt(let(g, t, "$.to(tl.%s)", a, tl), 0, 0, V_WILD);
    if (BIT(dt) & FLOATS && a->t.dt != I1) {
        int room = dt_info[dt].mant, width = dt_info[a->t.dt].bits;
        if (width > room || dt_info[dt].bits < 32 || chance(g, 30))
            a = let(g, a->t, "$ & 63", a);
        else if (width == 64)
            a = let(g, a->t, "$ & 63", a);
        else
            return flt(let(g, t, "$.to(tl.%s)", a, tl), ldexp(1, width), 0, 0);
        return flt(let(g, t, "$.to(tl.%s)", a, tl), 64, 0, 0);
    }
    return flt(let(g, t, "$.to(tl.%s)", a, tl), 1, 0, 0);
}
