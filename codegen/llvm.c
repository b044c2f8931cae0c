/* The one place that knows LLVM's version, its global state and its C API's odd corners.

   LLVM reports some failures by a process-wide handler that must not return. It is
   installed once and leaves through the fail point of the section that runs on this
   thread; LLVM's objects of that compilation are lost, since C++ frames were skipped.

   LLVM is built on a machine whose C library may be newer than a host's: what it takes
   from there alone is defined here (the linker's --wrap), so that libsdc loads wherever
   glibc is 2.34 or later. tests/lint/symbols.sh looks. */
#include "codegen/llvm.h"

#include "ir/base/util.h"

#include <llvm-c/DebugInfo.h>
#include <llvm-c/ErrorHandling.h>
#include <llvm-c/Support.h>
#include <llvm-c/Target.h>
#include <llvm-c/Transforms/PassBuilder.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>

#if LLVM_VERSION_MAJOR < 22
#error "sdc needs LLVM 22"
#endif

static pthread_once_t once = PTHREAD_ONCE_INIT;

static void
on_fatal(const char *reason)
{
    char text[400];
    snprintf(text, sizeof text, "fatal error in LLVM: %s", reason);
    ll_leave(FAIL_BUG, text);
}

static void
init(void)
{
    LLVMInstallFatalErrorHandler(on_fatal);
    LLVMInitializeX86TargetInfo();
    LLVMInitializeX86Target();
    LLVMInitializeX86TargetMC();
    LLVMInitializeX86AsmPrinter();
    LLVMInitializeX86AsmParser();
    LLVMInitializeNVPTXTargetInfo();
    LLVMInitializeNVPTXTarget();
    LLVMInitializeNVPTXTargetMC();
    LLVMInitializeNVPTXAsmPrinter();
    /* Addresses in shared memory take one register, not two. And straight-line strength
       reduction, which only code for GPUs goes through, need not ask of each instruction
       that it would use again whether that is more often poison: a flag (nsw, nuw,
       inbounds, disjoint) is set where it holds for every lane, masked or not, so none of
       ours is. Asking was 40 % of the time for a kernel of attention. */
    static const char *const options[] = {"sdc", "-nvptx-short-ptr",
                                          "-enable-poison-reuse-guard=false"};
    LLVMParseCommandLineOptions(COUNT_OF(options), options, NULL);
}

void
ll_init(void)
{
    LlvmSection s;
    ll_enter(&s, NULL);
    pthread_once(&once, init);
    ll_exit(&s);
}

LLVMTypeRef
ll_scalar(LLVMContextRef cx, ScalarKind k)
{
    switch (k) {
    case SK_F16: return LLVMHalfTypeInContext(cx);
    case SK_F32: return LLVMFloatTypeInContext(cx);
    case SK_F64: return LLVMDoubleTypeInContext(cx);
    default: return LLVMIntTypeInContext(cx, (unsigned)scalar_bits(k));
    }
}

LLVMTypeRef
ll_memory(LLVMContextRef cx, ScalarKind k)
{
    return ll_scalar(cx, k == SK_I1 ? SK_I8 : k);
}

int
ll_bytes(ScalarKind k)
{
    return k == SK_I1 ? 1 : scalar_bits(k) / 8;
}

bool
ll_is_vector(LLVMValueRef x)
{
    return LLVMGetTypeKind(LLVMTypeOf(x)) == LLVMVectorTypeKind;
}

unsigned
ll_lanes(LLVMValueRef x)
{
    return ll_is_vector(x) ? LLVMGetVectorSize(LLVMTypeOf(x)) : 1;
}

LLVMTypeRef
ll_elem(LLVMValueRef x)
{
    LLVMTypeRef t = LLVMTypeOf(x);
    return ll_is_vector(x) ? LLVMGetElementType(t) : t;
}

LLVMTypeRef
ll_vector(LLVMTypeRef elem, unsigned lanes)
{
    return lanes == 1 ? elem : LLVMVectorType(elem, lanes);
}

LLVMTypeRef
ll_like(LLVMValueRef x, LLVMTypeRef elem)
{
    return ll_is_vector(x) ? LLVMVectorType(elem, ll_lanes(x)) : elem;
}

static LLVMValueRef
repeat(LLVMTypeRef t, LLVMValueRef c)
{
    LLVMValueRef all[64];
    unsigned n = LLVMGetVectorSize(t);
    for (unsigned i = 0; i < n && i < 64; i++)
        all[i] = c;
    return LLVMConstVector(all, n);
}

