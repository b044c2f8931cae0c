/* What the files gen_cpu_dot*.c share: one dot, of two matrices in buffers. The right
   operand is packed into panels, and the accumulator is computed in blocks that fit into
   registers. */
#ifndef SDC_CODEGEN_GEN_CPU_DOT_H
#define SDC_CODEGEN_GEN_CPU_DOT_H

#include "codegen/gen_cpu.h"

/* The instruction that multiplies and adds. DOT_ONE: one element per lane. DOT_WORDS,
   DOT_BYTES, DOT_BF16: two 16-bit integers, four bytes or two bf16 per lane. DOT_PAIRS:
   two bf16, in fp32. DOT_TILES: AMX. */
typedef enum DotForm {
    DOT_ONE,
    DOT_WORDS,
    DOT_BYTES,
    DOT_BF16,
    DOT_PAIRS,
    DOT_TILES
} DotForm;

/* An operand in its buffer. */
typedef struct DotOperand {
    LLVMValueRef p; /* address */
    ScalarKind kind;
    int64_t pitch;      /* elements from one row to the next, in a buffer */
    LLVMValueRef apart; /* the same, i64, of a buf_view; NULL: it is in a buffer */
    LLVMValueRef ahead; /* i64, bytes to what is prefetched meanwhile; NULL: nothing */
    bool k_runs;        /* it is contiguous along k */
    bool flip;          /* packing flips the sign bits of bytes */
    LLVMValueRef least; /* variable that packing looks for subnormal numbers by; NULL: it
                           does not */
} DotOperand;

/* A unit is what one lane takes: `group` elements along k. */
typedef struct Dot {
    DotForm form;
    ScalarKind kind;       /* of elements as they are multiplied */
    int group;             /* elements of a unit */
    LLVMTypeRef unit, sum; /* types of a unit and of an accumulator element */
    unsigned lanes;        /* units of a vector */
    int64_t m, n, k;       /* sizes; k in units */
    int64_t rows;          /* of an accumulator block, at most */
    int64_t cols;          /* of a panel of b */
    DotOperand x, y;       /* left and right */
    LLVMValueRef a;        /* left operand as it is read: rows of k units */
    int64_t a_pitch;       /* units from one row of a to the next */
    int64_t room;          /* the same of rows that are packed along k; 0: k */
    LLVMValueRef depth;    /* i64, units to multiply, k or more; NULL: k */
    int64_t c_pitch;       /* elements from one row of c to the next */
    LLVMValueRef b;        /* the packed panel: rows of `cols` units */
    int64_t pitch;         /* units from one row of b to the next */
    LLVMValueRef c;        /* the accumulator's buffer */
    LLVMValueRef col;      /* the panel's first column */
    LLVMValueRef zero;     /* i1: the accumulator is 0 and not in memory; NULL: never */
    /* i64, 1 at least: rows and columns that are wanted; the others may get anything.
       NULL: all. */
    LLVMValueRef live_rows, live_cols;
} Dot;

/* Address of element i * scale + offset of type t, from p on. */
LLVMValueRef dot_at(Gen *g, LLVMTypeRef t, LLVMValueRef p, LLVMValueRef i, int64_t scale,
                    LLVMValueRef offset);
/* The same of an element of an operand. */
LLVMValueRef dot_element(Gen *g, const DotOperand *x, LLVMValueRef row,
                         LLVMValueRef offset);
/* Address of the accumulator element in row m + r and column `by` of the panel. */
LLVMValueRef dot_sum(Gen *g, const Dot *d, LLVMValueRef m, int64_t r, int64_t by);
/* The n values that the accumulator begins with, in v: those that `load` loads, or zeros
   if d->zero holds. */
typedef void DotLoad(Gen *g, void *cx, LLVMValueRef *v);
void dot_begin(Gen *g, const Dot *d, DotLoad *load, void *cx, LLVMValueRef *v, int n);
/* Calls intrinsic `name`, which is not overloaded; arguments are bitcast to its types. */
LLVMValueRef dot_call(Gen *g, const char *name, LLVMValueRef *args, int n);

int64_t dot_unit_bytes(const Dot *d);

/* gen_cpu_pack.c: packs all rows of a into units at `to`, as [m][k], rows `room` units
   apart; and columns first .. end - 1 of b as panels of [k][cols], so many rows of them
   apart. */
void dot_pack_rows(Gen *g, const Dot *d, LLVMValueRef to);
void dot_pack_panels(Gen *g, const Dot *d, LLVMValueRef first, LLVMValueRef end,
                     LLVMValueRef to);

/* A variable for that (`least`), of packs like this; it has no value yet. */
LLVMValueRef dot_watch(Gen *g, const Dot *d, const DotOperand *x, int64_t count,
                       bool k_runs);

/* gen_cpu_subnormal.c: are there subnormal numbers among bf16? In pieces: a minimum,
   which begins as all ones, takes some numbers more (dot_least). A variable that holds
   one begins (dot_watch_begin) and is asked (dot_watched), i1. Or of a whole matrix in
   memory (dot_subnormal), i1. */
LLVMValueRef dot_least(Gen *g, LLVMValueRef least, LLVMValueRef x);
void dot_watch_begin(Gen *g, LLVMValueRef variable);
LLVMValueRef dot_watched(Gen *g, LLVMValueRef variable);
LLVMValueRef dot_subnormal(Gen *g, LLVMValueRef p, int64_t rows, int64_t cols,
                           int64_t pitch);

/* gen_cpu_dot_row.c: may one live row be multiplied without packing b? The first row,
   with a packed; only that row of the sums is written. */
bool dot_may_be_row(const Dot *d);
void dot_row(Gen *g, const Dot *d);

/* gen_cpu_block.c, and gen_cpu_tiles.c for AMX: the rows of a times the panel, added to
   the accumulator. The tiles must be configured before and released at the end. */
void dot_blocks(Gen *g, const Dot *d);
void dot_tiles_begin(Gen *g, const Dot *d);
void dot_tiles(Gen *g, const Dot *d);
void dot_tiles_release(Gen *g);

#endif
