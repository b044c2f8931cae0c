/* How attention is done. Two kernels compute it: one of tiles of queries, each going over
   all keys, and one for few queries, whose rows are the query heads of a head of keys and
   which divides the keys over programs. Both are weighed by one model, that of
   plan_gemm.c: the slowest of the matmuls, the operands once from memory and the tiles
   of keys out of the second-level cache; launches and sums come on top.

   What it decides by:
   - few tiles of queries leave SMs idle, and the keys of one program come no
     faster than what it has in flight: parts of the keys fill the device;
   - a tile of 128 queries multiplies 128 rows even where one is there;
   - a program begins and ends with little beside it, which counts where keys are few: as
     many programs as run at once, which take one tile after another, load the keys of the
     next one meanwhile, and where tiles are short its queries, too;
   - queries of one tile see fewer keys in causal order the smaller the tile;
   - with causal order the last programs see the most keys, those begin first; queries in
     front of all keys cost their results.

   Rates and what a program begins with are of one SM, fitted to 80 ways of 30 calls of 64
   to 4096 keys on an H200 (2026-11-27; what is chosen takes 1 % longer than the best of
   them, by the geometric mean), for few queries to decoding there (2026-11-22,
   `tests/gpu/shapes --tiles --only decode,grouped`); those of dropout and older devices
   are guessed. */
#include "runtime/nn/plan.h"

#include <math.h>

enum { FLIGHT = 32768, LEAST_KEYS = 2 };

/* Bytes per microsecond; microseconds. */
static const double memory_bytes = 4.0e6, cache_bytes = 11.5e6, latency = 1.0,
                    launch = 2.0, next_launch = 1.8, beneath = 0.1;

/* What is left of `begin` in a persistent kernel, and where it loads the next tile's
   queries ahead; these take registers, which its loop over keys is slower by. Of 512 and
   4096 keys of 128 columns on an H200 (2026-11-27). */
static const double in_turns = 0.86, queries_ahead = 0.63, fewer_registers = 1.09;
/* Threads of so many warps have no registers for that. */
enum { MANY_WARPS = 16 };

/* Queries by warpgroups and tensor maps, keys in roles. Of 16-bit types. Up to 128
   columns are one tile, masked behind the last: two tiles of powers of two have fewer
   columns and take longer all the same. As many programs as `resident` take turns; more
   of 64x64 are on an SM at once where each has one tile. */
static const AttentionTile hopper[] = {{128, 64, 4, 3, 32, 0, 2, 1.8, 1.6, true},
                                       {256, 64, 16, 4, 64, 0, 1, 4.1, 4.8, true},
                                       {128, 64, 4, 3, 64, 0, 2, 4.15, 2.3, true},
                                       {64, 64, 4, 2, 64, 0, 2, 3.9, 1.1, true},
                                       {128, 128, 8, 2, 128, 0, 1, 6.15, 4.85, true},
                                       {64, 64, 4, 2, 128, 0, 2, 5.65, 2.1, true},
                                       {128, 128, 8, 2, 192, 128, 1, 6.05, 3.2, false},
                                       {128, 64, 8, 2, 256, 0, 1, 6.1, 3.4, true},
                                       {128, 64, 8, 2, 256, 0, 1, 5.8, 5.0, false}};
/* Masks of dropout take registers and more time than the matmuls. */
static const AttentionTile hopper_dropout[] = {{128, 64, 8, 3, 64, 0, 1, 1.5, 4, false},
                                               {128, 64, 8, 2, 256, 0, 1, 1.5, 4, false}};
static const AttentionTile ampere[] = {{128, 64, 4, 3, 32, 0, 1, 1.2, 2, false},
                                       {128, 64, 8, 3, 64, 0, 1, 1.6, 2, false},
                                       {128, 32, 8, 3, 96, 0, 1, 1.5, 2, false},
                                       {128, 64, 8, 3, 128, 0, 1, 1.6, 2, false},
                                       {64, 32, 4, 3, 256, 0, 1, 1.2, 2, false}};
static const AttentionTile of_fp32[] = {{128, 64, 4, 3, 64, 0, 1, 0.5, 2, false},
                                        {64, 32, 4, 3, 256, 0, 1, 0.4, 2, false}};
/* On the CPU the tiles of a program lie in the second-level cache; what a program
   begins with is mostly the tiles that masks cut in causal order. Of one thread with AMX,
   2026-11-23, `tests/perf/baselines --only attention`. */
