/* What sdc bench tells: rows of a table as they come, behind them the roofline, the sum
   of the verdicts and what to think of the machine; and a file of values separated by
   commas. */
#include "runtime/cli/bench.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { VS = 27 }; /* columns of a comparison */

/* 8 in 10 launches within so much of the median are a quiet machine. */
static const double noisy = 0.25;

/* A kernel that is so much faster than the references is looked at again. */
static const double passed = 1.5;

static const char *const verdict_name[] = {
    [SDC_SAME] = "same", [SDC_BETTER] = "better", [SDC_WORSE] = "worse"};

static bool
has_flops(const Bench *b)
{
    return b->c->opt[O_flops].given;
}

static const char *
base_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

/* Of the column of values. */
static int
width(const Bench *b)
{
    int n = b->sweep ? (int)strlen(b->sweep) : 0;
    return n > 12 ? n : 12;
}

void
table_head(const Bench *b)
{
    printf("%s on %s, caches %s\n", b->kernel, b->device, b->warm ? "warm" : "cold");
    printf("%*s %11s %23s%s %9s%s %6s", width(b), b->sweep ? b->sweep : "", "median us",
           "19 of 20 times", b->gpu ? "    graph us" : "", "GB/s",
           has_flops(b) ? "   TFLOP/s" : "", "roof");
    for (int i = 1; i < b->nseries; i++)
        printf("  vs %-*.*s", i + 1 < b->nseries ? VS - 3 : 0, VS - 3,
               base_name(b->series[i].name));
    putchar('\n');
    fflush(stdout);
}

static void
put_comparison(const BenchPoint *p, bool last)
{
    char text[64];
    if (!(p->times.median > 0))
        snprintf(text, sizeof text, "-");
    else if (p->same_code)
        snprintf(text, sizeof text, "same code");
    else
        snprintf(text, sizeof text, "%.3fx %.2f..%.2f %s", p->ratio, p->low, p->high,
                 verdict_name[p->verdict]);
    printf("  %-*s", last ? 0 : VS, text);
}

/* The configuration stands where it is another one than in the row before. */
void
table_row(const Bench *b, int row)
{
    const BenchRow *r = &b->row[row];
    const BenchPoint *p = &b->series[0].at[row];
    char value[24] = "";
    if (*p->config && (row == 0 || strcmp(p->config, p[-1].config) != 0))
        printf("%*s %s\n", width(b), "", p->config);
    if (b->sweep)
        snprintf(value, sizeof value, "%lld", (long long)r->value);
    printf("%*s %11.3f %10.3f ..%10.3f ", width(b), value, p->times.median * 1e6,
           p->times.low * 1e6, p->times.high * 1e6);
    if (b->gpu)
        printf("%11.3f ", p->times.graph * 1e6);
    printf("%9.1f", r->bytes / p->times.median * 1e-9);
    if (has_flops(b))
        printf(" %9.3f", r->flops / p->times.median * 1e-12);
    printf(" %5.1f%%", 100 * roof_share(b, row, p));
    for (int i = 1; i < b->nseries; i++)
        put_comparison(&b->series[i].at[row], i + 1 == b->nseries);
    putchar('\n');
    fflush(stdout);
}

static void
sum_up(const Bench *b, const Series *s)
{
    int count[3] = {0}, code = 0, n = 0;
    double logs = 0, lows = 0, highs = 0;
    for (int i = 0; i < b->n; i++) {
        const BenchPoint *p = &s->at[i];
        if (!(p->times.median > 0))
            continue;
        count[p->verdict]++;
        code += p->same_code;
        logs += p->same_code ? 0 : log(p->ratio);
        lows += p->same_code ? 0 : log(p->low);
        highs += p->same_code ? 0 : log(p->high);
        n++;
    }
    if (!n)
        return;
    printf("vs %s: better at %d of %d, worse at %d, the same at %d", base_name(s->name),
           count[SDC_BETTER], n, count[SDC_WORSE], count[SDC_SAME]);
    if (code)
        printf(" (at %d the same code)", code);
    if (n > code)
        printf("; %.3fx (%.2f..%.2f) in the geometric mean", exp(logs / (n - code)),
               exp(lows / (n - code)), exp(highs / (n - code)));
    putchar('\n');
}

static int
by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double
median(double *v, int n)
{
    qsort(v, (size_t)n, sizeof *v, by_value);
    return n ? v[n / 2] : 0;
}

