/* Conversions between floats by the hardware's instructions where these give the bits of
   the general code in gen_cast.c: to f16 and bf16 everywhere, the 8-bit formats since
   sm_89 (they exist on pairs only). Two registers of a tile are converted at once. */
#include "codegen/gen_nv.h"
#include "codegen/ptx.h"

#include "ir/analysis/axis.h"

static bool
is_small(Gen *g, ScalarKind k)
{
    return g->info.sm >= 89 && (k == SK_F8E4 || k == SK_F8E5);
}

/* Element i of a vector of two halves or bf16, as it lives in a register. */
static LLVMValueRef
half_of(Gen *g, ScalarKind k, LLVMValueRef pair, int i)
{
    LLVMTypeRef t = LLVMVectorType(ll_scalar(g->cx, k), 2);
    pair = LLVMBuildBitCast(g->b, pair, t, "");
    return LLVMBuildExtractElement(g->b, pair, ll_int(g->i32, i), "");
}

/* Two 8-bit floats to f16: exact. hi NULL: only one. */
static void
widen_small(Gen *g, ScalarKind k, LLVMValueRef lo, LLVMValueRef hi, LLVMValueRef out[2])
{
    LLVMTypeRef i16 = LLVMInt16TypeInContext(g->cx);
    LLVMValueRef v = LLVMBuildZExt(g->b, lo, i16, "");
    if (hi) {
        hi = LLVMBuildShl(g->b, LLVMBuildZExt(g->b, hi, i16, ""), ll_int(i16, 8), "");
        v = LLVMBuildOr(g->b, v, hi, "");
    }
    v = ptx_call(g, k == SK_F8E4 ? PTX_E4M3X2_F16X2 : PTX_E5M2X2_F16X2, &v, 1);
    for (int i = 0; i < (hi ? 2 : 1); i++)
        out[i] = half_of(g, SK_F16, v, i);
}

/* The two bytes of a pair. It goes through a word: where pairs are operands of wgmma in
   two orders, ptxas 13.0 ends with signal 11 as it joins the conversions of two pairs
   into one word (random loops, 2026-11-23, tests/codegen/nvptx/small_floats.tk). */
static void
cut(Gen *g, LLVMValueRef pair, LLVMValueRef out[2])
{
    pair = ptx_asm(g, "cvt.u32.u16 $0, $1;", "=r,h", g->i32, &pair, 1, false);
    pair = LLVMBuildTrunc(g->b, pair, LLVMInt16TypeInContext(g->cx), "");
    out[0] = LLVMBuildTrunc(g->b, pair, g->i8, "");
    pair = LLVMBuildLShr(g->b, pair, ll_int(LLVMTypeOf(pair), 8), "");
    out[1] = LLVMBuildTrunc(g->b, pair, g->i8, "");
}

/* Two f32 to a pair of a smaller format. */
static void
narrow_pair(Gen *g, ScalarKind to, bool rtz, LLVMValueRef lo, LLVMValueRef hi,
            LLVMValueRef out[2])
{
    LLVMValueRef in[2] = {hi, lo};
    if (to == SK_F16 || to == SK_BF16) {
        PtxId id = to == SK_F16 ? (rtz ? PTX_F16X2_RZ : PTX_F16X2_RN)
                                : (rtz ? PTX_BF16X2_RZ : PTX_BF16X2_RN);
        LLVMValueRef v = ptx_call(g, id, in, 2);
        for (int i = 0; i < 2; i++)
            out[i] = half_of(g, to, v, i);
        return;
    }
    cut(g, ptx_call(g, to == SK_F8E4 ? PTX_E4M3X2_RN : PTX_E5M2X2_RN, in, 2), out);
}

static LLVMValueRef
narrow(Gen *g, ScalarKind to, bool rtz, LLVMValueRef x)
{
    LLVMValueRef out[2];
    if (to == SK_BF16) {
        LLVMValueRef v = ptx_call(g, rtz ? PTX_BF16_RZ : PTX_BF16_RN, &x, 1);
        return LLVMBuildBitCast(g->b, v, ll_scalar(g->cx, to), "");
    }
    if (to == SK_F16 && !rtz)
        return LLVMBuildFPTrunc(g->b, x, ll_scalar(g->cx, to), "");
    narrow_pair(g, to, rtz, x, ll_float(g->f32, 0.0), out);
    return out[0];
}

static bool
can_narrow(Gen *g, ScalarKind to, bool rtz)
{
    return to == SK_F16 || to == SK_BF16 || (is_small(g, to) && !rtz);
}

