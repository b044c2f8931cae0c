/* How the matmuls of block dropout are done. The model is that of plan_gemm.c, but what a
   program has to do depends on the mask, of which only p is known here: so many blocks of
   a row live on average, some rows have more, and whole tiles of dx are dead.

   What it decides by:
   - a launch that lists the live blocks lets as many programs as run at once take one
     tile after another, most work first, each loading the next one's operands while it
     stores: good where each has several tiles, dear where all takes as long as a launch;
   - dx and dw are one launch where that fills the device better than each by itself: what
     takes longer comes first, the other fills the end;
   - few tiles leave SMs idle: smaller ones, or parts of the inner dimension, each with
     its share of the live blocks, whose sums a second launch adds;
   - sorting costs each program a look at the whole mask, and pays where rows differ;
   - operands that no tensor map takes are packed first, unless the work is small;
   - where little is dropped, or blocks are smaller than tiles, all blocks are multiplied
     as by a plain matmul (plan_gemm.c): those of dx that are dropped become zeros before
     they are stored, those of x are not read and become zeros in shared memory;
   - where tensor maps cannot do that, a copy of x without them goes through a plain
     matmul, and dropped blocks of dx are zeroed behind one.

   Rates are of one SM; they and the other figures are fitted to 1,800 ways of 77 calls on
   an H200 (2026-11-27, `tests/gpu/shapes --only sparse --ways 24`): guesses are within 13
   %, the ways taken 2.6 % longer than the best ones. Those of older devices are
   plan_gemm.c's. */
#include "runtime/nn/plan.h"

#include <math.h>

enum { MOST_PARTS = 16, LEAST_STEPS = 4, SORTED_ROWS = 128, SORTED_COLS = 256 };

/* Bytes and operations per microsecond; microseconds.
   - Launches: `list` writes the list, `join` adds parts, which go through memory (at
     `join_bytes`, and `whole_parts` beyond the guess of plan_gemm.c), a copy of x without
     its dropped blocks runs at `copy_live_bytes`.
   - A program has `first_loads` and the end of its tile (`results` elements) beside its
     steps, which another one on the SM leaves `hidden` of, a persistent one
     `begin_listed`, a sorted one `sorting`, each further word of the mask, whose loads
     begin anew, `a_word`; its steps take `least_loop`. `lone`: how fast a tile made for
     two on an SM is by itself; `shared`: how much longer a program takes while it shares
     an SM; `few_rows`: what is left of the rate of a tile cut to blocks; `across`: how
     much longer dw takes of tf32, whose operands lie across.
   - Loads by threads take `by_threads` times as long as by TMA, beyond the `start` of a
     program.
   - A tile of dx that is `filler` times as long as one of dw still fills the end better.
   - All blocks as by a plain matmul: a step takes the producer `a_number` for each block
     that it draws, without roles all warps `a_step` more.
   - Guesses of plain matmuls are another model's: `doubt`, and `plain_tf32`. */
static const double memory_bytes = 4.0e6, cache_bytes = 11.5e6, launch = 2.0,
                    next_launch = 1.8, begin_listed = 1.3, list = 4.2, lone = 0.55,
                    dead_tile = 0.05, copy_odd_bytes = 2.6e6, copy_live_bytes = 7e6,
                    by_threads = 8.7, start = 2.3, a_word = 1, sorting = 0.7,
                    join_bytes = 2.2e6, join = 1, shared = 1.6, filler = 0.65,
                    doubt = 1.03, first_loads = 0.28, results = 9800, hidden = 0.7,
                    least_loop = 1.0, across = 1.75, a_number = 0.18, a_step = 0.045,
                    whole_parts = 1.4, plain_tf32 = 0.95, few_rows = 0.8;

static const GemmTile hopper_half[] = {
    {128, 256, 64, 8, 3, 1, 0, 6.2}, {128, 128, 64, 4, 2, 2, 0, 5.75},
    {128, 128, 64, 4, 4, 1, 0, 6.0}, {64, 256, 64, 4, 3, 1, 0, 5.9},
    {64, 128, 128, 4, 3, 1, 0, 4.7}, {64, 128, 64, 4, 4, 2, 0, 5.4},
    {128, 64, 64, 4, 4, 2, 0, 5.2},  {64, 64, 64, 4, 4, 3, 0, 3.7},
    {32, 64, 64, 4, 3, 3, 0, 1.3}};
