/* How many bytes the buffers of shared memory take. */
#ifndef SDC_IR_BUFFER_H
#define SDC_IR_BUFFER_H

#include "ir/type.h"

/* Where a tensor copy by TMA may begin. */
enum { TMA_SHARED_ALIGN = 128 };

/* Bytes of an element in shared memory: i1 is a byte, a pointer eight. */
int shared_elem_bytes(const Type *t);

/* Of one stage of a buffer, from one stage to the next (which begins where TMA can
   write), and of all of it. */
int64_t shared_stage_bytes(const Type *mem);
int64_t shared_stage_stride(const Type *mem);
int64_t shared_buffer_bytes(const Type *mem);

#endif
