/* Folding of elementwise operations on constants. Float results are computed in double
   and rounded once: for +, -, *, / and sqrt on formats of at most 24 significant bits
   that equals the correctly rounded result (53 >= 2 * 24 + 2, Figueroa 1995). */
#include "ir/fold.h"

#include "ir/base/util.h"

#include <math.h>
#include <string.h>

__extension__ typedef unsigned __int128 Wide; /* double-width products */
__extension__ typedef __int128 SWide;

int64_t
const_wrap(ScalarKind k, int64_t v)
{
    int bits = scalar_bits(k);
    if (bits >= 64)
        return v;
    uint64_t mask = ((uint64_t)1 << bits) - 1;
    uint64_t u = (uint64_t)v & mask;
    if (bits > 1 && (u >> (bits - 1)))
        u |= ~mask;
    return (int64_t)u;
}

/* The exponent of v's last bit of `digits` significant ones; the least normal number is
   2^emin. */
static int
last_bit(double v, int digits, int emin)
{
    int e;
    frexp(v, &e); /* |v| in [2^(e-1), 2^e) */
    return (e - 1 < emin ? emin : e - 1) - (digits - 1);
}

/* Rounds to `digits` significant bits with least exponent emin (value >= 2^emin is
   normal); past `most` it is `over`. */
static double
round_to(double v, int digits, int emin, double most, double over)
{
    if (v == 0 || isnan(v))
        return v;
    if (isinf(v))
        return copysign(over, v);
    int ulp = last_bit(v, digits, emin);
    double scaled = ldexp(v, -ulp); /* exact: only the exponent moves */
    double r = ldexp(nearbyint(scaled), ulp);
    return fabs(r) > most ? copysign(over, v) : r;
}

/* e4m3 of bias 15 is the top of a half: NaN and all above clamped to 1.75, rounded half
   up. */
static double
round_e4b15(double v)
{
    double h = const_round(SK_F16, v), a = fabs(h);
    if (isnan(h) || a > 1.75)
        return isnan(h) ? 1.75 : copysign(1.75, v);
    int ulp = a > 0 ? last_bit(a, 4, -14) : 0;
    return copysign(ldexp(floor(ldexp(a, -ulp) + 0.5), ulp), v);
}

double
const_round(ScalarKind k, double v)
{
    switch (k) {
    case SK_F16:
        return round_to(v, 11, -14, 65504.0, INFINITY);
    case SK_BF16:
        return round_to(v, 8, -126, 0x1.fep127, INFINITY);
    case SK_F8E5: /* as the conversion: saturates, infinity too */
        return round_to(v, 3, -14, 57344.0, 57344.0);
    case SK_F8E4:
        return round_to(v, 4, -6, 448.0, 448.0);
    case SK_F8E4B15:
        return round_e4b15(v);
    case SK_F32:
        return (double)(float)v;
    default:
        return v;
    }
}

static bool
through(const Op *op)
{
    return op->kind == OP_SPLAT || op->kind == OP_BROADCAST || op->kind == OP_RESHAPE ||
           op->kind == OP_EXPAND_DIMS || op->kind == OP_CONVERT_LAYOUT ||
           op->kind == OP_TRANS;
}

bool
value_const(const Value *v, Const *out)
{
    const Op *op = v->op;
    for (int depth = 0; op && through(op) && depth < 16; depth++)
        op = op_operand(op, 0)->op;
    if (!op || op->kind != OP_CONST)
        return false;
    const Attr *a = attr_find(&op->attrs, ATTR_VALUE);
    if (a) {
        *out = (Const){.i = a->v.i};
        return true;
    }
    a = attr_find(&op->attrs, ATTR_FVALUE);
    if (!a)
        return false;
    /* The text of a constant may say more than its type holds, as 4.6566127342e-10. */
    ScalarKind k = type_elem(op->results[0].type)->scalar;
    *out = (Const){.is_float = true, .f = const_round(k, a->v.f)};
    return true;
}

bool
value_is_zero(const Value *v)
{
    Const c;
    return value_const(v, &c) && (c.is_float ? c.f == 0 : c.i == 0);
}

bool
value_is_int(const Value *v, int64_t i)
{
    Const c;
    return value_const(v, &c) && !c.is_float && c.i == i;
}

static uint64_t
unsigned_of(ScalarKind k, int64_t v)
{
    int bits = scalar_bits(k);
    return bits >= 64 ? (uint64_t)v : (uint64_t)v & (((uint64_t)1 << bits) - 1);
}

/* The one bit of an i1 is its sign. */
static int64_t
signed_of(ScalarKind k, int64_t v)
{
    return k == SK_I1 ? -v : v;
}

