/* What the functions for block dropout have in common. Private to runtime/nn. */
#ifndef SDC_RUNTIME_NN_SPARSE_H
#define SDC_RUNTIME_NN_SPARSE_H

#include "runtime/kernels.h"

/* A call: tensors that are not there are NULL. */
typedef struct Layer {
    Call *c;
    const SdcBlockDropout *d;
    SparseAsk ask;
    SparsePlan plan;
    SparseWay way; /* the plan's */
    const SdcTensor *x, *w, *y, *dy, *dx, *dw;
    int64_t rows, cols; /* blocks of x */
} Layer;

/* One of the matmuls, c = a b, with the mask over a (y, dw) or c (dx), drawn by
   counters. */
typedef struct Masked {
    const SparseMatmul *way;
    SdcTensor a, b, c;
    bool dx;
    int mask_m, mask_k;
    int64_t cols; /* blocks in a row of the mask */
    int64_t count_m, count_k;
    bool transposed; /* the mask is that of x transposed */
} Masked;

Masked sparse_y(const Layer *l);
Masked sparse_dx(const Layer *l);
Masked sparse_dw(const Layer *l);

/* Constants and arguments that the kernels share. */
void sparse_bind(Call *c, const GemmTile *t);
void sparse_args(Call *c, const Masked *p, const SdcTensor *to, double scale);
void sparse_seed(Call *c, const SdcBlockDropout *d);
void sparse_gradient_sizes(const Layer *l, const SdcTensor *dw);
double sparse_scale(const SdcBlockDropout *d);

/* Memory for `parts` sums of a result, rows of whole vectors, how far one is behind the
   other, and the launch that adds them, in their order; without parts the result itself,
   and none. */
SdcTensor sparse_sums(Call *c, const SdcTensor *to, int parts);
int64_t sparse_part_stride(const SdcTensor *sums, int parts);
void sparse_join(Call *c, const SdcTensor *sums, const SdcTensor *to, int parts);

/* The launches of a plan. */
void sparse_tiles(const Layer *l, const Masked *p);
void sparse_whole(const Layer *l, const Masked *p);
void sparse_joint(const Layer *l);
void sparse_listed(const Layer *l);
/* One of them by a plain matmul, and which operands of that lie across, as GemmAsk has
   it. */
void sparse_dense(const Layer *l, int what);
int16_t sparse_across(const Layer *l, int what);
/* Bytes of a list of so many blocks. */
size_t sparse_list_size(int64_t rows, int64_t cols);

#endif
