/* The k-th allocation fails, or the k-th file operation: every one of them ends in a
   status that says so or in success, never in a signal; nothing of ours stays allocated;
   and the same call works afterwards. LLVM's allocations are among them.

   Faults are made in children, one after another until one loses a compile. Their numbers
   are taken in steps, so that all takes some seconds of CPU; SDC_FAULTS=STEP sets the
   step, 1: every single one, and SDC_FAULTS=STEP:FIRST begins at FIRST, so that STEP
   processes do all of them beside one another. With every second fault of memory all
   later allocations fail as well, until the call is over. An argument is the name of the
   one scenario that is run.
   tests/faults/shim.c is what lets them fail. */
#include "runtime/sdc.h"
#include "runtime/sdc_nn.h"
#include "tests/faults/shim.h"

#include <check.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { N = 64, OTHER = 120 };
enum { MEMORY_FAULTS = 16, FIRST_FAULTS = 64, COMMAND_FAULTS = 12, MOST_BATCH = 64 };

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
    sdc_output_destroy(out);
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
    sdc_tuning_destroy(t);
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
    sdc_output_destroy(object);
    sdc_output_destroy(header);
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

typedef struct Fault {
    FaultKind kind; /* FAULT_NONE: operations of `counts` are counted and none fails */
    FaultKind counts;
    long at;
    int error;
    bool forever; /* all later ones, too */
    bool again;   /* then the same call without a fault, in the same context */
} Fault;

static void
aim(FaultKind kind, const Fault *f)
{
    atomic_store(&faults->kind, FAULT_NONE);
    atomic_store(&faults->at, f->at);
    atomic_store(&faults->forever, f->forever);
    atomic_store(&faults->error, f->error);
    atomic_store(&faults->count, 0);
    atomic_store(&faults->kind, kind);
}

static int
delete(const char *path, const struct stat *s, int type, struct FTW *at)
{
    (void)s;
    (void)type;
    (void)at;
    return remove(path);
}

static char cache_dir[300];

static void
clear_cache(void)
{
    nftw(cache_dir, delete, 8, FTW_DEPTH | FTW_PHYS);
}

typedef struct Outcome {
    int status, retry;
    long count, leaked;
    int lost;
} Outcome;

/* In a context of its own. */
static Outcome
run(const Scenario *s, const Fault *f)
{
    Outcome o = {.retry = s->good};
    SdcContextOptions options = {.threads = 1};
    SdcContext *cx;
    if (s->cache && strcmp(s->cache, "empty") == 0)
        clear_cache();
    long before = atomic_load(&faults->live);
    aim(f->kind ? f->kind : f->counts, f);
    o.status = sdc_context_create(&options, &cx);
    if (o.status == SDC_OK)
        o.status = s->run(cx);
    o.count = atomic_load(&faults->count);
    aim(FAULT_NONE, f);
    if (cx && !sdc_error(cx))
        o.status = OTHER;
    if (f->again) {
        if (!cx && sdc_context_create(&options, &cx) != SDC_OK)
            o.retry = OTHER;
        else
            o.retry = s->run(cx);
    }
    sdc_context_destroy(cx);
    o.leaked = atomic_load(&faults->live) - before;
    o.lost = sdc_lost_compiles(NULL);
    return o;
}

/* `n` faults one after another in a child. Gives how many came to an end, with what came
   of each in out[]; *how is what the child ended with. It stops behind a lost compile,
   since what LLVM holds then is no leak of ours. */
static int
run_apart(const Scenario *s, const Fault *f, int n, Outcome *out, int *how)
{
    int ends[2], got = 0;
    ck_assert_int_eq(pipe(ends), 0);
    fflush(stdout);
    pid_t pid = fork();
    if (!pid) {
        signal(SIGALRM, SIG_DFL);
        int nowhere = open("/dev/null", O_WRONLY);
        dup2(nowhere, STDERR_FILENO); /* a message of LLVM's before it aborts */
        for (int i = 0; i < n; i++) {
            alarm(100);
            Outcome o = run(s, &f[i]);
            if (write(ends[1], &o, sizeof o) != sizeof o || o.lost)
                break;
        }
        _exit(0);
    }
    close(ends[1]);
    while (got < n && read(ends[0], &out[got], sizeof *out) == sizeof *out)
        got++;
    close(ends[0]);
    ck_assert_int_eq(waitpid(pid, how, 0), pid);
    return got;
}

/* What it does without a fault, and how many operations of a kind it takes. */
static Outcome
run_without(const Scenario *s, FaultKind counts)
{
    Outcome o;
    int how;
    Fault none = {.counts = counts, .again = true};
    ck_assert_int_eq(run_apart(s, &none, 1, &o, &how), 1);
    ck_assert_int_eq(how, 0);
    return o;
}

