/* Arithmetic and comparison of integers and pointers, lane by lane. */
#include "tests/interp/machine.h"

#include "ir/base/util.h"

#include <string.h>

__extension__ typedef unsigned __int128 Wide;
__extension__ typedef __int128 SWide;

int64_t
int_wrap(ScalarKind k, uint64_t x)
{
    switch (k) {
    case SK_I1: return (int64_t)(x & 1);
    case SK_I8: return (int8_t)x;
    case SK_I16: return (int16_t)x;
    case SK_I32: return (int32_t)x;
    default: return (int64_t)x;
    }
}

uint64_t
int_unsigned(ScalarKind k, uint64_t x)
{
    switch (k) {
    case SK_I1: return x & 1;
    case SK_I8: return (uint8_t)x;
    case SK_I16: return (uint16_t)x;
    case SK_I32: return (uint32_t)x;
    default: return x;
    }
}

int64_t
int_signed(ScalarKind k, uint64_t x)
{
    return k == SK_I1 ? -(int64_t)(x & 1) : (int64_t)x;
}

typedef struct Ints {
    const uint64_t *x, *y;
    uint64_t *out;
    int64_t n;
    ScalarKind k;
} Ints;

#define EACH(expr)                            \
    do {                                      \
        for (int64_t i = 0; i < a->n; i++) {  \
            uint64_t x = a->x[i], y = a->y[i]; \
            (void)y;                          \
            a->out[i] = (uint64_t)(expr);     \
        }                                     \
        return true;                          \
    } while (0)

/* The same with both operands as signed and unsigned numbers. */
#define EACH_NUMBER(expr)                                                    \
    do {                                                                     \
        for (int64_t i = 0; i < a->n; i++) {                                 \
            int64_t x = int_signed(a->k, a->x[i]);                           \
            int64_t y = int_signed(a->k, a->y[i]);                           \
            uint64_t ux = int_unsigned(a->k, a->x[i]);                       \
            uint64_t uy = int_unsigned(a->k, a->y[i]);                       \
            (void)x, (void)y, (void)ux, (void)uy;                            \
            a->out[i] = (uint64_t)(expr);                                    \
        }                                                                    \
        return true;                                                         \
    } while (0)

static uint64_t
quotient(OpKind op, ScalarKind k, int64_t x, int64_t y, uint64_t other)
{
    uint64_t ux = int_unsigned(k, (uint64_t)x), uy = int_unsigned(k, (uint64_t)y);
    bool rest = op == OP_REMS || op == OP_REMU;
    if (uy == 0) /* undefined */
        return other ? other * 0x9e3779b97f4a7c15u : rest ? (uint64_t)x : ~(uint64_t)0;
    switch ((int)op) {
    case OP_DIVU: return ux / uy;
    case OP_REMU: return ux % uy;
    /* the smallest number divided by -1 wraps to itself */
    case OP_DIVS: return y == -1 ? 0 - (uint64_t)x : (uint64_t)(x / y);
    default: return y == -1 ? 0 : (uint64_t)(x % y);
    }
}

static uint64_t
shifted(OpKind op, ScalarKind k, uint64_t cell, uint64_t count)
{
    uint64_t n = int_unsigned(k, count);
    int64_t x = int_signed(k, cell);
    bool over = n >= (uint64_t)scalar_bits(k);
    switch ((int)op) {
    case OP_SHL: return over ? 0 : cell << n;
    case OP_SHRU: return over ? 0 : int_unsigned(k, cell) >> n;
    default: return (uint64_t)(over ? (x < 0 ? -1 : 0) : x >> n);
    }
}

static bool
arithmetic(const Machine *m, OpKind op, const Ints *a)
{
    int bits = scalar_bits(a->k);
    switch ((int)op) {
    case OP_ADD: EACH(x + y);
    case OP_SUB: EACH(x - y);
    case OP_MUL: EACH(x * y);
    case OP_AND: EACH(x & y);
    case OP_OR: EACH(x | y);
    case OP_XOR: EACH(x ^ y);
    case OP_DIVS:
    case OP_DIVU:
    case OP_REMS:
    case OP_REMU: EACH_NUMBER(quotient(op, a->k, x, y, m->undefined));
    case OP_SHL:
    case OP_SHRS:
    case OP_SHRU: EACH(shifted(op, a->k, x, y));
    case OP_MINS: EACH_NUMBER(x < y ? x : y);
    case OP_MAXS: EACH_NUMBER(x > y ? x : y);
    case OP_MINU: EACH_NUMBER(ux < uy ? ux : uy);
    case OP_MAXU: EACH_NUMBER(ux > uy ? ux : uy);
    case OP_MULHIS: EACH_NUMBER((uint64_t)(((SWide)x * y) >> bits));
    case OP_MULHIU: EACH_NUMBER((uint64_t)(((Wide)ux * uy) >> bits));
    case OP_ABSS: EACH_NUMBER(x < 0 ? 0 - (uint64_t)x : (uint64_t)x);
    default: return false;
    }
}

