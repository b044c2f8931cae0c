/* The CUDA driver, loaded when first asked for. Kernels come as PTX; the driver compiles
   them for the device. Part of libsdcrt; includes nothing of the compiler.

   Contexts. A call works in the calling thread's current CUcontext when that belongs to
   the handle's device, and in the device's primary context otherwise; afterwards what was
   current is current again. Streams, events and kernels belong to the context that they
   were made in.

   Threads. A handle may be used from any thread, by several at once. In the child of a
   fork the parent's handles refuse (SDCRT_ERROR_DEVICE), and closing them does nothing.

   Errors. Functions that can fail return a status and, when `e` is not NULL, leave there
   what failed, the driver's words and what to do. */
#ifndef SDCRT_CUDA_H
#define SDCRT_CUDA_H

#include "runtime/rt/sdcrt.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct SdcrtCuda SdcrtCuda;
typedef struct SdcrtCudaKernel SdcrtCudaKernel;

typedef struct SdcrtCudaInfo {
    char name[128];
    int ordinal;
    int driver; /* 1000 * major + 10 * minor of the CUDA version that it implements */
    int sm;     /* 90 for compute capability 9.0 */
    int processors;
    int64_t memory;
    int32_t shared, shared_max; /* bytes a program: without and with opting in */
    int32_t max_grid[3];
    int clock_khz, memory_clock_khz; /* at most; 0: the driver does not say */
    int memory_bus_bits;             /* 0: likewise */
} SdcrtCudaInfo;

/* Devices that the driver offers and its version (as SdcrtCudaInfo's). The library is the
   one that $SDC_LIBCUDA names, or libcuda.so.1. */
SDCRT_API SdcrtStatus sdcrt_cuda_count(int *devices, int *driver, SdcrtError *e);

/* Opens a device. Its primary context is retained when a call first needs it. */
SDCRT_API SdcrtStatus sdcrt_cuda_open(int ordinal, SdcrtCuda **out, SdcrtError *e);
/* When no other call works with it; its kernels, memory, streams, events and graphs have
   been given back before. NULL is allowed. */
SDCRT_API void sdcrt_cuda_close(SdcrtCuda *c);
/* Lives as long as the handle. */
SDCRT_API const SdcrtCudaInfo *sdcrt_cuda_info(const SdcrtCuda *c);

/* Names the context that a call would work in now: different for any two contexts, also
   for one that was made where another had been destroyed. */
SDCRT_API SdcrtStatus sdcrt_cuda_context(SdcrtCuda *c, uint64_t *id, SdcrtError *e);

/* ---- memory, in bytes; an address is a number that kernels take as a pointer */

/* Memory of the device, on 256 bytes, not cleared; 0 bytes have an address, too. */
SDCRT_API SdcrtStatus sdcrt_cuda_alloc(SdcrtCuda *c, size_t bytes, uint64_t *out,
                                       SdcrtError *e);
/* When nothing under way uses it. 0 is allowed. */
SDCRT_API SdcrtStatus sdcrt_cuda_free(SdcrtCuda *c, uint64_t address, SdcrtError *e);
/* From and to the host's memory, behind what was put on the default stream before; done
   when they return. Streams of sdcrt_cuda_stream_create do not wait for the default one,
   nor it for them: wait for those first. */
SDCRT_API SdcrtStatus sdcrt_cuda_write(SdcrtCuda *c, uint64_t to, const void *from,
                                       size_t bytes, SdcrtError *e);
SDCRT_API SdcrtStatus sdcrt_cuda_read(SdcrtCuda *c, void *to, uint64_t from, size_t bytes,
                                      SdcrtError *e);
/* From device memory to device memory; ordered like a launch on the default stream. */
SDCRT_API SdcrtStatus sdcrt_cuda_copy(SdcrtCuda *c, uint64_t to, uint64_t from,
                                      size_t bytes, SdcrtError *e);
/* Every byte becomes the low one of `byte`; ordered likewise. */
SDCRT_API SdcrtStatus sdcrt_cuda_fill(SdcrtCuda *c, uint64_t at, int byte, size_t bytes,
                                      SdcrtError *e);
/* What the device has left, by all processes, and altogether. */
SDCRT_API SdcrtStatus sdcrt_cuda_memory(SdcrtCuda *c, size_t *free_bytes, size_t *total,
                                        SdcrtError *e);

/* Temporary memory, in the order of a stream: what is launched on it between the two may
   use it, and nothing waits. A capture keeps both. SDCRT_ERROR_CODE: the driver has none
   (CUDA 11.2 has). */
SDCRT_API SdcrtStatus sdcrt_cuda_borrow(SdcrtCuda *c, size_t bytes, void *stream,
                                        uint64_t *out, SdcrtError *e);
SDCRT_API SdcrtStatus sdcrt_cuda_return(SdcrtCuda *c, uint64_t address, void *stream,
                                        SdcrtError *e);
