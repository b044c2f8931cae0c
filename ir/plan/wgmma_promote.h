/* Sums of a wgmma of 8-bit floats that threads add to fp32 ones: {max_imprecise} of the
   inner dimension and so many columns at a time (codegen/gen_nv_wgmma.c).

   64 columns: an instruction of fewer reads more of the left operand from shared memory
   than shared memory gives while it multiplies. */
#ifndef SDC_IR_PLAN_WGMMA_PROMOTE_H
#define SDC_IR_PLAN_WGMMA_PROMOTE_H

#include "ir/ir.h"

enum { WGMMA_PIECE = 64 };

/* 32-bit registers of a block of threads for the sums of pieces, of which one is added
   while the next one is under way; 0 of a wgmma without pieces. */
int wgmma_piece_registers(const Op *wgmma);
/* Rows of a left operand that threads read (wgmma_left.h) of which they have a part at a
   time: 64 for each warpgroup along them with pieces, else all. */
int64_t wgmma_rows_at_once(const Op *wgmma);

#endif
