/* From an address back to the parameter; see ir/analysis/param.h. */
#include "ir/analysis/param.h"

#include "ir/op.h"

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

static bool
writes(const Op *op, const Value *param, int depth)
{
    Effect e;
    for (int i = 0; i < 2 && opkind_effect(op->kind, i, &e); i++) {
        if (e.resource != RES_GLOBAL || !(e.kind & ACC_WRITE))
            continue;
        const Value *to = param_of(op_operand(op, e.operand));
        if (!to || to == param)
            return true;
    }
    for (int i = 0; i < op->nregion; i++)
        for (const Op *in = op->regions[i]->first; in; in = in->next)
            if (depth > MAX_REGION_DEPTH || writes(in, param, depth + 1))
                return true;
    return false;
}

bool
param_written_before(const Op *op, const Value *param)
{
    for (const Op *at = op; at; at = at->parent->parent) {
        const Op *up = at->parent->parent;
        bool again = up && (up->kind == OP_FOR || up->kind == OP_WHILE);
        for (const Op *in = at->parent->first; in && (again || in != at); in = in->next)
            if (in != op && writes(in, param, 0))
                return true;
    }
    return false;
}
