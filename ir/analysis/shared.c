/* A walk from the value towards what made it. Each value is visited once for each stage
   that it was reached with, so loops end. */
#include "ir/analysis/shared.h"

#include "ir/base/vec.h"

typedef struct Step {
    const Value *v;
    int64_t stage; /* picked by a local_index on the way */
    const Op *loop;
    int ahead;
} Step;

typedef struct Walk {
    Arena *arena;
    Vec(Step) steps; /* visited, and to visit */
    Vec(SharedRoot) roots;
} Walk;

static void
go(Walk *w, const Value *v, Step s)
{
    s.v = v;
    for (int i = 0; i < w->steps.n; i++)
        if (w->steps.at[i].v == v && w->steps.at[i].stage == s.stage &&
            w->steps.at[i].loop == s.loop && w->steps.at[i].ahead == s.ahead)
            return;
    vec_push(w->arena, &w->steps, s);
}

static void
go_end(Walk *w, const Region *r, int i, Step s)
{
    if (r->last && i < r->last->noperand)
        go(w, op_operand(r->last, i), s);
}

/* What a region's argument begins with and what the next round brings. */
static void
visit_arg(Walk *w, Step s)
{
    const Region *r = s.v->region;
    const Op *op = r->parent;
    int i = s.v->index;
    if (!op)
        return;
    s.loop = NULL; /* it may be an iteration's that is over */
    switch ((int)op->kind) {
    case OP_FOR:
        go(w, op_operand(op, i + 2), s);
        go_end(w, r, i - 1, s);
        break;
    case OP_WHILE:
        if (r == op->regions[0]) {
            go(w, op_operand(op, i), s);
            go_end(w, op->regions[1], i, s);
        } else {
            go_end(w, op->regions[0], i + 1, s);
        }
        break;
    case OP_WARP_SPECIALIZE: go(w, op_operand(op, i), s); break;
    default: break;
    }
}

static void
visit_result(Walk *w, Step s)
{
    const Op *op = s.v->op, *c;
    int i = s.v->index;
    switch ((int)op->kind) {
    case OP_LOCAL_ALLOC:
    case OP_BAR_ALLOC:
        vec_push(w->arena, &w->roots, ((SharedRoot){op, s.stage, s.loop, s.ahead}));
        break;
    case OP_LOCAL_INDEX:
    case OP_BAR_INDEX:
        c = value_def(op_operand(op, 1), OP_CONST);
        s = (Step){.stage = c ? attr_int(&c->attrs, ATTR_VALUE, 0) : STAGE_ANY};
        if (!c && attr_has(&op->attrs, ATTR_STAGE)) {
            s.loop = op->parent->parent;
            s.ahead = (int)attr_int(&op->attrs, ATTR_STAGE, 0);
        }
        go(w, op_operand(op, 0), s);
        break;
    case OP_LOCAL_TRANS:
    case OP_LOCAL_SLICE: go(w, op_operand(op, 0), s); break;
    case OP_FOR:
        go(w, op_operand(op, i + 3), s);
        go_end(w, op->regions[0], i, s);
        break;
    case OP_WHILE: go_end(w, op->regions[0], i + 1, s); break;
    case OP_IF:
        for (int k = 0; k < op->nregion; k++)
            go_end(w, op->regions[k], i, s);
        break;
    default: break;
    }
}

int
shared_roots(const Value *v, Arena *arena, SharedRoot **out)
{
    Walk w = {.arena = arena};
    go(&w, v, (Step){.stage = STAGE_ANY});
    for (int i = 0; i < w.steps.n; i++) {
        if (w.steps.at[i].v->op)
            visit_result(&w, w.steps.at[i]);
        else
            visit_arg(&w, w.steps.at[i]);
    }
    *out = w.roots.at;
    return w.roots.n;
}
