/* Atomic operations: of the threads that hold an element one acts, and where the old
   value is wanted it reaches the others through shared memory.

   The program is the unit of memory order. A releasing operation on a scalar publishes
   what every thread wrote, so a barrier comes before it; the operations of a tile share
   one fence. Neighbouring elements ({contig}) are added in one vector operation where
   the type has it.

   What reads an old value acquires, whatever its {sem}: without, the SM's
   first cache may still hold what a program before this one has read, and a lock that is
   taken by a relaxed exchange guards nothing. From an old value that nobody reads nothing
   is learnt: such operations do not acquire.

   What changes nothing, such as an addition of 0, is a load of the same order, if it
   does not release. PTX exchanges 32 bits and more. Of less, an exchange whose old value
   nobody reads is a store; LLVM makes the rest of the word around the others. */
#include "codegen/gen_nv_access.h"

#include "ir/base/util.h"
#include "ir/edit.h"
#include "ir/fold.h"
#include "ir/plan/atomic_run.h"

#include <stdio.h>
#include <string.h>

typedef struct Code {
    const char *rmw, *name;
    char type; /* u, s, b, f: followed by the width */
    LLVMAtomicRMWBinOp op;
} Code;

typedef struct Atomic {
    const Op *op;
    const Code *code; /* NULL: compare and swap */
    const Type *elem;
    int bits;
    const char *name; /* "add.noftz"; NULL: left to LLVM */
    bool loads, stores; /* does only that: ld, st */
    char type[8];
    const char *scope;
    bool used; /* somebody reads the old value: it acquires */
    bool acquire, release; /* the instruction does, not a fence for all */
    NvRun run;
} Atomic;

static const Code codes[] = {
    {"add", "add", 'u', LLVMAtomicRMWBinOpAdd},
    {"smax", "max", 's', LLVMAtomicRMWBinOpMax},
    {"smin", "min", 's', LLVMAtomicRMWBinOpMin},
    {"umax", "max", 'u', LLVMAtomicRMWBinOpUMax},
    {"umin", "min", 'u', LLVMAtomicRMWBinOpUMin},
    {"and", "and", 'b', LLVMAtomicRMWBinOpAnd},
    {"or", "or", 'b', LLVMAtomicRMWBinOpOr},
    {"xor", "xor", 'b', LLVMAtomicRMWBinOpXor},
    {"xchg", "exch", 'b', LLVMAtomicRMWBinOpXchg},
    {"fadd", "add", 'f', LLVMAtomicRMWBinOpFAdd},
    {"fmax", NULL, 'f', LLVMAtomicRMWBinOpFMax},
    {"fmin", NULL, 'f', LLVMAtomicRMWBinOpFMin},
};

static const Code *
code_of(const Op *op)
{
    Name want = attr_str(&op->attrs, ATTR_RMW);
    for (int i = 0; want && i < COUNT_OF(codes); i++)
        if (strcmp(codes[i].rmw, want) == 0)
            return &codes[i];
    return NULL;
}

static ScalarKind
scalar_of(const Type *e)
{
    return e->kind == TY_PTR ? SK_I64 : e->scalar;
}

static void
choose_order(Atomic *a)
{
    Name sem = attr_str(&a->op->attrs, ATTR_SEM);
    Name scope = attr_str(&a->op->attrs, ATTR_SCOPE);
    bool both = !sem || strcmp(sem, "acq_rel") == 0;
    a->release = both || strcmp(sem, "release") == 0;
    a->acquire = a->used;
    a->scope = scope ? scope : "gpu";
}

/* Does it leave the memory as it was? Loops that wait for others poll this way, and a
   load takes no turn among the atomics of that address. */
static bool
only_reads(const Atomic *a)
{
    LLVMAtomicRMWBinOp op = a->code ? a->code->op : LLVMAtomicRMWBinOpXchg;
    return !a->release && value_is_zero(op_operand(a->op, 1)) &&
           (op == LLVMAtomicRMWBinOpAdd || op == LLVMAtomicRMWBinOpOr ||
            op == LLVMAtomicRMWBinOpXor);
}

