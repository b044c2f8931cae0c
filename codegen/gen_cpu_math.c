/* Math functions on the CPU: LLVM intrinsics where the machine has an instruction,
   vector functions of libmvec for strips (a narrow strip is widened with harmless
   lanes), libm for scalars and for what libmvec lacks. exp and exp2 of f32 are inline,
   see gen_cpu_exp.c. */
#include "codegen/gen_cpu.h"

#include "ir/base/util.h"

#include <stdio.h>
#include <string.h>

typedef struct Fn {
    const char *name;
    int arity;
} Fn;

static const Fn mvec[] = {
#define MVEC(name, arity) {name, arity},
#include "codegen/cpu_math.def"
};

/* The libm name (f64 form) behind an op; NULL when there is none. */
static const char *
base_name(const Op *op, int *arity, bool *int_second)
{
    static const struct {
        const char *fn, *glibc;
        int arity;
        char kind;
    } math[] = {
#define MATH(id, name, n, f32, f64, class) {name, f64, n, #class[0]},
#include "ir/math.def"
    };
    static const char *const plain[OP_COUNT] = {
        [OP_EXP] = "exp",   [OP_EXP2] = "exp2", [OP_LOG] = "log", [OP_LOG2] = "log2",
        [OP_SIN] = "sin",   [OP_COS] = "cos",   [OP_ERF] = "erf", [OP_REMF] = "fmod",
    };
    *int_second = false;
    *arity = op->noperand;
    if (op->kind != OP_LIBM)
        return plain[op->kind];
    Name fn = attr_str(&op->attrs, ATTR_FN);
    for (int i = 0; fn && i < COUNT_OF(math); i++) {
        if (strcmp(math[i].fn, fn) || !math[i].glibc[0] || math[i].arity != op->noperand)
            continue;
        *int_second = math[i].kind == 'L';
        return math[i].glibc;
    }
    return NULL;
}

static LLVMValueRef
declare(Gen *g, const char *name, LLVMTypeRef ret, LLVMTypeRef *args, int n,
        LLVMTypeRef *type)
{
    *type = LLVMFunctionType(ret, args, (unsigned)n, 0);
    LLVMValueRef fn = LLVMGetNamedFunction(g->mod, name);
    if (fn)
        return fn;
    fn = LLVMAddFunction(g->mod, name, *type);
    ll_fn_attr(fn, "nounwind");
    ll_fn_attr(fn, "willreturn");
    LLVMContextRef cx = g->cx;
    unsigned memory = LLVMGetEnumAttributeKindForName("memory", 6);
    LLVMAddAttributeAtIndex(fn, (LLVMAttributeIndex)LLVMAttributeFunctionIndex,
                            LLVMCreateEnumAttribute(cx, memory, 0)); /* touches none */
    return fn;
}

/* libmvec, a machine vector at a time. */
static LLVMValueRef
call_mvec(Gen *g, const char *base, int arity, ScalarKind k, LLVMValueRef *x)
{
    const Cpu *c = g->priv;
    unsigned lanes = ll_lanes(x[0]), sse = k == SK_F32 ? 4 : 2;
    bool whole = c->avx512 && lanes >= 4 * sse;
    unsigned width = whole ? 4 * sse : c->avx2 ? 2 * sse : sse;
    char unit = whole ? 'e' : c->avx2 ? 'd' : 'b';
    LLVMTypeRef vec = LLVMVectorType(ll_scalar(g->cx, k), width), type;
    LLVMTypeRef types[2] = {vec, vec};
    char name[64];
    snprintf(name, sizeof name, "_ZGV%cN%u%s_%s%s", unit, width,
             arity == 2 ? "vv" : "v", base, k == SK_F32 ? "f" : "");
    LLVMValueRef fn = declare(g, name, vec, types, arity, &type);
    LLVMValueRef part[64];
    unsigned n = lanes > width ? lanes / width : 1;
    for (unsigned i = 0; i < n; i++) {
        LLVMValueRef args[2];
        for (int a = 0; a < arity; a++) {
            args[a] = lanes == width ? x[a] : ll_extract(g->b, x[a], i * width, width);
            if (lanes < width) /* the extra lanes repeat lane 0 */
                args[a] = LLVMBuildFreeze(g->b, args[a], "");
        }
        part[i] = LLVMBuildCall2(g->b, type, fn, args, (unsigned)arity, "");
    }
    LLVMValueRef v = ll_concat(g->b, part, n);
    return lanes < width ? ll_extract(g->b, v, 0, lanes) : v;
}

