/* Shapes: checks, broadcasting, and the ops that only move elements. */
#include "frontend/sema.h"

#include "ir/base/util.h"

#include <string.h>

bool
sema_check_dtype(Sema *s, DType dt, Loc loc)
{
    DType scalar = dtype_is_ptr(dt) ? dtype_pointee(dt) : dt;
    if (dtype_is_scalar(scalar) && dtype_info[scalar].ir != SK_NONE)
        return true;
    sema_error(s, loc, "%s is no type of values", dtype_str(s->a, dt));
    return false;
}

bool
sema_check_shape(Sema *s, Shape sh, Loc loc)
{
    int64_t n = 1;
    if (sh.rank > MAX_RANK) {
        sema_error(s, loc, "a tile has at most %d dimensions, found %d", MAX_RANK,
                   sh.rank);
        return false;
    }
    for (int i = 0; i < sh.rank; i++) {
        if (!is_pow2(sh.dim[i])) {
            sema_error(s, loc, "Shape element %d must be a power of 2", i);
            diag_note(&s->s->diag, loc, "it is %lld in shape %s", (long long)sh.dim[i],
                      shape_str(s->a, sh));
            return false;
        }
        if (sh.dim[i] > MAX_NUMEL || (n *= sh.dim[i]) > MAX_NUMEL) {
            sema_error(s, loc, "a tile has at most %d elements: shape %s is larger",
                       MAX_NUMEL, shape_str(s->a, sh));
            return false;
        }
    }
    return true;
}

const Type *
sema_type(Sema *s, DType dt, Shape sh, Loc loc)
{
    if (!sema_check_dtype(s, dt, loc) || !sema_check_shape(s, sh, loc))
        return NULL;
    const Type *elem = dtype_ir(s->s, dt);
    return sh.rank ? type_tile(s->s->types, elem, sh.rank, sh.dim, NULL) : elem;
}

Val
splat(Sema *s, Val x, Shape sh, Loc loc)
{
    if (val_is_error(x) || !sh.rank)
        return x;
    const Type *t = sema_type(s, x->dt, sh, loc);
    return t ? val_tensor(s, build_splat(&s->b, x->v, t), x->dt) : val_error();
}

Val
unsplat(Sema *s, Val x, Loc loc)
{
    if (val_is_error(x) || x->rank == 0)
        return x;
    if (shape_numel(val_shape(x)) != 1)
        return sema_error(s, loc, "needed a tensor of one element, found %s",
                          val_describe(s->a, x));
    return val_tensor(s, build_reshape(&s->b, x->v, 0, x->shape), x->dt);
}

bool
wrap_axis(Sema *s, int64_t axis, int rank, int *out, Loc loc)
{
    if (axis < -rank || axis >= rank) {
        sema_error(s, loc, "invalid axis %lld: needed %d <= axis < %d",
                   (long long)axis, -rank, rank);
        return false;
    }
    *out = (int)(axis < 0 ? axis + rank : axis);
    return true;
}

Val
expand_dim(Sema *s, Val x, int axis, Loc loc)
{
    if (val_is_error(x))
        return x;
    Shape sh = val_shape(x);
    if (sh.rank == MAX_RANK)
        return sema_error(s, loc, "a tile has at most %d dimensions", MAX_RANK);
    memmove(sh.dim + axis + 1, sh.dim + axis, sizeof *sh.dim * (size_t)(sh.rank - axis));
    sh.dim[axis] = 1;
    sh.rank++;
    if (!x->rank)
        return splat(s, x, sh, loc);
    return val_tensor(s, build_expand_dims(&s->b, x->v, axis), x->dt);
}

