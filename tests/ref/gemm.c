/* References of the matrix products: dense with an epilogue, and block-sparse. */
#include <math.h>

#include "tests/ref/ref.h"

void
ref_matmul(int64_t M, int64_t N, int64_t K, const double *a, const double *b,
           const double *bias, RefAct act, double unit, double *c, double *bound)
{
    for (int64_t m = 0; m < M; m++)
        for (int64_t n = 0; n < N; n++) {
            double sum = bias ? bias[n] : 0, size = fabs(sum);
            for (int64_t k = 0; k < K; k++) {
                sum += a[m * K + k] * b[k * N + n];
                size += fabs(a[m * K + k] * b[k * N + n]);
            }
            c[m * N + n] = ref_act(act, sum);
            /* 1.2 bounds the slopes of the activations, 8 their own arithmetic. */
            bound[m * N + n] = 1.2 * (REF_U32 * (double)(K + 8) + unit) * size;
        }
}

static bool
mask_at(const RefMask *mask, int64_t row, int64_t col)
{
    return mask->live[row / mask->rows * mask->blocks + col / mask->cols] != 0;
}

void
ref_dsd(int64_t M, int64_t N, int64_t K, const double *a, const double *b,
        const RefMask *mask, double scale, double unit, double *c, double *bound)
{
    for (int64_t m = 0; m < M; m++)
        for (int64_t n = 0; n < N; n++) {
            double sum = 0, size = 0;
            for (int64_t k = 0; k < K; k++)
                if (mask_at(mask, m, k)) {
                    sum += a[m * K + k] * b[k * N + n];
                    size += fabs(a[m * K + k] * b[k * N + n]);
                }
            c[m * N + n] = scale * sum;
            bound[m * N + n] = (REF_U32 * (double)(K + 4) + unit) * fabs(scale) * size;
        }
}

void
ref_sdd(int64_t M, int64_t N, int64_t K, const double *a, const double *b,
        const RefMask *mask, double scale, double unit, double *c, double *bound)
{
    for (int64_t m = 0; m < M; m++)
        for (int64_t n = 0; n < N; n++) {
            double sum = 0, size = 0;
            for (int64_t k = 0; k < K && mask_at(mask, m, n); k++) {
                sum += a[m * K + k] * b[k * N + n];
                size += fabs(a[m * K + k] * b[k * N + n]);
            }
            c[m * N + n] = scale * sum;
            bound[m * N + n] = (REF_U32 * (double)(K + 4) + unit) * fabs(scale) * size;
        }
}
