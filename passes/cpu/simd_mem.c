/* Memory in cpu form: the order of accesses, buffers, loads and stores of strips.

   In one nest, accesses at one index keep their order, but those at different indices are
   interleaved. Triton does not order accesses to different elements unless a barrier
   stands between them. But code that shifts an array in place is common, and is kept
   right: two different pointers into one array do not share a nest if one of them writes.
   Nor does a load pass a store, even if their addresses come from different parameters,
   since these may be given the same array. */
#include "passes/cpu/simd.h"

#include "ir/edit.h"

enum { MAX_LOOKBACK = 256 };

/* The kernel parameter that an address comes from; NULL: it is not known. */
static const Value *
base_of(const Value *v)
{
    for (int steps = 0; steps < 1000; steps++) {
        if (!v->op)
            return v->region->parent ? NULL : v;
        switch ((int)v->op->kind) {
        case OP_ADDPTR:
        case OP_SPLAT:
        case OP_BROADCAST:
        case OP_EXPAND_DIMS:
        case OP_RESHAPE:
        case OP_TRANS:
        case OP_HINT:
        case OP_BITCAST: v = op_operand(v->op, 0); break;
        default: return NULL;
        }
    }
    return NULL;
}

/* May two accesses by these pointers, at different indices of a nest, touch one
   element? */
static bool
may_meet(const Value *p, const Value *q)
{
    const Value *a = base_of(p), *b = base_of(q);
    return p != q && (!a || !b || a == b);
}

bool
simd_may_sink(Simd *n, Op *load, const Group *g, bool shifted)
{
    int from = op_plan(n, load)->order, to = op_plan(n, g->at)->order;
    int steps = 0;
    for (int i = n->writers.n - 1; i >= 0; i--) {
        const Writer *w = &n->writers.at[i];
        if (w->order < from || w->order > to)
            continue;
        if (++steps > MAX_LOOKBACK || w->g != g)
            return false;
        const Value *p = op_operand(load, 0), *q = op_operand(w->op, 0);
        if (may_meet(p, q) || (shifted && p == q))
            return false;
    }
    return true;
}

bool
simd_may_join(Simd *n, const Op *access, const Group *g)
{
    bool load = access->kind == OP_LOAD, store = access->kind == OP_STORE;
    (void)n;
    if (!load && !store)
        return true;
    if (g->items.n > MAX_LOOKBACK)
        return false;
    for (int i = 0; i < g->items.n; i++) {
        const Op *op = g->items.at[i].op;
        bool writes = g->items.at[i].kind == ROOT_STORE;
        bool reads = op->kind == OP_LOAD;
        if ((writes || (reads && store)) &&
            may_meet(op_operand(access, 0), op_operand(op, 0)))
            return false;
    }
    return true;
}

/* ---- buffers */

Value *
simd_buffer(Simd *n, Slot *s)
{
    s = slot_find(s);
    if (!s->buf) {
        Builder b = builder_before(n->entry);
        const Type *t = s->type;
        s->buf = op_result(build_op(&b, OP_BUF_ALLOC, NULL, 0, NULL, &t, 1), 0);
    }
    return s->buf;
}

int
simd_index(Cx *cx, int rank, const Ix *ix, Value **out)
{
    bool any = false;
    int axis = -1;
    for (int i = 0; i < rank; i++)
        any |= ix[i].kind == IX_VEC;
    for (int i = 0; i < rank; i++) {
        bool lanes = ix[i].kind == IX_AFF || ix[i].kind == IX_VEC;
        out[i] = any && lanes ? ix_strip(cx, ix[i]) : ix_value(cx, ix[i]);
        if (!any && lanes)
            axis = i;
    }
    return any ? rank : axis;
}

/* Sets {axis}, which is omitted if it is the last dimension. */
static void
axis_attr(Cx *cx, AttrList *l, int axis, int rank)
{
    if (axis >= 0 && axis < rank - 1)
        attr_set_int(&cx->n->s->mod, l, ATTR_AXIS, axis);
}

Value *
simd_convert(Cx *cx, Value *v, const Type *to)
{
    const Type *from = type_elem(v->type);
    if (from == to)
        return v;
    OpKind k = type_bits(from) > type_bits(to) ? OP_FTRUNC : OP_FEXT;
    if (!type_is_float(from))
        k = type_bits(from) > type_bits(to) ? OP_TRUNC : OP_SEXT;
    return build_cast(&cx->b, k, v, to);
}

Ev
simd_slot_load(Cx *cx, Slot *s, const Type *elem, const Ix *ix)
{
    Value *in[MAX_RANK + 1];
    AttrList l = {0};
    in[0] = simd_buffer(cx->n, s);
    int rank = in[0]->type->rank;
    int axis = simd_index(cx, rank, ix, in + 1);
    const Type *t = axis < 0 ? in[0]->type->elem : strip_type(cx, in[0]->type->elem);
    axis_attr(cx, &l, axis, rank);
    Op *op = build_op(&cx->b, OP_BUF_LOAD, in, rank + 1, &l, &t, 1);
    Value *got = simd_convert(cx, op_result(op, 0), elem);
    return (Ev){.kind = axis < 0 ? EV_UNI : EV_VEC, .v = got};
}

