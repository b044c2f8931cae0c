/* Replaces, behind the optimiser, what LLVM's code generation would compile wrongly.

   A masked store of a single, known lane: LLVM 22 stores that lane alone, but for
   machines with AVX-512 in the type that it was narrowed from, which overwrites elements
   behind it. Here it is stored in its own type.

       masked.store <16 x i16> %x, %p, <true, false, ..>   =>   store i16 %x[0], %p  */
#include "codegen/gen_cpu.h"

#include <string.h>

/* The only lane that a constant mask includes; -1: it includes none or several, or is not
   known. */
static int
only_lane(LLVMValueRef mask)
{
    int lane = -1, on = 0;
    if (!LLVMIsConstant(mask))
        return -1;
    for (unsigned i = 0; i < ll_lanes(mask); i++) {
        LLVMValueRef e = LLVMGetAggregateElement(mask, i);
        if (!e || LLVMIsUndef(e))
            continue;
        if (!LLVMIsAConstantInt(e))
            return -1;
        if (LLVMConstIntGetZExtValue(e)) {
            lane = (int)i;
            on++;
        }
    }
    return on == 1 ? lane : -1;
}

static bool
is_masked_store(LLVMValueRef v)
{
    static const char name[] = "llvm.masked.store.";
    size_t n = 0;
    const char *called =
        LLVMIsACallInst(v) ? LLVMGetValueName2(LLVMGetCalledValue(v), &n) : "";
    return n > sizeof name && memcmp(called, name, sizeof name - 1) == 0;
}

/* Replaces a masked store by a store of one lane. */
static void
store_lane(Gen *g, LLVMValueRef call, int lane)
{
    LLVMValueRef x = LLVMGetOperand(call, 0), at = ll_int(g->i64, lane);
    LLVMTypeRef elem = LLVMGetElementType(LLVMTypeOf(x));
    LLVMPositionBuilderBefore(g->b, call);
    LLVMValueRef p = LLVMBuildGEP2(g->b, elem, LLVMGetOperand(call, 1), &at, 1, "");
    LLVMValueRef one = LLVMBuildExtractElement(g->b, x, at, "");
    LLVMSetAlignment(LLVMBuildStore(g->b, one, p), 1);
    LLVMInstructionEraseFromParent(call);
}

static void
visit(void *user, LLVMValueRef i)
{
    int lane = is_masked_store(i) ? only_lane(LLVMGetOperand(i, 2)) : -1;
    if (lane >= 0)
        store_lane(user, i, lane);
}

void
cpu_cleanup(Gen *g)
{
    ll_each_instruction(g->mod, visit, g);
}
