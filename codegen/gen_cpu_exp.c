/* e^x and 2^x of f32 strips, inline. The calls of a vector library spill every strip that
   is live around them, and libmvec falls back to scalar code for lanes outside of its
   fast range, which a masked softmax has in every row (minus infinity).

   Cody-Waite: x = n ln 2 + r with |r| <= ln 2 / 2, then e^r by its Taylor series of
   degree 7 (remainder below 2^-27 of the value) and two scalings by powers of two, so
   that results below the least normal number round as they should. Within 2 ulp of e^x;
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

static LLVMValueRef
series(Gen *g, LLVMValueRef r)
{
    static const double inverse_factorial[] = {1.0 / 5040, 1.0 / 720, 1.0 / 120, 1.0 / 24,
                                               1.0 / 6,    1.0 / 2,   1.0,       1.0};
    LLVMValueRef p = real(r, inverse_factorial[0]);
    for (int i = 1; i < 8; i++)
        p = fma3(g, p, r, real(r, inverse_factorial[i]));
    return p;
}

/* Adding 3 * 2^22 leaves x rounded to an integer in the low bits of the sum. */
static const double rounder = 0x1.8p23;

/* p * 2^n, n as those low bits, in two steps that cannot overflow alone. */
static LLVMValueRef
scale(Gen *g, LLVMValueRef p, LLVMValueRef sum)
{
    LLVMTypeRef t = ll_like(p, g->i32), f = LLVMTypeOf(p);
    LLVMValueRef bits = LLVMBuildBitCast(g->b, sum, t, "");
    LLVMValueRef n = LLVMBuildSub(g->b, bits, ll_int(t, 0x4b400000), "");
    LLVMValueRef half = LLVMBuildAShr(g->b, n, ll_int(t, 1), "");
    LLVMValueRef part[2] = {half, LLVMBuildSub(g->b, n, half, "")};
    for (int k = 0; k < 2; k++) {
        LLVMValueRef e = LLVMBuildAdd(g->b, part[k], ll_int(t, 127), "");
        e = LLVMBuildShl(g->b, e, ll_int(t, 23), "");
        p = LLVMBuildFMul(g->b, p, LLVMBuildBitCast(g->b, e, f, ""), "");
    }
    return p;
}

/* NaN goes through: its series is NaN, whatever it is scaled by. */
LLVMValueRef
cpu_exp(Gen *g, bool base2, LLVMValueRef x)
{
    LLVMValueRef c = base2 ? clamp(g, x, -151.0, 129.0) : clamp(g, x, -104.5, 89.0);
    LLVMValueRef up = real(x, rounder), sum, n, r;
    if (base2) {
        sum = LLVMBuildFAdd(g->b, c, up, "");
        n = LLVMBuildFSub(g->b, sum, up, "");
        r = LLVMBuildFMul(g->b, LLVMBuildFSub(g->b, c, n, ""),
                          real(x, 0x1.62e42fefa39efp-1), "");
    } else {
        sum = fma3(g, c, real(x, 0x1.71547652b82fep+0), up);
        n = LLVMBuildFSub(g->b, sum, up, "");
        /* ln 2 in two parts: the first has few enough digits for n times it to be exact
         */
        r = fma3(g, n, real(x, -0x1.62e4p-1), c);
        r = fma3(g, n, real(x, -0x1.7f7d1cf79abcap-20), r);
    }
    return scale(g, series(g, r), sum);
}