/* The instruction for one element, where PTX has it. */
static void
choose_instruction(Gen *g, Atomic *a)
{
    ScalarKind k = scalar_of(a->elem);
    char type = a->code ? a->code->type : 'b';
    a->name = a->code ? a->code->name : "cas";
    snprintf(a->type, sizeof a->type, "%c%d", type, a->bits);
    a->loads = only_reads(a);
    if (!a->code || a->bits >= 32 || !a->name)
        return;
    a->name = NULL; /* arithmetic on 16 bits: additions of floats alone */
    a->stores = a->code->op == LLVMAtomicRMWBinOpXchg && !a->used;
    if (type != 'f' || a->code->op != LLVMAtomicRMWBinOpFAdd)
        return;
    if (k == SK_BF16 && g->info.bf16)
        snprintf(a->type, sizeof a->type, "bf16");
    if (k == SK_F16 || (k == SK_BF16 && g->info.bf16))
        a->name = "add.noftz";
}

static void
choose_run(Gen *g, Atomic *a)
{
    int most = a->name ? atomic_run(a->op, &g->info) : 1;
    a->run = (NvRun){.n = 1};
    if (most == 1)
        return;
    a->run = nv_run(a->op, op_operand(a->op, 1)->type->layout, a->bits / 8);
    while (a->run.n > most) {
        a->run.n /= 2;
        a->run.mask &= ~(1u << a->run.bit[log2_floor((uint64_t)a->run.n)]);
    }
}

static void
fence(Gen *g, const Atomic *a)
{
    char text[32];
    snprintf(text, sizeof text, "fence.acq_rel.%s;", a->scope);
    ptx_asm(g, text, "", LLVMVoidTypeInContext(g->cx), NULL, 0, true);
}

/* An instruction of PTX for the run that starts at register r. value[]: the operands'
   registers, for cas first what is compared. */
static void
by_instruction(Gen *g, const Atomic *a, LLVMValueRef ptr, LLVMValueRef pred,
               Regs *const *value, uint32_t r, Regs *out)
{
    int lists = a->loads ? 0 : a->code ? 1 : 2, n = a->run.n;
    LLVMValueRef word[8], elem[NV_ACCESS_BYTES], old[4];
    PtxAccess w = nv_access(n, a->bits, NULL);
    for (int k = 0; k < lists; k++) {
        for (int i = 0; i < n; i++)
            elem[i] =
                nv_to_bits(g, a->elem, value[k]->v[nv_member(&a->run, r, i)], a->bits);
        nv_pack(g, w, a->bits, elem, word + k * w.words);
    }
    bool red = !a->used && !a->loads && a->code &&
               (a->stores || a->code->op != LLVMAtomicRMWBinOpXchg);
    const char *order = a->acquire && a->release ? "acq_rel"
                        : a->acquire             ? "acquire"
                        : a->release             ? "release"
                                                 : "relaxed";
    char text[96];
    if (a->loads || a->stores)
        snprintf(text, sizeof text, "%s.%s.%s.global.%s", a->loads ? "ld" : "st", order,
                 a->scope, a->type);
    else
        snprintf(text, sizeof text, "%s.%s.%s.global.%s%s.%s%s", red ? "red" : "atom",
                 order, a->scope, a->name,
                 w.words == 4   ? ".v4"
                 : w.words == 2 ? ".v2"
                                : "",
                 a->type, a->bits == 16 && n > 1 ? "x2" : "");
    w.qualifiers = text;
    ptx_atomic(g, w, nv_address(g, ptr), pred, word, lists, red ? NULL : old);
    if (red)
        return;
    nv_unpack(g, w, a->bits, old, elem);
    for (int i = 0; i < n; i++)
        out->v[nv_member(&a->run, r, i)] = nv_from_bits(g, a->elem, elem[i]);
}

static LLVMAtomicOrdering
llvm_order(const Atomic *a)
{
    return a->acquire && a->release ? LLVMAtomicOrderingAcquireRelease
           : a->acquire             ? LLVMAtomicOrderingAcquire
           : a->release             ? LLVMAtomicOrderingRelease
                                    : LLVMAtomicOrderingMonotonic;
}

/* What PTX has no instruction for: LLVM makes a loop around compare and swap, under a
   branch. */
