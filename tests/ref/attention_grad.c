/* Reference of attention's gradients, one pair of a query and a key at a time. With p the
   weights, keep 1 or what dropout multiplies a weight by, delta = sum(o * dout) of a
   query:

       dv[j] = sum_i keep[i][j] p[i][j] dout[i]
       ds[i][j] = p[i][j] (keep[i][j] dout[i] . v[j] - delta[i]) bend[i][j]
       dq[i] = scale sum_j ds[i][j] k[j]
       dk[j] = scale sum_i ds[i][j] q[i]

   bend is the slope of the cap, 1 without. */
#include <math.h>

#include "tests/ref/ref.h"

static int64_t
value_dim(const RefAttention *a)
{
    return a->value_dim ? a->value_dim : a->dim;
}

/* A sum of products, and how far fp32 may be from it. */
typedef struct Dot {
    double value, size, bound;
} Dot;

/* unit: of a product before it is summed, see ref_matmul */
static Dot
dot(const double *x, const double *y, int64_t n, double unit)
{
    Dot d = {0, 0, 0};
    for (int64_t i = 0; i < n; i++) {
        d.value += x[i] * y[i];
        d.size += fabs(x[i] * y[i]);
    }
    d.bound = (REF_U32 * (double)(n + 4) + unit) * d.size;
    return d;
}

/* out += factor * x for one row, the factor off by at most `slip`. */
static void
add_row(double *out, double *bound, const double *x, int64_t n, double factor,
        double slip)
{
    for (int64_t i = 0; i < n; i++) {
        out[i] += factor * x[i];
        bound[i] += slip * fabs(x[i]);
    }
}

/* A score with what options change, its slope in the score before, and how far the
   arithmetic of both may be off besides. */
typedef struct Score {
    double value, bend, bound, bend_bound;
} Score;

static Score
score_of(const RefAttention *a, const Dot *dot, int64_t head, double away, double bias)
{
    Score s = {a->scale * dot->value, 1, 0, 0};
    if (a->cap > 0) {
        double t = tanh(s.value / a->cap);
        s.bend = 1 - t * t;
        s.bend_bound = 2 * a->scale * dot->bound / a->cap + 16 * REF_U32;
        s.value = a->cap * t;
    }
    if (a->slopes) {
        s.value -= a->slopes[head] * away;
        s.bound = 8 * REF_U32 * a->slopes[head] * (double)(a->M + a->N);
    }
    s.value += bias;
    s.bound += 8 * REF_U32 * (a->cap + (isinf(bias) ? 0 : fabs(bias)));
    return s;
}

/* Query i of head z with key j, `away` from each other: what it adds to the three
   gradients. */
static void
pair(const RefAttentionGrad *g, int64_t query, int64_t key, double keep, double away,
     double bias)
{
    const RefAttention *a = g->a;
    int64_t dim = a->dim, values = value_dim(a);
    const double *q = a->q + query * dim, *k = a->k + key * dim;
    const double *v = a->v + key * values, *dout = g->dout + query * values;
    Dot score = dot(q, k, dim, a->dot_unit), dp = dot(dout, v, values, a->dot_unit);
    Score with = score_of(a, &score, query / a->M % a->heads, away, bias);
    double p = exp(with.value - a->lse[query]);
    /* An error of the exponent is a relative error of the weight. */
    double relative = a->scale * score.bound + a->lse_bound[query] +
                      REF_U32 * (4 * a->scale * fabs(score.value) + 32) + with.bound;
    double terms = REF_U32 * (double)(a->M + a->N + 8) + a->dot_unit;
    double tiny = a->weight_unit > 0 ? 0x1p-25 : 0; /* of a subnormal fp16 */
    add_row(g->dv + key * values, g->dv_bound + key * values, dout, values, keep * p,
            keep * p * (relative + a->weight_unit + terms) + keep * tiny);

    double ds = p * (keep * dp.value - g->delta[query]);
    double off = p * (keep * (dp.bound + 4 * REF_U32 * fabs(dp.value)) +
                      g->delta_bound[query]);
    /* The difference is taken of numbers that carry their own errors. */
    double slip = off + (fabs(ds) + off) * (relative + a->weight_unit + terms) + tiny;
    slip = slip * with.bend + (fabs(ds) + slip) * with.bend_bound;
    ds *= with.bend;
    add_row(g->dq + query * dim, g->dq_bound + query * dim, k, dim, a->scale * ds,
            a->scale * slip);
    add_row(g->dk + key * dim, g->dk_bound + key * dim, q, dim, a->scale * ds,
            a->scale * slip);
}

static void
clear(double *x, double *y, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        x[i] = y[i] = 0;
}

void
ref_attention_grad(const RefAttentionGrad *g)
{
    const RefAttention *a = g->a;
    int64_t queries = a->batch * a->heads * a->M;
    int64_t keys = a->batch * (a->heads / a->group) * a->N;
    clear(g->dq, g->dq_bound, queries * a->dim);
    clear(g->dk, g->dk_bound, keys * a->dim);
    clear(g->dv, g->dv_bound, keys * value_dim(a));
    for (int64_t query = 0; query < queries; query++) {
        int64_t z = query / a->M, i = query % a->M;
        int64_t kv = z / a->heads * (a->heads / a->group) + z % a->heads / a->group;
        int64_t n = value_dim(a), at = query * n;
        Dot delta = dot(g->o + at, g->dout + at, n, 0);
        g->delta[query] = delta.value;
        g->delta_bound[query] = delta.bound;
        int64_t seen = a->lengths ? a->lengths[z / a->heads] : a->N;
        int64_t own = i + seen - a->M;
        for (int64_t j = 0; j < seen; j++) {
            int64_t away = own < j ? j - own : own - j;
            if ((!a->causal || j <= own) && (!a->window || away < a->window))
                pair(g, query, kv * a->N + j, ref_attention_keep(a, z, i, j),
                     (double)away, a->bias ? a->bias[query * a->N + j] : 0);
        }
    }
}
