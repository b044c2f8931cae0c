/* The thread pool: every program of every grid runs exactly once, whoever launches, from
   how many threads at once, with scratch that nobody else touches, and after a fork. */
#include "runtime/rt/cpu.h"

#include <check.h>
#include <limits.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { MAX_PROGRAMS = 100000, LAUNCHERS = 8 };

typedef struct Counts {
    atomic_int *at;
    int64_t scratch;
} Counts;

/* Counts itself, and proves that its scratch is its own and begins amid a page. */
static void
entry(const uint64_t *args, const SdcGrid *grid, int64_t first, int64_t last,
      void *scratch)
{
    Counts *c = (Counts *)(uintptr_t)args[0];
    (void)grid;
    if ((uintptr_t)scratch % 4096 != 2048)
        return;
    for (int64_t i = first; i < last; i++) {
        unsigned char *s = scratch;
        if (c->scratch) {
            memset(s, (int)(i & 0xff), (size_t)c->scratch);
            if (s[0] != (unsigned char)i || s[c->scratch - 1] != (unsigned char)i)
                return;
        }
        atomic_fetch_add_explicit(&c->at[i], 1, memory_order_relaxed);
    }
}

static void
check_launch(SdcrtPool *p, int32_t x, int32_t y, int32_t z, int64_t scratch, int threads)
{
    SdcGrid grid = { x, y, z };
    int64_t n = sdcrt_grid_size(grid);
    Counts c = { calloc((size_t)n + 1, sizeof *c.at), scratch };
    uint64_t args[1] = { (uint64_t)(uintptr_t)&c };
    ck_assert_int_eq(sdcrt_cpu_launch(p, entry, args, grid, scratch, threads), SDCRT_OK);
    for (int64_t i = 0; i < n; i++)
        ck_assert_int_eq(c.at[i], 1);
    free(c.at);
}

START_TEST(every_program_once)
{
    static const int threads[] = { 1, 2, 3, 8 };
    for (int t = 0; t < 4; t++) {
        SdcrtPool *p = sdcrt_pool_create(threads[t]);
        ck_assert_int_eq(sdcrt_pool_threads(p), threads[t]);
        for (int n = 0; n < 70; n++)
            check_launch(p, n, 1, 1, 0, 0);
        check_launch(p, 17, 19, 23, 64, 0);
        check_launch(p, 1, MAX_PROGRAMS, 1, 0, 0);
        check_launch(p, 0, 5, 5, 100, 0);
        check_launch(p, 300, 1, 1, 17 << 10, 0); /* more than fits the stack */
        check_launch(p, 300, 1, 1, 64, 0);
        check_launch(p, 300, 1, 1, 1 << 20, 2);
        sdcrt_pool_destroy(p);
    }
}
END_TEST

typedef struct Launcher {
    SdcrtPool *pool;
    pthread_t thread;
    int seed;
} Launcher;

static void *
launch_many(void *arg)
{
    Launcher *l = arg;
    for (int i = 0; i < 200; i++)
        check_launch(l->pool, 1 + (l->seed * 31 + i * 7) % 97, 1 + i % 3, 1,
                     i % 5 ? 0 : 128 * i, 1 + i % 4);
    return NULL;
}

START_TEST(many_launchers_share_a_pool)
{
    SdcrtPool *p = sdcrt_pool_create(4);
    Launcher l[LAUNCHERS];
    for (int i = 0; i < LAUNCHERS; i++) {
        l[i] = (Launcher){ .pool = p, .seed = i };
        ck_assert_int_eq(pthread_create(&l[i].thread, NULL, launch_many, &l[i]), 0);
    }
    for (int i = 0; i < LAUNCHERS; i++)
        pthread_join(l[i].thread, NULL);
    sdcrt_pool_destroy(p);
}
END_TEST

/* A program that launches: its launch must not wait for threads that wait for it. */
static void
nested(const uint64_t *args, const SdcGrid *grid, int64_t first, int64_t last,
       void *scratch)
{
    (void)grid, (void)scratch;
    for (int64_t i = first; i < last; i++)
        check_launch((SdcrtPool *)(uintptr_t)args[0], 40, 1, 1, 64, 0);
}

START_TEST(launches_nest)
{
    SdcrtPool *p = sdcrt_pool_create(3);
    uint64_t args[1] = { (uint64_t)(uintptr_t)p };
    SdcGrid grid = { 20, 1, 1 };
    ck_assert_int_eq(sdcrt_cpu_launch(p, nested, args, grid, 0, 0), SDCRT_OK);
    sdcrt_pool_destroy(p);
}
END_TEST

/* As code with atomics: a launch that is alone adds with plain loads and stores. */
typedef struct Sum {
    atomic_llong sum;
    atomic_int alone; /* entries that were told so */
} Sum;

