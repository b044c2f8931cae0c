/* From an address back to the parameter; see ir/analysis/param.h. */
#include "ir/analysis/param.h"

#include "ir/base/util.h"
#include "ir/edit.h"

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
    case OP_MAKE_DESC:
    case OP_TENSOR_MAP: return true;
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

/* Nobody writes such an op: passes do, for copies and for dots. */
static bool
waits_for_copies(const Op *op)
{
    return opkind_waits(op->kind) || op_is(op, T_SM90) || op_is(op, T_SM90A);
}

static void
add_writes(Writes *w, const Op *op, int depth)
{
    Effect e;
    w->all |= op_acquires(op);
    for (int i = 0; i < 2 && opkind_effect(op->kind, i, &e); i++) {
        w->ordered |= e.resource == RES_ANY && !waits_for_copies(op);
        if (e.resource != RES_GLOBAL || !(e.kind & ACC_WRITE))
            continue;
        const Value *to = param_of(op_operand(op, e.operand));
        bool known = false;
        for (int k = 0; k < w->n; k++)
            known |= w->to[k] == to;
        if (to && !known && w->n < COUNT_OF(w->to))
            w->to[w->n++] = to;
        else
            w->all |= !known;
    }
    for (int i = 0; i < op->nregion; i++)
        region_each(op->regions[i], in)
        {
            if (depth < MAX_REGION_DEPTH)
                add_writes(w, in, depth + 1);
            else
                w->all = true;
        }
}

void
writes_add(Writes *w, const Op *op)
{
    add_writes(w, op, 0);
}

bool
writes_reach(const Writes *w, Value *address)
{
    const Value *from = param_of(address);
    bool reach = w->all || (w->n && !from);
    for (int i = 0; i < w->n; i++)
        reach |= w->to[i] == from;
    return reach;
}

/* What an address is made from, whatever that is. */
static Value *
root_of(Value *v)
{
    for (int i = 0; i < FAR; i++) {
        Op *op = v->op, *home = op ? NULL : v->region->parent;
        if (op && op->kind == OP_FOR)
            v = op_operand(op, v->index + 3);
        else if (home && home->kind == OP_FOR && v->index)
            v = op_operand(home, v->index + 2);
        else if (op && (keeps_param(op) || op->kind == OP_INTTOPTR ||
                        (op->kind == OP_BITCAST && v->type->kind == TY_PTR)))
            v = op_operand(op, 0);
        else
            return v;
    }
    return v;
}

Origin
origin_of(const Value *v)
{
    enum { MOST = 4 };
    for (int loads = 0; loads < MOST; loads++) {
        v = root_of((Value *)v);
        if (!v->op && !v->region->parent)
            return (Origin){v, loads};
        if (!v->op || v->op->kind != OP_LOAD || type_is_tile(v->type))
            break;
        v = op_operand(v->op, 0);
    }
    return (Origin){0};
}

/* A list of addresses may name a parameter's memory, which is not asked for its own. */
bool
origin_may_be(Origin to, Origin from)
{
    if (!to.param || (to.loads && !from.loads))
        return true;
    return to.param == from.param && to.loads == from.loads;
}

static bool
writes(const Op *op, Origin from, int depth)
{
    Effect e;
    for (int i = 0; i < 2 && opkind_effect(op->kind, i, &e); i++) {
        if (e.resource != RES_GLOBAL || !(e.kind & ACC_WRITE))
            continue;
        if (origin_may_be(origin_of(op_operand(op, e.operand)), from))
            return true;
    }
    for (int i = 0; i < op->nregion; i++)
        for (const Op *in = op->regions[i]->first; in; in = in->next)
            if (depth > MAX_REGION_DEPTH || writes(in, from, depth + 1))
                return true;
    return false;
}

bool
origin_written_before(const Op *op, Origin from)
{
    for (const Op *at = op; at; at = at->parent->parent) {
        const Op *up = at->parent->parent;
        bool again = up && (up->kind == OP_FOR || up->kind == OP_WHILE);
        for (const Op *in = at->parent->first; in && (again || in != at); in = in->next)
            if (in != op && writes(in, from, 0))
                return true;
    }
    return false;
}
