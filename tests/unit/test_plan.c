/* The planner of sdc_nn.h: what it chooses for shapes that are known, and what must hold
   for any: the same plan for the same question, parts that all have work, no operand by
   tensor maps that they do not take. */
#include "runtime/nn/plan.h"
#include "runtime/nn/plan_table.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

static const NnDevice hopper = {
    .gpu = true, .wgmma = true, .processors = 132, .lends = true};

static GemmAsk
ask(int64_t m, int64_t n, int64_t k, GemmMath math, int a_rows, int b_rows)
{
    int bytes = math >= GEMM_FP8 ? 1 : math == GEMM_HALF ? 2 : 4;
    return (GemmAsk){.m = m,
                     .n = n,
                     .k = k,
                     .batch = 1,
                     .math = math,
                     .bytes = bytes,
                     .result = bytes,
                     .a_rows = a_rows,
                     .b_rows = b_rows,
                     .c_rows = GEMM_LINE};
}

static GemmPlan
half(int64_t m, int64_t n, int64_t k, int a_rows, int b_rows)
{
    GemmAsk q = ask(m, n, k, GEMM_HALF, a_rows, b_rows);
    return gemm_plan(&hopper, &q);
}

/* Tiles of columns that are two powers of two leave fewer empty, and fill the device; not
   where the second ones are few and b lies across k. */
START_TEST(sums_of_two)
{
    enum { MOST = 64 };
    GemmWay way[MOST];
    GemmPlan p = half(1536, 1536, 1536, 128, 128);
    ck_assert(p.tile->n & (p.tile->n - 1));
    GemmAsk q = ask(2944, 4608, 1024, GEMM_HALF, 128, 128);
    for (q.across = 0; q.across < 4; q.across++) {
        int n = gemm_ways(&hopper, &q, way, MOST), few = 0;
        for (int i = 0; i < n; i++)
            few += (way[i].tile->n & 63) == 32 && way[i].tile->n > 64;
        ck_assert(!few == (q.across >= 2));
    }
}
END_TEST

/* A last round of tiles that leaves SMs idle may be in parts behind the others. */
START_TEST(rests)
{
    enum { MOST = 64 };
    GemmWay way[MOST];
    GemmAsk q = ask(3000, 5000, 7000, GEMM_HALF, 16, 16);
    for (q.rests = 0; q.rests < 2; q.rests++) {
        int n = gemm_ways(&hopper, &q, way, MOST), some = 0;
        for (int i = 0; i < n; i++) {
            const GemmTile *t = way[i].tile;
            int64_t tiles = (q.m + t->m - 1) / t->m * ((q.n + t->n - 1) / t->n);
            some += way[i].first > 0;
            ck_assert(way[i].first % hopper.processors == 0 && way[i].first < tiles);
            ck_assert(!way[i].first || way[i].split > 1);
            ck_assert(!way[i].first || tiles - way[i].first < hopper.processors);
        }
        ck_assert(!some == !q.rests);
    }
    q = ask(132 * 128, 256, 7000, GEMM_HALF, 128, 128); /* no rest */
    q.rests = 1;
    ck_assert_int_eq(gemm_plan(&hopper, &q).first, 0);
}
END_TEST

/* Where it may, the matmul of the transposed operands: its tiles divide rows as no plain
   ones do. What is packed is named as the caller has it. */
START_TEST(swapped)
{
    static const struct {
        int64_t m, n, k;
        int a_rows, b_rows;
        int rows; /* of c, that a tile has */
    } known[] = {{6144, 384, 2048, 128, 128, 320},
                 {2880, 896, 1792, 128, 128, 320},
                 {2498, 5504, 2448, 32, 128, 288},
                 {184, 16, 632, 16, 32, 16}};
    enum { MOST = 64 };
    GemmWay way[MOST];
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        GemmAsk q = ask(known[i].m, known[i].n, known[i].k, GEMM_HALF, known[i].a_rows,
                        known[i].b_rows);
        q.across = 2;
        ck_assert(!gemm_plan(&hopper, &q).swapped);
        q.swaps = 1;
        GemmPlan p = gemm_plan(&hopper, &q);
        ck_assert(p.swapped && p.tile->n == known[i].rows && p.split == 1);
        q.a_rows = 2;
        int n = gemm_ways(&hopper, &q, way, MOST);
        for (int k = 0; k < n; k++)
            ck_assert(!way[k].swapped || way[k].pack_a);
        q.math = GEMM_TF32;
        ck_assert(!gemm_plan(&hopper, &q).swapped);
    }
    /* of two that are guessed to take as long it is the plain one: 1536^3 has tiles that
       fill the device either way */
    GemmAsk square = ask(1536, 1536, 1536, GEMM_HALF, 128, 128);
    square.across = 2;
    square.swaps = 1;
    int n = gemm_ways(&hopper, &square, way, MOST);
    ck_assert(n > 1 && !way[0].swapped && way[1].swapped &&
              way[0].cost.all == way[1].cost.all);
    const GemmTile *t = way[0].tile;
    int64_t tiles = (1536 + t->m - 1) / t->m * ((1536 + t->n - 1) / t->n);
    ck_assert(tiles * 10 > hopper.processors * 9 && tiles <= hopper.processors);
    /* rows of c that TMA does not take are stored element by element, which a program
       alone on its SM waits for */
    GemmAsk q = ask(511, 513, 515, GEMM_HALF, 2, 2);
    q.batch = 12;
    q.across = 2;
    q.swaps = 1;
    q.c_rows = 2;
    ck_assert(!gemm_plan(&hopper, &q).swapped);
    q = ask(1536, 1536, 1536, GEMM_HALF, 2, 128);
    q.swaps = 1;
    q.stay = 2;
    GemmPlan p = gemm_plan(&hopper, &q);
    ck_assert(p.pack_a && !p.pack_b);
    q.stay = 1;
    ck_assert(!gemm_plan(&hopper, &q).swapped);
}
END_TEST

