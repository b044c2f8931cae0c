/* Launching what was compiled ahead of time: reads a bundle's metadata once, chooses code
   by the arguments and the device, fills its slots.

   The state of a bundle hangs in a variable of the object that holds it: made by the
   first thread that comes, the work of others who came at the same time thrown away, and
   made anew by the child of a fork, where the lock may be held by a thread that is gone.
   Loaded images hang in a list that grows at its head, so a launch of what is loaded
   takes no lock. */
#include "runtime/rt/bundle.h"

#include "runtime/rt/cpu.h"
#include "runtime/rt/cuda_map.h"
#include "runtime/rt/expr.h"

#include <float.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

/* One compiled kernel of the bundle. */
typedef struct Variant {
    SdcrtMeta meta;
    int sm;         /* 90 of "sm_90a"; 0: CPU */
    bool exact;     /* runs on that capability alone */
    int level;      /* CPU: 4 of "cpu:x86-64-v4"; 0: not said */
    int nargs;      /* of a launch */
    SdcrtArgument *args;
} Variant;

typedef struct Image {
    struct Image *next;
    uint64_t context;
    int code;
    SdcrtCudaKernel *kernel;
} Image;

typedef struct State {
    RtProcess process;    /* whose state it is */
    pthread_mutex_t lock; /* loading */
    _Atomic(Image *) images;
    int host; /* level of this machine's CPU */
    int n;
    Variant *variants;
} State;

/* ---------------------------------------------------------------- state */

static bool
variant_read(Variant *v, const SdcrtCode *code)
{
    if (!sdcrt_meta_unpack(code->meta, code->meta_size, &v->meta))
        return false;
    v->nargs = sdcrt_meta_arguments(&v->meta, NULL);
    v->args = calloc((size_t)v->nargs + 1, sizeof *v->args);
    if (!v->args)
        return false;
    sdcrt_meta_arguments(&v->meta, v->args);
    const char *target = v->meta.target;
    if (strncmp(target, "sm_", 3) == 0) {
        char *end;
        v->sm = (int)strtol(target + 3, &end, 10);
        v->exact = *end != '\0';
    } else if (strchr(target, ':')) {
        v->level = sdcrt_cpu_level(strchr(target, ':') + 1);
    }
    return true;
}

static void
state_free(State *s)
{
    if (!s)
        return;
    for (int i = 0; i < s->n && s->variants; i++)
        free(s->variants[i].args);
    free(s->variants);
    rt_process_done(&s->process);
    pthread_mutex_destroy(&s->lock);
    free(s);
}

static SdcrtStatus
state_new(const SdcrtBundle *b, State **out, SdcrtError *e)
{
    *out = NULL;
    if (b->format != SDCRT_BUNDLE_FORMAT)
        return cuda_refuse(e, SDCRT_ERROR_CODE,
                           "'%s' was compiled by another version of sdc than libsdcrt's",
                           b->name);
    State *s = calloc(1, sizeof *s);
    if (!s || pthread_mutex_init(&s->lock, NULL) != 0) {
        free(s);
        return cuda_refuse(e, SDCRT_ERROR_MEMORY, "out of memory");
    }
    s->variants = calloc((size_t)b->ncode + 1, sizeof *s->variants);
    if (!s->variants) {
        state_free(s);
        return cuda_refuse(e, SDCRT_ERROR_MEMORY, "out of memory");
    }
    for (; s->n < (int)b->ncode; s->n++)
        if (!variant_read(&s->variants[s->n], &b->code[s->n])) {
            s->n++;
            state_free(s);
            return cuda_refuse(e, SDCRT_ERROR_CODE,
                               "the metadata of '%s' cannot be read: it was compiled by "
                               "another version of sdc than libsdcrt's",
                               b->name);
        }
    s->host = sdcrt_cpu_host_level();
    rt_process_mark(&s->process);
    *out = s;
    return SDCRT_OK;
}

/* `s` as it was found in the bundle, replaced by a new one. */
static SdcrtStatus
state_make(const SdcrtBundle *b, State *found, State **out, SdcrtError *e)
{
    State *s;
    SdcrtStatus status = state_new(b, &s, e);
    *out = s;
    if (status == SDCRT_OK &&
        !__atomic_compare_exchange_n((State **)(void *)b->state, &found, s, 0,
                                     __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE)) {
        state_free(s);
        *out = found;
    }
    return status;
}