/* What a pass promises of an addition or product must hold. */
static bool
check_nowrap(Machine *m, const Op *op, const Ints *a)
{
    for (int64_t i = 0; i < a->n; i++) {
        SWide x = int_signed(a->k, a->x[i]), y = int_signed(a->k, a->y[i]);
        SWide r = op->kind == OP_ADD ? x + y : op->kind == OP_SUB ? x - y : x * y;
        if (r != (SWide)int_wrap(a->k, (uint64_t)r))
            return machine_stop(m, INTERP_ASSERT, op,
                                "lane %lld wraps, which {nowrap} denies", (long long)i);
    }
    return true;
}

bool
run_integer(Machine *m, const Op *op)
{
    const Type *e = type_elem(op->results[0].type);
    Ints a = {.n = machine_lanes(m, op), .k = e->kind == TY_PTR ? SK_I64 : e->scalar};
    a.x = machine_read(m, op_operand(op, 0), a.n, 0);
    a.y = op->noperand > 1 ? machine_read(m, op_operand(op, 1), a.n, 1) : a.x;
    a.out = machine_write(m, &op->results[0], a.n);
    if (!a.x || !a.y || !a.out)
        return false;
    bool promised = attr_has(&op->attrs, ATTR_NOWRAP) &&
                    (op->kind == OP_ADD || op->kind == OP_SUB || op->kind == OP_MUL);
    if (promised && !check_nowrap(m, op, &a))
        return false;
    if (!arithmetic(m, op->kind, &a))
        return machine_stop(m, INTERP_UNSUPPORTED, op, "not known to the interpreter");
    if (a.k == SK_I64)
        return true;
    for (int64_t i = 0; i < a.n; i++)
        a.out[i] = (uint64_t)int_wrap(a.k, a.out[i]);
    return true;
}

static bool
compare_integers(const char *pred, const Ints *a)
{
    if (!strcmp(pred, "eq"))
        EACH(x == y);
    if (!strcmp(pred, "ne"))
        EACH(x != y);
    if (!strcmp(pred, "slt"))
        EACH_NUMBER(x < y);
    if (!strcmp(pred, "sle"))
        EACH_NUMBER(x <= y);
    if (!strcmp(pred, "sgt"))
        EACH_NUMBER(x > y);
    if (!strcmp(pred, "sge"))
        EACH_NUMBER(x >= y);
    if (!strcmp(pred, "ult"))
        EACH_NUMBER(ux < uy);
    if (!strcmp(pred, "ule"))
        EACH_NUMBER(ux <= uy);
    if (!strcmp(pred, "ugt"))
        EACH_NUMBER(ux > uy);
    if (!strcmp(pred, "uge"))
        EACH_NUMBER(ux >= uy);
    return false;
}

#define EACH_REAL(expr)                      \
    do {                                     \
        for (int64_t i = 0; i < n; i++) {    \
            double x = r[0][i], y = r[1][i]; \
            out[i] = (uint64_t)(expr);       \
        }                                    \
        return true;                         \
    } while (0)

static bool
compare_reals(const char *pred, double *const *r, uint64_t *out, int64_t n)
{
    if (!strcmp(pred, "oeq"))
        EACH_REAL(x == y);
    if (!strcmp(pred, "une"))
        EACH_REAL(x != y);
    if (!strcmp(pred, "olt"))
        EACH_REAL(x < y);
    if (!strcmp(pred, "ole"))
        EACH_REAL(x <= y);
    if (!strcmp(pred, "ogt"))
        EACH_REAL(x > y);
    if (!strcmp(pred, "oge"))
        EACH_REAL(x >= y);
    if (!strcmp(pred, "uno"))
        EACH_REAL(x != x || y != y);
    return false;
}

bool
run_compare(Machine *m, const Op *op)
{
    const Type *e = type_elem(op_operand(op, 0)->type);
    int64_t n = machine_lanes(m, op);
    const uint64_t *in[2];
    double *r[2];
    uint64_t *out = machine_write(m, &op->results[0], n);
    Name pred = attr_str(&op->attrs, ATTR_PRED);
    for (int i = 0; i < 2; i++)
        if (!(in[i] = machine_read(m, op_operand(op, i), n, i)))
            return false;
    if (!out)
        return false;
    bool known;
    if (op->kind == OP_CMPF) {
        for (int i = 0; i < 2; i++) {
            if (!(r[i] = (double *)slot_room(m, &m->real[i], n)))
                return false;
            format_read(e->scalar, in[i], r[i], n);
        }
        known = pred && compare_reals(pred, r, out, n);
    } else {
        Ints a = {in[0], in[1], out, n, e->kind == TY_PTR ? SK_I64 : e->scalar};
        known = pred && compare_integers(pred, &a);
    }
    return known || machine_stop(m, INTERP_UNSUPPORTED, op, "with this {pred}");
}
