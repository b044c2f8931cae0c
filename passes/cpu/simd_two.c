/* Strips in two runs of lanes.

   A quotient of x = scalar + lane by n is most often the same in all lanes of a strip, so
   that remainders count up. If n is not much larger than a strip, many strips contain the
   end of one such run and the beginning of the next. They are computed in shorter strips
   of two vectors, which have at most two runs (n must not be smaller than that). Each run
   is scalar + lane, and an access is two masked accesses of consecutive elements. A
   vector of addresses would be accessed lane by lane.

       %r = rems %x, %n             r = x - x / n * n; at = min(n - r, 16)
       load %p + %r         =>      lane < at: vload p + r; else: vload p - at

   If several quotients meet in an operation, their runs must end in the same lane (those
   of `i // n % m` do), or all but one of them behind the strip. */
#include "passes/cpu/simd.h"

#include "ir/base/util.h"
#include "ir/edit.h"
#include "ir/fold.h"

int
simd_run_lanes(const Simd *n, const Group *g, int w)
{
    int64_t bits = max_i64(simd_widest(g), 32);
    bool reduces = false; /* accumulators have the lanes of whole strips */
    for (int i = 0; i < g->items.n; i++)
        reduces |= g->items.at[i].kind == ROOT_REDUCE;
    return reduces ? w : (int)min_i64(w, n->vector_bytes * 16 / bits);
}

static Value *
cmp(Builder *b, const char *pred, Value *x, Value *y)
{
    return build_cmp(b, OP_CMPI, pred, x, y);
}

/* Where tests are computed, and other work that is done once for a strip. */
static Cx *
front(Cx *cx)
{
    return cx->trust ? cx : cx->pre;
}

static Value *
as_type(Builder *b, Value *v, const Type *t)
{
    int from = type_bits(v->type), to = type_bits(t);
    return from == to ? v : build_cast(b, from < to ? OP_SEXT : OP_TRUNC, v, t);
}

void
simd_two_wanted(Cx *cx, const Ev *x, Value *n)
{
    Builder *b = &cx->pre->b;
    int w = simd_run_lanes(cx->n, cx->g, cx->w);
    Const c;
    if (x->stride != 1 || cx->n->f->check)
        return;
    cx->short_runs |= value_const(n, &c) && c.i >= w && c.i < cx->w;
    Value *test = cmp(b, "sle", build_int(b, n->type, w), n);
    cx->runs = cx->runs ? build_binary(b, OP_AND, cx->runs, test) : test;
}

bool
simd_two_runs(Cx *cx, Op *op, const Ev *x, Value *n, Value *q, Ev *out)
{
    Cx *at = front(cx);
    Builder *b = &at->b;
    Const c;
    if (x->stride != 1 || type_bits(x->v->type) < 32 ||
        (value_const(n, &c) && c.i < cx->w))
        return false;
    Value *last = simd_last(at, x), *w = build_int(b, x->v->type, cx->w);
    if (!last)
        return false;
    Value *rest = build_binary(b, OP_SUB, x->v, build_binary(b, OP_MUL, q, n));
    Value *left = build_binary(b, OP_SUB, n, rest);
    left = build_select(b, cmp(b, "slt", left, w), left, w);
    if (!cx->trust) {
        simd_assume(cx, cmp(b, "sle", build_int(b, x->v->type, 0), x->v));
        simd_assume(cx, cmp(b, "sle", x->v, last));
        simd_assume(cx, cmp(b, "sle", w, n));
    }
    bool quotient = op->kind == OP_DIVS || op->kind == OP_DIVU;
    Value *zero = build_int(b, x->v->type, 0), *one = build_int(b, x->v->type, 1);
    *out = (Ev){EV_TWO, quotient ? q : rest, !quotient,
                quotient ? build_binary(b, OP_ADD, q, one) : zero,
                as_type(b, left, cx->n->i32)};
    return true;
}

Ev
simd_one_run(Cx *cx, Ev ev)
{
    Builder *b = &front(cx)->b;
    if (!ev.stride)
        return ev;
    if (!cx->trust)
        simd_assume(cx, cmp(b, "eq", ev.at, build_int(b, ev.at->type, cx->w)));
    return (Ev){.kind = EV_AFF, .v = ev.v, .stride = ev.stride};
}

/* v + at * stride */
static Value *
moved(Builder *b, Value *v, Value *at, int64_t stride)
{
    bool ptr = v->type->kind == TY_PTR;
    if (!stride)
        return v;
    if (!ptr)
        at = as_type(b, at, v->type);
    at = build_binary(b, OP_MUL, at, build_int(b, at->type, stride));
    return build_binary(b, ptr ? OP_ADDPTR : OP_ADD, v, at);
}

/* The lane in which the second run of x and of y begins, if both may have one. */
static Value *
common(Cx *cx, Value *x, Value *y)
{
    Cx *at = front(cx);
    Builder *b = &at->b;
    if (!x || !y || x == y)
        return x ? x : y;
    if (!cx->trust) {
        Value *w = build_int(b, x->type, cx->w);
        Value *one = build_binary(b, OP_OR, cmp(b, "eq", x, w), cmp(b, "eq", y, w));
        simd_assume(cx, build_binary(b, OP_OR, one, cmp(b, "eq", x, y)));
    }
    return build_select(b, cmp(b, "slt", x, y), x, y);
}

