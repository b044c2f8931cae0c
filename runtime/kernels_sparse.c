/* sdc_nn.h: block dropout fused with a linear layer.

   Each of the three matmuls is one launch, whose programs draw the blocks that they
   need. With memory for it, a launch in front writes a list of what there is to do, from
   which as many programs as run at once take one tile after another. */
#include <string.h>

#include "runtime/kernels.h"

enum { TILE = 128 };

/* One of the three matmuls, c = a b, with the mask over a (dsd) or c (sdd). */
typedef struct Product {
    const char *kind;
    SdcTensor a, b, c;
    int mask_m, mask_k;       /* elements of a block, along the masked matrix */
    int64_t count_m, count_k; /* counters from one block to the next */
    int64_t cols;             /* blocks in a row of the mask */
    bool turned;              /* the mask is that of x transposed */
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
    return call_need(c, t->dtype == SDC_FP32 || t->dtype == SDC_FP16 ||
                            t->dtype == SDC_BF16,
                     "'%s' is %s, possible are fp32, fp16 and bf16", what,
                     sdc_dtype_name(t->dtype));
}

/* How a matmul is done. */
typedef struct Plan {
    const char *kernel;
    int m, n, k, warps, stages;
    bool sorted, paired; /* most work first; and two programs on an SM */
    int64_t rows, tiles, programs;
} Plan;

/* The measured best for fp16 on an H200 (docs/performance.md): wide tiles where they fill
   the device, small ones where even small ones do not; in between two programs on an
   SM, those with most work beside those with least. */
