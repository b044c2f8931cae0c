/* What the command line does with a GPU beside launching: arrays, times, a report. */
#include "runtime/cli/gpu.h"

#include "runtime/rt/cuda.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static int
failed(const Cli *c, const SdcrtError *e)
{
    return cli_error(c, EXIT_ENVIRONMENT, "%s", e->text);
}

int
gpu_upload(Cli *c, GpuArrays *g, SdcrtCuda *cuda, RunArg *args, int n)
{
    SdcrtError e;
    *g = (GpuArrays){cuda, arena_array(&c->arena, uint64_t, n + 1), n};
    for (int i = 0; i < n; i++) {
        Array *a = &args[i].array;
        if (!a->data)
            continue;
        if (sdcrt_cuda_alloc(cuda, a->bytes, &g->at[i], &e) != SDCRT_OK ||
            sdcrt_cuda_write(cuda, g->at[i], a->data, a->bytes, &e) != SDCRT_OK)
            return failed(c, &e);
        args[i].value.v.ptr = (void *)(uintptr_t)g->at[i];
    }
    for (int i = 0; i < n; i++)
        for (int k = 0; k < n; k++)
            if (args[k].array.data)
                spec_move(&args[i], args[k].array.data, (void *)(uintptr_t)g->at[k]);
    return EXIT_FINE;
}

int
gpu_download(Cli *c, GpuArrays *g, RunArg *args)
{
    SdcrtError e;
    if (sdcrt_cuda_wait(g->cuda, &e) != SDCRT_OK)
        return failed(c, &e);
    for (int i = 0; i < g->n; i++) {
        Array *a = &args[i].array;
        if (g->at[i] &&
            sdcrt_cuda_read(g->cuda, a->data, g->at[i], a->bytes, &e) != SDCRT_OK)
            return failed(c, &e);
    }
    return EXIT_FINE;
}

void
gpu_arrays_done(GpuArrays *g)
{
    for (int i = 0; i < g->n; i++)
        sdcrt_cuda_free(g->cuda, g->at[i], NULL);
    g->n = 0;
}

/* ---------------------------------------------------------------- doctor */

static const double gib = 1073741824.0;

/* One device, through a context as a host would have it. */
static int
device_line(int ordinal)
{
    SdcContextOptions o = {.target = "cuda", .device = ordinal};
    SdcContext *cx;
    SdcDevice d;
    SdcrtError e;
    size_t left = 0, total = 0;
    if (sdc_context_create(&o, &cx) != SDC_OK) {
        printf("gpu %d    out of memory\n", ordinal);
        return EXIT_ENVIRONMENT;
    }
    int status = EXIT_ENVIRONMENT;
    if (sdc_context_device(cx, &d) != SDC_OK) {
        printf("gpu %d    %s", ordinal, sdc_error(cx));
    } else if (sdcrt_cuda_memory(d.cuda, &left, &total, &e) != SDCRT_OK) {
        printf("gpu %d    %s: %s\n", ordinal, d.name, e.text);
    } else {
        const SdcrtCudaInfo *i = sdcrt_cuda_info(d.cuda);
        printf("gpu %d    %s, capability %d.%d, target %s, %d processors, %.1f GiB of "
               "memory (%.1f free), %d KiB of shared memory",
               ordinal, i->name, i->sm / 10, i->sm % 10, d.target, i->processors,
               (double)total / gib, (double)left / gib, i->shared_max >> 10);
        if (i->clock_khz > 0)
            printf(", at most %d MHz, memory %d", i->clock_khz / 1000,
                   i->memory_clock_khz / 1000);
        putchar('\n');
        status = EXIT_FINE;
    }
    sdc_context_destroy(cx);
    return status;
}

/* The first executable of this name in $PATH. */
static bool
in_path(const char *name, char *to, size_t size)
{
    const char *p = getenv("PATH");
    while (p && *p) {
        int n = (int)strcspn(p, ":");
        snprintf(to, size, "%.*s/%s", n, p, name);
        if (n && access(to, X_OK) == 0)
            return true;
        p += n + (p[n] == ':');
    }
    return false;
}

int
gpu_doctor(const Cli *c, bool wanted)
{
    SdcrtError e;
    int count, driver, status = EXIT_FINE;
    char path[4096];
    SdcrtStatus got = sdcrt_cuda_count(&count, &driver, &e);
    const char *file = getenv("SDC_LIBCUDA");
    if (driver)
        printf("cuda     driver for CUDA %d.%d (%s)\n", driver / 1000, driver % 1000 / 10,
               file && *file ? file : "libcuda.so.1");
    if (got != SDCRT_OK) {
        printf("cuda     %s\n", e.text);
        /* Without any driver this is a machine for the CPU, and nothing is wrong. */
        status = driver || wanted || (file && *file) ? EXIT_ENVIRONMENT : EXIT_FINE;
    }
    for (int i = 0; i < count; i++)
        if (device_line(i) != EXIT_FINE)
            status = EXIT_ENVIRONMENT;
    if (got == SDCRT_OK && !count) {
        printf("gpu      none: look at nvidia-smi and CUDA_VISIBLE_DEVICES\n");
        status = EXIT_ENVIRONMENT;
    }
    if (!count)
        printf("         kernels run on the CPU, and PTX can be compiled\n");
    if (in_path("ptxas", path, sizeof path))
        printf("ptxas    %s\n", path);
    else
        printf("ptxas    none in PATH; nothing needs it, the driver compiles PTX\n");
    return status == EXIT_FINE
               ? status
               : cli_error(c, status, "no GPU can be used%s",
                           count ? " or not all of them: see above" : ": see above");
}
