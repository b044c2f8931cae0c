/* libsdcrt: launches compiled kernels. No compiler and no LLVM inside; needs only the C
   library and threads. Here: kernels of the CPU target over a pool of threads, or over
   threads of the caller's own; cuda.h has those of GPUs. */
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

/* What went wrong, in words, for the CPU and GPUs alike. */
typedef struct SdcrtError {
    int code; /* of a GPU's driver; 0: none */
    char text[2048];
} SdcrtError;

/* Threads that run programs. They are started by the first launch that has work for them,
   sleep while there is none, and are joined by sdcrt_pool_destroy. Launches from several
   threads at once share them. */
typedef struct SdcrtPool SdcrtPool;

/* `threads`: in all, the launching one included; 0: the environment's SDC_NUM_THREADS, or
   the cores that this process may use. NULL when out of memory. */
SDCRT_API SdcrtPool *sdcrt_pool_create(int threads);
/* When no launch is under way. NULL is allowed. */
SDCRT_API void sdcrt_pool_destroy(SdcrtPool *pool);
/* How many there are in all, started or not. */
SDCRT_API int sdcrt_pool_threads(const SdcrtPool *pool);

/* Runs the whole grid and returns when it is done; the calling thread takes part.
   `args`: one slot per parameter, see SdcrtCpuEntry. `scratch`: bytes that each running
   program needs. `threads`: use at most so many; 0: all of the pool. When no thread can
   be started the caller does all the work. */
SDCRT_API SdcrtStatus sdcrt_cpu_launch(SdcrtPool *pool, SdcrtCpuEntry *entry,
                                       const uint64_t *args, SdcGrid grid,
                                       int64_t scratch, int threads);

/* Runs programs `first` .. `last` - 1 of the grid on the calling thread, for hosts that
   bring their own threads: cut 0 .. sdcrt_grid_size() into ranges as you like, each
   program exactly once. */
SDCRT_API SdcrtStatus sdcrt_run_range(SdcrtCpuEntry *entry, const uint64_t *args,
                                      SdcGrid grid, int64_t scratch,
                                      int64_t first, int64_t last);

/* Levels of x86-64: 5 of "sapphirerapids" (AMX), 4 of "x86-64-v4", 1 of "x86-64"; 0: no
   such name. And the one of this machine, at least 1: an object that was compiled for
   several takes the highest. To look for AMX is to ask the system to let this process use
   it, as sdcrt_pool_create does. */
SDCRT_API int sdcrt_cpu_level(const char *name);
SDCRT_API int sdcrt_cpu_host_level(void);

/* Programs of a grid; -1 when a size is negative or the product leaves 62 bits. */
SDCRT_API int64_t sdcrt_grid_size(SdcGrid grid);

#ifdef __cplusplus
}
#endif

#endif
