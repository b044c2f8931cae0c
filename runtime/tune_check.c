/* What candidates compute: each runs once with its outputs filled with a pattern, and
   must leave there what the first configuration left. What reads before it writes (sums)
   then gives the same for all. What a candidate forgets to write, or reads where others
   do not, must not be lost in the tolerance: the pattern is a number about as large as
   the results, so the first configuration runs twice, at first with a small one. */
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
failed(SdcTuning *t, const SdcrtError *e)
{
    return context_fail(t->mod->cx, SDC_ERROR_ENVIRONMENT, "%s", e->text);
}

static SdcrtCuda *
device(const SdcTuning *t)
{
    return t->mod->cx->on_gpu ? atomic_load(&t->mod->cx->cuda) : NULL;
}

static uint64_t
address(const TuneMemory *m)
{
    return (uint64_t)(uintptr_t)m->at;
}

/* On the device if it has the room. */
static SdcStatus
kept_new(SdcTuning *t, const TuneMemory *m, Kept *k)
{
    SdcrtCuda *cuda = device(t);
    if (cuda && sdcrt_cuda_alloc(cuda, m->bytes, &k->at, NULL) == SDCRT_OK)
        return SDC_OK;
    k->at = 0;
    k->here = malloc(m->bytes);
    return k->here ? SDC_OK : context_fail(t->mod->cx, SDC_ERROR_MEMORY, "out of memory");
}

static void
kept_done(SdcTuning *t, Kept *k)
{
    if (k->at)
        sdcrt_cuda_free(device(t), k->at, NULL);
    free(k->here);
    *k = (Kept){0};
}

static SdcStatus
kept_save(SdcTuning *t, const TuneMemory *m, const Kept *k)
{
    SdcrtCuda *cuda = device(t);
    SdcrtError e;
    SdcrtStatus got = SDCRT_OK;
    if (!cuda)
        memcpy(k->here, m->at, m->bytes);
    else if (k->at)
        got = sdcrt_cuda_copy(cuda, k->at, address(m), m->bytes, &e);
    else
        got = sdcrt_cuda_read(cuda, k->here, address(m), m->bytes, &e);
    return got == SDCRT_OK ? SDC_OK : failed(t, &e);
}

static SdcStatus
kept_load(SdcTuning *t, const TuneMemory *m, const Kept *k)
{
    SdcrtCuda *cuda = device(t);
    SdcrtError e;
    SdcrtStatus got = SDCRT_OK;
    if (!cuda)
        memcpy(m->at, k->here, m->bytes);
    else if (k->at)
        got = sdcrt_cuda_copy(cuda, address(m), k->at, m->bytes, &e);
    else
        got = sdcrt_cuda_write(cuda, address(m), k->here, m->bytes, &e);
    return got == SDCRT_OK ? SDC_OK : failed(t, &e);
}

static SdcStatus
fill_memory(SdcTuning *t, const TuneMemory *m, int byte)
{
    SdcrtError e;
    if (!t->mod->cx->on_gpu) {
        memset(m->at, byte, m->bytes);
        return SDC_OK;
    }
    return sdcrt_cuda_fill(atomic_load(&t->mod->cx->cuda), (uint64_t)(uintptr_t)m->at,
                           byte, m->bytes, &e) == SDCRT_OK
               ? SDC_OK
               : failed(t, &e);
}

/* The memory of one pointer or descriptor. */
static void
add_memory(SdcTuning *t, int arg, int leaf, const SdcArg *given, size_t bytes)
{
    TuneMemory *m = &t->memory[t->nmemory++];
    const SdcArg plain = arg_plain(given), *a = &plain;
    const SdcDesc *d = a->kind == SDC_ARG_DESC ? a->v.ptr : NULL;
    const char *name = t->info->params[t->info->runtime[arg]].name;
    *m = (TuneMemory){.arg = arg, .leaf = leaf, .pattern = PATTERN};
    if (a->kind != SDC_ARG_PTR && !d)
        return;
    m->at = d ? d->base : a->v.ptr;
    m->bytes = m->at ? bytes : 0;
    m->dtype = (SdcDtype)a->dtype;
    m->zero = named(t->configs.reset, t->configs.nreset, name);
    m->restore = named(t->configs.restore, t->configs.nrestore, name);
}

