/* How a loop is software-pipelined: attributes of the loop that stage-plan gives it,
   other passes change (fewer stages where memory is short), stage-expand and specialize
   build by and hand on to what they make of the loop. `--explain` prints them: there is
   no other account of what was chosen. */
#ifndef SDC_IR_PLAN_PIPELINE_H
#define SDC_IR_PLAN_PIPELINE_H

#include "ir/ir.h"

typedef struct Pipeline {
    int stages;  /* buffers of a load; of a loop that is not pipelined what was asked for,
                    0: nothing was */
    int ahead;   /* iterations that its loads are issued ahead, fewer than stages; 0: none
                    are, or a producer issues them */
    int pending; /* dots in flight over the end of an iteration */
} Pipeline;

Pipeline pipeline_of(const Op *loop);
void pipeline_set(Session *s, Op *loop, Pipeline p);
/* Is it a loop with loads that are issued ahead of it? */
bool loop_is_pipelined(const Op *op);
/* `to` is made of `from`: the same pipeline, and why it has no roles. */
void pipeline_hand_on(Session *s, const Op *from, Op *to);

#endif
