/* The CPU target against what a C programmer would use instead, with the same number of
   threads on both sides: OpenBLAS for matmuls, memcpy for what is bound by memory, a
   plain C loop at -O3 -march=native for dropout. Three sizes each, one of which fills no
   tile.

       ninja -C build perf && build/perf_bench_cpu [THREADS]

   Both sides run alternately in one process; the table has medians. A row says OK when it
   reaches its share of the baseline and its result was right; the program leaves with 1
   when a result was wrong, never for a slow one. The C sides run on the pool of libsdcrt,
   so that starting threads costs both the same. */
#include "runtime/rt/sdcrt.h"
#include "runtime/sdc.h"
#include "tests/perf/bench.h"
#include "tests/ref/ref.h"

#include <dlfcn.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef void Sgemm(int order, int ta, int tb, int m, int n, int k, float alpha,
                   const float *a, int lda, const float *b, int ldb, float beta, float *c,
                   int ldc);

typedef struct Blas {
    Sgemm *sgemm; /* NULL: not there */
    double rate;  /* best of the matmuls measured, flop/s */
} Blas;

static Blas
blas_open(int threads)
{
    void *lib = dlopen("libopenblas.so.0", RTLD_NOW | RTLD_LOCAL);
    union {
        void *p;
        Sgemm *gemm;
        void (*set)(int);
    } f;
    if (!lib)
        return (Blas){NULL, 0};
    f.p = dlsym(lib, "openblas_set_num_threads");
    if (f.p)
        f.set(threads);
    f.p = dlsym(lib, "cblas_sgemm");
    return (Blas){f.gemm, 0};
}

/* ---------------------------------------------------------------- matmuls */

typedef struct Product {
    Bench *b;
    Blas *blas;
    SdcFunction *fn;
    int m, n, k;
    float *a, *bb, *c, *want;
} Product;

static void
product_sdc(void *arg)
{
    Product *p = arg;
    SdcArg args[] = {sdc_ptr(SDC_FP32, p->a),
                     sdc_ptr(SDC_FP32, p->bb),
                     sdc_ptr(SDC_FP32, p->c),
                     sdc_none(),
                     sdc_int(p->m),
                     sdc_int(p->n),
                     sdc_int(p->k),
                     sdc_int(p->k),
                     sdc_int(1),
                     sdc_int(p->n),
                     sdc_int(1),
                     sdc_int(p->n),
                     sdc_int(1)};
    bench_launch(p->b, p->fn, sdc_grid(ceil_div(p->m, 64) * ceil_div(p->n, 64), 1, 1),
                 args, 13);
}

static void
product_blas(void *arg)
{
    Product *p = arg;
    p->blas->sgemm(101, 111, 111, p->m, p->n, p->k, 1, p->a, p->k, p->bb, p->n, 0,
                   p->want, p->n);
}

static void
bench_matmul(Bench *b, Blas *blas)
{
    static const char *const bind[] = {"BLOCK_M=64", "BLOCK_N=64", "BLOCK_K=64",
                                       "PRECISION=\"ieee\""};
    static const int sizes[][3] = {
        {512, 512, 512}, {1024, 1024, 1024}, {999, 1001, 1003}};
    if (!blas->sgemm) {
        printf("matmul fp32: SKIPPED, libopenblas.so.0 is not installed\n");
        return;
    }
    SdcFunction *fn = bench_function(b, "matmul", "matmul", bind, 4);
    for (int i = 0; fn && i < 3; i++) {
        Product p = {.b = b,
                     .blas = blas,
                     .fn = fn,
                     .m = sizes[i][0],
                     .n = sizes[i][1],
                     .k = sizes[i][2]};
        p.a = bench_floats(b, (int64_t)p.m * p.k);
        p.bb = bench_floats(b, (int64_t)p.k * p.n);
        p.c = bench_floats(b, (int64_t)p.m * p.n);
        p.want = bench_floats(b, (int64_t)p.m * p.n);
        Row row = {.name = "matmul fp32", .against = "OpenBLAS", .share = 0.25};
        snprintf(row.size, sizeof row.size, "%dx%dx%d", p.m, p.n, p.k);
        double flop = 2.0 * p.m * p.n * p.k;
        bench_pair(b, &row, product_sdc, product_blas, &p);
        for (int64_t e = 0; e < (int64_t)p.m * p.n; e++)
            row.wrong |= !(fabsf(p.c[e] - p.want[e]) <= 1e-4f * sqrtf((float)p.k));
        row.sdc_rate = flop / row.sdc_seconds;
        row.base_rate = flop / row.base_seconds;
        if (row.base_rate > blas->rate)
            blas->rate = row.base_rate;
        bench_print(b, &row, "GFLOP/s");
        bench_free(b);
    }
}

