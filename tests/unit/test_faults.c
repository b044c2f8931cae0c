/* The k-th allocation fails, or the k-th file operation: every one of them ends in a
   status that says so or in success, never in a signal; nothing of ours stays allocated;
   and the same call works afterwards. LLVM's allocations are among them.

   Each fault is made in a child of its own. The numbers are taken in steps, so that all
   takes some seconds of CPU; SDC_FAULTS=STEP sets the step, 1: every single one. With
   every second fault of memory all later allocations fail as well, until the call is
   over.
   tests/faults/shim.c is what lets them fail. */
#include "runtime/sdc.h"
#include "runtime/sdc_nn.h"
#include "tests/faults/shim.h"

#include <check.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { N = 64, MEMORY_FAULTS = 16, FIRST_FAULTS = 40, COMMAND_FAULTS = 12, OTHER = 120 };

static Faults *faults;

static const char source[] =
    "import triton\n"
    "import triton.language as tl\n"
    "@triton.autotune(configs=[triton.Config({'BLOCK': 32}),\n"
    "                          triton.Config({'BLOCK': 64})], key=['n'])\n"
    "@triton.jit\n"
    "def k(x, n, BLOCK: tl.constexpr):\n"
    "    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)\n"
    "    v = tl.load(x + i, mask=i < n)\n"
    "    tl.store(x + i, v + tl.sum(v), mask=i < n)\n";

static const char tuned[] = "k | any | cpu | *fp32,i32 | n=64 | BLOCK=64 | 1 us\n";

static _Alignas(64) float x[N];
static SdcArg args[2];

static SdcStatus
load(SdcContext *cx, SdcModule **m)
{
    return sdc_module_load_text(cx, "k.tk", source, sizeof source - 1, SDC_LANG_AUTO, m);
}

static SdcStatus
compile_for(SdcContext *cx, const char *target)
{
    SdcModule *m;
    SdcOutput *out = NULL;
    SdcCompileOptions o = {.signature = "*fp32:16,i32,64", .target = target,
                           .emit = SDC_EMIT_ASM, .explain = 1};
    SdcStatus status = load(cx, &m);
    if (status == SDC_OK)
        status = sdc_compile(m, &o, &out);
    sdc_output_free(out);
    return status;
}

static SdcStatus
compile_cpu(SdcContext *cx)
{
    return compile_for(cx, "cpu");
}

static SdcStatus
compile_gpu(SdcContext *cx)
{
    return compile_for(cx, "sm_90a");
}

static SdcStatus
launch(SdcContext *cx)
{
    SdcModule *m;
    SdcFunction *f;
    static const char *const bind[] = {"BLOCK=64"};
    SdcStatus status = load(cx, &m);
    if (status == SDC_OK)
        status = sdc_function_get(m, "k", bind, 1, &f);
    for (int i = 0; i < N; i++)
        x[i] = 1;
    if (status == SDC_OK)
        status = sdc_launch(f, sdc_grid(1, 1, 1), args, 2, NULL);
    return status == SDC_OK && x[N - 1] != N + 1 ? SDC_ERROR_INTERNAL : status;
}

static SdcStatus
launch_tuned(SdcContext *cx)
{
    SdcModule *m;
    SdcFunction *f;
    SdcStatus status = load(cx, &m);
    if (status == SDC_OK)
        status = sdc_module_tune(m, tuned);
    if (status == SDC_OK)
        status = sdc_function_get(m, "k", NULL, 0, &f);
    return status == SDC_OK ? sdc_launch_tuned(f, "cdiv(n,BLOCK)", args, 2, NULL)
                            : status;
}

static SdcStatus
tune(SdcContext *cx)
{
    SdcModule *m;
    SdcTuning *t = NULL;
    const size_t bytes[] = {sizeof x, 0};
    SdcTuneOptions o = {.grid = "cdiv(n,BLOCK)", .args = args, .nargs = 2,
                        .bytes = bytes, .budget = 1e-3, .threads = 1};
    SdcStatus status = load(cx, &m);
    if (status == SDC_OK)
        status = sdc_tune(m, &o, &t);
    sdc_tuning_free(t);
    return status;
}

static SdcStatus
bundle(SdcContext *cx)
{
    SdcModule *m;
    SdcOutput *object = NULL, *header = NULL;
    static const char *const targets[] = {"cpu", "sm_80"};
    static const char *const signatures[] = {"*fp32:16,i32,64"};
    SdcBundleOptions o = {.targets = targets, .ntarget = 2, .signatures = signatures,
                          .nsignature = 1, .grid = "cdiv(n,BLOCK)"};
    SdcStatus status = load(cx, &m);
    if (status == SDC_OK)
        status = sdc_bundle(m, &o, &object, &header);
    sdc_output_free(object);
    sdc_output_free(header);
    return status;
}

