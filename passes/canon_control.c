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
    if (span == INT64_MIN) /* by a step of -1 there is no such number */
        return -1;
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

/* What a load gives that touches nothing; NULL where it has to stay. */
static Value *
masked_off(Builder *b, const Op *load)
{
    const Type *t = load->results[0].type;
    if (type_is_ptr(t) || attr_has(&load->attrs, ATTR_VOLATILE))
        return NULL;
    if (load->noperand > 2)
        return op_operand(load, 2);
    return type_is_float(t) ? build_float(b, t, 0) : build_int(b, t, 0);
}

CanonAccess
canon_access(Builder *b, Op *op, Value **gives)
{
    Const c;
    int mask = op->kind == OP_LOAD                                   ? 1
               : op->kind == OP_STORE || op->kind == OP_ATOMIC_RMW ? 2
                                                                     : op->noperand;
    *gives = NULL;
    if (op->noperand <= mask || !value_const(op_operand(op, mask), &c))
        return ACCESS_KEPT;
    if (c.i) {
        while (op->noperand > mask)
            op_drop_operand(op, op->noperand - 1);
        return ACCESS_UNMASKED;
    }
    if (op->kind == OP_LOAD)
        *gives = masked_off(b, op);
    return *gives || !op_has_uses(op) ? ACCESS_NONE : ACCESS_KEPT;
}
