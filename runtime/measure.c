/* Times of launches: warmed up, each with cold caches, their median with its confidence;
   and on a GPU the time of one of many launches in a graph, where what a launch costs and
   the device's clock do not drown a short kernel. */
#include "runtime/internal.h"
#include "ir/base/util.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    MAX_RUNS = 1001,
    LEAST_RUNS = 5,
    GRAPH_LAUNCHES = 20,
    GRAPH_RUNS = 15,
    FLUSH_CPU = 64 << 20,  /* bytes: more than a last-level cache's share */
    FLUSH_PART = 16 << 20, /* more than the caches of a processor's own */
    FLUSH_GPU = 128 << 20
};

/* A last level of this size, of a socket of many processors, is not to be emptied. */
static const long large_cache = 128l << 20;

static int
by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* The median and the order statistics that hold the true one 19 times in 20. */
void
measure_summary(double *t, int n, SdcTimes *out)
{
    qsort(t, (size_t)n, sizeof *t, by_value);
    double half = 0.98 * sqrt((double)n);
    int low = (int)floor((double)n / 2 - half), high = (int)ceil((double)n / 2 + half);
    out->n = n;
    out->median = n % 2 ? t[n / 2] : 0.5 * (t[n / 2 - 1] + t[n / 2]);
    out->low = t[low < 0 ? 0 : low];
    out->high = t[high > n - 1 ? n - 1 : high];
    out->min = t[0];
}

typedef struct Runs {
    SdcContext *cx;
    SdcLaunchFn *launch;
    void *user;
    const SdcMeasureOptions *o;
    SdcrtCuda *cuda;
    void *from, *to; /* events */
    uint64_t flush;  /* device memory */
    size_t flush_bytes;
    char *cache; /* the same on the host */
    SdcrtError e;
} Runs;

static SdcStatus
device_failed(Runs *r)
{
    return context_fail(r->cx, SDC_ERROR_ENVIRONMENT, "%s", r->e.text);
}

/* Reads and writes so much that nothing else stays in the caches. */
static void
flush_host(Runs *r)
{
    volatile char *p = r->cache;
    for (size_t i = 0; p && i < r->flush_bytes; i += 64)
        p[i]++;
}

static SdcStatus
run_cpu(Runs *r, double *t)
{
    if (!r->o->warm)
        flush_host(r);
    double start = seconds_now();
    SdcStatus status = r->launch(r->user, NULL);
    *t = seconds_now() - start;
    return status;
}

/* The device is busy with the fill while the launch is on its way: only the kernel lies
   between the events. */
static SdcStatus
run_gpu(Runs *r, double *t)
{
    float ms = 0;
    if (!r->o->warm && r->flush &&
        sdcrt_cuda_fill(r->cuda, r->flush, 0, r->flush_bytes, &r->e) != SDCRT_OK)
        return device_failed(r);
    if (sdcrt_cuda_event_record(r->cuda, r->from, NULL, &r->e) != SDCRT_OK)
        return device_failed(r);
    SdcStatus status = r->launch(r->user, NULL);
    if (status != SDC_OK)
        return status;
    if (sdcrt_cuda_event_record(r->cuda, r->to, NULL, &r->e) != SDCRT_OK ||
        sdcrt_cuda_event_ms(r->cuda, r->from, r->to, &ms, &r->e) != SDCRT_OK)
        return device_failed(r);
    *t = 1e-3 * (double)ms;
    return SDC_OK;
}

static SdcStatus
run_all(Runs *r, double *t, SdcTimes *out)
{
    double budget = r->o->seconds > 0 ? r->o->seconds : 0.2, first;
    int n = 0;
    SdcStatus status = SDC_OK;
    for (int i = 0; i < 2 && status == SDC_OK; i++) /* warm up: code, pages, clock */
        status = r->cuda ? run_gpu(r, &first) : run_cpu(r, &first);
    double start = seconds_now();
    while (status == SDC_OK && n < MAX_RUNS &&
           (n < LEAST_RUNS || seconds_now() - start < budget)) {
        status = r->cuda ? run_gpu(r, &t[n]) : run_cpu(r, &t[n]);
        n += status == SDC_OK;
    }
    if (status == SDC_OK)
        measure_summary(t, n, out);
    return status;
}

