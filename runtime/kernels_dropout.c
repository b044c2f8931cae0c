/* sdc_nn.h: dropout, and block dropout fused with a linear layer. */
#include <string.h>

#include "runtime/kernels.h"

/* ---------------------------------------------------------------- dropout */

int64_t
sdc_dropout_counters(const SdcDropout *d, int64_t rows, int64_t cols)
{
    return d && d->per_element ? rows * cols : rows * ceil_over(cols, 4);
}

static bool
drop_fits(Call *c, const SdcDropout *d, const SdcTensor *x, const char *what)
{
    if (!call_need(c, d != NULL, "the options are missing") ||
        !call_need(c, d->p >= 0 && d->p < 1, "p is %g, needed is 0 <= p < 1",
                   (double)d->p) ||
        !call_need(c, act_name(d->act) != NULL, "no activation has number %d", d->act))
        return false;
    return call_shape(c, x, what, 2, (const int64_t[]){-1, -1});
}

/* A matrix of the sizes of `like`, stride 1 along its rows. */
static bool
drop_matrix(Call *c, const SdcTensor *t, const SdcTensor *like, const char *what)
{
    return call_shape(c, t, what, 2, like->shape) && call_float(c, t, what) &&
           call_rows(c, t, what);
}

static bool
drop_vector(Call *c, const SdcTensor *t, int64_t n, const char *what)
{
    return call_shape(c, t, what, SHAPE(n)) && call_float(c, t, what) &&
           call_dense(c, t, what);
}

/* Constants and grid that both directions have in common. */
static SdcGrid
drop_tile(Call *c, const SdcDropout *d, const SdcTensor *x, bool is_long)
{
    int64_t cols = power_over(x->shape[1], c->k->on_gpu ? 1024 : 512);
    int64_t width = cols < 4 ? 4 : cols;
    int64_t height = c->k->on_gpu ? 1024 / width : 8;
    int64_t last = d->offset + sdc_dropout_counters(d, x->shape[0], x->shape[1]);
    height = height < 1 ? 1 : height;
    call_bind(c, "BLOCK_R", height);
    call_bind(c, "BLOCK_C", width);
    call_bind_text(c, "ACT", act_name(d->act));
    call_bind_bool(c, "FOUR", !d->per_element);
    call_bind_bool(c, "LONG", is_long || d->offset < 0 || last > INT32_MAX / 2);
    return sdc_grid(ceil_over(x->shape[0], height), ceil_over(x->shape[1], width), 1);
}

static void
drop_numbers(Call *c, const SdcDropout *d)
{
    call_float_arg(c, (double)d->p);
    call_int(c, d->seed);
    call_int(c, d->offset);
}

SdcStatus
sdc_dropout_forward(SdcKernels *k, const SdcTensor *x, const SdcTensor *bias,
                    const SdcTensor *residual, const SdcTensor *out, const SdcDropout *d,
                    void *stream)
{
    Call c = call_begin(k, "sdc_dropout_forward");
    if (c.status != SDC_OK || !drop_fits(&c, d, x, "x") || !drop_matrix(&c, x, x, "x") ||
        !drop_matrix(&c, out, x, "out") ||
        (residual && !drop_matrix(&c, residual, x, "residual")) ||
        (bias && !drop_vector(&c, bias, x->shape[1], "bias")))
        return c.status;
    SdcGrid grid = drop_tile(
        &c, d, x, tensor_is_long(x) || tensor_is_long(out) || tensor_is_long(residual));
    call_bind_bool(&c, "HAS_BIAS", bias != NULL);
    call_bind_bool(&c, "HAS_RESIDUAL", residual != NULL);
    call_tensor(&c, x);
    call_tensor(&c, bias);
    call_tensor(&c, residual);
    call_tensor(&c, out);
    call_int(&c, x->shape[0]);
    call_int(&c, x->shape[1]);
    call_int(&c, x->strides[0]);
    call_int(&c, residual ? residual->strides[0] : 0);
    call_int(&c, out->strides[0]);
    drop_numbers(&c, d);
    return call_run(&c, "dropout", "dropout_fused_fwd", grid, stream);
}

