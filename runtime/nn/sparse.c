/* sdc_nn.h: block dropout fused with a linear layer. The plan (runtime/nn/plan_sparse.c)
   says which launches there are; here they are carried out. Without a list the programs
   draw the blocks that they need; with one, a launch in front writes what there is to do,
   and as many programs as run at once take one tile after another from it. */
#include "runtime/kernels.h"

enum { TILE = SPARSE_BLOCK, JOIN = 512 };

/* A call: tensors that are not there are NULL. */
typedef struct Layer {
    Call *c;
    const SdcBlockDropout *d;
    SparseAsk ask;
    SparseWay way;
    const SdcTensor *x, *w, *y, *dy, *dx, *dw;
    int64_t rows, cols; /* blocks of x */
    void *stream;
} Layer;

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
    *l = (Layer){.c = c, .d = d, .x = x, .w = w, .stream = stream};
    int64_t M = x->shape[0], K = x->shape[1], N = w->shape[1];
    bool lends = c->k->on_gpu && c->k->device.lends;
    l->ask = (SparseAsk){.m = M,
                         .n = N,
                         .k = K,
                         .mask_m = d->block_m ? d->block_m : TILE,
                         .mask_k = d->block_k ? d->block_k : TILE,
                         .p = d->p,
                         .bytes = sdc_dtype_size(x->dtype),
                         .lists = d->workspace || lends,
                         .sums = lends};
    l->rows = ceil_over(M, l->ask.mask_m);
    l->cols = ceil_over(K, l->ask.mask_k);
    c->stream = stream;
    return operand_fits(c, x, x, M, K, "x") && operand_fits(c, w, x, K, N, "w");
}

static void
layer_plan(Layer *l, int wants)
{
    l->ask.wants = wants;
    SparsePlan plan = sparse_plan(&l->c->k->device, &l->ask);
    l->way = plan.way;
    call_note(l->c, &(Note){.kind = NOTE_SPARSE, .of.sparse = {l->ask, plan}});
}

/* ---- a launch for each matmul */

/* c = a b, with the mask over a (y, dw) or c (dx), drawn by counters. */
typedef struct Product {
    const SparseMatmul *way;
    SdcTensor a, b, c;
    bool dx;
    int mask_m, mask_k;
    int64_t cols; /* blocks in a row of the mask */
    int64_t count_m, count_k;
    bool turned; /* the mask is that of x transposed */
} Product;

static Product
product_y(const Layer *l)
{
    return (Product){.way = &l->way.y,
                     .a = *l->x,
                     .b = *l->w,
                     .c = *l->y,
                     .mask_m = l->ask.mask_m,
                     .mask_k = l->ask.mask_k,
                     .cols = l->cols,
                     .count_m = l->cols,
                     .count_k = 1};
}

static Product
product_dx(const Layer *l)
{
    return (Product){.way = &l->way.dx,
                     .a = *l->dy,
                     .b = turned(l->w),
                     .c = *l->dx,
                     .dx = true,
                     .mask_m = l->ask.mask_m,
                     .mask_k = l->ask.mask_k,
                     .cols = l->cols,
                     .count_m = l->cols,
                     .count_k = 1};
}

static Product
product_dw(const Layer *l)
{
    return (Product){.way = &l->way.dw,
                     .a = turned(l->x),
                     .b = *l->dy,
                     .c = *l->dw,
                     .mask_m = l->ask.mask_k,
                     .mask_k = l->ask.mask_m,
                     .cols = l->rows,
                     .count_m = 1,
                     .count_k = l->cols,
                     .turned = true};
}

static void
bind_tile(Call *c, const GemmTile *t, int64_t width)
{
    call_bind(c, "BLOCK_M", t->m);
    call_bind(c, "BLOCK_N", t->n < width ? t->n : width);
    call_bind(c, "BLOCK_K", t->k);
    call_bind(c, "num_warps", t->warps);
    call_bind(c, "num_stages", t->stages);
}

static void
product_args(Call *c, const Product *p, const SdcTensor *to, double scale)
{
    call_int(c, p->c.shape[0]);
    call_int(c, p->c.shape[1]);
    call_int(c, p->a.shape[1]);
    call_float_arg(c, scale);
    call_strides(c, &p->a);
    call_strides(c, &p->b);
    call_strides(c, to);
}

