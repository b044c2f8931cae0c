/* What candidates compute: each runs once with its outputs filled with a pattern, and
   must leave there what the first configuration left. The pattern is a small number in
   every type, so that what a candidate forgets to write shows, and what reads before it
   writes still gives the same for all. */
#include "runtime/tune.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PATTERN = 0x3b };

static bool
named(const char *const *names, int n, const char *name)
{
    for (int i = 0; i < n; i++)
        if (names && names[i] && strcmp(names[i], name) == 0)
            return true;
    return false;
}

static SdcStatus
failed(SdcTuning *t, const SdcrtCudaError *e)
{
    return context_fail(t->mod->cx, SDC_ERROR_ENVIRONMENT, "%s", e->text);
}

static SdcStatus
read_memory(SdcTuning *t, const TuneMemory *m, char *to)
{
    SdcrtCudaError e;
    if (!t->mod->cx->on_gpu) {
        memcpy(to, m->at, m->bytes);
        return SDC_OK;
    }
    SdcrtCuda *cuda = atomic_load(&t->mod->cx->cuda);
    return sdcrt_cuda_wait(cuda, &e) == SDCRT_OK &&
                   sdcrt_cuda_read(cuda, to, (uint64_t)(uintptr_t)m->at, m->bytes, &e) ==
                       SDCRT_OK
               ? SDC_OK
               : failed(t, &e);
}

static SdcStatus
write_memory(SdcTuning *t, const TuneMemory *m, const char *from)
{
    SdcrtCudaError e;
    if (!t->mod->cx->on_gpu) {
        memcpy(m->at, from, m->bytes);
        return SDC_OK;
    }
    return sdcrt_cuda_write(atomic_load(&t->mod->cx->cuda), (uint64_t)(uintptr_t)m->at,
                            from, m->bytes, &e) == SDCRT_OK
               ? SDC_OK
               : failed(t, &e);
}

static SdcStatus
fill_memory(SdcTuning *t, const TuneMemory *m, int byte)
{
    SdcrtCudaError e;
    if (!t->mod->cx->on_gpu) {
        memset(m->at, byte, m->bytes);
        return SDC_OK;
    }
    return sdcrt_cuda_fill(atomic_load(&t->mod->cx->cuda), (uint64_t)(uintptr_t)m->at,
                           byte, m->bytes, &e) == SDCRT_OK
               ? SDC_OK
               : failed(t, &e);
}

SdcStatus
tune_memory(SdcTuning *t)
{
    const SdcTuneOptions *o = t->o;
    t->memory = calloc((size_t)o->nargs + 1, sizeof *t->memory);
    if (!t->memory)
        return context_fail(t->mod->cx, SDC_ERROR_MEMORY, "out of memory");
    for (int i = 0; i < o->nargs; i++) {
        TuneMemory *m = &t->memory[i];
        const SdcArg *a = &o->args[i];
        const SdcDesc *d = a->kind == SDC_ARG_DESC ? a->v.ptr : NULL;
        const char *name = t->info->params[t->info->runtime[i]].name;
        if ((a->kind != SDC_ARG_PTR && !d) || !o->bytes[i])
            continue;
        m->at = d ? d->base : a->v.ptr;
        m->bytes = o->bytes[i];
        m->dtype = (SdcDtype)a->dtype;
        m->zero = named(t->configs.reset, t->configs.nreset, name);
        m->restore = named(t->configs.restore, t->configs.nrestore, name);
    }
    return SDC_OK;
}

/* Room for the contents of an output, and the contents themselves the first time. */
static SdcStatus
keep_before(SdcTuning *t, TuneMemory *m)
{
    if (m->before)
        return SDC_OK;
    m->before = malloc(m->bytes);
    m->first = malloc(m->bytes);
    m->now = malloc(m->bytes);
    return m->before && m->first && m->now
               ? read_memory(t, m, m->before)
               : context_fail(t->mod->cx, SDC_ERROR_MEMORY, "out of memory");
}

static double
tolerance(SdcDtype t)
{
    switch (t) {
    case SDC_FP64: return 1e-9;
    case SDC_FP32: return 2e-3; /* products in tf32 */
    case SDC_FP16: return 1e-2;
    case SDC_BF16: return 4e-2;
    case SDC_FP8E5:
    case SDC_FP8E4NV:
    case SDC_FP8E4B15: return 0.3;
    default: return 0;
    }
}

/* Values of up to 16 bits by their bits: converting millions of elements one by one would
   take longer than the kernels. */
static float *
value_table(SdcDtype t)
{
    int bits = 8 * sdc_dtype_size(t);
    float *table = bits <= 16 ? malloc(((size_t)1 << bits) * sizeof *table) : NULL;
    for (unsigned i = 0; table && i < 1u << bits; i++) {
        uint16_t element = (uint16_t)i;
        table[i] = (float)sdc_dtype_load(t, &element);
    }
    return table;
}

