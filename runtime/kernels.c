/* The handle of sdc_nn.h and the launches that its functions are made of.

   The kernels' sources are in the library as text; a module is loaded when one of its
   kernels is first called. What a launch needs beyond that (specializations, their cache)
   is sdc_launch's. */
#include "runtime/kernels.h"

#include "ir/target.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

SdcStatus
sdc_kernels_create(SdcContext *cx, SdcKernels **out)
{
    if (out)
        *out = NULL;
    if (!cx)
        return SDC_ERROR_ARGUMENT;
    if (!out)
        return context_fail(cx, SDC_ERROR_ARGUMENT, "kernels: no place to put them");
    SdcKernels *k = calloc(1, sizeof *k);
    if (!k || pthread_mutex_init(&k->lock, NULL) != 0) {
        free(k);
        return context_fail(cx, SDC_ERROR_MEMORY, "out of memory");
    }
    k->cx = cx;
    k->on_gpu = cx->on_gpu;
    k->programs = sdc_context_threads(cx);
    k->gemm_plans = (PlanTable){k->gemm, GEMM_SETS, sizeof *k->gemm, sizeof(GemmAsk), 0};
    k->sparse_plans =
        (PlanTable){k->sparse, SPARSE_SETS, sizeof *k->sparse, sizeof(SparseAsk), 0};
    const char *explain = getenv("SDC_EXPLAIN");
    k->explains = explain && strcmp(explain, "1") == 0;
    TargetInfo t;
    SdcrtCuda *cuda = NULL;
    SdcStatus status = k->on_gpu ? context_cuda(cx, &cuda) : SDC_OK;
    if (status != SDC_OK) {
        sdc_kernels_destroy(k);
        return status;
    }
    double memory = 0, clock = 0;
    if (cuda) {
        const SdcrtCudaInfo *i = sdcrt_cuda_info(cuda);
        k->programs = i->processors;
        clock = i->clock_khz / 1e3;
        memory = 2e-6 * i->memory_clock_khz * i->memory_bus_bits / 8; /* both edges */
    }
    k->cuda = cuda;
    long cache = sysconf(_SC_LEVEL2_CACHE_SIZE);
    k->device = (NnDevice){.cache = cache > 0 ? cache : 1 << 20,
                           .gpu = k->on_gpu,
                           .wgmma = cuda && target_info(cx->gpu_target, &t) && t.wgmma,
                           .processors = k->programs,
                           .lends = !cuda || sdcrt_cuda_lends(cuda),
                           .memory = memory,
                           .clock = clock};
    *out = k;
    return SDC_OK;
}

void
sdc_kernels_destroy(SdcKernels *k)
{
    if (!k)
        return;
    for (int i = 0; i < KERNEL_FILES; i++)
        sdc_module_unload(k->modules[i]);
    pthread_mutex_destroy(&k->lock);
    free(k);
}

static SdcStatus
module_of(SdcKernels *k, const char *file, SdcModule **out)
{
    int i = 0;
    while (kernel_texts[i].name && strcmp(kernel_texts[i].name, file) != 0)
        i++;
    if (!kernel_texts[i].name || i >= KERNEL_FILES)
        return context_fail(k->cx, SDC_ERROR_INTERNAL, "no kernels are named '%s'", file);
    SdcStatus status = context_lock(k->cx, &k->lock);
    if (status != SDC_OK)
        return status;
    if (!k->modules[i]) {
        char name[64];
        snprintf(name, sizeof name, "%s.tk", file);
        status =
            sdc_module_load_text(k->cx, name, kernel_texts[i].text, kernel_texts[i].size,
                                 SDC_LANG_TRITON, &k->modules[i]);
    }
    *out = k->modules[i];
    pthread_mutex_unlock(&k->lock);
    return status;
}

/* ---- temporary memory */

enum { BORROW_ALIGN = 256 };

void *
call_borrow(Call *c, int64_t bytes)
{
    SdcrtError why;
    uint64_t at = 0;
    if (!call_need(c, c->nborrow < CALL_BORROWS, "too many pieces of temporary memory"))
        return NULL;
    if (!c->k->cuda) {
        size_t size = ((size_t)bytes / BORROW_ALIGN + 1) * BORROW_ALIGN;
        at = (uint64_t)(uintptr_t)aligned_alloc(BORROW_ALIGN, size);
        if (!at)
            c->status = context_fail(c->k->cx, SDC_ERROR_MEMORY,
                                     "%s: no memory for %lld temporary bytes", c->name,
                                     (long long)bytes);
    } else if (sdcrt_cuda_borrow(c->k->cuda, (size_t)bytes, c->stream, &at, &why) !=
               SDCRT_OK) {
        c->status = context_fail(c->k->cx, SDC_ERROR_MEMORY, "%s: %s", c->name, why.text);
        at = 0;
    }
    if (at)
        c->borrowed[c->nborrow++] = (void *)(uintptr_t)at;
    return (void *)(uintptr_t)at;
}

