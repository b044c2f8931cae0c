/* Elementwise work on a GPU: the shared code of gen_elem.c, with the operations that the
   hardware has approximations for done as Triton does them (div.full, sqrt.approx,
   ex2.approx) and everything else left to LLVM. The hardware's sine and logarithm are
   too coarse away from small arguments and near 1: those are polynomials, and so are most
   functions of fp32 (gen_nv_math.h); libclc's, whose every branch would be computed, take
   several times their instructions. */
#include "codegen/gen_nv_math.h"

#include "codegen/ptx.h"
#include "ir/base/util.h"

#include <string.h>

static NvMath *
math_named(const char *name)
{
    static const struct {
        const char *name;
        NvMath *fn;
    } table[] = {
        {"tan", nv_tan},
        {"asin", nv_asin},
        {"acos", nv_acos},
        {"atan", nv_atan},
        {"atan2", nv_atan2},
        {"sinh", nv_sinh},
        {"cosh", nv_cosh},
        {"tanh", nv_tanh},
        {"asinh", nv_asinh},
        {"acosh", nv_acosh},
        {"atanh", nv_atanh},
        {"expm1", nv_expm1},
        {"exp10", nv_exp10},
        {"log1p", nv_log1p_of},
        {"log10", nv_log10},
        {"pow", nv_pow},
        {"cbrt", nv_cbrt},
        {"hypot", nv_hypot},
        {"tgamma", nv_tgamma},
        {"lgamma", nv_lgamma},
        {"erfc", nv_erfc},
        {"fmod", nv_fmod},
        {"remainder", nv_remainder},
        {"fast_sin", nv_fast_sin},
        {"fast_cos", nv_fast_cos},
        {"fast_tan", nv_fast_tan},
        {"fast_log", nv_fast_log},
        {"fast_log2", nv_fast_log2},
        {"fast_log10", nv_fast_log10},
        {"fast_pow", nv_fast_pow},
        {"fast_exp10", nv_fast_exp10},
    };
    for (int i = 0; i < COUNT_OF(table); i++)
        if (strcmp(table[i].name, name) == 0)
            return table[i].fn;
    return NULL;
}

LLVMValueRef
nv_math(Gen *g, const Op *op, ScalarKind k, LLVMValueRef *x)
{
    if (k == SK_F64 && (op->kind == OP_EXP || op->kind == OP_EXP2))
        return nv_exp64(g, x[0], op->kind == OP_EXP2);
    if (k == SK_F64)
        return op->kind == OP_RSQRT ? NULL : nv_libm(g, op, k, x);
    if (k != SK_F32)
        return NULL;
    NvMath *fn = op->kind == OP_LIBM ? math_named(attr_str(&op->attrs, ATTR_FN)) : NULL;
    if (fn)
        return fn(g, x);
    switch ((int)op->kind) {
    case OP_DIVF: return ptx_call(g, PTX_DIV_FULL, x, 2);
    case OP_SQRT: return ptx_call(g, PTX_SQRT, x, 1);
    case OP_RSQRT: return ptx_call(g, PTX_RSQRT, x, 1);
    case OP_EXP2: return nv_ex2(g, x[0]);
    case OP_EXP:
        x[0] = times(g, x[0], 1.4426950408889634);
        return attr_has(&op->attrs, ATTR_FLUSH) ? nv_ex2(g, x[0])
                                                : nv_ex2_gradual(g, x[0]);
    case OP_LOG2: return nv_log(g, x[0], LOG_2);
    case OP_LOG: return nv_log(g, x[0], LOG_E);
    case OP_ERF: return gen_erf(g, x[0], nv_ex2);
    case OP_SIN: return nv_sine(g, x[0], 0);
    case OP_COS: return nv_sine(g, x[0], 1);
    case OP_REMF: return nv_fmod(g, x);
    default: return nv_libm(g, op, k, x);
    }
}

/* The unsigned product of 64 bits: one instruction gives both halves, and the integer
   multipliers are what Philox waits for. A product of bits that were mixed (xor) by a
   constant is written as that instruction: as a `mul` it would be compared with every
   product before it by LLVM's strength reduction, a fifth of the work that dropout is to
   compile. Products of sums stay visible: their neighbours' are sums, too. */
