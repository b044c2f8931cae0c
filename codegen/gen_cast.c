/* Conversions, bit for bit as Triton's on the GPU: round to nearest even, every NaN
   the canonical one, 8-bit floats saturate to their largest number, float to integer
   saturates (8-bit integers by way of 16 bits). bf16 and the 8-bit floats are integers
   here, rounded by integer arithmetic. */
#include "codegen/gen.h"

#include <math.h>
#include <string.h>

/* An 8-bit float format: mantissa bits, bias, largest finite code. */
typedef struct Small {
    int mant, bias;
    int max;
} Small;

static LLVMValueRef
bits_of(Gen *g, LLVMValueRef x)
{
    LLVMTypeRef e = ll_elem(x);
    LLVMTypeRef to = e == g->f64   ? g->i64
                     : e == g->f32 ? g->i32
                                   : LLVMInt16TypeInContext(g->cx);
    return LLVMBuildBitCast(g->b, x, ll_like(x, to), "");
}

static LLVMValueRef
op2(Gen *g, LLVMOpcode k, LLVMValueRef x, int64_t c)
{
    return LLVMBuildBinOp(g->b, k, x, ll_int(LLVMTypeOf(x), c), "");
}

LLVMValueRef
gen_select(Gen *g, LLVMValueRef c, LLVMValueRef x, LLVMValueRef y)
{
    return LLVMBuildSelect(g->b, c, x, y, "");
}

static LLVMValueRef
is_nan(Gen *g, LLVMValueRef x)
{
    return LLVMBuildFCmp(g->b, LLVMRealUNO, x, x, "");
}

static LLVMValueRef
fabs_of(Gen *g, LLVMValueRef x)
{
    return ll_intrinsic1(g->b, "llvm.fabs", &x, 1);
}

/* f64 to f32 rounded to odd: a further rounding to fewer bits is then the right one. */
static LLVMValueRef
narrow_odd(Gen *g, LLVMValueRef x)
{
    LLVMTypeRef f32 = ll_like(x, g->f32);
    LLVMValueRef y = LLVMBuildFPTrunc(g->b, x, f32, "");
    LLVMValueRef back = LLVMBuildFPExt(g->b, y, LLVMTypeOf(x), "");
    LLVMValueRef exact = LLVMBuildFCmp(g->b, LLVMRealUEQ, x, back, "");
    LLVMValueRef above =
        LLVMBuildFCmp(g->b, LLVMRealOGT, fabs_of(g, back), fabs_of(g, x), "");
    LLVMValueRef bits = bits_of(g, y);
    LLVMValueRef down = gen_select(g, above, op2(g, LLVMSub, bits, 1), bits);
    LLVMValueRef odd = op2(g, LLVMOr, down, 1);
    return LLVMBuildBitCast(g->b, gen_select(g, exact, bits, odd), f32, "");
}

static LLVMValueRef
to_f16(Gen *g, LLVMValueRef x)
{
    LLVMTypeRef half = ll_like(x, ll_scalar(g->cx, SK_F16));
    LLVMValueRef h = LLVMBuildFPTrunc(g->b, x, half, "");
    LLVMValueRef nan =
        LLVMConstBitCast(ll_int(ll_like(x, LLVMInt16TypeInContext(g->cx)), 0x7fff), half);
    return gen_select(g, is_nan(g, x), nan, h);
}

LLVMValueRef
gen_to_bf16(Gen *g, LLVMValueRef x)
{
    LLVMValueRef bits = bits_of(g, x);
    LLVMValueRef lsb = op2(g, LLVMAnd, op2(g, LLVMLShr, bits, 16), 1);
    LLVMValueRef r = LLVMBuildAdd(g->b, op2(g, LLVMAdd, bits, 0x7fff), lsb, "");
    r = op2(g, LLVMLShr, r, 16);
    r = gen_select(g, is_nan(g, x), ll_int(LLVMTypeOf(r), 0x7fff), r);
    return LLVMBuildTrunc(g->b, r, ll_like(x, LLVMInt16TypeInContext(g->cx)), "");
}

/* f32 to an 8-bit format. Normal numbers: rebias and round the mantissa as an integer.
   Below: adding 2^k makes the adder round to a multiple of the smallest number. */
