/* A load that is done once more, for another iteration of its loop. */
#ifndef SDC_PASSES_SCHEDULE_CARRY_LOADS_H
#define SDC_PASSES_SCHEDULE_CARRY_LOADS_H

#include "ir/base/map.h"
#include "ir/build.h"

/* `mask`, or all elements of what is `like` a tile or scalar, where `pred` holds. */
Value *mask_where(Builder *b, Value *pred, Value *mask, const Type *like);
/* A copy of the load in front of b: where `pred` holds, with operands that `map` has. */
Op *load_where(Builder *b, const Op *load, const Map *map, Value *pred);

#endif
