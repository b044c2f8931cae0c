/* The GPU of a context: opened when first needed; kernels loaded once in each CUcontext
   that launches them.

   A launch asks which CUcontext it is in and finds the kernel's image for it in a list
   that only grows at its head, without a lock; loading happens under the module's lock.
 */
#include "runtime/internal.h"

#include "ir/target.h"
#include "runtime/rt/cuda_map.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static SdcStatus
status_of(SdcrtStatus status)
{
    switch (status) {
    case SDCRT_OK: return SDC_OK;
    case SDCRT_ERROR_ARGUMENT: return SDC_ERROR_ARGUMENT;
    case SDCRT_ERROR_MEMORY: return SDC_ERROR_MEMORY;
    case SDCRT_ERROR_MAP: return SDC_ERROR_ARGUMENT;
    case SDCRT_ERROR_LIMIT: return SDC_ERROR_SOURCE;
    case SDCRT_ERROR_DEVICE: return SDC_ERROR_ENVIRONMENT;
    case SDCRT_ERROR_CODE: break;
    }
    return SDC_ERROR_INTERNAL;
}

static SdcStatus
gpu_fail(SdcContext *cx, SdcrtStatus status, const SdcrtError *why)
{
    return context_fail(cx, status_of(status), "%s", why->text);
}

/* Does PTX for the target run there? The driver compiles it for later GPUs, too, but that
   of the "a" ones for theirs alone. */
static bool
runs_on(const char *target, int sm)
{
    TargetInfo t;
    return target_info(target, &t) && t.gpu && (t.feature_a ? t.sm == sm : t.sm <= sm);
}

/* The newest target whose PTX runs there, or NULL: it knows most of the device. */
static const char *
target_of(int sm)
{
    static const char *const names[] = {
#define TARGET(name, ...) name,
#include "ir/target.def"
    };
    const char *newest = NULL;
    TargetInfo t, best = {0};
    for (int i = 0; i < COUNT_OF(names); i++) {
        if (!runs_on(names[i], sm) || !target_info(names[i], &t))
            continue;
        if (t.sm > best.sm || (t.sm == best.sm && t.feature_a)) {
            newest = names[i];
            best = t;
        }
    }
    return newest;
}

/* Called under open_lock. */
static SdcStatus
open_device(SdcContext *cx, SdcrtCuda **out)
{
    SdcrtError why;
    SdcrtStatus status = sdcrt_cuda_open(cx->device, out, &why);
    if (status != SDCRT_OK)
        return gpu_fail(cx, status, &why);
    const SdcrtCudaInfo *info = sdcrt_cuda_info(*out);
    cx->gpu_target = cx->gpu_asked ? cx->gpu_asked : target_of(info->sm);
    if (!cx->gpu_target || !runs_on(cx->gpu_target, info->sm)) {
        SdcStatus got = context_fail(
            cx, SDC_ERROR_ENVIRONMENT,
            "GPU %d, %s, has compute capability %d.%d%s%s%s; targets: %s", cx->device,
            info->name, info->sm / 10, info->sm % 10,
            cx->gpu_asked ? ", where code for " : "", cx->gpu_asked ? cx->gpu_asked : "",
            cx->gpu_asked ? " does not run" : "", target_names());
        sdcrt_cuda_close(*out);
        return got;
    }
    atomic_store_explicit(&cx->cuda, *out, memory_order_release);
    return SDC_OK;
}

SdcStatus
context_cuda(SdcContext *cx, SdcrtCuda **out)
{
    *out = NULL;
    SdcStatus status = context_alive(cx);
    if (status != SDC_OK)
        return status;
    *out = atomic_load_explicit(&cx->cuda, memory_order_acquire);
    if (*out)
        return SDC_OK;
    status = context_lock(cx, &cx->open_lock);
    if (status != SDC_OK)
        return status;
    *out = atomic_load_explicit(&cx->cuda, memory_order_relaxed);
    status = *out ? SDC_OK : open_device(cx, out);
    pthread_mutex_unlock(&cx->open_lock);
    return status;
}

