/* The cost model of matmuls. Three things go on at once: rounds of tiles on the tensor
   cores, operands and results once between memory and the SMs, and tiles out of the
   second-level cache. What is close to the slowest of them adds to it; launches, packing,
   the sum of parts and the last round's results come on top.

   What it decides by:
   - a round takes as long for one tile as for one on each SM, so tiles of other sizes
     may fill the last one better, and 192 columns be less empty than 256;
   - when its sums are done a program stores them, which costs large tiles less;
   - few tiles leave SMs idle: parts along k fill them, and cost a launch and
     their sums' way through memory;
   - few rows are bound by memory, and memory is fast when enough is in flight: programs
     times stages times bytes of a stage, over the latency of memory; rows that a tile has
     and the operand has not are in its way;
   - operands that no tensor map takes (rows that do not begin on 16 bytes) are loaded
     element by element, or packed first: the copy is linear in the operand, the matmul
     is not;
   - columns of a tile may be the sum of two powers of two and its rows may not: swapped,
     as c^T = b^T a^T, such tiles divide the rows of c, and few columns are few rows;
   - fp8 that does not lie along k, and tf32 of which neither operand does, is transposed
     on the way through shared memory, which slows the tensor cores down, or first.

   Numbers are fitted to 745 ways of 75 matmuls on an H200 (`tests/gpu/shapes --only
   gemm,batched --draw 60 --ways 10`, 2026-11-23), those of halves to 1365 times of 121
   matmuls by tiles of any kind (matmul.tk, 2026-11-27): what is chosen takes 1.3 % and
   0.9 % longer than the best of them, by the geometric mean. On another device they go
   by its clock and its memory (plan_device.c). Rates are of one SM; what is older has
   other kernels and rates guessed from an A100's. */
#include "runtime/nn/plan.h"

#include <math.h>

/* Kernels of so many warps have a producer, which may ask for halves (pass multicast). */
enum { MOST_WAYS = 64, MOST_PARTS = 32, LEAST_STEPS = 4, ROLE_WARPS = 8,
       MOST_ROUNDS = 4 };

/* Bytes and operations are per microsecond. */
static const double memory_bytes = 4.4e6, cache_bytes = 13.3e6, copy_bytes = 3.5e6,
                    latency = 0.8, launch = 3.9, next_launch = 2.4, next_copy = 2.2,
                    turn_bytes = 3.8e6, next_turn = 1.6, in_vain = 0.12, later_copy = 1.6,
                    later_launch = 1.2, by_parts = 1.3, by_elements = 4.4,
                    threads_launch = 3.3, taking_turns = 1.25, next_program = 0.8;

/* By tensor maps and wgmma. */
static const GemmTile hopper_half[] = {
    {128, 256, 64, 8, 3, 1, 0.15, 6.95}, {128, 128, 64, 4, 4, 1, 0.18, 6.4},
    {64, 256, 64, 4, 3, 1, 0.18, 6.0},   {64, 128, 128, 4, 3, 1, 0.36, 6.4},
    {128, 64, 64, 4, 4, 2, 0.18, 3.6},   {64, 64, 64, 4, 4, 2, 0.18, 2.5},
    {128, 192, 64, 8, 4, 1, 0.15, 6.3},  {256, 128, 64, 8, 3, 1, 0.15, 6.0},
    {128, 128, 64, 8, 4, 1, 0.15, 6.6},  {128, 96, 64, 4, 4, 2, 0.18, 4.5},
    {64, 128, 64, 8, 6, 1, 0.15, 4.3},   {64, 64, 128, 4, 5, 1, 0.35, 3.5},
    {64, 32, 128, 4, 6, 1, 0.31, 2.0},   {64, 32, 64, 4, 6, 2, 0.18, 1.85},
    {64, 128, 128, 8, 4, 1, 0.28, 4.6},  {64, 192, 64, 4, 4, 1, 0.25, 6.4},
    {64, 32, 256, 4, 4, 1, 0.45, 2.4},   {128, 128, 64, 4, 2, 2, 0.41, 5.6},
    {64, 128, 64, 4, 2, 3, 0.50, 6.2},   {64, 64, 64, 4, 2, 4, 0.42, 3.1}};
/* Of the transposed matmul; rows and columns of the plain ones change places, too. */
static const GemmTile hopper_half_swapped[] = {
    {128, 256, 64, 8, 3, 1, 0.15, 6.95}, {128, 288, 64, 8, 3, 1, 0.15, 6.4},
    {64, 128, 64, 8, 6, 1, 0.15, 4.4},   {64, 160, 64, 4, 4, 2, 0.37, 6.2},
    {64, 16, 128, 4, 6, 1, 0.22, 1.2}};
