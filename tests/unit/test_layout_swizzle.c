/* Exchanges through shared memory, played out thread by thread: every element arrives,
   and the banks are met as often as was foretold. */
#include "ir/layout_make.h"
#include "ir/plan/swizzle.h"

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

/* A random distributed layout: unit vectors in any order over registers, lanes and
   warps, some of the threads' left out (copies), and now and then a sum of two. */
static Layout
random_layout(int lg0, int lg1, int warps)
{
    Layout l;
    int all = lg0 + lg1, perm[LAYOUT_MAX_BITS];
    fill_shape(&l, LK_DISTRIBUTED, 2, (int64_t[]){(int64_t)1 << lg0, (int64_t)1 << lg1});
    for (int i = 0; i < all; i++)
        perm[i] = i;
    for (int i = all - 1; i > 0; i--) {
        int k = (int)rnd((uint32_t)i + 1), t = perm[i];
        perm[i] = perm[k];
        perm[k] = t;
    }
    int at = 0;
    for (int d = LD_LANE; d <= LD_WARP; d++)
        for (int i = 0; i < (d == LD_LANE ? 5 : warps); i++) {
            bool copy = at == all || rnd(8) == 0;
            fill_basis(&l, (LayoutDim)d, copy ? 0 : 1u << perm[at++]);
        }
    while (at < all)
        fill_basis(&l, LD_REG, 1u << perm[at++]);
    /* a sum with a basis of another kind keeps the map onto */
    if (rnd(2) && l.nbasis[LD_REG] && l.basis[LD_LANE][0])
        l.basis[LD_REG][0] ^= l.basis[LD_LANE][0];
    return l;
}

static int
bits_of(const Layout *l)
{
    return l->log_shape[0] + l->log_shape[1];
}

/* How often the fullest bank is used, summed over the passes that the bytes need and
   divided by their number. */
static int
simulate_banks(const Exchange *e, const Layout *l, int run)
{
    F2 map = exchange_map(e, l);
    int bytes = run * e->bytes, lanes = bytes > 4 ? 32 * 4 / bytes : 32, worst = 0;
    for (int first = 0; first < 32; first += lanes) {
        int64_t seen[32][64];
        int n[32] = {0};
        for (int lane = first; lane < first + lanes; lane++) {
            uint64_t off = f2_apply(&map, (uint64_t)lane << l->nbasis[LD_REG]);
            for (int k = 0; k < (bytes > 4 ? bytes / 4 : 1); k++) {
                int64_t word = (int64_t)off * e->bytes / 4 + k;
                int bank = (int)(word % 32), i = 0;
                while (i < n[bank] && seen[bank][i] != word)
                    i++;
                if (i == n[bank])
                    seen[bank][n[bank]++] = word;
            }
        }
        for (int i = 0; i < 32; i++)
            worst = n[i] > worst ? n[i] : worst;
    }
    return worst;
}

static void
play(const Layout *src, const Layout *dst, const Exchange *e)
{
    static int64_t mem[1 << 16];
    F2 ms = exchange_map(e, src), md = exchange_map(e, dst);
    uint32_t copies[LD_COUNT];
    int arrived = 0;
    layout_replication(src, copies);
    for (uint32_t round = 0; round <= e->rounds; round++) {
        if (round & ~e->rounds)
            continue;
        memset(mem, -1, sizeof mem);
        for (uint64_t p = 0; p < (uint64_t)1 << ms.nin; p++) {
            uint32_t reg = (uint32_t)p & ((1u << src->nbasis[LD_REG]) - 1);
            uint32_t thread = (uint32_t)(p >> src->nbasis[LD_REG]);
            uint32_t c = layout_coord(src, reg, thread & 31, thread >> 5, 0);
            if ((c & e->rounds) != round || (reg & copies[LD_REG]) ||
                (thread & 31 & copies[LD_LANE]) || (thread >> 5 & copies[LD_WARP]))
                continue;
            uint64_t at = f2_apply(&ms, p);
            ck_assert_int_lt((int64_t)at * e->bytes, exchange_bytes(e));
            ck_assert_int_eq(mem[at], -1); /* one writer, no two elements */
            mem[at] = c;
        }
        for (uint64_t p = 0; p < (uint64_t)1 << md.nin; p++) {
            uint32_t reg = (uint32_t)p & ((1u << dst->nbasis[LD_REG]) - 1);
            uint32_t thread = (uint32_t)(p >> dst->nbasis[LD_REG]);
            uint32_t c = layout_coord(dst, reg, thread & 31, thread >> 5, 0);
            if ((c & e->rounds) != round)
                continue;
            ck_assert_int_eq(mem[f2_apply(&md, p)], c);
            arrived++;
        }
    }
    ck_assert_int_eq(arrived, 1 << md.nin);
}

