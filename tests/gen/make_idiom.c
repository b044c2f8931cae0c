/* Loops as kernels are written: strips of a row or of several with a mask at the end,
   tiles that programs take one after the other. Addresses stay below a bound of at most
   2 * tile + 1. */
#include "tests/gen/gen.h"

typedef struct Strip {
    Dt dt;
    int rows, width, stride; /* rows 0: one, of rank 1 */
    Type shape;
} Strip;

static Strip
strip_of(Gen *g)
{
    Tree *t = g->tree;
    Strip s = {.dt = dt_of(g, INTS | FLOATS)};
    int k = log2_of(t->n);
    if (chance(g, 60)) {
        s.width = 1 << between(g, k - 2, k);
        s.shape = (Type){.dt = s.dt, .rank = 1, .dim = {s.width}};
        return s;
    }
    int lw = between(g, k > 4 ? k - 3 : 0, k - 1);
    s.width = 1 << lw;
    s.rows = 1 << between(g, 0, k - lw);
    s.stride = between(g, 1, (t->len - 2 * t->n - 2) / s.rows);
    if (chance(g, 40) && s.stride >= 16)
        s.stride &= ~15;
    s.shape = (Type){.dt = s.dt, .rank = 2, .dim = {s.rows, s.width}};
    return s;
}

/* Loads the strip whose first column is the scalar `at`; its mask in *m. */
static Value *
strip_load(Gen *g, const Strip *s, Value *at, const char *bound, Value **m)
{
    Tree *t = g->tree;
    const char *sig = dt_info[s->dt].sig;
    Type row = {.dt = I32, .rank = 1, .dim = {s->width}};
    Value *o = let(g, row, "$ + tl.arange(0, %d)", at, s->width);
    Value *c = let(g, with_dt(row, I1), "$ < %s", o, bound);
    const char *other = BIT(s->dt) & FLOATS
                            ? one_of(g, "|, other=0.0|, other=1.5|, "
                                        "other=float(\"-inf\")|, other=float(\"inf\")")
                            : one_of(g, "|, other=0|, other=1|, other=7");
    Value *v;
    if (s->rows == 0) {
        *m = c;
        v = let(g, s->shape, "tl.load(p_%s + $, mask=$%s)", sig, o, c, other);
    } else {
        const char *r = tree_text(t, "tl.arange(0, %d)[:, None]", s->rows);
        *m = chance(g, 50)
                 ? let(g, with_dt(s->shape, I1), "$[None, :] & (%s < %d)", c, r,
                       between(g, s->rows / 2, s->rows + 1))
                 : let(g, with_dt(s->shape, I1), "tl.broadcast_to($[None, :], %s)", c,
                       dims(g, &s->shape));
        v = let(g, s->shape, "tl.load(p_%s + (%s * %d + $[None, :]), mask=$%s)", sig, r,
                s->stride, o, *m, other);
    }
    flt(v, 16, 1, 0);
    for (const char *p = other; *p; p++)
        if (*p == 'f' && p[1] == 'l') /* float("inf") */
            v->flags = V_WILD;
    return v;
}

