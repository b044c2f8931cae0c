/* sdc_nn.h: softmax and layer normalization, of rows of any length (plan_rows.c). */
#include "runtime/nn/rows.h"

enum { ACCESS = 16, LANES = 32 };

bool
rows_matrix(Call *c, const SdcTensor *t, const SdcTensor *like, const char *what)
{
    const int64_t any[2] = {-1, -1};
    return call_shape(c, t, what, 2, like ? like->shape : any) &&
           call_float(c, t, what) && call_rows(c, t, what);
}

bool
rows_vector(Call *c, const SdcTensor *t, int64_t n, bool fp32, const char *what)
{
    return call_shape(c, t, what, SHAPE(n)) && call_float(c, t, what) &&
           call_dense(c, t, what) &&
           call_need(c, !fp32 || t->dtype == SDC_FP32, "'%s' needs to be fp32", what);
}

int64_t
rows_unit(const SdcTensor *const *t, int n)
{
    for (int64_t unit = 8; unit > 1; unit /= 2) {
        bool fits = t[0]->shape[1] % unit == 0;
        for (int i = 0; i < n; i++)
            fits &= t[i]->strides[0] % unit == 0;
        if (fits && unit != 2)
            return unit;
    }
    return 1;
}

void
rows_pitch(Call *c, const SdcTensor *t, int64_t unit)
{
    SdcTensor in_units = *t;
    in_units.strides[0] /= unit;
    if (tensor_is_long(t)) /* as wide as offsets of elements need it */
        in_units.shape[1] = INT64_MAX / 2;
    call_stride(c, &in_units, 0);
}

RowsPlan
rows_choose(Call *c, int64_t most, bool shares, const SdcTensor *const *t, int n)
{
    RowsAsk q = {.rows = t[0]->shape[0],
                 .cols = t[0]->shape[1],
                 .most = most,
                 .step = ROWS_STEP,
                 .shares = shares};
    RowsPlan p = rows_plan(&c->k->device, &q);
    p.unit = rows_unit(t, n);
    call_note(c, &(Note){.kind = NOTE_ROWS, .of.rows = {q, p}});
    return p;
}

void
rows_bind(Call *c, const RowsPlan *p)
{
    call_next(c);
    call_bind(c, "BLOCK", p->block);
    call_bind(c, "UNIT", p->unit);
    call_bind(c, "num_warps", p->warps);
}

float *
rows_stat(Call *c, const RowsPlan *p, int64_t rows, int each)
{
    return call_borrow(c, each * rows * p->parts * (int64_t)sizeof(float));
}

void
rows_numbers(Call *c, const RowsPlan *p, const SdcTensor *x, const SdcTensor *y)
{
    rows_pitch(c, x, p->unit);
    if (y)
        rows_pitch(c, y, p->unit);
    call_int(c, x->shape[1] / p->unit);
    call_int(c, p->parts);
    call_int(c, p->columns);
}

/* ---------------------------------------------------------------- softmax */

/* Rows that begin on any element: whole accesses, but for their edges. */
static int64_t
edge_of(const RowsPlan *p, const SdcTensor *x, const SdcTensor *out)
{
    int64_t size = min_i64(sdc_dtype_size(x->dtype), sdc_dtype_size(out->dtype));
    bool alike = x->strides[0] == out->strides[0];
    return alike && p->unit * size < ACCESS ? ACCESS / size : 0;
}

static void
softmax_bind(Call *c, const RowsPlan *p, int64_t edge)
{
    rows_bind(c, p);
    call_bind(c, "EDGE", edge);
}

/* A row in tiles of DEEP lines, of which each thread has one access: it goes through
   columns of its own, and the loop exchanges nothing. One program a row takes twice as
   much at a time. */
static void
softmax_deep(Call *c, const RowsPlan *p, const SdcTensor *x, int64_t edge)
{
    RowsPlan each = *p;
    int64_t size = sdc_dtype_size(x->dtype);
    if (p->parts == 1) {
        each.block *= 2;
        each.warps *= size > 2 ? 2 : 1;
    }
    int64_t deep = max_i64(each.block * size / (ACCESS * LANES * each.warps), 1);
    each.block /= deep;
    softmax_bind(c, &each, edge);
    call_bind(c, "DEEP", deep);
}

