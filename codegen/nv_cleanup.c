/* Repairs what LLVM's middle-end leaves in a form that is slow on this hardware.

   Philox begins with 64-bit products of neighbouring elements' numbers by one constant:
   (x + c) * m, which does not wrap, is x * m + c * m. That is one product for the thread,
   and additions, which do not need the integer multiplier. */
#include "codegen/gen_nv.h"
#include "codegen/ptx.h"

#include <stdlib.h>

enum { KEPT = 16 };

typedef struct Product {
    LLVMValueRef x, y, m, value;
    LLVMBasicBlockRef block;
} Product;

static bool
is_op(LLVMValueRef v, LLVMOpcode opcode)
{
    return LLVMIsABinaryOperator(v) && LLVMGetInstructionOpcode(v) == opcode;
}

static bool
constant(LLVMValueRef v, uint64_t *c)
{
    if (!LLVMIsAConstantInt(v))
        return false;
    *c = LLVMConstIntGetZExtValue(v);
    return true;
}

/* Bits of v that may be set. */
static uint32_t
bits_of(LLVMValueRef v, uint32_t threads, int depth)
{
    enum { DEPTH = 8 };
    uint64_t c;
    if (constant(v, &c))
        return (uint32_t)c;
    if (LLVMIsACallInst(v) && LLVMGetIntrinsicID(LLVMGetCalledValue(v)))
        return ptx_is(v, PTX_TID_X) ? threads - 1 : UINT32_MAX;
    if (!LLVMIsABinaryOperator(v) || depth > DEPTH)
        return UINT32_MAX;
    uint32_t x = bits_of(LLVMGetOperand(v, 0), threads, depth + 1);
    LLVMValueRef y = LLVMGetOperand(v, 1);
    switch (LLVMGetInstructionOpcode(v)) {
    case LLVMOr:
    case LLVMXor: return x | bits_of(y, threads, depth + 1);
    case LLVMAnd: return x & bits_of(y, threads, depth + 1);
    case LLVMShl: return constant(y, &c) && c < 32 ? x << c : UINT32_MAX;
    case LLVMLShr: return constant(y, &c) && c < 32 ? x >> c : UINT32_MAX;
    default: return UINT32_MAX;
    }
}

/* v == zext(x | c), disjoint; or zext(x + (y | c)), where x is a multiple of more than y
   | c can be: the program's part x and the thread's part y of a number, and what the
   register adds. */
static bool
is_offset(LLVMValueRef v, LLVMValueRef *x, LLVMValueRef *y, uint64_t *c, uint32_t threads)
{
    uint64_t k;
    if (!LLVMIsAZExtInst(v) ||
        LLVMGetIntTypeWidth(LLVMTypeOf(LLVMGetOperand(v, 0))) != 32)
        return false;
    LLVMValueRef sum = LLVMGetOperand(v, 0);
    *x = *y = NULL;
    if (is_op(sum, LLVMOr) && LLVMGetIsDisjoint(sum) &&
        constant(LLVMGetOperand(sum, 1), c)) {
        *x = LLVMGetOperand(sum, 0);
        return true;
    }
    bool whole = is_op(sum, LLVMOr) && LLVMGetIsDisjoint(sum);
    if (!whole && !is_op(sum, LLVMAdd))
        return false;
    *x = LLVMGetOperand(sum, 0);
    LLVMValueRef part = LLVMGetOperand(sum, 1);
    if (is_op(part, LLVMShl)) {
        LLVMValueRef swap = *x;
        *x = part;
        part = swap;
    }
    if (!is_op(*x, LLVMShl) || !constant(LLVMGetOperand(*x, 1), &k) || k > 31 ||
        !is_op(part, LLVMOr) || !LLVMGetIsDisjoint(part) ||
        !constant(LLVMGetOperand(part, 1), c))
        return false;
    *y = LLVMGetOperand(part, 0);
    return whole || !(bits_of(part, threads, 0) >> k);
}

static LLVMValueRef
base_product(Gen *g, Product *kept, int *n, LLVMValueRef x, LLVMValueRef y,
             LLVMValueRef m, LLVMBasicBlockRef block)
{
    for (int i = 0; i < *n; i++)
        if (kept[i].x == x && kept[i].y == y && kept[i].m == m && kept[i].block == block)
            return kept[i].value;
    LLVMValueRef sum = y ? LLVMBuildAdd(g->b, x, y, "") : x;
    LLVMValueRef v = LLVMBuildZExt(g->b, sum, g->i64, "");
    v = LLVMBuildNUWMul(g->b, v, m, "");
    if (*n < KEPT)
        kept[(*n)++] = (Product){x, y, m, v, block};
    return v;
}

static void
split_products(Gen *g, LLVMBasicBlockRef block, uint32_t threads)
{
    Product kept[KEPT];
    int n = 0;
    for (LLVMValueRef i = LLVMGetFirstInstruction(block), next; i; i = next) {
        LLVMValueRef x, y, m;
        uint64_t c;
        next = LLVMGetNextInstruction(i);
        if (LLVMGetInstructionOpcode(i) != LLVMMul || LLVMTypeOf(i) != g->i64)
            continue;
        m = LLVMGetOperand(i, 1);
        if (!LLVMIsAConstantInt(m) || LLVMConstIntGetZExtValue(m) >> 32 ||
            !is_offset(LLVMGetOperand(i, 0), &x, &y, &c, threads))
            continue;
        LLVMPositionBuilderBefore(g->b, i);
        LLVMValueRef v = base_product(g, kept, &n, x, y, m, block);
        uint64_t more = c * LLVMConstIntGetZExtValue(m);
        v = LLVMBuildNUWAdd(g->b, v, ll_int(g->i64, (int64_t)more), "");
        LLVMReplaceAllUsesWith(i, v);
        LLVMInstructionEraseFromParent(i);
    }
}

/* Of a program, a power of two. */
static uint32_t
threads_of(LLVMValueRef f)
{
    static const char key[] = "nvvm.reqntid";
    unsigned n = 0;
    LLVMAttributeRef a =
        LLVMGetStringAttributeAtIndex(f, LLVMAttributeFunctionIndex, key, sizeof key - 1);
    const char *text = a ? LLVMGetStringAttributeValue(a, &n) : NULL;
    return text && n ? (uint32_t)strtoul(text, NULL, 10) : NV_MAX_THREADS;
}

void
nv_cleanup(Gen *g)
{
    LLVMValueRef f = LLVMGetFirstFunction(g->mod);
    for (; f; f = LLVMGetNextFunction(f))
        for (LLVMBasicBlockRef b = LLVMGetFirstBasicBlock(f); b;
             b = LLVMGetNextBasicBlock(b)) {
            split_products(g, b, threads_of(f));
            nv_select_bytes(g, b);
            nv_move_offsets(g, b);
        }
}
