/* Loops that carry addresses at another pace than they count count by one.

       for %k = 0, %K, 64 (%p = %q) {        %n = divs %K, 64 + (rems %K, 64 > 0)
         ..                                  for %i = 0, %n, 1 (%p = %q) {
         %p1 = addptr %p, splat %s      =>     %k = mul %i, 64
         yield %p1                             ..
       }                                       %p1 = addptr %p, splat %s

   Where a load lies in iteration k is then %q + %i * %s, rows of a matrix that TMA
   finds; of %k it is %s / 64, which is no whole number (ir/analysis/affine.h). */
#include "ir/analysis/affine.h"
#include "ir/build.h"
#include "ir/edit.h"
#include "ir/fold.h"
#include "passes/pass.h"

bool pass_rounds(Func *f, PassCx *cx);

static bool
other_pace(const Op *loop, int64_t step)
{
    const Region *body = loop->regions[0];
    for (int i = 1; i < body->narg; i++) {
        Affine by;
        if (!type_is_ptr(body->args[i]->type) || !affine_step(body->args[i], loop, &by))
            continue;
        for (int k = 0; k < by.base.n; k++)
            if (by.base.t[k].k % step)
                return true;
    }
    return false;
}

static bool
visit(void *user, Op *op)
{
    Const lo, step;
    (void)user;
    if (op->kind != OP_FOR || !value_const(op_operand(op, 0), &lo) || lo.i ||
        !value_const(op_operand(op, 2), &step) || step.i < 2 || !other_pace(op, step.i))
        return false;
    Builder b = builder_before(op);
    b.loc = op->loc;
    Value *hi = op_operand(op, 1), *by = op_operand(op, 2), *zero = op_operand(op, 0);
    Value *rest = build_cmp(&b, OP_CMPI, "sgt", build_binary(&b, OP_REMS, hi, by), zero);
    op_set_operand(op, 1,
                   build_binary(&b, OP_ADD, build_binary(&b, OP_DIVS, hi, by),
                                build_cast(&b, OP_ZEXT, rest, hi->type)));
    op_set_operand(op, 2, build_int(&b, hi->type, 1));
    Value *round = op->regions[0]->args[0];
    b = builder_before(op->regions[0]->first);
    b.loc = op->loc;
    Value *at = build_binary(&b, OP_MUL, round, by);
    value_replace(round, at);
    op_set_operand(at->op, 0, round);
    return true;
}

bool
pass_rounds(Func *f, PassCx *cx)
{
    (void)cx;
    return pass_walk(f->body, visit, NULL);
}
