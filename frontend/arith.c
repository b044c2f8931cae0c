/* Operators on tensors: conversion of the operands to one type and shape, then the op
   that the signedness asks for. */
#include "frontend/sema.h"

#include <string.h>

const char *const binop_text[BIN_COUNT] = {
    [BIN_ADD] = "+",  [BIN_SUB] = "-",  [BIN_MUL] = "*",       [BIN_DIV] = "/",
    [BIN_FLOORDIV] = "//", [BIN_MOD] = "%", [BIN_POW] = "**",  [BIN_SHL] = "<<",
    [BIN_SHR] = ">>", [BIN_AND] = "&",  [BIN_OR] = "|",        [BIN_XOR] = "^",
    [BIN_EQ] = "==",  [BIN_NE] = "!=",  [BIN_LT] = "<",        [BIN_LE] = "<=",
    [BIN_GT] = ">",   [BIN_GE] = ">=",  [BIN_MATMUL] = "@",
};

#define BOTH(name) {"__" name "__", "__r" name "__"}
const char *const binop_method[BIN_COUNT][2] = {
    [BIN_ADD] = BOTH("add"),           [BIN_SUB] = BOTH("sub"),
    [BIN_MUL] = BOTH("mul"),           [BIN_DIV] = BOTH("truediv"),
    [BIN_FLOORDIV] = BOTH("floordiv"), [BIN_MOD] = BOTH("mod"),
    [BIN_POW] = BOTH("pow"),           [BIN_SHL] = BOTH("lshift"),
    [BIN_SHR] = BOTH("rshift"),        [BIN_AND] = BOTH("and"),
    [BIN_OR] = BOTH("or"),             [BIN_XOR] = BOTH("xor"),
    [BIN_EQ] = {"__eq__", "__eq__"},   [BIN_NE] = {"__ne__", "__ne__"},
    [BIN_LT] = {"__lt__", "__gt__"},   [BIN_LE] = {"__le__", "__ge__"},
    [BIN_GT] = {"__gt__", "__lt__"},   [BIN_GE] = {"__ge__", "__le__"},
    [BIN_MATMUL] = BOTH("matmul"),
};
#undef BOTH

static Val
bad_operands(Sema *s, const char *what, Val x, Val y, const char *hint, Loc loc)
{
    return sema_error(s, loc, "'%s' cannot take %s and %s%s%s", what,
                      val_describe(s->a, x), val_describe(s->a, y), *hint ? ": " : "",
                      hint);
}

/* The operand as a tensor of type dt; a literal becomes a constant of that type. */
static Val
operand_as(Sema *s, Val x, bool weak, DType dt, Loc loc)
{
    if (!weak)
        return cast(s, x, dt, loc);
    if (dtype_is_int(dt) && val_is_int(x)) {
        if (x->u.i < 0 && dtype_is_unsigned(dt))
            return sema_error(s, loc, "a negative number cannot meet %s; cast one of the "
                              "operands", dtype_str(s->a, dt));
        if (x->u.i < dtype_min(dt) || x->u.i > dtype_max(dt))
            return sema_error(s, loc, "%s is out of range for type %s",
                              val_describe(s->a, x), dtype_str(s->a, dt));
    }
    return const_tensor(s, x, dt, loc);
}

bool
unify_operands(Sema *s, Val *x, Val *y, const char *what, unsigned may, Loc loc)
{
    if (val_is_error(*x) || val_is_error(*y))
        return false;
    bool weak_x = val_is_number(*x), weak_y = val_is_number(*y);
    if ((!weak_x && !val_is_tensor(*x)) || (!weak_y && !val_is_tensor(*y))) {
        bool call = (*x)->kind == FE_BUILTIN || (*y)->kind == FE_BUILTIN ||
                    (*x)->kind == FE_FUNC || (*y)->kind == FE_FUNC;
        bad_operands(s, what, *x, *y, call ? "call the function" : "", loc);
        return false;
    }
    DType a = weak_x ? number_dtype(*x) : (*x)->dt;
    DType b = weak_y ? number_dtype(*y) : (*y)->dt;
    if (a == DT_NONE || b == DT_NONE) {
        sema_error(s, loc, "%s does not fit any integer type",
                   val_describe(s->a, a == DT_NONE ? *x : *y));
        return false;
    }
    bool is_ptr_x = dtype_is_ptr(a), is_ptr_y = dtype_is_ptr(b);
    if ((is_ptr_x && (!(may & UNIFY_POINTER_LEFT) || dtype_is_float(b) ||
                      (is_ptr_y && a != b))) ||
        (is_ptr_y && (!(may & UNIFY_POINTER_RIGHT) || dtype_is_float(a)))) {
        const char *hint = "";
        if (is_ptr_x != is_ptr_y)
            hint = may & UNIFY_POINTER_LEFT
                       ? "an offset is an integer; '//' gives one, '/' a float"
                       : "tl.load gives what a pointer points to";
        bad_operands(s, what, *x, *y, hint, loc);
        return false;
    }
    if (!is_ptr_x && !is_ptr_y) {
        DType to = DT_NONE;
        switch (promote(a, weak_x, b, weak_y, may & UNIFY_DIVISION, &to)) {
        case PROMOTE_OK: break;
        case PROMOTE_SIGNS:
            sema_error(s, loc, "Cannot use '%s' with %s and %s because they have "
                       "different signedness; cast one of them", what,
                       val_describe(s->a, *x), val_describe(s->a, *y));
            return false;
        case PROMOTE_TYPES:
            bad_operands(s, what, *x, *y, "cast one of them first", loc);
            return false;
        }
        *x = operand_as(s, *x, weak_x, to, loc);
        *y = operand_as(s, *y, weak_y, to, loc);
    } else {
        *x = to_tensor(s, *x, loc);
        *y = to_tensor(s, *y, loc);
    }
    return broadcast_pair(s, x, y, loc);
}

