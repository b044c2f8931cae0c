/* The picture is laid out in pixels of its own; colours are classes of a style sheet with
   a second set for dark screens, so one file serves both. Series differ by colour and by
   the shape of their points, for those who do not see colours, or print. */
#include "runtime/cli/plot.h"

#include "ir/base/util.h"

#include <math.h>
#include <string.h>

enum { WIDTH = 720, LEFT = 66, RIGHT = 24, TOP = 64, PLOT = 300, BOTTOM = 52 };
enum { LEGEND = 20, LETTER = 7, MOST_TICKS = 40 };

static const char style[] =
    "<style>\n"
    "text{font:12px system-ui,-apple-system,'Segoe UI','DejaVu Sans',sans-serif;"
    "fill:#57606a}\n"
    ".bg{fill:#ffffff}.title{font-size:16px;font-weight:600;fill:#1f2328}\n"
    ".name{fill:#1f2328}.grid{stroke:#d8dee4;stroke-width:1}\n"
    ".axis{stroke:#8c959f;stroke-width:1}\n"
    ".line{fill:none;stroke-width:2;stroke-linejoin:round;stroke-linecap:round}\n"
    ".span{stroke-width:1.5;opacity:.55}.limit{fill:none;stroke:#8c959f;"
    "stroke-width:1.5;stroke-dasharray:6 4}\n"
    ".dot{stroke:#ffffff;stroke-width:1.2}\n"
    ".l0{stroke:#1f6feb}.l1{stroke:#d9480f}.l2{stroke:#0f8a5f}.l3{stroke:#8e44ec}\n"
    ".l4{stroke:#a16207}.l5{stroke:#d6336c}.l6{stroke:#0c8599}.l7{stroke:#495057}\n"
    ".d0{fill:#1f6feb}.d1{fill:#d9480f}.d2{fill:#0f8a5f}.d3{fill:#8e44ec}\n"
    ".d4{fill:#a16207}.d5{fill:#d6336c}.d6{fill:#0c8599}.d7{fill:#495057}\n"
    "@media (prefers-color-scheme: dark){\n"
    "text{fill:#9198a1}.bg{fill:#0d1117}.title{fill:#f0f6fc}.name{fill:#f0f6fc}\n"
    ".grid{stroke:#2a3038}.axis{stroke:#656d76}.limit{stroke:#848d97}\n"
    ".dot{stroke:#0d1117}\n"
    ".l0{stroke:#6cb0ff}.l1{stroke:#ff9b57}.l2{stroke:#4bc48d}.l3{stroke:#c49bff}\n"
    ".l4{stroke:#e6b93f}.l5{stroke:#ff82b0}.l6{stroke:#4fd1e0}.l7{stroke:#c9d1d9}\n"
    ".d0{fill:#6cb0ff}.d1{fill:#ff9b57}.d2{fill:#4bc48d}.d3{fill:#c49bff}\n"
    ".d4{fill:#e6b93f}.d5{fill:#ff82b0}.d6{fill:#4fd1e0}.d7{fill:#c9d1d9}\n"
    "}\n</style>\n";

/* Around 0, 0. */
static const char *const shapes[PLOT_MOST] = {
    "M-4 0A4 4 0 1 0 4 0A4 4 0 1 0 -4 0Z",
    "M-3.6 -3.6H3.6V3.6H-3.6Z",
    "M0 -5L4.8 3.6H-4.8Z",
    "M0 -5L5 0L0 5L-5 0Z",
    "M0 5L4.8 -3.6H-4.8Z",
    "M-5 -1.6H-1.6V-5H1.6V-1.6H5V1.6H1.6V5H-1.6V1.6H-5Z",
    "M-5 0L-2.5 -4.4H2.5L5 0L2.5 4.4H-2.5Z",
    "M-4.4 -2.2L-2.2 -4.4L0 -2.2L2.2 -4.4L4.4 -2.2L2.2 0L4.4 2.2L2.2 4.4L0 2.2L-2.2 4.4"
    "L-4.4 2.2L-2.2 0Z",
};

typedef struct Axis {
    double from, to;  /* of the values, or of their logarithms */
    double low, high; /* pixels */
    bool log;
    double tick[MOST_TICKS];
    int ntick;
} Axis;

typedef struct Frame {
    Buf *to;
    const Plot *p;
    Axis x, y;
    int top, height;
} Frame;

static double
at(const Axis *a, double v)
{
    double u = a->log ? log2(v) : v, span = a->to > a->from ? a->to - a->from : 1;
    return a->low + (a->high - a->low) * (u - a->from) / span;
}

