/* Launches that begin before the one in front has ended (launch_pdl), on a real GPU.

     right   thousands of kernels, each reading what others wrote in the launch before:
             elements move by another distance each time and grow by 1. Grids differ, some
             programs return at once, some kernels do nothing at all, some take long; on a
             stream that is kept full, and in a graph
     time    what a small kernel takes in a graph of 40, with and without

   WRONG when an element is. */
#include "runtime/rt/cuda.h"
#include "runtime/sdc.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { N = 100003, BLOCK = 256, STEPS = 3000, CAPTURED = 300, SMALL = 40, ROUNDS = 51 };

static const char source[] = "import triton\n"
                             "import triton.language as tl\n"
                             "@triton.jit\n"
                             "def move(x, y, n, first, by, BLOCK: tl.constexpr):\n"
                             "    p = tl.program_id(0)\n"
                             "    if p < first:\n"
                             "        return\n"
                             "    i = (p - first) * BLOCK + tl.arange(0, BLOCK)\n"
                             "    v = tl.load(x + (i + by) % n, mask=i < n)\n"
                             "    tl.store(y + i, v + 1, mask=i < n)\n"
                             "@triton.jit\n"
                             "def slow(x, y, n, rounds, none, BLOCK: tl.constexpr):\n"
                             "    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)\n"
                             "    v = tl.load(x + i, mask=i < n)\n"
                             "    for r in range(rounds):\n"
                             "        v = (v * 3) ^ r\n"
                             "    w = tl.load(x + i, mask=i < n)\n"
                             "    tl.store(y + i, w + 1 + (v & none), mask=i < n)\n"
                             "@triton.jit\n"
                             "def idle(x, y, n, first, by, BLOCK: tl.constexpr):\n"
                             "    if n < 0:\n"
                             "        tl.store(x, 0)\n";

enum { MOVE, SLOW, IDLE, KERNELS };

typedef struct Env {
    SdcContext *cx;
    SdcrtCuda *cuda;
    SdcFunction *f[KERNELS][2]; /* without and with */
    uint64_t x[2];
    void *stream, *from, *to;
    uint32_t random;
    int64_t moved;
    int added, now; /* of the buffers */
} Env;

static _Noreturn void
give_up(const Env *e, const char *what)
{
    fprintf(stderr, "%s: %s", what, e->cx ? sdc_error(e->cx) : "");
    exit(1);
}

static void
need(const Env *e, int failed, const char *what)
{
    if (failed)
        give_up(e, what);
}

static int
draw(Env *e, int below)
{
    e->random = e->random * 1664525u + 1013904223u;
    return (int)((e->random >> 8) % (unsigned)below);
}

static void
launch(const Env *e, int kernel, int with, int programs, int n, int a, int b)
{
    const SdcArg args[] = {sdc_ptr(SDC_I32, (void *)(uintptr_t)e->x[e->now]),
                           sdc_ptr(SDC_I32, (void *)(uintptr_t)e->x[1 - e->now]),
                           sdc_int(n), sdc_int(a), sdc_int(b)};
    need(e, sdc_launch(e->f[kernel][with], sdc_grid(programs, 1, 1), args, 5, e->stream),
         "a launch");
}

static void
step(Env *e, int with)
{
    static const int skipped[] = {0, 0, 1, 7, 2000};
    const int all = (N + BLOCK - 1) / BLOCK, kind = draw(e, 4);
    int first = skipped[draw(e, 5)], by = 2 + draw(e, N - 2);
    if (kind == 0)
        launch(e, IDLE, with, draw(e, 2) ? 1 : 3000, N, 2, 2);
    if (kind == 1) {
        launch(e, SLOW, with, all, N, draw(e, 2) ? 2 : 3000, 0);
    } else {
        launch(e, MOVE, with, first + all, N, first, by);
        e->moved = (e->moved + by) % N;
    }
    e->added++;
    e->now = 1 - e->now;
}

static void
begin(Env *e)
{
    int32_t *v = malloc(N * sizeof *v);
    for (int i = 0; i < N; i++)
        v[i] = i;
    need(e, sdcrt_cuda_write(e->cuda, e->x[0], v, N * sizeof *v, NULL), "a copy");
    free(v);
    /* or it may still be on its way: the stream does not wait for it */
    need(e, sdcrt_cuda_wait(e->cuda, NULL), "a copy");
    e->moved = e->added = e->now = 0;
}

static int
wrong(const Env *e)
{
    int32_t *v = malloc(N * sizeof *v);
    int bad = 0;
    need(e, sdcrt_cuda_stream_wait(e->cuda, e->stream, NULL), "the kernels");
    need(e, sdcrt_cuda_read(e->cuda, v, e->x[e->now], N * sizeof *v, NULL), "a copy");
    for (int i = 0; i < N; i++)
        bad += v[i] != (int32_t)((i + e->moved) % N) + e->added;
    free(v);
    return bad;
}

