/* What sdc bench found: a table, JSON, a plot. The JSON has a row a line, so that a later
   run can compare with it by reading lines. */
#include "runtime/cli/bench.h"

#include <math.h>
#include <string.h>

void
bench_table(FILE *to, const Bench *b)
{
    bool flops = false, graph = false, vs = false;
    for (int i = 0; i < b->n; i++) {
        flops |= b->row[i].flops > 0;
        graph |= b->row[i].times.graph > 0;
        vs |= b->row[i].vs > 0;
    }
    fprintf(to, "%s on %s; roofline measured here: %.1f GB/s, %.2f TFLOP/s (%s)\n",
            b->kernel, b->device, b->roof.bytes * 1e-9, b->roof.flops * 1e-12,
            b->roof.product ? b->roof.product : "");
    fprintf(to, "%12s %11s %23s%s %9s%s %6s%s\n", b->sweep ? b->sweep : "", "median us",
            "19 of 20 times", graph ? "    graph us" : "", "GB/s",
            flops ? "   TFLOP/s" : "", "roof",
            !vs                                  ? ""
            : strcmp(b->baseline, "cublas") == 0 ? "  vs cublas"
            : strcmp(b->baseline, "triton") == 0 ? "  vs triton"
                                                 : "  vs base");
    for (int i = 0; i < b->n; i++) {
        const BenchRow *r = &b->row[i];
        char value[24] = "";
        if (b->sweep)
            snprintf(value, sizeof value, "%lld", (long long)r->value);
        fprintf(to, "%12s %11.3f %10.3f ..%10.3f ", value, r->times.median * 1e6,
                r->times.low * 1e6, r->times.high * 1e6);
        if (graph)
            fprintf(to, "%11.3f ", r->times.graph * 1e6);
        fprintf(to, "%9.1f", r->bytes / r->times.median * 1e-9);
        if (flops)
            fprintf(to, " %9.3f", r->flops / r->times.median * 1e-12);
        fprintf(to, " %5.1f%%", 100 * roof_share(&b->roof, r));
        if (r->vs > 0)
            fprintf(to, " %8.3fx", r->vs / r->times.median);
        fputc('\n', to);
    }
}

void
bench_json(Buf *to, const Bench *b)
{
    buf_printf(to, "{\n\"kernel\": \"%s\",\n\"device\": \"%s\",\n\"sweep\": \"%s\",\n",
               b->kernel, b->device, b->sweep ? b->sweep : "");
    buf_printf(to, "\"roofline\": {\"bytes_per_s\": %.6g, \"flop_per_s\": %.6g},\n",
               b->roof.bytes, b->roof.flops);
    buf_str(to, "\"rows\": [\n");
    for (int i = 0; i < b->n; i++) {
        const BenchRow *r = &b->row[i];
        buf_printf(to,
                   "{\"value\": %lld, \"seconds\": %.9g, \"low\": %.9g, \"high\": %.9g, "
                   "\"graph\": %.9g, \"runs\": %d, \"bytes\": %.9g, \"flop\": %.9g, "
                   "\"roof\": %.4f, \"vs\": %.9g}%s\n",
                   (long long)r->value, r->times.median, r->times.low, r->times.high,
                   r->times.graph, r->times.n, r->bytes, r->flops,
                   roof_share(&b->roof, r), r->vs, i + 1 < b->n ? "," : "");
    }
    buf_str(to, "]\n}\n");
}

void
bench_baseline(Bench *b, const char *json)
{
    for (const char *p = json; p && *p; p = strchr(p, '\n')) {
        long long value;
        double seconds;
        p += *p == '\n';
        if (sscanf(p, "{\"value\": %lld, \"seconds\": %lg", &value, &seconds) != 2)
            continue;
        for (int i = 0; i < b->n; i++)
            if (b->row[i].value == value)
                b->row[i].vs = seconds;
    }
}

/* ---------------------------------------------------------------- plot */

enum { WIDTH = 640, HEIGHT = 400, LEFT = 70, RIGHT = 20, TOP = 40, BOTTOM = 50 };

typedef struct Plot {
    Buf *to;
    double x0, x1, y0, y1; /* logarithms of the ends */
} Plot;

static double
at_x(const Plot *p, double v)
{
    double span = p->x1 > p->x0 ? p->x1 - p->x0 : 1;
    return LEFT + (WIDTH - LEFT - RIGHT) * (log10(v) - p->x0) / span;
}

