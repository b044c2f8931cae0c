/* Identities of integer and float arithmetic, comparisons, choices and casts.
   Float rules keep every bit: x + 0.0 is not x when x is -0.0, so it is not here. Only
   powers may differ from a library's, see power(). */
#include "passes/simplify/canon.h"

#include "ir/base/util.h"

#include <math.h>
#include <string.h>

static bool
is_float_const(const Value *v, double f)
{
    Const c;
    return value_const(v, &c) && c.is_float && c.f == f && !signbit(c.f) == !signbit(f);
}

static bool
all_ones(const Value *v)
{
    return value_is_int(v, type_bits(v->type) == 1 ? 1 : -1);
}

/* Sums and products of indices are taken not to wrap (ir/analysis/affine.h), which those
   of two constants must not end. */
static bool
wraps(OpKind kind, const Const *c, int64_t result)
{
    int64_t exact = result;
    return (kind == OP_ADD && (__builtin_add_overflow(c[0].i, c[1].i, &exact) ||
                               exact != result)) ||
           (kind == OP_MUL && (__builtin_mul_overflow(c[0].i, c[1].i, &exact) ||
                               exact != result));
}

/* (x op c1) op c2 => x op (c1 op c2) for the associative integer ops. */
static Value *
reassociate(Builder *b, Op *op)
{
    Op *in = value_def(op_operand(op, 0), op->kind);
    Const c[2], sum;
    if (!in || !value_const(op_operand(in, 1), &c[0]) ||
        !value_const(op_operand(op, 1), &c[1]) || !fold_op(op, c, &sum) ||
        wraps(op->kind, c, sum.i))
        return NULL;
    Value *k = build_int(b, op->results[0].type, sum.i);
    return build_binary(b, op->kind, op_operand(in, 0), k);
}

static Value *
int_identity(Builder *b, Op *op, Value *x, Value *y)
{
    const Type *t = op->results[0].type;
    switch ((int)op->kind) {
    case OP_ADD: return value_is_int(y, 0) ? x : reassociate(b, op);
    case OP_SUB:
        if (value_is_int(y, 0))
            return x;
        return x == y ? build_int(b, t, 0) : NULL;
    case OP_MUL:
        if (value_is_int(y, 1))
            return x;
        return value_is_int(y, 0) ? y : reassociate(b, op);
    case OP_DIVS:
    case OP_DIVU: return value_is_int(y, 1) && type_bits(t) > 1 ? x : NULL;
    case OP_REMS:
    case OP_REMU:
        return value_is_int(y, 1) && type_bits(t) > 1 ? build_int(b, t, 0) : NULL;
    case OP_AND:
        if (x == y || all_ones(y))
            return x;
        return value_is_int(y, 0) ? y : reassociate(b, op);
    case OP_OR:
        if (x == y || value_is_int(y, 0))
            return x;
        return all_ones(y) ? y : reassociate(b, op);
    case OP_XOR:
        if (value_is_int(y, 0))
            return x;
        return x == y ? build_int(b, t, 0) : reassociate(b, op);
    case OP_SHL:
    case OP_SHRS:
    case OP_SHRU: return value_is_int(y, 0) ? x : NULL;
    case OP_MINS:
    case OP_MAXS:
    case OP_MINU:
    case OP_MAXU: return x == y ? x : NULL;
    default: return NULL;
    }
}

static Value *
float_identity(Op *op, Value *x, Value *y)
{
    switch ((int)op->kind) {
    case OP_ADDF: return is_float_const(y, -0.0) ? x : NULL;
    case OP_SUBF: return is_float_const(y, 0.0) ? x : NULL;
    case OP_MULF:
    case OP_DIVF:
    case OP_DIVRN: return is_float_const(y, 1.0) ? x : NULL;
    case OP_MINF:
    case OP_MAXF:
    case OP_MINNAN:
    case OP_MAXNAN: return x == y ? x : NULL;
    default: return NULL;
    }
}

