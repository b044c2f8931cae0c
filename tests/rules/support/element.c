/* Elementwise operations on one element. */
#include "tests/rules/support/eval.h"

#include "tests/rules/support/number.h"

#include <math.h>
#include <string.h>

static bool
divide(OpKind k, int bits, int64_t x, int64_t y, uint64_t ux, uint64_t uy, uint64_t *r)
{
    bool is_signed = k == OP_DIVS || k == OP_REMS;
    int64_t least = bits_signed(bits, UINT64_C(1) << (bits - 1));
    if (uy == 0 || (is_signed && y == -1 && x == least))
        return false;
    switch ((int)k) {
    case OP_DIVS: *r = (uint64_t)(x / y); return true;
    case OP_REMS: *r = (uint64_t)(x % y); return true;
    case OP_DIVU: *r = ux / uy; return true;
    default: *r = ux % uy; return true;
    }
}

static uint64_t
shift(OpKind k, int bits, int64_t x, uint64_t ux, uint64_t n)
{
    bool over = n >= (uint64_t)bits;
    if (k == OP_SHL)
        return over ? 0 : ux << n;
    if (k == OP_SHRU)
        return over ? 0 : ux >> n;
    return (uint64_t)(x >> (over ? 63 : n));
}

/* The high half of a product, by halves of 32 bits. */
static uint64_t
high_half(int bits, uint64_t a, uint64_t b)
{
    if (bits <= 32)
        return (a * b) >> bits;
    uint64_t al = a & UINT32_MAX, ah = a >> 32, bl = b & UINT32_MAX, bh = b >> 32;
    uint64_t middle = ah * bl + (al * bl >> 32), other = al * bh + (middle & UINT32_MAX);
    return ah * bh + (middle >> 32) + (other >> 32);
}

static uint64_t
high_half_signed(int bits, int64_t x, int64_t y, uint64_t ux, uint64_t uy)
{
    /* the unsigned one counts a negative factor for 2^bits more than it is */
    uint64_t h = high_half(bits, ux, uy);
    return h - (x < 0 ? uy : 0) - (y < 0 ? ux : 0);
}

static bool
integer(OpKind k, int bits, const uint64_t *in, int n, uint64_t *r)
{
    uint64_t ux = in[0], uy = in[n > 1];
    int64_t x = bits_signed(bits, ux), y = bits_signed(bits, uy);
    switch ((int)k) {
    case OP_ADD: *r = ux + uy; return true;
    case OP_SUB: *r = ux - uy; return true;
    case OP_MUL: *r = ux * uy; return true;
    case OP_AND: *r = ux & uy; return true;
    case OP_OR: *r = ux | uy; return true;
    case OP_XOR: *r = ux ^ uy; return true;
    case OP_MINS: *r = x < y ? ux : uy; return true;
    case OP_MAXS: *r = x < y ? uy : ux; return true;
    case OP_MINU: *r = ux < uy ? ux : uy; return true;
    case OP_MAXU: *r = ux < uy ? uy : ux; return true;
    case OP_ABSS: *r = x < 0 ? 0 - ux : ux; return true;
    case OP_MULHIU: *r = high_half(bits, ux, uy); return true;
    case OP_MULHIS: *r = high_half_signed(bits, x, y, ux, uy); return true;
    case OP_SHL:
    case OP_SHRS:
    case OP_SHRU: *r = shift(k, bits, x, ux, uy); return true;
    default: return divide(k, bits, x, y, ux, uy, r);
    }
}

/* -0 is less than 0. */
static double
lesser(double x, double y)
{
    return x < y || (x == y && signbit(x)) ? x : y;
}

static double
minmax(OpKind k, double x, double y)
{
    bool number = k == OP_MINF || k == OP_MAXF;
    if (isnan(x) || isnan(y))
        return !number ? NAN : isnan(x) ? y : x;
    return k == OP_MINF || k == OP_MINNAN ? lesser(x, y) : -lesser(-x, -y);
}

static double
compute(OpKind k, double x, double y, double z)
{
    switch ((int)k) {
    case OP_ADDF: return x + y;
    case OP_SUBF: return x - y;
    case OP_MULF: return x * y;
    case OP_DIVF:
    case OP_DIVRN: return x / y;
    case OP_REMF: return fmod(x, y);
    case OP_NEGF: return -x;
    case OP_ABSF: return fabs(x);
    case OP_FMA: return fma(x, y, z);
    case OP_FLOOR: return floor(x);
    case OP_CEIL: return ceil(x);
    case OP_SQRT:
    case OP_SQRTRN: return sqrt(x);
    case OP_RSQRT: return 1 / sqrt(x);
    case OP_EXP: return exp(x);
    case OP_EXP2: return exp2(x);
    case OP_LOG: return log(x);
    case OP_LOG2: return log2(x);
    case OP_SIN: return sin(x);
    case OP_COS: return cos(x);
    case OP_ERF: return erf(x);
    default: return minmax(k, x, y);
    }
}

static float
compute_single(OpKind k, float x, float y, float z)
{
    switch ((int)k) {
    case OP_ADDF: return x + y;
    case OP_SUBF: return x - y;
    case OP_MULF: return x * y;
    case OP_DIVF:
    case OP_DIVRN: return x / y;
    case OP_FMA: return fmaf(x, y, z);
    case OP_SQRTRN: return sqrtf(x);
    default: return (float)compute(k, x, y, z);
    }
}

