/* Computes the value of a tile at a strip's index.

   The result keeps what lanes have in common: one scalar for all lanes, a scalar plus
   lane * stride, or a vector. So contiguous addresses, uniform loads and masks that cut
   off a strip's end follow from the arithmetic, without an analysis of their own.

   simd_mask.c describes the assumptions of fast code. Those about arithmetic are made
   here: that strides along the lanes which only the launch knows are 1, and that a
   quotient is the same in all lanes of a strip. */
#include "passes/cpu/simd.h"

#include "ir/base/util.h"
#include "ir/fold.h"

#include <string.h>

typedef struct Memo {
    struct Memo *next;
    Ix ix[MAX_RANK];
    Ev ev;
} Memo;

void
cx_init(Cx *cx, Simd *n, Builder b, int w)
{
    *cx = (Cx){.n = n, .b = b, .w = w};
    map_init(&cx->memo, n->tmp);
}

const Type *
strip_type(Cx *cx, const Type *elem)
{
    int64_t w = cx->w;
    return cx->w == 1 ? elem : type_tile(cx->n->tt, elem, 1, &w, NULL);
}

Value *
simd_int(Builder *b, const Type *t, int64_t v)
{
    return build_int(b, t, v);
}

Value *
ix_value(Cx *cx, Ix x)
{
    return x.v ? x.v : simd_int(&cx->b, cx->n->i64, x.c);
}

static Value *
splat(Cx *cx, Value *v)
{
    if (cx->w == 1 || simd_tile(v))
        return v;
    return build_splat(&cx->b, v, strip_type(cx, v->type));
}

/* The vector 0, stride, 2 * stride, .. of integers of this type. */
static Value *
lanes(Cx *cx, const Type *elem, int64_t stride)
{
    AttrList l = {0};
    attr_set_int(&cx->n->s->mod, &l, ATTR_START, 0);
    const Type *t = strip_type(cx, cx->n->i32);
    Value *v = op_result(build_op(&cx->b, OP_ARANGE, NULL, 0, &l, &t, 1), 0);
    int bits = type_bits(elem);
    if (bits != 32)
        v = build_cast(&cx->b, bits > 32 ? OP_SEXT : OP_TRUNC, v, elem);
    if (stride == 1)
        return v;
    Value *s = build_int(&cx->b, strip_type(cx, elem), stride);
    return build_binary(&cx->b, OP_MUL, v, s);
}

Value *
ix_strip(Cx *cx, Ix x)
{
    if (x.kind == IX_VEC)
        return x.v;
    Value *v = splat(cx, ix_value(cx, x));
    return x.kind == IX_AFF && cx->w > 1
               ? build_binary(&cx->b, OP_ADD, v, lanes(cx, cx->n->i64, 1))
               : v;
}

Value *
ev_strip(Cx *cx, Ev ev)
{
    if (ev.kind == EV_TWO)
        return simd_two_strip(cx, ev);
    if (ev.kind == EV_STEP)
        return simd_step_strip(cx, ev);
    if (ev.kind != EV_AFF || cx->w == 1)
        return splat(cx, ev.v);
    bool ptr = ev.v->type->kind == TY_PTR;
    Value *l = lanes(cx, ptr ? cx->n->i64 : ev.v->type, ev.stride);
    return build_binary(&cx->b, ptr ? OP_ADDPTR : OP_ADD, splat(cx, ev.v), l);
}

static Ev
uni(Value *v)
{
    return (Ev){.kind = EV_UNI, .v = v};
}

static Ev
vec(Cx *cx, Value *v)
{
    return (Ev){.kind = cx->w == 1 ? EV_UNI : EV_VEC, .v = v};
}

static Ev
aff(Value *v, int64_t stride)
{
    return (Ev){.kind = stride ? EV_AFF : EV_UNI, .v = v, .stride = stride};
}

/* ---- values that were computed before */

Ev *
simd_recall(Cx *cx, const Value *v, const Ix *ix)
{
    for (Memo *m = map_get(&cx->memo, v); m; m = m->next) {
        bool same = true;
        for (int i = 0; i < v->type->rank && same; i++)
            same = m->ix[i].kind == ix[i].kind && m->ix[i].v == ix[i].v &&
                   m->ix[i].c == ix[i].c;
        if (same)
            return &m->ev;
    }
    return NULL;
}