/* The type of three operands: that of the tensors, which literals take if their kind is
   not higher, whatever their order. */
static DType
type_of_three(Val *v)
{
    DType to[2] = { DT_NONE, DT_NONE }; /* of tensors, of literals */
    for (int i = 0; i < 3; i++) {
        bool weak = val_is_number(v[i]);
        DType dt = weak ? number_dtype(v[i]) : v[i]->dt;
        bool first = to[weak] == DT_NONE;
        if (dt == DT_NONE ||
            (!first && promote(to[weak], weak, dt, weak, false, &dt) != PROMOTE_OK))
            return DT_NONE;
        to[weak] = dt;
    }
    if (to[0] == DT_NONE || to[1] == DT_NONE)
        return to[0] == DT_NONE ? to[1] : to[0];
    DType dt = DT_NONE;
    return promote(to[0], false, to[1], true, false, &dt) == PROMOTE_OK ? dt : DT_NONE;
}

bool
unify_three(Sema *s, Val *v, const char *what, Loc loc)
{
    for (int i = 0; i < 3; i++) {
        if (val_is_error(v[i]))
            return false;
        if (!val_is_number(v[i]) && (!val_is_tensor(v[i]) || dtype_is_ptr(v[i]->dt))) {
            sema_error(s, loc, "'%s' takes numbers, found %s", what,
                       val_describe(s->a, v[i]));
            return false;
        }
    }
    DType to = type_of_three(v);
    if (to == DT_NONE) {
        sema_error(s, loc, "'%s' cannot take %s, %s and %s: cast them to one type", what,
                   val_describe(s->a, v[0]), val_describe(s->a, v[1]),
                   val_describe(s->a, v[2]));
        return false;
    }
    for (int i = 0; i < 3; i++)
        v[i] = operand_as(s, v[i], val_is_number(v[i]), to, loc);
    return broadcast_pair(s, &v[0], &v[1], loc) && broadcast_pair(s, &v[0], &v[2], loc) &&
           broadcast_pair(s, &v[1], &v[2], loc);
}

Val
build_elementwise(Sema *s, OpKind k, Val x, Val y, DType dt)
{
    Value *v = y ? build_binary(&s->b, k, x->v, y->v) : build_unary(&s->b, k, x->v);
    return val_tensor(s, v, dt);
}

static Val
add_pointer(Sema *s, Val ptr, Val off, bool negate, Loc loc)
{
    /* Offsets are signed; an unsigned one is widened so that it stays positive. */
    if (dtype_is_unsigned(off->dt) && dtype_bits(off->dt) < 64 && !negate)
        off = cast(s, off, DT_INT64, loc);
    if (negate)
        off = tensor_minus(s, off, loc);
    if (val_is_error(off))
        return off;
    if (negate && dtype_is_unsigned(off->dt) && dtype_bits(off->dt) < 64)
        off = cast(s, off, DT_INT64, loc);
    if (dtype_bits(off->dt) < 32)
        off = cast(s, off, dtype_is_signed(off->dt) ? DT_INT32 : DT_INT64, loc);
    return val_tensor(s, build_binary(&s->b, OP_ADDPTR, ptr->v, off->v), ptr->dt);
}