static const AttentionTile cpu[] = {{64, 64, 4, 3, 128, 0, 1, 0.31, 1, false},
                                    {128, 128, 4, 3, 128, 0, 1, 0.37, 3, false},
                                    {256, 128, 4, 3, 128, 0, 1, 0.4, 6, false},
                                    {64, 64, 4, 3, 256, 0, 1, 0.31, 1, false},
                                    {128, 64, 4, 3, 256, 0, 1, 0.35, 3, false}};
static const AttentionTile cpu_causal[] = {{64, 64, 4, 3, 128, 0, 1, 0.3, 3, false},
                                           {128, 128, 4, 3, 128, 0, 1, 0.37, 9, false},
                                           {256, 128, 4, 3, 128, 0, 1, 0.4, 40, false},
                                           {64, 64, 4, 3, 256, 0, 1, 0.3, 3, false},
                                           {128, 64, 4, 3, 256, 0, 1, 0.34, 8, false}};
static const AttentionTile cpu_fp32[] = {{64, 64, 4, 3, 128, 0, 1, 0.12, 1, false},
                                         {128, 64, 4, 3, 128, 0, 1, 0.127, 3, false},
                                         {256, 128, 4, 3, 128, 0, 1, 0.132, 6, false},
                                         {64, 32, 4, 3, 256, 0, 1, 0.12, 1, false},
                                         {128, 64, 4, 3, 256, 0, 1, 0.127, 3, false}};
static const AttentionTile cpu_fp32_causal[] = {
    {64, 64, 4, 3, 128, 0, 1, 0.12, 7, false},
    {128, 64, 4, 3, 128, 0, 1, 0.13, 18, false},
    {128, 128, 4, 3, 128, 0, 1, 0.13, 20, false},
    {64, 32, 4, 3, 256, 0, 1, 0.12, 7, false},
    {128, 64, 4, 3, 256, 0, 1, 0.13, 18, false}};

/* Few queries: the least tile that mma.sync have, that of a warpgroup, and two.
   Keys are as many as fill FLIGHT bytes, at most n. */
static const AttentionTile few_hopper[] = {
    {16, 128, 4, 3, 256, 0, 2, 1.5, 1, false}, {64, 128, 4, 3, 64, 0, 2, 2.4, 2, false},
    {64, 128, 4, 3, 128, 0, 2, 3.3, 2, false}, {64, 128, 4, 3, 256, 0, 1, 1.6, 2, false},
    {128, 64, 8, 2, 64, 0, 1, 2.1, 4, false},  {128, 64, 8, 2, 128, 0, 1, 2.8, 4, false}};
static const AttentionTile few[] = {{16, 64, 4, 3, 256, 0, 2, 0.5, 1, false},
                                    {64, 32, 4, 2, 64, 0, 1, 0.9, 2, false}};
static const AttentionTile few_fp32[] = {{16, 64, 4, 3, 256, 0, 2, 0.3, 1, false}};
/* No matmul needs more rows there. */
static const AttentionTile few_cpu[] = {{1, 64, 4, 3, 256, 0, 1, 0.04, 0, false},
                                        {2, 64, 4, 3, 256, 0, 1, 0.04, 0, false},
                                        {4, 64, 4, 3, 256, 0, 1, 0.04, 0, false},
                                        {8, 64, 4, 3, 256, 0, 1, 0.04, 0, false},
                                        {16, 64, 4, 3, 256, 0, 1, 0.04, 0, false}};

typedef struct Tiles {
    const AttentionTile *at;
    int n;
} Tiles;

#define TILES(list) ((Tiles){list, (int)(sizeof(list) / sizeof *(list))})

static Tiles
tiles_of(const NnDevice *d, const AttentionAsk *q)
{
    if (!d->gpu && q->causal)
        return q->bytes > 2 ? TILES(cpu_fp32_causal) : TILES(cpu_causal);
    if (!d->gpu)
        return q->bytes > 2 ? TILES(cpu_fp32) : TILES(cpu);
    if (q->bytes > 2)
        return TILES(of_fp32);
    if (!d->wgmma)
        return TILES(ampere);
    return q->dropout ? TILES(hopper_dropout) : TILES(hopper);
}

