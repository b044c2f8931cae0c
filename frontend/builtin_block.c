/* Block pointers and tensor descriptors. */
#include "frontend/builtin.h"

#include "ir/base/util.h"

#include <string.h>

/* Elements of a tuple argument (or one value) as scalar operands of int32 or int64. */
static int
scalars(Sema *s, Args *a, int i, DType dt, Value **out)
{
    Val v = a->v[i];
    const Val *items = v->kind == FE_TUPLE ? v->u.items : &v;
    int n = v->kind == FE_TUPLE ? v->n : 1;
    if (n > MAX_RANK) {
        sema_error(s, a->at[i], "at most %d dimensions, found %d", MAX_RANK, n);
        return -1;
    }
    for (int k = 0; k < n; k++) {
        Val e = items[k];
        if (val_is_error(e))
            return -1;
        if (val_is_int(e)) {
            if (e->u.i < dtype_min(dt) || e->u.i > dtype_max(dt)) {
                sema_error(s, a->at[i], "%s does not fit in %s", val_describe(s->a, e),
                           dtype_str(s->a, dt));
                return -1;
            }
            out[k] = const_tensor(s, e, dt, a->at[i])->v;
            continue;
        }
        if (e->kind != FE_TENSOR || !dtype_is_int(e->dt) ||
            shape_numel(val_shape(e)) != 1) {
            sema_error(s, a->at[i], "'%s' of '%s' must hold integer scalars, found %s",
                       arg_name(s, a, i), a->b->name, val_describe(s->a, e));
            return -1;
        }
        if (dt == DT_INT32 && dtype_bits(e->dt) == 64) {
            sema_error(s, a->at[i], "'%s' of '%s' takes 32-bit values, found %s; add "
                       ".to(tl.int32)", arg_name(s, a, i), a->b->name,
                       val_describe(s->a, e));
            return -1;
        }
        out[k] = cast(s, unsplat(s, e, a->at[i]), dt, a->at[i])->v;
    }
    return n;
}

static bool
check_counts(Sema *s, Args *a, int i, int n, int rank)
{
    if (n == rank)
        return true;
    if (n >= 0)
        sema_error(s, a->at[i], "'%s' of '%s' must have %d elements, as the block has "
                   "dimensions; found %d", arg_name(s, a, i), a->b->name, rank, n);
    return false;
}

static bool
check_base(Sema *s, Args *a)
{
    Val p = a->v[0];
    if (p->kind == FE_TENSOR && !p->rank && dtype_is_ptr(p->dt))
        return true;
    if (!val_is_error(p))
        sema_error(s, a->at[0], "the base of '%s' must be a scalar pointer, found %s",
                   a->b->name, val_describe(s->a, p));
    return false;
}

static Val
block_value(Sema *s, FeKind kind, Value *v, DType dt, Shape sh)
{
    FeVal *r = val_shaped(s, kind, dt, sh);
    r->v = v;
    return r;
}

Val
bi_make_block_ptr(Sema *s, Args *a)
{
    Shape block;
    int64_t order[MAX_RANK];
    int norder;
    Value *in[1 + 3 * MAX_RANK];
    if (!check_base(s, a) || !arg_shape(s, a, 4, &block) ||
        !arg_ints(s, a, 5, order, &norder))
        return val_error();
    int rank = block.rank, n = 0;
    in[n++] = a->v[0]->v;
    for (int i = 1; i <= 3; i++) {
        int got = scalars(s, a, i, i == 3 ? DT_INT32 : DT_INT64, in + n);
        if (!check_counts(s, a, i, got, rank))
            return val_error();
        n += got;
    }
    if (!check_counts(s, a, 5, norder, rank))
        return val_error();
    unsigned seen = 0;
    for (int i = 0; i < rank; i++) {
        if (order[i] < 0 || order[i] >= rank || seen >> order[i] & 1)
            return sema_error(s, a->at[5], "'order' must be a permutation of 0..%d",
                              rank - 1);
        seen |= 1u << order[i];
    }
    DType dt = dtype_pointee(a->v[0]->dt);
    if (dt == DT_INT1)
        dt = DT_INT8;
    const Type *t = type_block_ptr(s->s->types, dtype_ir(s->s, dt), rank, block.dim);
    Op *op = build_op(&s->b, OP_MAKE_BLOCK_PTR, in, n, NULL, &t, 1);
    return block_value(s, FE_BLOCK_PTR, op_result(op, 0), dt, block);
}

