/* When shared memory is in use: for every op that owns some (buffers, barriers, scratch
   memory) the span of the program, in order of text, in which its contents matter. */
#ifndef SDC_IR_PLAN_LIVE_H
#define SDC_IR_PLAN_LIVE_H

#include "ir/ir.h"
#include "ir/target.h"

typedef struct LiveRange {
    Op *op;
    int64_t bytes;
    int first, last; /* both included */
    /* The region of a role that it belongs to, or NULL. Other roles of the same
       warp_specialize run at the same time, wherever they stand. */
    const Region *role;
} LiveRange;

/* May the two be in use at the same time? */
bool live_together(const LiveRange *a, const LiveRange *b);

/* In order of the text; the array is in `arena`. */
int live_ranges(Func *f, const TargetInfo *t, Arena *arena, LiveRange **out);

#endif