/* By mma.sync. */
static const GemmTile hopper_half_few[] = {{16, 64, 128, 4, 5, 2, 0.30, 1.05},
                                           {16, 128, 64, 4, 6, 2, 0.20, 1.2},
                                           {16, 32, 256, 4, 4, 2, 0.30, 0.8}};
static const GemmTile hopper_tf32_few[] = {{32, 128, 32, 4, 5, 2, 0.18, 0.91},
                                           {32, 64, 64, 4, 4, 2, 0.36, 0.88}};
static const GemmTile hopper_tf32[] = {
    {256, 128, 32, 8, 3, 1, 0.15, 3.5},  {128, 128, 32, 8, 3, 1, 0.15, 2.7},
    {128, 64, 32, 4, 4, 2, 0.18, 1.67},  {64, 64, 32, 4, 4, 2, 0.18, 1.27},
    {128, 256, 32, 8, 3, 1, 0.15, 3.06}, {256, 64, 32, 8, 4, 1, 0.15, 2.27},
    {64, 128, 32, 4, 4, 2, 0.18, 1.81},  {64, 64, 64, 4, 4, 1, 0.28, 1.7},
    {64, 32, 64, 4, 6, 1, 0.36, 1.0}};
/* Steps of twice as many, as many bytes. Fewer rows than 64 are columns of the transposed
   matmul. */
static const GemmTile hopper_fp8[] = {
    {128, 256, 128, 8, 3, 1, 0.15, 12.8}, {128, 128, 128, 4, 4, 1, 0.18, 9.0},
    {64, 256, 128, 4, 3, 1, 0.18, 7.5},   {64, 128, 256, 4, 3, 1, 0.36, 8.0},
    {128, 64, 128, 4, 4, 2, 0.18, 6.2},   {64, 64, 128, 4, 4, 2, 0.18, 4.2},
    {128, 192, 128, 8, 4, 1, 0.15, 9.6},  {256, 128, 128, 8, 3, 1, 0.15, 12.8},
    {128, 128, 128, 8, 4, 1, 0.15, 12.2}, {128, 128, 256, 8, 3, 1, 0.30, 9.7},
    {128, 96, 128, 4, 4, 2, 0.18, 6.5},   {64, 128, 128, 8, 6, 1, 0.15, 8.4},
    {64, 64, 256, 4, 5, 1, 0.34, 5.8},    {64, 32, 256, 4, 6, 1, 0.60, 3.6},
    {64, 32, 128, 4, 6, 2, 0.30, 3.3},    {16, 64, 256, 4, 5, 2, 0.28, 2.1},
    {16, 128, 128, 4, 6, 2, 0.22, 2.4},   {32, 64, 256, 4, 4, 2, 0.32, 3.6},
    {32, 128, 128, 4, 5, 2, 0.25, 4.2}};
static const GemmTile hopper_fp8_fast[] = {
    {128, 256, 128, 8, 3, 1, 0.15, 13.3}, {128, 128, 128, 4, 4, 1, 0.18, 13.5},
    {64, 256, 128, 4, 3, 1, 0.18, 13.0},  {64, 128, 256, 4, 3, 1, 0.36, 11.0},
    {128, 64, 128, 4, 4, 2, 0.18, 7.2},   {64, 64, 128, 4, 4, 2, 0.18, 4.6},
    {128, 192, 128, 8, 4, 1, 0.15, 13.4}, {256, 128, 128, 8, 3, 1, 0.15, 12.1},
    {128, 128, 128, 8, 4, 1, 0.15, 15.0}, {128, 128, 256, 8, 3, 1, 0.30, 6.5},
    {128, 96, 128, 4, 4, 2, 0.18, 8.8},   {64, 128, 128, 8, 6, 1, 0.15, 9.2},
    {64, 64, 256, 4, 5, 1, 0.36, 6.4},    {64, 32, 256, 4, 6, 1, 0.36, 3.8},
    {64, 32, 128, 4, 6, 2, 0.18, 3.5},    {16, 64, 256, 4, 5, 2, 0.25, 2.1},
    {16, 128, 128, 4, 6, 2, 0.20, 2.6},   {32, 64, 256, 4, 4, 2, 0.29, 3.6},
    {32, 128, 128, 4, 5, 2, 0.22, 4.8}};
