/* A strip under a mask, where masks are not registers of their own: in groups of a
   vector. Most groups are whole or empty, and of those a test of the mask is cheaper than
   what the mask costs: 12 cycles of a masked store on AMD's processors, a loop over the
   lanes for 16 bits, two selects and an address aside for each lane that is gathered.

       vload %p, %m, %other, 32 lanes    =>    for each 8: switch (bits of %m)
                                               255: load;  0: %other;  else: under %m */
#include "codegen/gen_cpu.h"

enum { MOST_GROUPS = 64 };

/* One group; NULL: of a store. */
static LLVMValueRef
group(Gen *g, LLVMValueRef on, LLVMValueRef other, unsigned at, CpuPart part, void *cx)
{
    LLVMValueRef x[3] = {other};
    LLVMBasicBlockRef end[3] = {LLVMGetInsertBlock(g->b)};
    LLVMBasicBlockRef whole = cpu_block(g, "whole"), some = cpu_block(g, "some");
    LLVMBasicBlockRef done = cpu_block(g, "group");
    unsigned n = ll_lanes(on);
    LLVMTypeRef t = LLVMIntTypeInContext(g->cx, n);
    LLVMValueRef bits = LLVMBuildBitCast(g->b, on, t, "");
    LLVMValueRef choice = LLVMBuildSwitch(g->b, bits, some, 2);
    LLVMAddCase(choice, LLVMConstAllOnes(t), whole);
    LLVMAddCase(choice, LLVMConstNull(t), done);
    for (int i = 1; i < 3; i++) {
        LLVMPositionBuilderAtEnd(g->b, i == 1 ? whole : some);
        x[i] = part(g, cx, at, n, i == 1 ? NULL : on);
        end[i] = LLVMGetInsertBlock(g->b);
        LLVMBuildBr(g->b, done);
    }
    LLVMPositionBuilderAtEnd(g->b, done);
    if (!other)
        return NULL;
    LLVMValueRef phi = LLVMBuildPhi(g->b, LLVMTypeOf(other), "");
    LLVMAddIncoming(phi, x, end, 3);
    return phi;
}

LLVMValueRef
cpu_groups(Gen *g, LLVMValueRef mask, LLVMValueRef other, unsigned width, CpuPart part,
           void *cx)
{
    LLVMValueRef on[MOST_GROUPS], x[MOST_GROUPS];
    unsigned lanes = ll_lanes(mask), n = 0;
    width = lanes < width ? lanes : width;
    /* in front of all branches: lanes of one bit are bytes behind them */
    for (unsigned at = 0; at < lanes; at += width)
        on[n++] = ll_extract(g->b, mask, at, width);
    for (unsigned i = 0; i < n; i++) {
        LLVMValueRef y = other ? ll_extract(g->b, other, i * width, width) : NULL;
        x[i] = group(g, on[i], y, i * width, part, cx);
    }
    return other ? ll_concat(g->b, x, n) : NULL;
}