static Val
add_or_sub(Sema *s, BinOp op, Val x, Val y, Loc loc)
{
    unsigned may = UNIFY_POINTER_LEFT | (op == BIN_ADD ? UNIFY_POINTER_RIGHT : 0);
    if (!unify_operands(s, &x, &y, binop_text[op], may, loc))
        return val_error();
    if (dtype_is_ptr(x->dt) && dtype_is_ptr(y->dt))
        return bad_operands(s, binop_text[op], x, y,
                            "cast both to tl.int64 to compute with addresses", loc);
    if (dtype_is_ptr(x->dt))
        return add_pointer(s, x, y, op == BIN_SUB, loc);
    if (dtype_is_ptr(y->dt))
        return add_pointer(s, y, x, false, loc);
    static const OpKind ints[] = { [BIN_ADD] = OP_ADD, [BIN_SUB] = OP_SUB };
    static const OpKind floats[] = { [BIN_ADD] = OP_ADDF, [BIN_SUB] = OP_SUBF };
    return build_elementwise(s, dtype_is_float(x->dt) ? floats[op] : ints[op], x, y,
                             x->dt);
}

static Val
divide(Sema *s, BinOp op, Val x, Val y, Loc loc)
{
    if (!unify_operands(s, &x, &y, binop_text[op], UNIFY_DIVISION, loc))
        return val_error();
    bool is_float = dtype_is_float(x->dt);
    if (op == BIN_DIV) {
        if (!is_float) {
            x = cast(s, x, DT_FP32, loc);
            y = cast(s, y, DT_FP32, loc);
        }
        return build_elementwise(s, OP_DIVF, x, y, x->dt);
    }
    if (op == BIN_MOD && is_float)
        return build_elementwise(s, OP_REMF, x, y, x->dt);
    if (is_float)
        return bad_operands(s, "//", x, y, "it takes integers; use '/' and tl.floor",
                            loc);
    bool is_signed = dtype_is_signed(x->dt);
    if (op == BIN_MOD)
        return build_elementwise(s, is_signed ? OP_REMS : OP_REMU, x, y, x->dt);
    return build_elementwise(s, is_signed ? OP_DIVS : OP_DIVU, x, y, x->dt);
}

static Val
bitwise(Sema *s, BinOp op, Val x, Val y, Loc loc)
{
    /* '>>' shifts in sign bits exactly when the tensor operand (the left one, when both
       are) was signed before conversion. */
    bool is_signed = dtype_is_signed(val_is_tensor(x) ? x->dt : y->dt);
    Val x0 = x, y0 = y;
    if ((val_is_tensor(x) && dtype_is_float(x->dt)) ||
        (val_is_tensor(y) && dtype_is_float(y->dt)) || x->kind == FE_FLOAT ||
        y->kind == FE_FLOAT)
        return sema_error(s, loc, "invalid operands of type %s and %s: '%s' takes "
                          "integers", val_describe(s->a, x), val_describe(s->a, y),
                          binop_text[op]);
    if (!unify_operands(s, &x, &y, binop_text[op], UNIFY_NUMBERS, loc))
        return val_error();
    if ((op == BIN_SHL || op == BIN_SHR) && val_is_int(y0) && val_is_tensor(x0) &&
        y0->u.i >= dtype_bits(x0->dt))
        diag_warning(&s->s->diag, loc,
                     "shift by %lld of %s: the count should be below %d",
                     (long long)y0->u.i, dtype_str(s->a, x0->dt), dtype_bits(x0->dt));
    OpKind k = OP_AND;
    switch (op) {
    case BIN_OR: k = OP_OR; break;
    case BIN_XOR: k = OP_XOR; break;
    case BIN_SHL: k = OP_SHL; break;
    case BIN_SHR: k = is_signed ? OP_SHRS : OP_SHRU; break;
    default: break;
    }
    return build_elementwise(s, k, x, y, x->dt);
}

static Val
compare(Sema *s, BinOp op, Val x, Val y, Loc loc)
{
    static const struct {
        const char *s, *u, *f;
    } preds[] = {
        [BIN_EQ] = { "eq", "eq", "oeq" },   [BIN_NE] = { "ne", "ne", "une" },
        [BIN_LT] = { "slt", "ult", "olt" }, [BIN_LE] = { "sle", "ule", "ole" },
        [BIN_GT] = { "sgt", "ugt", "ogt" }, [BIN_GE] = { "sge", "uge", "oge" },
    };
    if (x->kind == FE_NONE || y->kind == FE_NONE)
        return bad_operands(s, binop_text[op], x, y, "use 'is None'", loc);
    if (!unify_operands(s, &x, &y, binop_text[op], UNIFY_NUMBERS, loc))
        return val_error();
    bool is_float = dtype_is_float(x->dt);
    const char *pred = is_float ? preds[op].f
                       : dtype_is_signed(x->dt) ? preds[op].s
                                                : preds[op].u;
    return val_tensor(s, build_cmp(&s->b, is_float ? OP_CMPF : OP_CMPI, pred, x->v, y->v),
                      DT_INT1);
}