/* Elements that threads load one by one, each step about a microsecond behind the one
   before. */
static const GemmTile hopper_odd[] = {
    {128, 128, 32, 8, 3, 1, 1.0, 0.91}, {64, 128, 32, 4, 3, 2, 1.05, 0.85},
    {64, 64, 32, 4, 3, 2, 1.0, 0.62},   {64, 32, 64, 4, 3, 3, 1.12, 0.45},
    {32, 32, 128, 4, 2, 3, 1.38, 0.28}, {16, 16, 256, 4, 2, 2, 1.2, 0.15},
    {16, 16, 128, 4, 3, 4, 0.87, 0.12}};
static const GemmTile hopper_odd_tf32[] = {{128, 128, 32, 8, 3, 1, 0.9, 0.75},
                                           {64, 128, 32, 4, 3, 2, 1.0, 0.7},
                                           {64, 64, 32, 4, 3, 2, 0.65, 0.5}};
static const GemmTile ampere_half[] = {{128, 128, 64, 8, 3, 1, 0, 2.0},
                                       {64, 64, 64, 4, 3, 2, 0, 1.2}};
static const GemmTile ampere_tf32[] = {{128, 128, 32, 8, 3, 1, 0, 1.0},
                                       {64, 64, 32, 4, 3, 2, 0, 0.6}};
static const GemmTile exact[] = {{64, 64, 32, 4, 3, 2, 0, 0.33},
                                 {128, 64, 16, 4, 3, 2, 0, 0.32},
                                 {128, 64, 32, 8, 3, 1, 0, 0.33},
                                 {128, 128, 16, 8, 3, 1, 0, 0.33}};

typedef struct Tiles {
    const GemmTile *at;
    int n;
} Tiles;

#define TILES(list) ((Tiles){list, (int)(sizeof(list) / sizeof *(list))})

static bool
is_fp8(int math)
{
    return math == GEMM_FP8 || math == GEMM_FP8_FAST;
}

/* `maps`: both operands come by tensor maps. */
static Tiles
tiles_of(const NnDevice *d, int math, bool maps)
{
    bool tf32 = math == GEMM_TF32;
    if (d->wgmma && maps && is_fp8(math))
        return math == GEMM_FP8 ? TILES(hopper_fp8) : TILES(hopper_fp8_fast);
    if (math == GEMM_EXACT)
        return TILES(exact);
    if (!d->wgmma)
        return tf32 ? TILES(ampere_tf32) : TILES(ampere_half);
    if (!maps)
        return tf32 ? TILES(hopper_odd_tf32) : TILES(hopper_odd);
    return tf32 ? TILES(hopper_tf32) : TILES(hopper_half);
}

static int64_t
over(int64_t a, int64_t b)
{
    return (a + b - 1) / b;
}

static double
least(int64_t a, int64_t b)
{
    return (double)(a < b ? a : b);
}

static int64_t
part_of(int64_t k, int split, int step)
{
    return over(over(k, split), step) * step;
}

int64_t
gemm_part(const GemmPlan *p, int64_t k)
{
    return part_of(k, p->split, p->tile->k);
}

/* Tensor cores read fp8 along k alone; of tf32 one operand may lie across, which comes
   through registers. */
int
gemm_transposed(const GemmAsk *q)
{
    return is_fp8(q->math) || (q->math == GEMM_TF32 && q->across == 3) ? q->across : 0;
}

/* Operands of so many elements that are copied first, tf32 however it lies; those of fp8
   that are transposed are so in one launch. What comes behind a copy is launched
   meanwhile. */
static double
packing(const NnDevice *d, const GemmAsk *q, const GemmWay *w, const double elements[2])
{
    const bool packs[] = {w->pack_a, w->pack_b};
    double us = 0, turn = next_turn, copy = next_copy, memory = device_memory(d);
    for (int i = 0; i < 2; i++) {
        double bytes = 2 * elements[i] * q->bytes;
        bool transposed = is_fp8(q->math) && q->across >> i & 1;
        if (!packs[i])
            continue;
        us += transposed ? turn + bytes / (turn_bytes * memory)
                         : copy + bytes / (copy_bytes * memory);
        turn = transposed ? 0 : turn;
        copy = later_copy;
    }
    return us;
}

/* What is left of the rate where operands of tf32 lie across k. One comes through
   registers, which tiles of roles hide; a wide step has fewer ends to wait for. */
