/* CPU launches: a grid is cut into chunks that threads take from an atomic counter.

   A launch is a Job on the launching thread's stack, linked into the pool's list while it
   has chunks left. Workers sleep on a condition variable; a launch wakes as many as it
   has chunks for and works itself at once, so a small grid is done before anybody has
   woken and costs two lock operations. A launcher leaves only when the workers that
   joined its job have left it. A grid of one chunk never touches the pool.

   To sleep and be woken takes longer than a small grid. So a worker that has worked looks
   for the next job for a moment before it sleeps, as long as looking has paid: each time
   that nothing came halves the moment, and a job that comes soon after it slept makes it
   whole again. Where there are more threads than processors nobody looks: it would keep
   another from working. Who looks does not yield the processor: another process would
   have it for milliseconds, and a thread that was not asleep is not let in front.

   A kernel's atomics cost a locked instruction for each lane, many times what they do.
   The launch of a kernel that waits for nobody may do without: it runs on one thread, and
   as long as it does no other launch with atomics begins in this process (alone.c).

   In the child of a fork there are no workers and the lock may be in any state: the child
   is recognised by its process id and runs everything on the calling thread. */
#include "runtime/rt/cpu.h"
#include "runtime/rt/alone.h"
#include "runtime/rt/process.h"

#include <pthread.h>
#include <sched.h>
#include <stdalign.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

enum {
    MAX_THREADS = 1024,
    CHUNKS_PER_THREAD = 16, /* enough to even out programs of unequal length */
    STACK_SCRATCH = 16 << 10,
    LINGER_NS = 50000, /* about what it takes to wake a thread, some times */
    PAGE = 4096,
    SCRATCH_ALIGN = 64,
    HEADER = 64 /* in front of scratch memory: its size */
};

static const int64_t MAX_SCRATCH = (int64_t)1 << 36;

typedef struct Job Job;
struct Job {
    SdcrtCpuEntry *entry;
    const uint64_t *args;
    const SdcGrid *grid;
    int64_t total, chunk;
    int64_t scratch;
    atomic_int_fast64_t next; /* first program that nobody has taken */
    int wanted;               /* workers that may still join; under the lock */
    atomic_uint inside;       /* workers that are in it; changed under the lock */
    bool listed;
    Job *prev, *link;
    pthread_cond_t done;
};

typedef struct Worker {
    pthread_t thread;
    SdcrtPool *pool;
    void *scratch;
    int64_t scratch_size;
    int64_t patience; /* ns that it looks for a job before it sleeps */
} Worker;

struct SdcrtPool {
    pthread_mutex_t lock;
    pthread_cond_t work;
    Job *jobs;
    int threads; /* the launching one included */
    int started; /* workers */
    int looking; /* workers that have not slept since they worked; under the lock */
    atomic_uint posted; /* jobs so far */
    bool crowded; /* more threads than processors */
    bool broken; /* a thread could not be started: do not try again */
    bool stop;
    atomic_int shy; /* launches that are not alone, see alone.h */
    RtProcess process; /* that made it */
    Worker *workers; /* threads - 1 of them */
    /* A block for the next launch, which takes it; NULL while one has it. The kernel
       clears fresh pages, which takes longer than a small product. */
    _Atomic(void *) spare;
};

int64_t
sdcrt_grid_size(SdcGrid grid)
{
    const int32_t size[] = {grid.x, grid.y, grid.z};
    int64_t n = 1;
    for (int i = 0; i < 3; i++) {
        if (size[i] < 0)
            return -1;
        if (size[i] && n > (INT64_MAX >> 1) / size[i])
            return -1;
        n *= size[i];
    }
    return n;
}

/* Cores that this process may run on, as taskset and containers set them. */
static int
count_cores(void)
{
    cpu_set_t set;
    if (sched_getaffinity(0, sizeof set, &set) == 0) {
        int n = CPU_COUNT(&set);
        if (n > 0)
            return n;
    }
    long n = sysconf(_SC_NPROCESSORS_ONLN);
    return n > 0 ? (int)n : 1;
}

