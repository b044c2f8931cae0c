/* See ir/plan/wgmma_promote.h. */
#include "ir/plan/wgmma_promote.h"

#include "ir/base/util.h"
#include "ir/layout.h"

enum { ROWS = 64, WARPS = 4 };

static bool
has_pieces(const Op *wgmma, int *n, int warps[2])
{
    bool pairs;
    return attr_has(&wgmma->attrs, ATTR_MAX_IMPRECISE) &&
           layout_is_wgmma(wgmma->results[0].type->elem->layout, n, warps, &pairs);
}

int
wgmma_piece_registers(const Op *wgmma)
{
    int n, warps[2];
    if (!has_pieces(wgmma, &n, warps))
        return 0;
    int columns = (int)min_i64(n, WGMMA_PIECE);
    return 2 * ROWS * columns * (warps[0] / WARPS) * warps[1];
}

int64_t
wgmma_rows_at_once(const Op *wgmma)
{
    int n, warps[2];
    return has_pieces(wgmma, &n, warps) ? ROWS * warps[0] / WARPS
                                        : op_operand(wgmma, 0)->type->shape[0];
}
