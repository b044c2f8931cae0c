/* Accumulators that stay in flight over the end of an iteration. */
#ifndef SDC_PASSES_SCHEDULE_CARRY_ACCUMULATOR_H
#define SDC_PASSES_SCHEDULE_CARRY_ACCUMULATOR_H

#include "ir/build.h"

/* A wait behind which at most `pending` dots are in flight; its op. */
Op *build_dot_wait(Builder *b, Value **dots, int n, int64_t pending);

/* Carries value i of the loop, which is dot_carried(dot), in flight: the dot's wait goes,
   another stands behind the loop, and one in each arm of a condition that reads it. */
void carry_accumulator(Op *loop, int i, Op *dot);

#endif
