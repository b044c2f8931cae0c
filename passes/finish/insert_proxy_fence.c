/* Inserts fences between the two proxies of shared memory. Threads load, store and copy
   (cp.async) through the generic proxy; wgmma and TMA read through the async proxy, for
   which data written through the first is not visible yet. A fence by the writing thread
   makes it visible; it stands in front of the barrier that tells the other threads:

       local_store %m, %x          local_store %m, %x
       %r = wgmma %m, ..      =>   fence_async
                                   %r = wgmma %m, ..       (a barrier comes between)

   A fence is inserted behind each write of a buffer that wgmma or TMA read, and behind
   the wait for a cp.async into one. For the other direction, buffers that threads read
   and TMA overwrites, see passes/finish/insert_read_fence.c. */
#include "ir/analysis/shared.h"
#include "ir/base/vec.h"
#include "ir/build.h"
#include "ir/edit.h"
#include "passes/forms.h"

typedef struct Fences {
    Arena *arena;
    Vec(const Op *) read; /* allocations that wgmma or TMA read */
    bool copied;          /* cp.async fills one of them */
    const Op *unfenced;   /* the first write without a fence */
    bool changed;
} Fences;

static bool
is_read(const Fences *x, const Value *mem)
{
    SharedRoot *root;
    int n = shared_roots(mem, x->arena, &root);
    for (int i = 0; i < n; i++)
        for (int k = 0; k < x->read.n; k++)
            if (x->read.at[k] == root[i].alloc)
                return true;
    return false;
}

static bool
find_read(void *user, Op *op)
{
    Fences *x = user;
    Effect e;
    for (int i = 0; i < 2 && opkind_effect(op->kind, i, &e); i++) {
        SharedRoot *root;
        if (e.resource != RES_SHARED || !(e.kind & ACC_READ) || !(e.kind & ACC_ASYNC) ||
            !type_is_shared(op_operand(op, e.operand)->type))
            continue;
        int n = shared_roots(op_operand(op, e.operand), x->arena, &root);
        for (int k = 0; k < n; k++)
            vec_push(x->arena, &x->read, root[k].alloc);
    }
    return false;
}

static bool
find_copied(void *user, Op *op)
{
    Fences *x = user;
    x->copied |= op->kind == OP_ASYNC_COPY && is_read(x, op_operand(op, 1));
    return false;
}

/* Has the thread, when op is done, written a buffer that wgmma or TMA read? */
static bool
writes(const Fences *x, const Op *op)
{
    if (op->kind == OP_ASYNC_WAIT)
        return x->copied;
    return (op->kind == OP_LOCAL_STORE && is_read(x, op_operand(op, 0))) ||
           (op->kind == OP_LOCAL_ALLOC && op->noperand && is_read(x, &op->results[0]));
}

static bool
insert(void *user, Op *op)
{
    Fences *x = user;
    if (!writes(x, op) || (op->next && op->next->kind == OP_FENCE_ASYNC))
        return false;
    Builder b = builder_after(op);
    b.loc = op->loc;
    build_op(&b, OP_FENCE_ASYNC, NULL, 0, NULL, NULL, 0);
    return true;
}

bool
pass_insert_proxy_fence(Func *f, PassCx *cx)
{
    Fences x = {.arena = &cx->s->tmp};
    pass_walk(f->body, find_read, &x);
    if (!x.read.n)
        return false;
    pass_walk(f->body, find_copied, &x);
    return pass_walk(f->body, insert, &x);
}

/* Is there a fence behind `op` before the thread can tell others that it has written? */
static bool
is_fenced(const Op *op)
{
    for (op = op->next; op; op = op->next) {
        if (op->kind == OP_FENCE_ASYNC)
            return true;
        if (op->nregion || op->kind == OP_BAR_ARRIVE || op->kind == OP_TMA_STORE ||
            op_is(op, T_CONVERGENT) || op_is(op, T_TERMINATOR))
            return false;
    }
    return false;
}

static bool
find_unfenced(void *user, Op *op)
{
    Fences *x = user;
    if (!x->unfenced && writes(x, op) && !is_fenced(op))
        x->unfenced = op;
    return false;
}

FormFault
insert_proxy_fence_check(Func *f, Arena *a)
{
    Fences x = {.arena = a};
    pass_walk(f->body, find_read, &x);
    pass_walk(f->body, find_copied, &x);
    pass_walk(f->body, find_unfenced, &x);
    return (FormFault){x.unfenced,
                       "writes what wgmma or TMA may read, and no fence is behind it"};
}
