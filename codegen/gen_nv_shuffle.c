/* Values of other lanes, of any width, and conversions inside of a warp, as planned by
   ir/plan/shuffle.h. Narrow elements travel in words of 32 bits where pairs stay
   together. */
#include "codegen/gen_nv.h"
#include "codegen/ptx.h"

#include "ir/base/util.h"
#include "ir/plan/shuffle.h"

static LLVMValueRef
shuffle32(Gen *g, PtxId how, LLVMValueRef x, LLVMValueRef lane)
{
    LLVMValueRef args[4] = {ll_int(g->i32, -1), x, lane, ll_int(g->i32, 31)};
    return ptx_call(g, how, args, 4);
}

static unsigned
bits_of(Gen *g, LLVMTypeRef t)
{
    LLVMTypeKind k = LLVMGetTypeKind(t);
    if (k == LLVMIntegerTypeKind)
        return LLVMGetIntTypeWidth(t);
    if (k == LLVMPointerTypeKind)
        return 64;
    return t == g->f64 ? 64 : t == g->f32 ? 32 : 16;
}

static LLVMValueRef
shuffle(Gen *g, PtxId how, LLVMValueRef x, LLVMValueRef lane)
{
    LLVMTypeRef t = LLVMTypeOf(x);
    bool ptr = LLVMGetTypeKind(t) == LLVMPointerTypeKind;
    unsigned bits = bits_of(g, t);
    LLVMTypeRef word = LLVMIntTypeInContext(g->cx, bits);
    LLVMValueRef v =
        ptr ? LLVMBuildPtrToInt(g->b, x, word, "") : LLVMBuildBitCast(g->b, x, word, "");
    if (bits <= 32) {
        v = shuffle32(g, how, LLVMBuildZExt(g->b, v, g->i32, ""), lane);
        v = LLVMBuildTrunc(g->b, v, word, "");
    } else {
        LLVMValueRef half = ll_int(g->i64, 32);
        LLVMValueRef lo = shuffle32(g, how, LLVMBuildTrunc(g->b, v, g->i32, ""), lane);
        LLVMValueRef hi =
            LLVMBuildTrunc(g->b, LLVMBuildLShr(g->b, v, half, ""), g->i32, "");
        hi = LLVMBuildZExt(g->b, shuffle32(g, how, hi, lane), g->i64, "");
        hi = LLVMBuildShl(g->b, hi, half, "");
        v = LLVMBuildOr(g->b, hi, LLVMBuildZExt(g->b, lo, g->i64, ""), "");
    }
    return ptr ? LLVMBuildIntToPtr(g->b, v, t, "") : LLVMBuildBitCast(g->b, v, t, "");
}

LLVMValueRef
nv_shuffle_xor(Gen *g, LLVMValueRef x, int lanes)
{
    return shuffle(g, PTX_SHFL_BFLY, x, ll_int(g->i32, lanes));
}

LLVMValueRef
nv_shuffle_from(Gen *g, LLVMValueRef x, LLVMValueRef lane)
{
    return shuffle(g, PTX_SHFL_IDX, x, lane);
}

/* ---- conversions */

/* Parity of (thread & mask), as i1. */
static LLVMValueRef
parity(Gen *g, uint32_t mask)
{
    LLVMValueRef v = LLVMBuildAnd(g->b, nv_of(g)->tid, ll_int(g->i32, mask), "");
    if (mask & (mask - 1)) {
        v = ll_intrinsic1(g->b, "llvm.ctpop", &v, 1);
        v = LLVMBuildAnd(g->b, v, ll_int(g->i32, 1), "");
    }
    return LLVMBuildICmp(g->b, LLVMIntNE, v, ll_int(g->i32, 0), "");
}

static void
swap(Gen *g, ShuffleSwap s, LLVMValueRef *v, int n)
{
    LLVMValueRef bit = parity(g, s.mask);
    LLVMValueRef *out = arena_array(&g->s->tmp, LLVMValueRef, n);
    for (int i = 0; i < n; i++)
        out[i] = LLVMBuildSelect(g->b, bit, v[i ^ (int)s.move], v[i], "");
    for (int i = 0; i < n; i++)
        v[i] = out[i];
}

