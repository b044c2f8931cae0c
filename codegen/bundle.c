/* Many compiled kernels in one object for the host: the bitcode of those for the CPU,
   linked into one module, and those for GPUs and all metadata as constants beside it, in
   the tables that runtime/rt/bundle.h describes. The order of members here is that of
   SdcrtCode and SdcrtBundle. */
#include "codegen/gen.h"

#include "ir/base/util.h"
#include "runtime/rt/meta.h"

#include <llvm-c/IRReader.h>
#include <llvm-c/Linker.h>
#include <assert.h>
#include <stddef.h>
#include <string.h>

static_assert(offsetof(SdcrtCode, bytes) == 8 && offsetof(SdcrtCode, meta) == 24 &&
                  offsetof(SdcrtCode, kind) == 40 && sizeof(SdcrtCode) == 48,
              "SdcrtCode");
static_assert(offsetof(SdcrtBundle, code) == 16 && offsetof(SdcrtBundle, name) == 32,
              "SdcrtBundle");

/* Code for "cpu:x86-64-v4" beside code for others: every function says for what it is. */
static void
set_level(LLVMModuleRef part, const char *target)
{
    const char *level = strchr(target, ':');
    if (!level)
        return;
    for (LLVMValueRef f = LLVMGetFirstFunction(part); f; f = LLVMGetNextFunction(f))
        if (!LLVMIsDeclaration(f)) {
            LLVMAddTargetDependentFunctionAttr(f, "target-cpu", level + 1);
            if (LLVMGetLinkage(f) != LLVMInternalLinkage)
                LLVMSetLinkage(f, LLVMPrivateLinkage); /* each level has its own */
        }
}

/* Links the bitcode in; the kernel's function under a name that is its own, or NULL. */
static LLVMValueRef
link_code(Gen *g, const BundleCode *code, const char *name)
{
    LLVMModuleRef part = NULL;
    LLVMMemoryBufferRef buf =
        LLVMCreateMemoryBufferWithMemoryRangeCopy(code->bytes, code->size, name);
    char *why = NULL;
    bool bad = LLVMParseIRInContext2(g->cx, buf, &part, &why);
    LLVMDisposeMemoryBuffer(buf);
    if (why)
        LLVMDisposeMessage(why);
    if (bad)
        return NULL;
    LLVMValueRef fn = LLVMGetNamedFunction(part, code->meta->symbol);
    if (!fn) {
        LLVMDisposeModule(part);
        return NULL;
    }
    set_level(part, code->meta->target);
    LLVMSetLinkage(fn, LLVMExternalLinkage); /* to be found again */
    LLVMSetValueName2(fn, name, strlen(name));
    if (LLVMLinkModules2(g->mod, part)) /* takes `part` over */
        return NULL;
    fn = LLVMGetNamedFunction(g->mod, name);
    if (fn)
        LLVMSetLinkage(fn, LLVMInternalLinkage);
    return fn;
}

static LLVMValueRef
constant(Gen *g, LLVMValueRef value, const char *name, bool writable)
{
    LLVMValueRef v = LLVMAddGlobal(g->mod, LLVMTypeOf(value), name);
    LLVMSetInitializer(v, value);
    LLVMSetGlobalConstant(v, !writable);
    LLVMSetLinkage(v, LLVMInternalLinkage);
    return v;
}

/* The bytes, and a NUL behind them. */
static LLVMValueRef
bytes(Gen *g, const void *from, size_t n, const char *name)
{
    LLVMValueRef v =
        constant(g, LLVMConstStringInContext2(g->cx, from, n, false), name, false);
    LLVMSetAlignment(v, 16);
    return v;
}

static LLVMValueRef
number(Gen *g, uint64_t x)
{
    return LLVMConstInt(g->i64, x, false);
}

/* An SdcrtCode; NULL when the code cannot be linked. */
static LLVMValueRef
code_entry(Gen *g, const BundleCode *code, const char *group, int i)
{
    Arena *a = &g->s->perm;
    LLVMValueRef null = LLVMConstNull(g->ptr);
    size_t packed = sdcrt_meta_pack(code->meta, NULL);
    unsigned char *meta = arena_alloc(a, packed, 1);
    sdcrt_meta_pack(code->meta, meta);
    LLVMValueRef fn = null, blob = null;
    if (code->kind == SDCRT_CODE_CPU)
        fn = link_code(g, code, arena_printf(a, "%s_cpu_%d", group, i));
    else
        blob = bytes(g, code->bytes, code->size, arena_printf(a, "%s_code_%d", group, i));
    if (!fn)
        return NULL;
    LLVMValueRef field[] = {
        fn,
        blob,
        number(g, code->size),
        bytes(g, meta, packed, arena_printf(a, "%s_meta_%d", group, i)),
        number(g, packed),
        number(g, (uint64_t)code->kind),
    };
    return LLVMConstStructInContext(g->cx, field, COUNT_OF(field), false);
}

static bool
add_group(Gen *g, const BundleGroup *group)
{
    Arena *a = &g->s->perm;
    LLVMValueRef *entry = arena_array(a, LLVMValueRef, group->ncode + 1);
    for (int i = 0; i < group->ncode; i++) {
        entry[i] = code_entry(g, &group->code[i], group->name, i);
        if (!entry[i]) {
            diag_error(&g->s->diag, (Loc){0}, "the code of '%s' cannot be linked",
                       group->name);
            return false;
        }
    }
    LLVMTypeRef type = group->ncode ? LLVMTypeOf(entry[0]) : g->i64;
    LLVMValueRef table = LLVMConstArray2(type, entry, (uint64_t)group->ncode);
    LLVMValueRef field[] = {
        number(g, SDCRT_BUNDLE_FORMAT),
        number(g, (uint64_t)group->ncode),
        constant(g, table, arena_printf(a, "%s_table", group->name), false),
        constant(g, LLVMConstNull(g->ptr), arena_printf(a, "%s_state", group->name),
                 true),
        bytes(g, group->name, strlen(group->name),
              arena_printf(a, "%s_name", group->name)),
    };
    LLVMValueRef bundle =
        constant(g, LLVMConstStructInContext(g->cx, field, COUNT_OF(field), false),
                 arena_printf(a, "%s_bundle", group->name), false);
    LLVMSetLinkage(bundle, LLVMExternalLinkage);
    return true;
}

typedef struct Groups {
    const BundleGroup *at;
    int n;
    CodegenOut *out;
} Groups;

static bool
write_groups(Gen *g, void *arg)
{
    Groups *all = arg;
    emit_open(g, NULL, all->n ? all->at[0].name : "sdc");
    bool ok = emit_machine(g);
    for (int i = 0; ok && i < all->n; i++)
        ok = add_group(g, &all->at[i]);
    return ok && emit_write(g, all->out);
}

bool
codegen_bundle(Session *s, const char *cpu, const BundleGroup *groups, int n,
               CodegenOut *out)
{
    CodegenOptions opt = {.target = "cpu", .cpu = cpu, .opt = 3, .emit = EMIT_OBJ};
    Gen g = {.s = s, .opt = &opt, .target = emit_target(false)};
    *out = (CodegenOut){0};
    if (!g.target || !target_info(opt.target, &g.info))
        return false;
    Groups all = {.at = groups, .n = n, .out = out};
    return emit_section(&g, write_groups, &all);
}
