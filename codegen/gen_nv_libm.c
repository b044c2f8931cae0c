/* The math library on a GPU, but for what gen_nv_math.h has: LLVM's intrinsics where PTX
   has the operation, else functions of libclc (codegen/nv_math_code.h), each linked into
   the module that asks for it. Short ones are inlined, of long ones each kernel has one
   copy that it calls: a tile would repeat them for each of its registers. */
#include "codegen/gen_nv_math.h"
#include "codegen/nv_math_code.h"

#include "ir/base/util.h"

#include <llvm-c/BitReader.h>
#include <llvm-c/Linker.h>
#include <stdio.h>
#include <string.h>

enum { MAX_ARGS = 2, INLINE_INSTRUCTIONS = 250 };

/* The name of an operation in the library; NULL: it has none. */
static const char *
library_name(const Op *op, bool *int_second)
{
    static const struct {
        const char *fn;
        int arity;
        char kind;
    } math[] = {
#define MATH(id, name, n, f32, f64, class) {name, n, #class[0]},
#include "ir/math.def"
    };
    static const char *const plain[OP_COUNT] = {
        [OP_LOG] = "log", [OP_LOG2] = "log2", [OP_SIN] = "sin",
        [OP_COS] = "cos", [OP_ERF] = "erf",   [OP_REMF] = "fmod",
    };
    *int_second = false;
    if (op->kind != OP_LIBM)
        return plain[op->kind];
    Name fn = attr_str(&op->attrs, ATTR_FN);
    for (int i = 0; fn && i < COUNT_OF(math); i++) {
        if (strcmp(math[i].fn, fn) || math[i].arity != op->noperand)
            continue;
        *int_second = math[i].kind == 'L';
        return strcmp(fn, "powi") == 0 ? "pown" : math[i].fn;
    }
    return NULL;
}

static LLVMValueRef
by_intrinsic(Gen *g, const char *name, LLVMValueRef *x, int n)
{
    static const char *const known[][2] = {
        {"rint", "llvm.rint"},   {"nearbyint", "llvm.nearbyint"},
        {"round", "llvm.round"}, {"trunc", "llvm.trunc"},
        {"fabs", "llvm.fabs"},   {"copysign", "llvm.copysign"},
    };
    for (int i = 0; i < COUNT_OF(known); i++)
        if (strcmp(known[i][0], name) == 0)
            return ll_intrinsic1(g->b, known[i][1], x, n);
    return NULL;
}

static bool
is_short(LLVMValueRef fn)
{
    int n = 0;
    for (LLVMBasicBlockRef b = LLVMGetFirstBasicBlock(fn); b;
         b = LLVMGetNextBasicBlock(b))
        for (LLVMValueRef i = LLVMGetFirstInstruction(b); i;
             i = LLVMGetNextInstruction(i))
            n++;
    return n <= INLINE_INSTRUCTIONS;
}

/* The library's function in this module, linked in when it is first asked for. */
static LLVMValueRef
library_function(Gen *g, const char *mangled)
{
    LLVMValueRef fn = LLVMGetNamedFunction(g->mod, mangled);
    const NvMathCode *c = nv_math_codes;
    LLVMModuleRef part = NULL;
    if (fn)
        return fn;
    while (c->name && strcmp(c->name, mangled) != 0)
        c++;
    if (!c->name)
        return NULL;
    LLVMMemoryBufferRef bits =
        LLVMCreateMemoryBufferWithMemoryRange((const char *)c->bits, c->size, mangled, 0);
    bool bad = LLVMParseBitcodeInContext2(g->cx, bits, &part);
    LLVMDisposeMemoryBuffer(bits);
    if (bad)
        return NULL;
    LLVMSetDataLayout(part, LLVMGetDataLayoutStr(g->mod));
    LLVMSetTarget(part, LLVMGetTarget(g->mod));
    if (LLVMLinkModules2(g->mod, part)) /* it owns `part` now */
        return NULL;
    fn = LLVMGetNamedFunction(g->mod, mangled);
    if (!fn)
        return NULL;
    LLVMSetLinkage(fn, LLVMInternalLinkage);
    ll_fn_attr(fn, is_short(fn) ? "alwaysinline" : "noinline");
    return fn;
}

LLVMValueRef
nv_library(Gen *g, const char *mangled, LLVMValueRef *x, int n)
{
    LLVMValueRef fn = library_function(g, mangled);
    if (!fn)
        bug(&g->s->fail, "libclc has no '%s'", mangled);
    return LLVMBuildCall2(g->b, LLVMGlobalGetValueType(fn), fn, x, (unsigned)n, "");
}

/* An exponent of at most 2^64, which is even and gives the 0, 1 or infinity that larger
   ones do: libclc's pow multiplies them until they are no numbers. */
static Num
no_larger(Gen *g, Num y)
{
    y = where(g, more(g, y, 0x1p64), ll_float(g->f64, 0x1p64), y);
    return where(g, less(g, y, -0x1p64), ll_float(g->f64, -0x1p64), y);
}

LLVMValueRef
nv_libm(Gen *g, const Op *op, ScalarKind k, LLVMValueRef *x)
{
    bool int_second;
    char mangled[48];
    LLVMValueRef args[MAX_ARGS] = {x[0], op->noperand > 1 ? x[1] : NULL};
    const char *name = library_name(op, &int_second);
    if (!name || op->noperand > MAX_ARGS || (k != SK_F32 && k != SK_F64))
        return NULL;
    LLVMValueRef r = by_intrinsic(g, name, x, op->noperand);
    if (r)
        return r;
    if (k == SK_F64 && strcmp(name, "tgamma") == 0 && nv_math_codes[0].name)
        return nv_tgamma64(g, x);
    const char *letter = k == SK_F32 ? "f" : "d";
    snprintf(mangled, sizeof mangled, "_Z%d%s%s%.*s", (int)strlen(name), name, letter,
             op->noperand - 1, int_second ? "i" : letter);
    if (int_second)
        args[1] = LLVMBuildIntCast2(g->b, args[1], g->i32, 1, "");
    if (k == SK_F64 && strcmp(name, "pow") == 0)
        args[1] = no_larger(g, args[1]);
    LLVMValueRef fn = library_function(g, mangled);
    if (!fn) {
        diag_error(&g->s->diag, op->loc, "not supported: '%s' on target %s%s", name,
                   g->opt->target,
                   nv_math_codes[0].name ? "" : ": sdc was built without libclc");
        return NULL;
    }
    r = LLVMBuildCall2(g->b, LLVMGlobalGetValueType(fn), fn, args, (unsigned)op->noperand,
                       "");
    return r;
}
