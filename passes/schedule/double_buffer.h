/* What has two buffers, for all that estimate shared memory. */
#ifndef SDC_PASSES_SCHEDULE_DOUBLE_BUFFER_H
#define SDC_PASSES_SCHEDULE_DOUBLE_BUFFER_H

#include "ir/ir.h"

/* Does op fill a buffer, in its block alone, for asynchronous dots there? In a loop it
   has two where there is room. */
bool is_double_buffered(const Op *op);

#endif
