/* The two last steps of giving layouts. Values that no anchor reached take the layout
   that their users need: layout_backward, from the end of the function to its beginning.
   Then an operand whose layout is not the one that its user needs gets a convert_layout:
   layout_fix. */
#include "passes/layout/layout.h"

#include "ir/plan/scan_plan.h"

bool
layout_backward(Layouts *p, Region *r, int depth)
{
    int before = p->work.n;
    for (Op *op = r->last; op && depth <= MAX_REGION_DEPTH; op = op->prev) {
        for (int i = 0; i < op->nregion; i++)
            layout_backward(p, op->regions[i], depth + 1);
        const Layout *to = op->nresult ? op->results[0].type->layout : NULL;
        bool each = op_is(op, T_ELEMENTWISE);
        if (layout_is_access(op))
            to = op_operand(op, 0)->type->layout;
        else if (!to || (!each && !op_is(op, T_SHAPE)))
            continue;
        const Layout *need =
            each || layout_is_access(op) ? to : layout_operand(p->s, op, to);
        for (int i = 0; need && i < op->noperand; i++)
            layout_give(p, op_operand(op, i), need);
    }
    return p->work.n > before;
}

/* v in layout `to`; a new convert_layout if it has another. */
static Value *
convert(Layouts *p, Builder *b, Value *v, const Layout *to)
{
    const Type *t = type_with_layout(p->s->types, v->type, to);
    if (t == v->type)
        return v;
    Op *op = build_op(b, OP_CONVERT_LAYOUT, &v, 1, NULL, &t, 1);
    vec_push(&p->s->tmp, &p->converts, op);
    return &op->results[0];
}

/* Operations whose result layout `from` follows from their operand: the result is made in
   that layout, and converted to the one that its users expect. */
static void
fix_results(Layouts *p, Op *op, const Layout *from)
{
    Builder b = builder_after(op);
    for (int i = 0; i < op->nresult && from; i++) {
        Value *v = &op->results[i];
        if (!type_is_tile(v->type) || v->type->layout == from)
            continue;
        const Layout *wanted = v->type->layout;
        value_set_type(v, type_with_layout(p->s->types, v->type, from));
        const Type *t = type_with_layout(p->s->types, v->type, wanted);
        Op *c = build_op(&b, OP_CONVERT_LAYOUT, &v, 1, NULL, &t, 1);
        value_replace(v, &c->results[0]);
        op_set_operand(c, 0, v);
        vec_push(&p->s->tmp, &p->converts, c);
    }
}

/* Operand i of op gets the layout of type `like`. */
static void
want(Layouts *p, Op *op, int i, const Type *like)
{
    Builder b = builder_before(op);
    Value *v = op_operand(op, i);
    if (type_is_tile(v->type) && like->layout)
        op_set_operand(op, i, convert(p, &b, v, like->layout));
}

static void
want_all(Layouts *p, Op *op, int first, const Type *like)
{
    for (int i = first; i < op->noperand; i++)
        want(p, op, i, like);
}

/* Operands of a yield or condition take the layouts of the values that they become:
   results of the op around it, or arguments of the next iteration. */
static void
fix_terminator(Layouts *p, Op *op)
{
    const Op *up = op->parent->parent;
    if (!up || (up->kind != OP_FOR && up->kind != OP_IF && up->kind != OP_WHILE))
        return;
    int first = op->kind == OP_CONDITION;
    for (int i = first; i < op->noperand; i++) {
        const Type *t = up->kind == OP_WHILE && !first ? up->regions[0]->args[i]->type
                                                       : up->results[i - first].type;
        want(p, op, i, t);
    }
}

static void
fix_dot(Layouts *p, Op *op)
{
    const DotPlan *plan = map_get(&p->dots, op);
    Builder b = builder_before(op);
    if (plan->a)
        op_set_operand(op, 0, convert(p, &b, op_operand(op, 0), plan->a));
    if (plan->b)
        op_set_operand(op, 1, convert(p, &b, op_operand(op, 1), plan->b));
    op_set_operand(op, 2, convert(p, &b, op_operand(op, 2), plan->acc));
    fix_results(p, op, plan->acc);
}

/* A scan takes shuffles for each run of neighbours that a thread has. Where there are
   many runs, the tile is exchanged for one with a run per thread, and back. */