void
simd_remember(Cx *cx, Value *v, const Ix *ix, Ev ev)
{
    Memo *m = arena_new(cx->n->tmp, Memo);
    m->next = map_get(&cx->memo, v);
    memcpy(m->ix, ix, (size_t)v->type->rank * sizeof *ix);
    m->ev = ev;
    map_set(&cx->memo, v, m);
}

/* ---- arithmetic */

static Ev
plain(Cx *cx, Op *op, const Ev *in)
{
    Value *v[SIMD_MAX_IN];
    bool scalar = true;
    for (int i = 0; i < op->noperand; i++)
        scalar &= in[i].kind == EV_UNI;
    for (int i = 0; i < op->noperand; i++)
        v[i] = scalar ? in[i].v : ev_strip(cx, in[i]);
    const Type *e = type_elem(op_result(op, 0)->type);
    const Type *t = scalar ? e : strip_type(cx, e);
    cx->b.loc = op->loc;
    Op *r = build_op(&cx->b, op->kind, v, op->noperand, &op->attrs, &t, 1);
    return scalar ? uni(op_result(r, 0)) : vec(cx, op_result(r, 0));
}

static bool
known(const Value *v, int64_t *out)
{
    Const c;
    if (!value_const(v, &c) || c.is_float)
        return false;
    *out = c.i;
    return true;
}

static bool
small(int64_t stride)
{
    return stride > -((int64_t)1 << 30) && stride < (int64_t)1 << 30;
}

/* EV_AFF times a uniform factor. Fast code assumes that a factor which only the launch
   knows is 1. False: it is something else. */
static bool
times(Cx *cx, Op *op, const Ix *ix, const Ev *in, Ev *out)
{
    int a = in[0].kind == EV_AFF ? 0 : 1;
    int64_t c;
    if (in[!a].kind != EV_UNI)
        return false;
    bool is_known = known(in[!a].v, &c);
    if (!is_known) {
        Value *v = op_operand(op, !a);
        bool may = cx->fast && plan_get(cx->n, v)->index &&
                   simd_in_front(cx, op_result(op, 0)->type->rank, ix);
        if (in[a].stride != 1 || (!may && !cx->trust))
            return false;
        c = 1;
        cx->stepped = true;
        if (cx->steps) {
            Value *v0 = build_binary(&cx->b, OP_MUL, in[0].v, in[1].v);
            *out = (Ev){.kind = EV_STEP, .v = v0, .then = in[!a].v};
            return true;
        }
    }
    if (!small(c) || !small(in[a].stride * c))
        return false;
    *out = aff(build_binary(&cx->b, OP_MUL, in[0].v, in[1].v), in[a].stride * c);
    return true;
}

static bool
divides(const Op *op)
{
    return op->kind == OP_DIVS || op->kind == OP_DIVU;
}

static bool
leaves(const Op *op)
{
    return op->kind == OP_REMS || op->kind == OP_REMU;
}

/* Is v computed in front of a loop that b is in, or can it be hoisted there? */
static bool
stands_before(const Builder *b, const Value *v, int depth)
{
    const Region *from = v->op ? v->op->parent : v->region;
    bool in_loop = false;
    for (const Region *r = b->region; r && r != from;) {
        const Op *around = r->parent;
        in_loop |= around && around->kind == OP_FOR;
        r = around ? around->parent : NULL;
    }
    if (in_loop || !v->op || depth > 4 || !op_is(v->op, T_PURE) || v->op->nregion)
        return in_loop;
    bool all = true;
    for (int i = 0; i < v->op->noperand; i++)
        all &= stands_before(b, op_operand(v->op, i), depth + 1);
    return all;
}

/* x / n of scalars. A quotient that only serves to wrap an index is most often 0, so a
   branch avoids the division. If n is smaller than the number of lanes, the fast code is
   not used anyway. In 32 bits, a division by an n from in front of the loop becomes a
   multiplication with its reciprocal, which is cheaper than a branch. */
static Value *
quotient(Cx *cx, OpKind k, Value *x, Value *n)
{
    int64_t c;
    bool fast = type_bits(n->type) == 32 && stands_before(&cx->b, n, 0);
    if (known(n, &c) || fast)
        return build_binary(&cx->b, k, x, n);
    const char *less = k == OP_DIVU ? "ult" : "slt";
    Value *none = build_cmp(&cx->b, OP_CMPI, less, x, n);
    Value *few = build_cmp(&cx->b, OP_CMPI, less, n, build_int(&cx->b, x->type, cx->w));
    none = build_binary(&cx->b, OP_OR, few, none);
    Op *branch = build_if(&cx->b, none, &x->type, 1);
    Builder arm = builder_at_end(cx->n->f, branch->regions[0]);
    Value *zero = build_int(&arm, x->type, 0);
    build_yield(&arm, &zero, 1);
    arm = builder_at_end(cx->n->f, branch->regions[1]);
    Value *q = build_binary(&arm, k, x, n);
    build_yield(&arm, &q, 1);
    return op_result(branch, 0);
}

