/* From an address back to the parameter; see ir/analysis/param.h. */
#include "ir/analysis/param.h"

enum { FAR = 200 };

static bool
keeps_param(const Op *op)
{
    switch ((int)op->kind) {
    case OP_ADDPTR:
    case OP_SPLAT:
    case OP_BROADCAST:
    case OP_EXPAND_DIMS:
    case OP_HINT:
    case OP_RESHAPE:
    case OP_TRANS:
    case OP_CONVERT_LAYOUT:
    case OP_MAKE_DESC: return true;
    default: return false;
    }
}

Value *
param_of(Value *v)
{
    for (int i = 0; i < FAR; i++) {
        Op *op = v->op;
        if (!op) {
            Op *home = v->region->parent;
            if (!home)
                return v;
            if (home->kind != OP_FOR || !v->index)
                return NULL;
            v = op_operand(home, v->index + 2);
        } else if (op->kind == OP_FOR) {
            v = op_operand(op, v->index + 3);
        } else if (keeps_param(op)) {
            v = op_operand(op, 0);
        } else {
            return NULL;
        }
    }
    return NULL;
}