static SdcStatus
sum_rows(Call *c, const SdcTensor *dx, const SdcTensor *dbias, void *stream)
{
    enum { BLOCK_R = 32, BLOCK_C = 64 };
    call_next(c);
    call_bind(c, "BLOCK_R", BLOCK_R);
    call_bind(c, "BLOCK_C", BLOCK_C);
    call_bind_bool(c, "LONG", tensor_is_long(dx));
    call_tensor(c, dx);
    call_tensor(c, dbias);
    call_int(c, dx->shape[0]);
    call_int(c, dx->shape[1]);
    call_int(c, dx->strides[0]);
    return call_run(c, "dropout", "bias_grad",
                    sdc_grid(ceil_over(dx->shape[1], BLOCK_C), 1, 1), stream);
}

SdcStatus
sdc_dropout_backward(SdcKernels *k, const SdcTensor *dy, const SdcTensor *x,
                     const SdcTensor *bias, const SdcTensor *dx, const SdcTensor *dbias,
                     const SdcDropout *d, void *stream)
{
    Call c = call_begin(k, "sdc_dropout_backward");
    if (c.status != SDC_OK || !drop_fits(&c, d, dy, "dy") ||
        !drop_matrix(&c, dy, dy, "dy") || !drop_matrix(&c, dx, dy, "dx"))
        return c.status;
    bool act = d->act != SDC_ACT_NONE;
    if ((act && !drop_matrix(&c, x, dy, "x")) ||
        (act && bias && !drop_vector(&c, bias, dy->shape[1], "bias")) ||
        (dbias && !drop_vector(&c, dbias, dy->shape[1], "dbias")))
        return c.status;
    SdcGrid grid =
        drop_tile(&c, d, dy,
                  tensor_is_long(dy) || tensor_is_long(dx) || (act && tensor_is_long(x)));
    call_bind_bool(&c, "HAS_BIAS", act && bias);
    call_tensor(&c, dy);
    call_tensor(&c, act ? x : NULL);
    call_tensor(&c, act ? bias : NULL);
    call_tensor(&c, dx);
    call_int(&c, dy->shape[0]);
    call_int(&c, dy->shape[1]);
    call_int(&c, dy->strides[0]);
    call_int(&c, act ? x->strides[0] : 0);
    call_int(&c, dx->strides[0]);
    drop_numbers(&c, d);
    SdcStatus status = call_run(&c, "dropout", "dropout_fused_bwd", grid, stream);
    return status == SDC_OK && dbias ? sum_rows(&c, dx, dbias, stream) : status;
}

/* ---------------------------------------------------- block dropout + linear */

enum { TILE = 128 };

/* One of the three products, c = a b, with the mask over a (dsd) or c (sdd). */
typedef struct Product {
    const char *kind;
    SdcTensor a, b, c;
    int mask_m, mask_k;       /* elements of a block, along the masked matrix */
    int64_t count_m, count_k; /* counters from one block to the next */
    int64_t cols;             /* blocks in a row of the mask */
} Product;

static SdcTensor
turned(const SdcTensor *t)
{
    SdcTensor r = *t;
    r.shape[0] = t->shape[1];
    r.shape[1] = t->shape[0];
    r.strides[0] = t->strides[1];
    r.strides[1] = t->strides[0];
    return r;
}

static bool
block_fits(Call *c, const SdcBlockDropout *d)
{
    if (!call_need(c, d != NULL, "the options are missing") ||
        !call_need(c, d->p >= 0 && d->p < 1, "p is %g, needed is 0 <= p < 1",
                   (double)d->p))
        return false;
    for (int i = 0; i < 2; i++) {
        int b = i ? d->block_k : d->block_m;
        if (!call_need(c, b == 0 || b == 32 || b == 64 || b == 128,
                       "blocks of %d, possible are 32, 64 and 128", b))
            return false;
    }
    return c->status == SDC_OK;
}

static bool
operand_fits(Call *c, const SdcTensor *t, const SdcTensor *like, int64_t rows,
             int64_t cols, const char *what)
{
    if (!call_shape(c, t, what, SHAPE(rows, cols)) || !call_same_type(c, t, like, what))
        return false;
    call_need(c, t->dtype == SDC_FP32 || t->dtype == SDC_FP16 || t->dtype == SDC_BF16,
              "'%s' is %s, possible are fp32, fp16 and bf16", what,
              sdc_dtype_name(t->dtype));
    return call_need(c, !tensor_is_long(t), "'%s' is larger than 2^30 elements", what);
}