/* The quotient of EV_AFF x by n, the same in all lanes, or the remainder that belongs to
   it. Fast code assumes that this is so: 0 <= x, and last - q * n < n in the last lane.
   False: it cannot be done. */
static bool
divided(Cx *cx, Op *op, const Ix *ix, Ev *out)
{
    Cx *at = cx->trust ? cx : cx->pre;
    /* What x itself assumes (it may be a remainder) is tested where it was computed. */
    Ev x = cx->trust ? simd_eval(at, op_operand(op, 0), ix)
                     : simd_eval_trusting(at, op_operand(op, 0), ix, TRUST_TESTED);
    Ev n = simd_eval(at, op_operand(op, 1), ix);
    int64_t c;
    if (x.kind == EV_TWO)
        x = simd_one_run(cx, x);
    if (x.kind != EV_AFF || x.stride < 0 || n.kind != EV_UNI)
        return false;
    bool is_short = known(n.v, &c) && c < x.stride * cx->w;
    if (cx->fast && !cx->two)
        simd_two_wanted(cx, &x, n.v);
    if (is_short && !cx->two)
        return false;
    Value *last = simd_last(at, &x), *zero = build_int(&at->b, x.v->type, 0);
    if (!last)
        return false;
    bool is_signed = op->kind == OP_DIVS || op->kind == OP_REMS;
    Value *q = quotient(at, is_signed ? OP_DIVS : OP_DIVU, x.v, n.v);
    if (cx->two)
        return simd_two_runs(cx, op, &x, n.v, q, out);
    Value *whole = build_binary(&at->b, OP_MUL, q, n.v);
    if (!cx->trust) {
        Value *rest = build_binary(&at->b, OP_SUB, last, whole);
        simd_assume(cx, build_cmp(&at->b, OP_CMPI, "sle", zero, x.v));
        simd_assume(cx, build_cmp(&at->b, OP_CMPI, "sle", x.v, last));
        simd_assume(cx, build_cmp(&at->b, OP_CMPI, "slt", rest, n.v));
    }
    *out = divides(op) ? uni(q)
                       : aff(build_binary(&cx->b, OP_SUB, x.v, whole), x.stride);
    return true;
}

/* Arithmetic whose result is EV_AFF again. False: it has to be computed in vectors. */
static bool
linear(Cx *cx, Op *op, const Ev *in, const Ix *ix, Ev *out)
{
    Value *v;
    int64_t c;
    switch ((int)op->kind) {
    case OP_ADD:
    case OP_SUB:
    case OP_ADDPTR: {
        int64_t s = op->kind == OP_SUB ? in[0].stride - in[1].stride
                                       : in[0].stride + in[1].stride;
        if (!small(s) || (op->kind == OP_ADDPTR && in[1].kind == EV_AFF &&
                          !simd_widens(cx, op_operand(op, 1), &in[1], ix, true)))
            return false;
        v = build_binary(&cx->b, op->kind, in[0].v, in[1].v);
        *out = aff(v, s);
        return true;
    }
    case OP_MUL: {
        if (!times(cx, op, ix, in, out))
            return false;
        int a = in[0].kind == EV_AFF ? 0 : 1;
        if (known(in[!a].v, &c) || cx->trust || out->kind == EV_STEP)
            return true;
        Ev n = simd_eval(cx->pre, op_operand(op, !a), ix);
        Value *one = build_int(&cx->pre->b, n.v->type, 1);
        simd_assume(cx, build_cmp(&cx->pre->b, OP_CMPI, "eq", n.v, one));
        return true;
    }
    case OP_DIVS:
    case OP_DIVU:
    case OP_REMS:
    case OP_REMU:
        if (!cx->trust &&
            (!cx->fast || cx->apart || !plan_get(cx->n, op_result(op, 0))->index ||
             !simd_in_front(cx, op_result(op, 0)->type->rank, ix)))
            return false;
        return divided(cx, op, ix, out);
    case OP_SEXT:
    case OP_ZEXT:
    case OP_TRUNC:
        if (type_bits(op_result(op, 0)->type) < 32 ||
            (op->kind != OP_TRUNC &&
             !simd_widens(cx, op_operand(op, 0), &in[0], ix, op->kind == OP_SEXT)))
            return false;
        v = build_cast(&cx->b, op->kind, in[0].v, type_elem(op_result(op, 0)->type));
        *out = aff(v, in[0].stride);
        return true;
    case OP_HINT: *out = in[0]; return true;
    default: return false;
    }
}

