/* Loop-invariant code motion: ops whose operands come from outside a loop move before it.

       for %i = .. {                         %o = add %a, %b : i32
         %o = add %a, %b : i32        =>     for %i = .. {
         ...                                   ...

   Only ops that may be executed when the program would not have (T_SPEC) move: a loop
   can have no iteration at all. A pure structured op (an if of invariants) stays: it
   is small. Loads wait until tiles have layouts (licm_loads.c). Inner loops first, so
   that one visit carries an op out of a whole nest. */
#include "ir/edit.h"
#include "passes/pass.h"
#include "passes/simplify/licm_loads.h"

static bool
invariant(const Op *op, const Region *body)
{
    if (!op_is(op, T_PURE | T_SPEC) || op->nregion)
        return false;
    for (int i = 0; i < op->noperand; i++)
        if (!value_outside(op_operand(op, i), body))
            return false;
    return true;
}

static bool
hoist_from(Op *loop, Region *body)
{
    bool changed = false;
    region_each(body, op)
    {
        if (invariant(op, body)) {
            op_move_before(op, loop);
            changed = true;
        }
    }
    return changed;
}

static bool
visit(void *user, Op *op)
{
    const Func *f = user;
    bool changed = false;
    bool loop = op->kind == OP_FOR || op->kind == OP_WHILE;
    bool combine = op->kind == OP_REDUCE || op->kind == OP_SCAN ||
                   op->kind == OP_BUF_REDUCE;
    if (loop && (f->props & FORM_LAYOUT))
        changed |= licm_loads(op);
    if (loop || combine)
        for (int i = 0; i < op->nregion; i++)
            changed |= hoist_from(op, op->regions[i]);
    return changed;
}

bool
pass_licm(Func *f, PassCx *cx)
{
    (void)cx;
    return pass_walk(f->body, visit, f);
}
