/* What the CPU can do, in the levels that compilers have names for: x86-64-v2 (SSE4.2),
   -v3 (AVX2, FMA), -v4 (AVX-512). An object may hold code for several. */
#include "runtime/rt/sdcrt.h"

#include <stdlib.h>
#include <string.h>

int
sdcrt_cpu_level(const char *name)
{
    static const char *const names[] = {"x86-64", "x86-64-v2", "x86-64-v3", "x86-64-v4"};
    for (int i = 0; name && i < 4; i++)
        if (strcmp(name, names[i]) == 0)
            return i + 1;
    return 0;
}

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
#endif
    const char *most = getenv("SDC_CPU_LEVEL"); /* to try what others have */
    int asked = most && *most ? atoi(most) : 0;
    return asked > 0 && asked < level ? asked : level;
}
