/* Arrays of `sdc run` on a GPU: copied there before the launch and back after it. */
#ifndef SDC_CLI_GPU_H
#define SDC_CLI_GPU_H

#include "runtime/cli/cli.h"
#include "runtime/cli/spec.h"

/* The addresses of the arrays of `args`, which stay what they are: an array's data is the
   host's copy. Zeroed: nothing is there. */
typedef struct GpuArrays {
    struct SdcrtCuda *cuda;
    uint64_t *at; /* one per argument; 0: no array */
    int n;
} GpuArrays;

/* Copies the arrays to the device and makes the arguments' values point there. Returns an
   exit status, the message printed. */
int gpu_upload(Cli *c, GpuArrays *g, struct SdcrtCuda *cuda, RunArg *args, int n);

/* Waits for the launch and copies the arrays back. */
int gpu_download(Cli *c, GpuArrays *g, RunArg *args);

void gpu_arrays_done(GpuArrays *g);

/* What `sdc doctor` says of drivers and devices. `wanted`: a GPU must be there. */
int gpu_doctor(const Cli *c, bool wanted);

#endif
