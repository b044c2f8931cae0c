/* Kernels on a GPU: PTX through the driver's compiler, and launches. */
#include "runtime/rt/cuda_map.h"

#include <stdlib.h>
#include <string.h>

enum {
    FUNC_STATIC_SHARED = 1,
    FUNC_LOCAL = 3,
    FUNC_REGISTERS = 4,
    FUNC_MAX_DYNAMIC_SHARED = 8,
    JIT_ERROR_LOG = 5,
    JIT_ERROR_LOG_SIZE = 6,
    INPUT_PTX = 1,
    OVERLAP_DRIVER = 12030 /* the first that keeps it in graphs */
};

struct SdcrtCudaKernel {
    void *context, *module, *function;
    SdcrtCudaUse use;
    SdcrtMeta meta;
    CudaMapCache *maps; /* NULL: the kernel takes none */
    unsigned overlap;   /* attributes of a launch: 1 where launches may overlap */
};

static void
kernel_free(SdcrtCudaKernel *k)
{
    free(k->maps);
    free(k);
}

static SdcrtCudaKernel *
kernel_new(const SdcrtMeta *meta)
{
    SdcrtCudaKernel *k = calloc(1, sizeof *k);
    if (!k)
        return NULL;
    k->meta = *meta;
    if (!meta->nmap)
        return k;
    k->maps = aligned_alloc(_Alignof(CudaMapCache), sizeof *k->maps);
    if (!k->maps) {
        free(k);
        return NULL;
    }
    k->maps->full = 0;
    atomic_flag_clear(&k->maps->busy);
    return k;
}

/* PTX to a module by way of the linker, which compiles without the lock that the loader
   holds: 16 threads take 0.12 s for what loading takes 1.03 s (H200, driver 580). */
static int
link_module(SdcrtCuda *c, SdcrtCudaKernel *k, const char *ptx, int *options,
            void **values)
{
    void *link = NULL, *image = NULL;
    size_t size;
    int code = c->d.link_create(2, options, values, &link);
    if (code)
        return code;
    code = c->d.link_add(link, INPUT_PTX, ptx, strlen(ptx) + 1, k->meta.symbol, 0, NULL,
                         NULL);
    if (!code)
        code = c->d.link_complete(link, &image, &size);
    if (!code)
        code = c->d.module_load(&k->module, image, 0, NULL, NULL);
    c->d.link_destroy(link);
    return code;
}

/* Loads into the current context. */
static SdcrtStatus
load_module(SdcrtCuda *c, SdcrtCudaKernel *k, const char *ptx, int beside,
            SdcrtError *e)
{
    char log[1024] = "";
    int options[] = {JIT_ERROR_LOG, JIT_ERROR_LOG_SIZE};
    void *values[] = {log, (void *)(uintptr_t)sizeof log};
    int linker =
        c->d.link_create && c->d.link_add && c->d.link_complete && c->d.link_destroy;
    int code = beside && linker ? link_module(c, k, ptx, options, values)
                                : c->d.module_load(&k->module, ptx, 2, options, values);
    log[sizeof log - 1] = '\0';
    for (size_t n = strlen(log); n > 0 && (log[n - 1] == '\n' || log[n - 1] == ' '); n--)
        log[n - 1] = '\0';
    if (!code)
        return SDCRT_OK;
    k->module = NULL;
    return cuda_fail(c, e, code, "kernel '%s' for %s is refused by the driver of %s%s%s",
                     k->meta.name, k->meta.target, c->info.name, *log ? ": " : "", log);
}

/* Finds the kernel in its module and asks for the shared memory that it needs. */
static SdcrtStatus
prepare(SdcrtCuda *c, SdcrtCudaKernel *k, SdcrtError *e)
{
    const struct {
        int attribute;
        int32_t *to;
    } wanted[] = {
        {FUNC_REGISTERS, &k->use.registers},
        {FUNC_LOCAL, &k->use.local_bytes},
        {FUNC_STATIC_SHARED, &k->use.static_shared},
    };
    int code = c->d.module_function(&k->function, k->module, k->meta.symbol);
    if (code)
        return cuda_fail(c, e, code, "kernel '%s' is not in its module", k->meta.name);
    for (size_t i = 0; i < sizeof wanted / sizeof *wanted && !code; i++)
        code = c->d.function_get(wanted[i].to, wanted[i].attribute, k->function);
    int64_t total = k->meta.shared_bytes + k->use.static_shared;
    if (!code && total > c->info.shared)
        code = c->d.function_set(k->function, FUNC_MAX_DYNAMIC_SHARED,
                                 (int)k->meta.shared_bytes);
    return code ? cuda_fail(c, e, code,
                            "kernel '%s' cannot be prepared (%lld bytes of shared "
                            "memory, %d registers)",
                            k->meta.name, (long long)total, k->use.registers)
                : SDCRT_OK;
}

