/* Control flow and memory accesses with known conditions: if of a constant, loops that
   run never or once, carried values that never change, accesses with a constant mask. */
#include "passes/canon.h"

/* Moves the ops of `from` (less its terminator) before `op`, whose results become the
   terminator's values. */
static void
splice(Op *op, Region *from)
{
    Op *end = from->last;
    region_each(from, in)
    {
        if (in != end)
            op_move_before(in, op);
    }
    for (int i = 0; i < op->nresult; i++)
        value_replace(&op->results[i], op_operand(end, i));
    op_erase(op);
}

static bool
same_in_both(Op *op)
{
    bool changed = false;
    for (int i = 0; i < op->nresult; i++) {
        Value *x = op_operand(op->regions[0]->last, i);
        Value *y = op_operand(op->regions[1]->last, i);
        if (x == y && value_outside(x, op->regions[0]) && op->results[i].uses) {
            value_replace(&op->results[i], x);
            changed = true;
        }
    }
    return changed;
}

static bool
control_if(Op *op)
{
    Const c;
    if (!value_const(op_operand(op, 0), &c))
        return same_in_both(op);
    splice(op, op->regions[c.i ? 0 : 1]);
    return true;
}

/* Trips of a loop with constant bounds; -1 when not known. */
static int64_t
trip_count(const Op *op)
{
    Const lo, hi, step;
    if (!value_const(op_operand(op, 0), &lo) || !value_const(op_operand(op, 1), &hi) ||
        !value_const(op_operand(op, 2), &step) || step.i == 0)
        return -1;
    int64_t span;
    if (__builtin_sub_overflow(hi.i, lo.i, &span))
        return -1;
    if (step.i < 0 ? span >= 0 : span <= 0)
        return 0;
    return span / step.i + (span % step.i != 0);
}

static bool
fixed_carried(Op *op)
{
    Region *body = op->regions[0];
    bool changed = false;
    for (int i = 0; i < op->nresult; i++) {
        Value *arg = body->args[i + 1];
        Value *init = op_operand(op, 3 + i);
        if (op_operand(body->last, i) != arg)
            continue;
        if (arg->uses->next || op->results[i].uses) { /* a use beside the yield's */
            value_replace(&op->results[i], init);
            value_replace(arg, init);
            op_set_operand(body->last, i, arg);
            changed = true;
        }
    }
    return changed;
}

static bool
control_for(Op *op)
{
    int64_t trips = trip_count(op);
    Region *body = op->regions[0];
    if (trips == 0) {
        for (int i = 0; i < op->nresult; i++)
            value_replace(&op->results[i], op_operand(op, 3 + i));
        op_erase(op);
        return true;
    }
    if (trips == 1) {
        for (int i = 0; i < body->narg; i++)
            value_replace(body->args[i], op_operand(op, i == 0 ? 0 : 2 + i));
        splice(op, body);
        return true;
    }
    return fixed_carried(op);
}

bool
canon_control(Builder *b, Op *op)
{
    (void)b;
    if (op->kind == OP_IF)
        return control_if(op);
    if (op->kind == OP_FOR)
        return control_for(op);
    if (op->kind == OP_ASSUME && value_is_int(op_operand(op, 0), 1)) {
        op_erase(op);
        return true;
    }
    return false;
}

static bool
memory_load(Builder *b, Op *op)
{
    Const c;
    if (op->noperand < 2 || !value_const(op_operand(op, 1), &c))
        return false;
    if (c.i) {
        if (op->noperand > 2)
            op_drop_operand(op, 2);
        op_drop_operand(op, 1);
        return true;
    }
    const Type *t = op->results[0].type;
    if (type_is_ptr(t) || attr_has(&op->attrs, ATTR_VOLATILE))
        return false;
    Value *none = op->noperand > 2   ? op_operand(op, 2)
                  : type_is_float(t) ? build_float(b, t, 0)
                                     : build_int(b, t, 0);
    value_replace(&op->results[0], none);
    op_erase(op);
    return true;
}

bool
canon_memory(Builder *b, Op *op)
{
    Const c;
    if (op->kind == OP_LOAD)
        return memory_load(b, op);
    if (op->kind != OP_STORE || op->noperand < 3 || !value_const(op_operand(op, 2), &c))
        return false;
    if (c.i)
        op_drop_operand(op, 2);
    else
        op_erase(op);
    return true;
}
