/* Assumptions about the masks of a strip.

   Code of a strip assumes one of three things. `fast`: masks are true in all lanes (and
   what simd_eval.c says of arithmetic). `none`: they are false in all lanes, so that
   nothing is loaded or stored, and a masked load gives its `other` value in all lanes. Or
   nothing. Each assumption is a scalar test in front of the strip; their conjunction,
   cx->cond, selects the arm.

       if all lanes of %m { vload %p }
       else if no lane of %m { %other }
       else { vload %p, %m, %other } */
#include "passes/cpu/simd.h"

#include "ir/base/util.h"
#include "ir/fold.h"

#include <string.h>

bool
simd_in_front(const Cx *cx, int rank, const Ix *ix)
{
    const Region *arm = cx->pre->b.before->regions[0];
    for (int d = 0; d < rank; d++) {
        const Value *v = ix[d].v;
        const Region *r = !v ? NULL : v->op ? v->op->parent : v->region;
        while (r && r != arm)
            r = r->parent ? r->parent->parent : NULL;
        if (r)
            return false;
    }
    return true;
}

void
simd_assume(Cx *cx, Value *cond)
{
    Cx *pre = cx->pre;
    cx->cond = cx->cond ? build_binary(&pre->b, OP_AND, cx->cond, cond) : cond;
}

/* The opposite of a comparison of integers; NULL: it is none of these. */
static const char *
opposite(const char *pred)
{
    static const char *const pairs[][2] = {
        {"slt", "sge"}, {"sle", "sgt"}, {"ult", "uge"}, {"ule", "ugt"}, {"eq", "ne"}};
    for (int i = 0; i < COUNT_OF(pairs); i++)
        for (int k = 0; k < 2; k++)
            if (strcmp(pairs[i][k], pred) == 0)
                return pairs[i][!k];
    return NULL;
}

/* Builds the test that a comparison holds in all lanes, or (none) in no lane; NULL: there
   is no simple one. */
static Value *
all_compare(Cx *pre, Op *op, const Ix *ix, bool none)
{
    const char *pred = attr_str(&op->attrs, ATTR_PRED);
    if (none)
        pred = opposite(pred);
    if (!pred)
        return NULL;
    Ev x = simd_eval(pre, op_operand(op, 0), ix),
       y = simd_eval(pre, op_operand(op, 1), ix);
    if (x.kind == EV_UNI && y.kind == EV_UNI)
        return build_cmp(&pre->b, OP_CMPI, pred, x.v, y.v);
    bool less = pred[0] == 's' && pred[1] == 'l', more = pred[0] == 's' && pred[1] == 'g';
    if ((!less && !more) || x.kind >= EV_VEC || y.kind >= EV_VEC ||
        x.v->type->kind != TY_SCALAR)
        return NULL;
    Value *order[2];
    /* it is enough to test the first or last lane, where it is hardest to fulfil */
    for (int k = 0; k < 2; k++) {
        Ev *e = k ? &y : &x;
        bool high = (k == 0) == less; /* the lane with the largest value */
        if (!simd_in_order(pre, op_operand(op, k), e, ix, true, &order[k]))
            return NULL;
        if (e->kind == EV_AFF && (e->stride > 0) == high) {
            e->v = simd_last(pre, e);
            if (!e->v)
                return NULL;
        }
    }
    Value *all = build_cmp(&pre->b, OP_CMPI, pred, x.v, y.v);
    for (int k = 0; k < 2; k++)
        if (order[k])
            all = build_binary(&pre->b, OP_AND, all, order[k]);
    return all;
}

/* Builds the test that a mask is true in all lanes, or (none) in no lane; NULL: there is
   no simple one. */
static Value *
test_of(Cx *pre, Value *mask, const Ix *ix, bool none, int depth)
{
    Op *op = mask->op;
    Ix in[MAX_RANK];
    if (!op || depth > 64 || !plan_get(pre->n, mask)->index)
        return NULL;
    switch ((int)op->kind) {
    case OP_CMPI: return all_compare(pre, op, ix, none);
    case OP_AND: {
        Value *a = test_of(pre, op_operand(op, 0), ix, none, depth + 1);
        Value *b =
            a || none ? test_of(pre, op_operand(op, 1), ix, none, depth + 1) : NULL;
        if (!a || !b) /* for `none` one part that is false is enough */
            return !none ? NULL : a ? a : b;
        return build_binary(&pre->b, none ? OP_OR : OP_AND, a, b);
    }
    case OP_BROADCAST:
    case OP_EXPAND_DIMS:
    case OP_TRANS:
        simd_map_shape(pre, op, 0, ix, in);
        return test_of(pre, op_operand(op, 0), in, none, depth + 1);
    default: {
        Ev e = simd_eval(pre, mask, ix);
        if (e.kind != EV_UNI || !none)
            return e.kind == EV_UNI ? e.v : NULL;
        return build_binary(&pre->b, OP_XOR, e.v, build_int(&pre->b, e.v->type, 1));
    }
    }
}

/* Assumes that the mask is full, or empty, if that can be tested; then its value is that
   constant from here on. */
static bool
assumed(Cx *cx, Value *mask, const Ix *ix)
{
    if (!cx->pre || !simd_tile(mask) || !simd_in_front(cx, mask->type->rank, ix))
        return false;
    Value *test = test_of(cx->pre, mask, ix, cx->none, 0);
    if (!test)
        return false;
    simd_assume(cx, test);
    Value *known = build_int(&cx->b, cx->n->i1, cx->none ? 0 : 1);
    simd_remember(cx, mask, ix, (Ev){.kind = EV_UNI, .v = known});
    return true;
}

static bool
known_as(const Ev *ev, int64_t bit)
{
    Const c;
    return ev->kind == EV_UNI && value_const(ev->v, &c) && (c.i != 0) == bit;
}

bool
simd_full(Cx *cx, Value *mask, const Ix *ix, Ev *rest)
{
    if (cx->fast) {
        if (assumed(cx, mask, ix))
            return true;
        if (simd_tile(mask) && simd_in_front(cx, mask->type->rank, ix) &&
            value_def(mask, OP_AND)) {
            Ev x, y;
            bool fx = simd_full(cx, op_operand(mask->op, 0), ix, &x);
            bool fy = simd_full(cx, op_operand(mask->op, 1), ix, &y);
            if (fx || fy) {
                *rest = fx ? y : x;
                return fx && fy;
            }
        }
    }
    *rest = simd_eval(cx, mask, ix);
    return known_as(rest, true);
}

bool
simd_empty(Cx *cx, Value *mask, const Ix *ix)
{
    if (!cx->none)
        return false;
    const Ev *ev = simd_tile(mask) ? simd_recall(cx, mask, ix) : NULL;
    return ev ? known_as(ev, false) : assumed(cx, mask, ix);
}

bool
simd_skipped(Cx *cx, Value *v, const Ix *ix, Ev *ev)
{
    Op *load = value_def(v, OP_LOAD);
    if (!load || load->noperand < 2)
        return false;
    cx->skips = true;
    if (!simd_empty(cx, op_operand(load, 1), ix))
        return false;
    *ev = simd_other(cx, load, ix);
    return true;
}
