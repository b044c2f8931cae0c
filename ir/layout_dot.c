/* Layouts of dots: of accumulators, and of operands, which follow from those. */
#include "ir/base/util.h"
#include "ir/layout_make.h"

static int
lg2(int64_t x)
{
    return x > 1 ? log2_floor((uint64_t)x) : 0;
}

static void
put_bits(Layout *out, LayoutDim d, int dim, int from, int to)
{
    for (int bit = from; bit < to; bit++)
        fill_basis(out, d,
                   bit < out->log_shape[dim] ? 1u << (layout_shift(out, dim) + bit) : 0);
}

/* ---- accumulators */

const Layout *
layout_mma_batch(Session *s, int rank, const int64_t *shape, const int *warps)
{
    Layout l;
    int row = rank - 2, col = rank - 1;
    fill_shape(&l, LK_DISTRIBUTED, rank, shape);
    put_bits(&l, LD_REG, col, 0, 1);
    put_bits(&l, LD_REG, row, 3, 4);
    put_bits(&l, LD_LANE, col, 1, 3);
    put_bits(&l, LD_LANE, row, 0, 3);
    for (int d = col; d >= 0; d--) {
        int from = d == col ? 3 : d == row ? 4 : 0;
        put_bits(&l, LD_WARP, d, from, from + lg2(warps[d]));
    }
    for (int d = col; d >= 0; d--) {
        int from = d == col ? 3 : d == row ? 4 : 0;
        put_bits(&l, LD_REG, d, from + lg2(warps[d]), l.log_shape[d]);
    }
    return layout_intern(s, &l);
}

/* Threads left for a matrix once the dimensions before it have taken theirs; `out` gets
   what each takes. */
static int
spread_batch(int *out, int count, int rank, int64_t *left)
{
    for (int d = 0; d < rank; d++) {
        out[d] = d < rank - 2 ? (int)min_i64(count, left[d]) : 1;
        left[d] /= out[d];
        count /= out[d];
    }
    return count;
}

/* count = a * b with m / a + n / b least, no more than m and n as far as that goes. */
static void
split_evenly(int count, int64_t m, int64_t n, int *a, int *b)
{
    int64_t best = INT64_MAX;
    for (int rows = 1; rows <= count; rows *= 2) {
        int64_t cols = count / rows, idle = max_i64(rows / m, 1) * max_i64(cols / n, 1);
        int64_t cost = (max_i64(m / rows, 1) + max_i64(n / cols, 1)) * idle * idle;
        if (cost < best) { /* few rows first: lanes of one row share its elements */
            best = cost;
            *a = rows;
            *b = (int)cols;
        }
    }
}

/* Lanes along rows and along columns in turn. Shared memory gives 16 bytes to each of
   the 16 lanes of half a warp at once only where neighbours, or every other lane, ask for
   the same; in this order that holds for rows of the left and columns of the right
   operand. */
static void
take_turns(Layout *l, int col)
{
    uint32_t side[2][LAYOUT_MAX_BITS];
    uint32_t cols = ((1u << l->log_shape[col]) - 1) << layout_shift(l, col);
    int n[2] = {0}, at[2] = {0};
    for (int i = 0; i < l->nbasis[LD_LANE]; i++) {
        int row = !(l->basis[LD_LANE][i] & cols);
        side[row][n[row]++] = l->basis[LD_LANE][i];
    }
    for (int i = 0; i < l->nbasis[LD_LANE]; i++) {
        int row = at[0] == n[0] || (i % 2 && at[1] < n[1]);
        l->basis[LD_LANE][i] = side[row][at[row]++];
    }
}

const Layout *
layout_threads(Session *s, int rank, const int64_t *shape, int bytes, int num_warps,
               bool down)
{
    enum { ACCESS = 16, LANES = 32 };
    int size[MAX_RANK], lanes[MAX_RANK], warps[MAX_RANK], order[MAX_RANK];
    int64_t left[MAX_RANK], numel = 1;
    int row = rank - 2, col = rank - 1;
    for (int d = 0; d < rank; d++) {
        size[d] = 1;
        order[d] = col - d;
        left[d] = shape[d];
        numel *= shape[d];
    }
    int rest = spread_batch(warps, num_warps, rank, left);
    split_evenly(rest, left[row], left[col], &warps[row], &warps[col]);
    left[row] = max_i64(left[row] / warps[row], 1);
    left[col] = max_i64(left[col] / warps[col], 1);
    int64_t each = max_i64(numel / (LANES * num_warps), 1), few = left[row] * left[col];
    int take = few < LANES ? (int)(LANES / few) : 1; /* lanes take several matrices */
    rest = LANES / take * spread_batch(lanes, take, rank, left);
    split_evenly(rest, left[row], left[col], &lanes[row], &lanes[col]);
    size[col] =
        (int)min_i64(min_i64(ACCESS / bytes, each), max_i64(left[col] / lanes[col], 1));
    if (down)
        size[row] = (int)min_i64(min_i64(ACCESS / bytes, max_i64(each / size[col], 1)),
                                 max_i64(left[row] / lanes[row], 1));
    Layout l;
    fill_blocked(&l, rank, shape, size, lanes, warps, order);
    take_turns(&l, col);
    return layout_intern(s, &l);
}

/* ---- operands */

/* Accumulator bits `v` as the operand has them: without its free dimension `drop`. */
static uint32_t
operand_bits(const Layout *acc, uint32_t v, const Layout *l, int drop)
{
    uint32_t r = 0;
    for (int d = 0; d < acc->rank; d++)
        if (d != drop)
            r |= (uint32_t)layout_part(acc, v, d) << layout_shift(l, d);
    return r;
}

static bool
has_basis(const Layout *l, uint32_t v)
{
    for (int d = 0; d < LD_COUNT; d++)
        for (int i = 0; i < l->nbasis[d]; i++)
            if (l->basis[d][i] == v)
                return true;
    return false;
}

const Layout *
layout_dot_operand(Session *s, const Layout *acc, int64_t k, int op, int kwidth)
{
    Layout l;
    int64_t shape[MAX_RANK] = {0};
    int rank = acc->rank, drop = op == 0 ? rank - 1 : rank - 2;
    int other = op == 0 ? rank - 2 : rank - 1, w = lg2(kwidth);
    for (int d = 0; d < rank; d++)
        shape[d] = d == drop ? k : (int64_t)1 << acc->log_shape[d];
    fill_shape(&l, LK_DISTRIBUTED, rank, shape);
    if (kwidth) {
        put_bits(&l, LD_REG, drop, 0, w);
        if (op == 0)
            put_bits(&l, LD_REG, other, 3, 4);
        put_bits(&l, LD_REG, drop, w + 2, w + 3);
        put_bits(&l, LD_LANE, drop, w, w + 2);
        put_bits(&l, LD_LANE, other, 0, 3);
        put_bits(&l, LD_REG, drop, w + 3, l.log_shape[drop]);
    } else {
        put_bits(&l, LD_REG, drop, 0, l.log_shape[drop]);
    }
    for (int d = kwidth ? LD_WARP : LD_LANE; d < LD_COUNT; d++)
        for (int i = 0; i < acc->nbasis[d]; i++)
            fill_basis(&l, (LayoutDim)d, operand_bits(acc, acc->basis[d][i], &l, drop));
    for (int i = 0; i < acc->nbasis[LD_REG]; i++) {
        uint32_t v = operand_bits(acc, acc->basis[LD_REG][i], &l, drop);
        if (!has_basis(&l, v))
            fill_basis(&l, LD_REG, v);
    }
    return layout_intern(s, &l);
}
