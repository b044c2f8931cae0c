/* Constructors of layouts: each says which coordinate bit is the image of which register,
   lane and warp bit. The mma, wgmma and shared forms are those of the PTX manual. */
#include "ir/layout_make.h"

#include "ir/base/util.h"

#include <string.h>

static int
lg2(int64_t x)
{
    return x > 1 ? log2_floor((uint64_t)x) : 0;
}

void
fill_shape(Layout *out, LayoutKind kind, int rank, const int64_t *shape)
{
    memset(out, 0, sizeof *out);
    out->kind = kind;
    out->rank = rank;
    for (int i = 0; i < rank; i++)
        out->log_shape[i] = (uint8_t)lg2(shape[i]);
}

void
fill_basis(Layout *out, LayoutDim d, uint32_t coord)
{
    if (d == LD_REG && out->kind == LK_DISTRIBUTED && !coord)
        return;
    if (out->nbasis[d] < LAYOUT_MAX_BITS)
        out->basis[d][out->nbasis[d]++] = coord;
}

/* Bit `bit` of dimension dim as the next basis of d; beyond the tile it is a copy. */
static void
put(Layout *out, LayoutDim d, int dim, int bit)
{
    bool inside = bit < out->log_shape[dim];
    fill_basis(out, d, inside ? (uint32_t)1 << (layout_shift(out, dim) + bit) : 0);
}

static void
put_range(Layout *out, LayoutDim d, int dim, int from, int to)
{
    for (int bit = from; bit < to; bit++)
        put(out, d, dim, bit);
}

void
fill_blocked(Layout *out, int rank, const int64_t *shape, const int *size,
             const int *lanes, const int *warps, const int *order)
{
    const int *parts[] = {[LD_REG] = size, [LD_LANE] = lanes, [LD_WARP] = warps};
    int next[MAX_RANK] = {0};
    fill_shape(out, LK_DISTRIBUTED, rank, shape);
    for (int d = LD_REG; d <= LD_WARP; d++) {
        for (int i = 0; i < rank; i++) {
            int dim = order[i], n = lg2(parts[d][dim]);
            put_range(out, (LayoutDim)d, dim, next[dim], next[dim] + n);
            next[dim] += n;
        }
    }
    for (int i = 0; i < rank; i++)
        put_range(out, LD_REG, order[i], next[order[i]], out->log_shape[order[i]]);
}

/* The lanes of one 8x8 core matrix: 4 along the columns from bit `col`, 8 rows. */
static void
put_lanes(Layout *out, int col_dim, int col, int row_dim)
{
    put_range(out, LD_LANE, col_dim, col, col + 2);
    put_range(out, LD_LANE, row_dim, 0, 3);
}

void
fill_mma(Layout *out, const int64_t *shape, const int *warps)
{
    int wm = lg2(warps[0]), wn = lg2(warps[1]);
    fill_shape(out, LK_DISTRIBUTED, 2, shape);
    put(out, LD_REG, 1, 0);
    put(out, LD_REG, 0, 3);
    put_lanes(out, 1, 1, 0);
    put_range(out, LD_WARP, 1, 3, 3 + wn);
    put_range(out, LD_WARP, 0, 4, 4 + wm);
    put_range(out, LD_REG, 1, 3 + wn, out->log_shape[1]);
    put_range(out, LD_REG, 0, 4 + wm, out->log_shape[0]);
}

void
fill_mma_operand(Layout *out, const int64_t *shape, const int *warps, int op, int kwidth)
{
    int wm = lg2(warps[0]), wn = lg2(warps[1]), w = lg2(kwidth);
    int k = op == 0 ? 1 : 0, other = 1 - k;
    fill_shape(out, LK_DISTRIBUTED, 2, shape);
    put_range(out, LD_REG, k, 0, w);
    if (op == 0)
        put(out, LD_REG, 0, 3);
    put(out, LD_REG, k, w + 2);
    put_lanes(out, k, w, other);
    for (int i = 0; i < wn; i++) {
        if (op == 1)
            put(out, LD_WARP, 1, 3 + i);
        else
            fill_basis(out, LD_WARP, 0);
    }
    for (int i = 0; i < wm; i++) {
        if (op == 0)
            put(out, LD_WARP, 0, 4 + i);
        else
            fill_basis(out, LD_WARP, 0);
    }
    put_range(out, LD_REG, k, w + 3, out->log_shape[k]);
    put_range(out, LD_REG, other, op == 0 ? 4 + wm : 3 + wn, out->log_shape[other]);
}

