/* e^x and 2^x of f32, inline. The calls of a vector library spill every strip that is
   live around them, and libmvec falls back to scalar code for lanes outside of its
   fast range, which a masked softmax has in every row (minus infinity).

   x log2 e = n + j / 8 + f with |f| <= 1/16; 2^(j/8) comes from a table of eight,
   which one register holds, 2^f - 1 by a polynomial of degree 3 (least maximal error,
   below 2^-25), so that the chain of dependent operations is short. A last product
   with a power of two makes results below the least normal number round as they
   should. Within 1.5 ulp; NaN stays. */
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

/* Outside of these bounds the result is 0 or infinity all the same; NaN compares
   false. */
static LLVMValueRef
no_less(Gen *g, LLVMValueRef x, double bound)
{
    LLVMValueRef out = LLVMBuildFCmp(g->b, LLVMRealOLT, x, real(x, bound), "");
    return gen_select(g, out, real(x, bound), x);
}

static LLVMValueRef
no_more(Gen *g, LLVMValueRef x, double bound)
{
    LLVMValueRef out = LLVMBuildFCmp(g->b, LLVMRealOGT, x, real(x, bound), "");
    return gen_select(g, out, real(x, bound), x);
}

/* The bits of 2^(j/8) - `less` * j of each lane; j is the index's low bits, all that the
   instruction looks at. */
static LLVMValueRef
roots(Gen *g, LLVMValueRef index, int less)
{
    static const int root[8] = {0x3f800000, 0x3f8b95c2, 0x3f9837f0, 0x3fa5fed7,
                                0x3fb504f3, 0x3fc5672a, 0x3fd744fd, 0x3feac0c7};
    LLVMValueRef elem[8], part[8];
    unsigned lanes = ll_lanes(index), n = lanes > 8 ? lanes / 8 : 1;
    for (int j = 0; j < 8; j++)
        elem[j] = ll_int(g->i32, root[j] - less * j);
    LLVMValueRef all = LLVMConstVector(elem, 8);
    if (!ll_is_vector(index))
        index = ll_splat(g->b, index, 8);
    for (unsigned i = 0; i < n; i++) {
        LLVMValueRef args[2] = {all, ll_extract(g->b, index, 8 * i, 8)};
        part[i] = ll_intrinsic(g->b, "llvm.x86.avx2.permd", NULL, 0, args, 2);
    }
    LLVMValueRef v = ll_concat(g->b, part, n);
    return lanes < 8 ? ll_extract(g->b, v, 0, lanes) : v;
}

/* root * 2^f */
static LLVMValueRef
series(Gen *g, LLVMValueRef root, LLVMValueRef f)
{
    LLVMValueRef q =
        fma3(g, f, real(f, 0x1.c69fe459fa5c2p-5), real(f, 0x1.ec0c31825b57fp-3));
    q = fma3(g, f, q, real(f, 0x1.62e43111f436cp-1));
    return fma3(g, LLVMBuildFMul(g->b, root, f, ""), q, root);
}

/* Adding 3 * 2^19 leaves x rounded to eighths in the low bits of the sum: j in three,
   n in those above. What is added to n comes off in the last product, which is then
   the only one that may round to less than a normal number; here for n <= 0. */
enum { LIFT = 64 };

static LLVMValueRef
at_most_one(Gen *g, LLVMValueRef f, LLVMValueRef bits)
{
    LLVMTypeRef t = LLVMTypeOf(bits);
    LLVMValueRef n = LLVMBuildShl(g->b, bits, ll_int(t, 20), "");
    LLVMValueRef root = LLVMBuildAdd(g->b, roots(g, bits, 1 << 20), n, "");
    root = LLVMBuildBitCast(g->b, root, LLVMTypeOf(f), "");
    return LLVMBuildFMul(g->b, series(g, root, f), real(f, 0x1p-64), "");
}

/* For any n: 2^n in two parts, of which the first stays away from the least normal
   number. */
static LLVMValueRef
in_two_parts(Gen *g, LLVMValueRef f, LLVMValueRef bits)
{
    LLVMTypeRef t = LLVMTypeOf(bits), real_t = LLVMTypeOf(f);
    LLVMValueRef n = LLVMBuildShl(g->b, bits, ll_int(t, 20), "");
    n = LLVMBuildAnd(g->b, n, ll_int(t, -(1 << 23)), "");
    LLVMValueRef args[2] = {n, ll_int(t, -LIFT * (1 << 23))};
    LLVMValueRef first = ll_intrinsic1(g->b, "llvm.smax", args, 2);
    LLVMValueRef rest = LLVMBuildSub(g->b, n, first, "");
    rest = LLVMBuildAdd(g->b, rest, ll_int(t, 0x40000000), "");
    LLVMValueRef root = LLVMBuildAdd(g->b, roots(g, bits, 0), first, "");
    root = LLVMBuildBitCast(g->b, root, real_t, "");
    return LLVMBuildFMul(g->b, series(g, root, f),
                         LLVMBuildBitCast(g->b, rest, real_t, ""), "");
}

LLVMValueRef
cpu_exp(Gen *g, bool base2, bool below0, LLVMValueRef x)
{
    LLVMValueRef c = no_less(g, x, base2 ? -151.0 : -104.5), sum, n, f;
    if (!below0)
        c = no_more(g, c, base2 ? 128.25 : 89.0);
    LLVMValueRef up = real(x, 0x1.8p20 + (below0 ? LIFT : -1));
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
    LLVMValueRef bits = LLVMBuildBitCast(g->b, sum, ll_like(x, g->i32), "");
    return below0 ? at_most_one(g, f, bits) : in_two_parts(g, f, bits);
}
