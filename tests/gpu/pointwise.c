/* Kernels without dot on a GPU: compiled to PTX by libsdc, launched through the driver,
   compared with the references over odd sizes (outputs poisoned, guard zones checked),
   then timed at full size. One table; exit status 1 when a result is wrong.

       pointwise KERNELS_FOLDER [--time] */
#include "runtime/rt/cuda.h"
#include "runtime/sdc.h"
#include "tests/ref/ref.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { GUARD = 64, ROUNDS = 21, MAX_ARRAYS = 6 };

typedef struct Run {
    SdcContext *sdc;
    SdcrtCuda *cuda;
    const char *folder, *target;
    int wrong, checks;
    void *from, *to;
    SdcrtCudaError e;
} Run;

typedef struct Kernel {
    SdcModule *mod;
    SdcOutput *out;
    SdcrtCudaKernel *k;
} Kernel;

static bool
load(Run *r, const char *file, const char *name, const char *signature, Kernel *k)
{
    char path[512];
    const char *target = r->target;
    SdcCompileOptions o = {
        .kernel = name, .signature = signature, .target = target, .emit = SDC_EMIT_ASM};
    size_t size;
    int n = 0;
    *k = (Kernel){0};
    snprintf(path, sizeof path, "%s/%s", r->folder, file);
    if (sdc_module_load_file(r->sdc, path, &k->mod) != SDC_OK ||
        sdc_compile(k->mod, &o, &k->out) != SDC_OK) {
        printf("%s: %s\n", name, sdc_error(r->sdc));
        return false;
    }
    const char *ptx = sdc_output_data(k->out, &size);
    const SdcrtMeta *meta = sdc_output_meta(k->out, &n);
    if (n != 1 || sdcrt_cuda_load(r->cuda, ptx, meta, &k->k, &r->e)) {
        printf("%s: %s\n", name, n == 1 ? r->e.text : "no metadata");
        return false;
    }
    return true;
}

static void
unload(Run *r, Kernel *k)
{
    sdcrt_cuda_unload(r->cuda, k->k);
    sdc_output_free(k->out);
    sdc_module_unload(k->mod);
}

static float *
random_floats(int64_t n, uint64_t seed)
{
    float *x = malloc(sizeof *x * (size_t)(n + 1));
    for (int64_t i = 0; x && i < n; i++) {
        seed = seed * 6364136223846793005u + 1442695040888963407u;
        x[i] = (float)((int32_t)(seed >> 32)) * 0x1p-29f;
    }
    return x;
}

static double *
widen(const float *x, int64_t n)
{
    double *d = malloc(sizeof *d * (size_t)(n + 1));
    for (int64_t i = 0; d && i < n; i++)
        d[i] = x[i];
    return d;
}

static uint64_t
device_array(Run *r, const float *host, int64_t n)
{
    uint64_t at = 0;
    size_t bytes = sizeof *host * (size_t)(n + 2 * GUARD);
    if (sdcrt_cuda_alloc(r->cuda, bytes, &at, &r->e) ||
        sdcrt_cuda_fill(r->cuda, at, 0xff, bytes, &r->e) ||
        (host && sdcrt_cuda_write(r->cuda, at + GUARD * sizeof *host, host,
                                  sizeof *host * (size_t)n, &r->e))) {
        printf("%s\n", r->e.text);
        exit(2);
    }
    return at + GUARD * sizeof *host;
}

/* Compares and frees; guards must still hold their bytes. */
static void
judge(Run *r, const char *what, uint64_t at, int64_t n, const double *want,
      const double *bound)
{
    float *got = malloc(sizeof *got * (size_t)(n + 2 * GUARD));
    int e = sdcrt_cuda_wait(r->cuda, &r->e);
    if (!e)
        e = sdcrt_cuda_read(r->cuda, got, at - GUARD * sizeof *got,
                            sizeof *got * (size_t)(n + 2 * GUARD), &r->e);
    if (e) {
        printf("%s: %s\n", what, r->e.text);
        exit(2);
    }
    double *wide = widen(got + GUARD, n);
    int64_t bad = ref_compare(REF_FP32, n, wide, want, bound);
    bool guards = true;
    const unsigned char *low = (const unsigned char *)got;
    const unsigned char *high = (const unsigned char *)(got + GUARD + n);
    for (size_t i = 0; i < GUARD * sizeof *got; i++)
        guards &= low[i] == 0xff && high[i] == 0xff;
    r->checks++;
    if (bad >= 0 || !guards) {
        r->wrong++;
        if (bad >= 0)
            printf("WRONG %s: element %lld of %lld is %.9g, not %.9g\n", what,
                   (long long)bad, (long long)n, wide[bad], want[bad]);
        else
            printf("WRONG %s: wrote outside of its output\n", what);
    }
    free(wide);
    free(got);
    sdcrt_cuda_free(r->cuda, at - GUARD * sizeof *got, &r->e);
}