/* Warps of wgmma: four along m inside a warpgroup, then warpgroups along m, then along n.
 */
static void
put_warpgroups(Layout *out, const int *warps, int n)
{
    int wm = lg2(warps[0]), wn = lg2(warps[1]);
    put_range(out, LD_WARP, 0, 4, 4 + wm);
    for (int i = 0; i < wn; i++) {
        if (n >= 0)
            put(out, LD_WARP, 1, n + i);
        else
            fill_basis(out, LD_WARP, 0);
    }
}

void
fill_wgmma(Layout *out, const int64_t *shape, int n, const int *warps)
{
    int ln = lg2(n), wm = lg2(warps[0]), wn = lg2(warps[1]);
    fill_shape(out, LK_DISTRIBUTED, 2, shape);
    put(out, LD_REG, 1, 0);
    put(out, LD_REG, 0, 3);
    put_range(out, LD_REG, 1, 3, ln);
    put_lanes(out, 1, 1, 0);
    put_warpgroups(out, warps, ln);
    put_range(out, LD_REG, 1, ln + wn, out->log_shape[1]);
    put_range(out, LD_REG, 0, 4 + wm, out->log_shape[0]);
}

void
fill_wgmma_operand(Layout *out, const int64_t *shape, const int *warps, int kwidth)
{
    int w = lg2(kwidth);
    fill_shape(out, LK_DISTRIBUTED, 2, shape);
    put_range(out, LD_REG, 1, 0, w);
    put(out, LD_REG, 0, 3);
    put(out, LD_REG, 1, w + 2);
    put_lanes(out, 1, w, 0);
    put_warpgroups(out, warps, -1);
    put_range(out, LD_REG, 1, w + 3, out->log_shape[1]);
    put_range(out, LD_REG, 0, 4 + lg2(warps[0]), out->log_shape[0]);
}

/* Row bit j of a swizzled buffer also moves the chunk: the exclusive or of all row bits
   is (row / per_phase) % max_phase because both are powers of two. */
static void
put_rows(Layout *out, int row, int col, int col_bits, int vec, int per_phase,
         int max_phase)
{
    for (int j = 0; j < out->log_shape[row]; j++) {
        uint32_t phase = ((uint32_t)1 << j) / (uint32_t)per_phase % (uint32_t)max_phase;
        uint32_t move = phase * (uint32_t)vec & (((uint32_t)1 << col_bits) - 1);
        fill_basis(out, LD_OFFSET,
                   (uint32_t)1 << (layout_shift(out, row) + j) |
                       move << layout_shift(out, col));
    }
}

void
fill_swizzled(Layout *out, int rank, const int64_t *shape, int vec, int per_phase,
              int max_phase, const int *order)
{
    fill_shape(out, LK_SHARED, rank, shape);
    put_range(out, LD_OFFSET, order[0], 0, out->log_shape[order[0]]);
    if (rank > 1)
        put_rows(out, order[1], order[0], out->log_shape[order[0]], vec, per_phase,
                 max_phase);
    for (int i = 2; i < rank; i++)
        put_range(out, LD_OFFSET, order[i], 0, out->log_shape[order[i]]);
}

void
fill_nvmma(Layout *out, int rank, const int64_t *shape, int bits, int swizzle,
           const int *order)
{
    fill_shape(out, LK_SHARED, rank, shape);
    int col = order[0], all = out->log_shape[col];
    int chunk = swizzle ? lg2((int64_t)swizzle * 8 / bits) : all;
    if (chunk > all)
        chunk = all;
    put_range(out, LD_OFFSET, col, 0, chunk);
    if (rank > 1)
        put_rows(out, order[1], col, chunk, 128 / bits, swizzle ? 128 / swizzle : 1,
                 swizzle ? swizzle / 16 : 1);
    put_range(out, LD_OFFSET, col, chunk, all);
    for (int i = 2; i < rank; i++)
        put_range(out, LD_OFFSET, order[i], 0, out->log_shape[order[i]]);
}

const Layout *
layout_blocked(Session *s, int rank, const int64_t *shape, const int *size,
               const int *lanes, const int *warps, const int *order)
{
    Layout l;
    fill_blocked(&l, rank, shape, size, lanes, warps, order);
    return layout_intern(s, &l);
}

/* Spreads `count` over the dimensions, fastest first, no more than what is left of each;
   the slowest takes the rest. */
