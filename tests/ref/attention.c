/* Reference of attention: each row of weights is computed whole, in three passes. */
#include <math.h>

#include "tests/ref/ref.h"

/* What the rows of one query need. */
typedef struct Row {
    const double *q, *k, *v;
    const double *bias;
    int64_t head, query, own; /* own: the key at the query's place */
    int64_t first, seen;      /* keys first..seen-1 */
    double high, sum;
    double reach;    /* largest scale * sum |q k| */
    double size;     /* largest |score| */
} Row;

static int64_t
value_dim(const RefAttention *a)
{
    return a->value_dim ? a->value_dim : a->dim;
}

static double
score(const RefAttention *a, const Row *row, int64_t j, double *magnitude)
{
    double s = 0, m = 0;
    for (int64_t d = 0; d < a->dim; d++) {
        s += row->q[d] * row->k[j * a->dim + d];
        m += fabs(row->q[d] * row->k[j * a->dim + d]);
    }
    *magnitude = a->scale * m;
    s *= a->scale;
    if (a->cap > 0)
        s = a->cap * tanh(s / a->cap);
    if (a->slopes)
        s -= a->slopes[row->head % a->heads] * fabs((double)(row->own - j));
    return row->bias ? s + row->bias[j] : s;
}

static void
row_weigh(const RefAttention *a, Row *row)
{
    double magnitude;
    row->high = -INFINITY;
    row->sum = row->reach = row->size = 0;
    for (int64_t j = row->first; j < row->seen; j++) {
        double s = score(a, row, j, &magnitude);
        row->high = fmax(row->high, s);
        row->reach = fmax(row->reach, magnitude);
        row->size = isinf(s) ? row->size : fmax(row->size, fabs(s));
    }
    for (int64_t j = row->first; j < row->seen; j++)
        row->sum += exp(score(a, row, j, &magnitude) - row->high);
}

/* Relative error of a weight: of its score, absolute. */
static double
weight_error(const RefAttention *a, const Row *row)
{
    /* what the scores are put together of */
    double parts = 8 * a->cap;
    if (a->slopes)
        parts += 8 * a->slopes[row->head % a->heads] * (double)(a->M + a->N);
    if (row->bias)
        for (int64_t j = row->first; j < row->seen; j++)
            parts = isinf(row->bias[j]) ? parts : fmax(parts, 8 * fabs(row->bias[j]));
    return REF_U32 * ((double)(a->dim + 4) * row->reach + 4 * row->size + 32 + parts) +
           a->dot_unit * row->reach;
}

double
ref_attention_keep(const RefAttention *a, int64_t head, int64_t i, int64_t j)
{
    if (a->drop == 0)
        return 1;
    /* Bit 3 of row and column choose the word, the other bits the counter. */
    uint32_t counter[4] = {(uint32_t)((j >> 4 << 3) + (j & 7)),
                           (uint32_t)((i >> 4 << 3) + (i & 7)),
                           (uint32_t)(head + a->first_head), 0};
    uint32_t key[2] = {(uint32_t)a->seed, (uint32_t)((uint64_t)a->seed >> 32)}, words[4];
    ref_philox(counter, key, words);
    uint32_t word = words[2 * (i >> 3 & 1) + (j >> 3 & 1)];
    return (double)word >= (double)a->drop * 0x1p32 ? 1 / (1 - (double)a->drop) : 0;
}

static void
row_sum(const RefAttention *a, const Row *row, double *o, double *o_bound)
{
    double slack = 2 * weight_error(a, row) + REF_U32 * (double)(2 * a->N + 12) +
                   a->weight_unit + a->dot_unit;
    int64_t dim = value_dim(a);
    for (int64_t d = 0; d < dim; d++)
        o[d] = o_bound[d] = 0;
    for (int64_t j = row->first; j < row->seen; j++) {
        double magnitude;
        double p = exp(score(a, row, j, &magnitude) - row->high) / row->sum *
                   ref_attention_keep(a, row->head, row->query, j);
        for (int64_t d = 0; d < dim; d++) {
            o[d] += p * row->v[j * dim + d];
            o_bound[d] += slack * p * fabs(row->v[j * dim + d]);
            /* A weight so small that its rounding is absolute (fp16). */
            if (a->weight_unit > 0)
                o_bound[d] += 0x1p-25 / (1 - (double)a->drop) *
                              fabs(row->v[j * dim + d]);
        }
    }
}

void
ref_attention(const RefAttention *a)
{
    for (int64_t z = 0; z < a->batch * a->heads; z++) {
        int64_t kv = z / a->heads * (a->heads / a->group) + z % a->heads / a->group;
        for (int64_t i = 0; i < a->M; i++) {
            Row row = {.q = a->q + (z * a->M + i) * a->dim,
                       .k = a->k + kv * a->N * a->dim,
                       .v = a->v + kv * a->N * value_dim(a),
                       .bias = a->bias ? a->bias + (z * a->M + i) * a->N : NULL,
                       .head = z,
                       .query = i,
                       .seen = a->lengths ? a->lengths[z / a->heads] : a->N};
            row.own = i + row.seen - a->M;
            int64_t most = row.own + (a->causal ? 1 : a->window);
            if ((a->causal || a->window) && most < row.seen)
                row.seen = most < 0 ? 0 : most;
            if (a->window && row.own - a->window + 1 > 0)
                row.first = row.own - a->window + 1;
            if (row.seen < row.first)
                row.seen = row.first;
            row_weigh(a, &row);
            int64_t at = z * a->M + i;
            bool any = row.sum > 0;
            double lse = any ? row.high + log(row.sum) : -INFINITY;
            a->lse[at] = lse;
            a->lse_bound[at] =
                weight_error(a, &row) +
                REF_U32 * ((double)a->N + 4 + (any ? fabs(lse) : 0));
            row_sum(a, &row, a->o + at * value_dim(a), a->o_bound + at * value_dim(a));
        }
    }
}
