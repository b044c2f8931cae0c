/* Two ways into shared memory: threads load and store (and copy asynchronously) by one,
   wgmma and TMA read by another, and what was written by the first is not yet there for
   the second. The writing thread's fence makes it so, before the barrier that tells the
   others:

       local_store %m, %x          local_store %m, %x
       %r = wgmma %m, ..      =>   fence_async
                                   %r = wgmma %m, ..       (a barrier comes between)

   A fence stands after every write in a function whose buffers are read so, and where
   asynchronous copies of threads (cp.async) have been waited for. What they read and TMA
   overwrites: passes/fence_reads.c. */
#include "ir/build.h"
#include "ir/edit.h"
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

bool
pass_fence(Func *f, PassCx *cx)
{
    (void)cx;
    if (!reads_async(f->body, 0))
        return false;
    visit(f->body, 0);
    return true;
}
