/* sdc doctor: what sdc finds on this machine, and the pages that are made from its
   tables. */
#include "runtime/cli/cli.h"
#include "runtime/cli/gpu.h"
#include "runtime/cli/machine.h"
#include "runtime/cli/tables.h"

#include <string.h>
#include <unistd.h>

static const double mib = 1048576.0;

static void
print_size(const char *name, int64_t bytes)
{
    if (bytes >= 1 << 20)
        printf("%s %.4g MiB", name, (double)bytes / mib);
    else if (bytes > 0)
        printf("%s %lld KiB", name, (long long)bytes >> 10);
}

/* What code is generated for, and what times that are measured here depend on. */
static void
print_machine(Cli *c)
{
    Machine m;
    machine_look(&c->arena, &m);
    const char *features = machine_features(&c->arena);
    printf("system   %s\n", m.system);
    printf("cpu      %s, %d processor%s", m.cpu, m.processors,
           m.processors == 1 ? "" : "s");
    if (m.allowed != m.processors)
        printf(" (%d for this process)", m.allowed);
    if (m.mhz > 0)
        printf(", %.0f MHz", m.mhz);
    if (m.mhz_most > 0)
        printf(" of at most %.0f", m.mhz_most);
    printf("%s%s\n", *m.governor ? ", governor " : "", m.governor);
    printf("features %s\n", *features ? features : "none that matter for kernels");
    if (m.cache[0] > 0) {
        printf("caches   ");
        print_size("L1", m.cache[0]);
        print_size(", L2", m.cache[1]);
        print_size(", L3", m.cache[2]);
        putchar('\n');
    }
    if (m.load[0] >= 0)
        printf("load     %.2f %.2f %.2f%s\n", m.load[0], m.load[1], m.load[2],
               m.load[0] > 0.5 * m.processors
                   ? ": others work here, what is measured now is noisy"
                   : "");
}

/* Variables that change what sdc does, where they are set. */
static void
print_environment(void)
{
    for (char **v = environ; *v; v++)
        if (strncmp(*v, "SDC_", 4) == 0)
            printf("variable %s\n", *v);
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
    printf("sdc      %s\n", sdc_version());
    printf("llvm     %s\n", SDC_LLVM_VERSION);
    printf("targets  %s\n", sdc_targets());
    print_machine(c);
    printf("threads  %d\n", sdc_context_threads(cx));
    SdcCacheInfo cache;
    if (sdc_cache(cx, SDC_CACHE_STAT, -1, &cache) == SDC_OK)
        printf("cache    %s, %lld kernels, %.1f MiB of at most %.0f\n", cache.dir,
               (long long)cache.entries, (double)cache.bytes / mib,
               (double)cache.limit / mib);
    else
        printf("cache    none: kernels are compiled by every process\n");
    sdc_context_destroy(cx);
    print_environment();
    const char *target = o[O_target].text;
    return gpu_doctor(c, target && strcmp(target, "cuda") == 0);
}
