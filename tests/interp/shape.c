/* Operations that move elements: row-major order is all that a shape means here. */
#include "tests/interp/machine.h"

#include <string.h>

/* Walks the result in order; each dimension has a stride in the source. */
static void
walk(const Type *t, const int64_t *stride, const uint64_t *in, uint64_t *out)
{
    int64_t at[MAX_RANK] = {0}, from = 0, n = type_numel(t);
    for (int64_t i = 0; i < n; i++) {
        out[i] = in[from];
        for (int d = t->rank - 1; d >= 0; d--) {
            from += stride[d];
            if (++at[d] < t->shape[d])
                break;
            from -= stride[d] * t->shape[d];
            at[d] = 0;
        }
    }
}

/* Strides of a tile in row-major order; 0 for dimensions of one element. */
static void
strides(const Type *t, int64_t *out)
{
    int64_t s = 1;
    for (int d = t->rank - 1; d >= 0; d--) {
        out[d] = t->shape[d] == 1 ? 0 : s;
        s *= t->shape[d];
    }
}

static bool
transpose(const Op *op, const uint64_t *in, uint64_t *out)
{
    int64_t from[MAX_RANK], to[MAX_RANK];
    const Attr *perm = attr_find(&op->attrs, ATTR_PERM);
    const Type *t = op_operand(op, 0)->type;
    int64_t shape[MAX_RANK];
    strides(t, from);
    for (int d = 0; d < t->rank; d++) {
        to[d] = from[perm->v.ints[d]];
        shape[d] = t->shape[perm->v.ints[d]];
    }
    Type r = *t;
    memcpy(r.shape, shape, sizeof shape);
    walk(&r, to, in, out);
    return true;
}

/* Elements in front of the axis, along it and behind it. */
static void
split_at(const Type *t, int axis, int64_t *outer, int64_t *size, int64_t *inner)
{
    *outer = *inner = 1;
    *size = t->shape[axis];
    for (int d = 0; d < t->rank; d++)
        *(d < axis ? outer : inner) *= d == axis ? 1 : t->shape[d];
}

static bool
concatenate(Machine *m, const Op *op, uint64_t *out)
{
    int axis = (int)attr_int(&op->attrs, ATTR_AXIS, 0);
    int64_t outer, inner, size[2];
    const uint64_t *in[2];
    for (int i = 0; i < 2; i++) {
        split_at(op_operand(op, i)->type, axis, &outer, &size[i], &inner);
        in[i] = machine_slot(m, op_operand(op, i))->cell;
    }
    for (int64_t o = 0; o < outer; o++)
        for (int i = 0; i < 2; i++) {
            int64_t n = size[i] * inner;
            memcpy(out, in[i] + o * n, (size_t)n * sizeof *out);
            out += n;
        }
    return true;
}

static bool
join(Machine *m, const Op *op, uint64_t *out)
{
    const uint64_t *x = machine_slot(m, op_operand(op, 0))->cell;
    const uint64_t *y = machine_slot(m, op_operand(op, 1))->cell;
    int64_t n = type_numel(op_operand(op, 0)->type);
    for (int64_t i = 0; i < n; i++) {
        out[2 * i] = x[i];
        out[2 * i + 1] = y[i];
    }
    return true;
}

static bool
split(Machine *m, const Op *op)
{
    const uint64_t *in = machine_slot(m, op_operand(op, 0))->cell;
    int64_t n = type_numel(op->results[0].type);
    for (int r = 0; r < 2; r++) {
        uint64_t *out = machine_write(m, &op->results[r], n);
        for (int64_t i = 0; out && i < n; i++)
            out[i] = in[2 * i + r];
        if (!out)
            return false;
    }
    return true;
}

