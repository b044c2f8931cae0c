/* A kernel with the arguments of the command line: what run, tune and bench have in
   common. */
#ifndef SDC_CLI_RUN_H
#define SDC_CLI_RUN_H

#include "runtime/cli/gpu.h"

typedef struct Run {
    Cli *c;
    SdcContext *cx;
    SdcModule *mod;
    const char *kernel;
    const char *const *bind; /* of the command line */
    int nbind;
    const SdcParam *params;
    int nparam;
    RunArg *args; /* one per parameter, then arrays that only descriptors name */
    int narg;
    SdcArg *values; /* of the launch */
    int *param_of;  /* position of a launch's argument in the source */
    int nvalue;
    SdcKernel *k;
    SdcGrid grid;
    bool on_gpu;
    SdcDevice device;
    GpuArrays there;
} Run;

/* Opens the module, the device and the kernel that the options name. */
int run_start(Run *r);
/* Reads -a into args and values; their memory is the caller's, run_free_arrays. */
int run_collect(Run *r);
/* Copies arrays to the device, and tells the values of the launch where. */
int run_upload(Run *r);
/* r->k for these arguments, by --tune where it is given; then r->grid. */
int run_specialize(Run *r);
int run_grid(Run *r);
/* What r->k was made with: "BLOCK=1024 num_warps=4", or "" where nothing is chosen. */
const char *run_config(Run *r);
/* Integer arguments, then -c NAME=123, then what the kernel was bound to; `user` is a
   Run. */
bool run_lookup(void *user, const char *name, size_t n, int64_t *value);
/* One launch; `user` is a Run. */
SdcStatus run_launch(void *user, void *stream);
/* Of all arrays. */
double run_bytes(const Run *r);
void run_free_arrays(Run *r);

#endif
