/* See loop.h. */
#include "ir/loop.h"

#include "ir/fold.h"

enum { MOST_AHEAD = 32 }; /* no pass looks further ahead, in iterations */

/* The greatest number of an integer type. */
static int64_t
most_of(const Type *t)
{
    return INT64_MAX >> (64 - type_bits(t));
}

int64_t
loop_step(const Op *loop)
{
    Const step;
    const Value *v = op_operand(loop, 2);
    bool fits = value_const(v, &step) && step.i <= most_of(v->type) / MOST_AHEAD;
    return fits && step.i > 0 ? step.i : 0;
}

int64_t
loop_trips(const Op *op)
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

Value *
build_iteration_exists(Builder *b, const Op *loop, Value *iv, int k)
{
    Value *hi = op_operand(loop, 1), *far = build_int(b, iv->type, k * loop_step(loop));
    Const lo;
    if (value_const(op_operand(loop, 0), &lo) && lo.i >= 0)
        return build_cmp(b, OP_CMPI, "ult", build_binary(b, OP_ADD, iv, far), hi);
    return build_cmp(b, OP_CMPI, "ult", far, build_binary(b, OP_SUB, hi, iv));
}

Value *
build_loop_reaches(Builder *b, const Op *loop, int k)
{
    Value *lo = op_operand(loop, 0), *hi = op_operand(loop, 1);
    int64_t far = k * loop_step(loop);
    Const at;
    if (k && value_const(lo, &at) && at.i <= most_of(lo->type) - far)
        return build_cmp(b, OP_CMPI, "slt", build_int(b, lo->type, at.i + far), hi);
    Value *runs = build_cmp(b, OP_CMPI, "slt", lo, hi);
    return k ? build_binary(b, OP_AND, runs, build_iteration_exists(b, loop, lo, k))
             : runs;
}
