/* sdc_nn.h: layer and root mean square normalization, of rows of any length
   (plan_rows.c). The second is the first without means and offsets: their kernels have
   the same names but for the beginning, and take the same arguments but for those. */
#include "runtime/nn/rows.h"

enum { FWD, WIDE, PART, APPLY, BWD, BWD_PART, BWD_COLS, BWD_SUM, KERNELS, MOST_IN = 6 };

typedef struct Norm {
    const char *file, *kernel[KERNELS];
    int stats;   /* numbers of a row, and tensors that add up over rows */
    bool shares; /* short rows share a program; the backward pass may add to dx */
} Norm;

#define NAMES(norm)                                                                      \
    {                                                                                    \
        norm "_fwd", norm "_wide", norm "_part", norm "_apply", norm "_bwd",             \
            norm "_bwd_part", norm "_bwd_cols", norm "_bwd_sum"                          \
    }

static const Norm layer_norm = {"layernorm", NAMES("layer_norm"), .stats = 2};
static const Norm rms_norm = {"rms_norm", NAMES("rms_norm"), .stats = 1, .shares = true};

static RowsPlan
plan(Call *c, const Norm *norm, const SdcTensor *const *t, int n)
{
    return rows_choose(c, c->k->on_gpu ? ROWS_MOST : ROWS_CPU_MOST, norm->shares, t, n);
}

/* The arguments that are NULL are not there. */
static void
tensors(Call *c, const SdcTensor *const *t)
{
    for (int i = 0; i < MOST_IN; i++)
        if (t[i])
            call_tensor(c, t[i]);
}

static void
run(Call *c, const Norm *norm, int kernel, int64_t programs)
{
    call_run(c, norm->file, norm->kernel[kernel], call_grid(c, programs), c->stream);
}

/* ---- forward */

typedef struct Forward {
    const Norm *norm;
    const SdcTensor *x, *y, *all[MOST_IN]; /* what all kernels but PART take */
    double eps;
} Forward;

/* Few long rows: each part's numbers, then all parts of a row put together by each. */
static void
forward_parts(Call *c, const RowsPlan *p, const Forward *f)
{
    int64_t rows = f->x->shape[0];
    float *stat = rows_stat(c, p, rows, f->norm->stats);
    if (!stat)
        return;
    rows_bind(c, p);
    call_tensor(c, f->x);
    call_ptr(c, SDC_FP32, stat);
    rows_numbers(c, p, f->x, NULL);
    run(c, f->norm, PART, rows * p->parts);
    rows_bind(c, p);
    call_bind(c, "PARTS", power_over(p->parts, ROWS_PARTS_MOST));
    tensors(c, f->all);
    call_ptr(c, SDC_FP32, stat);
    rows_numbers(c, p, f->x, f->y);
    call_float_arg(c, f->eps);
    run(c, f->norm, APPLY, rows * p->parts);
}

static SdcStatus
forward(Call *c, const Forward *f)
{
    int64_t rows = f->x->shape[0], cols = f->x->shape[1];
    RowsPlan p = plan(c, f->norm, (const SdcTensor *[]){f->x, f->y}, 2);
    if (p.parts > 1) {
        forward_parts(c, &p, f);
        return call_end(c);
    }
    bool shares = f->norm->shares && !p.parts;
    rows_bind(c, &p);
    if (shares)
        call_bind(c, "BLOCK_R", p.together);
    tensors(c, f->all);
    rows_pitch(c, f->x, p.unit);
    rows_pitch(c, f->y, p.unit);
    if (shares)
        call_int(c, rows);
    call_int(c, cols / p.unit);
    call_float_arg(c, f->eps);
    run(c, f->norm, p.parts ? WIDE : FWD, ceil_over(rows, p.together));
    return call_end(c);
}

