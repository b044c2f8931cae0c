/* What the region of a reduction or scan computes. */
#ifndef SDC_IR_ANALYSIS_REDUCTION_H
#define SDC_IR_ANALYSIS_REDUCTION_H

#include "ir/ir.h"

/* The operation by which a reduce or scan of one operand combines two elements, where its
   region is that operation on its two arguments and nothing else: x, y -> x + y. NULL:
   the region computes something else. */
const Op *reduction_operation(const Op *reduce);

#endif
