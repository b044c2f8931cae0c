/* See loop.h. */
#include "ir/loop.h"

#include "ir/fold.h"

int64_t
loop_step(const Op *loop)
{
    Const step;
    return value_const(op_operand(loop, 2), &step) && step.i > 0 ? step.i : 0;
}

Value *
build_iteration_exists(Builder *b, const Op *loop, Value *iv)
{
    return build_cmp(b, OP_CMPI, "slt", iv, op_operand(loop, 1));
}

Value *
build_loop_runs(Builder *b, const Op *loop)
{
    return build_iteration_exists(b, loop, op_operand(loop, 0));
}
