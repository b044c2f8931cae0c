/* Atomics of a launch that is alone: its entry is told so by SDCRT_ALONE, no other thread
   runs programs with atomics meanwhile, and an ordinary load and store do what a locked
   instruction does for a sixth of the time or less. Lanes that are found to lie next to
   each other are one vector.

   Which launches may be alone is decided here, too: not those of kernels in which a
   program may wait for another, which then would never come. A launch that is alone runs
   on one thread. Whether that is faster than locked instructions on several is an
   estimate from what else the kernel does. `scope="sys"` is for others than launches: it
   stays locked. */
#include "codegen/gen_cpu.h"

#include "ir/base/util.h"
#include "ir/edit.h"

#include <string.h>

/* In units of a vector instruction, measured on Zen 4 and 5: a lane on its own, and of a
   row, which is swapped 16 bytes at a time. */
static const double LOCKED = 16, PLAIN = 2, LOCKED_IN_ROW = 6, PLAIN_IN_ROW = 0.25;
enum { ROUNDS = 8, TOUCH = 4, MOST_THREADS = 64, AT_ONCE = 4 };

static bool
is_atomic(const Op *op)
{
    return op->kind == OP_ATOMIC_RMW || op->kind == OP_ATOMIC_CAS;
}

static bool
reads_memory(const Op *op)
{
    return is_atomic(op) || op->kind == OP_LOAD || op->kind == OP_VLOAD;
}

static bool
any_op(const Region *r, bool (*is)(const Op *))
{
    for (const Op *op = r->first; op; op = op->next) {
        if (is(op))
            return true;
        for (int i = 0; i < op->nregion; i++)
            if (any_op(op->regions[i], is))
                return true;
    }
    return false;
}

/* A loop that memory may end: perhaps what another program writes there. */
static bool
waits(const Op *op)
{
    if (op->kind != OP_WHILE)
        return false;
    return any_op(op->regions[0], reads_memory) || any_op(op->regions[1], reads_memory);
}

typedef struct Time {
    double locked, plain;
} Time;

static Time
time_of_op(const Op *op)
{
    const Type *t = op->nresult     ? op->results[0].type
                    : op->noperand  ? op_operand(op, op->kind == OP_VSTORE)->type
                                    : NULL;
    if (op->kind == OP_BUF_DOT) {
        const Type *a = op_operand(op, 0)->type, *c = op_operand(op, 2)->type;
        double n = (double)type_numel(c) * (double)a->shape[a->rank - 1] / 32;
        return (Time){n, n};
    }
    double lanes = t && t->kind == TY_TILE ? (double)type_numel(t) : 1;
    if (is_atomic(op) && lanes > 1 && cpu_row_of(op))
        return (Time){LOCKED_IN_ROW * lanes, PLAIN_IN_ROW * lanes};
    if (is_atomic(op))
        return (Time){LOCKED * lanes, PLAIN * lanes};
    double n = lanes > 16 ? lanes / 16 : 1;
    n *= reads_memory(op) || op->kind == OP_STORE || op->kind == OP_VSTORE ? TOUCH : 1;
    return (Time){n, n};
}

static Time
time_of(const Region *r)
{
    Time sum = {0, 0};
    for (const Op *op = r->first; op; op = op->next) {
        Time t = op->nregion ? (Time){0, 0} : time_of_op(op);
        for (int i = 0; i < op->nregion; i++) {
            Time in = time_of(op->regions[i]);
            /* Of arms the first is the one without masks. */
            if (op->kind == OP_IF && i > 0 && t.locked > 0)
                continue;
            double rounds = op->kind == OP_IF ? 1 : ROUNDS;
            t.locked += rounds * in.locked;
            t.plain += rounds * in.plain;
        }
        sum.locked += t.locked;
        sum.plain += t.plain;
    }
    return sum;
}

void
cpu_may_be_alone(const Func *f, SdcrtMeta *meta)
{
    meta->atomics = any_op(f->body, is_atomic);
    meta->alone = 0;
    if (!meta->atomics || meta->hooks || any_op(f->body, waits))
        return;
    Time t = time_of(f->body);
    double threads = t.locked / (t.plain > 0 ? t.plain : 1);
    meta->alone = threads < 1 ? 1 : threads > MOST_THREADS ? MOST_THREADS : (int)threads;
}

