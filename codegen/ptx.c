/* Predicated accesses are inline assembly, not branches: a branch per access would split
   the block at every load and keep ptxas from issuing them together. The words that a
   masked-off thread gets are tied to the results, so one move at most sets them. */
#include "codegen/ptx.h"

#include <stdio.h>
#include <string.h>

static const char *const names[] = {
#define PTX(id, name, sm) [PTX_##id] = name,
#include "codegen/ptx.def"
};

LLVMValueRef
ptx_call(Gen *g, PtxId id, LLVMValueRef *args, int n)
{
    return ll_intrinsic(g->b, names[id], NULL, 0, args, n);
}

bool
ptx_is(LLVMValueRef v, PtxId id)
{
    size_t n;
    const char *name =
        LLVMIsACallInst(v) ? LLVMGetValueName2(LLVMGetCalledValue(v), &n) : "";
    return strcmp(name, names[id]) == 0;
}

LLVMValueRef
ptx_asm(Gen *g, const char *text, const char *constraints, LLVMTypeRef result,
        LLVMValueRef *args, int n, bool effects)
{
    LLVMTypeRef *types = arena_array(&g->s->tmp, LLVMTypeRef, n ? n : 1);
    for (int i = 0; i < n; i++)
        types[i] = LLVMTypeOf(args[i]);
    LLVMTypeRef t = LLVMFunctionType(result, types, (unsigned)n, 0);
    LLVMValueRef fn =
        LLVMGetInlineAsm(t, text, strlen(text), constraints, strlen(constraints), effects,
                         0, LLVMInlineAsmDialectATT, 0);
    LLVMValueRef call = LLVMBuildCall2(g->b, t, fn, args, (unsigned)n, "");
    if (!effects) { /* or LLVM takes it for something that may touch any memory */
        unsigned kind = LLVMGetEnumAttributeKindForName("memory", 6);
        LLVMAddCallSiteAttribute(call, LLVMAttributeFunctionIndex,
                                 LLVMCreateEnumAttribute(g->cx, kind, 0));
    }
    return call;
}

static char
constraint(int bits)
{
    return bits == 64 ? 'l' : bits == 32 ? 'r' : 'h';
}

static LLVMTypeRef
word_type(Gen *g, int bits)
{
    return LLVMIntTypeInContext(g->cx, bits < 16 ? 16u : (unsigned)bits);
}

/* "{$0, $1, $2, $3}" or "$0": operands first .. first + n - 1. */
static int
operands(char *out, size_t size, int first, int n)
{
    int at = snprintf(out, size, n > 1 ? "{" : "");
    for (int i = 0; i < n; i++)
        at += snprintf(out + at, size - (size_t)at, "%s$%d", i ? ", " : "", first + i);
    return at + snprintf(out + at, size - (size_t)at, n > 1 ? "}" : "");
}

static void
vector_suffix(char *out, size_t size, PtxAccess a)
{
    const char *v = a.words == 4 ? ".v4" : a.words == 2 ? ".v2" : "";
    snprintf(out, size, "%s.b%d", v, a.bits);
}

void
ptx_load(Gen *g, PtxAccess a, LLVMValueRef address, LLVMValueRef pred,
         LLVMValueRef *other, LLVMValueRef *out)
{
    char text[256], ops[64], type[16], cons[64];
    LLVMTypeRef word = word_type(g, a.bits), all[4] = {word, word, word, word};
    LLVMValueRef args[8];
    int at = 0, n = 0;
    /* results 0 .. w-1, address w, policy, predicate, then the tied words */
    operands(ops, sizeof ops, 0, a.words);
    vector_suffix(type, sizeof type, a);
    char guard[16] = "", hint[16] = "";
    if (a.policy)
        snprintf(hint, sizeof hint, ", $%d", a.words + 1);
    if (pred)
        snprintf(guard, sizeof guard, "@$%d ", a.words + 1 + (a.policy != NULL));
    snprintf(text, sizeof text, "%sld%s%s %s, [$%d]%s;", guard, a.qualifiers, type, ops,
             a.words, hint);
    for (int i = 0; i < a.words; i++)
        at += snprintf(cons + at, sizeof cons - (size_t)at, "%s=%c", i ? "," : "",
                       constraint(a.bits));
    at += snprintf(cons + at, sizeof cons - (size_t)at, a.policy ? ",l,l" : ",l");
    args[n++] = address;
    if (a.policy)
        args[n++] = a.policy;
    if (pred) {
        args[n++] = pred;
        at += snprintf(cons + at, sizeof cons - (size_t)at, ",b");
        for (int i = 0; i < a.words; i++) {
            args[n++] = other[i];
            at += snprintf(cons + at, sizeof cons - (size_t)at, ",%d", i);
        }
    }
    LLVMTypeRef result =
        a.words == 1 ? word : LLVMStructTypeInContext(g->cx, all, (unsigned)a.words, 0);
    LLVMValueRef r = ptx_asm(g, text, cons, result, args, n, true);
    for (int i = 0; i < a.words; i++)
        out[i] = a.words == 1 ? r : LLVMBuildExtractValue(g->b, r, (unsigned)i, "");
}

