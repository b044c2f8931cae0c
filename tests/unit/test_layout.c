/* Layouts evaluated element by element: constructors against the formulas of the PTX
   manual, the algebra on random maps, conversions by following every place to its
   element. */
#include "ir/layout.h"

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

static F2
random_map(int nin, int nout)
{
    F2 a = f2_zero(nin, nout);
    for (int i = 0; i < nin; i++)
        a.col[i] = rnd(1u << nout);
    return a;
}

START_TEST(compose_applies_one_after_the_other)
{
    for (int i = 0; i < 200; i++) {
        F2 a = random_map(1 + (int)rnd(10), 1 + (int)rnd(10));
        F2 b = random_map(a.nout, 1 + (int)rnd(10));
        F2 c = f2_compose(&b, &a);
        for (uint64_t x = 0; x < 1u << a.nin; x++)
            ck_assert_uint_eq(f2_apply(&c, x), f2_apply(&b, f2_apply(&a, x)));
    }
}
END_TEST

START_TEST(inverses_exist_for_bijections)
{
    int onto = 0;
    for (int i = 0; i < 500; i++) {
        F2 a = random_map(1 + (int)rnd(9), 1 + (int)rnd(9)), inv;
        bool seen[512] = { 0 };
        int image = 0;
        for (uint64_t x = 0; x < 1u << a.nin; x++) {
            image += !seen[f2_apply(&a, x)];
            seen[f2_apply(&a, x)] = true;
        }
        ck_assert_int_eq(image, 1 << f2_rank(&a));
        ck_assert_int_eq(f2_is_surjective(&a), image == 1 << a.nout);
        ck_assert_int_eq(f2_is_injective(&a), image == 1 << a.nin);
        ck_assert_int_eq(f2_right_inverse(&a, &inv), image == 1 << a.nout);
        if (image != 1 << a.nout)
            continue;
        onto++;
        for (uint64_t y = 0; y < 1u << a.nout; y++)
            ck_assert_uint_eq(f2_apply(&a, f2_apply(&inv, y)), y);
        /* what is not free is a set of inputs that reaches each output once */
        uint64_t copies = f2_free(&a);
        int hit[512] = { 0 };
        for (uint64_t x = 0; x < 1u << a.nin; x++)
            if (!(x & copies))
                hit[f2_apply(&a, x)]++;
        for (int y = 0; y < 1 << a.nout; y++)
            ck_assert_int_eq(hit[y], 1);
        ck_assert_int_eq(f2_invert(&a, &inv), a.nin == a.nout);
    }
    ck_assert_int_gt(onto, 50);
}
END_TEST

static int64_t
part(const Layout *l, int reg, int lane, int warp, int dim)
{
    return layout_part(
        l, layout_coord(l, (uint32_t)reg, (uint32_t)lane, (uint32_t)warp, 0), dim);
}

START_TEST(blocked_is_nested_tiles)
{
    Session *s = session_new(0);
    for (int i = 0; i < 200; i++) {
        int order[2] = { (int)rnd(2), 0 }, size[2], lanes[2], warps[2];
        order[1] = 1 - order[0];
        int64_t shape[2];
        int l0 = (int)rnd(6), w0 = (int)rnd(3);
        size[0] = 1 << rnd(3), size[1] = 1 << rnd(3);
        lanes[0] = 1 << l0, lanes[1] = 32 >> l0;
        warps[0] = 1 << w0, warps[1] = 4 >> w0;
        /* large enough that nothing is replicated: then the formula is plain */
        for (int d = 0; d < 2; d++)
            shape[d] = size[d] * lanes[d] * warps[d] * (1 << rnd(2));
        const Layout *l = layout_blocked(s, 2, shape, size, lanes, warps, order);
        ck_assert(layout_check(l, NULL));
        ck_assert(!layout_is_replicated(l));
        int f = order[0], g = order[1];
        for (int k = 0; k < 300; k++) {
            int reg = (int)rnd((uint32_t)layout_regs(l)), lane = (int)rnd(32);
            int warp = (int)rnd(4), rest = reg / (size[0] * size[1]);
            int64_t tile[2] = { (int64_t)size[0] * lanes[0] * warps[0],
                                (int64_t)size[1] * lanes[1] * warps[1] };
            int64_t rep = shape[f] / tile[f], at[2];
            at[f] = reg % size[f] + size[f] * (lane % lanes[f]) +
                    size[f] * lanes[f] * (warp % warps[f]) + tile[f] * (rest % rep);
            at[g] = reg / size[f] % size[g] + size[g] * (lane / lanes[f]) +
                    size[g] * lanes[g] * (warp / warps[f]) + tile[g] * (rest / rep);
            ck_assert_int_eq(part(l, reg, lane, warp, 0), at[0]);
            ck_assert_int_eq(part(l, reg, lane, warp, 1), at[1]);
        }
    }
    session_free(s);
}
END_TEST

