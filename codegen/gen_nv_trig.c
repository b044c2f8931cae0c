/* Sine and its like on a GPU, fp32. The multiple of pi/2 is taken off in double
   precision; what a number beyond 10^13 leaves of it comes out of integer products, in a
   function behind a branch that hardly any program takes. The function gives the sine
   itself: were the branches joined before the polynomials, LLVM would move those of all
   elements of a thread behind the last branch, with two registers for each remainder. */
#include "codegen/gen_nv_math.h"

enum { PI_WORDS = 7 };

/* A function of r + q pi/2, |r| <= pi/4. */
typedef Num (*OfRest)(Gen *g, Num r, LLVMValueRef q);
typedef Num (*OfNumber)(Gen *g, Num x);

/* sin or cos of r, by whether the quadrant q is odd; negated for q of 2, 3. */
static Num
sine(Gen *g, Num r, LLVMValueRef q)
{
    static const double sin_c[] = {-1.6666654611e-1, 8.3321608736e-3, -1.9515295891e-4};
    static const double cos_c[] = {1.0, -0.5, 4.166664568298827e-2, -1.388731625493765e-3,
                                   2.443315711809948e-5};
    Num s = mul(g, r, r);
    LLVMValueRef odd = LLVMBuildTrunc(g->b, q, g->i1, "");
    Num sin_r = gen_fma(g, gen_polynomial(g, s, sin_c, 3), mul(g, s, r), r);
    Num y = where(g, odd, gen_polynomial(g, s, cos_c, 5), sin_r);
    LLVMValueRef half = LLVMBuildAnd(g->b, q, ll_int(g->i32, 2), "");
    LLVMValueRef back = LLVMBuildICmp(g->b, LLVMIntNE, half, ll_int(g->i32, 0), "");
    return where(g, back, minus(g, y), y);
}

static Num
cosine(Gen *g, Num r, LLVMValueRef q)
{
    return sine(g, r, LLVMBuildAdd(g->b, q, ll_int(g->i32, 1), ""));
}

static Num
tangent(Gen *g, Num r, LLVMValueRef q)
{
    static const double c[] = {0.333331406,  0.133391827,   0.0533821881,
                               0.0245260466, 0.00297677121, 0.00946475007};
    Num s = mul(g, r, r);
    Num t = gen_fma(g, mul(g, s, r), gen_polynomial(g, s, c, 6), r);
    LLVMValueRef odd = LLVMBuildTrunc(g->b, q, g->i1, "");
    Num v = nv_rcp(g, t); /* and a step of Newton's */
    v = gen_fma(g, gen_fma(g, minus(g, v), t, number(g, 1.0)), v, v);
    return where(g, odd, minus(g, v), t);
}

static LLVMValueRef
word_of(Gen *g, LLVMValueRef table, LLVMTypeRef type, LLVMValueRef at, int next)
{
    LLVMValueRef index[2] = {ll_int(g->i32, 0),
                             LLVMBuildAdd(g->b, at, ll_int(g->i32, next), "")};
    LLVMValueRef p = LLVMBuildInBoundsGEP2(g->b, type, table, index, 2, "");
    return LLVMBuildLoad2(g->b, g->i32, p, "");
}

/* x = m 2^e with a whole m of 24 bits: m times the 96 bits of 2/pi whose first has the
   weight 2 / 2^e. Of the product's first 64 bits, which are returned, the first two are
   the quadrant, the others what is left in quarters of a turn. */
