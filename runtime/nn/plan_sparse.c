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
     they are stored, those of x where a copy of it without them would cost more than its
     way through registers;
   - such a copy goes through a plain matmul; where tensor maps cannot, dropped blocks of
     dx are zeroed behind one.

   Rates are of one SM; they and the other figures are fitted to layers of 1024 to 4096 on
   an H200 (2026-11-23, `tests/gpu/shapes --only sparse`, and with `--tiles`). Those of
   older devices are plan_gemm.c's. */
#include "runtime/nn/plan.h"

#include <math.h>

enum { MOST_PARTS = 16, LEAST_STEPS = 4, SORTED_ROWS = 128, SORTED_COLS = 256 };

/* Bytes and operations per microsecond; microseconds. `begin_listed`: what a persistent
   program has beside the steps of a tile; `list`: the launch that writes it; `lone`: how
   fast a tile made for two on an SM is by itself; `by_threads`: how much slower loads by
   threads are than by TMA, beyond the `start` of a program; `a_word`: a further word of
   the mask, whose loads begin anew; `join`: the launch that adds parts, which go through
   memory; `beneath`: of the second-level cache's time, what does not hide behind matmuls;
   `shared`: how much longer a program takes while it shares an SM; `filler`: a tile of
   dx that is so much longer than one of dw still fills the end better; `surely`: what the
   two models' guesses must differ by. */
static const double memory_bytes = 4.0e6, cache_bytes = 11.5e6, launch = 2.0,
                    next_launch = 1.8, begin_listed = 1.0, list = 3.0,
                    lone = 0.72, dead_tile = 0.3, copy_odd_bytes = 2.6e6, by_threads = 5,
                    start = 3, a_word = 1, sorting = 0.7, join_bytes = 2.8e6, join = 1,
                    beneath = 0.05, shared = 1.6, filler = 0.65, surely = 0.97;

static const GemmTile hopper_half[] = {
    {128, 256, 64, 8, 3, 1, 0, 5.65}, {128, 128, 64, 4, 2, 2, 0, 5.6},
    {128, 128, 64, 4, 4, 1, 0, 5.3},  {64, 256, 64, 4, 3, 1, 0, 5.25},
    {64, 128, 128, 4, 3, 1, 0, 4.0},  {64, 128, 64, 4, 4, 2, 0, 4.1},
    {128, 64, 64, 4, 4, 2, 0, 3.7},   {64, 64, 64, 4, 4, 3, 0, 3.1},
    {32, 64, 64, 4, 3, 3, 0, 1.0}};
static const GemmTile hopper_tf32[] = {
    {128, 256, 32, 8, 3, 1, 0, 3.0}, {128, 128, 32, 8, 3, 1, 0, 2.3},
    {128, 64, 32, 4, 4, 2, 0, 1.6},  {64, 64, 32, 4, 4, 3, 0, 1.4},
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
static const GemmTile pairs_half = {128, 128, 64, 8, 3, 1, 0, 5.5},
                      pairs_tf32 = {128, 128, 32, 8, 3, 1, 0, 2.8},
                      listed_y = {128, 256, 64, 8, 3, 1, 0, 6.0},
                      listed_gradient = {128, 128, 64, 8, 3, 1, 0, 5.8};

/* One launch for dx and dw: the columns of dx's tiles are the rows of dw's. */
typedef struct Joint {
    GemmTile dx, dw;
} Joint;

static const Joint joint_half[] = {
    {{128, 128, 64, 4, 2, 2, 0, 5.6}, {128, 128, 64, 4, 2, 2, 0, 5.6}},
    {{128, 128, 64, 4, 4, 1, 0, 4.9}, {128, 128, 64, 4, 4, 1, 0, 4.9}},
    {{64, 128, 64, 4, 3, 2, 0, 3.8}, {128, 128, 64, 4, 2, 2, 0, 5.6}},
    {{128, 128, 64, 8, 3, 1, 0, 4.6}, {128, 256, 64, 8, 3, 1, 0, 5.7}},
    {{64, 64, 64, 4, 4, 3, 0, 2.6}, {64, 64, 64, 4, 4, 3, 0, 2.6}}};
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
    bool dx;
} Shape;

