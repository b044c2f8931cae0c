/* What a launch costs on a GPU, on the host's side: sdc_launch and sdc_kernel_launch
   beside the driver's bare cuLaunchKernel of the same code, in one run, round by round.

     plain   a kernel of four arguments
     same    one that takes two tensor maps, with arguments as in the launch before
     other   the same with other arguments each time: the maps are made again
     graph   launches of the plain kernel captured once, and the graph launched

   The kernels do next to nothing and are launched without waiting, as many at a time as
   the queue holds. A figure is the median over the rounds, a difference the median of the
   rounds' differences; WRONG when sdc_launch costs more than its goal: 0.3 us beyond the
   driver with arguments as in the last launch, 1 us with maps made again. */
#include "runtime/rt/cuda.h"
#include "runtime/sdc.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { BATCH = 200, ROUNDS = 101, SIDE = 64, BYTES = 4 * SIDE * SIDE * 2 };

static const char source[] =
    "import triton\n"
    "import triton.language as tl\n"
    "@triton.jit\n"
    "def add(x, y, out, n, BLOCK: tl.constexpr):\n"
    "    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)\n"
    "    a = tl.load(x + i, mask=i < n)\n"
    "    tl.store(out + i, a + tl.load(y + i, mask=i < n), mask=i < n)\n"
    "@triton.jit\n"
    "def product(a, b, c, M, N, K, steps, S: tl.constexpr):\n"
    "    i = tl.arange(0, S)\n"
    "    pa = a + i[:, None] * K + i[None, :]\n"
    "    pb = b + i[:, None] * N + i[None, :]\n"
    "    acc = tl.zeros((S, S), tl.float32)\n"
    "    for k in range(0, steps, S):\n"
    "        x = tl.load(pa, mask=(i[:, None] < M) & (i[None, :] < K - k), other=0.0)\n"
    "        y = tl.load(pb, mask=(i[:, None] < K - k) & (i[None, :] < N), other=0.0)\n"
    "        acc = tl.dot(x, y, acc)\n"
    "        pa += S\n"
    "        pb += S * N\n"
    "    pc = c + i[:, None] * N + i[None, :]\n"
    "    tl.store(pc, acc.to(tl.float16), mask=(i[:, None] < M) & (i[None, :] < N))\n";

typedef int LaunchKernel(void *f, unsigned gx, unsigned gy, unsigned gz, unsigned bx,
                         unsigned by, unsigned bz, unsigned shared, void *stream,
                         void **params, void **extra);
typedef int ModuleLoad(void **module, const void *image);
typedef int ModuleFunction(void **f, void *module, const char *name);
typedef int MapTiled(void *map, int type, unsigned rank, void *address,
                     const uint64_t *dim, const uint64_t *stride, const unsigned *box,
                     const unsigned *step, int interleave, int swizzle, int promotion,
                     int fill);
typedef int FunctionSet(void *f, int attribute, int value);
typedef int CtxSetCurrent(void *cx);
typedef int PrimaryRetain(void **cx, int device);

typedef struct Driver {
    LaunchKernel *launch;
    ModuleLoad *load;
    ModuleFunction *function;
    FunctionSet *function_set;
    MapTiled *map;
    CtxSetCurrent *set;
    PrimaryRetain *retain;
} Driver;

typedef struct Map {
    _Alignas(64) char bytes[128];
} Map;

/* A kernel with two sets of arguments, for sdc and for the driver. */
typedef struct Case {
    SdcFunction *f;
    SdcKernel *k;
    SdcArg args[2][8];
    int narg;
    void *bare;
    void *params[10];
    unsigned threads, shared;
    int turn, alternate;
} Case;

static Driver d;
static SdcContext *cx;
static SdcrtCuda *cuda;
static uint64_t memory[2];
static int32_t sizes[4] = {SIDE, SIDE, SIDE, 0}, one_less = SIDE - 1;
static Map maps[3];
static void *stream, *graph;

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

static _Noreturn void
give_up(const char *what)
{
    fprintf(stderr, "%s: %s", what, cx ? sdc_error(cx) : "");
    exit(1);
}

/* ---------------------------------------------------------------- contenders */

static int
next(Case *c)
{
    return c->alternate ? (c->turn ^= 1) : 0;
}

