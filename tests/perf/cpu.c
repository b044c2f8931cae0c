/* Speed of the project's kernels on the CPU target beside what a C programmer would use:
   copying memory, OpenBLAS (found at run time), the same loop in C at -O3 -march=native.
   Both sides use the same number of threads and take turns within each round.

       ninja -C build perf && build/perf_cpu [--threads N] [--rounds N] [name ...]

   Prints the median of each side, the ratio of their speeds with the range that holds the
   middle half of the rounds, and the ratio that is asked for. */
#include <dlfcn.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "runtime/sdc.h"

enum { MAX_ROUNDS = 200, MAX_THREADS = 256 };

typedef void (*Slice)(void *user, int64_t first, int64_t last);

/* Threads for the C side: each call of team_run shares a range among them. */
typedef struct Team {
    int threads;
    pthread_t thread[MAX_THREADS];
    pthread_barrier_t begin, end;
    Slice slice;
    void *user;
    int64_t n;
    bool stop;
} Team;

typedef struct Member {
    Team *team;
    int rank;
} Member;

/* Everything that a benchmark touches. */
typedef struct Bench {
    SdcContext *ctx;
    Team team;
    Member members[MAX_THREADS];
    int rounds, threads, nnames;
    char **names;
    void (*sgemm)(int, int, int, int, int, int, float, const float *, int, const float *,
                  int, float, float *, int);
} Bench;

static void
die(const char *what, const char *why)
{
    fprintf(stderr, "perf_cpu: %s: %s\n", what, why);
    exit(1);
}

static double
now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* ---------------------------------------------------------------- threads */

static void
member_share(const Team *team, int rank)
{
    int64_t part = (team->n + team->threads - 1) / team->threads;
    int64_t first = part * rank, last = first + part;
    if (last > team->n)
        last = team->n;
    if (first < last)
        team->slice(team->user, first, last);
}

static void *
member_main(void *arg)
{
    Member *m = arg;
    for (;;) {
        pthread_barrier_wait(&m->team->begin);
        if (m->team->stop)
            return NULL;
        member_share(m->team, m->rank);
        pthread_barrier_wait(&m->team->end);
    }
}

static void
team_start(Bench *b)
{
    Team *team = &b->team;
    team->threads = b->threads;
    pthread_barrier_init(&team->begin, NULL, (unsigned)b->threads);
    pthread_barrier_init(&team->end, NULL, (unsigned)b->threads);
    for (int i = 1; i < b->threads; i++) {
        b->members[i] = (Member){team, i};
        if (pthread_create(&team->thread[i], NULL, member_main, &b->members[i]))
            die("threads", "cannot be started");
    }
}

static void
team_run(Team *team, int64_t n, Slice slice, void *user)
{
    team->n = n;
    team->slice = slice;
    team->user = user;
    pthread_barrier_wait(&team->begin);
    member_share(team, 0);
    pthread_barrier_wait(&team->end);
}

static void
team_stop(Team *team)
{
    team->stop = true;
    pthread_barrier_wait(&team->begin);
    for (int i = 1; i < team->threads; i++)
        pthread_join(team->thread[i], NULL);
}

/* ---------------------------------------------------------------- launches */

typedef struct Launch {
    Bench *bench;
    SdcFunction *fn;
    SdcGrid grid;
    SdcArg args[32];
    int nargs;
} Launch;

static Launch
launch_make(Bench *b, const char *file, const char *kernel, SdcGrid grid,
            const char *const *binds, int nbinds)
{
    Launch l = {.bench = b, .grid = grid};
    SdcModule *mod;
    char path[1024];
    snprintf(path, sizeof(path), "%s/kernels_dsl/%s.tk", SDC_ROOT, file);
    if (sdc_module_load_file(b->ctx, path, &mod) != SDC_OK ||
        sdc_function_get(mod, kernel, binds, nbinds, &l.fn) != SDC_OK)
        die(kernel, sdc_error(b->ctx));
    return l;
}

