/* What operations cost: time relative to one another, an estimate that decides what is
   recomputed and what is kept, and the size of their code. The table is
   passes/cost.def. */
#ifndef SDC_PASSES_COST_H
#define SDC_PASSES_COST_H

#include "ir/ir.h"

/* Work from this cost on is worth a buffer or a branch to save it. */
enum { OP_COSTLY = 24 };

/* Cost of the op for one element, without its regions; an addition costs 1. */
int op_cost(const Op *op);

/* Estimated number of instructions per thread of a GPU, for an op or the ops of a region.
   Tiles have layouts; an access counts once for each contiguous run. depth: 0 */
int64_t op_code(const Op *op, int depth);
int64_t region_code(const Region *r, int depth);

#endif
