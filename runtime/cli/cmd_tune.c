/* sdc tune: the configurations of a kernel on the arguments of the command line, a table
   of their times, and the winner in a file. */
#include "runtime/cli/run.h"

#include "ir/base/util.h"

#include <signal.h>
#include <string.h>
#include <unistd.h>

static volatile sig_atomic_t interrupted;

static void
on_interrupt(int number)
{
    (void)number;
    interrupted = 1;
}

/* A bar on the standard error, when that is a terminal. */
static int
show_progress(void *user, int done, int total, const SdcTrial *best)
{
    enum { WIDTH = 30 };
    (void)user;
    if (isatty(STDERR_FILENO)) {
        int full = total ? done * WIDTH / total : 0;
        fprintf(stderr, "\r\033[K[%.*s%.*s] %d/%d", full,
                "##############################", WIDTH - full,
                "..............................", done, total);
        if (best)
            fprintf(stderr, "  %.3f us  %.40s", best->times.median * 1e6, best->config);
        if (done == total)
            fputs("\r\033[K", stderr);
        fflush(stderr);
    }
    return interrupted;
}

static void
print_table(const SdcTuning *t)
{
    static const char *const what[] = {
        [SDC_TRIED_FAST] = "",         [SDC_TRIED_SLOW] = "slow",
        [SDC_TRIED_PRUNED] = "pruned", [SDC_TRIED_FAILED] = "failed",
        [SDC_TRIED_WRONG] = "WRONG",
    };
    const SdcTrial *x;
    printf("%11s  %23s  %s\n", "median us", "19 of 20 times", "configuration");
    for (int i = 0; (x = sdc_tuning_trial(t, i)) != NULL; i++) {
        if (x->times.n)
            printf("%11.3f  %10.3f ..%10.3f", x->times.median * 1e6, x->times.low * 1e6,
                   x->times.high * 1e6);
        else
            printf("%11s  %23s", x->why ? what[x->what] : "not tried", "");
        printf("  %s%s%s%s%s\n", *x->config ? x->config : "the defaults",
               x->times.n && *what[x->what] ? "  " : "",
               x->times.n ? what[x->what] : "", x->why ? ": " : "", x->why ? x->why : "");
    }
}

/* ---------------------------------------------------------------- the file */

/* How much of a line says what was tuned: up to the configuration. */
static size_t
subject(const char *line)
{
    const char *p = line;
    for (int bars = 0; *p && *p != '\n'; p++)
        if (*p == '|' && ++bars == 5)
            break;
    return (size_t)(p - line);
}

/* The new line in the place of the one that it replaces, or at the end. */
static int
write_winner(Cli *c, const char *path, const char *line)
{
    Buf b;
    const char *old =
        strcmp(path, "-") == 0 || access(path, F_OK) != 0 ? "" : read_file_text(c, path);
    if (!old)
        return EXIT_INPUT;
    buf_init(&b, &c->arena);
    if (!*old && strcmp(path, "-") != 0)
        buf_str(&b, "# kernel | device | target | types | key | configuration | time\n");
    bool put = false;
    while (*old) {
        size_t n = strcspn(old, "\n"), same = subject(old);
        if (same == subject(line) && memcmp(old, line, same) == 0) {
            if (!put)
                buf_printf(&b, "%s\n", line);
            put = true;
        } else {
            buf_add(&b, old, n);
            buf_str(&b, "\n");
        }
        old += n + (old[n] == '\n');
    }
    if (!put)
        buf_printf(&b, "%s\n", line);
    return write_file(c, path, b.s, b.n);
}

/* ---------------------------------------------------------------- */

/* Bytes of the array that begins here. */
static size_t
size_at(const Run *r, const void *at)
{
    for (int k = 0; k < r->narg && at; k++)
        if (r->args[k].array.data && r->args[k].value.v.ptr == at)
            return r->args[k].array.bytes;
    return 0;
}

static size_t
size_of_value(const Run *r, const SdcArg *a)
{
    const SdcDesc *d = a->kind == SDC_ARG_DESC ? a->v.ptr : NULL;
    return d ? size_at(r, d->base) : a->kind == SDC_ARG_PTR ? size_at(r, a->v.ptr) : 0;
}

/* Bytes behind the pointers and descriptors of the launch. */
static size_t *
sizes(Run *r)
{
    size_t *bytes = arena_array(&r->c->arena, size_t, r->nvalue + 1);
    for (int i = 0; i < r->nvalue; i++)
        bytes[i] = size_of_value(r, &r->values[i]);
    return bytes;
}

static void
add_items(const Run *r, const SdcArg *a, size_t **to)
{
    const SdcArg *item = a->v.ptr;
    for (int i = 0; i < a->dtype; i++)
        if (item[i].kind == SDC_ARG_TUPLE)
            add_items(r, &item[i], to);
        else
            *(*to)++ = size_of_value(r, &item[i]);
}

/* The same of the elements of tuples. */
static size_t *
item_sizes(Run *r)
{
    size_t *bytes =
        arena_array(&r->c->arena, size_t, r->nvalue * SPEC_MAX_ITEMS + 1), *to = bytes;
    for (int i = 0; i < r->nvalue; i++)
        if (r->values[i].kind == SDC_ARG_TUPLE)
            add_items(r, &r->values[i], &to);
    return bytes;
}

static int
tune(Run *r)
{
    Cli *c = r->c;
    int status = run_collect(r);
    if (status == EXIT_FINE && r->on_gpu)
        status = run_upload(r);
    if (status != EXIT_FINE)
        return status;
    if (!c->opt[O_grid].text)
        return cli_error(c, EXIT_USAGE, "the grid is missing: -g X[,Y[,Z]]");
    SdcTuneOptions o = {
        .kernel = r->kernel,
        .grid = c->opt[O_grid].text,
        .args = r->values,
        .nargs = r->nvalue,
        .bytes = sizes(r),
        .item_bytes = item_sizes(r),
        .search = c->opt[O_search].given,
        .budget = (double)c->opt[O_budget].number,
        .progress = show_progress,
    };
    o.bind = bindings(c, &o.nbind);
    SdcTuning *t;
    struct sigaction act = {.sa_handler = on_interrupt, .sa_flags = SA_RESETHAND}, old;
    sigaction(SIGINT, &act, &old); /* the second one ends the program as usual */
    double start = seconds_now();
    SdcStatus got = sdc_tune(r->mod, &o, &t);
    double seconds = seconds_now() - start;
    sigaction(SIGINT, &old, NULL);
    if (isatty(STDERR_FILENO))
        fputs("\r\033[K", stderr);
    status = report_status(c, r->cx, got);
    if (status != EXIT_FINE)
        return status;
    fputs(sdc_tuning_warnings(t), stderr);
    print_table(t);
    printf("%.2f s\n", seconds);
    if (c->opt[O_time_report].given)
        fputs(sdc_tuning_times(t), stderr);
    const char *path = c->opt[O_output].text;
    if (!path)
        path =
            strcmp(c->file, "-") == 0 ? "-" : arena_printf(&c->arena, "%s.tune", c->file);
    status = write_winner(c, path, sdc_tuning_line(t));
    sdc_tuning_destroy(t);
    return status;
}

int
cmd_tune(Cli *c)
{
    Run r = {.c = c};
    int status = run_start(&r);
    if (status == EXIT_FINE)
        status = tune(&r);
    run_free_arrays(&r);
    sdc_context_destroy(r.cx);
    return status;
}
