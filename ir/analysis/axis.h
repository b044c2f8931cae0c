/* Axis facts: what is known about the values of integer and pointer tiles along each of
   their dimensions. The basis of vector widths, of contiguous accesses and of uniform
   masks.

   For a dimension d, cut into aligned groups of 2^k elements:
     contig[d]     each group of that length holds x, x+1, x+2, .. (pointers: addresses
   one element apart) constancy[d]  each group of that length holds one value div[d] a
   power of two that divides the first value of every group of contig[d] elements
   (pointers: in bytes) All are powers of two and hold for wrapping arithmetic. Scalars
   use index 0. The definitions are those of Triton's AxisInfo, made exact for negative
   numbers and for sign extension: a run of 32-bit values is only kept through sext as far
   as its alignment proves that it does not wrap. */
#ifndef SDC_IR_ANALYSIS_AXIS_H
#define SDC_IR_ANALYSIS_AXIS_H

#include "ir/ir.h"

typedef struct AxisFacts {
    int rank; /* at least 1 */
    int64_t contig[MAX_RANK];
    int64_t div[MAX_RANK];
    int64_t constancy[MAX_RANK];
    bool known;    /* every element is `value` */
    int64_t value;
    bool nonneg;   /* no element is negative as a signed number */
} AxisFacts;

typedef struct Axis Axis;

enum { AXIS_MAX_DIV = 1 << 30 };

/* Facts of every value of the function; in arena, valid until the IR changes. */
Axis *axis_new(const Func *f, Arena *arena);

/* Never NULL: nothing known is all ones. */
const AxisFacts *axis_of(const Axis *a, const Value *v);

/* Greatest power of two that divides every element along dimension d. */
int64_t axis_divisor(const AxisFacts *f, int d);

/* Elements along d that one access can take: a run, aligned to its own length. For
   pointers the alignment is in bytes of `elem_bytes` elements; for integers elem_bytes
   is 1. */
int64_t axis_aligned_run(const AxisFacts *f, int d, int elem_bytes);

#endif