/* Small matmuls whose rows no map takes have small tiles, and no copies; where programs
   are many and short several share an SM. */
START_TEST(small)
{
    static const int64_t odd[][3] = {
        {100, 100, 100}, {50, 70, 90}, {33, 60, 77}, {150, 90, 310}, {300, 300, 300}};
    for (size_t i = 0; i < sizeof odd / sizeof *odd; i++) {
        GemmPlan p = half(odd[i][0], odd[i][1], odd[i][2], 2, 2);
        ck_assert(p.tile->m <= 32 && !p.pack_a && !p.pack_b && p.split == 1);
    }
    GemmAsk many = ask(64, 64, 64, GEMM_HALF, 128, 128);
    many.batch = 512;
    ck_assert_int_ge(gemm_plan(&hopper, &many).tile->resident, 3);
    /* 2048x1536x1024 was fastest so (three programs of 64x128 on an SM 14.2 us, 128x192
       15.6; H200, 2026-11-27). Fitted to 840 matmuls the model prefers 128x192, so this
       one must stay among the ways that tests/gpu/shapes --ways 8 measures */
    enum { MEASURED = 8 };
    GemmWay way[MEASURED];
    GemmAsk one = ask(2048, 1536, 1024, GEMM_HALF, 128, 128);
    int n = gemm_ways(&hopper, &one, way, MEASURED), shared = 0;
    for (int i = 0; i < n; i++)
        shared += way[i].tile->resident >= 3 && way[i].cost.all < 1.2 * way[0].cost.all;
    ck_assert_int_gt(shared, 0);
    /* those of two stages wait for memory where steps are more than a few */
    many = ask(320, 320, 320, GEMM_HALF, 128, 128);
    many.batch = 32;
    ck_assert_int_gt(gemm_plan(&hopper, &many).tile->stages, 2);
}
END_TEST

/* Of long sums in parts copies are worth their launch: parts of what threads load wait
   longer. */
START_TEST(long_sums)
{
    static const struct {
        int64_t m, n, k;
        int a_rows, b_rows;
    } known[] = {{64, 320, 12897, 2, 2},
                 {64, 137, 7744, 2, 2},
                 {11, 45, 19544, 16, 2},
                 {24, 51, 1280, 16, 2}};
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        GemmAsk q = ask(known[i].m, known[i].n, known[i].k, GEMM_HALF, known[i].a_rows,
                        known[i].b_rows);
        q.across = 2;
        GemmPlan p = gemm_plan(&hopper, &q);
        ck_assert(p.split > 1 && p.pack_b);
    }
}
END_TEST

/* Way 0 is the plan, later ones are guessed to take longer, and the last one stays. */
START_TEST(ways)
{
    enum { MOST = 64 };
    GemmWay way[MOST];
    GemmAsk q = ask(1000, 2000, 3000, GEMM_HALF, 128, 128);
    int n = gemm_ways(&hopper, &q, way, MOST), few = gemm_ways(&hopper, &q, way, 3);
    ck_assert(n > 20 && n < MOST && few == 3);
    ck_assert_int_eq(gemm_ways(&hopper, &q, way, MOST), n);
    for (q.way = 0; q.way < MOST; q.way++) {
        int i = q.way < n ? q.way : n - 1;
        GemmPlan p = gemm_plan(&hopper, &q);
        ck_assert(p.tile == way[i].tile && p.split == way[i].split &&
                  p.pack_a == way[i].pack_a && p.pack_b == way[i].pack_b);
        ck_assert(!i || way[i - 1].cost.all <= way[i].cost.all);
        ck_assert(!p.next == (i == n - 1));
        for (int k = 0; k < i; k++)
            ck_assert(way[k].tile != way[i].tile || way[k].split != way[i].split ||
                      way[k].pack_a != way[i].pack_a || way[k].pack_b != way[i].pack_b);
    }
}
END_TEST

