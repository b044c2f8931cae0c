/* Arithmetic of 16-bit floats as the hardware has it, on two registers of a tile at once
   where they come in twos. One rounding as by way of f32, whose 24 bits hold enough of an
   exact sum or product; but a sum of a product may be one operation, as in Triton. */
#include "codegen/gen_nv.h"
#include "ir/fold.h"

static bool
has(const Op *op)
{
    switch ((int)op->kind) {
    case OP_ADDF:
    case OP_SUBF:
    case OP_MULF:
    case OP_FMA:
    case OP_MINF:
    case OP_MAXF:
    case OP_MINNAN:
    case OP_MAXNAN: return true;
    default: return false;
    }
}

static bool
is_half(const Op *op, ScalarKind *k)
{
    const Type *e = type_elem(op->results[0].type);
    if (e->kind != TY_SCALAR || !has(op))
        return false;
    *k = e->scalar;
    return e->scalar == SK_F16 || e->scalar == SK_BF16;
}

/* On LLVM's own types, scalars or vectors. */
static LLVMValueRef
compute(Gen *g, const Op *op, LLVMValueRef *x)
{
    static const LLVMOpcode code[OP_COUNT] = {
        [OP_ADDF] = LLVMFAdd, [OP_SUBF] = LLVMFSub, [OP_MULF] = LLVMFMul};
    static const char *const name[OP_COUNT] = {
        [OP_FMA] = "llvm.fma",        [OP_MINF] = "llvm.minnum",
        [OP_MAXF] = "llvm.maxnum",    [OP_MINNAN] = "llvm.minimum",
        [OP_MAXNAN] = "llvm.maximum",
    };
    if (name[op->kind])
        return ll_intrinsic1(g->b, name[op->kind], x, op->noperand);
    LLVMValueRef r = LLVMBuildBinOp(g->b, code[op->kind], x[0], x[1], "");
    if (!g->func->exact && LLVMIsAInstruction(r))
        LLVMSetFastMathFlags(r, LLVMFastMathAllowContract);
    return r;
}

static LLVMTypeRef
own_type(Gen *g, ScalarKind k)
{
    return k == SK_BF16 ? LLVMBFloatTypeInContext(g->cx) : ll_scalar(g->cx, k);
}

LLVMValueRef
nv_half(Gen *g, const Op *op, LLVMValueRef *in)
{
    ScalarKind k;
    LLVMValueRef x[3];
    if (!is_half(op, &k))
        return NULL;
    for (int i = 0; i < op->noperand; i++)
        x[i] = LLVMBuildBitCast(g->b, in[i], own_type(g, k), "");
    return LLVMBuildBitCast(g->b, compute(g, op, x), ll_scalar(g->cx, k), "");
}

/* ---- bits of such floats, put together as integers */

static bool
is_bits(const Op *op)
{
    const Type *e = op->nresult ? type_elem(op->results[0].type) : NULL;
    if (!e || e->kind != TY_SCALAR || !type_is_int(e) || type_bits(e) != 16)
        return false;
    Const by;
    switch ((int)op->kind) {
    case OP_AND:
    case OP_OR:
    case OP_XOR: return true;
    case OP_SHL:
    case OP_SHRU: return value_const(op_operand(op, 1), &by) && by.i >= 0 && by.i < 16;
    default: return false;
    }
}

/* Is v used for the bits of 16-bit floats, and for nothing else? */
static bool
becomes_half(const Value *v, int depth)
{
    enum { DEPTH = 6 };
    value_each_use(v, u) {
        const Type *e = u->user->nresult ? type_elem(u->user->results[0].type) : NULL;
        bool ends = u->user->kind == OP_BITCAST &&
                    (e->scalar == SK_F16 || e->scalar == SK_BF16);
        if (!ends && (depth > DEPTH || !is_bits(u->user) ||
                      !becomes_half(&u->user->results[0], depth + 1)))
            return false;
    }
    return v->uses;
}

/* Two of them in one word: what a shift brings over from the neighbour is cut off. */
static LLVMValueRef
compute_bits(Gen *g, const Op *op, LLVMValueRef *x)
{
    static const LLVMOpcode code[OP_COUNT] = {
        [OP_AND] = LLVMAnd, [OP_OR] = LLVMOr, [OP_XOR] = LLVMXor};
    Const by;
    if (code[op->kind])
        return LLVMBuildBinOp(g->b, code[op->kind], x[0], x[1], "");
    if (!value_const(op_operand(op, 1), &by))
        return NULL;
    uint32_t kept = op->kind == OP_SHL ? 0xffffu << by.i & 0xffff : 0xffffu >> by.i;
    LLVMValueRef n = ll_int(g->i32, by.i), mask = ll_int(g->i32, kept << 16 | kept);
    LLVMTypeRef pair = LLVMTypeOf(x[0]);
    LLVMValueRef w = LLVMBuildBitCast(g->b, x[0], g->i32, "");
    w = op->kind == OP_SHL ? LLVMBuildShl(g->b, w, n, "") : LLVMBuildLShr(g->b, w, n, "");
    return LLVMBuildBitCast(g->b, LLVMBuildAnd(g->b, w, mask, ""), pair, "");
}

bool
nv_half_pair(Gen *g, const Op *op, Regs *const *in, int r, LLVMValueRef *out)
{
    ScalarKind k = SK_I16;
    LLVMValueRef x[3];
    bool bits = is_bits(op) && becomes_half(&op->results[0], 0);
    if (!bits && !is_half(op, &k))
        return false;
    LLVMTypeRef plain = LLVMVectorType(ll_scalar(g->cx, k), 2);
    LLVMTypeRef own = bits ? plain : LLVMVectorType(own_type(g, k), 2);
    for (int i = 0; i < op->noperand; i++) {
        x[i] = LLVMGetPoison(plain);
        for (int j = 0; j < 2; j++)
            x[i] = LLVMBuildInsertElement(g->b, x[i], in[i]->v[r + j], ll_int(g->i32, j),
                                          "");
        x[i] = LLVMBuildBitCast(g->b, x[i], own, "");
    }
    LLVMValueRef v = bits ? compute_bits(g, op, x) : compute(g, op, x);
    v = LLVMBuildBitCast(g->b, v, plain, "");
    for (int j = 0; j < 2; j++)
        out[j] = LLVMBuildExtractElement(g->b, v, ll_int(g->i32, j), "");
    return true;
}