static Shape
shape_of(const SparseAsk *q, int what)
{
    int64_t rows = over(q->m, q->mask_m), cols = over(q->k, q->mask_k);
    if (what == SPARSE_Y)
        return (Shape){q->m, q->n, q->k, rows, cols, q->mask_m, q->mask_k, false};
    if (what == SPARSE_DX)
        return (Shape){q->m, q->k, q->n, rows, cols, q->mask_m, q->mask_k, true};
    return (Shape){q->k, q->n, q->m, cols, rows, q->mask_k, q->mask_m, false};
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
    return (0.4 + t->m * t->n / 14000.0) * (t->resident > 1 ? 0.7 : 1);
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
        l.each = operations(t) * wide * depth + first;
    } else {
        double live = (double)s->cols * (1 - p);
        double words = (double)over(s->cols, 64);
        double step = operations(t) * s->mask_k / w->parts;
        l.units = tiles_m * (double)over(s->n, t->n) * w->parts;
        l.each = operations(t) * depth * (1 - p) + first + (words - 1) * a_word;
        l.more = step * fmin(sqrt(live * p * 2 * log((double)s->rows + 1)),
                             (double)s->cols - live);
    }
    l.cache = l.units * (t->m + t->n * wide) * depth * (s->dx ? 1 : 1 - p) * q->bytes /
              (cache_bytes * device_cache(d));
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
        t.rate *= (double)s->mask_m / t.m * (s->mask_m < 64 ? 0.5 : 1), t.m = s->mask_m;
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

typedef struct Best {
    SparseMatmul way;
    double products, beside;
} Best;