START_TEST(known_shapes)
{
    GemmPlan p = half(4096, 4096, 4096, 128, 128);
    ck_assert_int_eq(p.tile->m * p.tile->n, 128 * 256);
    ck_assert_int_eq(p.split, 1);
    ck_assert(!p.pack_a && !p.pack_b);
    /* few tiles, long sums */
    p = half(512, 512, 65536, 128, 128);
    ck_assert_int_ge(p.split, 4);
    /* small: what fills the device */
    p = half(1024, 1024, 1024, 128, 128);
    ck_assert_int_le(p.tile->m * p.tile->n, 128 * 64);
    /* rows that no map takes, of much work and of little */
    p = half(4095, 4097, 4099, 2, 2);
    ck_assert(p.pack_a && p.pack_b);
    p = half(33, 65, 20, 2, 2);
    ck_assert(!p.pack_a && !p.pack_b);
    p = half(4096, 4096, 4096, 2, 128);
    ck_assert(p.pack_a && !p.pack_b);
    /* rows of 16 bytes lie in two lines: of large tiles neighbours share b's, so nothing
       is packed */
    p = half(3000, 5000, 7000, 16, 16);
    ck_assert(!p.pack_a && !p.pack_b);
    ck_assert_int_eq(p.tile->warps, 8);
    /* two steps along k a tile: what a tile ends with counts, which large ones have less
       of, and roles hide */
    GemmAsk flat = ask(2048, 2048, 128, GEMM_HALF, 128, 128);
    flat.batch = 16;
    ck_assert_int_eq(gemm_plan(&hopper, &flat).tile->warps, 8);
    /* few rows: a tile of no more; not of groups, whose rows nobody knows, nor where b
       lies across k */
    p = half(1, 4096, 4096, 128, 128);
    ck_assert_int_eq(p.tile->m, 16);
    p = half(1, 14336, 4096, 128, 128);
    ck_assert(p.tile->m == 16 && p.tile->n >= 64);
    p = half(1, 5120, 13824, 128, 128);
    ck_assert(p.tile->m == 16 && p.split > 1);
    GemmAsk few = ask(16, 4096, 4096, GEMM_HALF, 128, 128);
    few.across = 2;
    ck_assert_int_eq(gemm_plan(&hopper, &few).tile->m, 64);
    few.across = 0;
    few.whole = 1;
    ck_assert_int_eq(gemm_plan(&hopper, &few).tile->m, 64);
    /* a batch fills the device: nothing is split; what cannot be packed is not */
    GemmAsk many = ask(256, 256, 8192, GEMM_HALF, 128, 128);
    ck_assert_int_gt(gemm_plan(&hopper, &many).split, 1);
    many.batch = 200;
    ck_assert_int_eq(gemm_plan(&hopper, &many).split, 1);
    many = ask(4095, 4097, 4099, GEMM_HALF, 2, 2);
    many.stay = 2;
    p = gemm_plan(&hopper, &many);
    ck_assert(!p.pack_b);
    many = ask(512, 512, 65536, GEMM_HALF, 128, 128);
    many.whole = 1;
    ck_assert_int_eq(gemm_plan(&hopper, &many).split, 1);
    /* nothing is split or packed without temporary memory */
    NnDevice poor = hopper;
    poor.lends = false;
    GemmAsk q = ask(512, 512, 65536, GEMM_HALF, 2, 2);
    p = gemm_plan(&poor, &q);
    ck_assert(p.split == 1 && !p.pack_a && !p.pack_b);
}
END_TEST

/* Operands that do not lie along k are transposed first where there is much to multiply,
   on the way through shared memory where there is little. */
START_TEST(across)
{
    for (GemmMath math = GEMM_FP8; math <= GEMM_FP8_FAST; math++) {
        GemmAsk large = ask(8192, 8192, 8192, math, 128, 128), few = large;
        GemmPlan p = gemm_plan(&hopper, &large);
        ck_assert(!p.pack_a && !p.pack_b);
        large.across = 3;
        p = gemm_plan(&hopper, &large);
        ck_assert(p.pack_a || p.pack_b);
        /* at 4096 the matmul takes one as it lies: b by tiles that are wide transposed */
        GemmAsk one = large;
        one.m = one.n = one.k = 4096;
        p = gemm_plan(&hopper, &one);
        ck_assert(p.pack_a != p.pack_b);
        GemmAsk along = one;
        along.across = 0;
        for (one.across = 1; one.across < 3; one.across++) {
            p = gemm_plan(&hopper, &one);
            ck_assert(!p.pack_a && !p.pack_b && p.tile->m * p.tile->n == 128 * 256);
            ck_assert((p.tile->m > p.tile->n) == (one.across == 2));
            ck_assert(p.cost.all < 1.08 * gemm_plan(&hopper, &along).cost.all);
        }
        large.stay = 3;
        p = gemm_plan(&hopper, &large);
        ck_assert(!p.pack_a && !p.pack_b);
        few.across = 3;
        few.m = 16;
        /* rows that wgmma has as columns: the few are transposed first, b is not */
        for (; few.across; few.across--) {
            p = gemm_plan(&hopper, &few);
            ck_assert_int_eq(p.tile->m, 16);
            ck_assert(p.pack_a == (few.across & 1) && !p.pack_b);
        }
        GemmAsk halves = ask(8192, 8192, 8192, GEMM_HALF, 128, 128);
        halves.across = 3;
        ck_assert(!gemm_plan(&hopper, &halves).pack_a);
    }
    /* of tf32 tensor cores take one that lies across: of two the smaller is transposed,
       where it is large; few rows have tiles of no more, where b is one */
    GemmAsk sums = ask(2048, 512, 8192, GEMM_TF32, 128, 128);
    for (sums.across = 0; sums.across < 3; sums.across++)
        ck_assert(!gemm_plan(&hopper, &sums).pack_a && !gemm_plan(&hopper, &sums).pack_b);
    GemmPlan tf32 = gemm_plan(&hopper, &sums);
    ck_assert(!tf32.pack_a && tf32.pack_b);
    sums.stay = 2;
    ck_assert(!gemm_plan(&hopper, &sums).pack_b);
    sums = ask(24, 4776, 7936, GEMM_TF32, 128, 32);
    sums.across = 2;
    ck_assert_int_eq(gemm_plan(&hopper, &sums).tile->m, 32);
    sums.batch = 2;
    ck_assert_int_ge(gemm_plan(&hopper, &sums).tile->m, 64);
    Note note = {.function = "f", .kind = NOTE_GEMM, .gpu = true};
    GemmAsk q = ask(8192, 8192, 8192, GEMM_FP8, 128, 2);
    char text[1000];
    q.across = 3;
    note.of.gemm.ask = q;
    note.of.gemm.plan = gemm_plan(&hopper, &q);
    note_print(&note, text, sizeof text);
    ck_assert_ptr_nonnull(strstr(text, "b transposed first"));
}
END_TEST

