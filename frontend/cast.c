/* Constants to tensors, and conversions between element types. */
#include "frontend/ast.h"
#include "frontend/sema.h"

#include <math.h>
#include <string.h>

Val
to_tensor(Sema *s, Val v, Loc loc)
{
    if (v->kind == FE_TENSOR || v->kind == FE_ERROR || v->kind == FE_BLOCK_PTR ||
        v->kind == FE_DESC)
        return v;
    if (v->kind == FE_NONE && v->u.func && !s->host) {
        const Node *fn = v->u.func;
        sema_error(s, loc, "needed a tensor or a number, but '%s' returned nothing",
                   fn->name);
        diag_note(&s->s->diag, fn->loc, "no 'return' is on the way that its constexprs "
                  "choose here");
        return val_error();
    }
    if (!val_is_number(v) || s->host)
        return sema_error(s, loc, "needed a tensor%s, found %s",
                          s->host ? "" : " or a number", val_describe(s->a, v));
    DType dt = number_dtype(v);
    if (dt == DT_NONE)
        return sema_error(s, loc, "%s does not fit any integer type",
                          val_describe(s->a, v));
    return const_tensor(s, v, dt, loc);
}

Val
const_tensor(Sema *s, Val v, DType dt, Loc loc)
{
    if (!sema_check_dtype(s, dt, loc))
        return val_error();
    if (dtype_is_ptr(dt)) {
        if (!val_is_int(v))
            return sema_error(s, loc, "cannot make a pointer of %s",
                              val_describe(s->a, v));
        Value *addr = build_int(&s->b, type_scalar(s->s->types, SK_I64), (int64_t)v->u.i);
        Value *p = build_cast(&s->b, OP_INTTOPTR, addr, dtype_ir(s->s, dt));
        return val_tensor(s, p, dt);
    }
    const Type *t = dtype_ir(s->s, dt);
    if (dtype_is_fp8(dt) && val_double(v) != 0)
        return cast(s, const_tensor(s, v, DT_FP32, loc), dt, loc);
    if (dtype_is_fnuz(dt))
        return val_tensor(s, build_int(&s->b, t, 0), dt);
    if (dtype_is_float(dt))
        return val_tensor(s, build_float(&s->b, t, val_double(v)), dt);
    if (v->kind == FE_FLOAT) {
        if (v->u.f != floor(v->u.f) || fabs(v->u.f) > 0x1p63)
            return sema_error(s, loc, "%s has no exact value of type %s",
                              val_describe(s->a, v), dtype_str(s->a, dt));
        return val_tensor(s, build_int(&s->b, t, (int64_t)v->u.f), dt);
    }
    if (dt == DT_INT1)
        return val_tensor(s, build_int(&s->b, t, v->u.i != 0), dt);
    if (v->u.i < dtype_min(dt) && v->u.i < -dtype_max(dt))
        return sema_error(s, loc, "%s is out of range for type %s",
                          val_describe(s->a, v), dtype_str(s->a, dt));
    return val_tensor(s, build_int(&s->b, t, (int64_t)v->u.i), dt);
}

static Val
cast_op(Sema *s, OpKind k, Val x, DType to)
{
    return val_tensor(s, build_cast(&s->b, k, x->v, dtype_ir(s->s, to)), to);
}

static Val
retype(Sema *s, Val x, DType to)
{
    return val_tensor(s, x->v, to);
}

Val
cast_i1(Sema *s, Val x, Loc loc)
{
    if (val_is_error(x) || x->dt == DT_INT1)
        return x;
    if (dtype_is_ptr(x->dt))
        x = cast(s, x, DT_INT64, loc);
    if (dtype_is_fnuz(x->dt))
        x = cast(s, x, DT_FP32, loc);
    if (val_is_error(x))
        return x;
    Shape sh = val_shape(x);
    Val zero = splat(s, const_tensor(s, val_int(s, 0), x->dt, loc), sh, loc);
    if (val_is_error(zero))
        return zero;
    bool is_float = dtype_is_float(x->dt);
    Value *c = build_cmp(&s->b, is_float ? OP_CMPF : OP_CMPI, is_float ? "une" : "ne",
                         x->v, zero->v);
    return val_tensor(s, c, DT_INT1);
}

static Val
cast_float(Sema *s, Val x, DType to, const char *round, Loc loc)
{
    int from_bits = dtype_bits(x->dt), to_bits = dtype_bits(to);
    /* Between formats of one width (fp16 and bf16, two of fp8) there is no one step. */
    if (from_bits == to_bits)
        return cast_float(s, cast_op(s, OP_FEXT, x, DT_FP32), to, round, loc);
    if (from_bits < to_bits)
        return cast_op(s, OP_FEXT, x, to);
    if (!round)
        return cast_op(s, OP_FTRUNC, x, to);
    AttrList attrs = { 0 };
    attr_set_str(&s->s->mod, &attrs, ATTR_ROUND, name_of(&s->s->names, round));
    const Type *t = type_like(s->s->types, x->v->type, dtype_ir(s->s, to));
    Op *op = build_op(&s->b, OP_FTRUNC, (Value *[]){ x->v }, 1, &attrs, &t, 1);
    return val_tensor(s, op_result(op, 0), to);
}

static Val
cast_int(Sema *s, Val x, DType to)
{
    int from_bits = dtype_bits(x->dt), to_bits = dtype_bits(to);
    if (from_bits == to_bits)
        return retype(s, x, to);
    if (from_bits > to_bits)
        return cast_op(s, OP_TRUNC, x, to);
    return cast_op(s, dtype_is_signed(x->dt) ? OP_SEXT : OP_ZEXT, x, to);
}

