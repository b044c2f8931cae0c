/* How large the blocks of a descriptor are. Blocks lie side by side as a rule: an offset
   is a multiple of the block's extent, `pid * BLOCK`, or steps by it in a loop over
   range(0, n, BLOCK). */
#include "frontend/use_walk.h"

#include <string.h>

enum { MAX_STEPS_BACK = 12 };

static Evidence *extent_of(Walk *w, const Node *e, Inst *at, int steps);

static Evidence *
extent_of_name(Walk *w, const Node *e, Inst *at, int steps)
{
    Evidence *u = use_name(w, at, e->name, false), *found = NULL;
    if (u && u->step)
        found = extent_of(w, u->step, u->step_at, steps - 1);
    for (const EvidenceDef *d = u ? u->defs : NULL; d && !found; d = d->next)
        if (d->e)
            found = extent_of(w, d->e, d->at, steps - 1);
    return found;
}

/* The name itself when it is a constexpr parameter of the kernel. */
static Evidence *
constant(Walk *w, const Node *e, Inst *at, int steps)
{
    if (!e || e->kind != ND_NAME || !steps)
        return NULL;
    Evidence *u = use_name(w, at, e->name, false);
    if (u && u->param)
        return u->constexpr_ ? u : NULL;
    bool one = u && u->defs && !u->defs->next;
    return one ? constant(w, u->defs->e, u->defs->at, steps - 1) : NULL;
}

static Evidence *
extent_of(Walk *w, const Node *e, Inst *at, int steps)
{
    if (!e || steps <= 0 || !use_step(w))
        return NULL;
    Evidence *u = NULL;
    if (e->kind == ND_NAME) {
        u = constant(w, e, at, steps);
        return u ? u : extent_of_name(w, e, at, steps);
    }
    if (e->kind != ND_BINOP)
        return NULL;
    if (e->sub == OS_MUL) {
        u = constant(w, e->b, at, steps);
        return u ? u : constant(w, e->a, at, steps);
    }
    if (e->sub == OS_ADD || e->sub == OS_SUB) {
        u = extent_of(w, e->a, at, steps - 1);
        u = u ? u : extent_of(w, e->b, at, steps - 1);
    }
    return u;
}

void
use_extents(Walk *w, Evidence *desc, const Node *offsets, Inst *at)
{
    for (int i = 0; i < offsets->list.n && i < MAX_EXTENTS; i++)
        if (!desc->extent[i])
            desc->extent[i] = extent_of(w, offsets->list.at[i], at, MAX_STEPS_BACK);
}
