/* Elementwise operations for every target: scalars or vectors of any width go in, the
   same width comes out. Floats narrower than f32 are computed in f32 and rounded after
   each operation (half stays half on a target that has its arithmetic), as Triton
   does. Integer division never traps, shifts by the width or more are 0 or all sign. */
#include "codegen/gen.h"

#include <string.h>

LLVMValueRef
gen_unsupported(Gen *g, const Op *op, const char *what)
{
    diag_error(&g->s->diag, op->loc, "not supported yet: '%s'%s%s on target %s",
               op_info[op->kind].name, what ? " " : "", what ? what : "", g->opt->target);
    return NULL;
}

LLVMValueRef
gen_const(Gen *g, const Op *op, unsigned lanes)
{
    const Type *e = type_elem(op->results[0].type);
    if (e->kind == TY_PTR || op->kind == OP_UNDEF) {
        LLVMTypeRef t = e->kind == TY_PTR ? g->ptr : ll_scalar(g->cx, e->scalar);
        return LLVMConstNull(ll_vector(t, lanes));
    }
    LLVMTypeRef t = ll_scalar(g->cx, e->scalar);
    if (!scalar_is_float(e->scalar))
        return ll_int(ll_vector(t, lanes), attr_int(&op->attrs, ATTR_VALUE, 0));
    double v = attr_float(&op->attrs, ATTR_FVALUE, 0.0);
    if (e->scalar == SK_F64)
        return ll_float(ll_vector(t, lanes), v);
    if (e->scalar == SK_F32 || e->scalar == SK_F16)
        return ll_float(ll_vector(t, lanes), e->scalar == SK_F32 ? (double)(float)v : v);
    LLVMValueRef x = ll_float(ll_vector(g->f64, lanes), v);
    return gen_fcast(g, SK_F64, e->scalar, false, x);
}

static LLVMValueRef
all_ones(LLVMValueRef x)
{
    return ll_int(LLVMTypeOf(x), -1);
}

static LLVMValueRef
icmp(Gen *g, LLVMIntPredicate p, LLVMValueRef x, int64_t c)
{
    return LLVMBuildICmp(g->b, p, x, ll_int(LLVMTypeOf(x), c), "");
}

/* Is it computed in front of a loop that the op is in? */
static bool
stands_before(const Op *op, const Value *v)
{
    const Region *from = v->op ? v->op->parent : v->region;
    for (const Region *r = op->parent; r && r != from;) {
        const Op *around = r->parent;
        if (around && (around->kind == OP_FOR || around->kind == OP_WHILE))
            return true;
        r = around ? around->parent : NULL;
    }
    return false;
}

/* Strips of up to 32 bits are divided as floats that are exact enough: x / y is 0 or at
   least 1 / y away from the next integer, which is more than it is rounded by. Where all
   lanes have one divisor, or a loop has, they are multiplied by its reciprocal, which
   loops compute once: a little too large, so that no whole quotient is rounded below
   itself. */
static LLVMValueRef
float_quotients(Gen *g, bool is_signed, LLVMValueRef x, LLVMValueRef y, bool is_uniform)
{
    bool wide = LLVMGetIntTypeWidth(ll_elem(x)) > 16;
    LLVMTypeRef f = ll_like(x, wide ? g->f64 : g->f32);
    LLVMOpcode to = is_signed ? LLVMSIToFP : LLVMUIToFP;
    LLVMValueRef q, in[2] = {x, y};
    for (int i = 0; i < 2; i++)
        in[i] = LLVMBuildCast(g->b, to, in[i], f, "");
    LLVMValueRef above = ll_float(f, 1 + (wide ? 0x1p-51 : 0x1p-22));
    if (is_uniform)
        q = LLVMBuildFMul(g->b, in[0], LLVMBuildFDiv(g->b, above, in[1], ""), "");
    else
        q = LLVMBuildFDiv(g->b, in[0], in[1], "");
    return LLVMBuildCast(g->b, is_signed ? LLVMFPToSI : LLVMFPToUI, q, LLVMTypeOf(x), "");
}

