/* Kernels of sdc on the simulator, for the tests beside this file: text to PTX to a
   module, and random numbers. */
#ifndef SDC_TESTS_SIM_COMPILE_H
#define SDC_TESTS_SIM_COMPILE_H

#include <check.h>
#include <stdbool.h>

#include "runtime/sdc.h"
#include "tests/sim/sim.h"

typedef struct Kernel {
    char *ptx;
    SimModule *module;
    int barriers; /* of the last run */
} Kernel;

/* A kernel of kernels_dsl (path) or of tile IR (text), for a target; `passes`: NULL, or
   these. The test fails when it does not compile or its PTX is not understood. */
Kernel kernel_file(const char *name, const char *kernel, const char *signature, int warps,
                   int stages, const char *target);
Kernel kernel_ir(const char *text, const char *target, const char *passes);
void kernel_free(Kernel *k);

/* Runs one block with these arguments, 8 bytes each. The test fails with the simulator's
   message. Memory: one range. */
void kernel_run(Kernel *k, const uint64_t *args, int nargs, const void *memory,
                size_t bytes, uint64_t seed);

/* A generator of its own: the same numbers on every machine. */
typedef struct Random {
    uint64_t state;
} Random;
uint32_t random_below(Random *r, uint32_t n);
int random_between(Random *r, int low, int high);
bool random_chance(Random *r, int percent);
double random_normal(Random *r);

#endif
