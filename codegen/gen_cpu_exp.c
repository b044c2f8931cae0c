/* e^x and 2^x of f32, inline. The calls of a vector library spill every strip that
   is live around them, and libmvec falls back to scalar code for lanes outside of its
   fast range, which a masked softmax has in every row (minus infinity).

   x log2 e = n + f with |f| <= 1/2; 2^f by a polynomial of degree 6 that is 1 at 0 (found
   by Remez' exchange, its error is below 2^-27 of the value) and two scalings by powers of
   two, so that results below the least normal number round as they should. Within 1 ulp;
   NaN stays. */
#include "codegen/gen_cpu.h"

static LLVMValueRef
real(LLVMValueRef like, double v)
{
    return ll_float(LLVMTypeOf(like), v);
}

static LLVMValueRef
fma3(Gen *g, LLVMValueRef a, LLVMValueRef b, LLVMValueRef c)
{
    LLVMValueRef args[3] = {a, b, c};
    return ll_intrinsic1(g->b, "llvm.fma", args, 3);
}

/* Outside of these bounds the result is 0 or infinity all the same; NaN compares false.
 */
static LLVMValueRef
clamp(Gen *g, LLVMValueRef x, double lo, double hi)
{
    LLVMValueRef low = LLVMBuildFCmp(g->b, LLVMRealOLT, x, real(x, lo), "");
    x = gen_select(g, low, real(x, lo), x);
    LLVMValueRef high = LLVMBuildFCmp(g->b, LLVMRealOGT, x, real(x, hi), "");
    return gen_select(g, high, real(x, hi), x);
}

/* 2^f */
static LLVMValueRef
series(Gen *g, LLVMValueRef f)
{
    static const double c[] = {
        1.0,
        0x1.62e43170c4f8dp-1,
        0x1.ebfbe07d8f65cp-3,
        0x1.c6ae2bcf3892cp-5,
        0x1.3b29e3d4d9330p-7,
        0x1.5f88fe3c35691p-10,
        0x1.446c7dba2f13bp-13,
    };
    LLVMValueRef p = real(f, c[6]);
    for (int i = 5; i >= 0; i--)
        p = fma3(g, p, f, real(f, c[i]));
    return p;
}

/* Adding 3 * 2^22 leaves x rounded to an integer in the low bits of the sum; adding 126
   besides makes them the exponent field of 2^(n - 1). */
static const double rounder = 0x1.8p23 + 126;

/* p * 2^n: times 2^(n - 1), but no less than keeps the product normal, times the rest. NaN
   stays, whatever the low bits of its sum are. */
static LLVMValueRef
scale(Gen *g, LLVMValueRef p, LLVMValueRef sum)
{
    LLVMTypeRef t = ll_like(p, g->i32), f = LLVMTypeOf(p);
    LLVMValueRef bits = LLVMBuildBitCast(g->b, sum, t, "");
    bits = LLVMBuildShl(g->b, bits, ll_int(t, 23), "");
    LLVMValueRef args[2] = {bits, ll_int(t, 2 << 23)};
    LLVMValueRef first = ll_intrinsic1(g->b, "llvm.smax", args, 2);
    LLVMValueRef rest = LLVMBuildSub(g->b, bits, first, "");
    rest = LLVMBuildAdd(g->b, rest, ll_int(t, 0x40000000), "");
    p = LLVMBuildFMul(g->b, p, LLVMBuildBitCast(g->b, first, f, ""), "");
    return LLVMBuildFMul(g->b, p, LLVMBuildBitCast(g->b, rest, f, ""), "");
}

LLVMValueRef
cpu_exp(Gen *g, bool base2, LLVMValueRef x)
{
    LLVMValueRef c = base2 ? clamp(g, x, -151.0, 128.25) : clamp(g, x, -104.5, 89.0);
    LLVMValueRef up = real(x, rounder), sum, n, f;
    if (base2) {
        sum = LLVMBuildFAdd(g->b, c, up, "");
        n = LLVMBuildFSub(g->b, sum, up, "");
        f = LLVMBuildFSub(g->b, c, n, "");
    } else {
        /* log2 e in two parts: the first product is not rounded before n is taken off */
        const double high = 0x1.715476p+0, low = 0x1.4ae0bf85ddf44p-26;
        sum = fma3(g, c, real(x, high), up);
        n = LLVMBuildFSub(g->b, sum, up, "");
        f = fma3(g, c, real(x, high), LLVMBuildFNeg(g->b, n, ""));
        f = fma3(g, c, real(x, low), f);
    }
    return scale(g, series(g, f), sum);
}
