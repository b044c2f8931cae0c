/* Layouts for the copy of an 8-bit dot operand into a buffer whose rows run along the
   inner dimension, which is all that wgmma reads.

   layout_bytes is the layout in which threads hold the tile between the two buffers. They
   read across the rows of the first and write along those of the second. A word holds
   four elements along `inner`; the next two bits of `inner` are lane bits, and `major`
   has the other three. So ldmatrix with .trans reads the tile in pairs of bytes
   (codegen/gen_nv_bytes.c), and stmatrix writes it. stmatrix writes eight rows at once,
   here every other one along `major`. The swizzle of a row is its number modulo eight, so
   the last four of them would hit the same banks as the first four. To avoid that, the
   lanes of the last four hold odd rows first: the image of their lane bit is 8 + 1.

   The accumulator of a dot has another order in registers than a left operand of 8 bits:
   a thread holds two neighbours of every eight columns, not four of every sixteen. If the
   right operand has its rows in that order (`as_acc`, layout_acc_order), the accumulator
   can be used as a left operand without moving an element. */
#include "ir/layout.h"
#include "ir/layout_make.h"

#include "ir/base/util.h"

/* Which bit of `inner` stands at each of the lowest FIRST bits in an accumulator's
   order. */
enum { FIRST = 4 };
static const int acc_bit[FIRST] = {0, 3, 1, 2};

/* Appends bits from .. to - 1 of dimension dim to input d; bits beyond the tile's size
   are copies. */
static void
put(Layout *out, LayoutDim d, int dim, int from, int to)
{
    for (int bit = from; bit < to; bit++)
        fill_basis(out, d,
                   bit < out->log_shape[dim] ? 1u << (layout_shift(out, dim) + bit) : 0);
}

const Layout *
layout_bytes(Session *s, const int64_t *shape, int inner, int num_warps, bool as_acc)
{
    static const int plain[FIRST] = {0, 1, 2, 3};
    const int *bit = as_acc ? acc_bit : plain;
    int major = 1 - inner, warps = log2_floor((uint64_t)num_warps);
    Layout l;
    fill_shape(&l, LK_DISTRIBUTED, 2, shape);
    if (l.log_shape[0] < FIRST || l.log_shape[1] < FIRST)
        return NULL;
    int along = (int)min_i64(warps, l.log_shape[major] - FIRST);
    int rest = FIRST + warps - along;
    for (int i = 0; i < 2; i++)
        put(&l, LD_REG, inner, bit[i], bit[i] + 1);
    put(&l, LD_REG, major, 0, 1);
    for (int i = 2; i < FIRST; i++)
        put(&l, LD_LANE, inner, bit[i], bit[i] + 1);
    put(&l, LD_LANE, major, 1, 3);
    fill_basis(&l, LD_LANE, 9u << layout_shift(&l, major));
    put(&l, LD_WARP, major, FIRST, FIRST + along);
    put(&l, LD_WARP, inner, FIRST, rest);
    put(&l, LD_REG, inner, rest, l.log_shape[inner]);
    put(&l, LD_REG, major, FIRST + along, l.log_shape[major]);
    return layout_intern(s, &l);
}

const Layout *
layout_acc_order(Session *s, const Layout *l, int inner)
{
    Layout to = *l;
    int shift = layout_shift(l, inner);
    for (int i = 0; i < l->nbasis[LD_OFFSET]; i++) {
        uint32_t c = l->basis[LD_OFFSET][i];
        to.basis[LD_OFFSET][i] = c & ~(15u << shift);
        for (int k = 0; k < FIRST; k++)
            to.basis[LD_OFFSET][i] |= (c >> (shift + k) & 1) << (shift + acc_bit[k]);
    }
    return layout_intern(s, &to);
}