bool
run_shape(Machine *m, const Op *op)
{
    const Type *t = op->results[0].type;
    int64_t stride[MAX_RANK], n = type_numel(t);
    if (op->kind == OP_SPLIT)
        return split(m, op);
    const uint64_t *in = machine_slot(m, op_operand(op, 0))->cell;
    uint64_t *out = machine_write(m, &op->results[0], n);
    if (!out)
        return false;
    switch ((int)op->kind) {
    case OP_SPLAT:
        for (int64_t i = 0; i < n; i++)
            out[i] = in[0];
        return true;
    case OP_BROADCAST:
        strides(op_operand(op, 0)->type, stride);
        walk(t, stride, in, out);
        return true;
    case OP_TRANS: return transpose(op, in, out);
    case OP_JOIN: return join(m, op, out);
    default: return concatenate(m, op, out);
    }
}

/* An index outside is wrong: generated code takes it modulo the size, and `undefined`
   anything. */
bool
run_gather(Machine *m, const Op *op)
{
    const Type *t = op_operand(op, 0)->type, *to = op->results[0].type;
    int axis = (int)attr_int(&op->attrs, ATTR_AXIS, 0);
    int64_t outer, size, inner, rows;
    split_at(t, axis, &outer, &size, &inner);
    split_at(to, axis, &outer, &rows, &inner);
    const uint64_t *in = machine_slot(m, op_operand(op, 0))->cell;
    const uint64_t *index = machine_slot(m, op_operand(op, 1))->cell;
    uint64_t *out = machine_write(m, &op->results[0], type_numel(to));
    if (!out)
        return false;
    for (int64_t o = 0; o < outer; o++)
        for (int64_t r = 0; r < rows; r++)
            for (int64_t i = 0; i < inner; i++, out++, index++) {
                uint64_t at = *index;
                if (at >= (uint64_t)size)
                    at = (at + m->undefined) & (uint64_t)(size - 1);
                *out = in[(o * size + (int64_t)at) * inner + i];
            }
    return true;
}

/* Does cell a come in front of b? NaN comes last. */
static bool
comes_first(ScalarKind k, const char *pred, uint64_t a, uint64_t b)
{
    bool more = pred[1] == 'g';
    if (scalar_is_float(k)) {
        double x = format_decode(k, a), y = format_decode(k, b);
        return x == x && (y != y || (more ? x > y : x < y));
    }
    if (pred[0] == 'u') {
        uint64_t x = int_unsigned(k, a), y = int_unsigned(k, b);
        return more ? x > y : x < y;
    }
    int64_t x = int_signed(k, a), y = int_signed(k, b);
    return more ? x > y : x < y;
}

/* By insertion. */
bool
run_topk(Machine *m, const Op *op)
{
    const Type *from = op_operand(op, 0)->type, *to = op->results[0].type;
    int64_t n = from->shape[from->rank - 1], k = to->shape[to->rank - 1];
    int64_t rows = type_numel(from) / n;
    const uint64_t *in = machine_slot(m, op_operand(op, 0))->cell;
    uint64_t *out = machine_write(m, &op->results[0], rows * k);
    Name pred = attr_str(&op->attrs, ATTR_PRED);
    if (!out || !machine_count(m, op, rows * n * k))
        return false;
    for (int64_t r = 0; r < rows; r++, in += n, out += k) {
        for (int64_t i = 0; i < n; i++) {
            int64_t at = i < k ? i : k;
            while (at > 0 && comes_first(from->elem->scalar, pred, in[i], out[at - 1])) {
                if (at < k)
                    out[at] = out[at - 1];
                at--;
            }
            if (at < k)
                out[at] = in[i];
        }
    }
    return true;
}

/* Values outside of the bins do not count. */
bool
run_histogram(Machine *m, const Op *op)
{
    const Type *t = op->results[0].type;
    int64_t bins = type_numel(t), n = type_numel(op_operand(op, 0)->type);
    const uint64_t *in = machine_slot(m, op_operand(op, 0))->cell, *mask = NULL;
    uint64_t *out = machine_write(m, &op->results[0], bins);
    if (!out)
        return false;
    if (op->noperand > 1)
        mask = machine_slot(m, op_operand(op, 1))->cell;
    memset(out, 0, (size_t)bins * sizeof *out);
    for (int64_t i = 0; i < n; i++)
        if (in[i] < (uint64_t)bins && (!mask || mask[i] & 1))
            out[in[i]]++;
    return true;
}