/* Guesses go by what a device says of itself; what it does not say is an H200's. */
START_TEST(other_devices)
{
    NnDevice same = hopper, h100 = hopper, slow = hopper, half_as_wide = hopper;
    GemmAsk few = ask(16, 28672, 8192, GEMM_HALF, 128, 128);
    GemmAsk large = ask(4096, 4096, 4096, GEMM_HALF, 128, 128);
    AttentionAsk decode = {.sequences = 64, .heads = 32, .key_heads = 8, .m = 1,
                           .n = 4096, .dim = 128, .value_dim = 128, .bytes = 2};
    SparseAsk layer = {.m = 4096, .n = 4096, .k = 4096, .mask_m = 128, .mask_k = 128,
                       .p = 0.5f, .bytes = 2, .wants = SPARSE_Y, .sums = 1,
                       .x_rows = 128, .w_rows = 128, .dy_rows = 128};
    same.memory = 4814.304, same.clock = 1980;
    h100.memory = 3352.32, h100.clock = 1980;
    slow.clock = 990;
    half_as_wide.processors = 66;
    ck_assert(gemm_plan(&same, &few).cost.all == gemm_plan(&hopper, &few).cost.all);
    ck_assert(attention_plan(&same, &decode).cost.all ==
              attention_plan(&hopper, &decode).cost.all);
    ck_assert(sparse_plan(&same, &layer).all == sparse_plan(&hopper, &layer).all);

    double memory = same.memory / h100.memory;
    ck_assert_double_eq_tol(gemm_plan(&h100, &few).cost.memory,
                            memory * gemm_plan(&hopper, &few).cost.memory, 0.01);
    ck_assert_double_eq_tol(attention_plan(&h100, &decode).cost.memory,
                            memory * attention_plan(&hopper, &decode).cost.memory, 0.01);
    ck_assert_double_eq_tol(gemm_plan(&slow, &large).cost.products,
                            2 * gemm_plan(&hopper, &large).cost.products, 0.01);
    ck_assert_double_ge(sparse_plan(&slow, &layer).products,
                        1.9 * sparse_plan(&hopper, &layer).products);
    /* as many SMs have as much of the second-level cache as there are ports */
    large.m /= 2;
    double cache = gemm_plan(&half_as_wide, &large).cost.cache;
    large.m *= 2;
    ck_assert_double_eq_tol(gemm_plan(&hopper, &large).cost.cache, cache, 0.01);
}
END_TEST

/* On the CPU: tiles that the cache holds, large where threads have enough of them, small
   where they would be idle or multiply rows that are not there. */
START_TEST(cpu)
{
    NnDevice d = {.processors = 1, .lends = true, .cache = 2 << 20};
    GemmAsk large = ask(2048, 2048, 2048, GEMM_TF32, 128, 128);
    large.across = 2;
    GemmAsk few = large;
    GemmPlan p = gemm_plan(&d, &large);
    ck_assert_int_ge(p.tile->m * p.tile->n, 256 * 512);
    ck_assert(p.split == 1 && !p.pack_a && !p.pack_b);
    for (d.cache = 64 << 10; d.cache <= 4 << 20; d.cache *= 2) {
        p = gemm_plan(&d, &large);
        ck_assert((int64_t)p.tile->m * p.tile->k * 4 < d.cache || p.tile->m == 64);
    }
    /* sums are read once for each step of k: they may lie further away than a */
    d.cache = 512 << 10;
    p = gemm_plan(&d, &large);
    ck_assert(p.tile->m == 256 && p.tile->n == 512 && p.tile->k == 256);
    few.m = 1;
    ck_assert_int_le(gemm_plan(&d, &few).tile->m, 16);
    few.m = few.n = few.k = 512;
    d.processors = 16;
    p = gemm_plan(&d, &few);
    ck_assert_int_ge(512 / p.tile->m * (512 / p.tile->n), 16);
    /* a row streams b by: the second-level cache need not have it */
    NnDevice one = {.processors = 1, .cache = 1 << 20, .lends = true};
    GemmAsk row = ask(1, 4096, 4096, GEMM_TF32, 128, 128);
    row.across = 2;
    ck_assert_int_eq(gemm_plan_cpu(&one, &row).tile->n, 4096);
}
END_TEST