static LLVMValueRef
call_scalar(Gen *g, const char *base, int arity, ScalarKind k, LLVMValueRef *x,
            bool int_arg)
{
    LLVMTypeRef t = ll_scalar(g->cx, k), type;
    LLVMTypeRef types[2] = {t, int_arg ? g->i32 : t};
    char name[64];
    snprintf(name, sizeof name, "%s%s", base, k == SK_F32 ? "f" : "");
    LLVMValueRef fn = declare(g, name, t, types, arity, &type);
    LLVMValueRef part[64];
    unsigned lanes = ll_lanes(x[0]);
    for (unsigned i = 0; i < lanes && i < 64; i++) {
        LLVMValueRef args[2];
        for (int a = 0; a < arity; a++)
            args[a] = ll_extract(g->b, x[a], i, 1);
        part[i] = LLVMBuildCall2(g->b, type, fn, args, (unsigned)arity, "");
    }
    return ll_concat(g->b, part, lanes);
}

static LLVMValueRef
call_intrinsic(Gen *g, const char *base, LLVMValueRef *x, int arity)
{
    static const struct {
        const char *name, *intrinsic;
    } known[] = {
        {"copysign", "llvm.copysign"},   {"rint", "llvm.rint"},
        {"nearbyint", "llvm.nearbyint"}, {"round", "llvm.round"},
        {"trunc", "llvm.trunc"},
    };
    for (int i = 0; i < COUNT_OF(known); i++)
        if (strcmp(known[i].name, base) == 0)
            return ll_intrinsic1(g->b, known[i].intrinsic, x, arity);
    return NULL;
}

static LLVMValueRef
power_of_two(Gen *g, LLVMValueRef x)
{
    return cpu_exp(g, true, true, x);
}

LLVMValueRef
gen_cpu_math(Gen *g, const Op *op, ScalarKind k, LLVMValueRef *x)
{
    int arity;
    bool int_second;
    const char *base = base_name(op, &arity, &int_second);
    if (!base || arity > 2 || (k != SK_F32 && k != SK_F64))
        return NULL;
    if (k == SK_F32 && (op->kind == OP_EXP || op->kind == OP_EXP2))
        return cpu_exp(g, op->kind == OP_EXP2, attr_has(&op->attrs, ATTR_NONPOSITIVE),
                       x[0]);
    if (k == SK_F32 && op->kind == OP_ERF)
        return attr_has(&op->attrs, ATTR_BESIDE_ONE)
                   ? gen_erf_beside_one(g, x[0], power_of_two)
                   : gen_erf(g, x[0], power_of_two);
    LLVMValueRef arg[2] = {x[0], arity == 2 ? x[1] : NULL};
    bool powi = int_second && strcmp(base, "pow") == 0;
    if (powi)
        arg[1] = LLVMBuildSIToFP(g->b, x[1], LLVMTypeOf(x[0]), "");
    LLVMValueRef v = call_intrinsic(g, base, arg, arity);
    if (v)
        return v;
    for (int i = 0; i < COUNT_OF(mvec) && ll_lanes(x[0]) > 1; i++)
        if (strcmp(mvec[i].name, base) == 0 && mvec[i].arity == arity)
            return call_mvec(g, base, arity, k, arg);
    return call_scalar(g, base, arity, k, arg, int_second && !powi);
}
