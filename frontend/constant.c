/* Compile-time arithmetic, with Python's rules: '/' gives a float, '//' and '%' round
   toward minus infinity, integers do not wrap (beyond 128 bits is an error). */
#include "frontend/class.h"

#include <math.h>
#include <string.h>

static Val
too_large(Sema *s, Loc loc)
{
    return sema_error(s, loc, "compile-time integer is too large (more than 127 bits)");
}

static Val
int_power(Sema *s, Wide x, Wide y, Loc loc)
{
    if (y < 0)
        return val_float(s, pow((double)x, (double)y));
    Wide r = 1;
    while (y) {
        if ((y & 1) && __builtin_mul_overflow(r, x, &r))
            return too_large(s, loc);
        y >>= 1;
        if (y && __builtin_mul_overflow(x, x, &x))
            return too_large(s, loc);
    }
    return val_int(s, r);
}

static Val
int_shift(Sema *s, BinOp op, Wide x, Wide y, Loc loc)
{
    if (y < 0)
        return sema_error(s, loc, "negative shift count");
    if (op == BIN_SHR)
        return val_int(s, y > 126 ? (x < 0 ? -1 : 0) : x >> y);
    Wide r;
    if (x && (y > 126 || __builtin_mul_overflow(x, (Wide)1 << y, &r)))
        return too_large(s, loc);
    return val_int(s, x ? r : 0);
}

static Val
int_binary(Sema *s, BinOp op, Wide x, Wide y, Loc loc)
{
    Wide r = 0;
    switch (op) {
    case BIN_ADD:
        return __builtin_add_overflow(x, y, &r) ? too_large(s, loc) : val_int(s, r);
    case BIN_SUB:
        return __builtin_sub_overflow(x, y, &r) ? too_large(s, loc) : val_int(s, r);
    case BIN_MUL:
        return __builtin_mul_overflow(x, y, &r) ? too_large(s, loc) : val_int(s, r);
    case BIN_AND: return val_int(s, x & y);
    case BIN_OR: return val_int(s, x | y);
    case BIN_XOR: return val_int(s, x ^ y);
    case BIN_SHL:
    case BIN_SHR: return int_shift(s, op, x, y, loc);
    case BIN_POW: return int_power(s, x, y, loc);
    default: break;
    }
    if (y == 0)
        return sema_error(s, loc, "division by zero in a compile-time expression");
    if (op == BIN_DIV)
        return val_float(s, (double)x / (double)y);
    if (y == -1) /* the one quotient that can overflow */
        return op == BIN_MOD ? val_int(s, 0) : int_binary(s, BIN_SUB, 0, x, loc);
    Wide q = x / y, m = x % y;
    if (m && (m < 0) != (y < 0)) {
        q--;
        m += y;
    }
    return val_int(s, op == BIN_MOD ? m : q);
}

static Val
float_binary(Sema *s, BinOp op, double x, double y, Loc loc)
{
    switch (op) {
    case BIN_ADD: return val_float(s, x + y);
    case BIN_SUB: return val_float(s, x - y);
    case BIN_MUL: return val_float(s, x * y);
    case BIN_POW: return val_float(s, pow(x, y));
    case BIN_DIV:
    case BIN_FLOORDIV:
    case BIN_MOD: break;
    default:
        return sema_error(s, loc, "'%s' takes integers, found constexpr floats",
                          binop_text[op]);
    }
    if (y == 0)
        return sema_error(s, loc, "division by zero in a compile-time expression");
    if (op == BIN_DIV)
        return val_float(s, x / y);
    double m = fmod(x, y);
    if (m != 0 && (m < 0) != (y < 0))
        m += y;
    return val_float(s, op == BIN_MOD ? m : floor((x - m) / y + 0.5));
}

static Val
order(Sema *s, BinOp op, int c)
{
    switch (op) {
    case BIN_LT: return val_bool(s, c < 0);
    case BIN_LE: return val_bool(s, c <= 0);
    case BIN_GT: return val_bool(s, c > 0);
    default: return val_bool(s, c >= 0);
    }
}

static Val
const_compare(Sema *s, BinOp op, Val x, Val y, Loc loc)
{
    if (op == BIN_EQ || op == BIN_NE)
        return val_bool(s, val_equal(x, y) == (op == BIN_EQ));
    if (x->kind == FE_STR && y->kind == FE_STR)
        return order(s, op, strcmp(x->u.s, y->u.s));
    if (!val_is_number(x) || !val_is_number(y))
        return sema_error(s, loc, "'%s' cannot compare %s and %s", binop_text[op],
                          val_describe(s->a, x), val_describe(s->a, y));
    if (x->kind != FE_FLOAT && y->kind != FE_FLOAT)
        return order(s, op, x->u.i < y->u.i ? -1 : x->u.i > y->u.i);
    double a = val_double(x), b = val_double(y);
    if (isnan(a) || isnan(b))
        return val_bool(s, false);
    return order(s, op, a < b ? -1 : a > b);
}

