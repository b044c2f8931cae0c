/* Atomics on the CPU, a lane at a time, masked-off lanes untouched. 16-bit floats have no
   atomic arithmetic anywhere: a compare-and-swap loop on their bits. */
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
    LLVMAtomicOrdering o = ordering(op);
    LLVMAtomicOrdering fail = o == LLVMAtomicOrderingAcquireRelease ||
                                      o == LLVMAtomicOrderingAcquire
                                  ? LLVMAtomicOrderingAcquire
                                  : LLVMAtomicOrderingMonotonic;
    LLVMValueRef r = LLVMBuildAtomicCmpXchg(g->b, p, old, y, o, fail, 0);
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
    LLVMAtomicOrdering o = ordering(op);
    LLVMAtomicOrdering fail =
        o == LLVMAtomicOrderingMonotonic || o == LLVMAtomicOrderingRelease
            ? LLVMAtomicOrderingMonotonic
            : LLVMAtomicOrderingAcquire;
    LLVMValueRef r = LLVMBuildAtomicCmpXchg(g->b, p, want, v, o, fail, 0);
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

/* Operands in memory, so that a loop can pick lanes. */
static LLVMValueRef
lane(Gen *g, LLVMValueRef spilled, LLVMTypeRef t, LLVMValueRef i)
{
    return LLVMBuildLoad2(g->b, t, LLVMBuildGEP2(g->b, t, spilled, &i, 1, ""), "");
}

bool
cpu_atomic(Gen *g, const Op *op)
{
    LLVMValueRef x[3], at[3], in[3];
    LLVMTypeRef t[3];
    int rmw = op->kind == OP_ATOMIC_CAS ? 0 : rmw_op(op);
    if (rmw < 0)
        return gen_unsupported(g, op, "with this {rmw}") != NULL;
    int n = op->noperand;
    bool masked = op->kind == OP_ATOMIC_RMW && n == 3;
    const Type *elem = type_elem(op->results[0].type);
    unsigned lanes = cpu_lanes(op->results[0].type);
    LLVMTypeRef et = cpu_type(g, elem);
    for (int i = 0; i < n; i++) {
        x[i] = cpu_value(g, op_operand(op, i));
        if (masked && i == 2)
            x[i] = LLVMBuildZExt(g->b, x[i], ll_like(x[i], g->i8), "");
        t[i] = ll_elem(x[i]);
        at[i] = cpu_alloca(g, LLVMTypeOf(x[i]));
        LLVMBuildStore(g->b, x[i], at[i]);
    }
    LLVMValueRef out = cpu_alloca(g, ll_vector(et, lanes));
    LLVMBuildStore(g->b, LLVMConstNull(ll_vector(et, lanes)), out);
    CpuLoop l = cpu_loop(g, 0, lanes, 1);
    LLVMBasicBlockRef next = NULL;
    if (masked) {
        LLVMBasicBlockRef on = cpu_block(g, "on");
        next = cpu_block(g, "next");
        LLVMValueRef bit = lane(g, at[2], g->i8, l.i);
        bit = LLVMBuildICmp(g->b, LLVMIntNE, bit, ll_int(g->i8, 0), "");
        LLVMBuildCondBr(g->b, bit, on, next);
        LLVMPositionBuilderAtEnd(g->b, on);
    }
    for (int i = 0; i < n - masked; i++)
        in[i] = lane(g, at[i], t[i], l.i);
    LLVMValueRef old = one_lane(g, op, rmw, in);
    LLVMBuildStore(g->b, old, LLVMBuildGEP2(g->b, et, out, &l.i, 1, ""));
    if (masked) {
        LLVMBuildBr(g->b, next);
        LLVMPositionBuilderAtEnd(g->b, next);
    }
    cpu_loop_end(g, &l);
    cpu_set(g, &op->results[0], LLVMBuildLoad2(g->b, ll_vector(et, lanes), out, ""));
    return true;
}
