/* The CUDA driver, loaded when first asked for. Kernels come as PTX; the driver compiles
   them for the device. Part of libsdcrt; includes nothing of the compiler.

   Every function that can fail returns 0 or an error number of the driver, and leaves a
   message in sdcrt_cuda_error: the call that failed, the driver's words, what to do. A
   handle belongs to one thread at a time. */
#ifndef SDCRT_CUDA_H
#define SDCRT_CUDA_H

#include "runtime/rt/meta.h"

#include <stddef.h>
#include <stdint.h>

typedef struct SdcrtCuda SdcrtCuda;
typedef struct SdcrtCudaKernel SdcrtCudaKernel;

/* Opens device `ordinal` through the library that $SDC_LIBCUDA names, or libcuda.so.1,
   and makes its primary context current. 0, or nonzero with the reason in why[0 ..
   size-1]. */
int sdcrt_cuda_open(int ordinal, SdcrtCuda **out, char *why, size_t size);
void sdcrt_cuda_close(SdcrtCuda *c); /* NULL is allowed */
const char *sdcrt_cuda_error(const SdcrtCuda *c);
const char *sdcrt_cuda_name(const SdcrtCuda *c);
int sdcrt_cuda_sm(const SdcrtCuda *c); /* 90 for compute capability 9.0 */

/* Device memory, in bytes. An address is a number that kernels take as a pointer. */
int sdcrt_cuda_alloc(SdcrtCuda *c, size_t bytes, uint64_t *out);
int sdcrt_cuda_free(SdcrtCuda *c, uint64_t address);
int sdcrt_cuda_write(SdcrtCuda *c, uint64_t to, const void *from, size_t bytes);
int sdcrt_cuda_read(SdcrtCuda *c, void *to, uint64_t from, size_t bytes);
int sdcrt_cuda_fill(SdcrtCuda *c, uint64_t at, int byte, size_t bytes);

/* Loads PTX text (NUL-terminated) and finds the kernel that `meta` describes. The meta is
   copied. */
int sdcrt_cuda_load(SdcrtCuda *c, const char *ptx, const SdcrtMeta *meta,
                    SdcrtCudaKernel **out);
void sdcrt_cuda_unload(SdcrtCuda *c, SdcrtCudaKernel *k); /* NULL is allowed */

/* Launches on the default stream and returns at once. `args`: one slot per parameter as
   SdcrtCpuEntry's. Refuses, with a message, a grid that the device cannot run and a
   pointer that is NULL. A grid with a zero does nothing. */
int sdcrt_cuda_launch(SdcrtCuda *c, SdcrtCudaKernel *k, const uint64_t *args,
                      const int32_t grid[3]);
int sdcrt_cuda_wait(SdcrtCuda *c); /* until all launches are done */

/* Milliseconds that one launch takes on the device, between events. */
int sdcrt_cuda_time(SdcrtCuda *c, SdcrtCudaKernel *k, const uint64_t *args,
                    const int32_t grid[3], float *ms);

#endif
