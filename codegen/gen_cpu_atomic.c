/* Atomics on the CPU, a lane at a time, masked-off lanes untouched. 16-bit floats have no
   atomic arithmetic anywhere: a compare-and-swap loop on their bits. Sums of consecutive
   elements are swapped 16 bytes at a time, whatever their type: one locked access costs
   as much as another. Such lanes are found at run time: in a strip without gaps whose
   first element is aligned. */
#include "codegen/gen_cpu.h"

#include "ir/base/util.h"
#include "ir/edit.h"

#include <string.h>

typedef struct Rmw {
    const char *name;
    LLVMAtomicRMWBinOp op;
} Rmw;

static int
rmw_op(const Op *op)
{
    static const Rmw table[] = {
        {"add", LLVMAtomicRMWBinOpAdd},   {"fadd", LLVMAtomicRMWBinOpFAdd},
        {"smax", LLVMAtomicRMWBinOpMax},  {"smin", LLVMAtomicRMWBinOpMin},
        {"umax", LLVMAtomicRMWBinOpUMax}, {"umin", LLVMAtomicRMWBinOpUMin},
        {"and", LLVMAtomicRMWBinOpAnd},   {"or", LLVMAtomicRMWBinOpOr},
        {"xor", LLVMAtomicRMWBinOpXor},   {"xchg", LLVMAtomicRMWBinOpXchg},
        {"fmax", LLVMAtomicRMWBinOpFMax}, {"fmin", LLVMAtomicRMWBinOpFMin},
    };
    Name want = attr_str(&op->attrs, ATTR_RMW);
    for (int i = 0; want && i < COUNT_OF(table); i++)
        if (strcmp(table[i].name, want) == 0)
            return (int)table[i].op;
    return -1;
}

/* What reads an old value orders all accesses around it: see op_acquires. */
static LLVMAtomicOrdering
ordering(const Op *op)
{
    Name sem = attr_str(&op->attrs, ATTR_SEM);
    if (op_acquires(op) || !sem || strcmp(sem, "acq_rel") == 0)
        return LLVMAtomicOrderingAcquireRelease;
    if (strcmp(sem, "acquire") == 0)
        return LLVMAtomicOrderingAcquire;
    return strcmp(sem, "release") == 0 ? LLVMAtomicOrderingRelease
                                       : LLVMAtomicOrderingMonotonic;
}

/* Of a compare-and-swap that does not swap. */
static LLVMAtomicOrdering
fail_ordering(const Op *op)
{
    LLVMAtomicOrdering o = ordering(op);
    return o == LLVMAtomicOrderingMonotonic || o == LLVMAtomicOrderingRelease
               ? LLVMAtomicOrderingMonotonic
               : LLVMAtomicOrderingAcquire;
}

/* x combined with v in f32, as bits of the 16-bit type. */
static LLVMValueRef
combine16(Gen *g, ScalarKind k, int rmw, LLVMValueRef old, LLVMValueRef v)
{
    LLVMValueRef in[2] = {gen_fcast(g, k, SK_F32, false, old),
                          gen_fcast(g, k, SK_F32, false, v)}, r;
    if (rmw == LLVMAtomicRMWBinOpFAdd)
        r = LLVMBuildFAdd(g->b, in[0], in[1], "");
    else
        r = ll_intrinsic1(
            g->b, rmw == LLVMAtomicRMWBinOpFMax ? "llvm.maxnum" : "llvm.minnum", in, 2);
    return gen_fcast(g, SK_F32, k, false, r);
}

