/* fp32 to bf16 by the processor's own conversion. It takes subnormal numbers for zero, so
   where a strip has one the general code runs. */
#include "codegen/gen_cpu.h"

enum { WIDTH = 16, MOST = 4, SUBNORMAL = 0x20 };

static LLVMValueRef
call(Gen *g, const char *name, LLVMValueRef *args, int n)
{
    return ll_intrinsic(g->b, name, NULL, 0, args, n);
}

static LLVMValueRef
has_subnormal(Gen *g, LLVMValueRef *part, unsigned n)
{
    LLVMValueRef any = NULL;
    for (unsigned i = 0; i < n; i++) {
        LLVMValueRef args[2] = {part[i], ll_int(g->i32, SUBNORMAL)};
        LLVMValueRef is = call(g, "llvm.x86.avx512.fpclass.ps.512", args, 2);
        any = any ? LLVMBuildOr(g->b, any, is, "") : is;
    }
    return ll_intrinsic1(g->b, "llvm.vector.reduce.or", &any, 1);
}

static LLVMValueRef
converted(Gen *g, LLVMValueRef *part, unsigned n)
{
    LLVMValueRef done[MOST];
    LLVMTypeRef i16 = LLVMInt16TypeInContext(g->cx);
    unsigned each = n > 1 ? 2 : 1;
    for (unsigned i = 0; i < n; i += each) {
        LLVMValueRef args[2] = {part[i + each - 1], part[i]};
        done[i / each] = call(g, each > 1 ? "llvm.x86.avx512bf16.cvtne2ps2bf16.512"
                                          : "llvm.x86.avx512bf16.cvtneps2bf16.512",
                              args, (int)each);
        done[i / each] =
            LLVMBuildBitCast(g->b, done[i / each], ll_vector(i16, each * WIDTH), "");
    }
    return ll_concat(g->b, done, n / each);
}

LLVMValueRef
cpu_fcast(Gen *g, ScalarKind from, ScalarKind to, bool rtz, LLVMValueRef x)
{
    const Cpu *c = g->priv;
    unsigned lanes = ll_lanes(x), n = lanes / WIDTH;
    LLVMValueRef part[MOST], y[2];
    if (from != SK_F32 || to != SK_BF16 || rtz || !c->avx512 || !c->bf16 ||
        lanes % WIDTH || n > MOST || (n & (n - 1)))
        return NULL;
    for (unsigned i = 0; i < n; i++)
        part[i] = ll_extract(g->b, x, i * WIDTH, WIDTH);
    LLVMBasicBlockRef at[2] = {cpu_block(g, "normal"), cpu_block(g, "subnormal")};
    LLVMBasicBlockRef next = cpu_block(g, "rounded");
    LLVMValueRef is = has_subnormal(g, part, n);
    ll_likely(LLVMBuildCondBr(g->b, is, at[1], at[0]), 1);
    for (int i = 0; i < 2; i++) {
        LLVMPositionBuilderAtEnd(g->b, at[i]);
        y[i] = i == 0 ? converted(g, part, n) : gen_to_bf16(g, x);
        LLVMBuildBr(g->b, next);
    }
    LLVMPositionBuilderAtEnd(g->b, next);
    LLVMValueRef phi = LLVMBuildPhi(g->b, LLVMTypeOf(y[0]), "");
    LLVMAddIncoming(phi, y, at, 2);
    return phi;
}
