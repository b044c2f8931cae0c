/* Persistent kernels (passes/schedule/persist.c), for the other passes. */
#ifndef SDC_PASSES_SCHEDULE_PERSIST_H
#define SDC_PASSES_SCHEDULE_PERSIST_H

#include "ir/ir.h"
#include "ir/target.h"

/* Bytes that a program which is alone on its SM must have in flight. */
enum { PERSIST_BYTES = 96 << 10 };

/* May the kernel become persistent: one loop of dots whose length is the same for every
   tile, and tiles that may run in any order? The loop may have been planned
   (passes/schedule/stage_plan.c) or not; no other loop has been. */
bool persist_suits(Func *f, const TargetInfo *target, const Op *loop);

#endif
