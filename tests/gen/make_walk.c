/* What data decides: how often a loop goes round, where the next tile is read, which rows
   are taken and where results are put. Variables change places from pass to pass. */
#include "tests/gen/gen.h"

/* A scalar of type int32, made of a reduction or loaded. */
static Value *
decided(Gen *g)
{
    Value *a = pick(g, (Want){.dts = INTS, .min_rank = 1});
    Value *c = pick(g, (Want){.dts = BOOLS, .min_rank = 1});
    Type s = scalar(I32);
    int how = between(g, 0, 4);
    if (how == 0 && c)
        return let(g, s, "tl.sum($.to(tl.int32))", c);
    if (how == 1 && a && a->t.rank == 1)
        return let(g, s, "tl.%s($, axis=0)", one_of(g, "argmax|argmin"), a);
    if (how < 4 && a)
        return let(g, s, "tl.%s(($ & 127).to(tl.int32))", one_of(g, "max|xor_sum|sum"),
                   a);
    return let(g, s, "tl.load(p_i32 + %d)", between(g, 0, g->tree->n - 1));
}

/* At most 2^bits - 1 such that what is read from there on, k elements, is inside. */
static int
mask_of(const Tree *t, int k)
{
    return (1 << (log2_of(t->len - k + 2) - 1)) - 1;
}

/* The head of a loop of at most eight passes; x is its variable in a `while`. */
static const char *
head_of(Gen *g, Value *i, bool is_while)
{
    if (is_while)
        return one_of(g, "while \x80 > 0|while \x80 != 0|while (\x80 > 0) & (pid < 3)|"
                         "while (\x80 > 1) and (n > 0)");
    const char *range =
        one_of(g, "range(0, \x80 & 7)|tl.range(0, \x80 & 7)|range(\x80, \x80 + 8, 3)|"
                  "range(\x80, \x80 - 9, -2)|tl.range(0, \x80 % 5, num_stages=3)|"
                  "range(\x80 & 3, \x80 & 7)|range(0, (\x80 & 63) + 1, 16)");
    return tree_text(g->tree, "for %s in %s", value_name(g->tree, i), range);
}

static Value *
variable(Gen *g, Value *of)
{
    Value *a = let(g, of->t, "$", of);
    a->letter = 'a';
    return like(a, of);
}

/* Tiles read at places that the variable names, one of them carried to the next pass. */
Value *
make_walk(Gen *g)
{
    if (g->depth > 1)
        return NULL;
    Tree *t = g->tree;
    Dt dt = dt_of(g, INTS | BIT(F32) | BIT(F16));
    bool is_float = BIT(dt) & FLOATS, is_while = chance(g, 60);
    const char *sig = dt_info[dt].sig, *tl = dt_info[dt].tl;
    Type s = random_shape(g, dt);
    int room = mask_of(t, numel(&s));
    const char *o = offsets(g, &s);
    Value *x = let(g, scalar(I32), "$ & 255", decided(g));
    x->letter = is_while ? 'a' : 'v';
    Value *tile = let(g, s, "tl.load(p_%s + %s)", sig, o);
    Value *now = variable(g, flt(tile, 16, 1, 0));
    Value *old = variable(g, tile);
    Value *acc = let(g, s, "tl.full(%s, 0, tl.%s)", dims(g, &s), tl);
    acc->letter = 'a';
    flt(acc, 1024, 1, V_ZERO);
    Value *far = chance(g, 50) ? let(g, scalar(I32), "tl.to_tensor(%s)", "m") : NULL;
    if (far)
        far->letter = 'a';
    Value *i = is_while ? x : value_new(g, scalar(I32), 'i');
    if (!is_while)
        i->flags = V_SPECIAL;
    Stmt *b = loop_new(g, head_of(g, i, is_while), i, is_while);
    if (!is_while)
        b->use[b->nuse++] = x;
    int scope = g->nval;
    Stmt **tail = block_open(g, b, 0);
    Value *at = let(g, scalar(I32), "tl.to_tensor($)", i);
    if (far && chance(g, 70))
        at = let(g, scalar(I32), "$ + $", at, far);
    if (chance(g, 50))
        block_of_steps(g, 1);
    Value *small_now = is_float ? small(g, now, 6, 1) : now;
    if (dt == F16)
        set(g, acc, "tl.maximum($, $).to(tl.%s)", acc, small_now, tl);
    else
        set(g, acc, chance(g, 70) ? "($ + $).to(tl.%s)" : "($ - $).to(tl.%s)", acc,
            small_now, tl);
    Value *next = chance(g, 70)
                      ? let(g, s, "tl.load(p_%s + ($ & %d) + %s)", sig, at, room, o)
                      : let(g, s, "tl.load(p_%s + ($ & %d) + %s, mask=%s < $, other=%s)",
                            sig, at, room, o, o, at, is_float ? "1.0" : "1");
    flt(next, 16, 1, 0);
    /* three that change places */
    Value *keep = let(g, s, "$", old);
    like(keep, old);
    set(g, old, "$", now);
    set(g, now, "$", chance(g, 60) ? next : keep);
    if (far && chance(g, 80)) /* a chain of indices */
        set(g, far, "tl.load(p_i32 + ($ & %d))", far, mask_of(t, 1));
    if (is_while)
        set(g, x, one_of(g, "$ & ($ - 1)|$ >> 1|$ // 3|$ - ($ & -$)|$ // 2"), x, x, x);
    block_close(g, tail, scope);
    put(g, old);
    put(g, now);
    return acc;
}

