/* Accumulators that stay in flight over the end of an iteration. */
#ifndef SDC_PASSES_SCHEDULE_CARRY_ACCUMULATOR_H
#define SDC_PASSES_SCHEDULE_CARRY_ACCUMULATOR_H

#include "ir/build.h"

/* Builds a wait behind which at most `pending` dots are in flight. */
Op *build_dot_wait(Builder *b, Value **dots, int n, int64_t pending);

/* Makes the loop carry value i, which is dot_carried(dot), in flight: the wait of the dot
   is removed, and there is one behind the loop and one in each arm of a condition that
   reads the accumulator. */
void carry_accumulator(Op *loop, int i, Op *dot);

#endif
