/* Persistent kernels (passes/schedule/persist.c), as other passes know them. */
#ifndef SDC_PASSES_SCHEDULE_PERSIST_H
#define SDC_PASSES_SCHEDULE_PERSIST_H

#include "ir/ir.h"
#include "ir/target.h"

/* So many bytes one program alone has to have under way. */
enum { PERSIST_BYTES = 96 << 10 };

/* Is the kernel one accumulator of dots, as long for every tile, in any order? The loop
   may have been planned (passes/schedule/stage_plan.c) or not; no other has. */
bool persist_suits(Func *f, const TargetInfo *target, const Op *loop);

#endif
