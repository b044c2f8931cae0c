/* sdc bench: times of a kernel over a sweep of one argument, beside what the machine can
   do. */
#include "runtime/cli/bench.h"

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

/* What is measured beside the kernel. */
typedef struct Versus {
    Cublas *cublas;
    TritonJob *triton;
    const char *before; /* text of an earlier --json */
} Versus;

/* Every array once, and those that are written once more when they are read, too: that
   cannot be known, so once. */
static int
one_row(Run *r, const Versus *vs, BenchRow *row)
{
    SdcMeasureOptions o = {
        .seconds = 0.25, .warm = r->c->opt[O_warm].given, .graph = r->on_gpu};
    r->nvalue = 0;
    int status = run_collect(r);
    if (status == EXIT_FINE && r->on_gpu)
        status = run_upload(r);
    if (status == EXIT_FINE)
        status = run_specialize(r);
    if (status == EXIT_FINE)
        status = run_grid(r);
    if (status == EXIT_FINE)
        status = amount(r, O_bytes, run_bytes(r), &row->bytes);
    if (status == EXIT_FINE)
        status = amount(r, O_flops, 0, &row->flops);
    if (status == EXIT_FINE)
        status = report_status(r->c, r->cx,
                               sdc_measure(r->cx, run_launch, r, &o, &row->times));
    o.graph = 0;
    if (status == EXIT_FINE && vs->cublas)
        status = cublas_measure(vs->cublas, r, &o, &row->vs);
    if (status == EXIT_FINE && vs->triton)
        status = triton_add(vs->triton, r, row->value);
    run_free_arrays(r);
    return status;
}

/* The argument of the sweep, in the place of what -a says of it. */
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

static int
write_files(Cli *c, Bench *b)
{
    int status = EXIT_FINE;
    const char *json = c->opt[O_json].text, *svg = c->opt[O_svg].text;
    Buf text;
    buf_init(&text, &c->arena);
    if (json) {
        bench_json(&text, b);
        status = write_file(c, json, text.s, text.n);
    }
    buf_init(&text, &c->arena);
    if (svg && status == EXIT_FINE) {
        bench_svg(&text, b);
        status = write_file(c, svg, text.s, text.n);
    }
    return status;
}

static int
open_baseline(Run *r, Versus *vs)
{
    Cli *c = r->c;
    const char *base = c->opt[O_vs].text;
    bool cublas = base && strcmp(base, "cublas") == 0;
    bool triton = base && strcmp(base, "triton") == 0;
    if ((cublas || triton) && !r->on_gpu)
        return cli_error(c, EXIT_USAGE, "--vs %s needs --target cuda", base);
    if (cublas && c->opt[O_device].number)
        return cli_error(c, EXIT_USAGE, "--vs cublas is measured on device 0 only");
    if (cublas)
        return cublas_open(c, &vs->cublas);
    if (triton)
        vs->triton = triton_job(c);
    else if (base && !(vs->before = read_file_text(c, base)))
        return EXIT_INPUT;
    return EXIT_FINE;
}

static int
bench(Run *r)
{
    Cli *c = r->c;
    const char *sweep = c->opt[O_sweep].text;
    int64_t value[MAX_SWEEP] = {0};
    int n = sweep ? read_sweep(c, sweep, value) : 1, status = EXIT_FINE;
    if (n < 0)
        return EXIT_USAGE;
    size_t len = sweep ? strcspn(sweep, "=") : 0;
    Bench b = {.kernel = r->kernel,
               .device = r->on_gpu ? r->device.name : "the CPU",
               .sweep = sweep ? arena_strndup(&c->arena, sweep, len) : NULL,
               .row = arena_array(&c->arena, BenchRow, n + 1)};
    Versus vs = {0};
    b.baseline = c->opt[O_vs].text;
    status = open_baseline(r, &vs);
    if (status != EXIT_FINE)
        return status;
    Progress *p = progress_start("measuring");
    SdcStatus got = roof_measure(r->cx, r->on_gpu ? &r->device : NULL, &b.roof);
    if (got != SDC_OK)
        status = report_status(c, r->cx, got);
    for (; b.n < n && status == EXIT_FINE; b.n++) {
        if (sweep)
            set_argument(c, sweep, len, value[b.n]);
        b.row[b.n].value = value[b.n];
        status = one_row(r, &vs, &b.row[b.n]);
    }
    if (status == EXIT_FINE && vs.triton)
        status = triton_measure(vs.triton, r, &vs.before);
    triton_done(vs.triton);
    progress_stop(p);
    if (status != EXIT_FINE)
        return status;
    if (vs.before)
        bench_baseline(&b, vs.before);
    bench_table(stdout, &b);
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
