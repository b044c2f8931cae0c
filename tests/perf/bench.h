/* What the benchmarks share: memory, launches, alternating measurement, the table. Static
   functions, so that each program of this folder is one file and this header. */
#ifndef TESTS_PERF_BENCH_H
#define TESTS_PERF_BENCH_H

#include "runtime/rt/sdcrt.h"
#include "runtime/sdc.h"

#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { BENCH_BLOCKS = 64, BENCH_ROUNDS = 25 };

typedef struct Bench {
    SdcContext *cx;
    SdcrtPool *pool; /* of the C sides */
    int threads;
    void *blocks[BENCH_BLOCKS];
    int nblock;
    uint64_t random;
    bool failed; /* the last launch */
    int wrong, slow, rows;
} Bench;

typedef struct Row {
    const char *name, *against;
    char size[32];
    double share; /* of the baseline that is to be reached */
    double sdc_seconds, base_seconds, sdc_rate, base_rate;
    bool wrong;
} Row;

static inline int64_t
ceil_div(int64_t a, int64_t b)
{
    return (a + b - 1) / b;
}

static inline bool
bench_open(Bench *b, int threads)
{
    *b = (Bench){.random = 1};
    SdcContextOptions o = {.threads = threads > 0 ? threads : 0};
    if (sdc_context_create(&o, &b->cx) != SDC_OK)
        return false;
    b->threads = sdc_context_threads(b->cx);
    b->pool = sdcrt_pool_create(b->threads);
    return b->pool != NULL;
}

static inline void *
bench_alloc(Bench *b, size_t bytes)
{
    void *p = aligned_alloc(64, (bytes + 64) & ~(size_t)63);
    if (!p || b->nblock == BENCH_BLOCKS) {
        fprintf(stderr, "out of memory\n");
        exit(3);
    }
    return b->blocks[b->nblock++] = p;
}

static inline void
bench_free(Bench *b)
{
    while (b->nblock > 0)
        free(b->blocks[--b->nblock]);
}

/* From -1 to 1. */
static inline double
bench_random(Bench *b)
{
    uint64_t x = b->random += 0x9e3779b97f4a7c15u;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return (double)(int64_t)(x ^ (x >> 31)) * 0x1p-63;
}

static inline float *
bench_floats(Bench *b, int64_t n)
{
    float *p = bench_alloc(b, (size_t)n * sizeof *p);
    for (int64_t i = 0; i < n; i++)
        p[i] = (float)bench_random(b);
    return p;
}

static inline uint16_t *
bench_halves(Bench *b, int64_t n)
{
    uint16_t *p = bench_alloc(b, (size_t)n * sizeof *p);
    for (int64_t i = 0; i < n; i++)
        sdc_dtype_store(SDC_FP16, bench_random(b), &p[i]);
    return p;
}

/* Of kernels_dsl, in $SDC_TEST_ROOT or where this was built. */
static inline void
bench_kernel_path(char *to, size_t size, const char *file)
{
    const char *root = getenv("SDC_TEST_ROOT");
    snprintf(to, size, "%s/kernels_dsl/%s.tk", root ? root : SDC_ROOT, file);
}

static inline SdcFunction *
bench_function(Bench *b, const char *file, const char *kernel, const char *const *bind,
               int nbind)
{
    char path[512];
    SdcModule *mod;
    SdcFunction *fn;
    bench_kernel_path(path, sizeof path, file);
    if (sdc_module_load_file(b->cx, path, &mod) == SDC_OK &&
        sdc_function_get(mod, kernel, bind, nbind, &fn) == SDC_OK)
        return fn;
    fprintf(stderr, "%s", sdc_error(b->cx));
    b->wrong++;
    return NULL;
}

static inline void
bench_launch(Bench *b, SdcFunction *fn, SdcGrid grid, const SdcArg *args, int n)
{
    if (b->failed || sdc_launch(fn, grid, args, n, NULL) == SDC_OK)
        return;
    fprintf(stderr, "%s", sdc_error(b->cx));
    b->failed = true;
}

/* A C side: programs 0 .. n - 1 on as many threads as the kernel gets. */
static inline void
bench_c(Bench *b, SdcrtCpuEntry *entry, const void *state, int64_t n)
{
    uint64_t args[1] = {(uint64_t)(uintptr_t)state};
    SdcGrid grid = {(int32_t)n, 1, 1};
    sdcrt_cpu_launch(b->pool, entry, args, grid, 0, 0);
}

static inline double
bench_now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static inline int
bench_by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

typedef void BenchSide(void *arg);

/* Both sides one after another; the median of each. `base` may be NULL. */
static inline void
bench_pair(Bench *b, Row *row, BenchSide *sdc, BenchSide *base, void *arg)
{
    double s[BENCH_ROUNDS], c[BENCH_ROUNDS];
    b->failed = false;
    sdc(arg); /* compiles; both sides warm the caches up */
    if (base)
        base(arg);
    double start = bench_now();
    int n = 0;
    while (n < BENCH_ROUNDS && !b->failed && (n < 5 || bench_now() - start < 3)) {
        double from = bench_now();
        sdc(arg);
        double middle = bench_now();
        if (base)
            base(arg);
        s[n] = middle - from;
        c[n++] = bench_now() - middle;
    }
    qsort(s, (size_t)n, sizeof *s, bench_by_value);
    qsort(c, (size_t)n, sizeof *c, bench_by_value);
    row->wrong = b->failed;
    row->sdc_seconds = n ? s[n / 2] : 1;
    row->base_seconds = n ? c[n / 2] : 1;
}

static inline void
bench_head(const Bench *b)
{
    printf("%d thread%s; medians; both sides in turn\n\n", b->threads,
           b->threads == 1 ? "" : "s");
    printf("%-15s %-15s %10s %10s %9s %9s %-8s %-9s %7s %6s\n", "kernel", "size",
           "sdc ms", "base ms", "sdc", "base", "unit", "against", "share", "goal");
}

static inline void
bench_print(Bench *b, const Row *r, const char *unit)
{
    double share = r->sdc_rate / r->base_rate;
    bool slow = share < r->share;
    printf("%-15s %-15s %10.3f %10.3f %9.2f %9.2f %-8s %-9s %6.0f%% %5.0f%% %s\n",
           r->name, r->size, r->sdc_seconds * 1e3, r->base_seconds * 1e3,
           r->sdc_rate * 1e-9, r->base_rate * 1e-9, unit, r->against, share * 100,
           r->share * 100,
           r->wrong ? "WRONG"
           : slow   ? "slow"
                    : "OK");
    fflush(stdout);
    b->rows++;
    b->wrong += r->wrong;
    b->slow += slow;
}

static inline int
bench_close(Bench *b)
{
    if (b->rows)
        printf("\n%d rows, %d below their goal, %d wrong\n", b->rows, b->slow, b->wrong);
    bench_free(b);
    sdcrt_pool_destroy(b->pool);
    sdc_context_destroy(b->cx);
    return b->wrong ? 1 : 0;
}

#endif
