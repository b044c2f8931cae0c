/* e^x and 2^x of fp64 on a GPU, without branches: x = n log(2) + r, |r| <= log(2) / 2,
   and a polynomial of r, within 0.8 ulp; half the instructions of libclc's. */
#include "codegen/gen_nv_math.h"

#include "ir/base/util.h"

static const double log2_e = 1.4426950408889634, log_2 = 0.69314718055994529,
                    log_2_low = 2.3190468138462996e-17;

/* The double 2^n of -1022 <= n <= 1023 */
static Num
power_of_two(Gen *g, LLVMValueRef n)
{
    n = LLVMBuildAdd(g->b, n, ll_int(g->i32, 1023), "");
    n = LLVMBuildShl(g->b, LLVMBuildZExt(g->b, n, g->i64, ""), ll_int(g->i64, 52), "");
    return LLVMBuildBitCast(g->b, n, g->f64, "");
}

Num
nv_exp64(Gen *g, Num x, bool of_two)
{
    static const double c[] = {1.0,
                               1.0,
                               0.50000000000000011,
                               0.16666666666666674,
                               0.041666666666621215,
                               0.0083333333333230238,
                               0.0013888888918658149,
                               0.00019841269883383962,
                               2.4801519061881779e-5,
                               2.7557246815697061e-6,
                               2.7621127483540152e-7,
                               2.5108618469586914e-8};
    double most = of_two ? 1025 : 711, least = of_two ? -1077 : -747;
    x = where(g, more(g, x, most), ll_float(g->f64, most), x);
    x = where(g, less(g, x, least), ll_float(g->f64, least), x);
    /* the last bits of a number that large are n */
    Num turn = ll_float(g->f64, 0x1.8p52);
    Num t = of_two ? add(g, x, turn) : gen_fma(g, x, ll_float(g->f64, log2_e), turn);
    LLVMValueRef n = LLVMBuildBitCast(g->b, t, g->i64, "");
    n = LLVMBuildTrunc(g->b, n, g->i32, "");
    Num whole = sub(g, t, turn), r;
    if (of_two) {
        Num f = sub(g, x, whole);
        r = gen_fma(g, f, ll_float(g->f64, log_2), times(g, f, log_2_low));
    } else {
        r = gen_fma(g, whole, ll_float(g->f64, -log_2), x);
        r = gen_fma(g, whole, ll_float(g->f64, -log_2_low), r);
    }
    Num p = gen_polynomial(g, r, c, COUNT_OF(c));
    LLVMValueRef half = LLVMBuildAShr(g->b, n, ll_int(g->i32, 1), "");
    p = mul(g, p, power_of_two(g, half));
    return mul(g, p, power_of_two(g, LLVMBuildSub(g->b, n, half, "")));
}