static void
fix_scan(Layouts *p, Op *op)
{
    const Type *t = op_operand(op, 0)->type;
    const Layout *l = t->layout, *first = scan_axis_first(p->s, op);
    int64_t moves = 0;
    for (int i = 0; i < op->noperand; i++)
        moves += layout_exchange_cost(op_operand(op, i)->type, l, first) *
                 (1 + (op->results[i].uses != NULL));
    if (moves + layout_scan_cost(p, op, first) < layout_scan_cost(p, op, l))
        t = type_with_layout(p->s->types, t, first);
    want_all(p, op, 0, t);
    fix_results(p, op, t->layout);
}

/* Pairs are joined and split in the registers of a thread: the layout of one side follows
   from the other, or else that of the whole tile does from a half of it, and the whole is
   converted, which no two threads do in turns. */
static void
fix_join(Layouts *p, Op *op)
{
    const Layout *half = layout_split(p->s, op->results[0].type->layout);
    if (!half)
        half = op_operand(op, 0)->type->layout;
    const Type *t = type_with_layout(p->s->types, op_operand(op, 0)->type, half);
    want_all(p, op, 0, t);
    if (half != layout_split(p->s, op->results[0].type->layout))
        fix_results(p, op, layout_join(p->s, half));
}

static void
fix_split(Layouts *p, Op *op)
{
    const Type *t = op_operand(op, 0)->type;
    if (!layout_split(p->s, t->layout)) {
        const Layout *whole = layout_join(p->s, op->results[0].type->layout);
        t = type_with_layout(p->s->types, t, whole);
        want(p, op, 0, t);
    }
    fix_results(p, op, layout_split(p->s, t->layout));
}

/* A value that a loop carries has one layout: that of the argument inside, where the work
   is. Results may have got another one from their users behind the loop, and initial
   values from their own computation; both are adapted. */
static void
fix_carried(Layouts *p, Op *op)
{
    const Region *body = op->kind == OP_FOR ? op->regions[0] : op->regions[1];
    int first = op->kind == OP_FOR;
    for (int i = 0; i < op->nresult; i++)
        value_set_type(&op->results[i], body->args[i + first]->type);
    first = op->kind == OP_FOR ? 3 : 0;
    for (int i = first; i < op->noperand; i++)
        want(p, op, i, op->regions[0]->args[i - first + (op->kind == OP_FOR)]->type);
}

void
layout_fix(Layouts *p, Op *op)
{
    if (layout_is_access(op)) {
        want_all(p, op, 1, op_operand(op, 0)->type);
        fix_results(p, op, op_operand(op, 0)->type->layout);
    } else if (op->kind == OP_FOR || op->kind == OP_WHILE) {
        fix_carried(p, op);
    } else if (op->kind == OP_REDUCE) {
        int axis = (int)attr_int(&op->attrs, ATTR_AXIS, 0);
        const Type *t = op_operand(op, 0)->type;
        want_all(p, op, 1, t);
        fix_results(p, op, t->rank > 1 ? layout_slice(p->s, t->layout, axis) : NULL);
    } else if (op->kind == OP_ASSERT) {
        want_all(p, op, 1, op_operand(op, 0)->type);
    } else if (op->kind == OP_SCAN) {
        fix_scan(p, op);
    } else if (op->kind == OP_DOT) {
        fix_dot(p, op);
    } else if (op->kind == OP_JOIN && type_is_tile(op_operand(op, 0)->type)) {
        fix_join(p, op);
    } else if (op->kind == OP_SPLIT && type_is_tile(op->results[0].type)) {
        fix_split(p, op);
    } else if (op_is(op, T_TERMINATOR)) {
        fix_terminator(p, op);
    } else if (op->nresult && type_is_tile(op->results[0].type) &&
               op->kind != OP_CONVERT_LAYOUT) {
        const Type *t = op->results[0].type;
        const Layout *need = op_is(op, T_ELEMENTWISE) ? t->layout
                             : op_is(op, T_SHAPE) ? layout_operand(p->s, op, t->layout)
                                                  : NULL;
        Builder b = builder_before(op);
        for (int i = 0; need && i < op->noperand; i++)
            if (type_is_tile(op_operand(op, i)->type))
                op_set_operand(op, i, convert(p, &b, op_operand(op, i), need));
        if (op->kind == OP_ASM_EFFECT)
            fix_results(p, op, need);
    }
}
