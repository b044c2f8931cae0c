/* Launches on the CPU, by who knows the kernel's metadata. */
#ifndef SDCRT_CPU_H
#define SDCRT_CPU_H

#include "runtime/rt/sdcrt.h"

#include <stdbool.h>

/* Of a kernel: are there any, and with how many threads at most is a launch faster that
   runs without locked instructions on one; 0: none may. See SdcrtMeta. */
typedef struct RtAtomics {
    bool any;
    int alone;
} RtAtomics;

static inline RtAtomics
rt_atomics(const SdcrtMeta *meta)
{
    return (RtAtomics){meta->atomics != 0, meta->alone};
}

/* As sdcrt_cpu_launch, which takes it that there may be atomics. */
SdcrtStatus rt_cpu_launch(SdcrtPool *pool, SdcrtCpuEntry *entry, const uint64_t *args,
                          SdcGrid grid, int64_t scratch, int threads, RtAtomics atomics);

#endif
