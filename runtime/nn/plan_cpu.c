/* Matmuls on the CPU. A program copies its tile of a and some panels of b into the
   second-level cache and multiplies them there: large tiles are copied less often, small
   ones leave fewer threads idle and fewer rows that are not there. Parts along k, stages
   and packing have no place here: all programs of a thread share its caches.

   Rates are of one thread, measured on 2026-11-23 on a processor with AMX by
   `tests/perf/baselines`; they need to be right beside each other alone. */
#include "runtime/nn/plan.h"

#include <math.h>

/* Per microsecond: operations on fp32 and on shorter elements, bytes that are copied,
   bytes of sums in the second-level cache and beyond it. */
static const double flops = 1.6e5, half_flops = 9e5, copied = 1.2e4, summed = 6e4,
                    summed_far = 2.5e4;
/* Of rows that are not copied: operations, bytes out of memory and of the cache; what a
   run of bytes costs beyond them. */
static const double stream_flops = 8e4, streamed = 2.5e4, cached = 6e4, run_bytes = 1024;

#define TILE(m_, n_, k_)                                                                 \
    {                                                                                    \
        .m = m_, .n = n_, .k = k_, .warps = 1, .stages = 1, .resident = 1                \
    }

static const GemmTile tiles[] = {
    TILE(64, 64, 64),    TILE(512, 512, 256), TILE(256, 512, 256), TILE(512, 256, 256),
    TILE(256, 256, 256), TILE(128, 256, 256), TILE(256, 128, 256), TILE(128, 128, 256),
    TILE(64, 256, 256),  TILE(64, 64, 256),   TILE(16, 256, 256),  TILE(4, 256, 256),
    TILE(256, 16, 256),  TILE(256, 256, 64),  TILE(128, 128, 64),  TILE(16, 64, 64),
    TILE(64, 16, 64),    TILE(1, 4096, 64),   TILE(1, 2048, 64),   TILE(1, 1024, 64),
    TILE(1, 512, 64),    TILE(1, 256, 64),    TILE(2, 4096, 64),   TILE(2, 2048, 64),
    TILE(2, 512, 64),    TILE(1, 64, 4096),   TILE(1, 64, 2048),   TILE(1, 64, 1024),
    TILE(1, 64, 512),    TILE(1, 64, 256)};

/* Bytes that a program reads again and again: its tile of a, and of b as many panels as
   are packed at once. */
static int64_t
packed(const GemmAsk *q, const GemmTile *t)
{
    enum { PANELS = 1 << 17 };
    int64_t panels = (int64_t)t->n * t->k * q->bytes;
    return (int64_t)t->m * t->k * q->bytes + (panels < PANELS ? panels : PANELS);
}

/* Do they stay in the second-level cache? (What is multiplied where it is loaded need
   not.) */
static bool
fits(const NnDevice *d, const GemmAsk *q, const GemmTile *t)
{
    return packed(q, t) <= d->cache;
}

static double
over(int64_t a, int64_t b)
{
    return (double)((a + b - 1) / b);
}

static bool
across_k(const GemmAsk *q)
{
    return (q->across & 2) != 0;
}

/* Rows so few that b is multiplied where it is loaded (passes/cpu/simd_rows.c): memory
   delivers long runs faster than short ones. */
static bool
streams(const GemmAsk *q, const GemmTile *t)
{
    return t->m == 1 || (t->m == 2 && across_k(q));
}

static GemmCost
cost_of_stream(const NnDevice *d, const GemmAsk *q, const GemmTile *t)
{
    double units = over(q->m, t->m) * over(q->n, t->n) * (double)q->batch;
    double rounds = ceil(units / d->processors), steps = over(q->k, t->k);
    double across = fmin(t->n, (double)q->n), deep = fmin(t->k, (double)q->k);
    double run = (across_k(q) ? across : deep) * q->bytes;
    double bytes = rounds * across * (double)q->k * q->bytes;
    bool near = q->n * q->k * q->bytes <= d->cache;
    GemmCost c = {
        .products = rounds * 2 * t->m * t->n * t->k * steps / stream_flops,
        .memory = near ? bytes / cached : bytes * (1 + run_bytes / run) / streamed,
        .cache = across_k(q) ? 0 : rounds * t->n * steps * 0.01,
        .beside = 1};
    c.all = c.products + c.memory + c.cache + c.beside;
    return c;
}

static GemmCost
cost_of(const NnDevice *d, const GemmAsk *q, const GemmTile *t)
{
    double units = over(q->m, t->m) * over(q->n, t->n) * (double)q->batch;
    double rounds = ceil(units / d->processors), steps = over(q->k, t->k);
    double high = fmin(t->m, (double)q->m), across = fmin(t->n, (double)q->n);
    double rate = q->bytes < 4 ? half_flops : flops, sums = (double)t->m * t->n * 4;
    bool near = packed(q, t) + (int64_t)t->m * t->n * 4 <= d->cache;
    GemmCost c = {
        .products = rounds * 2 * t->m * t->n * t->k * steps / rate,
        .memory = rounds * (high + across) * (double)q->k * q->bytes / copied,
        .cache = rounds * sums * (2 * steps + 3) / (near ? summed : summed_far),
        .beside = 1};
    c.all = c.products + c.memory + c.cache + c.beside;
    return c;
}

GemmPlan
gemm_plan_cpu(const NnDevice *d, const GemmAsk *q)
{
    GemmPlan best = {.split = 1};
    for (size_t i = 0; i < sizeof tiles / sizeof *tiles; i++) {
        const GemmTile *t = &tiles[i];
        GemmCost c = streams(q, t) ? cost_of_stream(d, q, t) : cost_of(d, q, t);
        if (!streams(q, t) && (t->m < 4 || (i && !fits(d, q, t))))
            continue;
        if (!best.tile || c.all < best.cost.all) {
            best.next = best.tile;
            best.next_us = best.cost.all;
            best.tile = &tiles[i];
            best.cost = c;
        } else if (!best.next || c.all < best.next_us) {
            best.next = &tiles[i];
            best.next_us = c.all;
        }
    }
    best.next_split = 1;
    return best;
}
