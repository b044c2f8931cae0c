/* How attention backward are done. Both ways begin with a kernel of tiles of keys,
   which goes over the queries for dk and dv; they differ in dq.

   - It adds each tile's part of dq to sums in memory: five matmuls for a pair of tiles,
     and sums whose order no two runs share.
   - dq has a kernel of its own, tiles of queries that go over the keys: seven matmuls,
     the same bits in every run. Programs that took turns at the sums would need five, but
     wait for each other in each step, and their fences with them; parts of dq in memory,
     one for each tile of keys, would be M * N / tile * dim numbers.

   Tiles are the largest whose sums fit the registers of two warpgroups (ptxas: none
   spills), with keys first: what is loaded in each step are queries. */
#include "runtime/nn/plan.h"

/* Of 16-bit types by warpgroups: of keys, with sums for dq and without, and of queries.
 */
typedef struct GradTiles {
    int columns; /* at most */
    AttentionTile sums, alone, queries;
} GradTiles;

#define TILE(m_, n_, warps_, stages_)                                                    \
    {                                                                                    \
        .m = m_, .n = n_, .warps = warps_, .stages = stages_                             \
    }
static const GradTiles hopper[] = {
    {32, TILE(64, 64, 8, 2), TILE(64, 64, 8, 2), TILE(128, 64, 8, 3)},
    {64, TILE(64, 64, 4, 2), TILE(64, 128, 8, 3), TILE(128, 64, 8, 3)},
    {128, TILE(64, 128, 8, 3), TILE(64, 128, 8, 3), TILE(128, 64, 8, 3)},
    {192, TILE(64, 64, 8, 2), TILE(64, 64, 8, 2), TILE(128, 32, 8, 2)},
    {256, TILE(64, 64, 8, 2), TILE(32, 64, 8, 2), TILE(128, 32, 8, 2)}};

/* Where options take registers: of keys. */
static const AttentionTile changed = TILE(64, 64, 8, 2);

/* Others, and where dropout's masks take registers. */
static AttentionTile
plain_tile(const NnDevice *d, const AttentionAsk *q, int columns)
{
    return (AttentionTile){.m = columns > 64 ? 32 : 64,
                           .n = columns > 128 ? 32 : 64,
                           .warps = d->gpu && q->bytes == 2 ? 8 : 4,
                           .stages = 2};
}

GradPlan
grad_plan(const NnDevice *d, const AttentionAsk *q)
{
    int columns = attention_columns(q->dim > q->value_dim ? q->dim : q->value_dim, false);
    GradPlan p = {.own_dq = q->deterministic};
    p.why = p.own_dq ? "the same bits in every run: dq by itself"
                     : "parts of dq are added in memory";
    p.keys = p.queries = plain_tile(d, q, columns);
    if (!d->wgmma || q->bytes != 2 || q->dropout)
        return p;
    const GradTiles *t = hopper;
    while (t->columns < columns)
        t++;
    p.keys = p.own_dq ? t->alone : t->sums;
    p.queries = t->queries;
    if (q->changed)
        p.keys = changed;
    return p;
}
