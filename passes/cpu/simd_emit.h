/* What simd_emit.c and simd_reduce.c share: the state of building one group. */
#ifndef SDC_PASSES_CPU_SIMD_EMIT_H
#define SDC_PASSES_CPU_SIMD_EMIT_H

#include "passes/cpu/simd.h"

typedef struct Acc {
    Root *root;
    int operand;
    const Type *type; /* of the strip */
    Value *v;
    bool has_identity;
    Slot *rows; /* strips of several rows that are reduced together; NULL: none */
} Acc;

typedef struct Emit {
    Simd *n;
    Group *g;
    int w, lane;          /* lanes, and the dimension along which they run */
    int row_dim, high;    /* dimension of the rows of blocks, or -1; how many they are */
    bool square;          /* blocks are transposed in registers */
    int order[MAX_RANK];  /* dimensions with loops, outermost first */
    int nloop;
    Ix ix[MAX_RANK];
    Acc *acc;
    int nacc;
    /* i1: is this the first step of the reduced dimension? NULL: it is the only one */
    Value *first;
    Value *row; /* i64: which of the rows that are reduced together; NULL: of one */
    int rows;   /* how many there are */
} Emit;

/* ---- simd_reduce.c */
/* The accumulators of a nest's reductions, at the beginning of the reduced dimension. */
void simd_acc_init(Emit *e, Builder *b);
/* Adds a strip to the accumulators of a reduction, from number `at` on. */
void simd_reduce_step(Emit *e, Cx *cx, int at, Value **accs);
/* Reduces their lanes, and puts the results where they are used; or keeps them as those
   of e->row. */
void simd_reduce_finish(Emit *e, Builder *b, int at);
/* How many rows along dimension d are best reduced together; 1: each alone. */
int simd_rows_together(const Emit *e, int d);
/* Reduces the strips that were kept; e->ix stands at the first row. */
void simd_reduce_rows(Emit *e, Builder *b);

#endif
