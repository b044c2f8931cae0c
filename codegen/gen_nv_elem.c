/* Elementwise work on a GPU: the shared code of gen_elem.c, with the operations that the
   hardware has approximations for done as Triton does them (div.full, sqrt.approx,
   ex2.approx) and everything else left to LLVM. The hardware's sine and logarithm are
   too coarse away from small arguments and near 1: those are polynomials, and so are the
   error function and the hyperbolic tangent. */
#include "codegen/gen_nv.h"
#include "codegen/ptx.h"

#include <string.h>

static const double log2_e = 1.4426950408889634;

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

/* sin(x + quadrant * pi/2). The multiple of pi/2 is taken off in double precision, where
   pi/2 in two parts leaves an exact remainder: within 1.6 ulp for |x| <= 1e13; beyond,
   only the range of the result is right. Adding 1.5 * 2^52 leaves the multiple's low bits
   in the low bits of the sum. */
static LLVMValueRef
sine(Gen *g, LLVMValueRef x, int quadrant)
{
    static const double sin_c[] = {-1.6666654611e-1, 8.3321608736e-3, -1.9515295891e-4};
    static const double cos_c[] = {1.0, -0.5, 4.166664568298827e-2, -1.388731625493765e-3,
                                   2.443315711809948e-5};
    LLVMValueRef magic = ll_float(g->f64, 6755399441055744.0);
    LLVMValueRef wide = LLVMBuildFPExt(g->b, x, g->f64, "");
    LLVMValueRef sum = gen_fma(g, wide, ll_float(g->f64, 0.63661977236758138), magic);
    LLVMValueRef k = LLVMBuildFSub(g->b, sum, magic, "");
    LLVMValueRef r = gen_fma(g, k, ll_float(g->f64, -1.5707963267948966), wide);
    r = gen_fma(g, k, ll_float(g->f64, -6.123233995736766e-17), r);
    r = LLVMBuildFPTrunc(g->b, r, g->f32, "");
    LLVMValueRef q =
        LLVMBuildTrunc(g->b, LLVMBuildBitCast(g->b, sum, g->i64, ""), g->i32, "");
    q = LLVMBuildAdd(g->b, q, ll_int(g->i32, quadrant), "");
    LLVMValueRef s = LLVMBuildFMul(g->b, r, r, "");
    LLVMValueRef odd = LLVMBuildTrunc(g->b, q, g->i1, "");
    LLVMValueRef cube = LLVMBuildFMul(g->b, s, r, "");
    LLVMValueRef sin_r = gen_fma(g, gen_polynomial(g, s, sin_c, 3), cube, r);
    LLVMValueRef cosine = gen_polynomial(g, s, cos_c, 5);
    LLVMValueRef y = LLVMBuildSelect(g->b, odd, cosine, sin_r, "");
    LLVMValueRef half = LLVMBuildAnd(g->b, q, ll_int(g->i32, 2), "");
    LLVMValueRef back = LLVMBuildICmp(g->b, LLVMIntNE, half, ll_int(g->i32, 0), "");
    return LLVMBuildSelect(g->b, back, LLVMBuildFNeg(g->b, y, ""), y, "");
}

/* x = m * 2^i with m in [2/3, 4/3): log(1 + f) as a polynomial in f = m - 1, plus i * log
   2; within 0.9 ulp, to base 2 within 1.6 (lg2.approx is 2^-22 off near 1, where the
   logarithm is as small as that). */