Val
tensor_binary(Sema *s, BinOp op, Val x, Val y, Loc loc)
{
    if (val_is_error(x) || val_is_error(y))
        return val_error();
    switch (op) {
    case BIN_ADD:
    case BIN_SUB: return add_or_sub(s, op, x, y, loc);
    case BIN_MUL:
        if (!unify_operands(s, &x, &y, "*", UNIFY_NUMBERS, loc))
            return val_error();
        return build_elementwise(s, dtype_is_float(x->dt) ? OP_MULF : OP_MUL, x, y,
                                 x->dt);
    case BIN_DIV:
    case BIN_FLOORDIV:
    case BIN_MOD: return divide(s, op, x, y, loc);
    case BIN_SHL:
    case BIN_SHR:
    case BIN_AND:
    case BIN_OR:
    case BIN_XOR: return bitwise(s, op, x, y, loc);
    case BIN_POW:
        return sema_error(s, loc,
                          "'**' works on compile-time values only; write x * x, or "
                          "libdevice.pow");
    case BIN_MATMUL: return sema_error(s, loc, "'@' is not an operator here; use tl.dot");
    default: return compare(s, op, x, y, loc);
    }
}

Val
tensor_minus(Sema *s, Val x, Loc loc)
{
    if (val_is_error(x))
        return x;
    if (dtype_is_ptr(x->dt))
        return sema_error(s, loc, "unary '-' cannot take %s", val_describe(s->a, x));
    if (dtype_is_fnuz(x->dt))
        x = cast(s, x, DT_FP16, loc);
    if (dtype_is_float(x->dt)) /* as Triton 3.9; until 3.6 it was 0 - x: -(+0) was +0 */
        return val_tensor(s, build_unary(&s->b, OP_NEGF, x->v), x->dt);
    Val zero = splat(s, const_tensor(s, val_int(s, 0), x->dt, loc), val_shape(x), loc);
    return val_is_error(zero) ? zero : build_elementwise(s, OP_SUB, zero, x, x->dt);
}

Val
tensor_invert(Sema *s, Val x, Loc loc)
{
    if (val_is_error(x))
        return x;
    if (!dtype_is_int(x->dt))
        return sema_error(s, loc, "'~' takes integers, found %s", val_describe(s->a, x));
    const Type *t = x->v->type;
    Value *ones = build_int(&s->b, t, x->dt == DT_INT1 ? 1 : -1);
    return val_tensor(s, build_binary(&s->b, OP_XOR, x->v, ones), x->dt);
}

static Val
as_i1(Sema *s, Val x, const char *what, Loc loc)
{
    if (val_is_error(x) || x->dt == DT_INT1)
        return x;
    return sema_error(s, loc, "'%s' needs int1 operands, found %s; compare with 0 first",
                      what, val_describe(s->a, x));
}

Val
tensor_not(Sema *s, Val x, Loc loc)
{
    return tensor_invert(s, as_i1(s, x, "not", loc), loc);
}

Val
tensor_logical(Sema *s, bool is_and, Val x, Val y, Loc loc)
{
    const char *what = is_and ? "and" : "or";
    x = as_i1(s, to_tensor(s, x, loc), what, loc);
    if (val_is_error(x))
        return x;
    y = as_i1(s, to_tensor(s, y, loc), what, loc);
    return tensor_binary(s, is_and ? BIN_AND : BIN_OR, x, y, loc);
}

Val
tensor_where(Sema *s, Val c, Val x, Val y, Loc loc)
{
    c = cast_i1(s, to_tensor(s, c, loc), loc);
    if (val_is_error(c) ||
        !unify_operands(s, &x, &y, "where", UNIFY_POINTER_LEFT | UNIFY_POINTER_RIGHT,
                        loc))
        return val_error();
    if (dtype_is_ptr(x->dt) != dtype_is_ptr(y->dt))
        return bad_operands(s, "where", x, y, "", loc);
    if (c->rank) {
        if (!broadcast_pair(s, &c, &x, loc) || !broadcast_pair(s, &x, &y, loc))
            return val_error();
    } else if (!broadcast_pair(s, &c, &x, loc)) {
        return val_error();
    }
    return val_tensor(s, build_select(&s->b, c->v, x->v, y->v), x->dt);
}

Val
tensor_minmax(Sema *s, bool is_max, Val x, Val y, bool nan, Loc loc)
{
    if (!unify_operands(s, &x, &y, is_max ? "maximum" : "minimum", UNIFY_NUMBERS, loc))
        return val_error();
    OpKind k;
    if (dtype_is_float(x->dt))
        k = is_max ? (nan ? OP_MAXNAN : OP_MAXF) : (nan ? OP_MINNAN : OP_MINF);
    else if (dtype_is_signed(x->dt))
        k = is_max ? OP_MAXS : OP_MINS;
    else
        k = is_max ? OP_MAXU : OP_MINU;
    return build_elementwise(s, k, x, y, x->dt);
}
