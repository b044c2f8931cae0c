/* e^x and 2^x of f32, inline. The calls of a vector library spill every strip that is
   live around them, and libmvec falls back to scalar code for lanes outside of its
   fast range, which a masked softmax has in every row (minus infinity).

   x log2 e = n + j / 8 + f with |f| <= 1/16; 2^(j/8) comes from a table of eight,
   which one register holds, 2^f - 1 by a polynomial of degree 3 (least maximal error,
   below 2^-25), so that the chain of dependent operations is short. A last product
   with a power of two, or the instruction that AVX-512 has for it, makes results below
   the least normal number round as they should: the same bits on all machines. Within
   1.5 ulp; NaN stays. */
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

/* Lanes that one instruction takes: no more than the strip has, but for short ones. */
static unsigned
lanes_at_once(Gen *g, unsigned lanes)
{
    const Cpu *c = g->priv;
    return c->avx512 && lanes >= 16 ? 16 : 8;
}

/* n lanes from `at` on, a scalar in all of them; lanes past the end do not matter. */
static LLVMValueRef
piece(Gen *g, LLVMValueRef x, unsigned at, unsigned n)
{
    return ll_is_vector(x) ? ll_extract(g->b, x, at, n) : ll_splat(g->b, x, n);
}

static LLVMValueRef
together(Gen *g, LLVMValueRef *part, unsigned n, unsigned lanes)
{
    LLVMValueRef v = ll_concat(g->b, part, n);
    return ll_lanes(v) > lanes ? ll_extract(g->b, v, 0, lanes) : v;
}

/* The same without an instruction for it. */
static LLVMValueRef
one_by_one(Gen *g, LLVMValueRef table, LLVMValueRef index)
{
    unsigned lanes = ll_lanes(index);
    LLVMValueRef out = LLVMGetUndef(LLVMVectorType(g->i32, lanes));
    LLVMValueRef low = ll_int(LLVMTypeOf(index), (int)ll_lanes(table) - 1);
    index = LLVMBuildAnd(g->b, index, low, "");
    for (unsigned i = 0; i < lanes; i++) {
        LLVMValueRef at = ll_int(g->i32, i);
        LLVMValueRef j = LLVMBuildExtractElement(g->b, index, at, "");
        LLVMValueRef x = LLVMBuildExtractElement(g->b, table, j, "");
        out = LLVMBuildInsertElement(g->b, out, x, at, "");
    }
    return out;
}

/* The bits of 2^(j/8) - `less` * j of each lane; j is the index's low three bits, and the
   instruction looks at no more than there are entries. */
static LLVMValueRef
roots(Gen *g, LLVMValueRef index, int less)
{
    static const int root[8] = {0x3f800000, 0x3f8b95c2, 0x3f9837f0, 0x3fa5fed7,
                                0x3fb504f3, 0x3fc5672a, 0x3fd744fd, 0x3feac0c7};
    LLVMValueRef elem[16], part[8];
    unsigned lanes = ll_lanes(index), w = lanes_at_once(g, lanes), n = 0;
    for (int j = 0; j < 16; j++)
        elem[j] = ll_int(g->i32, root[j % 8] - less * (j % 8));
    LLVMValueRef all = LLVMConstVector(elem, w);
    for (unsigned at = 0; at < lanes; at += w) {
        if (!((const Cpu *)g->priv)->avx2) {
            part[n++] = one_by_one(g, all, piece(g, index, at, w));
            continue;
        }
        LLVMValueRef args[2] = {all, piece(g, index, at, w)};
        const char *name =
            w == 16 ? "llvm.x86.avx512.permvar.si.512" : "llvm.x86.avx2.permd";
        part[n++] = ll_intrinsic(g->b, name, NULL, 0, args, 2);
    }
    return together(g, part, n, lanes);
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

/* x * 2^floor(n), by the one instruction that has all of the above in it; 0 where `keep`
   is not set. Results below the least normal number take the processor hundreds of
   cycles, those that are 0 too: lanes that a mask has set to minus infinity are left
   out. */
static LLVMValueRef
scaled(Gen *g, LLVMValueRef x, LLVMValueRef n, LLVMValueRef keep)
{
    LLVMValueRef part[8];
    unsigned lanes = ll_lanes(x), w = lanes_at_once(g, lanes), k = 0;
    for (unsigned at = 0; at < lanes; at += w) {
        LLVMValueRef v = piece(g, x, at, w), by = piece(g, n, at, w);
        LLVMTypeRef mask = w == 16 ? LLVMInt16TypeInContext(g->cx) : g->i8;
        LLVMValueRef on = LLVMBuildBitCast(g->b, piece(g, keep, at, w), mask, "");
        LLVMValueRef args[5] = {v, by, LLVMConstNull(LLVMTypeOf(v)), on,
                                ll_int(g->i32, 4)};
        const char *name = w == 16 ? "llvm.x86.avx512.mask.scalef.ps.512"
                                   : "llvm.x86.avx512.mask.scalef.ps.256";
        part[k++] = ll_intrinsic(g->b, name, NULL, 0, args, w == 16 ? 5 : 4);
    }
    return together(g, part, k, lanes);
}

static LLVMValueRef
exp_piece(Gen *g, bool base2, bool nonpositive, LLVMValueRef x)
{
    const double least = base2 ? -151.0 : -104.5;
    bool one = ((const Cpu *)g->priv)->avx512;
    LLVMValueRef c = one ? x : no_less(g, x, least), sum, n, f;
    if (!nonpositive)
        c = no_more(g, c, base2 ? 128.25 : 89.0);
    LLVMValueRef up = real(x, 0x1.8p20 + (nonpositive ? LIFT : -1));
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
    if (one) {
        LLVMValueRef root = LLVMBuildBitCast(g->b, roots(g, bits, 0), LLVMTypeOf(x), "");
        LLVMValueRef keep = LLVMBuildFCmp(g->b, LLVMRealUGE, x, real(x, least), "");
        return scaled(g, series(g, root, f), n, keep);
    }
    return nonpositive ? at_most_one(g, f, bits) : in_two_parts(g, f, bits);
}

/* A register at a time: the code of one after the other keeps all pipes of the processor
   busy, where the same operation of all of them in a row would crowd one. */
LLVMValueRef
cpu_exp(Gen *g, bool base2, bool nonpositive, LLVMValueRef x)
{
    LLVMValueRef part[8];
    unsigned lanes = ll_lanes(x), w = lanes_at_once(g, lanes), n = 0;
    if (lanes <= w)
        return exp_piece(g, base2, nonpositive, x);
    for (unsigned at = 0; at < lanes; at += w)
        part[n++] = exp_piece(g, base2, nonpositive, piece(g, x, at, w));
    return together(g, part, n, lanes);
}
