/* Conversions by shuffles, played out on a warp after the plan's own words. */
#include "ir/layout_make.h"
#include "ir/plan/shuffle.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

static uint64_t seed = 0x9e3779b97f4a7c15u;

static uint32_t
rnd(uint32_t n)
{
    seed ^= seed << 13;
    seed ^= seed >> 7;
    seed ^= seed << 17;
    return (uint32_t)(seed >> 20) % n;
}

enum { MAX_REGS = 64, MAX_THREADS = 128 };

/* Values are coordinates; `wide` of them in a word. */
typedef struct Word {
    uint32_t v[4];
} Word;

typedef struct Threads {
    int regs;
    Word r[MAX_THREADS][MAX_REGS];
} Threads;

static void
swap(Threads *t, ShuffleSwap s, int threads)
{
    Threads old = *t;
    for (int i = 0; i < threads; i++)
        if (__builtin_parity((uint32_t)i & s.mask))
            for (int k = 0; k < t->regs; k++)
                t->r[i][k] = old.r[i][k ^ (int)s.move];
}

static Threads
run(const ShufflePlan *p, Threads in, int threads)
{
    Threads out = {.regs = 1 << p->pick.nin};
    for (int i = 0; i < p->nbefore; i++)
        swap(&in, p->before[i], threads);
    for (int t = 0; t < threads; t++) {
        for (int j = 0; j < out.regs; j++) {
            uint32_t own = (uint32_t)f2_apply(&p->lane, (uint64_t)t & 31);
            uint32_t from = own ^ (uint32_t)f2_apply(&p->turn, (uint64_t)j);
            out.r[t][j] = in.r[(t & ~31) | (int)from][f2_apply(&p->pick, (uint64_t)j)];
        }
    }
    for (int i = 0; i < p->nafter; i++)
        swap(&out, p->after[i], threads);
    return out;
}

/* As above with `wide` elements a word, pairs packed as long as the plan allows. */
static Threads
run_packed(const ShufflePlan *p, Threads in, int threads, int wide, int *packed)
{
    ShufflePlan half;
    int from, to;
    if (wide == 4 || !shuffle_halve(p, &half, &from, &to))
        return run(p, in, threads);
    Threads x = {.regs = in.regs / 2}, out = {.regs = 1 << p->pick.nin};
    for (int t = 0; t < threads; t++)
        for (int i = 0; i < in.regs; i++)
            if (!(i >> from & 1))
                for (int k = 0; k < wide; k++) {
                    Word *w = &x.r[t][bit_cut((uint32_t)i, from)];
                    w->v[k] = in.r[t][i].v[k];
                    w->v[wide + k] = in.r[t][i | 1 << from].v[k];
                }
    x = run_packed(&half, x, threads, 2 * wide, packed);
    for (int t = 0; t < threads; t++)
        for (int i = 0; i < out.regs; i++)
            for (int k = 0; k < wide; k++)
                out.r[t][i].v[k] = x.r[t][bit_cut((uint32_t)i & ~(1u << to), to)]
                                       .v[(i >> to & 1) * wide + k];
    ++*packed;
    return out;
}

/* Unit vectors, some threads with copies. */
static Layout
random_layout(int bits, int warps)
{
    Layout l;
    int perm[LAYOUT_MAX_BITS], at = 0;
    fill_shape(&l, LK_DISTRIBUTED, 1, (int64_t[]){(int64_t)1 << bits});
    for (int i = 0; i < bits; i++)
        perm[i] = i;
    for (int i = bits - 1; i > 0; i--) {
        int k = (int)rnd((uint32_t)i + 1), t = perm[i];
        perm[i] = perm[k];
        perm[k] = t;
    }
    for (int d = LD_LANE; d <= LD_WARP; d++)
        for (int i = 0; i < (d == LD_LANE ? 5 : warps); i++)
            fill_basis(&l, (LayoutDim)d,
                       at == bits || rnd(9) == 0 ? 0 : 1u << perm[at++]);
    while (at < bits)
        fill_basis(&l, LD_REG, 1u << perm[at++]);
    return l;
}

