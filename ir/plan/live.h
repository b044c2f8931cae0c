/* When shared memory is in use: for every op that owns some (buffers, barriers, scratch
   memory), the range of program order in which its contents matter. */
#ifndef SDC_IR_PLAN_LIVE_H
#define SDC_IR_PLAN_LIVE_H

#include "ir/ir.h"
#include "ir/target.h"

typedef struct LiveRange {
    Op *op;
    int64_t bytes;
    int first, last; /* both included */
    /* The region of the role that it belongs to, or NULL. Roles of one warp_specialize
       run concurrently, wherever they stand. */
    const Region *role;
} LiveRange;

/* Can both be in use at the same time? */
bool live_together(const LiveRange *a, const LiveRange *b);

/* All live ranges in program order; the array is in `arena`. */
int live_ranges(Func *f, const TargetInfo *t, Arena *arena, LiveRange **out);

#endif
