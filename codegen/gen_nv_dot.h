/* Dots that a warp or a thread computes: gen_nv_dot.c generates the ops, by mma.sync
   (gen_nv_mma.c) or by multiply-adds of each thread (gen_nv_fma.c). */
#ifndef SDC_CODEGEN_GEN_NV_DOT_H
#define SDC_CODEGEN_GEN_NV_DOT_H

#include "codegen/gen_nv.h"

/* An mma instruction; see codegen/mma.def. */
typedef struct Mma {
    const char *shape, *types; /* in its name: m16n8k16, f32.f16.f16.f32 */
    int k;                     /* inner size */
    int bits;                  /* of an operand's element */
    ScalarKind a, b, acc;
    int sm, ptx; /* the least that have it */
} Mma;

/* How operands are split before they are multiplied (input_precision). */
typedef enum Split { SPLIT_NONE, SPLIT_TF32X3, SPLIT_BF16X3, SPLIT_BF16X6 } Split;

typedef struct Multiply {
    Gen *g;
    const Op *op;
    const Mma *m;    /* NULL: threads multiply and add */
    const Mma *wide; /* NULL, or an mma of f16: two of it are issued for one m */
    Split split;
    const Type *elem[2]; /* of the operands */
    const Layout *l[3];  /* of a, b and the accumulator */
    Regs r[3];           /* their registers; those of the accumulator are updated */
    uint32_t only, part; /* computes accumulator registers with (r & only) == part */
} Multiply;

/* The coordinate in operand `op` of the row or column of accumulator coordinate c, with
   inner coordinate 0. */
uint32_t nv_operand_at(const Multiply *p, int op, uint32_t c);

/* ---- gen_nv_mma.c */
/* Chooses p->m and p->split by the op's types, sizes and precision and the target; p->m
   is NULL if no instruction computes the dot. */
void nv_find_mma(Multiply *p);
/* Elements of the inner dimension in one 32-bit register of the operands. */
int nv_mma_kwidth(const Multiply *p);
/* Instructions for one step of k and one block of the accumulator: more than one if
   operands are split. */
int nv_mma_terms(const Multiply *p);
/* Adds a * b to the accumulator registers. False after an error in s->diag. */
bool nv_multiply_mma(Multiply *p);

/* ---- gen_nv_fma.c */
/* The type in which threads add. */
ScalarKind nv_fma_wide(ScalarKind acc);
/* As nv_multiply_mma. */
bool nv_multiply_fma(Multiply *p);

#endif
