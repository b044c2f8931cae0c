/* What pass licm does about loads. */
#ifndef SDC_PASSES_SIMPLIFY_LICM_LOADS_H
#define SDC_PASSES_SIMPLIFY_LICM_LOADS_H

#include "ir/ir.h"

/* Moves loads that give the same in every iteration in front of a `for` loop. */
bool licm_loads(Op *loop);

#endif