static void
softmax_parts(Call *c, const RowsPlan *p, const SdcTensor *x, const SdcTensor *out)
{
    int64_t programs = x->shape[0] * p->parts, edge = edge_of(p, x, out);
    float *stat = rows_stat(c, p, x->shape[0], 2);
    if (!stat)
        return;
    softmax_deep(c, p, x, edge);
    call_tensor(c, x);
    call_ptr(c, SDC_FP32, stat);
    rows_numbers(c, p, x, NULL);
    call_run(c, "softmax", "softmax_part", call_grid(c, programs), c->stream);
    softmax_deep(c, p, x, edge);
    call_bind(c, "PARTS", power_over(p->parts, ROWS_PARTS_MOST));
    call_tensor(c, x);
    call_tensor(c, out);
    call_ptr(c, SDC_FP32, stat);
    rows_numbers(c, p, x, out);
    call_run(c, "softmax", "softmax_apply", call_grid(c, programs), c->stream);
}

SdcStatus
sdc_softmax_forward(SdcKernels *k, const SdcTensor *x, const SdcTensor *out, void *stream)
{
    Call c = call_begin(k, "sdc_softmax_forward");
    if (c.status != SDC_OK || !rows_matrix(&c, x, NULL, "x") ||
        !rows_matrix(&c, out, x, "out"))
        return c.status;
    c.stream = stream;
    if (!x->shape[0] || !x->shape[1])
        return SDC_OK;
    RowsPlan p = rows_choose(&c, k->on_gpu ? ROWS_SOFTMAX_MOST : ROWS_CPU_MOST, true,
                             (const SdcTensor *[]){x, out}, 2);
    if (p.parts > 1) {
        softmax_parts(&c, &p, x, out);
        return call_end(&c);
    }
    bool wide = p.parts && k->on_gpu, shared = p.together > 1;
    if (wide)
        softmax_deep(&c, &p, x, edge_of(&p, x, out));
    else if (k->on_gpu && !shared)
        softmax_bind(&c, &p, edge_of(&p, x, out));
    else
        rows_bind(&c, &p);
    if (shared)
        call_bind(&c, "BLOCK_R", p.together);
    call_tensor(&c, x);
    call_tensor(&c, out);
    rows_pitch(&c, x, p.unit);
    rows_pitch(&c, out, p.unit);
    if (!wide)
        call_int(&c, x->shape[0]);
    call_int(&c, x->shape[1] / p.unit);
    const char *kernel = wide      ? "softmax_wide"
                         : shared  ? "softmax_rows"
                         : p.parts ? "softmax_online"
                                   : "softmax";
    call_run(&c, "softmax", kernel, call_grid(&c, ceil_over(x->shape[0], p.together)),
             stream);
    return call_end(&c);
}

/* ---------------------------------------------------------------- layer norm */

/* What the kernels have in common: x, w, b, y, mean, rstd. */
static void
norm_tensors(Call *c, const SdcTensor *const t[6])
{
    for (int i = 0; i < 6; i++)
        call_tensor(c, t[i]);
}

static void
norm_parts_run(Call *c, const RowsPlan *p, const SdcTensor *const t[6], double eps)
{
    const SdcTensor *x = t[0], *y = t[3];
    int64_t programs = x->shape[0] * p->parts;
    float *stat = rows_stat(c, p, x->shape[0], 2);
    if (!stat)
        return;
    rows_bind(c, p);
    call_tensor(c, x);
    call_ptr(c, SDC_FP32, stat);
    rows_numbers(c, p, x, NULL);
    call_run(c, "layernorm", "layer_norm_part", call_grid(c, programs), c->stream);
    rows_bind(c, p);
    call_bind(c, "PARTS", power_over(p->parts, ROWS_PARTS_MOST));
    norm_tensors(c, t);
    call_ptr(c, SDC_FP32, stat);
    rows_numbers(c, p, x, y);
    call_float_arg(c, eps);
    call_run(c, "layernorm", "layer_norm_apply", call_grid(c, programs), c->stream);
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
    const SdcTensor *const t[6] = {x, w, b, y, mean, rstd};
    RowsPlan p = rows_choose(&c, k->on_gpu ? ROWS_MOST : ROWS_CPU_MOST, false,
                           (const SdcTensor *[]){x, y}, 2);
    if (p.parts > 1) {
        norm_parts_run(&c, &p, t, eps);
        return call_end(&c);
    }
    rows_bind(&c, &p);
    norm_tensors(&c, t);
    rows_pitch(&c, x, p.unit);
    rows_pitch(&c, y, p.unit);
    call_int(&c, cols / p.unit);
    call_float_arg(&c, eps);
    call_run(&c, "layernorm", p.parts ? "layer_norm_wide" : "layer_norm_fwd",
             call_grid(&c, rows), stream);
    return call_end(&c);
}

/* ---- backward */

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

