/* The driver's entry points and one device of it. Private to the cuda*.c of libsdcrt.

   Layouts and numbers are those of the driver API (cuda.h of CUDA 12); they are part of
   its ABI. */
#ifndef SDCRT_CUDA_DRIVER_H
#define SDCRT_CUDA_DRIVER_H

#include "runtime/rt/cuda.h"
#include "runtime/rt/process.h"

#include <pthread.h>
#include <stdatomic.h>

/* CUlaunchAttribute: a number of the enum, padding to 8 bytes, a union of 64. */
typedef struct CudaLaunchAttribute {
    int id;
    int pad;
    union {
        char bytes[64];
        unsigned cluster[3];
        int overlap;
    } value;
} CudaLaunchAttribute;

enum {
    CUDA_LAUNCH_CLUSTER = 4, /* ..._CLUSTER_DIMENSION */
    CUDA_LAUNCH_OVERLAP = 6  /* ..._PROGRAMMATIC_STREAM_SERIALIZATION */
};

/* CUlaunchConfig */
typedef struct CudaLaunch {
    unsigned grid[3], block[3];
    unsigned shared;
    void *stream;
    CudaLaunchAttribute *attributes;
    unsigned nattribute;
} CudaLaunch;

/* CUmemPoolProps: of pinned device memory when the rest is zero. */
typedef struct CudaPoolProps {
    int type, handles;
    int place, device;
    void *security;
    size_t most;
    unsigned char reserved[56];
} CudaPoolProps;

enum { CUDA_POOL_PINNED = 1, CUDA_POOL_DEVICE = 1, CUDA_POOL_KEEP = 4 };

_Static_assert(sizeof(CudaPoolProps) == 88, "CUmemPoolProps");
_Static_assert(sizeof(CudaLaunchAttribute) == 72, "CUlaunchAttribute");
_Static_assert(sizeof(void *) != 8 || sizeof(CudaLaunch) == 56, "CUlaunchConfig");

typedef struct Driver {
#define CU(symbol, field, params) int(*field) params;
#include "runtime/rt/cuda.def"
} Driver;

struct SdcrtCuda {
    Driver d;
    void *lib;
    int device; /* CUdevice */
    SdcrtCudaInfo info;
    pthread_mutex_t lock;    /* the primary context is retained once */
    uint64_t primary_id;     /* set before `primary` */
    _Atomic(void *) primary; /* NULL until it is needed */
    _Atomic(void *) pool;    /* of temporary memory; NULL until it is needed */
    RtProcess process;       /* that opened it */
};

/* In the child of a fork: the driver does not work there, and `lock` may be held by a
   thread that is not there. */
int cuda_is_forked(const SdcrtCuda *c);
SdcrtStatus cuda_alive(const SdcrtCuda *c, SdcrtError *e);

enum {
    CUDA_ERROR_INVALID_VALUE = 1,
    CUDA_ERROR_OUT_OF_MEMORY = 2,
    CUDA_ERROR_NOT_INITIALIZED = 3,
    CUDA_ERROR_DEINITIALIZED = 4,
    CUDA_ERROR_STUB_LIBRARY = 34,
    CUDA_ERROR_NO_DEVICE = 100,
    CUDA_ERROR_INVALID_DEVICE = 101,
    CUDA_ERROR_NO_BINARY = 209,
    CUDA_ERROR_INVALID_PTX = 218,
    CUDA_ERROR_NO_JIT = 221,
    CUDA_ERROR_PTX_VERSION = 222,
    CUDA_ERROR_ILLEGAL_ADDRESS = 700,
    CUDA_ERROR_OUT_OF_RESOURCES = 701,
    CUDA_ERROR_LAUNCH_TIMEOUT = 702,
    CUDA_ERROR_HARDWARE_STACK = 714,
    CUDA_ERROR_LAUNCH_FAILED = 719,
    CUDA_ERROR_SYSTEM_NOT_READY = 802,
    CUDA_ERROR_DRIVER_MISMATCH = 803
};

/* Makes a message "what: the driver's words (CUDA error N); what to do" and returns the
   status that belongs to the error number. `code` 0: none of the driver's. */
SdcrtStatus cuda_fail(const SdcrtCuda *c, SdcrtError *e, int code, const char *fmt,
                      ...) __attribute__((format(printf, 4, 5)));
SdcrtStatus cuda_refuse(SdcrtError *e, SdcrtStatus status, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
/* An argument that is needed is NULL. */
SdcrtStatus cuda_missing(SdcrtError *e, const char *what);

/* Between these a context of the device is current: the caller's own when it belongs to
   the device, else the primary one. */
typedef struct CudaScope {
    void *context;
    int pushed;
} CudaScope;

SdcrtStatus cuda_enter(SdcrtCuda *c, CudaScope *s, SdcrtError *e);
void cuda_leave(SdcrtCuda *c, const CudaScope *s);

#endif