static void
add(const uint64_t *args, const SdcGrid *grid, int64_t first, int64_t last, void *scratch)
{
    Sum *s = (Sum *)(uintptr_t)args[0];
    bool alone = (uintptr_t)scratch & SDCRT_ALONE;
    (void)grid;
    atomic_fetch_add(&s->alone, alone);
    for (int64_t i = first; i < last; i++)
        for (int k = 0; k < 2000; k++)
            if (alone)
                atomic_store_explicit(
                    &s->sum, atomic_load_explicit(&s->sum, memory_order_relaxed) + 1,
                    memory_order_relaxed);
            else
                atomic_fetch_add_explicit(&s->sum, 1, memory_order_relaxed);
}

typedef struct Adder {
    SdcrtPool *pool;
    pthread_t thread;
    Sum *sum;
    int alone;
} Adder;

static void *
add_often(void *arg)
{
    Adder *a = arg;
    SdcGrid grid = { 4, 1, 1 };
    uint64_t args[1] = { (uint64_t)(uintptr_t)a->sum };
    RtAtomics atomics = { true, a->alone };
    for (int i = 0; i < 500; i++)
        ck_assert_int_eq(rt_cpu_launch(a->pool, add, args, grid, 0, 1 + i % 2, atomics),
                         SDCRT_OK);
    return NULL;
}

START_TEST(who_is_alone_adds_to_nobodys_sum)
{
    SdcrtPool *p = sdcrt_pool_create(2), *other = sdcrt_pool_create(2);
    Adder a[LAUNCHERS];
    Sum one = { 0 }, many = { 0 }, never = { 0 };
    a[0] = (Adder){ .pool = p, .sum = &one, .alone = 1 };
    add_often(&a[0]);
    ck_assert_int_eq(one.sum, 500 * 4 * 2000);
    ck_assert_int_eq(one.alone, 250); /* those on one thread */
    a[0] = (Adder){ .pool = p, .sum = &never };
    add_often(&a[0]);
    ck_assert_int_eq(never.alone, 0);
    /* One of the launchers is of a kernel that cannot be alone; two contexts have one
       array. */
    for (int i = 0; i < LAUNCHERS; i++) {
        a[i] = (Adder){ .pool = i % 2 ? p : other, .sum = &many, .alone = i ? 2 : 0 };
        ck_assert_int_eq(pthread_create(&a[i].thread, NULL, add_often, &a[i]), 0);
    }
    for (int i = 0; i < LAUNCHERS; i++)
        pthread_join(a[i].thread, NULL);
    ck_assert_int_eq(many.sum, LAUNCHERS * 500 * 4 * 2000);
    sdcrt_pool_destroy(other);
    sdcrt_pool_destroy(p);
}
END_TEST

START_TEST(bad_grids_are_refused)
{
    SdcrtPool *p = sdcrt_pool_create(2);
    static const SdcGrid bad[] = { { -1, 1, 1 },
                                      { 1, -5, 1 },
                                      { INT32_MAX, INT32_MAX, INT32_MAX },
                                      { 1, 1, INT32_MIN } };
    for (int i = 0; i < 4; i++) {
        ck_assert_int_eq(sdcrt_grid_size(bad[i]), -1);
        ck_assert_int_eq(sdcrt_cpu_launch(p, entry, NULL, bad[i], 0, 0),
                         SDCRT_ERROR_ARGUMENT);
    }
    SdcGrid grid = { 4, 1, 1 };
    ck_assert_int_eq(sdcrt_cpu_launch(p, entry, NULL, grid, INT64_MAX / 2 - 64, 0),
                     SDCRT_ERROR_MEMORY);
    ck_assert_int_eq(sdcrt_run_range(entry, NULL, grid, 0, 2, 5), SDCRT_ERROR_ARGUMENT);
    ck_assert_int_eq(sdcrt_run_range(entry, NULL, grid, 0, -1, 5), SDCRT_ERROR_ARGUMENT);
    ck_assert_int_eq(sdcrt_run_range(entry, NULL, grid, 0, 3, 3), SDCRT_OK);
    sdcrt_pool_destroy(p);
}
END_TEST

START_TEST(ranges_cover_the_grid)
{
    atomic_int at[10] = { 0 };
    Counts c = { at, 0 };
    uint64_t args[1] = { (uint64_t)(uintptr_t)&c };
    SdcGrid grid = { 5, 2, 1 };
    for (int64_t i = 0; i < 10; i += 3)
        ck_assert_int_eq(
            sdcrt_run_range(entry, args, grid, 0, i, i + 3 < 10 ? i + 3 : 10), SDCRT_OK);
    for (int i = 0; i < 10; i++)
        ck_assert_int_eq(at[i], 1);
}
END_TEST

