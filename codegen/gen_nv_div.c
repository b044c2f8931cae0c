/* Quotients and remainders of integers of at most 32 bits on a GPU.

   PTX divides by 0 to some number and the smallest number by -1 to itself, without a
   trap, where LLVM's division has no meaning and needs two choices for each quotient. So
   the instruction is inline assembly, which LLVM still merges and moves. A remainder is
   made of the quotient, which is often wanted as well; by 0 it is x. Scalars stay LLVM's,
   which knows more of them, unless a tile is divided by the same number: ptxas then makes
   its reciprocal once. So do 64 bits, of which LLVM looks whether 32 are enough.

   Neighbours that count up from a multiple of 8 have one quotient by what 8 divides:
   where %n is a multiple of 16, (pid * 1024 + lanes) / %n is two divisions for eight.
   Below 0, and pid * 1024 may wrap, the first of them is alone: -8 / 8 is -1, but -7 / 8
   to -1 / 8 are 0. So those behind the first take the last one's, of any width; its
   remainder is as far ahead of theirs as it is. */
#include "codegen/gen_nv.h"
#include "codegen/ptx.h"
#include "ir/analysis/axis.h"
#include "ir/base/util.h"
#include "ir/edit.h"

/* Is a tile divided by what this scalar is divided by? Nearly always, when it is wanted
   in every lane. */
static bool
shares_divisor(const Op *op)
{
    value_each_use(op_operand(op, 1), u) if (u->user->kind == OP_SPLAT) return true;
    return false;
}

uint32_t
nv_bucket(Gen *g, const Op *op)
{
    const Type *t = op->results[0].type;
    const Layout *l = type_is_tile(t) ? t->layout : NULL;
    if (!op_divides(op) || !l)
        return 0;
    const AxisFacts *x = nv_facts(g, op_operand(op, 0));
    const AxisFacts *y = nv_facts(g, op_operand(op, 1));
    uint32_t best = 0;
    for (int d = 0; d < l->rank; d++) {
        int64_t most = y->contig[d] == 1 ? min_i64(y->constancy[d], y->div[d]) : 1;
        most = min_i64(most, min_i64(x->contig[d], x->div[d]));
        uint32_t run = 0;
        for (int i = 0; i < l->nbasis[LD_REG]; i++) {
            uint32_t bit = l->basis[LD_REG][i];
            int64_t part = layout_part(l, bit, d);
            if (part && part < most && (int64_t)bit == part << layout_shift(l, d))
                run |= 1u << i;
        }
        best = run > best ? run : best;
    }
    return best;
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

LLVMValueRef
nv_divide_run(Gen *g, const Op *op, Regs *const *in, int r, uint32_t run)
{
    if (!((uint32_t)r & run))
        return NULL;
    LLVMValueRef x[2] = {in[0]->v[(uint32_t)r | run], in[1]->v[r]};
    LLVMValueRef v = nv_elem(g, op, x);
    if (!v || op->kind == OP_DIVS || op->kind == OP_DIVU)
        return v;
    return LLVMBuildSub(g->b, v, LLVMBuildSub(g->b, x[0], in[0]->v[r], ""), "");
}
