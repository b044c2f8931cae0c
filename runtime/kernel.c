/* Kernels: one specialization, compiled and loaded, and its launch.

   A launch turns each argument into the slot that the compiled code reads. A parameter
   that was bound at compile time has no slot: its argument must be the value it was bound
   to. */
#include "runtime/internal.h"
#include "runtime/sdc_measure.h"

#include "codegen/jit_link.h"
#include "runtime/cache_file.h"
#include "runtime/rt/cpu.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void
kernel_unload(SdcKernel *k)
{
    if (k->image)
        codegen_unload(k->image);
    gpu_unload(k);
    free(k->rules);
    k->image = NULL;
    k->rules = NULL;
}

void
kernel_free(SdcKernel *k)
{
    if (!k)
        return;
    kernel_unload(k);
    for (int i = 0; i < COUNT_OF(k->other); i++)
        kernel_free(atomic_load(&k->other[i]));
    kernel_grids_free(atomic_load(&k->grids));
    for (int i = 0; i < k->nbind; i++)
        free(k->bind[i]);
    free(k->bind);
    free(k->signature);
    free(k->values);
    free(k->meta);
    free(k->key);
    free(k);
}

/* ---------------------------------------------------------------- making one */

/* The type of "*kfp16:16" or "fp32"; a number without one is as wide as its slot. */
static SdcDtype
param_dtype(const SdcrtParam *p)
{
    const char *text = p->sig + (*p->sig == '*');
    size_t n = strcspn(text, ":");
    SdcDtype t = sdc_dtype_by_name(text, n);
    if (t == SDC_DTYPE_NONE && p->kind == SDCRT_PTR && *text == 'k')
        t = sdc_dtype_by_name(text + 1, n - 1);
    if (p->kind == SDCRT_FLOAT && !sdc_dtype_is_float(t))
        t = p->bits == 64 ? SDC_FP64 : p->bits == 16 ? SDC_FP16 : SDC_FP32;
    return t;
}

static bool
make_rules(SdcKernel *k)
{
    const SdcrtMeta *meta = k->meta;
    k->rules = calloc((size_t)k->info->nruntime + 1, sizeof *k->rules);
    if (!k->rules)
        return false;
    for (int i = 0; i < k->info->nruntime; i++) {
        int source = k->info->runtime[i];
        ArgRule *rule = &k->rules[i];
        *rule = (ArgRule){.slot = -1,
                          .source = &meta->sources[source],
                          .annotated = k->info->params[source].type != NULL};
        for (int p = 0; p < meta->nparam; p++)
            if (meta->params[p].source == source) {
                rule->slot = p - rule->nslot; /* parts stand side by side */
                rule->nslot++;
            }
        if (rule->slot >= 0)
            rule->dtype = param_dtype(&meta->params[rule->slot]);
    }
    return true;
}

int
sdc_kernel_constant(const SdcKernel *k, const char *name, int64_t *value)
{
    if (!k || !name || !value)
        return 0;
    for (int i = 0; i < k->meta->nsource; i++) {
        const SdcrtSource *p = &k->meta->sources[i];
        if ((p->bound == SDCRT_BOUND_INT || p->bound == SDCRT_BOUND_BOOL) &&
            strcmp(p->name, name) == 0) {
            *value = p->i;
            return 1;
        }
    }
    bool warps = strcmp(name, "num_warps") == 0, stages = strcmp(name, "num_stages") == 0;
    bool overlap = strcmp(name, "launch_pdl") == 0;
    if (!warps && !stages && !overlap && strcmp(name, "num_ctas") != 0)
        return 0;
    *value = warps     ? k->meta->num_warps
             : stages  ? k->meta->num_stages
             : overlap ? k->meta->overlap
                       : k->meta->num_ctas;
    return 1;
}

uint64_t
sdc_kernel_code(const SdcKernel *k)
{
    return k ? k->code : 0;
}