static LLVMValueRef
to_small(Gen *g, LLVMValueRef x, Small f)
{
    LLVMValueRef bits = bits_of(g, x);
    LLVMTypeRef i32 = LLVMTypeOf(bits);
    LLVMValueRef sign = op2(g, LLVMAnd, op2(g, LLVMLShr, bits, 24), 0x80);
    LLVMValueRef a = op2(g, LLVMAnd, bits, 0x7fffffff);
    int drop = 23 - f.mant;
    LLVMValueRef lsb = op2(g, LLVMAnd, op2(g, LLVMLShr, a, drop), 1);
    LLVMValueRef n = LLVMBuildAdd(g->b, a, lsb, "");
    n = op2(g, LLVMAdd, n, (1 << (drop - 1)) - 1 - ((127 - f.bias) << 23));
    n = op2(g, LLVMLShr, n, drop);
    double magic = ldexp(1.0, 1 - f.bias - f.mant + 23);
    LLVMTypeRef f32 = LLVMTypeOf(x);
    LLVMValueRef m = ll_float(f32, magic);
    LLVMValueRef s = LLVMBuildFAdd(g->b, LLVMBuildBitCast(g->b, a, f32, ""), m, "");
    s = LLVMBuildSub(g->b, bits_of(g, s), LLVMConstBitCast(m, i32), "");
    LLVMValueRef small = LLVMBuildICmp(g->b, LLVMIntULT, a,
                                       ll_int(i32, (int64_t)(128 - f.bias) << 23), "");
    LLVMValueRef r = gen_select(g, small, s, n);
    LLVMValueRef big = LLVMBuildICmp(
        g->b, LLVMIntUGT, a, ll_int(i32, (int64_t)(127 - f.bias + 32) << 23), "");
    LLVMValueRef over = LLVMBuildICmp(g->b, LLVMIntSGT, r, ll_int(i32, f.max), "");
    over = LLVMBuildOr(g->b, over, big, "");
    r = gen_select(g, over, ll_int(i32, f.max), r);
    r = LLVMBuildOr(g->b, r, sign, "");
    r = gen_select(g, is_nan(g, x), ll_int(i32, 0x7f), r);
    return LLVMBuildTrunc(g->b, r, ll_like(x, g->i8), "");
}

/* e4m3 with bias 15 is the top of a half: clamped to 1.75, rounded half up. */
static LLVMValueRef
to_e4b15(Gen *g, LLVMValueRef x)
{
    LLVMValueRef h = bits_of(g, to_f16(g, x));
    LLVMValueRef sign = op2(g, LLVMAnd, op2(g, LLVMLShr, h, 8), 0x80);
    LLVMValueRef a = op2(g, LLVMAnd, h, 0x7fff);
    LLVMValueRef over =
        LLVMBuildICmp(g->b, LLVMIntUGT, a, ll_int(LLVMTypeOf(a), 0x3f00), "");
    a = gen_select(g, over, ll_int(LLVMTypeOf(a), 0x3f00), a);
    a = op2(g, LLVMLShr, op2(g, LLVMAdd, a, 0x40), 7);
    a = LLVMBuildOr(g->b, a, sign, "");
    return LLVMBuildTrunc(g->b, a, ll_like(x, g->i8), "");
}

static LLVMValueRef
from_f32(Gen *g, ScalarKind to, LLVMValueRef x)
{
    switch (to) {
    case SK_F16: return to_f16(g, x);
    case SK_BF16: return gen_to_bf16(g, x);
    case SK_F8E5: return to_small(g, x, (Small){2, 15, 0x7b});
    case SK_F8E4: return to_small(g, x, (Small){3, 7, 0x7e});
    case SK_F8E4B15: return to_e4b15(g, x);
    case SK_F64: return LLVMBuildFPExt(g->b, x, ll_like(x, g->f64), "");
    default: return x;
    }
}

/* 8 bits moved to the top of a half. */
static LLVMValueRef
half_top(Gen *g, LLVMValueRef x, int shift)
{
    LLVMTypeRef i16 = ll_like(x, LLVMInt16TypeInContext(g->cx));
    LLVMValueRef w = LLVMBuildZExt(g->b, x, i16, "");
    LLVMValueRef v = op2(g, LLVMShl, w, shift);
    if (shift < 8) {
        LLVMValueRef sign = op2(g, LLVMShl, op2(g, LLVMAnd, w, 0x80), 8);
        v = LLVMBuildOr(g->b, op2(g, LLVMAnd, v, 0x3fff), sign, "");
    }
    v = LLVMBuildBitCast(g->b, v, ll_like(x, ll_scalar(g->cx, SK_F16)), "");
    return LLVMBuildFPExt(g->b, v, ll_like(x, g->f32), "");
}

