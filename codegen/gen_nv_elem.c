/* Elementwise work on a GPU: the shared code of gen_elem.c, with the operations that the
   hardware has approximations for done as Triton does them (div.full, sqrt.approx,
   ex2.approx, lg2.approx) and everything else left to LLVM. */
#include "codegen/gen_nv.h"
#include "codegen/ptx.h"

static const double log2_e = 1.4426950408889634, ln_2 = 0.6931471805599453;

static LLVMValueRef
unary_asm(Gen *g, const char *text, LLVMValueRef x)
{
    return ptx_asm(g, text, "=f,f", g->f32, &x, 1, false);
}

static LLVMValueRef
times(Gen *g, LLVMValueRef x, double c)
{
    return LLVMBuildFMul(g->b, x, ll_float(LLVMTypeOf(x), c), "");
}

LLVMValueRef
nv_math(Gen *g, const Op *op, ScalarKind k, LLVMValueRef *x)
{
    if (k != SK_F32)
        return NULL;
    switch ((int)op->kind) {
    case OP_DIVF: return ptx_call(g, PTX_DIV_FULL, x, 2);
    case OP_SQRT: return ptx_call(g, PTX_SQRT, x, 1);
    case OP_RSQRT: return ptx_call(g, PTX_RSQRT, x, 1);
    case OP_EXP2: return unary_asm(g, "ex2.approx.f32 $0, $1;", x[0]);
    case OP_EXP: return unary_asm(g, "ex2.approx.f32 $0, $1;", times(g, x[0], log2_e));
    case OP_LOG2: return unary_asm(g, "lg2.approx.f32 $0, $1;", x[0]);
    case OP_LOG: return times(g, unary_asm(g, "lg2.approx.f32 $0, $1;", x[0]), ln_2);
    case OP_SIN: return unary_asm(g, "sin.approx.f32 $0, $1;", x[0]);
    case OP_COS: return unary_asm(g, "cos.approx.f32 $0, $1;", x[0]);
    default: return NULL;
    }
}

LLVMValueRef
nv_elem(Gen *g, const Op *op, LLVMValueRef *x)
{
    const Type *e = type_elem(op->results[0].type);
    bool f32 = e->kind == TY_SCALAR && e->scalar == SK_F32;
    bool i32 = e->kind == TY_SCALAR && e->scalar == SK_I32;
    if (f32 && (op->kind == OP_DIVF || op->kind == OP_SQRT || op->kind == OP_RSQRT))
        return nv_math(g, op, SK_F32, x);
    if (i32 && op->kind == OP_MULHIU)
        return ptx_call(g, PTX_MULHI_U, x, 2);
    if (i32 && op->kind == OP_MULHIS)
        return ptx_call(g, PTX_MULHI_S, x, 2);
    return gen_elem(g, op, x);
}