static const GemmTile hopper_tf32[] = {
    {128, 256, 32, 8, 3, 1, 0, 2.3}, {128, 128, 32, 8, 3, 1, 0, 2.25},
    {128, 64, 32, 4, 4, 2, 0, 2.15}, {64, 64, 32, 4, 4, 3, 0, 1.15},
    {32, 64, 32, 4, 3, 3, 0, 0.5}};
static const GemmTile ampere_half[] = {{128, 128, 64, 8, 3, 1, 0, 2.0},
                                       {64, 128, 64, 4, 3, 1, 0, 1.5},
                                       {64, 64, 64, 4, 3, 2, 0, 1.2},
                                       {32, 64, 64, 4, 3, 3, 0, 0.7}};
static const GemmTile ampere_tf32[] = {{128, 128, 32, 8, 3, 1, 0, 1.0},
                                       {64, 64, 32, 4, 3, 2, 0, 0.6},
                                       {32, 64, 32, 4, 3, 3, 0, 0.4}};
static const GemmTile cpu[] = {{128, 64, 32, 4, 3, 1, 0, 0.05},
                               {64, 64, 32, 4, 3, 1, 0, 0.05},
                               {32, 64, 32, 4, 3, 1, 0, 0.05}};

/* Two live blocks of a row, and the tile of the listed matmuls. */
static const GemmTile pairs_half = {128, 128, 64, 8, 3, 1, 0, 5.4},
                      pairs_tf32 = {128, 128, 32, 8, 3, 1, 0, 2.5},
                      listed_y = {128, 256, 64, 8, 3, 1, 0, 6.6},
                      listed_gradient = {128, 128, 64, 8, 3, 1, 0, 6.0};

/* One launch for dx and dw: the columns of dx's tiles are the rows of dw's. */
typedef struct Joint {
    GemmTile dx, dw;
} Joint;

static const Joint joint_half[] = {
    {{128, 128, 64, 4, 2, 2, 0, 6.0}, {128, 128, 64, 4, 2, 2, 0, 6.4}},
    {{128, 128, 64, 4, 4, 1, 0, 6.0}, {128, 128, 64, 4, 4, 1, 0, 6.4}},
    {{64, 128, 64, 4, 3, 2, 0, 5.45}, {128, 128, 64, 4, 2, 2, 0, 6.2}},
    {{128, 128, 64, 8, 3, 1, 0, 4.4}, {128, 256, 64, 8, 3, 1, 0, 7.5}},
    {{64, 64, 64, 4, 4, 3, 0, 3.0}, {64, 64, 64, 4, 4, 3, 0, 5.0}}};
static const Joint joint_ampere[] = {
    {{128, 128, 64, 8, 3, 1, 0, 2.0}, {128, 128, 64, 8, 3, 1, 0, 2.0}},
    {{64, 64, 64, 4, 3, 2, 0, 1.2}, {64, 64, 64, 4, 3, 2, 0, 1.2}}};

typedef struct Tiles {
    const GemmTile *at;
    int n;
} Tiles;

#define TILES(of) ((Tiles){of, (int)(sizeof(of) / sizeof *(of))})

static Tiles
tiles_of(const NnDevice *d, int bytes)
{
    if (!d->gpu)
        return TILES(cpu);
    if (d->wgmma)
        return bytes > 2 ? TILES(hopper_tf32) : TILES(hopper_half);
    return bytes > 2 ? TILES(ampere_tf32) : TILES(ampere_half);
}

static int64_t
over(int64_t a, int64_t b)
{
    return (a + b - 1) / b;
}

/* Whether there may be so many parts: with half as many some SMs would be idle, and each
   has enough to do. */
