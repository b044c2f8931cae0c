/* Program ids, creation of tiles, and conversion by tl.cast and x.to. */
#include "frontend/builtin.h"
#include "frontend/module.h"

#include "ir/base/util.h"

#include <string.h>

static Val
grid_value(Sema *s, Args *a, OpKind k)
{
    int64_t axis;
    if (!arg_int(s, a, 0, &axis))
        return val_error();
    if (axis < 0 || axis > 2)
        return sema_error(s, a->at[0], "%s axis must be 0, 1, or 2 but got %lld",
                          a->b->name, (long long)axis);
    AttrList attrs = { 0 };
    attr_set_int(&s->s->mod, &attrs, ATTR_AXIS, axis);
    return val_tensor(s, op_result(build_op(&s->b, k, NULL, 0, &attrs, NULL, 1), 0),
                      DT_INT32);
}

Val
bi_program_id(Sema *s, Args *a)
{
    return grid_value(s, a, OP_PROGRAM_ID);
}

Val
bi_num_programs(Sema *s, Args *a)
{
    return grid_value(s, a, OP_NUM_PROGRAMS);
}

Val
bi_arange(Sema *s, Args *a)
{
    int64_t start, end;
    if (!arg_int(s, a, 0, &start) || !arg_int(s, a, 1, &end))
        return val_error();
    if (start < INT32_MIN || start > INT32_MAX || end < INT32_MIN || end > INT32_MAX)
        return sema_error(s, a->loc, "the bounds of 'arange' must fit in int32");
    if (end <= start)
        return sema_error(s, a->loc, "'arange' needs end > start, found %lld .. %lld",
                          (long long)start, (long long)end);
    if (!is_pow2(end - start)) {
        sema_error(s, a->loc, "arange's range must be a power of 2");
        int64_t next = 1;
        while (next < end - start)
            next *= 2;
        diag_note(&s->s->diag, a->loc, "it has %lld elements: use %lld and a mask",
                  (long long)(end - start), (long long)next);
        return val_error();
    }
    Shape sh = { 1, { end - start } };
    const Type *t = sema_type(s, DT_INT32, sh, a->loc);
    if (!t)
        return val_error();
    AttrList attrs = { 0 };
    attr_set_int(&s->s->mod, &attrs, ATTR_START, start);
    return val_tensor(s, op_result(build_op(&s->b, OP_ARANGE, NULL, 0, &attrs, &t, 1), 0),
                      DT_INT32);
}

static Val
fill(Sema *s, Val value, Shape sh, DType dt, Loc at, Loc loc)
{
    if (value->kind == FE_TENSOR) {
        value = cast(s, unsplat(s, value, at), dt, at);
        return splat(s, value, sh, loc);
    }
    if (!val_is_number(value))
        return sema_error(s, at, "a tile is filled with a number or a scalar, found %s",
                          val_describe(s->a, value));
    return splat(s, const_tensor(s, value, dt, at), sh, loc);
}

Val
bi_full(Sema *s, Args *a)
{
    Shape sh;
    DType dt;
    if (!arg_shape(s, a, 0, &sh) || !arg_dtype(s, a, 2, &dt))
        return val_error();
    return fill(s, a->v[1], sh, dt, a->at[1], a->loc);
}

Val
bi_zeros(Sema *s, Args *a)
{
    Shape sh;
    DType dt;
    if (!arg_shape(s, a, 0, &sh) || !arg_dtype(s, a, 1, &dt))
        return val_error();
    return fill(s, val_int(s, 0), sh, dt, a->loc, a->loc);
}

Val
bi_zeros_like(Sema *s, Args *a)
{
    if (!arg_tensor(s, a, 0))
        return val_error();
    return fill(s, val_int(s, 0), val_shape(a->v[0]), a->v[0]->dt, a->loc, a->loc);
}

Val
bi_cast(Sema *s, Args *a)
{
    DType dt;
    bool bits;
    const char *round;
    if (!arg_tensor(s, a, 0) || !arg_dtype(s, a, 1, &dt) || !arg_str(s, a, 2, &round) ||
        !arg_bool(s, a, 3, &bits))
        return val_error();
    if (*round && strcmp(round, "rtne") != 0 && strcmp(round, "rtz") != 0)
        return sema_error(s, a->at[2], "unknown rounding '%s': 'rtne' and 'rtz' exist",
                          round);
    if (bits)
        return bitcast(s, a->v[0], dt, a->loc);
    return cast_rounded(s, a->v[0], dt, *round ? round : NULL, a->loc);
}

