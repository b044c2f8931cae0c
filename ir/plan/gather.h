/* A gather inside of each warp, by shuffles: the index chooses the lane and, where a lane
   holds a few elements along the axis, the register. It takes neither shared memory nor
   a barrier. */
#ifndef SDC_IR_PLAN_GATHER_H
#define SDC_IR_PLAN_GATHER_H

#include "ir/ir.h"
#include "ir/layout.h"

typedef struct GatherPlan {
    uint32_t lanes;               /* lane bits that the index chooses; the others stay */
    int bits;                     /* of an index */
    int8_t lane[LAYOUT_MAX_BITS]; /* the lane bit of each, or -1 */
    int8_t reg[LAYOUT_MAX_BITS];  /* the register bit of each, or -1 */
    /* the register of the source beside each bit of a register of the result */
    uint32_t beside[LAYOUT_MAX_BITS];
} GatherPlan;

/* False where other warps hold elements of the line, or shared memory is cheaper. */
bool gather_in_warp(const Op *op, GatherPlan *out);

#endif
