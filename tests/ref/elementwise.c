/* References of the elementwise kernels: addition, add-mul-add, activations, dropout. */
#include <math.h>

#include "tests/ref/ref.h"

void
ref_vector_add(int64_t n, const double *x, const double *y, double *out)
{
    for (int64_t i = 0; i < n; i++)
        out[i] = x[i] + y[i];
}

void
ref_add_mul_add(int64_t n, const double *a, const double *b, const double *c,
                const double *d, double *out, double *bound)
{
    for (int64_t i = 0; i < n; i++) {
        out[i] = d[i] + (a[i] + b[i]) * c[i];
        bound[i] = 3 * REF_U32 * (fabs(d[i]) + (fabs(a[i]) + fabs(b[i])) * fabs(c[i]));
    }
}

void
ref_dropout(int64_t n, const double *x, float p, int64_t seed, bool four, double *out,
            double *bound)
{
    for (int64_t i = 0; i < n; i++) {
        uint32_t words[4];
        ref_philox_at(seed, (uint64_t)(four ? i / 4 : i), words);
        bool keep = ref_uniform(words[four ? i % 4 : 0]) > p;
        out[i] = keep ? x[i] / (1.0 - (double)p) : 0.0;
        /* an ulp of fp32 for the reciprocal, half a one for 1 - p and for the product */
        bound[i] = 4 * REF_U32 * fabs(out[i]);
    }
}

double
ref_act(RefAct act, double x)
{
    switch (act) {
    case REF_NONE: return x;
    case REF_RELU: return x > 0 ? x : 0;
    case REF_SILU: return x / (1 + exp(-x));
    case REF_GELU: return x * (1 + erf(x / sqrt(2.0))) / 2;
    }
    return NAN;
}

bool
ref_drop_keeps(const RefDrop *d, int64_t row, int64_t col)
{
    uint32_t words[4];
    int64_t i = row * d->cols + col;
    ref_philox_at(d->seed, d->offset + (uint64_t)(d->four ? i / 4 : i), words);
    return ref_uniform(words[d->four ? i % 4 : 0]) > d->p;
}

double
ref_slope(RefAct act, double z)
{
    double s = 1 / (1 + exp(-z));
    switch (act) {
    case REF_RELU: return z > 0;
    case REF_SILU: return s * (1 + z * (1 - s));
    case REF_GELU:
        return 0.5 * (1 + erf(z / sqrt(2.0))) +
               z * exp(-z * z / 2) / sqrt(2 * 3.14159265358979323846);
    default: return 1;
    }
}

void
ref_drop(const RefDrop *d)
{
    for (int64_t i = 0; i < d->rows * d->cols; i++) {
        int64_t r = i / d->cols, c = i % d->cols;
        double bias = d->bias ? d->bias[c] : 0, res = d->residual ? d->residual[i] : 0;
        double z = d->x[i] + bias, size = fabs(d->x[i]) + fabs(bias);
        double kept = ref_drop_keeps(d, r, c) ? 1 / (1.0 - (double)d->p) : 0;
        double v = kept * ref_act(d->act, z), g = kept * d->dy[i];
        d->out[i] = res + v;
        d->out_bound[i] = REF_U32 * (kept * 12 * size + 6 * fabs(v) + fabs(res));
        d->dx[i] = g * ref_slope(d->act, z);
        d->dx_bound[i] =
            REF_U32 * (6 * fabs(d->dx[i]) + fabs(g) * (d->act ? 20 + 4 * size : 0));
    }
}

double
ref_normal(int64_t seed, uint64_t offset)
{
    uint32_t words[4];
    ref_philox_at(seed, offset, words);
    double u = fmax(1e-7, ref_uniform(words[0]));
    return sqrt(-2.0 * log(u)) * cos(6.283185307179586 * (double)ref_uniform(words[1]));
}

void
ref_dropout_normal(int64_t n, const double *x, float threshold, int64_t seed, double *out,
                   double *bound, bool *either)
{
    double kept = erf((double)threshold / sqrt(2.0));
    for (int64_t i = 0; i < n; i++) {
        double z = fabs(ref_normal(seed, (uint64_t)i));
        either[i] = fabs(z - threshold) < 0x1p-20 * fmax(1, z);
        out[i] = z < threshold || either[i] ? x[i] / kept : 0.0;
        bound[i] = 16 * REF_U32 * fabs(out[i]);
    }
}