static double
across_tf32(const GemmTile *t, bool both, bool tall, double *longer)
{
    *longer = both ? 3 : 1;
    if (both)
        return 0.55;
    if (t->warps >= ROLE_WARPS)
        return tall || t->m == t->n ? 0.87 : 1;
    return t->k > 32 ? 1 : tall ? 0.62 : 0.78;
}

/* What is left of the rate where operands of 8 bits lie across k, or of tf32, and how
   many times as long a step takes at least. The left one comes through registers, b as
   the left one of the transposed matmul; of two the other one is copied in shared memory,
   by those that multiply where there are no roles. Large tiles have the most to multiply
   meanwhile. */
static double
straight(const GemmAsk *q, const GemmWay *w, bool maps, double *longer)
{
    const GemmTile *t = w->tile;
    bool a = q->across & 1 && !w->pack_a, b = q->across & 2 && !w->pack_b;
    bool large = t->m * t->n > 128 * 128, tall = a ? t->m > t->n : t->n > t->m;
    *longer = 1;
    if (!a && !b)
        return 1;
    if (q->math == GEMM_TF32 && maps && (t->m >= 64 || (a && b)))
        return across_tf32(t, a && b, tall, longer);
    if (!is_fp8(q->math))
        return 1;
    if (a && t->m < 64) { /* those that multiply transpose the few rows themselves */
        *longer = b ? 1.95 : 1.7;
        return b ? 0.47 : 0.55;
    }
    if ((!a || !b) && large && q->math == GEMM_FP8) /* promoted: less is hidden */
        return tall ? 0.82 : 0.86;
    if (!a || !b)
        return large ? tall ? 0.9 : 0.95 : 0.78;
    *longer = t->warps < ROLE_WARPS ? 4 : 1;
    return large ? q->math == GEMM_FP8 ? 0.6 : 0.75 : 0.5;
}

double
gemm_lines(int rows)
{
    return rows >= GEMM_LINE ? 1 : 1.9 - 0.9 * rows / GEMM_LINE;
}

/* What a tile of `bytes` ends with: a program cannot multiply with the accumulators that
   it stores, another on the SM can. Tiles of more than half of the shared memory do not
   go by TMA, and swapped ones whose rows TMA does not take go element by element. */
static double
end_of(const GemmAsk *q, const GemmWay *w, double bytes)
{
    const double first = 0.2, each = 1.7 * ROLE_WARPS / (1 << 16), half = 113 << 10;
    const GemmTile *t = w->tile;
    bool elements = w->swapped && q->c_rows < GEMM_MAP_ROWS && t->resident == 1;
    double longer = elements ? by_elements : bytes > half ? 2.2 : 1;
    return first + each * bytes / t->warps * longer;
}

/* Rounds of tiles on the tensor cores. Another program on the SM multiplies while one
   stores. */
static double
products(const GemmAsk *q, const GemmWay *w, double rate, double step, double rounds,
         double depth)
{
    const GemmTile *t = w->tile;
    double waves = ceil(rounds / t->resident), result = w->split > 1 ? 4 : q->result;
    return fmax(rounds * 2.0 * t->m * t->n * depth / (rate * 1e6),
                waves * depth / t->k * step) +
           waves * end_of(q, w, (double)t->m * t->n * result);
}

double
gemm_at_once(double products, double memory, double cache)
{
    double a = products * products, b = memory * memory, c = cache * cache;
    return sqrt(sqrt(a * a + b * b + c * c));
}

