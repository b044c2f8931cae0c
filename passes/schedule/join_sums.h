/* Dots that add to one accumulator, one behind the other, are waited for once. */
#ifndef SDC_PASSES_SCHEDULE_JOIN_SUMS_H
#define SDC_PASSES_SCHEDULE_JOIN_SUMS_H

#include "ir/ir.h"

/* In the block r, not in regions inside of it. `early`: stages of rings that a dot reads
   are released when it is done, behind the issue of the next one; else when all are. */
bool join_sums(Region *r, bool early);

#endif