static int
by_function(Case *c)
{
    return sdc_launch(c->f, sdc_grid(1, 1, 1), c->args[next(c)], c->narg, NULL);
}

static int
by_kernel(Case *c)
{
    return sdc_kernel_launch(c->k, sdc_grid(1, 1, 1), c->args[next(c)], c->narg, NULL);
}

static int
by_driver(Case *c)
{
    return d.launch(c->bare, 1, 1, 1, c->threads, 1, 1, c->shared, NULL, c->params, NULL);
}

static int
by_graph(Case *c)
{
    (void)c;
    return (int)sdcrt_cuda_graph_launch(cuda, graph, stream, NULL);
}

static double
batch(int (*launch)(Case *), Case *c, int n)
{
    int failed = 0, waited = (int)sdcrt_cuda_wait(cuda, NULL);
    double start = now();
    for (int i = 0; i < n; i++)
        failed |= launch(c);
    double t = (now() - start) / n * 1e6;
    if (failed || waited) {
        fprintf(stderr, "status %d, of waiting %d\n", failed, waited);
        give_up("a launch fails");
    }
    return t;
}

static double
median(double *t)
{
    qsort(t, ROUNDS, sizeof *t, by_value);
    return t[ROUNDS / 2];
}

static int
compare(const char *name, Case *c, double goal)
{
    static double f[ROUNDS], k[ROUNDS], b[ROUNDS], df[ROUNDS], dk[ROUNDS];
    for (int r = -2; r < ROUNDS; r++) {
        double x = batch(by_function, c, BATCH), y = batch(by_kernel, c, BATCH);
        double z = batch(by_driver, c, BATCH);
        if (r < 0)
            continue;
        f[r] = x, k[r] = y, b[r] = z;
        df[r] = x - z, dk[r] = y - z;
    }
    double more = median(df);
    printf("%s %-5s cuLaunchKernel %.3f us, sdc_launch %.3f (%+.3f, goal %.1f), "
           "sdc_kernel_launch %.3f (%+.3f)\n",
           more <= goal ? "ok   " : "WRONG", name, median(b), median(f), more, goal,
           median(k), median(dk));
    return more > goal;
}

/* ---------------------------------------------------------------- making them */

static void *
symbol(void *lib, const char *name)
{
    void *p = dlsym(lib, name);
    if (!p)
        give_up(name);
    return p;
}

static void
open_driver(void)
{
    const char *file = getenv("SDC_LIBCUDA");
    void *lib = dlopen(file ? file : "libcuda.so.1", RTLD_NOW), *context, *p;
    if (!lib)
        give_up("no driver");
    p = symbol(lib, "cuLaunchKernel"), memcpy(&d.launch, &p, sizeof p);
    p = symbol(lib, "cuModuleLoadData"), memcpy(&d.load, &p, sizeof p);
    p = symbol(lib, "cuModuleGetFunction"), memcpy(&d.function, &p, sizeof p);
    p = symbol(lib, "cuFuncSetAttribute"), memcpy(&d.function_set, &p, sizeof p);
    p = symbol(lib, "cuTensorMapEncodeTiled"), memcpy(&d.map, &p, sizeof p);
    p = symbol(lib, "cuCtxSetCurrent"), memcpy(&d.set, &p, sizeof p);
    p = symbol(lib, "cuDevicePrimaryCtxRetain"), memcpy(&d.retain, &p, sizeof p);
    if (d.retain(&context, 0) || d.set(context))
        give_up("no context");
}

/* The same code for the driver alone. */
static void
make_bare(Case *c, const char *name)
{
    void *module;
    const char *ptx = sdc_kernel_ptx(c->k), *block = strstr(ptx, ".reqntid ");
    SdcKernelUse use;
    if (d.load(&module, ptx) || d.function(&c->bare, module, name) ||
        sdc_kernel_use(c->k, &use))
        give_up(name);
    c->threads = block ? (unsigned)atoi(block + 9) : 128;
    c->shared = (unsigned)use.shared_bytes;
    if (c->shared > 48 << 10 && d.function_set(c->bare, 8, (int)c->shared))
        give_up(name);
}