/* ---------------------------------------------------------------- bound by memory */

enum { CHUNK = 1 << 14 }; /* elements a program of the C sides handles */

typedef struct Stream {
    Bench *b;
    SdcFunction *fn;
    int64_t n;
    int inputs;
    float *in[4], *out, *copy;
    int64_t block;
} Stream;

static void
copy_range(const uint64_t *args, const SdcGrid *grid, int64_t first, int64_t last,
           void *scratch)
{
    const Stream *s = (const Stream *)(uintptr_t)args[0];
    int64_t end = last * CHUNK < s->n ? last * CHUNK : s->n;
    (void)grid, (void)scratch;
    memcpy(s->copy + first * CHUNK, s->in[0] + first * CHUNK,
           (size_t)(end - first * CHUNK) * sizeof(float));
}

static void
stream_copy(void *arg)
{
    Stream *s = arg;
    bench_c(s->b, copy_range, s, ceil_div(s->n, CHUNK));
}

static void
stream_sdc(void *arg)
{
    Stream *s = arg;
    SdcArg args[6];
    int n = 0;
    for (int i = 0; i < s->inputs; i++)
        args[n++] = sdc_ptr(SDC_FP32, s->in[i]);
    args[n++] = sdc_ptr(SDC_FP32, s->out);
    args[n++] = sdc_int(s->n);
    bench_launch(s->b, s->fn, sdc_grid(ceil_div(s->n, s->block), 1, 1), args, n);
}

static void
bench_stream(Bench *b, const char *kernel, int inputs)
{
    static const char *const bind[] = {"BLOCK=1024"};
    static const int64_t sizes[] = {1 << 20, 1 << 24, 10000019};
    SdcFunction *fn = bench_function(b, kernel, kernel, bind, 1);
    for (int i = 0; fn && i < 3; i++) {
        Stream s = {.b = b, .fn = fn, .n = sizes[i], .inputs = inputs, .block = 1024};
        for (int k = 0; k < inputs; k++)
            s.in[k] = bench_floats(b, s.n);
        s.out = bench_floats(b, s.n);
        s.copy = bench_floats(b, s.n);
        Row row = {.name = kernel, .against = "memcpy", .share = 0.70};
        snprintf(row.size, sizeof row.size, "%lld", (long long)s.n);
        bench_pair(b, &row, stream_sdc, stream_copy, &s);
        for (int64_t e = 0; e < s.n; e++) {
            float want = s.in[0][e] + s.in[1][e];
            float bound = 0;
            if (inputs == 4) {
                bound = 4e-7f * (fabsf(s.in[3][e]) + fabsf(want * s.in[2][e]) + 1);
                want = s.in[3][e] + want * s.in[2][e];
            }
            row.wrong |= !(fabsf(s.out[e] - want) <= bound);
        }
        row.sdc_rate = 4.0 * (double)s.n * (inputs + 1) / row.sdc_seconds;
        row.base_rate = 8.0 * (double)s.n / row.base_seconds;
        bench_print(b, &row, "GB/s");
        bench_free(b);
    }
}

/* ---------------------------------------------------------------- dropout */