static bool
shown(const Plot *p, const PlotPoint *q)
{
    return isfinite(q->x) && isfinite(q->y) && (!p->log_x || q->x > 0) &&
           (!p->log_y || q->y > 0);
}

static bool
has_span(const Plot *p, const PlotPoint *q)
{
    return q->low <= q->high && isfinite(q->low) && isfinite(q->high) &&
           (q->low > 0 || !p->log_y);
}

static void
text_of(Buf *to, const char *s)
{
    for (; *s; s++)
        if (*s == '<' || *s == '>' || *s == '&')
            buf_str(to, *s == '<' ? "&lt;" : *s == '>' ? "&gt;" : "&amp;");
        else
            buf_char(to, *s);
}

/* ---------------------------------------------------------------- axes */

static void
add_tick(Axis *a, double v)
{
    double u = a->log ? log2(v) : v, slack = 1e-9 * (fabs(a->to) + fabs(a->from) + 1);
    if (a->ntick < MOST_TICKS && u >= a->from - slack && u <= a->to + slack)
        a->tick[a->ntick++] = v;
}

/* 1, 2 or 5 times a power of ten, about `most` of them in the span. */
static double
nice_step(double span, int most)
{
    double raw = span / most, ten = pow(10, floor(log10(raw)));
    return raw <= ten       ? ten
           : raw <= 2 * ten ? 2 * ten
           : raw <= 5 * ten ? 5 * ten
                            : 10 * ten;
}

static void
linear_ticks(Axis *a, int most)
{
    double step = nice_step(a->to - a->from, most);
    double first = ceil(a->from / step - 1e-9);
    for (int i = 0; i < MOST_TICKS; i++)       /* steps may be lost in large values */
        add_tick(a, (first + i) * step + 0.0); /* no -0 */
}

/* Powers of two, every one, second, third ...; where there are few of them, halves too.
 */
static void
log_ticks(Axis *a, int most)
{
    double first = ceil(a->from - 1e-9), last = floor(a->to + 1e-9);
    double every = ceil((last - first + 1) / most);
    for (double e = first; e <= last; e += every > 1 ? every : 1)
        add_tick(a, exp2(e));
    if (a->ntick < 2) {
        a->ntick = 0;
        double step = nice_step(exp2(a->to) - exp2(a->from), 4);
        double start = ceil(exp2(a->from) / step);
        for (int i = 0; i < MOST_TICKS; i++)
            add_tick(a, (start + i) * step);
    }
}

/* 1, 2 and 5 of each power of ten, or where those are many the powers alone. */
static void
decimal_ticks(Axis *a, int most)
{
    static const double part[] = {1, 2, 5};
    double first = floor(a->from * log10(2)), last = ceil(a->to * log10(2));
    int every = last - first > most ? (int)ceil((last - first) / most) : 1;
    int parts = 3 * (last - first) <= 2 * most ? 3 : 1;
    for (double e = first; e <= last; e += every)
        for (int i = 0; i < parts; i++)
            add_tick(a, part[i] * pow(10, e));
}

/* 16384 as 16K where the axis goes on to 128K. */
static void
put_count(Buf *to, const Axis *a, double v)
{
    static const char *const unit[] = {"", "K", "M", "G", "T"};
    int i = 0;
    double left = v;
    bool units = a->ntick && a->tick[a->ntick - 1] >= 1e5;
    for (; units && i < 4 && left >= 1024 && fmod(left, 1024) == 0; i++)
        left /= 1024;
    if (i || left < 1e7)
        buf_printf(to, "%.10g%s", left, unit[i]);
    else
        buf_printf(to, "%.3g", v);
}

/* The next of 1, 2 and 5 times a power of ten, below for -1 and above for 1. */
static double
decimal(double v, int side)
{
    static const double part[] = {1, 2, 5, 10};
    double ten = pow(10, floor(log10(v)));
    int i = side < 0 ? 3 : 0;
    while (i + side >= 0 && i + side < COUNT_OF(part) &&
           (side < 0 ? part[i] * ten > v : part[i] * ten < v))
        i += side;
    return part[i] * ten;
}

