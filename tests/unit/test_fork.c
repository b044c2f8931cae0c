/* A host that forks while other threads are inside of the library: in the child every
   function returns. What was compiled before runs on the CPU, the rest is refused with a
   reason, nothing of the parent's is freed, and a context of the child's own works.

   The parent's threads stop while a child runs, so that it has the machine; whether it
   hangs is decided by a clock that allows a minute. */
#include "runtime/sdc.h"
#include "tests/unit/every_call.h"

#include <check.h>
#include <link.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* The sanitizers' malloc does not open its locks in a child, as the C library's does:
   with them nobody else is at work. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
enum { OTHERS = 0, CPU_SECONDS = 2, MOST = 20 };
#else
enum { OTHERS = 64, CPU_SECONDS = 6, MOST = 100000 };
#endif

typedef struct Shared {
    Every cpu, gpu;
    SdcrtPool *pool;
    atomic_bool stop, pause;
    pthread_mutex_t lock;
    pthread_cond_t go_on;
} Shared;

/* Short calls, which are mostly their locks, and compiles among them. */
static void
busy_once(Shared *s, unsigned at)
{
    static const SdcGrid grid = {4, 1, 1};
    Every *e = at % 4 == 3 ? &s->gpu : &s->cpu;
    const char *bind[] = {at % 2 ? "BLOCK=128" : "BLOCK=256"};
    SdcContext *own;
    SdcModule *m;
    SdcFunction *f;
    SdcKernel *k;
    if (at % 3 == 0 &&
        sdc_module_load_text(e->cx, "e.tk", "", 0, SDC_LANG_AUTO, &m) == SDC_OK)
        sdc_module_unload(m);
    if (at % 3 == 1)
        sdc_module_load_text(e->cx, "e.tk", "@triton.jit\ndef f(:\n", 20, SDC_LANG_AUTO,
                             &m);
    if (sdc_function_get(e->m, "k", bind, 1, &f) == SDC_OK && at % 5 == 0) {
        SdcArg args[] = {sdc_ptr(SDC_FP32, e->memory), sdc_int(0)};
        sdc_launch(f, sdc_grid(3, 1, 1), args, 2, NULL);
    }
    sdc_kernel_get(e->m, "k", "*fp32,i32,128", NULL, 0, &k);
    sdcrt_cpu_launch(s->pool, every_program, NULL, grid, 1 << (14 + at % 5), 0);
    if (at % 64 == 0 && sdc_context_create(NULL, &own) == SDC_OK) {
        sdc_module_load_text(own, "k.tk", every_source, sizeof every_source - 1,
                             SDC_LANG_AUTO, &m);
        sdc_kernel_get(m, "k", "*fp32,i32,64", NULL, 0, &k);
        sdc_context_destroy(own);
    }
}

static void *
busy(void *arg)
{
    Shared *s = arg;
    static atomic_uint seed;
    setpriority(PRIO_PROCESS, 0, 15); /* this thread's: who forks gets its turn */
    for (unsigned at = 7919 * atomic_fetch_add(&seed, 1); !atomic_load(&s->stop); at++) {
        busy_once(s, at);
        if (!atomic_load(&s->pause))
            continue;
        pthread_mutex_lock(&s->lock);
        while (atomic_load(&s->pause))
            pthread_cond_wait(&s->go_on, &s->lock);
        pthread_mutex_unlock(&s->lock);
    }
    return NULL;
}

static void
pause_others(Shared *s, bool on)
{
    pthread_mutex_lock(&s->lock);
    atomic_store(&s->pause, on);
    if (!on)
        pthread_cond_broadcast(&s->go_on);
    pthread_mutex_unlock(&s->lock);
}

/* NULL when everything is as promised. */
static const char *
child(Shared *s, int round)
{
    _Alignas(64) float x[EVERY_N] = {0};
    Every own;
    const char *wrong = every_call(&s->cpu, SDC_OK, SDC_ERROR_ENVIRONMENT);
    if (!wrong && !strstr(sdc_error(s->cpu.cx), "fork"))
        wrong = "the message does not tell of the fork";
    if (!wrong)
        wrong = every_call(&s->gpu, SDC_ERROR_ENVIRONMENT, SDC_ERROR_ENVIRONMENT);
    if (!wrong)
        wrong = every_pool(s->pool);
    for (Every *e = &s->cpu; e; e = e == &s->cpu ? &s->gpu : NULL) {
        sdc_module_unload(e->m);
        sdc_context_destroy(e->cx);
    }
    if (!wrong && round % 4 == 0) {
        EVERY(every_open(&own, NULL, x), SDC_OK);
        EVERY(every_launch(&own, NULL), SDC_OK);
        EVERY(x[EVERY_N - 1], 1);
        sdc_context_destroy(own.cx);
    }
    return wrong;
}

