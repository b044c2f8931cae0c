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
     on the way through shared memory, which slows the tensor cores down, or first;
   - a last round of tiles that leaves SMs idle may be in parts behind whole rounds.

   Numbers are fitted to 8300 times of 840 matmuls on an H200 (`tests/gpu/shapes --only
   gemm,batched --draw 330 --ways 16`, eight seeds, 2026-11-27; of fp8 earlier): what is
   chosen takes 1.6 % longer than the best of them, by the geometric mean, and fitted to
   half of them 2.3 % of the others. On another device they go
   by its clock and its memory (plan_device.c). Rates are of one SM; what is older has
   other kernels and rates guessed from an A100's. */
#include "runtime/nn/plan.h"

#include <math.h>

/* Kernels of so many warps have a producer, which may ask for halves (pass multicast). */
enum { MOST_WAYS = 64, MOST_PARTS = 32, LEAST_STEPS = 4, ROLE_WARPS = 8,
       MOST_ROUNDS = 4 };

/* Bytes and operations are per microsecond. */
static const double memory_bytes = 3.75e6, cache_bytes = 19.00e6, copy_bytes = 3.93e6,
                    latency = 0.728, launch = 3.63, next_launch = 2.49, next_copy = 2.65,
                    transpose_bytes = 3.8e6, next_transpose = 1.6, in_vain = 0.255,
                    later_copy = 1.71, later_launch = 1.52, by_parts = 1.31,
                    by_elements = 3.97, threads_launch = 3.18, taking_turns = 0.684,
                    next_program = 1.28, wide_pieces = 1.14, by_threads = 1.3, seam = 3;

/* What the rates of fp8 were fitted with. */
static const double fp8_memory = 4.4e6, fp8_cache = 13.3e6, fp8_turns = 1.25;

/* By tensor maps and wgmma. */
static const GemmTile hopper_half[] = {
    {128, 256, 64, 8, 4, 1, 0.15, 7.13},  {128, 128, 64, 4, 4, 1, 0.18, 6.18},
    {64, 256, 64, 4, 3, 1, 0.18, 5.21},   {64, 128, 128, 4, 3, 1, 0.46, 6.4},
    {128, 64, 64, 4, 4, 2, 0.18, 3.15},   {64, 64, 64, 4, 4, 2, 0.18, 1.90},
    {128, 192, 64, 8, 5, 1, 0.15, 5.99},  {256, 128, 64, 8, 4, 1, 0.15, 5.75},
    {128, 128, 64, 8, 6, 1, 0.15, 6.00},  {128, 96, 64, 4, 4, 2, 0.18, 4.87},
    {64, 128, 64, 8, 6, 1, 0.15, 3.77},   {64, 64, 128, 4, 5, 1, 0.28, 3.76},
    {64, 32, 128, 4, 6, 1, 0.34, 2.0},   {64, 32, 64, 4, 6, 2, 0.18, 1.55},
    {64, 128, 128, 8, 4, 1, 0.28, 3.48},  {64, 192, 64, 4, 4, 1, 0.30, 6.40},
    {64, 32, 256, 4, 4, 1, 0.67, 2.4},   {128, 128, 64, 4, 2, 2, 0.57, 5.73},
    {64, 128, 64, 4, 2, 3, 0.62, 6.2},   {64, 64, 64, 4, 2, 4, 0.48, 2.99},
    {128, 128, 64, 8, 4, 1, 0.15, 6.48},  {128, 320, 64, 8, 3, 1, 0.15, 5.88},
    {128, 288, 64, 8, 4, 1, 0.15, 6.81},  {256, 160, 64, 8, 3, 1, 0.15, 5.29},
    {64, 320, 64, 4, 4, 1, 0.15, 6.79},   {64, 288, 64, 4, 4, 1, 0.15, 5.56},
    {128, 160, 64, 8, 5, 1, 0.15, 4.88}};
/* Of the transposed matmul; rows and columns of the plain ones change places, too. */
static const GemmTile hopper_half_swapped[] = {
    {128, 256, 64, 8, 4, 1, 0.15, 7.13},  {128, 288, 64, 8, 4, 1, 0.15, 6.81},
    {64, 128, 64, 8, 6, 1, 0.15, 3.77},   {64, 160, 64, 4, 4, 2, 0.35, 4.97},
    {64, 16, 128, 4, 6, 1, 0.16, 1.63},   {128, 320, 64, 8, 3, 1, 0.15, 5.88},
    {256, 160, 64, 8, 3, 1, 0.15, 5.29},  {64, 320, 64, 4, 4, 1, 0.15, 6.79},
    {64, 288, 64, 4, 4, 1, 0.15, 5.56},   {128, 192, 64, 8, 5, 1, 0.15, 5.99},
    {128, 160, 64, 8, 5, 1, 0.15, 4.88},  {64, 192, 64, 4, 4, 1, 0.30, 6.40}};
