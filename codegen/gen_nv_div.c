/* Quotients and remainders of integers of at most 32 bits on a GPU.

   PTX divides by 0 to some number and the smallest number by -1 to itself, without a
   trap, where LLVM's division has no meaning and needs two choices for each quotient. So
   the instruction is inline assembly, which LLVM still merges and moves. A remainder is
   made of the quotient, which is often wanted as well; by 0 it is x. Scalars stay LLVM's,
   which knows more of them, unless a tile is divided by the same number: ptxas then makes
   its reciprocal once. So do 64 bits, of which LLVM looks whether 32 are enough. */
#include "codegen/gen_nv.h"
#include "codegen/ptx.h"

/* Is a tile divided by what this scalar is divided by? Nearly always, when it is wanted
   in every lane. */
static bool
shares_divisor(const Op *op)
{
    value_each_use(op_operand(op, 1), u) if (u->user->kind == OP_SPLAT) return true;
    return false;
}

LLVMValueRef
nv_divide(Gen *g, const Op *op, LLVMValueRef x, LLVMValueRef y)
{
    LLVMTypeRef t = LLVMTypeOf(x);
    if (ll_is_vector(x) || LLVMIsConstant(y) || LLVMGetIntTypeWidth(t) > 32)
        return NULL;
    if (!type_is_tile(op->results[0].type) && !shares_divisor(op))
        return NULL;
    bool is_signed = op->kind == OP_DIVS || op->kind == OP_REMS;
    LLVMOpcode ext = is_signed ? LLVMSExt : LLVMZExt;
    LLVMValueRef in[2] = {x, y};
    for (int i = 0; i < 2 && t != g->i32; i++)
        in[i] = LLVMBuildCast(g->b, ext, in[i], g->i32, "");
    const char *text = is_signed ? "div.s32 $0, $1, $2;" : "div.u32 $0, $1, $2;";
    LLVMValueRef q = ptx_asm(g, text, "=r,r,r", g->i32, in, 2, false);
    if (op->kind == OP_REMS || op->kind == OP_REMU)
        q = LLVMBuildSub(g->b, in[0], LLVMBuildMul(g->b, q, in[1], ""), "");
    return t == g->i32 ? q : LLVMBuildTrunc(g->b, q, t, "");
}
