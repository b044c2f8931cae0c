/* See big.h. Indices of the filler are 64-bit, and so are all here. */
#include "tests/run/support/big.h"

#include <check.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "runtime/rt/cuda.h"
#include "tests/run/support/device.h"

enum { BLOCK = 4096 };

static const char filler[] =
    "import triton\n"
    "import triton.language as tl\n"
    "@triton.jit\n"
    "def fill(p, n, salt, BLOCK: tl.constexpr):\n"
    "    i = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)\n"
    "    h = (i + salt) * 6364136223846793005\n"
    "    x = (((h >> 40) & 255).to(tl.float32) - 128.0) / 128.0\n"
    "    tl.store(p + i, x.to(p.dtype.element_ty), mask=i < n)\n";

static double
now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

double
big_value(int64_t i, int salt)
{
    uint64_t h = ((uint64_t)i + (uint64_t)salt) * 6364136223846793005u;
    return ((double)(h >> 40 & 255) - 128) / 128;
}

void
big_ok(Big *b, SdcStatus status)
{
    ck_assert_msg(status == SDC_OK, "%s", sdc_error(b->cx));
}

Big
big_open(void)
{
    const char *full = getenv("SDC_TEST_LARGE");
    SdcContextOptions o = {.target = device_target()};
    Big b = {.full = full && *full && *full != '0', .dry = device_dry()};
    SdcDevice d;
    ck_assert_int_eq(sdc_context_create(&o, &b.cx), SDC_OK);
    if (device_wanted()) {
        big_ok(&b, sdc_context_device(b.cx, &d));
        b.cuda = d.cuda;
    }
    big_ok(&b, sdc_kernels_create(b.cx, &b.nn));
    big_ok(&b, sdc_module_load_text(b.cx, "fill.tk", filler, sizeof filler - 1,
                                    SDC_LANG_AUTO, &b.filler));
    b.start = now();
    return b;
}

void
big_close(Big *b)
{
    sdc_kernels_destroy(b->nn);
    sdc_context_destroy(b->cx);
}

void *
big_take(Big *b, size_t bytes)
{
    SdcrtError e;
    uint64_t at = 0;
    ck_assert_int_lt(b->narray, BIG_ARRAYS);
    if (b->cuda)
        ck_assert_msg(sdcrt_cuda_alloc(b->cuda, bytes, &at, &e) == SDCRT_OK, "%s",
                      e.text);
    else
        at = (uint64_t)(uintptr_t)aligned_alloc(256, (bytes + 255) / 256 * 256);
    ck_assert(at != 0);
    b->bytes += (int64_t)bytes;
    return b->array[b->narray++] = (void *)(uintptr_t)at;
}

void *
big_filled(Big *b, SdcDtype t, int64_t n, int salt)
{
    static const char *const bind[] = {"BLOCK=4096"};
    void *p = big_take(b, (size_t)n * (size_t)sdc_dtype_size(t));
    SdcFunction *f;
    SdcArg args[] = {sdc_ptr(t, p), sdc_int_of(SDC_I64, n), sdc_int(salt)};
    big_ok(b, sdc_function_get(b->filler, "fill", bind, 1, &f));
    big_ok(b, sdc_launch(f, sdc_grid((n + BLOCK - 1) / BLOCK, 1, 1), args, 3, NULL));
    b->widest = n > b->widest ? n : b->widest;
    return p;
}

void
big_read(Big *b, SdcDtype t, const void *array, int64_t first, int64_t n, double *out)
{
    SdcrtError e;
    size_t size = (size_t)sdc_dtype_size(t), bytes = (size_t)n * size;
    const char *from = (const char *)array + (size_t)first * size;
    char *here = malloc(bytes);
    ck_assert_ptr_nonnull(here);
    if (b->cuda)
        ck_assert_msg(sdcrt_cuda_read(b->cuda, here, (uint64_t)(uintptr_t)from, bytes,
                                      &e) == SDCRT_OK,
                      "%s", e.text);
    else
        memcpy(here, from, bytes);
    for (int64_t i = 0; i < n; i++)
        out[i] = sdc_dtype_load(t, here + (size_t)i * size);
    free(here);
}