static const struct {
    const char *pred, *inverse;
    bool of_equals; /* what it says of x and x (integers) */
} int_preds[] = {
    {"eq", "ne", true},    {"ne", "eq", false},  {"slt", "sge", false},
    {"sge", "slt", true},  {"sle", "sgt", true}, {"sgt", "sle", false},
    {"ult", "uge", false}, {"uge", "ult", true}, {"ule", "ugt", true},
    {"ugt", "ule", false},
};

/* Is integer v 0 or 1 everywhere, as its ops tell? */
static bool
is_bit(const Value *v, int depth)
{
    enum { DEPTH = 8 };
    const Op *op = v->op;
    Const c;
    if (value_const(v, &c))
        return !c.is_float && (c.i == 0 || c.i == 1);
    if (!op || depth == DEPTH)
        return false;
    if (op->kind == OP_ZEXT)
        return type_bits(op_operand(op, 0)->type) == 1;
    if (op->kind == OP_ARANGE)
        return attr_int(&op->attrs, ATTR_START, 0) == 0 && type_numel(v->type) <= 2;
    bool of_bits = op->kind == OP_AND || op->kind == OP_OR || op->kind == OP_XOR;
    if (op->nresult != 1 || (!of_bits && !op_is(op, T_SHAPE)))
        return false;
    int bits = 0;
    for (int i = 0; i < op->noperand; i++)
        bits += is_bit(op_operand(op, i), depth + 1);
    return bits > 0 && (bits == op->noperand || op->kind == OP_AND);
}

/* zext x != bit => x xor bit != 0, for x of one bit: predicates meet as such, and no
   number is made of one. Sorting networks ask in this way for what goes down. */
static Value *
compare_bits(Builder *b, Op *op, bool equal)
{
    Value *x = op_operand(op, 0), *y = op_operand(op, 1);
    Op *bit = value_def(x, OP_ZEXT);
    if (!bit || type_bits(op_operand(bit, 0)->type) != 1) {
        bit = value_def(y, OP_ZEXT);
        y = x;
    }
    if (!bit || type_bits(op_operand(bit, 0)->type) != 1 || !is_bit(y, 0))
        return NULL;
    Value *other = build_cmp(b, OP_CMPI, "ne", y, build_int(b, y->type, 0));
    Value *differ = build_binary(b, OP_XOR, op_operand(bit, 0), other);
    return equal ? build_binary(b, OP_XOR, differ, build_int(b, differ->type, 1))
                 : differ;
}

static Value *
compare(Builder *b, Op *op)
{
    Name pred = attr_str(&op->attrs, ATTR_PRED);
    bool equal = pred && strcmp(pred, "eq") == 0;
    bool unequal = pred && strcmp(pred, "ne") == 0;
    if (op_operand(op, 0) != op_operand(op, 1))
        return equal || unequal ? compare_bits(b, op, equal) : NULL;
    for (int i = 0; pred && i < COUNT_OF(int_preds); i++)
        if (strcmp(pred, int_preds[i].pred) == 0)
            return build_int(b, op->results[0].type, int_preds[i].of_equals);
    return NULL;
}

/* not (x < y) => x >= y; integers only, floats have NaN. */
static Value *
invert_compare(Builder *b, Op *op)
{
    Op *cmp = value_def(op_operand(op, 0), OP_CMPI);
    if (!cmp || type_bits(op->results[0].type) != 1 ||
        !value_is_int(op_operand(op, 1), 1))
        return NULL;
    Name pred = attr_str(&cmp->attrs, ATTR_PRED);
    for (int i = 0; pred && i < COUNT_OF(int_preds); i++)
        if (strcmp(pred, int_preds[i].pred) == 0)
            return build_cmp(b, OP_CMPI, int_preds[i].inverse, op_operand(cmp, 0),
                             op_operand(cmp, 1));
    return NULL;
}

static Value *
choose(Op *op)
{
    Value *x = op_operand(op, 1), *y = op_operand(op, 2);
    Const c;
    if (x == y)
        return x;
    if (value_const(op_operand(op, 0), &c))
        return c.i ? x : y;
    return NULL;
}