static SdcrtStatus
state_of(const SdcrtBundle *b, State **out, SdcrtError *e)
{
    State *s = __atomic_load_n((State **)(void *)b->state, __ATOMIC_ACQUIRE);
    *out = s;
    return s ? SDCRT_OK : state_make(b, NULL, out, e);
}

/* The state for a GPU: loads take its lock, and images belong to this process. */
static SdcrtStatus
own_state(const SdcrtBundle *b, State **out, SdcrtError *e)
{
    SdcrtStatus status = state_of(b, out, e);
    if (status == SDCRT_OK && rt_process_is_child(&(*out)->process))
        status = state_make(b, *out, out, e);
    return status;
}

/* ---------------------------------------------------------------- choosing */

/* How well code suits a device, a larger number better; -1: it does not run there. sm 0:
   the CPU, of level `host`. PTX runs on what is newer, a cubin on later ones of its major
   version, and neither when its architecture has a letter. */
static int
suits(const Variant *v, const SdcrtCode *code, int sm, int host)
{
    if (!sm || !v->sm)
        return sm == v->sm && v->level <= host ? v->level : -1;
    bool cubin = code->kind == SDCRT_CODE_CUBIN;
    if (v->exact ? sm != v->sm : sm < v->sm || (cubin && sm / 10 != v->sm / 10))
        return -1;
    return 4 * v->sm + 2 * v->exact + cubin;
}

static bool
is_bound_to(const SdcrtSource *s, uint64_t slot)
{
    float f;
    switch ((SdcrtBound)s->bound) {
    case SDCRT_BOUND_INT:
    case SDCRT_BOUND_BOOL: return (int64_t)slot == s->i;
    case SDCRT_BOUND_FLOAT: memcpy(&f, &slot, sizeof f); return f == (float)s->f;
    case SDCRT_BOUND_NONE: return slot == 0;
    case SDCRT_OPEN:
    case SDCRT_BOUND_OTHER: break;
    }
    return true;
}

static bool
desc_allows(const Variant *v, int slot, int rank, const SdcrtTensor *t)
{
    const SdcrtParam *p = &v->meta.params[slot];
    if (!t || t->strides[rank - 1] != 1 || (uintptr_t)t->base % p->div != 0)
        return false;
    for (int i = 0; i < rank; i++)
        if (t->shape[i] < 1 || t->shape[i] > INT32_MAX || t->strides[i] < 0 ||
            t->shape[i] % p[1 + i].div != 0 || t->strides[i] % p[1 + rank + i].div != 0)
            return false;
    return true;
}

/* The first of these arguments that the code was not made for; -1: it takes all. */
static int
refused(const Variant *v, const uint64_t *args)
{
    for (int i = 0; i < v->nargs; i++) {
        const SdcrtSource *s = v->args[i].what;
        int slot = v->args[i].slot;
        if (slot < 0) {
            if (!is_bound_to(s, args[i]))
                return i;
        } else if (s->rank) {
            const SdcrtTensor *t = (const SdcrtTensor *)(uintptr_t)args[i];
            if (!desc_allows(v, slot, s->rank, t))
                return i;
        } else if (v->meta.params[slot].div > 1 &&
                   args[i] % v->meta.params[slot].div != 0) {
            return i;
        }
    }
    return -1;
}

/* How far the arguments are from what the code was tuned for: doublings and halvings of
   the key's values, at the nearest point. Code that was not tuned is farthest. */
static double
distance(const SdcrtMeta *m, const uint64_t *args)
{
    double least = m->npoint ? INFINITY : DBL_MAX;
    for (int p = 0; p < m->npoint; p++) {
        double d = 0;
        for (int i = 0; i < m->nkey; i++) {
            double x = (double)(int64_t)args[m->key_arg[i]], y = (double)m->point[p][i];
            d += fabs(log2(x > 1 ? x : 1) - log2(y > 1 ? y : 1));
        }
        least = d < least ? d : least;
    }
    return least;
}

