/* Math functions for GPUs, one element at a time: those of fp32, and those of fp64 where
   libclc's are far off. Here are the helpers in which they are written, and the functions
   that the files share. Multiplications and additions are fused only where gen_fma is
   called; a comparison with NaN is false. */
#ifndef SDC_CODEGEN_GEN_NV_MATH_H
#define SDC_CODEGEN_GEN_NV_MATH_H

#include "codegen/gen_nv.h"

typedef LLVMValueRef Num;

/* ---- helpers */
static inline Num
number(Gen *g, double c)
{
    return ll_float(g->f32, c);
}

static inline Num
add(Gen *g, Num a, Num b)
{
    return LLVMBuildFAdd(g->b, a, b, "");
}

static inline Num
sub(Gen *g, Num a, Num b)
{
    return LLVMBuildFSub(g->b, a, b, "");
}

static inline Num
mul(Gen *g, Num a, Num b)
{
    return LLVMBuildFMul(g->b, a, b, "");
}

static inline Num
div(Gen *g, Num a, Num b)
{
    return LLVMBuildFDiv(g->b, a, b, "");
}

static inline Num
times(Gen *g, Num a, double c)
{
    return mul(g, a, ll_float(LLVMTypeOf(a), c));
}

static inline Num
plus(Gen *g, Num a, double c)
{
    return add(g, a, ll_float(LLVMTypeOf(a), c));
}

static inline Num
minus(Gen *g, Num a)
{
    return LLVMBuildFNeg(g->b, a, "");
}

/* |a| */
static inline Num
size_of(Gen *g, Num a)
{
    return ll_intrinsic1(g->b, "llvm.fabs", &a, 1);
}

static inline Num
with_sign(Gen *g, Num size, Num sign)
{
    Num in[2] = {size, sign};
    return ll_intrinsic1(g->b, "llvm.copysign", in, 2);
}

/* The minimum and maximum of a and c; NaN if a is NaN. */
static inline Num
lesser(Gen *g, Num a, double c)
{
    Num in[2] = {a, ll_float(LLVMTypeOf(a), c)};
    return ll_intrinsic1(g->b, "llvm.minimum", in, 2);
}

static inline Num
greater(Gen *g, Num a, double c)
{
    Num in[2] = {a, ll_float(LLVMTypeOf(a), c)};
    return ll_intrinsic1(g->b, "llvm.maximum", in, 2);
}

static inline LLVMValueRef
less(Gen *g, Num a, double c)
{
    return LLVMBuildFCmp(g->b, LLVMRealOLT, a, ll_float(LLVMTypeOf(a), c), "");
}

static inline LLVMValueRef
more(Gen *g, Num a, double c)
{
    return LLVMBuildFCmp(g->b, LLVMRealOGT, a, ll_float(LLVMTypeOf(a), c), "");
}

static inline LLVMValueRef
equal(Gen *g, Num a, double c)
{
    return LLVMBuildFCmp(g->b, LLVMRealOEQ, a, ll_float(LLVMTypeOf(a), c), "");
}

static inline LLVMValueRef
either(Gen *g, LLVMValueRef a, LLVMValueRef b)
{
    return LLVMBuildOr(g->b, a, b, "");
}

static inline LLVMValueRef
both(Gen *g, LLVMValueRef a, LLVMValueRef b)
{
    return LLVMBuildAnd(g->b, a, b, "");
}

static inline LLVMValueRef
where(Gen *g, LLVMValueRef condition, LLVMValueRef a, LLVMValueRef b)
{
    return LLVMBuildSelect(g->b, condition, a, b, "");
}

static inline LLVMValueRef
bits_of(Gen *g, Num a)
{
    return LLVMBuildBitCast(g->b, a, g->i32, "");
}

static inline Num
of_bits(Gen *g, LLVMValueRef a)
{
    return LLVMBuildBitCast(g->b, a, g->f32, "");
}

/* Calls the function `name` of the module, which `body` generates on the first call: for
   long code that is needed in many places. */