SdcStatus
call_end(Call *c)
{
    while (c->nborrow > 0) {
        void *p = c->borrowed[--c->nborrow];
        if (c->k->cuda)
            sdcrt_cuda_return(c->k->cuda, (uint64_t)(uintptr_t)p, c->stream, NULL);
        else
            free(p);
    }
    return c->status;
}

/* ---- what was chosen */

void
call_note(Call *c, const Note *note)
{
    SdcContext *cx = c->k->cx;
    char text[1024];
    if (context_lock(cx, &c->k->lock) != SDC_OK)
        return;
    c->k->note = *note;
    c->k->note.function = c->name;
    c->k->note.gpu = c->k->on_gpu;
    Note now = c->k->note;
    pthread_mutex_unlock(&c->k->lock);
    if (!c->k->explains || !cx->print)
        return;
    note_print(&now, text, sizeof text);
    cx->print(cx->print_user, text);
}

size_t
sdc_nn_explain(SdcKernels *k, char *to, size_t size)
{
    Note now = {0};
    if (k && context_lock(k->cx, &k->lock) == SDC_OK) {
        now = k->note;
        pthread_mutex_unlock(&k->lock);
    }
    return note_print(&now, to, to ? size : 0);
}

SdcStatus
sdc_nn_take(SdcKernels *k, int way)
{
    Call c = call_begin(k, "sdc_nn_take");
    if (c.status == SDC_OK &&
        call_need(&c, way >= 0 && way < SDC_NN_WAYS, "way is %d, possible are 0 to %d",
                  way, SDC_NN_WAYS - 1))
        atomic_store(&k->way, way);
    return c.status;
}

/* ---- a call */

Call
call_begin(SdcKernels *k, const char *name)
{
    Call c = {.k = k, .name = name, .status = k ? SDC_OK : SDC_ERROR_ARGUMENT};
    return c;
}

void
call_next(Call *c)
{
    c->narg = c->nbind = 0;
    c->launch += c->launched;
    c->launched = false;
}

bool
call_need(Call *c, bool ok, const char *fmt, ...)
{
    if (!ok && c->status == SDC_OK) {
        char text[256];
        va_list args;
        va_start(args, fmt);
        vsnprintf(text, sizeof text, fmt, args);
        va_end(args);
        c->status = context_fail(c->k->cx, SDC_ERROR_ARGUMENT, "%s: %s", c->name, text);
    }
    return c->status == SDC_OK;
}

bool
call_shape(Call *c, const SdcTensor *t, const char *what, int rank, const int64_t *shape)
{
    if (!call_need(c, t != NULL, "'%s' is missing", what) ||
        !call_need(c, t->rank == rank, "'%s' has %d dimensions, needed are %d", what,
                   t->rank, rank))
        return false;
    bool empty = false;
    for (int i = 0; i < rank; i++) {
        call_need(c, t->shape[i] >= 0 && (shape[i] < 0 || t->shape[i] == shape[i]),
                  "dimension %d of '%s' is %lld, needed is %lld", i, what,
                  (long long)t->shape[i], (long long)shape[i]);
        empty |= t->shape[i] == 0;
    }
    return call_need(c, t->data || empty, "'%s' has no memory", what) &&
           call_need(c, sdc_dtype_name(t->dtype) != NULL, "'%s' is of type %d, which is "
                     "none", what, (int)t->dtype);
}

bool
call_float(Call *c, const SdcTensor *t, const char *what)
{
    return call_need(c, !t || sdc_dtype_is_float(t->dtype),
                     "'%s' needs a floating type, found %s", what,
                     t && sdc_dtype_name(t->dtype) ? sdc_dtype_name(t->dtype) : "none");
}

bool
call_rows(Call *c, const SdcTensor *t, const char *what)
{
    return call_need(c, !t || t->shape[t->rank - 1] <= 1 || t->strides[t->rank - 1] == 1,
                     "'%s' needs stride 1 along its last dimension", what);
}

bool
call_dense(Call *c, const SdcTensor *t, const char *what)
{
    int64_t stride = 1;
    bool dense = true, empty = false;
    for (int i = t ? t->rank - 1 : -1; i >= 0; i--) {
        dense &= t->shape[i] <= 1 || t->strides[i] == stride;
        empty |= t->shape[i] == 0; /* whose strides are any */
        stride *= t->shape[i];
    }
    return call_need(c, dense || empty, "'%s' needs to be contiguous", what);
}

bool
call_same_type(Call *c, const SdcTensor *t, const SdcTensor *like, const char *what)
{
    return call_need(c, !t || !like || t->dtype == like->dtype,
                     "'%s' is %s, needed is %s", what, t ? sdc_dtype_name(t->dtype) : "",
                     sdc_dtype_name(like->dtype));
}