static SdcrtStatus
load(SdcrtCuda *c, const char *ptx, const SdcrtMeta *meta, int beside,
     SdcrtCudaKernel **out, SdcrtError *e)
{
    if (!c || !ptx || !meta || !out)
        return cuda_missing(e, !c      ? "the device"
                               : !ptx  ? "load: ptx"
                               : !meta ? "load: meta"
                                       : "load: out");
    *out = NULL;
    if (meta->shared_bytes > c->info.shared_max)
        return cuda_refuse(e, SDCRT_ERROR_LIMIT,
                           "kernel '%s' needs %lld bytes of shared memory, %s has %d: "
                           "use smaller tiles or fewer stages",
                           meta->name, (long long)meta->shared_bytes, c->info.name,
                           c->info.shared_max);
    if (meta->driver > c->info.driver)
        return cuda_refuse(e, SDCRT_ERROR_MAP,
                           "kernel '%s' writes tensor maps, which a driver of CUDA %d.%d "
                           "or later can compile: install one",
                           meta->name, meta->driver / 1000, meta->driver % 1000 / 10);
    SdcrtCudaKernel *k = kernel_new(meta);
    if (!k)
        return cuda_refuse(e, SDCRT_ERROR_MEMORY, "out of memory");
    CudaScope s;
    SdcrtStatus status = cuda_enter(c, &s, e);
    if (status == SDCRT_OK) {
        k->context = s.context;
        k->overlap = meta->overlap && c->info.driver >= OVERLAP_DRIVER;
        status = load_module(c, k, ptx, beside, e);
        if (status == SDCRT_OK)
            status = prepare(c, k, e);
        if (status != SDCRT_OK && k->module)
            c->d.module_unload(k->module);
        cuda_leave(c, &s);
    }
    if (status == SDCRT_OK)
        *out = k;
    else
        kernel_free(k);
    return status;
}

SdcrtStatus
sdcrt_cuda_load(SdcrtCuda *c, const char *ptx, const SdcrtMeta *meta,
                SdcrtCudaKernel **out, SdcrtError *e)
{
    return load(c, ptx, meta, 0, out, e);
}

SdcrtStatus
sdcrt_cuda_load_beside(SdcrtCuda *c, const char *ptx, const SdcrtMeta *meta,
                       SdcrtCudaKernel **out, SdcrtError *e)
{
    return load(c, ptx, meta, 1, out, e);
}

void
sdcrt_cuda_unload(SdcrtCuda *c, SdcrtCudaKernel *k)
{
    void *popped;
    if (!c || !k || cuda_is_forked(c))
        return;
    /* Fails when the caller has destroyed the context: the module went with it. */
    if (c->d.context_push(k->context) == 0) {
        c->d.module_unload(k->module);
        c->d.context_pop(&popped);
    }
    kernel_free(k);
}

const SdcrtCudaUse *
sdcrt_cuda_use(const SdcrtCudaKernel *k)
{
    return k ? &k->use : NULL;
}

static SdcrtStatus
refused_launch(const SdcrtCuda *c, const SdcrtCudaKernel *k, const CudaLaunch *how,
               int code, SdcrtError *e)
{
    return cuda_fail(c, e, code,
                     "kernel '%s' cannot be launched: grid (%u, %u, %u), %d threads, %u "
                     "bytes of shared memory, %d registers",
                     k->meta.name, how->grid[0], how->grid[1], how->grid[2],
                     k->meta.threads, how->shared, k->use.registers);
}

/* Neighbours along axis 0 as clusters, where there are as many as that takes; of programs
   that take one tile after another one more does no harm. It pays where rows begin off
   the cache's lines, so that each is asked for twice (3000x5000x7000, fp16, 128x256
   tiles, H200, tests/gpu/shapes --tiles, 2026-11-23: 330 us, 452 without; 4096x4096x4096,
   whose rows do not: 185 us with and without; 64 of 512x512x512: 40 us, 38 without). */
static void
in_clusters(const SdcrtCuda *c, const SdcrtCudaKernel *k, CudaLaunch *how,
            CudaLaunchAttribute *with)
{
    const unsigned each = (unsigned)k->meta.cluster;
    unsigned more = (each - how->grid[0] % each) % each;
    unsigned room = (unsigned)(c->info.processors * k->meta.ctas_per_sm);
    if (how->grid[0] < each || (more && how->grid[0] + more > room))
        return;
    memcpy(with, how->attributes, how->nattribute * sizeof *with);
    with[how->nattribute] =
        (CudaLaunchAttribute){.id = CUDA_LAUNCH_CLUSTER, .value.cluster = {each, 1, 1}};
    how->attributes = with;
    how->nattribute++;
    how->grid[0] += more;
}