/* Does op multiply EV_TWO by a number of the launch? Then lanes are computed and not
   assumed to be 1 apart, since runs are used where fast code has failed. */
static bool
spreads_runs(const Op *op, const Ev *in)
{
    int64_t c;
    for (int i = 0; op->kind == OP_MUL && i < 2; i++)
        if (in[i].kind == EV_TWO && in[i].stride && in[!i].kind == EV_UNI &&
            !known(in[!i].v, &c))
            return true;
    return false;
}

/* An op of which an operand is EV_TWO, computed in both runs. False: it cannot be. */
static bool
two(Cx *cx, Op *op, const Ev *in, const Ix *ix, Ev *out)
{
    Ev part[2][SIMD_MAX_IN], r[2];
    Value *at;
    if (spreads_runs(op, in) || !simd_two_parts(cx, op, in, part, &at))
        return false;
    for (int i = 0; i < 2; i++) {
        bool has_aff = false;
        for (int k = 0; k < op->noperand; k++)
            has_aff |= part[i][k].kind == EV_AFF;
        if (!has_aff)
            r[i] = op->kind == OP_HINT ? part[i][0] : plain(cx, op, part[i]);
        else if (!linear(cx, op, part[i], ix, &r[i]))
            return false;
    }
    if (r[0].kind == EV_VEC || r[0].kind != r[1].kind || r[0].stride != r[1].stride)
        return false;
    *out = (Ev){EV_TWO, r[0].v, r[0].stride, r[1].v, at};
    return true;
}

static Ev
elementwise(Cx *cx, Op *op, const Ix *ix)
{
    Ev in[SIMD_MAX_IN], out;
    bool has_aff = false, has_vec = false, has_two = false, step = false;
    if (op->noperand > SIMD_MAX_IN)
        bug(&cx->n->s->fail, "elementwise op with %d operands", op->noperand);
    for (int i = 0; i < op->noperand; i++) {
        in[i] = simd_eval(cx, op_operand(op, i), ix);
        has_aff |= in[i].kind == EV_AFF;
        has_vec |= in[i].kind == EV_VEC;
        has_two |= in[i].kind == EV_TWO;
        step |= in[i].kind == EV_STEP;
    }
    if (cx->trust == TRUST_HARMLESS && (leaves(op) || divides(op)))
        return in[0];
    if (step)
        return simd_step(cx, op, in, ix, &out) ? out : plain(cx, op, in);
    if (has_two && two(cx, op, in, ix, &out))
        return out;
    bool again = has_two && (divides(op) || leaves(op)) && !has_vec;
    if (((has_aff && !has_vec && !has_two) || again) && linear(cx, op, in, ix, &out))
        return out;
    if (op->kind == OP_HINT)
        return in[0];
    return plain(cx, op, in);
}

/* ---- shapes */

bool
simd_map_shape(Cx *cx, Op *op, int result, const Ix *ix, Ix *out)
{
    const Type *from = op_operand(op, 0)->type, *to = op_result(op, result)->type;
    const Ix zero = {IX_CONST, 0, NULL};
    int axis = (int)attr_int(&op->attrs, ATTR_AXIS, 0);
    const Attr *perm = attr_find(&op->attrs, ATTR_PERM);
    switch ((int)op->kind) {
    case OP_BROADCAST:
        for (int i = 0; i < from->rank; i++)
            out[i] = from->shape[i] == 1 ? zero : ix[i];
        return true;
    case OP_EXPAND_DIMS:
        for (int i = 0; i < from->rank; i++)
            out[i] = ix[i + (i >= axis)];
        return true;
    case OP_TRANS:
        for (int i = 0; i < from->rank; i++)
            out[perm->v.ints[i]] = ix[i];
        return true;
    case OP_SPLIT:
        memcpy(out, ix, (size_t)(from->rank - 1) * sizeof *ix);
        out[from->rank - 1] = (Ix){IX_CONST, result, NULL};
        return true;
    case OP_RESHAPE:
        if (from->kind == TY_TILE)
            simd_reshape_index(cx, to, ix, from, out);
        return true;
    default: return false;
    }
}

