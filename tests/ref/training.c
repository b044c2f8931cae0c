/* References of what training needs around its products: cross entropy, AdamW,
   activations, embeddings. */
#include <math.h>

#include "tests/ref/ref.h"

static void
entropy_row(const RefEntropy *e, int64_t r)
{
    const double *x = e->x + r * e->cols;
    double high = -INFINITY, low = INFINITY, sum = 0;
    bool live = e->target[r] != e->ignore;
    for (int64_t c = 0; c < e->cols; c++) {
        high = fmax(high, x[c]);
        low = fmin(low, x[c]);
    }
    for (int64_t c = 0; c < e->cols; c++)
        sum += exp(x[c] - high);
    double off = 2 * REF_U32 * (8 + 2 * (high - low)) + REF_U32 * (double)e->cols;
    bool outside = live && (e->target[r] < 0 || e->target[r] >= e->cols);
    double hit = outside ? (double)NAN : live ? x[e->target[r]] : 0;
    double loss = live ? high + log(sum) - hit : 0;
    e->loss[r] = loss;
    e->loss_bound[r] =
        live ? off + 2 * REF_U32 * (fabs(hit) + fmax(fabs(high), fabs(low)) + fabs(loss))
             : 0;
    for (int64_t c = 0; c < e->cols; c++) {
        double p = exp(x[c] - high) / sum, one = c == e->target[r];
        e->dx[r * e->cols + c] = outside ? (double)NAN : live ? e->scale * (p - one) : 0;
        e->dx_bound[r * e->cols + c] =
            live ? fabs(e->scale) * (2 * off * p + 2 * REF_U32) : 0;
    }
}

void
ref_cross_entropy(const RefEntropy *e)
{
    for (int64_t r = 0; r < e->rows; r++)
        entropy_row(e, r);
}

void
ref_adamw(const RefAdam *a)
{
    for (int64_t i = 0; i < a->n; i++) {
        double h = a->scale * a->g[i], old = a->m[i];
        double m = a->beta1 * old + (1 - a->beta1) * h;
        double v = a->beta2 * a->v[i] + (1 - a->beta2) * h * h;
        double slope = a->lr / a->fix1 / (sqrt(v / a->fix2) + a->eps), u = slope * m;
        double m_bound = 4 * REF_U32 * (fabs(a->beta1 * old) + fabs((1 - a->beta1) * h));
        a->m_bound[i] = m_bound + 0x1p-149;
        a->v_bound[i] = 6 * REF_U32 * v + 0x1p-148;
        a->w_bound[i] =
            REF_U32 * (2 * fabs(a->w[i]) + 24 * fabs(u)) + fabs(slope) * a->m_bound[i];
        a->w[i] -= a->lr * a->decay * a->w[i] + u;
        a->m[i] = m;
        a->v[i] = v;
    }
}

void
ref_activation(RefAct act, int64_t n, const double *x, const double *dy, double *out,
               double *out_bound, double *dx, double *dx_bound)
{
    bool exact = act == REF_RELU || act == REF_NONE;
    for (int64_t i = 0; i < n; i++) {
        out[i] = ref_act(act, x[i]);
        dx[i] = dy[i] * ref_slope(act, x[i]);
        out_bound[i] = exact ? 0 : 12 * REF_U32 * fabs(x[i]);
        dx_bound[i] =
            exact ? 0 : REF_U32 * (fabs(dx[i]) + fabs(dy[i]) * (20 + 4 * fabs(x[i])));
    }
}

/* What the bound of one more term adds: the term, and one sum more of all so far. */
void
ref_embedding(const RefEmbedding *e)
{
    int64_t dim = e->dim;
    for (int64_t i = 0; i < e->words * dim; i++)
        e->dtable[i] = e->dtable_bound[i] = 0;
    for (int64_t i = 0; i < e->length * dim; i++)
        e->dplace[i] = e->dplace_bound[i] = 0;
    for (int64_t t = 0; t < e->tokens; t++)
        for (int64_t d = 0; d < dim; d++) {
            int64_t w = e->token[t] * dim + d, p = t % e->length * dim + d;
            double dy = e->dy[t * dim + d];
            e->out[t * dim + d] = e->table[w] + (e->place ? e->place[p] : 0);
            e->out_bound[t * dim + d] = REF_U32 * fabs(e->out[t * dim + d]);
            e->dtable[w] += dy;
            e->dplace[p] += dy;
            e->dtable_bound[w] += REF_U32 * (double)(e->tokens + 1) * fabs(dy);
            e->dplace_bound[p] += REF_U32 * (double)(e->tokens + 1) * fabs(dy);
        }
}