SdcStatus
kernel_load(Session *s, SdcKernel *k, const void *code, size_t size)
{
    unsigned char digest[CACHE_DIGEST];
    cache_digest(code, size, digest);
    memcpy(&k->code, digest, sizeof k->code);
    if (k->meta->nsource != k->info->nparam)
        bug(&s->fail, "%d parameters became %d", k->info->nparam, k->meta->nsource);
    if (!make_rules(k))
        return SDC_ERROR_MEMORY;
    int filled = 0;
    for (int i = 0; i < k->info->nruntime; i++)
        filled += k->rules[i].nslot;
    if (filled != k->meta->nparam)
        bug(&s->fail, "%d slots for %d parameters", filled, k->meta->nparam);
    if (k->mod->cx->on_gpu) {
        k->ptx = strndup(code, size);
        return k->ptx ? SDC_OK : SDC_ERROR_MEMORY;
    }
    char why[256] = "";
    void *entry = NULL;
    k->image = codegen_load_object(&s->fail, code, size, k->meta->symbol, &entry, why,
                                   sizeof why);
    if (!k->image) {
        diag_error(&s->diag, (Loc){0}, "cannot load the compiled kernel: %s", why);
        return SDC_ERROR_ENVIRONMENT;
    }
    memcpy(&k->entry, &entry, sizeof entry);
    return SDC_OK;
}

/* What a kernel was made from, for kernel_other. */
static SdcStatus
keep_source(SdcKernel *k, const char *signature, const char *const *bind, int nbind,
            const FrontValue *values)
{
    if (!k->mod->cx->on_gpu)
        return SDC_OK;
    k->signature = signature ? strdup(signature) : NULL;
    k->bind = calloc((size_t)nbind + 1, sizeof *k->bind);
    bool ok = k->bind && (!signature || k->signature);
    for (; ok && k->nbind < nbind; k->nbind += ok)
        ok = (k->bind[k->nbind] = strdup(bind[k->nbind])) != NULL;
    size_t size = (size_t)k->info->nparam * sizeof *values;
    if (values && (ok = ok && (k->values = malloc(size + 1)) != NULL))
        memcpy(k->values, values, size);
    return ok ? SDC_OK : context_fail(k->mod->cx, SDC_ERROR_MEMORY, "out of memory");
}

static SdcStatus
make_kernel(SdcModule *mod, const KernelInfo *info, const char *signature,
            const char *const *bind, int nbind, const FrontValue *values, unsigned how,
            SdcKernel **out)
{
    SdcContext *cx = mod->cx;
    SdcrtCuda *cuda;
    SdcStatus status = cx->on_gpu ? context_cuda(cx, &cuda) : SDC_OK;
    if (status != SDC_OK)
        return status;
    SdcKernel *k = calloc(1, sizeof *k);
    if (!k)
        return context_fail(cx, SDC_ERROR_MEMORY, "out of memory");
    k->mod = mod;
    k->info = info;
    CompileJob job;
    module_job(mod, &job);
    job.folds = how & KERNEL_FOLDS;
    job.once = how & KERNEL_ONCE;
    job.launched = how & KERNEL_LAUNCHED;
    job.maps = how & KERNEL_NO_MAPS    ? MAPS_NONE
               : how & KERNEL_NO_SENDS ? MAPS_LOADS
                                       : MAPS_ANY;
    k->beside = how & KERNEL_BESIDE;
    k->how = how & (KERNEL_NO_MAPS | KERNEL_NO_SENDS | KERNEL_FOLDS | KERNEL_ONCE);
    job.values = values;
    job.nvalue = values ? info->nparam : 0;
    job.opt = (SdcCompileOptions){
        .kernel = info->name,
        .signature = signature,
        .bind = bind,
        .nbind = nbind,
        .target = cx->on_gpu ? cx->gpu_target : "cpu",
        .cpu = cx->cpu ? cx->cpu : "native",
        .emit = cx->on_gpu ? SDC_EMIT_ASM : SDC_EMIT_OBJ,
        .lineinfo = cx->debug,
    };
    status = kernel_make(k, &job);
    if (status == SDC_OK)
        status = keep_source(k, signature, bind, nbind, values);
    if (status == SDC_OK && cx->on_gpu && !(how & KERNEL_UNLOADED)) {
        double start = seconds_now();
        status = gpu_load(k);
        k->load_seconds = seconds_now() - start;
    }
    if (status != SDC_OK) {
        kernel_free(k);
        return status;
    }
    *out = k;
    return SDC_OK;
}