/* Maps are made and kernels launched in the kernel's own context. */
static SdcrtStatus
launch_here(SdcrtCuda *c, const SdcrtCudaKernel *k, const CudaLaunch *how, void **params,
            const uint64_t *args, SdcrtError *e)
{
    CudaMap maps[SDCRT_MAX_MAPS];
    CudaLaunchAttribute with[2];
    CudaLaunch so = *how;
    int off_lines = 0;
    if (k->meta.nmap) {
        SdcrtStatus status = cuda_maps(c, &k->meta, k->maps, args, maps, &off_lines, e);
        if (status != SDCRT_OK)
            return status;
    }
    for (int i = 0; i < k->meta.nmap; i++)
        params[k->meta.nparam + i] = &maps[i];
    if (k->meta.cluster && off_lines)
        in_clusters(c, k, &so, with);
    int code = c->d.launch(&so, k->function, params, NULL);
    return code ? refused_launch(c, k, &so, code, e) : SDCRT_OK;
}

static SdcrtStatus
launch_in_context(SdcrtCuda *c, const SdcrtCudaKernel *k, const CudaLaunch *how,
                  void **params, const uint64_t *args, SdcrtError *e)
{
    void *now = NULL, *popped;
    SdcrtStatus status = cuda_alive(c, e);
    if (status != SDCRT_OK)
        return status;
    int code = c->d.context_get(&now);
    if (!code && now == k->context)
        return launch_here(c, k, how, params, args, e);
    if (!code)
        code = c->d.context_push(k->context);
    if (code)
        return refused_launch(c, k, how, code, e);
    status = launch_here(c, k, how, params, args, e);
    c->d.context_pop(&popped);
    return status;
}

SdcrtStatus
sdcrt_cuda_launch(SdcrtCuda *c, const SdcrtCudaKernel *k, const uint64_t *args,
                  SdcGrid grid, void *stream, SdcrtError *e)
{
    const int32_t size[] = {grid.x, grid.y, grid.z};
    if (!c || !k || (!args && k->meta.nparam))
        return cuda_missing(e, !c   ? "the device"
                               : !k ? "launch: the kernel"
                                    : "launch: args");
    void *params[SDCRT_MAX_PARAMS + SDCRT_MAX_MAPS + 3];
    CudaLaunchAttribute overlap = {.id = CUDA_LAUNCH_OVERLAP, .value.overlap = 1};
    CudaLaunch how = {.block = {(unsigned)k->meta.threads, 1, 1},
                      .shared = (unsigned)k->meta.shared_bytes,
                      .stream = stream,
                      .attributes = &overlap,
                      .nattribute = k->overlap};
    int nothing = 0;
    int64_t all = 1;
    for (int i = 0; i < 3; i++) {
        int most = c->info.max_grid[k->meta.folds ? 0 : i];
        bool many = k->meta.folds && size[i] > 0 && all > most / size[i];
        if (size[i] < 0 || size[i] > most || many)
            return cuda_refuse(e, SDCRT_ERROR_ARGUMENT,
                               "kernel '%s': a grid of %d along axis %d cannot run, %s "
                               "takes 0 to %d",
                               k->meta.name, size[i], i, c->info.name, most);
        nothing |= size[i] == 0;
        all *= k->meta.folds ? size[i] : 1;
        how.grid[i] = (unsigned)size[i];
    }
    if (nothing)
        return SDCRT_OK;
    for (int i = 0; i < 3 && k->meta.folds; i++) {
        how.grid[i] = i ? 1 : (unsigned)all;
        params[k->meta.nparam + k->meta.nmap + i] = (void *)(uintptr_t)&size[i];
    }
    if (k->meta.ctas_per_sm) {
        int64_t room = (int64_t)c->info.processors * k->meta.ctas_per_sm;
        if (size[0] > room)
            how.grid[0] = (unsigned)room;
        params[k->meta.nparam + k->meta.nmap] = (void *)(uintptr_t)&size[0];
    }
    for (int i = 0; i < k->meta.nparam; i++) {
        if (k->meta.params[i].multiple > 1 && args[i] % k->meta.params[i].multiple)
            return cuda_refuse(e, SDCRT_ERROR_MAP,
                               "kernel '%s': argument '%s' is no multiple of %d",
                               k->meta.name, k->meta.params[i].name,
                               k->meta.params[i].multiple);
        /* Little-endian: a narrower value is the first bytes of its slot. The driver
           copies and writes nothing. */
        params[i] = (void *)(uintptr_t)&args[i];
    }
    return launch_in_context(c, k, &how, params, args, e);
}
