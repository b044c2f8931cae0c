/* warp_specialize: the warps of one block do different work.

   Each role begins at a warpgroup, since registers are reassigned between warpgroups
   (setmaxnreg); if a role has fewer warps, the others of its last warpgroup idle. A warp
   finds its role by its number. Inside a role, threads and warps are numbered from the
   role's first one, layouts refer to the role's warps, and barriers are those of the
   role, with a name of their own. Nothing but the return follows the op.

   All warps are launched with the same number of registers. A role with a register budget
   releases or acquires the difference in its first instruction; warps that acquire wait
   for those that release. */
#include "codegen/gen_nv.h"
#include "codegen/ptx.h"

#include "ir/base/util.h"

#include <stdio.h>

enum {
    GROUP = 4, /* warps of a warpgroup, which setmaxnreg is for */
    MAX_THREAD_REGS = 255,
    MIN_BUDGET = 24,
    MAX_BUDGET = 256,
    MAX_ROLES = 15 /* there are 16 named barriers; one is the program's */
};

static int
groups_of(const Op *op, int role)
{
    const Attr *warps = attr_find(&op->attrs, ATTR_WARPS);
    return (int)(warps->v.ints[role] + GROUP - 1) / GROUP;
}

const Op *
nv_roles_of(const Func *f)
{
    for (const Op *op = f->body->first; op; op = op->next)
        if (op->kind == OP_WARP_SPECIALIZE)
            return op;
    return NULL;
}

int
nv_launch_warps(const Func *f)
{
    const Op *op = nv_roles_of(f);
    int groups = 0;
    if (!op)
        return f->num_warps;
    for (int i = 0; i < op->nregion; i++)
        groups += groups_of(op, i);
    return groups * GROUP;
}

int
nv_blocks(const Op *roles)
{
    return (int)attr_int(&roles->attrs, ATTR_BLOCKS, 1);
}

int
nv_cluster(const Op *roles)
{
    return roles ? (int)attr_int(&roles->attrs, ATTR_CLUSTER, 0) : 0;
}

bool
nv_in_cluster(Gen *g, const Op *op)
{
    Regs *out = nv_define(g, &op->results[0], 1);
    if (!out || g->info.sm < 90)
        return false;
    LLVMValueRef size = ptx_call(g, PTX_CLUSTER_SIZE, NULL, 0);
    out->v[0] = LLVMBuildICmp(g->b, LLVMIntEQ, size, ll_int(g->i32, 2), "");
    return true;
}

/* A barrier of the cluster. At the start: the mbarriers of each program must be
   initialised before copies and arrivals of the other come. At the end: the shared memory
   of each program must exist until they have come. */
static void
meet_cluster(Gen *g, const Op *op)
{
    if (!nv_cluster(op))
        return;
    LLVMValueRef size = ptx_call(g, PTX_CLUSTER_SIZE, NULL, 0);
    Guard guard =
        nv_guard_begin(g, LLVMBuildICmp(g->b, LLVMIntEQ, size, ll_int(g->i32, 2), ""));
    ptx_asm(g, "barrier.cluster.arrive.relaxed; barrier.cluster.wait;", "",
            LLVMVoidTypeInContext(g->cx), NULL, 0, true);
    nv_guard_end(g, guard);
}

/* Registers with which each thread is launched. */
static int
launch_regs(const Gen *g, const Op *op, int warps)
{
    int regs = g->info.registers / (32 * warps * nv_blocks(op)) & ~7;
    return regs > MAX_THREAD_REGS ? MAX_THREAD_REGS & ~7 : regs;
}

static bool
check(Gen *g, const Op *op)
{
    const Attr *warps = attr_find(&op->attrs, ATTR_WARPS);
    const Attr *regs = attr_find(&op->attrs, ATTR_REGS);
    int total = nv_launch_warps(g->func), sum = 0;
    if (!g->info.wgmma)
        return gen_unsupported(g, op, NULL) != NULL;
    if (op->parent != g->func->body || !op->next || op->next->kind != OP_RETURN)
        return gen_unsupported(g, op, "other than as the last of a kernel") != NULL;
    if (nv_roles_of(g->func) != op || op->nregion > MAX_ROLES)
        return gen_unsupported(g, op, "more than once, or of so many roles") != NULL;
    for (int i = 0; i < op->nregion; i++) {
        if (!is_pow2(warps->v.ints[i]))
            return gen_unsupported(g, op, "with roles not of 2^n warps") != NULL;
        if (!regs)
            continue;
        int64_t n = regs->v.ints[i];
        sum += (int)n * groups_of(op, i);
        if (n % 8 || n < MIN_BUDGET || n > MAX_BUDGET) {
            diag_error(&g->s->diag, op->loc,
                       "a role has 24 to 256 registers a thread, in steps of 8, not %lld",
                       (long long)n);
            return false;
        }
    }
    if (sum > launch_regs(g, op, total) * total / GROUP) {
        diag_error(&g->s->diag, op->loc,
                   "the roles need %d registers, for one thread of each warpgroup "
                   "together: a block of %d warps has %d",
                   sum, total, launch_regs(g, op, total) * total / GROUP);
        return false;
    }
    return true;
}