static LLVMValueRef
from_e4(Gen *g, LLVMValueRef x)
{
    LLVMTypeRef i32 = ll_like(x, g->i32), f32 = ll_like(x, g->f32);
    LLVMValueRef w = LLVMBuildZExt(g->b, x, i32, "");
    LLVMValueRef sign = op2(g, LLVMShl, op2(g, LLVMAnd, w, 0x80), 24);
    LLVMValueRef a = op2(g, LLVMAnd, w, 0x7f);
    LLVMValueRef v = LLVMBuildBitCast(g->b, op2(g, LLVMShl, a, 20), f32, "");
    v = LLVMBuildFMul(g->b, v, ll_float(f32, ldexp(1.0, 120)), "");
    v = LLVMBuildOr(g->b, bits_of(g, v), sign, "");
    LLVMValueRef nan = LLVMBuildICmp(g->b, LLVMIntEQ, a, ll_int(i32, 0x7f), "");
    v = gen_select(g, nan, ll_int(i32, 0x7fc00000), v);
    return LLVMBuildBitCast(g->b, v, f32, "");
}

static LLVMValueRef
to_f32(Gen *g, ScalarKind from, LLVMValueRef x)
{
    LLVMTypeRef f32 = ll_like(x, g->f32);
    switch (from) {
    case SK_F16: return LLVMBuildFPExt(g->b, x, f32, "");
    case SK_BF16: {
        LLVMValueRef w = LLVMBuildZExt(g->b, x, ll_like(x, g->i32), "");
        return LLVMBuildBitCast(g->b, op2(g, LLVMShl, w, 16), f32, "");
    }
    case SK_F8E5: return half_top(g, x, 8);
    case SK_F8E4: return from_e4(g, x);
    case SK_F8E4B15: return half_top(g, x, 7);
    default: return x;
    }
}

/* The product is exact in f64. The sum is not always, and neither is f32's: a second
   rounding could then begin at the middle of two numbers that the first one made. So what
   the sum leaves out (Knuth's two-sum) makes its last bit odd, and the conversion, which
   passes f32 in the same way, rounds as if it saw all of it. */
LLVMValueRef
gen_fma16(Gen *g, ScalarKind k, LLVMValueRef *x)
{
    LLVMTypeRef f64 = ll_like(x[0], g->f64);
    LLVMValueRef w[3], zero = LLVMConstNull(f64);
    for (int i = 0; i < 3; i++)
        w[i] = LLVMBuildFPExt(g->b, x[i], f64, "");
    LLVMValueRef p = LLVMBuildFMul(g->b, w[0], w[1], "");
    LLVMValueRef s = LLVMBuildFAdd(g->b, p, w[2], "");
    LLVMValueRef t = LLVMBuildFSub(g->b, s, p, "");
    LLVMValueRef lost = LLVMBuildFSub(g->b, p, LLVMBuildFSub(g->b, s, t, ""), "");
    lost = LLVMBuildFAdd(g->b, lost, LLVMBuildFSub(g->b, w[2], t, ""), "");
    LLVMValueRef exact = LLVMBuildFCmp(g->b, LLVMRealUEQ, lost, zero, "");
    LLVMValueRef above = LLVMBuildFCmp(g->b, LLVMRealOGT, lost, zero, "");
    LLVMValueRef plus = LLVMBuildFCmp(g->b, LLVMRealOGT, s, zero, "");
    LLVMValueRef toward = LLVMBuildXor(g->b, above, plus, "");
    LLVMValueRef bits = bits_of(g, s);
    LLVMValueRef odd = gen_select(g, toward, op2(g, LLVMSub, bits, 1), bits);
    odd = gen_select(g, exact, bits, op2(g, LLVMOr, odd, 1));
    return gen_fcast(g, SK_F64, k, false, LLVMBuildBitCast(g->b, odd, f64, ""));
}

/* One step toward zero where rounding to nearest went away from it. */
static LLVMValueRef
toward_zero(Gen *g, ScalarKind to, LLVMValueRef x, LLVMValueRef y)
{
    ScalarKind wide = ll_elem(x) == g->f64 ? SK_F64 : SK_F32;
    LLVMValueRef back = gen_fcast(g, to, wide, false, y);
    LLVMValueRef away =
        LLVMBuildFCmp(g->b, LLVMRealOGT, fabs_of(g, back), fabs_of(g, x), "");
    bool is_int = LLVMGetTypeKind(ll_elem(y)) == LLVMIntegerTypeKind;
    LLVMValueRef bits = is_int ? y : bits_of(g, y);
    bits = gen_select(g, away, op2(g, LLVMSub, bits, 1), bits);
    return LLVMBuildBitCast(g->b, bits, LLVMTypeOf(y), "");
}