static LLVMValueRef
wide_product(Gen *g, LLVMValueRef *x)
{
    for (int k = 0; k < 2; k++)
        if (LLVMIsConstant(x[k]) && LLVMIsAInstruction(x[!k]) &&
            LLVMGetInstructionOpcode(x[!k]) == LLVMXor) {
            LLVMValueRef args[2] = {x[!k], x[k]};
            return ptx_asm(g, "mul.wide.u32 $0, $1, $2;", "=l,r,n", g->i64, args, 2,
                           false);
        }
    LLVMValueRef a = LLVMBuildZExt(g->b, x[0], g->i64, "");
    LLVMValueRef b = LLVMBuildZExt(g->b, x[1], g->i64, "");
    return LLVMBuildNUWMul(g->b, a, b, "");
}

/* Is there an op `kind` of the same two numbers: the other half of their product? */
static bool
has_other_half(const Op *op, OpKind kind)
{
    const Value *a = op_operand(op, 0), *b = op_operand(op, 1);
    value_each_use(a, u)
    {
        const Op *o = u->user;
        if (o->kind == kind && ((op_operand(o, 0) == a && op_operand(o, 1) == b) ||
                                (op_operand(o, 0) == b && op_operand(o, 1) == a)))
            return true;
    }
    return false;
}

/* The high half alone keeps the port of results half as long as both (measured). */
static LLVMValueRef
high_half(Gen *g, const Op *op, LLVMValueRef *x)
{
    if (!has_other_half(op, OP_MUL))
        return ptx_asm(g, "mul.hi.u32 $0, $1, $2;", "=r,r,r", g->i32, x, 2, false);
    LLVMValueRef high = LLVMBuildLShr(g->b, wide_product(g, x), ll_int(g->i64, 32), "");
    return LLVMBuildTrunc(g->b, high, g->i32, "");
}

/* The hardware's count has 32 bits and gives 0 from the width on. LLVM knows the latter
   and drops our test of a 64-bit count, then takes its low half: 1 << (1 << 32) is 1
   (LLVM 22). So a count that is not known is cut down to 64, the instruction ours. */
static LLVMValueRef
shift64(Gen *g, bool left, LLVMValueRef *x)
{
    LLVMValueRef count[2] = {x[1], ll_int(g->i64, 64)};
    LLVMValueRef low = ll_intrinsic1(g->b, "llvm.umin", count, 2);
    LLVMValueRef in[2] = {x[0], LLVMBuildTrunc(g->b, low, g->i32, "")};
    return ptx_asm(g, left ? "shl.b64 $0, $1, $2;" : "shr.u64 $0, $1, $2;", "=l,l,r",
                   g->i64, in, 2, false);
}

LLVMValueRef
nv_elem(Gen *g, const Op *op, LLVMValueRef *x)
{
    const Type *e = type_elem(op->results[0].type);
    bool shifts = op->kind == OP_SHL || op->kind == OP_SHRU;
    LLVMValueRef half = nv_half(g, op, x);
    if (half)
        return half;
    if (shifts && e->scalar == SK_I64 && !LLVMIsConstant(x[1]))
        return shift64(g, op->kind == OP_SHL, x);
    bool to_float = op->kind == OP_SITOF || op->kind == OP_UITOF;
    LLVMValueRef narrow = NULL;
    if (to_float && e->scalar == SK_BF16 && !LLVMIsConstant(x[0]))
        narrow = nv_int_to_bf16(g, op, x[0]);
    if (op->kind == OP_FTOSI || op->kind == OP_FTOUI)
        narrow = nv_float_to_int(g, op, x[0]);
    if (narrow)
        return narrow;
    bool f32 = e->kind == TY_SCALAR && e->scalar == SK_F32;
    bool i32 = e->kind == TY_SCALAR && e->scalar == SK_I32;
    if (f32 && (op->kind == OP_DIVF || op->kind == OP_SQRT || op->kind == OP_RSQRT))
        return nv_math(g, op, SK_F32, x);
    if (i32 && op->kind == OP_MULHIU)
        return high_half(g, op, x);
    if (i32 && op->kind == OP_MUL && has_other_half(op, OP_MULHIU))
        return LLVMBuildTrunc(g->b, wide_product(g, x), g->i32, "");
    if (i32 && op->kind == OP_MULHIS)
        return ptx_call(g, PTX_MULHI_S, x, 2);
    return gen_elem(g, op, x);
}
