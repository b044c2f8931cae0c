/* See ir/plan/wgmma_promote.h. */
#include "ir/plan/wgmma_promote.h"

#include "ir/base/util.h"
#include "ir/layout.h"

int
wgmma_piece_registers(const Op *wgmma)
{
    enum { ROWS = 64, WARPS = 4 };
    int n, warps[2];
    bool pairs;
    if (!attr_has(&wgmma->attrs, ATTR_MAX_IMPRECISE) ||
        !layout_is_wgmma(wgmma->results[0].type->elem->layout, &n, warps, &pairs))
        return 0;
    int columns = (int)min_i64(n, WGMMA_PIECE);
    return 2 * ROWS * columns * (warps[0] / WARPS) * warps[1];
}
