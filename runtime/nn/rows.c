/* sdc_nn.h: softmax and layer normalization. */
#include "runtime/kernels.h"

/* ---------------------------------------------------------------- rows */

enum { WIDEST = 65536, SOFTMAX_TILE = 8192 };

static bool
matrix_fits(Call *c, const SdcTensor *t, const SdcTensor *like, const char *what)
{
    const int64_t any[2] = {-1, -1};
    return call_shape(c, t, what, 2, like ? like->shape : any) &&
           call_float(c, t, what) && call_rows(c, t, what);
}

static bool
vector_fits(Call *c, const SdcTensor *t, int64_t n, bool fp32, const char *what)
{
    return call_shape(c, t, what, SHAPE(n)) && call_float(c, t, what) &&
           call_dense(c, t, what) &&
           call_need(c, !fp32 || t->dtype == SDC_FP32, "'%s' needs to be fp32", what);
}

static int
warps_of(int64_t block)
{
    return block >= 16384 ? 16 : block >= 4096 ? 8 : 4;
}

SdcStatus
sdc_softmax_forward(SdcKernels *k, const SdcTensor *x, const SdcTensor *out, void *stream)
{
    Call c = call_begin(k, "sdc_softmax_forward");
    if (c.status != SDC_OK || !matrix_fits(&c, x, NULL, "x") ||
        !matrix_fits(&c, out, x, "out"))
        return c.status;
    bool online = x->shape[1] > SOFTMAX_TILE;
    int64_t block = online ? 2048 : power_over(x->shape[1], SOFTMAX_TILE);
    call_bind(&c, "BLOCK", block);
    call_bind(&c, "num_warps", online ? 8 : warps_of(block));
    call_tensor(&c, x);
    call_tensor(&c, out);
    call_stride(&c, x, 0);
    call_stride(&c, out, 0);
    call_int(&c, x->shape[0]);
    call_int(&c, x->shape[1]);
    return call_run(&c, "softmax", online ? "softmax_online" : "softmax",
                    sdc_grid(x->shape[0], 1, 1), stream);
}

SdcStatus
sdc_layer_norm_forward(SdcKernels *k, const SdcTensor *x, const SdcTensor *w,
                       const SdcTensor *b, const SdcTensor *y, const SdcTensor *mean,
                       const SdcTensor *rstd, double eps, void *stream)
{
    Call c = call_begin(k, "sdc_layer_norm_forward");
    if (c.status != SDC_OK || !matrix_fits(&c, x, NULL, "x") ||
        !matrix_fits(&c, y, x, "y"))
        return c.status;
    int64_t rows = x->shape[0], cols = x->shape[1], block = power_over(cols, WIDEST);
    if (!vector_fits(&c, w, cols, false, "w") || !vector_fits(&c, b, cols, false, "b") ||
        !vector_fits(&c, mean, rows, true, "mean") ||
        !vector_fits(&c, rstd, rows, true, "rstd") ||
        !call_need(&c, cols <= WIDEST, "%lld columns, at most %d", (long long)cols,
                   WIDEST))
        return c.status;
    call_bind(&c, "BLOCK", block);
    call_bind(&c, "num_warps", warps_of(block));
    call_tensor(&c, x);
    call_tensor(&c, w);
    call_tensor(&c, b);
    call_tensor(&c, y);
    call_tensor(&c, mean);
    call_tensor(&c, rstd);
    call_stride(&c, x, 0);
    call_stride(&c, y, 0);
    call_int(&c, cols);
    call_float_arg(&c, eps);
    return call_run(&c, "layernorm", "layer_norm_fwd", sdc_grid(rows, 1, 1), stream);
}

static int64_t
norm_parts(const SdcKernels *k)
{
    return k->on_gpu ? 4 * (int64_t)k->programs : 16;
}

size_t
sdc_layer_norm_workspace(SdcKernels *k, int64_t cols)
{
    return k && cols > 0 ? 2 * (size_t)norm_parts(k) * (size_t)cols * sizeof(float) : 0;
}

static SdcStatus
norm_sum(Call *c, float *parts, const SdcTensor *dw, const SdcTensor *db, void *stream)
{
    enum { BLOCK_P = 32, BLOCK_C = 64 };
    int64_t n = norm_parts(c->k), cols = dw->shape[0];
    call_next(c);
    call_bind(c, "BLOCK_P", BLOCK_P);
    call_bind(c, "BLOCK_C", BLOCK_C);
    call_ptr(c, SDC_FP32, parts);
    call_ptr(c, SDC_FP32, parts + n * cols);
    call_tensor(c, dw);
    call_tensor(c, db);
    call_int(c, n);
    call_int(c, cols);
    return call_run(c, "layernorm", "layer_norm_bwd_sum",
                    sdc_grid(ceil_over(cols, BLOCK_C), 1, 1), stream);
}

SdcStatus
sdc_layer_norm_backward(SdcKernels *k, const SdcTensor *dy, const SdcTensor *x,
                        const SdcTensor *w, const SdcTensor *mean, const SdcTensor *rstd,
                        const SdcTensor *dx, const SdcTensor *dw, const SdcTensor *db,
                        void *workspace, void *stream)
{
    Call c = call_begin(k, "sdc_layer_norm_backward");
    if (c.status != SDC_OK || !matrix_fits(&c, dy, NULL, "dy") ||
        !matrix_fits(&c, x, dy, "x") || !matrix_fits(&c, dx, dy, "dx"))
        return c.status;
    int64_t rows = x->shape[0], cols = x->shape[1], block = power_over(cols, WIDEST);
    if (!vector_fits(&c, w, cols, false, "w") ||
        !vector_fits(&c, dw, cols, false, "dw") ||
        !vector_fits(&c, db, cols, false, "db") ||
        !vector_fits(&c, mean, rows, true, "mean") ||
        !vector_fits(&c, rstd, rows, true, "rstd") ||
        !call_need(&c, cols <= WIDEST, "%lld columns, at most %d", (long long)cols,
                   WIDEST) ||
        !call_need(&c, workspace != NULL, "the workspace is missing"))
        return c.status;
    float *parts = workspace;
    call_bind(&c, "BLOCK", block);
    call_bind(&c, "num_warps", warps_of(block));
    call_tensor(&c, dy);
    call_tensor(&c, x);
    call_tensor(&c, w);
    call_tensor(&c, mean);
    call_tensor(&c, rstd);
    call_tensor(&c, dx);
    call_ptr(&c, SDC_FP32, parts);
    call_ptr(&c, SDC_FP32, parts + norm_parts(k) * cols);
    call_stride(&c, dy, 0);
    call_stride(&c, x, 0);
    call_stride(&c, dx, 0);
    call_int(&c, rows);
    call_int(&c, cols);
    SdcStatus status = call_run(&c, "layernorm", "layer_norm_bwd",
                                sdc_grid(norm_parts(k), 1, 1), stream);
    return status == SDC_OK ? norm_sum(&c, parts, dw, db, stream) : status;
}
