/* Left operands of wgmma that lie in shared memory as the unit does not read them: the
   threads read them, a step of the inner dimension at a time, while the steps before are
   multiplied (codegen/gen_nv_left.c). */
#ifndef SDC_IR_PLAN_WGMMA_LEFT_H
#define SDC_IR_PLAN_WGMMA_LEFT_H

#include "ir/ir.h"

enum { WGMMA_STEP_BYTES = 32 }; /* of the inner dimension, which one instruction takes */

/* Is that so of this wgmma? Of bytes whose accumulator has its rows in pairs, and of
   elements of four bytes that lie across the inner dimension. */
bool wgmma_by_steps(const Op *wgmma);
/* Its steps, each a commit group of its own; 1 of any other wgmma. */
int wgmma_groups(const Op *wgmma);

#endif