static void
make_add(Case *c, SdcModule *m)
{
    static const char *const bind[] = {"BLOCK=128", "num_warps=4"};
    c->narg = 4;
    for (int i = 0; i < 3; i++) {
        c->args[0][i] = sdc_ptr(SDC_FP32, (void *)(uintptr_t)memory[0]);
        c->params[i] = &memory[0];
    }
    c->args[0][3] = sdc_int(one_less);
    c->params[3] = &one_less;
    if (sdc_function_get(m, "add", bind, 2, &c->f) ||
        sdc_specialize(c->f, c->args[0], c->narg, &c->k))
        give_up("add");
    make_bare(c, "add");
}

/* The maps of `dot`'s three tiles as sdc makes them: 64 x 64 of fp16 in rows of 128
   bytes. */
static void
make_map(Map *to)
{
    const uint64_t dim[] = {SIDE, SIDE}, stride[] = {2 * SIDE};
    const unsigned box[] = {SIDE, SIDE}, step[] = {1, 1};
    if (d.map(to, 6, 2, (void *)(uintptr_t)memory[0], dim, stride, box, step, 0, 3, 3, 0))
        give_up("a tensor map");
}

static void
make_product(Case *c, SdcModule *m)
{
    static const char *const bind[] = {"S=64", "num_warps=4", "num_stages=2"};
    c->narg = 7;
    for (int set = 0; set < 2; set++) {
        for (int i = 0; i < 3; i++)
            c->args[set][i] = sdc_ptr(SDC_FP16, (void *)(uintptr_t)memory[set]);
        for (int i = 0; i < 4; i++)
            c->args[set][3 + i] = sdc_int(sizes[i]);
    }
    for (int i = 0; i < 3; i++)
        c->params[i] = &memory[0];
    for (int i = 0; i < 4; i++)
        c->params[3 + i] = &sizes[i];
    for (int i = 0; i < 3; i++) {
        make_map(&maps[i]);
        c->params[7 + i] = &maps[i];
    }
    if (sdc_function_get(m, "product", bind, 3, &c->f) ||
        sdc_specialize(c->f, c->args[0], c->narg, &c->k))
        give_up("product");
    make_bare(c, "product");
}

static void
compare_graph(Case *c)
{
    static double t[ROUNDS];
    if (sdcrt_cuda_stream_create(cuda, &stream, NULL) ||
        sdcrt_cuda_capture(cuda, stream, NULL))
        give_up("no capture");
    for (int i = 0; i < BATCH; i++)
        if (sdc_launch(c->f, sdc_grid(1, 1, 1), c->args[0], c->narg, stream))
            give_up("a captured launch");
    if (sdcrt_cuda_captured(cuda, stream, &graph, NULL))
        give_up("no graph");
    for (int r = 0; r < ROUNDS; r++)
        t[r] = batch(by_graph, c, 1) / BATCH;
    printf("ok    graph a launch of %d captured ones %.3f us each\n", BATCH, median(t));
    sdcrt_cuda_graph_destroy(cuda, graph);
    sdcrt_cuda_stream_destroy(cuda, stream);
}

int
main(void)
{
    SdcContextOptions o = {.target = "cuda"};
    SdcModule *m;
    SdcDevice device;
    int devices, driver;
    SdcrtError e;
    if (sdcrt_cuda_count(&devices, &driver, &e) != SDCRT_OK || !devices) {
        printf("SKIPPED: %s\n", e.text);
        return 0;
    }
    Case add = {0}, product = {0};
    if (sdc_context_create(&o, &cx) || sdc_context_device(cx, &device) ||
        sdc_module_load_text(cx, "launch.tk", source, sizeof source - 1, SDC_LANG_AUTO,
                             &m))
        give_up("no GPU");
    cuda = device.cuda;
    for (int i = 0; i < 2; i++)
        if (sdcrt_cuda_alloc(cuda, BYTES, &memory[i], NULL))
            give_up("no memory");
    open_driver();
    make_add(&add, m);
    make_product(&product, m);
    int wrong = compare("plain", &add, 0.3);
    wrong |= compare("same", &product, 0.3);
    product.alternate = 1;
    wrong |= compare("other", &product, 1.0);
    compare_graph(&add);
    sdc_context_destroy(cx);
    return wrong;
}
