/* A copy of a load for another iteration of its loop. */
#ifndef SDC_PASSES_SCHEDULE_CARRY_LOADS_H
#define SDC_PASSES_SCHEDULE_CARRY_LOADS_H

#include "ir/base/map.h"
#include "ir/build.h"

/* A copy of the load at b, masked by `pred`; its operands are looked up in `map`. */
Op *load_where(Builder *b, const Op *load, const Map *map, Value *pred);

#endif