static void
set_registers(Gen *g, const Op *op, int role)
{
    const Attr *regs = attr_find(&op->attrs, ATTR_REGS);
    int have = launch_regs(g, op, nv_launch_warps(g->func));
    if (!regs || regs->v.ints[role] == have)
        return;
    LLVMValueRef n = ll_int(g->i32, regs->v.ints[role]);
    ptx_call(g, regs->v.ints[role] < have ? PTX_REGS_DEC : PTX_REGS_INC, &n, 1);
}

/* Generates a role's code in block `start`; it ends with a branch to `done`. */
static bool
gen_role(Gen *g, const Op *op, int role, int first, LLVMValueRef warp,
         LLVMBasicBlockRef start, LLVMBasicBlockRef done)
{
    Nv *nv = nv_of(g), program = *nv;
    const Region *r = op->regions[role];
    int warps = (int)attr_find(&op->attrs, ATTR_WARPS)->v.ints[role];
    LLVMPositionBuilderAtEnd(g->b, start);
    set_registers(g, op, role);
    nv->entry = LLVMAppendBasicBlockInContext(g->cx, g->fn, "role");
    LLVMBasicBlockRef body = LLVMAppendBasicBlockInContext(g->cx, g->fn, "work");
    if (warps % GROUP) {
        LLVMValueRef end = ll_int(g->i32, first + warps);
        LLVMValueRef in = LLVMBuildICmp(g->b, LLVMIntULT, warp, end, "");
        LLVMBuildCondBr(g->b, in, nv->entry, done);
    } else {
        LLVMBuildBr(g->b, nv->entry);
    }
    LLVMPositionBuilderAtEnd(g->b, nv->entry);
    nv->warps = warps;
    nv->barrier = role + 1;
    nv->pingpong = op->nregion + 1;
    nv->elected = nv->elected_of_group = nv->group = NULL;
    nv->tid = LLVMBuildSub(g->b, program.tid, ll_int(g->i32, 32 * first), "");
    nv->warp = LLVMBuildLShr(g->b, nv->tid, ll_int(g->i32, 5), "");
    map_init(&nv->lead, &g->s->tmp);
    LLVMPositionBuilderAtEnd(g->b, body);
    bool ok = nv_region(g, r, op);
    LLVMBuildBr(g->b, done);
    LLVMPositionBuilderAtEnd(g->b, nv->entry);
    LLVMBuildBr(g->b, body);
    program.widest = nv->widest;
    program.widest_at = nv->widest_at;
    program.shared = nv->shared;
    *nv = program;
    return ok;
}

/* Ping-pong: warpgroups take turns by named barriers, one for each warpgroup, at which it
   waits for the one before it. */
bool
nv_pingpong(Gen *g, const Op *op)
{
    const Nv *nv = nv_of(g);
    int groups = nv_warps(g) / GROUP, first = nv->pingpong;
    if (groups < 2 || !first)
        return gen_unsupported(g, op, "outside of a role of several warpgroups") != NULL;
    LLVMValueRef group = LLVMBuildLShr(g->b, nv_uniform_warp(g), ll_int(g->i32, 2), "");
    LLVMValueRef last =
        LLVMBuildICmp(g->b, LLVMIntEQ, group, ll_int(g->i32, groups - 1), "");
    LLVMValueRef args[2] = {NULL, last}, zero = ll_int(g->i32, 0);
    if (op->kind == OP_PINGPONG_ARRIVE)
        group = LLVMBuildSelect(g->b, last, zero,
                                LLVMBuildAdd(g->b, group, ll_int(g->i32, 1), ""), "");
    else if (op->kind == OP_PINGPONG_OPEN)
        group = zero;
    args[0] = LLVMBuildAdd(g->b, group, ll_int(g->i32, first), "");
    const char *text = op->kind == OP_PINGPONG_WAIT     ? "bar.sync $0, 256;"
                       : op->kind == OP_PINGPONG_ARRIVE ? "bar.arrive $0, 256;"
                                                        : "@$1 bar.arrive $0, 256;";
    bool open = op->kind == OP_PINGPONG_OPEN;
    ptx_asm(g, text, open ? "r,b" : "r", LLVMVoidTypeInContext(g->cx), args, open ? 2 : 1,
            true);
    return true;
}

bool
nv_roles(Gen *g, const Op *op)
{
    int n = op->nregion, first = 0;
    if (!check(g, op))
        return false;
    LLVMBasicBlockRef done = LLVMAppendBasicBlockInContext(g->cx, g->fn, "done");
    meet_cluster(g, op);
    LLVMValueRef warp = nv_uniform_warp(g);
    for (int i = 0; i < n; i++) {
        LLVMBasicBlockRef start = LLVMAppendBasicBlockInContext(g->cx, g->fn, "start");
        LLVMBasicBlockRef other = NULL;
        int end = first + GROUP * groups_of(op, i);
        if (i + 1 < n) {
            other = LLVMAppendBasicBlockInContext(g->cx, g->fn, "other");
            LLVMValueRef mine =
                LLVMBuildICmp(g->b, LLVMIntULT, warp, ll_int(g->i32, end), "");
            LLVMBuildCondBr(g->b, mine, start, other);
        } else {
            LLVMBuildBr(g->b, start);
        }
        if (!gen_role(g, op, i, first, warp, start, done))
            return false;
        if (other)
            LLVMPositionBuilderAtEnd(g->b, other);
        first = end;
    }
    LLVMPositionBuilderAtEnd(g->b, done);
    meet_cluster(g, op);
    return true;
}
