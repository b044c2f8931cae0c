/* sdc plot: results of sdc bench as a picture, those of several files side by side. */
#include "runtime/cli/bench.h"
#include "runtime/cli/json.h"
#include "runtime/cli/plot.h"

#include <math.h>
#include <string.h>

typedef struct Picture {
    Cli *c;
    PlotSeries series[PLOT_MOST];
    int n, nlimit;
    const Json *files[PLOT_MOST];
    const char *names[PLOT_MOST];
    int nfile;
    bool flops; /* the rate is of those */
    const char *y;
    const Json *base; /* rows that a speedup is of */
    double unit;      /* of times, in seconds */
    double rate;      /* of rates, in bytes or operations a second */
} Picture;

static const Json *
rows_of(const Json *series)
{
    const Json *rows = json_get(series, "rows");
    return rows ? rows->first : NULL;
}

static int
count(const Json *j)
{
    int n = 0;
    for (; j; j = j->next)
        n++;
    return n;
}

static const Json *
row_of(const Json *rows, double value)
{
    while (rows && json_number(rows, "value", NAN) != value)
        rows = rows->next;
    return rows;
}

/* What a time is in this picture. */
static double
shown(const Picture *p, const Json *row, double seconds)
{
    if (strcmp(p->y, "time") == 0)
        return seconds / p->unit;
    if (strcmp(p->y, "speedup") == 0) {
        const Json *other = row_of(p->base, json_number(row, "value", NAN));
        return seconds / json_number(other, "seconds", NAN);
    }
    return json_number(row, p->flops ? "flop" : "bytes", NAN) / seconds / p->rate;
}

/* same_rounds: a speedup over what was measured in the rounds of the first series. */
static void
add_series(Picture *p, const char *name, const Json *rows, bool same_rounds)
{
    PlotPoint *at = arena_array(&p->c->arena, PlotPoint, count(rows) + 1);
    PlotSeries *s = &p->series[p->n++];
    *s = (PlotSeries){.name = name, .at = at};
    for (; rows; rows = rows->next) {
        PlotPoint *q = &at[s->n++];
        double a = shown(p, rows, json_number(rows, "low", NAN));
        double b = shown(p, rows, json_number(rows, "high", NAN));
        *q = (PlotPoint){.x = json_number(rows, "value", NAN),
                         .y = shown(p, rows, json_number(rows, "seconds", NAN)),
                         .low = fmin(a, b),
                         .high = fmax(a, b)};
        if (!same_rounds || !json_get(rows, "ratio"))
            continue;
        q->y = json_number(rows, "ratio", NAN); /* of the rounds, not of two medians */
        q->low = json_number(rows, "ratio_low", NAN);
        q->high = json_number(rows, "ratio_high", NAN);
    }
}

/* From the first value to the last. */
static void
add_limit(Picture *p, double y, const char *name)
{
    PlotPoint *at = arena_array(&p->c->arena, PlotPoint, 2);
    at[0] = (PlotPoint){INFINITY, y, 1, 0};
    at[1] = (PlotPoint){-INFINITY, y, 1, 0};
    for (int i = 0; i < p->n; i++)
        for (int k = 0; k < p->series[i].n; k++) {
            at[0].x = fmin(at[0].x, p->series[i].at[k].x);
            at[1].x = fmax(at[1].x, p->series[i].at[k].x);
        }
    if (p->n < PLOT_MOST && at[0].x <= at[1].x)
        p->series[p->n++] = (PlotSeries){.name = name, .at = at, .n = 2, .limit = true};
}

static const char *
rate_name(const Picture *p)
{
    return !p->flops ? "GB/s" : p->rate < 1e12 ? "GFLOP/s" : "TFLOP/s";
}

/* Of the files' rooflines the highest. */
static void
add_roof(Picture *p)
{
    double roof = 0;
    for (int i = 0; i < p->nfile; i++)
        roof = fmax(roof, json_number(json_get(p->files[i], "roofline"),
                                      p->flops ? "flop_per_s" : "bytes_per_s", 0));
    roof /= p->rate;
    if (roof > 0)
        add_limit(p, roof,
                  arena_printf(&p->c->arena, "roofline %.4g %s", roof, rate_name(p)));
}

/* Other systems by their own names. */
static const char *
system_name(const char *name)
{
    return strcmp(name, "cublas") == 0   ? "cuBLAS"
           : strcmp(name, "triton") == 0 ? "Triton"
                                         : NULL;
}

/* Is the first series measured beside other systems? It is sdc, then: whose the kernel
   is, is the title. */
static bool
beside_others(const Json *first)
{
    for (const Json *s = first->next; s; s = s->next)
        if (system_name(json_text(s, "name", "")))
            return true;
    return false;
}