static LLVMValueRef
by_loop(Gen *g, const Atomic *a, LLVMValueRef ptr, LLVMValueRef pred, LLVMValueRef x)
{
    ScalarKind k = scalar_of(a->elem);
    LLVMTypeRef plain = LLVMTypeOf(x);
    const char *scope = strcmp(a->scope, "gpu") == 0   ? "device"
                        : strcmp(a->scope, "cta") == 0 ? "block"
                                                       : "";
    LLVMBasicBlockRef before = LLVMGetInsertBlock(g->b), on = NULL, after = NULL;
    if (pred) {
        on = LLVMAppendBasicBlockInContext(g->cx, g->fn, "atomic");
        after = LLVMAppendBasicBlockInContext(g->cx, g->fn, "atomics");
        LLVMBuildCondBr(g->b, pred, on, after);
        LLVMPositionBuilderAtEnd(g->b, on);
    }
    if (k == SK_BF16)
        x = LLVMBuildBitCast(g->b, x, LLVMBFloatTypeInContext(g->cx), "");
    LLVMValueRef old = LLVMBuildAtomicRMW(g->b, a->code->op, ptr, x, llvm_order(a), 0);
    unsigned id = LLVMGetSyncScopeID(g->cx, scope, strlen(scope));
    LLVMSetAtomicSyncScopeID(old, *scope ? id : 1);
    old = LLVMBuildBitCast(g->b, old, plain, "");
    if (!pred)
        return old;
    on = LLVMGetInsertBlock(g->b);
    LLVMBuildBr(g->b, after);
    LLVMPositionBuilderAtEnd(g->b, after);
    LLVMValueRef phi = LLVMBuildPhi(g->b, plain, ""), none = LLVMConstNull(plain);
    LLVMAddIncoming(phi, &old, &on, 1);
    LLVMAddIncoming(phi, &none, &before, 1);
    return phi;
}

/* The old values from the threads that acted to those that hold copies. */
static bool
share(Gen *g, const Atomic *a, LLVMValueRef owner, Regs *out)
{
    const Type *t = a->op->results[0].type;
    LLVMValueRef base = nv_scratch(g, a->op);
    if (!base)
        return false;
    if (type_is_tile(t)) {
        nv_scratch_write(g, base, t, out);
        nv_barrier(g);
        nv_scratch_read(g, base, t, out);
    } else {
        LLVMTypeRef word = LLVMIntTypeInContext(g->cx, (unsigned)a->bits);
        Guard guard = nv_guard_begin(g, owner);
        LLVMBuildStore(g->b, nv_to_bits(g, t, out->v[0], a->bits), base);
        nv_guard_end(g, guard);
        nv_barrier(g);
        out->v[0] = nv_from_bits(g, t, LLVMBuildLoad2(g->b, word, base, ""));
    }
    return true;
}

static bool
prepare(Gen *g, Atomic *a)
{
    const Op *op = a->op;
    a->elem = type_elem(op->results[0].type);
    a->bits = nv_memory_bits(a->elem);
    a->used = op_acquires(op);
    if (op->kind == OP_ATOMIC_RMW && !(a->code = code_of(op)))
        return gen_unsupported(g, op, "with this {rmw}") != NULL;
    choose_order(a);
    choose_instruction(g, a);
    if (a->bits < 16 && !a->loads && !a->stores)
        return gen_unsupported(g, op, "on elements of less than 16 bits") != NULL;
    choose_run(g, a);
    return true;
}

bool
nv_atomic(Gen *g, const Op *op)
{
    Atomic a = {.op = op};
    Regs *in[4] = {0};
    if (!prepare(g, &a))
        return false;
    for (int i = 0; i < op->noperand; i++)
        if (!(in[i] = nv_regs(g, op_operand(op, i))))
            return false;
    Regs *mask = op->kind == OP_ATOMIC_RMW ? in[2] : NULL;
    Regs *out = nv_define(g, &op->results[0], in[1]->n);
    if (!out || in[0]->n != out->n || (mask && mask->n != out->n))
        return false;
    const Layout *l = op->results[0].type->layout;
    LLVMValueRef owner = nv_owner(g, l);
    LLVMValueRef none = LLVMConstNull(nv_type(g, op->results[0].type));
    bool fences = out->n > a.run.n;
    if (!l && (a.release || a.acquire))
        nv_barrier(g);
    if (fences && a.release)
        fence(g, &a);
    if (fences)
        a.acquire = a.release = false;
    for (uint32_t r = 0; r < (uint32_t)out->n; r++) {
        LLVMValueRef pred = owner;
        if (r & a.run.mask)
            continue;
        for (int i = 0; i < a.run.n; i++)
            out->v[nv_member(&a.run, r, i)] = none;
        if (mask)
            pred = pred ? LLVMBuildAnd(g->b, pred, mask->v[r], "") : mask->v[r];
        if (a.name || a.loads || a.stores)
            by_instruction(g, &a, in[0]->v[r], pred, in + 1, r, out);
        else
            out->v[r] = by_loop(g, &a, in[0]->v[r], pred, in[1]->v[r]);
    }
    if (fences && a.used)
        fence(g, &a);
    if (owner && a.used && !share(g, &a, owner, out))
        return false;
    if (a.used)
        nv_acquired(g);
    return true;
}