START_TEST(matrix_fragments)
{
    Session *s = session_new(0);
    const Layout *acc = layout_wgmma(s, (int64_t[]){ 64, 256 }, 256, (int[]){ 4, 1 });
    const Layout *mma = layout_mma(s, (int64_t[]){ 16, 8 }, (int[]){ 1, 1 });
    const Layout *a = layout_mma_operand(s, (int64_t[]){ 16, 16 }, (int[]){ 1, 1 }, 0, 2);
    const Layout *b = layout_mma_operand(s, (int64_t[]){ 16, 8 }, (int[]){ 1, 1 }, 1, 2);
    const Layout *wa = layout_wgmma_operand(s, (int64_t[]){ 64, 16 }, (int[]){ 4, 1 }, 2);
    for (int lane = 0; lane < 32; lane++) {
        int g = lane / 4, t = lane % 4;
        for (int w = 0; w < 4; w++) {
            for (int i = 0; i < 128; i++) {
                ck_assert_int_eq(part(acc, i, lane, w, 0), 16 * w + g + 8 * (i >> 1 & 1));
                ck_assert_int_eq(part(acc, i, lane, w, 1),
                                 8 * (i >> 2) + 2 * t + (i & 1));
            }
            for (int i = 0; i < 8; i++) {
                ck_assert_int_eq(part(wa, i, lane, w, 0), 16 * w + g + 8 * (i >> 1 & 1));
                ck_assert_int_eq(part(wa, i, lane, w, 1), 2 * t + (i & 1) + 8 * (i >> 2));
            }
        }
        for (int i = 0; i < 4; i++) {
            ck_assert_int_eq(part(mma, i, lane, 0, 0), g + 8 * (i >> 1));
            ck_assert_int_eq(part(mma, i, lane, 0, 1), 2 * t + (i & 1));
            ck_assert_int_eq(part(b, i, lane, 0, 0), 2 * t + (i & 1) + 8 * (i >> 1));
            ck_assert_int_eq(part(b, i, lane, 0, 1), g);
        }
        for (int i = 0; i < 8; i++) {
            ck_assert_int_eq(part(a, i, lane, 0, 0), g + 8 * (i >> 1 & 1));
            ck_assert_int_eq(part(a, i, lane, 0, 1), 2 * t + (i & 1) + 8 * (i >> 2));
        }
    }
    /* packing accumulators pairwise gives the operand of the next matmul: no movement */
    const Layout *p = layout_wgmma_operand(s, (int64_t[]){ 64, 256 }, (int[]){ 4, 1 }, 2);
    ck_assert_ptr_eq(p, acc);
    int n, warps[2];
    bool pairs;
    ck_assert(layout_is_wgmma(acc, &n, warps, &pairs) && !pairs && n == 256);
    const Layout *two = layout_row_pairs(s, acc);
    ck_assert(layout_is_wgmma(two, &n, warps, &pairs) && pairs && n == 256);
    ck_assert(warps[0] == 4 && warps[1] == 1);
    for (int lane = 0; lane < 32; lane++)
        for (int i = 0; i < 128; i++) {
            ck_assert_int_eq(part(two, i, lane, 3, 0), 48 + lane / 4 * 2 + (i >> 1 & 1));
            ck_assert_int_eq(part(two, i, lane, 3, 1), part(acc, i, lane, 3, 1));
        }
    ck_assert(!layout_is_wgmma(layout_row_pairs(s, two), &n, warps, &pairs));
    session_free(s);
}
END_TEST