/* How a product is done. */
typedef struct Plan {
    const char *kernel;
    int m, n, k, warps, stages;
    bool sorted, paired; /* most work first; and two programs on a multiprocessor */
    int64_t rows, tiles, programs;
} Plan;

/* The measured best for fp16 on an H200 (docs/performance.md): wide tiles where they fill
   the device, small ones where even small ones do not; live tiles of dx by twos as long
   as that leaves enough of them. */
static Plan
plan_gpu(const SdcKernels *k, const Product *p, double drop)
{
    bool dsd = p->kind[0] == 'd', full = p->mask_m == TILE && p->mask_k == TILE;
    int64_t M = p->c.shape[0], N = p->c.shape[1];
    int64_t tiles = ceil_over(M, TILE) * ceil_over(N, TILE), many = k->programs;
    Plan plan = {dsd ? "dsd_matmul" : "sdd_matmul",
                 p->mask_m,
                 TILE,
                 64,
                 4,
                 3,
                 false,
                 false,
                 0,
                 0,
                 0};
    if (p->mask_m < 64 || p->mask_k < 64 || tiles <= many / 2) {
        plan.m = p->mask_m < 64 ? p->mask_m : 64;
        plan.n = dsd ? 64 : TILE;
        plan.sorted = !dsd;
    } else if (dsd && full && (tiles > 2 * many || drop < 0.15)) {
        plan.n = 2 * TILE;
        plan.warps = 8;
        plan.sorted = true;
    } else if (dsd) {
        plan.stages = 2;
        plan.sorted = plan.paired = true;
    } else if (full && drop < (tiles > 2 * many ? 0.85 : 0.15)) {
        plan.kernel = "sdd_pairs";
        plan.warps = 8;
    } else if (drop < 0.35) {
        plan.stages = 2;
    } else {
        plan.warps = 8;
        plan.sorted = true;
    }
    if (p->a.dtype == SDC_FP32)
        plan.k = 32;
    return plan;
}

static Plan
plan_of(const SdcKernels *k, const Product *p, double drop)
{
    enum { SORTED_ROWS = 128 };
    bool dsd = p->kind[0] == 'd';
    int64_t M = p->c.shape[0], N = p->c.shape[1];
    Plan plan = {dsd ? "dsd_matmul" : "sdd_matmul",
                 p->mask_m,
                 64,
                 32,
                 4,
                 3,
                 false,
                 false,
                 0,
                 0,
                 0};
    if (k->on_gpu)
        plan = plan_gpu(k, p, drop);
    if (!dsd && plan.n > p->mask_k)
        plan.n = p->mask_k;
    if (dsd && plan.k > p->mask_k)
        plan.k = p->mask_k;
    int64_t tiles_m = ceil_over(M, plan.m), tiles_n = ceil_over(N, plan.n);
    /* Programs that sort the rows look at the whole mask, so it must not be much. */
    if (tiles_m > SORTED_ROWS || p->cols > 2 * SORTED_ROWS)
        plan.sorted = plan.paired = false;
    plan.rows = plan.sorted ? power_over(tiles_m, SORTED_ROWS) : 0;
    if (strcmp(plan.kernel, "sdd_pairs") == 0)
        tiles_n = ceil_over(N, p->mask_k) / 2 + 1;
    else if (plan.sorted && !dsd)
        tiles_n = ceil_over(N, p->mask_k) * (p->mask_k / plan.n);
    plan.programs = plan.tiles = tiles_m * tiles_n;
    if (dsd && plan.sorted && !plan.paired && plan.programs > k->programs)
        plan.programs = k->programs; /* each takes several tiles in turn */
    return plan;
}

static void
product_binds(Call *c, const Product *p, const Plan *plan)
{
    bool dsd = p->kind[0] == 'd';
    int64_t M = p->c.shape[0], N = p->c.shape[1], K = p->a.shape[1];
    bool even = M % p->mask_m == 0 && (dsd ? K : N) % p->mask_k == 0 &&
                (dsd ? N % plan->n : K % plan->k) == 0;
    call_bind(c, "BLOCK_M", plan->m);
    call_bind(c, "BLOCK_N", plan->n);
    call_bind(c, "BLOCK_K", plan->k);
    call_bind(c, "MASK_M", p->mask_m);
    call_bind(c, dsd ? "MASK_K" : "MASK_N", p->mask_k);
    call_bind_bool(c, "EVEN", even);
    call_bind(c, "num_warps", plan->warps);
    call_bind(c, "num_stages", plan->stages);
    if (plan->rows) {
        call_bind(c, "ROWS", plan->rows);
        call_bind(c, "COLS", power_over(p->cols, 64));
    }
    if (!dsd)
        return;
    if (plan->rows && plan->paired)
        call_bind(c, "PAIR", c->k->programs);
    call_bind_bool(c, "LAPS", plan->programs < plan->tiles);
    call_bind_bool(c, "ONE_WORD", p->cols <= 64);
}