/* y is neither 0 nor, signed, -1. */
static LLVMValueRef
divide(Gen *g, const Op *op, LLVMValueRef x, LLVMValueRef y)
{
    OpKind k = op->kind;
    const Value *by = op_operand(op, 1);
    bool is_signed = k == OP_DIVS || k == OP_REMS, rest = k == OP_REMS || k == OP_REMU;
    unsigned bits = LLVMGetIntTypeWidth(ll_elem(x));
    bool strip = ll_is_vector(x), once = strip && value_def(by, OP_SPLAT);
    if (!strip && bits == 32 && !g->target->divide)
        once = stands_before(op, by);
    if ((once || strip) && bits >= 8 && bits <= 32 && !LLVMIsConstant(y)) {
        LLVMValueRef q = float_quotients(g, is_signed, x, y, once);
        if (!rest)
            return q;
        return LLVMBuildSub(g->b, x, LLVMBuildMul(g->b, q, y, ""), "");
    }
    if (rest)
        return is_signed ? LLVMBuildSRem(g->b, x, y, "") : LLVMBuildURem(g->b, x, y, "");
    return is_signed ? LLVMBuildSDiv(g->b, x, y, "") : LLVMBuildUDiv(g->b, x, y, "");
}

/* The divisor with 0 replaced by 1 (and -1 too, signed: the smallest number has no
   opposite; dividing by -1 is negating). */
static LLVMValueRef
gen_div(Gen *g, const Op *op, LLVMValueRef x, LLVMValueRef y)
{
    OpKind k = op->kind;
    LLVMValueRef done = g->target->divide ? g->target->divide(g, op, x, y) : NULL;
    if (done)
        return done;
    LLVMValueRef one = ll_int(LLVMTypeOf(y), 1);
    LLVMValueRef zero = LLVMConstNull(LLVMTypeOf(y));
    LLVMValueRef bad = icmp(g, LLVMIntEQ, y, 0);
    LLVMValueRef d = gen_select(g, bad, one, y);
    if (k == OP_DIVU)
        return gen_select(g, bad, all_ones(y), divide(g, op, x, d));
    if (k == OP_REMU)
        return gen_select(g, bad, x, divide(g, op, x, d));
    LLVMValueRef minus = icmp(g, LLVMIntEQ, y, -1);
    d = gen_select(g, minus, one, d);
    if (k == OP_REMS)
        return gen_select(g, bad, x, divide(g, op, x, d));
    LLVMValueRef q = divide(g, op, x, d);
    q = gen_select(g, minus, LLVMBuildSub(g->b, zero, q, ""), q);
    return gen_select(g, bad, all_ones(y), q);
}

static LLVMValueRef
gen_shift(Gen *g, OpKind k, LLVMValueRef x, LLVMValueRef n)
{
    unsigned bits = LLVMGetIntTypeWidth(ll_elem(x));
    LLVMValueRef in = icmp(g, LLVMIntULT, n, bits);
    LLVMValueRef most = ll_int(LLVMTypeOf(x), (int64_t)bits - 1);
    LLVMValueRef count = gen_select(g, in, n, most);
    LLVMValueRef zero = LLVMConstNull(LLVMTypeOf(x));
    if (bits == 1) /* the only count in range is 0 */
        return k == OP_SHRS ? x : gen_select(g, n, zero, x);
    if (k == OP_SHRS)
        return LLVMBuildAShr(g->b, x, count, "");
    LLVMValueRef r = k == OP_SHL ? LLVMBuildShl(g->b, x, count, "")
                                 : LLVMBuildLShr(g->b, x, count, "");
    return gen_select(g, in, r, zero);
}

static LLVMValueRef
gen_mulhi(Gen *g, bool is_signed, LLVMValueRef x, LLVMValueRef y)
{
    unsigned bits = LLVMGetIntTypeWidth(ll_elem(x));
    LLVMTypeRef wide = ll_like(x, LLVMIntTypeInContext(g->cx, 2 * bits));
    LLVMOpcode ext = is_signed ? LLVMSExt : LLVMZExt;
    LLVMValueRef p = LLVMBuildMul(g->b, LLVMBuildCast(g->b, ext, x, wide, ""),
                                  LLVMBuildCast(g->b, ext, y, wide, ""), "");
    p = LLVMBuildLShr(g->b, p, ll_int(wide, bits), "");
    return LLVMBuildTrunc(g->b, p, LLVMTypeOf(x), "");
}

/* Is the high half of the same product wanted too, as in every round of Philox? Then the
   low half is taken from the double-width product: machines without a fast multiplication
   of 32-bit lanes need but one. */