/* By mma.sync. */
static const GemmTile hopper_half_few[] = {{16, 64, 128, 4, 5, 2, 0.42, 0.92},
                                           {16, 128, 64, 4, 6, 2, 0.20, 0.97},
                                           {16, 32, 256, 4, 4, 2, 0.30, 0.41}};
static const GemmTile hopper_tf32_few[] = {{32, 128, 32, 4, 5, 2, 0.16, 0.97},
                                           {32, 64, 64, 4, 4, 2, 0.21, 0.75}};
static const GemmTile hopper_tf32[] = {
    {256, 128, 32, 8, 3, 1, 0.15, 3.40},  {128, 128, 32, 8, 3, 1, 0.15, 2.51},
    {128, 64, 32, 4, 4, 2, 0.17, 1.94},  {64, 64, 32, 4, 4, 2, 0.22, 1.08},
    {128, 256, 32, 8, 3, 1, 0.15, 3.35}, {256, 64, 32, 8, 4, 1, 0.15, 2.27},
    {64, 128, 32, 4, 4, 2, 0.23, 2.27},  {64, 64, 64, 4, 4, 1, 0.37, 1.7},
    {64, 32, 64, 4, 6, 1, 0.32, 1.0}};
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
    {128, 128, 32, 8, 3, 1, 1.0, 0.76}, {64, 128, 32, 4, 3, 2, 0.78, 1.01},
    {64, 64, 32, 4, 3, 2, 1.20, 0.62},   {64, 32, 64, 4, 3, 3, 1.26, 0.52},
    {32, 32, 128, 4, 2, 3, 1.94, 0.27}, {16, 16, 256, 4, 2, 2, 1.56, 0.12},
    {16, 16, 128, 4, 3, 4, 1.22, 0.14}};
/* In pieces of 4 bytes, ahead. */
static const GemmTile hopper_pieces[] = {
    {128, 128, 32, 8, 4, 1, 0.30, 2.43}, {64, 128, 32, 4, 4, 2, 0.33, 2.34},
    {128, 128, 64, 8, 3, 1, 0.50, 2.88}, {128, 64, 64, 4, 3, 1, 0.56, 2.0},
    {64, 64, 64, 4, 4, 2, 0.36, 1.46},   {64, 32, 128, 4, 4, 1, 0.69, 1.0},
    {32, 32, 128, 4, 4, 2, 0.55, 0.50},  {16, 64, 128, 4, 4, 2, 0.58, 0.49},
    {16, 16, 256, 4, 3, 2, 0.63, 0.21}, {16, 16, 128, 4, 4, 4, 0.41, 0.17}};
static const GemmTile hopper_odd_tf32[] = {{128, 128, 32, 8, 3, 1, 0.9, 0.81},
                                           {64, 128, 32, 4, 3, 2, 0.87, 0.67},
                                           {64, 64, 32, 4, 3, 2, 0.47, 0.55}};
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

/* So many elements threads copy at a time. */
static int
piece_of(const GemmAsk *q)
{
    int rows = q->a_rows < q->b_rows ? q->a_rows : q->b_rows;
    int64_t sizes = (q->across & 1 ? q->m : q->k) | (q->across & 2 ? q->n : q->k);
    int64_t even = sizes & -sizes, most = rows / q->bytes;
    return (int)(even < most ? even : most);
}

