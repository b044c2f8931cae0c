/* Guards against two faults of ptxas in loops of wgmma.

   1. A left operand in registers that a loop reads and does not change, and that nothing
   reads behind the loop. ptxas (12.8 and 13.0) reuses its registers for values that the
   loop computes after the wgmma, as if no later iteration read them. From the second
   iteration on the wgmma multiplies these values (dq kernel of attention with a window
   and head dimension 64, H200, 2026-11-23: tests/run/nn_attention_options; at -O1 and
   -O3). An operand that is read behind the loop keeps its registers. So a store of it is
   generated there, under a condition that is never true but that ptxas cannot evaluate.
   It must read the very words that wgmma reads, packed in front of the loop: other words
   of the same elements did not help (8-bit elements in random loops, H200, 2026-11-23,
   tests/codegen/nvptx/kept_bytes.tk).

   2. A loop with a known number of iterations, which ptxas unrolls. Several wgmmas that
   begin with zeros, and whose results are read by a select with a constant condition, are
   merged: only the first is executed and its result is used for all, although their
   descriptors differ (12.8 and 13.0, -O2 and -O3; a random loop on an H200, 2026-11-23,
   tests/codegen/nvptx/stays_loop.tk). Such loops are kept from being unrolled. */
#include "codegen/gen_nv.h"
#include "codegen/ptx.h"

#include "ir/analysis/async_dot.h"
#include "ir/base/util.h"
#include "ir/edit.h"

enum { TOGETHER = 4 }; /* words of one store */

void
nv_loop_open(Gen *g, NvLoop *l, const Op *op, LLVMBasicBlockRef before)
{
    *l = (NvLoop){.around = nv_of(g)->loop, .op = op, .before = before};
    nv_of(g)->loop = l;
}

/* Does the loop not change v? */
static bool
reads_only(const NvLoop *l, const Value *v)
{
    for (int i = 0; l && i < l->op->nregion; i++)
        if (!value_outside(v, l->op->regions[i]))
            return false;
    return l != NULL;
}

LLVMBasicBlockRef
nv_loop_pack(Gen *g, const Value *v)
{
    LLVMBasicBlockRef here = LLVMGetInsertBlock(g->b);
    const NvLoop *outer = NULL;
    for (const NvLoop *l = nv_of(g)->loop; reads_only(l, v); l = l->around)
        outer = l;
    if (outer)
        LLVMPositionBuilderBefore(g->b, LLVMGetBasicBlockTerminator(outer->before));
    return here;
}

void
nv_loop_keep(Gen *g, const Value *v, LLVMBasicBlockRef here, const LLVMValueRef *word,
             int n)
{
    LLVMPositionBuilderAtEnd(g->b, here);
    for (NvLoop *l = nv_of(g)->loop; reads_only(l, v); l = l->around) {
        if (l->n + n > l->room) {
            LLVMValueRef *old = l->word;
            l->room = 2 * (l->n + n);
            l->word = arena_array(&g->s->tmp, LLVMValueRef, l->room);
            for (int i = 0; i < l->n; i++)
                l->word[i] = old[i];
        }
        for (int i = 0; i < n; i++)
            l->word[l->n++] = word[i];
    }
}

void
nv_loop_close(Gen *g, const NvLoop *l)
{
    nv_of(g)->loop = l->around;
    for (int i = 0; i + TOGETHER <= l->n; i += TOGETHER)
        ptx_asm(g, PTX_NEVER "@never st.shared.v4.b32 [$0], {$0, $1, $2, $3}; }",
                "r,r,r,r", LLVMVoidTypeInContext(g->cx), l->word + i, TOGETHER, true);
}

bool
nv_stays_loop(const Op *loop)
{
    for (int i = 0; i < 3; i++)
        if (!value_def(op_operand(loop, i), OP_CONST))
            return false;
    return dots_within(loop->regions[0]) > 0;
}
