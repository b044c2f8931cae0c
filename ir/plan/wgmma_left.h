/* Left operands of wgmma that lie in shared memory in a form that the instruction cannot
   read: threads read them, one step of the inner dimension at a time, while earlier steps
   are being multiplied (codegen/gen_nv_left.c). */
#ifndef SDC_IR_PLAN_WGMMA_LEFT_H
#define SDC_IR_PLAN_WGMMA_LEFT_H

#include "ir/ir.h"

enum { WGMMA_STEP_BYTES = 32 }; /* of the inner dimension, which one instruction takes */

/* Is this such a wgmma? So are operands of bytes whose accumulator has its rows in pairs,
   and of four-byte elements that are not contiguous along the inner dimension. */
bool wgmma_by_steps(const Op *wgmma);
/* Its number of steps, each of which is a commit group; 1 for any other wgmma. */
int wgmma_groups(const Op *wgmma);

#endif
