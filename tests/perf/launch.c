/* What a launch costs on a GPU, on the host's side: sdc_launch and sdc_kernel_launch
   beside the driver's bare cuLaunchKernel of the same kernel, in one run. A kernel that
   does next to nothing, launched without waiting; medians of batches that the queue
   holds. */
#include "runtime/rt/cuda.h"
#include "runtime/sdc.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { BATCH = 200, BATCHES = 101 };

static const char source[] =
    "import triton\n"
    "import triton.language as tl\n"
    "@triton.jit\n"
    "def add(x, y, out, n, BLOCK: tl.constexpr):\n"
    "    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)\n"
    "    a = tl.load(x + i, mask=i < n)\n"
    "    tl.store(out + i, a + tl.load(y + i, mask=i < n), mask=i < n)\n";

typedef int LaunchKernel(void *f, unsigned gx, unsigned gy, unsigned gz, unsigned bx,
                         unsigned by, unsigned bz, unsigned shared, void *stream,
                         void **params, void **extra);
typedef int ModuleLoad(void **module, const void *image);
typedef int ModuleFunction(void **f, void *module, const char *name);
typedef int CtxSetCurrent(void *cx);
typedef int PrimaryRetain(void **cx, int device);

typedef struct Bare {
    LaunchKernel *launch;
    void *function;
    void *params[4];
    uint64_t x;
    int n;
} Bare;

static SdcFunction *add;
static SdcKernel *kernel;
static SdcArg args[4];
static Bare bare;

static double
now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static int
by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static int
launch_bare(void)
{
    return bare.launch(bare.function, 1, 1, 1, 128, 1, 1, 0, NULL, bare.params, NULL);
}

static int
launch_function(void)
{
    return sdc_launch(add, sdc_grid(1, 1, 1), args, 4, NULL) != SDC_OK;
}

static int
launch_kernel(void)
{
    return sdc_kernel_launch(kernel, sdc_grid(1, 1, 1), args, 4, NULL) != SDC_OK;
}

/* Microseconds of a launch: the median of batches, with an empty queue before each. */
static double
cost(SdcrtCuda *cuda, int (*launch)(void))
{
    static double t[BATCHES];
    int failed = 0;
    for (int b = 0; b < BATCHES; b++) {
        failed |= sdcrt_cuda_wait(cuda, NULL) != SDCRT_OK;
        double start = now();
        for (int i = 0; i < BATCH; i++)
            failed |= launch();
        t[b] = (now() - start) / BATCH * 1e6;
    }
    qsort(t, BATCHES, sizeof *t, by_value);
    return failed ? -1 : t[BATCHES / 2];
}

static void *
symbol(void *lib, const char *name)
{
    void *p = dlsym(lib, name);
    if (!p) {
        fprintf(stderr, "no %s\n", name);
        exit(1);
    }
    return p;
}

static void
make_bare(const char *ptx)
{
    const char *file = getenv("SDC_LIBCUDA");
    void *lib = dlopen(file ? file : "libcuda.so.1", RTLD_NOW), *module, *cx, *p;
    ModuleLoad *load;
    ModuleFunction *function;
    CtxSetCurrent *set;
    PrimaryRetain *retain;
    p = symbol(lib, "cuLaunchKernel"), memcpy(&bare.launch, &p, sizeof p);
    p = symbol(lib, "cuModuleLoadData"), memcpy(&load, &p, sizeof p);
    p = symbol(lib, "cuModuleGetFunction"), memcpy(&function, &p, sizeof p);
    p = symbol(lib, "cuCtxSetCurrent"), memcpy(&set, &p, sizeof p);
    p = symbol(lib, "cuDevicePrimaryCtxRetain"), memcpy(&retain, &p, sizeof p);
    if (retain(&cx, 0) || set(cx) || load(&module, ptx) ||
        function(&bare.function, module, "add")) {
        fprintf(stderr, "the driver refuses the kernel\n");
        exit(1);
    }
    bare.params[0] = bare.params[1] = bare.params[2] = &bare.x;
    bare.params[3] = &bare.n;
}

int
main(void)
{
    static const char *const bind[] = {"BLOCK=128", "num_warps=4"};
    SdcContextOptions o = {.target = "cuda"};
    SdcContext *cx;
    SdcModule *m;
    SdcDevice d;
    if (sdc_context_create(&o, &cx) || sdc_context_device(cx, &d) ||
        sdc_module_load_text(cx, "add.tk", source, sizeof source - 1, SDC_LANG_AUTO,
                             &m) ||
        sdc_function_get(m, "add", bind, 2, &add) ||
        sdcrt_cuda_alloc(d.cuda, 4096, &bare.x, NULL)) {
        fputs(sdc_error(cx), stderr);
        return 1;
    }
    bare.n = 127;
    for (int i = 0; i < 3; i++)
        args[i] = sdc_ptr(SDC_FP32, (void *)(uintptr_t)bare.x);
    args[3] = sdc_int(bare.n);
    if (sdc_specialize(add, args, 4, &kernel)) {
        fputs(sdc_error(cx), stderr);
        return 1;
    }
    for (int current = 0; current < 2; current++) {
        if (current)
            make_bare(sdc_kernel_ptx(kernel)); /* makes the context current, too */
        double f = cost(d.cuda, launch_function), k = cost(d.cuda, launch_kernel);
        double b = current ? cost(d.cuda, launch_bare) : 0;
        printf("%s: sdc_launch %.3f us, sdc_kernel_launch %.3f us",
               current ? "context current" : "no context current", f, k);
        if (current)
            printf(", cuLaunchKernel %.3f us: +%.3f and +%.3f", b, f - b, k - b);
        putchar('\n');
    }
    sdc_context_destroy(cx);
    return 0;
}