static bool
divides(const NnDevice *d, const SparseAsk *q, const GemmTile *t, int64_t tiles,
        int64_t inner, int parts)
{
    return parts == 1 || (d->gpu && q->sums && tiles * parts / 2 < d->processors &&
                          inner >= (int64_t)LEAST_STEPS * t->k * parts);
}

/* ---- one matmul */

/* Its sizes, c [m, n] over `inner`, and the mask: over c (dx), or over the operand on the
   left, blocks of mask_m x mask_k. */
typedef struct Shape {
    int64_t m, n, inner;
    int64_t rows, cols; /* of the mask */
    int mask_m, mask_k;
    int a_rows, b_rows; /* as GemmAsk's */
    bool dx;
    double slower; /* so many times: of tf32, whose operands lie across */
} Shape;

static Shape
shape_of(const SparseAsk *q, int what)
{
    int64_t rows = over(q->m, q->mask_m), cols = over(q->k, q->mask_k);
    if (what == SPARSE_DW)
        return (Shape){.m = q->k,
                       .n = q->n,
                       .inner = q->m,
                       .rows = cols,
                       .cols = rows,
                       .mask_m = q->mask_k,
                       .mask_k = q->mask_m,
                       .a_rows = q->x_rows,
                       .b_rows = q->dy_rows,
                       .slower = q->bytes > 2 ? across : 1};
    bool dx = what == SPARSE_DX;
    return (Shape){.m = q->m,
                   .n = dx ? q->k : q->n,
                   .inner = dx ? q->n : q->k,
                   .rows = rows,
                   .cols = cols,
                   .mask_m = q->mask_m,
                   .mask_k = q->mask_k,
                   .a_rows = dx ? q->dy_rows : q->x_rows,
                   .b_rows = q->w_rows,
                   .dx = dx,
                   .slower = 1};
}

/* So many programs with work, of `each` microseconds of an SM, `start` of them beside its
   steps; the heaviest has `more`. `idle`: those of dead tiles. */
typedef struct Load {
    double units, each, start, more, idle;
    double cache;  /* their tiles out of the second-level cache */
    double beside;
    int resident;
} Load;

static double
operations(const GemmTile *t)
{
    return 2.0 * t->m * t->n / (t->rate * 1e6);
}

/* What a program of a tile has beside its steps: the first loads and the results, which
   another one on the SM hides in part. */
static double
begin(const GemmTile *t)
{
    return (first_loads + t->m * t->n / results) * (t->resident > 1 ? hidden : 1);
}

/* Lines of the cache that 128 bytes of a row lie in, as they count here (fewer than for
   gemm_lines, since dropped blocks are not read). Operands that no tensor map takes are
   packed, or loaded by threads. */
static double
read_lines(int rows)
{
    return rows < GEMM_MAP_ROWS || rows >= GEMM_LINE ? 1 : 1.9 - 0.9 * rows / GEMM_LINE;
}

static Load
load_of(const NnDevice *d, const SparseAsk *q, const Shape *s, const SparseMatmul *w,
        double first)
{
    const GemmTile *t = &w->tile;
    double p = (double)q->p, depth = (double)s->inner / w->parts;
    double clock = device_clock(d);
    double tiles_m = (double)over(s->m, t->m), wide = w->pairs ? 2.0 : 1.0;
    Load l = {.resident = t->resident, .start = first};
    if (s->dx) {
        double in_block = (double)(s->mask_k / t->n);
        double tiles = tiles_m * (double)s->cols * in_block;
        l.units = ceil(tiles * (1 - p) / wide) * w->parts;
        l.idle = tiles * p / wide * w->parts;
        l.each = fmax(operations(t) * wide * depth, least_loop) + first;
    } else {
        double live = (double)s->cols * (1 - p);
        double words = (double)over(s->cols, 64);
        double step = operations(t) * s->mask_k / w->parts;
        l.units = tiles_m * (double)over(s->n, t->n) * w->parts;
        l.each = fmax(s->slower * operations(t) * depth * (1 - p), least_loop) + first +
                 (words - 1) * a_word;
        l.more = step * fmin(sqrt(live * p * 2 * log((double)s->rows + 1)),
                             (double)s->cols - live);
    }
    l.cache = l.units *
              (t->m * read_lines(s->a_rows) + t->n * wide * read_lines(s->b_rows)) *
              depth * (s->dx ? 1 : 1 - p) * q->bytes / (cache_bytes * device_cache(d));
    if (w->sorted) /* the whole mask and all pairs of rows, by each program */
        l.each += sorting + tiles_m * ((double)s->cols + tiles_m / 4) / 4096;
    if (w->parts > 1)
        l.beside += next_launch + join +
                    2.0 * w->parts * (double)s->m * (double)s->n * 4 / join_bytes;
    l.each /= clock;
    l.start /= clock;
    l.more /= clock;
    return l;
}

