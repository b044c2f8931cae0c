/* Explains in words what the passes for a GPU have decided about a kernel. */
#ifndef SDC_PASSES_SCHEDULE_EXPLAIN_H
#define SDC_PASSES_SCHEDULE_EXPLAIN_H

#include "ir/ir.h"

/* Prints the schedule of f, whose shared memory has been placed. */
void schedule_print(Buf *out, const Func *f);
/* Prints a line for each pipelined loop, load of a loop, and dot. */
void schedule_print_lines(Buf *out, const Func *f);

#endif
