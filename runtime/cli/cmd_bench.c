/* sdc bench: times of a kernel over a sweep of one argument, beside others that are
   measured in the same rounds and beside what the machine can do. */
#include "runtime/cli/bench.h"

#include "runtime/rt/cuda.h"

#include <stdlib.h>
#include <string.h>

enum { MAX_SWEEP = 256 };

/* "n=1024,2048" or "n=1024..1048576*2" as values; how many, or -1. */
static int
read_sweep(Cli *c, const char *text, int64_t *out)
{
    Expr e = {0};
    const char *p = text + strcspn(text, "=");
    const char *dots = strstr(p, "..");
    if (!*p++) {
        cli_error(c, EXIT_USAGE, "--sweep is NAME=A,B,... or NAME=FIRST..LAST*FACTOR");
        return -1;
    }
    int n = 0;
    if (dots) {
        char *end;
        long long first = strtoll(p, &end, 10), last, factor = 2;
        bool ok = end == dots && first > 0;
        last = strtoll(dots + 2, &end, 10);
        if (*end == '*')
            factor = strtoll(end + 1, &end, 10);
        if (!ok || *end || factor < 2 || last < first) {
            cli_error(c, EXIT_USAGE, "--sweep '%s': FIRST..LAST*FACTOR", text);
            return -1;
        }
        for (long long v = first; v <= last && n < MAX_SWEEP; v *= factor)
            out[n++] = v;
        return n;
    }
    n = expr_list(&e, p, strlen(p), out, 16);
    if (n < 0)
        cli_error(c, EXIT_USAGE, "--sweep: %s", e.error);
    return n;
}

/* What a launch moves or computes: the expression, or `otherwise`. */
static int
amount(Run *r, OptionId option, double otherwise, double *out)
{
    const char *text = r->c->opt[option].text;
    Expr e = {.lookup = run_lookup, .user = r};
    int64_t v;
    *out = otherwise;
    if (!text)
        return EXIT_FINE;
    if (expr_list(&e, text, strlen(text), &v, 1) != 1)
        return cli_error(r->c, EXIT_INPUT, "--%s: %s", option_info[option].name, e.error);
    *out = (double)v;
    return EXIT_FINE;
}

/* ---------------------------------------------------------------- a row */

static void
take_times(BenchPoint *p, const SdcMeasured *m)
{
    p->times = m->times;
    p->spread = m->spread;
    p->ratio = m->ratio;
    p->low = m->ratio_low;
    p->high = m->ratio_high;
    p->verdict = m->verdict;
}

/* What was measured before is not of the same rounds: an interval of two intervals, and
   as much again as the machine has changed since, by its copies and products, 5 % at the
   least. The same code on the same machine is the same whatever the times are. */
static void
compare_file(const Bench *b, Series *s, int row)
{
    enum { KINDS = 2 };
    const double least = 1.05;
    const double then[KINDS] = {s->copies, s->products};
    const double now[KINDS] = {b->roof.seen_bytes, b->roof.seen_flops};
    const SdcTimes *t = &b->series[0].at[row].times;
    BenchPoint *p = &s->at[row];
    if (!(p->times.median > 0))
        return;
    s->drift = 1;
    for (int i = 0; i < KINDS; i++)
        if (then[i] > 0 && now[i] > 0) {
            double d = then[i] > now[i] ? then[i] / now[i] : now[i] / then[i];
            s->drift = d > s->drift ? d : s->drift;
        }
    double slack = s->drift * least;
    p->ratio = p->times.median / t->median;
    p->low = p->times.low / t->high / slack;
    p->high = p->times.high / t->low * slack;
    p->verdict = p->low > 1 ? SDC_BETTER : p->high < 1 ? SDC_WORSE : SDC_SAME;
    p->same_code = !s->other_machine && p->code && p->code == b->series[0].at[row].code;
    p->verdict = p->same_code ? SDC_SAME : p->verdict;
}

static int
measure_row(Bench *b, RoofWork *roof, int row)
{
    SdcMeasured all[MAX_SERIES + ROOF_MOST];
    Series *of[MAX_SERIES];
    Run *r = b->series[0].run;
    SdcMeasureOptions o = {.seconds = 0.25, .warm = b->warm, .graph = r->on_gpu};
    if (b->c->opt[O_seconds].given)
        o.seconds = (double)b->c->opt[O_seconds].number;
    int n = 0;
    for (int i = 0; i < b->nseries; i++)
        if (!b->series[i].at[row].same_code && series_measured(&b->series[i], &all[n]))
            of[n++] = &b->series[i];
    int nroof = roof_measured(roof, b->row[row].bytes, b->warm, all + n);
    SdcStatus got = sdc_measure_rounds(r->cx, all, n + nroof, &o);
    int status = report_status(b->c, r->cx, got);
    for (int i = 0; i < n && status == EXIT_FINE; i++) {
        take_times(&of[i]->at[row], &all[i]);
        status = series_failed(b, of[i]);
    }
    if (status != EXIT_FINE)
        return status;
    roof_take(roof, b, row, all + n);
    for (int i = 1; i < b->nseries; i++) {
        BenchPoint *p = &b->series[i].at[row];
        if (b->series[i].kind == SERIES_FILE) {
            compare_file(b, &b->series[i], row);
        } else if (p->same_code) {
            take_times(p, &all[0]);
            p->ratio = p->low = p->high = 1;
        }
    }
    return EXIT_FINE;
}

/* Every array once, and those that are written once more when they are read, too: that
   cannot be known, so once. The references are made when there are arrays to look at. */
