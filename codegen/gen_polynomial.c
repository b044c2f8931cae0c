/* Functions that are polynomials on all targets: f32, scalars or vectors. */
#include "codegen/gen.h"

LLVMValueRef
gen_fma(Gen *g, LLVMValueRef a, LLVMValueRef b, LLVMValueRef c)
{
    LLVMValueRef args[3] = {a, b, c};
    return ll_intrinsic1(g->b, "llvm.fma", args, 3);
}

LLVMValueRef
gen_polynomial(Gen *g, LLVMValueRef x, const double *c, int n)
{
    LLVMValueRef r = ll_float(LLVMTypeOf(x), c[n - 1]);
    for (int i = n - 2; i >= 0; i--)
        r = gen_fma(g, r, x, ll_float(LLVMTypeOf(x), c[i]));
    return r;
}

/* Near 0 x + x p(x^2), from 1 on 1 - 2^(t q(t)) of t = |x|, both fitted: within 1.2 ulp,
   1.7 where the hardware's 2^x is as far off as it may be. A fifth of the instructions of
   libclc's, whose every branch would be computed. NaN stays one: it is not above 4. */
LLVMValueRef
gen_erf(Gen *g, LLVMValueRef x, GenUnary *exp2_of)
{
    static const double p[] = {0.128379166,   -0.37612626,   0.112835854,
                               -0.026853811,  0.00518832775, -0.000801019254,
                               7.85385782e-05};
    static const double q[] = {-1.62805259, -0.917310894,  -0.151650548,
                               0.03289124,  -0.0045977952, 0.00030389434};
    LLVMTypeRef type = LLVMTypeOf(x);
    LLVMValueRef one = ll_float(type, 1.0), most = ll_float(type, 4.0);
    LLVMValueRef size = ll_intrinsic1(g->b, "llvm.fabs", &x, 1);
    LLVMValueRef near = gen_polynomial(g, LLVMBuildFMul(g->b, x, x, ""), p, 7);
    near = gen_fma(g, near, x, x);
    LLVMValueRef above = LLVMBuildFCmp(g->b, LLVMRealOGT, size, most, "");
    LLVMValueRef t = gen_select(g, above, most, size);
    LLVMValueRef rest = LLVMBuildFMul(g->b, gen_polynomial(g, t, q, 6), t, "");
    rest = exp2_of(g, rest);
    LLVMValueRef far[2] = {LLVMBuildFSub(g->b, one, rest, ""), x};
    far[0] = ll_intrinsic1(g->b, "llvm.copysign", far, 2);
    LLVMValueRef small = LLVMBuildFCmp(g->b, LLVMRealOLT, size, one, "");
    return gen_select(g, small, near, far[0]);
}

/* 1 - 2^(t q(t)) for all t = |x|: where 2^-24 is as good as 0. The fit itself is within
   2^-25.9. */
LLVMValueRef
gen_erf_beside_one(Gen *g, LLVMValueRef x, GenUnary *exp2_of)
{
    static const double q[] = {-1.6279085874557495,    -0.9184163808822632,
                               -0.1484816074371338,    0.02825368009507656,
                               -0.0007746292394585907, -0.001489441841840744,
                               0.00044550769962370396, -4.535860352916643e-05};
    LLVMTypeRef type = LLVMTypeOf(x);
    LLVMValueRef most = ll_float(type, 4.0);
    LLVMValueRef size = ll_intrinsic1(g->b, "llvm.fabs", &x, 1);
    LLVMValueRef above = LLVMBuildFCmp(g->b, LLVMRealOGT, size, most, "");
    LLVMValueRef t = gen_select(g, above, most, size);
    LLVMValueRef rest = LLVMBuildFMul(g->b, gen_polynomial(g, t, q, 8), t, "");
    rest = exp2_of(g, rest);
    LLVMValueRef far[2] = {LLVMBuildFSub(g->b, ll_float(type, 1.0), rest, ""), x};
    return ll_intrinsic1(g->b, "llvm.copysign", far, 2);
}
