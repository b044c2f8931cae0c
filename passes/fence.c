/* Two ways into shared memory: threads load and store (and copy asynchronously) by one,
   wgmma and TMA read by another, and what was written by the first is not yet there for
   the second. The writing thread's fence makes it so, before the barrier that tells the
   others:

       local_store %m, %x          local_store %m, %x
       %r = wgmma %m, ..      =>   fence_async
                                   %r = wgmma %m, ..       (a barrier comes between)

   A fence stands after every write in a function whose buffers are read so, and where
   asynchronous copies of threads (cp.async) have been waited for.

   The other way round: what threads have read, TMA must not overwrite before they have.
   Their reads are done for it behind a fence, too, which stands in front of the arrival
   that gives the buffer back, or of the next copy:

       %x = local_load %ring[%s]       %x = local_load %ring[%s]
       bar_arrive %empty[%s]      =>   fence_async
                                       bar_arrive %empty[%s]

   (Without it a tile of bias, read while a product was under way, was partly the next
   one: tests/gpu/loops.py, bias_tile, 128x32, 4 warps, H200, 2026-11-22.) */
#include "ir/build.h"
#include "ir/edit.h"
#include "passes/operand.h"
#include "passes/pass.h"

bool pass_fence(Func *f, PassCx *cx);

static bool
reads_async(const Region *r, int depth)
{
    region_each(r, op)
    {
        Effect e;
        for (int i = 0; i < 2 && opkind_effect(op->kind, i, &e); i++)
            if (e.resource == RES_SHARED && (e.kind & ACC_READ) && (e.kind & ACC_ASYNC))
                return true;
        for (int i = 0; i < op->nregion && depth < MAX_REGION_DEPTH; i++)
            if (reads_async(op->regions[i], depth + 1))
                return true;
    }
    return false;
}

/* Has the thread written when op is done? */
static bool
writes(const Op *op)
{
    return op->kind == OP_LOCAL_STORE || op->kind == OP_ASYNC_WAIT ||
           (op->kind == OP_LOCAL_ALLOC && op->noperand);
}

static void
visit(Region *r, int depth)
{
    region_each(r, op)
    {
        for (int i = 0; i < op->nregion && depth < MAX_REGION_DEPTH; i++)
            visit(op->regions[i], depth + 1);
        if (!writes(op) || (op->next && op->next->kind == OP_FENCE_ASYNC))
            continue;
        Builder b = builder_after(op);
        b.loc = op->loc;
        build_op(&b, OP_FENCE_ASYNC, NULL, 0, NULL, NULL, 0);
    }
}

/* Do threads read a buffer here that TMA may have filled? Not one that threads filled. */
static bool
reads_ring(const Op *op)
{
    Effect e;
    if (op->kind == OP_WGMMA && operand_by_steps(op))
        return true;
    for (int i = 0; i < 2 && opkind_effect(op->kind, i, &e); i++) {
        if (e.resource != RES_SHARED || (e.kind & ACC_ASYNC) || !(e.kind & ACC_READ))
            continue;
        const Value *m = op_operand(op, e.operand);
        while (m->op && m->op->noperand && m->op->kind != OP_LOCAL_ALLOC)
            m = op_operand(m->op, 0);
        if (!m->op || !m->op->noperand)
            return true;
    }
    return false;
}

static bool
has(const Region *r, bool (*is)(const Op *), int depth)
{
    region_each(r, op)
    {
        if (is(op))
            return true;
        for (int i = 0; i < op->nregion && depth < MAX_REGION_DEPTH; i++)
            if (has(op->regions[i], is, depth + 1))
                return true;
    }
    return false;
}

static bool
is_copy(const Op *op)
{
    return op->kind == OP_TMA_LOAD;
}

/* Fences behind reads; has anything been read since the last one, at the beginning and,
   returned, at the end? */
static bool
fence_reads(Region *r, bool read, int depth)
{
    region_each(r, op)
    {
        bool loop = op->kind == OP_FOR || op->kind == OP_WHILE, after = read;
        for (int i = 0; i < op->nregion && depth < MAX_REGION_DEPTH; i++) {
            bool before = read || (loop && has(op->regions[i], reads_ring, depth + 1));
            after |= fence_reads(op->regions[i], before, depth + 1);
        }
        read = after || reads_ring(op);
        if (op->kind == OP_FENCE_ASYNC)
            read = false;
        bool given =
            op->kind == OP_BAR_ARRIVE || op->kind == OP_BAR_EXPECT || is_copy(op);
        if (!read || !given)
            continue;
        Builder b = builder_before(op);
        b.loc = op->loc;
        build_op(&b, OP_FENCE_ASYNC, NULL, 0, NULL, NULL, 0);
        read = false;
    }
    return read;
}

bool
pass_fence(Func *f, PassCx *cx)
{
    (void)cx;
    bool changed = reads_async(f->body, 0);
    if (changed)
        visit(f->body, 0);
    if (has(f->body, is_copy, 0) && has(f->body, reads_ring, 0)) {
        fence_reads(f->body, false, 0);
        changed = true;
    }
    return changed;
}