/* Whether there is any. */
SDCRT_API int sdcrt_cuda_lends(const SdcrtCuda *c);

/* ---- streams, events, graphs: CUstream, CUevent and CUgraphExec as void * */

/* A stream that runs beside the default one. Destroyed, it lets what is on it end by
   itself; NULL is allowed there. */
SDCRT_API SdcrtStatus sdcrt_cuda_stream_create(SdcrtCuda *c, void **stream,
                                            SdcrtError *e);
SDCRT_API void sdcrt_cuda_stream_destroy(SdcrtCuda *c, void *stream);
/* Until what was launched on the stream is done; NULL: on the default stream. */
SDCRT_API SdcrtStatus sdcrt_cuda_stream_wait(SdcrtCuda *c, void *stream,
                                             SdcrtError *e);
/* Until everything in the context is done. */
SDCRT_API SdcrtStatus sdcrt_cuda_wait(SdcrtCuda *c, SdcrtError *e);

/* An event is a point in a stream, behind what the stream had when the event was recorded
   last. Destroying NULL is allowed. */
SDCRT_API SdcrtStatus sdcrt_cuda_event_create(SdcrtCuda *c, void **event, SdcrtError *e);
SDCRT_API void sdcrt_cuda_event_destroy(SdcrtCuda *c, void *event);
SDCRT_API SdcrtStatus sdcrt_cuda_event_record(SdcrtCuda *c, void *event, void *stream,
                                              SdcrtError *e);
/* Waits for `to`; milliseconds between the two, which were both recorded. */
SDCRT_API SdcrtStatus sdcrt_cuda_event_ms(SdcrtCuda *c, void *from, void *to, float *ms,
                                          SdcrtError *e);

/* Launches between these two are not run but kept: they run, all at once and without the
   cost of launching each, when the graph is launched. One thread calls both; `stream` is
   not the default one. The graph is the caller's, who ends it by
   sdcrt_cuda_graph_destroy; what its launches were given lives until then. */
SDCRT_API SdcrtStatus sdcrt_cuda_capture(SdcrtCuda *c, void *stream, SdcrtError *e);
SDCRT_API SdcrtStatus sdcrt_cuda_captured(SdcrtCuda *c, void *stream, void **graph,
                                          SdcrtError *e);
/* Are launches on the stream (NULL: the default one) kept, or may they be? Nothing is to
   be loaded then. 1 for no device. Any thread. */
SDCRT_API int sdcrt_cuda_is_capturing(SdcrtCuda *c, void *stream);
/* Puts the whole graph on a stream and returns at once. */
SDCRT_API SdcrtStatus sdcrt_cuda_graph_launch(SdcrtCuda *c, void *graph, void *stream,
                                              SdcrtError *e);
SDCRT_API void sdcrt_cuda_graph_destroy(SdcrtCuda *c, void *graph); /* or NULL */

/* ---- kernels */

/* What the driver's compiler made of a kernel. */
typedef struct SdcrtCudaUse {
    int32_t registers;   /* of a thread */
    int32_t local_bytes; /* of a thread, spills among them */
    int32_t static_shared;
} SdcrtCudaUse;

/* Loads PTX text (NUL-terminated) and finds the kernel that `meta` describes. The meta is
   copied. */
SDCRT_API SdcrtStatus sdcrt_cuda_load(SdcrtCuda *c, const char *ptx,
                                      const SdcrtMeta *meta, SdcrtCudaKernel **out,
                                      SdcrtError *e);
/* The same for PTX where many threads load at once: the driver compiles side by side, but
   does not keep what it made for later processes. */
SDCRT_API SdcrtStatus sdcrt_cuda_load_beside(SdcrtCuda *c, const char *ptx,
                                             const SdcrtMeta *meta, SdcrtCudaKernel **out,
                                             SdcrtError *e);
/* When none of its launches is under way. NULL is allowed. */
SDCRT_API void sdcrt_cuda_unload(SdcrtCuda *c, SdcrtCudaKernel *k);
/* Lives as long as the kernel. */
SDCRT_API const SdcrtCudaUse *sdcrt_cuda_use(const SdcrtCudaKernel *k);

/* Launches on a stream (CUstream; NULL: the default one) and returns at once. `args`: one
   slot per parameter as SdcrtCpuEntry's. A grid with a zero runs nothing. Refused with
   SDCRT_ERROR_ARGUMENT: a grid that the device cannot run; with SDCRT_ERROR_MAP:
   arguments that the kernel's tensor maps do not allow. A pointer may be NULL, as that of
   a tensor without elements is; what a kernel touches there is its error. An error may
   also be that of an earlier kernel, which the device reports only now. */
SDCRT_API SdcrtStatus sdcrt_cuda_launch(SdcrtCuda *c, const SdcrtCudaKernel *k,
                                        const uint64_t *args, SdcGrid grid,
                                        void *stream, SdcrtError *e);

#ifdef __cplusplus
}
#endif

#endif
