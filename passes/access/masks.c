/* Simplifies the users of a mask whose value is known: conjunctions, broadcasts, accesses
   and selects, and then their users in turn.

   A select or a load may be replaced by a value of any type, and users of that are
   simplified as well. So there are no rules here: each user goes through those of the
   canonicalization (passes/simplify). Control flow stays as it is, since callers walk it
   while they call this. */
#include "passes/access/masks.h"

#include "ir/base/vec.h"
#include "passes/simplify/canon.h"

typedef struct Spread {
    Session *s;
    Vec(Op *) todo; /* ops of which an operand was replaced */
} Spread;

/* Replaces value old and queues its users. */
static void
replace(Spread *w, Value *old, Value *by)
{
    value_each_use(old, u) vec_push(&w->s->tmp, &w->todo, u->user);
    if (!by->name)
        by->name = old->name;
    value_replace(old, by);
}

/* op may be queued twice, and may have been erased: then it has no parent. */
static void
simplify(Spread *w, Op *op)
{
    Value *v = NULL;
    bool changed;
    if (!op->parent || op->nregion || op_is(op, T_TERMINATOR))
        return;
    Builder b = builder_before(op);
    b.loc = op->loc;
    if (canon_access(&b, op, &v) == ACCESS_NONE && !v)
        op_erase(op);
    else if (!v && op->nresult == 1 && op->results[0].uses)
        v = canon_value(&b, op, &changed);
    if (v)
        replace(w, &op->results[0], v);
}

void
mask_is(Session *s, Op *cmp, bool holds)
{
    Spread w = {.s = s};
    Builder b = builder_before(cmp);
    b.loc = cmp->loc;
    replace(&w, &cmp->results[0], build_int(&b, cmp->results[0].type, holds));
    for (int i = 0; i < w.todo.n; i++)
        simplify(&w, w.todo.at[i]);
}