static double
tail(const Load *l, bool sorted, double rounds)
{
    return sorted && rounds > 1 ? l->more / rounds : l->more;
}

/* How long programs of one kind take on so many SMs. */
static double
alone(const NnDevice *d, const Load *l, bool sorted)
{
    double wide = d->processors, rounds = ceil(l->units / wide);
    double each = l->each;
    if (rounds < 2 && l->resident > 1)
        each = l->start + (each - l->start) / lone;
    /* unsorted, live tiles of dx meet on some SMs while others have none */
    double meet = !sorted && l->units + l->idle <= wide * l->resident && l->idle > 0
                      ? fmin(1, l->idle / wide)
                      : 0;
    return (rounds + meet) * each + tail(l, sorted, rounds) +
           l->idle * dead_tile / wide;
}

/* Of two kinds: the longer ones, then the others fill. So many SMs have one of the first
   kind more; the end is where one of either kind ends, and late enough for all. */
static double
together(const NnDevice *d, const Load *a, const Load *b)
{
    double wide = d->processors, full = floor(a->units / wide);
    double more = a->units - full * wide, low = full * a->each;
    double high = more > 0 ? low + a->each : low, best = HUGE_VAL;
    double work = (a->units * a->each + b->units * b->each) / wide;
    for (int i = 0; i < 2; i++) { /* behind fewer, behind more of the first kind */
        double from = i ? high : low;
        double n = fmax(0, floor((work - from) / b->each));
        for (;; n++) {
            double end = from + n * b->each;
            double room = (wide - more) * floor((end - low) / b->each + 1e-9) +
                          more * fmax(0, floor((end - high) / b->each + 1e-9));
            if (end >= high - 1e-9 && room >= b->units)
                break;
        }
        best = fmin(best, from + n * b->each);
    }
    if (best < a->each + b->each && a->resident > 1)
        best /= lone;
    if (a->resident > 1)
        best = fmax(best, shared * fmax(a->each, b->each));
    return best + (a->idle + b->idle) * dead_tile / wide;
}

static double
memory_of(const NnDevice *d, const SparseAsk *q, const Shape *s)
{
    double kept = 1 - (double)q->p, a = (double)s->m * (double)s->inner;
    double b = (double)s->inner * (double)s->n, c = (double)s->m * (double)s->n;
    return ((s->dx ? a : a * kept) + b + c) * q->bytes /
           (memory_bytes * device_memory(d));
}

/* The tile within blocks; its rate is as if smaller ones lost that much, and half of it
   where a warpgroup has not its 64 rows. */
static GemmTile
within(const Shape *s, const GemmTile *tile)
{
    GemmTile t = *tile;
    if (t.m > s->mask_m)
        t.rate *= few_rows * s->mask_m / t.m, t.m = s->mask_m;
    if (s->dx && t.n > s->mask_k)
        t.rate *= (double)s->mask_k / t.n, t.n = s->mask_k;
    if (!s->dx && t.k > s->mask_k)
        t.k = s->mask_k;
    return t;
}

static bool
sorts(const Shape *s, const GemmTile *t)
{
    return over(s->m, t->m) <= SORTED_ROWS && s->cols <= SORTED_COLS;
}

/* Ways of one matmul, the best first. `all`: what they are compared by. */
enum { MOST_GUESSES = 16 };

