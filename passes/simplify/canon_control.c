/* Control flow and memory accesses with known conditions: if of a constant, loops that
   run never or once, carried values that never change, accesses with a constant mask. */
#include "ir/loop.h"
#include "passes/simplify/canon.h"

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

/* Both arms of an if in a combine function, which runs on lanes of many elements: where
   both may be computed, one is selected. */
static bool
select_arms(Builder *b, Op *op)
{
    const Op *combines = op->parent->parent;
    while (combines && combines->kind == OP_IF)
        combines = combines->parent->parent;
    if (!combines || (combines->kind != OP_REDUCE && combines->kind != OP_SCAN &&
                      combines->kind != OP_BUF_REDUCE))
        return false;
    for (int i = 0; i < 2; i++)
        region_each(op->regions[i], in)
        {
            if (in != op->regions[i]->last && !op_is(in, T_PURE | T_SPEC))
                return false;
        }
    *b = builder_before(op);
    b->loc = op->loc;
    for (int i = 0; i < 2; i++)
        while (op->regions[i]->first != op->regions[i]->last)
            op_move_before(op->regions[i]->first, op);
    for (int i = 0; i < op->nresult; i++)
        value_replace(&op->results[i],
                      build_select(b, op_operand(op, 0),
                                   op_operand(op->regions[0]->last, i),
                                   op_operand(op->regions[1]->last, i)));
    op_erase(op);
    return true;
}

static bool
control_if(Builder *b, Op *op)
{
    Const c;
    if (!value_const(op_operand(op, 0), &c))
        return select_arms(b, op) || same_in_both(op);
    op_splice(op, op->regions[c.i ? 0 : 1]);
    return true;
}

static bool
fixed_carried(Op *op)
{
    Region *body = op->regions[0];
    bool changed = false;
    for (int i = 0; i < op->nresult; i++) {
        Value *arg = body->args[i + 1];
        Value *init = op_operand(op, 3 + i), *next = op_operand(body->last, i);
        if (next != arg && next != init)
            continue;
        bool used = arg->uses && (next != arg || arg->uses->next); /* beside the yield */
        if (used || op->results[i].uses) {
            value_replace(&op->results[i], init);
            value_replace(arg, init);
            op_set_operand(body->last, i, arg);
            changed = true;
        }
    }
    return changed;
}

/* init less lo where both are spelled as one value and a constant. */
static bool
starts_beside(const Value *init, const Value *lo, int64_t *by)
{
    const Op *op = init->op;
    Const c;
    *by = 0;
    if (init == lo)
        return true;
    if (!op || (op->kind != OP_ADD && op->kind != OP_SUB))
        return false;
    bool turned = op->kind == OP_ADD && op_operand(op, 1) == lo;
    if (op_operand(op, turned) != lo || !value_const(op_operand(op, !turned), &c))
        return false;
    *by = op->kind == OP_SUB ? (int64_t)(0 - (uint64_t)c.i) : c.i;
    return true;
}

/* A carried number that runs along with the loop's variable is that variable and a
   constant: what is computed from either is one value then. */
static bool
runs_along(Builder *b, Op *op)
{
    Region *body = op->regions[0];
    Value *lo = op_operand(op, 0), *step = op_operand(op, 2), *iv = body->args[0];
    bool changed = false;
    for (int i = 0; i < op->nresult; i++) {
        Value *arg = body->args[i + 1], *next = op_operand(body->last, i);
        const Op *sum = value_def(next, OP_ADD);
        Const by, t;
        int64_t beside;
        if (!sum || op->results[i].uses || arg->type != iv->type || !arg->uses ||
            (op_operand(sum, 0) != arg && op_operand(sum, 1) != arg))
            continue;
        Value *add = op_operand(sum, op_operand(sum, 0) == arg);
        bool same = add == step || (value_const(add, &by) && value_const(step, &t) &&
                                    by.i == t.i);
        if (!same || !starts_beside(op_operand(op, 3 + i), lo, &beside))
            continue;
        *b = builder_before(body->first);
        b->loc = op->loc;
        value_replace(arg, build_binary(b, OP_ADD, iv, build_int(b, iv->type, beside)));
        op_set_operand(body->last, i, arg);
        changed = true;
    }
    return changed;
}

static bool
control_for(Builder *b, Op *op)
{
    int64_t trips = loop_trips(op);
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
        op_splice(op, body);
        return true;
    }
    bool along = runs_along(b, op);
    return fixed_carried(op) || along;
}

bool
canon_control(Builder *b, Op *op)
{
    if (op->kind == OP_IF)
        return control_if(b, op);
    if (op->kind == OP_FOR)
        return control_for(b, op);
    if (op->kind == OP_WHILE)
        return canon_while(b, op);
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