static int
threads_wanted(int threads)
{
    const char *text = threads > 0 ? NULL : getenv("SDC_NUM_THREADS");
    if (text && *text) {
        char *end;
        long n = strtol(text, &end, 10);
        if (*end == '\0' && n > 0)
            threads = n > MAX_THREADS ? MAX_THREADS : (int)n;
    }
    if (threads <= 0)
        threads = count_cores();
    return threads > MAX_THREADS ? MAX_THREADS : threads;
}

SdcrtPool *
sdcrt_pool_create(int threads)
{
    SdcrtPool *p = calloc(1, sizeof *p);
    if (!p)
        return NULL;
    p->threads = threads_wanted(threads);
    p->crowded = p->threads > count_cores();
    p->workers = calloc((size_t)p->threads, sizeof *p->workers);
    if (!p->workers || pthread_mutex_init(&p->lock, NULL) != 0) {
        free(p->workers);
        free(p);
        return NULL;
    }
    if (pthread_cond_init(&p->work, NULL) != 0) {
        pthread_mutex_destroy(&p->lock);
        free(p->workers);
        free(p);
        return NULL;
    }
    rt_process_mark(&p->process);
    rt_ask_tiles();
    return p;
}

void
sdcrt_pool_destroy(SdcrtPool *p)
{
    if (!p)
        return;
    /* In a child the workers are gone, perhaps while they changed their scratch. */
    if (!rt_process_is_child(&p->process)) {
        pthread_mutex_lock(&p->lock);
        p->stop = true;
        pthread_cond_broadcast(&p->work);
        pthread_mutex_unlock(&p->lock);
        for (int i = 0; i < p->started; i++) {
            pthread_join(p->workers[i].thread, NULL);
            free(p->workers[i].scratch);
        }
        pthread_cond_destroy(&p->work);
        pthread_mutex_destroy(&p->lock);
    }
    rt_process_done(&p->process);
    free(atomic_exchange(&p->spare, NULL));
    free(p->workers);
    free(p);
}

int
sdcrt_pool_threads(const SdcrtPool *p)
{
    return p ? p->threads : 0;
}

static void *
scratch_new(int64_t size)
{
    if (size > MAX_SCRATCH)
        return NULL;
    size_t n = ((size_t)size + SCRATCH_ALIGN - 1) & ~(size_t)(SCRATCH_ALIGN - 1);
    int64_t *block = aligned_alloc(SCRATCH_ALIGN, n + PAGE + HEADER);
    if (block)
        *block = size;
    return block;
}

/* Scratch memory begins in the middle of a page, in blocks that are a page longer than
   asked for. Arrays begin on pages, or close behind them; a load whose address ends in
   the twelve bits of a store just before waits for it, which cost a softmax up to 15%. */
static void *
scratch_place(void *block)
{
    uintptr_t past = ((uintptr_t)block + HEADER) % PAGE;
    return (unsigned char *)block + HEADER + (PAGE + PAGE / 2 - past) % PAGE;
}

/* For the launching thread; NULL: no memory. */
static void *
scratch_take(SdcrtPool *p, int64_t size)
{
    int64_t *block = p ? atomic_exchange(&p->spare, NULL) : NULL;
    if (block && *block >= size)
        return block;
    free(block);
    return scratch_new(size);
}

static void
scratch_give(SdcrtPool *p, void *block)
{
    free(p && block ? atomic_exchange(&p->spare, block) : block);
}

/* Takes chunks until there are none. */
static void
job_work(Job *j, void *scratch)
{
    for (;;) {
        int64_t first =
            atomic_fetch_add_explicit(&j->next, j->chunk, memory_order_relaxed);
        if (first >= j->total)
            return;
        int64_t last = j->total - first < j->chunk ? j->total : first + j->chunk;
        j->entry(j->args, j->grid, first, last, scratch);
    }
}

static void
job_unlist(SdcrtPool *p, Job *j)
{
    if (!j->listed)
        return;
    *(j->prev ? &j->prev->link : &p->jobs) = j->link;
    if (j->link)
        j->link->prev = j->prev;
    j->listed = false;
}

