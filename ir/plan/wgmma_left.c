/* See ir/plan/wgmma_left.h. */
#include "ir/plan/wgmma_left.h"

#include "ir/layout.h"

bool
wgmma_by_steps(const Op *wgmma)
{
    enum { WORD = 32 };
    const Type *a = op_operand(wgmma, 0)->type;
    int n, warps[2];
    bool pairs;
    if (a->kind != TY_MEM ||
        !layout_is_wgmma(wgmma->results[0].type->elem->layout, &n, warps, &pairs))
        return false;
    const Layout *l = a->layout;
    return pairs || (type_bits(a) == WORD && l->nbasis[LD_OFFSET] &&
                     l->basis[LD_OFFSET][0] == (uint32_t)1 << layout_shift(l, 0));
}

int
wgmma_groups(const Op *wgmma)
{
    const Attr *part = attr_find(&wgmma->attrs, ATTR_PART);
    const Type *a = op_operand(wgmma, 0)->type;
    int64_t inner = part ? part->v.ints[1] : a->shape[1];
    return wgmma_by_steps(wgmma) ? (int)(inner * type_bits(a) / 8 / WGMMA_STEP_BYTES) : 1;
}