static void
spread(int *out, int count, int rank, int64_t *left, const int *order)
{
    for (int i = 0; i < rank; i++) {
        int dim = order[i];
        int64_t n = i == rank - 1 ? count : min_i64(count, max_i64(left[dim], 1));
        out[dim] = (int)n;
        count /= (int)n;
        left[dim] /= n;
    }
}

const Layout *
layout_spread(Session *s, int rank, const int64_t *shape, int vec, const int *order,
              int num_warps)
{
    int size[MAX_RANK], lanes[MAX_RANK], warps[MAX_RANK];
    int64_t left[MAX_RANK];
    for (int i = 0; i < rank; i++) {
        size[i] = i == order[0] ? vec : 1;
        left[i] = shape[i] / size[i];
    }
    spread(lanes, 32, rank, left, order);
    spread(warps, num_warps, rank, left, order);
    return layout_blocked(s, rank, shape, size, lanes, warps, order);
}

const Layout *
layout_mma(Session *s, const int64_t *shape, const int *warps)
{
    Layout l;
    fill_mma(&l, shape, warps);
    return layout_intern(s, &l);
}

const Layout *
layout_mma_operand(Session *s, const int64_t *shape, const int *warps, int op, int kwidth)
{
    Layout l;
    fill_mma_operand(&l, shape, warps, op, kwidth);
    return layout_intern(s, &l);
}

const Layout *
layout_wgmma(Session *s, const int64_t *shape, int n, const int *warps)
{
    Layout l;
    fill_wgmma(&l, shape, n, warps);
    return layout_intern(s, &l);
}

const Layout *
layout_wgmma_operand(Session *s, const int64_t *shape, const int *warps, int kwidth)
{
    Layout l;
    fill_wgmma_operand(&l, shape, warps, kwidth);
    return layout_intern(s, &l);
}

const Layout *
layout_swizzled(Session *s, int rank, const int64_t *shape, int vec, int per_phase,
                int max_phase, const int *order)
{
    Layout l;
    fill_swizzled(&l, rank, shape, vec, per_phase, max_phase, order);
    return layout_intern(s, &l);
}

const Layout *
layout_nvmma(Session *s, int rank, const int64_t *shape, int bits, int swizzle,
             const int *order)
{
    Layout l;
    fill_nvmma(&l, rank, shape, bits, swizzle, order);
    return layout_intern(s, &l);
}

/* Of the bits of every 16 rows the last becomes the first, or the first the last. */
enum { ROW_BITS = 4 };

static void
move_row_bit(Layout *l, bool back)
{
    const uint32_t ALL = (1 << ROW_BITS) - 1;
    int by = back ? 1 : ROW_BITS - 1, shift = layout_shift(l, 0);
    for (int d = 0; d < LD_COUNT; d++)
        for (int i = 0; i < l->nbasis[d]; i++) {
            uint32_t c = l->basis[d][i], row = c >> shift & ALL;
            row = (row >> by | row << (ROW_BITS - by)) & ALL;
            l->basis[d][i] = (c & ~(ALL << shift)) | row << shift;
        }
}

const Layout *
layout_row_pairs(Session *s, const Layout *l)
{
    Layout to = *l;
    move_row_bit(&to, false);
    return layout_intern(s, &to);
}

static bool
is_wgmma(const Layout *l, int *n, int warps[2])
{
    int64_t shape[2];
    Layout made;
    for (int i = 0; i < 2; i++)
        shape[i] = (int64_t)1 << l->log_shape[i];
    for (int wn = 0; wn + 2 <= l->nbasis[LD_WARP]; wn++) {
        warps[0] = 1 << (l->nbasis[LD_WARP] - wn);
        warps[1] = 1 << wn;
        *n = (int)min_i64(shape[1] >> wn, 256);
        fill_wgmma(&made, shape, *n, warps);
        if (*n >= 8 && layout_same(&made, l))
            return true;
    }
    return false;
}

bool
layout_is_wgmma(const Layout *l, int *n, int warps[2], bool *pairs)
{
    Layout plain = *l;
    *pairs = false;
    if (l->rank != 2 || l->kind != LK_DISTRIBUTED)
        return false;
    if (is_wgmma(l, n, warps))
        return true;
    if (l->log_shape[0] < ROW_BITS)
        return false;
    move_row_bit(&plain, true);
    *pairs = is_wgmma(&plain, n, warps);
    return *pairs;
}
