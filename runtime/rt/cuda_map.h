/* Tensor maps of a launch. Private to the cuda*.c of libsdcrt. */
#ifndef SDCRT_CUDA_MAP_H
#define SDCRT_CUDA_MAP_H

#include "runtime/rt/cuda_driver.h"

/* CUtensorMap: opaque to all but the driver and the device. */
typedef struct CudaMap {
    _Alignas(128) unsigned char bytes[128];
} CudaMap;

/* The maps of the launch before, which most launches can take again. One launch at a time
   may look; the others encode. */
typedef struct CudaMapCache {
    atomic_flag busy;
    int full, off_lines;
    uint64_t args[SDCRT_MAX_PARAMS];
    CudaMap maps[SDCRT_MAX_MAPS];
} CudaMapCache;

/* Which maps do the arguments make? */
typedef enum CudaMapFit {
    CUDA_MAPS_FIT,    /* all */
    CUDA_MAPS_LOADED, /* those of loads, none that is stored through */
    CUDA_MAPS_NONE    /* not those of loads, or `whole` of a parameter does not hold */
} CudaMapFit;

CudaMapFit cuda_maps_fit(const SdcrtMeta *m, const uint64_t *args);

/* Do rows that are loaded begin off the cache's lines of 128 bytes? */
int cuda_maps_off_lines(const SdcrtMeta *m, const uint64_t *args);

/* Fills maps[0 .. m->nmap - 1]; *off_lines: cuda_maps_off_lines.
   SDCRT_ERROR_MAP when the arguments allow none: an address
   or stride off 16 bytes, a size below 1, a driver that has them not. */
SdcrtStatus cuda_maps(const SdcrtCuda *c, const SdcrtMeta *m, CudaMapCache *cache,
                      const uint64_t *args, CudaMap *maps, int *off_lines, SdcrtError *e);

#endif