static LLVMValueRef
far_turns(Gen *g, Num x)
{
    static const uint32_t two_over_pi[PI_WORDS] = {0xa2f9836e, 0x4e441529, 0xfc2757d1,
                                                   0xf534ddc0, 0xdb629599, 0x3c439041,
                                                   0xfe5163ab};
    LLVMValueRef words[PI_WORDS];
    for (int i = 0; i < PI_WORDS; i++)
        words[i] = ll_int(g->i32, (int32_t)two_over_pi[i]);
    LLVMValueRef list = LLVMConstArray2(g->i32, words, PI_WORDS);
    LLVMTypeRef array = LLVMTypeOf(list);
    LLVMValueRef table = LLVMGetNamedGlobal(g->mod, "two_over_pi");
    if (!table) {
        table = LLVMAddGlobalInAddressSpace(g->mod, array, "two_over_pi", 1);
        LLVMSetInitializer(table, list);
        LLVMSetGlobalConstant(table, 1);
        LLVMSetLinkage(table, LLVMInternalLinkage);
    }
    LLVMValueRef bits = bits_of(g, x), w[4];
    LLVMValueRef m = LLVMBuildAnd(g->b, bits, ll_int(g->i32, 0x7fffff), "");
    m = LLVMBuildZExt(g->b, LLVMBuildOr(g->b, m, ll_int(g->i32, 0x800000), ""), g->i64,
                      "");
    LLVMValueRef e = LLVMBuildLShr(g->b, bits, ll_int(g->i32, 23), "");
    e = LLVMBuildAnd(g->b, e, ll_int(g->i32, 255), "");
    /* e - 150, less the two bits in front of the point that the window has */
    e = LLVMBuildSub(g->b, e, ll_int(g->i32, 152), "");
    LLVMValueRef at = LLVMBuildLShr(g->b, e, ll_int(g->i32, 5), "");
    at = LLVMBuildAnd(g->b, at, ll_int(g->i32, 3), "");
    for (int i = 0; i < 4; i++)
        w[i] = word_of(g, table, array, at, i);
    LLVMValueRef carry = ll_int(g->i64, 0), p[3];
    for (int i = 2; i >= 0; i--) {
        LLVMValueRef in[3] = {w[i], w[i + 1], e};
        LLVMValueRef window = ll_intrinsic1(g->b, "llvm.fshl", in, 3);
        window = LLVMBuildZExt(g->b, window, g->i64, "");
        p[i] = LLVMBuildAdd(g->b, LLVMBuildMul(g->b, window, m, ""), carry, "");
        carry = LLVMBuildLShr(g->b, p[i], ll_int(g->i64, 32), "");
    }
    LLVMValueRef high = LLVMBuildShl(g->b, p[0], ll_int(g->i64, 32), "");
    LLVMValueRef low = LLVMBuildAnd(g->b, p[1], ll_int(g->i64, 0xffffffff), "");
    return LLVMBuildOr(g->b, high, low, "");
}

/* Of numbers beyond 10^13: 70 instructions that a tile would repeat. */
static Num
far_away(Gen *g, Num x, OfRest of)
{
    LLVMValueRef turns = far_turns(g, x), zero = ll_int(g->i64, 0);
    LLVMValueRef part = LLVMBuildShl(g->b, turns, ll_int(g->i64, 2), "");
    LLVMValueRef quadrant = LLVMBuildLShr(g->b, turns, ll_int(g->i64, 62), "");
    LLVMValueRef up = LLVMBuildLShr(g->b, part, ll_int(g->i64, 63), "");
    quadrant = LLVMBuildAdd(g->b, quadrant, up, ""); /* rounded to the nearest */
    LLVMValueRef angle = LLVMBuildSIToFP(g->b, part, g->f64, "");
    angle = times(g, angle, 1.5707963267948966 * 0x1p-64);
    LLVMValueRef below = less(g, x, 0.0);
    angle = where(g, below, minus(g, angle), angle);
    quadrant = where(g, below, LLVMBuildSub(g->b, zero, quadrant, ""), quadrant);
    quadrant = LLVMBuildTrunc(g->b, quadrant, g->i32, "");
    /* infinite: NaN */
    angle = where(g, more(g, size_of(g, x), 0x1.fffffep127),
                  ll_float(g->f64, __builtin_nan("")), angle);
    return of(g, LLVMBuildFPTrunc(g->b, angle, g->f32, ""), quadrant);
}

static Num
far_sine(Gen *g, Num x)
{
    return far_away(g, x, sine);
}

static Num
far_cosine(Gen *g, Num x)
{
    return far_away(g, x, cosine);
}

static Num
far_tangent(Gen *g, Num x)
{
    return far_away(g, x, tangent);
}

