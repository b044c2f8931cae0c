/* Arithmetic of floats: in double, then rounded once to the format. For sums, products,
   quotients and roots of formats of at most 24 bits that is the correctly rounded result
   (53 >= 2 * 24 + 2); fma takes care of itself. Library functions are the host's in
   double: within an ulp of the format of what is exact. */
#include "tests/interp/machine.h"

#include "ir/base/util.h"

#include <math.h>
#include <string.h>

/* a * b + c of doubles from a narrower format, ready for a second rounding to fewer bits:
   where the sum is not exact its last bit is made odd. */
static double
fma_odd(double a, double b, double c)
{
    double p = a * b; /* exact: 2 * 24 bits */
    double s = p + c;
    if (!isfinite(s))
        return s;
    double t = s - p, rest = (p - (s - t)) + (c - t);
    uint64_t u;
    memcpy(&u, &s, sizeof u);
    if (rest != 0 && !(u & 1)) {
        bool away = (rest > 0) == (s > 0);
        u = away ? u + 1 : u - 1;
        memcpy(&s, &u, sizeof s);
    }
    return s;
}

/* The lesser or greater; of zeros of both signs either is right: `undefined` picks. */
static double
extreme(const Machine *m, bool max, bool nan, double x, double y)
{
    if (x != x || y != y)
        return nan ? x + y : x != x ? y : x;
    if (x == y && x == 0)
        return (signbit(x) && signbit(y)) || (signbit(x) != signbit(y) &&
                                              max == (m->undefined != 0))
                   ? -0.0
                   : 0.0;
    return max == (x > y) ? x : y;
}

#define EACH(expr)                              \
    do {                                        \
        for (int64_t i = 0; i < n; i++) {       \
            double x = a[i], y = b[i], z = c[i]; \
            (void)y, (void)z;                   \
            r[i] = (expr);                      \
        }                                       \
        return true;                            \
    } while (0)

static bool
arithmetic(const Machine *m, OpKind op, ScalarKind k, const double *a, const double *b,
           const double *c, double *r, int64_t n)
{
    switch ((int)op) {
    case OP_ADDF: EACH(x + y);
    case OP_SUBF: EACH(x - y);
    case OP_MULF: EACH(x * y);
    case OP_DIVF:
    case OP_DIVRN: EACH(x / y);
    case OP_REMF: EACH(fmod(x, y));
    case OP_NEGF: EACH(-x);
    case OP_ABSF: EACH(fabs(x));
    case OP_MINF: EACH(extreme(m, false, false, x, y));
    case OP_MAXF: EACH(extreme(m, true, false, x, y));
    case OP_MINNAN: EACH(extreme(m, false, true, x, y));
    case OP_MAXNAN: EACH(extreme(m, true, true, x, y));
    case OP_FMA: EACH(k == SK_F64 ? fma(x, y, z) : fma_odd(x, y, z));
    case OP_FLOOR: EACH(floor(x));
    case OP_CEIL: EACH(ceil(x));
    case OP_SQRT:
    case OP_SQRTRN: EACH(sqrt(x));
    case OP_RSQRT: EACH(1 / sqrt(x));
    case OP_EXP: EACH(exp(x));
    case OP_EXP2: EACH(exp2(x));
    case OP_LOG: EACH(log(x));
    case OP_LOG2: EACH(log2(x));
    case OP_SIN: EACH(sin(x));
    case OP_COS: EACH(cos(x));
    case OP_ERF: EACH(erf(x));
    default: return false;
    }
}

/* What a pass promises of an exponent must hold. */
static bool
check_below0(Machine *m, const Op *op, const double *a, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        if (!(a[i] <= 0) && a[i] == a[i])
            return machine_stop(m, INTERP_ASSERT, op, "lane %lld is %g, above 0, which "
                                "{nonpositive} denies", (long long)i, a[i]);
    return true;
}

/* Operand i as doubles. */
static double *
reals(Machine *m, const Op *op, int i, int64_t n)
{
    const uint64_t *in = machine_read(m, op_operand(op, i), n, i);
    double *r = (double *)slot_room(m, &m->real[i], n);
    if (in && r)
        format_read(type_elem(op_operand(op, i)->type)->scalar, in, r, n);
    return in ? r : NULL;
}

bool
run_float(Machine *m, const Op *op)
{
    ScalarKind k = type_elem(op->results[0].type)->scalar;
    int64_t n = machine_lanes(m, op);
    double *in[3] = {0}, *r = (double *)slot_room(m, &m->real[3], n);
    for (int i = 0; i < 3; i++)
        if (!(in[i] = i < op->noperand ? reals(m, op, i, n) : in[0]))
            return false;
    uint64_t *out = machine_write(m, &op->results[0], n);
    if (!out || !r)
        return false;
    if (attr_has(&op->attrs, ATTR_NONPOSITIVE) && !check_below0(m, op, in[0], n))
        return false;
    if (!arithmetic(m, op->kind, k, in[0], in[1], in[2], r, n))
        return machine_stop(m, INTERP_UNSUPPORTED, op, "not known to the interpreter");
    format_write(m, k, r, out, n);
    return true;
}

/* ---- library functions */

typedef struct Function {
    const char *name;
    double (*one)(double);
    double (*two)(double, double);
} Function;

static double
ten_to(double x)
{
    return pow(10, x);
}

static double
power_of_two(double x, double n)
{
    return ldexp(x, (int)n);
}