START_TEST(any_shape)
{
    static const int64_t sizes[] = {1, 2, 17, 64, 129, 1000, 4096, 50257, 1 << 20};
    static const int rows[] = {0, 2, 16, 64, 128};
    NnDevice device[] = {hopper, hopper, hopper, {.processors = 8, .lends = true}};
    device[1].wgmma = false;
    device[2].processors = 7;
    for (int i = 0; i < 9 * 9 * 9 * 5 * 5 * GEMM_MATHS * 4; i += 7) {
        GemmMath math = i / (9 * 9 * 9 * 5 * 5) % GEMM_MATHS;
        const NnDevice *d = &device[i / (9 * 9 * 9 * 5 * 5 * GEMM_MATHS)];
        GemmAsk q = ask(sizes[i % 9], sizes[i / 9 % 9], sizes[i / 81 % 9], math,
                        rows[i / 729 % 5], rows[i / 3645 % 5]);
        q.across = (int16_t)(i % 4);
        q.swaps = (int8_t)(i / 4 % 2);
        GemmPlan p = gemm_plan(d, &q), again = gemm_plan(d, &q);
        ck_assert_ptr_nonnull(p.tile);
        ck_assert(p.tile == again.tile && p.split == again.split &&
                  p.pack_a == again.pack_a && p.pack_b == again.pack_b &&
                  p.swapped == again.swapped);
        int64_t part = gemm_part(&p, q.k);
        ck_assert_int_eq(part % p.tile->k, 0);
        ck_assert(part * p.split >= q.k && part * (p.split - 1) < q.k);
        ck_assert(d->gpu || p.split == 1);
        Note note = {
            .function = "f", .kind = NOTE_GEMM, .gpu = d->gpu, .of.gemm = {q, p}};
        char text[1000], little[10];
        size_t n = note_print(&note, text, sizeof text);
        ck_assert_uint_eq(n, strlen(text));
        ck_assert_uint_eq(note_print(&note, little, sizeof little), n);
        ck_assert_uint_eq(strlen(little), sizeof little - 1);
    }
}
END_TEST

START_TEST(rows)
{
    for (int64_t n = 1; n < 1 << 21; n = n * 3 / 2 + 1)
        for (int64_t m = 1; m < 1 << 16; m = m * 5 + 1) {
            RowsAsk q = {m, n, 8192, 4096, true};
            RowsPlan p = rows_plan(&hopper, &q);
            ck_assert(p.parts ? p.columns % p.block == 0 &&
                                    p.columns * p.parts >= n &&
                                    p.columns * (p.parts - 1) < n
                              : p.block >= n);
            ck_assert(p.together == 1 || !p.parts);
            ck_assert(p.parts <= 1 || m < 132); /* a row for each SM: one launch */
        }
}
END_TEST

/* ---- attention */

static AttentionAsk
attend(int64_t batch, int64_t heads, int64_t key_heads, int64_t m, int64_t n, int dim)
{
    return (AttentionAsk){.sequences = batch,
                          .heads = heads,
                          .key_heads = key_heads,
                          .m = m,
                          .n = n,
                          .dim = dim,
                          .value_dim = dim,
                          .bytes = 2};
}