/* The eight rows that lanes name, from bits of `l`, in a buffer: all in banks of their
   own. */
static void
rows_are_apart(const Layout *mem, const uint32_t row[3])
{
    F2 place = layout_matrix(mem), at;
    int seen = 0;
    ck_assert(f2_invert(&place, &at));
    for (int r = 0; r < 8; r++) {
        uint32_t c = 0;
        for (int i = 0; i < 3; i++)
            c ^= r >> i & 1 ? row[i] : 0;
        seen |= 1 << (f2_apply(&at, c) / 16 % 8);
    }
    ck_assert_int_eq(seen, 0xff);
}

/* Bytes read across the rows of one buffer and written along those of another. */
START_TEST(bytes_change_buffers_without_conflicts)
{
    Session *s = session_new(0);
    for (int size = 64; size <= 256; size *= 2)
        for (int kind = 0; kind < 4; kind++) {
            int inner = kind & 1, wide = size < 128 ? size : 128;
            const int64_t shape[2] = {size, size};
            const Layout *l = layout_bytes(s, shape, inner, 4, kind >> 1);
            const Layout *from =
                layout_nvmma(s, 2, shape, 8, wide, (int[]){1 - inner, inner});
            const Layout *to =
                layout_nvmma(s, 2, shape, 8, wide, (int[]){inner, 1 - inner});
            to = kind >> 1 ? layout_acc_order(s, to, inner) : to;
            const uint32_t *reg = l->basis[LD_REG], *lane = l->basis[LD_LANE];
            /* codegen/gen_nv_bytes.c: the last row bit takes the word's second with it */
            rows_are_apart(from, (uint32_t[]){reg[0], lane[0], lane[1] ^ reg[1]});
            rows_are_apart(to, lane + 2);
        }
    session_free(s);
}
END_TEST

START_TEST(swizzles_are_those_of_the_hardware)
{
    Session *s = session_new(0);
    for (int swizzle = 32; swizzle <= 128; swizzle *= 2) {
        int cols = 2 * swizzle / 2,
            chunk = swizzle / 2; /* two chunks of 16-bit elements */
        uint32_t mask = (uint32_t)swizzle / 16 - 1;
        const Layout *l =
            layout_nvmma(s, 2, (int64_t[]){ 32, cols }, 16, swizzle, (int[]){ 1, 0 });
        ck_assert(layout_check(l, NULL));
        for (int row = 0; row < 32; row++) {
            for (int col = 0; col < cols; col++) {
                uint32_t plain = (uint32_t)(col / chunk * 32 * swizzle + row * swizzle +
                                            col % chunk * 2);
                uint32_t phys = plain ^ ((plain >> 7 & mask) << 4);
                uint32_t at = layout_at(l, LD_OFFSET, phys / 2);
                ck_assert_int_eq(layout_part(l, at, 0), row);
                ck_assert_int_eq(layout_part(l, at, 1), col);
            }
        }
    }
    const Layout *l =
        layout_swizzled(s, 2, (int64_t[]){ 16, 32 }, 8, 2, 4, (int[]){ 1, 0 });
    for (int row = 0; row < 16; row++) {
        for (int col = 0; col < 32; col++) {
            int chunk = col / 8 ^ (row / 2 % 4);
            uint32_t at =
                layout_at(l, LD_OFFSET, (uint32_t)(row * 32 + chunk * 8 + col % 8));
            ck_assert_int_eq(layout_part(l, at, 0), row);
            ck_assert_int_eq(layout_part(l, at, 1), col);
        }
    }
    session_free(s);
}
END_TEST

