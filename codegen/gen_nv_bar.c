/* mbarriers: words in shared memory that count arrivals, and bytes that TMA
   brings, in phases.

   Warps arrive, not threads and not roles: lane 0 arrives for its warp once all lanes
   are there, so no warp waits for another. One elected thread of the role expects bytes,
   and the same one asks for them (tma_load), so the count is there first. Every thread
   waits: a try suspends in hardware, and what was awaited is then seen by the thread. */
#include "codegen/gen_nv.h"
#include "codegen/ptx.h"

#include "ir/base/util.h"
#include "ir/edit.h"

#include <stdio.h>

enum { BAR_BYTES = 8, GROUP_WARPS = 4 };

LLVMValueRef
nv_shared_word(Gen *g, LLVMValueRef address)
{
    return LLVMBuildPtrToInt(g->b, address, g->i32, "");
}

/* A thread of the first warp among `warps`, a power of two. */
static LLVMValueRef
elect(Gen *g, int warps)
{
    LLVMValueRef all = ll_int(g->i32, -1), zero = ll_int(g->i32, 0);
    LLVMValueRef v = ptx_call(g, PTX_ELECT, &all, 1), warp;
    v = LLVMBuildExtractValue(g->b, v, 1, "");
    if (warps < 2)
        return v;
    warp = nv_uniform_warp(g);
    if (warps < nv_warps(g))
        warp = LLVMBuildAnd(g->b, warp, ll_int(g->i32, warps - 1), "");
    return LLVMBuildAnd(g->b, LLVMBuildICmp(g->b, LLVMIntEQ, warp, zero, ""), v, "");
}

static LLVMValueRef
elect_thread(Gen *g)
{
    return elect(g, nv_warps(g));
}

static LLVMValueRef
elect_of_group(Gen *g)
{
    return elect(g, GROUP_WARPS);
}

static LLVMValueRef
group_number(Gen *g)
{
    return LLVMBuildLShr(g->b, nv_uniform_warp(g), ll_int(g->i32, 2), "");
}

/* What `make` builds, once for all: where the role begins. */
static LLVMValueRef
at_entry(Gen *g, LLVMValueRef *made, LLVMValueRef (*make)(Gen *))
{
    LLVMBasicBlockRef here = LLVMGetInsertBlock(g->b);
    LLVMPositionBuilderAtEnd(g->b, nv_of(g)->entry);
    if (!*made)
        *made = make(g);
    LLVMPositionBuilderAtEnd(g->b, here);
    return *made;
}

LLVMValueRef
nv_elected(Gen *g)
{
    return at_entry(g, &nv_of(g)->elected, elect_thread);
}

LLVMValueRef
nv_elected_of_group(Gen *g)
{
    return at_entry(g, &nv_of(g)->elected_of_group, elect_of_group);
}

LLVMValueRef
nv_group(Gen *g)
{
    return at_entry(g, &nv_of(g)->group, group_number);
}

LLVMValueRef
nv_uniform_warp(Gen *g)
{
    LLVMValueRef warp = LLVMBuildLShr(g->b, nv_of(g)->tid, ll_int(g->i32, 5), "");
    LLVMValueRef args[4] = {ll_int(g->i32, -1), warp, ll_int(g->i32, 0),
                            ll_int(g->i32, 31)};
    return ptx_call(g, PTX_SHFL_IDX, args, 4);
}

static void
statement(Gen *g, const char *text, const char *constraints, LLVMValueRef *args, int n)
{
    ptx_asm(g, text, constraints, LLVMVoidTypeInContext(g->cx), args, n, true);
}

/* One thread of the program sets the counts. The fence is for TMA; other
   threads see them after the barrier that passes/finish/insert_barriers.c puts before the
   first use.

   In a loop they are set anew in each iteration: what was there is given up first, which
   must be a barrier, and so there is one from the beginning. */
static void
set_counts(Gen *g, LLVMValueRef base, int stages, LLVMValueRef arrivals, bool again)
{
    LLVMValueRef args[3] = {
        NULL, arrivals,
        LLVMBuildICmp(g->b, LLVMIntEQ, nv_of(g)->tid, ll_int(g->i32, 0), "")};
    for (int i = 0; i < stages; i++) {
        args[0] = nv_shared_word(g, nv_scratch_part(g, base, i * BAR_BYTES));
        if (again)
            statement(g, "@$2 mbarrier.inval.shared::cta.b64 [$0];", "r,r,b", args, 3);
        statement(g, "@$2 mbarrier.init.shared::cta.b64 [$0], $1;", "r,r,b", args, 3);
    }
}

static bool
gen_alloc(Gen *g, const Op *op)
{
    const Value *v = &op->results[0];
    LLVMValueRef base = nv_scratch(g, op);
    Regs *out = base ? nv_define(g, v, 1) : NULL;
    if (!out)
        return false;
    int stages = (int)max_i64(1, v->type->stages);
    LLVMValueRef arrivals = ll_int(g->i32, attr_int(&op->attrs, ATTR_ARRIVALS, 1));
    if (attr_has(&op->attrs, ATTR_CLUSTER)) /* of each program in it */
        arrivals =
            LLVMBuildMul(g->b, arrivals, ptx_call(g, PTX_CLUSTER_SIZE, NULL, 0), "");
    bool again = op_in_loop(op);
    out->v[0] = base;
    if (again) {
        LLVMBasicBlockRef here = LLVMGetInsertBlock(g->b);
        LLVMPositionBuilderAtEnd(g->b, nv_of(g)->entry);
        set_counts(g, nv_scratch(g, op), stages, arrivals, false);
        LLVMPositionBuilderAtEnd(g->b, here);
    }
    set_counts(g, base, stages, arrivals, again);
    statement(g, "fence.mbarrier_init.release.cluster;", "", NULL, 0);
    return true;
}

