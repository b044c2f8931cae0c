/* Sums of a wgmma of 8-bit floats that threads add to fp32 ones: {max_imprecise} of the
   inner dimension and so many columns, a piece, at a time (codegen/gen_nv_wgmma.c).

   Each instruction reads its left operand from shared memory: of 128x256x128, 640 of the
   cycles that 1024 cycles of multiplying have in whole rows, 768 in pieces of 128
   columns, 1024 in pieces of 64, and copies to come take 384 more. So pieces have 128
   columns where another warpgroup multiplies while one adds. One alone adds a piece of
   64 while the next one is under way, in as many registers. */
#ifndef SDC_IR_PLAN_WGMMA_PROMOTE_H
#define SDC_IR_PLAN_WGMMA_PROMOTE_H

#include "ir/ir.h"

/* Columns of a piece, and how many pieces have registers at a time; 0 of a wgmma without
   pieces. */
int wgmma_piece(const Op *wgmma, int *at_once);
/* 32-bit registers of a block of threads for the sums of pieces; 0 of a wgmma without. */
int wgmma_piece_registers(const Op *wgmma);
/* Rows of a left operand that threads read (wgmma_left.h) of which they have a part at a
   time: 64 for each warpgroup along them with pieces, else all. */
int64_t wgmma_rows_at_once(const Op *wgmma);

#endif