START_TEST(every_element_arrives)
{
    for (int i = 0; i < 600; i++) {
        int lg0 = 1 + (int)rnd(6), lg1 = 1 + (int)rnd(6), warps = (int)rnd(4);
        int bytes = 1 << rnd(4);
        Layout src = random_layout(lg0, lg1, warps), dst = random_layout(lg0, lg1, warps);
        int64_t limit = i % 3 ? EXCHANGE_LIMIT : 1024;
        int units = i % 2 ? EXCHANGE_LDMATRIX | EXCHANGE_STMATRIX : 0;
        Exchange e = layout_exchange(&src, &dst, bytes, limit, units);
        ck_assert_int_eq(e.offset.nout + e.nround, bits_of(&src));
        play(&src, &dst, &e);
        if (!e.store_matrix)
            ck_assert_int_eq(e.store_ways, simulate_banks(&e, &src, e.store));
        if (!e.load_matrix)
            ck_assert_int_eq(e.load_ways, simulate_banks(&e, &dst, e.load));
    }
}
END_TEST

/* The bytes that a large tile takes are halved until they fit, as far as both sides
   have registers for it. */
START_TEST(large_tiles_go_in_rounds)
{
    int64_t shape[] = {128, 256};
    Layout src, dst;
    fill_mma(&src, shape, (int[]){4, 2});
    fill_blocked(&dst, 2, shape, (int[]){1, 4}, (int[]){1, 32}, (int[]){8, 1},
                 (int[]){1, 0});
    Exchange e = layout_exchange(&src, &dst, 4, 65536, 0);
    ck_assert_int_eq(exchange_bytes(&e), 65536);
    ck_assert_int_eq(e.nround, 1);
    play(&src, &dst, &e);
}
END_TEST

/* The conversions that kernels are made of meet no bank twice. */
START_TEST(common_pairs_are_free)
{
    int64_t shape[] = {128, 64};
    int row[] = {1, 0}, col[] = {0, 1};
    Layout l[6];
    fill_mma(&l[0], shape, (int[]){2, 2});
    fill_wgmma(&l[1], shape, 64, (int[]){4, 1});
    fill_blocked(&l[2], 2, shape, (int[]){1, 8}, (int[]){4, 8}, (int[]){4, 1}, row);
    fill_blocked(&l[3], 2, shape, (int[]){8, 1}, (int[]){16, 2}, (int[]){1, 4}, col);
    fill_blocked(&l[4], 2, shape, (int[]){1, 4}, (int[]){2, 16}, (int[]){4, 1}, row);
    fill_mma_operand(&l[5], shape, (int[]){2, 2}, 0, 2);
    for (int a = 0; a < 6; a++) {
        for (int b = 0; b < 6; b++) {
            for (int bytes = 2; bytes <= 4; bytes *= 2) {
                Exchange e = layout_exchange(&l[a], &l[b], bytes, EXCHANGE_LIMIT, 0);
                ck_assert_msg(e.store_ways == 1 && e.load_ways == 1,
                              "pair %d %d, %d bytes: %d, %d ways", a, b, bytes,
                              e.store_ways, e.load_ways);
            }
        }
    }
}
END_TEST

/* An accumulator of halves to rows or columns: stmatrix, when the target has it; rows to
   an operand: ldmatrix. */
START_TEST(halves_go_by_ldmatrix_and_stmatrix)
{
    int64_t shape[] = {64, 64};
    enum { BOTH = EXCHANGE_LDMATRIX | EXCHANGE_STMATRIX };
    Layout acc, row, col, operand;
    fill_mma(&acc, shape, (int[]){4, 1});
    fill_blocked(&row, 2, shape, (int[]){1, 8}, (int[]){4, 8}, (int[]){4, 1},
                 (int[]){1, 0});
    fill_blocked(&col, 2, shape, (int[]){8, 1}, (int[]){8, 4}, (int[]){1, 4},
                 (int[]){0, 1});
    fill_mma_operand(&operand, shape, (int[]){4, 1}, 0, 2);
    Exchange e = layout_exchange(&acc, &row, 2, EXCHANGE_LIMIT, BOTH);
    ck_assert(e.store_matrix && e.store_ways == 1 && e.load == 8 && e.load_ways == 1);
    e = layout_exchange(&acc, &col, 2, EXCHANGE_LIMIT, BOTH);
    ck_assert(e.store_matrix && e.store_ways == 1 && e.load == 8 && e.load_ways == 1);
    e = layout_exchange(&row, &operand, 2, EXCHANGE_LIMIT, EXCHANGE_LDMATRIX);
    ck_assert(e.load_matrix && e.load_ways == 1 && e.store == 8 && e.store_ways == 1);
    e = layout_exchange(&acc, &row, 2, EXCHANGE_LIMIT, 0);
    ck_assert(!e.store_matrix && e.store_ways == 1 && e.load_ways == 1);
}
END_TEST

int
main(void)
{
    Suite *s = suite_create("layout_swizzle");
    TCase *t = tcase_create("all");
    tcase_set_timeout(t, 60);
    tcase_add_test(t, every_element_arrives);
    tcase_add_test(t, large_tiles_go_in_rounds);
    tcase_add_test(t, common_pairs_are_free);
    tcase_add_test(t, halves_go_by_ldmatrix_and_stmatrix);
    suite_add_tcase(s, t);
    SRunner *r = srunner_create(s);
    srunner_run_all(r, CK_NORMAL);
    int failed = srunner_ntests_failed(r);
    srunner_free(r);
    return failed != 0;
}