static double
cpu_seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

START_TEST(children_compile_and_launch)
{
    static Shared s = {.lock = PTHREAD_MUTEX_INITIALIZER,
                       .go_on = PTHREAD_COND_INITIALIZER};
    static _Alignas(64) float x[EVERY_N];
    pthread_t t[OTHERS + 1];
    const char *more = getenv("SDC_FORK_SECONDS");
    double limit = more ? atof(more) : CPU_SECONDS;
    int n = 0;
    setenv("SDC_LIBCUDA", SDC_TMP "/../../libfakecuda.so", 1);
    ck_assert_int_eq(every_open(&s.cpu, NULL, x), SDC_OK);
    ck_assert_int_eq(every_open(&s.gpu, "cuda", NULL), SDC_OK);
    ck_assert_ptr_nonnull(s.pool = sdcrt_pool_create(2));
    for (int i = 0; i < OTHERS; i++)
        ck_assert_int_eq(pthread_create(&t[i], NULL, busy, &s), 0);
    for (; n < MOST && (n < 3 || cpu_seconds() < limit); n++) {
        int status;
        usleep(2000);
        pid_t pid = fork();
        if (!pid) {
            signal(SIGALRM, SIG_DFL); /* Check has a handler */
            alarm(600); /* what hangs uses no CPU time */
            const char *wrong = child(&s, n);
            if (wrong)
                fprintf(stderr, "in the child: %s\n", wrong);
            _exit(wrong != NULL);
        }
        pause_others(&s, true);
        ck_assert_int_eq(waitpid(pid, &status, 0), pid);
        pause_others(&s, false);
        ck_assert_msg(WIFEXITED(status) && WEXITSTATUS(status) == 0,
                      "fork %d: status %x", n, (unsigned)status);
    }
    atomic_store(&s.stop, true);
    for (int i = 0; i < OTHERS; i++)
        pthread_join(t[i], NULL);
    sdcrt_pool_destroy(s.pool);
    sdc_context_destroy(s.cpu.cx);
    sdc_context_destroy(s.gpu.cx);
    printf("%d forks of %d busy threads\n", n, OTHERS);
}
END_TEST

static int
hold_loader(struct dl_phdr_info *info, size_t size, void *user)
{
    atomic_int *state = user;
    (void)info;
    (void)size;
    atomic_store(state, 1);
    while (atomic_load(state) == 1)
        usleep(1000);
    return 1;
}

static void *
hold(void *state)
{
    dl_iterate_phdr(hold_loader, state);
    return NULL;
}

/* A thread is in the loader at the fork: its lock stays closed in the child. */
START_TEST(a_fork_within_the_loader_ends)
{
    static _Alignas(64) float x[EVERY_N], y[EVERY_N];
    atomic_int state = 0;
    pthread_t t;
    int status;
    Every before; /* has what it needs loaded */
    ck_assert_int_eq(every_open(&before, NULL, x), SDC_OK);
    ck_assert_int_eq(every_launch(&before, NULL), SDC_OK);
    ck_assert_int_eq(pthread_create(&t, NULL, hold, &state), 0);
    while (!atomic_load(&state))
        usleep(1000);
    pid_t pid = fork();
    if (!pid) {
        Every own;
        signal(SIGALRM, SIG_DFL);
        alarm(20);
        bool good = every_open(&own, NULL, y) == SDC_OK;
        _exit(good && !every_launch(&own, NULL) && y[EVERY_N - 1] == 1 ? 0 : 1);
    }
    ck_assert_int_eq(waitpid(pid, &status, 0), pid);
    atomic_store(&state, 2);
    pthread_join(t, NULL);
    sdc_module_unload(before.m);
    sdc_context_destroy(before.cx);
    ck_assert_msg(WIFEXITED(status) && WEXITSTATUS(status) == 0, "status %x",
                  (unsigned)status);
}
END_TEST

int
main(void)
{
    Suite *s = suite_create("fork");
    TCase *t = tcase_create("fork");
    tcase_set_timeout(t, 100);
    tcase_add_test(t, children_compile_and_launch);
    tcase_add_test(t, a_fork_within_the_loader_ends);
    suite_add_tcase(s, t);
    SRunner *r = srunner_create(s);
    srunner_run_all(r, CK_NORMAL);
    int failed = srunner_ntests_failed(r);
    srunner_free(r);
    return failed != 0;
}