/* With some air around the values; from zero where that is a number like others. */
static void
limits(Frame *f)
{
    double lo[2] = {INFINITY, INFINITY}, hi[2] = {-INFINITY, -INFINITY};
    const Plot *p = f->p;
    for (int s = 0; s < p->n; s++)
        for (int i = 0; i < p->series[s].n; i++) {
            const PlotPoint *q = &p->series[s].at[i];
            if (!shown(p, q))
                continue;
            lo[0] = fmin(lo[0], q->x), hi[0] = fmax(hi[0], q->x);
            lo[1] = fmin(lo[1], has_span(p, q) ? fmin(q->low, q->y) : q->y);
            hi[1] = fmax(hi[1], has_span(p, q) ? fmax(q->high, q->y) : q->y);
        }
    for (int k = 0; k < 2; k++)
        if (!(lo[k] <= hi[k]))
            lo[k] = 1, hi[k] = 2;
    f->x.log = p->log_x;
    f->y.log = p->log_y;
    f->x.from = p->log_x ? log2(lo[0]) : lo[0];
    f->x.to = p->log_x ? log2(hi[0]) : hi[0];
    f->y.from = p->log_y ? log2(lo[1]) : 0;
    f->y.to = p->log_y ? log2(hi[1]) : hi[1];
    double air = 0.02 * (f->x.to - f->x.from), above = 0.06 * (f->y.to - f->y.from);
    air = air > 0 ? air : 1;
    f->x.from -= air, f->x.to += air;
    if (p->log_y) { /* from a line of the grid to another */
        f->y.from = log2(decimal(exp2(f->y.from), -1));
        f->y.to = log2(decimal(exp2(f->y.to), 1));
    } else { /* up to one */
        f->y.to += above > 0 ? above : 1;
        double step = nice_step(f->y.to, 6);
        f->y.to = ceil(f->y.to / step - 0.2) * step;
        f->y.to = fmax(f->y.to, hi[1]);
    }
}

static void
draw_axes(Frame *f)
{
    Buf *to = f->to;
    double floor_y = f->top + f->height;
    for (int i = 0; i < f->y.ntick; i++) {
        double y = at(&f->y, f->y.tick[i]);
        buf_printf(to,
                   "<path class=\"%s\" d=\"M%d %.1fH%d\"/>"
                   "<text x=\"%d\" y=\"%.1f\" text-anchor=\"end\">",
                   y > floor_y - 0.5 ? "axis" : "grid", LEFT, y, WIDTH - RIGHT, LEFT - 8,
                   y + 4);
        buf_printf(to, "%.6g</text>\n", f->y.tick[i]);
    }
    buf_printf(to, "<path class=\"axis\" d=\"M%d %.1fH%d\"/>\n", LEFT, floor_y,
               WIDTH - RIGHT);
    for (int i = 0; i < f->x.ntick; i++) {
        double x = at(&f->x, f->x.tick[i]);
        buf_printf(to,
                   "<path class=\"axis\" d=\"M%.1f %.1fv5\"/>"
                   "<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"middle\">",
                   x, floor_y, x, floor_y + 19);
        put_count(to, &f->x, f->x.tick[i]);
        buf_str(to, "</text>\n");
    }
    buf_printf(to, "<text class=\"name\" x=\"%d\" y=\"%.1f\" text-anchor=\"middle\">",
               (LEFT + WIDTH - RIGHT) / 2, floor_y + 40);
    text_of(to, f->p->x);
    double middle = f->top + f->height / 2.0;
    buf_printf(to,
               "</text>\n<text class=\"name\" text-anchor=\"middle\" "
               "transform=\"translate(16 %.1f) rotate(-90)\">",
               middle);
    text_of(to, f->p->y);
    buf_str(to, "</text>\n");
}

/* ---------------------------------------------------------------- series */

/* A limit that a single value has is a line from side to side. */
static void
draw_limit(Frame *f, const PlotSeries *s)
{
    double x0 = f->x.low, x1 = f->x.high;
    buf_str(f->to, "<path class=\"limit\" d=\"");
    for (int i = 0; i < s->n; i++) {
        double x = at(&f->x, s->at[i].x), y = at(&f->y, s->at[i].y);
        if (i == 0)
            buf_printf(f->to, "M%.1f %.1f", x0, y);
        buf_printf(f->to, "L%.1f %.1f", x, y);
        if (i == s->n - 1)
            buf_printf(f->to, "L%.1f %.1f", x1, y);
    }
    buf_str(f->to, "\"/>\n");
}

/* How many points of the series in front, which are drawn later, cover this place? */
static int
covered(const Frame *f, const PlotSeries *s, double x, double y)
{
    int n = 0;
    for (const PlotSeries *other = f->p->series; other < s; other++)
        for (int i = 0; i < other->n && !other->limit; i++) {
            const PlotPoint *q = &other->at[i];
            n += shown(f->p, q) && fabs(at(&f->x, q->x) - x) < 4 &&
                 fabs(at(&f->y, q->y) - y) < 4;
        }
    return n;
}