/* The file's name in front where there are several. */
static const char *
series_name(const Picture *p, int file, const Json *series)
{
    const Json *first = json_get(p->files[file], "series")->first;
    const char *name = json_text(series, "name", "?");
    const char *slash = strrchr(name, '/');
    name = slash ? slash + 1 : name;
    name = series == first && beside_others(first) ? "sdc"
           : system_name(name)                     ? system_name(name)
                                                   : name;
    const char *config = json_text(rows_of(series), "config", "");
    bool configs = false;
    for (const Json *s = first->next; s; s = s->next)
        configs |= strchr(json_text(s, "name", ""), '=') != NULL;
    if (configs && series == first && strlen(config) < 40)
        name = arena_printf(&p->c->arena, "%s %s", name, config);
    if (p->nfile == 1)
        return name;
    const char *path = p->names[file], *base = strrchr(path, '/');
    base = base ? base + 1 : path;
    return count(json_get(p->files[file], "series")->first) == 1
               ? arena_printf(&p->c->arena, "%.*s", (int)strcspn(base, "."), base)
               : arena_printf(&p->c->arena, "%.*s: %s", (int)strcspn(base, "."), base,
                              name);
}

static void
add_all(Picture *p)
{
    double most = 0, fastest = 0;
    bool speedup = strcmp(p->y, "speedup") == 0, skip = speedup;
    for (int i = 0; i < p->nfile; i++)
        for (const Json *s = json_get(p->files[i], "series")->first; s; s = s->next)
            for (const Json *row = rows_of(s); row; row = row->next) {
                p->flops |= json_number(row, "flop", 0) > 0;
                most = fmax(most, json_number(row, "seconds", NAN));
                fastest = fmax(fastest, json_number(row, "flop", 0) /
                                            json_number(row, "seconds", NAN));
            }
    p->unit = most >= 1e-3 ? 1e-3 : 1e-6;
    p->rate = p->flops && fastest >= 1e12 ? 1e12 : 1e9;
    p->base = rows_of(json_get(p->files[0], "series")->first);
    for (int i = 0; i < p->nfile; i++)
        for (const Json *s = json_get(p->files[i], "series")->first; s; s = s->next) {
            const char *name = series_name(p, i, s);
            if (speedup)
                name = arena_printf(&p->c->arena, "over %s", name);
            if (!skip && p->n < PLOT_MOST)
                add_series(p, name, rows_of(s), speedup && i == 0);
            skip = false;
        }
    if (strcmp(p->y, "rate") == 0)
        add_roof(p);
    if (speedup)
        add_limit(p, 1, "as fast");
}

static const char *
y_name(const Picture *p)
{
    const char *first = json_text(json_get(p->files[0], "series")->first, "name", "?");
    if (strcmp(p->y, "time") == 0)
        return p->unit > 1e-4 ? "time, ms" : "time, \302\265s";
    if (strcmp(p->y, "speedup") == 0)
        return arena_printf(&p->c->arena, "speedup of %s", first);
    return rate_name(p);
}

int
plot_files(Cli *c, const char *const *names, const char *const *texts, int n,
           const char *path)
{
    const char *scale = c->opt[O_scale].text, *y = c->opt[O_y].text;
    Picture p = {.c = c, .y = y ? y : "rate"};
    scale = scale ? scale : "log-linear";
    if (n > PLOT_MOST)
        return cli_error(c, EXIT_USAGE, "%d files, at most %d", n, PLOT_MOST);
    for (int i = 0; i < n; i++) {
        const Json *j = json_read(&c->arena, texts[i]), *s = json_get(j, "series");
        if (!s || !s->first)
            return cli_error(c, EXIT_INPUT,
                             "'%s' is no file that 'sdc bench --json' wrote", names[i]);
        p.files[p.nfile] = j;
        p.names[p.nfile++] = names[i];
    }
    add_all(&p);
    const Json *first = p.files[0];
    const char *kernel = json_text(first, "kernel", ""), *title = c->opt[O_title].text;
    const char *names_of_x = json_text(first, "sweep", "");
    Buf x;
    buf_init(&x, &c->arena);
    buf_str(&x, "");
    for (; *names_of_x; names_of_x++)
        buf_printf(&x, *names_of_x == ',' ? " = " : "%c", *names_of_x);
    Plot plot = {.title = title ? title : kernel,
                 .subtitle = arena_printf(
                     &c->arena, "%s, caches %s, %.10s", json_text(first, "device", ""),
                     json_text(first, "caches", "cold"), json_text(first, "date", "")),
                 .x = x.s,
                 .y = y_name(&p),
                 .log_x = strncmp(scale, "log", 3) == 0,
                 .log_y = strcmp(scale, "log-log") == 0,
                 .series = p.series,
                 .n = p.n};
    Buf b;
    buf_init(&b, &c->arena);
    plot_svg(&b, &plot);
    return write_file(c, path, b.s, b.n);
}

int
cmd_plot(Cli *c)
{
    int n = c->files.n;
    const char **texts = arena_array(&c->arena, const char *, n + 1);
    for (int i = 0; i < n; i++)
        if (!(texts[i] = read_file_text(c, c->files.at[i])))
            return EXIT_INPUT;
    const char *path = c->opt[O_output].text;
    return plot_files(c, c->files.at, texts, n, path ? path : "-");
}
