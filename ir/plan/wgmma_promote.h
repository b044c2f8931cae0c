/* Sums of wgmma on 8-bit floats that threads add to fp32 accumulators: {max_imprecise}
   elements of the inner dimension and one piece of the columns at a time
   (codegen/gen_nv_wgmma.c).

   Each instruction reads its left operand from shared memory again: for 128x256x128 that
   takes 640 of the 1024 cycles of multiplication with whole rows, 768 with pieces of 128
   columns, and 1024 with pieces of 64; copies of the next operands take 384 more. So
   pieces have 128 columns where another warpgroup multiplies while one adds. A single
   warpgroup adds a piece of 64 columns while the next one is in flight, in as many
   registers. */
#ifndef SDC_IR_PLAN_WGMMA_PROMOTE_H
#define SDC_IR_PLAN_WGMMA_PROMOTE_H

#include "ir/ir.h"

/* Columns of a piece; *at_once: how many pieces have registers at a time. 0: the wgmma
   has no pieces. */
int wgmma_piece(const Op *wgmma, int *at_once);
/* 32-bit registers of all threads for the sums of pieces; 0: the wgmma has no pieces. */
int wgmma_piece_registers(const Op *wgmma);
/* Rows of a left operand that threads read (wgmma_left.h) of which they have a part at a
   time: 64 for each warpgroup along them with pieces, else all. */
int64_t wgmma_rows_at_once(const Op *wgmma);
/* Does a wgmma with pieces fence its threads' reads of the left operand itself? Behind
   the op the fence would be waited for when nothing is in flight. */
bool wgmma_fences(const Op *wgmma);

#endif