static double
at_y(const Plot *p, double v)
{
    double span = p->y1 > p->y0 ? p->y1 - p->y0 : 1;
    return HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * (log10(v) - p->y0) / span;
}

/* Rate of a row: TFLOP/s when flops are known, else GB/s. */
static double
rate(const BenchRow *r, double seconds)
{
    return r->flops > 0 ? r->flops / seconds * 1e-12 : r->bytes / seconds * 1e-9;
}

static void
line(Plot *p, const Bench *b, bool base, const char *color)
{
    buf_printf(p->to,
               "<polyline fill=\"none\" stroke=\"%s\" stroke-width=\"2\" points=\"",
               color);
    for (int i = 0; i < b->n; i++) {
        const BenchRow *r = &b->row[i];
        double t = base ? r->vs : r->times.median;
        if (t > 0)
            buf_printf(p->to, "%.1f,%.1f ",
                       at_x(p, (double)(r->value > 0 ? r->value : 1)),
                       at_y(p, rate(r, t)));
    }
    buf_str(p->to, "\"/>\n");
}

static void
axes(Plot *p, const char *x, const char *y)
{
    for (double e = ceil(p->y0); e <= p->y1; e++)
        buf_printf(p->to,
                   "<line x1=\"%d\" x2=\"%d\" y1=\"%.1f\" y2=\"%.1f\" stroke=\"#ddd\"/>"
                   "<text x=\"%d\" y=\"%.1f\" text-anchor=\"end\">%g</text>\n",
                   LEFT, WIDTH - RIGHT, at_y(p, pow(10, e)), at_y(p, pow(10, e)),
                   LEFT - 6, at_y(p, pow(10, e)) + 4, pow(10, e));
    for (double e = ceil(p->x0); e <= p->x1; e++)
        buf_printf(p->to, "<text x=\"%.1f\" y=\"%d\" text-anchor=\"middle\">%g</text>\n",
                   at_x(p, pow(10, e)), HEIGHT - BOTTOM + 18, pow(10, e));
    buf_printf(p->to,
               "<text x=\"%d\" y=\"%d\" text-anchor=\"middle\">%s</text>\n"
               "<text x=\"12\" y=\"%d\" transform=\"rotate(-90 12 %d)\" "
               "text-anchor=\"middle\">%s</text>\n",
               (LEFT + WIDTH - RIGHT) / 2, HEIGHT - 10, x, HEIGHT / 2, HEIGHT / 2, y);
}

void
bench_svg(Buf *to, const Bench *b)
{
    Plot p = {to, 1e300, -1e300, 1e300, -1e300};
    bool flops = b->n && b->row[0].flops > 0, vs = false;
    double roof = flops ? b->roof.flops * 1e-12 : b->roof.bytes * 1e-9;
    for (int i = 0; i < b->n; i++) {
        const BenchRow *r = &b->row[i];
        double x = log10((double)(r->value > 0 ? r->value : 1));
        double y = log10(rate(r, r->times.median));
        p.x0 = fmin(p.x0, x), p.x1 = fmax(p.x1, x);
        p.y0 = fmin(p.y0, y), p.y1 = fmax(p.y1, y);
        vs |= r->vs > 0;
    }
    if (roof > 0)
        p.y1 = fmax(p.y1, log10(roof));
    p.y0 -= 0.1, p.y1 += 0.1;
    buf_printf(to,
               "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%d\" "
               "font-family=\"sans-serif\" font-size=\"12\">\n"
               "<rect width=\"100%%\" height=\"100%%\" fill=\"white\"/>\n"
               "<text x=\"%d\" y=\"22\" font-size=\"14\">%s on %s</text>\n",
               WIDTH, HEIGHT, LEFT, b->kernel, b->device);
    axes(&p, b->sweep ? b->sweep : "", flops ? "TFLOP/s" : "GB/s");
    if (roof > 0)
        buf_printf(to,
                   "<line x1=\"%d\" x2=\"%d\" y1=\"%.1f\" y2=\"%.1f\" stroke=\"#888\" "
                   "stroke-dasharray=\"6 4\"/>\n",
                   LEFT, WIDTH - RIGHT, at_y(&p, roof), at_y(&p, roof));
    line(&p, b, false, "#1f77b4");
    if (vs)
        line(&p, b, true, "#ff7f0e");
    buf_str(to, "</svg>\n");
}