/* A random distributed layout of the shape, with copies when there are bits to spare. */
static const Layout *
random_layout(Session *s, int rank, const int64_t *shape)
{
    for (;;) {
        Layout l = { .kind = LK_DISTRIBUTED, .rank = rank };
        int bits = 0;
        for (int i = 0; i < rank; i++)
            bits += l.log_shape[i] = (uint8_t)__builtin_ctzll((uint64_t)shape[i]);
        l.nbasis[LD_LANE] = 5;
        l.nbasis[LD_WARP] = (uint8_t)rnd(3);
        l.nbasis[LD_REG] = (uint8_t)rnd((uint32_t)bits + 1);
        for (int d = 0; d < LD_COUNT; d++)
            for (int i = 0; i < l.nbasis[d]; i++)
                l.basis[d][i] = rnd(3) ? 1u << rnd((uint32_t)bits) : rnd(1u << bits);
        if (layout_check(&l, NULL))
            return layout_intern(s, &l);
    }
}

START_TEST(conversions_find_every_element)
{
    Session *s = session_new(0);
    const int64_t shape[2] = { 8, 32 };
    int kinds[4] = { 0 };
    for (int i = 0; i < 300; i++) {
        const Layout *src = random_layout(s, 2, shape);
        const Layout *dst = rnd(4) ? random_layout(s, 2, shape) : src;
        if (src->nbasis[LD_WARP] != dst->nbasis[LD_WARP])
            continue;
        Conversion c = layout_conversion(src, dst);
        F2 from = layout_matrix(src), to = layout_matrix(dst);
        kinds[c.kind]++;
        uint64_t regs = (1u << src->nbasis[LD_REG]) - 1;
        uint64_t warp = (1u << (src->nbasis[LD_REG] + 5)) - 1;
        for (uint64_t x = 0; x < 1u << to.nin; x++) {
            uint64_t y = f2_apply(&c.from, x);
            ck_assert_uint_eq(f2_apply(&from, y), f2_apply(&to, x));
            uint64_t own = x >> dst->nbasis[LD_REG] << src->nbasis[LD_REG];
            if (c.kind == CONV_NONE)
                ck_assert_uint_eq(y, x);
            if (c.kind == CONV_REG)
                ck_assert_uint_eq(y & ~regs, own);
            if (c.kind == CONV_LANE)
                ck_assert_uint_eq(y & ~warp, own & ~warp);
        }
        if (src == dst)
            ck_assert_int_eq(c.kind, CONV_NONE);
    }
    ck_assert_int_gt(kinds[CONV_SHARED], 10);
    /* the kinds that random pairs rarely hit */
    const int order[2] = { 1, 0 }, flipped[2] = { 0, 1 };
    const Layout *row = layout_spread(s, 2, (int64_t[]){ 64, 64 }, 4, order, 1);
    const Layout *pair = layout_spread(s, 2, (int64_t[]){ 64, 64 }, 4, flipped, 1);
    const Layout *wide = layout_spread(s, 2, (int64_t[]){ 64, 64 }, 4, order, 4);
    ck_assert_int_eq(layout_conversion(row, pair).kind, CONV_LANE);
    ck_assert_int_eq(
        layout_conversion(wide, layout_spread(s, 2, (int64_t[]){ 64, 64 }, 4, flipped, 4))
            .kind,
        CONV_SHARED);
    Layout swapped = *row;
    swapped.basis[LD_REG][0] = row->basis[LD_REG][3];
    swapped.basis[LD_REG][3] = row->basis[LD_REG][0];
    ck_assert_int_eq(layout_conversion(row, layout_intern(s, &swapped)).kind, CONV_REG);
    session_free(s);
}
END_TEST

START_TEST(one_thread_owns_each_element)
{
    Session *s = session_new(0);
    for (int i = 0; i < 100; i++) {
        const Layout *l = random_layout(s, 2, (int64_t[]){ 8, 16 });
        uint32_t copies[LD_COUNT];
        int owners[128] = { 0 };
        layout_replication(l, copies);
        for (uint32_t r = 0; r < 1u << l->nbasis[LD_REG]; r++)
            for (uint32_t t = 0; t < 32; t++)
                for (uint32_t w = 0; w < 1u << l->nbasis[LD_WARP]; w++)
                    if (!(r & copies[LD_REG]) && !(t & copies[LD_LANE]) &&
                        !(w & copies[LD_WARP]))
                        owners[layout_coord(l, r, t, w, 0)]++;
        for (int k = 0; k < 128; k++)
            ck_assert_int_eq(owners[k], 1);
    }
    session_free(s);
}
END_TEST

