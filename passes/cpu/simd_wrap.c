/* Lanes that wrap. A value kept as scalar + lane * stride is exact in the integer's own
   width, even if it wraps. But an operation that widens, compares or divides it must not
   find a wrap between two lanes. Most often the axis facts prove that there is none. If
   not, fast code assumes it, by one scalar test in front of the strip, and so does code
   for any masks; general code computes each lane as the source says. */
#include "passes/cpu/simd.h"

#include "ir/base/util.h"

/* Is v the counter of a strip loop, which goes from 0 in steps of w? So is the sum of two
   of them, in shorter strips. */
static bool
counts_strips(const Value *v)
{
    bool sum = v->op && v->op->kind == OP_ADD;
    return !v->op || (sum && !op_operand(v->op, 0)->op && !op_operand(v->op, 1)->op);
}

/* The dimension of v that lanes run along; -1: it is not one dimension, or the strip may
   begin at an index that w does not divide. */
static int
lane_axis(const Cx *cx, const Value *v, const Ix *ix)
{
    int found = -1;
    for (int d = 0; d < v->type->rank; d++)
        if (ix[d].kind == IX_AFF) {
            /* a dimension of one strip has no loop */
            bool aligned = ix[d].v ? counts_strips(ix[d].v) : ix[d].c % cx->w == 0;
            if (found >= 0 || !aligned)
                return -1;
            found = d;
        }
    return found;
}

static bool
proven(Cx *cx, const Value *v, int64_t stride, const Ix *ix, bool is_signed)
{
    const AxisFacts *f = axis_of(cx->n->axis, v);
    int64_t size = stride < 0 ? -stride : stride;
    int bits = type_bits(v->type), d = lane_axis(cx, v, ix);
    if (!is_signed && !f->nonneg)
        return false;
    /* if one wrapped, two neighbours would be further apart than the bounds */
    if (bits < 63 && f->hi - f->lo < ((int64_t)1 << bits) - size)
        return true;
    return d >= 0 && stride == 1 && f->contig[d] >= cx->w;
}

Value *
simd_last(Cx *cx, const Ev *e)
{
    int64_t far = e->stride * (cx->w - 1), most = INT64_MAX;
    int bits = type_bits(e->v->type);
    if (bits < 64)
        most = ((int64_t)1 << (bits - 1)) - 1;
    if (far > most || far < -most)
        return NULL;
    return build_binary(&cx->b, OP_ADD, e->v, build_int(&cx->b, e->v->type, far));
}

bool
simd_in_order(Cx *pre, const Value *v, const Ev *e, const Ix *ix, bool is_signed,
              Value **test)
{
    *test = NULL;
    if (e->kind == EV_TWO) {
        Ev run = {.kind = EV_AFF, .v = e->v, .stride = e->stride}, then = run;
        Value *more;
        then.v = e->then;
        if (!e->stride)
            return true;
        if (!simd_in_order(pre, v, &run, ix, is_signed, test) ||
            !simd_in_order(pre, v, &then, ix, is_signed, &more))
            return false;
        if (*test && more)
            *test = build_binary(&pre->b, OP_AND, *test, more);
        return true;
    }
    if (e->kind != EV_AFF || proven(pre, v, e->stride, ix, is_signed))
        return true;
    Value *last = simd_last(pre, e);
    if (!last)
        return false;
    bool up = e->stride > 0;
    *test = build_cmp(&pre->b, OP_CMPI, is_signed ? "sle" : "ule", up ? e->v : last,
                      up ? last : e->v);
    return true;
}

bool
simd_widens(Cx *cx, Value *v, const Ev *e, const Ix *ix, bool is_signed)
{
    Value *test;
    if (cx->trust || proven(cx, v, e->stride, ix, is_signed))
        return true;
    if ((!cx->fast && !cx->ordered) || !plan_get(cx->n, v)->index ||
        !simd_in_front(cx, v->type->rank, ix))
        return false;
    /* its operands were tested where they were computed */
    Ev front = simd_eval_trusting(cx->pre, v, ix, TRUST_TESTED);
    if (!simd_in_order(cx->pre, v, &front, ix, is_signed, &test))
        return false;
    if (test)
        simd_assume(cx, test);
    return true;
}