typedef void BaseDropout(const float *x, float *out, int64_t first, int64_t end, float p,
                         uint32_t seed);

typedef struct Drop {
    Bench *b;
    BaseDropout *base;
    SdcFunction *fn;
    int64_t n;
    float *x, *out, *want;
    float p;
    int32_t seed;
} Drop;

static void
drop_range(const uint64_t *args, const SdcGrid *grid, int64_t first, int64_t last,
           void *scratch)
{
    const Drop *d = (const Drop *)(uintptr_t)args[0];
    int64_t end = last * CHUNK < d->n ? last * CHUNK : d->n;
    (void)grid, (void)scratch;
    d->base(d->x, d->want, first * CHUNK, end, d->p, (uint32_t)d->seed);
}

static void
drop_c(void *arg)
{
    Drop *d = arg;
    bench_c(d->b, drop_range, d, ceil_div(d->n, CHUNK));
}

static void
drop_sdc(void *arg)
{
    Drop *d = arg;
    SdcArg args[] = {sdc_ptr(SDC_FP32, d->x), sdc_ptr(SDC_FP32, d->out), sdc_int(d->n),
                     sdc_float(d->p), sdc_int(d->seed)};
    bench_launch(d->b, d->fn, sdc_grid(ceil_div(d->n, 1024), 1, 1), args, 5);
}

/* base/dropout.c by one compiler; NULL when there is no such compiler. */
static BaseDropout *
build_dropout(const char *compiler)
{
    char out[] = "/tmp/sdc_bench_XXXXXX", command[1024];
    int fd = mkstemp(out);
    if (fd < 0)
        return NULL;
    close(fd);
    snprintf(command, sizeof command,
             "%s -O3 -march=native -fPIC -shared -o %s %s/tests/perf/base/dropout.c "
             "2>/dev/null",
             compiler, out, SDC_ROOT);
    void *lib = system(command) == 0 ? dlopen(out, RTLD_NOW | RTLD_LOCAL) : NULL;
    unlink(out);
    union {
        void *p;
        BaseDropout *fn;
    } f = {.p = lib ? dlsym(lib, "base_dropout") : NULL};
    return f.fn;
}

/* The fastest of the compilers found. */
static BaseDropout *
best_dropout(Bench *b, const char **name)
{
    static const char *const compilers[] = {"gcc", "clang", "clang-22",
                                            "/usr/lib/llvm-22/bin/clang"};
    static const char *const names[] = {"gcc -O3", "clang -O3", "clang -O3", "clang -O3"};
    enum { N = 1 << 16 };
    float *x = bench_floats(b, N), *out = bench_floats(b, N);
    BaseDropout *best = NULL;
    double least = 1e9;
    for (int i = 0; i < 4; i++) {
        BaseDropout *fn = build_dropout(compilers[i]);
        for (int r = 0; fn && r < 7; r++) {
            double from = bench_now();
            fn(x, out, 0, N, 0.1f, 1);
            double t = bench_now() - from;
            if (t < least) {
                least = t;
                best = fn;
                *name = names[i];
            }
        }
    }
    bench_free(b);
    return best;
}

static void
bench_dropout(Bench *b)
{
    const char *compiler = NULL;
    BaseDropout *base = best_dropout(b, &compiler);
    if (!base) {
        printf("dropout: SKIPPED, no C compiler found\n");
        return;
    }
    static const char *const bind[] = {"BLOCK=1024"};
    static const int64_t sizes[] = {1 << 18, 1 << 22, 3000017};
    SdcFunction *fn = bench_function(b, "dropout", "dropout_fwd", bind, 1);
    for (int i = 0; fn && i < 3; i++) {
        Drop d = {
            .b = b, .base = base, .fn = fn, .n = sizes[i], .p = 0.1f, .seed = 12345};
        d.x = bench_floats(b, d.n);
        d.out = bench_floats(b, d.n);
        d.want = bench_floats(b, d.n);
        Row row = {.name = "dropout", .against = compiler, .share = 1.0};
        snprintf(row.size, sizeof row.size, "%lld", (long long)d.n);
        bench_pair(b, &row, drop_sdc, drop_c, &d);
        for (int64_t e = 0; e < d.n; e++)
            row.wrong |= !(fabsf(d.out[e] - d.want[e]) <= 4e-7f * fabsf(d.want[e])) ||
                         (d.out[e] == 0) != (d.want[e] == 0);
        row.sdc_rate = (double)d.n / row.sdc_seconds;
        row.base_rate = (double)d.n / row.base_seconds;
        bench_print(b, &row, "G/s");
        bench_free(b);
    }
}