static Ev
ev_arange(Cx *cx, Op *op, Ix x)
{
    int64_t start = attr_int(&op->attrs, ATTR_START, 0);
    const Type *i32 = cx->n->i32;
    if (x.kind == IX_CONST)
        return uni(build_int(&cx->b, i32, x.c + start));
    Value *v = build_cast(&cx->b, OP_TRUNC, x.v ? x.v : ix_value(cx, x), i32);
    if (start)
        v = build_binary(&cx->b, OP_ADD, v, build_int(&cx->b, v->type, start));
    if (x.kind == IX_AFF && cx->w > 1)
        return aff(v, 1);
    return x.kind == IX_VEC ? vec(cx, v) : uni(v);
}

static Ev
ev_gather(Cx *cx, Op *op, const Ix *ix)
{
    Ix in[MAX_RANK];
    int axis = (int)attr_int(&op->attrs, ATTR_AXIS, 0);
    Ev e = simd_eval(cx, op_operand(op, 1), ix);
    Value *v = e.kind == EV_UNI ? e.v : ev_strip(cx, e);
    if (type_bits(v->type) < 64)
        v = build_cast(&cx->b, OP_SEXT, v, cx->n->i64);
    /* a wrong index must not reach outside of the tile's buffer */
    int64_t size = op_operand(op, 0)->type->shape[axis];
    v = build_binary(&cx->b, OP_AND, v, build_int(&cx->b, v->type, size - 1));
    memcpy(in, ix, (size_t)op_operand(op, 0)->type->rank * sizeof *ix);
    in[axis] = (Ix){simd_tile(v) ? IX_VEC : IX_UNI, 0, v};
    return simd_eval(cx, op_operand(op, 0), in);
}

Ev
simd_define(Cx *cx, Value *v, const Ix *ix)
{
    Ix in[MAX_RANK];
    Op *op = v->op;
    switch ((int)op->kind) {
    case OP_CONST:
    case OP_UNDEF: {
        const Type *e = type_elem(v->type);
        return uni(op_result(build_op(&cx->b, op->kind, NULL, 0, &op->attrs, &e, 1), 0));
    }
    case OP_SPLAT: return simd_eval(cx, op_operand(op, 0), ix);
    case OP_ARANGE: return ev_arange(cx, op, ix[0]);
    case OP_LOAD: return simd_load(cx, op, ix);
    case OP_GATHER: return ev_gather(cx, op, ix);
    default: break;
    }
    if (simd_map_shape(cx, op, v->index, ix, in))
        return simd_eval(cx, op_operand(op, 0), in);
    if (op_is(op, T_ELEMENTWISE))
        return elementwise(cx, op, ix);
    diag_error(&cx->n->s->diag, op->loc, "not supported yet: '%s' on target cpu",
               op_info[op->kind].name);
    const Type *e = type_elem(v->type);
    return uni(op_result(build_op(&cx->b, OP_UNDEF, NULL, 0, NULL, &e, 1), 0));
}

Ev
simd_eval(Cx *cx, Value *v, const Ix *ix)
{
    if (!simd_tile(v)) {
        Value *got = map_get(&cx->n->map, v);
        if (!got)
            bug(&cx->n->s->fail, "scalar %%%u has no value yet", (unsigned)v->id);
        return uni(got);
    }
    Ev *old = simd_recall(cx, v, ix);
    if (old)
        return *old;
    Plan *p = plan_get(cx->n, v);
    Ev ev;
    if (cx->square && simd_transpose(cx, v, ix, &ev))
        return ev;
    if (!p->slot)
        ev = simd_define(cx, v, ix);
    else if (!simd_skipped(cx, v, ix, &ev))
        ev = simd_slot_load(cx, p->slot, type_elem(v->type), ix);
    simd_remember(cx, v, ix, ev);
    return ev;
}

Ev
simd_eval_trusting(Cx *cx, Value *v, const Ix *ix, Trust trust)
{
    Map memo = cx->memo;
    bool fast = cx->fast;
    map_init(&cx->memo, cx->n->tmp);
    cx->fast = false;
    cx->trust = trust;
    Ev ev = simd_eval(cx, v, ix);
    cx->trust = TRUST_NONE;
    cx->fast = fast;
    cx->memo = memo;
    return ev;
}