SdcStatus
tune_memory(SdcTuning *t)
{
    const SdcTuneOptions *o = t->o;
    const size_t *items = o->item_bytes;
    int n = o->nargs;
    for (int i = 0; i < o->nargs; i++)
        if (o->args[i].kind == SDC_ARG_TUPLE)
            for (int k = 0; tuple_leaf(&o->args[i], k); k++)
                n++;
    t->memory = calloc((size_t)n + 1, sizeof *t->memory);
    if (!t->memory)
        return context_fail(t->mod->cx, SDC_ERROR_MEMORY, "out of memory");
    for (int i = 0; i < o->nargs; i++) {
        const SdcArg *leaf, *a = &o->args[i];
        if (a->kind != SDC_ARG_TUPLE)
            add_memory(t, i, -1, a, o->bytes[i]);
        for (int k = 0; a->kind == SDC_ARG_TUPLE && (leaf = tuple_leaf(a, k)); k++)
            add_memory(t, i, k, leaf, items ? *items++ : 0);
    }
    return SDC_OK;
}

static bool
is_written_by(const Candidate *c, const TuneMemory *m)
{
    return m->leaf < 0 ? sdc_kernel_writes(c->kernel, m->arg)
                       : kernel_writes_leaf(c->kernel, m->arg, m->leaf);
}

/* Room for the contents of an output, and the contents themselves the first time. */
static SdcStatus
keep_before(SdcTuning *t, TuneMemory *m)
{
    if (m->written)
        return SDC_OK;
    SdcStatus status = kept_new(t, m, &m->first);
    if (status == SDC_OK)
        status = kept_new(t, m, &m->before);
    if (status == SDC_OK)
        status = kept_save(t, m, &m->before);
    if (status == SDC_OK && t->have_first) /* which has not written it */
        status = kept_save(t, m, &m->first);
    m->written = status == SDC_OK;
    return status;
}