static SdcStatus
product_run(Call *c, const Product *p, const SdcBlockDropout *d, void *stream)
{
    Plan plan = plan_of(c->k, p, (double)d->p);
    call_next(c);
    product_binds(c, p, &plan);
    call_tensor(c, &p->a);
    call_tensor(c, &p->b);
    call_tensor(c, &p->c);
    call_tensor(c, NULL);
    call_int(c, p->c.shape[0]);
    call_int(c, p->c.shape[1]);
    call_int(c, p->a.shape[1]);
    call_float_arg(c, 1 / (1 - (double)d->p));
    call_strides(c, &p->a);
    call_strides(c, &p->b);
    call_strides(c, &p->c);
    call_int(c, 0);
    call_int(c, d->seed);
    call_int(c, d->offset);
    call_float_arg(c, (double)d->p);
    call_int(c, p->count_m);
    call_int(c, p->count_k);
    return call_run(c, "sparsedrop", plan.kernel, sdc_grid(plan.programs, 1, 1), stream);
}

SdcStatus
sdc_sparse_linear_forward(SdcKernels *k, const SdcTensor *x, const SdcTensor *w,
                          const SdcTensor *y, const SdcBlockDropout *d, void *stream)
{
    Call c = call_begin(k, "sdc_sparse_linear_forward");
    if (c.status != SDC_OK || !block_fits(&c, d) ||
        !call_shape(&c, x, "x", SHAPE(-1, -1)) || !call_shape(&c, w, "w", SHAPE(-1, -1)))
        return c.status;
    int64_t M = x->shape[0], K = x->shape[1], N = w->shape[1];
    if (!operand_fits(&c, x, x, M, K, "x") || !operand_fits(&c, w, x, K, N, "w") ||
        !operand_fits(&c, y, x, M, N, "y"))
        return c.status;
    int bm = d->block_m ? d->block_m : 128, bk = d->block_k ? d->block_k : 128;
    int64_t cols = ceil_over(K, bk);
    return product_run(&c, &(Product){"dsd", *x, *w, *y, bm, bk, cols, 1, cols}, d,
                       stream);
}

SdcStatus
sdc_sparse_linear_backward(SdcKernels *k, const SdcTensor *dy, const SdcTensor *x,
                           const SdcTensor *w, const SdcTensor *dx, const SdcTensor *dw,
                           const SdcBlockDropout *d, void *stream)
{
    Call c = call_begin(k, "sdc_sparse_linear_backward");
    if (c.status != SDC_OK || !block_fits(&c, d) ||
        !call_shape(&c, x, "x", SHAPE(-1, -1)) || !call_shape(&c, w, "w", SHAPE(-1, -1)))
        return c.status;
    int64_t M = x->shape[0], K = x->shape[1], N = w->shape[1];
    if (!operand_fits(&c, x, x, M, K, "x") || !operand_fits(&c, w, x, K, N, "w") ||
        !operand_fits(&c, dy, x, M, N, "dy") ||
        (dx && !operand_fits(&c, dx, x, M, K, "dx")) ||
        (dw && !operand_fits(&c, dw, x, K, N, "dw")))
        return c.status;
    int bm = d->block_m ? d->block_m : 128, bk = d->block_k ? d->block_k : 128;
    int64_t rows = ceil_over(M, bm), cols = ceil_over(K, bk);
    SdcStatus status = SDC_OK;
    if (dx)
        status = product_run(
            &c, &(Product){"sdd", *dy, turned(w), *dx, bm, bk, cols, 1, cols}, d, stream);
    if (status == SDC_OK && dw)
        status = product_run(
            &c, &(Product){"dsd", turned(x), *dy, *dw, bk, bm, 1, cols, rows}, d, stream);
    return status;
}