/* `maps`: both operands come by tensor maps. */
static Tiles
tiles_of(const NnDevice *d, const GemmAsk *q, bool maps)
{
    int math = q->math;
    bool tf32 = math == GEMM_TF32;
    if (d->wgmma && maps && is_fp8(math))
        return math == GEMM_FP8 ? TILES(hopper_fp8) : TILES(hopper_fp8_fast);
    if (math == GEMM_EXACT)
        return TILES(exact);
    if (!d->wgmma)
        return tf32 ? TILES(ampere_tf32) : TILES(ampere_half);
    if (!maps)
        return tf32              ? TILES(hopper_odd_tf32)
               : piece_of(q) > 1 ? TILES(hopper_pieces)
                                 : TILES(hopper_odd);
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
    double us = 0, memory = device_memory(d);
    double transpose = next_transpose, copy = next_copy;
    for (int i = 0; i < 2; i++) {
        double bytes = 2 * elements[i] * q->bytes;
        bool transposed = is_fp8(q->math) && q->across >> i & 1;
        if (!packs[i])
            continue;
        us += transposed ? transpose + bytes / (transpose_bytes * memory)
                         : copy + bytes / (copy_bytes * memory);
        transpose = transposed ? 0 : transpose;
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

/* The same of fp8, where one operand lies across k: `a` or b. */
static double
one_across(int math, const GemmTile *t, bool a, bool tall)
{
    bool two = t->n & (t->n - 1), large = t->m * t->n > 128 * 128;
    if (!large)
        return 0.78;
    if (two && t->warps >= ROLE_WARPS) /* both sums read the left operand */
        return 0.8;
    if (math == GEMM_FP8)
        return a ? 0.92 : tall ? 0.93 : 0.935;
    if (!a && !tall && t->m > t->n) /* it is a wide one of the transposed matmul */
        return 1.07;
    return tall ? 0.93 : 0.975;
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
    if (!a || !b)
        return one_across(q->math, t, a, tall);
    *longer = t->warps < ROLE_WARPS ? 4 : 1;
    return large ? q->math == GEMM_FP8 ? 0.6 : 0.75 : 0.5;
}

/* Lines of the cache that 128 bytes of a row lie in, as they count: neighbours have the
   rest of one. `rows`: as GemmAsk's. */
static double
lines(int rows)
{
    return rows >= GEMM_LINE ? 1 : 2.28 - 1.3 * rows / GEMM_LINE;
}

/* What a tile of `bytes` ends with: a program cannot multiply with the accumulators that
   it stores, another on the SM can. Tiles of more than half of the shared memory go in
   pieces, and where TMA does not take rows of c threads store them, of swapped ones
   element by element. */
static double
end_of(const GemmAsk *q, const GemmWay *w, double bytes)
{
    const double first = 0.21, each = 1.55 * ROLE_WARPS / (1 << 16), half = 113 << 10;
    const GemmTile *t = w->tile;
    bool odd = w->split == 1 && q->c_rows < GEMM_MAP_ROWS && (q->c_rows || w->swapped);
    double longer = odd && w->swapped ? by_elements
                    : odd             ? by_threads
                    : bytes > half    ? 1.9
                                      : 1;
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

/* Bytes that tiles come by out of the cache; programs that share an SM wait for each
   other's. */
static double
cache_of(const NnDevice *d, const GemmAsk *q, const GemmTile *t)
{
    bool fp8 = is_fp8(q->math);
    double turns = t->resident == 1 ? 1 : fp8 ? fp8_turns : taking_turns;
    return (fp8 ? fp8_cache : cache_bytes) * device_cache(d) * turns;
}

static double
tiles_in(const GemmAsk *q, const GemmTile *t)
{
    return (double)over(q->m, t->m) * (double)over(q->n, t->n) * (double)q->batch;
}

/* Of that share of the tiles. */
static GemmCost
cost_of(const NnDevice *d, const GemmAsk *q, const GemmWay *w, bool maps, double share)
{
    const GemmTile *t = w->tile;
    double each = (double)q->batch * share;
    double units = ceil(tiles_in(q, t) * share - 0.5) * w->split;
    double depth = (double)part_of(q->k, w->split, t->k), wide = d->processors;
    double rounds = ceil(units / wide), longer, left = straight(q, w, maps, &longer);
    double memory = (is_fp8(q->math) ? fp8_memory : memory_bytes) * device_memory(d);
    if (!maps && d->wgmma && q->math == GEMM_HALF) {
        /* threads wait longer where k is long */
        double slow = w->split > 1 && piece_of(q) == 1 ? by_parts : 1;
        slow /= piece_of(q) > 2 ? wide_pieces : 1;
        longer *= slow;
        left /= slow;
    }
    double cache = cache_of(d, q, t);
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
    double of_row_a = w->pack_a || !maps ? 1 : lines(q->a_rows);
    double of_row_b = w->pack_b || !maps ? 1 : lines(q->b_rows);
    double read_a = (high + t->m) / 2 * of_row_a;
    double read_b = (across + t->n) / 2 * of_row_b;
    /* where rows begin off the lines, neighbours that run in clusters share the wider */
    bool roles = maps && t->warps >= ROLE_WARPS;
    bool off = maps && ((q->a_rows < GEMM_LINE && !w->pack_a) ||
                        (q->b_rows < GEMM_LINE && !w->pack_b));
    double read = read_a + read_b;
    if (roles && off && units > 1)
        read -= 0.81 * (t->m > t->n ? read_a : read_b);
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
        c.beside += is_fp8(q->math) ? 1.2 : off ? 1.2 : 0.4;
    if (w->split > 1)
        c.beside += ((w->pack_a || w->pack_b) && !is_fp8(q->math) ? later_launch
                                                                  : next_launch) +
                    w->split * sums * 4 / (cache_bytes * device_cache(d));
    c.beside += packing(d, q, w, (double[]){of_a / share, of_b / share});
    c.all = gemm_at_once(c.products, c.memory, c.cache) + c.beside;
    return c;
}

/* The first tiles are whole rounds, the rest is in parts. Where one launch ends and the
   next begins little is in flight. */
static GemmCost
cost_with_rest(const NnDevice *d, const GemmAsk *q, const GemmWay *w, bool maps)
{
    double share = (double)w->first / tiles_in(q, w->tile);
    GemmWay first = *w, rest = *w;
    first.split = 1;
    rest.pack_a = rest.pack_b = false;
    GemmCost a = cost_of(d, q, &first, maps, share);
    GemmCost b = cost_of(d, q, &rest, maps, 1 - share);
    b.beside += next_launch - launch + seam;
    return (GemmCost){.products = a.products + b.products,
                      .memory = a.memory + b.memory,
                      .cache = a.cache + b.cache,
                      .beside = a.beside + b.beside,
                      .all = a.all + b.all + next_launch - launch + seam};
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

/* Columns behind a power of two, where these are so few that their rows in shared memory
   are shorter than the banks are wide: 128x160 of b across k takes 31 us where it takes
   22 along (2880x896x1792, H200, tests/gpu/shapes --tiles, 2026-11-27). */
static bool
is_narrow(const GemmAsk *q, const GemmTile *t)
{
    int rest = t->n, wide = GEMM_LINE / q->bytes;
    while (rest & (rest - 1))
        rest &= rest - 1;
    return q->across & 2 && t->n > rest && t->n - rest < wide;
}

/* The last round of tiles, which leaves SMs idle, in parts. Sums of parts of the
   transposed matmul would be added across. */
static void
consider_rest(Ways *ways, const NnDevice *d, const GemmAsk *q, GemmWay w, bool maps)
{
    const GemmTile *t = w.tile;
    int64_t tiles = (int64_t)tiles_in(q, t), wide = d->processors;
    int64_t rest = tiles % wide, steps = q->k / (LEAST_STEPS * t->k);
    GemmWay best = {0};
    if (!q->rests || !d->lends || w.swapped || t->resident > 1 || tiles < wide || !rest)
        return;
    w.first = tiles - rest;
    for (int rounds = 1; rounds <= 2; rounds++) {
        int64_t n = wide * rounds / rest;
        n = n < steps ? n : steps;
        n = n < MOST_PARTS ? n : MOST_PARTS;
        if (n < 2)
            continue;
        w.split = (int)over(q->k, part_of(q->k, (int)n, t->k));
        w.cost = cost_with_rest(d, q, &w, maps);
        if (w.split > 1 && (!best.tile || w.cost.all < best.cost.all))
            best = w;
    }
    if (best.tile)
        consider(ways, &best);
}

static void
consider_list(Ways *ways, const NnDevice *d, const GemmAsk *q, GemmWay w, bool maps,
              Tiles tiles)
{
    /* parts of the transposed one would be added across */
    bool splits = d->lends && !q->whole && !w.swapped;
    for (int i = 0; i < tiles.n; i++) {
        GemmWay parts = {0};
        if (maps && is_narrow(q, &tiles.at[i]))
            continue;
        w.tile = &tiles.at[i];
        w.split = 1;
        w.cost = cost_of(d, q, &w, maps, 1);
        consider(ways, &w);
        for (int rounds = 1; rounds <= MOST_ROUNDS && splits; rounds++) {
            int split = parts_in(d, q, w.tile, rounds);
            if (split <= w.split)
                continue;
            w.split = split;
            w.cost = cost_of(d, q, &w, maps, 1);
            if (!parts.tile || w.cost.all < parts.cost.all)
                parts = w;
        }
        if (parts.tile)
            consider(ways, &parts);
        w.split = 1;
        if (maps)
            consider_rest(ways, d, q, w, maps);
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
   60 groups, bf16, 92 us; by 64 rows 82; H200, tests/gpu/shapes, 2026-11-24). */
static void
consider_tiles(Ways *ways, const NnDevice *d, const GemmAsk *q, GemmWay w, bool maps)
{
    if (w.swapped) {
        consider_list(ways, d, q, w, maps, TILES(hopper_half_swapped));
        return;
    }
    consider_list(ways, d, q, w, maps, tiles_of(d, q, maps));
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
                  .first = w->first,
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