static Tiles
few_tiles_of(const NnDevice *d, const AttentionAsk *q)
{
    if (!d->gpu)
        return TILES(few_cpu);
    if (q->bytes > 2)
        return TILES(few_fp32);
    return d->wgmma ? TILES(few_hopper) : TILES(few);
}

int
attention_columns(int dim, bool wide)
{
    int low = 16;
    while (low < 256 && low * 2 <= dim)
        low *= 2;
    int rest = dim <= low ? 0 : wide ? low : 16;
    while (rest && low + rest < dim)
        rest *= 2;
    return low + rest;
}

/* Do tiles hold so many columns of queries and of values? */
static bool
holds(const AttentionTile *t, int dim, int value_dim)
{
    return dim <= t->columns && value_dim <= (t->values ? t->values : t->columns);
}

static int64_t
over(int64_t a, int64_t b)
{
    return (a + b - 1) / b;
}

/* Keys that a row sees, on average. */
static double
seen(const AttentionAsk *q)
{
    if (!q->causal)
        return (double)q->n;
    if (q->n >= q->m)
        return (double)q->n - (double)(q->m - 1) / 2;
    return (double)q->n * (double)(q->n + 1) / 2 / (double)q->m;
}

typedef struct Way {
    AttentionTile tile;
    bool split, turns, ahead;
    int parts;
} Way;

static AttentionCost
cost_of(const NnDevice *d, const AttentionAsk *of, const Way *w)
{
    const AttentionTile *t = &w->tile;
    AttentionAsk sees = *of; /* other queries are stores beside the programs of these */
    if (of->causal && !w->split && of->n > 0 && of->n < of->m)
        sees.m = of->n;
    const AttentionAsk *q = &sees;
    int64_t group = w->split ? q->heads / q->key_heads : 1;
    int64_t heads = q->sequences * q->heads / group;
    double columns =
        attention_columns(q->dim, t->wide) + attention_columns(q->value_dim, t->wide);
    double bytes = (q->dim + q->value_dim) * (double)q->bytes;
    double units = (double)over(q->m * group, t->m) * (double)heads * w->parts;
    double keys = seen(q) / w->parts;
    /* a tile goes on to the last key of its last row: masks cut what the others see less.
       On the CPU that is in what a program begins with */
    double last_row = fmin((double)over(t->m, group), (double)q->m);
    double cut = d->gpu && q->causal ? fmin(last_row / 2, keys) : 0;
    double each = 2.0 * t->m * (keys + cut) * columns / (t->rate * 1e6);
    double begin = t->begin * (w->ahead ? queries_ahead : w->turns ? in_turns : 1);
    if (w->ahead)
        each *= fewer_registers;
    double all = d->processors, busy = ceil(units / all);
    double memory = memory_bytes * device_memory(d);
    double cache = cache_bytes * device_cache(d);
    double at_once = fmin(units, all * t->resident);
    if (q->causal && q->n > 0) {
        /* programs see from n - m keys to n: long ones first, short ones fill */
        double longest = (double)q->n / seen(q);
        double spread = fmin((double)q->m, (double)q->n) / (double)q->n;
        double filled = units > all ? units / all + longest / 2 : longest;
        busy = spread * filled + (1 - spread) * busy;
    }
    if (busy < t->resident) /* one alone waits for itself */
        each *= (double)t->resident / busy;
    /* the last programs have the memory for themselves, and cannot use all of it */
    double ahead = (t->stages - 1) * t->n * bytes / latency;
    double last = fmod(units, all * t->resident) / fmax(units, 1);
    double most = fmin(memory, fmax(at_once * ahead, 1));
    double least = fmin(memory, fmax(last * units * ahead, 1));
    double rows = (double)(q->sequences * q->heads * q->m);
    double blind = (double)(q->sequences * q->heads * (of->m - q->m));
    double once = (rows + (double)(q->sequences * q->key_heads * q->n)) * bytes +
                  blind * q->value_dim * q->bytes;
    AttentionCost c = {
        .products = busy * (each + begin) / device_clock(d),
        .memory = once * ((1 - last) / most + last / least),
        .cache = units * keys * bytes / cache,
        .beside = launch};
    if (w->parts > 1)
        c.beside +=
            next_launch + 2 * w->parts * rows * (q->value_dim + 2) * 4 / cache;
    /* what is faster hides behind the slowest, not all of it */
    double slowest = fmax(c.products, fmax(c.memory, c.cache));
    double rest = c.products + c.memory + c.cache - slowest;
    c.all = slowest + beneath * rest + c.beside;
    return c;
}