static GemmCost
cost_of(const NnDevice *d, const GemmAsk *q, const GemmWay *w, bool maps)
{
    const GemmTile *t = w->tile;
    double each = (double)q->batch, parts = each * w->split;
    double units = (double)over(q->m, t->m) * (double)over(q->n, t->n) * parts;
    double depth = (double)part_of(q->k, w->split, t->k), wide = d->processors;
    double rounds = ceil(units / wide), longer, left = straight(q, w, maps, &longer);
    double memory = memory_bytes * device_memory(d);
    if (!maps && d->wgmma && q->math == GEMM_HALF && w->split > 1) {
        /* threads wait longer where k is long */
        longer *= by_parts;
        left /= by_parts;
    }
    /* programs of an SM that load while others multiply leave its port less idle */
    double cache = cache_bytes * device_cache(d) * (t->resident > 1 ? taking_turns : 1);
    /* rows that are there: the rest of a tile is no traffic */
    double high = least(t->m, q->m), across = least(t->n, q->n);
    double of_a = each * (double)q->m * (double)q->k;
    double of_b = each * (double)q->k * (double)q->n;
    double sums = each * (double)q->m * (double)q->n;
    double out = sums * (w->split > 1 ? 4 * w->split : q->result);
    double flight = fmin(units, wide) * fmin(rounds, t->resident) * (t->stages - 1) *
                    (high + across) * t->k * q->bytes;
    /* TMA writes rows that are not there, too, which is half the work */
    double vain = (t->m - high + t->n - across) / (high + across);
    double of_row_a = w->pack_a || !maps ? 1 : gemm_lines(q->a_rows);
    double of_row_b = w->pack_b || !maps ? 1 : gemm_lines(q->b_rows);
    double read_a = (high + t->m) / 2 * of_row_a;
    double read_b = (across + t->n) / 2 * of_row_b;
    /* where rows begin off the lines, neighbours that run in clusters share b's */
    bool roles = maps && t->warps >= ROLE_WARPS;
    bool off = maps && ((q->a_rows < GEMM_LINE && !w->pack_a) ||
                        (q->b_rows < GEMM_LINE && !w->pack_b));
    double read = read_a + (roles && off && units > 1 ? 0.48 * read_b : read_b);
    GemmCost c = {
        .products = products(q, w, t->rate * left, t->step * longer, rounds, depth) /
                    device_clock(d),
        .memory = ((of_a + of_b) * q->bytes + out) * (1 + in_vain * vain) /
                  fmin(memory, fmax(flight, 1) / latency),
        .cache = rounds * wide * read * depth * q->bytes / cache,
        /* the last round's results go to memory when all else is done; tensor maps are
           fetched first */
        .beside = (maps ? launch : threads_launch) + out / rounds / memory};
    if (!roles && !q->whole) /* those that come after others wait for their first tile */
        c.beside += next_program * (ceil(rounds / t->resident) - 1);
    if (roles) /* until both programs and all roles are there */
        c.beside += is_fp8(q->math) ? 1.2 : off ? 1.0 : 0.3;
    if (w->split > 1)
        c.beside += ((w->pack_a || w->pack_b) && !is_fp8(q->math) ? later_launch
                                                                  : next_launch) +
                    w->split * sums * 4 / (cache_bytes * device_cache(d));
    c.beside += packing(d, q, w, (double[]){of_a, of_b});
    c.all = gemm_at_once(c.products, c.memory, c.cache) + c.beside;
    return c;
}

/* The best ways so far, best first. */
typedef struct Ways {
    GemmWay *at;
    int n, most;
} Ways;

/* Of guesses that are equal the first counts: lists begin with what is simplest. */
static void
consider(Ways *ways, const GemmWay *w)
{
    int i = ways->n < ways->most ? ways->n++ : ways->most;
    for (; i > 0 && w->cost.all < ways->at[i - 1].cost.all; i--)
        if (i < ways->most)
            ways->at[i] = ways->at[i - 1];
    if (i < ways->most)
        ways->at[i] = *w;
}

/* The most parts with which the SMs are done in so many rounds; of those that k has work
   for, and enough of it. 0: none. */
static int
parts_in(const NnDevice *d, const GemmAsk *q, const GemmTile *t, int rounds)
{
    int64_t tiles = over(q->m, t->m) * over(q->n, t->n) * q->batch;
    int64_t n = (int64_t)rounds * d->processors / tiles;
    int64_t most = q->k / (LEAST_STEPS * t->k);
    n = n < most ? n : most;
    n = n < MOST_PARTS ? n : MOST_PARTS;
    return n < 2 ? 0 : (int)over(q->k, part_of(q->k, (int)n, t->k));
}

static void
consider_list(Ways *ways, const NnDevice *d, const GemmAsk *q, GemmWay w, bool maps,
              Tiles tiles)
{
    /* parts of the transposed one would be added across */
    bool splits = d->lends && !q->whole && !w.swapped;
    for (int i = 0; i < tiles.n; i++) {
        GemmWay parts = {0};
        w.tile = &tiles.at[i];
        w.split = 1;
        w.cost = cost_of(d, q, &w, maps);
        consider(ways, &w);
        for (int rounds = 1; rounds <= MOST_ROUNDS && splits; rounds++) {
            int split = parts_in(d, q, w.tile, rounds);
            if (split <= w.split)
                continue;
            w.split = split;
            w.cost = cost_of(d, q, &w, maps);
            if (!parts.tile || w.cost.all < parts.cost.all)
                parts = w;
        }
        if (parts.tile)
            consider(ways, &parts);
    }
}

