/* Two iterations of a loop at once, so that the dots of one overlap with the work of the
   other. The schedule is data: each op of the body has {schedule=[stage, order]}. An op
   of stage 1 runs an iteration later than one of stage 0; `order` is its place among the
   ops of an iteration of the new loop, in which ops of equal order stay as they stand.

   Passes delay-dot and rotate-loop write schedules, form scheduled says that they hold
   (rotation_check.c), and stage-expand builds by them (rotation.c). */
#ifndef SDC_PASSES_SCHEDULE_ROTATION_H
#define SDC_PASSES_SCHEDULE_ROTATION_H

#include "ir/base/map.h"
#include "ir/ir.h"
#include "passes/forms.h"

void rotation_set(Session *s, Op *op, int stage, int order);
/* -1: op has no schedule. */
int rotation_stage(const Op *op);
int rotation_order(const Op *op);
/* The stage of the op of the body that computes v; of a carried value, of the op that
   computes it for the next iteration. 0: there is no such op. */
int rotation_stage_of(const Region *body, const Value *v);
/* Is the loop to be rotated? */
bool loop_is_rotated(const Op *loop);

/* Is op a write that a mask can keep from writing? */
bool writes_by_mask(const Op *op);

/* rotation_check.c: what is wrong with the schedule of a loop.
   rotation_hazard: why memory accesses forbid that ops of the body in `late`, and no
   others, run an iteration later; NULL: nothing forbids it. */
FormFault rotation_check(Session *s, const Op *loop);
const char *rotation_hazard(const Region *body, const Map *late);

/* Replaces a loop by what its schedule says. False: it has none. */
bool rotation_expand(Session *s, Op *loop);

#endif
