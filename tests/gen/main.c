/* randgen: random programs, each run in several ways and compared.

   Programs run in forked children, one after the other, so that a crash is the result of
   one program and costs one fork. A child that uses too much CPU time on one is ended by
   a signal of its own; wall-clock time does not count, since machines may be busy. */
#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "tests/gen/gen.h"
#include "tests/gen/main.h"

static const char *const finding_name[] = {"ok",     "DIFFERS", "REFUSED", "INTERNAL",
                                           "ORACLE", "CRASH",   "TIME"};

typedef struct Shared {
    _Atomic uint64_t next;
    struct {
        _Atomic uint64_t seed;
        _Atomic bool busy;
        char label[RUN_LABEL];
    } job[256];
} Shared;

typedef struct Record {
    uint64_t seed;
    Report report;
} Record;

static void
limit_time(double seconds)
{
    struct itimerval t = {
        .it_value = {.tv_sec = (time_t)seconds, .tv_usec = (suseconds_t)1}};
    setitimer(ITIMER_PROF, &t, NULL);
}

static void
child(const Options *o, Shared *sh, int j, int to)
{
    Runner r = o->runner;
    run_label = sh->job[j].label;
    runner_open(&r);
    for (int done = 0; done < 400; done++) {
        uint64_t seed = atomic_fetch_add(&sh->next, 1);
        if (seed >= o->seed + o->count)
            break;
        atomic_store(&sh->job[j].seed, seed);
        atomic_store(&sh->job[j].busy, true);
        limit_time(o->seconds);
        Record rec = {.seed = seed};
        Program *p = gen_program(seed);
        program_check(&r, p, &rec.report);
        program_free(p);
        if (rec.report.what != FINDING_NONE && write(to, &rec, sizeof rec) < 0)
            _exit(4);
        atomic_store(&sh->job[j].busy, false);
        if (rec.report.what == FINDING_CRASH) /* of a GPU: its context is lost */
            _exit(0);
    }
    limit_time(0);
    runner_close(&r);
    _exit(0);
}

void
run_apart(const Options *o, const Program *p, Report *out)
{
    int fd[2];
    if (pipe(fd) != 0)
        exit(2);
    pid_t pid = fork();
    if (pid == 0) {
        Runner r = o->runner;
        Report rep;
        runner_open(&r);
        limit_time(o->seconds);
        program_check(&r, p, &rep);
        if (write(fd[1], &rep, sizeof rep) < 0)
            _exit(4);
        _exit(0);
    }
    close(fd[1]);
    *out = (Report){0};
    ssize_t n = read(fd[0], out, sizeof *out);
    int st;
    waitpid(pid, &st, 0);
    close(fd[0]);
    if (n != (ssize_t)sizeof *out) {
        out->what =
            WIFSIGNALED(st) && WTERMSIG(st) == SIGPROF ? FINDING_TIME : FINDING_CRASH;
        snprintf(out->text, sizeof out->text, "signal %d", WTERMSIG(st));
    }
}

static void
keep(const Options *o, const Record *rec)
{
    if (!o->keep)
        return;
    mkdir(o->keep, 0777);
    char path[1024];
    snprintf(path, sizeof path, "%s/%" PRIu64 ".tk", o->keep, rec->seed);
    FILE *f = fopen(path, "w");
    if (!f)
        return;
    Program *p = gen_program(rec->seed);
    fprintf(f, "# seed %" PRIu64 ", %s: %s\n", rec->seed, rec->report.label,
            finding_name[rec->report.what]);
    for (const char *c = rec->report.text; *c; c++)
        fprintf(f, "%s%c", c == rec->report.text ? "# " : "", *c == '\n' ? ' ' : *c);
    fprintf(f, "\n%s", p->text);
    program_free(p);
    fclose(f);
}

static void
show(const Options *o, const Record *rec, int *found)
{
    if (found[rec->report.what]++ < 40 || o->verbose)
        printf("seed %" PRIu64 " [%s] %s: %.*s\n", rec->seed, rec->report.label,
               finding_name[rec->report.what], o->verbose ? 1200 : 300, rec->report.text);
    fflush(stdout);
    keep(o, rec);
}