Val
bi_to_tensor(Sema *s, Args *a)
{
    return to_tensor(s, a->v[0], a->at[0]);
}

Val
bi_unwrap_if_constexpr(Sema *s, Args *a)
{
    (void)s;
    return a->v[0];
}

/* Of a value that is not known, as in Triton, it is that value: a loop may end there. */
Val
bi_constexpr(Sema *s, Args *a)
{
    (void)s;
    return a->v[0];
}

Val
bi_pointer_type(Sema *s, Args *a)
{
    DType dt;
    bool is_const;
    if (!arg_dtype(s, a, 0, &dt) || !arg_bool(s, a, 2, &is_const))
        return val_error();
    if (!dtype_is_scalar(dt))
        return sema_error(s, a->at[0], "not supported yet: pointers to %s",
                          dtype_str(s->a, dt));
    return val_dtype(s, dt + (is_const ? DT_CONST_PTR : DT_PTR));
}

Val
bi_block_type(Sema *s, Args *a)
{
    DType dt;
    Shape sh;
    if (!arg_dtype(s, a, 0, &dt) || !arg_shape(s, a, 1, &sh))
        return val_error();
    FeVal *v = val_shaped(s, FE_TYPE, dt, sh);
    v->n = CLASS_BLOCK;
    return v;
}

Val
bi_get_int_dtype(Sema *s, Args *a)
{
    int64_t bits;
    bool is_signed;
    if (!arg_int(s, a, 0, &bits) || !arg_bool(s, a, 1, &is_signed))
        return val_error();
    if (bits == 1) /* of which there is one, signed or not */
        return val_dtype(s, DT_INT1);
    for (DType t = 0; t < DT_COUNT; t++)
        if (dtype_is_int(t) && dtype_bits(t) == bits && dtype_is_signed(t) == is_signed)
            return val_dtype(s, t);
    return sema_error(s, a->at[0], "there is no integer type of %lld bits",
                      (long long)bits);
}

Val
bi_constexpr_type(Sema *s, Args *a)
{
    return get_attribute(s, a->v[0], name_of(&s->s->names, "type"), a->loc, false);
}

Val
bi_tuple_type(Sema *s, Args *a)
{
    Val types = a->v[0];
    if (types->kind != FE_TUPLE)
        return sema_error(s, a->at[0], "'tuple_type' needs a list of types, found %s",
                          val_describe(s->a, types));
    FeVal *v = val_new(s, FE_TYPE);
    v->n = CLASS_TYPE_TUPLE;
    v->rank = types->n;
    v->u.items = types->u.items;
    return v;
}

/* Its arguments have the names of fields, see call_builtin. */
Val
bi_aggregate_replace(Sema *s, Args *a)
{
    return sema_error(s, a->loc, "'aggregate_replace' takes fields by name");
}

Val
bi_slice(Sema *s, Args *a)
{
    FeVal *v = val_new(s, FE_SLICE);
    Val *items = arena_array(s->a, Val, 3);
    for (int i = 0; i < 3; i++)
        items[i] = a->v[i];
    v->n = 3;
    v->u.items = items;
    return v;
}

Val
bi_str_to_ty(Sema *s, Args *a)
{
    const char *name;
    if (!arg_str(s, a, 0, &name))
        return val_error();
    DType dt = dtype_by_sig(name, strlen(name));
    return dt != DT_NONE ? val_dtype(s, dt)
                         : sema_error(s, a->at[0], "there is no type '%s'", name);
}

/* ---- the device that is compiled for */

Val
bi_is_cuda(Sema *s, Args *a)
{
    (void)a;
    return val_bool(s, module_capability(s->m) > 0);
}

Val
bi_cuda_capability_geq(Sema *s, Args *a)
{
    int64_t major, minor;
    if (!arg_int(s, a, 0, &major) || !arg_int(s, a, 1, &minor))
        return val_error();
    return val_bool(s, module_capability(s->m) > 0 &&
                           module_capability(s->m) >= major * 10 + minor);
}

Val
bi_not_here(Sema *s, Args *a)
{
    (void)a;
    return val_bool(s, false);
}

Val
bi_num_warps(Sema *s, Args *a)
{
    if (!s->f)
        return sema_error(s, a->loc, "'num_warps' is known in a kernel only");
    s->f->fixed_warps = true;
    return val_int(s, s->f->num_warps);
}

Val
bi_num_threads(Sema *s, Args *a)
{
    Val n = bi_num_warps(s, a);
    return val_is_error(n) ? n : val_int(s, n->u.i * 32);
}
