/* Matmuls on the CPU. A program copies its tiles of a and b into caches of its own and
   multiplies them there: large tiles are copied less often, small ones leave fewer
   threads idle and fewer rows that are not there. Parts along k, stages and packing have
   no place here: all programs of a thread share its caches.

   Rates are of one thread, measured on 2026-11-23 on a processor with AMX by
   `tests/perf/baselines`; they need to be right beside each other alone. */
#include "runtime/nn/plan.h"

#include <math.h>

/* Per microsecond: operations on fp32 and on shorter elements, bytes that are copied,
   bytes of sums in the second-level cache. */
static const double flops = 1.6e5, half_flops = 9e5, copied = 1.2e4, summed = 6e4;

#define TILE(m_, n_, k_)                                                                 \
    {                                                                                    \
        .m = m_, .n = n_, .k = k_, .warps = 1, .stages = 1, .resident = 1                \
    }

static const GemmTile tiles[] = {
    TILE(64, 64, 64),    TILE(512, 512, 256), TILE(256, 512, 256), TILE(512, 256, 256),
    TILE(256, 256, 256), TILE(128, 256, 256), TILE(256, 128, 256), TILE(128, 128, 256),
    TILE(64, 256, 256),  TILE(64, 64, 256),   TILE(16, 256, 256),  TILE(4, 256, 256),
    TILE(256, 16, 256),  TILE(256, 256, 64),  TILE(128, 128, 64),  TILE(16, 64, 64),
    TILE(64, 16, 64)};

/* Do its sums and operands stay in the second-level cache? */
static bool
fits(const NnDevice *d, const GemmAsk *q, const GemmTile *t)
{
    int64_t operands = (int64_t)(t->m + t->n) * t->k * q->bytes;
    return operands + (int64_t)t->m * t->n * 4 <= d->cache;
}

static double
over(int64_t a, int64_t b)
{
    return (double)((a + b - 1) / b);
}

static GemmCost
cost_of(const NnDevice *d, const GemmAsk *q, const GemmTile *t)
{
    double units = over(q->m, t->m) * over(q->n, t->n) * (double)q->batch;
    double rounds = ceil(units / d->processors), steps = over(q->k, t->k);
    double high = fmin(t->m, (double)q->m), across = fmin(t->n, (double)q->n);
    double rate = q->bytes < 4 ? half_flops : flops, sums = (double)t->m * t->n * 4;
    GemmCost c = {
        .products = rounds * 2 * t->m * t->n * t->k * steps / rate,
        .memory = rounds * (high + across) * (double)q->k * q->bytes / copied,
        .cache = rounds * sums * (2 * steps + 3) / summed,
        .beside = 1};
    c.all = c.products + c.memory + c.cache + c.beside;
    return c;
}

GemmPlan
gemm_plan_cpu(const NnDevice *d, const GemmAsk *q)
{
    GemmPlan best = {.split = 1};
    for (size_t i = 0; i < sizeof tiles / sizeof *tiles; i++) {
        GemmCost c = cost_of(d, q, &tiles[i]);
        if (i && !fits(d, q, &tiles[i]))
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