LLVMValueRef
gen_fcast(Gen *g, ScalarKind from, ScalarKind to, bool rtz, LLVMValueRef x)
{
    if (from == to)
        return x;
    if (g->target->fcast) {
        LLVMValueRef y = g->target->fcast(g, from, to, rtz, x);
        if (y)
            return y;
    }
    LLVMValueRef wide = x, y;
    if (from != SK_F64)
        wide = to_f32(g, from, x);
    if (from == SK_F64 && to == SK_F32)
        y = LLVMBuildFPTrunc(g->b, x, ll_like(x, g->f32), "");
    else
        y = from_f32(g, to, from == SK_F64 ? narrow_odd(g, x) : wide);
    return rtz && scalar_bits(to) < scalar_bits(from) ? toward_zero(g, to, wide, y) : y;
}

/* Strips: LLVM takes its saturating conversions apart into lanes. The number is clamped
   to what the integer and the float both have: the plain conversion is defined then. */
static LLVMValueRef
strip_to_int(Gen *g, bool is_signed, int bits, LLVMValueRef x)
{
    int digits = ll_elem(x) == g->f64 ? 53 : 24, n = bits - is_signed;
    LLVMTypeRef t = LLVMTypeOf(x);
    unsigned wide = bits < 32 ? 32 : (unsigned)bits;
    LLVMTypeRef to = ll_like(x, LLVMIntTypeInContext(g->cx, wide));
    double end = ldexp(1, n); /* the first that is too large */
    LLVMValueRef low = ll_float(t, is_signed ? -end : 0);
    LLVMValueRef high = ll_float(t, end - (n <= digits ? 1 : ldexp(1, n - digits)));
    LLVMValueRef y;
    y = gen_select(g, LLVMBuildFCmp(g->b, LLVMRealOLT, x, high, ""), x, high);
    y = gen_select(g, LLVMBuildFCmp(g->b, LLVMRealOGT, y, low, ""), y, low);
    y = is_signed || bits < 32 ? LLVMBuildFPToSI(g->b, y, to, "")
                               : LLVMBuildFPToUI(g->b, y, to, "");
    if (n > digits) {
        LLVMValueRef over = LLVMBuildFCmp(g->b, LLVMRealOGE, x, ll_float(t, end), "");
        int64_t most = is_signed ? (int64_t)(((uint64_t)1 << n) - 1) : -1;
        y = gen_select(g, over, ll_int(to, most), y);
    }
    return gen_select(g, is_nan(g, x), LLVMConstNull(to), y);
}

static LLVMValueRef
float_to_int(Gen *g, bool is_signed, int bits, LLVMValueRef x)
{
    int via = bits < 16 ? 16 : bits;
    LLVMTypeRef t[2] = {ll_like(x, LLVMIntTypeInContext(g->cx, (unsigned)via)),
                        LLVMTypeOf(x)};
    LLVMValueRef r;
    const char *name = is_signed ? "llvm.fptosi.sat" : "llvm.fptoui.sat";
    if (ll_is_vector(x))
        r = strip_to_int(g, is_signed, via, x);
    else
        r = ll_intrinsic(g->b, name, t, 2, &x, 1);
    if (bits == 64)
        r = gen_select(g, is_nan(g, x), ll_int(t[0], INT64_MIN), r);
    LLVMTypeRef to = ll_like(x, LLVMIntTypeInContext(g->cx, (unsigned)bits));
    return LLVMTypeOf(r) == to ? r : LLVMBuildTrunc(g->b, r, to, "");
}

/* 64 bits of which f64 holds all that bf16 asks for: where they are more than 53, one bit
   stands for the last twelve. */
static LLVMValueRef
fit_f64(Gen *g, bool is_signed, LLVMValueRef x)
{
    LLVMValueRef top = op2(g, is_signed ? LLVMAShr : LLVMLShr, x, 52);
    LLVMValueRef small = op2(g, LLVMAdd, top, is_signed); /* -1, 0: 0, 1 */
    small = LLVMBuildICmp(g->b, LLVMIntULE, small, ll_int(LLVMTypeOf(x), is_signed), "");
    LLVMValueRef low = op2(g, LLVMAnd, x, 0xfff);
    LLVMValueRef zero = LLVMConstNull(LLVMTypeOf(x));
    LLVMValueRef any = LLVMBuildICmp(g->b, LLVMIntNE, low, zero, "");
    LLVMValueRef bit = op2(g, LLVMShl, LLVMBuildZExt(g->b, any, LLVMTypeOf(x), ""), 11);
    LLVMValueRef y = LLVMBuildOr(g->b, op2(g, LLVMAnd, x, ~(int64_t)0xfff), bit, "");
    return gen_select(g, small, x, y);
}