static void
consider_matmul(Best *best, const NnDevice *d, const SparseAsk *q, const Shape *s,
                const SparseMatmul *w)
{
    Load l = load_of(d, q, s, w, begin(&w->tile));
    double products =
        fmax(alone(d, &l, w->sorted), memory_of(d, q, s)) + beneath * l.cache;
    if (best->way.tile.m && products + l.beside >= best->products + best->beside)
        return;
    *best = (Best){*w, products, l.beside};
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
consider_dense(Best *best, const NnDevice *d, const SparseAsk *q, const Shape *s,
               int what)
{
    GemmAsk ask = plain_ask(q, s, what);
    if (!q->sums)
        return;
    SparseMatmul w = {.parts = 1, .dense = true, .gemm = gemm_plan(d, &ask)};
    double bytes = (double)q->m * (double)q->k * q->bytes, memory = device_memory(d);
    double zeros = (double)q->p * bytes / (memory_bytes * memory);
    double beside = s->dx ? 2 * next_launch + zeros
                          : next_launch + 2 * bytes / (copy_odd_bytes * memory);
    double products = w.gemm.cost.all - launch;
    w.tile = *w.gemm.tile;
    if (products + beside < surely * (best->products + best->beside))
        *best = (Best){w, products, beside};
}

/* Registers that hold a are filled while another warpgroup multiplies, and once for all
   accumulators. */
static bool
takes_whole(const GemmWay *w, bool dx)
{
    const GemmTile *t = w->tile;
    bool one = (t->n & (t->n - 1)) == 0;
    return t->m >= 64 && !w->swapped && (dx || (one && t->warps >= 8));
}

/* What a tile takes beyond that of a plain matmul, fitted to 27 tiles (H200, 2026-11-27,
   tests/gpu/shapes --tiles --only 3072x3072x768). Of y and dw each warpgroup fills the
   registers of a step while the other one multiplies, and who takes longer is waited for
   (`fill`; blocks smaller than a step have more to choose between): tiles of 256 columns
   hide most of it, smaller ones do not. */
static double
beyond_plain(const Shape *s, const GemmWay *w)
{
    const double of_dx = 0.4, draw = 1.3, a_draw = 0.2, fill = 0.32, fill_small = 0.46;
    const GemmTile *t = w->tile;
    double steps = ceil((double)s->inner / w->split / t->k);
    double other = (double)t->m * t->n * t->k / (t->rate * 1e6);
    double own = (s->mask_k < t->k ? fill_small : fill) * (t->m > 128 ? 2 : 1);
    if (s->dx)
        return of_dx;
    return draw + a_draw * (double)(over(s->cols, 64) - 1) + steps * fmax(0, own - other);
}

/* All blocks, dead or not, as by a plain matmul without a copy. Guesses of the ways by
   tiles are some 6 % too high where those of these are 4 % too low (`against_tiles`: at
   4096^3 such y and dw took 5 % longer, guessed to be as fast). */
static void
consider_whole(Best *best, const NnDevice *d, const SparseAsk *q, const Shape *s,
               int what)
{
    enum { MOST = 64 };
    const double against_tiles = 1.1;
    GemmWay ways[MOST];
    GemmAsk ask = plain_ask(q, s, what);
    NnDevice lends = *d;
    if (!s->dx)
        ask.a_rows = q->x_rows;
    if (ask.a_rows < GEMM_MAP_ROWS || ask.b_rows < GEMM_MAP_ROWS ||
        (!s->dx && (q->bytes > 2 || over(s->cols, 64) > SPARSE_WHOLE_WORDS)))
        return;
    ask.stay = 3;
    lends.lends = q->sums;
    int n = gemm_ways(&lends, &ask, ways, MOST);
    for (int i = 0; i < n; i++) {
        const GemmWay *g = &ways[i];
        SparseMatmul w = {.tile = *g->tile, .parts = g->split, .whole = true};
        double tiles =
            (double)over(s->m, w.tile.m) * (double)over(s->n, w.tile.n) * w.parts;
        double turns = ceil(tiles / d->processors / w.tile.resident);
        double products =
            (s->dx ? 1 : against_tiles) *
            (g->cost.all - launch + turns * beyond_plain(s, g) / device_clock(d));
        bool better = best->way.whole
                          ? products < best->products
                          : products < surely * (best->products + best->beside);
        if (takes_whole(g, s->dx) && better)
            *best = (Best){w, products, 0};
    }
}

static Best
matmul_by_tiles(const NnDevice *d, const SparseAsk *q, int what)
{
    Best best = {0};
    Shape s = shape_of(q, what);
    Tiles tiles = tiles_of(d, q->bytes);
    if (!(q->wants & what))
        return best;
    for (int i = 0; i < tiles.n; i++) {
        SparseMatmul w = {.tile = within(&s, &tiles.at[i])};
        int64_t all = over(s.m, w.tile.m) * over(s.n, w.tile.n);
        for (w.parts = 1; w.parts <= MOST_PARTS; w.parts *= 2) {
            if (!divides(d, q, &w.tile, all, s.inner, w.parts))
                break;
            w.sorted = false;
            consider_matmul(&best, d, q, &s, &w);
            w.sorted = d->gpu && sorts(&s, &w.tile) && q->p > 0;
            if (w.sorted)
                consider_matmul(&best, d, q, &s, &w);
        }
    }
    const GemmTile *two = q->bytes > 2 ? &pairs_tf32 : &pairs_half;
    if (d->wgmma && what == SPARSE_DX && s.mask_m == two->m && s.mask_k == two->n)
        consider_matmul(&best, d, q, &s,
                        &(SparseMatmul){.tile = *two, .parts = 1, .pairs = true});
    if (d->wgmma)
        consider_whole(&best, d, q, &s, what);
    if (d->gpu)
        consider_dense(&best, d, q, &s, what);
    return best;
}

/* ---- all that is wanted */

static void
consider(SparsePlan *best, const SparseWay *w, double products, double beside)
{
    double all = products + beside;
    if (best->all > 0 && all >= best->all) {
        if (best->next_us > 0 && all >= best->next_us)
            return;
        best->next = *w;
        best->next_us = all;
        return;
    }
    *best = (SparsePlan){.way = *w,
                         .products = products,
                         .beside = beside,
                         .all = all,
                         .next = best->way,
                         .next_us = best->all};
}

static void
consider_joint(SparsePlan *best, const NnDevice *d, const SparseAsk *q, const Joint *j,
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
        double products = fmax(ends + tail(&b, sorted, (a.units + b.units) /
                                                           d->processors),
                               memory_of(d, q, &dx) + memory_of(d, q, &dw)) +
                          beneath * (a.cache + b.cache);
        consider(best, &w, products, launch + b.beside);
    }
}