static bool
high_half_wanted(const Op *op)
{
    const Value *a = op_operand(op, 0), *b = op_operand(op, 1);
    if (op->kind != OP_MUL || type_bits(a->type) != 32)
        return false;
    value_each_use(a, u)
    {
        const Op *o = u->user;
        if (o->kind == OP_MULHIU && ((op_operand(o, 0) == a && op_operand(o, 1) == b) ||
                                     (op_operand(o, 0) == b && op_operand(o, 1) == a)))
            return true;
    }
    return false;
}

/* ---- products of 32-bit lanes

   The machine multiplies the even lanes of two vectors to 64 bits, so a product is taken
   of the even and of the odd lanes apart, both as 64-bit lanes whose low halves count.
   Philox multiplies what it has just got by exclusive or from products: so the halves
   stay apart from round to round (g->halves), and the vector of 32-bit lanes, which is
   made as well, is dropped by LLVM where nothing asks for it. */
typedef struct Halves {
    LLVMValueRef lanes[2]; /* even, odd */
} Halves;

static Halves
halves_of(Gen *g, const Value *v, LLVMValueRef x)
{
    const Halves *known = map_get(&g->halves, x);
    if (known)
        return *known;
    Halves h;
    unsigned n = ll_lanes(x) / 2;
    LLVMTypeRef t = LLVMVectorType(g->i64, n);
    if (value_def(v, OP_SPLAT)) {
        LLVMValueRef s = LLVMBuildExtractElement(g->b, x, ll_int(g->i32, 0), "");
        h.lanes[0] = ll_splat(g->b, LLVMBuildZExt(g->b, s, g->i64, ""), n);
        h.lanes[1] = h.lanes[0];
        return h;
    }
    h.lanes[0] = LLVMBuildBitCast(g->b, x, t, "");
    h.lanes[1] = LLVMBuildLShr(g->b, h.lanes[0], ll_int(t, 32), "");
    return h;
}

static LLVMValueRef
join_halves(Gen *g, const Halves *h, LLVMTypeRef t)
{
    LLVMTypeRef wide = LLVMTypeOf(h->lanes[0]);
    LLVMValueRef even = LLVMBuildAnd(g->b, h->lanes[0], ll_int(wide, 0xffffffff), "");
    LLVMValueRef odd = LLVMBuildShl(g->b, h->lanes[1], ll_int(wide, 32), "");
    LLVMValueRef v = LLVMBuildBitCast(g->b, LLVMBuildOr(g->b, even, odd, ""), t, "");
    Halves *keep = arena_new(&g->s->tmp, Halves);
    *keep = *h;
    map_set(&g->halves, v, keep);
    return v;
}

static LLVMValueRef
gen_product(Gen *g, const Op *op, bool high, LLVMValueRef *x)
{
    Halves in[2], out;
    LLVMTypeRef t = LLVMVectorType(g->i64, ll_lanes(x[0]) / 2);
    LLVMValueRef low = ll_int(t, 0xffffffff);
    for (int i = 0; i < 2; i++)
        in[i] = halves_of(g, op_operand(op, i), x[i]);
    for (int k = 0; k < 2; k++) {
        LLVMValueRef a = LLVMBuildAnd(g->b, in[0].lanes[k], low, "");
        LLVMValueRef b = LLVMBuildAnd(g->b, in[1].lanes[k], low, "");
        out.lanes[k] = LLVMBuildMul(g->b, a, b, "");
        if (high)
            out.lanes[k] = LLVMBuildLShr(g->b, out.lanes[k], ll_int(t, 32), "");
    }
    return join_halves(g, &out, LLVMTypeOf(x[0]));
}

static LLVMValueRef
gen_xor(Gen *g, const Op *op, LLVMValueRef *x)
{
    if (!map_get(&g->halves, x[0]) && !map_get(&g->halves, x[1]))
        return LLVMBuildXor(g->b, x[0], x[1], "");
    Halves a = halves_of(g, op_operand(op, 0), x[0]);
    Halves b = halves_of(g, op_operand(op, 1), x[1]), out;
    for (int k = 0; k < 2; k++)
        out.lanes[k] = LLVMBuildXor(g->b, a.lanes[k], b.lanes[k], "");
    return join_halves(g, &out, LLVMTypeOf(x[0]));
}

/* Halves of two lanes would be vectors of one, which the builder makes scalars of. */
static bool
has_halves(LLVMValueRef x)
{
    return ll_is_vector(x) && ll_lanes(x) > 2;
}