/* Of guesses that are equal the first counts: lists begin with what is simplest. */
static void
consider(AttentionPlan *best, const NnDevice *d, const AttentionAsk *q, const Way *w)
{
    AttentionCost c = cost_of(d, q, w);
    if (best->tile.m && c.all >= best->cost.all) {
        if (best->next.m && c.all >= best->next_us)
            return;
        best->next = w->tile;
        best->next_split = w->split;
        best->next_turns = w->turns;
        best->next_parts = w->parts;
        best->next_us = c.all;
        return;
    }
    *best = (AttentionPlan){.tile = w->tile,
                            .split = w->split,
                            .turns = w->turns,
                            .ahead = w->ahead,
                            .parts = w->parts,
                            .keys = over(over(q->n, w->parts), w->tile.n) * w->tile.n,
                            .cost = c,
                            .next = best->tile,
                            .next_split = best->split,
                            .next_turns = best->turns,
                            .next_parts = best->parts,
                            .next_us = best->cost.all};
}

static int
power_below(int n)
{
    int p = 16;
    while (p * 2 <= n)
        p *= 2;
    return p;
}

/* Parts that fill the device a whole number of times. */
static void
consider_parts(AttentionPlan *best, const NnDevice *d, const AttentionAsk *q, Way w)
{
    int64_t group = q->heads / q->key_heads;
    int64_t units = over(q->m * group, w.tile.m) * q->sequences * q->key_heads;
    int64_t slots = (int64_t)d->processors * w.tile.resident;
    int64_t most = d->lends ? over(q->n, (int64_t)LEAST_KEYS * w.tile.n) : 1;
    most = most < ATTENTION_MOST_PARTS ? most : ATTENTION_MOST_PARTS;
    consider(best, d, q, &w);
    for (int fills = 1; fills <= 4; fills++) {
        int64_t parts = units ? fills * slots / units : 1;
        parts = parts < most ? parts : most;
        if (parts < 2)
            continue;
        int64_t keys = over(over(q->n, parts), w.tile.n) * w.tile.n;
        Way x = w;
        x.parts = (int)over(q->n, keys); /* every part has keys */
        if (x.parts > 1)
            consider(best, d, q, &x);
    }
}

/* Programs that take one tile after another all see as many keys. Their results have a
   place of their own in shared memory, which there is up to 128 columns. */
static bool
may_turn(const NnDevice *d, const AttentionAsk *q, const AttentionTile *t)
{
    int64_t units = over(q->m, t->m) * q->sequences * q->heads;
    return d->wgmma && q->bytes == 2 && t->columns <= 128 && !q->causal && !q->packed &&
           !q->dropout && !q->changed && units > (int64_t)d->processors * t->resident;
}

AttentionPlan
attention_plan(const NnDevice *d, const AttentionAsk *q)
{
    AttentionPlan best = {0};
    int dim = attention_columns(q->dim, false);
    int value_dim = attention_columns(q->value_dim, false);
    Tiles tiles = tiles_of(d, q);
    bool narrow = false; /* tiles for fewer columns come first, and are faster */
    for (int i = 0, columns = 0; i < tiles.n; i++) {
        Way w = {.tile = tiles.at[i], .parts = 1};
        if (!holds(&w.tile, dim, value_dim) || (narrow && w.tile.columns > columns))
            continue;
        columns = w.tile.columns > columns ? w.tile.columns : columns;
        narrow = true;
        consider(&best, d, q, &w);
        w.turns = may_turn(d, q, &w.tile);
        if (w.turns)
            consider(&best, d, q, &w);
        w.ahead = w.turns && w.tile.warps < MANY_WARPS;
        if (w.ahead)
            consider(&best, d, q, &w);
    }
    tiles = few_tiles_of(d, q);
    for (int i = 0, rows = 0; i < tiles.n && !q->dropout && q->n > 0; i++) {
        Way w = {.tile = tiles.at[i], .split = true, .parts = 1};
        if (!holds(&w.tile, dim, value_dim) || w.tile.m == rows)
            continue;
        rows = w.tile.m;
        int keys = power_below(FLIGHT / ((dim + value_dim) * q->bytes));
        w.tile.n = keys < w.tile.n ? keys : w.tile.n;
        consider_parts(&best, d, q, w);
    }
    return best;
}