START_TEST(known_attention)
{
    /* decoding: the keys in parts, no part empty, all heads of a group in one tile */
    AttentionAsk q = attend(1, 32, 8, 1, 32768, 128);
    AttentionPlan p = attention_plan(&hopper, &q);
    ck_assert(p.split && p.tile.m == 16);
    ck_assert_int_ge(p.parts * 8, 132);
    ck_assert_int_lt((p.parts - 1) * p.keys, q.n);
    /* enough sequences: no parts */
    q = attend(512, 32, 8, 1, 4096, 128);
    p = attention_plan(&hopper, &q);
    ck_assert(p.split && p.parts == 1);
    /* training: tiles of queries */
    for (int causal = 0; causal < 2; causal++)
        for (int dim = 64; dim <= 128; dim += 64) {
            q = attend(4, 16, 4, 4096, 4096, dim);
            q.causal = causal;
            p = attention_plan(&hopper, &q);
            ck_assert(!p.split && p.tile.m >= 128 && (causal || p.tile.warps >= 8));
        }
    /* persistent kernel, where all see as many keys; queries ahead where they are few */
    q = attend(2, 32, 32, 4096, 512, 128);
    p = attention_plan(&hopper, &q);
    ck_assert(p.turns && p.ahead);
    q.n = 4096;
    p = attention_plan(&hopper, &q);
    ck_assert(p.turns && !p.ahead);
    q.n = 512;
    q.causal = true;
    ck_assert(!attention_plan(&hopper, &q).turns);
    /* short sequences in causal order: small tiles, which masks cut less of */
    q = attend(32, 12, 12, 256, 256, 64);
    q.causal = true;
    ck_assert_int_eq(attention_plan(&hopper, &q).tile.m, 64);
    /* queries that see no key are stores of the programs of those that do */
    q = attend(28, 16, 16, 1034, 1034, 80);
    q.causal = true;
    p = attention_plan(&hopper, &q);
    q.m = 11904;
    AttentionPlan blind = attention_plan(&hopper, &q);
    ck_assert(!blind.split && blind.tile.m == p.tile.m);
    ck_assert_double_lt(blind.cost.products, 1.01 * p.cost.products);
    /* up to 128 columns are one tile, more are not */
    for (int dim = 33; dim <= 192; dim++) {
        q = attend(4, 16, 16, 4096, 4096, dim);
        ck_assert_int_eq(attention_plan(&hopper, &q).tile.wide, dim <= 128);
    }
    /* fewer columns of values leave room for more keys */
    q = attend(4, 16, 16, 4096, 4096, 192);
    ck_assert_int_eq(attention_plan(&hopper, &q).tile.n, 64);
    q.value_dim = 128;
    ck_assert_int_eq(attention_plan(&hopper, &q).tile.n, 128);
    q.dim = 128;
    q.value_dim = 192;
    ck_assert_int_eq(attention_plan(&hopper, &q).tile.n, 64);
    /* dropout has masks of whole heads */
    q = attend(1, 32, 8, 1, 32768, 128);
    q.dropout = true;
    ck_assert(!attention_plan(&hopper, &q).split);
    /* nothing is divided without temporary memory */
    NnDevice poor = hopper;
    poor.lends = false;
    q.dropout = false;
    ck_assert_int_eq(attention_plan(&poor, &q).parts, 1);
}
END_TEST

START_TEST(gradients)
{
    for (int dim = 1; dim <= 256; dim++) {
        AttentionAsk q = attend(4, 16, 16, 4096, 4096, dim);
        GradPlan p = grad_plan(&hopper, &q);
        ck_assert(!p.own_dq && p.keys.m == 64 && p.keys.n >= 64);
        q.deterministic = true;
        p = grad_plan(&hopper, &q);
        ck_assert(p.own_dq && p.queries.m == 128);
        Note note = {
            .function = "f", .kind = NOTE_GRAD, .gpu = true, .of.grad = {q, p}};
        char text[1000];
        ck_assert_uint_eq(note_print(&note, text, sizeof text), strlen(text));
    }
}
END_TEST

START_TEST(shares)
{
    /* few tiles of keys: programs for single query heads */
    AttentionAsk q = attend(2, 8, 1, 2176, 2176, 96);
    ck_assert_int_eq(grad_plan(&hopper, &q).shares, 8);
    q.deterministic = true;
    ck_assert_int_eq(grad_plan(&hopper, &q).shares, 1);
    NnDevice poor = hopper;
    poor.lends = q.deterministic = false;
    ck_assert_int_eq(grad_plan(&poor, &q).shares, 1);
    /* a divisor of the group, whatever that is */
    for (int64_t group = 1; group <= 12; group++) {
        q = attend(1, 2 * group, 2, 1000, 1000, 128);
        ck_assert_int_eq(group % grad_plan(&hopper, &q).shares, 0);
    }
    /* many tiles, few queries: sums would cost more than they give */
    q = attend(64, 16, 8, 64, 4096, 64);
    ck_assert_int_eq(grad_plan(&hopper, &q).shares, 1);
}
END_TEST

/* ---- block dropout */

static SparseAsk
drop(int64_t m, int64_t n, int64_t k, float p, int wants)
{
    return (SparseAsk){.m = m,
                       .n = n,
                       .k = k,
                       .mask_m = 128,
                       .mask_k = 128,
                       .p = p,
                       .bytes = 2,
                       .wants = wants,
                       .lists = 1,
                       .sums = 1,
                       .x_rows = 128,
                       .w_rows = 128,
                       .dy_rows = 128};
}