LLVMValueRef
ll_int(LLVMTypeRef t, int64_t v)
{
    if (LLVMGetTypeKind(t) == LLVMVectorTypeKind)
        return repeat(t, ll_int(LLVMGetElementType(t), v));
    unsigned bits = LLVMGetIntTypeWidth(t);
    uint64_t u = (uint64_t)v;
    if (bits > 64)
        return LLVMConstInt(t, u, 1);
    if (bits < 64)
        u &= ((uint64_t)1 << bits) - 1;
    return LLVMConstInt(t, u, 0);
}

LLVMValueRef
ll_float(LLVMTypeRef t, double v)
{
    if (LLVMGetTypeKind(t) == LLVMVectorTypeKind)
        return repeat(t, ll_float(LLVMGetElementType(t), v));
    return LLVMConstReal(t, v);
}

LLVMValueRef
ll_load(LLVMBuilderRef b, LLVMTypeRef t, LLVMValueRef p, unsigned align)
{
    LLVMValueRef x = LLVMBuildLoad2(b, t, p, "");
    LLVMSetAlignment(x, align);
    return x;
}

LLVMValueRef
ll_iota(LLVMTypeRef elem, unsigned lanes, int64_t start)
{
    LLVMValueRef all[64];
    if (lanes == 1)
        return ll_int(elem, start);
    for (unsigned i = 0; i < lanes && i < 64; i++)
        all[i] = ll_int(elem, start + (int64_t)i);
    return LLVMConstVector(all, lanes);
}

static LLVMTypeRef
i32_of(LLVMValueRef v)
{
    return LLVMInt32TypeInContext(LLVMGetTypeContext(LLVMTypeOf(v)));
}

LLVMValueRef
ll_splat(LLVMBuilderRef b, LLVMValueRef scalar, unsigned lanes)
{
    if (lanes == 1)
        return scalar;
    LLVMTypeRef t = LLVMVectorType(LLVMTypeOf(scalar), lanes);
    LLVMTypeRef i32 = i32_of(scalar);
    if (LLVMIsConstant(scalar))
        return repeat(t, scalar);
    LLVMValueRef v =
        LLVMBuildInsertElement(b, LLVMGetPoison(t), scalar, ll_int(i32, 0), "");
    return LLVMBuildShuffleVector(b, v, LLVMGetPoison(t),
                                  LLVMConstNull(LLVMVectorType(i32, lanes)), "");
}

LLVMValueRef
ll_extract(LLVMBuilderRef b, LLVMValueRef v, unsigned first, unsigned n)
{
    LLVMValueRef index[64];
    unsigned have = ll_lanes(v);
    LLVMTypeRef i32 = i32_of(v);
    if (have == 1 && n == 1)
        return v;
    if (n == 1)
        return LLVMBuildExtractElement(b, v, ll_int(i32, first), "");
    if (have == 1)
        return ll_splat(b, v, n);
    for (unsigned i = 0; i < n && i < 64; i++)
        index[i] = first + i < have ? ll_int(i32, first + i) : LLVMGetPoison(i32);
    return LLVMBuildShuffleVector(b, v, LLVMGetPoison(LLVMTypeOf(v)),
                                  LLVMConstVector(index, n), "");
}

LLVMValueRef
ll_concat(LLVMBuilderRef b, LLVMValueRef *part, unsigned n)
{
    LLVMTypeRef i32 = i32_of(part[0]);
    if (n == 1)
        return part[0];
    if (!ll_is_vector(part[0])) {
        LLVMValueRef v = LLVMGetPoison(LLVMVectorType(LLVMTypeOf(part[0]), n));
        for (unsigned i = 0; i < n; i++)
            v = LLVMBuildInsertElement(b, v, part[i], ll_int(i32, i), "");
        return v;
    }
    for (; n > 1; n /= 2)
        for (unsigned i = 0; i < n / 2; i++)
            part[i] =
                LLVMBuildShuffleVector(b, part[2 * i], part[2 * i + 1],
                                       ll_iota(i32, 2 * ll_lanes(part[2 * i]), 0), "");
    return part[0];
}

void
ll_likely(LLVMValueRef branch, unsigned successor)
{
    LLVMContextRef cx = LLVMGetTypeContext(LLVMTypeOf(LLVMGetCondition(branch)));
    LLVMTypeRef i32 = LLVMInt32TypeInContext(cx);
    LLVMMetadataRef node[3] = {LLVMMDStringInContext2(cx, "branch_weights", 14)};
    for (unsigned i = 0; i < 2; i++) {
        LLVMValueRef weight = LLVMConstInt(i32, i == successor ? 1000 : 1, 0);
        node[i + 1] = LLVMValueAsMetadata(weight);
    }
    LLVMSetMetadata(branch, LLVMGetMDKindIDInContext(cx, "prof", 4),
                    LLVMMetadataAsValue(cx, LLVMMDNodeInContext2(cx, node, 3)));
}

