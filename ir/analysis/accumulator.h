/* How an accumulator goes around a loop: from the value at the start of the body, through
   the dot and through conditions, to the value that the next iteration starts with. If
   only arms of conditions read it on the way, the dot may stay in flight over the end of
   the iteration and is waited for in those arms alone
   (passes/schedule/carry_accumulator.c). */
#ifndef SDC_IR_ANALYSIS_ACCUMULATOR_H
#define SDC_IR_ANALYSIS_ACCUMULATOR_H

#include "ir/ir.h"

/* The number of the value that the loop around the dot carries as its accumulator, and
   only as that: one value holds the sums at any time, and outside of the dot only arms of
   conditions read them. -1: none. */
int dot_carried(const Op *dot);

/* The number of the result of the condition that holds, behind it, the accumulator that v
   holds in front of it, unchanged or recomputed in one arm; -1: none, its arms at most
   read v. */
int accumulator_result(const Op *op, const Value *v);

/* Is op a select by a scalar condition, so that it could be an `if`? */
bool select_is_scalar(const Op *op);

#endif
