/* How a scan is cut up among threads: for placement, which must know its scratch memory,
   and for code generation.

   Along the scanned axis, from its lowest bit up, a layout is scannable when first come
   bits of the register's number, then of the lane's, then of the warp's, then again of
   the register's; each group may be empty. A thread then holds chunks of 1 << inner
   consecutive elements, 1 << outer of them for each line that it takes part in. */
#ifndef SDC_IR_PLAN_SCAN_PLAN_H
#define SDC_IR_PLAN_SCAN_PLAN_H

#include "ir/ir.h"
#include "ir/layout.h"

typedef struct ScanPlan {
    const Layout *work; /* the layout that is scanned in */
    bool moved;         /* the operands or results have another one */
    bool reverse;
    int inner, lanes, warps, outer; /* bits of the axis in each group */
    int lane_bit, warp_bit;         /* the lowest of theirs; they follow each other */
    int inner_bit[LAYOUT_MAX_BITS], outer_bit[LAYOUT_MAX_BITS];
} ScanPlan;

void scan_plan(Session *s, const Op *op, ScanPlan *out);
/* Bytes of scratch memory; where in it the k-th tile is when it moves, and the k-th
   tile's sums of warps. */
int64_t scan_bytes(const Op *op, const ScanPlan *p);
int64_t scan_tile_offset(const Op *op, int k);
int64_t scan_sum_offset(const Op *op, const ScanPlan *p, int k);

#endif
