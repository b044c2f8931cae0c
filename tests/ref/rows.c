/* References of the kernels that reduce rows: softmax, layer norm, root mean
   square norm, weighted sum. */
#include <math.h>

#include "tests/ref/ref.h"

void
ref_softmax(int64_t rows, int64_t cols, const double *x, double *out, double *bound)
{
    for (int64_t r = 0; r < rows; r++) {
        const double *in = x + r * cols;
        double high = -INFINITY, low = INFINITY, sum = 0;
        for (int64_t c = 0; c < cols; c++) {
            high = fmax(high, in[c]);
            low = fmin(low, in[c]);
        }
        for (int64_t c = 0; c < cols; c++)
            sum += exp(in[c] - high);
        for (int64_t c = 0; c < cols; c++) {
            double v = exp(in[c] - high) / sum;
            out[r * cols + c] = v;
            bound[r * cols + c] =
                v * (2 * REF_U32 * (8 + 2 * (high - low)) + REF_U32 * (double)cols);
        }
    }
}

/* Mean and deviation of a row, and what an error of the mean does to x - mean. */
static void
norm_row_forward(const RefNorm *n, int64_t row, double unit)
{
    const double *x = n->x + row * n->cols;
    double mean = 0, size = 0, var = 0, count = (double)n->cols;
    for (int64_t c = 0; c < n->cols; c++) {
        mean += x[c] / count;
        size += fabs(x[c]) / count;
    }
    for (int64_t c = 0; c < n->cols; c++)
        var += (x[c] - mean) * (x[c] - mean) / count;
    double rstd = 1 / sqrt(var + n->eps);
    double slip = unit * size; /* of the mean */
    double stretch = 3 * unit + 2 * rstd * slip; /* of rstd, relative */
    n->mean[row] = mean;
    n->mean_bound[row] = slip;
    n->rstd[row] = rstd;
    n->rstd_bound[row] = rstd * stretch;
    for (int64_t c = 0; c < n->cols; c++) {
        double hat = (x[c] - mean) * rstd;
        double hat_bound = rstd * slip + fabs(hat) * stretch;
        n->y[row * n->cols + c] = hat * n->w[c] + n->b[c];
        n->y_bound[row * n->cols + c] =
            fabs(n->w[c]) * hat_bound +
            4 * REF_U32 * (fabs(hat * n->w[c]) + fabs(n->b[c]));
    }
}

static void
norm_row_backward(const RefNorm *n, int64_t row, double unit)
{
    const double *x = n->x + row * n->cols, *dy = n->dy + row * n->cols;
    double mean = n->mean[row], rstd = n->rstd[row], count = (double)n->cols;
    double slip = n->mean_bound[row], stretch = n->rstd_bound[row] / rstd;
    double c1 = 0, c2 = 0, c1_bound = 0, c2_bound = 0;
    for (int64_t c = 0; c < n->cols; c++) {
        double hat = (x[c] - mean) * rstd, g = dy[c] * n->w[c];
        double hat_bound = rstd * slip + fabs(hat) * stretch;
        c1 += g * hat / count;
        c2 += g / count;
        c1_bound += (fabs(g) * hat_bound + unit * fabs(g * hat)) / count;
        c2_bound += unit * fabs(g) / count;
    }
    for (int64_t c = 0; c < n->cols; c++) {
        double hat = (x[c] - mean) * rstd, g = dy[c] * n->w[c];
        double hat_bound = rstd * slip + fabs(hat) * stretch;
        double size = fabs(g) + fabs(hat * c1) + fabs(c2);
        n->dx[row * n->cols + c] = rstd * (g - hat * c1 - c2);
        n->dx_bound[row * n->cols + c] =
            rstd * (size * (stretch + 6 * REF_U32) + hat_bound * fabs(c1) +
                    fabs(hat) * c1_bound + c2_bound);
        double rows = (double)n->rows;
        n->dw[c] += dy[c] * hat;
        n->db[c] += dy[c];
        n->dw_bound[c] +=
            fabs(dy[c]) * hat_bound + REF_U32 * (rows + 8) * fabs(dy[c] * hat);
        n->db_bound[c] += REF_U32 * (rows + 8) * fabs(dy[c]);
    }
}

void
ref_layer_norm(const RefNorm *n)
{
    double unit = REF_U32 * (double)(n->cols + 8);
    for (int64_t c = 0; c < n->cols; c++)
        n->dw[c] = n->db[c] = n->dw_bound[c] = n->db_bound[c] = 0;
    for (int64_t row = 0; row < n->rows; row++) {
        norm_row_forward(n, row, unit);
        norm_row_backward(n, row, unit);
    }
}

void
ref_weighted_sum(const RefWeighted *s)
{
    for (int64_t c = 0; c < s->cols; c++)
        s->dw[c] = s->dw_bound[c] = 0;
    for (int64_t r = 0; r < s->rows; r++) {
        s->y[r] = s->y_bound[r] = 0;
        for (int64_t c = 0; c < s->cols; c++) {
            int64_t i = r * s->cols + c;
            s->y[r] += s->x[i] * s->w[c];
            s->y_bound[r] += REF_U32 * (double)(s->cols + 2) * fabs(s->x[i] * s->w[c]);
            s->dx[i] = s->dy[r] * s->w[c];
            s->dx_bound[i] = REF_U32 * fabs(s->dx[i]);
            s->dw[c] += s->dy[r] * s->x[i];
            s->dw_bound[c] += REF_U32 * (double)(s->rows + 2) * fabs(s->dy[r] * s->x[i]);
        }
    }
}

static void
rms_row(const RefRms *n, int64_t row, double unit)
{
    const double *x = n->x + row * n->cols, *dy = n->dy + row * n->cols;
    double square = 0, c = 0, c_size = 0, count = (double)n->cols;
    for (int64_t i = 0; i < n->cols; i++)
        square += x[i] * x[i] / count;
    double rstd = 1 / sqrt(square + n->eps), stretch = unit + 4 * REF_U32;
    n->rstd[row] = rstd;
    n->rstd_bound[row] = rstd * stretch;
    for (int64_t i = 0; i < n->cols; i++) {
        c += dy[i] * n->w[i] * x[i] * rstd / count;
        c_size += fabs(dy[i] * n->w[i] * x[i] * rstd) / count;
    }
    double c_bound = c_size * (stretch + unit);
    for (int64_t i = 0; i < n->cols; i++) {
        int64_t at = row * n->cols + i;
        double hat = x[i] * rstd, g = dy[i] * n->w[i], add = n->add ? n->add[at] : 0;
        n->y[at] = hat * n->w[i];
        n->y_bound[at] = fabs(n->y[at]) * (stretch + 4 * REF_U32);
        n->dx[at] = rstd * (g - hat * c) + add;
        n->dx_bound[at] =
            rstd * ((fabs(g) + fabs(hat * c)) * (stretch + 8 * REF_U32) +
                    fabs(hat) * (c_bound + fabs(c) * stretch)) +
            4 * REF_U32 * (fabs(n->dx[at]) + fabs(add));
        n->dw[i] += dy[i] * hat;
        n->dw_bound[i] += fabs(dy[i] * hat) *
                          (stretch + REF_U32 * ((double)n->rows + 8));
    }
}

void
ref_rms_norm(const RefRms *n)
{
    for (int64_t c = 0; c < n->cols; c++)
        n->dw[c] = n->dw_bound[c] = 0;
    for (int64_t row = 0; row < n->rows; row++)
        rms_row(n, row, REF_U32 * (double)(n->cols + 8));
}