SdcStatus
sdc_layer_norm_forward(SdcKernels *k, const SdcTensor *x, const SdcTensor *w,
                       const SdcTensor *b, const SdcTensor *y, const SdcTensor *mean,
                       const SdcTensor *rstd, double eps, void *stream)
{
    Call c = call_begin(k, "sdc_layer_norm_forward");
    if (c.status != SDC_OK || !rows_matrix(&c, x, NULL, "x") ||
        !rows_matrix(&c, y, x, "y"))
        return c.status;
    int64_t rows = x->shape[0], cols = x->shape[1];
    if (!rows_vector(&c, w, cols, false, "w") || !rows_vector(&c, b, cols, false, "b") ||
        !rows_vector(&c, mean, rows, true, "mean") ||
        !rows_vector(&c, rstd, rows, true, "rstd"))
        return c.status;
    c.stream = stream;
    return forward(&c, &(Forward){&layer_norm, x, y, {x, w, b, y, mean, rstd}, eps});
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
    c.stream = stream;
    if (!x->shape[0] || !x->shape[1])
        return SDC_OK;
    return forward(&c, &(Forward){&rms_norm, x, y, {x, w, y, rstd}, eps});
}

/* ---- backward */

/* Sums over rows are taken in so many parts at most, of as many numbers as columns. */
static int64_t
most_parts(const SdcKernels *k)
{
    return k->on_gpu ? 4 * (int64_t)k->programs : 16;
}

static size_t
workspace_bytes(SdcKernels *k, const Norm *norm, int64_t cols)
{
    return k && cols > 0 ? (size_t)norm->stats * (size_t)most_parts(k) * (size_t)cols *
                               sizeof(float)
                         : 0;
}

size_t
sdc_layer_norm_workspace(SdcKernels *k, int64_t cols)
{
    return workspace_bytes(k, &layer_norm, cols);
}

size_t
sdc_rms_norm_workspace(SdcKernels *k, int64_t cols)
{
    return workspace_bytes(k, &rms_norm, cols);
}

typedef struct Backward {
    const Norm *norm;
    const SdcTensor *dy, *x, *w, *mean, *rstd; /* mean: NULL of a norm without */
    const SdcTensor *add, *dx;                 /* add: NULL where nothing is added */
    const SdcTensor *sum[2];                   /* dw, db */
    float *parts;                              /* of the sums, the workspace */
    int64_t nparts;
} Backward;

static void
sum_pointers(Call *c, const Backward *b)
{
    for (int i = 0; i < b->norm->stats; i++)
        call_ptr(c, SDC_FP32, b->parts + i * b->nparts * b->x->shape[1]);
}

/* What is written, behind what is read. */
static void
outputs(Call *c, const Backward *b)
{
    if (b->norm->shares)
        call_tensor(c, b->add);
    call_tensor(c, b->dx);
    sum_pointers(c, b);
}

/* Strides, rows and columns. */
static void
backward_numbers(Call *c, const Backward *b, int64_t unit)
{
    rows_pitch(c, b->dy, unit);
    rows_pitch(c, b->x, unit);
    if (b->add)
        rows_pitch(c, b->add, unit);
    else if (b->norm->shares)
        call_int(c, 0);
    rows_pitch(c, b->dx, unit);
    call_int(c, b->x->shape[0]);
    call_int(c, b->x->shape[1] / unit);
}

/* Rows that a tile holds: their sums are at hand. */
static void
short_rows(Call *c, const RowsPlan *p, const Backward *b)
{
    rows_bind(c, p);
    if (b->norm->shares)
        call_bind(c, "BLOCK_R", p->together);
    tensors(c, (const SdcTensor *[MOST_IN]){b->dy, b->x, b->w, b->mean, b->rstd});
    outputs(c, b);
    backward_numbers(c, b, p->unit);
    run(c, b->norm, BWD, b->nparts);
}

