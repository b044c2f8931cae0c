/* A simulator of NVIDIA GPUs for PTX as sdc writes it: blocks of threads run one after
   the other, their warps interleaved at random from a seed, and what a GPU would hide
   most of the time is an error: two accesses of shared memory with nothing between them
   that orders them, a wait that is missing, a barrier that not everybody comes to, memory
   outside of every buffer.

   Global memory is the host's: a pointer argument is an address of the caller's. */
#ifndef SDC_TESTS_SIM_SIM_H
#define SDC_TESTS_SIM_SIM_H

#include <stddef.h>
#include <stdint.h>

typedef enum SimStatus {
    SIM_OK,
    SIM_TEXT,     /* the PTX cannot be read, or has an instruction that is not known */
    SIM_LAUNCH,   /* the launch does not fit the kernel */
    SIM_RACE,     /* two accesses of shared memory that nothing orders */
    SIM_ASYNC,    /* a rule of asynchronous operations is broken */
    SIM_BARRIER,  /* a barrier is misused, or a warp's threads have parted */
    SIM_DEADLOCK, /* every warp waits */
    SIM_MEMORY,   /* outside of all buffers, misaligned, or read before it was written */
    SIM_LIMIT,    /* more instructions than allowed */
    SIM_TRAP      /* the kernel stopped itself */
} SimStatus;

typedef struct SimModule SimModule;

/* What a launch may touch. */
typedef struct SimRange {
    const void *data;
    size_t bytes;
} SimRange;

typedef struct SimLaunch {
    const char *kernel; /* NULL: the only one */
    /* one pointer to each parameter's bytes, as the driver takes them */
    const void *const *params;
    int nparam;
    int grid[3];            /* zero counts as one */
    int cluster;            /* neighbours along axis 0 that run together: 0, 1 or 2 */
    int threads;            /* of a block; 0: what the kernel requires */
    size_t shared;          /* bytes of dynamic shared memory; 0: all that a GPU has */
    const SimRange *ranges; /* sorted or not; none: nothing is checked */
    int nrange;
    uint64_t seed;      /* 0: warps take turns, what is asynchronous lands at once */
    uint64_t max_steps; /* instructions of warps in one block; 0: 50 million */
    int any_read;       /* nonzero: shared memory that nothing wrote may be read */
} SimLaunch;

typedef struct SimStats {
    uint64_t instructions;  /* of threads */
    uint64_t barriers;      /* of the block that completed, named ones among them */
    uint64_t wgmma, copies; /* dots and tensor copies of warps */
} SimStats;

/* Reads all kernels of a module. `message` gets one line when the result is NULL. */
SimModule *sim_load(const char *ptx, char *message, size_t size);
void sim_unload(SimModule *m);

/* Runs all blocks; stops at the first error, of which `message` has one line: what, the
   line of the PTX, its text, warps and lanes. `stats` may be NULL. Modules may be used by
   several threads at once. */
SimStatus sim_run(const SimModule *m, const SimLaunch *launch, SimStats *stats,
                  char *message, size_t size);

const char *sim_status_name(SimStatus s);

/* Number and sizes of a kernel's parameters, its threads, whether it is there. */
typedef struct SimKernelInfo {
    int nparam, threads;
    int param_bytes[128];
} SimKernelInfo;
int sim_kernel_info(const SimModule *m, const char *kernel, SimKernelInfo *out);

/* A tensor map: 128 bytes that a kernel takes as a parameter. The fields are those that
   cuTensorMapEncodeTiled takes, dimensions fastest first. */
typedef struct SimMap {
    void *base;
    int rank;
    int type;    /* CUtensorMapDataType */
    int swizzle; /* bytes: 0, 32, 64, 128 */
    int nan;     /* what is outside comes as NaN */
    uint64_t dim[5];
    uint64_t stride[5]; /* bytes; of dimension 0: an element's */
    uint32_t box[5];
} SimMap;
enum { SIM_MAP_BYTES = 128 };
void sim_map_encode(const SimMap *map, void *bytes);
/* Returns 0 when the bytes are not what sim_map_encode wrote. */
int sim_map_decode(const void *bytes, SimMap *map);

#endif
