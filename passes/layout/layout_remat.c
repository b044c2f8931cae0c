/* Computing again instead of exchanging: a conversion of a value that is cheap to compute
   (indices, masks, constants) becomes the same computation in the layout wanted. So are
   vectors of few elements a thread loaded again, where the load stands: those are in the
   first cache then, and an exchange takes a barrier. Not where dots are, whose loads
   are pipelined and are read out of shared memory in any layout
   (passes/schedule/stage_read.c). */
#include "passes/layout/layout.h"

enum { REMAT_DEPTH = 64, LOAD_REGS = 16 };

static bool
is_short_load(const Op *op, const Layout *to)
{
    return op->kind == OP_LOAD && op->results[0].type->rank == 1 &&
           !attr_has(&op->attrs, ATTR_VOLATILE) && layout_regs(to) <= LOAD_REGS &&
           !region_has(op->parent, OP_DOT);
}

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

/* The layout in which op needs its operands for a result in layout `to`. */
static const Layout *
needed(Layouts *p, const Op *op, const Layout *to)
{
    bool same = op_is(op, T_ELEMENTWISE) || op->kind == OP_LOAD;
    return same ? to : layout_operand(p->s, op, to);
}

static bool
can_remat(Layouts *p, const Value *v, const Layout *to, int depth)
{
    const Op *op = v->op;
    if (!type_is_tile(v->type))
        return true;
    if (!op || depth > REMAT_DEPTH || (!is_cheap(op) && (!to || !is_short_load(op, to))))
        return false;
    if (op->kind == OP_CONVERT_LAYOUT)
        return can_remat(p, op_operand(op, 0), to, depth + 1);
    const Layout *need = to ? needed(p, op, to) : NULL;
    for (int i = 0; i < op->noperand; i++)
        if (!can_remat(p, op_operand(op, i), need, depth + 1))
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
    const Layout *need = needed(p, op, to);
    if (op->noperand > 8)
        return v;
    Builder at = builder_before(op);
    b = op->kind == OP_LOAD ? &at : b;
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
        if (layout_conversion(v->type->layout, to).kind <= CONV_REG ||
            !can_remat(p, v, to, 0))
            continue;
        Builder b = builder_before(c);
        value_replace(&c->results[0], remat(p, &b, v, to, 0));
        op_erase(c);
    }
}