/* Scratch is kept from job to job and only grows. */
static bool
worker_scratch(Worker *w, int64_t size)
{
    if (w->scratch && size <= w->scratch_size)
        return true;
    free(w->scratch);
    w->scratch = scratch_new(size);
    w->scratch_size = w->scratch ? size : 0;
    return w->scratch != NULL;
}

static int64_t
rt_now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static void
rt_pause(void)
{
#ifdef __x86_64__
    __builtin_ia32_pause();
#endif
}

/* Looks until *value is (`differs`: is not) `than`, for some `ns` at most; is it? */
static bool
linger(const atomic_uint *value, unsigned than, bool differs, int64_t ns)
{
    enum { LOOKS = 64 };
    int64_t last = rt_now() + ns;
    do {
        for (int i = 0; i < LOOKS; i++) {
            if ((atomic_load_explicit(value, memory_order_relaxed) != than) == differs)
                return true;
            rt_pause();
        }
    } while (rt_now() < last);
    return false;
}

/* Until there may be a job. Called under the lock. */
static void
worker_wait(Worker *w, bool worked)
{
    SdcrtPool *p = w->pool;
    if (worked && w->patience > 0 && !p->crowded) {
        unsigned posted = atomic_load_explicit(&p->posted, memory_order_relaxed);
        p->looking++;
        pthread_mutex_unlock(&p->lock);
        bool came = linger(&p->posted, posted, true, w->patience);
        pthread_mutex_lock(&p->lock);
        p->looking--;
        w->patience = came ? LINGER_NS : w->patience / 2;
        return;
    }
    int64_t from = rt_now();
    pthread_cond_wait(&p->work, &p->lock);
    if (rt_now() - from < 2 * LINGER_NS)
        w->patience = LINGER_NS;
}

static void *
worker_main(void *arg)
{
    Worker *w = arg;
    SdcrtPool *p = w->pool;
    w->patience = LINGER_NS;
    pthread_mutex_lock(&p->lock);
    for (bool worked = false; !p->stop;) {
        Job *j = p->jobs;
        if (!j) {
            worker_wait(w, worked);
            worked = false;
            continue;
        }
        worked = true;
        j->inside++;
        if (--j->wanted == 0)
            job_unlist(p, j);
        pthread_mutex_unlock(&p->lock);
        /* Without memory this worker leaves its share to the others. */
        if (worker_scratch(w, j->scratch))
            job_work(j, scratch_place(w->scratch));
        pthread_mutex_lock(&p->lock);
        if (--j->inside == 0)
            pthread_cond_signal(&j->done);
    }
    pthread_mutex_unlock(&p->lock);
    return NULL;
}

/* Called under the lock. */
static void
start_workers(SdcrtPool *p, int n)
{
    while (p->started < n && !p->broken) {
        Worker *w = &p->workers[p->started];
        w->pool = p;
        if (pthread_create(&w->thread, NULL, worker_main, w) != 0)
            p->broken = true;
        else
            p->started++;
    }
}

static void
job_run_shared(SdcrtPool *p, Job *j, int helpers, void *scratch)
{
    pthread_mutex_lock(&p->lock);
    start_workers(p, helpers);
    j->wanted = helpers < p->started ? helpers : p->started;
    if (j->wanted > 0) {
        j->link = p->jobs;
        if (p->jobs)
            p->jobs->prev = j;
        p->jobs = j;
        j->listed = true;
    }
    for (int i = p->looking; i < j->wanted; i++)
        pthread_cond_signal(&p->work);
    pthread_mutex_unlock(&p->lock);
    /* Those who look would only wait for the lock before. */
    atomic_fetch_add_explicit(&p->posted, 1, memory_order_relaxed);
    job_work(j, scratch);
    pthread_mutex_lock(&p->lock);
    job_unlist(p, j);
    if (j->inside > 0 && !p->crowded) {
        pthread_mutex_unlock(&p->lock);
        linger(&j->inside, 0, false, LINGER_NS);
        pthread_mutex_lock(&p->lock);
    }
    while (j->inside > 0)
        pthread_cond_wait(&j->done, &p->lock);
    pthread_mutex_unlock(&p->lock);
}