static void
fill(const Variant *v, const uint64_t *args, uint64_t *slots)
{
    for (int i = 0; i < v->nargs; i++) {
        int slot = v->args[i].slot, rank = v->args[i].what->rank;
        if (slot < 0)
            continue;
        slots[slot] = args[i];
        if (!rank)
            continue;
        const SdcrtTensor *t = (const SdcrtTensor *)(uintptr_t)args[i];
        slots[slot] = (uint64_t)(uintptr_t)t->base;
        for (int k = 0; k < rank; k++) {
            slots[slot + 1 + k] = (uint64_t)t->shape[k];
            slots[slot + 1 + rank + k] = (uint64_t)t->strides[k];
        }
    }
}

/* Which code may take tensor maps: that with the most stands first. */
typedef enum Maps {
    ANY_MAPS,
    MAPS_THAT_FIT, /* those that the arguments make, as far as can be seen */
    NO_MAPS
} Maps;

static bool
takes(const Variant *v, Maps maps, const uint64_t *args)
{
    uint64_t slots[SDCRT_MAX_PARAMS];
    if (!v->meta.guarded_args || maps == ANY_MAPS)
        return true;
    if (maps == NO_MAPS)
        return false;
    fill(v, args, slots);
    return cuda_maps_fit(&v->meta, slots) == CUDA_MAPS_FIT;
}

/* No code takes these arguments; the last that was looked at (`of`) not this one. */
static SdcrtStatus
no_code(const SdcrtBundle *b, const SdcrtMeta *of, const SdcrtArgument *a, SdcrtError *e)
{
    const char *name = a ? a->what->name : "";
    if (a && a->slot < 0 && a->what->bound == SDCRT_BOUND_INT)
        return cuda_refuse(e, SDCRT_ERROR_ARGUMENT,
                           "'%s' was compiled for '%s' equal to %lld alone: another "
                           "signature (-s) adds code for the rest",
                           b->name, name, (long long)a->what->i);
    if (a && a->slot >= 0 && !a->what->rank)
        return cuda_refuse(e, SDCRT_ERROR_ARGUMENT,
                           "'%s' was compiled for '%s' divisible by %lld alone: a "
                           "signature without it (-s) adds code for the rest",
                           b->name, name, (long long)of->params[a->slot].div);
    return cuda_refuse(e, SDCRT_ERROR_ARGUMENT,
                       "'%s' was compiled for arguments with other properties than "
                       "these%s%s",
                       b->name, a ? ", of " : "", name);
}

static SdcrtStatus
choose(const SdcrtBundle *b, const State *s, int sm, Maps maps, const uint64_t *args,
       int nargs, int *out, SdcrtError *e)
{
    int best = -1, runs = 0;
    double nearest = 0;
    const SdcrtArgument *last = NULL;
    const SdcrtMeta *of = NULL;
    *out = -1;
    for (int i = 0; i < s->n; i++) {
        int fit = suits(&s->variants[i], &b->code[i], sm, s->host);
        if (fit < 0 || (maps == NO_MAPS && s->variants[i].meta.guarded_args))
            continue;
        runs++;
        if (s->variants[i].nargs != nargs)
            return cuda_refuse(e, SDCRT_ERROR_ARGUMENT, "'%s' takes %d arguments, not %d",
                               b->name, s->variants[i].nargs, nargs);
        if (fit < best)
            continue;
        int bad = refused(&s->variants[i], args);
        if (bad >= 0 || !takes(&s->variants[i], maps, args)) {
            last = bad >= 0 ? &s->variants[i].args[bad] : last;
            of = &s->variants[i].meta;
            continue;
        }
        double d = distance(&s->variants[i].meta, args);
        if (fit > best || d < nearest) {
            best = fit;
            nearest = d;
            *out = i;
        }
    }
    if (*out >= 0)
        return SDCRT_OK;
    if (runs)
        return no_code(b, of, last, e);
    char device[32] = "the CPU";
    if (sm)
        snprintf(device, sizeof device, "sm_%d", sm);
    return cuda_refuse(e, SDCRT_ERROR_DEVICE, "'%s' was not compiled for %s", b->name,
                       device);
}

/* ---------------------------------------------------------------- a launch */

