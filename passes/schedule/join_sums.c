/* Which waits asynchronous dots need, and which not.

       %r = wgmma %a, %b, %acc                 %r = wgmma %a, %b, %acc
       %y = wgmma_wait %r                      %s = wgmma %c, %d, %r
       %s = wgmma %c, %d, %y             =>    %z = wgmma_wait %s
       %z = wgmma_wait %s

   The tensor cores take the dots of a warpgroup in the order in which they are issued. A
   wait for a dot is needed in front of

   - what reads its sums, unless that is one dot that adds to them: the same registers in
     the same shape, in order;
   - what overwrites a buffer in shared memory that it reads, or lets others do so
     (bar_arrive). That may be a wait behind the next dot, with which the tensor cores are
     busy meanwhile, where the stages of the rings suffice;
   - what writes registers that it reads or adds to: its left operand, which code
     generation keeps in registers of its own for each dot of a block
     (codegen/gen_nv_wgmma.c); the next iteration writes them again, so dots with such
     operands stay in flight over its end only by place_waits.c, writes_late.

   So the wait between two dots that add up is dropped if nothing in between asks for it,
   and, in a loop without roles, if it only carries the sums; what the first one reads has
   been read behind the wait for the last one. Fences of registers (wgmma.fence) are code
   generation's, one in front of each dot.

   rotate_loop.c joins the sums of a loop with roles before it looks for dots in a row,
   and wants stages released when the last one is done; place_waits.c those of all other
   blocks. */
#include "passes/schedule/join_sums.h"

#include "ir/analysis/async_dot.h"
#include "ir/analysis/shared.h"
#include "ir/build.h"
#include "ir/edit.h"
#include "passes/schedule/carry_accumulator.h"

#include <limits.h>

/* Are there enough stages for all that would be held at once: stages released between
   `wait` and `next`, and stages waited for up to `last`? A loop or branch may wait for
   any number. */
static bool
fits_rings(const Op *wait, const Op *next, const Op *last)
{
    int held = 0, stages = INT_MAX;
    for (const Op *op = wait; op != next; op = op->next)
        held += op->kind == OP_BAR_ARRIVE;
    for (const Op *op = wait; held && op != last; op = op->next) {
        const Op *at = op->kind == OP_BAR_WAIT ? op_operand(op, 0)->op : NULL;
        if (op->nregion)
            return false;
        if (!at)
            continue;
        held++;
        if (op_operand(at, 0)->type->stages < stages)
            stages = op_operand(at, 0)->type->stages;
    }
    return held <= stages;
}

/* Does the dot, or one in front of it in its block, read a buffer that `mem` may be? */
static bool
is_read(const Op *dot, const Value *mem, Arena *a)
{
    SharedRoot *to, *from;
    int n = shared_roots(mem, a, &to);
    bool read = !n;
    for (const Op *op = dot; op && !read; op = op->prev)
        for (int i = DOT_LEFT; i <= DOT_RIGHT && op_is_async_dot(op) && !read; i++) {
            bool shared = dot_reads_shared(op, i);
            int m = shared ? shared_roots(op_operand(op, i), a, &from) : 0;
            for (int k = 0; k < m; k++)
                for (int j = 0; j < n; j++)
                    read |= from[k].alloc == to[j].alloc;
        }
    return read;
}

/* Does op, or one inside of it, overwrite what the dot still reads, or let others do so?
   A copy by TMA goes into another stage than those that are read. */
static bool
asks_for_wait(const Op *dot, const Op *op, Arena *a)
{
    bool asks = op->kind == OP_ASYNC_COPY ||
                (op->kind == OP_LOCAL_STORE && is_read(dot, op_operand(op, 0), a)) ||
                (op->kind == OP_BAR_ARRIVE && op->parent != dot->parent);
    for (int i = 0; i < op->nregion && !asks; i++)
        for (const Op *in = op->regions[i]->first; in && !asks; in = in->next)
            asks = asks_for_wait(dot, in, a);
    return asks;
}

/* Does a loop use the sums that `dot` ends up in in the iteration that makes them? What
   its dots read is then held for longer, and what is made of the sums takes shared memory
   of its own: a backward pass of linear attention lost the second program of an SM to it,
   and 10 % (H200, 2026-11-27, tests/gpu/loops.py --only linear_bwd). */
static bool
used_at_once(const Op *dot)
{
    bool at_once = false;
    for (const Op *more = dot_adding_to(dot); more; more = dot_adding_to(dot))
        dot = more;
    const Op *last = dot_wait(dot);
    if (!last || !op_in_loop(last))
        return false;
    value_each_use(&last->results[0], u) at_once |= u->user->kind != OP_YIELD;
    return at_once;
}

/* The dot behind `wait`, full and for `dot`, that needs no wait for it; NULL: none. */
static Op *
joins(const Op *dot, const Op *wait, bool early, Arena *a)
{
    Op *next = dot_adding_to(dot);
    const Op *last = next ? dot_wait(next) : NULL;
    if (!last || attr_has(&next->attrs, ATTR_MAX_IMPRECISE) ||
        (early && used_at_once(next)) || !fits_rings(wait, next, early ? next : last))
        return NULL;
    for (const Op *op = wait->next; op != next; op = op->next)
        if (!op || asks_for_wait(dot, op, a))
            return NULL;
    return next;
}

/* Stages that were released behind `wait` are released behind `next`: when that is done,
   or, `early`, when it is issued and those in front of it are done. */
static void
release(Op *wait, Op *next, bool early)
{
    Op *at = dot_wait(next), *first = NULL;
    if (!early)
        at = at->next;
    for (Op *op = wait->next, *then; op != next; op = then) {
        then = op->next;
        if (op->kind != OP_BAR_ARRIVE)
            continue;
        op_move_before(op, at);
        first = first ? first : op;
    }
    if (!early || !first)
        return;
    Builder b = builder_before(first);
    b.loc = wait->loc;
    build_dot_wait(&b, NULL, 0, 1);
}

bool
join_sums(Region *r, bool early)
{
    Arena *a = &r->func->module->s->tmp;
    bool changed = false;
    for (Op *op = r->first; op; op = op->next) {
        Op *wait = op_is_async_dot(op) ? dot_full_wait(op) : NULL;
        Op *next = wait ? joins(op, wait, early, a) : NULL;
        if (!next)
            continue;
        release(wait, next, early);
        value_replace(&wait->results[0], &op->results[0]);
        op_erase(wait);
        changed = true;
    }
    return changed;
}
