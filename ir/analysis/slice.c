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

/* What op takes, and of what is outside of `whole` those in its bodies. */
static void
push_operands(Slice *sl, const Op *whole, const Op *op, int depth)
{
    for (int i = 0; i < op->noperand; i++) {
        bool inside = false;
        for (int k = 0; k < whole->nregion; k++)
            inside |= !value_outside(op_operand(op, i), whole->regions[k]);
        if (!inside)
            push(sl, op_operand(op, i));
    }
    for (int i = 0; i < op->nregion && depth < MAX_REGION_DEPTH; i++)
        region_each(op->regions[i], in) push_operands(sl, whole, in, depth + 1);
}

/* Of loops and conditions what decides how often they run; of what else has bodies all
   that is in them. */
static void
add_op(Slice *sl, Op *op)
{
    while (op && region_within(op->parent, sl->within) && !slice_has(sl, op)) {
        bool loop = op->kind == OP_FOR, cond = op->kind == OP_IF;
        map_set(&sl->ops, op, op);
        for (int i = 0; i < (loop ? 3 : cond ? 1 : 0); i++)
            push(sl, op_operand(op, i));
        if (!loop && !cond)
            push_operands(sl, op, op, 0);
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
slice_add_operands(Slice *sl, Op *op)
{
    push_operands(sl, op, op, 0);
    return finish(sl);
}

bool
slice_add_control(Slice *sl, Op *op)
{
    add_op(sl, op->parent->parent);
    return finish(sl);
}

static void
clone_condition(const Slice *sl, Builder *b, Op *op, Map *map)
{
    const Type **types = arena_array(sl->arena, const Type *, op->nresult + 1);
    Value **yields = arena_array(sl->arena, Value *, op->nresult + 1);
    int n = 0;
    for (int i = 0; i < op->nresult; i++)
        if (map_has(&sl->values, &op->results[i]))
            types[n++] = op->results[i].type;
    b->loc = op->loc;
    Op *to = build_if(b, value_mapped(map, op_operand(op, 0)), types, n);
    for (int k = 0; k < 2; k++) {
        const Region *from = op->regions[k];
        Builder in = builder_at_end(b->func, to->regions[k]);
        n = 0;
        region_each(from, inner) if (slice_has(sl, inner))
            slice_clone(sl, &in, inner, map);
        for (int i = 0; i < op->nresult; i++)
            if (map_has(&sl->values, &op->results[i]))
                yields[n++] = value_mapped(map, op_operand(from->last, i));
        in.loc = op->loc;
        build_op(&in, OP_YIELD, yields, n, NULL, NULL, 0);
    }
    n = 0;
    for (int i = 0; i < op->nresult; i++)
        if (map_has(&sl->values, &op->results[i]))
            map_set(map, &op->results[i], &to->results[n++]);
}

void
slice_clone(const Slice *sl, Builder *b, Op *op, Map *map)
{
    if (op->kind == OP_IF)
        clone_condition(sl, b, op, map);
    else
        op_clone(b, op, map);
}
