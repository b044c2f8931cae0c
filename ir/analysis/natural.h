/* Numbers that are 0 or more because of what they are computed from: program ids, loop
   counters, constants, and sums, products and quotients of these. Integers are assumed
   not to wrap, as for addresses (ir/analysis/affine.h), and divisors to be positive, as
   numbers of tiles are. */
#ifndef SDC_IR_ANALYSIS_NATURAL_H
#define SDC_IR_ANALYSIS_NATURAL_H

#include "ir/analysis/axis.h"

/* Is the scalar, or every element of the tile, 0 or more? */
bool natural_is(Axis *axis, const Value *v);

#endif