static LLVMValueRef
swap_loop(Gen *g, const Op *op, ScalarKind k, int rmw, LLVMValueRef p, LLVMValueRef v)
{
    LLVMTypeRef i16 = LLVMInt16TypeInContext(g->cx), t = ll_scalar(g->cx, k);
    LLVMValueRef first = LLVMBuildLoad2(g->b, i16, p, "");
    LLVMSetOrdering(first, LLVMAtomicOrderingMonotonic);
    LLVMSetAlignment(first, 2);
    LLVMBasicBlockRef from = LLVMGetInsertBlock(g->b), loop = cpu_block(g, "swap");
    LLVMBasicBlockRef done = cpu_block(g, "swapped");
    LLVMBuildBr(g->b, loop);
    LLVMPositionBuilderAtEnd(g->b, loop);
    LLVMValueRef old = LLVMBuildPhi(g->b, i16, "");
    LLVMAddIncoming(old, &first, &from, 1);
    LLVMValueRef x = LLVMBuildBitCast(g->b, old, t, "");
    LLVMValueRef y = rmw == LLVMAtomicRMWBinOpXchg ? v : combine16(g, k, rmw, x, v);
    y = LLVMBuildBitCast(g->b, y, i16, "");
    LLVMValueRef r = LLVMBuildAtomicCmpXchg(g->b, p, old, y, ordering(op),
                                            fail_ordering(op), 0);
    LLVMValueRef got = LLVMBuildExtractValue(g->b, r, 0, "");
    LLVMBasicBlockRef end = LLVMGetInsertBlock(g->b);
    LLVMAddIncoming(old, &got, &end, 1);
    LLVMBuildCondBr(g->b, LLVMBuildExtractValue(g->b, r, 1, ""), done, loop);
    LLVMPositionBuilderAtEnd(g->b, done);
    return LLVMBuildBitCast(g->b, got, t, "");
}

static LLVMValueRef
compare_swap(Gen *g, const Op *op, LLVMValueRef p, LLVMValueRef want, LLVMValueRef v)
{
    LLVMTypeRef t = LLVMTypeOf(v);
    unsigned bits = (unsigned)type_bits(op->results[0].type);
    LLVMTypeRef it = LLVMIntTypeInContext(g->cx, bits);
    bool is_ptr = LLVMGetTypeKind(t) == LLVMPointerTypeKind;
    if (!is_ptr) {
        want = LLVMBuildBitCast(g->b, want, it, "");
        v = LLVMBuildBitCast(g->b, v, it, "");
    }
    LLVMValueRef r = LLVMBuildAtomicCmpXchg(g->b, p, want, v, ordering(op),
                                            fail_ordering(op), 0);
    LLVMValueRef old = LLVMBuildExtractValue(g->b, r, 0, "");
    return is_ptr ? old : LLVMBuildBitCast(g->b, old, t, "");
}

static LLVMValueRef
one_lane(Gen *g, const Op *op, int rmw, LLVMValueRef *x)
{
    ScalarKind k = type_elem(op->results[0].type)->scalar;
    if (op->kind == OP_ATOMIC_CAS)
        return compare_swap(g, op, x[0], x[1], x[2]);
    if (k == SK_F16 || k == SK_BF16)
        return swap_loop(g, op, k, rmw, x[0], x[1]);
    return LLVMBuildAtomicRMW(g->b, (LLVMAtomicRMWBinOp)rmw, x[0], x[1], ordering(op), 0);
}

/* Operands in memory, so that a loop can pick lanes: those from i on. */
static LLVMValueRef
lane(Gen *g, LLVMValueRef spilled, LLVMTypeRef t, LLVMTypeRef elem, LLVMValueRef i)
{
    LLVMValueRef p = LLVMBuildGEP2(g->b, elem, spilled, &i, 1, "");
    return LLVMBuildLoad2(g->b, t, p, "");
}

/* ---- sums of consecutive elements */

enum { WIDE = 16 };

static bool
may_be_wide(Gen *g, const Op *op, int rmw, unsigned lanes)
{
    const Cpu *c = g->priv;
    const Type *elem = type_elem(op->results[0].type);
    bool sum = rmw == LLVMAtomicRMWBinOpAdd || rmw == LLVMAtomicRMWBinOpFAdd;
    return op->kind == OP_ATOMIC_RMW && sum && c->avx2 && elem->kind == TY_SCALAR &&
           lanes > 1 && lanes * (unsigned)ll_bytes(elem->scalar) >= WIDE;
}

