/* Products of matrices: one to four in a loop with sums that it carries, chains of them
   with reductions and choices between. Operands are short enough for the sums to be
   exact. */
#include "tests/gen/gen.h"

typedef struct Dot {
    Dt dt; /* of operands */
    int m, n, k;
    Value *iv; /* counter of the loop, or NULL */
} Dot;

static Type
matrix(Dt dt, int rows, int cols)
{
    return (Type){.dt = dt, .rank = 2, .dim = {rows, cols}};
}

static double
sum_bound(const Value *a, const Value *b, int k)
{
    return a->bound * b->bound * k;
}

/* Rows and columns of an input: by addresses in either order, with a mask, as a block. */
static Value *
operand(Gen *g, const Dot *d, int rows, int cols)
{
    Tree *t = g->tree;
    Dt dt = d->dt;
    const char *sig = dt_info[dt].sig;
    Type s = matrix(dt, rows, cols);
    int step = (t->len - rows * cols) / 8;
    bool across = chance(g, 30);
    const char *ix =
        across
            ? tree_text(t, "tl.arange(0, %d)[:, None] + tl.arange(0, %d)[None, :] * %d",
                        rows, cols, rows)
            : tree_text(t, "tl.arange(0, %d)[:, None] * %d + tl.arange(0, %d)[None, :]",
                        rows, cols, cols);
    Value *v = NULL;
    bool known = BIT(dt) & (FLOATS | INTS);
    Value *old = known ? pick(g, (Want){.dts = BIT(dt) & FLOATS ? FLOATS : BIT(I8),
                                        .same = &s,
                                        .never = V_WILD})
                       : NULL;
    if (old && chance(g, 35)) {
        if (!(BIT(dt) & FLOATS))
            return old;
        old = small(g, old, 7, 1);
        return old->t.dt == (int)dt
                   ? old
                   : like(let(g, s, "$.to(tl.%s)", old, dt_info[dt].tl), old);
    }
    bool moves = d->iv && chance(g, 85); /* with the loop */
    int how = between(g, 0, 4);
    if (how == 4 && BIT(dt) & (FLOATS | INTS)) {
        int wide = cols * between(g, 1, 2);
        if (wide * rows > t->len)
            wide = cols;
        t->aligned = true;
        Value *desc = let(g, scalar(I32),
                          "tl.make_tensor_descriptor(p_%s, shape=[%d, %d], "
                          "strides=[%d, 1], block_shape=[%d, %d])",
                          sig, t->len / wide, wide - between(g, 0, 3), wide, rows, cols);
        desc->flags = V_SPECIAL;
        v = d->iv ? let(g, s, "$.load([$ * %d, 0])", desc, d->iv, rows)
                  : let(g, s, "$.load([0, 0])", desc);
    } else if (how > 1) {
        const char *bound = one_of(g, "n|q|m * 8|17|5|64");
        const char *mask =
            chance(g, 50) ? tree_text(t, "tl.arange(0, %d)[:, None] < %s", rows, bound)
                          : tree_text(t, "tl.arange(0, %d)[None, :] < %s", cols, bound);
        const char *other = BIT(dt) & FP8S     ? ""
                            : BIT(dt) & FLOATS ? one_of(g, ", other=0.0|, other=1.0|")
                                               : one_of(g, ", other=0|, other=1|");
        v = d->iv ? let(g, s, "tl.load(p_%s + (%s) + ($ & 7) * %d, mask=%s%s)", sig, ix,
                        d->iv, step, mask, other)
                  : let(g, s, "tl.load(p_%s + (%s), mask=%s%s)", sig, ix, mask, other);
    } else if (moves) {
        v = let(g, s, "tl.load(p_%s + (%s) + ($ & 7) * %d)", sig, ix, d->iv, step);
    } else {
        v = let(g, s, "tl.load(p_%s + (%s))", sig, ix);
    }
    flt(v, BIT(dt) & FP8S ? 8 : 16, BIT(dt) & FP8S ? 0 : 1, 0);
    return v;
}

static const char *
precision(Gen *g, Dt dt)
{
    return dt == F32
               ? one_of(g, "|, input_precision=\"ieee\"|, input_precision=\"tf32x3\"")
               : "";
}

static Value *
product(Gen *g, const Dot *d, Value *a, Value *b, Value *acc)
{
    Dt out = d->dt == I8 ? I32 : d->dt == F64 ? F64 : F32;
    Type s = matrix(out, a->t.dim[0], b->t.dim[1]);
    double bound = sum_bound(a, b, a->t.dim[1]);
    int frac = a->frac + b->frac;
    Value *v;
    if (acc) {
        v = let(g, s, "tl.dot($, $, $%s)", a, b, acc, precision(g, d->dt));
        bound += acc->bound;
        frac = frac > acc->frac ? frac : acc->frac;
    } else {
        v = let(g, s, "tl.dot($, $%s)", a, b, precision(g, d->dt));
    }
    return flt(v, bound, frac, V_ZERO);
}

/* What stands between products: a choice by rows, short numbers again. */
static Value *
between_products(Gen *g, const Dot *d, Value *v)
{
    if (v->t.dt == I32) {
        v = let(g, v->t, "($ >> %d)", v, between(g, 4, 9));
        return let(g, with_dt(v->t, I8), "$.to(tl.int8)", v);
    }
    v = small(g, v, 6, 1);
    int how = between(g, 0, 4);
    if (how == 0) {
        Type row = {.dt = v->t.dt, .rank = 1, .dim = {v->t.dim[0]}};
        Value *r = like(let(g, row, "tl.max($, 1)", v), v);
        r->flags |= V_ZERO;
        v = flt(let(g, v->t, "tl.where($ >= $[:, None], 1.0, $)", v, r, v),
                v->bound > 1 ? v->bound : 1, v->frac, V_ZERO);
    } else if (how == 1) {
        Value *c = pick(g, (Want){.dts = BOOLS, .into = &v->t});
        if (c)
            v = flt(let(g, v->t, "tl.where($, $, 0.0)", c, v), v->bound, v->frac, V_ZERO);
    } else if (how == 2) {
        v = flt(let(g, v->t, "tl.abs($)", v), v->bound, v->frac, V_ZERO);
    }
    if (v->t.dt == (int)d->dt)
        return v;
    return like(let(g, with_dt(v->t, d->dt), "$.to(tl.%s)", v, dt_info[d->dt].tl), v);
}