typedef struct Guess {
    SparseMatmul way;
    double products, beside, all;
} Guess;

typedef struct Guesses {
    Guess at[MOST_GUESSES];
    int n;
} Guesses;

static void
guess(Guesses *of, const SparseMatmul *w, double products, double beside, double unsure)
{
    Guess g = {*w, products, beside, (products + beside) * unsure};
    int at = of->n < MOST_GUESSES ? of->n++ : MOST_GUESSES;
    while (at > 0 && of->at[at - 1].all > g.all) {
        if (at < MOST_GUESSES)
            of->at[at] = of->at[at - 1];
        at--;
    }
    if (at < MOST_GUESSES)
        of->at[at] = g;
}

static void
consider_matmul(Guesses *of, const NnDevice *d, const SparseAsk *q, const Shape *s,
                const SparseMatmul *w)
{
    Load l = load_of(d, q, s, w, begin(&w->tile));
    double products =
        gemm_at_once(alone(d, &l, w->sorted), memory_of(d, q, s), l.cache);
    guess(of, w, products, l.beside, 1);
}

static GemmAsk
plain_ask(const SparseAsk *q, const Shape *s, int what)
{
    bool y = what == SPARSE_Y, dx = what == SPARSE_DX;
    return (GemmAsk){.m = s->m,
                     .n = s->n,
                     .k = s->inner,
                     .batch = 1,
                     .math = q->bytes > 2 ? GEMM_TF32 : GEMM_HALF,
                     .bytes = q->bytes,
                     .result = q->bytes,
                     .a_rows = dx ? q->dy_rows : GEMM_LINE,
                     .b_rows = y || dx ? q->w_rows : q->dy_rows,
                     .across = y    ? q->y_across
                               : dx ? q->dx_across
                                    : q->dw_across};
}

/* By a plain matmul: with a copy of x, or a scale in front and zeros behind. */
static void
consider_dense(Guesses *of, const NnDevice *d, const SparseAsk *q, const Shape *s,
               int what)
{
    GemmAsk ask = plain_ask(q, s, what);
    if (!q->sums)
        return;
    SparseMatmul w = {.parts = 1, .dense = true, .gemm = gemm_plan(d, &ask)};
    double bytes = (double)q->m * (double)q->k * q->bytes, memory = device_memory(d);
    double zeros = (double)q->p * bytes / (memory_bytes * memory);
    double beside = s->dx ? 2 * next_launch + zeros
                          : next_launch + 2 * bytes / (copy_live_bytes * memory);
    double products = w.gemm.cost.all - launch;
    w.tile = *w.gemm.tile;
    guess(of, &w, products, beside, doubt);
}

/* What a tile of y or dw takes beyond that of a plain matmul: a number is drawn for each
   block of a step. */
static double
beyond_plain(const Shape *s, const GemmTile *t, double steps)
{
    double numbers = (double)over(t->m, s->mask_m);
    double plain = (double)t->m * t->n * t->k * 2 / (t->rate * 1e6) * t->resident;
    bool roles = t->warps >= 8;
    if (s->dx)
        return 0;
    return steps * (roles ? fmax(0, numbers * a_number - plain) : numbers * a_step);
}

/* Can tensor maps leave out blocks of x in tiles of so many rows? Boxes lie in one block;
   those of x transposed, whose rows lie along memory, have a cache line of them. */
static bool
leaves_out(const SparseAsk *q, const Shape *s, int what, const GemmTile *t)
{
    return s->dx || t->m <= s->mask_m ||
           (t->m % s->mask_m == 0 &&
            (what == SPARSE_Y || s->mask_m * q->bytes >= GEMM_LINE));
}

/* All blocks, dead or not, as by a plain matmul without a copy. Of y and dw a step is
   within a block. */