void
simd_slot_store(Cx *cx, Slot *s, int rank, const Ix *ix, Ev ev)
{
    Value *in[MAX_RANK + 2];
    AttrList l = {0};
    in[0] = simd_buffer(cx->n, s);
    int axis = simd_index(cx, rank, ix, in + 2);
    in[1] = axis < 0 && ev.kind == EV_UNI ? ev.v : ev_strip(cx, ev);
    in[1] = simd_convert(cx, in[1], in[0]->type->elem);
    axis_attr(cx, &l, axis, rank);
    build_op(&cx->b, OP_BUF_STORE, in, rank + 2, &l, NULL, 0);
}

/* ---- global memory */

/* Has the access a mask, operand i, that is not known to be full? *mask: its value. */
static bool
masked(Cx *cx, Op *op, int i, const Ix *ix, Ev *mask)
{
    return op->noperand > i && !simd_full(cx, op_operand(op, i), ix, mask);
}

Ev
simd_other(Cx *cx, Op *op, const Ix *ix)
{
    if (op->noperand > 2)
        return simd_eval(cx, op_operand(op, 2), ix);
    const Type *t = type_elem(op_result(op, 0)->type);
    Value *v;
    if (type_is_float(t))
        v = build_float(&cx->b, t, 0.0);
    else if (type_is_ptr(t))
        v = op_result(build_op(&cx->b, OP_UNDEF, NULL, 0, NULL, &t, 1), 0);
    else
        v = build_int(&cx->b, t, 0);
    return (Ev){.kind = EV_UNI, .v = v};
}

Ev
simd_load(Cx *cx, Op *op, const Ix *ix)
{
    Ev mask = {0};
    if (op->noperand > 1 && simd_empty(cx, op_operand(op, 1), ix))
        return simd_other(cx, op, ix);
    bool has_mask = masked(cx, op, 1, ix, &mask);
    Ev p = simd_eval(cx, op_operand(op, 0), ix);
    const Type *elem = type_elem(op_operand(op, 0)->type)->elem;
    bool uniform = p.kind == EV_UNI && (!has_mask || mask.kind == EV_UNI);
    bool unit = p.kind == EV_AFF && p.stride == 1;
    const Type *t = uniform ? elem : strip_type(cx, elem);
    Value *in[3] = {NULL};
    if (has_mask || p.kind == EV_TWO) {
        in[1] = !has_mask ? NULL : uniform ? mask.v : ev_strip(cx, mask);
        Ev other = simd_other(cx, op, ix);
        in[2] = uniform ? other.v : ev_strip(cx, other);
    }
    Ev got;
    if (simd_two_load(cx, op, &p, in[1], in[2], &got) ||
        (!has_mask && simd_step_load(cx, op, ix, &p, &got)))
        return got;
    in[0] = uniform || unit ? p.v : ev_strip(cx, p);
    OpKind k = unit ? OP_VLOAD : OP_LOAD;
    AttrList l = {0};
    if (attr_has(&op->attrs, ATTR_VOLATILE))
        attr_set_flag(&cx->n->s->mod, &l, ATTR_VOLATILE);
    simd_check(cx, op, in[0], in[1], NULL, uniform ? 1 : cx->w, ix);
    Op *load = build_op(&cx->b, k, in, has_mask ? 3 : 1, &l, &t, 1);
    if (p.kind == EV_AFF && !has_mask && (unit || p.stride == 2))
        simd_fetch_next(cx, op, ix, p.v);
    return (Ev){.kind = uniform ? EV_UNI : EV_VEC, .v = op_result(load, 0)};
}

void
simd_store(Cx *cx, Op *op, const Ix *ix)
{
    Ev mask = {0};
    if (op->noperand > 2 && simd_empty(cx, op_operand(op, 2), ix))
        return;
    bool has_mask = masked(cx, op, 2, ix, &mask);
    Ev p = simd_eval(cx, op_operand(op, 0), ix);
    Ev v = simd_eval(cx, op_operand(op, 1), ix);
    bool unit = p.kind == EV_AFF && p.stride == 1;
    Value *in[3] = {NULL, ev_strip(cx, v), has_mask ? ev_strip(cx, mask) : NULL};
    if (simd_two_store(cx, &p, in[1], in[2]) ||
        (!has_mask && simd_step_store(cx, &p, in[1])))
        return;
    in[0] = unit ? p.v : ev_strip(cx, p);
    simd_check(cx, op, in[0], in[2], in[1], cx->w, ix);
    if (unit && !has_mask)
        simd_fetch_long(cx, op, ix, p.v);
    build_op(&cx->b, unit ? OP_VSTORE : OP_STORE, in, has_mask ? 3 : 2, NULL, NULL, 0);
}
