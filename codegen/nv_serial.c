/* Dots by wgmma in code that LLVM's backend does not optimise (effort.c).

   From the fence on until they are waited for, the registers of an accumulator belong to
   its wgmma alone. Unoptimised code copies what goes into an assembly statement and what
   comes out of it: behind the fence, and between one wgmma and the next. ptxas would then
   put fences and waits around every wgmma by itself, which PTX does not promise. Here
   they are part of the statement, so nothing is copied while a wgmma is in flight.
   Separate fences and commits are removed: ptxas turns an empty group into a wgmma of
   nothing. */
#include "codegen/gen_nv.h"

#include <string.h>

static const char fence[] = "wgmma.fence.sync.aligned;";
static const char commit[] = "wgmma.commit_group.sync.aligned;";
static const char wait[] = "wgmma.wait_group.sync.aligned 0;";

/* If call is the assembly of a wgmma: makes it one statement with its fence, commit and
   wait. If it is a separate fence or commit: erases it. */
static void
make_serial(void *user, LLVMValueRef call)
{
    Gen *g = user;
    LLVMValueRef was = LLVMIsACallInst(call) ? LLVMGetCalledValue(call) : NULL;
    size_t n, m;
    if (!was || !LLVMIsAInlineAsm(was))
        return;
    const char *text = LLVMGetInlineAsmAsmString(was, &n);
    const char *cons = LLVMGetInlineAsmConstraintString(was, &m);
    text = arena_strndup(&g->s->tmp, text, n);
    if (strcmp(text, fence) == 0 || strcmp(text, commit) == 0)
        LLVMInstructionEraseFromParent(call);
    if (!strstr(text, "wgmma.mma_async"))
        return;
    text = arena_printf(&g->s->tmp, "%s %s %s %s", fence, text, commit, wait);
    LLVMValueRef now =
        LLVMGetInlineAsm(LLVMGetInlineAsmFunctionType(was), text, strlen(text), cons, m,
                         LLVMGetInlineAsmHasSideEffects(was),
                         LLVMGetInlineAsmNeedsAlignedStack(was),
                         LLVMGetInlineAsmDialect(was), LLVMGetInlineAsmCanUnwind(was));
    LLVMSetOperand(call, (unsigned)LLVMGetNumOperands(call) - 1, now);
}

void
nv_serial(Gen *g)
{
    ll_each_instruction(g->mod, make_serial, g);
}