static SdcStatus
parse_error(SdcContext *cx)
{
    SdcModule *m;
    return sdc_module_load_text(cx, "e.tk", "@triton.jit\ndef f(:\n", 20, SDC_LANG_AUTO,
                                &m);
}

static SdcStatus
check_and_fuse(SdcContext *cx)
{
    SdcModule *m, *fused;
    SdcKernel *k;
    const SdcCheck *check;
    SdcFuseOptions o = {.kernels = "k,l=k", .bind = "k.x=x,l.x=x"};
    SdcStatus status = load(cx, &m);
    if (status == SDC_OK)
        status = sdc_module_check(m, NULL, &check);
    if (status == SDC_OK)
        status = sdc_fuse(m, &o, &fused);
    return status == SDC_OK ? sdc_kernel_get(m, "k", "*fp32,i32,32", NULL, 0, &k)
                            : status;
}

static SdcStatus
file(SdcContext *cx)
{
    SdcModule *m;
    SdcFunction *f;
    SdcStatus status =
        sdc_module_load_file(cx, SDC_ROOT "/kernels_dsl/vector_add.tk", &m);
    SdcArg a[] = {args[0], args[0], args[0], sdc_int(N)};
    static const char *const bind[] = {"BLOCK=64"};
    if (status == SDC_OK)
        status = sdc_function_get(m, "vector_add", bind, 1, &f);
    return status == SDC_OK ? sdc_launch_tuned(f, "cdiv(n,64)", a, 4, NULL) : status;
}

static SdcStatus
library(SdcContext *cx)
{
    SdcKernels *k = NULL;
    SdcTensor t = sdc_matrix(SDC_FP32, x, 8, 8);
    SdcDropout drop = {.p = 0.5f};
    SdcStatus status = sdc_kernels_create(cx, &k);
    if (status == SDC_OK)
        status = sdc_dropout_forward(k, &t, NULL, NULL, &t, &drop, NULL);
    sdc_kernels_destroy(k);
    return status;
}

typedef struct Scenario {
    const char *name;
    SdcStatus (*run)(SdcContext *cx);
    SdcStatus good;    /* without a fault */
    const char *cache; /* "empty" before each run, "full", NULL: off */
} Scenario;

static const Scenario scenarios[] = {
    {"compile cpu", compile_cpu, SDC_OK, NULL},
    {"compile gpu", compile_gpu, SDC_OK, NULL},
    {"launch", launch, SDC_OK, NULL},
    {"cache miss", launch, SDC_OK, "empty"},
    {"cache hit", launch, SDC_OK, "full"},
    {"tuned launch", launch_tuned, SDC_OK, NULL},
    {"tune", tune, SDC_OK, NULL},
    {"ahead of time", bundle, SDC_OK, NULL},
    {"parse error", parse_error, SDC_ERROR_SOURCE, NULL},
    {"check, fuse", check_and_fuse, SDC_OK, NULL},
    {"file", file, SDC_OK, "full"},
    {"library", library, SDC_OK, NULL},
};

/* ---------------------------------------------------------------- one fault */

static void
aim(FaultKind kind, long at, bool forever, int error)
{
    atomic_store(&faults->kind, FAULT_NONE);
    atomic_store(&faults->at, at);
    atomic_store(&faults->forever, forever);
    atomic_store(&faults->error, error);
    atomic_store(&faults->count, 0);
    atomic_store(&faults->kind, kind);
}

static void
clear_cache(void)
{
    char command[600];
    const char *dir = getenv("SDC_CACHE_DIR");
    snprintf(command, sizeof command, "rm -rf '%s'", dir);
    if (dir && system(command) != 0)
        exit(OTHER);
}

typedef struct Outcome {
    int status, retry;
    long count, leaked;
    int lost;
} Outcome;

/* In a context of its own, and again without the fault in the same one. */
static Outcome
run(const Scenario *s, FaultKind kind, long at, bool forever, int error)
{
    Outcome o = {0};
    SdcContextOptions options = {.threads = 1};
    SdcContext *cx;
    if (s->cache && strcmp(s->cache, "empty") == 0)
        clear_cache();
    long before = atomic_load(&faults->live);
    aim(kind, at, forever, error);
    o.status = sdc_context_create(&options, &cx);
    if (o.status == SDC_OK)
        o.status = s->run(cx);
    o.count = atomic_load(&faults->count);
    aim(FAULT_NONE, 0, false, 0);
    if (cx && !sdc_error(cx))
        o.status = OTHER;
    if (!cx && sdc_context_create(&options, &cx) != SDC_OK)
        o.retry = OTHER;
    else
        o.retry = s->run(cx);
    sdc_context_destroy(cx);
    o.leaked = atomic_load(&faults->live) - before;
    o.lost = sdc_lost_compiles(NULL);
    return o;
}

