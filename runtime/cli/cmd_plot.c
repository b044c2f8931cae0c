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
    return json_number(row, p->flops ? "flop" : "bytes", NAN) / seconds *
           (p->flops ? 1e-12 : 1e-9);
}

static void
add_series(Picture *p, const char *name, const Json *rows)
{
    PlotPoint *at = arena_array(&p->c->arena, PlotPoint, count(rows) + 1);
    PlotSeries *s = &p->series[p->n++];
    *s = (PlotSeries){.name = name, .at = at};
    for (; rows; rows = rows->next) {
        double a = shown(p, rows, json_number(rows, "low", NAN));
        double b = shown(p, rows, json_number(rows, "high", NAN));
        at[s->n++] = (PlotPoint){.x = json_number(rows, "value", NAN),
                                 .y = shown(p, rows, json_number(rows, "seconds", NAN)),
                                 .low = fmin(a, b),
                                 .high = fmax(a, b)};
    }
}

/* Of the files' rooflines the highest, from the first value to the last. */
static void
add_roof(Picture *p)
{
    double roof = 0;
    PlotPoint *at = arena_array(&p->c->arena, PlotPoint, 2);
    PlotPoint first = {INFINITY, 0, 1, 0}, last = {-INFINITY, 0, 1, 0};
    for (int i = 0; i < p->nfile; i++)
        roof = fmax(roof, json_number(json_get(p->files[i], "roofline"),
                                      p->flops ? "flop_per_s" : "bytes_per_s", 0));
    for (int i = 0; i < p->n; i++)
        for (int k = 0; k < p->series[i].n; k++) {
            first.x = fmin(first.x, p->series[i].at[k].x);
            last.x = fmax(last.x, p->series[i].at[k].x);
        }
    if (!(roof > 0) || p->n == PLOT_MOST || !(first.x <= last.x))
        return;
    first.y = last.y = roof * (p->flops ? 1e-12 : 1e-9);
    at[0] = first, at[1] = last;
    const char *name = arena_printf(&p->c->arena, "roofline %.4g %s", first.y,
                                    p->flops ? "TFLOP/s" : "GB/s");
    p->series[p->n++] = (PlotSeries){.name = name, .at = at, .n = 2, .limit = true};
}

/* The file's name in front where there are several. */
static const char *
series_name(const Picture *p, int file, const Json *series)
{
    const char *name = json_text(series, "name", "?");
    const char *slash = strrchr(name, '/');
    name = slash ? slash + 1 : name;
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
    double least = INFINITY;
    bool skip = strcmp(p->y, "speedup") == 0;
    for (int i = 0; i < p->nfile; i++)
        for (const Json *s = json_get(p->files[i], "series")->first; s; s = s->next)
            for (const Json *row = rows_of(s); row; row = row->next) {
                p->flops |= json_number(row, "flop", 0) > 0;
                least = fmin(least, json_number(row, "seconds", NAN));
            }
    p->unit = least >= 1e-3 ? 1e-3 : 1e-6;
    p->base = rows_of(json_get(p->files[0], "series")->first);
    for (int i = 0; i < p->nfile; i++)
        for (const Json *s = json_get(p->files[i], "series")->first; s; s = s->next) {
            if (!skip && p->n < PLOT_MOST)
                add_series(p, series_name(p, i, s), rows_of(s));
            skip = false;
        }
    if (strcmp(p->y, "rate") == 0)
        add_roof(p);
}

static const char *
y_name(const Picture *p)
{
    const char *first = json_text(json_get(p->files[0], "series")->first, "name", "?");
    if (strcmp(p->y, "time") == 0)
        return p->unit > 1e-4 ? "ms" : "us";
    if (strcmp(p->y, "speedup") == 0)
        return arena_printf(&p->c->arena, "speed of %s over", first);
    return p->flops ? "TFLOP/s" : "GB/s";
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
    const char *sweep = json_text(first, "sweep", "");
    Plot plot = {.title = title ? title : kernel,
                 .subtitle = arena_printf(
                     &c->arena, "%s, caches %s, %.10s", json_text(first, "device", ""),
                     json_text(first, "caches", "cold"), json_text(first, "date", "")),
                 .x = sweep,
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
