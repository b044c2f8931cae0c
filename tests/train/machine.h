/* Where the training proof runs: memory, kernels of kernels_dsl and launches, on the CPU
   or on a GPU, through the public API. The first failure is printed and remembered; what
   is asked for after it does nothing. */
#ifndef TESTS_TRAIN_MACHINE_H
#define TESTS_TRAIN_MACHINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "runtime/sdc.h"

enum { MACHINE_MODULES = 16, MACHINE_KERNELS = 96, MACHINE_BLOCKS = 256 };

typedef struct MachineKernel {
    const char *file, *name;
    char bind[160];
    SdcFunction *fn;
} MachineKernel;

typedef struct Machine {
    SdcContext *ctx;
    struct SdcrtCuda *cuda; /* NULL: the CPU */
    char name[128];
    struct {
        const char *file;
        SdcModule *mod;
    } modules[MACHINE_MODULES];
    int nmodule;
    MachineKernel kernels[MACHINE_KERNELS];
    int nkernel;
    void *blocks[MACHINE_BLOCKS];
    int nblock;
    int64_t launches;
    bool failed;
} Machine;

/* `target`: "cpu" or "cuda". False when there is no such. */
bool machine_open(Machine *m, const char *target);
void machine_close(Machine *m);

/* Zeroed memory where kernels run; machine_free_all frees all of it. Never NULL: what a
   failed machine gives must not be touched. */
void *machine_alloc(Machine *m, int64_t bytes);
float *machine_floats(Machine *m, int64_t n);
void machine_free_all(Machine *m);
void machine_write(Machine *m, void *to, const void *from, int64_t bytes);
void machine_read(Machine *m, void *to, const void *from, int64_t bytes);

/* `binds`: NAME=VALUE separated by spaces; `file` and `kernel` are kept. */
void machine_run(Machine *m, const char *file, const char *kernel, SdcGrid grid,
                 const char *binds, const SdcArg *args, int nargs);
#define RUN(m, file, kernel, grid, binds, ...)                                           \
    machine_run(m, file, kernel, grid, binds, (const SdcArg[]){__VA_ARGS__},             \
                (int)(sizeof((const SdcArg[]){__VA_ARGS__}) / sizeof(SdcArg)))

static inline int64_t
ceil_div(int64_t a, int64_t b)
{
    return (a + b - 1) / b;
}

static inline SdcArg
floats_arg(const float *p)
{
    return p ? sdc_ptr(SDC_FP32, p) : sdc_none();
}

#endif