static uint64_t
bits_of(float f)
{
    uint32_t u;
    memcpy(&u, &f, sizeof u);
    return u;
}

static void
launch(Run *r, Kernel *k, const uint64_t *args, int64_t programs)
{
    const int32_t grid[3] = {(int32_t)programs, 1, 1};
    if (sdcrt_cuda_launch(r->cuda, k->k, args, grid, NULL, &r->e)) {
        printf("%s\n", r->e.text);
        exit(2);
    }
}

static float
median_ms(Run *r, Kernel *k, const uint64_t *args, int64_t programs)
{
    float t[ROUNDS];
    const int32_t grid[3] = {(int32_t)programs, 1, 1};
    for (int i = -3; i < ROUNDS; i++) {
        float ms;
        if (sdcrt_cuda_event_record(r->cuda, r->from, NULL, &r->e) ||
            sdcrt_cuda_launch(r->cuda, k->k, args, grid, NULL, &r->e) ||
            sdcrt_cuda_event_record(r->cuda, r->to, NULL, &r->e) ||
            sdcrt_cuda_event_ms(r->cuda, r->from, r->to, &ms, &r->e)) {
            printf("%s\n", r->e.text);
            exit(2);
        }
        if (i < 0)
            continue;
        int at = i;
        for (; at > 0 && t[at - 1] > ms; at--)
            t[at] = t[at - 1];
        t[at] = ms;
    }
    return t[ROUNDS / 2];
}

static const int64_t sizes[] = {1, 127, 1024, 1000, 4096 * 3 + 16, 1000003};

static void
check_add(Run *r)
{
    Kernel plain, div;
    if (!load(r, "vector_add.tk", "vector_add", "*fp32,*fp32,*fp32,i32,1024", &plain) ||
        !load(r, "vector_add.tk", "vector_add", "*fp32:16,*fp32:16,*fp32:16,i32:16,1024",
              &div)) {
        r->wrong++;
        return;
    }
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        int64_t n = sizes[i];
        float *x = random_floats(n, 1), *y = random_floats(n, 2);
        double *dx = widen(x, n), *dy = widen(y, n), *want = widen(x, n);
        ref_vector_add(n, dx, dy, want);
        uint64_t a = device_array(r, x, n), b = device_array(r, y, n);
        uint64_t c = device_array(r, NULL, n);
        uint64_t args[] = {a, b, c, (uint64_t)n};
        launch(r, n % 16 ? &plain : &div, args, (n + 1023) / 1024);
        judge(r, "vector_add", c, n, want, NULL);
        sdcrt_cuda_free(r->cuda, a - GUARD * 4, &r->e);
        sdcrt_cuda_free(r->cuda, b - GUARD * 4, &r->e);
        free(x), free(y), free(dx), free(dy), free(want);
    }
    unload(r, &plain);
    unload(r, &div);
}

static void
check_dropout(Run *r, const char *name, bool four)
{
    Kernel k;
    if (!load(r, "dropout.tk", name, "*fp32,*fp32,i32,fp32,i32,1024", &k)) {
        r->wrong++;
        return;
    }
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        int64_t n = sizes[i];
        float *x = random_floats(n, 3), p = 0.1f * (float)(i + 1);
        double *dx = widen(x, n), *want = widen(x, n), *bound = widen(x, n);
        ref_dropout(n, dx, p, 1234 + (int64_t)i, four, want, bound);
        uint64_t a = device_array(r, x, n), c = device_array(r, NULL, n);
        uint64_t args[] = {a, c, (uint64_t)n, bits_of(p), 1234 + i};
        launch(r, &k, args, (n + 1023) / 1024);
        judge(r, name, c, n, want, bound);
        sdcrt_cuda_free(r->cuda, a - GUARD * 4, &r->e);
        free(x), free(dx), free(want), free(bound);
    }
    unload(r, &k);
}

static void
check_softmax(Run *r, int64_t rows, int64_t cols, int block)
{
    Kernel k;
    char sig[96];
    snprintf(sig, sizeof sig, "*fp32,*fp32,i32,i32,i32,i32,%d", block);
    if (!load(r, "softmax.tk", "softmax", sig, &k)) {
        r->wrong++;
        return;
    }
    int64_t n = rows * cols;
    float *x = random_floats(n, 5);
    double *dx = widen(x, n), *want = widen(x, n), *bound = widen(x, n);
    ref_softmax(rows, cols, dx, want, bound);
    uint64_t a = device_array(r, x, n), c = device_array(r, NULL, n);
    uint64_t args[] = {
        a, c, (uint64_t)cols, (uint64_t)cols, (uint64_t)rows, (uint64_t)cols};
    launch(r, &k, args, rows);
    /* ex2.approx is within 2 ulp of its argument's own rounding: twice the CPU's bound */
    for (int64_t i = 0; i < n; i++)
        bound[i] *= 2;
    judge(r, "softmax", c, n, want, bound);
    sdcrt_cuda_free(r->cuda, a - GUARD * 4, &r->e);
    free(x), free(dx), free(want), free(bound);
    unload(r, &k);
}