static bool
gen_index(Gen *g, const Op *op)
{
    LLVMValueRef base = nv_scalar(g, op_operand(op, 0));
    LLVMValueRef stage = nv_scalar(g, op_operand(op, 1));
    Regs *out = base && stage ? nv_define(g, &op->results[0], 1) : NULL;
    if (!out)
        return false;
    LLVMValueRef at = LLVMBuildNUWMul(g->b, stage, ll_int(g->i32, BAR_BYTES), "");
    out->v[0] = LLVMBuildInBoundsGEP2(g->b, g->i8, base, &at, 1, "");
    return true;
}

/* The barrier at that address of the cluster's other program, or one's own: an address
   among the cluster's shared memory. */
static LLVMValueRef
of_cluster(Gen *g, LLVMValueRef bar, LLVMValueRef other)
{
    LLVMValueRef rank = ptx_call(g, PTX_CLUSTER_RANK, NULL, 0);
    LLVMValueRef args[2] = {
        bar, LLVMBuildXor(g->b, rank, LLVMBuildZExt(g->b, other, g->i32, ""), "")};
    return ptx_asm(g, "mapa.shared::cluster.u32 $0, $1, $2;", "=r,r,r", g->i32, args, 2,
                   false);
}

/* By the thread that is chosen: for all of the role, or for its warp. */
static void
arrive(Gen *g, const Op *op, LLVMValueRef bar, LLVMValueRef pred, LLVMValueRef chosen)
{
    LLVMValueRef args[3] = {bar, chosen};
    if (pred)
        args[1] = LLVMBuildAnd(g->b, pred, chosen, "");
    if (op->kind == OP_BAR_ARRIVE_CLUSTER) {
        statement(g, "@$1 mbarrier.arrive.shared::cluster.b64 _, [$0];", "r,b", args, 2);
        return;
    }
    if (op->kind == OP_BAR_ARRIVE) {
        statement(g, "@$1 mbarrier.arrive.shared::cta.b64 _, [$0];", "r,b", args, 2);
        return;
    }
    args[2] = ll_int(g->i32, attr_int(&op->attrs, ATTR_BYTES, 0));
    statement(g, "@$1 mbarrier.arrive.expect_tx.shared::cta.b64 _, [$0], $2;", "r,b,r",
              args, 3);
}

/* The braces keep the labels of each copy of the text apart. */
static void
wait(Gen *g, LLVMValueRef bar, LLVMValueRef phase, LLVMValueRef pred)
{
    LLVMValueRef args[3] = {bar, phase, pred};
    char text[256];
    snprintf(text, sizeof text,
             "{ .reg .pred done; %s"
             "again: mbarrier.try_wait.parity.shared::cta.b64 done, [$0], $1; "
             "@!done bra again; over: }",
             pred ? "@!$2 bra over; " : "");
    statement(g, text, pred ? "r,r,b" : "r,r", args, pred ? 3 : 2);
}

bool
nv_bar(Gen *g, const Op *op)
{
    if (g->info.sm < 90)
        return gen_unsupported(g, op, NULL) != NULL;
    if (op->kind == OP_BAR_ALLOC)
        return gen_alloc(g, op);
    if (op->kind == OP_BAR_INDEX)
        return gen_index(g, op);
    bool pair = op->kind == OP_BAR_ARRIVE_CLUSTER;
    int at = op->kind == OP_BAR_WAIT || pair ? 2 : 1; /* of the predicate */
    LLVMValueRef bar = nv_scalar(g, op_operand(op, 0)), pred = NULL;
    if (!bar || (op->noperand > at && !(pred = nv_scalar(g, op_operand(op, at)))))
        return false;
    bar = nv_shared_word(g, bar);
    if (op->kind == OP_BAR_WAIT) {
        LLVMValueRef phase = nv_scalar(g, op_operand(op, 1));
        if (phase)
            wait(g, bar, phase, pred);
        return phase != NULL;
    }
    if (op->kind == OP_BAR_EXPECT) {
        arrive(g, op, bar, pred, nv_elected(g));
        return true;
    }
    if (pair) {
        LLVMValueRef other = nv_scalar(g, op_operand(op, 1));
        if (!other)
            return false;
        bar = of_cluster(g, bar, other);
    }
    LLVMValueRef all = ll_int(g->i32, -1);
    if (!pair) /* which stands behind the warp's arrival at its own */
        ptx_call(g, PTX_BARRIER_WARP, &all, 1);
    LLVMValueRef first =
        LLVMBuildICmp(g->b, LLVMIntEQ, nv_of(g)->lane, ll_int(g->i32, 0), "");
    arrive(g, op, bar, pred, first);
    return true;
}
