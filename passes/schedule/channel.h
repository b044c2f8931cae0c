/* Buffers of several stages, and the barriers that tell which stage is full or free: what
   loops that issue their loads themselves (stage_expand.c), roles (specialize_build.c)
   and tiles that threads leave in two buffers (double_buffer.c) have in common. */
#ifndef SDC_PASSES_SCHEDULE_CHANNEL_H
#define SDC_PASSES_SCHEDULE_CHANNEL_H

#include "ir/base/map.h"
#include "ir/build.h"

/* Which stage comes next, and the phase of its barrier (NULL: nobody asks). */
typedef struct PipelineState {
    Value *stage, *phase;
} PipelineState;

enum { CHANNEL_ANY = -1 };

/* So many stages of a buffer of the type `one`, or of barriers that so many arrivals
   complete. */
Value *channel_buffer(Builder *b, const Type *one, int stages);
Value *channel_bars(Builder *b, int stages, int arrivals);

/* That stage of either. ahead: of which iteration of the loop around it, counted from
   this one, so that barriers need not assume that two stages are one; CHANNEL_ANY: that
   is not known. mem: the type of what lies in this stage; NULL: the buffer's. */
Value *channel_stage(Builder *b, Value *of, Value *stage, int ahead, const Type *mem);
void channel_wait(Builder *b, Value *bars, PipelineState at, int ahead);
PipelineState channel_next(Builder *b, PipelineState at, int stages);

/* So many bytes will come, if pred (NULL: in any case); then the copies by TMA of what
   desc_loads would bring, their operands through `map` where they are in it. */
void channel_expect(Builder *b, Value *bar, int64_t bytes, Value *pred);
Op *channel_copy(Builder *b, const Op *load, Value *mem, Value *bar, const Map *map,
                 Value *pred);

#endif