static void
seed_args(Call *c, const SdcBlockDropout *d)
{
    call_int(c, d->seed);
    call_int(c, d->offset);
    call_float_arg(c, (double)d->p);
}

static double
scale_of(const SdcBlockDropout *d)
{
    return 1 / (1 - (double)d->p);
}

/* Memory for `parts` sums of a result, rows of whole vectors; without parts the result
   itself. */
static SdcTensor
sums_of(Call *c, const SdcTensor *to, int parts)
{
    int64_t width = ceil_over(to->shape[1], 4) * 4;
    if (parts == 1)
        return *to;
    return (SdcTensor){.dtype = SDC_FP32,
                       .rank = 2,
                       .shape = {to->shape[0], to->shape[1]},
                       .strides = {width, 1},
                       .data = call_borrow(c, parts * to->shape[0] * width *
                                                  (int64_t)sizeof(float))};
}

static int64_t
part_stride(const SdcTensor *sums, int parts)
{
    return parts == 1 ? 0 : sums->shape[0] * sums->strides[0];
}

/* Adds the parts, in their order. */
static void
join(Call *c, const SdcTensor *sums, const SdcTensor *to, int parts)
{
    int64_t M = to->shape[0], N = to->shape[1], step = power_over(N, JOIN);
    if (parts == 1 || c->status != SDC_OK)
        return;
    call_next(c);
    call_bind(c, "PARTS", power_over(parts, 1 << 16));
    call_bind(c, "BLOCK_N", step);
    call_bind(c, "num_warps", 4);
    call_tensor(c, sums);
    call_tensor(c, to);
    call_tensor(c, NULL);
    call_int(c, N);
    call_int(c, parts);
    call_int(c, part_stride(sums, parts));
    call_int(c, sums->strides[0]);
    call_strides(c, to);
    call_run(c, "matmul", "matmul_join", call_grid(c, M * ceil_over(N, step)), c->stream);
}

/* Programs of a matmul, a tile each. Rows of dx that are sorted count their last block
   whole. */
static int64_t
tiles_of(const Product *p)
{
    const GemmTile *t = p->way->tile;
    int64_t tiles_m = ceil_over(p->c.shape[0], t->m), N = p->c.shape[1];
    if (p->way->pairs)
        return tiles_m * (p->cols / 2 + 1);
    if (p->dx && p->way->sorted)
        return tiles_m * p->cols * ceil_over(p->mask_k, t->n);
    return tiles_m * ceil_over(N, t->n);
}

static void
bind_sorted(Call *c, const char *rows_name, bool sorted, int64_t rows, int64_t cols)
{
    enum { MOST_ROWS = 128, MOST_COLS = 64 };
    if (!sorted)
        return;
    call_bind(c, rows_name, power_over(rows, MOST_ROWS));
    call_bind(c, "COLS", power_over(cols, MOST_COLS));
}

static void
run_tiles(const Layer *l, const Product *p)
{
    Call *c = l->c;
    const GemmTile *t = p->way->tile;
    int64_t tiles = tiles_of(p), wave = tiles;
    SdcTensor sums = sums_of(c, &p->c, p->way->parts);
    if (c->status != SDC_OK)
        return;
    /* two on an SM, one with much work and one with little */
    if (p->way->sorted && t->resident > 1 && tiles <= 2 * c->k->programs)
        wave = c->k->programs;
    call_next(c);
    bind_tile(c, t, p->dx ? p->mask_k : t->n);
    call_bind(c, "MASK_M", p->mask_m);
    call_bind(c, p->dx ? "MASK_N" : "MASK_K", p->mask_k);
    bind_sorted(c, "ROWS", p->way->sorted && !p->way->pairs,
                ceil_over(p->c.shape[0], t->m), p->cols);
    if (!p->dx)
        call_bind_bool(c, "ONE_WORD", p->cols <= 64);
    call_tensor(c, &p->a);
    call_tensor(c, &p->b);
    call_tensor(c, &sums);
    call_tensor(c, NULL);
    product_args(c, p, &sums, scale_of(l->d));
    call_int(c, 0);
    seed_args(c, l->d);
    call_int(c, p->count_m);
    call_int(c, p->count_k);
    if (!p->dx)
        call_int(c, wave);
    if (!p->way->pairs) {
        call_int(c, p->way->parts);
        call_int(c, part_stride(&sums, p->way->parts));
    }
    call_run(c, "sparsedrop",
             !p->dx           ? "dsd_matmul"
             : p->way->pairs ? "sdd_pairs"
                             : "sdd_matmul",
             call_grid(c, tiles * p->way->parts), l->stream);
    join(c, &sums, &p->c, p->way->parts);
}