static void
gather_up(Gen *g, Value *acc, Value *v, Value *m, int axis)
{
    const char *tl = dt_info[acc->t.dt].tl;
    bool is_float = BIT(acc->t.dt) & FLOATS;
    if (chance(g, 35)) {
        const char *k = is_float ? one_of(g, "0.0|1.0|float(\"-inf\")|float(\"inf\")")
                                 : one_of(g, "0|1|7|-1|64");
        if (BIT(acc->t.dt) & UINTS && k[0] == '-')
            k = "3";
        Value *w = chance(g, 60)
                       ? let(g, v->t, "tl.where($, $, %s).to(tl.%s)", m, v, k, tl)
                       : let(g, v->t, "tl.where($, %s, $).to(tl.%s)", m, k, v, tl);
        v = flt(w, 16, 1, is_float && k[0] == 'f' ? V_WILD : v->flags);
    }
    const char *how = one_of(g, "sum|max|min|sum");
    if (is_float && how[0] == 's')
        v = small(g, v, 6, 1); /* within: the smallest type has eight bits */
    if (is_float && how[0] == 's' && acc->t.dt != F32 && acc->t.dt != F64)
        how = "max";
    if (axis >= 0) {
        Type s = acc->t;
        Value *r = let(g, s, "tl.%s($, axis=%d).to(tl.%s)", how, v, axis, tl);
        v = flt(r, v->bound * 64, v->frac, v->flags | V_ZERO);
    }
    if (how[0] == 's')
        set(g, acc, "$ %s $", acc, chance(g, 70) ? "+" : "-", v);
    else
        set(g, acc, "tl.%simum($, $).to(tl.%s)", how, acc, v, tl);
}

Value *
make_strip(Gen *g)
{
    if (g->depth > 1)
        return NULL;
    Tree *t = g->tree;
    Strip s = strip_of(g);
    int axis = chance(g, 50) ? -1 : s.rows ? between(g, 0, 1) : 0;
    Type a = s.shape;
    if (axis >= 0) {
        a.dim[0] = s.shape.dim[axis == 0 && s.rows ? 1 : 0];
        a.rank = s.rows ? 1 : 0;
    }
    const char *tl = dt_info[s.dt].tl;
    Value *acc = let(g, a, "tl.full(%s, %s, tl.%s)", dims(g, &a), one_of(g, "0|0|1"), tl);
    acc->letter = 'a';
    flt(acc, 0, 0, BIT(s.dt) & FLOATS ? V_WILD | V_ZERO : 0);
    const char *bound = one_of(g, "n|n|n|q|17");
    if (bound[0] == 'q' && t->arg_q > 2 * t->n + 1) /* what rows have room for */
        bound = "n";
    Value *i = value_new(g, scalar(I32), 'i');
    i->flags = V_SPECIAL;
    bool by_width = chance(g, 50);
    const char *head =
        by_width ? tree_text(t, "for %s in %s(0, %s, %d%s)", value_name(t, i), "tl.range",
                             bound, s.width, one_of(g, "|, num_stages=3|, num_stages=1"))
                 : tree_text(t, "for %s in range(0, tl.cdiv(%s, %d))", value_name(t, i),
                             bound, s.width);
    if (bound[0] == '1') /* a constant trip count */
        head = tree_text(t, "for %s in range(0, %d)", value_name(t, i),
                         (17 + s.width - 1) / s.width),
        by_width = false;
    Stmt *b = loop_new(g, head, i, false);
    Stmt **tail = g->tail;
    int scope = g->nval;
    g->tail = &b->body[0];
    g->depth++;
    g->quiet++;
    Value *at =
        by_width ? let(g, scalar(I32), "tl.to_tensor($).to(tl.int32)", i)
                 : let(g, scalar(I32), "(tl.to_tensor($) * %d).to(tl.int32)", i, s.width);
    Value *m, *v = strip_load(g, &s, at, bound, &m);
    block_of_steps(g, between(g, 0, 2));
    gather_up(g, acc, v, m, axis);
    if (chance(g, 20)) {
        Value *u =
            pick(g, (Want){.dts = INTS | FLOATS, .into = &acc->t, .never = V_WILD});
        if (u && u->t.dt == acc->t.dt)
            gather_up(g, acc, u,
                      u->t.rank == 0 ? let(g, scalar(I1), "m > 1") : mask_for(g, &u->t),
                      -1);
    }
    g->quiet--;
    g->depth--;
    g->nval = scope;
    g->tail = tail;
    return acc;
}