/* Accumulators of any rank, and operands that follow from them: for matrices those of the
   constructors by name, else valid ones that hold every element. */
START_TEST(operands_of_dots_hold_every_element)
{
    Session *s = session_new(0);
    for (int wn = 0; wn < 3; wn++) {
        int warps[3] = { 2, 4 >> wn, 1 << wn };
        int64_t shape[3] = { 4, 64, 32 }, a[2] = { 64, 64 }, b[2] = { 64, 32 };
        const Layout *acc = layout_mma_batch(s, 2, shape + 1, warps + 1);
        ck_assert_ptr_eq(acc, layout_mma(s, shape + 1, warps + 1));
        for (int k = 1; k <= 4; k *= 2) {
            ck_assert_ptr_eq(layout_dot_operand(s, acc, 64, 0, k),
                             layout_mma_operand(s, a, warps + 1, 0, k));
            ck_assert_ptr_eq(layout_dot_operand(s, acc, 64, 1, k),
                             layout_mma_operand(s, b, warps + 1, 1, k));
        }
        const Layout *batch = layout_mma_batch(s, 3, shape, warps);
        ck_assert_int_eq(layout_warps(batch), 8);
        for (int op = 0; op < 2; op++) {
            const Layout *l = layout_dot_operand(s, batch, 64, op, 2);
            ck_assert(layout_check(batch, NULL) && layout_check(l, NULL));
            ck_assert_int_eq(l->log_shape[0], 2);
        }
    }
    for (int i = 0; i < 300; i++) {
        int rank = 2 + i % 3, warps = 1 << rnd(4);
        int64_t shape[4], numel = 1;
        for (int d = 0; d < rank; d++)
            numel *= shape[d] = (int64_t)1 << rnd(d < rank - 2 ? 4 : 7);
        const Layout *acc = layout_threads(s, rank, shape, 1 << rnd(4), warps, rnd(2));
        ck_assert(layout_check(acc, NULL));
        ck_assert_int_eq(layout_warps(acc), warps);
        if (numel >= 32 * warps) /* no thread does what another one does */
            ck_assert(!layout_is_replicated(acc));
        for (int op = 0; op < 2; op++)
            ck_assert(layout_check(layout_dot_operand(s, acc, 16, op, 0), NULL));
    }
    session_free(s);
}
END_TEST

START_TEST(runs_of_registers)
{
    Session *s = session_new(0);
    const int order[2] = { 1, 0 };
    const Layout *l = layout_spread(s, 2, (int64_t[]){ 16, 256 }, 8, order, 4);
    int reg[LAYOUT_MAX_BITS];
    ck_assert_int_eq(layout_run(l, 1, reg), 8);
    ck_assert_int_eq(layout_run(l, 0, NULL), 1);
    for (uint32_t i = 0; i < 8; i++)
        ck_assert_int_eq(layout_part(l, layout_coord(l, i, 3, 1, 0), 1) % 8, i);
    /* a lane that moves the low bit breaks the run */
    Layout bad = *l;
    bad.basis[LD_LANE][4] |= 1;
    ck_assert_int_eq(layout_run(&bad, 1, NULL), 1);
    session_free(s);
}
END_TEST

