/* Loops and branches. */
#include "tests/interp/machine.h"

#include <stdlib.h>
#include <string.h>

/* Is an operand of the terminator, behind number `first + i`, the place that number i
   goes to? Then it must be read before. */
static bool
crosses(const Op *end, int first, Value *const *to, int n)
{
    for (int i = 0; i < n; i++)
        for (int k = i + 1; k < n; k++)
            if (op_operand(end, first + k) == to[i])
                return true;
    return false;
}

/* Operands of a region's terminator from `first` on to `to`, as if all moved at once. */
static bool
pass_on(Machine *m, const Region *r, int first, Value *const *to, int n)
{
    const Op *end = r->last;
    if (!crosses(end, first, to, n)) {
        for (int i = 0; i < n; i++)
            if (op_operand(end, first + i) != to[i] &&
                !slot_copy(m, machine_slot(m, to[i]),
                           machine_slot(m, op_operand(end, first + i))))
                return false;
        return true;
    }
    Slot *copy = calloc((size_t)n, sizeof *copy);
    bool ok = copy || machine_stop(m, INTERP_LIMIT, end, "out of memory");
    for (int i = 0; ok && i < n; i++)
        ok = slot_copy(m, &copy[i], machine_slot(m, op_operand(end, first + i)));
    for (int i = 0; ok && i < n; i++)
        ok = slot_copy(m, machine_slot(m, to[i]), &copy[i]);
    for (int i = 0; copy && i < n; i++)
        free(copy[i].cell);
    free(copy);
    return ok;
}

static bool
copy_value(Machine *m, const Value *to, const Value *from)
{
    return slot_copy(m, machine_slot(m, to), machine_slot(m, from));
}

/* Counts as mathematics does: a bound near the end of the type ends the loop. */
static bool
run_for(Machine *m, const Op *op)
{
    const Region *r = op->regions[0];
    int64_t i = machine_scalar(m, op_operand(op, 0));
    int64_t hi = machine_scalar(m, op_operand(op, 1));
    int64_t step = machine_scalar(m, op_operand(op, 2));
    if (step == 0)
        return machine_stop(m, INTERP_ASSERT, op, "the step is 0");
    for (int k = 0; k < op->nresult; k++)
        if (!copy_value(m, r->args[1 + k], op_operand(op, 3 + k)))
            return false;
    while (step > 0 ? i < hi : i > hi) {
        uint64_t *cell = machine_write(m, r->args[0], 1);
        if (!cell)
            return false;
        *cell = (uint64_t)i;
        if (!machine_region(m, r) || !pass_on(m, r, 0, r->args + 1, op->nresult))
            return false;
        if (__builtin_add_overflow(i, step, &i))
            break;
    }
    for (int k = 0; k < op->nresult; k++)
        if (!copy_value(m, &op->results[k], r->args[1 + k]))
            return false;
    return true;
}

static bool
run_while(Machine *m, const Op *op)
{
    const Region *test = op->regions[0], *body = op->regions[1];
    for (int k = 0; k < op->noperand; k++)
        if (!copy_value(m, test->args[k], op_operand(op, k)))
            return false;
    for (;;) {
        if (!machine_region(m, test))
            return false;
        if (!(machine_scalar(m, op_operand(test->last, 0)) & 1))
            break;
        if (!pass_on(m, test, 1, body->args, body->narg) || !machine_region(m, body) ||
            !pass_on(m, body, 0, test->args, test->narg))
            return false;
    }
    for (int k = 0; k < op->nresult; k++)
        if (!copy_value(m, &op->results[k], op_operand(test->last, 1 + k)))
            return false;
    return true;
}

static bool
run_if(Machine *m, const Op *op)
{
    bool yes = machine_scalar(m, op_operand(op, 0)) & 1;
    const Region *r = op->regions[yes ? 0 : 1];
    if (!machine_region(m, r))
        return false;
    for (int k = 0; k < op->nresult; k++)
        if (!copy_value(m, &op->results[k], op_operand(r->last, k)))
            return false;
    return true;
}

bool
run_control(Machine *m, const Op *op)
{
    switch ((int)op->kind) {
    case OP_FOR: return run_for(m, op);
    case OP_WHILE: return run_while(m, op);
    default: return run_if(m, op);
    }
}