/* Seconds of one of many launches in a graph; 0 when they cannot be captured. */
static double
run_graph(Runs *r)
{
    void *stream = NULL, *graph = NULL;
    double t[GRAPH_RUNS];
    float ms;
    bool ok = sdcrt_cuda_stream_create(r->cuda, &stream, &r->e) == SDCRT_OK &&
              sdcrt_cuda_capture(r->cuda, stream, &r->e) == SDCRT_OK;
    if (!ok && !stream)
        return 0;
    for (int i = 0; ok && i < GRAPH_LAUNCHES; i++)
        ok = r->launch(r->user, stream) == SDC_OK;
    ok = sdcrt_cuda_captured(r->cuda, stream, &graph, &r->e) == SDCRT_OK && ok;
    int n = 0;
    for (int i = 0; ok && i < GRAPH_RUNS + 2; i++) {
        ok = sdcrt_cuda_event_record(r->cuda, r->from, stream, &r->e) == SDCRT_OK &&
             sdcrt_cuda_graph_launch(r->cuda, graph, stream, &r->e) == SDCRT_OK &&
             sdcrt_cuda_event_record(r->cuda, r->to, stream, &r->e) == SDCRT_OK &&
             sdcrt_cuda_event_ms(r->cuda, r->from, r->to, &ms, &r->e) == SDCRT_OK;
        if (ok && i >= 2)
            t[n++] = 1e-3 * (double)ms / GRAPH_LAUNCHES;
    }
    if (graph)
        sdcrt_cuda_graph_destroy(r->cuda, graph);
    sdcrt_cuda_stream_destroy(r->cuda, stream);
    if (!ok || !n)
        return 0;
    qsort(t, (size_t)n, sizeof *t, by_value);
    return t[n / 2];
}

static SdcStatus
prepare(Runs *r)
{
    if (!r->cx->on_gpu) {
        r->flush_bytes =
            sysconf(_SC_LEVEL3_CACHE_SIZE) > large_cache ? FLUSH_PART : FLUSH_CPU;
        r->cache = r->o->warm ? NULL : calloc(1, r->flush_bytes);
        return SDC_OK; /* without memory caches stay warm */
    }
    SdcStatus status = context_cuda(r->cx, &r->cuda);
    if (status != SDC_OK)
        return status;
    r->flush_bytes = (size_t)min_i64(FLUSH_GPU, sdcrt_cuda_info(r->cuda)->memory / 8);
    if (!r->o->warm)
        sdcrt_cuda_alloc(r->cuda, r->flush_bytes, &r->flush, NULL);
    if (sdcrt_cuda_event_create(r->cuda, &r->from, &r->e) != SDCRT_OK ||
        sdcrt_cuda_event_create(r->cuda, &r->to, &r->e) != SDCRT_OK)
        return device_failed(r);
    return SDC_OK;
}

struct Measure {
    Runs r;
    SdcMeasureOptions o;
    double t[MAX_RUNS];
};

SdcStatus
measure_open(SdcContext *cx, const SdcMeasureOptions *options, Measure **out)
{
    Measure *m = calloc(1, sizeof *m);
    *out = m;
    if (!m)
        return context_fail(cx, SDC_ERROR_MEMORY, "out of memory");
    if (options)
        m->o = *options;
    m->r = (Runs){.cx = cx, .o = &m->o};
    return prepare(&m->r);
}

SdcStatus
measure_run(Measure *m, SdcLaunchFn *launch, void *user, double seconds, SdcTimes *out)
{
    m->r.launch = launch;
    m->r.user = user;
    m->o.seconds = seconds;
    *out = (SdcTimes){0};
    SdcStatus status = run_all(&m->r, m->t, out);
    if (status == SDC_OK && m->r.cuda && m->o.graph)
        out->graph = run_graph(&m->r);
    return status;
}

SdcStatus
measure_once(Measure *m, SdcLaunchFn *launch, void *user, double *seconds)
{
    m->r.launch = launch;
    m->r.user = user;
    return m->r.cuda ? run_gpu(&m->r, seconds) : run_cpu(&m->r, seconds);
}

double
measure_graph(Measure *m, SdcLaunchFn *launch, void *user)
{
    m->r.launch = launch;
    m->r.user = user;
    return m->r.cuda ? run_graph(&m->r) : 0;
}

void
measure_close(Measure *m)
{
    if (!m)
        return;
    if (m->r.cuda) {
        sdcrt_cuda_event_destroy(m->r.cuda, m->r.from);
        sdcrt_cuda_event_destroy(m->r.cuda, m->r.to);
        if (m->r.flush)
            sdcrt_cuda_free(m->r.cuda, m->r.flush, NULL);
    }
    free(m->r.cache);
    free(m);
}

SdcStatus
sdc_measure(SdcContext *cx, SdcLaunchFn *launch, void *user,
            const SdcMeasureOptions *options, SdcTimes *out)
{
    Measure *m;
    if (!cx)
        return SDC_ERROR_ARGUMENT;
    if (!launch || !out)
        return context_fail(cx, SDC_ERROR_ARGUMENT, "measure: %s",
                            launch ? "no place to put the times" : "nothing to launch");
    *out = (SdcTimes){0};
    SdcMeasureOptions known;
    if (!OPTIONS_READ(options, known))
        return options_wrong(cx, "measure", options->size, sizeof known);
    SdcStatus status = measure_open(cx, options, &m);
    if (status == SDC_OK)
        status = measure_run(m, launch, user, options ? options->seconds : 0, out);
    measure_close(m);
    return status;
}
