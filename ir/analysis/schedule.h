/* What the passes for a GPU have decided about a kernel, in words. */
#ifndef SDC_IR_ANALYSIS_SCHEDULE_H
#define SDC_IR_ANALYSIS_SCHEDULE_H

#include "ir/ir.h"

/* For tile IR whose places in shared memory are given. */
void schedule_print(Buf *out, const Func *f);

#endif
