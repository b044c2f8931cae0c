/* sdc doctor: what sdc finds on this machine, and the pages that are made from its
   tables. */
#include "runtime/cli/cli.h"
#include "runtime/cli/tables.h"

#include <dlfcn.h>
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

/* The driver's version as 1000 * major + 10 * minor; 0 without a driver. */
static int
driver_version(void)
{
    void *lib = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    if (!lib)
        return 0;
    union {
        void *p;
        int (*fn)(int *);
    } get = { .p = dlsym(lib, "cuDriverGetVersion") };
    int version = 0;
    if (get.p && get.fn(&version) != 0)
        version = 0;
    dlclose(lib);
    return version;
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
    int driver = driver_version();
    printf("sdc      %s\n", sdc_version());
    printf("targets  %s\n", sdc_targets());
    printf("cpu      %s\n", name);
    printf("threads  %d\n", sdc_context_threads(cx));
    if (driver)
        printf("cuda     driver for CUDA %d.%d\n", driver / 1000, driver % 1000 / 10);
    else
        printf("cuda     no driver: kernels run on the CPU, and PTX can be compiled\n");
    sdc_context_destroy(cx);
    return EXIT_FINE;
}
