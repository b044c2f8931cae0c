/* Loops that count up by a constant, which most passes over loops ask for: the numbers of
   such a loop are lo, lo + step, .. below hi. */
#ifndef SDC_IR_LOOP_H
#define SDC_IR_LOOP_H

#include "ir/build.h"

/* The constant that a `for` loop counts up by; 0: it counts down, or the step is not
   known. */
int64_t loop_step(const Op *loop);

/* i1: does a loop that counts up have an iteration of number iv? */
Value *build_iteration_exists(Builder *b, const Op *loop, Value *iv);
/* i1: has it any iteration? */
Value *build_loop_runs(Builder *b, const Op *loop);

#endif