bool
call_options(Call *c, const void *from, void *to, size_t size)
{
    size_t given;
    if (!from)
        return true;
    memcpy(&given, from, sizeof given);
    return call_need(c, options_read(to, size, from, given),
                     "options of %zu bytes, known are %zu: set 'size' to the struct's, "
                     "and no member that this libsdc does not have",
                     given, size);
}

SdcTensor
tensor_transposed(const SdcTensor *t)
{
    SdcTensor r = *t;
    int row = t->rank - 2, col = t->rank - 1;
    r.shape[row] = t->shape[col];
    r.shape[col] = t->shape[row];
    r.strides[row] = t->strides[col];
    r.strides[col] = t->strides[row];
    return r;
}

bool
tensor_is_long(const SdcTensor *t)
{
    double last = 0;
    for (int i = 0; t && i < t->rank; i++)
        last += (double)t->shape[i] * (double)llabs(t->strides[i]);
    return last > INT32_MAX / 2;
}

/* ---- arguments */

static void
add(Call *c, SdcArg a)
{
    if (call_need(c, c->narg < CALL_ARGS, "too many arguments"))
        c->args[c->narg++] = a;
}

void
call_tensor(Call *c, const SdcTensor *t)
{
    add(c, t ? sdc_ptr(t->dtype, t->data) : sdc_none());
}

void
call_stride(Call *c, const SdcTensor *t, int dim)
{
    int64_t stride = t->strides[dim];
    add(c, tensor_is_long(t) ? sdc_int_of(SDC_I64, stride) : sdc_int(stride));
}

void
call_strides(Call *c, const SdcTensor *t)
{
    for (int i = 0; i < t->rank; i++)
        call_stride(c, t, i);
}

void
call_int(Call *c, int64_t v)
{
    add(c, sdc_int(v));
}

void
call_float_arg(Call *c, double v)
{
    add(c, sdc_float(v));
}

void
call_ptr(Call *c, SdcDtype t, void *p)
{
    add(c, sdc_ptr(t, p));
}

static bool
is_known(const Call *c)
{
    return c->launch < CALL_LAUNCHES && c->functions[c->launch];
}

static void
bind(Call *c, const char *name, const char *value)
{
    if (call_need(c, c->nbind < CALL_BINDS, "too many constants"))
        snprintf(c->binds[c->nbind++], CALL_TEXT, "%s=%s", name, value);
}

void
call_bind(Call *c, const char *name, int64_t v)
{
    char text[32];
    if (is_known(c))
        return;
    snprintf(text, sizeof text, "%lld", (long long)v);
    bind(c, name, text);
}

void
call_bind_bool(Call *c, const char *name, bool v)
{
    if (!is_known(c))
        bind(c, name, v ? "True" : "False");
}

void
call_bind_text(Call *c, const char *name, const char *v)
{
    char text[32];
    if (is_known(c))
        return;
    snprintf(text, sizeof text, "'%s'", v);
    bind(c, name, text);
}

SdcGrid
call_grid(Call *c, int64_t programs)
{
    call_need(c, programs <= INT32_MAX, "%lld programs, at most %d",
              (long long)programs, INT32_MAX);
    return sdc_grid((int32_t)programs, 1, 1);
}

static SdcStatus
function_of(Call *c, const char *file, const char *kernel, SdcFunction **fn)
{
    SdcModule *mod = NULL;
    const char *binds[CALL_BINDS + 1];
    int n = 0;
    while (n < c->nbind) {
        binds[n] = c->binds[n];
        n++;
    }
    if (c->k->on_gpu) /* calls follow each other on a stream, launches within a call */
        binds[n++] = "launch_pdl=True";
    SdcStatus status = module_of(c->k, file, &mod);
    return status == SDC_OK ? sdc_function_get(mod, kernel, binds, n, fn) : status;
}

SdcStatus
call_run(Call *c, const char *file, const char *kernel, SdcGrid grid, void *stream)
{
    SdcFunction *fn = is_known(c) ? c->functions[c->launch] : NULL;
    if (c->status == SDC_OK && !fn)
        c->status = function_of(c, file, kernel, &fn);
    if (c->status == SDC_OK)
        c->status = sdc_launch(fn, grid, c->args, c->narg, stream);
    if (c->status == SDC_OK && !is_known(c) && c->launch < CALL_LAUNCHES) {
        c->functions[c->launch] = fn;
        c->found = true;
    }
    c->launched = true;
    return c->status;
}

const char *
act_name(SdcActivation act)
{
    switch (act) {
    case SDC_ACT_NONE: return "none";
    case SDC_ACT_RELU: return "relu";
    case SDC_ACT_SILU: return "silu";
    case SDC_ACT_GELU: return "gelu";
    }
    return NULL;
}

int64_t
power_over(int64_t n, int64_t most)
{
    int64_t p = 1;
    while (p < n && p < most)
        p *= 2;
    return p;
}
