/* Buffers of loads that are issued ahead of their loop. */
#ifndef SDC_PASSES_SCHEDULE_STAGE_H
#define SDC_PASSES_SCHEDULE_STAGE_H

#include "ir/ir.h"

/* The type of the buffer that a prefetched load fills: the one that its users ask for,
   else one that any user can read. See passes/schedule/stage_expand.c. */
const Type *staged_buffer(Session *s, const Op *load);
/* Makes the users of a planned load read its value from that buffer:
   passes/schedule/stage_read.c. */
void stage_read(Session *s, Op *load);

/* Has the loop, none of several tiles, so few iterations that their loads are all issued
   in front of it, up to `ahead` of them? A stage for each is enough then. */
bool stage_once(Func *f, const TargetInfo *t, const Op *loop, int ahead);

#endif