static Plan
plan_gpu(const SdcKernels *k, const Product *p, double drop)
{
    bool dsd = p->kind[0] == 'd', full = p->mask_m == TILE && p->mask_k == TILE;
    int64_t M = p->c.shape[0], N = p->c.shape[1];
    int64_t tiles = ceil_over(M, TILE) * ceil_over(N, TILE), many = k->programs;
    Plan plan = {.kernel = dsd ? "dsd_matmul" : "sdd_matmul",
                 .m = p->mask_m,
                 .n = TILE,
                 .k = 64,
                 .warps = 4,
                 .stages = 3};
    if (p->mask_m < 64 || p->mask_k < 64 || tiles <= many / 2) {
        plan.m = p->mask_m < 64 ? p->mask_m : 64;
        plan.n = dsd ? 64 : TILE;
        plan.sorted = !dsd;
    } else if (dsd && full && tiles > 2 * many) {
        plan.n = 2 * TILE;
        plan.warps = 8;
        plan.sorted = true;
    } else if (dsd) {
        plan.stages = 2;
        plan.sorted = plan.paired = drop > 0.05;
    } else if (full && tiles > 8 * many && drop < 0.85) {
        plan.kernel = "sdd_pairs";
        plan.warps = 8;
    } else if (tiles > 2 * many || drop < 0.45) {
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
    Plan plan = {.kernel = dsd ? "dsd_matmul" : "sdd_matmul",
                 .m = p->mask_m,
                 .n = 64,
                 .k = 32,
                 .warps = 4,
                 .stages = 3};
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
        plan.programs = k->programs; /* each takes several one tile after another */
    return plan;
}

static void
product_binds(Call *c, const Product *p, const Plan *plan, bool listed)
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
    if (listed)
        return;
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

/* ---- from a list */

enum { LIST_SIDE = 64, LIST_HEAD = 4, LIST_ENTRY = 2 };

/* What kernel work_list writes, of the mask and behind it of the transposed one. */
typedef struct List {
    int64_t rows, cols, side;
    int64_t *words;        /* [2 * side] */
    int32_t *order, *work; /* [2 * side]; live blocks by twos, and the dead ones */
} List;

static int64_t
list_side(int64_t rows, int64_t cols)
{
    return power_over(rows > cols ? rows : cols, LIST_SIDE);
}

static List
list_in(void *memory, int64_t rows, int64_t cols)
{
    List at = {.rows = rows, .cols = cols, .side = list_side(rows, cols)};
    at.words = memory;
    at.order = (int32_t *)(void *)(at.words + 2 * at.side);
    at.work = at.order + 2 * at.side;
    return at;
}

/* Whether there is memory, and the kernels can do it: blocks of TILE, a word a row. */
static bool
list_fits(const SdcBlockDropout *d, int64_t rows, int64_t cols, SdcDtype t, List *at)
{
    bool full =
        (!d->block_m || d->block_m == TILE) && (!d->block_k || d->block_k == TILE);
    if (!d->workspace || !full || rows > LIST_SIDE || cols > LIST_SIDE || t == SDC_FP32)
        return false;
    *at = list_in(d->workspace, rows, cols);
    return true;
}

static SdcStatus
list_run(Call *c, const SdcBlockDropout *d, const List *at, void *stream)
{
    call_next(c);
    call_bind(c, "SIZE", at->side);
    call_bind(c, "num_warps", 8);
    call_ptr(c, SDC_I32, at->order);
    call_ptr(c, SDC_I32, at->work);
    call_ptr(c, SDC_I64, at->words);
    call_int(c, at->rows);
    call_int(c, at->cols);
    call_int(c, d->seed);
    call_int(c, d->offset);
    call_float_arg(c, (double)d->p);
    call_int(c, at->cols);
    call_int(c, 1);
    call_int(c, c->k->programs);
    return call_run(c, "sparsedrop", "work_list", sdc_grid(2, 1, 1), stream);
}

static void
product_sizes(Call *c, const Product *p, const SdcBlockDropout *d)
{
    call_int(c, p->c.shape[0]);
    call_int(c, p->c.shape[1]);
    call_int(c, p->a.shape[1]);
    call_float_arg(c, 1 / (1 - (double)d->p));
    call_strides(c, &p->a);
    call_strides(c, &p->b);
    call_strides(c, &p->c);
}

static SdcStatus
listed_run(Call *c, const Product *p, const SdcBlockDropout *d, const List *at,
           void *stream)
{
    Plan plan = {.m = TILE, .n = 2 * TILE, .k = 64, .warps = 8, .stages = 3};
    int64_t behind = p->turned ? at->side : 0;
    call_next(c);
    product_binds(c, p, &plan, true);
    call_tensor(c, &p->a);
    call_tensor(c, &p->b);
    call_tensor(c, &p->c);
    call_ptr(c, SDC_I32, at->order + behind);
    call_ptr(c, SDC_I64, at->words + behind);
    product_sizes(c, p, d);
    return call_run(c, "sparsedrop", "dsd_listed", sdc_grid(c->k->programs, 1, 1),
                    stream);
}

static SdcStatus
product_run(Call *c, const Product *p, const SdcBlockDropout *d, const List *at,
            void *stream)
{
    if (at && p->kind[0] == 'd')
        return listed_run(c, p, d, at, stream);
    Plan plan = plan_of(c->k, p, (double)d->p);
    call_next(c);
    product_binds(c, p, &plan, false);
    call_tensor(c, &p->a);
    call_tensor(c, &p->b);
    call_tensor(c, &p->c);
    call_tensor(c, NULL);
    product_sizes(c, p, d);
    call_int(c, 0);
    call_int(c, d->seed);
    call_int(c, d->offset);
    call_float_arg(c, (double)d->p);
    call_int(c, p->count_m);
    call_int(c, p->count_k);
    return call_run(c, "sparsedrop", plan.kernel, sdc_grid(plan.programs, 1, 1), stream);
}

/* Both gradients in one launch, of tensors as they come: the second matmul's masked one
   is x transposed, the first one's right one w transposed. */
typedef struct Gradients {
    const Product *dx, *dw;
    SdcTensor x, w;
    int64_t M, N, K;
} Gradients;

static Gradients
gradients_of(const Product *dx, const Product *dw)
{
    return (Gradients){dx,
                       dw,
                       turned(&dw->a),
                       turned(&dx->b),
                       dx->c.shape[0],
                       dw->c.shape[1],
                       dx->c.shape[1]};
}

static void
gradients_binds(Call *c, const Gradients *g, int64_t width, int warps, int stages)
{
    enum { STEP = 64 };
    call_next(c);
    call_bind(c, "MASK_M", TILE);
    call_bind(c, "MASK_K", TILE);
    call_bind(c, "BLOCK_N", TILE);
    call_bind(c, "STEP", STEP);
    call_bind_bool(c, "EVEN", g->M % TILE == 0 && g->K % TILE == 0 && g->N % width == 0);
    call_bind(c, "num_warps", warps);
    call_bind(c, "num_stages", stages);
}

static void
gradients_sizes(Call *c, const Gradients *g, const SdcBlockDropout *d)
{
    call_int(c, g->M);
    call_int(c, g->N);
    call_int(c, g->K);
    call_float_arg(c, 1 / (1 - (double)d->p));
    call_strides(c, &g->dx->a);
    call_strides(c, &g->x);
    call_strides(c, &g->w);
    call_strides(c, &g->dx->c);
    call_strides(c, &g->dw->c);
}

/* From a list; the tiles of dw along with dx's where they are small. */
static bool
gradients_together(const SdcBlockDropout *d)
{
    return d->p >= 0.4f;
}

static SdcStatus
gradients_listed(Call *c, const Gradients *g, const SdcBlockDropout *d, const List *at,
                 void *stream)
{
    gradients_binds(c, g, 2 * TILE, 8, 3);
    call_bind_bool(c, "BOTH", gradients_together(d));
    call_tensor(c, &g->dx->a);
    call_tensor(c, &g->x);
    call_tensor(c, &g->w);
    for (int i = 0; i < 3; i++)
        call_tensor(c, &g->dx->c);
    for (int i = 0; i < 2; i++)
        call_tensor(c, &g->dw->c);
    call_ptr(c, SDC_I32, at->work);
    call_ptr(c, SDC_I32, at->order + at->side);
    call_ptr(c, SDC_I64, at->words + at->side);
    gradients_sizes(c, g, d);
    return call_run(c, "sparsedrop", "gradients_listed", sdc_grid(c->k->programs, 1, 1),
                    stream);
}

/* A program for each tile: where these fill the device. */
static bool
gradients_fit(Call *c, const Gradients *g, int64_t rows, int64_t cols)
{
    return c->k->on_gpu && g->dx->mask_m == TILE && g->dx->mask_k == TILE &&
           rows <= LIST_SIDE && cols <= LIST_SIDE && g->x.dtype != SDC_FP32 &&
           rows * cols > c->k->programs / 2;
}

/* The more blocks are dead, the more it counts to begin with what takes longest, on as
   many SMs as can be. */
static SdcStatus
gradients_run(Call *c, const Gradients *g, const SdcBlockDropout *d, int64_t rows,
              int64_t cols, void *stream)
{
    bool few = d->p >= 0.75f, sorted = d->p >= 0.2f;
    int64_t height = few ? TILE / 2 : TILE, tiles = ceil_over(g->M, height);
    gradients_binds(c, g, TILE, 4, 2);
    call_bind(c, "BLOCK_M", height);
    call_bind(c, "BLOCK_K", TILE);
    call_bind(c, "ROWS", sorted ? power_over(tiles, 2 * LIST_SIDE) : 0);
    call_bind(c, "COLS", power_over(rows > cols ? rows : cols, LIST_SIDE));
    call_bind(c, "SORTED", d->p > 0.05f ? power_over(cols, LIST_SIDE) : 0);
    call_bind(c, "STAGES", few ? 3 : 2);
    call_bind_bool(c, "ONE_WORD", true);
    call_tensor(c, &g->dx->a);
    call_tensor(c, &g->x);
    call_tensor(c, &g->w);
    call_tensor(c, &g->dx->c);
    call_tensor(c, &g->dw->c);
    gradients_sizes(c, g, d);
    call_int(c, d->seed);
    call_int(c, d->offset);
    call_float_arg(c, (double)d->p);
    return call_run(c, "sparsedrop", "gradients_matmul",
                    sdc_grid(tiles * cols + cols * ceil_over(g->N, TILE), 1, 1), stream);
}

size_t
sdc_sparse_linear_workspace(SdcKernels *k, int64_t M, int64_t K)
{
    const int64_t most = (int64_t)LIST_SIDE * TILE;
    (void)k;
    if (M < 1 || K < 1 || M > most || K > most)
        return 0; /* no list is made then */
    int64_t rows = ceil_over(M, TILE), cols = ceil_over(K, TILE);
    int64_t entries = LIST_HEAD + LIST_ENTRY * rows * cols;
    return (size_t)(2 * list_side(rows, cols)) * (sizeof(int64_t) + sizeof(int32_t)) +
           (size_t)(entries + rows * cols) * sizeof(int32_t);
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
    List list, *at = list_fits(d, ceil_over(M, bm), cols, x->dtype, &list) ? &list : NULL;
    if (at && list_run(&c, d, at, stream) != SDC_OK)
        return c.status;
    return product_run(&c, &(Product){"dsd", *x, *w, *y, bm, bk, cols, 1, cols, false}, d,
                       at, stream);
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
    List list, *at = list_fits(d, rows, cols, x->dtype, &list) ? &list : NULL;
    Product of_x = {"sdd", *dy, turned(w), dx ? *dx : *x, bm, bk, cols, 1, cols, false};
    Product of_w = {"dsd", turned(x), *dy, dw ? *dw : *w, bk, bm, 1, cols, rows, true};
    SdcStatus status = at && dw ? list_run(&c, d, at, stream) : SDC_OK;
    Gradients both = gradients_of(&of_x, &of_w);
    if (status == SDC_OK && at && dx && dw) {
        status = gradients_listed(&c, &both, d, at, stream);
        if (status == SDC_OK && !gradients_together(d))
            status = product_run(&c, &of_w, d, at, stream);
        return status;
    }
    if (status == SDC_OK && dx && dw && gradients_fit(&c, &both, rows, cols))
        return gradients_run(&c, &both, d, rows, cols, stream);
    if (status == SDC_OK && dx)
        status = product_run(&c, &of_x, d, at, stream);
    if (status == SDC_OK && dw)
        status = product_run(&c, &of_w, d, at, stream);
    return status;
}