static LLVMValueRef
gen_int(Gen *g, const Op *op, LLVMValueRef *x)
{
    if (has_halves(x[0]) && high_half_wanted(op))
        return gen_product(g, op, false, x);
    if (op->kind == OP_XOR && ll_is_vector(x[0]))
        return gen_xor(g, op, x);
    static const struct {
        LLVMOpcode code;
        const char *intrinsic;
    } plain[OP_COUNT] = {
        [OP_ADD] = {LLVMAdd, 0},      [OP_SUB] = {LLVMSub, 0},
        [OP_MUL] = {LLVMMul, 0},      [OP_AND] = {LLVMAnd, 0},
        [OP_OR] = {LLVMOr, 0},        [OP_XOR] = {LLVMXor, 0},
        [OP_MINS] = {0, "llvm.smin"}, [OP_MAXS] = {0, "llvm.smax"},
        [OP_MINU] = {0, "llvm.umin"}, [OP_MAXU] = {0, "llvm.umax"},
    };
    if (plain[op->kind].code)
        return LLVMBuildBinOp(g->b, plain[op->kind].code, x[0], x[1], "");
    if (plain[op->kind].intrinsic)
        return ll_intrinsic1(g->b, plain[op->kind].intrinsic, x, 2);
    switch ((int)op->kind) {
    case OP_DIVS:
    case OP_DIVU:
    case OP_REMS:
    case OP_REMU: return gen_div(g, op, x[0], x[1]);
    case OP_SHL:
    case OP_SHRS:
    case OP_SHRU: return gen_shift(g, op->kind, x[0], x[1]);
    case OP_MULHIS: return gen_mulhi(g, true, x[0], x[1]);
    case OP_MULHIU:
        if (has_halves(x[0]) && ll_elem(x[0]) == g->i32)
            return gen_product(g, op, true, x);
        return gen_mulhi(g, false, x[0], x[1]);
    case OP_ABSS: {
        LLVMValueRef args[2] = {x[0], LLVMConstNull(g->i1)};
        return ll_intrinsic1(g->b, "llvm.abs", args, 2);
    }
    default: return gen_unsupported(g, op, NULL);
    }
}

static LLVMValueRef
contract(const Gen *g, LLVMValueRef v)
{
    if (!g->func->exact && LLVMIsAInstruction(v) && LLVMCanValueUseFastMathFlags(v))
        LLVMSetFastMathFlags(v, LLVMFastMathAllowContract);
    return v;
}

/* Minimum or maximum that is NaN when an operand is. */
static LLVMValueRef
gen_nan_minmax(Gen *g, bool max, LLVMValueRef *x)
{
    LLVMValueRef m = ll_intrinsic1(g->b, max ? "llvm.maxnum" : "llvm.minnum", x, 2);
    LLVMValueRef un = LLVMBuildFCmp(g->b, LLVMRealUNO, x[0], x[1], "");
    return gen_select(g, un, LLVMBuildFAdd(g->b, x[0], x[1], ""), m);
}

/* Arithmetic in f32, f64 or native half. */
static LLVMValueRef
gen_float(Gen *g, const Op *op, ScalarKind k, LLVMValueRef *x)
{
    static const struct {
        LLVMOpcode code;
        const char *intrinsic;
    } plain[OP_COUNT] = {
        [OP_DIVF] = {LLVMFDiv, 0},      [OP_DIVRN] = {LLVMFDiv, 0},
        [OP_ADDF] = {LLVMFAdd, 0},      [OP_SUBF] = {LLVMFSub, 0},
        [OP_MULF] = {LLVMFMul, 0},      [OP_ABSF] = {0, "llvm.fabs"},
        [OP_MINF] = {0, "llvm.minnum"}, [OP_MAXF] = {0, "llvm.maxnum"},
        [OP_FMA] = {0, "llvm.fma"},     [OP_FLOOR] = {0, "llvm.floor"},
        [OP_CEIL] = {0, "llvm.ceil"},   [OP_SQRT] = {0, "llvm.sqrt"},
        [OP_SQRTRN] = {0, "llvm.sqrt"},
    };
    if (plain[op->kind].code) {
        LLVMValueRef v = LLVMBuildBinOp(g->b, plain[op->kind].code, x[0], x[1], "");
        bool may = op->kind == OP_ADDF || op->kind == OP_SUBF || op->kind == OP_MULF;
        return may ? contract(g, v) : v;
    }
    if (plain[op->kind].intrinsic)
        return ll_intrinsic1(g->b, plain[op->kind].intrinsic, x, op->noperand);
    switch ((int)op->kind) {
    case OP_NEGF: return LLVMBuildFNeg(g->b, x[0], "");
    case OP_MINNAN: return gen_nan_minmax(g, false, x);
    case OP_MAXNAN: return gen_nan_minmax(g, true, x);
    default: break;
    }
    LLVMValueRef v = g->target->math ? g->target->math(g, op, k, x) : NULL;
    if (!v && op->kind == OP_RSQRT) {
        v = ll_intrinsic1(g->b, "llvm.sqrt", x, 1);
        v = LLVMBuildFDiv(g->b, ll_float(LLVMTypeOf(v), 1.0), v, "");
    }
    return v ? v : gen_unsupported(g, op, attr_str(&op->attrs, ATTR_FN));
}

