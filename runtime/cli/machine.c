/* From /proc and /sys, which may be missing: then nothing is known. */
#include "runtime/cli/machine.h"

#include "ir/base/util.h"

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

enum { LINE = 8192 };

/* The first line of a file, or "". */
static const char *
first_line(Arena *arena, const char *path)
{
    char line[256] = "";
    FILE *f = fopen(path, "re");
    if (f && !fgets(line, sizeof line, f))
        *line = '\0';
    if (f)
        fclose(f);
    return arena_strndup(arena, line, strcspn(line, "\n"));
}

/* What stands behind "NAME : " in /proc/cpuinfo, for the first processor; NULL. */
static const char *
cpuinfo(Arena *arena, const char *name)
{
    FILE *f = fopen("/proc/cpuinfo", "re");
    char *line = arena_alloc(arena, LINE, 1);
    const char *found = NULL;
    while (f && !found && fgets(line, LINE, f)) {
        size_t n = strlen(name);
        const char *colon = strchr(line, ':');
        if (colon && strncmp(line, name, n) == 0 && strchr("\t :", line[n]))
            found = arena_strndup(arena, colon + 1 + (colon[1] == ' '),
                                  strcspn(colon + 1 + (colon[1] == ' '), "\n"));
    }
    if (f)
        fclose(f);
    return found;
}

static int64_t
cache_bytes(int name)
{
    long n = sysconf(name);
    return n > 0 ? n : 0;
}

void
machine_look(Arena *arena, Machine *out)
{
    static const char freq[] = "/sys/devices/system/cpu/cpu0/cpufreq/";
    struct utsname u;
    cpu_set_t set;
    *out = (Machine){.load = {-1, -1, -1}};
    const char *cpu = cpuinfo(arena, "model name"), *mhz = cpuinfo(arena, "cpu MHz");
    out->cpu = cpu ? cpu : "unknown";
    out->mhz = mhz ? strtod(mhz, NULL) : 0;
    const char *now = arena_printf(arena, "%sscaling_cur_freq", freq);
    const char *most = arena_printf(arena, "%scpuinfo_max_freq", freq);
    if (*first_line(arena, now))
        out->mhz = strtod(first_line(arena, now), NULL) / 1000;
    out->mhz_most = strtod(first_line(arena, most), NULL) / 1000;
    out->governor = first_line(arena, arena_printf(arena, "%sscaling_governor", freq));
    out->processors = (int)sysconf(_SC_NPROCESSORS_ONLN);
    out->allowed =
        sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : out->processors;
    if (getloadavg(out->load, 3) != 3)
        out->load[0] = out->load[1] = out->load[2] = -1;
    out->cache[0] = cache_bytes(_SC_LEVEL1_DCACHE_SIZE);
    out->cache[1] = cache_bytes(_SC_LEVEL2_CACHE_SIZE);
    out->cache[2] = cache_bytes(_SC_LEVEL3_CACHE_SIZE);
    out->system = uname(&u) == 0
                      ? arena_printf(arena, "%s %s %s", u.sysname, u.release, u.machine)
                      : "unknown";
    time_t t = time(NULL);
    struct tm utc;
    strftime(out->date, sizeof out->date, "%Y-%m-%dT%H:%M:%SZ", gmtime_r(&t, &utc));
}

const char *
machine_features(Arena *arena)
{
    static const char *const known[] = {
        "sse4_2",   "avx",      "avx2",        "fma",         "f16c",        "avx512f",
        "avx512bw", "avx512vl", "avx512_vnni", "avx512_bf16", "avx512_fp16", "avx_vnni",
        "amx_tile", "amx_int8", "amx_bf16",    "asimd",       "asimdhp",     "sve",
        "sve2",     "bf16",     "i8mm"};
    const char *all = cpuinfo(arena, "flags");
    Buf b;
    buf_init(&b, arena);
    buf_str(&b, "");
    if (!all)
        all = cpuinfo(arena, "Features"); /* of ARM */
    while (all && *all) {
        size_t n = strcspn(all, " ");
        for (int i = 0; i < COUNT_OF(known); i++)
            if (strlen(known[i]) == n && strncmp(known[i], all, n) == 0)
                buf_printf(&b, "%s%s", b.n ? " " : "", known[i]);
        all += n;
        all += strspn(all, " ");
    }
    return b.s;
}