START_TEST(known_sparse)
{
    /* large: persistent, from a list */
    SparseAsk q = drop(4096, 4096, 4096, 0.5f, SPARSE_DX | SPARSE_DW);
    ck_assert_int_ge(sparse_plan(&hopper, &q).way.order, SPARSE_LISTED);
    q.lists = 0;
    ck_assert_int_lt(sparse_plan(&hopper, &q).way.order, SPARSE_LISTED);
    /* launches count: both gradients in one */
    q = drop(1024, 1024, 1024, 0.3f, SPARSE_DX | SPARSE_DW);
    ck_assert_int_eq(sparse_plan(&hopper, &q).way.order, SPARSE_JOINT);
    /* few tiles and long sums: parts, where there is memory */
    q = drop(128, 256, 8192, 0.3f, SPARSE_Y);
    SparsePlan p = sparse_plan(&hopper, &q);
    ck_assert(p.way.order == SPARSE_APART && p.way.y.parts > 2);
    q.sums = 0;
    ck_assert_int_eq(sparse_plan(&hopper, &q).way.y.parts, 1);
    /* what takes longer comes first */
    q = drop(8192, 256, 512, 0.3f, SPARSE_DX | SPARSE_DW);
    p = sparse_plan(&hopper, &q);
    ck_assert(p.way.order != SPARSE_JOINT || p.way.dw_first || p.way.dw.parts > 1);
    /* rows that no tensor map takes */
    q = drop(2048, 2048, 2048, 0.3f, SPARSE_Y);
    q.w_rows = 8;
    p = sparse_plan(&hopper, &q);
    ck_assert(p.way.pack_w && !p.way.pack_x && !p.way.pack_dy);
    q = drop(64, 64, 64, 0.3f, SPARSE_Y);
    q.w_rows = 8;
    ck_assert(!sparse_plan(&hopper, &q).way.pack_w);
    /* little is dropped, or blocks are small: all are multiplied, if tensor maps take x;
       in blocks of 32 they do not see to more than a matmul has time for, and x is
       copied */
    q = drop(16384, 1024, 16384, 0.1f, SPARSE_Y | SPARSE_DX);
    q.mask_m = q.mask_k = 64;
    ck_assert(sparse_plan(&hopper, &q).way.y.whole);
    ck_assert(sparse_plan(&hopper, &q).way.dx.whole);
    q.x_rows = 8;
    ck_assert(!sparse_plan(&hopper, &q).way.y.whole);
    q = drop(11020, 2432, 384, 0.1f, SPARSE_Y);
    q.mask_m = q.mask_k = 64;
    ck_assert(sparse_plan(&hopper, &q).way.y.whole);
    q = drop(2048, 1024, 4096, 0.1f, SPARSE_Y);
    q.mask_m = q.mask_k = 32;
    ck_assert(sparse_plan(&hopper, &q).way.y.dense);
    q.sums = 0;
    ck_assert(!sparse_plan(&hopper, &q).way.y.dense);
    q = drop(4096, 4096, 4096, 0.5f, SPARSE_Y);
    ck_assert(!sparse_plan(&hopper, &q).way.y.dense);
}
END_TEST

/* Whatever is wanted has a tile within blocks, and the same one again. */
START_TEST(any_sparse)
{
    static const int64_t sizes[] = {1, 17, 128, 1000, 4096, 1 << 20};
    static const int blocks[] = {32, 64, 128};
    static const float ps[] = {0, 0.05f, 0.5f, 0.9999f};
    NnDevice device[] = {hopper, hopper, {.processors = 8, .lends = true}};
    device[1].wgmma = false;
    for (int i = 0; i < 6 * 6 * 6 * 3 * 3 * 4 * 3; i += 5) {
        const NnDevice *d = &device[i / (6 * 6 * 6 * 3 * 3 * 4)];
        SparseAsk q = drop(sizes[i % 6], sizes[i / 6 % 6], sizes[i / 36 % 6],
                           ps[i / (216 * 9) % 4], 1 + i % 7);
        q.mask_m = blocks[i / 216 % 3];
        q.mask_k = blocks[i / 648 % 3];
        q.bytes = i % 2 ? 2 : 4;
        q.wants = q.wants & 1 ? SPARSE_Y : q.wants;
        SparsePlan p = sparse_plan(d, &q), again = sparse_plan(d, &q);
        const SparseMatmul *of[] = {&p.way.y, &p.way.dx, &p.way.dw};
        const SparseMatmul *same[] = {&again.way.y, &again.way.dx, &again.way.dw};
        ck_assert(p.all > 0 && p.way.order == again.way.order);
        SparseAsk second = q; /* what comes next is the second best way */
        second.way = 1;
        SparsePlan next = sparse_plan(d, &second);
        ck_assert(p.next_us > 0 ? next.all == p.next_us : next.all == p.all);
        for (int j = 0; j < 3; j++) {
            const GemmTile *t = &of[j]->tile;
            bool wanted = q.wants & (1 << j);
            ck_assert_int_eq(wanted, t->m > 0);
            ck_assert(t->m == same[j]->tile.m && t->n == same[j]->tile.n &&
                      of[j]->parts == same[j]->parts);
            int high = j == 2 ? q.mask_k : q.mask_m, low = j == 2 ? q.mask_m : q.mask_k;
            ck_assert(!wanted || of[j]->dense || of[j]->whole ||
                      (high % t->m == 0 && (j == 1 ? low % t->n : low % t->k) == 0));
        }
        Note note = {
            .function = "f", .kind = NOTE_SPARSE, .gpu = d->gpu, .of.sparse = {q, p}};
        char text[1000];
        ck_assert_uint_eq(note_print(&note, text, sizeof text), strlen(text));
    }
}
END_TEST

