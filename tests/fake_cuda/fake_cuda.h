/* Control of the fake CUDA driver: what a test tells it and asks it. The functions are
   found by dlsym in the library that SDC_LIBCUDA names. */
#ifndef TESTS_FAKE_CUDA_H
#define TESTS_FAKE_CUDA_H

#include <stdint.h>

/* CUlaunchAttribute, CUlaunchConfig. */
typedef struct Attribute {
    int id, pad, value[16];
} Attribute;

typedef struct Config {
    unsigned grid[3], block[3], shared;
    void *stream;
    const Attribute *attributes;
    unsigned nattribute;
} Config;

typedef struct FakeLaunch {
    unsigned grid[3], block[3], shared;
    void *stream, *context;
    char kernel[128];
    int cluster; /* neighbours along axis 0 that run together; 0: none do */
    int overlap; /* it may begin before the launch in front has ended */
    int nparam;
    uint64_t params[64]; /* the first 8 bytes of each slot: of a tensor map its address */
} FakeLaunch;

typedef struct FakeCuda {
    int devices;    /* how many there are, not specialized */
    int sm;         /* 90 */
    int driver;     /* its version; 0: 13000 */
    int shared_max; /* opt-in bytes of shared memory */
    int64_t memory; /* bytes of a device */
    long calls;     /* entry points called since the test set it to 0 */
    long fail_at;   /* this call fails, counted from 1; 0: none */
    int fail_code;
    int fail_for_ever; /* so do all calls after it: a context that is lost */
    char failed[64];   /* the entry point that failed */
    long live;         /* allocations, modules, streams, events, graphs, contexts */
    long launches;
    long maps;            /* tensor maps made */
    uint64_t last_map[2]; /* sizes of the last one, fastest first */
    int promotions[4];    /* maps of each CUtensorMapL2promotion */
    FakeLaunch last;
    void *captured; /* the stream whose launches are kept */
} FakeCuda;

/* The state, for the test to read and write. */
FakeCuda *fake_cuda(void);
typedef FakeCuda *FakeCudaGet(void);

#endif
