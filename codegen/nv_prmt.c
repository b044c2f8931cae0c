/* Bytes of two words that masks and shifts put together, as one instruction:

       (x & 0x00ff00ff) | ((y & 0x00ff00ff) << 8)   =>   prmt x, y, 0x6240

   LLVM and ptxas keep the shift and the or, two instructions where all bytes of the
   result come from one of two words. */
#include "codegen/gen_nv.h"

enum { WORD = 4, BYTE_BITS = 8, LAYERS = 4 };

/* Byte i of a value is byte at[i] of the word, or zero where that is NOTHING. */
typedef struct Bytes {
    LLVMValueRef word;
    int at[WORD];
} Bytes;

enum { NOTHING = -1 };

static bool
is_binary(LLVMValueRef v, LLVMOpcode *opcode, uint64_t *c)
{
    if (!LLVMIsABinaryOperator(v) || !LLVMIsAConstantInt(LLVMGetOperand(v, 1)))
        return false;
    *opcode = LLVMGetInstructionOpcode(v);
    *c = LLVMConstIntGetZExtValue(LLVMGetOperand(v, 1));
    return true;
}

/* Of a mask of whole bytes. */
static bool
mask(Bytes *b, uint64_t c)
{
    for (int i = 0; i < WORD; i++)
        if ((c >> i * BYTE_BITS & 0xff) % 0xff)
            return false;
    for (int i = 0; i < WORD; i++)
        if (b->at[i] != NOTHING && !(c >> b->at[i] * BYTE_BITS & 0xff))
            b->at[i] = NOTHING;
    return true;
}

/* Towards higher numbers; by whole bytes. */
static bool
shift(Bytes *b, uint64_t bits, int way)
{
    if (bits % BYTE_BITS || bits >= WORD * BYTE_BITS)
        return false;
    for (int i = 0; i < WORD; i++) {
        int at = b->at[i] == NOTHING ? NOTHING : b->at[i] - way * (int)bits / BYTE_BITS;
        b->at[i] = at < 0 || at >= WORD ? NOTHING : at;
    }
    return true;
}

/* Masks and shifts are looked through, from the outermost on. */
static Bytes
bytes_of(LLVMValueRef v)
{
    Bytes b = {v, {0, 1, 2, 3}};
    LLVMOpcode opcode;
    uint64_t c;
    for (int i = 0; i < LAYERS && is_binary(b.word, &opcode, &c); i++) {
        bool whole = opcode == LLVMAnd    ? mask(&b, c)
                     : opcode == LLVMShl  ? shift(&b, c, 1)
                     : opcode == LLVMLShr ? shift(&b, c, -1)
                                          : false;
        if (!whole)
            break;
        b.word = LLVMGetOperand(b.word, 0);
    }
    return b;
}

/* Each byte of the result comes from one of them. */
static bool
selects(const Bytes *x, const Bytes *y, int64_t *selector)
{
    *selector = 0;
    for (int i = 0; i < WORD; i++) {
        if ((x->at[i] == NOTHING) == (y->at[i] == NOTHING))
            return false;
        int from = x->at[i] != NOTHING ? x->at[i] : WORD + y->at[i];
        *selector |= (int64_t)from << i * 4;
    }
    return true;
}

void
nv_select_bytes(Gen *g, LLVMBasicBlockRef block)
{
    for (LLVMValueRef i = LLVMGetFirstInstruction(block), next; i; i = next) {
        int64_t selector;
        next = LLVMGetNextInstruction(i);
        if (LLVMGetInstructionOpcode(i) != LLVMOr || LLVMTypeOf(i) != g->i32)
            continue;
        Bytes x = bytes_of(LLVMGetOperand(i, 0)), y = bytes_of(LLVMGetOperand(i, 1));
        if (!selects(&x, &y, &selector))
            continue;
        LLVMPositionBuilderBefore(g->b, i);
        LLVMValueRef in[3] = {x.word, y.word, ll_int(g->i32, selector)};
        LLVMReplaceAllUsesWith(i, ll_intrinsic(g->b, "llvm.nvvm.prmt", NULL, 0, in, 3));
        LLVMInstructionEraseFromParent(i);
    }
}
