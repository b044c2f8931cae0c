/* Asynchronous dots (ir/async.def), which run while the threads go on: what passes ask
   about them, and about the waits that turn their results into tiles. Only the passes
   that make them or place their waits, and code generation, know which operations these
   are.

   While such a dot is in flight nothing may write what it reads in shared memory
   (dot_reads_shared), nor the registers of its left operand or its accumulator. It is
   complete behind a wait that allows at most as many dots in flight as were issued after
   it (wait_pending). */
#ifndef SDC_IR_ANALYSIS_ASYNC_DOT_H
#define SDC_IR_ANALYSIS_ASYNC_DOT_H

#include "ir/ir.h"

/* Operands of ops with the trait T_DOT. */
enum { DOT_LEFT, DOT_RIGHT, DOT_ACC };

static inline bool
op_is_async_dot(const Op *op)
{
    return opkind_issues(op->kind) == QUEUE_DOT;
}

static inline bool
op_is_dot_wait(const Op *op)
{
    return opkind_waits(op->kind) == QUEUE_DOT;
}

/* Does the dot read operand i from shared memory? */
bool dot_reads_shared(const Op *dot, int i);
/* The type of an accumulator as a tile, whether it is in flight or not. */
const Type *dot_tile(const Type *t);

/* Are both operands of a dot, of any unit, 8-bit floats? */
bool dot_of_fp8(const Op *dot);

/* The wait in the dot's block that is the only user of the dot's result; NULL: none. */
Op *dot_wait(const Op *dot);
/* The same, if it waits until no dot is in flight. */
Op *dot_full_wait(const Op *dot);
/* The dot that a wait is for; NULL: there is none, or several. */
Op *wait_dot(const Op *wait);
/* What holds the dot's sums from then on: the result of dot_wait(dot), or, where the dot
   that adds to them (dot_adding_to) does not wait, the dot's own; NULL: neither. */
Value *dot_sums(const Op *dot);
/* How many groups, the last ones issued, may be in flight behind a wait of any queue. */
int64_t wait_pending(const Op *wait);
/* The dot in the same block to whose result, waited for or not, this one adds; NULL:
   none. */
Op *dot_added_to(const Op *dot);
/* The dot in the same block that is the only user of this one's result, waited for in
   full or not at all, and adds to it; NULL: none. */
Op *dot_adding_to(const Op *dot);

/* Number of asynchronous dots from `first` to before `end` in their block; NULL: to its
   end. */
int dots_between(const Op *first, const Op *end);
/* Number of asynchronous dots in a region and the regions inside of it. */
int dots_within(const Region *r);

/* Does v become an operand of a dot, directly or through elementwise work and shared
   memory, by ops of that block only (NULL: of any block)? `async`: only asynchronous dots
   count; else any dot does, and so does being stored to shared memory. */
bool value_feeds_dot(const Value *v, const Region *block, bool async);

#endif