/* i1: all lanes are on, next to each other, the first aligned for a wide access. */
static LLVMValueRef
is_wide(Gen *g, LLVMTypeRef elem, LLVMValueRef ptrs, LLVMValueRef mask)
{
    unsigned n = ll_lanes(ptrs);
    LLVMValueRef first = ll_extract(g->b, ptrs, 0, 1);
    LLVMValueRef lanes = ll_iota(g->i64, n, 0);
    LLVMValueRef row = LLVMBuildGEP2(g->b, elem, first, &lanes, 1, "");
    LLVMValueRef all = LLVMBuildICmp(g->b, LLVMIntEQ, ptrs, row, "");
    if (mask)
        all = LLVMBuildAnd(g->b, all, mask, "");
    LLVMTypeRef bits = LLVMIntTypeInContext(g->cx, n);
    all = LLVMBuildBitCast(g->b, all, bits, "");
    all = LLVMBuildICmp(g->b, LLVMIntEQ, all, LLVMConstAllOnes(bits), "");
    LLVMValueRef low = LLVMBuildPtrToInt(g->b, first, g->i64, "");
    low = LLVMBuildAnd(g->b, low, ll_int(g->i64, WIDE - 1), "");
    low = LLVMBuildICmp(g->b, LLVMIntEQ, low, ll_int(g->i64, 0), "");
    return LLVMBuildAnd(g->b, all, low, "");
}

static LLVMValueRef
sum_of(Gen *g, ScalarKind k, LLVMValueRef old, LLVMValueRef v)
{
    if (k == SK_F16 || k == SK_BF16)
        return combine16(g, k, LLVMAtomicRMWBinOpFAdd, old, v);
    return scalar_is_float(k) ? LLVMBuildFAdd(g->b, old, v, "")
                              : LLVMBuildAdd(g->b, old, v, "");
}

/* A locked access waits for its line, and what follows waits for it. */
static void
ahead(Gen *g, LLVMValueRef p)
{
    enum { FAR = 256, CLOSE = 3 };
    LLVMValueRef by = ll_int(g->i64, FAR);
    LLVMValueRef args[4] = {LLVMBuildGEP2(g->b, g->i8, p, &by, 1, ""),
                            ll_int(g->i32, 1), ll_int(g->i32, CLOSE),
                            ll_int(g->i32, 1)};
    ll_intrinsic1(g->b, "llvm.prefetch", args, 4);
}

/* The whole strip; what was there goes to `out`, elements are added from `in`. */
static void
wide_sums(Gen *g, const Op *op, LLVMValueRef p, LLVMValueRef in, LLVMValueRef out)
{
    const Type *t = op->results[0].type;
    ScalarKind k = type_elem(t)->scalar;
    LLVMTypeRef et = cpu_type(g, type_elem(t)), bits = LLVMIntTypeInContext(g->cx, 128);
    unsigned step = WIDE / (unsigned)ll_bytes(k);
    LLVMTypeRef vt = LLVMVectorType(et, step);
    CpuLoop l = cpu_loop(g, 0, cpu_lanes(t), step);
    LLVMValueRef at = lane(g, in, vt, et, l.i);
    LLVMValueRef here = LLVMBuildGEP2(g->b, et, p, &l.i, 1, "");
    LLVMValueRef first = LLVMBuildLoad2(g->b, bits, here, "");
    LLVMSetOrdering(first, LLVMAtomicOrderingMonotonic);
    LLVMSetAlignment(first, WIDE);
    LLVMBasicBlockRef from = LLVMGetInsertBlock(g->b), loop = cpu_block(g, "swap");
    LLVMBasicBlockRef done = cpu_block(g, "swapped");
    LLVMBuildBr(g->b, loop);
    LLVMPositionBuilderAtEnd(g->b, loop);
    LLVMValueRef old = LLVMBuildPhi(g->b, bits, "");
    LLVMAddIncoming(old, &first, &from, 1);
    LLVMValueRef sum = sum_of(g, k, LLVMBuildBitCast(g->b, old, vt, ""), at);
    LLVMValueRef r = LLVMBuildAtomicCmpXchg(
        g->b, here, old, LLVMBuildBitCast(g->b, sum, bits, ""), ordering(op),
        fail_ordering(op), 0);
    LLVMSetAlignment(r, WIDE);
    LLVMValueRef got = LLVMBuildExtractValue(g->b, r, 0, "");
    LLVMBasicBlockRef end = LLVMGetInsertBlock(g->b);
    LLVMAddIncoming(old, &got, &end, 1);
    LLVMBuildCondBr(g->b, LLVMBuildExtractValue(g->b, r, 1, ""), done, loop);
    LLVMPositionBuilderAtEnd(g->b, done);
    LLVMValueRef was = LLVMBuildStore(g->b, LLVMBuildBitCast(g->b, got, vt, ""),
                                      LLVMBuildGEP2(g->b, et, out, &l.i, 1, ""));
    LLVMSetAlignment(was, (unsigned)ll_bytes(k));
    cpu_loop_end(g, &l);
}