void
ll_stays_loop(LLVMValueRef branch)
{
    static const char text[] = "llvm.loop.unroll.disable";
    LLVMContextRef cx = LLVMGetTypeContext(LLVMTypeOf(branch));
    LLVMMetadataRef what = LLVMMDStringInContext2(cx, text, sizeof text - 1);
    /* a loop's node names itself first, so that no two loops have the same */
    LLVMMetadataRef self = LLVMTemporaryMDNode(cx, NULL, 0);
    LLVMMetadataRef node[2] = {self, LLVMMDNodeInContext2(cx, &what, 1)};
    LLVMMetadataRef loop = LLVMMDNodeInContext2(cx, node, 2);
    LLVMMetadataReplaceAllUsesWith(self, loop);
    LLVMSetMetadata(branch, LLVMGetMDKindIDInContext(cx, "llvm.loop", 9),
                    LLVMMetadataAsValue(cx, loop));
}

static LLVMModuleRef
module_of(LLVMBuilderRef b)
{
    return LLVMGetGlobalParent(LLVMGetBasicBlockParent(LLVMGetInsertBlock(b)));
}

LLVMValueRef
ll_intrinsic(LLVMBuilderRef b, const char *name, LLVMTypeRef *over, int nover,
             LLVMValueRef *args, int nargs)
{
    LLVMModuleRef m = module_of(b);
    unsigned id = LLVMLookupIntrinsicID(name, strlen(name));
    if (!id)
        return NULL;
    LLVMValueRef fn = LLVMGetIntrinsicDeclaration(m, id, over, (size_t)nover);
    LLVMTypeRef t =
        LLVMIntrinsicGetType(LLVMGetModuleContext(m), id, over, (size_t)nover);
    return LLVMBuildCall2(b, t, fn, args, (unsigned)nargs, "");
}

LLVMValueRef
ll_intrinsic1(LLVMBuilderRef b, const char *name, LLVMValueRef *args, int n)
{
    LLVMTypeRef t = LLVMTypeOf(args[0]);
    return ll_intrinsic(b, name, &t, 1, args, n);
}

static LLVMAttributeRef
attribute(LLVMValueRef fn, const char *name, uint64_t value)
{
    LLVMContextRef cx = LLVMGetModuleContext(LLVMGetGlobalParent(fn));
    unsigned kind = LLVMGetEnumAttributeKindForName(name, strlen(name));
    return kind ? LLVMCreateEnumAttribute(cx, kind, value) : NULL;
}

void
ll_fn_attr(LLVMValueRef fn, const char *name)
{
    LLVMAttributeRef a = attribute(fn, name, 0);
    if (a)
        LLVMAddAttributeAtIndex(fn, (LLVMAttributeIndex)LLVMAttributeFunctionIndex, a);
}

void
ll_arg_attr(LLVMValueRef fn, unsigned arg, const char *name, uint64_t value)
{
    LLVMAttributeRef a = attribute(fn, name, value);
    if (a)
        LLVMAddAttributeAtIndex(fn, arg + 1, a);
}

void
ll_each_instruction(LLVMModuleRef m, void (*fn)(void *user, LLVMValueRef i), void *user)
{
    LLVMValueRef f = LLVMGetFirstFunction(m);
    for (; f; f = LLVMGetNextFunction(f))
        for (LLVMBasicBlockRef b = LLVMGetFirstBasicBlock(f); b;
             b = LLVMGetNextBasicBlock(b))
            for (LLVMValueRef i = LLVMGetFirstInstruction(b), next; i; i = next) {
                next = LLVMGetNextInstruction(i);
                fn(user, i);
            }
}

bool
ll_run_passes(LLVMModuleRef m, LLVMTargetMachineRef tm, const char *passes, char *why,
              size_t size)
{
    LLVMPassBuilderOptionsRef o = LLVMCreatePassBuilderOptions();
    LLVMErrorRef e = LLVMRunPasses(m, passes, tm, o);
    LLVMDisposePassBuilderOptions(o);
    if (!e)
        return true;
    char *text = LLVMGetErrorMessage(e);
    snprintf(why, size, "%s", text);
    LLVMDisposeErrorMessage(text);
    return false;
}

/* ---------------------------------------------------------------- older C libraries */

uint32_t __wrap_arc4random(void);

/* arc4random is glibc 2.36; LLVM names temporary files by it. */
uint32_t
__wrap_arc4random(void)
{
    uint32_t x;
    if (getrandom(&x, sizeof x, 0) == (ssize_t)sizeof x)
        return x;
    struct timespec now; /* a kernel without the call */
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint32_t)now.tv_nsec * 2654435761u;
}
