/* Shared memory that an operation needs while it runs, on top of its operands: a
   conversion between threads passes its tile through it, a reduction its warps' parts.
   One answer for placement (passes/finish/alloc_shared.c), barriers and code generation.
   */
#ifndef SDC_IR_PLAN_SCRATCH_H
#define SDC_IR_PLAN_SCRATCH_H

#include "ir/buffer.h"
#include "ir/ir.h"
#include "ir/plan/swizzle.h"
#include "ir/target.h"

/* 0: none. Needs layouts. */
int64_t scratch_bytes(const Op *op, const TargetInfo *t);
/* The same for the operations in ir/plan/scratch_ops.c. */
int64_t scratch_bytes_of_op(const Op *op);
/* gather, histogram: where the second operand goes when its layout does not suit. */
int64_t second_offset(const Op *op);
/* Does every warp stay in a part of the scratch memory of its own? */
bool scratch_in_warp(const Op *op, const TargetInfo *t);

/* A conversion that shuffles can do as well, for more instructions and no memory. */
bool scratch_can_shuffle(const Op *op);

/* How a convert_layout goes through shared memory, if it does. */
Exchange convert_exchange(const Op *op, const TargetInfo *t);

/* Bits of the warp's number along which a reduction combines different elements. */
uint32_t reduce_warp_bits(const Op *op);
/* Where the k-th tile of a reduction has its parts: [element of the result][warp], the
   warp's number without the bits that do not count. */
int64_t reduce_part_offset(const Op *op, int k);

#endif