static const Function functions[] = {
    {"tanh", tanh, 0},        {"sinh", sinh, 0},       {"cosh", cosh, 0},
    {"tan", tan, 0},          {"asin", asin, 0},       {"acos", acos, 0},
    {"atan", atan, 0},        {"asinh", asinh, 0},     {"acosh", acosh, 0},
    {"atanh", atanh, 0},      {"atan2", 0, atan2},     {"expm1", expm1, 0},
    {"exp10", ten_to, 0},     {"log1p", log1p, 0},     {"log10", log10, 0},
    {"sin", sin, 0},          {"cos", cos, 0},         {"log", log, 0},
    {"log2", log2, 0},        {"cbrt", cbrt, 0},       {"erfc", erfc, 0},
    {"tgamma", tgamma, 0},
    {"lgamma", lgamma, 0},    {"pow", 0, pow},         {"powi", 0, pow},
    {"fmod", 0, fmod},        {"hypot", 0, hypot},     {"remainder", 0, remainder},
    {"copysign", 0, copysign}, {"fdim", 0, fdim},      {"ldexp", 0, power_of_two},
    {"rint", nearbyint, 0},   {"round", round, 0},     {"nearbyint", nearbyint, 0},
    {"trunc", trunc, 0},
};

static double
next_single(double x, double y)
{
    return (double)nextafterf((float)x, (float)y);
}

static const Function *
function(const char *name, ScalarKind k)
{
    static const Function next = {"nextafter", 0, nextafter};
    static const Function next32 = {"nextafter", 0, next_single};
    if (!strcmp(name, "nextafter"))
        return k == SK_F64 ? &next : &next32;
    name += strncmp(name, "fast_", 5) ? 0 : 5;
    for (int i = 0; i < COUNT_OF(functions); i++)
        if (!strcmp(functions[i].name, name))
            return &functions[i];
    return NULL;
}

static uint64_t
reversed(uint64_t x, int bits)
{
    uint64_t r = 0;
    for (int i = 0; i < bits; i++)
        r |= (x >> i & 1) << (bits - 1 - i);
    return r;
}

static bool
count_bits(Machine *m, const Op *op, const char *name)
{
    ScalarKind k = type_elem(op_operand(op, 0)->type)->scalar;
    ScalarKind to = type_elem(op->results[0].type)->scalar;
    int64_t n = machine_lanes(m, op);
    int bits = scalar_bits(k);
    const uint64_t *in = machine_read(m, op_operand(op, 0), n, 0);
    uint64_t *out = machine_write(m, &op->results[0], n);
    for (int64_t i = 0; in && out && i < n; i++) {
        uint64_t x = int_unsigned(k, in[i]), r;
        if (!strcmp(name, "popc"))
            r = (uint64_t)__builtin_popcountll(x);
        else if (!strcmp(name, "clz"))
            r = (uint64_t)(x ? __builtin_clzll(x) - (64 - bits) : bits);
        else if (!strcmp(name, "ffs"))
            r = (uint64_t)__builtin_ffsll((long long)x);
        else if (!strcmp(name, "brev"))
            r = reversed(x, bits);
        else
            return machine_stop(m, INTERP_UNSUPPORTED, op, "'%s'", name);
        out[i] = (uint64_t)int_wrap(to, r);
    }
    return in && out;
}

/* isnan and its like; false when it is none of them. */
static bool
classify(const char *name, const double *a, uint64_t *out, int64_t n)
{
    static const char *const names[] = {"isnan", "isinf", "isfinite", "signbit"};
    int which = 0;
    while (which < COUNT_OF(names) && strcmp(names[which], name))
        which++;
    for (int64_t i = 0; which < COUNT_OF(names) && i < n; i++)
        out[i] = which == 0   ? a[i] != a[i]
                 : which == 1 ? fabs(a[i]) == HUGE_VAL
                 : which == 2 ? fabs(a[i]) < HUGE_VAL
                              : signbit(a[i]) != 0;
    return which < COUNT_OF(names);
}

bool
run_libm(Machine *m, const Op *op)
{
    Name name = attr_str(&op->attrs, ATTR_FN);
    const Type *e = type_elem(op_operand(op, 0)->type);
    int64_t n = machine_lanes(m, op);
    if (!name || op->noperand > 2)
        return machine_stop(m, INTERP_UNSUPPORTED, op, "'%s'", name ? name : "");
    if (!scalar_is_float(e->scalar))
        return count_bits(m, op, name);
    double *a = reals(m, op, 0, n), *b = a, *r = (double *)slot_room(m, &m->real[3], n);
    uint64_t *out = machine_write(m, &op->results[0], n);
    if (!a || !r || !out)
        return false;
    if (classify(name, a, out, n))
        return true;
    if (op->noperand > 1 && type_is_int(op_operand(op, 1)->type)) {
        const uint64_t *in = machine_read(m, op_operand(op, 1), n, 1);
        if (!in || !(b = (double *)slot_room(m, &m->real[1], n)))
            return false;
        for (int64_t i = 0; i < n; i++)
            b[i] = (double)(int64_t)in[i];
    } else if (op->noperand > 1 && !(b = reals(m, op, 1, n))) {
        return false;
    }
    const Function *f = function(name, e->scalar);
    if (!f || (op->noperand == 1) != (f->one != NULL))
        return machine_stop(m, INTERP_UNSUPPORTED, op, "'%s'", name);
    for (int64_t i = 0; i < n; i++)
        r[i] = f->one ? f->one(a[i]) : f->two(a[i], b[i]);
    format_write(m, e->scalar, r, out, n);
    return true;
}
