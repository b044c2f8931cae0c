/* What operations cost: their time beside one another, a guess that decides what is
   computed again and what is kept, and the code that they become. The table is
   passes/cost.def. */
#ifndef SDC_PASSES_COST_H
#define SDC_PASSES_COST_H

#include "ir/ir.h"

/* Work that costs more is worth a buffer or a branch to save it. */
enum { OP_COSTLY = 24 };

/* Of an element of the op alone; an addition costs 1. */
int op_cost(const Op *op);

/* Instructions that a thread of a GPU has for an op, or the ops of a region: a guess.
   Tiles have layouts, runs of memory count as long as an access. depth: 0 */
int64_t op_code(const Op *op, int depth);
int64_t region_code(const Region *r, int depth);

#endif
