/* Which tiles get two buffers; shared with the estimates of shared memory. */
#ifndef SDC_PASSES_SCHEDULE_DOUBLE_BUFFER_H
#define SDC_PASSES_SCHEDULE_DOUBLE_BUFFER_H

#include "ir/ir.h"

/* Does op store a tile to a buffer that only asynchronous dots in its own block read? In
   a loop such a tile gets two buffers if there is room. */
bool is_double_buffered(const Op *op);

#endif
