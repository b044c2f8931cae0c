/* Dots of tiles: added up in double, the accumulator among them, rounded
   once to its format; of integers, sums that wrap. Every fp32 product counts with all
   its bits, whatever {precision} allows. */
#include "tests/interp/machine.h"

#include <string.h>

typedef struct Sizes {
    int64_t m, n, k;
} Sizes;

static void
multiply_reals(Sizes s, const double *a, const double *b, double *c)
{
    for (int64_t i = 0; i < s.m; i++)
        for (int64_t k = 0; k < s.k; k++) {
            double x = a[i * s.k + k];
            const double *row = b + k * s.n;
            for (int64_t j = 0; j < s.n; j++)
                c[i * s.n + j] += x * row[j];
        }
}

static void
multiply_ints(Sizes s, const uint64_t *a, const uint64_t *b, uint64_t *c)
{
    for (int64_t i = 0; i < s.m; i++)
        for (int64_t k = 0; k < s.k; k++)
            for (int64_t j = 0; j < s.n; j++)
                c[i * s.n + j] += a[i * s.k + k] * b[k * s.n + j];
}

static bool
dot_ints(Machine *m, const Op *op, Sizes s, int64_t batches)
{
    const uint64_t *a = machine_slot(m, op_operand(op, 0))->cell;
    const uint64_t *b = machine_slot(m, op_operand(op, 1))->cell;
    ScalarKind k = type_elem(op->results[0].type)->scalar;
    int64_t n = batches * s.m * s.n;
    uint64_t *c = machine_write(m, &op->results[0], n);
    if (!c)
        return false;
    memcpy(c, machine_slot(m, op_operand(op, 2))->cell, (size_t)n * sizeof *c);
    for (int64_t i = 0; i < batches; i++)
        multiply_ints(s, a + i * s.m * s.k, b + i * s.k * s.n, c + i * s.m * s.n);
    for (int64_t i = 0; i < n; i++)
        c[i] = (uint64_t)int_wrap(k, c[i]);
    return true;
}

bool
run_dot(Machine *m, const Op *op)
{
    const Type *at = op_operand(op, 0)->type, *t = op->results[0].type;
    int r = t->rank;
    Sizes s = {t->shape[r - 2], t->shape[r - 1], at->shape[r - 1]};
    int64_t batches = type_numel(t) / (s.m * s.n);
    double *in[3];
    if (!machine_count(m, op, batches * s.m * s.n * s.k / 4))
        return false;
    if (type_is_int(t))
        return dot_ints(m, op, s, batches);
    for (int i = 0; i < 3; i++) {
        const Value *v = op_operand(op, i);
        int64_t n = type_numel(v->type);
        if (!(in[i] = (double *)slot_room(m, &m->real[i], n)))
            return false;
        format_read(type_elem(v->type)->scalar, machine_slot(m, v)->cell, in[i], n);
    }
    uint64_t *out = machine_write(m, &op->results[0], type_numel(t));
    if (!out)
        return false;
    for (int64_t i = 0; i < batches; i++)
        multiply_reals(s, in[0] + i * s.m * s.k, in[1] + i * s.k * s.n,
                       in[2] + i * s.m * s.n);
    format_write(m, type_elem(t)->scalar, in[2], out, type_numel(t));
    return true;
}