SdcStatus
kernel_new(SdcModule *mod, const KernelInfo *info, const char *signature,
           const char *const *bind, int nbind, const FrontValue *values, unsigned how,
           SdcKernel **out)
{
    return make_kernel(mod, info, signature, bind, nbind, values, how, out);
}

SdcStatus
kernel_other(SdcKernel *k, KernelOther which, SdcKernel **out)
{
    static const unsigned more[KERNEL_OTHERS] = {KERNEL_NO_SENDS, KERNEL_NO_MAPS,
                                                 KERNEL_FOLDS, KERNEL_ONCE};
    SdcStatus status = SDC_OK;
    _Atomic(SdcKernel *) *at = &k->other[which];
    SdcKernel *p = atomic_load_explicit(at, memory_order_relaxed);
    if (!p)
        status = make_kernel(k->mod, k->info, k->signature, (const char *const *)k->bind,
                             k->nbind, k->values, k->how | more[which], &p);
    if (status == SDC_OK)
        atomic_store_explicit(at, p, memory_order_release);
    bool good = status == SDC_OK && (which != OTHER_PLAIN || !p->meta->guarded_args);
    *out = good ? p : NULL;
    return status;
}

/* All texts of a request in one, for the list of a module. NULL when out of memory. */
static char *
request_key(const char *kernel, const char *signature, const char *const *bind, int nbind)
{
    size_t size = strlen(kernel) + (signature ? strlen(signature) : 0) + 3;
    for (int i = 0; i < nbind; i++)
        size += strlen(bind[i]) + 1;
    char *key = malloc(size);
    if (!key)
        return NULL;
    char *p = key + sprintf(key, "%s\n%s", kernel, signature ? signature : "\t");
    for (int i = 0; i < nbind; i++)
        p += sprintf(p, "\n%s", bind[i]);
    return key;
}

SdcStatus
sdc_kernel_get(SdcModule *mod, const char *kernel, const char *signature,
               const char *const *bind, int nbind, SdcKernel **out)
{
    if (out)
        *out = NULL;
    if (!mod)
        return SDC_ERROR_ARGUMENT;
    const KernelInfo *info;
    SdcStatus fine = module_request(mod, "kernel", kernel, bind, nbind, out, &info);
    if (fine != SDC_OK)
        return fine;
    char *key = request_key(kernel, signature, bind, nbind);
    if (!key)
        return context_fail(mod->cx, SDC_ERROR_MEMORY, "out of memory");
    SdcStatus status = context_lock(mod->cx, &mod->lock);
    if (status != SDC_OK) {
        free(key);
        return status;
    }
    SdcKernel *k = mod->list;
    while (k && strcmp(k->key, key) != 0)
        k = k->next;
    if (k) {
        free(key);
    } else {
        status = kernel_new(mod, info, signature, bind, nbind, NULL, 0, &k);
        if (status == SDC_OK) {
            k->key = key;
            k->next = mod->list;
            mod->list = k;
        } else {
            free(key);
        }
    }
    pthread_mutex_unlock(&mod->lock);
    *out = status == SDC_OK ? k : NULL;
    return status;
}