/* How much launches differ, and what can not be seen because of it. */
static void
warn_of_noise(const Bench *b)
{
    double *v = arena_array(&b->c->arena, double, b->n *MAX_SERIES + 1);
    const Machine *m = &b->machine;
    int n = 0;
    for (int i = 0; i < b->n; i++)
        v[n++] = b->series[0].at[i].spread;
    double spread = median(v, n);
    n = 0;
    for (int k = 1; k < b->nseries; k++)
        for (int i = 0; i < b->n && b->series[k].kind != SERIES_FILE; i++)
            if (!b->series[k].at[i].same_code)
                v[n++] = (b->series[k].at[i].high - b->series[k].at[i].low) / 2;
    double floor = median(v, n);
    bool busy = !b->gpu && m->load[0] > 0.5 * m->processors;
    if (spread <= noisy && !busy)
        return;
    Buf text;
    buf_init(&text, &b->c->arena);
    buf_printf(&text, "the machine is noisy: 8 in 10 launches lie %.0f%% apart",
               100 * spread);
    if (m->load[0] >= 0)
        buf_printf(&text, "; load %.1f on %d processors", m->load[0], m->processors);
    if (n && floor < 0.5)
        buf_printf(&text, "; differences below %.0f%% are not seen",
                   ceil(100 * (floor > 0.01 ? floor : 0.01)));
    else if (n)
        buf_str(&text, "; nothing but large differences is seen");
    cli_warning(b->c, "%s", text.s);
}

static void
warn_of_files(const Bench *b)
{
    for (int i = 1; i < b->nseries; i++) {
        const Series *s = &b->series[i];
        if (s->kind != SERIES_FILE)
            continue;
        if (s->other_machine)
            cli_warning(b->c, "%s was measured on %s, caches %s", s->name, s->device,
                        s->caches);
        else
            cli_note(b->c,
                     "%s was measured before; copies and matmuls have changed by %.0f%% "
                     "since. What is measured in the same rounds (--vs FILE.tk, KERNEL, "
                     "NAME=VALUE) shows smaller differences",
                     s->name, 100 * (s->drift - 1));
    }
}

void
table_end(const Bench *b)
{
    const Roof *r = &b->roof;
    printf("roofline, the best of all rounds: %.1f GB/s", r->bytes * 1e-9);
    if (r->flops > 0)
        printf(", %.3f TFLOP/s%s%s%s", r->flops * 1e-12, r->product ? " (" : "",
               r->product ? r->product : "", r->product ? ")" : "");
    putchar('\n');
    for (int i = 1; i < b->nseries; i++)
        sum_up(b, &b->series[i]);
    fflush(stdout);
    if (r->bytes > passed * r->seen_bytes)
        cli_warning(b->c,
                    "the kernel moves %.1f GB/s and copies %.1f: data stays in "
                    "caches, or --bytes counts too much",
                    r->bytes * 1e-9, r->seen_bytes * 1e-9);
    if (r->seen_flops > 0 && r->flops > passed * r->seen_flops)
        cli_warning(b->c,
                    "the kernel computes %.3f TFLOP/s and matmuls of tiles %.3f: "
                    "--flops counts too much, or its types are narrower",
                    r->flops * 1e-12, r->seen_flops * 1e-12);
    warn_of_files(b);
    warn_of_noise(b);
}

/* ---------------------------------------------------------------- commas */

static void
put_field(Buf *to, const char *text)
{
    if (!text[strcspn(text, ",\"\n")]) {
        buf_str(to, text);
        return;
    }
    buf_char(to, '"');
    for (; *text; text++)
        buf_printf(to, *text == '"' ? "\"%c" : "%c", *text);
    buf_char(to, '"');
}

void
bench_csv(Buf *to, const Bench *b)
{
    buf_str(to, "series,configuration,");
    put_field(to, b->sweep ? b->sweep : "value");
    buf_str(to, ",seconds,low,high,min,graph,runs,bytes,flop,roof,ratio,ratio_low,"
                "ratio_high,verdict\n");
    for (int k = 0; k < b->nseries; k++)
        for (int i = 0; i < b->n; i++) {
            const BenchPoint *p = &b->series[k].at[i];
            if (!(p->times.median > 0))
                continue;
            put_field(to, b->series[k].name);
            buf_char(to, ',');
            put_field(to, p->config ? p->config : "");
            buf_printf(to, ",%lld,%.9g,%.9g,%.9g,%.9g,%.9g,%d,%.9g,%.9g,%.4f",
                       (long long)b->row[i].value, p->times.median, p->times.low,
                       p->times.high, p->times.min, p->times.graph, p->times.n,
                       b->row[i].bytes, b->row[i].flops, roof_share(b, i, p));
            if (k)
                buf_printf(to, ",%.6g,%.6g,%.6g,%s\n", p->ratio, p->low, p->high,
                           verdict_name[p->verdict]);
            else
                buf_str(to, ",,,,\n");
        }
}