typedef struct Pred {
    const char *name;
    int code;
} Pred;

static int
predicate(const Op *op)
{
    static const Pred preds[] = {
        {"eq", LLVMIntEQ},    {"ne", LLVMIntNE},    {"slt", LLVMIntSLT},
        {"sle", LLVMIntSLE},  {"sgt", LLVMIntSGT},  {"sge", LLVMIntSGE},
        {"ult", LLVMIntULT},  {"ule", LLVMIntULE},  {"ugt", LLVMIntUGT},
        {"uge", LLVMIntUGE},  {"oeq", LLVMRealOEQ}, {"une", LLVMRealUNE},
        {"olt", LLVMRealOLT}, {"ole", LLVMRealOLE}, {"ogt", LLVMRealOGT},
        {"oge", LLVMRealOGE}, {"uno", LLVMRealUNO}, {"one", LLVMRealONE},
        {"ord", LLVMRealORD},
    };
    Name want = attr_str(&op->attrs, ATTR_PRED);
    for (size_t i = 0; want && i < sizeof preds / sizeof preds[0]; i++)
        if (strcmp(preds[i].name, want) == 0)
            return preds[i].code;
    return -1;
}

static bool
fn_is(const Op *op, const char *name)
{
    Name fn = op->kind == OP_LIBM ? attr_str(&op->attrs, ATTR_FN) : NULL;
    return fn && strcmp(fn, name) == 0;
}

static LLVMValueRef
gen_bits(Gen *g, const Op *op, LLVMValueRef x)
{
    LLVMTypeRef to = ll_like(x, ll_scalar(g->cx, type_elem(op->results[0].type)->scalar));
    LLVMValueRef r = NULL;
    LLVMValueRef args[2] = {x, LLVMConstNull(g->i1)};
    if (fn_is(op, "popc"))
        r = ll_intrinsic1(g->b, "llvm.ctpop", args, 1);
    else if (fn_is(op, "clz"))
        r = ll_intrinsic1(g->b, "llvm.ctlz", args, 2);
    else if (fn_is(op, "brev"))
        r = ll_intrinsic1(g->b, "llvm.bitreverse", args, 1);
    else if (fn_is(op, "ffs")) {
        r = ll_intrinsic1(g->b, "llvm.cttz", args, 2);
        r = LLVMBuildAdd(g->b, r, ll_int(LLVMTypeOf(r), 1), "");
        r = gen_select(g, icmp(g, LLVMIntEQ, x, 0), LLVMConstNull(LLVMTypeOf(r)), r);
    }
    return r ? LLVMBuildIntCast2(g->b, r, to, 0, "") : gen_unsupported(g, op, NULL);
}

/* isnan and its like on f32 or f64. NULL when op is none of them. */
static LLVMValueRef
gen_class(Gen *g, const Op *op, ScalarKind k, LLVMValueRef x)
{
    LLVMTypeRef t = LLVMTypeOf(x);
    LLVMTypeRef bits = ll_like(x, k == SK_F64   ? g->i64
                                  : k == SK_F32 ? g->i32
                                                : LLVMInt16TypeInContext(g->cx));
    LLVMValueRef r;
    if (fn_is(op, "isnan"))
        r = LLVMBuildFCmp(g->b, LLVMRealUNO, x, x, "");
    else if (fn_is(op, "signbit"))
        r = icmp(g, LLVMIntSLT, LLVMBuildBitCast(g->b, x, bits, ""), 0);
    else if (fn_is(op, "isinf") || fn_is(op, "isfinite")) {
        LLVMValueRef a = ll_intrinsic1(g->b, "llvm.fabs", &x, 1);
        LLVMValueRef inf = ll_float(t, __builtin_inf());
        r = LLVMBuildFCmp(g->b, fn_is(op, "isinf") ? LLVMRealOEQ : LLVMRealOLT, a, inf,
                          "");
    } else
        return NULL;
    const Type *to = type_elem(op->results[0].type);
    return to->scalar == SK_I1
               ? r
               : LLVMBuildZExt(g->b, r, ll_like(x, ll_scalar(g->cx, to->scalar)), "");
}

