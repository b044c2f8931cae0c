/* What pass unroll shares between its files. */
#ifndef SDC_PASSES_SCHEDULE_UNROLL_H
#define SDC_PASSES_SCHEDULE_UNROLL_H

#include "ir/base/arena.h"
#include "ir/ir.h"

/* Can op, an if in a loop, be flattened: its arms load, and do little else? Adds the
   registers that a thread loads and the instructions to *loaded and *code. */
bool unroll_flat_if(const Op *op, int64_t *loaded, int64_t *code);

/* Flattens all ifs of a loop that can be: loads get the condition as a mask, and results
   are selected. */
void unroll_flatten(Op *loop);

/* How many iterations a loop has that is better written out completely; 0: it is not. */
int unroll_whole(Arena *arena, const Op *loop);

/* Registers of a thread for a load's result. */
int64_t unroll_loaded(const Op *load);

#endif