/* Tiles t, t + programs, ... of a row: loaded, changed, stored where no other is. */
Value *
make_persist(Gen *g)
{
    Tree *t = g->tree;
    if (g->depth || g->quiet)
        return NULL;
    Strip s = strip_of(g);
    if (s.rows)
        return NULL;
    int tiles = between(g, 1, 2 * t->n / s.width > 6 ? 6 : 2 * t->n / s.width);
    Value *i = value_new(g, scalar(I32), 'i');
    i->flags = V_SPECIAL;
    Stmt *b = loop_new(g,
                       tree_text(t, "for %s in %s(pid, %d, %s)", value_name(t, i),
                                 chance(g, 50) ? "range" : "tl.range", tiles,
                                 t->nprog == t->grid[0] && chance(g, 60)
                                     ? "tl.num_programs(0)"
                                     : tree_text(t, "%d", t->nprog)),
                       i, false);
    Stmt **tail = g->tail;
    int scope = g->nval;
    g->tail = &b->body[0];
    g->depth++;
    g->quiet++;
    Value *at = let(g, scalar(I32), "tl.to_tensor($) * %d", i, s.width);
    Value *m;
    strip_load(g, &s, at, chance(g, 50) ? "n" : tree_text(t, "%d", tiles * s.width), &m);
    block_of_steps(g, between(g, 1, 3));
    Value *v =
        pick(g, (Want){.dts = ALL & ~(unsigned)FP8S, .same = &s.shape, .never = V_ZERO});
    if (v) {
        int room = (tiles * s.width + t->n - 1) / t->n + 1;
        int slot = (t->slots[BUF_EXACT][v->t.dt] += room) - room;
        act(g, "tl.store(o_%s + (%d + $ + tl.arange(0, %d)), $%s)", dt_info[v->t.dt].sig,
            slot * t->nprog * t->n, at, s.width, v, "");
    }
    g->quiet--;
    g->depth--;
    g->nval = scope;
    g->tail = tail;
    return let(g, scalar(I32), "pid * 3");
}

/* What a loop over strips carries, read on the way: sums that begin anew or change their
   sign, the largest so far and where it is, counts. */
Value *
make_running(Gen *g)
{
    if (g->depth)
        return NULL;
    Tree *t = g->tree;
    Strip s = strip_of(g);
    s.dt = dt_of(g, BIT(I32) | BIT(I64) | BIT(U32) | BIT(F32));
    s.shape.dt = s.dt;
    bool is_float = s.dt == F32;
    int axis = s.rows ? 1 : 0;
    Type r = {.dt = s.dt, .rank = s.rows ? 1 : 0, .dim = {s.rows}};
    const char *tl = dt_info[s.dt].tl, *least = is_float ? "-64" : "0";
    Value *sum = let(g, r, "tl.full(%s, 0, tl.%s)", dims(g, &r), tl);
    Value *top = let(g, r, "tl.full(%s, %s, tl.%s)", dims(g, &r), least, tl);
    Value *where = let(g, with_dt(r, I32), "tl.full(%s, -1, tl.int32)", dims(g, &r));
    Value *count = let(g, with_dt(r, I32), "tl.full(%s, 0, tl.int32)", dims(g, &r));
    sum->letter = top->letter = where->letter = count->letter = 'a';
    flt(sum, 1 << 17, 1, V_ZERO);
    flt(top, 64, 1, V_ZERO);
    Value *i = value_new(g, scalar(I32), 'i');
    i->flags = V_SPECIAL;
    int trips = 1 + (2 * t->n + 1) / s.width;
    const char *bound = one_of(g, "n|n|17");
    Stmt *b = loop_new(g,
                       tree_text(t, "for %s in %s(0, tl.cdiv(%s, %d))", value_name(t, i),
                                 one_of(g, "range|tl.range"), bound, s.width),
                       i, false);
    int scope = g->nval;
    Stmt **tail = block_open(g, b, 0);
    Value *k = let(g, scalar(I32), "tl.to_tensor($).to(tl.int32)", i);
    Value *at = let(g, scalar(I32), "$ * %d", k, s.width), *m;
    Value *v = strip_load(g, &s, at, bound, &m);
    if (is_float)
        v = small(g, v, 6, 1);
    Value *w = like(let(g, v->t, "tl.where($, $, %s).to(tl.%s)", m, v, least, tl), v);
    Value *part =
        let(g, r, "tl.sum(tl.where($, $, 0), axis=%d).to(tl.%s)", m, v, axis, tl);
    flt(part, v->bound * s.width, v->frac, V_ZERO);
    Value *peak = let(g, r, "tl.max($, axis=%d).to(tl.%s)", w, axis, tl);
    flt(peak, 64, 1, V_ZERO);
    Value *better = let(g, with_dt(r, I1), "$ > $", peak, top);
    set(g, where, "tl.where($, $ + tl.argmax($, axis=%d), $)", better, at, w, axis,
        where);
    switch (between(g, 0, 3)) {
    case 0: set(g, sum, "tl.where($, 0, $) + $", better, sum, part); break;
    case 1: set(g, sum, "tl.where($, 0 - $, $) + $", better, sum, sum, part); break;
    case 2: set(g, sum, "$ + tl.where($ > 2, $, 0)", sum, count, part); break;
    default: set(g, sum, "$ %s $", sum, one_of(g, "+|-"), part);
    }
    set(g, top, "tl.where($, $, $)", better, peak, top);
    set(g, count, "$ + tl.sum($.to(tl.int32), axis=%d)", count, m, axis);
    if (r.rank == 0 && trips <= t->n && chance(g, 60)) { /* what there is after each */
        int slot = t->slots[BUF_ZERO][s.dt]++ * t->nprog * t->n;
        act(g, "tl.store(z_%s + (pid * %d + %d) + $, $)", dt_info[s.dt].sig, t->n, slot,
            k, sum);
    }
    block_close(g, tail, scope);
    put(g, top);
    put(g, where);
    put(g, count);
    return sum;
}