/* r, an integer as fp32, as fp16, infinite beyond its range. That is spelled out since
   LLVM 22 takes a conversion of an integer with few significant bits for exact whatever
   its size, and widens it again as if nothing had overflowed. */
static LLVMValueRef
int_to_half(Gen *g, LLVMValueRef r)
{
    LLVMTypeRef t = LLVMTypeOf(r), half = ll_like(r, ll_scalar(g->cx, SK_F16));
    LLVMValueRef size = ll_intrinsic1(g->b, "llvm.fabs", &r, 1);
    LLVMValueRef ends[2] = {ll_float(half, INFINITY), ll_float(half, -INFINITY)};
    LLVMValueRef low = LLVMBuildFCmp(g->b, LLVMRealOLT, r, LLVMConstNull(t), "");
    LLVMValueRef in = LLVMBuildFCmp(g->b, LLVMRealOLT, size, ll_float(t, 65520), "");
    LLVMValueRef end = gen_select(g, low, ends[1], ends[0]);
    return gen_select(g, in, gen_fcast(g, SK_F32, SK_F16, false, r), end);
}

static LLVMValueRef
int_to_float(Gen *g, bool is_signed, ScalarKind to, LLVMValueRef x)
{
    ScalarKind via = to == SK_F64 ? SK_F64 : SK_F32;
    unsigned bits = LLVMGetIntTypeWidth(ll_elem(x));
    /* A wide integer rounds twice on its way to bf16 unless the first step is exact. */
    if (to == SK_BF16 && bits > 24)
        via = SK_F64;
    if (to == SK_BF16 && bits > 53)
        x = fit_f64(g, is_signed, x);
    LLVMTypeRef t = ll_like(x, ll_scalar(g->cx, via));
    LLVMValueRef r =
        is_signed ? LLVMBuildSIToFP(g->b, x, t, "") : LLVMBuildUIToFP(g->b, x, t, "");
    if (to == SK_F16 && bits + !is_signed > 16)
        return int_to_half(g, r);
    return gen_fcast(g, via, to, false, r);
}

LLVMValueRef
gen_cast(Gen *g, const Op *op, LLVMValueRef x)
{
    const Type *ft = type_elem(op_operand(op, 0)->type);
    const Type *tt = type_elem(op->results[0].type);
    bool to_ptr = tt->kind == TY_PTR;
    LLVMTypeRef to = ll_like(x, to_ptr ? g->ptr : ll_scalar(g->cx, tt->scalar));
    Name round = attr_str(&op->attrs, ATTR_ROUND);
    switch ((int)op->kind) {
    case OP_TRUNC: return LLVMBuildTrunc(g->b, x, to, "");
    case OP_SEXT: return LLVMBuildSExt(g->b, x, to, "");
    case OP_ZEXT: return LLVMBuildZExt(g->b, x, to, "");
    case OP_PTRTOINT: return LLVMBuildPtrToInt(g->b, x, to, "");
    case OP_INTTOPTR: return LLVMBuildIntToPtr(g->b, x, to, "");
    case OP_BITCAST: return to_ptr ? x : LLVMBuildBitCast(g->b, x, to, "");
    case OP_FEXT: return gen_fcast(g, ft->scalar, tt->scalar, false, x);
    case OP_FTRUNC:
        return gen_fcast(g, ft->scalar, tt->scalar, round && strcmp(round, "rtz") == 0,
                         x);
    case OP_SITOF: return int_to_float(g, true, tt->scalar, x);
    case OP_UITOF: return int_to_float(g, false, tt->scalar, x);
    case OP_FTOSI:
    case OP_FTOUI:
        if (ft->scalar != SK_F32 && ft->scalar != SK_F64)
            x = gen_fcast(g, ft->scalar, SK_F32, false, x);
        return float_to_int(g, op->kind == OP_FTOSI, scalar_bits(tt->scalar), x);
    default: return gen_unsupported(g, op, NULL);
    }
}