static void
consider_whole(Guesses *of, const NnDevice *d, const SparseAsk *q, const Shape *s,
               int what)
{
    enum { MOST = 64 };
    GemmWay ways[MOST];
    GemmAsk ask = plain_ask(q, s, what);
    NnDevice lends = *d;
    if (!s->dx)
        ask.a_rows = q->x_rows;
    if (ask.a_rows < GEMM_MAP_ROWS || ask.b_rows < GEMM_MAP_ROWS)
        return;
    ask.stay = 3;
    lends.lends = q->sums;
    int n = gemm_ways(&lends, &ask, ways, MOST);
    for (int i = 0; i < n; i++) {
        const GemmWay *g = &ways[i];
        SparseMatmul w = {.tile = *g->tile, .parts = g->split, .whole = true};
        if (w.tile.m < 64 || g->swapped || !leaves_out(q, s, what, &w.tile))
            continue;
        if (!s->dx && w.tile.k > s->mask_k) {
            w.tile.stages *= w.tile.k / s->mask_k;
            w.tile.k = s->mask_k;
        }
        double tiles =
            (double)over(s->m, w.tile.m) * (double)over(s->n, w.tile.n) * w.parts;
        double turns = ceil(tiles / d->processors / w.tile.resident);
        double steps = ceil((double)s->inner / w.parts / w.tile.k);
        double more = turns * beyond_plain(s, &w.tile, steps) / device_clock(d);
        double products = (q->bytes > 2 ? plain_tf32 : 1) * (g->cost.all - launch) + more;
        guess(of, &w, products, w.parts > 1 ? whole_parts : 0, doubt);
    }
}

static Guesses
guesses_of(const NnDevice *d, const SparseAsk *q, int what)
{
    Guesses of = {0};
    Shape s = shape_of(q, what);
    Tiles tiles = tiles_of(d, q->bytes);
    if (!(q->wants & what))
        return of;
    for (int i = 0; i < tiles.n; i++) {
        SparseMatmul w = {.tile = within(&s, &tiles.at[i])};
        int64_t all = over(s.m, w.tile.m) * over(s.n, w.tile.n);
        bool may_sort = d->gpu && sorts(&s, &w.tile) && q->p > 0;
        for (int sorted = 0; sorted <= may_sort; sorted++) {
            Guesses parts = {0};
            w.sorted = sorted;
            for (w.parts = 1; w.parts <= MOST_PARTS; w.parts *= 2) {
                if (!divides(d, q, &w.tile, all, s.inner, w.parts))
                    break;
                consider_matmul(&parts, d, q, &s, &w);
            }
            const Guess *best = &parts.at[0];
            guess(&of, &best->way, best->products, best->beside, 1);
        }
    }
    const GemmTile *two = q->bytes > 2 ? &pairs_tf32 : &pairs_half;
    if (d->wgmma && what == SPARSE_DX && s.mask_m == two->m && s.mask_k == two->n)
        consider_matmul(&of, d, q, &s,
                        &(SparseMatmul){.tile = *two, .parts = 1, .pairs = true});
    if (d->wgmma)
        consider_whole(&of, d, q, &s, what);
    if (d->gpu)
        consider_dense(&of, d, q, &s, what);
    return of;
}

/* ---- all that is wanted */

/* Ways of all, the best first: as many as are asked for, and one. */
enum { MOST_WAYS = 24 };

typedef struct Whole {
    SparseWay way;
    double products, beside, all;
    double by; /* what they are compared by */
} Whole;

typedef struct Ways {
    const NnDevice *d;
    const SparseAsk *q;
    int n, most;
    Whole at[MOST_WAYS];
} Ways;

