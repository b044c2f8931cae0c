/* Elements moved: shapes, transposes, joins, gathers, sorting. */
#include "tests/gen/gen.h"

static Type
without(Type t, int axis)
{
    for (int i = axis; i + 1 < t.rank; i++)
        t.dim[i] = t.dim[i + 1];
    t.rank--;
    return t;
}

static Value *
permuted(Gen *g, Value *a)
{
    if (a->t.rank == 2 && chance(g, 60)) {
        Type s = a->t;
        s.dim[0] = a->t.dim[1];
        s.dim[1] = a->t.dim[0];
        return let(g, s, chance(g, 50) ? "tl.trans($)" : "$.T", a);
    }
    if (a->t.rank < 2)
        return NULL;
    int p[MAX_RANK];
    Type s = a->t;
    const char *list = "";
    for (int i = 0; i < s.rank; i++)
        p[i] = i;
    for (int i = s.rank - 1; i > 0; i--) {
        int j = between(g, 0, i), keep = p[i];
        p[i] = p[j];
        p[j] = keep;
    }
    for (int i = 0; i < s.rank; i++) {
        s.dim[i] = a->t.dim[p[i]];
        list = tree_text(g->tree, "%s%s%d", list, i ? ", " : "", p[i]);
    }
    return let(g, s, "tl.permute($, (%s))", a, list);
}

static Value *
reshaped(Gen *g, Value *a)
{
    int n = numel(&a->t);
    Type s = {.dt = a->t.dt, .rank = between(g, 1, 4)};
    int left = log2_of(n);
    for (int i = 0; i < s.rank; i++) {
        int k = i == s.rank - 1 ? left : between(g, 0, left);
        s.dim[i] = 1 << k;
        left -= k;
    }
    if (s.rank == 1 && chance(g, 50))
        return let(g, s, "tl.ravel($)", a);
    return let(g, s, "tl.reshape($, %s)", a, dims(g, &s));
}

static Value *
widened(Gen *g, Value *a)
{
    Type s = a->t;
    int ones[MAX_RANK], n = 0;
    for (int i = 0; i < s.rank; i++)
        if (s.dim[i] == 1)
            ones[n++] = i;
    if (n > 0 && numel(&s) < g->tree->n) {
        s.dim[ones[rnd(g, (uint32_t)n)]] =
            1 << between(g, 0, log2_of(g->tree->n / numel(&s)));
        return let(g, s, "tl.broadcast_to($, %s)", a, dims(g, &s));
    }
    if (s.rank >= 4)
        return NULL;
    int at = between(g, 0, s.rank);
    for (int i = s.rank++; i > at; i--)
        s.dim[i] = s.dim[i - 1];
    s.dim[at] = 1;
    return let(g, s, "tl.expand_dims($, %d)", a, at);
}

static Value *
paired(Gen *g, Value *a)
{
    if (numel(&a->t) * 2 > g->tree->n || a->t.rank > 3 || a->t.dt == I1)
        return NULL;
    Value *b = pick(g, (Want){.dts = BIT(a->t.dt), .same = &a->t});
    Type s = a->t;
    Value *v;
    int how = between(g, 0, 3);
    if (how == 0) {
        s.dim[s.rank++] = 2;
        v = let(g, s, "tl.join($, $)", a, b);
    } else if (how == 3) {
        int axis = between(g, 0, s.rank - 1);
        s.dim[axis] *= 2;
        v = let(g, s, "tl.cat($, $, dim=%d)", a, b, axis);
    } else {
        s.dim[s.rank - 1] *= 2;
        /* sums do not see where cat put its elements */
        if (how == 1 || s.rank > 1 || !(BIT(s.dt) & WIDE))
            v = let(g, s, "tl.interleave($, $)", a, b);
        else
            return let(g, scalar((Dt)s.dt),
                       "tl.sum(tl.cat($, $, can_reorder=True), axis=0)", a, b);
    }
    return flt(v, a->bound > b->bound ? a->bound : b->bound,
               a->frac > b->frac ? a->frac : b->frac, a->flags | b->flags);
}