static bool
fold_div(OpKind op, ScalarKind k, int64_t x, int64_t y, int64_t *r)
{
    uint64_t ux = unsigned_of(k, x), uy = unsigned_of(k, y);
    bool is_signed = op == OP_DIVS || op == OP_REMS;
    int64_t least = (int64_t)(UINT64_MAX << (scalar_bits(k) - 1));
    if (y == 0 || (is_signed && y == -1 && x == least))
        return false; /* undefined: left to the target */
    switch ((int)op) {
    case OP_DIVS: *r = x / y; return true;
    case OP_REMS: *r = x % y; return true;
    case OP_DIVU: *r = (int64_t)(ux / uy); return true;
    case OP_REMU: *r = (int64_t)(ux % uy); return true;
    default: return false;
    }
}

static bool
fold_shift(OpKind op, ScalarKind k, int64_t x, int64_t y, int64_t *r)
{
    uint64_t n = unsigned_of(k, y), ux = unsigned_of(k, x);
    bool over = n >= (uint64_t)scalar_bits(k);
    switch ((int)op) {
    case OP_SHL: *r = over ? 0 : (int64_t)(ux << n); return true;
    case OP_SHRU: *r = over ? 0 : (int64_t)(ux >> n); return true;
    case OP_SHRS: *r = over ? (x < 0 ? -1 : 0) : x >> n; return true;
    default: return false;
    }
}

static bool
fold_int(const Op *op, ScalarKind k, int64_t x, int64_t y, int64_t *r)
{
    uint64_t ux = unsigned_of(k, x), uy = unsigned_of(k, y);
    int bits = scalar_bits(k);
    x = signed_of(k, x);
    y = signed_of(k, y);
    switch ((int)op->kind) {
    case OP_ADD: *r = (int64_t)((uint64_t)x + (uint64_t)y); return true;
    case OP_SUB: *r = (int64_t)((uint64_t)x - (uint64_t)y); return true;
    case OP_MUL: *r = (int64_t)((uint64_t)x * (uint64_t)y); return true;
    case OP_AND: *r = x & y; return true;
    case OP_OR: *r = x | y; return true;
    case OP_XOR: *r = x ^ y; return true;
    case OP_MINS: *r = x < y ? x : y; return true;
    case OP_MAXS: *r = x > y ? x : y; return true;
    case OP_MINU: *r = ux < uy ? x : y; return true;
    case OP_MAXU: *r = ux > uy ? x : y; return true;
    case OP_ABSS: *r = x < 0 ? (int64_t)(0 - (uint64_t)x) : x; return true;
    case OP_MULHIU:
        *r = (int64_t)(uint64_t)(((Wide)ux * uy) >> bits);
        return true;
    case OP_MULHIS: *r = (int64_t)(((SWide)x * y) >> bits); return true;
    case OP_DIVS:
    case OP_DIVU:
    case OP_REMS:
    case OP_REMU: return fold_div(op->kind, k, x, y, r);
    case OP_SHL:
    case OP_SHRS:
    case OP_SHRU: return fold_shift(op->kind, k, x, y, r);
    default: return false;
    }
}

/* The number where one is NaN, of any kind; -0 is less than 0. C's fmin leaves both open.
 */
static double
lesser(double x, double y)
{
    if (isnan(x) || isnan(y))
        return isnan(x) ? y : x;
    return x < y || (x == y && signbit(x)) ? x : y;
}

static bool
fold_float(const Op *op, double x, double y, double z, ScalarKind k, double *r)
{
    switch ((int)op->kind) {
    case OP_ADDF: *r = x + y; break;
    case OP_SUBF: *r = x - y; break;
    case OP_MULF: *r = x * y; break;
    case OP_DIVF:
    case OP_DIVRN: *r = x / y; break;
    case OP_NEGF: *r = -x; break;
    case OP_ABSF: *r = fabs(x); break;
    case OP_FLOOR: *r = floor(x); break;
    case OP_CEIL: *r = ceil(x); break;
    case OP_SQRTRN: *r = sqrt(x); break;
    case OP_MINF: *r = lesser(x, y); break;
    case OP_MAXF: *r = -lesser(-x, -y); break;
    case OP_FMA:
        if (k != SK_F64)
            return false; /* a * b + c in double would round twice */
        *r = fma(x, y, z);
        break;
    default: return false;
    }
    *r = const_round(k, *r);
    return true;
}