/* ---- both gradients in one launch */

static void
gradient_sizes(const Layer *l, const SdcTensor *dw)
{
    Call *c = l->c;
    call_int(c, l->ask.m);
    call_int(c, l->ask.n);
    call_int(c, l->ask.k);
    call_float_arg(c, scale_of(l->d));
    call_strides(c, l->dy);
    call_strides(c, l->x);
    call_strides(c, l->w);
    call_strides(c, l->dx);
    call_strides(c, dw);
}

static void
run_joint(const Layer *l)
{
    Call *c = l->c;
    const SparseMatmul *dx = &l->way.dx, *dw = &l->way.dw;
    Product of_x = product_dx(l), of_w = product_dw(l);
    int64_t blocks = tiles_of(&of_x), tiles = tiles_of(&of_w) * dw->parts;
    SdcTensor sums = sums_of(c, l->dw, dw->parts);
    if (c->status != SDC_OK)
        return;
    call_next(c);
    call_bind(c, "MASK_M", l->ask.mask_m);
    call_bind(c, "MASK_K", l->ask.mask_k);
    call_bind(c, "BLOCK_M", dx->tile->m);
    call_bind(c, "BLOCK_K", dw->tile->m);
    call_bind(c, "BLOCK_N", dw->tile->n);
    call_bind(c, "STEP", dw->tile->k);
    bind_sorted(c, "ROWS", dx->sorted, ceil_over(l->ask.m, dx->tile->m), l->cols);
    if (dw->sorted)
        call_bind(c, "SORTED", power_over(ceil_over(l->ask.k, dw->tile->m), 128));
    call_bind(c, "STAGES", dx->tile->stages);
    call_bind_bool(c, "ONE_WORD", true);
    call_bind(c, "num_warps", dw->tile->warps);
    call_bind(c, "num_stages", dw->tile->stages);
    call_tensor(c, l->dy);
    call_tensor(c, l->x);
    call_tensor(c, l->w);
    call_tensor(c, l->dx);
    call_tensor(c, &sums);
    gradient_sizes(l, &sums);
    seed_args(c, l->d);
    call_int(c, l->way.dw_first ? blocks : 0);
    call_int(c, dw->parts);
    call_int(c, part_stride(&sums, dw->parts));
    call_run(c, "sparsedrop", "gradients_matmul", call_grid(c, blocks + tiles),
             l->stream);
    join(c, &sums, l->dw, dw->parts);
}

/* ---- from a list */

enum { LIST_HEAD = 4, LIST_ENTRY = 3 };

/* What kernel work_list writes, of the mask and behind it of the transposed one. */
typedef struct List {
    int64_t side;
    int64_t *words;        /* [2 * side] */
    int32_t *order, *work; /* [2 * side]; live blocks by twos, and the dead ones */
} List;

static int64_t
list_side(int64_t rows, int64_t cols)
{
    return power_over(rows > cols ? rows : cols, SPARSE_LIST_SIDE);
}

static size_t
list_size(int64_t rows, int64_t cols)
{
    return (size_t)(2 * list_side(rows, cols)) * (sizeof(int64_t) + sizeof(int32_t)) +
           (size_t)(LIST_HEAD + LIST_ENTRY * rows * cols) * sizeof(int32_t);
}

/* The list, and the launch that writes it. */
static List
list_run(const Layer *l)
{
    Call *c = l->c;
    List at = {.side = list_side(l->rows, l->cols)};
    at.words = l->d->workspace ? l->d->workspace
                               : call_borrow(c, (int64_t)list_size(l->rows, l->cols));
    if (!at.words)
        return at;
    at.order = (int32_t *)(void *)(at.words + 2 * at.side);
    at.work = at.order + 2 * at.side;
    call_next(c);
    call_bind(c, "SIZE", at.side);
    call_bind(c, "num_warps", 8);
    call_ptr(c, SDC_I32, at.order);
    call_ptr(c, SDC_I32, at.work);
    call_ptr(c, SDC_I64, at.words);
    call_int(c, l->rows);
    call_int(c, l->cols);
    seed_args(c, l->d);
    call_int(c, l->cols);
    call_int(c, 1);
    call_int(c, c->k->programs);
    call_run(c, "sparsedrop", "work_list", sdc_grid(2, 1, 1), l->stream);
    return at;
}