static int
chain(Env *e, int with)
{
    e->random = 1;
    begin(e);
    for (int i = 0; i < STEPS; i++)
        step(e, with);
    int bad = wrong(e);
    printf("%s %d launches on a stream, %s: %d elements wrong\n", bad ? "WRONG" : "ok   ",
           e->added, with ? "overlapping" : "one by one", bad);
    return bad > 0;
}

static int
captured(Env *e, int with)
{
    void *graph;
    int bad = 0;
    e->random = 2;
    begin(e);
    need(e, sdcrt_cuda_capture(e->cuda, e->stream, NULL), "capture");
    for (int i = 0; i < CAPTURED; i++)
        step(e, with);
    Env done = *e;
    need(e, sdcrt_cuda_captured(e->cuda, e->stream, &graph, NULL), "capture");
    for (int i = 0; i < 20; i++) {
        begin(e);
        need(e, sdcrt_cuda_graph_launch(e->cuda, graph, e->stream, NULL), "a graph");
        bad += wrong(&done);
    }
    printf("%s a graph of %d launches, 20 times, %s: %d elements wrong\n",
           bad ? "WRONG" : "ok   ", done.added, with ? "overlapping" : "one by one", bad);
    sdcrt_cuda_graph_destroy(e->cuda, graph);
    return bad > 0;
}

static int
by_value(const void *a, const void *b)
{
    float x = *(const float *)a, y = *(const float *)b;
    return (x > y) - (x < y);
}

/* Microseconds of one of SMALL kernels over n elements. */
static double
time_of(Env *e, int with, int n)
{
    float ms[ROUNDS];
    void *graph;
    launch(e, MOVE, with, 1, n, 0, 2); /* compiles it, which no capture allows */
    need(e, sdcrt_cuda_capture(e->cuda, e->stream, NULL), "capture");
    for (int i = 0; i < SMALL; i++) {
        launch(e, MOVE, with, (n + BLOCK - 1) / BLOCK, n, 0, 2);
        e->now = 1 - e->now;
    }
    need(e, sdcrt_cuda_captured(e->cuda, e->stream, &graph, NULL), "capture");
    for (int r = 0; r < ROUNDS; r++) {
        need(e,
             sdcrt_cuda_event_record(e->cuda, e->from, e->stream, NULL) ||
                 sdcrt_cuda_graph_launch(e->cuda, graph, e->stream, NULL) ||
                 sdcrt_cuda_event_record(e->cuda, e->to, e->stream, NULL) ||
                 sdcrt_cuda_event_ms(e->cuda, e->from, e->to, &ms[r], NULL),
             "a graph");
    }
    sdcrt_cuda_graph_destroy(e->cuda, graph);
    qsort(ms, ROUNDS, sizeof *ms, by_value);
    return 1e3 * (double)ms[ROUNDS / 2] / SMALL;
}

static void
open_all(Env *e)
{
    static const char *const name[KERNELS] = {"move", "slow", "idle"};
    static const char *const bind[] = {"BLOCK=256", "num_warps=4", "launch_pdl=True"};
    SdcContextOptions o = {.target = "cuda"};
    SdcDevice device;
    SdcModule *m;
    if (sdc_context_create(&o, &e->cx) || sdc_context_device(e->cx, &device) ||
        sdc_module_load_text(e->cx, "overlap.tk", source, sizeof source - 1,
                             SDC_LANG_AUTO, &m))
        give_up(e, "no GPU");
    e->cuda = device.cuda;
    for (int k = 0; k < 2 * KERNELS; k++)
        need(e, sdc_function_get(m, name[k / 2], bind, 2 + k % 2, &e->f[k / 2][k % 2]),
             name[k / 2]);
    for (int i = 0; i < 2; i++)
        need(e, sdcrt_cuda_alloc(e->cuda, N * sizeof(int32_t), &e->x[i], NULL), "memory");
    need(e,
         sdcrt_cuda_stream_create(e->cuda, &e->stream, NULL) ||
             sdcrt_cuda_event_create(e->cuda, &e->from, NULL) ||
             sdcrt_cuda_event_create(e->cuda, &e->to, NULL),
         "a stream");
}

int
main(void)
{
    static const int sizes[] = {4096, 32768, N};
    Env e = {0};
    int devices, driver, bad = 0;
    SdcrtError why;
    if (sdcrt_cuda_count(&devices, &driver, &why) != SDCRT_OK || !devices) {
        printf("SKIPPED: %s\n", why.text);
        return 0;
    }
    open_all(&e);
    for (int with = 0; with < 2; with++) {
        bad |= chain(&e, with); /* and all is compiled, as capturing needs it */
        bad |= captured(&e, with);
    }
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        double without = time_of(&e, 0, sizes[i]), with = time_of(&e, 1, sizes[i]);
        printf("ok    %d elements, a graph of %d: %.2f us a kernel one by one, %.2f "
               "overlapping\n",
               sizes[i], SMALL, without, with);
    }
    sdcrt_cuda_event_destroy(e.cuda, e.from);
    sdcrt_cuda_event_destroy(e.cuda, e.to);
    sdcrt_cuda_stream_destroy(e.cuda, e.stream);
    sdc_context_destroy(e.cx);
    return bad;
}