/* ---- full size */

static void
row(const char *name, const char *size, float ms, double bytes)
{
    printf("%-12s %-14s %8.4f ms %8.0f GB/s\n", name, size, (double)ms,
           bytes / ms * 1e-6);
}

static void
time_all(Run *r)
{
    const int64_t n = (int64_t)1 << 28, bytes = n * 4;
    Kernel k;
    uint64_t a = 0, b = 0, c = 0;
    float *x = random_floats(1 << 22, 7);
    if (sdcrt_cuda_alloc(r->cuda, (size_t)bytes, &a, &r->e) ||
        sdcrt_cuda_alloc(r->cuda, (size_t)bytes, &b, &r->e) ||
        sdcrt_cuda_alloc(r->cuda, (size_t)bytes, &c, &r->e)) {
        printf("%s\n", r->e.text);
        return;
    }
    for (int64_t at = 0; at < bytes; at += 4 << 22) {
        sdcrt_cuda_write(r->cuda, a + (uint64_t)at, x, 4 << 22, &r->e);
        sdcrt_cuda_write(r->cuda, b + (uint64_t)at, x, 4 << 22, &r->e);
    }
    uint64_t add[] = {a, b, c, (uint64_t)n},
             drop[] = {a, c, (uint64_t)n, bits_of(0.5f), 42};
    if (load(r, "vector_add.tk", "vector_add", "*fp32:16,*fp32:16,*fp32:16,i32:16,1024",
             &k)) {
        row("vector_add", "2^28 fp32", median_ms(r, &k, add, n / 1024),
            3.0 * (double)bytes);
        unload(r, &k);
    }
    static const char *const drops[] = {"dropout_fwd", "dropout4_fwd"};
    for (int i = 0; i < 2; i++) {
        if (!load(r, "dropout.tk", drops[i], "*fp32:16,*fp32:16,i32:16,fp32,i32,1024",
                  &k))
            continue;
        row(drops[i], "2^28 fp32", median_ms(r, &k, drop, n / 1024), 2.0 * (double)bytes);
        unload(r, &k);
    }
    static const int64_t cols[] = {1024, 4096, 8192};
    for (int i = 0; i < 3; i++) {
        char sig[96], size[32];
        snprintf(sig, sizeof sig, "*fp32:16,*fp32:16,i32:16,i32:16,i32:16,i32:16,%d",
                 (int)cols[i]);
        snprintf(size, sizeof size, "16384x%d", (int)cols[i]);
        uint64_t args[] = {
            a, c, (uint64_t)cols[i], (uint64_t)cols[i], 16384, (uint64_t)cols[i]};
        if (!load(r, "softmax.tk", "softmax", sig, &k))
            continue;
        row("softmax", size, median_ms(r, &k, args, 16384),
            2.0 * 16384 * 4 * (double)cols[i]);
        unload(r, &k);
    }
    free(x);
}

int
main(int argc, char **argv)
{
    Run r = {.folder = argc > 1 ? argv[1] : "kernels_dsl"};
    char target[16];
    if (sdcrt_cuda_open(0, &r.cuda, &r.e) ||
        sdcrt_cuda_event_new(r.cuda, &r.from, &r.e) ||
        sdcrt_cuda_event_new(r.cuda, &r.to, &r.e)) {
        printf("SKIPPED: %s\n", r.e.text);
        return 0;
    }
    snprintf(target, sizeof target, "sm_%d%s", sdcrt_cuda_info(r.cuda)->sm,
             sdcrt_cuda_info(r.cuda)->sm == 90 ? "a" : "");
    r.target = target;
    if (sdc_context_create(NULL, &r.sdc) != SDC_OK)
        return 2;
    printf("%s, target %s\n", sdcrt_cuda_info(r.cuda)->name, target);
    check_add(&r);
    check_dropout(&r, "dropout_fwd", false);
    check_dropout(&r, "dropout4_fwd", true);
    check_softmax(&r, 7, 1000, 1024);
    check_softmax(&r, 33, 129, 256);
    check_softmax(&r, 3, 8191, 8192);
    printf("%d checks, %d wrong\n", r.checks, r.wrong);
    if (argc > 2 && strcmp(argv[2], "--time") == 0)
        time_all(&r);
    sdc_context_destroy(r.sdc);
    sdcrt_cuda_close(r.cuda);
    return r.wrong != 0;
}