/* The largest size that v can have, by the instructions that make it; else infinity. */
static double
most_of(LLVMValueRef v, int depth)
{
    if (LLVMIsAConstantFP(v)) {
        LLVMBool lost;
        return __builtin_fabs(LLVMConstRealGetDouble(v, &lost));
    }
    if (!LLVMIsAInstruction(v) || depth == 0)
        return __builtin_inf();
    switch (LLVMGetInstructionOpcode(v)) {
    case LLVMSIToFP:
    case LLVMUIToFP:
        return __builtin_ldexp(
            1, (int)LLVMGetIntTypeWidth(LLVMTypeOf(LLVMGetOperand(v, 0))));
    case LLVMFPExt: /* of an infinity the near way makes NaN, too */
        return LLVMGetTypeKind(LLVMTypeOf(LLVMGetOperand(v, 0))) == LLVMHalfTypeKind
                   ? 65504
                   : __builtin_inf();
    case LLVMFNeg: return most_of(LLVMGetOperand(v, 0), depth - 1);
    case LLVMFMul:
        return most_of(LLVMGetOperand(v, 0), depth - 1) *
               most_of(LLVMGetOperand(v, 1), depth - 1);
    case LLVMFAdd:
    case LLVMFSub:
        return most_of(LLVMGetOperand(v, 0), depth - 1) +
               most_of(LLVMGetOperand(v, 1), depth - 1);
    case LLVMSelect:
        return __builtin_fmax(most_of(LLVMGetOperand(v, 1), depth - 1),
                              most_of(LLVMGetOperand(v, 2), depth - 1));
    default: return __builtin_inf();
    }
}

/* Adding 1.5 * 2^52 leaves the low bits of x's multiple of pi/2 in the low bits of the
   sum; pi/2 in two parts leaves an exact remainder. */
static Num
of_angle(Gen *g, Num x, OfRest of, const char *far_name, OfNumber far)
{
    enum { DEPTH = 8 };
    const double far_from = 1e13;
    LLVMValueRef magic = ll_float(g->f64, 6755399441055744.0);
    LLVMValueRef wide = LLVMBuildFPExt(g->b, x, g->f64, "");
    LLVMValueRef sum = gen_fma(g, wide, ll_float(g->f64, 0.63661977236758138), magic);
    LLVMValueRef k = sub(g, sum, magic);
    LLVMValueRef r = gen_fma(g, k, ll_float(g->f64, -1.5707963267948966), wide);
    r = gen_fma(g, k, ll_float(g->f64, -6.123233995736766e-17), r);
    LLVMValueRef q = LLVMBuildBitCast(g->b, sum, g->i64, "");
    q = LLVMBuildTrunc(g->b, q, g->i32, "");
    Num y = of(g, LLVMBuildFPTrunc(g->b, r, g->f32, ""), q);
    if (most_of(x, DEPTH) <= far_from) /* Box-Muller's, say, or a half's */
        return y;

    LLVMValueRef large = more(g, size_of(g, x), far_from);
    LLVMBasicBlockRef here = LLVMGetInsertBlock(g->b);
    LLVMValueRef caller = LLVMGetBasicBlockParent(here);
    LLVMBasicBlockRef away = LLVMAppendBasicBlockInContext(g->cx, caller, "");
    LLVMBasicBlockRef rest = LLVMAppendBasicBlockInContext(g->cx, caller, "");
    ll_likely(LLVMBuildCondBr(g->b, large, away, rest), 1);
    LLVMPositionBuilderAtEnd(g->b, away);
    Num other = nv_called(g, far_name, far, x);
    LLVMBuildBr(g->b, rest);
    LLVMPositionBuilderAtEnd(g->b, rest);
    LLVMBasicBlockRef from[2] = {here, away};
    Num both_ways[2] = {y, other};
    y = LLVMBuildPhi(g->b, g->f32, "");
    LLVMAddIncoming(y, both_ways, from, 2);
    return y;
}

/* Within 1.6 ulp. */
Num
nv_sine(Gen *g, Num x, int quadrant)
{
    return quadrant == 0 ? of_angle(g, x, sine, "far_sine", far_sine)
                         : of_angle(g, x, cosine, "far_cosine", far_cosine);
}

Num
nv_tan(Gen *g, Num *x)
{
    return of_angle(g, x[0], tangent, "far_tangent", far_tangent);
}

/* asin(r) - r over r, of s = r^2 <= 0.335 */
static Num
arcsine_rest(Gen *g, Num s)
{
    static const double c[] = {0.166666105,  0.0750310645,  0.0440751053,
                               0.0350699052, 0.00352327432, 0.0511024855};
    return mul(g, gen_polynomial(g, s, c, 6), s);
}

/* Beyond 0.575, where pi/2 - asin is 2 asin(r): r = sqrt((1 - |x|) / 2), one step of
   Newton's behind the hardware's root, whose reciprocal is kept finite for 0. */
static Num
far_root(Gen *g, Num size)
{
    Num s = gen_fma(g, size, number(g, -0.5), number(g, 0.5));
    Num y = lesser(g, nv_rsqrt(g, s), 1e30), r = mul(g, s, y);
    return gen_fma(g, gen_fma(g, minus(g, r), r, s), times(g, y, 0.5), r);
}

