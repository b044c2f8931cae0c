/* Which numbers are 0 or more because of what they are made from: program ids, loop
   variables, constants, and sums, products and quotients of these. A number that wraps is
   taken for one that does not, as for addresses (ir/analysis/affine.h), and what is
   divided by for positive, as numbers of tiles are. */
#ifndef SDC_IR_ANALYSIS_NATURAL_H
#define SDC_IR_ANALYSIS_NATURAL_H

#include "ir/analysis/axis.h"

/* Is the scalar, or every element of the tile, 0 or more? */
bool natural_is(Axis *axis, const Value *v);

#endif