Val
bi_advance(Sema *s, Args *a)
{
    Value *in[1 + MAX_RANK];
    Val p = a->v[0];
    if (p->kind != FE_BLOCK_PTR)
        return sema_error(s, a->at[0], "'advance' needs a block pointer, found %s",
                          val_describe(s->a, p));
    in[0] = p->v;
    int n = scalars(s, a, 1, DT_INT32, in + 1);
    if (!check_counts(s, a, 1, n, p->rank))
        return val_error();
    Op *op = build_op(&s->b, OP_ADVANCE, in, n + 1, NULL, NULL, 1);
    return block_value(s, FE_BLOCK_PTR, op_result(op, 0), p->dt, val_shape(p));
}

static Val
desc_value(Sema *s, DType dt, Value **in, Value *v, Shape block)
{
    FeVal *r = (FeVal *)block_value(s, FE_DESC, v, dt, block);
    Val *items = arena_array(s->a, Val, 2 * block.rank);
    for (int i = 0; i < 2 * block.rank; i++)
        items[i] = val_tensor(s, in[1 + i], i < block.rank ? DT_INT32 : DT_INT64);
    r->u.items = items;
    return r;
}

Val
bi_make_tensor_descriptor(Sema *s, Args *a)
{
    Shape block;
    Value *in[1 + 2 * MAX_RANK];
    const char *padding;
    if (!check_base(s, a) || !arg_shape(s, a, 3, &block) || !arg_str(s, a, 4, &padding))
        return val_error();
    int rank = block.rank, n = 0;
    DType dt = dtype_pointee(a->v[0]->dt);
    if (dt == DT_INT1)
        dt = DT_INT8; /* stored as bytes */
    if (rank < 1 || rank > 5)
        return sema_error(s, a->at[3], "a descriptor has 1 to 5 dimensions, found %d",
                          rank);
    in[n++] = a->v[0]->v;
    for (int i = 1; i <= 2; i++) {
        int got = scalars(s, a, i, i == 1 ? DT_INT32 : DT_INT64, in + n);
        if (!check_counts(s, a, i, got, rank))
            return val_error();
        n += got;
    }
    Val strides = a->v[2];
    Val last = strides->kind == FE_TUPLE ? strides->u.items[strides->n - 1] : strides;
    if (!val_is_int(last) || last->u.i != 1)
        return sema_error(s, a->at[2], "the last stride of a descriptor must be the "
                          "constant 1, found %s", val_describe(s->a, last));
    int64_t bytes = block.dim[rank - 1] * dtype_bits(dt) / 8;
    if (bytes < 16)
        return sema_error(s, a->at[3], "Descriptor block shape must have at least 16 "
                          "bytes in the last dimension, found %lld", (long long)bytes);
    if (strcmp(padding, "zero") != 0 && strcmp(padding, "nan") != 0 && *padding)
        return sema_error(s, a->at[4], "unknown padding option '%s': 'zero' and 'nan' "
                          "exist", padding);
    if (strcmp(padding, "nan") == 0 && !dtype_is_float(dt))
        return sema_error(s, a->at[4], "padding 'nan' needs a float element type");
    AttrList attrs = { 0 };
    attr_set_str(&s->s->mod, &attrs, ATTR_PADDING,
                 name_of(&s->s->names, *padding ? padding : "zero"));
    const Type *elem = dtype_ir(s->s, dt);
    const Type *t = type_desc(s->s->types, elem, rank, block.dim);
    Op *op = build_op(&s->b, OP_MAKE_DESC, in, n, &attrs, &t, 1);
    return desc_value(s, dt, in, op_result(op, 0), block);
}

static bool
check_desc(Sema *s, Args *a)
{
    if (a->v[0]->kind == FE_DESC)
        return true;
    if (!val_is_error(a->v[0]))
        sema_error(s, a->at[0], "'%s' needs a tensor descriptor, found %s", a->b->name,
                   val_describe(s->a, a->v[0]));
    return false;
}

Val
bi_desc_load(Sema *s, Args *a)
{
    Value *in[1 + MAX_RANK];
    if (!check_desc(s, a))
        return val_error();
    Val d = a->v[0];
    in[0] = d->v;
    int n = scalars(s, a, 1, DT_INT32, in + 1);
    if (!check_counts(s, a, 1, n, d->rank))
        return val_error();
    Op *op = build_op(&s->b, OP_DESC_LOAD, in, n + 1, NULL, NULL, 1);
    return val_tensor(s, op_result(op, 0), d->dt);
}