/* ---------------------------------------------------------------- all of them */

typedef struct Counts {
    long operations[FAULT_FILE + 1]; /* without a fault */
    int faults, refused, lost, wrong;
} Counts;

static void
report(const char *name, const Counts *c)
{
    printf("%-14s %5d faults, %5d refused, %d compiles lost, %d wrong (%ld allocations, "
           "%ld file operations)\n",
           name, c->faults, c->refused, c->lost, c->wrong, c->operations[FAULT_MEMORY],
           c->operations[FAULT_FILE]);
}

static void
judge(const Scenario *s, const Fault *f, const Outcome *o, long leaks, Counts *c)
{
    c->refused += o->status != (int)s->good;
    c->lost += o->lost;
    bool right = o->status == (int)s->good ||
                 (f->kind == FAULT_MEMORY ? o->status == SDC_ERROR_MEMORY
                                          : o->status == SDC_ERROR_FILE ||
                                                o->status == SDC_ERROR_ENVIRONMENT);
    if (right && o->retry == (int)s->good && (o->lost || o->leaked <= leaks))
        return;
    c->wrong++;
    printf("%s: %s %ld (errno %d%s): status %d, again %d, %ld blocks left, %d compiles "
           "lost\n",
           s->name, f->kind == FAULT_MEMORY ? "allocation" : "file operation", f->at,
           f->error, f->forever ? ", all later ones" : "", o->status, o->retry,
           o->leaked - leaks, o->lost);
}

static void
judge_all(const Scenario *s, const Fault *f, int n, int batch, long leaks, Counts *c)
{
    Outcome out[MOST_BATCH];
    int how;
    for (int done = 0; done < n;) {
        int most = n - done < batch ? n - done : batch;
        int got = run_apart(s, &f[done], most, out, &how);
        for (int i = 0; i < got; i++)
            judge(s, &f[done + i], &out[i], leaks, c);
        done += got;
        if (got < most && (how || !got)) {
            printf("%s: kind %d, operation %ld: the process ended with %x\n", s->name,
                   f[done].kind, f[done].at, (unsigned)how);
            c->wrong++;
            done++;
        }
    }
    c->faults += n;
}

/* Which faults are made: the first `all` and then every step-th from `first` on. */
typedef struct Steps {
    long first, step, all;
} Steps;

static Steps
steps_for(long count, long most)
{
    const char *text = getenv("SDC_FAULTS");
    Steps s = {.first = 1, .step = count / most, .all = FIRST_FAULTS};
    if (text) {
        char *end;
        s.step = strtol(text, &end, 10);
        s.first = *end == ':' ? atol(end + 1) : 1;
        s.all = 0;
    }
    s.step = s.step < 1 ? 1 : s.step;
    return s;
}

/* The first ones are the calls' own, few and unlike one another. */
static long
next(const Steps *s, long k)
{
    return k + (k < s->all ? 1 : s->step);
}

static void
memory_faults(const Scenario *s, long count, int batch, long leaks, Counts *c)
{
    Steps steps = steps_for(count, MEMORY_FAULTS);
    Fault *f = calloc((size_t)count + 1, sizeof *f);
    int n = 0;
    ck_assert_ptr_nonnull(f);
    c->operations[FAULT_MEMORY] = count;
    /* The second call is most of the time, and where every one fails, neighbours are much
       alike. */
    bool few = !getenv("SDC_FAULTS") || (s->cache && strcmp(s->cache, "full") == 0);
    for (long k = steps.first; k <= count; k = next(&steps, k), n++)
        f[n] = (Fault){.kind = FAULT_MEMORY, .at = k, .error = ENOMEM,
                       .forever = n % 2, .again = few || n % 16 < 2};
    judge_all(s, f, n, batch, leaks, c);
    free(f);
}

/* ---------------------------------------------------------------- tests */

static const char *only; /* the name of one of them */

static void
begin(const Scenario *s)
{
    snprintf(cache_dir, sizeof cache_dir, SDC_TMP "/faults%d", (int)getpid());
    args[0] = sdc_ptr(SDC_FP32, x);
    args[1] = sdc_int(N);
    setenv("SDC_CACHE_DIR", cache_dir, 1);
    setenv("SDC_CACHE", s->cache ? "on" : "off", 1);
    clear_cache();
}

