/* Dots: where they come from (gen_nv_dot.c) and what computes them, mma.sync
   (gen_nv_mma.c) or each thread for itself (gen_nv_fma.c). */
#ifndef SDC_CODEGEN_GEN_NV_DOT_H
#define SDC_CODEGEN_GEN_NV_DOT_H

#include "codegen/gen_nv.h"

/* An mma instruction; see codegen/mma.def. */
typedef struct Mma {
    const char *shape, *types;
    int k, bits;
    ScalarKind a, b, acc;
    int sm, ptx;
} Mma;

/* How operands are split before they are multiplied (input_precision). */
typedef enum Split { SPLIT_NONE, SPLIT_TF32X3, SPLIT_BF16X3, SPLIT_BF16X6 } Split;

typedef struct Multiply {
    Gen *g;
    const Op *op;
    const Mma *m;    /* NULL: threads multiply and add */
    const Mma *wide; /* of f16, two of which are issued for one of m; or NULL */
    Split split;
    const Type *elem[2]; /* of the operands */
    const Layout *l[3];  /* a, b, accumulators: of the registers below */
    Regs r[3];           /* accumulators: changed in place */
    uint32_t only, part; /* accumulators that are computed: (register & only) == part */
} Multiply;

/* Coordinate c of the accumulators' as operand `op` has it, k being 0. */
uint32_t nv_operand_at(const Multiply *p, int op, uint32_t c);

/* ---- gen_nv_mma.c */
/* Fills in `m` and `split` by the op's types, sizes and precision and the target; NULL in
   m where no instruction computes it. */
void nv_find_mma(Multiply *p);
/* Consecutive k in one register of 32 bits of the operands. */
int nv_mma_kwidth(const Multiply *p);
/* Instructions for one step of k of one block of the accumulators. */
int nv_mma_terms(const Multiply *p);
bool nv_multiply_mma(Multiply *p);

/* ---- gen_nv_fma.c */
/* The type that threads add in. */
ScalarKind nv_fma_wide(ScalarKind acc);
bool nv_multiply_fma(Multiply *p);

#endif