static inline Num
nv_called(Gen *g, const char *name, Num (*body)(Gen *g, Num x), Num x)
{
    LLVMValueRef fn = LLVMGetNamedFunction(g->mod, name);
    LLVMTypeRef of = LLVMTypeOf(x), type = LLVMFunctionType(of, &of, 1, 0);
    if (!fn) {
        LLVMBasicBlockRef back = LLVMGetInsertBlock(g->b);
        fn = LLVMAddFunction(g->mod, name, type);
        LLVMSetLinkage(fn, LLVMInternalLinkage);
        ll_fn_attr(fn, "noinline");
        ll_fn_attr(fn, "nounwind");
        LLVMPositionBuilderAtEnd(g->b, LLVMAppendBasicBlockInContext(g->cx, fn, ""));
        LLVMBuildRet(g->b, body(g, LLVMGetParam(fn, 0)));
        LLVMPositionBuilderAtEnd(g->b, back);
    }
    return LLVMBuildCall2(g->b, type, fn, &x, 1, "");
}

/* ---- gen_nv_exp.c: the hardware's approximations; subnormal results become 0. Relative
   errors are at most 2^-22 for ex2, 2^-23 for rcp and root. The error of lg2 is 2^-22,
   absolute for x from 1/2 to 2 and relative elsewhere. */
Num nv_ex2(Gen *g, Num x);         /* 2^x */
Num nv_ex2_gradual(Gen *g, Num x); /* with subnormal results: three instructions more */
Num nv_lg2(Gen *g, Num x);         /* log2 x */
Num nv_rcp(Gen *g, Num x);         /* 1 / x */
Num nv_root(Gen *g, Num x);        /* square root */
Num nv_rsqrt(Gen *g, Num x);       /* 1 / square root */
/* For x >= 0 with exponent e: *factor gets 2^-e, from 2^-126 to 2^126, and 2^e is
   returned. x * *factor is infinity or 0 if x is. */
Num nv_unscaled(Gen *g, Num x, Num *factor);
/* y * 2^n, rounded once, by two factors: n from -252 to 254. */
Num nv_scaled(Gen *g, Num y, LLVMValueRef n);
/* e^(x + low) is the result * 2^n, within 0.6 ulp, for |x| < 2^20 and low less than an
   ulp of x. */
Num nv_exponential(Gen *g, Num x, Num low, LLVMValueRef *n);

/* ---- gen_nv_log.c */
typedef enum LogBase { LOG_E, LOG_2, LOG_10 } LogBase;
Num nv_log(Gen *g, Num x, LogBase base);
Num nv_pow(Gen *g, Num *x); /* x[0] to the power of x[1] */
/* log2 of a > 0 as *high + *low, with an error below 2^-30. */
void nv_log2_pair(Gen *g, Num a, Num *high, Num *low);
/* 2^(high + low) is the result * 2^n, where nv_scaled makes infinity or 0 of sums beyond
   +-200. */
Num nv_power_of_pair(Gen *g, Num high, Num low, LLVMValueRef *n);

/* ---- gen_nv_exp64.c: e^x of fp64, or 2^x */
Num nv_exp64(Gen *g, Num x, bool of_two);

/* ---- gen_nv_libm.c: calls a function of libclc, which must be there */
Num nv_library(Gen *g, const char *mangled, Num *x, int n);

/* ---- gen_nv_trig.c */
/* sin(x + quadrant * pi/2) */
Num nv_sine(Gen *g, Num x, int quadrant);

/* Functions of ir/math.def that this target computes itself, in fp32 (nv_tgamma64: fp64);
   x: the arguments. */
typedef Num NvMath(Gen *g, Num *x);
NvMath nv_tan, nv_asin, nv_acos, nv_atan, nv_atan2;
NvMath nv_expm1, nv_exp10, nv_sinh, nv_cosh, nv_tanh;
NvMath nv_log1p_of, nv_log10, nv_asinh, nv_acosh, nv_atanh;
NvMath nv_tgamma, nv_tgamma64, nv_lgamma, nv_erfc, nv_cbrt, nv_hypot;
NvMath nv_fmod, nv_remainder;
NvMath nv_fast_sin, nv_fast_cos, nv_fast_tan, nv_fast_log, nv_fast_log2, nv_fast_log10;
NvMath nv_fast_exp10, nv_fast_pow;

#endif
