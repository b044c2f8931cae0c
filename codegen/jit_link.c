/* Objects into this process, by ORC's LLJIT: its linker, nothing is compiled here.
   Math functions come from glibc's libm and libmvec, opened when the first object is
   loaded and kept by each Loaded, so that code never outlives its library. */
#include "codegen/jit_link.h"

#include "codegen/jit_debug.h"
#include "codegen/llvm.h"

#include <dlfcn.h>
#include <llvm-c/Error.h>
#include <llvm-c/LLJIT.h>
#include <llvm-c/Orc.h>
#include <stdio.h>
#include <stdlib.h>

enum { NLIB = 2 };

struct Loaded {
    JitSymbols *symbols; /* NULL: nobody was told */
    LLVMOrcLLJITRef jit;
    void *libs[NLIB];
};

static const char *const lib_names[NLIB] = {"libm.so.6", "libmvec.so.1"};

static void
take_message(LLVMErrorRef e, char *why, size_t size)
{
    char *text = LLVMGetErrorMessage(e);
    snprintf(why, size, "%s", text);
    LLVMDisposeErrorMessage(text);
}

/* Resolves what the object calls: math libraries first, then the process. */
static LLVMErrorRef
find_symbols(LLVMOrcDefinitionGeneratorRef self, void *cx, LLVMOrcLookupStateRef *state,
             LLVMOrcLookupKind kind, LLVMOrcJITDylibRef dylib,
             LLVMOrcJITDylibLookupFlags flags, LLVMOrcCLookupSet set, size_t n)
{
    Loaded *l = cx;
    (void)self, (void)state, (void)kind, (void)flags;
    for (size_t i = 0; i < n; i++) {
        const char *name = LLVMOrcSymbolStringPoolEntryStr(set[i].Name);
        void *at = NULL;
        for (int k = 0; k < NLIB && !at; k++)
            at = l->libs[k] ? dlsym(l->libs[k], name) : NULL;
        if (!at)
            at = dlsym(RTLD_DEFAULT, name);
        if (!at)
            continue;
        LLVMOrcRetainSymbolStringPoolEntry(set[i].Name);
        LLVMOrcCSymbolMapPair pair = {
            set[i].Name,
            {(LLVMOrcExecutorAddress)(uintptr_t)at,
             {LLVMJITSymbolGenericFlagsExported | LLVMJITSymbolGenericFlagsCallable, 0}}};
        LLVMErrorRef e = LLVMOrcJITDylibDefine(dylib, LLVMOrcAbsoluteSymbols(&pair, 1));
        if (e)
            return e;
    }
    return LLVMErrorSuccess;
}

static LLVMErrorRef
add_object(Loaded *l, const void *bytes, size_t size)
{
    LLVMOrcJITDylibRef main = LLVMOrcLLJITGetMainJITDylib(l->jit);
    LLVMOrcDefinitionGeneratorRef gen =
        LLVMOrcCreateCustomCAPIDefinitionGenerator(find_symbols, l, NULL);
    LLVMOrcJITDylibAddGenerator(main, gen);
    LLVMMemoryBufferRef buf =
        LLVMCreateMemoryBufferWithMemoryRangeCopy(bytes, size, "sdc.o");
    return LLVMOrcLLJITAddObjectFile(l->jit, main, buf);
}

/* Mistakes come back as errors; ORC would print them as well. */
static void
say_nothing(void *user, LLVMErrorRef e)
{
    (void)user;
    LLVMConsumeError(e);
}

static LLVMErrorRef
load(Loaded *l, const void *bytes, size_t size, const char *symbol, void **entry)
{
    LLVMOrcExecutorAddress at = 0;
    LLVMErrorRef e = LLVMOrcCreateLLJIT(&l->jit, NULL);
    if (e)
        return e;
    LLVMOrcExecutionSessionSetErrorReporter(LLVMOrcLLJITGetExecutionSession(l->jit),
                                            say_nothing, NULL);
    e = add_object(l, bytes, size);
    if (!e)
        e = LLVMOrcLLJITLookup(l->jit, &at, symbol);
    *entry = (void *)(uintptr_t)at;
    return e;
}

Loaded *
codegen_load_object(FailPoint *fail, const void *bytes, size_t size, const char *symbol,
                    void **entry, char *why, size_t why_size)
{
    LlvmSection section;
    ll_init();
    Loaded *l = calloc(1, sizeof *l);
    if (!l)
        fail_jump(fail, FAIL_MEMORY, "out of memory");
    for (int k = 0; k < NLIB; k++)
        l->libs[k] = dlopen(lib_names[k], RTLD_NOW | RTLD_LOCAL);
    ll_enter(&section, fail);
    LLVMErrorRef e = load(l, bytes, size, symbol, entry);
    if (e)
        take_message(e, why, why_size);
    ll_exit(&section);
    if (!e && !section.is_short) {
        l->symbols = jit_debug_add(bytes, size, symbol, *entry);
        return l;
    }
    codegen_unload(l);
    if (section.is_short)
        fail_jump(fail, FAIL_MEMORY, "out of memory in LLVM");
    return NULL;
}

void
codegen_unload(Loaded *l)
{
    LlvmSection section;
    if (!l)
        return;
    jit_debug_remove(l->symbols);
    ll_enter(&section, NULL);
    if (l->jit) {
        LLVMErrorRef e = LLVMOrcDisposeLLJIT(l->jit);
        if (e)
            LLVMConsumeError(e);
    }
    ll_exit(&section);
    for (int k = 0; k < NLIB; k++)
        if (l->libs[k])
            dlclose(l->libs[k]);
    free(l);
}
