/* sdc_nn.h: root mean square normalization, of rows of any length (plan_rows.c). */
#include "runtime/nn/rows.h"

/* x, w, y, rstd */
static void
parts_run(Call *c, const RowsPlan *p, const SdcTensor *const t[4], double eps)
{
    const SdcTensor *x = t[0], *y = t[2];
    int64_t programs = x->shape[0] * p->parts;
    float *stat = rows_stat(c, p, x->shape[0], 1);
    if (!stat)
        return;
    rows_bind(c, p);
    call_tensor(c, x);
    call_ptr(c, SDC_FP32, stat);
    rows_numbers(c, p, x, NULL);
    call_run(c, "rms_norm", "rms_norm_part", call_grid(c, programs), c->stream);
    rows_bind(c, p);
    call_bind(c, "PARTS", power_over(p->parts, ROWS_PARTS_MOST));
    for (int i = 0; i < 4; i++)
        call_tensor(c, t[i]);
    call_ptr(c, SDC_FP32, stat);
    rows_numbers(c, p, x, y);
    call_float_arg(c, eps);
    call_run(c, "rms_norm", "rms_norm_apply", call_grid(c, programs), c->stream);
}

SdcStatus
sdc_rms_norm_forward(SdcKernels *k, const SdcTensor *x, const SdcTensor *w,
                     const SdcTensor *y, const SdcTensor *rstd, double eps, void *stream)
{
    Call c = call_begin(k, "sdc_rms_norm_forward");
    if (c.status != SDC_OK || !rows_matrix(&c, x, NULL, "x") ||
        !rows_matrix(&c, y, x, "y") || !rows_vector(&c, w, x->shape[1], false, "w") ||
        !rows_vector(&c, rstd, x->shape[0], true, "rstd"))
        return c.status;
    int64_t rows = x->shape[0], cols = x->shape[1];
    c.stream = stream;
    if (!rows || !cols)
        return SDC_OK;
    const SdcTensor *const t[4] = {x, w, y, rstd};
    RowsPlan p = rows_choose(&c, k->on_gpu ? ROWS_MOST : ROWS_CPU_MOST, true,
                             (const SdcTensor *[]){x, y}, 2);
    if (p.parts > 1) {
        parts_run(&c, &p, t, eps);
        return call_end(&c);
    }
    rows_bind(&c, &p);
    if (!p.parts)
        call_bind(&c, "BLOCK_R", p.together);
    for (int i = 0; i < 4; i++)
        call_tensor(&c, t[i]);
    rows_pitch(&c, x, p.unit);
    rows_pitch(&c, y, p.unit);
    if (!p.parts)
        call_int(&c, rows);
    call_int(&c, cols / p.unit);
    call_float_arg(&c, eps);
    call_run(&c, "rms_norm", p.parts ? "rms_norm_wide" : "rms_norm_fwd",
             call_grid(&c, ceil_over(rows, p.together)), stream);
    return call_end(&c);
}

/* ---- backward */

static int64_t
most_parts(const SdcKernels *k)
{
    return k->on_gpu ? 4 * (int64_t)k->programs : 16;
}

size_t
sdc_rms_norm_workspace(SdcKernels *k, int64_t cols)
{
    return k && cols > 0 ? (size_t)most_parts(k) * (size_t)cols * sizeof(float) : 0;
}

typedef struct Backward {
    const SdcTensor *dy, *x, *w, *rstd, *add, *dx, *dw;
    float *parts; /* of dw, the workspace */
    int64_t nparts;
} Backward;

static void
add_parts(Call *c, const Backward *b)
{
    enum { BLOCK_P = 128, BLOCK_C = 32 };
    int64_t cols = b->dw->shape[0];
    call_next(c);
    call_bind(c, "BLOCK_P", BLOCK_P);
    call_bind(c, "BLOCK_C", BLOCK_C);
    call_ptr(c, SDC_FP32, b->parts);
    call_tensor(c, b->dw);
    call_int(c, b->nparts);
    call_int(c, cols);
    call_run(c, "rms_norm", "rms_norm_bwd_sum", call_grid(c, ceil_over(cols, BLOCK_C)),
             c->stream);
}

/* Strides, rows and columns. */
static void
backward_numbers(Call *c, const Backward *b, int64_t unit)
{
    rows_pitch(c, b->dy, unit);
    rows_pitch(c, b->x, unit);
    if (b->add)
        rows_pitch(c, b->add, unit);
    else
        call_int(c, 0);
    rows_pitch(c, b->dx, unit);
    call_int(c, b->x->shape[0]);
    call_int(c, b->x->shape[1] / unit);
}

