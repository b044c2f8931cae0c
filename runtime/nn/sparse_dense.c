/* Block dropout by a plain matmul: x is copied without its dropped blocks, and all of the
   copy is multiplied; of dx all is computed, and dropped blocks are zeroed. Where few
   blocks are dropped, or blocks are smaller than the tiles that keep tensor cores busy,
   what is multiplied in vain costs less than a program's look at the mask. */
#include "runtime/nn/sparse.h"

#include "runtime/nn/matmul.h"

enum { COPY_ROWS = 16, COPY_COLS = 256 };

static int
along_of(const SdcTensor *x)
{
    return matmul_packed_along(x, 0, false);
}

/* c = a b; x: that of y and dw, or its copy. */
static Matmul
product_of(const Layer *l, int what, const SdcTensor *x)
{
    Matmul p = {.scales = true};
    SdcTensor w = matmul_batch(l->w);
    if (what == SPARSE_DX) {
        p.a = matmul_batch(l->dy);
        p.b = tensor_transposed(&w);
        p.c = matmul_batch(l->dx);
    } else if (what == SPARSE_DW) {
        p.a = tensor_transposed(x);
        p.b = matmul_batch(l->dy);
        p.c = matmul_batch(l->dw);
    } else {
        p.a = *x;
        p.b = w;
        p.c = matmul_batch(l->y);
    }
    return p;
}

int16_t
sparse_across(const Layer *l, int what)
{
    int64_t bytes;
    SdcTensor batch = matmul_batch(l->x);
    SdcTensor x = matmul_place(&batch, along_of(&batch), &bytes);
    Matmul p = product_of(l, what, &x);
    return matmul_across(&p.a, &p.b);
}

/* The mask over `t`, x or dx, whose rows are taken along what is near in memory: of a
   transposed one the mask is transposed, too. */
typedef struct Blocks {
    int along, row;
    int mask_r, mask_c;
    int64_t count_r, count_c;
    int64_t rows, cols;
} Blocks;

static Blocks
blocks_of(const Layer *l, const SdcTensor *t)
{
    int along = along_of(t), row = 3 - along;
    bool straight = row == 1;
    return (Blocks){.along = along,
                    .row = row,
                    .mask_r = straight ? l->ask.mask_m : l->ask.mask_k,
                    .mask_c = straight ? l->ask.mask_k : l->ask.mask_m,
                    .count_r = straight ? l->cols : 1,
                    .count_c = straight ? 1 : l->cols,
                    .rows = t->shape[row],
                    .cols = t->shape[along]};
}

static void
bind_blocks(Call *c, const Blocks *b)
{
    call_next(c);
    call_bind(c, "MASK_R", b->mask_r);
    call_bind(c, "MASK_C", b->mask_c);
    call_bind(c, "BLOCK_R", COPY_ROWS);
    call_bind(c, "BLOCKS", COPY_COLS / b->mask_c);
    call_bind(c, "num_warps", 4);
}

static void
add_mask(const Layer *l, const Blocks *b)
{
    sparse_seed(l->c, l->d);
    call_int(l->c, b->count_r);
    call_int(l->c, b->count_c);
}

static SdcGrid
grid_of(Call *c, const Blocks *b, int64_t rows)
{
    int64_t tiles = ceil_over(rows, COPY_ROWS) * ceil_over(b->cols, COPY_COLS);
    return call_grid(c, tiles ? tiles : 1);
}

/* So many rows of x without dropped blocks, and the scale, which is all without rows. */
static SdcTensor
pack_live(const Layer *l, void *scale, bool whole)
{
    Call *c = l->c;
    const SdcTensor batch = matmul_batch(l->x);
    const Blocks b = blocks_of(l, &batch);
    int64_t bytes, rows = whole ? b.rows : 0;
    SdcTensor to = matmul_place(&batch, b.along, &bytes);
    to.data = whole ? call_borrow(c, bytes) : scale;
    if (!to.data)
        return to;
    bind_blocks(c, &b);
    call_tensor(c, &batch);
    call_tensor(c, &to);
    call_ptr(c, SDC_FP32, scale);
    call_int(c, rows);
    call_int(c, b.cols);
    call_stride(c, &batch, b.row);
    call_stride(c, &batch, b.along);
    call_stride(c, &to, b.row);
    add_mask(l, &b);
    call_float_arg(c, sparse_scale(l->d));
    call_run(c, "pack", "pack_live", grid_of(c, &b, rows), c->stream);
    return to;
}

static void
zero_dropped(const Layer *l, const SdcTensor *out)
{
    Call *c = l->c;
    const Blocks b = blocks_of(l, out);
    if (c->status != SDC_OK)
        return;
    bind_blocks(c, &b);
    call_tensor(c, out);
    call_int(c, b.rows);
    call_int(c, b.cols);
    call_stride(c, out, b.row);
    call_stride(c, out, b.along);
    add_mask(l, &b);
    call_run(c, "pack", "zero_dropped", grid_of(c, &b, b.rows), c->stream);
}

void
sparse_dense(const Layer *l, int what)
{
    Call *c = l->c;
    const SparseMatmul *way = what == SPARSE_Y    ? &l->way.y
                              : what == SPARSE_DX ? &l->way.dx
                                                  : &l->way.dw;
    float *scale = call_borrow(c, sizeof *scale);
    if (!scale)
        return;
    SdcTensor x = pack_live(l, scale, what != SPARSE_DX);
    if (c->status != SDC_OK)
        return;
    Matmul p = product_of(l, what, &x);
    p.a_scale = (SdcTensor){
        .dtype = SDC_FP32, .rank = 2, .data = scale, .shape = {1, p.c.shape[1]}};
    p.b_scale = (SdcTensor){.dtype = SDC_FP32, .rank = 2, .shape = {1, p.c.shape[2]}};
    const GemmAsk ask = matmul_ask(&p);
    const SdcTensor out = p.c;
    matmul_run(c, &p, &way->gemm, gemm_transposed(&ask));
    if (what == SPARSE_DX)
        zero_dropped(l, &out);
}