/* Does a conversion to it give less than it may hold: no infinity, or not its largest
   number? */
static bool
saturates(const Type *t)
{
    ScalarKind k = type_elem(t)->scalar;
    return k == SK_F8E5 || k == SK_F8E4B15;
}


/* Casts of casts. The pairs that lose nothing collapse; ftrunc(fext x) is x when the type
   comes back, the other way round loses bits. */
static Value *
cast(Builder *b, Op *op)
{
    Value *x = op_operand(op, 0);
    const Type *t = op->results[0].type;
    if (op->kind == OP_BITCAST && x->type == t)
        return x;
    Op *in = x->op;
    if (!in || in->noperand != 1 || in->nregion)
        return NULL;
    Value *y = op_operand(in, 0);
    bool widened = in->kind == OP_SEXT || in->kind == OP_ZEXT;
    switch ((int)op->kind) {
    case OP_TRUNC: return widened && y->type == t ? y : NULL;
    case OP_SEXT:
    case OP_ZEXT: /* a zero-extended value is not negative: either extension keeps it */
        if (in->kind == op->kind || (op->kind == OP_SEXT && in->kind == OP_ZEXT))
            return build_cast(b, in->kind, y, type_elem(t));
        return NULL;
    case OP_FTRUNC:
        return in->kind == OP_FEXT && y->type == t && !saturates(t) ? y : NULL;
    case OP_BITCAST:
        return in->kind == OP_BITCAST ? build_cast(b, OP_BITCAST, y, type_elem(t)) : NULL;
    case OP_PTRTOINT: return in->kind == OP_INTTOPTR && y->type == t ? y : NULL;
    case OP_INTTOPTR: return in->kind == OP_PTRTOINT && y->type == t ? y : NULL;
    default: return NULL;
    }
}

/* x to a small constant power is a product: the same bits for 0, 1, 2 and -1, within 1.5
   units in the last place for 3 and 4, less than what a library's pow promises. A power
   that is rounded to 16 bits once stays one. */
static Value *
power(Builder *b, Op *op, Value *x, Value *y)
{
    static const char *const names[] = {"pow", "powi", "fast_pow"};
    const Type *t = op->results[0].type;
    Name fn = attr_str(&op->attrs, ATTR_FN);
    bool is_power = false;
    for (int i = 0; fn && i < COUNT_OF(names); i++)
        is_power |= strcmp(fn, names[i]) == 0;
    Const c;
    if (!is_power || !value_const(y, &c))
        return NULL;
    double n = c.is_float ? c.f : (double)c.i;
    if (n == 0 || n == 1)
        return n == 0 ? build_float(b, t, 1.0) : x;
    if (n == -1)
        return build_binary(b, OP_DIVRN, build_float(b, t, 1.0), x);
    if (n != 2 && (type_bits(t) < 32 || (n != 3 && n != 4)))
        return NULL;
    Value *square = build_binary(b, OP_MULF, x, x);
    return n == 2 ? square : build_binary(b, OP_MULF, square, n == 3 ? x : square);
}

Value *
canon_algebra(Builder *b, Op *op)
{
    if (!op_is(op, T_PURE | T_ELEMENTWISE) || op->nresult != 1)
        return NULL;
    switch ((int)op->kind) {
    case OP_CMPI: return compare(b, op);
    case OP_SELECT: return choose(op);
    case OP_ADDPTR: return value_is_int(op_operand(op, 1), 0) ? op_operand(op, 0) : NULL;
    default: break;
    }
    if (op->noperand == 1)
        return cast(b, op);
    if (op->noperand != 2)
        return NULL;
    Value *x = op_operand(op, 0), *y = op_operand(op, 1);
    if (op->kind == OP_XOR) {
        Value *inverted = invert_compare(b, op);
        if (inverted)
            return inverted;
    }
    if (op->kind == OP_LIBM)
        return power(b, op, x, y);
    if (type_is_float(op->results[0].type))
        return float_identity(op, x, y);
    return int_identity(b, op, x, y);
}
