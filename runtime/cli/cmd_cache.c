/* sdc cache: the folder of kernels on disk. */
#include "runtime/cli/cli.h"

#include <string.h>

int
cmd_cache(Cli *c)
{
    static const char *const name[] = {
        [SDC_CACHE_STAT] = "stat",
        [SDC_CACHE_VERIFY] = "verify",
        [SDC_CACHE_GC] = "gc",
        [SDC_CACHE_CLEAR] = "clear",
    };
    int action = 0;
    while (c->file && action < COUNT_OF(name) && strcmp(c->file, name[action]) != 0)
        action++;
    if (!c->file || action == COUNT_OF(name))
        return cli_error(c, EXIT_USAGE, "'sdc cache' needs stat, verify, gc or clear");
    SdcContext *cx;
    SdcCacheInfo info;
    if (sdc_context_create(NULL, &cx) != SDC_OK)
        return cli_error(c, EXIT_ENVIRONMENT, "out of memory");
    int64_t limit = c->opt[O_limit].given ? c->opt[O_limit].number << 20 : -1;
    int status =
        report_status(c, cx, sdc_cache(cx, (SdcCacheAction)action, limit, &info));
    if (status == EXIT_FINE) {
        printf("%s: %lld entries, %.1f MiB of at most %.0f", info.dir,
               (long long)info.entries, (double)info.bytes / 1048576.0,
               (double)info.limit / 1048576.0);
        if (action == SDC_CACHE_VERIFY)
            printf(", %lld were not whole and are gone", (long long)info.bad);
        else if (action != SDC_CACHE_STAT)
            printf(", %lld removed", (long long)info.removed);
        if (info.temporaries)
            printf(", %lld unfinished files", (long long)info.temporaries);
        putchar('\n');
    }
    sdc_context_destroy(cx);
    return status;
}