START_TEST(related_tiles)
{
    Session *s = session_new(0);
    const int64_t shape[2] = { 16, 32 };
    for (int i = 0; i < 50; i++) {
        const Layout *l = random_layout(s, 2, shape);
        const Layout *t = layout_trans(s, l, (int64_t[]){ 1, 0 });
        const Layout *r = layout_reshape(s, l, 3, (int64_t[]){ 4, 8, 16 });
        const Layout *sl = layout_slice(s, l, 1), *sq = layout_squash(s, l, 1);
        const Layout *j = layout_join(s, l);
        ck_assert_ptr_eq(layout_trans(s, t, (int64_t[]){ 1, 0 }), l);
        ck_assert_ptr_eq(layout_reshape(s, r, 2, shape), l);
        ck_assert_ptr_eq(layout_slice(s, sq, 1), sl);
        ck_assert_ptr_eq(layout_split(s, j), l);
        const Layout *again = layout_repeat(s, sq, 1, 5);
        ck_assert(layout_check(again, NULL));
        ck_assert_ptr_eq(layout_squash(s, again, 1), sq);
        ck_assert_int_eq(again->log_shape[1], 5);
        ck_assert(layout_check(sl, NULL) && layout_check(j, NULL));
        for (int k = 0; k < 50; k++) {
            int reg = (int)rnd((uint32_t)layout_regs(l)), lane = (int)rnd(32);
            int64_t row = part(l, reg, lane, 0, 0), col = part(l, reg, lane, 0, 1);
            ck_assert_int_eq(part(t, reg, lane, 0, 0), col);
            ck_assert_int_eq(part(t, reg, lane, 0, 1), row);
            ck_assert_int_eq(part(r, reg, lane, 0, 0), row / 4);
            ck_assert_int_eq(part(r, reg, lane, 0, 1), row % 4 * 2 + col / 16);
            ck_assert_int_eq(part(r, reg, lane, 0, 2), col % 16);
            ck_assert_int_eq(part(sl, 0, lane, 0, 0), part(l, 0, lane, 0, 0));
            ck_assert_int_eq(part(j, reg * 2 + 1, lane, 0, 2), 1);
            ck_assert_int_eq(part(j, reg * 2 + 1, lane, 0, 1), col);
        }
    }
    session_free(s);
}
END_TEST

static const Layout *
reread(Session *s, const Layout *l)
{
    Buf b, why;
    int64_t shape[MAX_RANK];
    buf_init(&b, &s->tmp);
    buf_init(&why, &s->tmp);
    layout_print(&b, l);
    for (int i = 0; i < l->rank; i++)
        shape[i] = (int64_t)1 << l->log_shape[i];
    const Layout *r = layout_read(s, b.s, b.n, l->rank, shape, &why);
    ck_assert_msg(r != NULL, "%s: %s", b.s, why.s);
    return r;
}

START_TEST(text_round_trip)
{
    Session *s = session_new(0);
    for (int i = 0; i < 200; i++) {
        int rank = 1 + (int)rnd(3), bits = 0;
        int64_t shape[3];
        for (int k = 0; k < rank; k++) {
            int n = (int)rnd(5);
            shape[k] = (int64_t)1 << n;
            bits += n;
        }
        int order[3] = { rank - 1, rank == 3 ? 1 : 0, 0 };
        const Layout *l = layout_spread(s, rank, shape, 1 << rnd(3), order, 1 << rnd(4));
        ck_assert_ptr_eq(reread(s, l), l);
        if (bits) {
            const Layout *r = random_layout(s, rank, shape);
            ck_assert_ptr_eq(reread(s, r), r);
        }
    }
    for (int wn = 0; wn < 3; wn++) {
        int warps[2] = { 8 >> wn, 1 << wn };
        int64_t shape[2] = { 128, 128 };
        const Layout *all[] = {
            layout_mma(s, shape, warps),
            layout_mma_operand(s, shape, warps, 0, 2),
            layout_mma_operand(s, shape, warps, 1, 4),
            layout_wgmma(s, shape, 64, (int[]){ 8 >> (wn & 1), 1 << (wn & 1) }),
            layout_nvmma(s, 2, shape, 16, 128 >> wn, (int[]){ 1, 0 }),
            layout_nvmma(s, 2, shape, 32, 64, (int[]){ 0, 1 }),
            layout_swizzled(s, 2, shape, 4, 2, 8, (int[]){ 1, 0 }),
        };
        for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
            ck_assert_ptr_eq(reread(s, all[i]), all[i]);
    }
    session_free(s);
}
END_TEST

