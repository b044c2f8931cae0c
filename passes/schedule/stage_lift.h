/* Loads that a loop has inside of conditions: see stage_lift.c. */
#ifndef SDC_PASSES_SCHEDULE_STAGE_LIFT_H
#define SDC_PASSES_SCHEDULE_STAGE_LIFT_H

#include "ir/analysis/param.h"
#include "ir/base/vec.h"
#include "ir/build.h"

/* Where an op stood: in front of `next`; and the mask that a load had. */
typedef struct Lifted {
    Op *op, *next;
    Value *mask;
} Lifted;

typedef struct Lift {
    Session *s;
    const Region *body;
    const Writes *writes; /* of the loop */
    Vec(Op *) loads;      /* of tiles, inside of conditions of the body */
    Vec(Lifted) moved;    /* by the last stage_lift, in this order */
} Lift;

void stage_lift_find(Lift *l, Session *s, const Op *loop, const Writes *writes);
/* Moves the load in front of the conditions that it is in. False: it cannot be moved. */
bool stage_lift(Lift *l, Op *load);
/* Moves all that back. */
void stage_lift_undo(Lift *l);

#endif
