/* See ir/analysis/natural.h. */
#include "ir/analysis/natural.h"

enum { FAR = 16 };

static bool
is_natural(Axis *axis, const Value *v, int depth)
{
    const Op *op = v->op;
    if (axis_of(axis, v)->lo >= 0)
        return true;
    if (depth > FAR)
        return false;
    if (!op) { /* a loop's variable runs up from its first value */
        const Op *loop = v->region->parent;
        return loop && loop->kind == OP_FOR && v->index == 0 &&
               axis_of(axis, op_operand(loop, 2))->lo > 0 &&
               is_natural(axis, op_operand(loop, 0), depth + 1);
    }
    switch ((int)op->kind) {
    case OP_ADD:
    case OP_MUL:
    case OP_MINS:
        return is_natural(axis, op_operand(op, 0), depth + 1) &&
               is_natural(axis, op_operand(op, 1), depth + 1);
    case OP_MAXS:
        return is_natural(axis, op_operand(op, 0), depth + 1) ||
               is_natural(axis, op_operand(op, 1), depth + 1);
    case OP_DIVS:
    case OP_REMS:
    case OP_SHL:
    case OP_SHRS:
    case OP_SEXT:
    case OP_SPLAT:
    case OP_BROADCAST:
    case OP_EXPAND_DIMS:
    case OP_HINT: return is_natural(axis, op_operand(op, 0), depth + 1);
    default: return false;
    }
}

bool
natural_is(Axis *axis, const Value *v)
{
    return is_natural(axis, v, 0);
}