START_TEST(columns)
{
    static const int known[][2] = {{1, 16},   {16, 16},   {24, 32},   {64, 64},
                                   {65, 80},  {72, 80},   {80, 80},   {96, 96},
                                   {97, 128}, {112, 128}, {128, 128}, {160, 160},
                                   {161, 192}, {192, 192}, {193, 256}, {256, 256}};
    ck_assert_int_eq(attention_columns(96, true), 128);
    ck_assert_int_eq(attention_columns(160, true), 256);
    ck_assert_int_eq(attention_columns(64, true), 64);
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        ck_assert_int_eq(attention_columns(known[i][0], false), known[i][1]);
}
END_TEST

START_TEST(any_attention)
{
    static const int64_t sizes[] = {1, 3, 16, 100, 128, 1000, 4096, 100000};
    static const int dims[] = {1, 64, 72, 96, 128, 192, 256};
    NnDevice device[] = {hopper, hopper, hopper, {.processors = 8, .lends = true}};
    device[1].wgmma = false;
    device[2].processors = 7;
    for (int i = 0; i < 8 * 8 * 8 * 7 * 4 * 4; i++) {
        const NnDevice *d = &device[i / (8 * 8 * 8 * 7) % 4];
        AttentionAsk q = attend(sizes[i % 8], 8, i & 1 ? 8 : 2, sizes[i / 8 % 8],
                                i / 64 % 8 ? sizes[i / 64 % 8] : 0, dims[i / 512 % 7]);
        q.causal = i / (8 * 8 * 8 * 7 * 4) & 1;
        q.bytes = i / (8 * 8 * 8 * 7 * 4) & 2 ? 4 : 2;
        AttentionPlan p = attention_plan(d, &q), again = attention_plan(d, &q);
        ck_assert_int_gt(p.tile.m, 0);
        ck_assert(p.split == again.split && p.parts == again.parts &&
                  p.tile.m == again.tile.m && p.tile.n == again.tile.n);
        ck_assert_int_ge(p.tile.columns, q.dim);
        ck_assert(!p.tile.values || p.tile.values >= q.value_dim);
        ck_assert(p.parts >= 1 && p.parts <= ATTENTION_MOST_PARTS);
        ck_assert(p.parts == 1 || p.split);
        ck_assert_int_ge(p.keys * p.parts, q.n);
        ck_assert(p.parts == 1 || p.keys * (p.parts - 1) < q.n);
        ck_assert_int_eq(p.keys % p.tile.n, 0);
        ck_assert(p.cost.all > 0 && p.cost.all < 1e18);
        Note note = {.function = "f",
                     .kind = NOTE_ATTENTION,
                     .gpu = d->gpu,
                     .of.attention = {q, p}};
        char text[1000];
        ck_assert_uint_eq(note_print(&note, text, sizeof text), strlen(text));
    }
}
END_TEST

/* Of one set: as many questions as it has entries are all kept, and one more takes the
   place of that which was looked at longest ago. */
START_TEST(table)
{
    typedef struct Entry {
        PlanHead head;
        int64_t ask, plan;
    } Entry;
    Entry entries[PLAN_WAYS] = {0};
    PlanTable t = {entries, 1, sizeof *entries, sizeof entries->ask, 0};
    for (int64_t q = 0; q < PLAN_WAYS; q++) {
        ck_assert_ptr_null(plan_find(&t, &q));
        ((Entry *)plan_place(&t, &q))->plan = 10 * q;
    }
    for (int64_t q = PLAN_WAYS; q-- > 0;) { /* 0 last */
        const Entry *e = plan_find(&t, &q);
        ck_assert(e && e->ask == q && e->plan == 10 * q);
    }
    int64_t more = 100, oldest = PLAN_WAYS - 1;
    ck_assert_int_eq(((Entry *)plan_place(&t, &more))->plan, 0);
    ck_assert_ptr_null(plan_find(&t, &oldest));
    for (int64_t q = 0; q < oldest; q++)
        ck_assert_ptr_nonnull(plan_find(&t, &q));
}
END_TEST

int
main(void)
{
    Suite *suite = suite_create("plan");
    TCase *c = tcase_create("plan");
    tcase_set_timeout(c, 100);
    tcase_add_test(c, known_shapes);
    tcase_add_test(c, sums_of_two);
    tcase_add_test(c, rests);
    tcase_add_test(c, swapped);
    tcase_add_test(c, small);
    tcase_add_test(c, long_sums);
    tcase_add_test(c, ways);
    tcase_add_test(c, across);
    tcase_add_test(c, other_devices);
    tcase_add_test(c, cpu);
    tcase_add_test(c, any_shape);
    tcase_add_test(c, rows);
    tcase_add_test(c, known_attention);
    tcase_add_test(c, gradients);
    tcase_add_test(c, shares);
    tcase_add_test(c, known_sparse);
    tcase_add_test(c, any_sparse);
    tcase_add_test(c, columns);
    tcase_add_test(c, any_attention);
    tcase_add_test(c, table);
    suite_add_tcase(suite, c);
    SRunner *r = srunner_create(suite);
    srunner_run_all(r, CK_NORMAL);
    int failed = srunner_ntests_failed(r);
    srunner_free(r);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