/* Operands widened where the target computes in f32, the result narrowed again. */
static LLVMValueRef
gen_widened(Gen *g, const Op *op, LLVMValueRef *in)
{
    ScalarKind k = type_elem(op_operand(op, 0)->type)->scalar;
    bool native = k == SK_F32 || k == SK_F64 ||
                  (k == SK_F16 && g->target->native_f16 && op->kind != OP_LIBM);
    LLVMTypeRef bf16 = op->kind == OP_CMPF && k == SK_BF16 && g->info.bf16
                           ? LLVMBFloatTypeInContext(g->cx) /* setp takes it */
                           : NULL;
    LLVMValueRef x[4];
    for (int i = 0; i < op->noperand && i < 4; i++) {
        const Type *e = type_elem(op_operand(op, i)->type);
        bool fl = e->kind == TY_SCALAR && scalar_is_float(e->scalar);
        x[i] = in[i];
        if (bf16)
            x[i] = LLVMBuildBitCast(g->b, in[i], ll_like(in[i], bf16), "");
        else if (!native && fl)
            x[i] = gen_fcast(g, e->scalar, SK_F32, false, in[i]);
    }
    ScalarKind in_k = native ? k : SK_F32;
    if (op->kind == OP_CMPF) {
        int p = predicate(op);
        return p < 0 ? gen_unsupported(g, op, "with this predicate")
                     : LLVMBuildFCmp(g->b, (LLVMRealPredicate)p, x[0], x[1], "");
    }
    LLVMValueRef r = op->kind == OP_LIBM ? gen_class(g, op, in_k, x[0]) : NULL;
    if (r)
        return r;
    if (op->kind == OP_FMA && !native)
        return gen_fma16(g, k, x);
    r = gen_float(g, op, in_k, x);
    return r && !native ? gen_fcast(g, SK_F32, k, false, r) : r;
}

/* Pointer + offset in elements; either may be a scalar beside a vector. */
static LLVMValueRef
gen_addptr(Gen *g, const Op *op, LLVMValueRef *x)
{
    const Type *p = type_elem(op_operand(op, 0)->type);
    const Type *e = type_elem(p->elem);
    LLVMTypeRef t = e->kind == TY_PTR ? g->i64 : ll_memory(g->cx, e->scalar);
    LLVMValueRef off = x[1];
    if (LLVMGetIntTypeWidth(ll_elem(off)) < 64)
        off = LLVMBuildSExt(g->b, off, ll_like(off, g->i64), "");
    return LLVMBuildGEP2(g->b, t, x[0], &off, 1, "");
}

LLVMValueRef
gen_elem(Gen *g, const Op *op, LLVMValueRef *x)
{
    const Type *e = op->noperand ? type_elem(op_operand(op, 0)->type) : NULL;
    switch ((int)op->kind) {
    case OP_CMPI: {
        int p = predicate(op);
        return p < 0 ? gen_unsupported(g, op, "with this predicate")
                     : LLVMBuildICmp(g->b, (LLVMIntPredicate)p, x[0], x[1], "");
    }
    case OP_SELECT: return gen_select(g, x[0], x[1], x[2]);
    case OP_ADDPTR: return gen_addptr(g, op, x);
    case OP_HINT: return x[0];
    case OP_TRUNC:
    case OP_SEXT:
    case OP_ZEXT:
    case OP_FEXT:
    case OP_FTRUNC:
    case OP_SITOF:
    case OP_UITOF:
    case OP_FTOSI:
    case OP_FTOUI:
    case OP_BITCAST:
    case OP_PTRTOINT:
    case OP_INTTOPTR: return gen_cast(g, op, x[0]);
    default: break;
    }
    if (!e || !op_is(op, T_ELEMENTWISE))
        return gen_unsupported(g, op, NULL);
    if (e->kind == TY_SCALAR && scalar_is_float(e->scalar))
        return gen_widened(g, op, x);
    if (op->kind == OP_LIBM)
        return gen_bits(g, op, x[0]);
    return gen_int(g, op, x);
}