LLVMValueRef
nv_fcast(Gen *g, ScalarKind from, ScalarKind to, bool rtz, LLVMValueRef x)
{
    LLVMValueRef out[2];
    if (LLVMIsConstant(x)) /* the general code folds */
        return NULL;
    if (from == SK_F64)
        return to == SK_F16 && !rtz ? narrow(g, to, false, x) : NULL;
    if (is_small(g, from)) {
        widen_small(g, from, x, NULL, out);
        return gen_fcast(g, SK_F16, to, rtz, out[0]);
    }
    if (to == SK_F32 || !can_narrow(g, to, rtz))
        return NULL;
    return narrow(g, to, rtz, gen_fcast(g, from, SK_F32, false, x));
}

/* ---- integers */

/* Does f32 hold every integer that v may be? */
static bool
fits_f32(Gen *g, const Value *v)
{
    enum { EXACT = 1 << 24 };
    const AxisFacts *f = nv_facts(g, v);
    return type_bits(v->type) <= 16 || (f->lo >= -EXACT && f->hi <= EXACT);
}

/* An integer to bf16, which LLVM rounds twice and the general code takes through f64. */
LLVMValueRef
nv_int_to_bf16(Gen *g, const Op *op, LLVMValueRef x)
{
    static const char *const text[2][2] = {
        {"cvt.rn.bf16.u32 $0, $1;", "cvt.rn.bf16.u64 $0, $1;"},
        {"cvt.rn.bf16.s32 $0, $1;", "cvt.rn.bf16.s64 $0, $1;"}};
    const Type *from = type_elem(op_operand(op, 0)->type);
    LLVMTypeRef i16 = LLVMInt16TypeInContext(g->cx);
    bool is_signed = op->kind == OP_SITOF, wide = type_bits(from) == 64;
    if (fits_f32(g, op_operand(op, 0))) {
        x = is_signed ? LLVMBuildSIToFP(g->b, x, g->f32, "")
                      : LLVMBuildUIToFP(g->b, x, g->f32, "");
        return gen_fcast(g, SK_F32, SK_BF16, false, x);
    }
    if (g->info.sm < 90 || type_bits(from) < 32)
        return NULL;
    x = ptx_asm(g, text[is_signed][wide], wide ? "=h,l" : "=h,r", i16, &x, 1, false);
    return LLVMBuildBitCast(g->b, x, ll_scalar(g->cx, SK_BF16), "");
}

/* The instruction does what the general code takes six for: what is out of range becomes
   the nearest integer, NaN 0 (of 64 bits the least). From f64 NaN would be the least of
   32 bits as well. */
LLVMValueRef
nv_float_to_int(Gen *g, const Op *op, LLVMValueRef x)
{
    static const struct {
        const char *text[2], *constraints;
    } cvt[] = {{{"cvt.rzi.u16.f32 $0, $1;", "cvt.rzi.s16.f32 $0, $1;"}, "=h,f"},
               {{"cvt.rzi.u32.f32 $0, $1;", "cvt.rzi.s32.f32 $0, $1;"}, "=r,f"},
               {{"cvt.rzi.u64.f32 $0, $1;", "cvt.rzi.s64.f32 $0, $1;"}, "=l,f"}};
    ScalarKind from = type_elem(op_operand(op, 0)->type)->scalar;
    int bits = type_bits(type_elem(op->results[0].type)), via = bits < 16 ? 16 : bits;
    if (from == SK_F64 || LLVMIsConstant(x)) /* the general code folds */
        return NULL;
    LLVMTypeRef t = LLVMIntTypeInContext(g->cx, (unsigned)via);
    int i = via == 16 ? 0 : via == 32 ? 1 : 2;
    if (from != SK_F32)
        x = gen_fcast(g, from, SK_F32, false, x);
    x = ptx_asm(g, cvt[i].text[op->kind == OP_FTOSI], cvt[i].constraints, t, &x, 1,
                false);
    return bits == via ? x
                       : LLVMBuildTrunc(
                             g->b, x, LLVMIntTypeInContext(g->cx, (unsigned)bits), "");
}

static bool
int_pair(Gen *g, const Op *op, const LLVMValueRef *x, LLVMValueRef *out)
{
    ScalarKind to = type_elem(op->results[0].type)->scalar;
    LLVMValueRef w[2];
    if ((to != SK_F16 && to != SK_BF16) || !fits_f32(g, op_operand(op, 0)))
        return false;
    for (int i = 0; i < 2; i++)
        w[i] = op->kind == OP_SITOF ? LLVMBuildSIToFP(g->b, x[i], g->f32, "")
                                    : LLVMBuildUIToFP(g->b, x[i], g->f32, "");
    narrow_pair(g, to, false, w[0], w[1], out);
    return true;
}

