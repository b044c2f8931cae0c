/* How many neighbouring elements one atomic instruction takes: layouts give a thread as
   many, code generation joins them. Pairs of halves since sm_60, 16 bytes of floats since
   sm_90; integers, doubles and exchanges go one by one (PTX ISA, atom and red). */
#ifndef SDC_IR_PLAN_ATOMIC_RUN_H
#define SDC_IR_PLAN_ATOMIC_RUN_H

#include "ir/ir.h"
#include "ir/target.h"

/* Elements of one instruction for the atomic operation op on target t: a power of two. */
int atomic_run(const Op *op, const TargetInfo *t);

#endif