static double
value_at(const TuneMemory *m, const float *table, const char *from, int64_t i)
{
    uint16_t two;
    float four;
    if (!table && m->dtype != SDC_FP32)
        return sdc_dtype_load(m->dtype, from + i * sdc_dtype_size(m->dtype));
    if (!table) {
        memcpy(&four, from + 4 * i, sizeof four);
        return (double)four;
    }
    if (sdc_dtype_size(m->dtype) == 1)
        return (double)table[(unsigned char)from[i]];
    memcpy(&two, from + 2 * i, sizeof two);
    return (double)table[two];
}

/* The size of the reference's elements: the root of their mean square. */
static double
level_of(const TuneMemory *m, const float *table)
{
    int64_t n = (int64_t)m->bytes / sdc_dtype_size(m->dtype);
    double sum = 0;
    for (int64_t i = 0; i < n; i++) {
        double x = value_at(m, table, m->first, i);
        sum += isfinite(x) ? x * x : 0;
    }
    return sqrt(sum / (double)(n ? n : 1));
}

static int64_t
floats_differ(TuneMemory *m, const float *table, double most)
{
    enum { LINE = 64 }; /* bytes that are mostly the same, and skipped at once */
    const int64_t size = sdc_dtype_size(m->dtype), n = (int64_t)m->bytes / size;
    if (m->level <= 0)
        m->level = level_of(m, table);
    for (int64_t i = 0; i < n; i++) {
        if (i * size % LINE == 0)
            while ((i + LINE / size) <= n &&
                   memcmp(m->first + i * size, m->now + i * size, LINE) == 0)
                i += LINE / size;
        if (i >= n)
            break;
        double x = value_at(m, table, m->first, i), y = value_at(m, table, m->now, i);
        bool same = (isnan(x) && isnan(y)) || x == y;
        if (!same && !(fabs(x - y) <= most * (fabs(x) + m->level)))
            return i;
    }
    return -1;
}

/* Index of the first element that differs, or -1. Sums are taken in other orders, so
   floats may differ by their type's tolerance of the array's size. */
static int64_t
differs(TuneMemory *m)
{
    double most = tolerance(m->dtype);
    if (memcmp(m->first, m->now, m->bytes) == 0)
        return -1;
    if (most > 0) {
        float *table = value_table(m->dtype);
        int64_t at = floats_differ(m, table, most);
        free(table);
        return at;
    }
    size_t i = 0;
    while (m->first[i] == m->now[i])
        i++;
    int size = sdc_dtype_size(m->dtype);
    return (int64_t)i / (size ? size : 1);
}

static SdcStatus
run_once(SdcTuning *t, Candidate *c)
{
    const SdcTuneOptions *o = t->o;
    SdcStatus status = SDC_OK;
    for (int i = 0; i < o->nargs && status == SDC_OK; i++) {
        TuneMemory *m = &t->memory[i];
        if (!m->bytes || !sdc_kernel_writes(c->kernel, i))
            continue;
        status = keep_before(t, m);
        if (status == SDC_OK)
            status = m->restore ? write_memory(t, m, m->before)
                                : fill_memory(t, m, m->zero ? 0 : PATTERN);
    }
    return status == SDC_OK
               ? sdc_kernel_launch(c->kernel, c->grid, o->args, o->nargs, NULL)
               : status;
}

SdcStatus
tune_check(SdcTuning *t, Candidate *c)
{
    const SdcTuneOptions *o = t->o;
    SdcStatus status = run_once(t, c);
    for (int i = 0; i < o->nargs && status == SDC_OK; i++) {
        TuneMemory *m = &t->memory[i];
        if (!m->before)
            continue;
        status = read_memory(t, m, t->have_first ? m->now : m->first);
        int64_t at = status == SDC_OK && t->have_first ? differs(m) : -1;
        if (at < 0)
            continue;
        char why[200];
        snprintf(why, sizeof why, "'%s' differs from the first configuration's at %lld",
                 t->info->params[t->info->runtime[i]].name, (long long)at);
        c->trial.what = SDC_TRIED_WRONG;
        free((char *)(uintptr_t)c->trial.why);
        c->trial.why = strdup(why);
        break;
    }
    t->have_first |= status == SDC_OK;
    return status;
}

SdcStatus
tune_restore(SdcTuning *t)
{
    SdcStatus status = SDC_OK;
    for (int i = 0; t->memory && i < t->o->nargs && status == SDC_OK; i++)
        if (t->memory[i].before)
            status = write_memory(t, &t->memory[i], t->memory[i].before);
    return status;
}

void
tune_memory_done(SdcTuning *t)
{
    for (int i = 0; t->memory && i < t->o->nargs; i++) {
        free(t->memory[i].before);
        free(t->memory[i].first);
        free(t->memory[i].now);
    }
    free(t->memory);
    t->memory = NULL;
}