START_TEST(children_of_a_fork_run_alone)
{
    SdcrtPool *p = sdcrt_pool_create(4);
    check_launch(p, 100, 1, 1, 0, 0);
    /* Sanitizers hold locks of theirs while a thread starts, and do not mend them. */
    nanosleep(&(struct timespec){ .tv_nsec = 50000000 }, NULL);
    pid_t child = fork();
    if (child == 0) {
        check_launch(p, 100, 1, 1, 40 << 10, 0);
        sdcrt_pool_destroy(p);
        _exit(7);
    }
    int status;
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    ck_assert(WIFEXITED(status) && WEXITSTATUS(status) == 7);
    check_launch(p, 100, 1, 1, 0, 0);
    sdcrt_pool_destroy(p);
}
END_TEST

START_TEST(idle_threads_sleep)
{
    SdcrtPool *p = sdcrt_pool_create(4);
    check_launch(p, 1000, 1, 1, 0, 0);
    struct rusage before, after;
    getrusage(RUSAGE_SELF, &before);
    nanosleep(&(struct timespec){ .tv_nsec = 200000000 }, NULL);
    getrusage(RUSAGE_SELF, &after);
    int64_t used = (after.ru_utime.tv_sec - before.ru_utime.tv_sec) * 1000000 +
                   after.ru_utime.tv_usec - before.ru_utime.tv_usec;
    ck_assert_int_lt(used, 50000); /* three spinning threads would take 600 ms */
    sdcrt_pool_destroy(p);
}
END_TEST

/* Some microseconds. */
static void
busy(const uint64_t *args, const SdcGrid *grid, int64_t first, int64_t last,
     void *scratch)
{
    (void)args, (void)grid, (void)scratch;
    for (volatile int64_t i = 1000 * first; i < 1000 * last; i++)
        ;
}

/* How often threads fell asleep during launches that follow one another. */
static long
sleeps(int threads, int launches)
{
    SdcrtPool *p = sdcrt_pool_create(threads);
    SdcGrid grid = { 32, 1, 1 };
    struct rusage before, after;
    getrusage(RUSAGE_SELF, &before);
    for (int i = 0; i < launches; i++)
        ck_assert_int_eq(sdcrt_cpu_launch(p, busy, NULL, grid, 0, 0), SDCRT_OK);
    getrusage(RUSAGE_SELF, &after);
    sdcrt_pool_destroy(p);
    return after.ru_nvcsw - before.ru_nvcsw;
}

START_TEST(threads_await_the_next_launch)
{
    if (sysconf(_SC_NPROCESSORS_ONLN) < 2)
        return;
    /* Where another process has a processor for a while, who waits for it sleeps. */
    long least = LONG_MAX;
    for (int round = 0; round < 20 && least >= 40; round++) {
        long n = sleeps(2, 400);
        least = n < least ? n : least;
    }
    ck_assert_int_lt(least, 40);
}
END_TEST

START_TEST(environment_sets_threads)
{
    static const struct {
        const char *text;
        int threads; /* 0: not the environment's */
    } cases[] = { { "3", 3 }, { "999999", 1024 }, { "0", 0 },
                  { "x", 0 }, { "", 0 },          { "-2", 0 } };
    unsetenv("SDC_NUM_THREADS");
    SdcrtPool *p = sdcrt_pool_create(0);
    int cores = sdcrt_pool_threads(p);
    sdcrt_pool_destroy(p);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        setenv("SDC_NUM_THREADS", cases[i].text, 1);
        p = sdcrt_pool_create(0);
        ck_assert_int_eq(sdcrt_pool_threads(p),
                         cases[i].threads ? cases[i].threads : cores);
        sdcrt_pool_destroy(p);
        p = sdcrt_pool_create(2);
        ck_assert_int_eq(sdcrt_pool_threads(p), 2);
        sdcrt_pool_destroy(p);
    }
    unsetenv("SDC_NUM_THREADS");
}
END_TEST

int
main(void)
{
    Suite *suite = suite_create("threadpool");
    TCase *c = tcase_create("threadpool");
    tcase_set_timeout(c, 60);
    tcase_add_test(c, every_program_once);
    tcase_add_test(c, many_launchers_share_a_pool);
    tcase_add_test(c, launches_nest);
    tcase_add_test(c, who_is_alone_adds_to_nobodys_sum);
    tcase_add_test(c, bad_grids_are_refused);
    tcase_add_test(c, ranges_cover_the_grid);
    tcase_add_test(c, children_of_a_fork_run_alone);
    tcase_add_test(c, idle_threads_sleep);
    tcase_add_test(c, threads_await_the_next_launch);
    tcase_add_test(c, environment_sets_threads);
    suite_add_tcase(suite, c);
    SRunner *r = srunner_create(suite);
    srunner_run_all(r, CK_NORMAL);
    int failed = srunner_ntests_failed(r);
    srunner_free(r);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
