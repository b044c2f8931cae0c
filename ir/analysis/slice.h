/* Slices: the ops that a copy of a region needs in order to compute some values, with the
   loops and conditions around those ops and what these carry. Passes that issue loads
   ahead of their loop, or in a role of their own, copy such a slice. */
#ifndef SDC_IR_ANALYSIS_SLICE_H
#define SDC_IR_ANALYSIS_SLICE_H

#include "ir/base/map.h"
#include "ir/base/vec.h"
#include "ir/build.h"
#include "ir/ir.h"

typedef struct Slice Slice;

/* Called for every value a slice depends on. True: the slice computes v, and so what v
   needs belongs to it; false: v is given. Setting sl->why refuses the slice because of
   v. */
typedef bool SliceEnter(Slice *sl, const Value *v);

struct Slice {
    Arena *arena;
    const Region *within; /* values from outside of it are given */
    SliceEnter *enter;    /* NULL: everything inside is computed */
    void *user;
    const char *why; /* why there is no slice; NULL: there is one so far */
    Map ops;         /* Op -> itself */
    Map values;      /* Value -> itself: computed or given. For a value that a loop
                        carries its argument, for a condition its result */
    Vec(Value *) work;
};

void slice_init(Slice *sl, Arena *arena, const Region *within, SliceEnter *enter,
                void *user);
/* Adds what v, or control flow at the place of op, needs. False: sl->why; all later calls
   return false, too. */
bool slice_add(Slice *sl, Value *v);
bool slice_add_control(Slice *sl, Op *op);
/* Adds the operands of op and of all ops inside of it. */
bool slice_add_operands(Slice *sl, Op *op);

/* Copies op to b: of a condition only the results, and of regions only the ops, that
   belong to the slice. map: values of the slice -> their copies. */
void slice_clone(const Slice *sl, Builder *b, Op *op, Map *map);

static inline bool
slice_has(const Slice *sl, const Op *op)
{
    return map_has(&sl->ops, op);
}

#endif