void
ptx_store(Gen *g, PtxAccess a, LLVMValueRef address, LLVMValueRef pred,
          LLVMValueRef *value)
{
    char text[256], ops[64], type[16], cons[64], guard[16] = "", hint[16] = "";
    LLVMValueRef args[8];
    int n = 0, width = LLVMTypeOf(address) == g->i32 ? 32 : 64;
    int at = snprintf(cons, sizeof cons, "%c", constraint(width));
    args[n++] = address;
    for (int i = 0; i < a.words; i++) {
        args[n++] = value[i];
        at += snprintf(cons + at, sizeof cons - (size_t)at, ",%c", constraint(a.bits));
    }
    if (a.policy) {
        snprintf(hint, sizeof hint, ", $%d", n);
        args[n++] = a.policy;
        at += snprintf(cons + at, sizeof cons - (size_t)at, ",l");
    }
    if (pred) {
        snprintf(guard, sizeof guard, "@$%d ", n);
        args[n++] = pred;
        snprintf(cons + at, sizeof cons - (size_t)at, ",b");
    }
    operands(ops, sizeof ops, 1, a.words);
    vector_suffix(type, sizeof type, a);
    snprintf(text, sizeof text, "%sst%s%s [$0], %s%s;", guard, a.qualifiers, type, ops,
             hint);
    ptx_asm(g, text, cons, LLVMVoidTypeInContext(g->cx), args, n, true);
}

void
ptx_atomic(Gen *g, PtxAccess a, LLVMValueRef address, LLVMValueRef pred,
           LLVMValueRef *value, int lists, LLVMValueRef *out)
{
    char text[256], ops[64], cons[96], guard[16] = "";
    LLVMTypeRef word = word_type(g, a.bits), all[4] = {word, word, word, word};
    LLVMValueRef args[16];
    int results = out ? a.words : 0, n = 0, at = 0, put = 0;
    for (int i = 0; i < results; i++)
        at += snprintf(cons + at, sizeof cons - (size_t)at, "=%c,", constraint(a.bits));
    at += snprintf(cons + at, sizeof cons - (size_t)at, "l");
    args[n++] = address;
    for (int i = 0; i < lists * a.words; i++) {
        args[n++] = value[i];
        at += snprintf(cons + at, sizeof cons - (size_t)at, ",%c", constraint(a.bits));
    }
    if (pred) {
        snprintf(guard, sizeof guard, "@$%d ", results + n);
        args[n++] = pred;
        at += snprintf(cons + at, sizeof cons - (size_t)at, ",b");
        for (int i = 0; i < results; i++) {
            args[n++] = LLVMConstNull(word);
            at += snprintf(cons + at, sizeof cons - (size_t)at, ",%d", i);
        }
    }
    put = snprintf(text, sizeof text, "%s%s ", guard, a.qualifiers);
    if (out) {
        operands(ops, sizeof ops, 0, a.words);
        put += snprintf(text + put, sizeof text - (size_t)put, "%s, ", ops);
    }
    put += snprintf(text + put, sizeof text - (size_t)put, "[$%d]", results);
    for (int k = 0; k < lists; k++) {
        operands(ops, sizeof ops, results + 1 + k * a.words, a.words);
        put += snprintf(text + put, sizeof text - (size_t)put, ", %s", ops);
    }
    snprintf(text + put, sizeof text - (size_t)put, ";");
    LLVMTypeRef result = !out ? LLVMVoidTypeInContext(g->cx)
                         : a.words == 1
                             ? word
                             : LLVMStructTypeInContext(g->cx, all, (unsigned)a.words, 0);
    LLVMValueRef r = ptx_asm(g, text, cons, result, args, n, true);
    for (int i = 0; i < results; i++)
        out[i] = a.words == 1 ? r : LLVMBuildExtractValue(g->b, r, (unsigned)i, "");
}
