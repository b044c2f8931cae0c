/* The last piece of a dot in pieces that threads add up (ir/plan/wgmma_promote.h), where
   threads also read the left operand: it is added in the next iteration, while that one's
   left operand is on its way out of shared memory, and behind the loop.

       steps: %acc = phi [%init, front], [%sums, step]
              %piece = phi [0, front], [%last, step]
              ldmatrix
              %all = add %acc, %piece        only those registers
              ..
              %last = wait of the last piece
       after: add %acc, %piece

   Between its last wgmma of an iteration and the first one of the next a warpgroup does
   both, one behind the other, and tensor cores have nothing else to do when that takes
   longer than a piece of the other warpgroup: 256 cycles for 64x128x128. */
#include "codegen/gen_nv.h"

#include "ir/analysis/async_dot.h"
#include "ir/edit.h"
#include "ir/plan/wgmma_promote.h"

/* Which value of the loop around it the dot adds to, if it is such a dot and nothing else
   reads the sums in the loop; -1: it is none. */
static int
carried(const Op *dot)
{
    if (dot->kind != OP_WGMMA || !wgmma_fences(dot))
        return -1;
    const Value *acc = op_operand(dot, DOT_ACC);
    const Op *loop = acc->op ? NULL : acc->region->parent, *wait = dot_full_wait(dot);
    if (!loop || loop->kind != OP_FOR || attr_has(&loop->attrs, ATTR_ONCE) ||
        acc->index < 1 || acc->region != dot->parent || !wait ||
        value_only_user(acc) != dot)
        return -1;
    const Value *sums = &wait->results[0];
    bool yields =
        value_only_user(sums) == acc->region->last && sums->uses->index == acc->index - 1;
    return yields ? acc->index - 1 : -1;
}

NvLate *
nv_late(Gen *g, const Op *dot)
{
    return map_get(&nv_of(g)->late, dot);
}

void
nv_late_begin(Gen *g, const Op *loop, LLVMBasicBlockRef before)
{
    LLVMValueRef zero = LLVMConstNull(g->f32);
    for (const Op *dot = loop->regions[0]->first; dot; dot = dot->next) {
        int at_once;
        if (carried(dot) < 0)
            continue;
        NvLate *late = arena_new(&g->s->tmp, NvLate);
        late->n = wgmma_piece(dot, &at_once) / 2;
        late->piece = arena_array(&g->s->tmp, LLVMValueRef, late->n);
        for (int r = 0; r < late->n; r++) {
            late->piece[r] = LLVMBuildPhi(g->b, g->f32, "");
            LLVMAddIncoming(late->piece[r], &zero, &before, 1);
        }
        map_set(&nv_of(g)->late, dot, late);
    }
}

void
nv_late_end(Gen *g, const Op *loop, LLVMBasicBlockRef last)
{
    for (const Op *dot = loop->regions[0]->first; dot; dot = dot->next) {
        const NvLate *late = nv_late(g, dot);
        for (int r = 0; late && r < late->n; r++)
            LLVMAddIncoming(late->piece[r], &late->next[r], &last, 1);
    }
}

Regs *
nv_late_sums(Gen *g, const Op *loop, int i, Regs *sums)
{
    for (const Op *dot = loop->regions[0]->first; dot; dot = dot->next) {
        const NvLate *late = nv_late(g, dot);
        if (!late || carried(dot) != i)
            continue;
        /* LLVM would add at the end of the iteration what both ways from there add */
        nv_through_asm(g, "// last piece", late->piece, late->n, NULL, 0);
        Regs *all = arena_new(&g->s->tmp, Regs);
        *all = (Regs){.n = sums->n, .v = arena_array(&g->s->tmp, LLVMValueRef, sums->n)};
        for (int r = 0, first = sums->n - late->n; r < sums->n; r++)
            all->v[r] = r < first
                            ? sums->v[r]
                            : LLVMBuildFAdd(g->b, sums->v[r], late->piece[r - first], "");
        return all;
    }
    return sums;
}
