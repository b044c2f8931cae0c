/* References of the elementwise kernels: addition, add-mul-add, dropout. */
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
        /* 2 ulp for the division, half an ulp for 1 - p, all in fp32 */
        bound[i] = 5 * REF_U32 * fabs(out[i]);
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