SdcStatus
sdc_context_device(SdcContext *cx, SdcDevice *out)
{
    SdcrtCuda *cuda;
    if (!cx)
        return SDC_ERROR_ARGUMENT;
    if (!cx->on_gpu)
        return context_fail(cx, SDC_ERROR_ARGUMENT, "the context's target is the CPU");
    if (!out)
        return context_fail(cx, SDC_ERROR_ARGUMENT, "device: no place to put it");
    SdcStatus status = context_cuda(cx, &cuda);
    if (status != SDC_OK)
        return status;
    const SdcrtCudaInfo *info = sdcrt_cuda_info(cuda);
    *out = (SdcDevice){.target = cx->gpu_target,
                       .sm = info->sm,
                       .driver = info->driver,
                       .memory = info->memory,
                       .cuda = cuda};
    memcpy(out->name, info->name, sizeof out->name);
    return SDC_OK;
}

/* ---------------------------------------------------------------- kernels */

static GpuImage *
find_image(SdcKernel *k, uint64_t context)
{
    GpuImage *g = atomic_load_explicit(&k->images, memory_order_acquire);
    while (g && g->context != context)
        g = g->next;
    return g;
}

/* Called under the module's lock. */
static SdcStatus
load_image(SdcKernel *k, SdcrtCuda *cuda, uint64_t context)
{
    SdcContext *cx = k->mod->cx;
    SdcrtError why;
    GpuImage *g = calloc(1, sizeof *g);
    if (!g)
        return context_fail(cx, SDC_ERROR_MEMORY, "out of memory");
    SdcrtStatus got =
        k->beside ? sdcrt_cuda_load_beside(cuda, k->ptx, k->meta, &g->kernel, &why)
                  : sdcrt_cuda_load(cuda, k->ptx, k->meta, &g->kernel, &why);
    if (got != SDCRT_OK) {
        free(g);
        return gpu_fail(cx, got, &why);
    }
    g->context = context;
    g->next = atomic_load_explicit(&k->images, memory_order_relaxed);
    atomic_store_explicit(&k->images, g, memory_order_release);
    return SDC_OK;
}

SdcStatus
gpu_load(SdcKernel *k)
{
    SdcrtCuda *cuda;
    SdcrtError why;
    uint64_t context;
    SdcStatus status = context_cuda(k->mod->cx, &cuda);
    if (status != SDC_OK)
        return status;
    SdcrtStatus got = sdcrt_cuda_context(cuda, &context, &why);
    if (got != SDCRT_OK)
        return gpu_fail(k->mod->cx, got, &why);
    return find_image(k, context) ? SDC_OK : load_image(k, cuda, context);
}

void
gpu_unload(SdcKernel *k)
{
    GpuImage *g = atomic_load(&k->images);
    while (g) {
        GpuImage *next = g->next;
        sdcrt_cuda_unload(atomic_load(&k->mod->cx->cuda), g->kernel);
        free(g);
        g = next;
    }
    atomic_store(&k->images, NULL);
    free(k->ptx);
    k->ptx = NULL;
}

/* The image for the calling thread's context, loaded if need be. */
static SdcStatus
current_image(SdcKernel *k, SdcrtCuda *cuda, GpuImage **out)
{
    SdcrtError why;
    uint64_t context;
    SdcrtStatus got = sdcrt_cuda_context(cuda, &context, &why);
    if (got != SDCRT_OK)
        return gpu_fail(k->mod->cx, got, &why);
    *out = find_image(k, context);
    if (*out)
        return SDC_OK;
    SdcStatus status = context_lock(k->mod->cx, &k->mod->lock);
    if (status != SDC_OK)
        return status;
    *out = find_image(k, context); /* another thread may have been faster */
    status = *out ? SDC_OK : load_image(k, cuda, context);
    if (!*out)
        *out = find_image(k, context);
    pthread_mutex_unlock(&k->mod->lock);
    return status;
}