int
sdc_kernel_writes(const SdcKernel *k, int arg)
{
    if (!k || arg < 0 || arg >= k->info->nruntime || k->rules[arg].slot < 0)
        return 0;
    const ArgRule *rule = &k->rules[arg];
    bool written = false;
    for (int i = 0; i < rule->nslot; i++)
        written |= k->meta->params[rule->slot + i].written;
    return written;
}

bool
kernel_writes_leaf(const SdcKernel *k, int arg, int leaf)
{
    const ArgRule *rule = &k->rules[arg];
    bool written = false;
    for (int i = 0, at = rule->slot; i <= leaf && i < rule->source->nleaf; i++) {
        const SdcrtSource *s = &k->meta->leaves[rule->source->leaf + i];
        if (s->bound != SDCRT_OPEN)
            continue;
        for (int n = sdcrt_source_slots(s); n > 0; n--, at++)
            written |= i == leaf && k->meta->params[at].written;
    }
    return written;
}

/* ---------------------------------------------------------------- launching */

static SdcStatus
refuse(const SdcKernel *k, int i, const char *why)
{
    return context_fail(k->mod->cx, SDC_ERROR_ARGUMENT, "argument '%s' of '%s' %s",
                        k->info->params[k->info->runtime[i]].name, k->info->name, why);
}

/* The argument must be what its parameter was bound to. */
static bool
matches_bound(const SdcrtSource *s, const SdcArg *a)
{
    switch ((SdcrtBound)s->bound) {
    case SDCRT_BOUND_INT:
    case SDCRT_BOUND_BOOL: return a->kind == SDC_ARG_INT && a->v.i == s->i;
    case SDCRT_BOUND_FLOAT: return a->kind == SDC_ARG_FLOAT && a->v.f == s->f;
    case SDCRT_BOUND_NONE: return a->kind == SDC_ARG_NONE;
    case SDCRT_OPEN:
    case SDCRT_BOUND_OTHER: break;
    }
    return true; /* unused, or not a value that an argument can be */
}

static bool
int_fits(const SdcrtParam *p, int64_t v)
{
    if (p->bits >= 64)
        return true;
    int64_t low = p->is_unsigned ? 0 : -((int64_t)1 << (p->bits - 1));
    int64_t high =
        p->is_unsigned ? ((int64_t)1 << p->bits) - 1 : ((int64_t)1 << (p->bits - 1)) - 1;
    if (p->bits == 1)
        low = 0, high = 1;
    return v >= low && v <= high;
}

/* One argument to its slot; NULL, or what is wrong. */
static const char *
fill_slot(const SdcrtParam *p, SdcDtype t, const SdcArg *arg, uint64_t *slot)
{
    const SdcArg plain = arg_plain(arg), *a = &plain;
    switch ((SdcrtParamKind)p->kind) {
    case SDCRT_PTR:
        if (a->kind != SDC_ARG_PTR)
            return "must be a pointer";
        if (a->dtype != SDC_DTYPE_NONE && t != SDC_DTYPE_NONE && (SdcDtype)a->dtype != t)
            return "points to elements of another type than the kernel's";
        *slot = (uint64_t)(uintptr_t)a->v.ptr;
        break;
    case SDCRT_INT:
        if (a->kind != SDC_ARG_INT)
            return "must be an integer";
        if (!int_fits(p, a->v.i))
            return "does not fit the kernel's integer type";
        *slot = (uint64_t)a->v.i;
        break;
    case SDCRT_FLOAT:
        if (a->kind != SDC_ARG_FLOAT && a->kind != SDC_ARG_INT)
            return "must be a number";
        *slot = 0;
        sdc_dtype_store(t, a->kind == SDC_ARG_INT ? (double)a->v.i : a->v.f, slot);
        return NULL;
    }
    if (p->div > 1 && *slot % p->div != 0)
        return "is not divisible as the kernel was told";
    return NULL;
}

/* An integer whose type the source says loses the bits that this has not, as in Triton;
   one below zero is none of an unsigned type. */
