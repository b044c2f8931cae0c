/* What ptxas must be kept from doing to loops of wgmma.

   Left operands in registers that a loop reads and nothing behind it does.

   ptxas (12.8 and 13.0) gives the registers of such an operand to what the loop computes
   after the dot, as if no further iteration would read them: from the second one on the
   dot multiplies that (dq of its own, of attention with a window and 64 dimensions, H200,
   2026-11-23: tests/run/nn_attention_options; at -O1 as at -O3). What is read behind
   the loop keeps its registers. So there is a store behind it, which no SM executes, for
   there is none with that number; the assembler cannot know.

   Loops of a known number of iterations, which it unrolls. Matmuls that begin with zeros
   and whose results a choice reads that does not change become one then: the second and
   third are multiplied no more, and the first one's result is taken for theirs, whatever
   the descriptors are (12.8 and 13.0, -O2 and -O3; a random loop on an H200, 2026-11-23,
   tests/codegen/nvptx/stays_loop.tk). They stay loops. */
#include "codegen/gen_nv.h"
#include "codegen/ptx.h"

#include "ir/base/util.h"
#include "ir/edit.h"

enum { MOST = 8, TOGETHER = 4 };

typedef struct Kept {
    const Value *v[MOST];
    int n;
} Kept;

static void
find(Kept *k, const Region *loop, const Region *r, int depth)
{
    for (const Op *op = r->first; op && depth < MAX_REGION_DEPTH; op = op->next) {
        const Value *a = op->kind == OP_WGMMA ? op_operand(op, 0) : NULL;
        bool known = !a || a->type->kind != TY_TILE || !value_outside(a, loop);
        for (int i = 0; i < k->n && !known; i++)
            known = k->v[i] == a;
        if (!known && k->n < MOST)
            k->v[k->n++] = a;
        for (int i = 0; i < op->nregion; i++)
            find(k, loop, op->regions[i], depth + 1);
    }
}

/* Registers i.. of one word each. */
static LLVMValueRef
word_at(Gen *g, const Regs *regs, int i, int each)
{
    LLVMTypeRef t = LLVMTypeOf(regs->v[i]);
    if (each == 1)
        return LLVMBuildBitCast(g->b, regs->v[i], g->i32, "");
    LLVMValueRef all = LLVMGetUndef(LLVMVectorType(t, (unsigned)each));
    for (int k = 0; k < each; k++)
        all = LLVMBuildInsertElement(g->b, all, regs->v[i + k], ll_int(g->i32, k), "");
    return LLVMBuildBitCast(g->b, all, g->i32, "");
}

static bool
keep(Gen *g, const Value *v)
{
    const Regs *regs = nv_regs(g, v);
    int bits = type_bits(v->type), each = bits < 32 ? 32 / bits : 1;
    LLVMValueRef words[TOGETHER];
    if (!regs)
        return false;
    if (bits > 32 || regs->n % (each * TOGETHER))
        return true;
    for (int i = 0; i < regs->n; i += each * TOGETHER) {
        for (int k = 0; k < TOGETHER; k++)
            words[k] = word_at(g, regs, i + k * each, each);
        ptx_asm(g,
                "{ .reg .pred never; .reg .b32 sm; mov.u32 sm, %smid; "
                "setp.eq.u32 never, sm, -1; "
                "@never st.shared.v4.b32 [$0], {$0, $1, $2, $3}; }",
                "r,r,r,r", LLVMVoidTypeInContext(g->cx), words, TOGETHER, true);
    }
    return true;
}

bool
nv_keep_operands(Gen *g, const Op *loop)
{
    Kept k = {0};
    for (int i = 0; i < loop->nregion; i++)
        find(&k, loop->regions[i], loop->regions[i], 0);
    for (int i = 0; i < k.n; i++)
        if (!keep(g, k.v[i]))
            return false;
    return true;
}

static bool
multiplies(const Region *r, int depth)
{
    for (const Op *op = r->first; op && depth < MAX_REGION_DEPTH; op = op->next) {
        if (op->kind == OP_WGMMA)
            return true;
        for (int i = 0; i < op->nregion; i++)
            if (multiplies(op->regions[i], depth + 1))
                return true;
    }
    return false;
}

bool
nv_stays_loop(const Op *loop)
{
    for (int i = 0; i < 3; i++)
        if (!value_def(op_operand(loop, i), OP_CONST))
            return false;
    return multiplies(loop->regions[0], 0);
}
