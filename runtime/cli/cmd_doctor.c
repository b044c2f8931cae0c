/* sdc doctor: what sdc finds on this machine, and the pages that are made from its
   tables. */
#include "runtime/cli/cli.h"
#include "runtime/cli/gpu.h"
#include "runtime/cli/tables.h"

#include <string.h>

/* "model name : ..." of /proc/cpuinfo, or nothing. */
static void
cpu_name(char *to, size_t size)
{
    snprintf(to, size, "unknown");
    FILE *f = fopen("/proc/cpuinfo", "r");
    char line[256];
    while (f && fgets(line, sizeof line, f)) {
        const char *colon = strchr(line, ':');
        if (strncmp(line, "model name", 10) != 0 || !colon)
            continue;
        snprintf(to, size, "%.*s", (int)strcspn(colon + 2, "\n"), colon + 2);
        break;
    }
    if (f)
        fclose(f);
}

int
cmd_doctor(Cli *c)
{
    const OptionValue *o = c->opt;
    if (c->file)
        return cli_error(c, EXIT_USAGE, "'sdc doctor' takes no file");
    if (o[O_print_ops].given)
        print_ops();
    if (o[O_print_passes].given)
        print_passes();
    if (o[O_print_builtins].given)
        print_builtins();
    if (o[O_print_man].given)
        print_man(stdout);
    if (o[O_print_completion].given)
        print_completion(stdout, o[O_print_completion].text);
    if (o[O_print_ops].given || o[O_print_passes].given || o[O_print_builtins].given ||
        o[O_print_man].given || o[O_print_completion].given)
        return EXIT_FINE;
    SdcContext *cx;
    if (sdc_context_create(NULL, &cx) != SDC_OK)
        return cli_error(c, EXIT_ENVIRONMENT, "out of memory");
    char name[128];
    cpu_name(name, sizeof name);
    printf("sdc      %s\n", sdc_version());
    printf("llvm     %s\n", SDC_LLVM_VERSION);
    printf("targets  %s\n", sdc_targets());
    printf("cpu      %s\n", name);
    printf("threads  %d\n", sdc_context_threads(cx));
    SdcCacheInfo cache;
    if (sdc_cache(cx, SDC_CACHE_STAT, -1, &cache) == SDC_OK)
        printf("cache    %s, %lld kernels, %.1f MiB of at most %.0f\n", cache.dir,
               (long long)cache.entries, (double)cache.bytes / 1048576.0,
               (double)cache.limit / 1048576.0);
    else
        printf("cache    none: kernels are compiled by every process\n");
    sdc_context_destroy(cx);
    const char *target = o[O_target].text;
    return gpu_doctor(c, target && strcmp(target, "cuda") == 0);
}
