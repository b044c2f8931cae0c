/* How a loop is software-pipelined. These are attributes of the loop: stage-plan sets
   them, other passes change them (fewer stages where memory is short), and stage-expand
   and specialize build by them and pass them on to the loops they make. `--explain`
   prints them; there is no other record of what was chosen. */
#ifndef SDC_IR_PLAN_PIPELINE_H
#define SDC_IR_PLAN_PIPELINE_H

#include "ir/ir.h"

typedef struct Pipeline {
    int stages;  /* buffers of each load; of a loop that is not pipelined, the number that
                    was requested; 0: none was */
    int ahead;   /* iterations by which its loads are issued ahead, fewer than stages
                    (pipeline_is_whole: or as many); 0: they are not, or a producer
                    issues them */
    int pending; /* dots in flight over the end of an iteration */
} Pipeline;

Pipeline pipeline_of(const Op *loop);
void pipeline_set(Session *s, Op *loop, Pipeline p);
/* Does the loop have loads that are issued ahead? */
bool loop_is_pipelined(const Op *op);
/* Are the loads of all iterations issued in front of the loop? Then its stages are filled
   once, and more of them than iterations would be of no use. */
bool pipeline_is_whole(const Op *loop);
/* `to` replaces `from`: it gets the same attributes, and the reason for having no
   roles. */
void pipeline_hand_on(Session *s, const Op *from, Op *to);

#endif
