/* Builtins that only move elements. */
#include "frontend/builtin.h"

#include "ir/base/util.h"

#include <string.h>

static Val
pair(Sema *s, Val x, Val y)
{
    Val *items = arena_array(s->a, Val, 2);
    items[0] = x;
    items[1] = y;
    return val_tuple(s, items, 2);
}

Val
bi_broadcast(Sema *s, Args *a)
{
    if (!arg_tensor(s, a, 0) || !arg_tensor(s, a, 1) ||
        !broadcast_pair(s, &a->v[0], &a->v[1], a->loc))
        return val_error();
    return pair(s, a->v[0], a->v[1]);
}

Val
bi_broadcast_to(Sema *s, Args *a)
{
    Shape sh;
    if (!arg_tensor(s, a, 0) || !arg_shape(s, a, 1, &sh))
        return val_error();
    return broadcast_to(s, a->v[0], sh, a->loc);
}

static int
compare_axis(const int64_t *axes, int n, int64_t axis)
{
    for (int i = 0; i < n; i++)
        if (axes[i] == axis)
            return i;
    return -1;
}

static Val
duplicate_axes(Sema *s, Args *a, const int64_t *axes, int n, int rank)
{
    Buf b;
    buf_init(&b, s->a);
    for (int i = 0; i < n; i++)
        buf_printf(&b, "%s%lld", i ? ", " : "",
                   (long long)(axes[i] < 0 ? axes[i] + rank : axes[i]));
    return sema_error(s, a->at[1], "duplicate axes, normalized axes = [%s]", b.s);
}

Val
bi_expand_dims(Sema *s, Args *a)
{
    int64_t axes[MAX_RANK];
    int n;
    if (!arg_tensor(s, a, 0) || !arg_ints(s, a, 1, axes, &n))
        return val_error();
    int rank = a->v[0]->rank + n;
    if (rank > MAX_RANK)
        return sema_error(s, a->loc, "a tile has at most %d dimensions", MAX_RANK);
    for (int i = 0; i < n; i++) {
        int axis;
        if (!wrap_axis(s, axes[i], rank, &axis, a->at[1]))
            return val_error();
        if (compare_axis(axes, i, axis) >= 0)
            return duplicate_axes(s, a, axes, n, rank);
        axes[i] = axis;
    }
    Val x = a->v[0];
    for (int axis = 0; axis < rank; axis++)
        if (compare_axis(axes, n, axis) >= 0)
            x = expand_dim(s, x, axis, a->loc);
    return x;
}

static Val
reshape_call(Sema *s, Args *a, bool reorder)
{
    Shape sh;
    if (!arg_tensor(s, a, 0) || !arg_shape(s, a, 1, &sh))
        return val_error();
    return reshape(s, a->v[0], sh, reorder, a->loc);
}

Val
bi_reshape(Sema *s, Args *a)
{
    bool reorder;
    if (!arg_bool(s, a, 2, &reorder))
        return val_error();
    return reshape_call(s, a, reorder);
}

Val
bi_view(Sema *s, Args *a)
{
    return reshape_call(s, a, true);
}

Val
bi_ravel(Sema *s, Args *a)
{
    bool reorder;
    if (!arg_tensor(s, a, 0) || !arg_bool(s, a, 1, &reorder))
        return val_error();
    Shape sh = { 1, { shape_numel(val_shape(a->v[0])) } };
    return reshape(s, a->v[0], sh, reorder, a->loc);
}

Val
bi_permute(Sema *s, Args *a)
{
    int64_t perm[MAX_RANK];
    int n;
    if (!arg_tensor(s, a, 0) || !arg_ints(s, a, 1, perm, &n))
        return val_error();
    return permute(s, a->v[0], perm, n, a->at[1]);
}

Val
bi_trans(Sema *s, Args *a)
{
    int64_t perm[MAX_RANK];
    int n;
    if (!arg_tensor(s, a, 0) || !arg_ints(s, a, 1, perm, &n))
        return val_error();
    if (n == 0) {
        n = a->v[0]->rank;
        if (n < 2)
            return sema_error(s, a->loc, "'trans' needs at least 2 dimensions, found %s",
                              val_describe(s->a, a->v[0]));
        for (int i = 0; i < n; i++)
            perm[i] = i;
        perm[n - 2] = n - 1;
        perm[n - 1] = n - 2;
    }
    return permute(s, a->v[0], perm, n, a->at[1]);
}

Val
bi_join(Sema *s, Args *a)
{
    if (!arg_tensor(s, a, 0) || !arg_tensor(s, a, 1) ||
        !broadcast_pair(s, &a->v[0], &a->v[1], a->loc))
        return val_error();
    Val x = a->v[0], y = a->v[1];
    if (x->dt != y->dt)
        return sema_error(s, a->loc, "'join' needs equal types, found %s and %s",
                          val_describe(s->a, x), val_describe(s->a, y));
    bool scalars = x->rank == 0;
    Shape to = val_shape(x);
    if (to.rank == MAX_RANK)
        return sema_error(s, a->loc, "a tile has at most %d dimensions", MAX_RANK);
    to.dim[to.rank++] = 2;
    if (!sema_check_shape(s, to, a->loc))
        return val_error();
    if (scalars) {
        x = expand_dim(s, x, 0, a->loc);
        y = expand_dim(s, y, 0, a->loc);
    }
    Val r = val_tensor(s, build_binary(&s->b, OP_JOIN, x->v, y->v), x->dt);
    return scalars ? reshape(s, r, to, false, a->loc) : r;
}