/* A product, or a chain of two; of the shape m x n. */
static Value *
chain(Gen *g, Dot *d, Value *acc)
{
    Value *a = operand(g, d, d->m, d->k), *b;
    if (chance(g, 35) && !(BIT(d->dt) & FP8S)) {
        b = operand(g, d, d->k, d->k);
        Value *first = product(g, d, a, b, NULL);
        a = between_products(g, d, first);
    }
    if (chance(g, 25) && d->n * d->k <= g->tree->len) {
        Value *t = operand(g, d, d->n, d->k);
        b = like(
            let(g, matrix(d->dt, d->k, d->n), chance(g, 50) ? "tl.trans($)" : "$.T", t),
            t);
    } else {
        b = operand(g, d, d->k, d->n);
    }
    return product(g, d, a, b, acc);
}

static void
accumulate(Gen *g, Dot *d, Value *acc)
{
    Value *v;
    switch (between(g, 0, 3)) {
    case 0:
        v = chain(g, d, NULL);
        set(g, acc, chance(g, 80) ? "$ + $" : "$ - $", acc, v);
        break;
    case 1: {
        Value *c = pick(g, (Want){.dts = BOOLS, .into = &acc->t});
        v = chain(g, d, NULL);
        if (c)
            set(g, acc, "$ + tl.where($, $, 0)", acc, c, v);
        else
            set(g, acc, "$ + $", acc, v);
        break;
    }
    default: v = chain(g, d, acc); set(g, acc, "$", v);
    }
}

static Value *
dot_loop(Gen *g, Dot *d)
{
    Tree *t = g->tree;
    Dt out = d->dt == I8 ? I32 : d->dt == F64 ? F64 : F32;
    Type s = matrix(out, d->m, d->n);
    Value *acc[2];
    int n = between(g, 1, 2);
    for (int i = 0; i < n; i++) {
        acc[i] = let(g, s, "tl.full(%s, %s, tl.%s)", dims(g, &s), one_of(g, "0|0|0|1|-2"),
                     dt_info[out].tl);
        acc[i]->letter = 'a';
        flt(acc[i], 1 << 19, 2, V_ZERO);
    }
    Value *i = value_new(g, scalar(I32), 'i');
    i->flags = V_SPECIAL;
    bool is_while = chance(g, 12);
    const char *name = value_name(t, i);
    const char *lo = one_of(g, "0|0|0|1|m - 1"), *hi = one_of(g, "2|3|4|m|m");
    if (is_while)
        begin(g, i, "tl.to_tensor(0)");
    const char *head = is_while ? tree_text(t, "while \x80 < %s", hi)
                                : tree_text(t, "for %s in %s(%s, %s)", name,
                                            chance(g, 50) ? "range" : "tl.range", lo, hi);
    Stmt *b = loop_new(g, head, i, is_while);
    Stmt **tail = g->tail;
    int scope = g->nval;
    g->tail = &b->body[0];
    g->depth++;
    g->quiet++;
    d->iv = let(g, scalar(I32), "tl.to_tensor($)", i);
    for (int k = between(g, 1, 2); k > 0; k--) {
        Stmt **here = NULL;
        if (chance(g, 20)) {
            Value *c =
                let(g, scalar(I1), "%s", one_of(g, "pid == 0|m > 2|n > 9|pid < 0|q > 3"));
            Stmt *f = block_new(g, 1);
            f->is_if = true;
            f->use[f->nuse++] = c;
            f->head[0] = "if \x80";
            here = g->tail;
            g->tail = &f->body[0];
        }
        int inner = g->nval;
        accumulate(g, d, acc[rnd(g, (uint32_t)n)]);
        if (here) {
            g->tail = here;
            g->nval = inner;
        }
        if (chance(g, 30))
            block_of_steps(g, 1);
    }
    if (is_while)
        set(g, i, "$ + 1", i);
    g->quiet--;
    g->depth--;
    g->nval = scope;
    g->tail = tail;
    d->iv = NULL;
    if (n > 1)
        put(g, acc[1]);
    return acc[0];
}

Value *
make_dot(Gen *g)
{
    Tree *t = g->tree;
    if (t->n < 256 || g->depth)
        return NULL;
    Dot d = {.dt = dt_of(g, BIT(F16) | BIT(BF16) | BIT(F32) | BIT(I8) | BIT(E4) |
                                BIT(E5) | (chance(g, 20) ? BIT(F64) : 0))};
    int most = log2_of(t->n) - 8;
    d.m = 16 << between(g, 0, most > 2 ? 2 : most);
    most = log2_of(t->n / d.m) - 4;
    d.n = 16 << between(g, 0, most > 2 ? 2 : most);
    d.k = (BIT(d.dt) & (FP8S | BIT(I8)) ? 32 : 16) << between(g, 0, 1);
    int wide = d.m > d.n ? d.m : d.n;
    if ((wide > d.k ? wide : d.k) * d.k > t->len)
        return NULL;
    if (chance(g, 65) && !(BIT(d.dt) & FP8S))
        return dot_loop(g, &d);
    return chain(g, &d, NULL);
}
