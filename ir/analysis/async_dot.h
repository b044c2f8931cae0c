/* Dots that go on while the threads do (ir/async.def): what passes ask of them, and of
   the waits that hand their results out. Which operation it is, those know alone that
   make it, place its waits or generate its code.

   While it is under way nobody may write what it reads in shared memory
   (dot_reads_shared), nor the registers of its left operand or its accumulator. It is
   over behind a wait that lets at most so many later ones be under way (wait_pending). */
#ifndef SDC_IR_ANALYSIS_ASYNC_DOT_H
#define SDC_IR_ANALYSIS_ASYNC_DOT_H

#include "ir/ir.h"

/* Operands of what has T_DOT. */
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

/* Is operand i read from shared memory? */
bool dot_reads_shared(const Op *dot, int i);
/* The type of an accumulator, under way or not, as a tile. */
const Type *dot_tile(const Type *t);

/* Are both operands of a dot, of any unit, 8-bit floats? */
bool dot_of_fp8(const Op *dot);

/* The wait that alone takes the dot's result, in the dot's block; NULL: none. */
Op *dot_wait(const Op *dot);
/* The same, where all dots are over behind it. */
Op *dot_full_wait(const Op *dot);
/* The dot that a wait is for; NULL: none, or several. */
Op *wait_dot(const Op *wait);
/* How many groups may be under way behind a wait of any queue: the last ones issued. */
int64_t wait_pending(const Op *wait);
/* The dot in the same block to whose result, waited for or not, this one adds; NULL. */
Op *dot_added_to(const Op *dot);
/* The dot in the same block that alone takes this one's result, waited for in full or
   not, and adds to it; NULL. */
Op *dot_adding_to(const Op *dot);

/* Asynchronous dots from `first` to in front of `end` in their block; NULL: its end. */
int dots_between(const Op *first, const Op *end);
/* Those of a region and of the regions in it. */
int dots_within(const Region *r);

/* Does v become an operand of a dot, as it is or by way of work on its elements and
   through shared memory, by ops of that block alone (NULL: of any)? `async`: of an
   asynchronous dot; else of any, and what is in shared memory is for dots. */
bool value_feeds_dot(const Value *v, const Region *block, bool async);

#endif