/* ---------------------------------------------------------------- softmax */

typedef struct Rows {
    Stream copy; /* first: the baseline takes a Stream */
    int rows, cols;
} Rows;

static void
softmax_sdc(void *arg)
{
    Rows *r = arg;
    SdcArg args[] = {sdc_ptr(SDC_FP32, r->copy.in[0]),
                     sdc_ptr(SDC_FP32, r->copy.out),
                     sdc_int(r->cols),
                     sdc_int(r->cols),
                     sdc_int(r->rows),
                     sdc_int(r->cols)};
    bench_launch(r->copy.b, r->copy.fn, sdc_grid(r->rows, 1, 1), args, 6);
}

static void
bench_softmax(Bench *b)
{
    static const int sizes[][3] = {
        {1024, 1024, 1024}, {4096, 2048, 2048}, {3001, 781, 1024}};
    for (int i = 0; i < 3; i++) {
        char block[32];
        const char *bind[] = {block};
        snprintf(block, sizeof block, "BLOCK=%d", sizes[i][2]);
        SdcFunction *fn = bench_function(b, "softmax", "softmax", bind, 1);
        if (!fn)
            return;
        Rows r = {.rows = sizes[i][0], .cols = sizes[i][1]};
        int64_t n = (int64_t)r.rows * r.cols;
        r.copy = (Stream){.b = b, .fn = fn, .n = n, .inputs = 1};
        r.copy.in[0] = bench_floats(b, n);
        r.copy.out = bench_floats(b, n);
        r.copy.copy = bench_floats(b, n);
        Row row = {.name = "softmax", .against = "memcpy", .share = 0.50};
        snprintf(row.size, sizeof row.size, "%dx%d", r.rows, r.cols);
        bench_pair(b, &row, softmax_sdc, stream_copy, &r);
        for (int y = 0; y < r.rows; y++) {
            const float *x = r.copy.in[0] + (int64_t)y * r.cols;
            double sum = 0;
            for (int c = 0; c < r.cols; c++)
                sum += exp(x[c]);
            for (int c = 0; c < r.cols; c++) {
                double want = exp(x[c]) / sum;
                double got = r.copy.out[(int64_t)y * r.cols + c];
                row.wrong |= !(fabs(got - want) <= 2e-5 * want);
            }
        }
        row.sdc_rate = 8.0 * (double)n / row.sdc_seconds;
        row.base_rate = 8.0 * (double)n / row.base_seconds;
        bench_print(b, &row, "GB/s");
        bench_free(b);
    }
}

/* ---------------------------------------------------------------- attention */

typedef struct Attend {
    Bench *b;
    SdcFunction *fn;
    int heads, m, dim;
    uint16_t *q, *k, *v, *o;
    float *lse;
} Attend;

static void
attend_sdc(void *arg)
{
    Attend *a = arg;
    int64_t row = a->dim, head = row * a->m, batch = head * a->heads;
    SdcArg args[29] = {sdc_ptr(SDC_FP16, a->q),   sdc_ptr(SDC_FP16, a->k),
                       sdc_ptr(SDC_FP16, a->v),   sdc_ptr(SDC_FP16, a->o),
                       sdc_ptr(SDC_FP32, a->lse), sdc_float(1 / sqrt(a->dim))};
    int n = 6;
    for (int i = 0; i < 4; i++) {
        args[n++] = sdc_int(batch);
        args[n++] = sdc_int(head);
        args[n++] = sdc_int(row);
        args[n++] = sdc_int(1);
    }
    args[n++] = sdc_int(a->heads);
    args[n++] = sdc_int(a->m);
    args[n++] = sdc_int(a->m);
    args[n++] = sdc_none();
    args[n++] = sdc_none();
    args[n++] = sdc_float(0);
    args[n++] = sdc_int(0);
    bench_launch(a->b, a->fn, sdc_grid(ceil_div(a->m, 64), a->heads, 1), args, n);
}

