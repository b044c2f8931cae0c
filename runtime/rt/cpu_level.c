/* What the CPU can do, in the levels that compilers have names for: x86-64-v2 (SSE4.2),
   -v3 (AVX2, FMA), -v4 (AVX-512), and the first processor that multiplies matrices by
   tiles (AMX). An object may hold code for several.

   Linux lets a process use tiles when it has asked, once and for all of its threads: code
   that has them may come out of a cache, an object or a compile, so pools ask when they
   are made. */
#include "runtime/rt/process.h"
#include "runtime/rt/sdcrt.h"

#include <stdlib.h>
#include <string.h>
#if defined(__x86_64__)
#include <sys/syscall.h>
#include <unistd.h>
#endif

int
sdcrt_cpu_level(const char *name)
{
    static const char *const names[] = {"x86-64", "x86-64-v2", "x86-64-v3", "x86-64-v4",
                                        "sapphirerapids"};
    for (int i = 0; name && i < 5; i++)
        if (strcmp(name, names[i]) == 0)
            return i + 1;
    return 0;
}

bool
rt_ask_tiles(void)
{
#if defined(__x86_64__)
    enum { ASK = 0x1023, TILE_DATA = 18 }; /* ARCH_REQ_XCOMP_PERM */
    __builtin_cpu_init();
    return __builtin_cpu_supports("amx-tile") &&
           syscall(SYS_arch_prctl, ASK, TILE_DATA) == 0;
#else
    return false;
#endif
}

#if defined(__x86_64__)
static bool
has_tiles(void)
{
    return __builtin_cpu_supports("amx-bf16") && __builtin_cpu_supports("amx-int8") &&
           __builtin_cpu_supports("avx512bf16") &&
           __builtin_cpu_supports("avx512vnni") &&
           __builtin_cpu_supports("avx512fp16") &&
           __builtin_cpu_supports("avx512vbmi2") && rt_ask_tiles();
}
#endif

int
sdcrt_cpu_host_level(void)
{
    int level = 1;
#if defined(__x86_64__)
    __builtin_cpu_init();
    level = __builtin_cpu_supports("x86-64-v4")   ? 4
            : __builtin_cpu_supports("x86-64-v3") ? 3
            : __builtin_cpu_supports("x86-64-v2") ? 2
                                                  : 1;
    level += level == 4 && has_tiles();
#endif
    const char *most = getenv("SDC_CPU_LEVEL"); /* to try what others have */
    int asked = most && *most ? atoi(most) : 0;
    return asked > 0 && asked < level ? asked : level;
}