/* A row at a time, as in a softmax: -inf outside, the largest, what is near it. */
Value *
make_rows(Gen *g)
{
    Tree *t = g->tree;
    Type s = {.dt = F32, .rank = 2};
    int k = log2_of(t->n), lw = between(g, 0, k);
    s.dim[0] = 1 << (k - lw);
    s.dim[1] = 1 << lw;
    Value *v =
        chance(g, 50)
            ? pick(g,
                   (Want){.dts = BIT(F32), .min_rank = 2, .max_rank = 2, .never = V_WILD})
            : NULL;
    if (!v)
        v = load_from(g, F32, s);
    v = small(g, v, 8, 1);
    s = v->t;
    const char *bound = one_of(g, "n|5|q|17|m * 8");
    Value *m =
        let(g, with_dt(s, I1), "tl.broadcast_to((tl.arange(0, %d) < %s)[None, :], %s)",
            s.dim[1], bound, dims(g, &s));
    Value *x =
        flt(let(g, s, "tl.where($, $, float(\"-inf\"))", m, v), 0, 0, V_WILD | V_ZERO);
    if (chance(g, 40))
        x = flt(let(g, s, "$ + tl.where($, 0, float(\"-inf\"))", v, m), 0, 0,
                V_WILD | V_ZERO);
    Type r = {.dt = F32, .rank = 1, .dim = {s.dim[0]}};
    Value *top = flt(let(g, r, "tl.max($, axis=1)", x), 0, 0, V_WILD | V_ZERO);
    Value *near =
        let(g, with_dt(s, I1), "$ >= $[:, None] - %s", x, top, one_of(g, "0.0|1.5|4.0"));
    put(g, top);
    Value *w =
        flt(let(g, s, "tl.where($ & $, $, 0.0)", near, m, v), v->bound, v->frac, V_ZERO);
    return flt(let(g, r, "tl.sum($, axis=1)", w), v->bound * s.dim[1], v->frac, V_ZERO);
}