/* Longer ones: the sums of each row first, then tiles of columns that go down rows. */
static void
long_rows(Call *c, const RowsPlan *p, Backward *b)
{
    enum { BLOCK_R = 4, BLOCK_C = 512 };
    bool mean = b->mean != NULL; /* then a part of a row needs its moments */
    int64_t rows = b->x->shape[0], tiles = ceil_over(b->x->shape[1], BLOCK_C);
    float *stat = rows_stat(c, p, rows, b->norm->stats);
    if (!stat)
        return;
    b->nparts = min_i64(b->nparts, min_i64(ceil_over(rows, BLOCK_R),
                                           ceil_over(most_parts(c->k) * 2, tiles)));
    rows_bind(c, p);
    tensors(c, (const SdcTensor *[MOST_IN]){b->dy, b->x, b->w, b->mean,
                                            mean ? b->rstd : NULL});
    call_ptr(c, SDC_FP32, stat);
    rows_numbers(c, p, b->dy, b->x);
    run(c, b->norm, BWD_PART, rows * p->parts);
    call_next(c);
    call_bind(c, "PARTS", power_over(p->parts, ROWS_PARTS_MOST));
    call_bind(c, "BLOCK_R", BLOCK_R);
    call_bind(c, "BLOCK_C", BLOCK_C);
    call_bind(c, "UNIT", p->unit);
    call_bind(c, "num_warps", 4);
    tensors(c, (const SdcTensor *[MOST_IN]){b->dy, b->x, b->w, b->mean, b->rstd});
    call_ptr(c, SDC_FP32, stat);
    outputs(c, b);
    backward_numbers(c, b, p->unit);
    call_int(c, p->parts);
    call_int(c, b->nparts);
    run(c, b->norm, BWD_COLS, tiles * b->nparts);
}

/* The parts of dw and db, in their order. */
static void
add_parts(Call *c, const Backward *b)
{
    enum { BLOCK_P = 128, BLOCK_C = 32 };
    int64_t cols = b->x->shape[1];
    call_next(c);
    call_bind(c, "BLOCK_P", BLOCK_P);
    call_bind(c, "BLOCK_C", BLOCK_C);
    sum_pointers(c, b);
    for (int i = 0; i < b->norm->stats; i++)
        call_tensor(c, b->sum[i]);
    call_int(c, b->nparts);
    call_int(c, cols);
    run(c, b->norm, BWD_SUM, ceil_over(cols, BLOCK_C));
}

static SdcStatus
backward(Call *c, Backward *b)
{
    const SdcTensor *const all[] = {b->x, b->dy, b->dx, b->add ? b->add : b->x};
    RowsPlan p = plan(c, b->norm, all, 4);
    b->nparts = min_i64(most_parts(c->k), max_i64(1, b->x->shape[0] / (2 * p.together)));
    if (p.parts)
        long_rows(c, &p, b);
    else
        short_rows(c, &p, b);
    if (c->status == SDC_OK)
        add_parts(c, b);
    return call_end(c);
}

SdcStatus
sdc_layer_norm_backward(SdcKernels *k, const SdcTensor *dy, const SdcTensor *x,
                        const SdcTensor *w, const SdcTensor *mean, const SdcTensor *rstd,
                        const SdcTensor *dx, const SdcTensor *dw, const SdcTensor *db,
                        void *workspace, void *stream)
{
    Call c = call_begin(k, "sdc_layer_norm_backward");
    if (c.status != SDC_OK || !rows_matrix(&c, dy, NULL, "dy") ||
        !rows_matrix(&c, x, dy, "x") || !rows_matrix(&c, dx, dy, "dx"))
        return c.status;
    int64_t rows = x->shape[0], cols = x->shape[1];
    if (!rows_vector(&c, w, cols, false, "w") ||
        !rows_vector(&c, dw, cols, false, "dw") ||
        !rows_vector(&c, db, cols, false, "db") ||
        !rows_vector(&c, mean, rows, true, "mean") ||
        !rows_vector(&c, rstd, rows, true, "rstd") ||
        !call_need(&c, workspace != NULL, "the workspace is missing"))
        return c.status;
    c.stream = stream;
    return backward(&c, &(Backward){.norm = &layer_norm,
                                    .dy = dy,
                                    .x = x,
                                    .w = w,
                                    .mean = mean,
                                    .rstd = rstd,
                                    .dx = dx,
                                    .sum = {dw, db},
                                    .parts = workspace});
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
    return backward(&c, &(Backward){.norm = &rms_norm,
                                    .dy = dy,
                                    .x = x,
                                    .w = w,
                                    .rstd = rstd,
                                    .add = add,
                                    .dx = dx,
                                    .sum = {dw},
                                    .parts = workspace});
}