void
big_write(Big *b, void *array, const void *from, size_t bytes)
{
    SdcrtError e;
    if (b->cuda)
        ck_assert_msg(sdcrt_cuda_write(b->cuda, (uint64_t)(uintptr_t)array, from, bytes,
                                       &e) == SDCRT_OK,
                      "%s", e.text);
    else
        memcpy(array, from, bytes);
}

void
big_launch(Big *b, const char *file, const char *kernel, const char *bind, SdcGrid grid,
           const SdcArg *args, int nargs)
{
    enum { WORDS = 16 };
    const char *root = getenv("SDC_TEST_ROOT"), *list[WORDS];
    char path[600], text[300], *rest = text;
    SdcModule *m;
    SdcFunction *f;
    int n = 0;
    snprintf(path, sizeof path, "%s/kernels_dsl/%s.tk", root && *root ? root : SDC_ROOT,
             file);
    snprintf(text, sizeof text, "%s", bind);
    for (char *word; n < WORDS && (word = strtok_r(rest, " ", &rest)) != NULL;)
        list[n++] = word;
    big_ok(b, sdc_module_load_file(b->cx, path, &m));
    big_ok(b, sdc_function_get(m, kernel, list, n, &f));
    big_ok(b, sdc_launch(f, grid, args, nargs, NULL));
    SdcrtError e;
    if (b->cuda)
        ck_assert_msg(sdcrt_cuda_wait(b->cuda, &e) == SDCRT_OK, "%s: %s", kernel,
                      e.text);
    sdc_module_unload(m);
}

static void
add_place(int64_t n, int64_t at, int64_t out[BIG_PLACES], int *count)
{
    for (int i = 0; i < *count; i++)
        if (out[i] == at)
            return;
    if (at >= 0 && at < n && *count < BIG_PLACES)
        out[(*count)++] = at;
}

int
big_places(int64_t n, int64_t step, int bytes, int64_t out[BIG_PLACES])
{
    int64_t edge[] = {INT64_C(1) << 31, (INT64_C(1) << 31) / bytes,
                      (INT64_C(1) << 32) / bytes, (INT64_C(1) << 33) / bytes};
    uint64_t random = 1;
    int count = 0;
    for (int k = 0; k < 2; k++) {
        add_place(n, k, out, &count);
        add_place(n, n - 1 - k, out, &count);
    }
    for (int e = 0; e < 4; e++)
        for (int k = -1; k < 2; k++)
            add_place(n, edge[e] / step + k, out, &count);
    for (int k = 0; k < 8; k++) {
        random = random * 6364136223846793005u + 1442695040888963407u;
        add_place(n, (int64_t)((random >> 16) % (uint64_t)n), out, &count);
    }
    return count;
}

void
big_expect(Big *b, int64_t at, double got, double want, double tolerance)
{
    if (b->dry)
        return;
    b->checked++;
    if (!(fabs(got - want) <= tolerance) && !*b->wrong)
        snprintf(b->wrong, sizeof b->wrong, "element %lld is %.9g, not %.9g",
                 (long long)at, got, want);
}

void
big_done(Big *b, const char *kernel)
{
    SdcrtError e;
    if (b->cuda)
        ck_assert_msg(sdcrt_cuda_wait(b->cuda, &e) == SDCRT_OK, "%s: %s", kernel,
                      e.text);
    for (int i = 0; i < b->narray; i++) {
        if (b->cuda)
            sdcrt_cuda_free(b->cuda, (uint64_t)(uintptr_t)b->array[i], NULL);
        else
            free(b->array[i]);
    }
    b->narray = 0;
    printf(
        "%s %-24s %8.3f GiB, indices to 2^%.2f, %6lld elements compared, %.1f s%s%s\n",
        *b->wrong ? "WRONG" : "large", kernel, (double)b->bytes / (1 << 30),
        log2((double)(b->widest ? b->widest : 1)), (long long)b->checked,
        now() - b->start, *b->wrong ? ": " : "", b->wrong);
    fflush(stdout);
    ck_assert_msg(!*b->wrong, "%s: %s", kernel, b->wrong);
    ck_assert_msg(b->checked || b->dry, "%s: nothing was compared", kernel);
    b->checked = b->bytes = b->widest = 0;
    b->start = now();
}