static Val
desc_write(Sema *s, Args *a, const char *rmw)
{
    Value *in[2 + MAX_RANK];
    if (!check_desc(s, a) || !arg_tensor(s, a, 2))
        return val_error();
    Val d = a->v[0], v = a->v[2];
    if (!shape_eq(val_shape(v), val_shape(d)))
        return sema_error(s, a->at[2], "the descriptor's block is %s, the value is %s",
                          type_describe(s->a, d->dt, val_shape(d)),
                          val_describe(s->a, v));
    v = cast(s, v, d->dt, a->at[2]);
    if (val_is_error(v))
        return v;
    in[0] = d->v;
    in[1] = v->v;
    int n = scalars(s, a, 1, DT_INT32, in + 2);
    if (!check_counts(s, a, 1, n, d->rank))
        return val_error();
    AttrList attrs = { 0 };
    if (rmw)
        attr_set_str(&s->s->mod, &attrs, ATTR_RMW, name_of(&s->s->names, rmw));
    build_op(&s->b, rmw ? OP_DESC_ATOMIC : OP_DESC_STORE, in, n + 2, &attrs, NULL, 0);
    return val_none();
}

Val
bi_desc_store(Sema *s, Args *a)
{
    return desc_write(s, a, NULL);
}

static Val
desc_atomic(Sema *s, Args *a, const char *f, const char *i, const char *u)
{
    if (!check_desc(s, a))
        return val_error();
    DType dt = a->v[0]->dt;
    const char *rmw = dtype_is_float(dt) ? f : dtype_is_signed(dt) ? i : u;
    if (!rmw || dtype_bits(dt) < 16 || (dtype_is_int(dt) && dtype_bits(dt) < 32))
        return sema_error(s, a->loc, "'%s' does not work on %s", a->b->name,
                          dtype_str(s->a, dt));
    return desc_write(s, a, rmw);
}

Val
bi_desc_atomic_add(Sema *s, Args *a)
{
    return desc_atomic(s, a, "fadd", "add", "add");
}

Val
bi_desc_atomic_min(Sema *s, Args *a)
{
    return desc_atomic(s, a, "fmin", "smin", "umin");
}

Val
bi_desc_atomic_max(Sema *s, Args *a)
{
    return desc_atomic(s, a, "fmax", "smax", "umax");
}

Val
bi_desc_atomic_and(Sema *s, Args *a)
{
    return desc_atomic(s, a, NULL, "and", "and");
}

Val
bi_desc_atomic_or(Sema *s, Args *a)
{
    return desc_atomic(s, a, NULL, "or", "or");
}

Val
bi_desc_atomic_xor(Sema *s, Args *a)
{
    return desc_atomic(s, a, NULL, "xor", "xor");
}

static bool
check_rows(Sema *s, Args *a, int rows)
{
    Val d = a->v[0], x = a->v[rows];
    if (x->dt == DT_INT16)
        x = a->v[rows] = cast(s, x, DT_INT32, a->at[rows]);
    if (d->rank != 2 || d->shape[0] != 1) {
        sema_error(s, a->at[0], "'%s' needs a descriptor of one row, found %s",
                   a->b->name, val_describe(s->a, d));
        return false;
    }
    if (x->rank != 1 || x->dt != DT_INT32 || x->shape[0] < 8) {
        sema_error(s, a->at[rows],
                   "'%s' needs at least 8 row offsets, int32[n] or int16[n], found %s",
                   a->b->name, val_describe(s->a, x));
        return false;
    }
    return true;
}

Val
bi_desc_gather(Sema *s, Args *a)
{
    Value *y[MAX_RANK];
    if (!check_desc(s, a) || !arg_tensor(s, a, 1) || !check_rows(s, a, 1) ||
        !check_counts(s, a, 2, scalars(s, a, 2, DT_INT32, y), 1))
        return val_error();
    Val d = a->v[0];
    Shape sh = { 2, { a->v[1]->shape[0], d->shape[1] } };
    const Type *t = sema_type(s, d->dt, sh, a->loc);
    if (!t)
        return val_error();
    Value *in[] = { d->v, a->v[1]->v, y[0] };
    return val_tensor(
        s, op_result(build_op(&s->b, OP_DESC_GATHER, in, 3, NULL, &t, 1), 0), d->dt);
}

Val
bi_desc_scatter(Sema *s, Args *a)
{
    Value *y[MAX_RANK];
    if (!check_desc(s, a) || !arg_tensor(s, a, 1) || !arg_tensor(s, a, 2) ||
        !check_rows(s, a, 2) || !check_counts(s, a, 3, scalars(s, a, 3, DT_INT32, y), 1))
        return val_error();
    Val d = a->v[0];
    Shape sh = { 2, { a->v[2]->shape[0], d->shape[1] } };
    if (!shape_eq(val_shape(a->v[1]), sh))
        return sema_error(s, a->at[1], "the rows are %s, the value is %s",
                          type_describe(s->a, d->dt, sh), val_describe(s->a, a->v[1]));
    Val v = cast(s, a->v[1], d->dt, a->at[1]);
    if (val_is_error(v))
        return v;
    Value *in[] = { d->v, v->v, a->v[2]->v, y[0] };
    build_op(&s->b, OP_DESC_SCATTER, in, 4, NULL, NULL, 0);
    return val_none();
}
