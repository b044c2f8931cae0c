/* What loops and helpers hand on in one piece: tuples that a loop carries, reductions of
   several results in a loop, helpers with many returns, functions of one element. */
#include "tests/gen/gen.h"

static Value *
counted(Gen *g, Stmt **loop, const char *hi)
{
    Value *i = value_new(g, scalar(I32), 'i');
    i->flags = V_SPECIAL;
    *loop = loop_new(g,
                     tree_text(g->tree, "for %s in %s(0, %s)", value_name(g->tree, i),
                               one_of(g, "range|tl.range"), hi),
                     i, false);
    return i;
}

static Value *
more(Gen *g, const Value *like_this)
{
    return pick(g, (Want){.dts = BIT(like_this->t.dt),
                          .into = &like_this->t,
                          .never = V_WILD});
}

/* Two or three values of one type in a tuple, or in a tuple within one, that change
   places and grow. */
static Value *
tuple_loop(Gen *g)
{
    if (g->depth > 1)
        return NULL;
    Value *v = pick(g, (Want){.dts = SINTS | BIT(F32), .never = V_WILD});
    if (!v)
        return NULL;
    bool deep = chance(g, 50), is_float = v->t.dt == F32;
    if (is_float)
        v = small(g, v, 8, 1);
    Value *w = more(g, v);
    if (is_float || !same_shape(&w->t, &v->t))
        w = let(g, v->t, is_float ? "-$" : "$ * 3", v);
    if (is_float)
        like(w, v);
    Value *t = value_new(g, scalar(I32), 'a');
    t->flags = V_SPECIAL;
    begin(g, t, deep ? "($, ($, $))" : "($, $, $)", v, w, v);
    const char *form = deep ? "(%s, (%s, %s))" : "(%s, %s, %s)";
    const char *second = deep ? "$[1][0]" : "$[1]", *third = deep ? "$[1][1]" : "$[2]";
    Stmt *b;
    Value *i = counted(g, &b, one_of(g, "m|3|2|pid & 3|0"));
    int scope = g->nval;
    Stmt **tail = block_open(g, b, 0);
    Value *iv = let(g, scalar(I32), "tl.to_tensor($)", i);
    if (chance(g, 30))
        block_of_steps(g, 1);
    const char *a = "$[0]";
    if (chance(g, 30)) {
        Value *c = let(g, scalar(I1), "$ %s", iv, one_of(g, "% 2 == 0|> 0|== 1"));
        Stmt *f = block_new(g, 1);
        f->is_if = true;
        f->use[f->nuse++] = c;
        f->head[0] = "if \x80";
        Stmt **after = block_open(g, f, 0);
        set(g, t, tree_text(g->tree, form, third, a, a), t, t, t);
        block_close(g, after, g->nval);
    }
    const char *grown =
        is_float ? one_of(g, "tl.maximum($[0], -$[0])|$[0] * -1.0|tl.where(pid > 0, "
                             "-$[0], $[0])")
                 : one_of(g, "$[0] * 3 + 1|$[0] ^ 5|$[0] - 7");
    int uses = 0;
    for (const char *p = grown; *p; p++)
        uses += *p == '$';
    const char *all = tree_text(g->tree, form, second, third, grown);
    set(g, t, all, t, t, t, uses > 1 ? t : NULL);
    block_close(g, tail, scope);
    Value *x = let(g, v->t, second, t), *y = let(g, v->t, third, t);
    Value *z = let(g, v->t, "$[0]", t);
    if (is_float) {
        flt(x, v->bound, v->frac, V_ZERO);
        like(y, x);
        like(z, x);
    }
    put(g, x);
    put(g, y);
    return z;
}