static uint64_t
floating(OpKind k, ScalarKind t, const uint64_t *in, int n)
{
    double x = float_of_bits(t, in[0]), y = float_of_bits(t, in[n > 1 ? 1 : 0]);
    double z = float_of_bits(t, in[n > 2 ? 2 : 0]);
    if (t == SK_F32)
        return bits_of_float(t, (double)compute_single(k, (float)x, (float)y, (float)z));
    return bits_of_float(t, compute(k, x, y, z));
}

static bool
ordered(const char *pred, int bits, uint64_t ux, uint64_t uy)
{
    int64_t x = bits_signed(bits, ux), y = bits_signed(bits, uy);
    bool less = pred[0] == 'u' ? ux < uy : x < y, equal = ux == uy;
    if (strcmp(pred, "eq") == 0)
        return equal;
    if (strcmp(pred, "ne") == 0)
        return !equal;
    if (strcmp(pred + 1, "lt") == 0)
        return less;
    if (strcmp(pred + 1, "le") == 0)
        return less || equal;
    if (strcmp(pred + 1, "gt") == 0)
        return !less && !equal;
    return !less;
}

static bool
float_ordered(const char *pred, double x, double y)
{
    if (strcmp(pred, "uno") == 0)
        return isnan(x) || isnan(y);
    if (strcmp(pred, "une") == 0)
        return !(x == y);
    return strcmp(pred, "oeq") == 0   ? x == y
           : strcmp(pred, "olt") == 0 ? x < y
           : strcmp(pred, "ole") == 0 ? x <= y
           : strcmp(pred, "ogt") == 0 ? x > y
                                      : x >= y;
}

/* Toward zero; false outside of the type. */
static bool
to_integer(bool is_signed, int bits, double v, uint64_t *out)
{
    double t = trunc(v), top = ldexp(1, is_signed ? bits - 1 : bits);
    if (!(t < top) || t < (is_signed ? -top : 0))
        return false;
    *out = is_signed ? (uint64_t)(int64_t)t : (uint64_t)t;
    return true;
}

static bool
cast(const Op *op, const Type *from, const Type *to, uint64_t x, uint64_t *out)
{
    int bits = type_bits(from);
    int64_t s = bits_signed(bits, x);
    Name round = attr_str(&op->attrs, ATTR_ROUND);
    switch ((int)op->kind) {
    case OP_SEXT: *out = (uint64_t)s; return true;
    case OP_FEXT:
    case OP_FTRUNC:
        *out = bits_narrowed(to->scalar, float_of_bits(from->scalar, x),
                             round && strcmp(round, "rtz") == 0);
        return true;
    case OP_SITOF:
        *out = bits_of_integer(to->scalar, s < 0, s < 0 ? 0 - (uint64_t)s : (uint64_t)s);
        return true;
    case OP_UITOF: *out = bits_of_integer(to->scalar, false, x); return true;
    case OP_FTOSI:
    case OP_FTOUI:
        return to_integer(op->kind == OP_FTOSI, type_bits(to),
                          float_of_bits(from->scalar, x), out);
    case OP_BITCAST: /* which NaN arithmetic gives is open */
        *out = x;
        return !type_is_float(from) || !bits_are_nan(from->scalar, x);
    default: *out = x; return true; /* trunc, zext, addresses */
    }
}

static bool
is_cast(OpKind k)
{
    return k == OP_TRUNC || k == OP_SEXT || k == OP_ZEXT || k == OP_FEXT ||
           k == OP_FTRUNC || k == OP_SITOF || k == OP_UITOF || k == OP_FTOSI ||
           k == OP_FTOUI || k == OP_BITCAST || k == OP_PTRTOINT || k == OP_INTTOPTR;
}

bool
eval_element(const Op *op, const uint64_t *in, uint64_t *out)
{
    const Type *from = type_elem(op_operand(op, 0)->type);
    const Type *to = type_elem(op->results[0].type);
    int bits = type_bits(to);
    bool ok = true;
    switch ((int)op->kind) {
    case OP_CMPI:
        *out = ordered(attr_str(&op->attrs, ATTR_PRED), type_bits(from), in[0], in[1]);
        return true;
    case OP_CMPF:
        *out = float_ordered(attr_str(&op->attrs, ATTR_PRED),
                             float_of_bits(from->scalar, in[0]),
                             float_of_bits(from->scalar, in[1]));
        return true;
    case OP_SELECT: *out = in[in[0] ? 1 : 2]; return true;
    case OP_HINT: *out = in[0]; return true;
    case OP_ADDPTR: {
        int64_t by = bits_signed(type_bits(op_operand(op, 1)->type), in[1]);
        int64_t size = (type_bits(to->elem) + 7) / 8;
        *out = in[0] + (uint64_t)by * (uint64_t)size;
        return true;
    }
    default: break;
    }
    if (is_cast(op->kind))
        ok = cast(op, from, to, in[0], out);
    else if (type_is_float(to))
        *out = floating(op->kind, to->scalar, in, op->noperand);
    else
        ok = integer(op->kind, bits, in, op->noperand, out);
    *out &= bits_mask(bits);
    return ok;
}