static bool
fold_cmpi(Name pred, ScalarKind k, int64_t x, int64_t y, int64_t *r)
{
    uint64_t ux = unsigned_of(k, x), uy = unsigned_of(k, y);
    x = signed_of(k, x);
    y = signed_of(k, y);
    const struct {
        const char *name;
        bool holds;
    } table[] = {
        {"eq", ux == uy}, {"ne", ux != uy}, {"slt", x < y},   {"sle", x <= y},
        {"sgt", x > y},   {"sge", x >= y},  {"ult", ux < uy}, {"ule", ux <= uy},
        {"ugt", ux > uy}, {"uge", ux >= uy},
    };
    for (int i = 0; i < COUNT_OF(table); i++) {
        if (strcmp(pred, table[i].name) == 0) {
            *r = table[i].holds;
            return true;
        }
    }
    return false;
}

static bool
fold_cmpf(Name pred, double x, double y, int64_t *r)
{
    const struct {
        const char *name;
        bool holds;
    } table[] = {
        {"oeq", x == y}, {"une", x != y}, {"olt", x < y}, {"ole", x <= y},
        {"ogt", x > y},  {"oge", x >= y}, {"uno", isnan(x) || isnan(y)},
    };
    for (int i = 0; i < COUNT_OF(table); i++) {
        if (strcmp(pred, table[i].name) == 0) {
            *r = table[i].holds;
            return true;
        }
    }
    return false;
}

static bool
fold_cast(const Op *op, ScalarKind from, ScalarKind to, const Const *x, Const *out)
{
    double limit = ldexp(1.0, scalar_bits(to) - 1);
    *out = (Const){.is_float = scalar_is_float(to)};
    switch ((int)op->kind) {
    case OP_TRUNC: out->i = const_wrap(to, x->i); return true;
    case OP_SEXT: out->i = from == SK_I1 ? -x->i : x->i; return true;
    case OP_ZEXT: out->i = (int64_t)unsigned_of(from, x->i); return true;
    case OP_FEXT: out->f = x->f; return true;
    case OP_FTRUNC: {
        Name round = attr_str(&op->attrs, ATTR_ROUND);
        if (round && strcmp(round, "rtne") != 0)
            return false;
        out->f = const_round(to, x->f);
        return true;
    }
    case OP_SITOF:
        if (from == SK_I64 && (x->i > (int64_t)1 << 53 || x->i < -((int64_t)1 << 53)))
            return false; /* would round twice */
        out->f = const_round(to, (double)(from == SK_I1 ? -x->i : x->i));
        return true;
    case OP_UITOF: {
        uint64_t u = unsigned_of(from, x->i);
        if (u > (uint64_t)1 << 53)
            return false;
        out->f = const_round(to, (double)u);
        return true;
    }
    case OP_FTOSI:
        if (!(x->f > -limit && x->f < limit))
            return false;
        out->i = (int64_t)x->f;
        return true;
    default:
        return false;
    }
}

static bool
is_fp8(ScalarKind k)
{
    return k != SK_NONE && scalar_is_float(k) && scalar_bits(k) == 8;
}

bool
fold_op(const Op *op, const Const *in, Const *out)
{
    if (!op->noperand || op->nresult != 1 || !op_is(op, T_PURE | T_ELEMENTWISE))
        return false;
    const Type *rt = type_elem(op->results[0].type);
    const Type *at = type_elem(op_operand(op, 0)->type);
    bool moves = op->kind == OP_FEXT || op->kind == OP_FTRUNC || op->kind == OP_SELECT ||
                 op->kind == OP_HINT;
    if (rt->kind != TY_SCALAR || at->kind != TY_SCALAR ||
        (!moves && (is_fp8(rt->scalar) || is_fp8(at->scalar))))
        return false;
    const Const *y = op->noperand > 1 ? &in[1] : &in[0];
    const Const *z = op->noperand > 2 ? &in[2] : &in[0];
    *out = (Const){0};
    if (op->kind == OP_SELECT) {
        *out = in[0].i ? *y : *z;
        return true;
    }
    if (op->kind == OP_HINT)
        return *out = in[0], true;
    Name pred = attr_str(&op->attrs, ATTR_PRED);
    if (op->kind == OP_CMPI)
        return pred && fold_cmpi(pred, at->scalar, in[0].i, y->i, &out->i);
    if (op->kind == OP_CMPF)
        return pred && fold_cmpf(pred, in[0].f, y->f, &out->i);
    if (at != rt)
        return op->noperand == 1 && fold_cast(op, at->scalar, rt->scalar, &in[0], out);
    if (scalar_is_float(rt->scalar)) {
        out->is_float = true;
        return fold_float(op, in[0].f, y->f, z->f, rt->scalar, &out->f);
    }
    if (!fold_int(op, rt->scalar, in[0].i, y->i, &out->i))
        return false;
    out->i = const_wrap(rt->scalar, out->i);
    return true;
}