Num
nv_asin(Gen *g, Num *x)
{
    Num size = size_of(g, x[0]), r = far_root(g, size);
    LLVMValueRef far = more(g, size, 0.575);
    r = where(g, far, r, size);
    Num rest = mul(g, arcsine_rest(g, mul(g, r, r)), r);
    /* pi/2 - 2 (r + rest), its lower half first */
    Num low = gen_fma(g, rest, number(g, -2.0), number(g, -4.37113883e-8));
    Num y = add(g, gen_fma(g, r, number(g, -2.0), number(g, 1.57079637)), low);
    return with_sign(g, where(g, far, y, add(g, r, rest)), x[0]);
}

Num
nv_acos(Gen *g, Num *x)
{
    Num size = size_of(g, x[0]), r = far_root(g, size);
    LLVMValueRef far = more(g, size, 0.575), below = less(g, x[0], 0.0);
    r = where(g, far, r, x[0]);
    Num rest = mul(g, arcsine_rest(g, mul(g, r, r)), r);
    /* near: pi/2 - r - rest; far: 2 (r + rest), or pi less that */
    Num factor =
        where(g, far, where(g, below, number(g, -2.0), number(g, 2.0)), number(g, -1.0));
    Num high = where(g, far, where(g, below, number(g, 3.14159274), number(g, 0.0)),
                     number(g, 1.57079637));
    Num low = times(g, high, -2.78275341e-8);
    return add(g, gen_fma(g, r, factor, high), gen_fma(g, rest, factor, low));
}

/* atan of 0 <= t <= 1, or pi/2 less that: pi/2 - t has no rounding error where it counts,
   and the lower half of pi/2 goes to what atan has beside t. */
static Num
arctangent(Gen *g, Num t, LLVMValueRef complement)
{
    static const double c[] = {-0.333331674,  0.199941471,  -0.142142847,  0.106792226,
                               -0.0758115351, 0.0435600653, -0.0165850539, 0.0029755258};
    Num s = mul(g, t, t), zero = number(g, 0.0);
    Num low = where(g, complement, number(g, 4.37113883e-8), zero);
    Num rest = gen_fma(g, gen_polynomial(g, s, c, 8), mul(g, s, t), low);
    Num other = sub(g, sub(g, number(g, 1.57079637), t), rest);
    return where(g, complement, other, add(g, t, rest));
}

Num
nv_atan(Gen *g, Num *x)
{
    Num size = size_of(g, x[0]), most = lesser(g, size, 1e30), r = nv_rcp(g, most);
    LLVMValueRef large = more(g, size, 1.0);
    r = gen_fma(g, gen_fma(g, minus(g, r), most, number(g, 1.0)), r, r); /* Newton's */
    return with_sign(g, arctangent(g, where(g, large, r, size), large), x[0]);
}

Num
nv_atan2(Gen *g, Num *x)
{
    Num a = size_of(g, x[0]), b = size_of(g, x[1]), scale, one = number(g, 1.0);
    LLVMValueRef steep = LLVMBuildFCmp(g->b, LLVMRealOGT, a, b, "");
    Num top = where(g, steep, b, a), most = where(g, steep, a, b);
    /* the quotient, of numbers whose reciprocal is none of the subnormal ones */
    nv_unscaled(g, most, &scale);
    top = mul(g, top, scale);
    most = mul(g, most, scale);
    Num r = nv_rcp(g, most), q = mul(g, top, r);
    q = gen_fma(g, gen_fma(g, minus(g, q), most, top), r, q);
    /* two infinities have the quotient 1, two zeros 0 */
    LLVMValueRef same = LLVMBuildFCmp(g->b, LLVMRealOEQ, a, b, "");
    LLVMValueRef no = either(g, equal(g, top, 0.0), equal(g, most, __builtin_inf()));
    q = where(g, no, where(g, both(g, same, more(g, top, 0.0)), one, number(g, 0.0)), q);
    Num y = arctangent(g, q, steep);
    LLVMValueRef sign =
        LLVMBuildICmp(g->b, LLVMIntSLT, bits_of(g, x[1]), ll_int(g->i32, 0), "");
    y = where(g, sign, sub(g, number(g, 3.14159274), y), y);
    LLVMValueRef none = LLVMBuildFCmp(g->b, LLVMRealUNO, a, b, "");
    return where(g, none, add(g, a, b), with_sign(g, y, x[0]));
}
