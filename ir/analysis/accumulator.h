/* An accumulator's way round a loop: from what the body begins with, through the dot and
   through conditions, to what the next iteration begins with. Where nothing on it reads
   the sums but arms of conditions, the dot may stay in flight over the iteration's end
   and is waited for in those arms alone (passes/schedule/carry_accumulator.c). */
#ifndef SDC_IR_ANALYSIS_ACCUMULATOR_H
#define SDC_IR_ANALYSIS_ACCUMULATOR_H

#include "ir/ir.h"

/* Which value the loop around the dot carries as its accumulator, and as nothing else:
   one value holds the sums at any time, and outside of the dot only arms of conditions
   read them. -1: none. */
int dot_carried(const Op *dot);

/* Which result of the condition holds the sums behind it that v holds in front, as it is
   or made anew in one arm; -1: none, its arms read v at most. */
int accumulator_result(const Op *op, const Value *v);

/* Is it a select by a scalar condition, which may be an `if`? */
bool select_is_scalar(const Op *op);

#endif