/* What operands without tensor maps cost: a copy each, or loads by threads. */
static void
pack(Whole *plan, const NnDevice *d, const SparseAsk *q)
{
    const struct {
        int32_t rows;
        int64_t elements;
        bool *packs;
    } of[] = {{q->x_rows, q->m * q->k, &plan->way.pack_x},
              {q->w_rows, q->k * q->n, &plan->way.pack_w},
              {q->dy_rows, q->m * q->n, &plan->way.pack_dy}};
    double copies = 0;
    const SparseWay *w = &plan->way;
    /* a plain matmul packs what it needs itself */
    bool y = w->y.tile.m && !w->y.dense, dx = w->dx.tile.m && !w->dx.dense;
    bool dw = w->dw.tile.m && !w->dw.dense;
    const bool reads[] = {y || dw, y || dx, dx || dw};
    for (int i = 0; i < 3; i++)
        if (reads[i] && of[i].rows < GEMM_MAP_ROWS)
            copies += next_launch + 2.0 * (double)of[i].elements * q->bytes /
                                        (copy_odd_bytes * device_memory(d));
    double slower = (by_threads - 1) * fmax(0, plan->products - start);
    if (copies <= 0)
        return;
    bool packs = q->sums && copies < slower;
    for (int i = 0; i < 3; i++)
        *of[i].packs = packs && reads[i] && of[i].rows < GEMM_MAP_ROWS;
    plan->beside += packs ? copies : 0;
    plan->products += packs ? 0 : slower;
}

static void
consider(Ways *ways, const SparseWay *way, double products, double beside,
         double unsure)
{
    Whole w = {.way = *way, .products = products, .beside = beside};
    if (ways->d->wgmma)
        pack(&w, ways->d, ways->q);
    w.all = w.products + w.beside;
    w.by = w.all * unsure;
    int at = ways->n < ways->most ? ways->n++ : ways->most;
    while (at > 0 && ways->at[at - 1].by > w.by) {
        if (at < ways->most)
            ways->at[at] = ways->at[at - 1];
        at--;
    }
    if (at < ways->most)
        ways->at[at] = w;
}

static void
consider_joint(Ways *ways, const NnDevice *d, const SparseAsk *q, const Joint *j,
               int parts)
{
    Shape dx = shape_of(q, SPARSE_DX), dw = shape_of(q, SPARSE_DW);
    if (j->dx.m > dx.mask_m || j->dx.n > dx.mask_k || j->dw.k > dw.mask_k)
        return;
    for (int sorted = 0; sorted < 2; sorted++) {
        SparseWay w = {.order = SPARSE_JOINT,
                       .dx = {.tile = j->dx, .parts = 1, .sorted = sorted},
                       .dw = {.tile = j->dw, .parts = parts, .sorted = sorted}};
        if (sorted && (!sorts(&dx, &j->dx) || !sorts(&dw, &j->dw) || q->p <= 0))
            return;
        Load a = load_of(d, q, &dx, &w.dx, begin(&j->dx));
        Load b = load_of(d, q, &dw, &w.dw, begin(&j->dw));
        w.dw_first = b.each > filler * a.each;
        double ends = w.dw_first ? together(d, &b, &a) : together(d, &a, &b);
        double last = tail(&b, sorted, (a.units + b.units) / d->processors);
        double products =
            gemm_at_once(ends + last, memory_of(d, q, &dx) + memory_of(d, q, &dw),
                         a.cache + b.cache);
        consider(ways, &w, products, launch + b.beside, 1);
    }
}

/* A list's kernels take any number of tiles: they are dealt evenly. */
static double
listed_of(const NnDevice *d, const SparseAsk *q, const Shape *s, const SparseMatmul *w)
{
    Load l = load_of(d, q, s, w, begin_listed);
    return gemm_at_once(ceil(l.units / d->processors) * l.each +
                            tail(&l, true, l.units / d->processors),
                        memory_of(d, q, s), l.cache) +
           1;
}