Val
broadcast_to(Sema *s, Val x, Shape sh, Loc loc)
{
    if (val_is_error(x))
        return x;
    if (!x->rank)
        return splat(s, x, sh, loc);
    if (x->rank != sh.rank)
        return sema_error(s, loc, "cannot broadcast %s to %s: the ranks differ",
                          shape_str(s->a, val_shape(x)), shape_str(s->a, sh));
    if (shape_eq(val_shape(x), sh))
        return x;
    for (int i = 0; i < sh.rank; i++)
        if (x->shape[i] != sh.dim[i] && x->shape[i] != 1)
            return sema_error(s, loc, "cannot broadcast %s to %s: dimension %d is %lld, "
                              "needed 1 or %lld", shape_str(s->a, val_shape(x)),
                              shape_str(s->a, sh), i, (long long)x->shape[i],
                              (long long)sh.dim[i]);
    if (!sema_check_shape(s, sh, loc))
        return val_error();
    return val_tensor(s, build_broadcast(&s->b, x->v, sh.dim), x->dt);
}

bool
broadcast_pair(Sema *s, Val *x, Val *y, Loc loc)
{
    Shape sx = val_shape(*x), sy = val_shape(*y), to = { 0 };
    if (val_is_error(*x) || val_is_error(*y))
        return false;
    if (shape_eq(sx, sy))
        return true;
    if (!sx.rank || !sy.rank) {
        to = sx.rank ? sx : sy;
    } else {
        to.rank = sx.rank > sy.rank ? sx.rank : sy.rank;
        for (int i = 0; i < to.rank; i++) {
            int ix = i - (to.rank - sx.rank), iy = i - (to.rank - sy.rank);
            int64_t dx = ix < 0 ? 1 : sx.dim[ix], dy = iy < 0 ? 1 : sy.dim[iy];
            if (dx != dy && dx != 1 && dy != 1) {
                sema_error(s, loc,
                           "shapes %s and %s do not fit together: dimension %d is "
                           "%lld and %lld",
                           shape_str(s->a, sx), shape_str(s->a, sy), i, (long long)dx,
                           (long long)dy);
                return false;
            }
            to.dim[i] = dx == 1 ? dy : dx;
        }
        while ((*x)->rank < to.rank)
            *x = expand_dim(s, *x, 0, loc);
        while ((*y)->rank < to.rank)
            *y = expand_dim(s, *y, 0, loc);
    }
    *x = broadcast_to(s, *x, to, loc);
    *y = broadcast_to(s, *y, to, loc);
    return !val_is_error(*x) && !val_is_error(*y);
}

Val
reshape(Sema *s, Val x, Shape sh, bool reorder, Loc loc)
{
    if (val_is_error(x))
        return x;
    if (!sema_check_shape(s, sh, loc))
        return val_error();
    if (shape_numel(sh) != shape_numel(val_shape(x)))
        return sema_error(s, loc, "cannot reshape %s to %s: %lld elements to %lld",
                          shape_str(s->a, val_shape(x)), shape_str(s->a, sh),
                          (long long)shape_numel(val_shape(x)),
                          (long long)shape_numel(sh));
    if (shape_eq(val_shape(x), sh))
        return x;
    if (!sh.rank)
        return unsplat(s, x, loc);
    if (!x->rank)
        return splat(s, x, sh, loc);
    Value *v = build_reshape(&s->b, x->v, sh.rank, sh.dim);
    if (reorder && v->op)
        attr_set_flag(&s->s->mod, &v->op->attrs, ATTR_REORDER);
    return val_tensor(s, v, x->dt);
}

Val
permute(Sema *s, Val x, const int64_t *perm, int n, Loc loc)
{
    if (val_is_error(x))
        return x;
    if (n != x->rank)
        return sema_error(s, loc, "a permutation of %d dimensions is needed, found %d",
                          x->rank, n);
    unsigned seen = 0;
    bool identity = true;
    for (int i = 0; i < n; i++) {
        if (perm[i] < 0 || perm[i] >= n || seen >> perm[i] & 1)
            return sema_error(s, loc, "dimensions must be a permutation of 0..%d", n - 1);
        seen |= 1u << perm[i];
        identity = identity && perm[i] == i;
    }
    return identity ? x : val_tensor(s, build_trans(&s->b, x->v, perm), x->dt);
}