/* A child has ended: what it was at is a finding when a signal ended it. */
static void
ended(const Options *o, Shared *sh, int j, int status, int *found)
{
    if (!WIFSIGNALED(status) && WEXITSTATUS(status) == 0)
        return;
    if (!atomic_load(&sh->job[j].busy))
        return;
    Record rec = {.seed = atomic_load(&sh->job[j].seed)};
    int sig = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
    rec.report.what = sig == SIGPROF ? FINDING_TIME : FINDING_CRASH;
    snprintf(rec.report.label, sizeof rec.report.label, "%s", sh->job[j].label);
    snprintf(rec.report.text, sizeof rec.report.text, "signal %d, status %d", sig,
             WIFSIGNALED(status) ? 0 : WEXITSTATUS(status));
    atomic_store(&sh->job[j].busy, false);
    show(o, &rec, found);
}

static int
summary(const Options *o, uint64_t done, const int *found)
{
    struct rusage u;
    getrusage(RUSAGE_CHILDREN, &u);
    int bad = 0;
    for (int i = 1; i < FINDING_COUNT; i++)
        bad += found[i];
    printf("%" PRIu64 " programs from seed %" PRIu64 ": %d findings", done, o->seed, bad);
    for (int i = 1; i < FINDING_COUNT; i++)
        if (found[i])
            printf(", %d %s", found[i], finding_name[i]);
    printf("; %.1f s of CPU time\n",
           (double)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) +
               1e-6 * (double)(u.ru_utime.tv_usec + u.ru_stime.tv_usec));
    return bad ? 1 : 0;
}

