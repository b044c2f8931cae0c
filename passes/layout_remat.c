/* Computing again instead of exchanging: a conversion of a value that is cheap to compute
   (indices, masks, constants) becomes the same computation in the layout wanted. */
#include "passes/layout.h"

enum { REMAT_DEPTH = 64 };

static bool
is_cheap(const Op *op)
{
    switch ((int)op->kind) {
    case OP_CONST:
    case OP_UNDEF:
    case OP_ARANGE:
    case OP_SPLAT:
    case OP_BROADCAST:
    case OP_EXPAND_DIMS:
    case OP_TRANS:
    case OP_CONVERT_LAYOUT: return true;
    case OP_RESHAPE: return !type_is_tile(op_operand(op, 0)->type);
    default: return op_is(op, T_PURE | T_ELEMENTWISE);
    }
}

static bool
can_remat(const Value *v, int depth)
{
    const Op *op = v->op;
    if (!type_is_tile(v->type))
        return true;
    if (!op || depth > REMAT_DEPTH || !is_cheap(op))
        return false;
    for (int i = 0; i < op->noperand; i++)
        if (!can_remat(op_operand(op, i), depth + 1))
            return false;
    return true;
}

static Value *
remat(Layouts *p, Builder *b, Value *v, const Layout *to, int depth)
{
    Op *op = v->op;
    Value *in[8];
    if (!type_is_tile(v->type) || v->type->layout == to || depth > REMAT_DEPTH)
        return v;
    if (op->kind == OP_CONVERT_LAYOUT)
        return remat(p, b, op_operand(op, 0), to, depth + 1);
    const Layout *need = op_is(op, T_ELEMENTWISE) ? to : layout_operand(p->s, op, to);
    if (op->noperand > 8)
        return v;
    for (int i = 0; i < op->noperand; i++)
        in[i] =
            need ? remat(p, b, op_operand(op, i), need, depth + 1) : op_operand(op, i);
    const Type *t = type_with_layout(p->s->types, v->type, to);
    b->loc = op->loc;
    Value *r = &build_op(b, op->kind, in, op->noperand, &op->attrs, &t, 1)->results[0];
    r->name = v->name;
    return r;
}

void
layout_remat(Layouts *p)
{
    for (int i = p->converts.n - 1; i >= 0; i--) {
        Op *c = p->converts.at[i];
        Value *v = op_operand(c, 0);
        const Layout *to = c->results[0].type->layout;
        if (layout_conversion(v->type->layout, to).kind <= CONV_REG || !can_remat(v, 0))
            continue;
        Builder b = builder_before(c);
        value_replace(&c->results[0], remat(p, &b, v, to, 0));
        op_erase(c);
    }
}
