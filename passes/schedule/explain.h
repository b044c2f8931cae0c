/* What the passes for a GPU have decided about a kernel, in words. */
#ifndef SDC_PASSES_SCHEDULE_EXPLAIN_H
#define SDC_PASSES_SCHEDULE_EXPLAIN_H

#include "ir/ir.h"

/* For tile IR whose offsets in shared memory are given. */
void schedule_print(Buf *out, const Func *f);
/* Pipelined loops, loads of loops, dots: a line each. */
void schedule_print_lines(Buf *out, const Func *f);

#endif
