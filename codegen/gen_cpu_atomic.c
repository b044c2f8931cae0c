/* Atomics on the CPU, a lane at a time, masked-off lanes untouched. 16-bit floats have no
   atomic arithmetic anywhere: a compare-and-swap loop on their bits. Sums of consecutive
   elements are swapped 16 bytes at a time, whatever their type: one locked access costs
   as much as another. Such lanes are found at run time: in a strip without gaps whose
   first element is aligned. A launch that is alone needs none of this, see
   gen_cpu_alone.c. */
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

LLVMValueRef
cpu_combine(Gen *g, const Op *op, int rmw, LLVMValueRef old, LLVMValueRef v)
{
    ScalarKind k = type_elem(op->results[0].type)->scalar;
    LLVMValueRef in[2] = {old, v};
    bool half = k == SK_F16 || k == SK_BF16;
    switch (rmw) {
    case LLVMAtomicRMWBinOpXchg: return v;
    case LLVMAtomicRMWBinOpAdd: return LLVMBuildAdd(g->b, old, v, "");
    case LLVMAtomicRMWBinOpAnd: return LLVMBuildAnd(g->b, old, v, "");
    case LLVMAtomicRMWBinOpOr: return LLVMBuildOr(g->b, old, v, "");
    case LLVMAtomicRMWBinOpXor: return LLVMBuildXor(g->b, old, v, "");
    case LLVMAtomicRMWBinOpMax: return ll_intrinsic1(g->b, "llvm.smax", in, 2);
    case LLVMAtomicRMWBinOpMin: return ll_intrinsic1(g->b, "llvm.smin", in, 2);
    case LLVMAtomicRMWBinOpUMax: return ll_intrinsic1(g->b, "llvm.umax", in, 2);
    case LLVMAtomicRMWBinOpUMin: return ll_intrinsic1(g->b, "llvm.umin", in, 2);
    default: break;
    }
    if (half)
        return combine16(g, k, rmw, old, v);
    if (rmw == LLVMAtomicRMWBinOpFAdd)
        return LLVMBuildFAdd(g->b, old, v, "");
    return ll_intrinsic1(
        g->b, rmw == LLVMAtomicRMWBinOpFMax ? "llvm.maxnum" : "llvm.minnum", in, 2);
}

LLVMValueRef
cpu_lane(Gen *g, LLVMValueRef spilled, LLVMTypeRef t, LLVMTypeRef elem, LLVMValueRef i)
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

LLVMValueRef
cpu_all_on(Gen *g, LLVMValueRef mask)
{
    if (!mask)
        return NULL;
    LLVMTypeRef bits = LLVMIntTypeInContext(g->cx, ll_lanes(mask));
    mask = LLVMBuildBitCast(g->b, mask, bits, "");
    return LLVMBuildICmp(g->b, LLVMIntEQ, mask, LLVMConstAllOnes(bits), "");
}

LLVMValueRef
cpu_is_row(Gen *g, LLVMTypeRef elem, LLVMValueRef ptrs, LLVMValueRef mask)
{
    unsigned n = ll_lanes(ptrs);
    LLVMValueRef first = ll_extract(g->b, ptrs, 0, 1);
    LLVMValueRef lanes = ll_iota(g->i64, n, 0);
    LLVMValueRef row = LLVMBuildGEP2(g->b, elem, first, &lanes, 1, "");
    LLVMValueRef all = LLVMBuildICmp(g->b, LLVMIntEQ, ptrs, row, "");
    if (mask)
        all = LLVMBuildAnd(g->b, all, mask, "");
    return cpu_all_on(g, all);
}

