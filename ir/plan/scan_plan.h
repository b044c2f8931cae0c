/* How a scan is divided among threads: for placement, which must know its scratch memory,
   and for code generation.

   A layout can be scanned if the bits along the scanned axis, from the lowest up, are
   bits of the register number, then of the lane, then of the warp, then again of the
   register; each group may be empty. A thread then holds chunks of 1 << inner consecutive
   elements, and 1 << outer chunks of each line that it takes part in. */
#ifndef SDC_IR_PLAN_SCAN_PLAN_H
#define SDC_IR_PLAN_SCAN_PLAN_H

#include "ir/ir.h"
#include "ir/layout.h"

typedef struct ScanPlan {
    const Layout *work; /* the layout in which the scan is done */
    bool moved;         /* operands or results have another layout */
    bool in_turn;       /* tiles are moved one after the other, through the same memory */
    bool reverse;
    int inner, lanes, warps, outer; /* bits of the axis in each group */
    int lane_bit, warp_bit;         /* the lowest bit of each; the others follow */
    int inner_bit[LAYOUT_MAX_BITS], outer_bit[LAYOUT_MAX_BITS];
} ScanPlan;

void scan_plan(Session *s, const Op *op, ScanPlan *out);
/* The same if operands and results had layout l. */
void scan_plan_in(Session *s, const Op *op, const Layout *l, ScanPlan *out);
/* The layout in which each thread has as many neighbours along the axis as it can. */
const Layout *scan_axis_first(Session *s, const Op *op);
/* Bytes of scratch memory, and the offsets in it of the k-th tile, if it is converted,
   and of the k-th tile's partial results of warps. */
int64_t scan_bytes(const Op *op, const ScanPlan *p);
int64_t scan_tile_offset(const Op *op, const ScanPlan *p, int k);
int64_t scan_sum_offset(const Op *op, const ScanPlan *p, int k);

#endif
