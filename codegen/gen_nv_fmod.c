/* The exact remainders of fp32 on a GPU: long division of whole numbers, 8 bits a round.
   No rounding happens, whatever the exponents are. */
#include "codegen/gen_nv_math.h"

typedef struct Parts {
    LLVMValueRef m, e; /* size = m 2^(e - 150), 2^23 <= m < 2^24 unless it is subnormal */
} Parts;

static LLVMValueRef
word(Gen *g, int64_t v)
{
    return ll_int(g->i32, v);
}

/* Subnormal numbers are multiplied by 2^23 first, and their exponent is so much less. */
static Parts
parts(Gen *g, Num size)
{
    LLVMValueRef tiny = less(g, size, 0x1p-126);
    LLVMValueRef bits = bits_of(g, where(g, tiny, times(g, size, 0x1p23), size));
    LLVMValueRef m = LLVMBuildAnd(g->b, bits, word(g, 0x7fffff), "");
    LLVMValueRef e = LLVMBuildLShr(g->b, bits, word(g, 23), "");
    return (Parts){LLVMBuildOr(g->b, m, word(g, 0x800000), ""),
                   LLVMBuildSub(g->b, e, where(g, tiny, word(g, 23), word(g, 0)), "")};
}

/* m 2^(e - 150) */
static Num
joined(Gen *g, LLVMValueRef m, LLVMValueRef e)
{
    Num y = LLVMBuildUIToFP(g->b, m, g->f32, ""); /* m < 2^24: exact */
    return nv_scaled(g, y, LLVMBuildSub(g->b, e, word(g, 150), ""));
}

/* One round: m 2^step = q d + rest, of m < d < 2^24 and step <= 8. The quotient by the
   reciprocal is off by one at most, either way. */
static LLVMValueRef
round_of(Gen *g, LLVMValueRef m, LLVMValueRef step, LLVMValueRef d, Num reciprocal,
         LLVMValueRef *quotient)
{
    LLVMValueRef wide = LLVMBuildShl(g->b, m, step, "");
    Num guess = mul(g, LLVMBuildUIToFP(g->b, wide, g->f32, ""), reciprocal);
    LLVMValueRef q = LLVMBuildFPToUI(g->b, guess, g->i32, "");
    LLVMValueRef rest = LLVMBuildSub(g->b, wide, LLVMBuildMul(g->b, q, d, ""), "");
    LLVMValueRef low = LLVMBuildICmp(g->b, LLVMIntSLT, rest, word(g, 0), "");
    rest = where(g, low, LLVMBuildAdd(g->b, rest, d, ""), rest);
    q = where(g, low, LLVMBuildSub(g->b, q, word(g, 1), ""), q);
    LLVMValueRef high = LLVMBuildICmp(g->b, LLVMIntUGE, rest, d, "");
    rest = where(g, high, LLVMBuildSub(g->b, rest, d, ""), rest);
    *quotient = where(g, high, LLVMBuildAdd(g->b, q, word(g, 1), ""), q);
    return rest;
}

/* The remainder of whole numbers m 2^bits by d (m < 2 d), and the last quotient, whose
   lowest bit is the whole quotient's. */
