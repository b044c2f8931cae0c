/* What operations cost beside one another: a guess that decides what is computed again
   and what is kept. */
#ifndef SDC_PASSES_COST_H
#define SDC_PASSES_COST_H

#include "ir/ir.h"

/* Work that costs more is worth a buffer or a branch to save it. */
enum { OP_COSTLY = 24 };

/* Of an element of the op alone; an addition costs 1. */
int op_cost(const Op *op);

#endif