static void
run_listed(const Layer *l, const Product *p, const List *at)
{
    Call *c = l->c;
    int64_t behind = p->turned ? at->side : 0;
    call_next(c);
    bind_tile(c, p->way->tile, p->way->tile->n);
    call_bind(c, "MASK_M", p->mask_m);
    call_bind(c, "MASK_K", p->mask_k);
    call_tensor(c, &p->a);
    call_tensor(c, &p->b);
    call_tensor(c, &p->c);
    call_ptr(c, SDC_I32, at->order + behind);
    call_ptr(c, SDC_I64, at->words + behind);
    product_args(c, p, &p->c, scale_of(l->d));
    call_run(c, "sparsedrop", "dsd_listed", sdc_grid(c->k->programs, 1, 1), l->stream);
}

/* dx and, `both`, dw. */
static void
run_listed_gradients(const Layer *l, const List *at, bool both)
{
    Call *c = l->c;
    const GemmTile *t = l->way.dx.tile;
    call_next(c);
    call_bind(c, "MASK_M", l->ask.mask_m);
    call_bind(c, "MASK_K", l->ask.mask_k);
    call_bind(c, "BLOCK_N", t->n);
    call_bind(c, "STEP", t->k);
    call_bind_bool(c, "BOTH", both);
    call_bind(c, "num_warps", t->warps);
    call_bind(c, "num_stages", t->stages);
    const SdcTensor *dw = both ? l->dw : l->w; /* not written unless both are */
    call_tensor(c, l->dy);
    call_tensor(c, l->x);
    call_tensor(c, l->w);
    for (int i = 0; i < 3; i++)
        call_tensor(c, l->dx);
    for (int i = 0; i < 2; i++)
        call_tensor(c, dw);
    call_ptr(c, SDC_I32, at->work);
    call_ptr(c, SDC_I32, at->order + at->side);
    call_ptr(c, SDC_I64, at->words + at->side);
    gradient_sizes(l, dw);
    call_run(c, "sparsedrop", "gradients_listed", sdc_grid(c->k->programs, 1, 1),
             l->stream);
}

static void
run_from_list(const Layer *l)
{
    bool both = l->way.order == SPARSE_LISTED_JOINT;
    List at = list_run(l);
    if (l->c->status == SDC_OK && l->way.y.tile)
        run_listed(l, &(Product[]){product_y(l)}[0], &at);
    if (l->c->status == SDC_OK && l->way.dx.tile)
        run_listed_gradients(l, &at, both);
    if (l->c->status == SDC_OK && l->way.dw.tile && !both)
        run_listed(l, &(Product[]){product_dw(l)}[0], &at);
}

/* ---- calls */

static SdcStatus
layer_run(const Layer *l)
{
    Product p;
    if (l->way.order == SPARSE_LISTED || l->way.order == SPARSE_LISTED_JOINT) {
        run_from_list(l);
    } else if (l->way.order == SPARSE_JOINT) {
        run_joint(l);
    } else {
        if (l->way.y.tile)
            p = product_y(l), run_tiles(l, &p);
        if (l->c->status == SDC_OK && l->way.dx.tile)
            p = product_dx(l), run_tiles(l, &p);
        if (l->c->status == SDC_OK && l->way.dw.tile)
            p = product_dw(l), run_tiles(l, &p);
    }
    return call_end(l->c);
}

size_t
sdc_sparse_linear_workspace(SdcKernels *k, int64_t M, int64_t K)
{
    const int64_t most = (int64_t)SPARSE_LIST_SIDE * TILE;
    (void)k;
    if (M < 1 || K < 1 || M > most || K > most)
        return 0; /* no list is made then */
    return list_size(ceil_over(M, TILE), ceil_over(K, TILE));
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