/* On the calling thread; `p` NULL: of no pool. `alone`: SDCRT_ALONE or 0. */
static SdcrtStatus
run_here(SdcrtPool *p, SdcrtCpuEntry *entry, const uint64_t *args, SdcGrid grid,
         int64_t scratch, int64_t first, int64_t last, int alone)
{
    if (first >= last)
        return SDCRT_OK;
    alignas(SCRATCH_ALIGN) unsigned char near[STACK_SCRATCH + PAGE + HEADER];
    void *far = NULL;
    if (scratch > STACK_SCRATCH) {
        far = scratch_take(p, scratch);
        if (!far)
            return SDCRT_ERROR_MEMORY;
    }
    unsigned char *place = scratch_place(far ? far : near);
    entry(args, &grid, first, last, place + alone);
    scratch_give(p, far);
    return SDCRT_OK;
}

SdcrtStatus
sdcrt_run_range(SdcrtCpuEntry *entry, const uint64_t *args, SdcGrid grid,
                int64_t scratch, int64_t first, int64_t last)
{
    int64_t total = sdcrt_grid_size(grid);
    if (!entry || total < 0 || first < 0 || last > total || scratch < 0)
        return SDCRT_ERROR_ARGUMENT;
    return run_here(NULL, entry, args, grid, scratch, first, last, 0);
}

/* On several threads. */
static SdcrtStatus
run_shared(SdcrtPool *p, SdcrtCpuEntry *entry, const uint64_t *args, SdcGrid grid,
           int64_t scratch, int64_t total, int threads)
{
    int64_t chunk = total / ((int64_t)threads * CHUNKS_PER_THREAD);
    Job j = { .entry = entry,
              .args = args,
              .grid = &grid,
              .total = total,
              .chunk = chunk > 0 ? chunk : 1,
              .scratch = scratch };
    if (pthread_cond_init(&j.done, NULL) != 0)
        return SDCRT_ERROR_MEMORY;
    alignas(SCRATCH_ALIGN) unsigned char near[STACK_SCRATCH + PAGE + HEADER];
    void *far = NULL;
    SdcrtStatus status = SDCRT_OK;
    if (scratch > STACK_SCRATCH && !(far = scratch_take(p, scratch)))
        status = SDCRT_ERROR_MEMORY;
    else
        job_run_shared(p, &j, (int)(total < threads ? total : threads) - 1,
                       scratch_place(far ? far : near));
    scratch_give(p, far);
    pthread_cond_destroy(&j.done);
    return status;
}

SdcrtStatus
rt_cpu_launch(SdcrtPool *p, SdcrtCpuEntry *entry, const uint64_t *args, SdcGrid grid,
              int64_t scratch, int threads, RtAtomics atomics)
{
    int64_t total = sdcrt_grid_size(grid);
    if (!p || !entry || total < 0 || scratch < 0)
        return SDCRT_ERROR_ARGUMENT;
    if (threads <= 0 || threads > p->threads)
        threads = p->threads;
    if (rt_process_is_child(&p->process))
        return run_here(p, entry, args, grid, scratch, 0, total, 0);
    if (total < threads)
        threads = total > 1 ? (int)total : 1;
    bool alone = false;
    if (atomics.any)
        alone = rt_alone_begin(&p->process, &p->shy, threads <= atomics.alone);
    SdcrtStatus status =
        alone || threads == 1
            ? run_here(p, entry, args, grid, scratch, 0, total, alone ? SDCRT_ALONE : 0)
            : run_shared(p, entry, args, grid, scratch, total, threads);
    if (atomics.any)
        rt_alone_end(&p->process, alone);
    return status;
}

SdcrtStatus
sdcrt_cpu_launch(SdcrtPool *p, SdcrtCpuEntry *entry, const uint64_t *args,
                 SdcGrid grid, int64_t scratch, int threads)
{
    RtAtomics any = {.any = true};
    return rt_cpu_launch(p, entry, args, grid, scratch, threads, any);
}