static Val
cast_pointer(Sema *s, Val x, DType to, Loc loc)
{
    if (dtype_is_ptr(x->dt) && dtype_is_ptr(to)) {
        if (dtype_ir(s->s, x->dt) == dtype_ir(s->s, to))
            return retype(s, x, to);
        return cast_op(s, OP_BITCAST, x, to);
    }
    if (dtype_is_ptr(x->dt) && (to == DT_INT64 || to == DT_UINT64))
        return cast_op(s, OP_PTRTOINT, x, to);
    if (dtype_is_ptr(to) && dtype_is_int(x->dt)) {
        /* Narrower addresses would be sign- or zero-extended by guess. */
        if (dtype_bits(x->dt) != 64)
            x = cast_int(s, x, DT_INT64);
        return cast_op(s, OP_INTTOPTR, x, to);
    }
    return sema_error(s, loc, "cannot cast %s to %s%s", val_describe(s->a, x),
                      dtype_str(s->a, to),
                      dtype_is_ptr(x->dt) ? ": a pointer casts to int64 only" : "");
}

/* The types of AMD have no operation of their own: the library converts them by way of
   fp32, which holds all of their numbers and those of the 16-bit types. */
static Val
from_fnuz(Sema *s, Val x, Loc loc)
{
    const DTypeInfo *d = &dtype_info[x->dt];
    Val args[] = {retype(s, x, DT_INT8), val_int(s, d->mantissa), val_int(s, d->bias)};
    return call_tl(s, "fnuz_to_fp32", args, 3, loc);
}

static Val
to_fnuz(Sema *s, Val x, DType to, const char *round, Loc loc)
{
    const DTypeInfo *d = &dtype_info[to];
    bool zero = round && strcmp(round, "rtz") == 0;
    if (x->dt == DT_FP64 && !zero)
        return sema_error(s, loc, "cannot cast fp64 to %s in one step: it would round "
                          "twice; cast to fp32 first", dtype_str(s->a, to));
    x = cast_rounded(s, x, DT_FP32, x->dt == DT_FP64 ? round : NULL, loc);
    Val args[] = {x, val_int(s, d->mantissa), val_int(s, d->bias), val_bool(s, zero)};
    Val bits = val_is_error(x) ? x : call_tl(s, "fp32_to_fnuz", args, 4, loc);
    return val_is_error(bits) ? bits : retype(s, bits, to);
}

Val
cast_rounded(Sema *s, Val x, DType to, const char *round, Loc loc)
{
    if (val_is_error(x))
        return x;
    if (x->kind != FE_TENSOR)
        return sema_error(s, loc, "cannot cast %s", val_describe(s->a, x));
    bool narrows = dtype_is_float(x->dt) && dtype_is_float(to) &&
                   dtype_bits(to) < dtype_bits(x->dt);
    if (x->dt == to)
        return x;
    if (round && !narrows)
        return sema_error(s, loc, "fp_downcast_rounding is for narrowing float "
                          "conversions, not %s to %s", dtype_str(s->a, x->dt),
                          dtype_str(s->a, to));
    if (!sema_check_dtype(s, to, loc))
        return val_error();
    if (dtype_is_ptr(x->dt) && to == DT_INT1)
        return cast_i1(s, x, loc);
    if (dtype_is_ptr(x->dt) || dtype_is_ptr(to))
        return cast_pointer(s, x, to, loc);
    if (round && strcmp(round, "rtne") == 0)
        round = NULL;
    if (dtype_is_fnuz(x->dt) && (dtype_is_float(to) || to == DT_INT1))
        return cast_rounded(s, from_fnuz(s, x, loc), to, round, loc);
    if (dtype_is_float(x->dt) && dtype_is_fnuz(to))
        return to_fnuz(s, x, to, round, loc);
    if (dtype_is_float(x->dt) && dtype_is_float(to))
        return cast_float(s, x, to, round, loc);
    if (to == DT_INT1)
        return cast_i1(s, dtype_is_fp8(x->dt) ? cast_op(s, OP_FEXT, x, DT_FP32) : x, loc);
    if (dtype_is_int(x->dt) && dtype_is_int(to))
        return cast_int(s, x, to);
    if (dtype_is_fp8(x->dt) || dtype_is_fp8(to))
        return sema_error(s, loc, "cannot cast %s to %s; cast to a wider float first",
                          dtype_str(s->a, x->dt), dtype_str(s->a, to));
    if (dtype_is_float(x->dt)) {
        if (dtype_bits(x->dt) == 16)
            x = cast_op(s, OP_FEXT, x, DT_FP32);
        return cast_op(s, dtype_is_signed(to) ? OP_FTOSI : OP_FTOUI, x, to);
    }
    return cast_op(s, dtype_is_signed(x->dt) ? OP_SITOF : OP_UITOF, x, to);
}

Val
cast(Sema *s, Val x, DType to, Loc loc)
{
    return cast_rounded(s, x, to, NULL, loc);
}

Val
bitcast(Sema *s, Val x, DType to, Loc loc)
{
    if (val_is_error(x) || x->dt == to)
        return x;
    if (!sema_check_dtype(s, to, loc))
        return val_error();
    if (dtype_is_ptr(x->dt) || dtype_is_ptr(to))
        return cast(s, x, to, loc);
    if (dtype_bits(x->dt) != dtype_bits(to))
        return sema_error(s, loc, "cannot bitcast %s of %d bits to %s of %d bits",
                          dtype_str(s->a, x->dt), dtype_bits(x->dt),
                          dtype_str(s->a, to), dtype_bits(to));
    if (dtype_ir(s->s, x->dt) == dtype_ir(s->s, to))
        return retype(s, x, to);
    return cast_op(s, OP_BITCAST, x, to);
}