Val
bi_split(Sema *s, Args *a)
{
    if (!arg_tensor(s, a, 0))
        return val_error();
    Val x = a->v[0];
    if (!x->rank || x->shape[x->rank - 1] != 2)
        return sema_error(s, a->loc, "'split' needs a last dimension of size 2, found %s",
                          val_describe(s->a, x));
    bool scalars = x->rank == 1;
    if (scalars)
        x = expand_dim(s, x, 0, a->loc);
    Op *op = build_op(&s->b, OP_SPLIT, (Value *[]){ x->v }, 1, NULL, NULL, 2);
    Val lo = val_tensor(s, op_result(op, 0), x->dt);
    Val hi = val_tensor(s, op_result(op, 1), x->dt);
    if (scalars) {
        lo = unsplat(s, lo, a->loc);
        hi = unsplat(s, hi, a->loc);
    }
    return pair(s, lo, hi);
}

Val
bi_cat(Sema *s, Args *a)
{
    int64_t dim;
    int axis;
    if (!arg_tensor(s, a, 0) || !arg_tensor(s, a, 1) || !arg_int(s, a, 3, &dim))
        return val_error();
    Val x = a->v[0], y = a->v[1];
    if (!x->rank || x->rank != y->rank || x->dt != y->dt)
        return sema_error(s, a->loc, "'cat' needs tensors of one type and rank, found %s "
                          "and %s", val_describe(s->a, x), val_describe(s->a, y));
    if (!wrap_axis(s, dim, x->rank, &axis, a->at[3]))
        return val_error();
    Shape to = val_shape(x);
    for (int i = 0; i < x->rank; i++)
        if (i != axis && x->shape[i] != y->shape[i])
            return sema_error(s, a->loc, "'cat' needs equal sizes outside of dimension "
                              "%d, found %s and %s", axis, val_describe(s->a, x),
                              val_describe(s->a, y));
    if (x->shape[axis] != y->shape[axis])
        return sema_error(s, a->loc,
                          "'cat' needs equal sizes along dimension %d, so that "
                          "the sum is a power of 2: found %lld and %lld",
                          axis, (long long)x->shape[axis], (long long)y->shape[axis]);
    to.dim[axis] += y->shape[axis];
    if (!sema_check_shape(s, to, a->loc))
        return val_error();
    AttrList attrs = { 0 };
    attr_set_int(&s->s->mod, &attrs, ATTR_AXIS, axis);
    Op *op = build_op(&s->b, OP_CAT, (Value *[]){ x->v, y->v }, 2, &attrs, NULL, 1);
    return val_tensor(s, op_result(op, 0), x->dt);
}

Val
bi_item(Sema *s, Args *a)
{
    return arg_tensor(s, a, 0) ? unsplat(s, a->v[0], a->loc) : val_error();
}

Val
bi_squeeze(Sema *s, Args *a)
{
    int64_t dim;
    int axis;
    if (!arg_tensor(s, a, 0) || !arg_int(s, a, 1, &dim) ||
        !wrap_axis(s, dim, a->v[0]->rank, &axis, a->at[1]))
        return val_error();
    Shape sh = val_shape(a->v[0]);
    if (sh.dim[axis] != 1)
        return sema_error(s, a->at[1], "dimension %d of %s is not 1", axis,
                          val_describe(s->a, a->v[0]));
    sh.rank--;
    memmove(sh.dim + axis, sh.dim + axis + 1, sizeof *sh.dim * (size_t)(sh.rank - axis));
    return reshape(s, a->v[0], sh, false, a->loc);
}

Val
bi_unsqueeze(Sema *s, Args *a)
{
    int64_t dim;
    int axis;
    if (!arg_tensor(s, a, 0) || !arg_int(s, a, 1, &dim) ||
        !wrap_axis(s, dim, a->v[0]->rank + 1, &axis, a->at[1]))
        return val_error();
    return expand_dim(s, a->v[0], axis, a->loc);
}

Val
bi_gather(Sema *s, Args *a)
{
    int64_t dim;
    int axis;
    if (!arg_tensor(s, a, 0) || !arg_tensor(s, a, 1) || !arg_int(s, a, 2, &dim))
        return val_error();
    Val x = a->v[0], index = a->v[1];
    if (!dtype_is_int(index->dt))
        return sema_error(s, a->at[1], "the index of 'gather' must be an integer tensor, "
                          "found %s", val_describe(s->a, index));
    if (x->rank != index->rank || !x->rank)
        return sema_error(s, a->loc, "'gather' needs source and index of one rank, found "
                          "%s and %s", val_describe(s->a, x), val_describe(s->a, index));
    if (!wrap_axis(s, dim, x->rank, &axis, a->at[2]))
        return val_error();
    for (int i = 0; i < x->rank; i++)
        if (i != axis && x->shape[i] != index->shape[i])
            return sema_error(s, a->at[1], "'gather' along %d needs equal sizes in the "
                              "other dimensions, found %s and %s", axis,
                              val_describe(s->a, x), val_describe(s->a, index));
    if (dtype_bits(index->dt) < 32)
        index = cast(s, index, DT_INT32, a->at[1]);
    AttrList attrs = { 0 };
    attr_set_int(&s->s->mod, &attrs, ATTR_AXIS, axis);
    Op *op = build_op(&s->b, OP_GATHER, (Value *[]){x->v, index->v}, 2, &attrs, NULL, 1);
    return val_tensor(s, op_result(op, 0), x->dt);
}
