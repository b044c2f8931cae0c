/* Choices between values: where, minimum and maximum, clamp, signs. */
#include "tests/gen/gen.h"

Value *
make_where(Gen *g)
{
    Value *c = pick(g, (Want){.dts = BOOLS});
    if (!c)
        return NULL;
    Value *a = pick(g, (Want){.dts = NUMS, .into = &c->t});
    if (!a)
        return NULL;
    const char *tl = dt_info[a->t.dt].tl;
    if (BIT(a->t.dt) & FLOATS) {
        Value *b = pick(g, (Want){.dts = BIT(a->t.dt), .into = &c->t});
        if (chance(g, 30) || !b) {
            const char *k = one_of(g, "1.5|-2.0|0.0|1.0");
            Value *v = chance(g, 50) ? let(g, with_dt(c->t, (Dt)a->t.dt),
                                           "tl.where($, $, %s).to(tl.%s)", c, a, k, tl)
                                     : let(g, with_dt(c->t, (Dt)a->t.dt),
                                           "tl.where($, %s, $).to(tl.%s)", c, k, a, tl);
            like(v, a);
            if (v->bound < 2)
                v->bound = 2;
            if (v->frac < 1)
                v->frac = 1;
            return v;
        }
        Value *v = let(g, with_dt(c->t, (Dt)a->t.dt), "tl.where($, $, $)", c, a, b);
        return flt(v, a->bound > b->bound ? a->bound : b->bound,
                   a->frac > b->frac ? a->frac : b->frac,
                   (a->flags | b->flags) & ~(unsigned)V_SPECIAL);
    }
    if (chance(g, 30))
        return let(g, with_dt(c->t, (Dt)a->t.dt), "tl.where($, $, %s).to(tl.%s)", c, a,
                   one_of(g, "0|1|7|64"), tl);
    Value *b = pick(g, (Want){.dts = INTS, .into = &c->t});
    Dt dt = joint_dt((Dt)a->t.dt, (Dt)b->t.dt);
    Type t = with_dt(c->t, dt);
    if (chance(g, 25)) {
        Value *d = pick(g, (Want){.dts = BOOLS, .into = &c->t});
        return let(g, t, "tl.where($, tl.where($, $, $), $)", c, d, a, b, b);
    }
    return let(g, t, "tl.where($, $, $)", c, a, b);
}

Value *
make_minmax(Gen *g)
{
    Value *a = pick(g, (Want){.dts = NUMS});
    if (!a)
        return NULL;
    const char *f = chance(g, 50) ? "minimum" : "maximum";
    if (BIT(a->t.dt) & FLOATS) {
        Value *b = pick(g, (Want){.dts = BIT(a->t.dt), .into = &a->t});
        const char *nan = chance(g, 30) ? ", propagate_nan=tl.PropagateNan.ALL" : "";
        Value *v = chance(g, 30) && a->t.dt == F32
                       ? let(g, a->t, "tl.clamp($, -3.0, 5.0)", a)
                       : let(g, a->t, "tl.%s($, $%s)", f, a, b, nan);
        double bound = a->bound > b->bound ? a->bound : b->bound;
        unsigned flags = a->flags | b->flags | V_ZERO;
        return flt(v, bound > 5 ? bound : 5, a->frac > b->frac ? a->frac : b->frac,
                   flags & ~(unsigned)V_SPECIAL);
    }
    if (chance(g, 25))
        return let(g, a->t, "tl.%s($, %s).to(tl.%s)", f, a, one_of(g, "0|1|5|100"),
                   dt_info[a->t.dt].tl);
    Value *b = pick(g, (Want){.dts = INTS, .into = &a->t});
    Dt dt = joint_dt((Dt)a->t.dt, (Dt)b->t.dt);
    return let(g, with_dt(a->t, dt), "tl.%s($, $)", f, a, b);
}

Value *
make_unary(Gen *g)
{
    Value *a = pick(g, (Want){.dts = SINTS | FLOATS});
    if (!a)
        return NULL;
    if (BIT(a->t.dt) & FLOATS) {
        Value *v = let(g, a->t, chance(g, 50) ? "-$" : "tl.abs($)", a);
        return like(v, a);
    }
    int how = between(g, 0, 3);
    if (how == 3 && dt_info[a->t.dt].bits >= 32)
        return let(g, a->t, "tl.umulhi($.to(tl.uint%d), $.to(tl.uint%d)).to(tl.%s)", a,
                   dt_info[a->t.dt].bits, a, dt_info[a->t.dt].bits, dt_info[a->t.dt].tl);
    return let(g, a->t, how == 0 ? "-$" : how == 1 ? "~$" : "tl.abs($)", a);
}