static double
tolerance(SdcDtype t)
{
    switch (t) {
    case SDC_FP64: return 1e-9;
    case SDC_FP32: return 2e-3; /* matmuls in tf32 */
    case SDC_FP16: return 1e-2;
    case SDC_BF16: return 4e-2;
    case SDC_FP8E5:
    case SDC_FP8E4NV:
    case SDC_FP8E4B8:
    case SDC_FP8E5B16:
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
level_of(const TuneMemory *m, const float *table, const char *first)
{
    int64_t n = (int64_t)m->bytes / sdc_dtype_size(m->dtype);
    double sum = 0;
    for (int64_t i = 0; i < n; i++) {
        double x = value_at(m, table, first, i);
        sum += isfinite(x) ? x * x : 0;
    }
    return sqrt(sum / (double)(n ? n : 1));
}

static int64_t
floats_differ(TuneMemory *m, const float *table, double most, const char *first,
              const char *now)
{
    enum { LINE = 64 }; /* bytes that are mostly the same, and skipped at once */
    const int64_t size = sdc_dtype_size(m->dtype), n = (int64_t)m->bytes / size;
    if (m->level <= 0)
        m->level = level_of(m, table, first);
    for (int64_t i = 0; i < n; i++) {
        if (i * size % LINE == 0)
            while ((i + LINE / size) <= n &&
                   memcmp(first + i * size, now + i * size, LINE) == 0)
                i += LINE / size;
        if (i >= n)
            break;
        double x = value_at(m, table, first, i), y = value_at(m, table, now, i);
        bool same = (isnan(x) && isnan(y)) || x == y;
        /* an infinite number is close to nothing else */
        if (!same && !(isfinite(x) && fabs(x - y) <= most * (fabs(x) + m->level)))
            return i;
    }
    return -1;
}

/* Index of the first element that differs, or -1. Sums are taken in other orders, so
   floats may differ by their type's tolerance of the array's size. */
static int64_t
differs_here(TuneMemory *m, const char *first, const char *now)
{
    double most = tolerance(m->dtype);
    if (memcmp(first, now, m->bytes) == 0)
        return -1;
    if (most > 0) {
        float *table = value_table(m->dtype);
        int64_t at = floats_differ(m, table, most, first, now);
        free(table);
        return at;
    }
    size_t i = 0;
    while (first[i] == now[i])
        i++;
    int size = sdc_dtype_size(m->dtype);
    return (int64_t)i / (size ? size : 1);
}

/* Memory of the device, fetched to be compared on the host. */
static SdcStatus
fetch_and_compare(SdcTuning *t, TuneMemory *m, int64_t *at)
{
    SdcrtCuda *cuda = device(t);
    SdcrtError e;
    char *first = m->first.at ? malloc(m->bytes) : m->first.here;
    char *now = malloc(m->bytes);
    SdcStatus status = SDC_OK;
    if (!first || !now)
        status = context_fail(t->mod->cx, SDC_ERROR_MEMORY, "out of memory");
    else if (sdcrt_cuda_read(cuda, now, address(m), m->bytes, &e) != SDCRT_OK ||
             (m->first.at &&
              sdcrt_cuda_read(cuda, first, m->first.at, m->bytes, &e) != SDCRT_OK))
        status = failed(t, &e);
    else
        *at = differs_here(m, first, now);
    if (first != m->first.here)
        free(first);
    free(now);
    return status;
}

/* The same on the device, if its kernels and the copy of the first results are there. */
static SdcStatus
differs(SdcTuning *t, TuneMemory *m, int64_t *at)
{
    SdcStatus status = SDC_OK;
    if (!device(t)) {
        *at = differs_here(m, m->first.here, m->at);
        return SDC_OK;
    }
    if (!t->word || !m->first.at || !tune_compares_there(m))
        return fetch_and_compare(t, m, at);
    status = tune_level_there(t, m);
    if (status == SDC_OK)
        status = tune_differs_there(t, m, tolerance(m->dtype), at);
    if (status == SDC_OK && *at >= 0 && !tune_decides_there(m))
        status = fetch_and_compare(t, m, at);
    return status;
}

/* Comparing what the arguments hold now with itself compiles what will compare them; a
   failure here leaves it to the host. */
void
tune_check_prepare(SdcTuning *t)
{
    bool seen[SDC_DTYPE_COUNT] = {false};
    int64_t at;
    if (!device(t) || sdcrt_cuda_alloc(device(t), 8, &t->word, NULL) != SDCRT_OK)
        return;
    for (int i = 0; i < t->nmemory && t->word; i++) {
        TuneMemory one = t->memory[i];
        if (!one.bytes || seen[one.dtype] || !tune_compares_there(&one))
            continue;
        seen[one.dtype] = true;
        one.first.at = address(&one);
        if (tune_level_there(t, &one) != SDC_OK ||
            tune_differs_there(t, &one, 0, &at) != SDC_OK) {
            sdcrt_cuda_free(device(t), t->word, NULL);
            t->word = 0;
        }
    }
}

static SdcStatus
run_once(SdcTuning *t, Candidate *c)
{
    const SdcTuneOptions *o = t->o;
    SdcStatus status = SDC_OK;
    for (int i = 0; i < t->nmemory && status == SDC_OK; i++) {
        TuneMemory *m = &t->memory[i];
        if (!m->bytes)
            continue;
        if (!is_written_by(c, m)) { /* but another candidate may have */
            status = m->written ? kept_load(t, m, &m->before) : SDC_OK;
            continue;
        }
        status = keep_before(t, m);
        if (status == SDC_OK)
            status = m->restore ? kept_load(t, m, &m->before)
                                : fill_memory(t, m, m->zero ? 0 : m->pattern);
    }
    return status == SDC_OK
               ? sdc_kernel_launch(c->kernel, c->grid, o->args, o->nargs, NULL)
               : status;
}

static SdcStatus
wait_for(SdcTuning *t)
{
    SdcrtError e;
    SdcrtCuda *cuda = device(t);
    return !cuda || sdcrt_cuda_wait(cuda, &e) == SDCRT_OK ? SDC_OK : failed(t, &e);
}

/* The byte that a number closest to `level` consists of. */
static int
byte_near(SdcDtype t, double level)
{
    int best = PATTERN;
    double least = INFINITY;
    for (int byte = 1; byte < 0x80; byte++) {
        unsigned char element[8];
        memset(element, byte, sizeof element);
        double off = fabs(log(sdc_dtype_load(t, element) / level));
        if (off < least) {
            least = off;
            best = byte;
        }
    }
    return best;
}

/* From what the first configuration has left, which has just been kept. */
static SdcStatus
choose_pattern(SdcTuning *t, TuneMemory *m)
{
    SdcStatus status = SDC_OK;
    if (!m->written || tolerance(m->dtype) <= 0)
        return SDC_OK;
    if (!device(t)) {
        float *table = value_table(m->dtype);
        m->level = level_of(m, table, m->first.here);
        free(table);
    } else if (t->word && m->first.at && tune_compares_there(m)) {
        status = tune_level_there(t, m);
    }
    if (m->level > 0)
        m->pattern = byte_near(m->dtype, m->level);
    return status;
}

static SdcStatus
run_and_wait(SdcTuning *t, Candidate *c)
{
    SdcStatus status = run_once(t, c);
    return status == SDC_OK ? wait_for(t) : status;
}

/* A first run of the first configuration, from which the patterns follow. */
static SdcStatus
run_for_pattern(SdcTuning *t, Candidate *c)
{
    SdcStatus status = run_and_wait(t, c);
    for (int i = 0; i < t->nmemory && status == SDC_OK; i++) {
        TuneMemory *m = &t->memory[i];
        if (m->written)
            status = kept_save(t, m, &m->first);
        if (status == SDC_OK)
            status = choose_pattern(t, m);
    }
    return status;
}

SdcStatus
tune_check(SdcTuning *t, Candidate *c)
{
    SdcStatus status = t->have_first ? SDC_OK : run_for_pattern(t, c);
    if (status == SDC_OK)
        status = run_and_wait(t, c);
    for (int i = 0; i < t->nmemory && status == SDC_OK; i++) {
        TuneMemory *m = &t->memory[i];
        int64_t at = -1;
        if (!m->written)
            continue;
        status = t->have_first ? differs(t, m, &at) : kept_save(t, m, &m->first);
        if (status != SDC_OK || at < 0)
            continue;
        char why[200];
        snprintf(why, sizeof why, "'%s' differs from the first configuration's at %lld",
                 t->info->params[t->info->runtime[m->arg]].name, (long long)at);
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
    for (int i = 0; i < t->nmemory && status == SDC_OK; i++)
        if (t->memory[i].written)
            status = kept_load(t, &t->memory[i], &t->memory[i].before);
    return status == SDC_OK ? wait_for(t) : status;
}

void
tune_memory_done(SdcTuning *t)
{
    for (int i = 0; i < t->nmemory; i++) {
        kept_done(t, &t->memory[i].before);
        kept_done(t, &t->memory[i].first);
    }
    if (t->word)
        sdcrt_cuda_free(device(t), t->word, NULL);
    t->word = 0;
    sdc_module_unload(t->compare);
    t->compare = NULL;
    free(t->memory);
    t->memory = NULL;
}
