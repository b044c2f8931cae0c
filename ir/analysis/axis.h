/* Facts about integers and addresses, for every value of a function: how the elements of
   a tile relate along each dimension, what divides them, and their bounds. Vector widths,
   contiguous accesses and uniform masks follow from these.

   "Aligned block of n" below means indices k*n .. k*n + n-1 along one dimension, with the
   indices of the other dimensions fixed. All lengths are powers of two that divide the
   dimension. */
#ifndef SDC_IR_ANALYSIS_AXIS_H
#define SDC_IR_ANALYSIS_AXIS_H

#include "ir/ir.h"

typedef struct AxisFacts {
    int rank;                    /* at least 1: a scalar is one element */
    int64_t contig[MAX_RANK];    /* each aligned block of this many counts up by one (an
                                    address: by one element) */
    int64_t div[MAX_RANK];       /* divides the first value of each such block; a power of
                                    two; of an address: in bytes */
    int64_t constancy[MAX_RANK]; /* each aligned block of this many has a single value */
    int64_t lo, hi; /* bounds of an integer as a signed number (i1: 0 and 1) */
    bool known;     /* every element is `value` */
    int64_t value;
    bool nonneg; /* no element is negative as a signed number */
} AxisFacts;

typedef struct Axis Axis;

enum { AXIS_MAX_DIV = 1 << 30 };

/* Facts of every value of the function, in the arena, valid until the IR changes.
   Integers of 32 bits and less may wrap, and then do not count up. Wrapping at 64 bits is
   ignored, because addresses wrap there, too. */
Axis *axis_new(const Func *f, Arena *arena);
/* For addresses: sums and products of integers are assumed not to wrap, as in
   ir/analysis/affine.h. */
Axis *axis_new_nowrap(const Func *f, Arena *arena);

/* Never NULL: a value that was made later gets facts that say nothing. */
const AxisFacts *axis_of(Axis *a, const Value *v);

/* How many elements along d one access can take: a run that is aligned to its own length.
   For pointers the alignment is in bytes of `elem_bytes` elements; for integers
   elem_bytes is 1. */
int64_t axis_aligned_run(const AxisFacts *f, int d, int elem_bytes);

#endif
