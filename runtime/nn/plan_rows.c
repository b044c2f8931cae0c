/* How rows are done: a program a row where a tile holds it, several short rows a
   program, and beyond that one tile after another, read twice. Few long rows are divided
   over programs: what the parts found is put together in the second of two launches. */
#include "runtime/nn/plan.h"

enum {
    SHORT = 512,       /* columns; rows that short share a program ... */
    SHARED = 4096,     /* ... of so many elements */
    MOST_PARTS = 1024, /* what the second launch reads of a row, each program all */
    AT_ONCE = 2        /* programs on an SM that hide memory's latency */
};

static int64_t
power(int64_t n)
{
    int64_t p = 1;
    while (p < n)
        p *= 2;
    return p;
}

static int
warps_of(int64_t elements)
{
    return elements > 8192 ? 16 : elements >= 4096 ? 8 : 4;
}

static int64_t
over(int64_t a, int64_t b)
{
    return (a + b - 1) / b;
}

/* Programs that a row is worth: one, where each SM has a row, since a second launch costs
   more than SMs that have two. */
static int64_t
parts_of(const NnDevice *d, const RowsAsk *q)
{
    if (q->rows >= d->processors)
        return 1;
    int64_t wanted = over((int64_t)AT_ONCE * d->processors, q->rows > 0 ? q->rows : 1);
    int64_t steps = over(q->cols, q->step), parts = wanted < steps ? wanted : steps;
    return parts < MOST_PARTS ? parts : MOST_PARTS;
}

RowsPlan
rows_plan(const NnDevice *d, const RowsAsk *q)
{
    bool one = q->cols <= q->most;
    int64_t parts = d->gpu && d->lends ? parts_of(d, q) : 1;
    /* what a second launch costs is worth a few tiles */
    if (one && (parts < 4 || q->rows * 2 > d->processors)) {
        RowsPlan p = {
            .block = power(q->cols), .together = 1, .why = "a tile holds a row"};
        if (d->gpu && q->shares && q->cols <= SHORT &&
            q->rows > AT_ONCE * d->processors) {
            p.together = SHARED / p.block;
            while (p.together > 1 && q->rows / p.together < AT_ONCE * d->processors)
                p.together /= 2;
            p.why = "a tile holds several rows";
        }
        p.warps = warps_of(p.block * p.together);
        return p;
    }
    RowsPlan p = {.block = q->step, .together = 1, .warps = warps_of(q->step)};
    if (parts < 2) {
        p.parts = 1;
        p.columns = over(q->cols, q->step) * q->step;
        p.why = "no tile holds a row: it is read twice";
        return p;
    }
    p.columns = over(over(q->cols, parts), q->step) * q->step;
    p.parts = over(q->cols, p.columns);
    p.why = "few rows: several programs read one, in two launches";
    return p;
}