bool
cpu_alone_helps(const Gen *g, const Op *op)
{
    const Cpu *c = g->priv;
    Name scope = attr_str(&op->attrs, ATTR_SCOPE);
    return c->alone && !(scope && strcmp(scope, "sys") == 0);
}

void
cpu_alone_begin(Gen *g)
{
    Cpu *c = g->priv;
    LLVMValueRef tagged = LLVMGetParam(g->fn, 4), args[2] = {tagged, NULL};
    LLVMValueRef bits = LLVMBuildPtrToInt(g->b, tagged, g->i64, "");
    LLVMTypeRef over[2] = {g->ptr, g->i64};
    c->alone = LLVMBuildTrunc(g->b, bits, LLVMInt1TypeInContext(g->cx), "alone");
    args[1] = ll_int(g->i64, ~(int64_t)63);
    c->scratch = ll_intrinsic(g->b, "llvm.ptrmask", over, 2, args, 2);
}

/* ---- what stands for the locked instructions */

/* What is in memory afterwards, of lanes or vectors. */
static LLVMValueRef
combined(Gen *g, const Op *op, int rmw, LLVMValueRef old, const LLVMValueRef *x)
{
    if (op->kind == OP_ATOMIC_CAS) {
        LLVMValueRef a = old, b = x[1];
        if (LLVMGetTypeKind(ll_elem(a)) != LLVMPointerTypeKind) {
            unsigned bits = (unsigned)type_bits(type_elem(op->results[0].type));
            LLVMTypeRef t = ll_like(a, LLVMIntTypeInContext(g->cx, bits));
            a = LLVMBuildBitCast(g->b, a, t, "");
            b = LLVMBuildBitCast(g->b, b, t, "");
        }
        LLVMValueRef same = LLVMBuildICmp(g->b, LLVMIntEQ, a, b, "");
        return LLVMBuildSelect(g->b, same, x[2], old, "");
    }
    return cpu_combine(g, op, rmw, old, x[1]);
}

/* Lanes next to each other. */
static void
row(Gen *g, const Op *op, int rmw, const Strip *s, LLVMValueRef first)
{
    const Type *elem = type_elem(op->results[0].type);
    unsigned lanes = ll_lanes(s->x[1]);
    LLVMValueRef old = cpu_load(g, op, elem, lanes, first, s->mask, NULL);
    cpu_store(g, op, elem, first, combined(g, op, rmw, old, s->x), s->mask);
    if (s->out)
        LLVMBuildStore(g->b, old, s->out);
}

/* Operand i of an atomic in lane l. Of a splat it needs no memory. */
static LLVMValueRef
lane_of(Gen *g, const Op *op, const Strip *s, int i, LLVMValueRef l)
{
    const Op *splat = value_def(op_operand(op, i), OP_SPLAT);
    if (splat)
        return cpu_value(g, op_operand(splat, 0));
    return cpu_lane(g, s->at[i], s->t[i], s->t[i], l);
}

/* Lane l; if it is off, the access goes to memory of the function's own, `aside`. */
static void
lane_apart(Gen *g, const Op *op, int rmw, const Strip *s, LLVMValueRef l,
           LLVMValueRef aside, unsigned align)
{
    LLVMValueRef in[3];
    LLVMTypeRef et = cpu_type(g, type_elem(op->results[0].type));
    for (int i = 0; i < s->n; i++)
        in[i] = lane_of(g, op, s, i, l);
    if (aside) {
        LLVMValueRef on = cpu_lane(g, s->mask_at, g->i8, g->i8, l);
        on = LLVMBuildICmp(g->b, LLVMIntNE, on, ll_int(g->i8, 0), "");
        in[0] = LLVMBuildSelect(g->b, on, in[0], aside, "");
    }
    LLVMValueRef old = ll_load(g->b, et, in[0], align);
    LLVMSetAlignment(LLVMBuildStore(g->b, combined(g, op, rmw, old, in), in[0]), align);
    if (s->out)
        LLVMBuildStore(g->b, old, LLVMBuildGEP2(g->b, et, s->out, &l, 1, ""));
}

