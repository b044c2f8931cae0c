/* Elements and the words of memory that hold them. */
#include "codegen/gen_nv_access.h"

#include "ir/base/util.h"

NvRun
nv_run(const Op *op, const Layout *l, int bytes)
{
    const Attr *contig = attr_find(&op->attrs, ATTR_CONTIG);
    NvRun best = {.n = 1};
    for (int d = 0; l && contig && d < contig->n && d < l->rank; d++) {
        NvRun r = {.n = 1};
        int64_t most = min_i64(contig->v.ints[d], NV_ACCESS_BYTES / bytes);
        int held = layout_run(l, d, r.bit);
        most = min_i64(most, held);
        for (int i = 0; ((int64_t)1 << (i + 1)) <= most; i++) {
            r.n *= 2;
            r.mask |= 1u << r.bit[i];
        }
        if (r.n > best.n)
            best = r;
    }
    return best;
}

uint32_t
nv_member(const NvRun *r, uint32_t base, int k)
{
    for (int i = 0; (1 << i) < r->n; i++)
        if (k >> i & 1)
            base |= 1u << r->bit[i];
    return base;
}

static LLVMTypeRef
bits_type(Gen *g, int bits)
{
    return LLVMIntTypeInContext(g->cx, (unsigned)bits);
}

/* How n elements of `bits` are moved: words of 64 bits for 64-bit elements, else of
   32, or one narrower word. */
PtxAccess
nv_access(int n, int bits, const char *q)
{
    int total = n * bits;
    int word = bits == 64 ? 64 : total < 32 ? total : 32;
    return (PtxAccess){.words = total / word, .bits = word, .qualifiers = q};
}

/* A word register of PTX has at least 16 bits. */
static LLVMValueRef
widen(Gen *g, LLVMValueRef x, int bits)
{
    return bits < 16 ? LLVMBuildZExt(g->b, x, bits_type(g, 16), "") : x;
}

/* The 16 bits whose two halves lo and hi were just cut from: conversions to 8-bit floats
   come in pairs. NULL when they were not. */
static LLVMValueRef
uncut(LLVMValueRef lo, LLVMValueRef hi)
{
    if (!LLVMIsATruncInst(lo) || !LLVMIsATruncInst(hi))
        return NULL;
    LLVMValueRef whole = LLVMGetOperand(lo, 0), shift = LLVMGetOperand(hi, 0);
    LLVMTypeRef t = LLVMTypeOf(whole);
    bool cut = LLVMGetIntTypeWidth(t) == 16 && LLVMIsAInstruction(shift) &&
               LLVMGetInstructionOpcode(shift) == LLVMLShr &&
               LLVMGetOperand(shift, 0) == whole &&
               LLVMGetOperand(shift, 1) == ll_int(t, 8);
    return cut ? whole : NULL;
}

/* The same access of bytes as one of 16-bit elements, where all of them are halves. */
static bool
pack_pairs(Gen *g, PtxAccess a, LLVMValueRef *elem, LLVMValueRef *word)
{
    LLVMValueRef pair[NV_ACCESS_BYTES / 2];
    int n = a.words * a.bits / 16;
    for (int i = 0; i < n; i++) {
        pair[i] = uncut(elem[2 * i], elem[2 * i + 1]);
        if (!pair[i])
            return false;
    }
    nv_pack(g, a, 16, pair, word);
    return true;
}

void
nv_pack(Gen *g, PtxAccess a, int bits, LLVMValueRef *elem, LLVMValueRef *word)
{
    int per = a.bits / bits;
    if (bits == 8 && per > 1 && pack_pairs(g, a, elem, word))
        return;
    for (int w = 0; w < a.words; w++) {
        if (per == 1) {
            word[w] = widen(g, elem[w], a.bits);
            continue;
        }
        LLVMTypeRef t = LLVMVectorType(bits_type(g, bits), (unsigned)per);
        LLVMValueRef v = LLVMGetPoison(t);
        for (int k = 0; k < per; k++)
            v = LLVMBuildInsertElement(g->b, v, elem[w * per + k], ll_int(g->i32, k), "");
        word[w] = widen(g, LLVMBuildBitCast(g->b, v, bits_type(g, a.bits), ""), a.bits);
    }
}

void
nv_unpack(Gen *g, PtxAccess a, int bits, LLVMValueRef *word, LLVMValueRef *elem)
{
    int per = a.bits / bits;
    for (int w = 0; w < a.words; w++) {
        LLVMValueRef x = word[w];
        if (a.bits < 16)
            x = LLVMBuildTrunc(g->b, x, bits_type(g, a.bits), "");
        if (per == 1) {
            elem[w] = x;
            continue;
        }
        LLVMTypeRef t = LLVMVectorType(bits_type(g, bits), (unsigned)per);
        LLVMValueRef v = LLVMBuildBitCast(g->b, x, t, "");
        for (int k = 0; k < per; k++)
            elem[w * per + k] = LLVMBuildExtractElement(g->b, v, ll_int(g->i32, k), "");
    }
}

LLVMValueRef
nv_address(Gen *g, LLVMValueRef ptr)
{
    return LLVMBuildPtrToInt(g->b, ptr, g->i64, "");
}

void
nv_acquired(Gen *g)
{
    if (nv_of(g)->meta->nmap)
        ptx_asm(g, "fence.proxy.async.global;", "", LLVMVoidTypeInContext(g->cx), NULL, 0,
                true);
}

int
nv_memory_bits(const Type *e)
{
    return e->kind == TY_PTR ? 64 : type_bits(e) < 8 ? 8 : type_bits(e);
}