static void
launch_arg(Launch *l, SdcArg arg)
{
    l->args[l->nargs++] = arg;
}

static void
launch_run(void *user)
{
    Launch *l = user;
    if (sdc_launch(l->fn, l->grid, l->args, l->nargs, NULL) != SDC_OK)
        die("launch", sdc_error(l->bench->ctx));
}

/* Filled with numbers in [-1, 1). */
static void *
array(int64_t n, SdcDtype t)
{
    int size = sdc_dtype_size(t);
    void *p = NULL;
    uint64_t x = 88172645463325252u;
    if (posix_memalign(&p, 64, (size_t)(n * size + 64)))
        die("memory", "out of it");
    for (int64_t i = 0; i < n; i++) {
        x ^= x << 13;
        x ^= x >> 7;
        x ^= x << 17;
        if (t == SDC_FP32)
            ((float *)p)[i] = (float)((double)(x >> 11) * 0x1p-52 - 1.0);
        else /* fp16 of 1 to 2, sign from the generator */
            ((uint16_t *)p)[i] = (uint16_t)(0x3000 | (x & 0x83ff));
    }
    return p;
}

/* ---------------------------------------------------------------- measuring */

static int
order(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Work done per call by each side, in the same unit. */
typedef struct Pair {
    const char *name, *other, *unit;
    double ours, theirs, scale; /* work per call; printed = work / time / scale */
    double wanted;
    void (*our_run)(void *), (*their_run)(void *);
    void *our_user, *their_user;
} Pair;

static void
measure(const Bench *b, const Pair *p)
{
    double ours[MAX_ROUNDS], theirs[MAX_ROUNDS], ratio[MAX_ROUNDS];
    for (int i = -2; i < b->rounds; i++) { /* two rounds to warm up */
        double t0 = now();
        p->our_run(p->our_user);
        double t1 = now();
        p->their_run(p->their_user);
        double t2 = now();
        if (i < 0)
            continue;
        ours[i] = p->ours / (t1 - t0);
        theirs[i] = p->theirs / (t2 - t1);
        ratio[i] = ours[i] / theirs[i];
    }
    size_t n = (size_t)b->rounds;
    qsort(ours, n, sizeof(double), order);
    qsort(theirs, n, sizeof(double), order);
    qsort(ratio, n, sizeof(double), order);
    double middle = ratio[n / 2];
    printf("%-34s %8.2f %-8s %-18s %8.2f   %5.2f (%.2f-%.2f)  >= %.2f %s\n", p->name,
           ours[n / 2] / p->scale, p->unit, p->other, theirs[n / 2] / p->scale, middle,
           ratio[n / 4], ratio[3 * n / 4], p->wanted, middle >= p->wanted ? "" : "BELOW");
    fflush(stdout);
}

static bool
chosen(const Bench *b, const char *name)
{
    for (int i = 0; i < b->nnames; i++)
        if (strstr(name, b->names[i]))
            return true;
    return b->nnames == 0;
}

/* ---------------------------------------------------------------- memory-bound */

typedef struct Copy {
    Bench *bench;
    char *from, *to;
    int64_t bytes;
} Copy;

static void
copy_slice(void *user, int64_t first, int64_t last)
{
    Copy *c = user;
    memcpy(c->to + first, c->from + first, (size_t)(last - first));
}

static void
copy_run(void *user)
{
    Copy *c = user;
    team_run(&c->bench->team, c->bytes, copy_slice, c);
}

static const int64_t lengths[] = {1 << 20, 1 << 24, 10000019};

static void
bench_elementwise(Bench *b, const char *kernel, int inputs)
{
    for (int s = 0; s < 3; s++) {
        int64_t n = lengths[s];
        char name[64];
        void *data[6];
        const char *bind[] = {"BLOCK=4096"};
        Launch l =
            launch_make(b, kernel, kernel, sdc_grid((n + 4095) / 4096, 1, 1), bind, 1);
        for (int i = 0; i <= inputs; i++) {
            data[i] = array(n, SDC_FP32);
            launch_arg(&l, sdc_ptr(SDC_FP32, data[i]));
        }
        launch_arg(&l, sdc_int(n));
        Copy copy = {b, data[0], data[inputs], 4 * n};
        snprintf(name, sizeof(name), "%s fp32 %lld", kernel, (long long)n);
        measure(b, &(Pair){name, "memcpy", "GB/s", 4.0 * (inputs + 1) * (double)n,
                           8.0 * (double)n, 1e9, 0.7, launch_run, copy_run, &l, &copy});
        for (int i = 0; i <= inputs; i++)
            free(data[i]);
    }
}

static void
bench_softmax(Bench *b)
{
    static const int64_t shapes[][3] = {{8192, 1024, 1024}, {4096, 4096, 4096},
                                        {3000, 3001, 4096}};
    for (int s = 0; s < 3; s++) {
        int64_t rows = shapes[s][0], cols = shapes[s][1], n = rows * cols;
        char name[64], block[32];
        snprintf(block, sizeof(block), "BLOCK=%lld", (long long)shapes[s][2]);
        const char *bind[] = {block};
        Launch l = launch_make(b, "softmax", "softmax", sdc_grid(rows, 1, 1), bind, 1);
        float *x = array(n, SDC_FP32), *out = array(n, SDC_FP32);
        launch_arg(&l, sdc_ptr(SDC_FP32, x));
        launch_arg(&l, sdc_ptr(SDC_FP32, out));
        launch_arg(&l, sdc_int(cols));
        launch_arg(&l, sdc_int(cols));
        launch_arg(&l, sdc_int(rows));
        launch_arg(&l, sdc_int(cols));
        Copy copy = {b, (char *)x, (char *)out, 4 * n};
        snprintf(name, sizeof(name), "softmax fp32 %lldx%lld", (long long)rows,
                 (long long)cols);
        measure(b, &(Pair){name, "memcpy", "GB/s", 8.0 * (double)n, 8.0 * (double)n, 1e9,
                           0.5, launch_run, copy_run, &l, &copy});
        free(x);
        free(out);
    }
}

/* ---------------------------------------------------------------- dropout */

typedef struct Drop {
    Bench *bench;
    const float *x;
    float *out;
    int64_t n;
    float p;
    uint64_t seed;
} Drop;

/* The kernel's loop as a C programmer would write it, for the compiler to vectorize. */
static void
drop_slice(void *user, int64_t first, int64_t last)
{
    const Drop *d = user;
    const float *restrict x = d->x;
    float *restrict out = d->out;
    const float p = d->p, kept = 1.0f - d->p;
    const uint32_t key0 = (uint32_t)d->seed, key1 = (uint32_t)(d->seed >> 32);
    for (int64_t i = first; i < last; i++) {
        uint32_t c0 = (uint32_t)i, c1 = 0, c2 = 0, c3 = 0, k0 = key0, k1 = key1;
        for (int r = 0; r < 10; r++) {
            uint64_t a = (uint64_t)0xD2511F53u * c0, b = (uint64_t)0xCD9E8D57u * c2;
            c0 = (uint32_t)(b >> 32) ^ c1 ^ k0;
            c2 = (uint32_t)(a >> 32) ^ c3 ^ k1;
            c1 = (uint32_t)b;
            c3 = (uint32_t)a;
            k0 += 0x9E3779B9u;
            k1 += 0xBB67AE85u;
        }
        int32_t bits = (int32_t)c0;
        float u = (float)(bits < 0 ? ~bits : bits) * 4.6566127342e-10f;
        out[i] = u > p ? x[i] / kept : 0.0f;
    }
}

static void
drop_run(void *user)
{
    Drop *d = user;
    team_run(&d->bench->team, d->n, drop_slice, d);
}

static void
bench_dropout(Bench *b)
{
    for (int s = 0; s < 3; s++) {
        int64_t n = lengths[s];
        char name[64];
        const char *bind[] = {"BLOCK=4096"};
        Launch l = launch_make(b, "dropout", "dropout_fwd",
                               sdc_grid((n + 4095) / 4096, 1, 1), bind, 1);
        float *x = array(n, SDC_FP32), *out = array(n, SDC_FP32);
        float *check = array(n, SDC_FP32);
        launch_arg(&l, sdc_ptr(SDC_FP32, x));
        launch_arg(&l, sdc_ptr(SDC_FP32, out));
        launch_arg(&l, sdc_int(n));
        launch_arg(&l, sdc_float(0.5));
        launch_arg(&l, sdc_int(123));
        Drop drop = {b, x, check, n, 0.5f, 123};
        snprintf(name, sizeof(name), "dropout fp32 %lld", (long long)n);
        measure(b, &(Pair){name, "C -O3 native", "Melem/s", (double)n, (double)n, 1e6,
                           1.0, launch_run, drop_run, &l, &drop});
        if (memcmp(out, check, (size_t)n * sizeof(float)))
            die("dropout", "the two sides computed different results");
        free(x);
        free(out);
        free(check);
    }
}

/* ---------------------------------------------------------------- products */

typedef struct Gemm {
    const Bench *bench;
    const float *a, *b;
    float *c;
    int n;
} Gemm;

static void
gemm_run(void *user)
{
    const Gemm *g = user;
    enum { ROW_MAJOR = 101, NO_TRANS = 111 };
    g->bench->sgemm(ROW_MAJOR, NO_TRANS, NO_TRANS, g->n, g->n, g->n, 1.0f, g->a, g->n,
                    g->b, g->n, 0.0f, g->c, g->n);
}

/* OpenBLAS with our number of threads; false when it is not installed. */
static bool
blas_open(Bench *b)
{
    void *lib = dlopen("libopenblas.so.0", RTLD_NOW);
    void (*set_threads)(int);
    if (!lib)
        lib = dlopen("libopenblas.so", RTLD_NOW);
    if (!lib)
        return false;
    *(void **)&b->sgemm = dlsym(lib, "cblas_sgemm");
    *(void **)&set_threads = dlsym(lib, "openblas_set_num_threads");
    if (!b->sgemm || !set_threads)
        return false;
    set_threads(b->threads);
    return true;
}

static void
bench_matmul(Bench *b)
{
    static const int sizes[] = {512, 1024, 1000};
    for (int s = 0; s < 3; s++) {
        int64_t n = sizes[s];
        char name[64];
        const char *bind[] = {"BLOCK_M=64", "BLOCK_N=64", "BLOCK_K=64"};
        int64_t tiles = (n + 63) / 64;
        Launch l =
            launch_make(b, "matmul", "matmul", sdc_grid(tiles * tiles, 1, 1), bind, 3);
        float *x = array(n * n, SDC_FP32), *y = array(n * n, SDC_FP32);
        float *ours = array(n * n, SDC_FP32), *theirs = array(n * n, SDC_FP32);
        launch_arg(&l, sdc_ptr(SDC_FP32, x));
        launch_arg(&l, sdc_ptr(SDC_FP32, y));
        launch_arg(&l, sdc_ptr(SDC_FP32, ours));
        launch_arg(&l, sdc_none());
        for (int i = 0; i < 3; i++)
            launch_arg(&l, sdc_int(n));
        for (int i = 0; i < 3; i++) {
            launch_arg(&l, sdc_int(n));
            launch_arg(&l, sdc_int(1));
        }
        Gemm gemm = {b, x, y, theirs, (int)n};
        double flops = 2.0 * (double)(n * n * n);
        snprintf(name, sizeof(name), "matmul fp32 %lld", (long long)n);
        measure(b, &(Pair){name, "OpenBLAS sgemm", "GFLOP/s", flops, flops, 1e9, 0.25,
                           launch_run, gemm_run, &l, &gemm});
        for (int64_t i = 0; i < n * n; i++)
            if (!(ours[i] - theirs[i] < 1e-3f && theirs[i] - ours[i] < 1e-3f))
                die("matmul", "the two sides computed different results");
        free(x);
        free(y);
        free(ours);
        free(theirs);
    }
}

static void
bench_attention(Bench *b)
{
    static const int64_t sizes[] = {512, 1024, 1000};
    enum { HEADS = 4, DIM = 64, BLAS = 1024 };
    Gemm gemm = {b, array(BLAS * BLAS, SDC_FP32), array(BLAS * BLAS, SDC_FP32),
                 array(BLAS * BLAS, SDC_FP32), BLAS};
    for (int s = 0; s < 3; s++) {
        int64_t n = sizes[s];
        char name[64];
        const char *bind[] = {"HEAD_DIM=64", "BLOCK_M=64", "BLOCK_N=64"};
        Launch l = launch_make(b, "flash_attention", "flash_attention_fwd",
                               sdc_grid((n + 63) / 64, HEADS, 1), bind, 3);
        void *data[5];
        for (int i = 0; i < 4; i++) {
            data[i] = array(n * HEADS * DIM, SDC_FP16);
            launch_arg(&l, sdc_ptr(SDC_FP16, data[i]));
        }
        data[4] = array(n * HEADS, SDC_FP32);
        launch_arg(&l, sdc_ptr(SDC_FP32, data[4]));
        launch_arg(&l, sdc_float(0.125));
        for (int i = 0; i < 4; i++) {
            launch_arg(&l, sdc_int(n * HEADS * DIM));
            launch_arg(&l, sdc_int(n * DIM));
            launch_arg(&l, sdc_int(DIM));
            launch_arg(&l, sdc_int(1));
        }
        launch_arg(&l, sdc_int(HEADS));
        launch_arg(&l, sdc_int(n));
        launch_arg(&l, sdc_int(n));
        snprintf(name, sizeof(name), "attention fp16 %dx%lldx%d", HEADS, (long long)n,
                 DIM);
        measure(b, &(Pair){name, "OpenBLAS sgemm 1024", "GFLOP/s",
                           4.0 * HEADS * DIM * (double)(n * n), 2.0 * BLAS * BLAS * BLAS,
                           1e9, 0.1, launch_run, gemm_run, &l, &gemm});
        for (int i = 0; i < 5; i++)
            free(data[i]);
    }
    free((void *)(uintptr_t)gemm.a);
    free((void *)(uintptr_t)gemm.b);
    free(gemm.c);
}

int
main(int argc, char **argv)
{
    static Bench b = {.rounds = 20};
    b.threads = (int)sysconf(_SC_NPROCESSORS_ONLN);
    int i = 1;
    for (; i + 1 < argc && !strncmp(argv[i], "--", 2); i += 2) {
        int n = atoi(argv[i + 1]);
        if (!strcmp(argv[i], "--threads") && n > 0 && n <= MAX_THREADS)
            b.threads = n;
        else if (!strcmp(argv[i], "--rounds") && n > 0 && n <= MAX_ROUNDS)
            b.rounds = n;
        else
            die(argv[i], "unknown option or value");
    }
    b.names = argv + i;
    b.nnames = argc - i;
    SdcContextOptions options = {.threads = b.threads};
    if (sdc_context_create(&options, &b.ctx) != SDC_OK)
        die("context", "cannot be created");
    team_start(&b);
    printf("%d threads, %d rounds, medians\n", b.threads, b.rounds);
    if (chosen(&b, "vector_add"))
        bench_elementwise(&b, "vector_add", 2);
    if (chosen(&b, "add_mul_add"))
        bench_elementwise(&b, "add_mul_add", 4);
    if (chosen(&b, "softmax"))
        bench_softmax(&b);
    if (chosen(&b, "dropout"))
        bench_dropout(&b);
    if (!blas_open(&b))
        printf("matmul, attention: SKIPPED, OpenBLAS is not installed\n");
    else {
        if (chosen(&b, "matmul"))
            bench_matmul(&b);
        if (chosen(&b, "attention"))
            bench_attention(&b);
    }
    team_stop(&b.team);
    sdc_context_destroy(b.ctx);
    return 0;
}
