/* Loops that count up by a constant, which most passes over loops ask for: the numbers of
   such a loop are lo, lo + step, .. below hi. */
#ifndef SDC_IR_LOOP_H
#define SDC_IR_LOOP_H

#include "ir/build.h"

/* The constant that a `for` loop counts up by; 0: it counts down, or the step is not
   known, or so large that a few of them leave the type. */
int64_t loop_step(const Op *loop);

/* How many iterations a `for` loop has; -1: its bounds are not all constants. */
int64_t loop_trips(const Op *loop);

/* i1: has a loop with a known step a k-th iteration behind the one of number iv, which
   exists? Right for every bound: iv + k * step < hi, compared as signed numbers, would
   not be, as the sum may leave the type. Sum and difference are exact as unsigned
   numbers. */
Value *build_iteration_exists(Builder *b, const Op *loop, Value *iv, int k);
/* i1: has it a k-th iteration, counted from 0? */
Value *build_loop_reaches(Builder *b, const Op *loop, int k);

#endif
