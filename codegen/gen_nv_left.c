/* Left operands of wgmma that lie across the inner dimension in shared memory, where the
   unit cannot read them: bytes. The threads read them, a step of the inner dimension at a
   time, while the steps before are multiplied.

       wait for all but the last 3 steps     their registers are free
       ldmatrix, prmt                        the fragments of this one
       wgmma, commit

   A matrix that ldmatrix transposes gives a thread two neighbours of a row of the buffer,
   which are two rows of the result. The instruction has 8 rows between the two that a
   thread holds; so the product is that of rows in another order, and the accumulator's
   layout says so (layout_row_pairs). Registers are numbered alike in both orders. */
#include "codegen/gen_nv.h"

bool
nv_left_open(Gen *g, const Value *mem, const int warps[2], LeftReader *out)
{
    enum { IN_WORD = 4 };
    const Type *t = mem->type;
    *out = (LeftReader){.elem = type_elem(t)};
    out->plain = layout_wgmma_operand(g->s, t->shape, warps, IN_WORD);
    const Layout *l = layout_row_pairs(g->s, out->plain);
    out->base = nv_scalar(g, mem);
    out->regs.n = 1 << l->n[LD_REG];
    out->regs.v = arena_array(&g->s->tmp, LLVMValueRef, out->regs.n);
    return out->base && nv_shared_map(g, t, l, &out->map);
}

void
nv_left_read(Gen *g, LeftReader *x, uint32_t k, uint32_t n)
{
    const Layout *l = x->plain;
    uint32_t only = 0, part = 0;
    for (int i = 0; i < l->n[LD_REG]; i++) {
        uint32_t inner = (uint32_t)layout_part(l, l->b[LD_REG][i], 1);
        only |= inner >= n ? 1u << i : 0;
        part |= inner >= n && (k & inner) ? 1u << i : 0;
    }
    if (!nv_ldmatrix_bytes(g, &x->map, x->base, x->elem, only, part, &x->regs))
        nv_shared_read(g, &x->map, x->base, x->elem, only, part, &x->regs);
}