static LLVMValueRef
division(Gen *g, LLVMValueRef m, LLVMValueRef bits, LLVMValueRef d,
         LLVMValueRef *quotient)
{
    LLVMValueRef fn = LLVMGetBasicBlockParent(LLVMGetInsertBlock(g->b));
    LLVMValueRef fits = LLVMBuildICmp(g->b, LLVMIntUGE, m, d, "");
    LLVMValueRef begin[3] = {where(g, fits, LLVMBuildSub(g->b, m, d, ""), m), bits,
                             LLVMBuildZExt(g->b, fits, g->i32, "")};
    Num reciprocal = nv_rcp(g, LLVMBuildUIToFP(g->b, d, g->f32, ""));
    LLVMBasicBlockRef here = LLVMGetInsertBlock(g->b);
    LLVMBasicBlockRef loop = LLVMAppendBasicBlockInContext(g->cx, fn, "");
    LLVMBasicBlockRef done = LLVMAppendBasicBlockInContext(g->cx, fn, "");
    LLVMValueRef some = LLVMBuildICmp(g->b, LLVMIntSGT, bits, word(g, 0), "");
    LLVMBuildCondBr(g->b, some, loop, done);

    LLVMPositionBuilderAtEnd(g->b, loop);
    LLVMValueRef phi[3], next[3];
    for (int i = 0; i < 3; i++)
        phi[i] = LLVMBuildPhi(g->b, g->i32, "");
    LLVMValueRef in[2] = {phi[1], word(g, 8)};
    LLVMValueRef step = ll_intrinsic1(g->b, "llvm.smin", in, 2);
    next[0] = round_of(g, phi[0], step, d, reciprocal, &next[2]);
    next[1] = LLVMBuildSub(g->b, phi[1], step, "");
    some = LLVMBuildICmp(g->b, LLVMIntSGT, next[1], word(g, 0), "");
    ll_stays_loop(LLVMBuildCondBr(g->b, some, loop, done));
    LLVMBasicBlockRef from[2] = {here, loop};

    LLVMValueRef out[3];
    for (int i = 0; i < 3; i++) {
        LLVMValueRef v[2] = {begin[i], next[i]};
        LLVMAddIncoming(phi[i], v, from, 2);
    }
    LLVMPositionBuilderAtEnd(g->b, done);
    for (int i = 0; i < 3; i++) {
        LLVMValueRef v[2] = {begin[i], next[i]};
        out[i] = LLVMBuildPhi(g->b, g->i32, "");
        LLVMAddIncoming(out[i], v, from, 2);
    }
    *quotient = out[2];
    return out[0];
}

/* The remainder of |x| by |y|, and whether the quotient is odd; what it is for |x| < |y|,
   0, infinite and NaN the callers put right. */
static Num
remainder_of(Gen *g, Num a, Num b, LLVMValueRef *odd)
{
    Parts p = parts(g, a), d = parts(g, b);
    LLVMValueRef q, bits = LLVMBuildSub(g->b, p.e, d.e, "");
    LLVMValueRef rest = division(g, p.m, bits, d.m, &q);
    *odd = LLVMBuildTrunc(g->b, q, g->i1, "");
    return joined(g, rest, d.e);
}

/* NaN for what has no remainder: x infinite, y 0, either NaN. */
static Num
defined(Gen *g, Num a, Num b, Num r)
{
    LLVMValueRef good = both(g, less(g, a, __builtin_inf()), more(g, b, 0.0));
    LLVMValueRef none = LLVMBuildFCmp(g->b, LLVMRealUNO, a, b, "");
    good = both(g, good, LLVMBuildNot(g->b, none, ""));
    return where(g, good, r, number(g, __builtin_nan("")));
}

Num
nv_fmod(Gen *g, Num *x)
{
    Num a = size_of(g, x[0]), b = size_of(g, x[1]);
    LLVMValueRef odd, small = LLVMBuildFCmp(g->b, LLVMRealOLT, a, b, "");
    Num r = where(g, small, a, remainder_of(g, a, b, &odd));
    return with_sign(g, defined(g, a, b, r), x[0]);
}

/* The nearer of r and r - |y|; of two as near the one of the even quotient. */
Num
nv_remainder(Gen *g, Num *x)
{
    Num a = size_of(g, x[0]), b = size_of(g, x[1]);
    LLVMValueRef odd, small = LLVMBuildFCmp(g->b, LLVMRealOLT, a, b, "");
    Num r = where(g, small, a, remainder_of(g, a, b, &odd));
    odd = both(g, odd, LLVMBuildNot(g->b, small, ""));
    /* b - r is exact where it is asked for: r >= b / 2 */
    Num other = sub(g, b, r);
    LLVMValueRef nearer = LLVMBuildFCmp(g->b, LLVMRealOGT, r, other, "");
    LLVMValueRef same = LLVMBuildFCmp(g->b, LLVMRealOEQ, r, other, "");
    LLVMValueRef takes = either(g, nearer, both(g, same, odd));
    /* 0 has the sign of x */
    Num y = where(g, takes, minus(g, other), r);
    LLVMValueRef sign = LLVMBuildAnd(g->b, bits_of(g, x[0]), word(g, INT32_MIN), "");
    y = of_bits(g, LLVMBuildXor(g->b, bits_of(g, y), sign, ""));
    return defined(g, a, b, y);
}