static void
check_text(Session *s, const char *text, const char *want)
{
    const int64_t shape[2] = { 64, 64 };
    Buf b, why;
    buf_init(&b, &s->tmp);
    buf_init(&why, &s->tmp);
    const Layout *l = layout_read(s, text, strlen(text), 2, shape, &why);
    ck_assert_msg((l != NULL) == (want != NULL), "%s: %s", text, why.s);
    if (l) {
        layout_print(&b, l);
        ck_assert_str_eq(b.s, want);
    } else {
        ck_assert_uint_gt(why.n, 0);
    }
}

START_TEST(text_goes_in_and_out)
{
    Session *s = session_new(0);
    const char *blk = "blocked<size=[1,8], lanes=[4,8], warps=[4,1], order=[1,0]>";
    check_text(s, blk, blk);
    check_text(s, " blocked< size = [1,8],lanes=[4,8],warps=[4,1] > ", blk);
    check_text(s, "shared<f16, swizzle=128>", "shared<f16, swizzle=128, order=[1,0]>");
    check_text(s, "mma<m=64, n=32, warps=[4,2]>", "mma<m=64, n=32, warps=[4,2]>");
    /* one map, two hardware units: the first spelling that gives it */
    check_text(s, "mma<m=64, n=64, warps=[4,1]>", "mma<m=16, n=8, warps=[4,1]>");
    check_text(
        s, "slice<dim=2, size=2, blocked<size=[1,8,2], lanes=[4,8,1], warps=[4,1,1]>>",
        blk);
    static const char *const bad[] = {
        "",
        "blocked",
        "blocked<",
        "blocked<>",
        "blocked<size=[1,8]>",
        "nothing<size=[1]>",
        "blocked<size=[1,3], lanes=[4,8], warps=[4,1]>",
        "blocked<size=[1,8], lanes=[4,4], warps=[4,1]>",
        "blocked<size=[1,8], lanes=[4,8], warps=[4,1], order=[1,1]>",
        "blocked<size=[1,8], lanes=[4,8], warps=[4,16]>",
        "blocked<size=[1,8], lanes=[4,8], warps=[4,1]> x",
        "linear<reg=[[0,1]], lane=[], warp=[]>",
        "linear<reg=[[0,64]]>",
        "linear<reg=[[0,0]]>",
        "linear<reg=[[0]]>",
        "linear<reg=[0,1]>",
        "linear<offset=[[0,1]]>",
        "shared<f16, swizzle=5>",
        "shared<f99, swizzle=64>",
        "mma<m=16, n=8>",
        "mma<m=64, n=64, warps=[1,4]>",
        "mma<m=17, n=8, warps=[1,4]>",
        "slice<dim=0, size=2>",
        "slice<dim=9, size=2, mma<m=16>>",
        "slice<dim=0, size=999999999999, x<a=1>>",
        "linear<a=[[[[[[[[[",
        "<<<<<<<<<",
    };
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        check_text(s, bad[i], NULL);
    session_free(s);
}
END_TEST

int
main(void)
{
    Suite *suite = suite_create("layout");
    TCase *t = tcase_create("layout");
    tcase_set_timeout(t, 60);
    tcase_add_test(t, compose_applies_one_after_the_other);
    tcase_add_test(t, inverses_exist_for_bijections);
    tcase_add_test(t, blocked_is_nested_tiles);
    tcase_add_test(t, matrix_fragments);
    tcase_add_test(t, bytes_change_buffers_without_conflicts);
    tcase_add_test(t, swizzles_are_those_of_the_hardware);
    tcase_add_test(t, conversions_find_every_element);
    tcase_add_test(t, one_thread_owns_each_element);
    tcase_add_test(t, operands_of_dots_hold_every_element);
    tcase_add_test(t, runs_of_registers);
    tcase_add_test(t, related_tiles);
    tcase_add_test(t, text_round_trip);
    tcase_add_test(t, text_goes_in_and_out);
    suite_add_tcase(suite, t);
    SRunner *r = srunner_create(suite);
    srunner_run_all(r, CK_NORMAL);
    int failed = srunner_ntests_failed(r);
    srunner_free(r);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
