/* Variables that change places: pairs and triples, in loops within loops, under
   conditions, and by helpers that return tuples. */
#include "tests/gen/gen.h"

enum { TRADERS = 3 };

static void
trade(Gen *g, Value *const *a, Value *iv)
{
    const char *tl = dt_info[a[0]->t.dt].tl;
    bool is_int = BIT(a[0]->t.dt) & INTS;
    switch (between(g, 0, is_int ? 6 : 4)) {
    case 0: act(g, "$, $ = $, $", a[0], a[1], a[1], a[0]); break;
    case 1: act(g, "$, $, $ = $, $, $", a[0], a[1], a[2], a[1], a[2], a[0]); break;
    case 2:
        act(g, "$, $, $ = h_turn($, $, $, %s)", a[0], a[1], a[2], a[1], a[0], a[2],
            one_of(g, "m|2|0"));
        break;
    case 3: act(g, "$, $ = h_order($, $)", a[1], a[2], a[1], a[2]); break;
    case 4: {
        Value *c = iv && chance(g, 60)
                       ? let(g, scalar(I1), "$ %s", iv, one_of(g, "% 2 == 0|> 0|== 1"))
                       : let(g, scalar(I1), "%s", one_of(g, "pid == 0|m > 2|n > 16"));
        Stmt *b = block_new(g, 2);
        b->is_if = true;
        b->use[b->nuse++] = c;
        b->head[0] = "if \x80";
        b->head[1] = "else";
        int scope = g->nval;
        Stmt **tail = block_open(g, b, 0);
        act(g, "$, $ = $, $", a[0], a[2], a[2], a[0]);
        block_close(g, tail, scope);
        tail = block_open(g, b, 1);
        set(g, a[1], "$", a[0]);
        block_close(g, tail, scope);
        break;
    }
    case 5:
        act(g, "$, $ = $, ($ + $).to(tl.%s)", a[0], a[1], a[1], a[0], a[1], tl);
        break;
    default: act(g, "$, $ = h_pair($, $, %s)", a[0], a[2], a[2], a[0], one_of(g, "m|3"));
    }
}

static void
rounds(Gen *g, Value *const *a, int deep)
{
    Value *i = value_new(g, scalar(I32), 'i');
    i->flags = V_SPECIAL;
    bool is_while = chance(g, 30);
    const char *hi = one_of(g, "3|m|pid % 4|2|n & 3");
    if (is_while)
        begin(g, i, "tl.to_tensor(0)");
    const char *head =
        is_while ? tree_text(g->tree, "while \x80 < %s", hi)
                 : tree_text(g->tree, "for %s in %s(0, %s%s)", value_name(g->tree, i),
                             one_of(g, "range|tl.range"), hi, "");
    Stmt *b = loop_new(g, head, i, is_while);
    int scope = g->nval;
    Stmt **tail = block_open(g, b, 0);
    Value *iv = let(g, scalar(I32), "tl.to_tensor($)", i);
    for (int k = between(g, 1, 3); k > 0; k--) {
        if (deep && chance(g, 35))
            rounds(g, a, deep - 1);
        else
            trade(g, a, iv);
    }
    if (chance(g, 30))
        block_of_steps(g, 1);
    if (is_while)
        set(g, i, "$ + 1", i);
    block_close(g, tail, scope);
}

Value *
make_trade(Gen *g)
{
    if (g->depth)
        return NULL;
    Value *a[TRADERS];
    Value *v = pick(g, (Want){.dts = INTS | BIT(F32) | BIT(F16), .never = V_WILD});
    if (!v)
        return NULL;
    for (int i = 0; i < TRADERS; i++) {
        Value *of =
            i ? pick(g, (Want){.dts = BIT(v->t.dt), .same = &v->t, .never = V_WILD}) : v;
        a[i] =
            let(g, v->t, chance(g, 50) ? "$" : "tl.where($ == $, $, $)", of, of, of, of);
        a[i]->letter = 'a';
        like(a[i], of);
    }
    double bound = 0;
    int frac = 0;
    unsigned flags = 0;
    for (int i = 0; i < TRADERS; i++) {
        bound = a[i]->bound > bound ? a[i]->bound : bound;
        frac = a[i]->frac > frac ? a[i]->frac : frac;
        flags |= a[i]->flags;
    }
    for (int i = 0; i < TRADERS; i++)
        flt(a[i], bound, frac, flags);
    rounds(g, a, 2);
    put(g, a[1]);
    put(g, a[2]);
    return a[0];
}