static SdcrtStatus
grid_of(const SdcrtBundle *b, const Variant *v, const SdcGrid *given,
        const uint64_t *args, SdcGrid *out, SdcrtError *e)
{
    const int32_t *sizes[] = {given ? &given->x : NULL, given ? &given->y : NULL,
                              given ? &given->z : NULL};
    int32_t *to[] = {&out->x, &out->y, &out->z};
    SdcrtExprError why;
    for (int i = 0; i < 3; i++) {
        int64_t x = 1;
        if (given)
            x = *sizes[i];
        else if (i == 0 && !v->meta.grid[0].n)
            return cuda_refuse(e, SDCRT_ERROR_ARGUMENT, "'%s' needs a grid", b->name);
        else if (v->meta.grid[i].n &&
                 !sdcrt_expr_eval(&v->meta.grid[i], (const int64_t *)args, &x, &why))
            return cuda_refuse(e, SDCRT_ERROR_ARGUMENT, "the grid of '%s': %s", b->name,
                               why.what);
        if (x < 0 || x > INT32_MAX)
            return cuda_refuse(e, SDCRT_ERROR_ARGUMENT,
                               "the grid of '%s' is %lld along axis %d", b->name,
                               (long long)x, i);
        *to[i] = (int32_t)x;
    }
    return SDCRT_OK;
}

/* `meta`: of the code that is chosen. */
static SdcrtStatus
prepare(const SdcrtBundle *b, SdcrtCall *call, const SdcGrid *grid, const uint64_t *args,
        int nargs, const SdcrtMeta **meta, SdcrtError *e)
{
    State *s;
    int at;
    if (!b || !call || (nargs && !args))
        return cuda_missing(e, !b     ? "the bundle"
                               : call ? "the arguments"
                                      : "prepare: call");
    SdcrtStatus status = state_of(b, &s, e);
    if (status == SDCRT_OK)
        status = choose(b, s, 0, ANY_MAPS, args, nargs, &at, e);
    if (status == SDCRT_OK)
        status = grid_of(b, &s->variants[at], grid, args, &call->grid, e);
    if (status != SDCRT_OK)
        return status;
    call->entry = b->code[at].entry;
    *meta = &s->variants[at].meta;
    call->scratch = (*meta)->scratch_bytes;
    fill(&s->variants[at], args, call->slots);
    return SDCRT_OK;
}

SdcrtStatus
sdcrt_bundle_prepare(const SdcrtBundle *b, SdcrtCall *call, const SdcGrid *grid,
                     const uint64_t *args, int nargs, SdcrtError *e)
{
    const SdcrtMeta *meta;
    return prepare(b, call, grid, args, nargs, &meta, e);
}

SdcrtStatus
sdcrt_bundle_cpu(const SdcrtBundle *b, SdcrtPool *pool, const SdcGrid *grid,
                 const uint64_t *args, int nargs, SdcrtError *e)
{
    SdcrtCall call;
    const SdcrtMeta *meta;
    SdcrtStatus status = prepare(b, &call, grid, args, nargs, &meta, e);
    if (status != SDCRT_OK)
        return status;
    status =
        pool ? rt_cpu_launch(pool, call.entry, call.slots, call.grid, call.scratch, 0,
                             rt_atomics(meta))
             : sdcrt_run_range(call.entry, call.slots, call.grid, call.scratch, 0,
                               sdcrt_grid_size(call.grid));
    return status == SDCRT_OK
               ? status
               : cuda_refuse(e, status, "'%s' cannot be launched: %s", b->name,
                             status == SDCRT_ERROR_MEMORY ? "out of memory"
                                                          : "its grid is too large");
}

/* ---------------------------------------------------------------- GPU */

static Image *
find_image(State *s, uint64_t context, int code)
{
    Image *i = atomic_load_explicit(&s->images, memory_order_acquire);
    while (i && (i->context != context || i->code != code))
        i = i->next;
    return i;
}