/* The best of all tiles, where it is, and what else the reduction gives. */
static Value *
reduce_loop(Gen *g)
{
    Tree *t = g->tree;
    if (g->depth > 1)
        return NULL;
    Dt dt = dt_of(g, WIDE);
    Type s = random_shape(g, dt);
    int axis = between(g, 0, s.rank - 1), step = (t->len - numel(&s)) / 8;
    Type r = s;
    for (int i = axis; i + 1 < r.rank; i++)
        r.dim[i] = r.dim[i + 1];
    r.rank--;
    const char *sig = dt_info[dt].sig, *tl = dt_info[dt].tl;
    const char *o = offsets(g, &s);
    Value *best = let(g, r, "tl.full(%s, 0, tl.%s)", dims(g, &r), tl);
    Value *at = let(g, with_dt(r, I32), "tl.full(%s, -1, tl.int32)", dims(g, &r));
    best->letter = at->letter = 'a';
    Stmt *b;
    Value *i = counted(g, &b, one_of(g, "m|3|4|n & 3"));
    int scope = g->nval;
    Stmt **tail = block_open(g, b, 0);
    Value *iv = let(g, scalar(I32), "tl.to_tensor($)", i), *out[3];
    Value *v = let(g, s, "tl.load(p_%s + $ * %d + %s)", sig, iv, step, o);
    Type of[] = {r, with_dt(r, I32), with_dt(r, dt)};
    switch (between(g, 0, 3)) {
    case 0:
        let_all(g, 2, of, out, "tl.%s($, axis=%d, return_indices=True)",
                one_of(g, "max|min"), v, axis);
        break;
    case 1: let_all(g, 2, of, out, "tl.reduce(($, %s), %d, h_pick)", v, o, axis); break;
    case 2:
        let_all(g, 3, of, out, "tl.reduce(($, %s + $, $), %d, h_three)", v, o, iv, v,
                axis);
        set(g, best, "$ ^ $", best, out[2]);
        break;
    default: {
        Value *f = let(g, with_dt(s, I32), "(%s + $) %% 3", o, iv), *run, *flag;
        run = let2(g, s, f->t, &flag, "tl.associative_scan(($, $ & 1), %d, h_seg%s)", v,
                   f, axis, one_of(g, "|, reverse=True"));
        let_all(g, 2, of, out, "tl.reduce(($, $), %d, h_pick)", run, flag, axis);
    }
    }
    Value *better = let(g, with_dt(r, I1), "$ > $", out[0], best);
    set(g, at, "tl.where($, $ + $ * 7, $)", better, out[1], iv, at);
    set(g, best, "tl.where($, $, $)", better, out[0], best);
    block_close(g, tail, scope);
    put(g, at);
    return best;
}

static Value *
many_returns(Gen *g)
{
    Value *a = pick(g, (Want){.dts = SINTS});
    Value *s = let(g, scalar(I32), "%s",
                   one_of(g, "pid * 5|tl.to_tensor(n) + 0|tl.load(p_i32 + 3)"));
    Value *k = let(g, scalar(I32), "%s", one_of(g, "tl.to_tensor(m) + 0|pid + 0"));
    if (!a)
        return NULL;
    if (chance(g, 50))
        return let(g, a->t, "h_many($, $, $)", a, s, k);
    Value *b = pick(g, (Want){.dts = BIT(a->t.dt), .same = &a->t}), *second;
    Value *v = let2(g, a->t, a->t, &second, "h_either($, $, $)", a, b, s);
    put(g, second);
    return v;
}

static Value *
by_element(Gen *g)
{
    Value *a = pick(g, (Want){.dts = SINTS, .min_rank = 1}), *second;
    if (!a)
        return NULL;
    Value *b = pick(g, (Want){.dts = BIT(a->t.dt), .into = &a->t});
    int how = between(g, 0, 3);
    if (how == 0)
        return let(g, a->t, "tl.map_elementwise(h_sign, $, $)", a, b);
    if (how == 1 && a->t.dim[a->t.rank - 1] > 1) {
        Value *v = let2(g, a->t, a->t, &second,
                        "tl.map_elementwise(h_packed, $, $, pack=2)", a, b);
        put(g, second);
        return v;
    }
    Type s = with_dt(a->t, I32);
    a = let(g, s, "($ & 31).to(tl.int32) + 1", a);
    Value *v = let2(g, s, s, &second, "tl.map_elementwise(h_steps, $, %s)", a,
                    one_of(g, "9|30|m"));
    put(g, second);
    return v;
}

Value *
make_state(Gen *g)
{
    switch (between(g, 0, 6)) {
    case 0:
    case 1:
    case 2: return tuple_loop(g);
    case 3:
    case 4: return reduce_loop(g);
    case 5: return many_returns(g);
    default: return by_element(g);
    }
}