/* One lane after another, several in an iteration. */
static void
each_apart(Gen *g, const Op *op, int rmw, const Strip *s, LLVMValueRef aside,
           unsigned lanes, unsigned align)
{
    unsigned step = aside || lanes < AT_ONCE ? 1 : AT_ONCE;
    CpuLoop l = {.i = ll_int(g->i64, 0)};
    if (lanes > step)
        l = cpu_loop(g, 0, lanes, step);
    for (unsigned i = 0; i < step; i++)
        lane_apart(g, op, rmw, s, LLVMBuildAdd(g->b, l.i, ll_int(g->i64, i), ""), aside,
                   align);
    if (lanes > step)
        cpu_loop_end(g, &l);
}

static void
lanes_apart(Gen *g, const Op *op, int rmw, const Strip *s, unsigned lanes, unsigned align)
{
    cpu_spill(g, s);
    LLVMTypeRef et = cpu_type(g, type_elem(op->results[0].type));
    LLVMValueRef aside = s->mask ? cpu_alloca(g, et) : NULL;
    if (!s->mask || lanes < AT_ONCE) {
        each_apart(g, op, rmw, s, aside, lanes, align);
        return;
    }
    LLVMBasicBlockRef all = cpu_block(g, "all"), some = cpu_block(g, "some");
    LLVMBasicBlockRef done = cpu_block(g, "each");
    LLVMBuildCondBr(g->b, cpu_all_on(g, s->mask), all, some);
    LLVMPositionBuilderAtEnd(g->b, all);
    each_apart(g, op, rmw, s, NULL, lanes, align);
    LLVMBuildBr(g->b, done);
    LLVMPositionBuilderAtEnd(g->b, some);
    each_apart(g, op, rmw, s, aside, lanes, align);
    LLVMBuildBr(g->b, done);
    LLVMPositionBuilderAtEnd(g->b, done);
}

/* i1: is the second lane behind the first? Asked first, for it costs little. */
static LLVMValueRef
begins_row(Gen *g, LLVMTypeRef elem, LLVMValueRef ptrs)
{
    LLVMValueRef one = ll_int(g->i64, 1), first = ll_extract(g->b, ptrs, 0, 1);
    LLVMValueRef next = LLVMBuildGEP2(g->b, elem, first, &one, 1, "");
    return LLVMBuildICmp(g->b, LLVMIntEQ, ll_extract(g->b, ptrs, 1, 1), next, "");
}

void
cpu_atomic_alone(Gen *g, const Op *op, int rmw, const Strip *s)
{
    const Type *t = op->results[0].type, *elem = type_elem(t);
    LLVMTypeRef et = cpu_type(g, elem);
    unsigned lanes = cpu_lanes(t);
    unsigned align = elem->kind == TY_PTR ? 8 : (unsigned)ll_bytes(elem->scalar);
    bool is_number = elem->kind == TY_SCALAR;
    if (s->row && is_number) {
        row(g, op, rmw, s, s->row);
        return;
    }
    if (lanes == 1 || !is_number) {
        lanes_apart(g, op, rmw, s, lanes, align);
        return;
    }
    LLVMBasicBlockRef seems = cpu_block(g, "seems"), near = cpu_block(g, "near");
    LLVMBasicBlockRef apart = cpu_block(g, "far"), done = cpu_block(g, "did");
    LLVMBuildCondBr(g->b, begins_row(g, et, s->x[0]), seems, apart);
    LLVMPositionBuilderAtEnd(g->b, seems);
    LLVMBuildCondBr(g->b, cpu_is_row(g, et, s->x[0], NULL), near, apart);
    LLVMPositionBuilderAtEnd(g->b, near);
    row(g, op, rmw, s, ll_extract(g->b, s->x[0], 0, 1));
    LLVMBuildBr(g->b, done);
    LLVMPositionBuilderAtEnd(g->b, apart);
    lanes_apart(g, op, rmw, s, lanes, align);
    LLVMBuildBr(g->b, done);
    LLVMPositionBuilderAtEnd(g->b, done);
}