/* Called under the lock. */
static SdcrtStatus
load(const SdcrtBundle *b, State *s, SdcrtCuda *gpu, uint64_t context, int code,
     Image **out, SdcrtError *e)
{
    Image *i = calloc(1, sizeof *i);
    if (!i)
        return cuda_refuse(e, SDCRT_ERROR_MEMORY, "out of memory");
    SdcrtStatus status = sdcrt_cuda_load(gpu, (const char *)b->code[code].bytes,
                                         &s->variants[code].meta, &i->kernel, e);
    if (status != SDCRT_OK) {
        free(i);
        return status;
    }
    i->context = context;
    i->code = code;
    i->next = atomic_load_explicit(&s->images, memory_order_relaxed);
    atomic_store_explicit(&s->images, i, memory_order_release);
    *out = i;
    return SDCRT_OK;
}

static SdcrtStatus
image_of(const SdcrtBundle *b, State *s, SdcrtCuda *gpu, int code, Image **out,
         SdcrtError *e)
{
    uint64_t context;
    SdcrtStatus status = sdcrt_cuda_context(gpu, &context, e);
    if (status != SDCRT_OK)
        return status;
    *out = find_image(s, context, code);
    if (*out)
        return SDCRT_OK;
    pthread_mutex_lock(&s->lock);
    *out = find_image(s, context, code); /* another thread may have been faster */
    if (!*out)
        status = load(b, s, gpu, context, code, out, e);
    pthread_mutex_unlock(&s->lock);
    return status;
}

static SdcrtStatus
launch(const SdcrtBundle *b, SdcrtCuda *gpu, void *stream, Maps maps, const SdcGrid *grid,
       const uint64_t *args, int nargs, SdcrtError *e)
{
    State *s;
    Image *image;
    if (!b || !gpu || (nargs && !args))
        return cuda_missing(e, !b    ? "the bundle"
                               : gpu ? "the arguments"
                                     : "the device");
    int at, sm = sdcrt_cuda_info(gpu)->sm;
    SdcGrid size;
    uint64_t slots[SDCRT_MAX_PARAMS];
    SdcrtStatus status = own_state(b, &s, e);
    if (status == SDCRT_OK)
        status = choose(b, s, sm, maps, args, nargs, &at, e);
    if (status == SDCRT_OK)
        status = grid_of(b, &s->variants[at], grid, args, &size, e);
    if (status == SDCRT_OK)
        status = image_of(b, s, gpu, at, &image, e);
    if (status != SDCRT_OK)
        return status;
    fill(&s->variants[at], args, slots);
    return sdcrt_cuda_launch(gpu, image->kernel, slots, size, stream, e);
}

SdcrtStatus
sdcrt_bundle_cuda(const SdcrtBundle *b, SdcrtCuda *gpu, void *stream, const SdcGrid *grid,
                  const uint64_t *args, int nargs, SdcrtError *e)
{
    SdcrtStatus status = launch(b, gpu, stream, ANY_MAPS, grid, args, nargs, e);
    for (Maps maps = MAPS_THAT_FIT; status == SDCRT_ERROR_MAP && maps <= NO_MAPS; maps++)
        status = launch(b, gpu, stream, maps, grid, args, nargs, e);
    return status;
}

SdcrtStatus
sdcrt_bundle_load(const SdcrtBundle *b, SdcrtCuda *gpu, SdcrtError *e)
{
    State *s;
    Image *image;
    if (!b || !gpu)
        return cuda_missing(e, b ? "the device" : "the bundle");
    int sm = sdcrt_cuda_info(gpu)->sm, best = -1;
    SdcrtStatus status = own_state(b, &s, e);
    if (status != SDCRT_OK)
        return status;
    for (int i = 0; i < s->n; i++)
        if (suits(&s->variants[i], &b->code[i], sm, 0) > best)
            best = suits(&s->variants[i], &b->code[i], sm, 0);
    if (best < 0)
        return cuda_refuse(e, SDCRT_ERROR_DEVICE, "'%s' was not compiled for sm_%d",
                           b->name, sm);
    int driver = sdcrt_cuda_info(gpu)->driver;
    for (int i = 0; i < s->n && status == SDCRT_OK; i++)
        if (suits(&s->variants[i], &b->code[i], sm, 0) == best &&
            s->variants[i].meta.driver <= driver)
            status = image_of(b, s, gpu, i, &image, e);
    return status;
}