START_TEST(library_calls)
{
    const Scenario *s = &scenarios[_i];
    static const int errors[] = {ENOSPC, EIO, EINTR, EACCES, FAULT_SHORT};
    Counts c = {0};
    Fault none = {.again = true};
    Outcome normal;
    if (only && strcmp(only, s->name) != 0)
        return;
    begin(s);
    /* What is made once in a process is made here: so a block that stays is a leak. */
    for (int i = 0; i < 2; i++)
        normal = run(s, &none);
    ck_assert_msg(normal.status == (int)s->good && normal.retry == (int)s->good,
                  "%s: status %d, again %d without a fault", s->name, normal.status,
                  normal.retry);
    normal = run_without(s, FAULT_MEMORY);
    memory_faults(s, normal.count, MOST_BATCH, normal.leaked, &c);
    normal = run_without(s, FAULT_FILE);
    c.operations[FAULT_FILE] = normal.count;
    for (long k = 1; k <= normal.count; k++)
        for (int e = 0; e < 5; e += s->cache ? 1 : 2) {
            Fault f = {.kind = FAULT_FILE, .at = k, .error = errors[e], .again = true};
            judge_all(s, &f, 1, 1, normal.leaked, &c);
        }
    report(s->name, &c);
    clear_cache();
    ck_assert_int_eq(c.wrong, 0);
}
END_TEST

/* Nothing is loaded yet: LLVM's own initialisation meets the faults. */
START_TEST(first_call)
{
    const Scenario *s = &scenarios[2];
    Counts c = {0};
    if (only && strcmp(only, "first call") != 0)
        return;
    begin(s);
    /* What is made once stays. */
    memory_faults(s, run_without(s, FAULT_MEMORY).count, 1, 1 << 30, &c);
    report("first call", &c);
    ck_assert_int_eq(c.wrong, 0);
}
END_TEST

/* The command, with arrays in files. */
static int
run_command(const char *fault, bool counts, long *count)
{
    char *line[] = {"sdc", "run", SDC_ROOT "/kernels_dsl/vector_add.tk", "-c", "BLOCK=64",
                    "--grid", "1", "-a", "x_ptr=rand:f32[64]", "-a",
                    "y_ptr=rand:f32[64]", "-a", "out_ptr=empty:f32[64]", "-a", "n=64",
                    NULL};
    int how, ends[2];
    ck_assert_int_eq(pipe(ends), 0);
    pid_t pid = fork();
    if (!pid) {
        int nowhere = open("/dev/null", O_WRONLY);
        dup2(nowhere, STDOUT_FILENO);
        dup2(counts ? ends[1] : nowhere, STDERR_FILENO);
        signal(SIGALRM, SIG_DFL);
        if (strncmp(fault, "memory", 6) == 0) /* it compiles every time */
            setenv("SDC_CACHE", "off", 1);
        setenv("SDC_FAULT", fault, 1);
        if (counts)
            setenv("SDC_FAULT_COUNT", "1", 1);
        execv(SDC_TMP "/../../sdc", line);
        _exit(127);
    }
    close(ends[1]);
    char text[100] = "";
    if (counts && read(ends[0], text, sizeof text - 1) > 0)
        *count = atol(text);
    close(ends[0]);
    ck_assert_int_eq(waitpid(pid, &how, 0), pid);
    return how;
}

START_TEST(the_command_survives_faults)
{
    static const char *const kinds[] = {"none", "memory", "file"};
    Counts c = {0};
    int n = 0;
    if (only && strcmp(only, "sdc run") != 0)
        return;
    begin(&scenarios[3]);
    for (int kind = FAULT_MEMORY; kind <= FAULT_FILE; kind++) {
        char text[60];
        snprintf(text, sizeof text, "%s 0 0", kinds[kind]);
        ck_assert_int_eq(run_command(text, true, &c.operations[kind]), 0);
        long most = c.operations[kind];
        ck_assert_int_gt(most, 0);
        Steps steps = steps_for(most, COMMAND_FAULTS);
        for (long k = steps.first; k <= most; k += steps.step, n++) {
            if (kind == FAULT_FILE && n % 3)
                clear_cache();
            snprintf(text, sizeof text, "%s %ld %d", kinds[kind], k,
                     n % 2 ? EIO : ENOSPC);
            int how = run_command(text, false, NULL);
            c.refused += how != 0;
            if (WIFEXITED(how) && WEXITSTATUS(how) <= SDC_ERROR_MEMORY)
                continue;
            c.wrong++;
            printf("sdc run, %s: ended with %x\n", text, (unsigned)how);
        }
    }
    c.faults = n;
    report("sdc run", &c);
    clear_cache();
    ck_assert_int_eq(c.wrong, 0);
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
    only = argc > 1 ? argv[1] : NULL;
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
    tcase_add_test(t, the_command_survives_faults);
    suite_add_tcase(s, t);
    SRunner *r = srunner_create(s);
    srunner_run_all(r, CK_NORMAL);
    int failed = srunner_ntests_failed(r);
    srunner_free(r);
    return failed != 0;
}
