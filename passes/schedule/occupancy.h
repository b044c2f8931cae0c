/* How many programs one SM runs at once, as far as passes can tell: registers
   are the assembler's to give out, and shared memory is placed last
   (passes/finish/alloc_shared.c). Of two programs one computes while the other waits. */
#ifndef SDC_PASSES_SCHEDULE_OCCUPANCY_H
#define SDC_PASSES_SCHEDULE_OCCUPANCY_H

#include "ir/ir.h"
#include "ir/target.h"

/* 32-bit registers, of all threads together, of the asynchronous dots that are there at
   once in a region or in one in it: those of a loop. */
typedef struct DotRegisters {
    int accumulators;
    int kept;   /* left operands from outside of the region */
    int filled; /* and those that it computes or reads */
} DotRegisters;
DotRegisters dot_registers(const Region *r);
/* All of them together. */
int mma_registers(const Region *r);

/* Does the dot add to what another one in its block left, which nobody else wants
   (operand 2), or read the registers that another one in front reads (operand 0)? */
bool mma_counted(const Op *dot, int operand);

/* Bytes of one stage of what the loop's planned loads fill. */
int64_t stage_bytes(const Op *loop);

/* Bytes of shared memory of a loop with so many stages: what its planned loads fill, and
   what threads fill in every iteration, twice if it may be double-buffered. */
int64_t loop_bytes(const Op *loop, int stages);

/* What a thread has registers for beside dots: as a rule, and where a loop has little but
   its dots. */
enum { USUALLY_BESIDE = 40, LEAST_BESIDE = 16 };

/* Programs of f on one SM, of which each takes so many 32-bit registers for dots, so many
   a thread beside them, and so many bytes of shared memory. */
int64_t occupancy(const Func *f, const TargetInfo *target, int64_t words, int beside,
                  int64_t bytes);

#endif