typedef struct Strip {
    LLVMValueRef at[3]; /* operands, in memory */
    LLVMTypeRef t[3];
    int n;
    bool masked;
    LLVMValueRef out; /* results, in memory */
} Strip;

static void
each_lane(Gen *g, const Op *op, int rmw, const Strip *s)
{
    LLVMValueRef in[3];
    LLVMTypeRef et = cpu_type(g, type_elem(op->results[0].type));
    CpuLoop l = cpu_loop(g, 0, cpu_lanes(op->results[0].type), 1);
    LLVMBasicBlockRef next = NULL;
    if (s->masked) {
        LLVMBasicBlockRef on = cpu_block(g, "on");
        next = cpu_block(g, "next");
        LLVMValueRef bit = lane(g, s->at[2], g->i8, g->i8, l.i);
        bit = LLVMBuildICmp(g->b, LLVMIntNE, bit, ll_int(g->i8, 0), "");
        LLVMBuildCondBr(g->b, bit, on, next);
        LLVMPositionBuilderAtEnd(g->b, on);
    }
    for (int i = 0; i < s->n - s->masked; i++)
        in[i] = lane(g, s->at[i], s->t[i], s->t[i], l.i);
    LLVMValueRef old = one_lane(g, op, rmw, in);
    LLVMBuildStore(g->b, old, LLVMBuildGEP2(g->b, et, s->out, &l.i, 1, ""));
    if (s->masked) {
        LLVMBuildBr(g->b, next);
        LLVMPositionBuilderAtEnd(g->b, next);
    }
    cpu_loop_end(g, &l);
}

bool
cpu_atomic(Gen *g, const Op *op)
{
    LLVMValueRef x[3] = {0};
    int rmw = op->kind == OP_ATOMIC_CAS ? 0 : rmw_op(op);
    if (rmw < 0)
        return gen_unsupported(g, op, "with this {rmw}") != NULL;
    Strip s = {.n = op->noperand};
    s.masked = op->kind == OP_ATOMIC_RMW && s.n == 3;
    unsigned lanes = cpu_lanes(op->results[0].type);
    LLVMTypeRef et = cpu_type(g, type_elem(op->results[0].type));
    for (int i = 0; i < s.n; i++)
        x[i] = cpu_value(g, op_operand(op, i));
    LLVMValueRef mask = s.masked ? x[2] : NULL;
    for (int i = 0; i < s.n; i++) {
        if (s.masked && i == 2)
            x[i] = LLVMBuildZExt(g->b, x[i], ll_like(x[i], g->i8), "");
        s.t[i] = ll_elem(x[i]);
        s.at[i] = cpu_alloca(g, LLVMTypeOf(x[i]));
        LLVMBuildStore(g->b, x[i], s.at[i]);
    }
    s.out = cpu_alloca(g, ll_vector(et, lanes));
    LLVMBuildStore(g->b, LLVMConstNull(ll_vector(et, lanes)), s.out);
    LLVMBasicBlockRef after = NULL;
    if (may_be_wide(g, op, rmw, lanes)) {
        LLVMBasicBlockRef row = cpu_block(g, "row"), apart = cpu_block(g, "apart");
        after = cpu_block(g, "after");
        LLVMBuildCondBr(g->b, is_wide(g, et, x[0], mask), row, apart);
        LLVMPositionBuilderAtEnd(g->b, row);
        ahead(g, ll_extract(g->b, x[0], 0, 1));
        wide_sums(g, op, ll_extract(g->b, x[0], 0, 1), s.at[1], s.out);
        LLVMBuildBr(g->b, after);
        LLVMPositionBuilderAtEnd(g->b, apart);
    }
    each_lane(g, op, rmw, &s);
    if (after) {
        LLVMBuildBr(g->b, after);
        LLVMPositionBuilderAtEnd(g->b, after);
    }
    cpu_set(g, &op->results[0],
            LLVMBuildLoad2(g->b, ll_vector(et, lanes), s.out, ""));
    return true;
}
