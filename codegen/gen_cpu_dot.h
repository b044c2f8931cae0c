/* What the files gen_cpu_dot*.c share: one product of two matrices in buffers. */
#ifndef SDC_CODEGEN_GEN_CPU_DOT_H
#define SDC_CODEGEN_GEN_CPU_DOT_H

#include "codegen/gen_cpu.h"

/* What multiplies and adds: one element a lane; two words, four bytes or two of bf16 a
   lane; a unit of tiles (AMX). */
typedef enum DotForm { DOT_ONE, DOT_WORDS, DOT_BYTES, DOT_BF16, DOT_TILES } DotForm;

/* An operand in its buffer. `outer` is m or n. */
typedef struct DotOperand {
    LLVMValueRef p;
    ScalarKind kind;
    int64_t pitch; /* of its rows, in elements */
    bool k_runs; /* neighbours in memory are neighbours along k */
    bool flip;   /* the sign bits of its bytes */
    bool watch;  /* bf16: look for subnormal numbers while packing */
    LLVMValueRef least; /* then: is there one? */
} DotOperand;

/* A unit is what one lane takes: `group` elements along k. */
typedef struct Dot {
    DotForm form;
    ScalarKind kind; /* of elements as they are multiplied */
    int group;
    LLVMTypeRef unit, sum;
    unsigned lanes;  /* units of a vector */
    int64_t m, n, k; /* k in units */
    int64_t rows, cols; /* of a block of sums at most; of a panel of b */
    DotOperand x, y;
    LLVMValueRef a;       /* rows of k units, `a_pitch` from each other */
    int64_t a_pitch, c_pitch;
    LLVMValueRef b;       /* the panel: rows of `cols` units, `pitch` from each other */
    int64_t pitch;
    LLVMValueRef c, col;  /* sums; the panel's first column */
    LLVMValueRef zero;    /* i1: the sums are 0 and not in memory; NULL: never */
    /* i64, from 1 on: rows and columns that are wanted; what the others get is not said.
       NULL: all. */
    LLVMValueRef live_rows, live_cols;
} Dot;

/* Element i * scale + offset behind p. */
LLVMValueRef dot_at(Gen *g, LLVMTypeRef t, LLVMValueRef p, LLVMValueRef i, int64_t scale,
                    LLVMValueRef offset);
/* Address of a sum: row m + r, column `by` of the panel. */
LLVMValueRef dot_sum(Gen *g, const Dot *d, LLVMValueRef m, int64_t r, int64_t by);
/* What sums begin with: the values that `load` leaves in `v`, or zeros where the sums are
   0; n of them. */
typedef void DotLoad(Gen *g, void *cx, LLVMValueRef *v);
void dot_begin(Gen *g, const Dot *d, DotLoad *load, void *cx, LLVMValueRef *v, int n);
/* Calls what has one type; vectors of arguments are taken for those it has. */
LLVMValueRef dot_call(Gen *g, const char *name, LLVMValueRef *args, int n);

/* gen_cpu_pack.c: `count` rows or columns of an operand from `first` on, in units, to
   `to`: [count][k] or [k][count]. */
void dot_pack(Gen *g, const Dot *d, DotOperand *x, LLVMValueRef first, int64_t count,
              LLVMValueRef to, bool k_runs);

/* gen_cpu_subnormal.c: is any of these bf16 subnormal? i1. The same in pieces: a minimum
   that begins as all ones, with some numbers more, and what it says. */
LLVMValueRef dot_least(Gen *g, LLVMValueRef least, LLVMValueRef x);
LLVMValueRef dot_is_subnormal(Gen *g, LLVMValueRef least);
LLVMValueRef dot_subnormal(Gen *g, LLVMValueRef p, int64_t rows, int64_t cols,
                           int64_t pitch);

/* gen_cpu_block.c and gen_cpu_tiles.c: the rows of a times the panel. */
void dot_blocks(Gen *g, const Dot *d);
void dot_tiles_begin(Gen *g, const Dot *d);
void dot_tiles(Gen *g, const Dot *d);
void dot_tiles_release(Gen *g);

#endif
