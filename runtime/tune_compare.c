/* Comparing what candidates leave in the memory of a GPU, on the GPU: copying megabytes
   to the host and looking at each element there takes longer than a hundred launches. The
   kernels are sdc's own, compiled like any other; what they do not know (fp8) or where
   they cannot be had the host compares. */
#include "runtime/tune.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* `differ` leaves the lowest index of an element that differs in *first. */
static const char source[] =
    "import triton\n"
    "import triton.language as tl\n"
    "@triton.jit\n"
    "def differ(x, y, first, n, most, level, FLOAT: tl.constexpr, T: tl.constexpr,\n"
    "           BLOCK: tl.constexpr):\n"
    "    i = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)\n"
    "    a = tl.load(x + i, mask=i < n, other=0)\n"
    "    b = tl.load(y + i, mask=i < n, other=0)\n"
    "    bad = a != b\n"
    "    if FLOAT:\n"
    "        a = a.to(T)\n"
    "        b = b.to(T)\n"
    "        close = tl.abs(a - b) <= most * (tl.abs(a) + level)\n"
    "        close = close & (tl.abs(a) != float('inf'))\n"
    "        bad = bad & ~(close | ((a != a) & (b != b)))\n"
    "    at = tl.min(tl.where(bad, i, 9223372036854775807), 0)\n"
    "    if at != 9223372036854775807:\n"
    "        tl.atomic_min(first, at)\n"
    "@triton.jit\n"
    "def squares(x, sum, n, BLOCK: tl.constexpr):\n"
    "    i = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)\n"
    "    a = tl.load(x + i, mask=i < n, other=0).to(tl.float64)\n"
    "    a = tl.where(tl.abs(a) <= 1.7976931348623157e308, a, 0.0)\n"
    "    tl.atomic_add(sum, tl.sum(a * a, 0))\n";

enum { BLOCK = 2048 };

static const int64_t none = INT64_MAX;

/* Integers are compared by their bits, whatever their signs; so are the floats of eight
   bits, for which only "the same" is an answer. */
static SdcDtype
compared_as(SdcDtype t)
{
    static const SdcDtype bits[] = {
        [1] = SDC_I8, [2] = SDC_I16, [4] = SDC_I32, [8] = SDC_I64};
    int size = sdc_dtype_size(t);
    if (sdc_dtype_is_float(t) && size > 1)
        return t;
    return size > 0 && size <= 8 ? bits[size] : SDC_DTYPE_NONE;
}

static SdcStatus
function(SdcTuning *t, SdcDtype type, const char *name, SdcFunction **out)
{
    bool real = sdc_dtype_is_float(type);
    const char *const squares[] = {"BLOCK=2048"};
    const char *const differ[] = {"BLOCK=2048", real ? "FLOAT=True" : "FLOAT=False",
                                  type == SDC_FP64 ? "T=tl.float64" : "T=tl.float32"};
    SdcStatus status = SDC_OK;
    if (!t->compare)
        status = sdc_module_load_text(t->mod->cx, "compare.tk", source, sizeof source - 1,
                                      SDC_LANG_TRITON, &t->compare);
    if (status != SDC_OK)
        return status;
    return strcmp(name, "differ") == 0
               ? sdc_function_get(t->compare, name, differ, 3, out)
               : sdc_function_get(t->compare, name, squares, 1, out);
}

static SdcArg
device_ptr(SdcDtype t, uint64_t at)
{
    return sdc_ptr(t, (void *)(uintptr_t)at);
}

static SdcGrid
grid_of(int64_t n)
{
    return sdc_grid((n + BLOCK - 1) / BLOCK, 1, 1);
}

/* Launches on 8 bytes that begin as `*word` and are there afterwards. */
static SdcStatus
with_word(SdcTuning *t, SdcFunction *f, int64_t n, const SdcArg *args, int nargs,
          void *word)
{
    SdcrtCuda *cuda = atomic_load(&t->mod->cx->cuda);
    SdcrtError e;
    if (sdcrt_cuda_write(cuda, t->word, word, 8, &e) != SDCRT_OK)
        return context_fail(t->mod->cx, SDC_ERROR_ENVIRONMENT, "%s", e.text);
    SdcStatus status = sdc_launch(f, grid_of(n), args, nargs, NULL);
    if (status == SDC_OK && sdcrt_cuda_read(cuda, word, t->word, 8, &e) != SDCRT_OK)
        return context_fail(t->mod->cx, SDC_ERROR_ENVIRONMENT, "%s", e.text);
    return status;
}

SdcStatus
tune_level_there(SdcTuning *t, TuneMemory *m)
{
    SdcDtype type = compared_as(m->dtype);
    int64_t n = (int64_t)m->bytes / sdc_dtype_size(m->dtype);
    double sum = 0;
    SdcFunction *f;
    if (!sdc_dtype_is_float(type) || m->level > 0)
        return SDC_OK;
    SdcStatus status = function(t, type, "squares", &f);
    SdcArg args[] = {device_ptr(type, m->first.at), device_ptr(SDC_FP64, t->word),
                     sdc_int(n)};
    if (status == SDC_OK)
        status = with_word(t, f, n, args, 3, &sum);
    m->level = sqrt(sum / (double)(n ? n : 1));
    return status;
}

SdcStatus
tune_differs_there(SdcTuning *t, const TuneMemory *m, double most, int64_t *at)
{
    SdcDtype type = compared_as(m->dtype);
    SdcFunction *f;
    int64_t n = (int64_t)m->bytes / sdc_dtype_size(m->dtype), first = none;
    SdcStatus status = function(t, type, "differ", &f);
    SdcArg args[] = {device_ptr(type, m->first.at),
                     device_ptr(type, (uint64_t)(uintptr_t)m->at),
                     device_ptr(SDC_I64, t->word),
                     sdc_int_of(SDC_I64, n),
                     sdc_float(most),
                     sdc_float(m->level)};
    if (status == SDC_OK)
        status = with_word(t, f, n, args, 6, &first);
    *at = first == none ? -1 : first;
    return status;
}

bool
tune_compares_there(const TuneMemory *m)
{
    return compared_as(m->dtype) != SDC_DTYPE_NONE;
}

bool
tune_decides_there(const TuneMemory *m)
{
    return !sdc_dtype_is_float(m->dtype) || sdc_dtype_size(m->dtype) > 1;
}
