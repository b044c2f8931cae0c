/* Exponentials of x - max(x), as in a softmax. */
#ifndef SDC_IR_ANALYSIS_NONPOSITIVE_H
#define SDC_IR_ANALYSIS_NONPOSITIVE_H

#include "ir/ir.h"

/* Is the operand of this exp or exp2 of tiles never above 0 (or NaN), because a maximum
   over the same elements is subtracted? If that maximum is one of the elements, the
   exponential of that element is 1. */
bool nonpositive_exponent(const Op *op);

#endif
