/* Compile time that is linear in the program.

   Some passes of LLVM's backends take time that grows with the square of a function, or
   with the cube of its loops: strength reduction for GPUs, scheduling and the allocation
   of registers for CPUs. Beyond a size that kernels written by hand do not come near,
   code is generated without them, and in blocks of limited length. A budget of time would
   keep more of them, and give different code on different days. */
#include "codegen/gen.h"

static int
count_loops(const Region *r)
{
    int n = 0;
    for (const Op *op = r->first; op; op = op->next) {
        n += op->kind == OP_FOR || op->kind == OP_WHILE;
        for (int i = 0; i < op->nregion; i++)
            n += count_loops(op->regions[i]);
    }
    return n;
}

static Effort
effort_of(const Gen *g, const Func *f)
{
    Effort e = {.loops = count_loops(f->body)};
    LLVMValueRef fn = LLVMGetNamedFunction(g->mod, f->name);
    for (LLVMBasicBlockRef b = fn ? LLVMGetFirstBasicBlock(fn) : NULL; b;
         b = LLVMGetNextBasicBlock(b)) {
        int n = 0, all = 0;
        for (LLVMValueRef v = LLVMGetFirstInstruction(b); v;
             v = LLVMGetNextInstruction(v), all++)
            n += g->target->counts(LLVMGetInstructionOpcode(v));
        e.blocks++;
        e.instructions += n;
        e.in_block = all > e.in_block ? all : e.in_block;
    }
    return e;
}

/* The phis behind a block that has become another one. */
static void
rename_predecessor(Gen *g, LLVMBasicBlockRef at, LLVMBasicBlockRef from,
                   LLVMBasicBlockRef to)
{
    LLVMValueRef phi = LLVMGetFirstInstruction(at), next;
    for (; phi && LLVMIsAPHINode(phi); phi = next) {
        next = LLVMGetNextInstruction(phi);
        LLVMPositionBuilderBefore(g->b, phi);
        LLVMValueRef made = LLVMBuildPhi(g->b, LLVMTypeOf(phi), "");
        for (unsigned i = 0; i < LLVMCountIncoming(phi); i++) {
            LLVMValueRef value = LLVMGetIncomingValue(phi, i);
            LLVMBasicBlockRef block = LLVMGetIncomingBlock(phi, i);
            block = block == from ? to : block;
            LLVMAddIncoming(made, &value, &block, 1);
        }
        LLVMReplaceAllUsesWith(phi, made);
        LLVMInstructionEraseFromParent(phi);
    }
}

/* Instructions are selected block by block, in time that grows with the square of a
   block: a long one becomes a chain. */
static void
split_block(Gen *g, LLVMValueRef fn, LLVMBasicBlockRef b)
{
    enum { MOST = 256 };
    LLVMBasicBlockRef here = NULL, first = NULL, after = LLVMGetNextBasicBlock(b);
    LLVMValueRef end = LLVMGetBasicBlockTerminator(b), v = LLVMGetFirstInstruction(b);
    int n = 0;
    for (; v && n < MOST; v = LLVMGetNextInstruction(v))
        n += !LLVMIsAPHINode(v) && !LLVMIsAAllocaInst(v);
    if (!v || v == end)
        return;
    LLVMSetCurrentDebugLocation2(g->b, NULL);
    while (v) {
        LLVMBasicBlockRef next =
            after ? LLVMInsertBasicBlockInContext(g->cx, after, "part")
                  : LLVMAppendBasicBlockInContext(g->cx, fn, "part");
        if (here)
            LLVMBuildBr(g->b, next); /* where the builder is: at the end of `here` */
        else
            first = next;
        here = next;
        LLVMPositionBuilderAtEnd(g->b, here);
        for (n = 0; v && n < MOST; n++) {
            LLVMValueRef follows = LLVMGetNextInstruction(v);
            LLVMInstructionRemoveFromParent(v);
            LLVMInsertIntoBuilder(g->b, v);
            v = follows;
        }
    }
    LLVMPositionBuilderAtEnd(g->b, b);
    LLVMBuildBr(g->b, first);
    for (unsigned i = 0; i < LLVMGetNumSuccessors(end); i++)
        rename_predecessor(g, LLVMGetSuccessor(end, i), b, here);
}

bool
limit_effort(Gen *g, Module *m)
{
    const Effort *most = &g->target->most;
    bool large = false;
    for (int i = 0; i < m->nfunc; i++) {
        const Func *f = m->funcs[i];
        Effort e = effort_of(g, f);
        if (e.loops <= most->loops && e.blocks <= most->blocks &&
            e.instructions <= most->instructions && e.in_block <= most->in_block)
            continue;
        diag_warning(&g->s->diag, f->loc,
                     "'%s' is too large for all optimisations of %s's code: %d loops (at "
                     "most %d), %d blocks (%d), %d instructions (%d), %d in a block (%d)",
                     f->name, g->opt->target, e.loops, most->loops, e.blocks,
                     most->blocks, e.instructions, most->instructions, e.in_block,
                     most->in_block);
        large = true;
    }
    if (!large)
        return true;
    for (LLVMValueRef fn = LLVMGetFirstFunction(g->mod); fn; fn = LLVMGetNextFunction(fn))
        for (LLVMBasicBlockRef b = LLVMGetFirstBasicBlock(fn); b;
             b = LLVMGetNextBasicBlock(b))
            split_block(g, fn, b);
    if (g->target->unoptimised)
        g->target->unoptimised(g);
    return emit_machine_at(g, LLVMCodeGenLevelNone);
}

