/* See ir/plan/wgmma_promote.h. */
#include "ir/plan/wgmma_promote.h"

#include "ir/base/util.h"
#include "ir/layout.h"
#include "ir/plan/wgmma_left.h"

enum { ROWS = 64, WARPS = 4, ALONE = 64, BESIDE = 128 };

static bool
has_pieces(const Op *wgmma, int *n, int warps[2])
{
    bool pairs;
    return attr_has(&wgmma->attrs, ATTR_MAX_IMPRECISE) &&
           layout_is_wgmma(wgmma->results[0].type->elem->layout, n, warps, &pairs);
}

int
wgmma_piece(const Op *wgmma, int *at_once)
{
    int n, warps[2];
    if (!has_pieces(wgmma, &n, warps))
        return 0;
    bool beside = warps[0] * warps[1] > WARPS;
    *at_once = beside ? 1 : 2;
    return (int)min_i64(n, beside ? BESIDE : ALONE);
}

int
wgmma_piece_registers(const Op *wgmma)
{
    int n, warps[2], at_once, columns = wgmma_piece(wgmma, &at_once);
    return columns && has_pieces(wgmma, &n, warps)
               ? at_once * ROWS * columns * (warps[0] / WARPS) * warps[1]
               : 0;
}

int64_t
wgmma_rows_at_once(const Op *wgmma)
{
    int n, warps[2];
    return has_pieces(wgmma, &n, warps) ? ROWS * warps[0] / WARPS
                                        : op_operand(wgmma, 0)->type->shape[0];
}

bool
wgmma_fences(const Op *wgmma)
{
    int n, warps[2];
    return has_pieces(wgmma, &n, warps) && wgmma_by_steps(wgmma);
}