static int
one_row(Bench *b, RoofWork **roof, int row)
{
    Run *r = b->series[0].run;
    BenchRow *at = &b->row[row];
    r->nvalue = 0;
    int status = run_collect(r);
    if (status == EXIT_FINE && r->on_gpu)
        status = run_upload(r);
    if (status == EXIT_FINE)
        status = series_prepare(b, row);
    if (status == EXIT_FINE)
        status = amount(r, O_bytes, run_bytes(r), &at->bytes);
    if (status == EXIT_FINE)
        status = amount(r, O_flops, 0, &at->flops);
    if (status == EXIT_FINE && !*roof)
        status = report_status(b->c, r->cx, roof_open(b, r, at->flops > 0, roof));
    if (status == EXIT_FINE)
        status = measure_row(b, *roof, row);
    run_free_arrays(r);
    return status;
}

/* An argument of the sweep, in the place of what -a says of it. */
static void
set_argument(Cli *c, const char *name, size_t n, int64_t value)
{
    TextList *list = &c->opt[O_arg].list;
    const char *text =
        arena_printf(&c->arena, "%.*s=%lld", (int)n, name, (long long)value);
    for (int i = 0; i < list->n; i++)
        if (strncmp(list->at[i], text, n + 1) == 0) {
            list->at[i] = text;
            return;
        }
    vec_push(&c->arena, list, text);
}

/* All of "M,N,K" are one value. */
static void
set_arguments(Cli *c, const char *names, int64_t value)
{
    while (*names) {
        size_t n = strcspn(names, ",");
        if (n)
            set_argument(c, names, n, value);
        names += n + (names[n] == ',');
    }
}

/* ---------------------------------------------------------------- the whole */

static int
write_files(Cli *c, const Bench *b)
{
    int status = EXIT_FINE;
    const char *json = c->opt[O_json].text, *svg = c->opt[O_svg].text;
    const char *csv = c->opt[O_csv].text;
    Buf text, commas;
    buf_init(&text, &c->arena);
    bench_json(&text, b);
    if (json)
        status = write_file(c, json, text.s, text.n);
    if (csv && status == EXIT_FINE) {
        buf_init(&commas, &c->arena);
        bench_csv(&commas, b);
        status = write_file(c, csv, commas.s, commas.n);
    }
    if (svg && status == EXIT_FINE) {
        const char *name = "", *one = text.s;
        status = plot_files(c, &name, &one, 1, svg);
    }
    return status;
}

/* As a shell would take it. */
static const char *
command_line(Cli *c)
{
    Buf b;
    buf_init(&b, &c->arena);
    for (int i = 0; i < c->argc; i++) {
        const char *s = i ? c->argv[i] : "sdc";
        bool plain = *s && !s[strspn(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRST"
                                        "UVWXYZ0123456789_@%+=:,./-")];
        buf_str(&b, i ? " " : "");
        if (plain)
            buf_str(&b, s);
        for (const char *p = s; !plain && *p; p++)
            buf_printf(&b, "%s%c%s", p == s ? "'" : "", *p, *p == '\'' ? "\\''" : "");
        buf_str(&b, plain ? "" : *s ? "'" : "''");
    }
    return b.s;
}

static void
describe(Bench *b, Run *r)
{
    Cli *c = b->c;
    machine_look(&c->arena, &b->machine);
    b->command = command_line(c);
    b->threads = sdc_context_threads(r->cx);
    b->device = r->on_gpu ? r->device.name
                          : arena_printf(&c->arena, "%s, %d thread%s", b->machine.cpu,
                                         b->threads, b->threads == 1 ? "" : "s");
}

static int
bench(Run *r)
{
    Cli *c = r->c;
    const char *sweep = c->opt[O_sweep].text;
    int64_t value[MAX_SWEEP] = {0};
    int n = sweep ? read_sweep(c, sweep, value) : 1;
    if (n < 0)
        return EXIT_USAGE;
    size_t len = sweep ? strcspn(sweep, "=") : 0;
    Bench b = {.c = c,
               .kernel = r->kernel,
               .warm = c->opt[O_warm].given,
               .sweep = sweep ? arena_strndup(&c->arena, sweep, len) : NULL,
               .gpu = r->on_gpu ? &r->device : NULL,
               .want = n,
               .row = arena_array(&c->arena, BenchRow, n + 1)};
    RoofWork *roof = NULL;
    for (int i = 0; i < n; i++)
        b.row[i].value = value[i];
    describe(&b, r);
    int status = series_open(&b, r);
    for (; b.n < n && status == EXIT_FINE; b.n += status == EXIT_FINE) {
        if (sweep)
            set_arguments(c, b.sweep, value[b.n]);
        Progress *p = progress_start(
            sweep ? arena_printf(&c->arena, "measuring %s=%lld, %d of %d", b.sweep,
                                 (long long)value[b.n], b.n + 1, n)
                  : "measuring");
        status = one_row(&b, &roof, b.n);
        progress_stop(p);
        if (status == EXIT_FINE && b.n == 0) /* an error stands alone */
            table_head(&b);
        if (status == EXIT_FINE)
            table_row(&b, b.n);
    }
    roof_done(roof);
    series_done(&b);
    if (status != EXIT_FINE)
        return status;
    table_end(&b);
    return write_files(c, &b);
}

int
cmd_bench(Cli *c)
{
    Run r = {.c = c};
    int status = run_start(&r);
    if (status == EXIT_FINE)
        status = bench(&r);
    run_free_arrays(&r);
    sdc_context_destroy(r.cx);
    return status;
}