/* The kernel for such launches, made if need be; k where there is none. */
static SdcStatus
other(SdcKernel *k, KernelOther which, bool locked, SdcKernel **out)
{
    *out = atomic_load_explicit(&k->other[which], memory_order_acquire);
    if (*out && (which != OTHER_PLAIN || !(*out)->meta->guarded_args))
        return SDC_OK;
    SdcStatus status = locked ? SDC_OK : context_lock(k->mod->cx, &k->mod->lock);
    if (status != SDC_OK)
        return status;
    status = kernel_other(k, which, out);
    if (!locked)
        pthread_mutex_unlock(&k->mod->lock);
    if (status == SDC_OK && !*out)
        *out = k; /* its source asks for maps: the launch says what is wrong */
    return status;
}

/* The kernel for these arguments: k where they make its tensor maps. */
static SdcStatus
choose(SdcKernel *k, CudaMapFit fit, bool locked, SdcKernel **out)
{
    *out = k;
    if (fit == CUDA_MAPS_FIT)
        return SDC_OK;
    atomic_store_explicit(&k->refused, true, memory_order_relaxed);
    return other(k, fit == CUDA_MAPS_LOADED ? OTHER_LOADS : OTHER_PLAIN, locked, out);
}

/* More programs than the device takes along the second or third axis, and no more than
   it takes along the first? */
static bool
folds(const SdcKernel *k, const SdcrtCuda *cuda, const int32_t size[3])
{
    const int32_t *most = sdcrt_cuda_info(cuda)->max_grid;
    bool beyond = size[1] > most[1] || size[2] > most[2];
    int64_t rows = (int64_t)size[1] * size[2];
    return beyond && !k->meta->folds && rows <= most[0] / size[0];
}

/* Would no program of a persistent kernel get a second tile? It is compiled without
   the loop over tiles then, unless neighbours share loads in clusters, which is worth
   more. */
static bool
once(const SdcKernel *k, const SdcrtCuda *cuda, const int32_t size[3],
     const uint64_t *slots)
{
    int64_t at_once =
        (int64_t)k->meta->ctas_per_sm * sdcrt_cuda_info(cuda)->processors;
    int64_t rows = (int64_t)size[1] * size[2];
    return at_once && !(k->how & KERNEL_ONCE) && rows <= at_once / size[0] &&
           !(k->meta->cluster && cuda_maps_off_lines(k->meta, slots));
}

static bool
is_loaded(SdcKernel *k, SdcrtCuda *cuda)
{
    SdcrtError why;
    uint64_t context;
    return sdcrt_cuda_context(cuda, &context, &why) == SDCRT_OK && find_image(k, context);
}

/* The variant for that; k while it is not loaded and the stream is captured, and where it
   cannot be made: it would do the same in less time. */
static SdcKernel *
variant_once(SdcKernel *k, SdcrtCuda *cuda, void *stream)
{
    SdcKernel *p = atomic_load_explicit(&k->other[OTHER_ONCE], memory_order_acquire);
    if (p && is_loaded(p, cuda))
        return p;
    if (atomic_load_explicit(&k->no_once, memory_order_relaxed) ||
        sdcrt_cuda_is_capturing(cuda, stream))
        return k;
    if (other(k, OTHER_ONCE, false, &p) == SDC_OK)
        return p;
    atomic_store_explicit(&k->no_once, true, memory_order_relaxed);
    return k;
}

/* What of the kernel's maps these arguments make, and the driver can compile. */
static CudaMapFit
fit_of(const SdcKernel *k, const SdcrtCuda *cuda, const uint64_t *slots)
{
    if (k->meta->driver > sdcrt_cuda_info(cuda)->driver)
        return CUDA_MAPS_NONE;
    return k->meta->guarded_args ? cuda_maps_fit(k->meta, slots) : CUDA_MAPS_FIT;
}