/* Rows that a reduction or a running sum chooses. */
static Value *
chosen_rows(Gen *g)
{
    Tree *t = g->tree;
    Value *a = pick(g, (Want){.dts = INTS, .min_rank = 1, .max_rank = 2});
    if (!a)
        return NULL;
    int rows = a->t.dim[0], most = rows;
    Type r = {.dt = I32, .rank = 1, .dim = {rows}};
    Value *ix;
    if (a->t.rank == 2) {
        most = a->t.dim[1];
        ix = let(g, r, "tl.%s($, axis=1)", one_of(g, "argmax|argmin"), a);
    } else if (chance(g, 50)) {
        ix = let(g, r, "tl.cumsum(($ & 3).to(tl.int32), axis=0)", a);
        most = 3 * rows + 1;
    } else {
        ix = let(g, r, "($ & %d).to(tl.int32)", a, rows > 128 ? 127 : rows - 1);
    }
    int lw = between(g, 0, log2_of(t->n / rows)), w = 1 << lw;
    int stride = chance(g, 50) ? w : between(g, 1, w);
    while (w > 1 && (most - 1) * stride + w > t->len)
        w /= 2, stride = w;
    Dt dt = dt_of(g, INTS | FLOATS);
    Type s = {.dt = dt, .rank = 2, .dim = {rows, w}};
    const char *sig = dt_info[dt].sig;
    const char *o = tree_text(t, "[:, None] * %d + tl.arange(0, %d)[None, :]", stride, w);
    Value *v;
    if (chance(g, 50))
        v = let(g, s, "tl.load(p_%s + ($%s))", sig, ix, o);
    else
        v = let(g, s, "tl.load(p_%s + ($%s), mask=%s, other=%s)", sig, ix, o,
                tree_text(t, "tl.arange(0, %d)[None, :] < %s", w, one_of(g, "n|m|q")),
                BIT(dt) & FLOATS ? "0.0" : "0");
    return flt(v, 16, 1, 0);
}

/* What a mask leaves, one behind the other; or a permutation, both stored. */
static Value *
placed(Gen *g)
{
    Tree *t = g->tree;
    Value *v = pick(
        g, (Want){.dts = INTS | BIT(F32), .min_rank = 1, .max_rank = 1, .never = V_ZERO});
    if (!v || g->quiet || g->depth || numel(&v->t) > t->n)
        return NULL;
    Dt dt = (Dt)v->t.dt;
    int k = numel(&v->t), at = t->slots[BUF_EXACT][dt]++ * t->nprog * t->n;
    const char *to = tree_text(t, "o_%s + (pid * %d + %d)", dt_info[dt].sig, t->n, at);
    Type r = with_dt(v->t, I32);
    if (chance(g, 40)) {
        int by = 2 * between(g, 0, 20) + 1;
        act(g, "tl.store(%s + (tl.arange(0, %d) * %d + %s & %d), $)", to, k, by,
            one_of(g, "pid|3|n|0"), k - 1, v);
        return v;
    }
    Value *m = mask_for(g, &v->t);
    Value *p = let(g, r, "tl.cumsum($.to(tl.int32), axis=0) - 1", m);
    act(g, "tl.store(%s + $, $, mask=$)", to, p, v, m);
    return p;
}

Value *
make_address(Gen *g)
{
    return chance(g, 55) ? chosen_rows(g) : placed(g);
}