static void
consider_listed(Ways *ways, const NnDevice *d, const SparseAsk *q)
{
    Shape s = shape_of(q, SPARSE_Y), dx = shape_of(q, SPARSE_DX),
          dw = shape_of(q, SPARSE_DW);
    if (!q->lists || q->bytes > 2 || s.mask_m != SPARSE_BLOCK ||
        s.mask_k != SPARSE_BLOCK || s.rows > SPARSE_LIST_SIDE ||
        s.cols > SPARSE_LIST_SIDE)
        return;
    SparseWay w = {.order = SPARSE_LISTED};
    double all = 0, beside = launch + list;
    if (q->wants & SPARSE_Y) {
        w.y = (SparseMatmul){.tile = listed_y, .parts = 1, .sorted = true};
        all += listed_of(d, q, &s, &w.y);
    }
    if (q->wants & SPARSE_DX) {
        w.dx = (SparseMatmul){
            .tile = listed_gradient, .parts = 1, .sorted = true, .pairs = true};
        all += listed_of(d, q, &dx, &w.dx);
    }
    if (q->wants & SPARSE_DW) {
        w.dw = (SparseMatmul){.tile = listed_y, .parts = 1, .sorted = true};
        all += listed_of(d, q, &dw, &w.dw);
        beside += q->wants & SPARSE_DX ? next_launch : 0;
    }
    consider(ways, &w, all, beside, 1);
    if (q->wants != (SPARSE_DX | SPARSE_DW))
        return;
    w.order = SPARSE_LISTED_JOINT;
    w.dw = (SparseMatmul){.tile = listed_gradient, .parts = 1, .sorted = true};
    SparseMatmul two = w.dw;
    two.tile.n *= 2;
    Load a = load_of(d, q, &dx, &w.dx, begin_listed);
    Load b = load_of(d, q, &dw, &two, begin_listed);
    double last = tail(&b, true, (a.units + b.units) / d->processors);
    double products =
        gemm_at_once(together(d, &a, &b) + last,
                     memory_of(d, q, &dx) + memory_of(d, q, &dw), a.cache + b.cache);
    consider(ways, &w, products + 1, launch + list, 1);
}

/* A launch for each matmul: the best ways of all, and others of one at a time. */
static void
consider_apart(Ways *ways)
{
    enum { KINDS = 3 };
    static const int kinds[KINDS] = {SPARSE_Y, SPARSE_DX, SPARSE_DW};
    Guesses of[KINDS];
    bool both = (ways->q->wants & (SPARSE_DX | SPARSE_DW)) == (SPARSE_DX | SPARSE_DW);
    for (int i = 0; i < KINDS; i++)
        of[i] = guesses_of(ways->d, ways->q, kinds[i]);
    for (int other = -1; other < KINDS; other++)
        for (int i = other >= 0; i < (other < 0 ? 1 : of[other].n); i++) {
            SparseWay w = {.order = SPARSE_APART};
            SparseMatmul *to[KINDS] = {&w.y, &w.dx, &w.dw};
            double products = 0, beside = launch + both * next_launch, by = beside;
            for (int j = 0; j < KINDS; j++) {
                const Guess *g = &of[j].at[j == other ? i : 0];
                if (!of[j].n)
                    continue;
                *to[j] = g->way;
                products += g->products;
                beside += g->beside;
                by += g->all;
            }
            consider(ways, &w, products, beside, by / (products + beside));
        }
}

SparsePlan
sparse_plan(const NnDevice *d, const SparseAsk *q)
{
    Ways ways = {.d = d, .q = q};
    bool half = q->bytes <= 2 && (q->wants & SPARSE_DX) && (q->wants & SPARSE_DW);
    const Joint *j = d->wgmma ? joint_half : joint_ampere;
    int n = d->wgmma ? (int)(sizeof joint_half / sizeof *j)
                     : (int)(sizeof joint_ampere / sizeof *j);
    ways.most = q->way + 2 < MOST_WAYS ? q->way + 2 : MOST_WAYS;
    consider_listed(&ways, d, q);
    if (d->gpu || !ways.n) /* there a caller's memory is for a list */
        consider_apart(&ways);
    for (int i = 0; i < n && half && d->gpu; i++) {
        int64_t all = over(q->k, j[i].dw.m) * over(q->n, j[i].dw.n);
        for (int parts = 1; parts <= MOST_PARTS; parts *= 2)
            if (divides(d, q, &j[i].dw, all, q->m, parts))
                consider_joint(&ways, d, q, &j[i], parts);
    }
    const Whole *w = &ways.at[q->way < ways.n ? q->way : ways.n - 1];
    SparsePlan plan = {
        .way = w->way, .products = w->products, .beside = w->beside, .all = w->all};
    if (w + 1 < ways.at + ways.n) {
        plan.next = w[1].way;
        plan.next_us = w[1].all;
    }
    return plan;
}