/* Rows that a tile holds. */
static void
short_rows(Call *c, const RowsPlan *p, const Backward *b)
{
    rows_bind(c, p);
    call_bind(c, "BLOCK_R", p->together);
    call_tensor(c, b->dy);
    call_tensor(c, b->x);
    call_tensor(c, b->w);
    call_tensor(c, b->rstd);
    call_tensor(c, b->add);
    call_tensor(c, b->dx);
    call_ptr(c, SDC_FP32, b->parts);
    backward_numbers(c, b, p->unit);
    call_run(c, "rms_norm", "rms_norm_bwd", call_grid(c, b->nparts), c->stream);
}

/* Longer ones: the sum of each row first, then tiles of columns that go down rows. */
static void
long_rows(Call *c, const RowsPlan *p, Backward *b)
{
    enum { BLOCK_R = 4, BLOCK_C = 512 };
    int64_t rows = b->x->shape[0], tiles = ceil_over(b->x->shape[1], BLOCK_C);
    float *stat = rows_stat(c, p, rows, 1);
    if (!stat)
        return;
    b->nparts = min_i64(b->nparts, min_i64(ceil_over(rows, BLOCK_R),
                                           ceil_over(most_parts(c->k) * 2, tiles)));
    rows_bind(c, p);
    call_tensor(c, b->dy);
    call_tensor(c, b->x);
    call_tensor(c, b->w);
    call_ptr(c, SDC_FP32, stat);
    rows_numbers(c, p, b->dy, b->x);
    call_run(c, "rms_norm", "rms_norm_bwd_part", call_grid(c, rows * p->parts),
             c->stream);
    call_next(c);
    call_bind(c, "PARTS", power_over(p->parts, ROWS_PARTS_MOST));
    call_bind(c, "BLOCK_R", BLOCK_R);
    call_bind(c, "BLOCK_C", BLOCK_C);
    call_bind(c, "UNIT", p->unit);
    call_bind(c, "num_warps", 4);
    call_tensor(c, b->dy);
    call_tensor(c, b->x);
    call_tensor(c, b->w);
    call_tensor(c, b->rstd);
    call_ptr(c, SDC_FP32, stat);
    call_tensor(c, b->add);
    call_tensor(c, b->dx);
    call_ptr(c, SDC_FP32, b->parts);
    backward_numbers(c, b, p->unit);
    call_int(c, p->parts);
    call_int(c, b->nparts);
    call_run(c, "rms_norm", "rms_norm_bwd_cols", call_grid(c, tiles * b->nparts),
             c->stream);
}

SdcStatus
sdc_rms_norm_backward(SdcKernels *k, const SdcTensor *dy, const SdcTensor *x,
                      const SdcTensor *w, const SdcTensor *rstd, const SdcTensor *add,
                      const SdcTensor *dx, const SdcTensor *dw, void *workspace,
                      void *stream)
{
    Call c = call_begin(k, "sdc_rms_norm_backward");
    if (c.status != SDC_OK || !rows_matrix(&c, dy, NULL, "dy") ||
        !rows_matrix(&c, x, dy, "x") || !rows_matrix(&c, dx, dy, "dx") ||
        (add && !rows_matrix(&c, add, dy, "add")))
        return c.status;
    int64_t rows = x->shape[0], cols = x->shape[1];
    if (!rows_vector(&c, w, cols, false, "w") ||
        !rows_vector(&c, dw, cols, false, "dw") ||
        !rows_vector(&c, rstd, rows, true, "rstd") ||
        !call_need(&c, workspace != NULL || !cols, "the workspace is missing"))
        return c.status;
    c.stream = stream;
    if (!cols)
        return SDC_OK;
    Backward b = {dy, x, w, rstd, add, dx, dw, .parts = workspace};
    RowsPlan p = rows_choose(&c, k->on_gpu ? ROWS_MOST : ROWS_CPU_MOST, true,
                             (const SdcTensor *[]){x, dy, dx, add ? add : x}, 4);
    b.nparts = min_i64(most_parts(k), max_i64(1, rows / (2 * p.together)));
    if (p.parts)
        long_rows(&c, &p, &b);
    else
        short_rows(&c, &p, &b);
    if (c.status == SDC_OK)
        add_parts(&c, &b);
    return call_end(&c);
}
