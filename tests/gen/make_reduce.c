/* Reductions and scans, the library's and with combining functions of the program. */
#include "tests/gen/gen.h"

static Type
reduced(const Type *t, int axis, bool keep)
{
    Type r = *t;
    if (keep) {
        r.dim[axis] = 1;
        return r;
    }
    for (int i = axis; i + 1 < r.rank; i++)
        r.dim[i] = r.dim[i + 1];
    r.rank--;
    return r;
}

Value *
make_reduce(Gen *g)
{
    Value *a = pick(g, (Want){.dts = NUMS, .min_rank = 1, .never = V_WILD});
    if (!a)
        return NULL;
    int axis = between(g, 0, a->t.rank - 1);
    bool keep = chance(g, 40);
    Type s = reduced(&a->t, axis, keep);
    const char *kd = keep ? ", keep_dims=True" : "";
    int written = chance(g, 80) ? axis : axis - a->t.rank;
    const char *tl = dt_info[a->t.dt].tl;
    bool whole = !keep && chance(g, 8);
    if (BIT(a->t.dt) & (WIDE | BIT(F32)) && chance(g, 12)) {
        Value *at, *v = let2(g, s, with_dt(s, I32), &at,
                             "tl.%s($, axis=%d, return_indices=True%s)",
                             chance(g, 50) ? "max" : "min", a, written, kd);
        put(g, at);
        return flt(v, a->bound, a->frac, a->flags | V_ZERO);
    }
    if (BIT(a->t.dt) & FLOATS) {
        const char *k = one_of(g, "sum|max|min|argmax|argmin|sum");
        if (k[0] == 's') {
            int bits = dt_info[a->t.dt].mant - log2_of(a->t.dim[axis]) - 1;
            if (bits < 2)
                return NULL;
            a = small(g, a, bits, bits > 6 ? 1 : 0);
            Value *v = let(g, s, "tl.sum($, axis=%d%s).to(tl.%s)", a, written, kd, tl);
            return flt(v, a->bound * a->t.dim[axis], a->frac, V_ZERO);
        }
        if (k[0] == 'a')
            return let(g, with_dt(s, I32), "tl.%s($, axis=%d%s)", k, a, written, kd);
        Value *v = let(g, s, "tl.%s($, axis=%d%s).to(tl.%s)", k, a, written, kd, tl);
        return flt(v, a->bound, a->frac, a->flags | V_ZERO);
    }
    const char *k = one_of(g, "sum|max|min|xor_sum|argmax|argmin");
    if (k[0] == 'a')
        return let(g, with_dt(s, I32), "tl.%s($, axis=%d%s)", k, a, written, kd);
    if (whole)
        return let(g, scalar((Dt)a->t.dt), "tl.%s($).to(tl.%s)", k, a, tl);
    return let(g, s, "tl.%s($, axis=%d%s).to(tl.%s)", k, a, written, kd, tl);
}

Value *
make_combine(Gen *g)
{
    Value *a = pick(g, (Want){.dts = WIDE, .min_rank = 1});
    if (!a)
        return NULL;
    int axis = between(g, 0, a->t.rank - 1);
    bool keep = chance(g, 25);
    Type s = reduced(&a->t, axis, keep);
    const char *kd = keep ? ", keep_dims=True" : "";
    if (chance(g, 60))
        return let(g, s, "tl.reduce($, %d, %s%s)", a, axis,
                   one_of(g, "h_add|h_max|h_xor|h_mul|h_or"), kd);
    Value *second;
    if (chance(g, 40)) { /* three, each of its own type */
        Value *b = pick(g, (Want){.dts = WIDE, .same = &a->t}), *out[3];
        Value *c = pick(g, (Want){.dts = WIDE, .same = &a->t});
        Type t[] = {s, with_dt(s, (Dt)b->t.dt), with_dt(s, (Dt)c->t.dt)};
        let_all(g, 3, t, out, "tl.reduce(($, $, $), %d, h_three%s)", a, b, c, axis, kd);
        put(g, out[1]);
        put(g, out[2]);
        return out[0];
    }
    Value *v = let2(g, s, with_dt(s, I32), &second, "tl.reduce(($, %s), %d, h_pick%s)", a,
                    offsets(g, &a->t), axis, kd);
    put(g, second);
    return v;
}

Value *
make_scan(Gen *g)
{
    Value *a = pick(g, (Want){.dts = WIDE | BIT(F32), .min_rank = 1, .never = V_WILD});
    if (!a)
        return NULL;
    int axis = between(g, 0, a->t.rank - 1);
    const char *back = chance(g, 35) ? ", reverse=True" : "";
    if (a->t.dt == F32) {
        if (chance(g, 30))
            return flt(let(g, a->t, "tl.associative_scan($, %d, h_max%s)", a, axis, back),
                       a->bound, a->frac, a->flags | V_ZERO);
        a = small(g, a, 10, 1);
        Value *v = let(g, a->t, "tl.cumsum($, axis=%d%s)", a, axis, back);
        return flt(v, a->bound * a->t.dim[axis], a->frac, V_ZERO);
    }
    int how = between(g, 0, 7);
    if (how < 3)
        return let(g, a->t, "tl.%s($, axis=%d%s)", how == 2 ? "cumprod" : "cumsum", a,
                   axis, back);
    if (how < 5)
        return let(g, a->t, "tl.associative_scan($, %d, %s%s)", a, axis,
                   one_of(g, "h_add|h_max|h_xor|h_mul|h_or"), back);
    if (how == 6) {
        Value *b = pick(g, (Want){.dts = WIDE, .same = &a->t}), *out[3];
        Value *c = pick(g, (Want){.dts = WIDE, .same = &a->t});
        Type t[] = {a->t, b->t, c->t};
        let_all(g, 3, t, out, "tl.associative_scan(($, $, $), %d, h_three%s)", a, b, c,
                axis, back);
        put(g, out[1]);
        put(g, out[2]);
        return out[0];
    }
    if (how == 7) { /* sums that begin anew where a flag says so */
        Value *f = pick(g, (Want){.dts = WIDE, .same = &a->t}), *flag;
        Value *v = let2(g, a->t, f->t, &flag,
                        "tl.associative_scan(($, $ & 1), %d, h_seg%s)", a, f, axis, back);
        return v;
    }
    Value *b = pick(g, (Want){.dts = BIT(a->t.dt), .same = &a->t}), *second;
    Value *v = let2(g, a->t, a->t, &second, "tl.associative_scan(($, $), %d, h_lin%s)", a,
                    b, axis, back);
    put(g, second);
    return v;
}
