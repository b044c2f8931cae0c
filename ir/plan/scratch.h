/* Shared memory that an op needs while it runs, beside its operands: a layout conversion
   between threads passes its tile through it, a reduction the partial results of warps.
   Placement (passes/finish/alloc_shared.c), barriers and code generation all ask here. */
#ifndef SDC_IR_PLAN_SCRATCH_H
#define SDC_IR_PLAN_SCRATCH_H

#include "ir/buffer.h"
#include "ir/ir.h"
#include "ir/plan/swizzle.h"
#include "ir/target.h"

/* Bytes of scratch memory; 0: none. Tiles must have layouts. */
int64_t scratch_bytes(const Op *op, const TargetInfo *t);
/* The same for the operations in ir/plan/scratch_ops.c. */
int64_t scratch_bytes_of_op(const Op *op);
/* gather, histogram: offset of the second operand, if its layout does not fit the op. */
int64_t second_offset(const Op *op);
/* Does every warp only use a part of the scratch memory of its own? */
bool scratch_in_warp(const Op *op, const TargetInfo *t);

/* Can shuffles do the conversion as well, with more instructions but without memory? */
bool scratch_can_shuffle(const Op *op);

/* How a convert_layout goes through shared memory, if it does. */
Exchange convert_exchange(const Op *op, const TargetInfo *t);

/* Is this the condition of a loop that each thread runs for its own elements (ATTR_OWN)?
   Nothing in such a loop needs other threads, and it carries no scalars. */
bool reduce_is_own(const Op *op);

/* Bits of the warp number along which a reduction combines different elements. */
uint32_t reduce_warp_bits(const Op *op);
/* Offset of the partial results of the k-th tile of a reduction: [element of the
   result][warp], where the warp number has only the bits of reduce_warp_bits; with
   reduce_in_two [warp][element]. */
int64_t reduce_part_offset(const Op *op, int k);
/* Does each thread combine the parts of few results, which all threads read then? Else
   each combines those of all results that it has, without a second barrier. */
bool reduce_in_two(const Op *op);
/* With reduce_in_two: offset of the results of the k-th tile. */
int64_t reduce_result_offset(const Op *op, int k);
/* How threads hold the results that they combine. */
const Layout *reduce_first_layout(const Op *op);

#endif
