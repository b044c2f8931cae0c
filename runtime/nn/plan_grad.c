/* How attention backward are done. Both ways begin with a kernel of tiles of keys,
   which goes over the queries for dk and dv; they differ in dq.

   - It adds each tile's part of dq to sums in memory: five matmuls for a pair of tiles,
     and sums whose order no two runs share.
   - dq has a kernel of its own, tiles of queries that go over the keys: seven matmuls,
     the same bits in every run. Programs that took turns at the sums would need five, but
     wait for each other in each step, and their fences with them; parts of dq in memory,
     one for each tile of keys, would be M * N / tile * dim numbers.

   Tiles are the largest whose sums fit the registers of two warpgroups (ptxas: none
   spills), with keys first: what is loaded in each step are queries.

   A program of keys goes over all query heads that share them, or over a share of
   these. Shares are programs for SMs that would have none, and of 128 columns the loop
   over heads has no registers left (156 bytes are spilled, 15 loads of them in each
   step); but dk and dv are then sums in memory, which are set to zero, added to and
   converted. Where bits are to be the same there are none. Rates are of the rows of
   `tests/gpu/shapes` (H200, 2026-11-27), those of 32, 160 and more columns and of other
   devices are guessed. Of 26 calls measured that day with one share and with all, the
   faster is planned in 24, in the others one that takes up to 4 % longer. */
#include "runtime/nn/plan.h"

#include <math.h>

/* Of 16-bit types by warpgroups: of keys, with sums for dq and without, and of queries.
 */
typedef struct GradTiles {
    int columns; /* at most */
    AttentionTile sums, alone, queries;
} GradTiles;

#define TILE(m_, n_, warps_, stages_, resident_, rate_)                                  \
    {                                                                                    \
        .m = m_, .n = n_, .warps = warps_, .stages = stages_, .resident = resident_,     \
        .rate = rate_                                                                    \
    }
static const GradTiles hopper[] = {
    {32, TILE(64, 64, 8, 2, 1, 1.8), TILE(64, 64, 8, 2, 1, 1.8),
     TILE(128, 64, 8, 3, 1, 1.8)},
    {64, TILE(64, 64, 4, 2, 2, 3.4), TILE(64, 128, 8, 3, 1, 3.4),
     TILE(128, 64, 8, 3, 1, 3.4)},
    {128, TILE(64, 128, 8, 3, 1, 4.5), TILE(64, 128, 8, 3, 1, 4.5),
     TILE(128, 64, 8, 3, 1, 4.5)},
    {192, TILE(64, 64, 8, 2, 1, 3), TILE(64, 64, 8, 2, 1, 3), TILE(128, 32, 8, 2, 1, 3)},
    {256, TILE(64, 64, 8, 2, 1, 3), TILE(32, 64, 8, 2, 1, 3), TILE(128, 32, 8, 2, 1, 3)}};

/* Where options take registers: of keys. */
static const AttentionTile changed = TILE(64, 64, 8, 2, 1, 2);

/* Microseconds: what a launch more costs, and what a program begins with. Bytes per
   microsecond, from memory, from the cache if they fit it, and added there. */
static const double next_launch = 1.8, begin = 3, memory_bytes = 4.0e6,
                    cache_bytes = 11.5e6, fit = 32e6, added_bytes = 2.5e6;
/* A step in a loop over heads where that leaves no registers; one of a program alone on
   an SM that holds two. */
static const double short_in_loop = 1.24, alone = 0.6;
enum { FULL = 128 };

/* Others, and where dropout's masks take registers. */
static AttentionTile
plain_tile(const NnDevice *d, const AttentionAsk *q, int columns)
{
    return (AttentionTile){.m = columns > 64 ? 32 : 64,
                           .n = columns > 128 ? 32 : 64,
                           .warps = d->gpu && q->bytes == 2 ? 8 : 4,
                           .stages = 2,
                           .resident = 1,
                           .rate = q->bytes == 2 ? 1 : 0.4};
}

static double
over(double a, double b)
{
    return ceil(a / b);
}

/* Microseconds of dk and dv with so many shares. */
static double
keys_us(const NnDevice *d, const AttentionAsk *q, const AttentionTile *t, int shares)
{
    int columns = attention_columns(q->dim, false),
        value_columns = attention_columns(q->value_dim, false);
    double members = (double)(q->heads / q->key_heads / shares);
    double m = (double)q->m, n = (double)q->n;
    double keys = (double)(q->sequences * q->key_heads);
    double units = over(n, t->n) * keys * shares, slots = d->processors * t->resident;
    double step = t->resident * 2.0 * t->m * t->n * (3 * columns + 2 * value_columns) /
                  (t->rate * 1e6 * device_clock(d));
    if (units <= d->processors && t->resident > 1)
        step *= alone;
    if (members > 1 && columns == FULL && value_columns == FULL)
        step *= short_in_loop;
    double longest = members * over(m, t->m), busy = over(units, slots) * longest;
    if (q->causal) { /* the longest begin first, short ones fill */
        double seen = n >= m ? m - m * (m - 1) / 2 / n : (n + 1) / 2;
        double each = members * (seen / t->m + 1);
        double fills = units / slots;
        busy = fills > 1 ? fills * each + longest / 2 : longest;
    }
    double us = busy * step + over(units, slots) * begin;
    if (shares == 1)
        return us;
    double sums = keys * n * (columns + value_columns);
    double rate =
        sums * 4 < fit ? cache_bytes * device_cache(d) : memory_bytes * device_memory(d);
    return us + 2 * next_launch + sums * (8 + q->bytes) / rate +
           sums * 4 * shares / (added_bytes * device_cache(d)) / 2;
}

/* As many as take least time, fewer where it is as good. */
static int
shares_of(const NnDevice *d, const AttentionAsk *q, const AttentionTile *t)
{
    int group = (int)(q->heads / q->key_heads), best = 1;
    if (!d->gpu || !d->lends || q->deterministic)
        return 1;
    double least = keys_us(d, q, t, 1);
    for (int shares = 2; shares <= group; shares++) {
        double us = group % shares ? least : keys_us(d, q, t, shares);
        if (us < least) {
            least = us;
            best = shares;
        }
    }
    return best;
}

GradPlan
grad_plan(const NnDevice *d, const AttentionAsk *q)
{
    int columns = attention_columns(q->dim > q->value_dim ? q->dim : q->value_dim, false);
    GradPlan p = {.own_dq = q->deterministic};
    p.why = p.own_dq ? "the same bits in every run: dq by itself"
                     : "parts of dq are added in memory";
    p.keys = p.queries = plain_tile(d, q, columns);
    if (d->wgmma && q->bytes == 2 && !q->dropout) {
        const GradTiles *t = hopper;
        while (t->columns < columns)
            t++;
        p.keys = q->changed ? changed : p.own_dq ? t->alone : t->sums;
        p.queries = t->queries;
    }
    p.shares = shares_of(d, q, &p.keys);
    return p;
}