/* A list's kernels take any number of tiles: they are dealt evenly. */
static double
listed_of(const NnDevice *d, const SparseAsk *q, const Shape *s, const SparseMatmul *w)
{
    Load l = load_of(d, q, s, w, begin_listed);
    return fmax(ceil(l.units / d->processors) * l.each +
                    tail(&l, true, l.units / d->processors),
                memory_of(d, q, s)) +
           beneath * l.cache + 1;
}

static void
consider_listed(SparsePlan *best, const NnDevice *d, const SparseAsk *q)
{
    Shape s = shape_of(q, SPARSE_Y), dx = shape_of(q, SPARSE_DX),
          dw = shape_of(q, SPARSE_DW);
    if (!q->lists || q->bytes > 2 || s.mask_m != SPARSE_BLOCK ||
        s.mask_k != SPARSE_BLOCK || s.rows > SPARSE_LIST_SIDE ||
        s.cols > SPARSE_LIST_SIDE)
        return;
    SparseWay w = {.order = SPARSE_LISTED};
    double products = 0, beside = launch + list;
    if (q->wants & SPARSE_Y) {
        w.y = (SparseMatmul){.tile = listed_y, .parts = 1, .sorted = true};
        products += listed_of(d, q, &s, &w.y);
    }
    if (q->wants & SPARSE_DX) {
        w.dx = (SparseMatmul){
            .tile = listed_gradient, .parts = 1, .sorted = true, .pairs = true};
        products += listed_of(d, q, &dx, &w.dx);
    }
    if (q->wants & SPARSE_DW) {
        w.dw = (SparseMatmul){.tile = listed_y, .parts = 1, .sorted = true};
        products += listed_of(d, q, &dw, &w.dw);
        beside += q->wants & SPARSE_DX ? next_launch : 0;
    }
    consider(best, &w, products, beside);
    if (q->wants != (SPARSE_DX | SPARSE_DW))
        return;
    w.order = SPARSE_LISTED_JOINT;
    w.dw = (SparseMatmul){.tile = listed_gradient, .parts = 1, .sorted = true};
    SparseMatmul two = w.dw;
    two.tile.n *= 2;
    Load a = load_of(d, q, &dx, &w.dx, begin_listed);
    Load b = load_of(d, q, &dw, &two, begin_listed);
    consider(best, &w,
             together(d, &a, &b) + tail(&b, true, (a.units + b.units) / d->processors) +
                 beneath * (a.cache + b.cache) + 1,
             launch + list);
}

/* What operands without tensor maps cost: a copy each, or loads by threads. */
static void
pack(SparsePlan *plan, const NnDevice *d, const SparseAsk *q)
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
    plan->all = plan->products + plan->beside;
    plan->next_us += plan->next_us > 0 ? fmin(copies, slower) : 0;
}

SparsePlan
sparse_plan(const NnDevice *d, const SparseAsk *q)
{
    SparsePlan plan = {0};
    Best y = matmul_by_tiles(d, q, SPARSE_Y), dx = matmul_by_tiles(d, q, SPARSE_DX),
         dw = matmul_by_tiles(d, q, SPARSE_DW);
    bool both = dx.way.tile.m && dw.way.tile.m;
    SparseWay w = {.order = SPARSE_APART, .y = y.way, .dx = dx.way, .dw = dw.way};
    consider(&plan, &w, y.products + dx.products + dw.products,
             launch + y.beside + dx.beside + dw.beside + both * next_launch);
    if (!d->gpu) {
        if (q->lists) /* a caller's memory is for a list */
            plan.all = HUGE_VAL;
        consider_listed(&plan, d, q);
        return plan;
    }
    bool half = q->bytes <= 2 && both;
    const Joint *j = d->wgmma ? joint_half : joint_ampere;
    int n = d->wgmma ? (int)(sizeof joint_half / sizeof *j)
                     : (int)(sizeof joint_ampere / sizeof *j);
    for (int i = 0; i < n && half; i++) {
        int64_t all = over(q->k, j[i].dw.m) * over(q->n, j[i].dw.n);
        for (int parts = 1; parts <= MOST_PARTS; parts *= 2)
            if (divides(d, q, &j[i].dw, all, q->m, parts))
                consider_joint(&plan, d, q, &j[i], parts);
    }
    consider_listed(&plan, d, q);
    if (d->wgmma)
        pack(&plan, d, q);
    return plan;
}
