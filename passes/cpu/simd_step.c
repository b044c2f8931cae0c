/* Strides along the lanes that only the launch knows, and that are not 1.

   Fast code assumes that they are 1. A broadcast row has 0, a column of a matrix its
   width. For these, strips have a second form in front of the general one: values are
   scalar + lane * step, where the step is a number of the launch (EV_STEP), under full
   masks as in fast code. An access tests the step once in each strip.

       load %p + %lane * %s    =>    if s == 1: vload p; elif s == 0: splat of load p;
                                     elif s == 2: load %p + %lane * 2;
                                     else: load %p + %lane * %s

   Pairs (complex numbers, interleaved halves) have an arm of their own, since code
   generation has a faster way for strides that are constant. */
#include "passes/cpu/simd.h"

#include "ir/base/util.h"
#include "ir/edit.h"

/* 0, step, 2 * step, .. */
static Value *
steps(Cx *cx, Value *step)
{
    const Type *t = strip_type(cx, step->type);
    Ev lanes = {.kind = EV_AFF, .v = build_int(&cx->b, step->type, 0), .stride = 1};
    return build_binary(&cx->b, OP_MUL, ev_strip(cx, lanes),
                        build_splat(&cx->b, step, t));
}

Value *
simd_step_strip(Cx *cx, Ev ev)
{
    Value *v = build_splat(&cx->b, ev.v, strip_type(cx, ev.v->type));
    bool ptr = ev.v->type->kind == TY_PTR;
    return build_binary(&cx->b, ptr ? OP_ADDPTR : OP_ADD, v, steps(cx, ev.then));
}

static Value *
wide(Builder *b, const Type *i64, Value *v)
{
    return type_bits(v->type) == 64 ? v : build_cast(b, OP_SEXT, v, i64);
}

/* May the lanes of v be extended to more bits? Assumes that the last lane does not
   wrap. */
static bool
widens(Cx *cx, Value *v, const Ix *ix)
{
    if (cx->trust || type_bits(type_elem(v->type)) == 64)
        return true;
    if (!plan_get(cx->n, v)->index || !simd_in_front(cx, v->type->rank, ix))
        return false;
    Ev e = simd_eval_trusting(cx->pre, v, ix, TRUST_TESTED);
    if (e.kind != EV_STEP)
        return false;
    Builder *b = &cx->pre->b;
    const Type *i64 = cx->n->i64;
    Value *far = build_binary(b, OP_MUL, wide(b, i64, e.then),
                              build_int(b, i64, cx->w - 1));
    far = build_binary(b, OP_ADD, far, wide(b, i64, e.v));
    Value *same = build_cast(b, OP_SEXT, build_cast(b, OP_TRUNC, far, e.v->type), i64);
    simd_assume(cx, build_cmp(b, OP_CMPI, "eq", far, same));
    return true;
}

bool
simd_step(Cx *cx, Op *op, const Ev *in, const Ix *ix, Ev *out)
{
    Builder *b = &cx->b;
    int s = in[0].kind == EV_STEP ? 0 : 1;
    const Type *t = type_elem(op_result(op, 0)->type);
    *out = in[s];
    switch ((int)op->kind) {
    case OP_HINT: return s == 0;
    case OP_ADD:
        if (in[!s].kind != EV_UNI)
            return false;
        out->v = build_binary(b, OP_ADD, in[0].v, in[1].v);
        return true;
    case OP_ADDPTR:
        if (in[!s].kind != EV_UNI || (s && !widens(cx, op_operand(op, 1), ix)))
            return false;
        out->v = build_binary(b, OP_ADDPTR, in[0].v, in[1].v);
        out->then = wide(b, cx->n->i64, out->then);
        return true;
    case OP_SEXT:
        if (type_bits(t) != 64 || !widens(cx, op_operand(op, 0), ix))
            return false;
        out->v = build_cast(b, OP_SEXT, in[0].v, t);
        out->then = wide(b, t, out->then);
        return true;
    default: return false;
    }
}

/* Builds `if step == n` at *b; *yes: for that arm; *b: for the other one from here on. */
static Op *
step_is(Builder *b, Value *step, int64_t n, const Type *t, Func *f, Builder *yes)
{
    Value *is = build_cmp(b, OP_CMPI, "eq", step, build_int(b, step->type, n));
    Op *branch = build_if(b, is, &t, t ? 1 : 0);
    *yes = builder_at_end(f, branch->regions[0]);
    *b = builder_at_end(f, branch->regions[1]);
    return branch;
}

/* The load of a strip whose step is n. */
static Value *
stepped_load(Cx *cx, Op *op, const Ix *ix, const Ev *p, int64_t n)
{
    const Type *elem = p->v->type->elem, *t = strip_type(cx, elem);
    Value *at = p->v;
    if (!n) {
        Op *load = build_op(&cx->b, OP_LOAD, &at, 1, NULL, &elem, 1);
        return build_splat(&cx->b, op_result(load, 0), t);
    }
    if (n > 1)
        at = ev_strip(cx, (Ev){.kind = EV_AFF, .v = at, .stride = n});
    Op *load = build_op(&cx->b, n == 1 ? OP_VLOAD : OP_LOAD, &at, 1, NULL, &t, 1);
    if (n > 1)
        simd_fetch_next(cx, op, ix, p->v);
    return op_result(load, 0);
}

bool
simd_step_load(Cx *cx, Op *op, const Ix *ix, const Ev *p, Ev *out)
{
    static const int64_t known[] = {1, 0, 2};
    if (p->kind != EV_STEP || attr_has(&op->attrs, ATTR_VOLATILE))
        return false;
    const Type *t = strip_type(cx, p->v->type->elem);
    Builder rest[COUNT_OF(known)];
    Op *branch[COUNT_OF(known)];
    for (int i = 0; i < COUNT_OF(known); i++) {
        rest[i] = cx->b;
        Builder yes, no = cx->b;
        branch[i] = step_is(&no, p->then, known[i], t, cx->n->f, &yes);
        cx->b = yes;
        Value *x = stepped_load(cx, op, ix, p, known[i]);
        build_yield(&cx->b, &x, 1);
        cx->b = no;
    }
    Value *at = simd_step_strip(cx, *p);
    Value *x = op_result(build_op(&cx->b, OP_LOAD, &at, 1, NULL, &t, 1), 0);
    for (int i = COUNT_OF(known); i-- > 0;) {
        build_yield(&cx->b, &x, 1);
        cx->b = rest[i];
        x = op_result(branch[i], 0);
    }
    *out = (Ev){.kind = EV_VEC, .v = x};
    return true;
}

bool
simd_step_store(Cx *cx, const Ev *p, Value *v)
{
    if (p->kind != EV_STEP)
        return false;
    Builder after = cx->b, yes;
    Value *in[] = {p->v, v};
    step_is(&cx->b, p->then, 1, NULL, cx->n->f, &yes);
    build_op(&yes, OP_VSTORE, in, 2, NULL, NULL, 0);
    build_yield(&yes, NULL, 0);
    in[0] = simd_step_strip(cx, *p);
    build_op(&cx->b, OP_STORE, in, 2, NULL, NULL, 0);
    build_yield(&cx->b, NULL, 0);
    cx->b = after;
    return true;
}
