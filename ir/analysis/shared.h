/* Which buffer in shared memory a value refers to: follows views, loops, conditions and
   the captures of roles back to the ops that allocate. */
#ifndef SDC_IR_ANALYSIS_SHARED_H
#define SDC_IR_ANALYSIS_SHARED_H

#include "ir/ir.h"

enum { STAGE_ANY = -1 };

typedef struct SharedRoot {
    const Op *alloc; /* local_alloc or bar_alloc */
    int64_t stage;   /* a constant, or STAGE_ANY: unknown, or there are no stages */
    /* The stage is that of `ahead` iterations later in this pipelined loop, modulo the
       stages. NULL: it is not. */
    const Op *loop;
    int ahead;
} SharedRoot;

/* All buffers or barriers that v may be; the array is in `arena`. */
int shared_roots(const Value *v, Arena *arena, SharedRoot **out);

static inline bool
type_is_shared(const Type *t)
{
    return t->kind == TY_MEM || t->kind == TY_BAR;
}

#endif
