/* What the matmuls of sdc_nn.h have in common. Private to runtime/nn. */
#ifndef SDC_RUNTIME_NN_MATMUL_H
#define SDC_RUNTIME_NN_MATMUL_H

#include "runtime/kernels.h"

/* One matmul, or a batch, as the kernels see it: every tensor has its batch in front. */
typedef struct Matmul {
    SdcTensor a, b, c;
    const SdcTensor *bias; /* NULL: none */
    int64_t bias_next;     /* stride from one of the batch to the next */
    bool adds;
    SdcTensor residual; /* where it adds */
    bool scales;
    SdcTensor a_scale, b_scale; /* [batch, M] and [batch, N]; no memory: not there */
    SdcActivation act;
    bool exact;
    bool promotes; /* sums of fp8, into fp32 */
} Matmul;

bool matmul_is_fp8(const SdcTensor *t);
/* Of a matmul that takes no fp8. */
bool matmul_type(Call *c, const SdcTensor *t, const char *what);
/* Operands of one that does: both formats of fp8, or one other type. */
bool matmul_types(Call *c, const SdcTensor *a, const SdcTensor *b);
/* A matrix or batch of matrices, with a batch in front. */
SdcTensor matmul_batch(const SdcTensor *t);
/* As GemmAsk has it. */
int32_t matmul_rows(const SdcTensor *t);
int16_t matmul_across(const SdcTensor *a, const SdcTensor *b);
GemmMath matmul_math(const Matmul *p);
/* Options into `p`, whose c stands; they fit. `groups`: what a bias may have one row
   for. */
bool matmul_options(Call *c, const SdcMatmulOptions *o, int64_t groups, Matmul *p);
/* A further launch, with the tile. */
void matmul_bind(Call *c, const Matmul *p, const GemmTile *t);
void matmul_residual(Call *c, const Matmul *p); /* None without one */
/* Strides from dimension `first` on. */
void matmul_residual_strides(Call *c, const Matmul *p, int first);
void matmul_strides(Call *c, const SdcTensor *t, int first);
void matmul_scales(Call *c, const Matmul *p); /* None for what is not there */

/* The power of two, up to `most`, that all of these numbers are multiples of. */
int64_t matmul_divisor(uint64_t numbers, int64_t most);
/* The dimension of an operand along which it is packed: k (1 or 2) of fp8 and of what is
   transposed (gemm_transposed), of others that along which neighbours in memory stay. */
int matmul_packed_along(const SdcTensor *t, int k, bool transposed);
/* Whether it can be packed so. */
bool matmul_packs(const SdcTensor *t, int along);
/* How such a copy lies, rows on lines of the cache, and the bytes it takes; no memory. */
SdcTensor matmul_place(const SdcTensor *t, int along, int64_t *bytes);
/* The operands that the plan says, by copies in temporary memory: rows on lines of the
   cache. */
void matmul_pack(Call *c, Matmul *p, const GemmPlan *plan, int transposed);
/* One of them, which is not transposed. */
SdcTensor matmul_packed(Call *c, const SdcTensor *t);

/* What is asked of the planner, with the epilogue of `p`. */
GemmAsk matmul_ask(const Matmul *p);
/* Its launches: operands that are copied first, the matmul and the sum of its parts.
   `p` is as the kernels saw it behind them. */
void matmul_run(Call *c, Matmul *p, const GemmPlan *plan, int transposed);

#endif
