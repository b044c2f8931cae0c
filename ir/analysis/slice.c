/* See slice.h. Values wait in a list, so no chain is too long to follow. */
#include "ir/analysis/slice.h"

#include "ir/edit.h"

void
slice_init(Slice *sl, Arena *arena, const Region *within, SliceEnter *enter, void *user)
{
    *sl = (Slice){.arena = arena, .within = within, .enter = enter, .user = user};
    map_init(&sl->ops, arena);
    map_init(&sl->values, arena);
}

static void
push(Slice *sl, Value *v)
{
    if (!value_outside(v, sl->within))
        vec_push(sl->arena, &sl->work, v);
}

/* What a body of `whole` uses of outside of it. */
static void
push_captured(Slice *sl, const Op *whole, const Region *r, int depth)
{
    for (const Op *op = r->first; op && depth < MAX_REGION_DEPTH; op = op->next) {
        for (int i = 0; i < op->noperand; i++) {
            bool inside = false;
            for (int k = 0; k < whole->nregion; k++)
                inside |= !value_outside(op_operand(op, i), whole->regions[k]);
            if (!inside)
                push(sl, op_operand(op, i));
        }
        for (int i = 0; i < op->nregion; i++)
            push_captured(sl, whole, op->regions[i], depth + 1);
    }
}

/* Of loops and conditions what decides how often they run; of what else has bodies all
   that is in them. */
static void
add_op(Slice *sl, Op *op)
{
    while (op && region_within(op->parent, sl->within) && !slice_has(sl, op)) {
        bool loop = op->kind == OP_FOR, cond = op->kind == OP_IF;
        map_set(&sl->ops, op, op);
        for (int i = 0; i < (loop ? 3 : op->noperand); i++)
            push(sl, op_operand(op, i));
        for (int i = 0; i < op->nregion && !loop && !cond; i++)
            push_captured(sl, op, op->regions[i], 0);
        op = op->parent->parent;
    }
}

static void
add_value(Slice *sl, Value *v)
{
    Op *op = v->op ? v->op : v->region->parent;
    bool loop = op && op->kind == OP_FOR, carried = loop && (v->op || v->index);
    int i = v->op ? v->index : v->index - 1;
    if (carried)
        v = op->regions[0]->args[i + 1];
    if (map_has(&sl->values, v))
        return;
    map_set(&sl->values, v, v);
    if (sl->enter && !sl->enter(sl, v))
        return;
    add_op(sl, op);
    if (carried) {
        push(sl, op_operand(op, i + 3));
        push(sl, op_operand(op->regions[0]->last, i));
    }
    for (int k = 0; k < 2 && v->op && op->kind == OP_IF; k++)
        push(sl, op_operand(op->regions[k]->last, i));
}

static bool
finish(Slice *sl)
{
    for (int i = 0; i < sl->work.n && !sl->why; i++)
        add_value(sl, sl->work.at[i]);
    sl->work.n = 0;
    return !sl->why;
}

bool
slice_add(Slice *sl, Value *v)
{
    push(sl, v);
    return finish(sl);
}

bool
slice_add_control(Slice *sl, Op *op)
{
    add_op(sl, op->parent->parent);
    return finish(sl);
}
