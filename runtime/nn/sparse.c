/* sdc_nn.h: block dropout fused with a linear layer. The plan (runtime/nn/plan_sparse.c)
   says which launches there are, and what is packed first; here it is carried out. */
#include "runtime/nn/sparse.h"

#include "runtime/nn/matmul.h"

#include <string.h>

/* ---- what fits */

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

static bool
layer_begin(Layer *l, Call *c, const SdcTensor *x, const SdcTensor *w,
            const SdcBlockDropout *d, void *stream)
{
    if (c->status != SDC_OK || !block_fits(c, d) ||
        !call_shape(c, x, "x", SHAPE(-1, -1)) || !call_shape(c, w, "w", SHAPE(-1, -1)))
        return false;
    *l = (Layer){.c = c, .d = d, .x = x, .w = w};
    int64_t M = x->shape[0], K = x->shape[1], N = w->shape[1];
    bool lends = c->k->on_gpu && c->k->device.lends;
    l->ask = (SparseAsk){.m = M,
                         .n = N,
                         .k = K,
                         .mask_m = d->block_m ? d->block_m : SPARSE_BLOCK,
                         .mask_k = d->block_k ? d->block_k : SPARSE_BLOCK,
                         .p = d->p,
                         .bytes = sdc_dtype_size(x->dtype),
                         .lists = d->workspace || lends,
                         .sums = lends};
    l->rows = ceil_over(M, l->ask.mask_m);
    l->cols = ceil_over(K, l->ask.mask_k);
    c->stream = stream;
    return operand_fits(c, x, x, M, K, "x") && operand_fits(c, w, x, K, N, "w");
}

static int32_t
rows_of(const SdcTensor *t)
{
    SdcTensor batch;
    if (!t)
        return GEMM_LINE;
    batch = matmul_batch(t);
    return matmul_rows(&batch);
}

/* An operand, packed into `to` where it is to be. */
static const SdcTensor *
packed(Call *c, const SdcTensor *t, bool packs, SdcTensor *to)
{
    if (!packs || c->status != SDC_OK)
        return t;
    SdcTensor batch = matmul_batch(t), x = matmul_packed(c, &batch);
    *to = (SdcTensor){.dtype = t->dtype,
                      .rank = 2,
                      .data = x.data,
                      .shape = {t->shape[0], t->shape[1]},
                      .strides = {x.strides[1], x.strides[2]}};
    return to;
}

/* The plan of an equal call that came before, and what it has launched; else a new
   one. */
static SparsePlan
plan_of(Layer *l)
{
    SdcKernels *k = l->c->k;
    SparsePlan plan;
    if (context_lock(k->cx, &k->lock) != SDC_OK)
        return sparse_plan(&k->device, &l->ask);
    const SparseEntry *at = plan_find(&k->sparse_plans, &l->ask);
    if (at) {
        plan = at->plan;
        memcpy(l->c->functions, at->functions, sizeof at->functions);
    }
    pthread_mutex_unlock(&k->lock);
    return at ? plan : sparse_plan(&k->device, &l->ask);
}

static void
keep(const Layer *l)
{
    SdcKernels *k = l->c->k;
    if (!l->c->found || l->c->status != SDC_OK || context_lock(k->cx, &k->lock) != SDC_OK)
        return;
    SparseEntry *at = plan_place(&k->sparse_plans, &l->ask);
    at->plan = l->plan;
    memcpy(at->functions, l->c->functions, sizeof at->functions);
    pthread_mutex_unlock(&k->lock);
}

static void
layer_plan(Layer *l, int wants)
{
    l->ask.wants = wants;
    l->ask.way = (int16_t)l->c->k->way;
    l->ask.x_rows = rows_of(wants & (SPARSE_Y | SPARSE_DW) ? l->x : NULL);
    l->ask.w_rows = rows_of(wants & (SPARSE_Y | SPARSE_DX) ? l->w : NULL);
    l->ask.dy_rows = rows_of(l->dy);
    l->ask.y_across = wants & SPARSE_Y ? sparse_across(l, SPARSE_Y) : 0;
    l->ask.dx_across = wants & SPARSE_DX ? sparse_across(l, SPARSE_DX) : 0;
    l->ask.dw_across = wants & SPARSE_DW ? sparse_across(l, SPARSE_DW) : 0;
    l->plan = plan_of(l);
    l->way = l->plan.way;
    call_note(l->c, &(Note){.kind = NOTE_SPARSE, .of.sparse = {l->ask, l->plan}});
}