/* i1: all lanes are on, next to each other, the first aligned for a wide access. */
static LLVMValueRef
is_wide(Gen *g, LLVMTypeRef elem, const Strip *s)
{
    LLVMValueRef all =
        s->row ? cpu_all_on(g, s->mask) : cpu_is_row(g, elem, s->x[0], s->mask);
    LLVMValueRef first = s->row ? s->row : ll_extract(g->b, s->x[0], 0, 1);
    LLVMValueRef low = LLVMBuildPtrToInt(g->b, first, g->i64, "");
    low = LLVMBuildAnd(g->b, low, ll_int(g->i64, WIDE - 1), "");
    low = LLVMBuildICmp(g->b, LLVMIntEQ, low, ll_int(g->i64, 0), "");
    return all ? LLVMBuildAnd(g->b, all, low, "") : low;
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

/* The whole strip, from p on. */
static void
wide_sums(Gen *g, const Op *op, int rmw, LLVMValueRef p, const Strip *s)
{
    const Type *t = op->results[0].type;
    ScalarKind k = type_elem(t)->scalar;
    LLVMTypeRef et = cpu_type(g, type_elem(t)), bits = LLVMIntTypeInContext(g->cx, 128);
    unsigned step = WIDE / (unsigned)ll_bytes(k);
    LLVMTypeRef vt = LLVMVectorType(et, step);
    CpuLoop l = cpu_loop(g, 0, cpu_lanes(t), step);
    LLVMValueRef at = cpu_lane(g, s->at[1], vt, et, l.i);
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
    LLVMValueRef was = LLVMBuildBitCast(g->b, old, vt, "");
    LLVMValueRef sum = cpu_combine(g, op, rmw, was, at);
    LLVMValueRef r = LLVMBuildAtomicCmpXchg(
        g->b, here, old, LLVMBuildBitCast(g->b, sum, bits, ""), ordering(op),
        fail_ordering(op), 0);
    LLVMSetAlignment(r, WIDE);
    LLVMValueRef got = LLVMBuildExtractValue(g->b, r, 0, "");
    LLVMBasicBlockRef end = LLVMGetInsertBlock(g->b);
    LLVMAddIncoming(old, &got, &end, 1);
    LLVMBuildCondBr(g->b, LLVMBuildExtractValue(g->b, r, 1, ""), done, loop);
    LLVMPositionBuilderAtEnd(g->b, done);
    if (s->out) {
        LLVMValueRef to = LLVMBuildGEP2(g->b, et, s->out, &l.i, 1, "");
        LLVMValueRef x = LLVMBuildBitCast(g->b, got, vt, "");
        LLVMSetAlignment(LLVMBuildStore(g->b, x, to), (unsigned)ll_bytes(k));
    }
    cpu_loop_end(g, &l);
}

static void
each_lane(Gen *g, const Op *op, int rmw, const Strip *s)
{
    LLVMValueRef in[3];
    LLVMTypeRef et = cpu_type(g, type_elem(op->results[0].type));
    CpuLoop l = cpu_loop(g, 0, cpu_lanes(op->results[0].type), 1);
    LLVMBasicBlockRef next = NULL;
    if (s->mask) {
        LLVMBasicBlockRef on = cpu_block(g, "on");
        next = cpu_block(g, "next");
        LLVMValueRef bit = cpu_lane(g, s->mask_at, g->i8, g->i8, l.i);
        bit = LLVMBuildICmp(g->b, LLVMIntNE, bit, ll_int(g->i8, 0), "");
        LLVMBuildCondBr(g->b, bit, on, next);
        LLVMPositionBuilderAtEnd(g->b, on);
    }
    for (int i = 0; i < s->n; i++)
        in[i] = cpu_lane(g, s->at[i], s->t[i], s->t[i], l.i);
    LLVMValueRef old = one_lane(g, op, rmw, in);
    if (s->out)
        LLVMBuildStore(g->b, old, LLVMBuildGEP2(g->b, et, s->out, &l.i, 1, ""));
    if (s->mask) {
        LLVMBuildBr(g->b, next);
        LLVMPositionBuilderAtEnd(g->b, next);
    }
    cpu_loop_end(g, &l);
}

void
cpu_spill(Gen *g, const Strip *s)
{
    for (int i = 0; i < s->n; i++)
        LLVMBuildStore(g->b, s->x[i], s->at[i]);
    if (s->mask) {
        LLVMValueRef bytes = LLVMBuildZExt(g->b, s->mask, ll_like(s->mask, g->i8), "");
        LLVMBuildStore(g->b, bytes, s->mask_at);
    }
}

static Strip
strip_of(Gen *g, const Op *op)
{
    Strip s = {.n = op->noperand};
    const Type *t = op->results[0].type;
    if (op->kind == OP_ATOMIC_RMW && s.n == 3)
        s.mask = cpu_value(g, op_operand(op, --s.n));
    for (int i = 0; i < s.n; i++) {
        s.x[i] = cpu_value(g, op_operand(op, i));
        s.t[i] = ll_elem(s.x[i]);
        s.at[i] = cpu_alloca(g, LLVMTypeOf(s.x[i]));
    }
    if (s.mask)
        s.mask_at = cpu_alloca(g, ll_like(s.mask, g->i8));
    if (cpu_lanes(t) > 1 && cpu_row_of(op))
        s.row = cpu_value(g, cpu_row_of(op));
    if (op->results[0].uses) {
        LLVMTypeRef all = ll_vector(cpu_type(g, type_elem(t)), cpu_lanes(t));
        s.out = cpu_alloca(g, all);
        LLVMBuildStore(g->b, LLVMConstNull(all), s.out);
    }
    return s;
}

static void
locked(Gen *g, const Op *op, int rmw, const Strip *s)
{
    LLVMTypeRef et = cpu_type(g, type_elem(op->results[0].type));
    LLVMBasicBlockRef after = NULL;
    cpu_spill(g, s);
    if (may_be_wide(g, op, rmw, cpu_lanes(op->results[0].type))) {
        LLVMBasicBlockRef row = cpu_block(g, "row"), apart = cpu_block(g, "apart");
        after = cpu_block(g, "after");
        LLVMBuildCondBr(g->b, is_wide(g, et, s), row, apart);
        LLVMPositionBuilderAtEnd(g->b, row);
        LLVMValueRef p = s->row ? s->row : ll_extract(g->b, s->x[0], 0, 1);
        ahead(g, p);
        wide_sums(g, op, rmw, p, s);
        LLVMBuildBr(g->b, after);
        LLVMPositionBuilderAtEnd(g->b, apart);
    }
    each_lane(g, op, rmw, s);
    if (after) {
        LLVMBuildBr(g->b, after);
        LLVMPositionBuilderAtEnd(g->b, after);
    }
}

bool
cpu_atomic(Gen *g, const Op *op)
{
    int rmw = op->kind == OP_ATOMIC_CAS ? 0 : rmw_op(op);
    if (rmw < 0)
        return gen_unsupported(g, op, "with this {rmw}") != NULL;
    Strip s = strip_of(g, op);
    LLVMBasicBlockRef done = NULL;
    if (cpu_alone_helps(g, op)) {
        LLVMBasicBlockRef alone = cpu_block(g, "alone"), beside = cpu_block(g, "beside");
        done = cpu_block(g, "done");
        LLVMBuildCondBr(g->b, ((Cpu *)g->priv)->alone, alone, beside);
        LLVMPositionBuilderAtEnd(g->b, alone);
        cpu_atomic_alone(g, op, rmw, &s);
        LLVMBuildBr(g->b, done);
        LLVMPositionBuilderAtEnd(g->b, beside);
    }
    locked(g, op, rmw, &s);
    if (done) {
        LLVMBuildBr(g->b, done);
        LLVMPositionBuilderAtEnd(g->b, done);
    }
    if (s.out) {
        const Type *t = op->results[0].type;
        LLVMTypeRef all = ll_vector(cpu_type(g, type_elem(t)), cpu_lanes(t));
        cpu_set(g, &op->results[0], LLVMBuildLoad2(g->b, all, s.out, ""));
    }
    return true;
}
