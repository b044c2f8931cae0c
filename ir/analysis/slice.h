/* What values are computed from: the ops that a copy of a region needs in order to
   compute them, the loops and conditions around those, and what these carry. Passes that
   issue loads ahead of their loop, or by a role of their own, copy such a slice. */
#ifndef SDC_IR_ANALYSIS_SLICE_H
#define SDC_IR_ANALYSIS_SLICE_H

#include "ir/base/map.h"
#include "ir/base/vec.h"
#include "ir/build.h"
#include "ir/ir.h"

typedef struct Slice Slice;

/* Is v computed by the slice, and what it needs as well? False: it is given. A value that
   no slice may have is told in sl->why, and ends it. */
typedef bool SliceEnter(Slice *sl, const Value *v);

struct Slice {
    Arena *arena;
    const Region *within; /* what is defined outside of it is given */
    SliceEnter *enter;    /* NULL: all that is inside is computed */
    void *user;
    const char *why; /* there is none; NULL: so far there is */
    Map ops;         /* Op -> itself */
    Map values;      /* Value -> itself: computed or given. Of what a loop carries its
                        argument, of a condition its result */
    Vec(Value *) work;
};

void slice_init(Slice *sl, Arena *arena, const Region *within, SliceEnter *enter,
                void *user);
/* What v, or an op at this place, needs. False: sl->why, and all after that, too. */
bool slice_add(Slice *sl, Value *v);
bool slice_add_control(Slice *sl, Op *op);
/* What op takes, all that is in it included. */
bool slice_add_operands(Slice *sl, Op *op);

/* A copy of op in front of `b`, of a condition those results that the slice has, and what
   it has of its bodies. map: values of the slice -> their copies. */
void slice_clone(const Slice *sl, Builder *b, Op *op, Map *map);

static inline bool
slice_has(const Slice *sl, const Op *op)
{
    return map_has(&sl->ops, op);
}

#endif
