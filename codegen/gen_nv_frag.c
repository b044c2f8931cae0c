/* Fragments: the registers of a tile as the 32-bit words that mma and wgmma take. Their
   registers are found by coordinates, so the order in which a layout numbers them does
   not matter. */
#include "codegen/gen_nv.h"

/* 32 / bits elements from x as one i32. */
static LLVMValueRef
pack_word(Gen *g, LLVMValueRef *x, int bits)
{
    int per = 32 / bits;
    LLVMTypeRef t = LLVMIntTypeInContext(g->cx, (unsigned)bits);
    if (per == 1)
        return LLVMBuildBitCast(g->b, x[0], g->i32, "");
    LLVMValueRef v = LLVMGetPoison(LLVMVectorType(t, (unsigned)per));
    for (int i = 0; i < per; i++)
        v = LLVMBuildInsertElement(g->b, v, LLVMBuildBitCast(g->b, x[i], t, ""),
                                   ll_int(g->i32, i), "");
    return LLVMBuildBitCast(g->b, v, g->i32, "");
}

bool
nv_fragment(Gen *g, const Layout *l, const Regs *r, int op, uint32_t first, uint32_t k,
            int bits, const uint8_t *order, LLVMValueRef *word)
{
    int per = bits < 32 ? 32 / bits : 1, words = op == 0 ? 4 : 2;
    int major = layout_shift(l, op == 0 ? l->rank - 2 : l->rank - 1);
    int minor = layout_shift(l, op == 0 ? l->rank - 1 : l->rank - 2);
    for (int w = 0; w < words; w++) {
        LLVMValueRef x[4];
        uint32_t up = op == 0 ? (uint32_t)(w & 1) * 8 : 0;
        uint32_t deep = (uint32_t)(op == 0 ? w >> 1 : w) * 4 * (uint32_t)per;
        for (int i = 0; i < per; i++) {
            uint32_t at_k = deep + (uint32_t)i;
            uint32_t inner = k + (order ? order[at_k] : at_k);
            int at = nv_reg_at(l, (first + (up << major)) | inner << minor);
            if (at < 0 || at >= r->n)
                return false;
            x[i] = r->v[at];
        }
        word[w] = bits > 32 ? x[0] : pack_word(g, x, bits);
    }
    return true;
}

int
nv_acc_pack(Gen *g, const LLVMValueRef *reg, int n, LLVMValueRef *word)
{
    bool half = LLVMGetTypeKind(LLVMTypeOf(reg[0])) == LLVMHalfTypeKind;
    if (half)
        n /= 2;
    for (int i = 0; i < n; i++) {
        LLVMValueRef pair[2] = {reg[half ? 2 * i : i], half ? reg[2 * i + 1] : NULL};
        word[i] = half ? pack_word(g, pair, 16) : reg[i];
    }
    return n;
}

void
nv_acc_unpack(Gen *g, const LLVMValueRef *word, int n, bool half, LLVMValueRef *reg)
{
    LLVMTypeRef pair = LLVMVectorType(LLVMHalfTypeInContext(g->cx), 2);
    for (int i = 0; i < n; i++) {
        if (!half) {
            reg[i] = word[i];
            continue;
        }
        LLVMValueRef v = LLVMBuildBitCast(g->b, word[i], pair, "");
        for (int k = 0; k < 2; k++)
            reg[2 * i + k] = LLVMBuildExtractElement(g->b, v, ll_int(g->i32, k), "");
    }
}
