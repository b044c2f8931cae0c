/* The processor's products of bf16 take subnormal operands for zero. They are part of the
   language (a factor of 2^-127 of dot_scaled is one), so operands are looked through, and
   where there is one the product is done in fp32 (DOT_PAIRS). Doubled, which drops the
   sign, and less one, subnormal numbers are the smallest: a minimum finds them. */
#include "codegen/gen_cpu_dot.h"

#include "ir/base/util.h"

enum { MOST = 64, NORMAL = 0xff }; /* of the least normal number, as above */

LLVMValueRef
dot_least(Gen *g, LLVMValueRef least, LLVMValueRef x)
{
    LLVMValueRef both[2] = {least, LLVMBuildAdd(g->b, x, x, "")};
    both[1] = LLVMBuildAdd(g->b, both[1], ll_int(LLVMTypeOf(x), -1), "");
    return ll_intrinsic1(g->b, "llvm.umin", both, 2);
}

static LLVMValueRef
is_subnormal(Gen *g, LLVMValueRef least)
{
    LLVMValueRef normal = ll_int(LLVMTypeOf(least), NORMAL);
    LLVMValueRef any = LLVMBuildICmp(g->b, LLVMIntULT, least, normal, "");
    return ll_is_vector(any) ? ll_intrinsic1(g->b, "llvm.vector.reduce.or", &any, 1)
                             : any;
}

void
dot_watch_begin(Gen *g, LLVMValueRef variable)
{
    LLVMBuildStore(g->b, ll_int(LLVMGetAllocatedType(variable), -1), variable);
}

LLVMValueRef
dot_watched(Gen *g, LLVMValueRef variable)
{
    LLVMTypeRef t = LLVMGetAllocatedType(variable);
    return is_subnormal(g, LLVMBuildLoad2(g->b, t, variable, ""));
}

LLVMValueRef
dot_subnormal(Gen *g, LLVMValueRef p, int64_t rows, int64_t cols, int64_t pitch)
{
    int64_t lanes = min_i64(cols, MOST), across = cols / lanes;
    LLVMTypeRef t = ll_vector(LLVMInt16TypeInContext(g->cx), (unsigned)lanes);
    LLVMValueRef most = ll_int(t, -1);
    LLVMBasicBlockRef from = LLVMGetInsertBlock(g->b);
    CpuLoop l = cpu_loop(g, 0, rows * across, 1);
    LLVMValueRef phi = LLVMBuildPhi(g->b, t, "");
    LLVMAddIncoming(phi, &most, &from, 1);
    LLVMValueRef n = ll_int(g->i64, across);
    LLVMValueRef row = LLVMBuildUDiv(g->b, l.i, n, "");
    LLVMValueRef col = LLVMBuildMul(g->b, LLVMBuildURem(g->b, l.i, n, ""),
                                    ll_int(g->i64, lanes), "");
    LLVMValueRef at = dot_at(g, ll_elem(most), p, row, pitch, col);
    LLVMValueRef x = LLVMBuildLoad2(g->b, t, at, "");
    LLVMSetAlignment(x, 2);
    LLVMValueRef least = dot_least(g, phi, x);
    LLVMBasicBlockRef latch = LLVMGetInsertBlock(g->b);
    cpu_loop_end(g, &l);
    LLVMAddIncoming(phi, &least, &latch, 1);
    return is_subnormal(g, least);
}
