/* Swizzles for buffers of elements of four bytes and more whose rows do not run along the
   inner dimension. ldmatrix cannot transpose such elements, so each lane reads its
   elements of a fragment by itself: a warp reads 32 bytes of each of four rows at once.
   The swizzle of TMA permutes chunks of 16 bytes, with which halves of different rows
   fall into the same banks. Where no TMA fills the buffer the chunk is chosen for the
   fewest conflicts. */
#include "passes/mma/operand.h"

#include "ir/base/util.h"
#include "ir/layout_matrix.h"
#include "ir/plan/swizzle.h"

enum {
    LINE = 128,   /* bytes that all banks hold side by side */
    CHUNK = 16,   /* bytes that TMA's swizzle moves */
    LEAST = 4,    /* bytes of an element */
    LANE_BITS = 5,
};

/* The factor by which bank conflicts slow a read of the registers of layout `tile` from a
   buffer of layout mem; 1: none. 0: ldmatrix reads it. */
static int
conflicts(const Layout *mem, const Layout *tile, int bytes)
{
    F2 place = layout_matrix(mem), want = layout_matrix(tile), inverse;
    MatrixForm form;
    uint64_t lane[LANE_BITS];
    int regs = tile->nbasis[LD_REG];
    if (!f2_invert(&place, &inverse))
        return 0;
    F2 map = f2_compose(&inverse, &want);
    if (tile->nbasis[LD_LANE] != LANE_BITS || matrix_form(&map, regs, bytes, &form))
        return 0;
    for (int i = 0; i < LANE_BITS; i++)
        lane[i] = map.col[regs + i] * (uint64_t)bytes;
    return shared_conflicts(lane, bytes * shared_run(&map, regs, CHUNK / bytes, NULL));
}

const Type *
operand_banks(Session *s, const Type *mem, int fast, const Layout *tile)
{
    int order[MAX_RANK], n = 0, bytes = type_bits(mem) / 8;
    int64_t row = mem->shape[fast] * bytes;
    if (bytes < LEAST || row < LINE)
        return mem;
    order[n++] = fast;
    for (int d = mem->rank - 1; d >= 0; d--)
        if (d != fast)
            order[n++] = d;
    const Layout *best = mem->layout;
    int least = conflicts(best, tile, bytes);
    for (int chunk = 2 * CHUNK; chunk < LINE && least > 1; chunk *= 2) {
        const Layout *l = layout_swizzled(s, mem->rank, mem->shape, chunk / bytes, 1,
                                          LINE / chunk, order);
        int ways = conflicts(l, tile, bytes);
        if (ways < least) {
            best = l;
            least = ways;
        }
    }
    return type_mem(s->types, mem->elem, mem->rank, mem->shape, best, 0);
}
