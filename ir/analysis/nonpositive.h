/* Exponentials of x - max(x), as in a softmax. */
#ifndef SDC_IR_ANALYSIS_NONPOSITIVE_H
#define SDC_IR_ANALYSIS_NONPOSITIVE_H

#include "ir/ir.h"

/* Is the operand of this exp or exp2 of tiles never above 0 (or NaN), because it is what
   a maximum over the same elements leaves? Where the maximum is an element of theirs,
   that element's exponential is 1. */
bool nonpositive_exponent(const Op *op);

#endif