static const char *
fill_annotated(const SdcrtParam *p, SdcDtype t, const SdcArg *a, uint64_t *slot)
{
    SdcArg low = *a;
    int above = 64 - p->bits;
    uint64_t bits = (uint64_t)a->v.i << above;
    bool is_unsigned = p->is_unsigned || p->bits == 1;
    if (!p->is_unsigned || a->v.i >= 0)
        low.v.i = is_unsigned ? (int64_t)(bits >> above) : (int64_t)bits >> above;
    return fill_slot(p, t, &low, slot);
}

/* A descriptor to its slots; NULL, or what is wrong. */
static const char *
fill_desc(const SdcrtParam *p, const SdcrtSource *s, const SdcArg *a, uint64_t *slot)
{
    const SdcDesc *d = a->v.ptr;
    if (a->kind != SDC_ARG_DESC || !d)
        return "must be a tensor descriptor";
    if (d->rank != s->rank)
        return "is a descriptor of another rank than the kernel's";
    SdcArg base = sdc_ptr(d->dtype, d->base);
    const char *wrong = fill_slot(&p[0], param_dtype(&p[0]), &base, &slot[0]);
    for (int i = 0; i < d->rank && !wrong; i++) {
        SdcArg shape = sdc_int(d->shape[i]), stride = sdc_int(d->strides[i]);
        int at = 1 + i, to = at + d->rank;
        if (d->block[i] != s->block[i])
            return "is a descriptor of another block than the kernel's";
        if (d->shape[i] < 1 || d->strides[i] < 0)
            return "is a descriptor with a size or stride below its range";
        wrong = fill_slot(&p[at], SDC_I32, &shape, &slot[at]);
        if (!wrong)
            wrong = fill_slot(&p[to], SDC_I64, &stride, &slot[to]);
    }
    return wrong || d->strides[d->rank - 1] == 1 ? wrong : "needs 1 as its last stride";
}

/* The elements of a tuple to their slots; NULL, or what is wrong. */
static const char *
fill_tuple(const SdcrtParam *p, const SdcrtSource *leaves, const ArgRule *rule,
           const SdcArg *a, uint64_t *slot)
{
    int n = rule->source->nleaf, at = 0;
    if (a->kind != SDC_ARG_TUPLE || !tuple_is_right(a))
        return "must be a tuple of numbers, pointers and descriptors";
    for (int i = 0; i < n; i++) {
        const SdcrtSource *s = &leaves[rule->source->leaf + i];
        const SdcArg *leaf = tuple_leaf(a, i);
        const char *wrong = NULL;
        if (!leaf)
            return "is a tuple of fewer elements than the kernel's";
        if (s->bound == SDCRT_OPEN) {
            wrong = s->rank ? fill_desc(&p[at], s, leaf, &slot[at])
                            : fill_slot(&p[at], param_dtype(&p[at]), leaf, &slot[at]);
            at += sdcrt_source_slots(s);
        } else if (!matches_bound(s, leaf)) {
            wrong = "has an element that the kernel was not specialized for";
        }
        if (wrong)
            return wrong;
    }
    return tuple_leaf(a, n) ? "is a tuple of more elements than the kernel's" : NULL;
}

