/* Arithmetic of 16-bit floats as the hardware has it, on two registers of a tile at once
   where they come in twos. One rounding as by way of f32, whose 24 bits hold enough of an
   exact sum or product; but a sum of a product may be one operation, as in Triton. */
#include "codegen/gen_nv.h"

static bool
has(const Op *op)
{
    switch ((int)op->kind) {
    case OP_ADDF:
    case OP_SUBF:
    case OP_MULF:
    case OP_FMA:
    case OP_MINF:
    case OP_MAXF:
    case OP_MINNAN:
    case OP_MAXNAN: return true;
    default: return false;
    }
}

static bool
is_half(const Op *op, ScalarKind *k)
{
    const Type *e = type_elem(op->results[0].type);
    if (e->kind != TY_SCALAR || !has(op))
        return false;
    *k = e->scalar;
    return e->scalar == SK_F16 || e->scalar == SK_BF16;
}

/* On LLVM's own types, scalars or vectors. */
static LLVMValueRef
compute(Gen *g, const Op *op, LLVMValueRef *x)
{
    static const LLVMOpcode code[OP_COUNT] = {
        [OP_ADDF] = LLVMFAdd, [OP_SUBF] = LLVMFSub, [OP_MULF] = LLVMFMul};
    static const char *const name[OP_COUNT] = {
        [OP_FMA] = "llvm.fma",        [OP_MINF] = "llvm.minnum",
        [OP_MAXF] = "llvm.maxnum",    [OP_MINNAN] = "llvm.minimum",
        [OP_MAXNAN] = "llvm.maximum",
    };
    if (name[op->kind])
        return ll_intrinsic1(g->b, name[op->kind], x, op->noperand);
    LLVMValueRef r = LLVMBuildBinOp(g->b, code[op->kind], x[0], x[1], "");
    if (!g->func->exact && LLVMIsAInstruction(r))
        LLVMSetFastMathFlags(r, LLVMFastMathAllowContract);
    return r;
}

static LLVMTypeRef
own_type(Gen *g, ScalarKind k)
{
    return k == SK_BF16 ? LLVMBFloatTypeInContext(g->cx) : ll_scalar(g->cx, k);
}

LLVMValueRef
nv_half(Gen *g, const Op *op, LLVMValueRef *in)
{
    ScalarKind k;
    LLVMValueRef x[3];
    if (!is_half(op, &k))
        return NULL;
    for (int i = 0; i < op->noperand; i++)
        x[i] = LLVMBuildBitCast(g->b, in[i], own_type(g, k), "");
    return LLVMBuildBitCast(g->b, compute(g, op, x), ll_scalar(g->cx, k), "");
}

bool
nv_half_pair(Gen *g, const Op *op, Regs *const *in, int r, LLVMValueRef *out)
{
    ScalarKind k;
    LLVMValueRef x[3];
    if (!is_half(op, &k))
        return false;
    LLVMTypeRef plain = LLVMVectorType(ll_scalar(g->cx, k), 2);
    LLVMTypeRef own = LLVMVectorType(own_type(g, k), 2);
    for (int i = 0; i < op->noperand; i++) {
        x[i] = LLVMGetPoison(plain);
        for (int j = 0; j < 2; j++)
            x[i] = LLVMBuildInsertElement(g->b, x[i], in[i]->v[r + j], ll_int(g->i32, j),
                                          "");
        x[i] = LLVMBuildBitCast(g->b, x[i], own, "");
    }
    LLVMValueRef v = LLVMBuildBitCast(g->b, compute(g, op, x), plain, "");
    for (int j = 0; j < 2; j++)
        out[j] = LLVMBuildExtractElement(g->b, v, ll_int(g->i32, j), "");
    return true;
}