/* Another order of the registers and lanes of l: a few exchanges, a sum now and then. */
static Layout
shuffled(const Layout *l)
{
    Layout out = *l;
    for (int k = (int)rnd(4); k > 0; k--) {
        int d[2] = {rnd(2) ? LD_LANE : LD_REG, LD_LANE}, i[2];
        for (int s = 0; s < 2; s++) {
            if (!out.nbasis[d[s]])
                d[s] = LD_LANE;
            i[s] = (int)rnd(out.nbasis[d[s]]);
        }
        uint32_t t = out.basis[d[0]][i[0]];
        out.basis[d[0]][i[0]] = out.basis[d[1]][i[1]];
        out.basis[d[1]][i[1]] = t;
        if (rnd(4) == 0 && i[0] != i[1])
            out.basis[LD_LANE][i[0] % 5] ^= out.basis[d[1]][i[1]];
    }
    if (rnd(3) == 0 && out.nbasis[LD_REG] && out.nbasis[LD_WARP])
        out.basis[LD_WARP][0] ^= out.basis[LD_REG][0];
    int n = 0; /* no zero register */
    for (int i = 0; i < out.nbasis[LD_REG]; i++)
        if (out.basis[LD_REG][i])
            out.basis[LD_REG][n++] = out.basis[LD_REG][i];
    out.nbasis[LD_REG] = (uint8_t)n;
    return out;
}

START_TEST(every_element_arrives)
{
    int planned = 0, packed = 0, asked = 0, two = 0;
    for (int i = 0; i < 4000; i++) {
        int warps = (int)rnd(3);
        Layout src = random_layout(3 + (int)rnd(7), warps), dst = shuffled(&src);
        ShufflePlan p;
        F2 onto = layout_matrix(&dst);
        if (src.nbasis[LD_REG] > 6 || !f2_is_surjective(&onto) ||
            layout_conversion(&src, &dst).kind != CONV_LANE)
            continue;
        asked++;
        if (!layout_shuffle(&src, &dst, &p))
            continue;
        planned++;
        two += p.nafter == 2;
        Threads t = {.regs = layout_regs(&src)};
        int threads = 32 << warps;
        for (int k = 0; k < threads; k++)
            for (int r = 0; r < t.regs; r++)
                t.r[k][r].v[0] = layout_coord(&src, (uint32_t)r, (uint32_t)k & 31,
                                              (uint32_t)k >> 5, 0);
        Threads plain = run(&p, t, threads),
                pairs = run_packed(&p, t, threads, 1, &packed);
        for (int k = 0; k < threads; k++) {
            for (int r = 0; r < layout_regs(&dst); r++) {
                uint32_t c = layout_coord(&dst, (uint32_t)r, (uint32_t)k & 31,
                                          (uint32_t)k >> 5, 0);
                ck_assert_uint_eq(plain.r[k][r].v[0], c);
                ck_assert_uint_eq(pairs.r[k][r].v[0], c);
            }
        }
    }
    ck_assert_int_gt(asked, 1000);
    ck_assert_int_gt(planned, asked * 9 / 10);
    ck_assert_int_gt(packed, 500);
    ck_assert_int_gt(two, 20);
}
END_TEST

/* One register bit for one lane bit: half of the registers travel, the others stay. */
START_TEST(one_swap_shuffles_half)
{
    Layout src, dst;
    ShufflePlan p;
    fill_shape(&src, LK_DISTRIBUTED, 1, (int64_t[]){256});
    dst = src;
    for (int i = 0; i < 3; i++)
        fill_basis(&src, LD_REG, 1u << i);
    for (int i = 3; i < 8; i++)
        fill_basis(&src, LD_LANE, 1u << i);
    for (int i = 0; i < 3; i++)
        fill_basis(&dst, LD_REG, 1u << (i ? i : 3));
    for (int i = 3; i < 8; i++)
        fill_basis(&dst, LD_LANE, 1u << (i == 3 ? 0 : i));
    ck_assert(layout_shuffle(&src, &dst, &p));
    ck_assert(f2_is_identity(&p.lane));
    ck_assert_int_eq(p.nbefore, 1);
    ck_assert_int_eq(p.nafter, 1);
    int travel = 0;
    for (uint64_t j = 0; j < 8; j++)
        travel += f2_apply(&p.turn, j) != 0;
    ck_assert_int_eq(travel, 4);
}
END_TEST

int
main(void)
{
    Suite *s = suite_create("layout_shuffle");
    TCase *t = tcase_create("all");
    tcase_set_timeout(t, 60);
    tcase_add_test(t, every_element_arrives);
    tcase_add_test(t, one_swap_shuffles_half);
    suite_add_tcase(s, t);
    SRunner *r = srunner_create(s);
    srunner_run_all(r, CK_NORMAL);
    int failed = srunner_ntests_failed(r);
    srunner_free(r);
    return failed != 0;
}