static Val
repeat(Sema *s, Val x, Wide n, Loc loc)
{
    if (n < 0)
        n = 0;
    if (n * x->n > MAX_UNROLLED)
        return sema_error(s, loc, "tuple is too long");
    Val *items = arena_array(s->a, Val, n * x->n + 1);
    for (int i = 0; i < (int)n * x->n; i++)
        items[i] = x->u.items[i % x->n];
    return val_tuple(s, items, (int)n * x->n);
}

static Val
repeat_text(Sema *s, const char *text, Wide n, Loc loc)
{
    size_t len = strlen(text);
    n = n < 0 || !len ? 0 : n;
    if (n > MAX_UNROLLED || (size_t)n * len > MAX_UNROLLED)
        return sema_error(s, loc, "string is too long");
    char *out = arena_array(s->a, char, (size_t)n * len + 1);
    for (size_t i = 0; i < (size_t)n; i++)
        memcpy(out + i * len, text, len);
    out[(size_t)n * len] = 0;
    return val_str(s, out);
}

static Val
sequence_binary(Sema *s, BinOp op, Val x, Val y, Loc loc)
{
    if (op == BIN_MUL && x->kind == FE_TUPLE && val_is_int(y))
        return repeat(s, x, y->u.i, loc);
    if (op == BIN_MUL && y->kind == FE_TUPLE && val_is_int(x))
        return repeat(s, y, x->u.i, loc);
    if (op == BIN_MUL && x->kind == FE_STR && val_is_int(y))
        return repeat_text(s, x->u.s, y->u.i, loc);
    if (op == BIN_MUL && y->kind == FE_STR && val_is_int(x))
        return repeat_text(s, y->u.s, x->u.i, loc);
    if (op == BIN_ADD && x->kind == FE_STR && y->kind == FE_STR)
        return val_str(s, arena_printf(s->a, "%s%s", x->u.s, y->u.s));
    if (op != BIN_ADD || x->kind != FE_TUPLE || y->kind != FE_TUPLE)
        return NULL;
    if (!sema_step(s, loc, x->n + y->n))
        return val_error();
    Val *items = arena_array(s->a, Val, x->n + y->n + 1);
    if (x->n)
        memcpy(items, x->u.items, sizeof *items * (size_t)x->n);
    if (y->n)
        memcpy(items + x->n, y->u.items, sizeof *items * (size_t)y->n);
    return val_tuple(s, items, x->n + y->n);
}

Val
const_binary(Sema *s, BinOp op, Val x, Val y, Loc loc)
{
    if (val_is_error(x) || val_is_error(y) || !sema_step(s, loc, 1))
        return val_error();
    if (op >= BIN_EQ && op <= BIN_GE)
        return const_compare(s, op, x, y, loc);
    Val seq = sequence_binary(s, op, x, y, loc);
    if (seq)
        return seq;
    if (!val_is_number(x) || !val_is_number(y) || op == BIN_MATMUL)
        return sema_error(s, loc, "'%s' cannot take %s and %s", binop_text[op],
                          val_describe(s->a, x), val_describe(s->a, y));
    if (x->kind == FE_FLOAT || y->kind == FE_FLOAT)
        return float_binary(s, op, val_double(x), val_double(y), loc);
    bool bits = op == BIN_AND || op == BIN_OR || op == BIN_XOR;
    if (bits && x->kind == FE_BOOL && y->kind == FE_BOOL)
        return val_bool(s, int_binary(s, op, x->u.i, y->u.i, loc)->u.i != 0);
    return int_binary(s, op, x->u.i, y->u.i, loc);
}

Val
const_minus(Sema *s, Val x, Loc loc)
{
    if (x->kind == FE_FLOAT)
        return val_float(s, -x->u.f);
    if (val_is_int(x))
        return int_binary(s, BIN_SUB, 0, x->u.i, loc);
    return val_is_error(x) ? x : sema_error(s, loc, "unary '-' cannot take %s",
                                            val_describe(s->a, x));
}

Val
const_invert(Sema *s, Val x, Loc loc)
{
    if (val_is_int(x))
        return val_int(s, ~x->u.i);
    return val_is_error(x) ? x : sema_error(s, loc, "'~' takes integers, found %s",
                                            val_describe(s->a, x));
}

Val
binary(Sema *s, BinOp op, Val x, Val y, Loc loc)
{
    if (val_is_error(x) || val_is_error(y))
        return val_error();
    if (val_is_aggregate(x) || val_is_aggregate(y))
        return object_binary(s, binop_text[op], binop_method[op], x, y, loc);
    if (val_is_tensor(x) || val_is_tensor(y))
        return tensor_binary(s, op, x, y, loc);
    return const_binary(s, op, x, y, loc);
}
