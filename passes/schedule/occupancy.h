/* How many programs one SM can run at once, as far as passes can tell: registers are
   allocated by ptxas, and shared memory is placed last (passes/finish/alloc_shared.c).
   With two programs on an SM, one computes while the other waits. */
#ifndef SDC_PASSES_SCHEDULE_OCCUPANCY_H
#define SDC_PASSES_SCHEDULE_OCCUPANCY_H

#include "ir/ir.h"
#include "ir/target.h"

/* 32-bit registers that the asynchronous dots of a region need at once, summed over all
   threads. Of the regions inside, such as loops, the largest counts. */
typedef struct DotRegisters {
    int accumulators;
    int kept;         /* left operands that come from outside of the region */
    int filled;       /* left operands that the region computes or loads */
} DotRegisters;
DotRegisters dot_registers(const Region *r);
/* The sum of the three. */
int mma_registers(const Region *r);

/* Are the registers of this operand those of another dot, and counted there? For DOT_ACC:
   the dot adds to the result of another dot in its block that has no other user. For
   DOT_LEFT: an earlier dot reads the same registers. */
bool mma_counted(const Op *dot, int operand);

/* Bytes of one stage of all buffers that the planned loads of the loop fill. */
int64_t stage_bytes(const Op *loop);

/* Bytes of shared memory of a loop with `stages` stages: the buffers of its planned
   loads, and those that threads fill in every iteration, twice if they may be
   double-buffered. */
int64_t loop_bytes(const Op *loop, int stages);

/* Registers of a thread beside its dots: as a rule, and of a loop that has little but its
   dots. */
enum { USUALLY_BESIDE = 40, LEAST_BESIDE = 16 };

/* How many programs of f one SM can run if each needs `words` 32-bit registers for its
   dots, `beside` more in each thread, and `bytes` bytes of shared memory. */
int64_t occupancy(const Func *f, const TargetInfo *target, int64_t words, int beside,
                  int64_t bytes);

#endif
