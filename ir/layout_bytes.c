/* Layouts for 8-bit operands of products, of which wgmma reads only those that lie along
   the inner dimension in shared memory.

   layout_bytes is how threads hold a tile between two buffers, read across the rows of
   one and written along the rows of the other: four of `inner` in a word, the next places
   in two lane bits, `major` in the other three. So ldmatrix with .trans reads it in pairs
   of bytes (codegen/gen_nv_bytes.c), and stmatrix writes it. The eight rows that stmatrix
   writes together are every other one of `major`: in a swizzled buffer, whose rows lie
   apart by their number modulo eight, the last four would lie in the banks of the first.
   Those lanes therefore hold the odd rows first: their bit moves by 8 + 1.

   Sums of a product lie otherwise in registers than a left operand of 8 bits: a thread
   has two neighbours of every eight columns, not four of every sixteen. No element has to
   move when the right operand has its rows in the same order: `as_sums`. */
#include "ir/layout.h"
#include "ir/layout_make.h"

#include "ir/base/util.h"

/* The bit of `inner` at each of the first places, as sums have it. */
enum { FIRST = 4 };
static const int sum_bit[FIRST] = {0, 3, 1, 2};

/* Bits from..to of dimension dim; beyond the tile they are copies. */
static void
put(Layout *out, LayoutDim d, int dim, int from, int to)
{
    for (int bit = from; bit < to; bit++)
        fill_basis(out, d, bit < out->lg[dim] ? 1u << (layout_shift(out, dim) + bit) : 0);
}

const Layout *
layout_bytes(Session *s, const int64_t *shape, int inner, int num_warps, bool as_sums)
{
    static const int plain[FIRST] = {0, 1, 2, 3};
    const int *bit = as_sums ? sum_bit : plain;
    int major = 1 - inner, warps = log2_floor((uint64_t)num_warps);
    Layout l;
    fill_shape(&l, LK_DISTRIBUTED, 2, shape);
    if (l.lg[0] < FIRST || l.lg[1] < FIRST)
        return NULL;
    int along = (int)min_i64(warps, l.lg[major] - FIRST), rest = FIRST + warps - along;
    for (int i = 0; i < 2; i++)
        put(&l, LD_REG, inner, bit[i], bit[i] + 1);
    put(&l, LD_REG, major, 0, 1);
    for (int i = 2; i < FIRST; i++)
        put(&l, LD_LANE, inner, bit[i], bit[i] + 1);
    put(&l, LD_LANE, major, 1, 3);
    fill_basis(&l, LD_LANE, 9u << layout_shift(&l, major));
    put(&l, LD_WARP, major, FIRST, FIRST + along);
    put(&l, LD_WARP, inner, FIRST, rest);
    put(&l, LD_REG, inner, rest, l.lg[inner]);
    put(&l, LD_REG, major, FIRST + along, l.lg[major]);
    return layout_intern(s, &l);
}

const Layout *
layout_as_sums(Session *s, const Layout *l, int inner)
{
    Layout to = *l;
    int shift = layout_shift(l, inner);
    for (int i = 0; i < l->n[LD_OFFSET]; i++) {
        uint32_t c = l->b[LD_OFFSET][i];
        to.b[LD_OFFSET][i] = c & ~(15u << shift);
        for (int k = 0; k < FIRST; k++)
            to.b[LD_OFFSET][i] |= (c >> (shift + k) & 1) << (shift + sum_bit[k]);
    }
    return layout_intern(s, &to);
}
