/* What ptxas must be kept from doing to loops of wgmma.

   Left operands in registers that a loop reads and nothing behind it does.

   ptxas (12.8 and 13.0) gives the registers of such an operand to what the loop computes
   after the dot, as if no further iteration would read them: from the second one on the
   dot multiplies that (dq of its own, of attention with a window and 64 dimensions, H200,
   2026-11-23: tests/run/nn_attention_options; at -O1 as at -O3). What is read behind
   the loop keeps its registers. So there is a store behind it, which no SM executes, for
   there is none with that number; the assembler cannot know. It reads the words that
   wgmma reads, made in front of the loop: other words of the same elements kept nothing
   (bytes in random loops, H200, 2026-11-23, tests/codegen/nvptx/kept_bytes.tk).

   Loops of a known number of iterations, which it unrolls. Matmuls that begin with zeros
   and whose results a choice reads that does not change become one then: the second and
   third are multiplied no more, and the first one's result is taken for theirs, whatever
   the descriptors are (12.8 and 13.0, -O2 and -O3; a random loop on an H200, 2026-11-23,
   tests/codegen/nvptx/stays_loop.tk). They stay loops. */
#include "codegen/gen_nv.h"
#include "codegen/ptx.h"

#include "ir/analysis/async_dot.h"
#include "ir/base/util.h"
#include "ir/edit.h"

enum { TOGETHER = 4 };

void
nv_loop_open(Gen *g, NvLoop *l, const Op *op, LLVMBasicBlockRef before)
{
    *l = (NvLoop){.around = nv_of(g)->loop, .op = op, .before = before};
    nv_of(g)->loop = l;
}

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