/* The word of 32 bits that x[0] and x[1] are the halves of, as loads leave them; NULL. */
static LLVMValueRef
word_of(Gen *g, const LLVMValueRef *x)
{
    LLVMValueRef pair = NULL;
    for (int i = 0; i < 2; i++) {
        if (!LLVMIsAExtractElementInst(x[i]))
            return NULL;
        LLVMValueRef v = LLVMGetOperand(x[i], 0), at = LLVMGetOperand(x[i], 1);
        if ((pair && v != pair) || LLVMGetVectorSize(LLVMTypeOf(v)) != 2 ||
            !LLVMIsAConstantInt(at) || LLVMConstIntGetZExtValue(at) != (unsigned)i)
            return NULL;
        pair = v;
    }
    return LLVMBuildBitCast(g->b, pair, g->i32, "");
}

/* bf16 are the upper halves of f32. Out of one word that takes an instruction each; as
   two numbers of 16 bits the upper one would be cut out and moved first. */
static bool
widen_bf16(Gen *g, const LLVMValueRef *x, LLVMValueRef *out)
{
    LLVMValueRef word = word_of(g, x);
    if (!word)
        return false;
    out[0] = LLVMBuildShl(g->b, word, ll_int(g->i32, 16), "");
    out[1] = LLVMBuildAnd(g->b, word, ll_int(g->i32, (int32_t)0xffff0000), "");
    for (int i = 0; i < 2; i++)
        out[i] = LLVMBuildBitCast(g->b, out[i], g->f32, "");
    return true;
}

bool
nv_cast_pair(Gen *g, const Op *op, Regs *const *in, int r, LLVMValueRef *out)
{
    if (op->kind == OP_SITOF || op->kind == OP_UITOF)
        return int_pair(g, op, in[0]->v + r, out);
    if (op->kind != OP_FEXT && op->kind != OP_FTRUNC)
        return false;
    ScalarKind from = type_elem(op_operand(op, 0)->type)->scalar;
    ScalarKind to = type_elem(op->results[0].type)->scalar;
    Name round = attr_str(&op->attrs, ATTR_ROUND);
    bool rtz = round && op->kind == OP_FTRUNC && *round == 'r' && round[2] == 'z';
    LLVMValueRef *x = in[0]->v + r, w[2] = {x[0], x[1]};
    if (LLVMIsConstant(x[0]) || LLVMIsConstant(x[1]) || from == SK_F64 || to == SK_F64)
        return false;
    if (from == SK_BF16 && to == SK_F32)
        return widen_bf16(g, x, out);
    if (is_small(g, from)) {
        widen_small(g, from, x[0], x[1], w);
        from = SK_F16;
    } else if (to == SK_F32 || !can_narrow(g, to, rtz)) {
        return false;
    }
    if (from == to || to == SK_F32 || !can_narrow(g, to, rtz)) {
        for (int i = 0; i < 2; i++)
            out[i] = gen_fcast(g, from, to, rtz, w[i]);
        return true;
    }
    if (from == SK_F16 && is_small(g, to)) {
        LLVMTypeRef t = LLVMVectorType(ll_scalar(g->cx, SK_F16), 2);
        LLVMValueRef v = LLVMGetPoison(t);
        for (int i = 0; i < 2; i++)
            v = LLVMBuildInsertElement(g->b, v, w[i], ll_int(g->i32, i), "");
        cut(g, ptx_call(g, to == SK_F8E4 ? PTX_F16X2_E4M3X2 : PTX_F16X2_E5M2X2, &v, 1),
            out);
        return true;
    }
    for (int i = 0; i < 2; i++)
        w[i] = gen_fcast(g, from, SK_F32, false, w[i]);
    narrow_pair(g, to, rtz, w[0], w[1], out);
    return true;
}

/* The register bit whose two elements are neighbours in the buffer that v goes to; 0: no
   such buffer or bit. */
static int
stored_bit(const Value *v)
{
    const Op *to = v->uses && !v->uses->next ? v->uses->user : NULL;
    if (!to || (to->kind != OP_LOCAL_STORE && to->kind != OP_LOCAL_ALLOC))
        return 0;
    const Type *mem =
        (to->kind == OP_LOCAL_STORE ? op_operand(to, 0) : &to->results[0])->type;
    const Layout *l = v->type->layout, *m = mem->layout;
    for (int i = 0; l && m->nbasis[LD_OFFSET] && i < l->nbasis[LD_REG]; i++)
        if (l->basis[LD_REG][i] == m->basis[LD_OFFSET][0])
            return i;
    return 0;
}

bool
nv_cast_stored(Gen *g, const Op *op, const Regs *in, Regs *out)
{
    int bit = op->kind == OP_FTRUNC ? stored_bit(&op->results[0]) : 0;
    int other = 1 << bit;
    for (int r = 0; bit && r < out->n; r++) {
        LLVMValueRef two[2] = {in->v[r], in->v[r | other]}, to[2];
        Regs pair = {.n = 2, .v = two}, *from = &pair;
        if (r & other)
            continue;
        if (!nv_cast_pair(g, op, &from, 0, to))
            return false;
        out->v[r] = to[0];
        out->v[r | other] = to[1];
    }
    return bit > 0;
}