/* The same in a child; false: a signal, which is in *how. */
static bool
run_apart(const Scenario *s, FaultKind kind, long at, bool forever, int error,
          Outcome *out, int *how)
{
    int ends[2];
    ck_assert_int_eq(pipe(ends), 0);
    fflush(stdout);
    pid_t pid = fork();
    if (!pid) {
        signal(SIGALRM, SIG_DFL);
        alarm(100);
        int nowhere = open("/dev/null", O_WRONLY);
        dup2(nowhere, STDERR_FILENO); /* a message of LLVM's before it aborts */
        Outcome o = run(s, kind, at, forever, error);
        _exit(write(ends[1], &o, sizeof o) != sizeof o);
    }
    close(ends[1]);
    bool got = read(ends[0], out, sizeof *out) == sizeof *out;
    close(ends[0]);
    ck_assert_int_eq(waitpid(pid, how, 0), pid);
    return got && WIFEXITED(*how) && WEXITSTATUS(*how) == 0;
}

typedef struct Counts {
    int faults, refused, lost, wrong;
} Counts;

static void
judge(const Scenario *s, FaultKind kind, long at, int error, const Outcome *normal,
      Counts *c, bool forever)
{
    Outcome o = {0};
    int how = 0;
    const char *what = kind == FAULT_MEMORY ? "allocation" : "file operation";
    bool fine = run_apart(s, kind, at, forever, error, &o, &how);
    c->faults++;
    c->refused += o.status != (int)s->good;
    c->lost += o.lost;
    bool right = o.status == (int)s->good ||
                 (kind == FAULT_MEMORY
                      ? o.status == SDC_ERROR_MEMORY
                      : o.status == SDC_ERROR_FILE || o.status == SDC_ERROR_ENVIRONMENT);
    right &= o.retry == (int)s->good;
    if (fine && right && (o.lost || o.leaked <= normal->leaked))
        return;
    c->wrong++;
    printf("%s: %s %ld (errno %d%s): ", s->name, what, at, error,
           forever ? ", all later ones" : "");
    if (!fine)
        printf("the process ended with %x\n", (unsigned)how);
    else
        printf("status %d, again %d, %ld blocks left, %d compiles lost\n", o.status,
               o.retry, o.leaked - normal->leaked, o.lost);
}

static long
step_for(long count, long most)
{
    const char *text = getenv("SDC_FAULTS");
    long step = text ? atol(text) : count / most;
    return step < 1 ? 1 : step;
}

/* ---------------------------------------------------------------- tests */

static void
begin(const Scenario *s)
{
    static char dir[] = SDC_TMP "/faults";
    args[0] = sdc_ptr(SDC_FP32, x);
    args[1] = sdc_int(N);
    setenv("SDC_CACHE_DIR", dir, 1);
    setenv("SDC_CACHE", s->cache ? "on" : "off", 1);
    clear_cache();
}

START_TEST(library_calls)
{
    const Scenario *s = &scenarios[_i];
    static const int errors[] = {ENOSPC, EIO, EINTR, EACCES, FAULT_SHORT};
    Counts c = {0};
    Outcome normal;
    int how;
    begin(s);
    /* What is made once in a process is made here: so a block that stays is a leak. */
    for (int i = 0; i < 2; i++)
        normal = run(s, FAULT_MEMORY, 0, false, 0);
    ck_assert_msg(normal.status == (int)s->good && normal.retry == (int)s->good,
                  "%s: status %d, again %d without a fault", s->name, normal.status,
                  normal.retry);
    ck_assert(run_apart(s, FAULT_MEMORY, 0, false, 0, &normal, &how));
    long step = step_for(normal.count, MEMORY_FAULTS);
    /* The first ones are the calls' own, few and unlike one another. */
    for (long k = 1, n = 0; k <= normal.count; k += k < FIRST_FAULTS ? 1 : step, n++)
        judge(s, FAULT_MEMORY, k, ENOMEM, &normal, &c, n % 2);
    ck_assert(run_apart(s, FAULT_FILE, 0, false, 0, &normal, &how));
    for (long k = 1; k <= normal.count; k++)
        for (int e = 0; e < 5; e += s->cache ? 1 : 2)
            judge(s, FAULT_FILE, k, errors[e], &normal, &c, false);
    printf("%-14s %4d faults, %4d refused, %d compiles lost, %d wrong\n", s->name,
           c.faults, c.refused, c.lost, c.wrong);
    ck_assert_int_eq(c.wrong, 0);
}
END_TEST