static int
run_all(const Options *o)
{
    Shared *sh =
        mmap(NULL, sizeof *sh, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    int fd[2], found[FINDING_COUNT] = {0}, alive = 0;
    pid_t pid[256] = {0};
    if (sh == MAP_FAILED || pipe(fd) != 0)
        return 2;
    atomic_store(&sh->next, o->seed);
    time_t start = time(NULL);
    uint64_t done = o->count, told = o->seed;
    for (;;) {
        bool late = o->stop_after && time(NULL) - start >= o->stop_after;
        for (int i = 1; i < FINDING_COUNT; i++)
            late |= o->first && found[i] > 0;
        uint64_t at = atomic_load(&sh->next);
        bool more = at < o->seed + o->count && !late;
        for (int j = 0; j < o->jobs && more; j++) {
            if (pid[j])
                continue;
            fflush(stdout);
            pid[j] = fork();
            if (pid[j] == 0)
                child(o, sh, j, fd[1]);
            alive++;
        }
        if (late && at < o->seed + o->count) {
            done = at - o->seed;
            atomic_store(&sh->next, o->seed + o->count);
        }
        if (o->verbose && at >= told + 1000) {
            fprintf(stderr, "%" PRIu64 " programs, %ld s\n", at - o->seed,
                    (long)(time(NULL) - start));
            told = at;
        }
        struct pollfd pf = {.fd = fd[0], .events = POLLIN};
        Record rec;
        while (poll(&pf, 1, alive ? 20 : 0) > 0 &&
               read(fd[0], &rec, sizeof rec) == (ssize_t)sizeof rec)
            show(o, &rec, found);
        for (int j = 0, st; j < o->jobs; j++)
            if (pid[j] && waitpid(pid[j], &st, WNOHANG) == pid[j]) {
                pid[j] = 0;
                alive--;
                ended(o, sh, j, st, found);
            }
        if (!alive && atomic_load(&sh->next) >= o->seed + o->count &&
            poll(&pf, 1, 0) <= 0)
            break;
    }
    return summary(o, done, found);
}

static int
usage(void)
{
    fputs(
        "randgen --seed N --count M [--only interp,cpu,passes,threads,plain] [--jobs J]\n"
        "    [--keep DIR] [--seconds CPU] [--stop-after SECONDS] [--first] [--verbose]\n"
        "    [--often N: threads and plain for one program in N]\n"
        "    [--loops: loops of matmuls for tensor cores, of seeds that are large]\n"
        "    [--with MAKER: a line of gen/makers.def above all, of other seeds]\n"
        "randgen --target cuda --seed N --count M --jobs J     on a GPU, by three "
        "numbers of warps\n"
        "randgen --target sm_90a --compile-only ..             code only; --ptxas PATH\n"
        "randgen --print SEED | --reduce SEED [the options of the run that failed]\n"
        "randgen --emit DIR --seed N --count M                 text, inputs, outputs\n",
        stderr);
    return 2;
}

static int
only(const char *list)
{
    static const struct {
        const char *name;
        int bit;
    } sets[] = {{"interp", 0},          {"cpu", RUN_CPU},
                {"passes", RUN_PASSES}, {"threads", RUN_THREADS},
                {"plain", RUN_PLAIN},   {"ptx", RUN_PTX}};
    int what = 0;
    for (size_t i = 0; i < sizeof sets / sizeof *sets; i++)
        if (strstr(list, sets[i].name))
            what |= sets[i].bit;
    return what;
}

static bool
parse(int argc, char **argv, Options *o)
{
    bool loops = false;
    uint64_t with = 0;
    for (int i = 1; i < argc; i++) {
        const char *a = argv[i], *v = i + 1 < argc ? argv[i + 1] : NULL;
        if (!strcmp(a, "--first"))
            o->first = true;
        else if (!strcmp(a, "--compile-only"))
            continue; /* any target but "cuda" is */
        else if (!strcmp(a, "--verbose"))
            o->verbose = true;
        else if (!strcmp(a, "--loops"))
            loops = true;
        else if (!v)
            return false;
        else if (++i, !strcmp(a, "--with")) {
            if (!(with = (uint64_t)maker_number(v)))
                return false;
        } else if (!strcmp(a, "--seed"))
            o->seed = strtoull(v, NULL, 10);
        else if (!strcmp(a, "--count"))
            o->count = strtoull(v, NULL, 10);
        else if (!strcmp(a, "--jobs"))
            o->jobs = atoi(v);
        else if (!strcmp(a, "--only"))
            o->runner.what = only(v);
        else if (!strcmp(a, "--often"))
            o->runner.often = atoi(v);
        else if (!strcmp(a, "--pretend"))
            o->runner.pretend = v;
        else if (!strcmp(a, "--keep"))
            o->keep = v;
        else if (!strcmp(a, "--emit"))
            o->emit = v;
        else if (!strcmp(a, "--seconds"))
            o->seconds = atof(v);
        else if (!strcmp(a, "--stop-after"))
            o->stop_after = atol(v);
        else if (!strcmp(a, "--target"))
            o->runner.target = v;
        else if (!strcmp(a, "--ptxas"))
            o->runner.ptxas = v;
        else if (!strcmp(a, "--print") || !strcmp(a, "--reduce")) {
            o->seed = strtoull(v, NULL, 10);
            *(a[2] == 'p' ? &o->print : &o->reduce) = true;
        } else
            return false;
    }
    o->seed |= loops ? LOOP_SEEDS : with << MAKER_SHIFT;
    return o->jobs >= 1 && o->jobs <= 256;
}

int
main(int argc, char **argv)
{
    Options o = {.seed = 1,
                 .count = 2000,
                 .jobs = 1,
                 .seconds = 60,
                 .runner = {.what = RUN_ALL, .often = 8}};
    if (!parse(argc, argv, &o))
        return usage();
    setenv("SDC_CACHE", "off", 0);
    if (o.runner.target && strcmp(o.runner.target, "cuda") == 0)
        o.runner.what = RUN_CUDA;
    else if (o.runner.target)
        o.runner.what = RUN_PTX;
    if (o.print) {
        Program *p = gen_program(o.seed);
        fputs(p->text, stdout);
        program_free(p);
        return 0;
    }
    if (o.reduce)
        return reduce(&o);
    if (o.emit)
        return emit(&o);
    return run_all(&o);
}