bool
simd_two_parts(Cx *cx, const Op *op, const Ev *in, Ev (*part)[SIMD_MAX_IN], Value **at)
{
    bool linear = false;
    int two = 0;
    *at = NULL;
    for (int i = 0; i < op->noperand; i++) {
        if (in[i].kind == EV_VEC)
            return false;
        linear |= in[i].stride != 0;
        two += in[i].kind == EV_TWO;
    }
    /* a run without lanes has any value, also 0, which must not divide; and a factor of a
       run cannot be assumed to be 1, since that is tested in front of the strip */
    if (op_divides(op) && (linear || in[1].kind == EV_TWO))
        return false;
    if (op->kind == OP_MUL && linear && (two > 1 || in[0].kind == in[1].kind ||
                                         (in[0].kind == EV_TWO && !in[0].stride) ||
                                         (in[1].kind == EV_TWO && !in[1].stride)))
        return false;
    for (int i = 0; i < op->noperand; i++)
        if (in[i].kind == EV_TWO)
            *at = common(cx, *at, in[i].at);
    for (int i = 0; i < op->noperand; i++) {
        EvKind k = in[i].stride ? EV_AFF : EV_UNI;
        Builder *b = &cx->b;
        Value *then = moved(b, in[i].v, *at, in[i].stride);
        if (in[i].kind == EV_TWO && in[i].at == *at)
            then = in[i].then;
        else if (in[i].kind == EV_TWO)
            then = build_select(b, cmp(b, "eq", in[i].at, *at), in[i].then, then);
        part[0][i] = (Ev){.kind = k, .v = in[i].v, .stride = in[i].stride};
        part[1][i] = (Ev){.kind = k, .v = then, .stride = in[i].stride};
    }
    return true;
}

/* The mask of the lanes of the first run. */
static Value *
first_run(Cx *cx, Value *at)
{
    AttrList l = {0};
    const Type *t = strip_type(cx, cx->n->i32);
    attr_set_int(&cx->n->s->mod, &l, ATTR_START, 0);
    Value *lane = op_result(build_op(&cx->b, OP_ARANGE, NULL, 0, &l, &t, 1), 0);
    return cmp(&cx->b, "slt", lane, build_splat(&cx->b, at, t));
}

/* The value that the second run would have in lane 0. */
static Value *
begin(Cx *cx, const Ev *ev)
{
    return moved(&cx->b, ev->then, ev->at, -ev->stride);
}

Value *
simd_two_strip(Cx *cx, Ev ev)
{
    Ev a = {.kind = ev.stride ? EV_AFF : EV_UNI, .v = ev.v, .stride = ev.stride}, b = a;
    b.v = begin(cx, &ev);
    return build_select(&cx->b, first_run(cx, ev.at), ev_strip(cx, a), ev_strip(cx, b));
}

/* The masks of both runs, together with `mask` if that is not NULL. */
static void
run_masks(Cx *cx, Value *at, Value *mask, Value **out)
{
    const Type *t = strip_type(cx, cx->n->i1);
    out[0] = first_run(cx, at);
    out[1] = build_binary(&cx->b, OP_XOR, out[0], build_int(&cx->b, t, 1));
    for (int i = 0; mask && i < 2; i++)
        out[i] = build_binary(&cx->b, OP_AND, out[i], mask);
}

/* Loads from an address that is the same in all lanes of a run; there may be only one
   run. */
static void
load_two(Cx *cx, const Ev *p, const AttrList *l, Ev *out)
{
    Builder *b = &cx->b;
    const Type *t = p->v->type->elem;
    Value *none = cmp(b, "eq", p->at, build_int(b, p->at->type, cx->w));
    Value *then = build_select(b, none, p->v, p->then), *at = p->v;
    *out = (Ev){.kind = EV_TWO, .at = p->at};
    out->v = op_result(build_op(b, OP_LOAD, &at, 1, l, &t, 1), 0);
    out->then = op_result(build_op(b, OP_LOAD, &then, 1, l, &t, 1), 0);
}

bool
simd_two_load(Cx *cx, Op *op, const Ev *p, Value *mask, Value *other, Ev *out)
{
    AttrList l = {0};
    if (p->kind != EV_TWO || attr_has(&op->attrs, ATTR_VOLATILE))
        return false;
    if (!p->stride && !mask) {
        load_two(cx, p, &l, out);
        return true;
    }
    if (p->stride != 1)
        return false;
    const Type *t = strip_type(cx, p->v->type->elem);
    Value *at[2] = {p->v, begin(cx, p)}, *masks[2];
    run_masks(cx, p->at, mask, masks);
    *out = (Ev){.kind = EV_VEC, .v = other};
    for (int i = 0; i < 2; i++) {
        Value *in[] = {at[i], masks[i], out->v};
        out->v = op_result(build_op(&cx->b, OP_VLOAD, in, 3, &l, &t, 1), 0);
    }
    return true;
}

bool
simd_two_store(Cx *cx, const Ev *p, Value *v, Value *mask)
{
    if (p->kind != EV_TWO || p->stride != 1)
        return false;
    Value *at[2] = {p->v, begin(cx, p)}, *masks[2];
    run_masks(cx, p->at, mask, masks);
    for (int i = 0; i < 2; i++) {
        Value *in[] = {at[i], v, masks[i]};
        build_op(&cx->b, OP_VSTORE, in, 3, NULL, NULL, 0);
    }
    return true;
}