/* The matmul of the transposed operands. */
static GemmAsk
swapped_ask(const GemmAsk *q)
{
    GemmAsk t = *q;
    t.m = q->n;
    t.n = q->m;
    t.a_rows = q->b_rows;
    t.b_rows = q->a_rows;
    t.stay = (int16_t)((q->stay >> 1 & 1) | (q->stay << 1 & 2));
    t.across = (int16_t)((q->across >> 1 & 1) | (q->across << 1 & 2));
    return t;
}

/* Tiles of few rows of halves are for weights that lie along k, of tf32 for any. Groups
   differ in size: one with more rows than the tile has reads all of b again (777 rows in
   60 groups, bf16, 92 us; by 64 rows 82). */
static void
consider_tiles(Ways *ways, const NnDevice *d, const GemmAsk *q, GemmWay w, bool maps)
{
    if (w.swapped) {
        consider_list(ways, d, q, w, maps, TILES(hopper_half_swapped));
        return;
    }
    consider_list(ways, d, q, w, maps, tiles_of(d, q->math, maps));
    if (d->wgmma && maps && q->math == GEMM_HALF && q->batch == 1 && !q->whole &&
        !(q->across & 2))
        consider_list(ways, d, q, w, maps, TILES(hopper_half_few));
    if (d->wgmma && maps && q->math == GEMM_TF32 && q->batch == 1 && !q->whole)
        consider_list(ways, d, q, w, maps, TILES(hopper_tf32_few));
}

/* By tensor maps: what none takes is packed, what lies on lines and along k is not. */
static void
consider_packs(Ways *ways, const NnDevice *d, const GemmAsk *q, bool swapped)
{
    bool a = q->a_rows >= GEMM_MAP_ROWS, b = q->b_rows >= GEMM_MAP_ROWS;
    int transposed = gemm_transposed(q);
    bool keeps_a = !(transposed & 1) && q->a_rows >= GEMM_LINE;
    bool keeps_b = !(transposed & 2) && q->b_rows >= GEMM_LINE;
    for (int packs = 0; packs < 4; packs++) {
        GemmWay w = {.pack_a = packs & 1, .pack_b = packs & 2, .swapped = swapped};
        if ((!a && !w.pack_a) || (w.pack_a && keeps_a) ||
            (!b && !w.pack_b) || (w.pack_b && keeps_b) ||
            (packs & q->stay) || (packs && !d->lends))
            continue;
        consider_tiles(ways, d, q, w, true);
    }
}

int
gemm_ways(const NnDevice *d, const GemmAsk *q, GemmWay *out, int most)
{
    Ways ways = {out, 0, most};
    const GemmAsk swapped = swapped_ask(q);
    if (d->wgmma && q->math != GEMM_EXACT)
        consider_packs(&ways, d, q, false);
    if (d->wgmma && q->math == GEMM_HALF && q->swaps)
        consider_packs(&ways, d, &swapped, true);
    if (!ways.n || q->a_rows < GEMM_MAP_ROWS || q->b_rows < GEMM_MAP_ROWS)
        consider_tiles(&ways, d, q, (GemmWay){0}, false);
    for (int i = 0; i < ways.n; i++) {
        GemmWay *w = &out[i];
        bool pack_a = w->swapped ? w->pack_b : w->pack_a;
        w->pack_b = w->swapped ? w->pack_a : w->pack_b;
        w->pack_a = pack_a;
    }
    return ways.n;
}

GemmPlan
gemm_plan(const NnDevice *d, const GemmAsk *q)
{
    GemmWay ways[MOST_WAYS];
    if (!d->gpu)
        return gemm_plan_cpu(d, q);
    int most = q->way < MOST_WAYS - 1 ? q->way + 2 : MOST_WAYS;
    int n = gemm_ways(d, q, ways, most), way = q->way < n ? q->way : n - 1;
    const GemmWay *w = &ways[way], *next = way + 1 < n ? w + 1 : NULL;
    GemmPlan p = {.tile = w->tile,
                  .split = w->split,
                  .pack_a = w->pack_a,
                  .pack_b = w->pack_b,
                  .swapped = w->swapped,
                  .cost = w->cost};
    if (next) {
        p.next = next->tile;
        p.next_split = next->split;
        p.next_packs = next->pack_a || next->pack_b;
        p.next_swapped = next->swapped;
        p.next_us = next->cost.all;
    }
    return p;
}
