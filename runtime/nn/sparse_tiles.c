/* Block dropout and matmuls: a program for each tile. Each draws the blocks that it
   needs; parts of the inner dimension go to temporary memory, and a second launch adds
   them. */
#include "runtime/nn/sparse.h"

enum { JOIN = 512 };

Masked
sparse_y(const Layer *l)
{
    return (Masked){.way = &l->way.y,
                     .a = *l->x,
                     .b = *l->w,
                     .c = *l->y,
                     .mask_m = l->ask.mask_m,
                     .mask_k = l->ask.mask_k,
                     .cols = l->cols,
                     .count_m = l->cols,
                     .count_k = 1};
}

Masked
sparse_dx(const Layer *l)
{
    return (Masked){.way = &l->way.dx,
                     .a = *l->dy,
                     .b = tensor_transposed(l->w),
                     .c = *l->dx,
                     .dx = true,
                     .mask_m = l->ask.mask_m,
                     .mask_k = l->ask.mask_k,
                     .cols = l->cols,
                     .count_m = l->cols,
                     .count_k = 1};
}

Masked
sparse_dw(const Layer *l)
{
    return (Masked){.way = &l->way.dw,
                     .a = tensor_transposed(l->x),
                     .b = *l->dy,
                     .c = *l->dw,
                     .mask_m = l->ask.mask_k,
                     .mask_k = l->ask.mask_m,
                     .cols = l->rows,
                     .count_m = 1,
                     .count_k = l->cols,
                     .transposed = true};
}

void
sparse_bind(Call *c, const GemmTile *t)
{
    call_bind(c, "BLOCK_M", t->m);
    call_bind(c, "BLOCK_N", t->n);
    call_bind(c, "BLOCK_K", t->k);
    call_bind(c, "num_warps", t->warps);
    call_bind(c, "num_stages", t->stages);
}

void
sparse_args(Call *c, const Masked *p, const SdcTensor *to, double scale)
{
    call_int(c, p->c.shape[0]);
    call_int(c, p->c.shape[1]);
    call_int(c, p->a.shape[1]);
    call_float_arg(c, scale);
    call_strides(c, &p->a);
    call_strides(c, &p->b);
    call_strides(c, to);
}

void
sparse_seed(Call *c, const SdcBlockDropout *d)
{
    call_int(c, d->seed);
    call_int(c, d->offset);
    call_float_arg(c, (double)d->p);
}

double
sparse_scale(const SdcBlockDropout *d)
{
    return 1 / (1 - (double)d->p);
}

SdcTensor
sparse_sums(Call *c, const SdcTensor *to, int parts)
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

int64_t
sparse_part_stride(const SdcTensor *sums, int parts)
{
    return parts == 1 ? 0 : sums->shape[0] * sums->strides[0];
}

void
sparse_join(Call *c, const SdcTensor *sums, const SdcTensor *to, int parts)
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
    call_int(c, sparse_part_stride(sums, parts));
    call_int(c, sums->strides[0]);
    call_strides(c, to);
    call_run(c, "matmul", "matmul_join", call_grid(c, M * ceil_over(N, step)), c->stream);
}

/* Programs of a matmul, a tile each. Rows of dx that are sorted count their last block
   whole. */
static int64_t
tiles_of(const Masked *p)
{
    const GemmTile *t = &p->way->tile;
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

void
sparse_tiles(const Layer *l, const Masked *p)
{
    Call *c = l->c;
    const GemmTile *t = &p->way->tile;
    int64_t tiles = tiles_of(p), wave = tiles;
    SdcTensor sums = sparse_sums(c, &p->c, p->way->parts);
    if (c->status != SDC_OK)
        return;
    /* two on an SM, one with much work and one with little */
    if (p->way->sorted && t->resident > 1 && tiles <= 2 * c->k->programs)
        wave = c->k->programs;
    call_next(c);
    sparse_bind(c, t);
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
    sparse_args(c, p, &sums, sparse_scale(l->d));
    call_int(c, 0);
    sparse_seed(c, l->d);
    call_int(c, p->count_m);
    call_int(c, p->count_k);
    if (!p->dx)
        call_int(c, wave);
    if (!p->way->pairs) {
        call_int(c, p->way->parts);
        call_int(c, sparse_part_stride(&sums, p->way->parts));
    }
    call_run(c, "sparsedrop",
             !p->dx           ? "dsd_matmul"
             : p->way->pairs ? "sdd_pairs"
                             : "sdd_matmul",
             call_grid(c, tiles * p->way->parts), l->c->stream);
    sparse_join(c, &sums, &p->c, p->way->parts);
}

/* ---- both gradients in one launch */

void
sparse_gradient_sizes(const Layer *l, const SdcTensor *dw)
{
    Call *c = l->c;
    call_int(c, l->ask.m);
    call_int(c, l->ask.n);
    call_int(c, l->ask.k);
    call_float_arg(c, sparse_scale(l->d));
    call_strides(c, l->dy);
    call_strides(c, l->x);
    call_strides(c, l->w);
    call_strides(c, l->dx);
    call_strides(c, dw);
}

void
sparse_joint(const Layer *l)
{
    Call *c = l->c;
    const SparseMatmul *dx = &l->way.dx, *dw = &l->way.dw;
    Masked of_x = sparse_dx(l), of_w = sparse_dw(l);
    int64_t blocks = tiles_of(&of_x), tiles = tiles_of(&of_w) * dw->parts;
    SdcTensor sums = sparse_sums(c, l->dw, dw->parts);
    if (c->status != SDC_OK)
        return;
    call_next(c);
    call_bind(c, "MASK_M", l->ask.mask_m);
    call_bind(c, "MASK_K", l->ask.mask_k);
    call_bind(c, "BLOCK_M", dx->tile.m);
    call_bind(c, "BLOCK_K", dw->tile.m);
    call_bind(c, "BLOCK_N", dw->tile.n);
    call_bind(c, "STEP", dw->tile.k);
    bind_sorted(c, "ROWS", dx->sorted, ceil_over(l->ask.m, dx->tile.m), l->cols);
    if (dw->sorted)
        call_bind(c, "SORTED", power_over(ceil_over(l->ask.k, dw->tile.m), 128));
    call_bind(c, "STAGES", dx->tile.stages);
    call_bind_bool(c, "ONE_WORD", of_w.cols <= 64);
    call_bind(c, "num_warps", dw->tile.warps);
    call_bind(c, "num_stages", dw->tile.stages);
    call_tensor(c, l->dy);
    call_tensor(c, l->x);
    call_tensor(c, l->w);
    call_tensor(c, l->dx);
    call_tensor(c, &sums);
    sparse_gradient_sizes(l, &sums);
    sparse_seed(c, l->d);
    call_int(c, l->way.dw_first ? blocks : 0);
    call_int(c, dw->parts);
    call_int(c, sparse_part_stride(&sums, dw->parts));
    call_run(c, "sparsedrop", "gradients_matmul", call_grid(c, blocks + tiles),
             l->c->stream);
    sparse_join(c, &sums, l->dw, dw->parts);
}