/* The first head against the reference in double precision. */
static bool
attend_wrong(Bench *b, const Attend *a)
{
    int64_t n = (int64_t)a->m * a->dim;
    double *t[7];
    for (int i = 0; i < 7; i++)
        t[i] = bench_alloc(b, (size_t)n * sizeof(double));
    int64_t shape[1] = {n}, stride[1] = {1};
    ref_gather(REF_FP16, a->q, 1, shape, stride, t[0]);
    ref_gather(REF_FP16, a->k, 1, shape, stride, t[1]);
    ref_gather(REF_FP16, a->v, 1, shape, stride, t[2]);
    ref_gather(REF_FP16, a->o, 1, shape, stride, t[6]);
    RefAttention r = {.batch = 1,
                      .heads = 1,
                      .group = 1,
                      .M = a->m,
                      .N = a->m,
                      .dim = a->dim,
                      .q = t[0],
                      .k = t[1],
                      .v = t[2],
                      .scale = 1 / sqrt(a->dim),
                      .weight_unit = 0x1p-11,
                      .o = t[3],
                      .o_bound = t[4],
                      .lse = t[5],
                      .lse_bound = t[5] + a->m};
    ref_attention(&r);
    return ref_compare(REF_FP16, n, t[6], t[3], t[4]) >= 0;
}

static void
bench_attention(Bench *b, const Blas *blas)
{
    static const char *const bind[] = {"HEAD_DIM=64", "BLOCK_M=64", "BLOCK_N=64"};
    static const int sizes[] = {512, 2048, 1001};
    if (blas->rate == 0) {
        printf("attention fp16: SKIPPED, libopenblas.so.0 is not installed\n");
        return;
    }
    SdcFunction *fn =
        bench_function(b, "flash_attention", "flash_attention_fwd", bind, 3);
    for (int i = 0; fn && i < 3; i++) {
        Attend a = {.b = b, .fn = fn, .heads = 4, .m = sizes[i], .dim = 64};
        int64_t n = (int64_t)a.heads * a.m * a.dim;
        a.q = bench_halves(b, n);
        a.k = bench_halves(b, n);
        a.v = bench_halves(b, n);
        a.o = bench_halves(b, n);
        a.lse = bench_floats(b, (int64_t)a.heads * a.m);
        Row row = {.name = "attention fp16", .against = "OpenBLAS", .share = 0.10};
        snprintf(row.size, sizeof row.size, "4x%dx64", a.m);
        bench_pair(b, &row, attend_sdc, NULL, &a);
        double flop = 4.0 * a.heads * a.m * (double)a.m * a.dim;
        row.wrong |= attend_wrong(b, &a);
        row.sdc_rate = flop / row.sdc_seconds;
        row.base_rate = blas->rate;
        row.base_seconds = flop / blas->rate;
        bench_print(b, &row, "GFLOP/s");
        bench_free(b);
    }
}

int
main(int argc, char **argv)
{
    Bench b;
    if (!bench_open(&b, argc > 1 ? atoi(argv[1]) : 0))
        return 3;
    Blas blas = blas_open(b.threads);
    bench_head(&b);
    bench_matmul(&b, &blas);
    bench_attention(&b, &blas);
    bench_stream(&b, "vector_add", 2);
    bench_stream(&b, "add_mul_add", 4);
    bench_dropout(&b);
    bench_softmax(&b);
    return bench_close(&b);
}
