/* Carries layouts along the data, from values that have one to values that do not. The
   worklist holds each value once, when it gets its layout, and the first layout stays; so
   the order of the anchors decides, and the walk ends. */
#include "passes/layout/layout.h"

void
layout_give(Layouts *p, Value *v, const Layout *l)
{
    if (!type_is_tile(v->type) || v->type->layout || !l)
        return;
    value_set_type(v, type_with_layout(p->s->types, v->type, l));
    vec_push(&p->s->tmp, &p->work, v);
}

const Layout *
layout_operand(Session *s, const Op *op, const Layout *to)
{
    const Type *t = op->noperand ? op_operand(op, 0)->type : NULL;
    const Layout *from = to;
    if (!t || !type_is_tile(t))
        return NULL;
    switch ((int)op->kind) {
    case OP_BROADCAST:
        for (int i = 0; i < t->rank; i++)
            if (t->shape[i] == 1 && to->log_shape[i])
                from = layout_squash(s, from, i);
        return from;
    case OP_EXPAND_DIMS:
        return layout_slice(s, to, (int)attr_int(&op->attrs, ATTR_AXIS, 0));
    case OP_RESHAPE: return layout_reshape(s, to, t->rank, t->shape);
    case OP_TRANS: {
        const Attr *perm = attr_find(&op->attrs, ATTR_PERM);
        int64_t back[MAX_RANK];
        for (int i = 0; i < t->rank; i++)
            back[perm->v.ints[i]] = i;
        return layout_trans(s, to, back);
    }
    case OP_JOIN: return layout_split(s, to);
    default: return NULL;
    }
}

/* The layout in which the user makes its results when the used operand has layout l; NULL
   when the one says nothing about the other. */
static const Layout *
result_layout(Layouts *p, const Use *u, const Layout *l)
{
    const Op *op = u->user;
    if (op_is(op, T_ELEMENTWISE))
        return l;
    switch ((int)op->kind) {
    case OP_REDUCE:
        return l->rank > 1
                   ? layout_slice(p->s, l, (int)attr_int(&op->attrs, ATTR_AXIS, 0))
                   : NULL;
    case OP_SCAN: return l;
    case OP_TRANS: return layout_trans(p->s, l, attr_find(&op->attrs, ATTR_PERM)->v.ints);
    case OP_RESHAPE: {
        const Type *t = op->results[0].type;
        return type_is_tile(t) ? layout_reshape(p->s, l, t->rank, t->shape) : NULL;
    }
    case OP_JOIN: return layout_join(p->s, l);
    case OP_SPLIT: return layout_split(p->s, l);
    default: return NULL;
    }
}

/* Carried value i of a for or an if: gives l to its result, argument, initial value and
   yielded values. */
static void
give_carried(Layouts *p, Op *op, int i, const Layout *l)
{
    if (i < 0)
        return;
    if (op->kind == OP_FOR && i < op->nresult) {
        layout_give(p, &op->results[i], l);
        layout_give(p, op->regions[0]->args[i + 1], l);
        layout_give(p, op_operand(op, i + 3), l);
        if (op->regions[0]->last)
            layout_give(p, op_operand(op->regions[0]->last, i), l);
    } else if (op->kind == OP_IF && i < op->nresult) {
        layout_give(p, &op->results[i], l);
        for (int k = 0; k < op->nregion; k++)
            if (op->regions[k]->last && op->regions[k]->last->noperand > i)
                layout_give(p, op_operand(op->regions[k]->last, i), l);
    }
}

/* Value i that the condition of a while passes on: gives l to the result, the argument of
   the body and the operand of `condition`. */
static void
give_condition(Layouts *p, Op *op, int i, const Layout *l)
{
    Op *cond = op->regions[0]->last;
    if (i < 0 || i >= op->nresult)
        return;
    layout_give(p, &op->results[i], l);
    layout_give(p, op->regions[1]->args[i], l);
    if (cond)
        layout_give(p, op_operand(cond, i + 1), l);
}

/* Value i that a while begins an iteration with: gives l to the initial value, the
   argument of the condition and the value that the body yields. */
static void
give_while(Layouts *p, Op *op, int i, const Layout *l)
{
    if (i < 0 || i >= op->noperand)
        return;
    layout_give(p, op_operand(op, i), l);
    layout_give(p, op->regions[0]->args[i], l);
    if (op->regions[1]->last)
        layout_give(p, op_operand(op->regions[1]->last, i), l);
}

/* May a layout that flows now enter the loop? While those of dots flow, only loops that
   have dots take them. A loop without dots that adds loaded tiles to an accumulator works
   in the layout of its loads: then the accumulator is converted once, in front of the
   loop, and not the loaded tiles in every iteration. */
static bool
may_enter(const Layouts *p, const Op *loop)
{
    return !p->dots_only || loop->kind != OP_FOR ||
           region_has_trait(loop->regions[0], T_DOT);
}

/* Gives the layout of v to what v is carried with, and to results of its users. */
static void
flow_from(Layouts *p, Value *v, bool data)
{
    const Layout *l = v->type->layout;
    Op *home = v->op ? v->op : v->region->parent;
    bool wait = v->op && home && !may_enter(p, home);
    value_each_use(v, u) wait |= !may_enter(p, u->user);
    if (wait)
        vec_push(&p->s->tmp, &p->later, v);
    /* a constant can have any layout, so its own is no reason for others */
    data &= !v->op || (v->op->kind != OP_CONST && v->op->kind != OP_SPLAT);
    if (home && v->op && home->kind == OP_WHILE)
        give_condition(p, home, v->index, l);
    else if (home && v->op && may_enter(p, home))
        give_carried(p, home, v->index, l);
    else if (home && !v->op && home->kind == OP_FOR)
        give_carried(p, home, v->index - 1, l);
    else if (home && home->kind == OP_WHILE && v->region == home->regions[0])
        give_while(p, home, v->index, l);
    else if (home && home->kind == OP_WHILE)
        give_condition(p, home, v->index, l);
    value_each_use(v, u)
    {
        Op *op = u->user, *up = op->parent->parent;
        if (op->kind == OP_FOR && may_enter(p, op))
            give_carried(p, op, u->index - 3, l);
        else if (op->kind == OP_FOR)
            continue;
        else if (op->kind == OP_WHILE)
            give_while(p, op, u->index, l);
        else if (op->kind == OP_CONDITION && up)
            give_condition(p, up, u->index - 1, l);
        else if (op->kind == OP_YIELD && up && up->kind == OP_WHILE)
            give_while(p, up, u->index, l);
        else if (op->kind == OP_YIELD && up)
            give_carried(p, up, u->index, l);
        else if (data && result_layout(p, u, l))
            for (int i = 0; i < op->nresult; i++)
                layout_give(p, &op->results[i], result_layout(p, u, l));
    }
}

void
layout_flow(Layouts *p, bool data)
{
    for (int i = 0; i < p->work.n; i++)
        flow_from(p, p->work.at[i], data);
    p->work.n = 0;
}

void
layout_flow_later(Layouts *p)
{
    for (int i = 0; i < p->later.n; i++)
        vec_push(&p->s->tmp, &p->work, p->later.at[i]);
    p->later.n = 0;
    layout_flow(p, true);
}