static LLVMValueRef
logarithm(Gen *g, LLVMValueRef x, bool base2)
{
    static const double c[] = {-0.5,         0.333331972,  -0.249996200,
                               0.200120345,  -0.166846126, 0.139814854,
                               -0.121489584, 0.140889585,  -0.130187988};
    LLVMValueRef zero = ll_float(g->f32, 0.0), inf = ll_float(g->f32, __builtin_inf());
    LLVMValueRef tiny =
        LLVMBuildFCmp(g->b, LLVMRealOLT, x, ll_float(g->f32, 0x1p-126), "");
    LLVMValueRef a = LLVMBuildSelect(g->b, tiny, times(g, x, 0x1p23), x, "");
    LLVMValueRef lift = LLVMBuildSelect(g->b, tiny, ll_float(g->f32, -23.0), zero, "");
    LLVMValueRef bits = LLVMBuildBitCast(g->b, a, g->i32, "");
    LLVMValueRef e = LLVMBuildSub(g->b, bits, ll_int(g->i32, 0x3f2aaaab), "");
    e = LLVMBuildAnd(g->b, e, ll_int(g->i32, (int32_t)0xff800000), "");
    LLVMValueRef m = LLVMBuildBitCast(g->b, LLVMBuildSub(g->b, bits, e, ""), g->f32, "");
    LLVMValueRef i =
        gen_fma(g, LLVMBuildSIToFP(g->b, e, g->f32, ""), ll_float(g->f32, 0x1p-23), lift);
    LLVMValueRef f = LLVMBuildFSub(g->b, m, ll_float(g->f32, 1.0), "");
    LLVMValueRef s = LLVMBuildFMul(g->b, f, f, "");
    LLVMValueRef r = gen_fma(g, gen_polynomial(g, f, c, 9), s, f);
    r = base2 ? gen_fma(g, r, ll_float(g->f32, log2_e), i)
              : gen_fma(g, i, ll_float(g->f32, 0.693147182), r);
    LLVMValueRef below = LLVMBuildFCmp(g->b, LLVMRealOLT, x, zero, "");
    LLVMValueRef none = LLVMBuildFCmp(g->b, LLVMRealOEQ, x, zero, "");
    LLVMValueRef odd =
        LLVMBuildSelect(g->b, none, ll_float(g->f32, -__builtin_inf()), x, "");
    odd = LLVMBuildSelect(g->b, below, ll_float(g->f32, __builtin_nan("")), odd, "");
    LLVMValueRef plain = LLVMBuildAnd(g->b, LLVMBuildFCmp(g->b, LLVMRealOGT, x, zero, ""),
                                      LLVMBuildFCmp(g->b, LLVMRealOLT, x, inf, ""), "");
    return LLVMBuildSelect(g->b, plain, r, odd, "");
}

static LLVMValueRef
power_of_two(Gen *g, LLVMValueRef x)
{
    return unary_asm(g, "ex2.approx.ftz.f32 $0, $1;", x);
}

/* Near 0 x + x^3 p(x^2), fitted, from 0.9 on 1 - 2 / (1 + e^2x): within 2.5 ulp, the
   hardware's errors included. */
static LLVMValueRef
hyperbolic_tangent(Gen *g, LLVMValueRef x)
{
    static const double p[] = {-0.333332121, 0.133303598,    -0.0537214838,
                               0.0209041145, -0.00686004246, 0.00130395428};
    LLVMValueRef one = ll_float(g->f32, 1.0);
    LLVMValueRef size = ll_intrinsic1(g->b, "llvm.fabs", &x, 1);
    LLVMValueRef s = LLVMBuildFMul(g->b, x, x, "");
    LLVMValueRef near = gen_polynomial(g, s, p, 6);
    near = gen_fma(g, near, LLVMBuildFMul(g->b, s, x, ""), x);
    LLVMValueRef e = times(g, size, 2 * log2_e);
    e = unary_asm(g, "ex2.approx.ftz.f32 $0, $1;", e);
    e = LLVMBuildFAdd(g->b, e, one, "");
    e = unary_asm(g, "rcp.approx.ftz.f32 $0, $1;", e);
    e = gen_fma(g, e, ll_float(g->f32, -2.0), one);
    LLVMValueRef small =
        LLVMBuildFCmp(g->b, LLVMRealOLT, size, ll_float(g->f32, 0.9), "");
    LLVMValueRef r[2] = {LLVMBuildSelect(g->b, small, near, e, ""), x};
    return ll_intrinsic1(g->b, "llvm.copysign", r, 2); /* that of -0, too */
}

LLVMValueRef
nv_math(Gen *g, const Op *op, ScalarKind k, LLVMValueRef *x)
{
    if (k == SK_F64)
        return op->kind == OP_RSQRT ? NULL : nv_libm(g, op, k, x);
    if (k != SK_F32)
        return NULL;
    if (op->kind == OP_LIBM && strcmp(attr_str(&op->attrs, ATTR_FN), "tanh") == 0)
        return hyperbolic_tangent(g, x[0]);
    switch ((int)op->kind) {
    case OP_DIVF: return ptx_call(g, PTX_DIV_FULL, x, 2);
    case OP_SQRT: return ptx_call(g, PTX_SQRT, x, 1);
    case OP_RSQRT: return ptx_call(g, PTX_RSQRT, x, 1);
    case OP_EXP2: return unary_asm(g, "ex2.approx.ftz.f32 $0, $1;", x[0]);
    case OP_EXP:
        return unary_asm(g, "ex2.approx.ftz.f32 $0, $1;", times(g, x[0], log2_e));
    case OP_LOG2: return logarithm(g, x[0], true);
    case OP_LOG: return logarithm(g, x[0], false);
    case OP_ERF: return gen_erf(g, x[0], power_of_two);
    case OP_SIN: return sine(g, x[0], 0);
    case OP_COS: return sine(g, x[0], 1);
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