static void
draw_series(Frame *f, const PlotSeries *s, int k)
{
    bool open = false;
    buf_printf(f->to, "<path class=\"line l%d\" d=\"", k);
    for (int i = 0; i < s->n; i++) {
        if (!shown(f->p, &s->at[i])) {
            open = false;
            continue;
        }
        buf_printf(f->to, "%c%.1f %.1f", open ? 'L' : 'M', at(&f->x, s->at[i].x),
                   at(&f->y, s->at[i].y));
        open = true;
    }
    buf_str(f->to, "\"/>\n");
    for (int i = 0; i < s->n; i++) {
        const PlotPoint *q = &s->at[i];
        if (!shown(f->p, q))
            continue;
        double x = at(&f->x, q->x), y = at(&f->y, q->y);
        if (has_span(f->p, q)) {
            double y0 = at(&f->y, q->low), y1 = at(&f->y, q->high);
            buf_printf(f->to,
                       "<path class=\"span l%d\" d=\"M%.1f %.1fV%.1fM%.1f %.1fh6"
                       "M%.1f %.1fh6\"/>",
                       k, x, y0, y1, x - 3, y0, x - 3, y1);
        }
        int above = covered(f, s, x, y); /* a covered one is larger: its rim is seen */
        buf_printf(f->to, "<path class=\"dot d%d\" transform=\"translate(%.1f %.1f)", k,
                   x, y);
        if (above)
            buf_printf(f->to, " scale(%g)", 1 + 0.6 * above);
        buf_printf(f->to, "\" d=\"%s\"/>\n", shapes[k]);
    }
}

/* About what a text takes of a line; fonts differ. */
static int
text_width(const char *s)
{
    int width = 0;
    for (; *s; s++)
        width += (*s >= 'A' && *s <= 'Z') || strchr("_=+", *s) ? LETTER + 2 : LETTER;
    return width;
}

/* Entries side by side, in as many lines as they need; the height that takes. */
static int
legend(Frame *f, bool draw)
{
    int x = LEFT, y = TOP, k = 0;
    for (int i = 0; i < f->p->n && i < PLOT_MOST; i++) {
        const PlotSeries *s = &f->p->series[i];
        int width = 36 + text_width(s->name);
        if (x > LEFT && x + width > WIDTH - RIGHT)
            x = LEFT, y += LEGEND;
        int color = s->limit ? 0 : k++;
        if (draw && s->limit)
            buf_printf(f->to, "<path class=\"limit\" d=\"M%d %dh20\"/>", x, y - 4);
        else if (draw)
            buf_printf(f->to,
                       "<path class=\"line l%d\" d=\"M%d %dh20\"/><path class=\"dot "
                       "d%d\" transform=\"translate(%d %d)\" d=\"%s\"/>",
                       color, x, y - 4, color, x + 10, y - 4, shapes[color]);
        if (draw) {
            buf_printf(f->to, "<text class=\"name\" x=\"%d\" y=\"%d\">", x + 26, y);
            text_of(f->to, s->name);
            buf_str(f->to, "</text>\n");
        }
        x += width + 12;
    }
    return y + LEGEND - TOP;
}

void
plot_svg(Buf *to, const Plot *p)
{
    Frame f = {.to = to, .p = p, .height = PLOT};
    f.top = TOP + legend(&f, false) - 4;
    int height = f.top + PLOT + BOTTOM, k = 0;
    limits(&f);
    f.x.low = LEFT, f.x.high = WIDTH - RIGHT;
    f.y.low = f.top + PLOT, f.y.high = f.top;
    (p->log_x ? log_ticks : linear_ticks)(&f.x, 10);
    (p->log_y ? decimal_ticks : linear_ticks)(&f.y, 7);
    buf_printf(to,
               "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %d %d\" "
               "width=\"%d\" height=\"%d\" role=\"img\">\n<title>",
               WIDTH, height, WIDTH, height);
    text_of(to, p->title);
    buf_printf(to,
               "</title>\n%s<rect class=\"bg\" width=\"%d\" height=\"%d\" rx=\"6\"/>\n"
               "<text class=\"title\" x=\"%d\" y=\"24\">",
               style, WIDTH, height, LEFT);
    text_of(to, p->title);
    buf_printf(to, "</text>\n<text x=\"%d\" y=\"41\">", LEFT);
    text_of(to, p->subtitle);
    buf_str(to, "</text>\n");
    legend(&f, true);
    draw_axes(&f);
    for (int i = 0; i < p->n && i < PLOT_MOST; i++)
        if (p->series[i].limit)
            draw_limit(&f, &p->series[i]);
    for (int i = 0; i < p->n && i < PLOT_MOST; i++)
        k += !p->series[i].limit;
    for (int i = (p->n < PLOT_MOST ? p->n : PLOT_MOST) - 1; i >= 0; i--)
        if (!p->series[i].limit) /* the first one on top */
            draw_series(&f, &p->series[i], --k);
    buf_str(to, "</svg>\n");
}