/* dy, x, w, mean, rstd; dx, dw, db */
typedef struct NormBackward {
    const SdcTensor *in[5], *dx, *dw, *db;
    float *parts; /* the workspace: of dw, and behind them of db */
    int64_t nparts;
} NormBackward;

static void
norm_sum(Call *c, const NormBackward *n)
{
    enum { BLOCK_P = 128, BLOCK_C = 32 };
    int64_t cols = n->dw->shape[0];
    call_next(c);
    call_bind(c, "BLOCK_P", BLOCK_P);
    call_bind(c, "BLOCK_C", BLOCK_C);
    call_ptr(c, SDC_FP32, n->parts);
    call_ptr(c, SDC_FP32, n->parts + n->nparts * cols);
    call_tensor(c, n->dw);
    call_tensor(c, n->db);
    call_int(c, n->nparts);
    call_int(c, cols);
    call_run(c, "layernorm", "layer_norm_bwd_sum", call_grid(c, ceil_over(cols, BLOCK_C)),
             c->stream);
}

/* Rows that a tile holds: their sums are at hand. */
static void
norm_short(Call *c, const RowsPlan *p, const NormBackward *n)
{
    const SdcTensor *dy = n->in[0], *x = n->in[1];
    rows_bind(c, p);
    for (int i = 0; i < 5; i++)
        call_tensor(c, n->in[i]);
    call_tensor(c, n->dx);
    call_ptr(c, SDC_FP32, n->parts);
    call_ptr(c, SDC_FP32, n->parts + n->nparts * x->shape[1]);
    rows_pitch(c, dy, p->unit);
    rows_pitch(c, x, p->unit);
    rows_pitch(c, n->dx, p->unit);
    call_int(c, x->shape[0]);
    call_int(c, x->shape[1] / p->unit);
    call_run(c, "layernorm", "layer_norm_bwd", call_grid(c, n->nparts), c->stream);
}

/* Longer ones: the sums of each row first, then tiles of columns that go down rows. */
static void
norm_long(Call *c, const RowsPlan *p, NormBackward *n)
{
    enum { BLOCK_R = 4, BLOCK_C = 512 };
    const SdcTensor *dy = n->in[0], *x = n->in[1];
    int64_t rows = x->shape[0], cols = x->shape[1], tiles = ceil_over(cols, BLOCK_C);
    float *stat = rows_stat(c, p, rows, 2);
    if (!stat)
        return;
    n->nparts = min_i64(n->nparts, min_i64(ceil_over(rows, BLOCK_R),
                                           ceil_over(norm_parts(c->k) * 2, tiles)));
    rows_bind(c, p);
    for (int i = 0; i < 5; i++)
        call_tensor(c, n->in[i]);
    call_ptr(c, SDC_FP32, stat);
    rows_numbers(c, p, dy, x);
    call_run(c, "layernorm", "layer_norm_bwd_part", call_grid(c, rows * p->parts),
             c->stream);
    call_next(c);
    call_bind(c, "PARTS", power_over(p->parts, ROWS_PARTS_MOST));
    call_bind(c, "BLOCK_R", BLOCK_R);
    call_bind(c, "BLOCK_C", BLOCK_C);
    call_bind(c, "UNIT", p->unit);
    call_bind(c, "num_warps", 4);
    for (int i = 0; i < 5; i++)
        call_tensor(c, n->in[i]);
    call_ptr(c, SDC_FP32, stat);
    call_tensor(c, n->dx);
    call_ptr(c, SDC_FP32, n->parts);
    call_ptr(c, SDC_FP32, n->parts + n->nparts * cols);
    rows_pitch(c, dy, p->unit);
    rows_pitch(c, x, p->unit);
    rows_pitch(c, n->dx, p->unit);
    call_int(c, rows);
    call_int(c, cols / p->unit);
    call_int(c, p->parts);
    call_int(c, n->nparts);
    call_run(c, "layernorm", "layer_norm_bwd_cols", call_grid(c, tiles * n->nparts),
             c->stream);
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
    NormBackward n = {.in = {dy, x, w, mean, rstd},
                      .dx = dx,
                      .dw = dw,
                      .db = db,
                      .parts = workspace,
                      .nparts = min_i64(norm_parts(k), max_i64(1, rows / 2))};
    RowsPlan p = rows_choose(&c, k->on_gpu ? ROWS_MOST : ROWS_CPU_MOST, false,
                           (const SdcTensor *[]){x, dy, dx}, 3);
    if (p.parts)
        norm_long(&c, &p, &n);
    else
        norm_short(&c, &p, &n);
    if (c.status == SDC_OK)
        norm_sum(&c, &n);
    return call_end(&c);
}