static void
run_plan(Gen *g, const ShufflePlan *p, Regs *in, Regs *out)
{
    LLVMValueRef *v = arena_array(&g->s->tmp, LLVMValueRef, in->n);
    uint32_t image[5], bits;
    for (int i = 0; i < in->n; i++)
        v[i] = in->v[i];
    for (int i = 0; i < p->nbefore; i++)
        swap(g, p->before[i], v, in->n);
    bool own = f2_is_identity(&p->lane);
    LLVMValueRef from = NULL;
    for (int i = 0; i < 5; i++)
        image[i] = (uint32_t)p->lane.col[i];
    if (!own)
        from = nv_linear(g, image, 5, &bits);
    for (int j = 0; j < out->n; j++) {
        LLVMValueRef x = v[f2_apply(&p->pick, (uint64_t)j)];
        int turn = (int)f2_apply(&p->turn, (uint64_t)j);
        if (own)
            out->v[j] = turn ? nv_shuffle_xor(g, x, turn) : x;
        else
            out->v[j] = nv_shuffle_from(
                g, x, turn ? LLVMBuildXor(g->b, from, ll_int(g->i32, turn), "") : from);
    }
    for (int i = 0; i < p->nafter; i++)
        swap(g, p->after[i], out->v, out->n);
}

/* ---- pairs of narrow elements as one word */

static Regs
regs_new(Gen *g, int n)
{
    return (Regs){n, arena_array(&g->s->tmp, LLVMValueRef, n)};
}

/* in: integers of `bits`. */
static void
run_packed(Gen *g, const ShufflePlan *p, int bits, Regs *in, Regs *out)
{
    int from, to;
    ShufflePlan h;
    if (bits >= 32 || !shuffle_halve(p, &h, &from, &to)) {
        run_plan(g, p, in, out);
        return;
    }
    Regs x = regs_new(g, in->n / 2), y = regs_new(g, out->n / 2);
    LLVMTypeRef one = LLVMIntTypeInContext(g->cx, (unsigned)bits);
    LLVMTypeRef both = LLVMIntTypeInContext(g->cx, 2 * (unsigned)bits);
    LLVMTypeRef pair = LLVMVectorType(one, 2);
    for (int i = 0; i < in->n; i++) {
        if (i >> from & 1)
            continue;
        LLVMValueRef v = LLVMGetPoison(pair);
        v = LLVMBuildInsertElement(g->b, v, in->v[i], ll_int(g->i32, 0), "");
        v = LLVMBuildInsertElement(g->b, v, in->v[i | 1 << from], ll_int(g->i32, 1), "");
        x.v[bit_cut((uint32_t)i, from)] = LLVMBuildBitCast(g->b, v, both, "");
    }
    run_packed(g, &h, 2 * bits, &x, &y);
    for (int i = 0; i < out->n; i++) {
        LLVMValueRef v = y.v[bit_cut((uint32_t)(i & ~(1 << to)), to)];
        v = LLVMBuildBitCast(g->b, v, pair, "");
        out->v[i] = LLVMBuildExtractElement(g->b, v, ll_int(g->i32, i >> to & 1), "");
    }
}

void
nv_convert_lanes(Gen *g, const ShufflePlan *p, const Type *e, Regs *in, Regs *out)
{
    int bits = e->kind == TY_PTR ? 64 : type_bits(e) < 8 ? 8 : type_bits(e);
    Regs x = regs_new(g, in->n);
    for (int i = 0; i < in->n; i++)
        x.v[i] = nv_to_bits(g, e, in->v[i], bits);
    run_packed(g, p, bits, &x, out);
    for (int i = 0; i < out->n; i++)
        out->v[i] = nv_from_bits(g, e, out->v[i]);
}
