/* Spin locks: programs change a tile of all of them in turn, as partial sums of a
   backward pass and stream-K products do. The order is open, so what is done has to
   commute. The lock lies in an output: it is free while it holds what outputs hold before
   a launch. */
#include <string.h>

#include "tests/gen/gen.h"

/* What element `at` of an int32 output holds before the launch. */
static int32_t
poison_at(int at)
{
    unsigned char bytes[16];
    ProgramArg a = {.data = bytes, .bytes = sizeof bytes};
    int32_t v;
    poison_fill(&a); /* comes round after seven bytes */
    memcpy(&v, bytes + 4 * at % 7, sizeof v);
    return v;
}

Value *
make_lock(Gen *g)
{
    Tree *t = g->tree;
    if (g->depth > 1)
        return NULL;
    Value *v = pick(g, (Want){.dts = INTS, .min_rank = 1});
    if (!v || numel(&v->t) > t->n)
        return NULL;
    v = let(g, with_dt(v->t, I32), "$.to(tl.int32)", v);
    int each = t->nprog * t->n;
    int at = t->slots[BUF_EXACT][I32]++ * each, lock = at + each - 1;
    if (numel(&v->t) > each - 1)
        return NULL;
    int32_t is_free = poison_at(lock);
    bool loops = chance(g, 40);
    int scope = g->nval;
    Stmt **tail = NULL;
    if (loops) {
        Value *i = value_new(g, scalar(I32), 'i');
        i->flags = V_SPECIAL;
        Stmt *b = loop_new(g,
                           tree_text(t, "for %s in range(0, %s)", value_name(t, i),
                                     one_of(g, "2|3|m|pid % 2 + 1")),
                           i, false);
        tail = block_open(g, b, 0);
    }
    Stmt *wait = block_new(g, 1);
    wait->head[0] =
        tree_text(t, one_of(g, "while tl.atomic_cas(o_i32 + %d, %d, 1) != %d|"
                               "while tl.atomic_cas(o_i32 + %d, %d, 1, sem=\"acquire\") "
                               "!= %d"),
                  lock, (int)is_free, (int)is_free);
    Stmt **inside = block_open(g, wait, 0);
    act(g, "pass");
    block_close(g, inside, g->nval);
    const char *place = tree_text(t, "o_i32 + %d + %s", at, offsets(g, &v->t));
    Value *old = let(g, v->t, "tl.load(%s)", place);
    old->flags |= V_SPECIAL; /* of an order that is open */
    act(g, "tl.store(%s, $ %s $)", place, old, one_of(g, "+|^|-"), v);
    act(g, "tl.debug_barrier()");
    act(g, "tl.atomic_xchg(o_i32 + %d, %d%s)", lock, (int)is_free,
        one_of(g, "|, sem=\"release\""));
    if (tail)
        block_close(g, tail, scope);
    return v;
}
