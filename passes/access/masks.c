/* What follows from a mask of one known value: the conjunction with it, the tile that it
   is spread to, the access or choice that it controls.

   A choice or a load may give way to any value of any type, and that is followed as well.
   So nothing here knows a rule of its own: each operation that is met is simplified by
   canonicalization's, which ask for the type, and the accesses by theirs. Control flow
   stays as it is, since a caller walks it. */
#include "passes/access/masks.h"

#include "ir/base/vec.h"
#include "passes/simplify/canon.h"

typedef struct Spread {
    Session *s;
    Vec(Op *) todo; /* ops with an operand that is another now */
} Spread;

static void
take(Spread *w, Value *old, Value *by)
{
    value_each_use(old, u) vec_push(&w->s->tmp, &w->todo, u->user);
    if (!by->name)
        by->name = old->name;
    value_replace(old, by);
}

/* An op may stand there twice; one that was erased is in no region. */
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
        take(w, &op->results[0], v);
}

void
mask_is(Session *s, Op *cmp, bool holds)
{
    Spread w = {.s = s};
    Builder b = builder_before(cmp);
    b.loc = cmp->loc;
    take(&w, &cmp->results[0], build_int(&b, cmp->results[0].type, holds));
    for (int i = 0; i < w.todo.n; i++)
        simplify(&w, w.todo.at[i]);
}
