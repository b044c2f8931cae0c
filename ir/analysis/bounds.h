/* Comparisons of integers whose result is known, from what the function says about their
   operands: axis facts, the bounds of loops, and conditions that hold where the
   comparison stands. A caller walks the function, enters the regions that it descends
   into, and leaves them again, which forgets what was learned there:

    BoundsMark m = bounds_mark(b);
    bounds_enter(b, op, 0);     in the body of `op`
    .. bounds_compare(b, cmp) ..
    bounds_leave(b, m); */
#ifndef SDC_IR_ANALYSIS_BOUNDS_H
#define SDC_IR_ANALYSIS_BOUNDS_H

#include "ir/analysis/axis.h"

typedef struct Bounds Bounds;
typedef struct BoundsMark {
    int facts, defined;
} BoundsMark;

/* Valid until the ops that it is asked about change. */
Bounds *bounds_new(Axis *axis, Arena *arena);

BoundsMark bounds_mark(const Bounds *b);
void bounds_leave(Bounds *b, BoundsMark m);

/* Learns what holds inside of region i of a loop or an `if`. */
void bounds_enter(Bounds *b, const Op *op, int i);
/* Learns that the scalar condition holds, or does not hold. */
void bounds_assume(Bounds *b, const Value *cond, bool holds);
/* Learns that x + c <= y. */
void bounds_assume_below(Bounds *b, const Value *x, int64_t c, const Value *y);

/* For a `cmpi`: 1 if it holds for all elements, 0 if for none, -1 if that is unknown. */
int bounds_compare(Bounds *b, const Op *cmp);

#endif