/* ---- calls */

static void
matmul_by_way(const Layer *l, int what, const SparseMatmul *way,
              Masked (*masked)(const Layer *l))
{
    if (l->c->status != SDC_OK || !way->tile.m)
        return;
    if (way->dense) {
        sparse_dense(l, what);
        return;
    }
    Masked p = masked(l);
    (way->whole ? sparse_whole : sparse_tiles)(l, &p);
}

static SdcStatus
layer_run(Layer *l)
{
    SdcTensor x, w, dy;
    l->x = packed(l->c, l->x, l->way.pack_x, &x);
    l->w = packed(l->c, l->w, l->way.pack_w, &w);
    l->dy = packed(l->c, l->dy, l->way.pack_dy, &dy);
    if (l->c->status != SDC_OK)
        return call_end(l->c);
    if (l->way.order == SPARSE_LISTED || l->way.order == SPARSE_LISTED_JOINT) {
        sparse_listed(l);
    } else if (l->way.order == SPARSE_JOINT) {
        sparse_joint(l);
    } else {
        matmul_by_way(l, SPARSE_Y, &l->way.y, sparse_y);
        matmul_by_way(l, SPARSE_DX, &l->way.dx, sparse_dx);
        matmul_by_way(l, SPARSE_DW, &l->way.dw, sparse_dw);
    }
    keep(l);
    return call_end(l->c);
}

size_t
sdc_sparse_linear_workspace(SdcKernels *k, int64_t M, int64_t K)
{
    const int64_t most = (int64_t)SPARSE_LIST_SIDE * SPARSE_BLOCK;
    (void)k;
    if (M < 1 || K < 1 || M > most || K > most)
        return 0; /* no list is made then */
    return sparse_list_size(ceil_over(M, SPARSE_BLOCK), ceil_over(K, SPARSE_BLOCK));
}

SdcStatus
sdc_sparse_linear_forward(SdcKernels *k, const SdcTensor *x, const SdcTensor *w,
                          const SdcTensor *y, const SdcBlockDropout *d, void *stream)
{
    Call c = call_begin(k, "sdc_sparse_linear_forward");
    Layer l;
    if (!layer_begin(&l, &c, x, w, d, stream) ||
        !operand_fits(&c, y, x, l.ask.m, l.ask.n, "y"))
        return c.status;
    l.y = y;
    if (!l.ask.m || !l.ask.n)
        return SDC_OK;
    layer_plan(&l, SPARSE_Y);
    return layer_run(&l);
}

SdcStatus
sdc_sparse_linear_backward(SdcKernels *k, const SdcTensor *dy, const SdcTensor *x,
                           const SdcTensor *w, const SdcTensor *dx, const SdcTensor *dw,
                           const SdcBlockDropout *d, void *stream)
{
    Call c = call_begin(k, "sdc_sparse_linear_backward");
    Layer l;
    if (!layer_begin(&l, &c, x, w, d, stream) ||
        !operand_fits(&c, dy, x, l.ask.m, l.ask.n, "dy") ||
        (dx && !operand_fits(&c, dx, x, l.ask.m, l.ask.k, "dx")) ||
        (dw && !operand_fits(&c, dw, x, l.ask.k, l.ask.n, "dw")))
        return c.status;
    l.dy = dy;
    l.dx = l.ask.m && l.ask.k ? dx : NULL;
    l.dw = l.ask.n && l.ask.k ? dw : NULL;
    if (!l.dx && !l.dw)
        return SDC_OK;
    layer_plan(&l, (l.dx ? SPARSE_DX : 0) | (l.dw ? SPARSE_DW : 0));
    return layer_run(&l);
}
