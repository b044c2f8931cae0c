/* Dots that add to one accumulator, one behind the other, are waited for once. */
#ifndef SDC_PASSES_SCHEDULE_JOIN_SUMS_H
#define SDC_PASSES_SCHEDULE_JOIN_SUMS_H

#include "ir/ir.h"

/* In the block r, not in regions inside of it. */
bool join_sums(Region *r);

#endif
