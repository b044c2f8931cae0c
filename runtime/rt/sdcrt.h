/* libsdcrt: launches compiled kernels. It contains no compiler and no LLVM, and needs
   only the C library and threads. This header is for kernels of the CPU target, which run
   on a pool of threads or on threads of the caller; cuda.h is for kernels of GPUs.

   All functions may be called from any thread at any time, except that a pool must not be
   destroyed while another thread uses it. A call reads its arguments only until it
   returns. */
#ifndef SDCRT_H
#define SDCRT_H

#include "runtime/rt/meta.h"

#include <stddef.h>

#if defined(__GNUC__)
#define SDCRT_API __attribute__((visibility("default")))
#else
#define SDCRT_API
#endif

#ifdef __cplusplus
extern "C" {
#endif

typedef enum SdcrtStatus {
    SDCRT_OK,
    SDCRT_ERROR_ARGUMENT, /* grid negative or too large, range outside of the grid */
    SDCRT_ERROR_MEMORY,   /* out of memory, of the host or the device */
    SDCRT_ERROR_LIMIT,    /* the kernel asks for more than the device has */
    SDCRT_ERROR_DEVICE,   /* no such device, driver missing, too old or failing */
    SDCRT_ERROR_CODE,     /* the driver refuses the kernel's code */
    SDCRT_ERROR_MAP       /* the arguments do not fit the tensor maps of this code */
} SdcrtStatus;

/* An error in words, for the CPU and GPUs alike. */
typedef struct SdcrtError {
    int code; /* error code of the GPU's driver; 0: none */
    char text[2048];
} SdcrtError;

/* Threads that run programs. The first launch with work for them starts them; they sleep
   while there is none, and sdcrt_pool_destroy joins them. Several threads may launch on
   one pool at the same time. */
typedef struct SdcrtPool SdcrtPool;

/* Makes a pool, which the caller destroys. `threads`: how many in all, the launching one
   included; 0: the environment's SDC_NUM_THREADS, or the number of cores that this
   process may use. NULL when out of memory. */
SDCRT_API SdcrtPool *sdcrt_pool_create(int threads);
/* Joins the threads and frees the pool. No launch may be running on it. NULL is
   allowed. */
SDCRT_API void sdcrt_pool_destroy(SdcrtPool *pool);
/* How many threads the pool has in all, started or not, the launching one included. */
SDCRT_API int sdcrt_pool_threads(const SdcrtPool *pool);

/* Runs all programs of the grid and returns when they are done; the calling thread takes
   part. `args`: one slot for each parameter, see SdcrtCpuEntry. `scratch`: bytes of
   scratch memory that each running program needs (SdcrtMeta). `threads`: use at most this
   many; 0: all of the pool. If no thread can be started the caller does all the work.
   Atomics hold among the launches of the process, on all its pools, and among ranges
   (below); between these, and for whoever else changes the memory meanwhile, those of
   scope "sys" do.
   SDCRT_ERROR_ARGUMENT: the grid is negative or too large; SDCRT_ERROR_MEMORY. */
SDCRT_API SdcrtStatus sdcrt_cpu_launch(SdcrtPool *pool, SdcrtCpuEntry *entry,
                                       const uint64_t *args, SdcGrid grid,
                                       int64_t scratch, int threads);

/* Runs programs first .. last - 1 of the grid on the calling thread, for hosts with
   threads of their own: divide 0 .. sdcrt_grid_size() into ranges so that each program
   runs exactly once. Errors as above, and SDCRT_ERROR_ARGUMENT for a range outside of the
   grid. */
SDCRT_API SdcrtStatus sdcrt_run_range(SdcrtCpuEntry *entry, const uint64_t *args,
                                      SdcGrid grid, int64_t scratch,
                                      int64_t first, int64_t last);

/* The level of x86-64 with this name: 1 for "x86-64" to 4 for "x86-64-v4", 5 for
   "sapphirerapids" (AMX); 0: there is none. And the level of this machine, at least 1: of
   an object that was compiled for several levels, the highest that it has is used.
   Looking for AMX requests permission to use it from the system, as sdcrt_pool_create
   does. */
SDCRT_API int sdcrt_cpu_level(const char *name);
SDCRT_API int sdcrt_cpu_host_level(void);

/* Number of programs of a grid; -1 when a size is negative or the product needs more than
   62 bits. */
SDCRT_API int64_t sdcrt_grid_size(SdcGrid grid);

#ifdef __cplusplus
}
#endif

#endif