/* The arguments of a launch to the slots that the kernel reads. */
static SdcStatus
fill_slots(const SdcKernel *k, const SdcArg *args, int nargs, uint64_t *slots)
{
    if (nargs != k->info->nruntime || (nargs && !args))
        return context_args(k->mod->cx, k->info, args, nargs);
    for (int i = 0; i < nargs; i++) {
        const ArgRule *rule = &k->rules[i];
        const char *wrong = NULL;
        int at = rule->slot < 0 ? 0 : rule->slot;
        if (rule->source->is_tuple)
            wrong = fill_tuple(&k->meta->params[at], k->meta->leaves, rule, &args[i],
                               &slots[at]);
        else if (rule->slot >= 0 && rule->source->rank)
            wrong = fill_desc(&k->meta->params[at], rule->source, &args[i], &slots[at]);
        else if (rule->slot >= 0)
            wrong = fill_slot(&k->meta->params[at], rule->dtype, &args[i], &slots[at]);
        else if (!matches_bound(rule->source, &args[i]))
            wrong = "differs from the value that the kernel was specialized for";
        if (wrong && rule->annotated && rule->slot >= 0 &&
            args[i].kind == SDC_ARG_INT && k->meta->params[at].kind == SDCRT_INT)
            wrong = fill_annotated(&k->meta->params[at], rule->dtype, &args[i],
                                   &slots[at]);
        if (wrong || !arg_typed(&args[i])) {
            SdcStatus status = context_args(k->mod->cx, k->info, args, nargs);
            return status != SDC_OK ? status : refuse(k, i, wrong);
        }
    }
    return SDC_OK;
}

SdcStatus
kernel_ready(SdcKernel *k, const SdcArg *args, int nargs)
{
    uint64_t slots[SDCRT_MAX_PARAMS + 1];
    if (!k->ptx)
        return SDC_OK;
    SdcStatus status = fill_slots(k, args, nargs, slots);
    return status == SDC_OK ? gpu_ready(k, slots) : status;
}

SdcStatus
kernel_run(SdcKernel *k, SdcGrid grid, const uint64_t *slots, int threads)
{
    SdcContext *cx = k->mod->cx;
    switch (rt_cpu_launch(cx->pool, k->entry, slots, grid, k->meta->scratch_bytes,
                          threads, rt_atomics(k->meta))) {
    case SDCRT_OK: return SDC_OK;
    case SDCRT_ERROR_MEMORY:
        return context_fail(cx, SDC_ERROR_MEMORY, "no memory for %lld bytes of scratch",
                            (long long)k->meta->scratch_bytes);
    default: break;
    }
    return context_fail(cx, SDC_ERROR_ARGUMENT, "grid (%d, %d, %d) is out of range",
                        grid.x, grid.y, grid.z);
}

static SdcStatus
cpu_launch(SdcKernel *k, SdcGrid grid, const SdcArg *args, uint64_t *slots, int threads)
{
    return k->meta->hooks ? hooks_run(k, grid, args, slots, threads)
                          : kernel_run(k, grid, slots, threads);
}

SdcStatus
sdc_kernel_launch_threads(SdcKernel *k, SdcGrid grid, const SdcArg *args, int nargs,
                          int threads)
{
    if (!k)
        return SDC_ERROR_ARGUMENT;
    if (k->ptx)
        return context_fail(k->mod->cx, SDC_ERROR_ARGUMENT,
                            "a launch on a GPU takes no number of threads");
    if (threads < 0)
        return context_fail(k->mod->cx, SDC_ERROR_ARGUMENT, "%d threads cannot run",
                            threads);
    uint64_t slots[SDCRT_MAX_PARAMS + 1]; /* and the hooks */
    SdcStatus status = fill_slots(k, args, nargs, slots);
    return status == SDC_OK ? cpu_launch(k, grid, args, slots, threads) : status;
}

SdcStatus
sdc_kernel_launch(SdcKernel *k, SdcGrid grid, const SdcArg *args, int nargs, void *stream)
{
    if (!k)
        return SDC_ERROR_ARGUMENT;
    if (stream && !k->ptx)
        return context_fail(k->mod->cx, SDC_ERROR_ARGUMENT,
                            "a launch on the CPU takes no stream");
    uint64_t slots[SDCRT_MAX_PARAMS + 1]; /* and the hooks */
    SdcStatus status = fill_slots(k, args, nargs, slots);
    if (status != SDC_OK)
        return status;
    return k->ptx ? gpu_launch(k, grid, slots, stream)
                  : cpu_launch(k, grid, args, slots, 0);
}
