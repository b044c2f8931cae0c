/* Buffers of loads that are issued ahead of their loop. */
#ifndef SDC_PASSES_SCHEDULE_STAGE_H
#define SDC_PASSES_SCHEDULE_STAGE_H

#include "ir/ir.h"

/* The buffer that a prefetched load fills: the one that its users want if they want
   any, else one that any of them can read. See passes/schedule/stage_expand.c. */
const Type *staged_buffer(Session *s, const Op *load);
/* Users of what a planned load brings read it from that buffer:
   passes/schedule/stage_read.c. */
void stage_read(Session *s, Op *load);

#endif
