/* Comparisons of integers that have only one answer, from what the function says about
   their operands: axis facts, the bounds of loops, conditions that are known to hold
   where the comparison stands. A caller walks the function, enters the regions it
   descends into and leaves what it learned there when it comes back:

       BoundsMark m = bounds_mark(b);
       bounds_enter(b, op, 0);     in the body of `op`
       .. bounds_compare(b, cmp) ..
       bounds_leave(b, m);  */
#ifndef SDC_IR_ANALYSIS_BOUNDS_H
#define SDC_IR_ANALYSIS_BOUNDS_H

#include "ir/analysis/axis.h"

typedef struct Bounds Bounds;
typedef struct BoundsMark {
    int facts, defined;
} BoundsMark;

/* Valid until the operations that are asked about change. */
Bounds *bounds_new(Axis *axis, Arena *arena);

BoundsMark bounds_mark(const Bounds *b);
void bounds_leave(Bounds *b, BoundsMark m);

/* What holds inside of region i of a loop or an if. */
void bounds_enter(Bounds *b, const Op *op, int i);
/* The scalar condition holds, or does not. */
void bounds_assume(Bounds *b, const Value *cond, bool holds);
/* x + c <= y */
void bounds_assume_below(Bounds *b, const Value *x, int64_t c, const Value *y);

/* Of a `cmpi`: 1 when it holds for all elements, 0 for none, -1 when that is not known.
 */
int bounds_compare(Bounds *b, const Op *cmp);

#endif
