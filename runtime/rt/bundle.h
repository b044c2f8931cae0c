/* Kernels compiled ahead of time: what an object of "sdc compile --header" holds, and how
   its launchers choose. The header that sdc writes beside the object has a typed function
   for each kernel; they come down to the functions here.

   A bundle is one kernel compiled several times: for several targets, for arguments with
   several properties (divisible by 16, equal to 1), with several configurations. A launch
   takes the first that the arguments allow among those of the best target that the
   device runs. Code is loaded once in each CUDA context, by whichever thread comes first.

   Arguments are slots of 8 bytes, one for each parameter of the source that is not
   constexpr, or for each element where that is a tuple: addresses, integers extended to
   64 bits, floats as the bits of their type, for a tensor descriptor the address of an
   SdcrtTensor. */
#ifndef SDCRT_BUNDLE_H
#define SDCRT_BUNDLE_H

#include "runtime/rt/cuda.h"

#include <string.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A tensor of which a kernel takes blocks: the last stride is 1, strides in elements. */
typedef struct SdcrtTensor {
    void *base;
    int64_t shape[SDCRT_MAX_RANK], strides[SDCRT_MAX_RANK];
} SdcrtTensor;

/* A launch on the CPU that the caller runs with threads of its own: hand out ranges of
   0 .. sdcrt_grid_size(call.grid) - 1 to

       sdcrt_run_range(call.entry, call.slots, call.grid, call.scratch, first, last) */
typedef struct SdcrtCall {
    SdcrtCpuEntry *entry;
    int64_t scratch;
    SdcGrid grid;
    uint64_t slots[SDCRT_MAX_PARAMS];
} SdcrtCall;

/* `grid`: NULL for the expression of the object. On the GPU of `gpu`, as
   sdcrt_cuda_launch. */
SDCRT_API SdcrtStatus sdcrt_bundle_cuda(const SdcrtBundle *b, SdcrtCuda *gpu,
                                        void *stream, const SdcGrid *grid,
                                        const uint64_t *args, int nargs,
                                        SdcrtError *e);

/* On the CPU with the threads of a pool; NULL: on the calling thread. */
SDCRT_API SdcrtStatus sdcrt_bundle_cpu(const SdcrtBundle *b, SdcrtPool *pool,
                                       const SdcGrid *grid, const uint64_t *args,
                                       int nargs, SdcrtError *e);

/* On the CPU, without running anything yet. */
SDCRT_API SdcrtStatus sdcrt_bundle_prepare(const SdcrtBundle *b, SdcrtCall *call,
                                           const SdcGrid *grid, const uint64_t *args,
                                           int nargs, SdcrtError *e);

/* Compiles for the device and loads into the current context all that may run there, so
   that no launch has to: before a graph is captured, say. */
SDCRT_API SdcrtStatus sdcrt_bundle_load(const SdcrtBundle *b, SdcrtCuda *gpu,
                                        SdcrtError *e);

/* ---- slots of arguments, for the functions of generated headers */

static inline uint64_t
sdcrt_slot_ptr(const void *p)
{
    return (uint64_t)(uintptr_t)p;
}

static inline uint64_t
sdcrt_slot_int(int64_t x)
{
    return (uint64_t)x;
}

static inline uint64_t
sdcrt_slot_f32(float x)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

static inline uint64_t
sdcrt_slot_f64(double x)
{
    uint64_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

#ifdef __cplusplus
}
#endif

#endif