static Value *
gathered(Gen *g, Value *a)
{
    int axis = between(g, 0, a->t.rank - 1), most = a->t.dim[axis] - 1;
    Type s = a->t;
    Value *ix = chance(g, 60) ? pick(g, (Want){.dts = INTS, .same = &a->t}) : NULL;
    if (!ix) { /* more of them than there are elements, or fewer */
        int others = numel(&s) / s.dim[axis];
        s.dim[axis] = 1 << between(g, 0, log2_of(g->tree->n / others));
        ix = load_from(g, dt_of(g, INTS), s);
    }
    return let(g, s, "tl.gather($, ($ & %d).to(tl.int32), %d)", a, ix,
               most > 127 ? 127 : most, axis);
}

static Value *
outer(Gen *g, Value *a)
{
    if (a->t.rank != 1 || !(BIT(a->t.dt) & INTS))
        return NULL;
    Value *b = pick(g, (Want){.dts = INTS, .min_rank = 1, .max_rank = 1});
    if (!b || numel(&a->t) * numel(&b->t) > g->tree->n)
        return NULL;
    Dt dt = joint_dt((Dt)a->t.dt, (Dt)b->t.dt);
    Type s = {.dt = dt, .rank = 2, .dim = {a->t.dim[0], b->t.dim[0]}};
    return let(g, s, "$[:, None] %s $[None, :]", a, one_of(g, "+|-|*|^|&"), b);
}

Value *
make_shape(Gen *g)
{
    Value *a = pick(g, (Want){.dts = ALL & ~(unsigned)FP8S, .min_rank = 1});
    if (!a)
        return NULL;
    Value *v = NULL;
    int how = between(g, 0, 15);
    if (how < 3)
        v = reshaped(g, a);
    else if (how < 6)
        v = permuted(g, a);
    else if (how < 9)
        v = widened(g, a);
    else if (how < 11)
        return paired(g, a);
    else if (how == 11)
        v = gathered(g, a);
    else if (how == 12)
        return outer(g, a);
    else if (how == 13 && a->t.rank > 1 && a->t.dim[a->t.rank - 1] == 2 &&
             a->t.dt != I1) {
        Type s = without(a->t, a->t.rank - 1);
        Value *second;
        v = let2(g, s, s, &second, "tl.split($)", a);
        like(second, a);
        put(g, second);
    } else if (how >= 13 && a->t.dt != I1) {
        int axis = between(g, 0, a->t.rank - 1);
        if (a->t.dim[axis] > 1 && a->t.rank + log2_of(a->t.dim[axis]) <= 8)
            v = let(g, a->t, "tl.flip($, %d)", a, axis);
    }
    return v ? like(v, a) : NULL;
}

Value *
make_sort(Gen *g)
{
    Value *a = pick(
        g, (Want){.dts = INTS | BIT(F32), .never = V_WILD, .min_rank = 1, .max_rank = 2});
    if (!a || a->t.dim[a->t.rank - 1] < 2 || a->t.dim[a->t.rank - 1] > 64 ||
        numel(&a->t) > 256) /* it works on tiles of rank log2(numel) */
        return NULL;
    Value *v;
    int most = log2_of(a->t.dim[a->t.rank - 1]);
    if (chance(g, 40)) {
        Type s = a->t;
        s.dim[s.rank - 1] = 1 << between(g, 0, most);
        if (s.dim[s.rank - 1] < a->t.dim[s.rank - 1] && dt_info[s.dt].bits < 32)
            s.dt = I32; /* it ends with tl.max */
        v = let(g, s, "tl.topk($, %d)", a, s.dim[s.rank - 1]);
    } else {
        v = let(g, a->t, "tl.sort($%s)", a, one_of(g, "|, descending=True"));
    }
    like(v, a);
    v->flags |= V_ZERO;
    return v;
}

Value *
make_histogram(Gen *g)
{
    Value *a = pick(g, (Want){.dts = INTS, .min_rank = 1, .max_rank = 1});
    if (!a)
        return NULL;
    int bins = 1 << between(g, 1, 5);
    if (bins > g->tree->n)
        return NULL;
    Type s = {.dt = I32, .rank = 1, .dim = {bins}};
    if (chance(g, 40))
        return let(g, s, "tl.histogram(($.to(tl.int32) & %d), %d, mask=$)", a,
                   bins * 2 - 1, bins, mask_for(g, &a->t));
    return let(g, s, "tl.histogram(($.to(tl.int32) & %d), %d)", a, bins - 1, bins);
}