/* Nothing is loaded yet: LLVM's own initialisation meets the faults. */
START_TEST(first_call)
{
    const Scenario *s = &scenarios[2];
    Counts c = {0};
    Outcome normal;
    int how;
    begin(s);
    ck_assert(run_apart(s, FAULT_MEMORY, 0, false, 0, &normal, &how));
    normal.leaked = 1 << 30; /* what is made once stays */
    long step = step_for(normal.count, MEMORY_FAULTS);
    /* The first ones are the calls' own, few and unlike one another. */
    for (long k = 1, n = 0; k <= normal.count; k += k < FIRST_FAULTS ? 1 : step, n++)
        judge(s, FAULT_MEMORY, k, ENOMEM, &normal, &c, n % 2);
    printf("%-14s %4d faults, %4d refused, %d compiles lost, %d wrong\n", "first call",
           c.faults, c.refused, c.lost, c.wrong);
    ck_assert_int_eq(c.wrong, 0);
}
END_TEST

/* The command, with arrays in files. */
START_TEST(command)
{
    char *line[] = {"sdc", "run", SDC_ROOT "/kernels_dsl/vector_add.tk", "-c", "BLOCK=64",
                    "--grid", "1", "-a", "x_ptr=rand:f32[64]", "-a",
                    "y_ptr=rand:f32[64]", "-a", "out_ptr=empty:f32[64]", "-a", "n=64",
                    NULL};
    int n = 0, refused = 0, wrong = 0;
    begin(&scenarios[3]);
    for (int kind = FAULT_NONE; kind <= FAULT_FILE; kind++) {
        long most = kind == FAULT_MEMORY ? 9000 : kind == FAULT_FILE ? 60 : 1;
        long step = step_for(most, COMMAND_FAULTS);
        for (long k = 1; k <= most; k += step, n++) {
            char text[60];
            snprintf(text, sizeof text, "%s %ld %d",
                     kind == FAULT_FILE ? "file" : "memory", k, n % 2 ? EIO : ENOSPC);
            pid_t pid = fork();
            if (!pid) {
                int nowhere = open("/dev/null", O_WRONLY);
                dup2(nowhere, STDOUT_FILENO);
                dup2(nowhere, STDERR_FILENO);
                signal(SIGALRM, SIG_DFL);
                if (kind == FAULT_MEMORY) /* it compiles every time */
                    setenv("SDC_CACHE", "off", 1);
                if (kind != FAULT_NONE)
                    setenv("SDC_FAULT", text, 1);
                execv(SDC_TMP "/../../sdc", line);
                _exit(127);
            }
            int how;
            ck_assert_int_eq(waitpid(pid, &how, 0), pid);
            refused += how != 0;
            if (WIFEXITED(how) &&
                WEXITSTATUS(how) <= (kind == FAULT_NONE ? 0 : SDC_ERROR_MEMORY))
                continue;
            wrong++;
            printf("sdc run, %s: ended with %x\n", text, (unsigned)how);
        }
    }
    printf("%-14s %4d faults, %4d refused, %d wrong\n", "sdc run", n, refused, wrong);
    ck_assert_int_eq(wrong, 0);
}
END_TEST

/* The shim has to be there before the C library. */
static void
start_again(char **argv)
{
    void *get = dlsym(RTLD_DEFAULT, "faults_get");
    FaultsGet *fn;
    if (!get && !getenv("LD_PRELOAD")) {
        setenv("LD_PRELOAD", SDC_TMP "/../../libfaults.so", 1);
        execv("/proc/self/exe", argv);
    }
    if (!get) {
        fprintf(stderr, "libfaults.so is not loaded\n");
        exit(1);
    }
    memcpy(&fn, &get, sizeof get);
    faults = fn();
}

int
main(int argc, char **argv)
{
    (void)argc;
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    puts("the sanitizers have allocators of their own: nothing to test");
    return 0;
#endif
    start_again(argv);
    Suite *s = suite_create("faults");
    TCase *t = tcase_create("faults");
    tcase_set_timeout(t, getenv("SDC_FAULTS") ? 36000 : 100);
    tcase_add_test(t, first_call);
    tcase_add_loop_test(t, library_calls, 0, sizeof scenarios / sizeof *scenarios);
    tcase_add_test(t, command);
    suite_add_tcase(s, t);
    SRunner *r = srunner_create(s);
    srunner_run_all(r, CK_NORMAL);
    int failed = srunner_ntests_failed(r);
    srunner_free(r);
    return failed != 0;
}