SdcStatus
gpu_ready(SdcKernel *k, const uint64_t *slots)
{
    SdcrtCuda *cuda;
    SdcStatus opened = context_cuda(k->mod->cx, &cuda);
    if (opened != SDC_OK)
        return opened;
    CudaMapFit fit = fit_of(k, cuda, slots);
    SdcKernel *use;
    SdcStatus status = choose(k, fit, true, &use);
    if (status == SDC_OK && use == k) {
        double start = seconds_now();
        status = gpu_load(k);
        k->load_seconds = seconds_now() - start;
    }
    return status;
}

SdcStatus
gpu_launch(SdcKernel *k, SdcGrid grid, const uint64_t *slots, void *stream)
{
    SdcContext *cx = k->mod->cx;
    const int32_t size[3] = {grid.x, grid.y, grid.z};
    if (grid.x < 0 || grid.y < 0 || grid.z < 0)
        return context_fail(cx, SDC_ERROR_ARGUMENT,
                            "grid (%d, %d, %d) of '%s' is out of range", grid.x, grid.y,
                            grid.z, k->info->name);
    if (!grid.x || !grid.y || !grid.z)
        return SDC_OK;
    SdcrtCuda *cuda = atomic_load_explicit(&cx->cuda, memory_order_acquire);
    GpuImage *image;
    SdcStatus status = SDC_OK;
    SdcKernel *use = k;
    if (folds(k, cuda, size))
        status = other(k, OTHER_FOLDS, false, &use);
    else if (atomic_load_explicit(&k->refused, memory_order_relaxed))
        status = choose(k, fit_of(k, cuda, slots), false, &use);
    if (status == SDC_OK && use == k && once(k, cuda, size, slots))
        use = variant_once(k, cuda, stream);
    if (status == SDC_OK && use != k)
        return gpu_launch(use, grid, slots, stream);
    if (status == SDC_OK)
        status = current_image(k, cuda, &image);
    if (status != SDC_OK)
        return status;
    SdcrtError why;
    SdcrtStatus got = sdcrt_cuda_launch(cuda, image->kernel, slots, grid, stream, &why);
    if (got == SDCRT_ERROR_MAP) {
        CudaMapFit fit = cuda_maps_fit(k->meta, slots);
        /* the driver may find more */
        status = choose(k, fit == CUDA_MAPS_FIT ? CUDA_MAPS_NONE : fit, false, &use);
        if (status != SDC_OK || use != k)
            return status == SDC_OK ? gpu_launch(use, grid, slots, stream) : status;
    }
    return got == SDCRT_OK ? SDC_OK : gpu_fail(cx, got, &why);
}

SdcStatus
sdc_kernel_use(SdcKernel *k, SdcKernelUse *out)
{
    if (!k)
        return SDC_ERROR_ARGUMENT;
    if (!k->ptx)
        return context_fail(k->mod->cx, SDC_ERROR_ARGUMENT, "'%s' is no kernel of a GPU",
                            k->info->name);
    if (!out)
        return context_fail(k->mod->cx, SDC_ERROR_ARGUMENT, "use: no place to put it");
    GpuImage *image;
    SdcStatus status = current_image(k, atomic_load(&k->mod->cx->cuda), &image);
    if (status != SDC_OK)
        return status;
    const SdcrtCudaUse *use = sdcrt_cuda_use(image->kernel);
    *out = (SdcKernelUse){.registers = use->registers,
                          .local_bytes = use->local_bytes,
                          .shared_bytes = k->meta->shared_bytes + use->static_shared,
                          .num_warps = k->meta->num_warps,
                          .num_stages = k->meta->num_stages};
    return SDC_OK;
}

const char *
sdc_kernel_ptx(const SdcKernel *k)
{
    return k ? k->ptx : NULL;
}
