/* Rings: buffers of several stages, and the mbarriers that tell which stage is full or
   free. Used by loops that issue their loads themselves (stage_expand.c), by roles
   (specialize_build.c) and for tiles that threads store to two buffers
   (double_buffer.c). */
#ifndef SDC_PASSES_SCHEDULE_CHANNEL_H
#define SDC_PASSES_SCHEDULE_CHANNEL_H

#include "ir/base/map.h"
#include "ir/build.h"

/* A position in a ring: the stage, and the phase of its barrier (NULL: nothing waits). */
typedef struct PipelineState {
    Value *stage, *phase;
} PipelineState;

enum { CHANNEL_ANY = -1 };

/* A buffer with `stages` stages of the type `one`; or `stages` mbarriers, each of which
   completes a phase after `arrivals` arrivals. */
Value *channel_buffer(Builder *b, const Type *one, int stages);
Value *channel_bars(Builder *b, int stages, int arrivals);

/* One stage of a buffer or of mbarriers. ahead: how many iterations of the loop around it
   later the stage is used, so that insert-barriers can tell it from the stages of other
   iterations; CHANNEL_ANY: not known. mem: type of what lies in the stage; NULL: the
   buffer's. */
Value *channel_stage(Builder *b, Value *of, Value *stage, int ahead, const Type *mem);
void channel_wait(Builder *b, Value *bars, PipelineState at, int ahead);
PipelineState channel_next(Builder *b, PipelineState at, int stages);

/* channel_expect: the barrier waits for that many bytes, if pred holds (NULL: always).
   channel_copy: the TMA copy that does the work of a desc_load; its operands are looked
   up in `map`. */
void channel_expect(Builder *b, Value *bar, int64_t bytes, Value *pred);
Op *channel_copy(Builder *b, const Op *load, Value *mem, Value *bar, const Map *map,
                 Value *pred);

#endif
