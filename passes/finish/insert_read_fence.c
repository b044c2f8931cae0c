/* Inserts fences that keep TMA from overwriting shared memory which threads still read.
   Reads of threads and writes of TMA go through different proxies, so an arrival or
   barrier behind a read does not wait until the read has its values. A fence by the
   reading thread does:

       %x = local_load %ring[%s]       %x = local_load %ring[%s]
       bar_arrive %empty[%s]      =>   fence_async
                                       bar_arrive %empty[%s]

   The fence stands in front of the op that tells the copying thread: an arrival, or the
   last barrier before the copy, which may be that of an op with scratch memory. Behind
   the barrier it would be too late, since a fence orders only the accesses of its own
   thread. So this pass runs after insert-barriers. Buffers have their offsets then: other
   memory that overlaps a buffer which TMA fills, such as a staged tile or scratch memory,
   counts like the buffer.

   A dot in pieces that threads add up fences its own reads of a left operand, while the
   last of it are multiplied (ir/plan/wgmma_promote.h).

   If no barrier, arrival or asynchronous read stands between two fences, also those of
   insert-proxy-fence, the second one is enough: each fence waits for all accesses in
   front of it.

   (Without the fence, a bias tile that was read while a dot ran was partly overwritten by
   the next one: tests/gpu/loops.py, bias_tile, 128x32, 4 warps, H200, 2026-11-22.) */
#include "ir/analysis/async_dot.h"
#include "ir/analysis/shared.h"
#include "ir/base/vec.h"
#include "ir/build.h"
#include "ir/edit.h"
#include "ir/plan/scratch.h"
#include "ir/plan/wgmma_left.h"
#include "ir/plan/wgmma_promote.h"
#include "passes/forms.h"

enum { MAX_LOOPS = 5 }; /* deeper loops: anything may have been read in them */

typedef struct Span {
    int64_t first, end; /* bytes of shared memory */
} Span;

typedef struct Reads {
    Arena *arena;
    const TargetInfo *target;
    Vec(Span) filled;     /* by TMA */
    Vec(const Op *) last; /* barriers with no other between them and a copy */
    bool insert;          /* fences; else the walk only computes states */
    bool check;           /* insert nothing, but note where a fence is missing */
    const Op *missing;
    bool changed;
} Reads;

static bool
overlaps(const Reads *x, Span s)
{
    for (int i = 0; i < x->filled.n; i++)
        if (s.first < x->filled.at[i].end && x->filled.at[i].first < s.end)
            return true;
    return false;
}

static Span
span_of(const Op *alloc)
{
    const Type *t = alloc->results[0].type;
    int64_t at = attr_int(&alloc->attrs, ATTR_OFFSET, 0);
    int64_t stages = t->stages > 1 ? t->stages : 1;
    return (Span){at, at + stages * shared_stage_stride(t)};
}

static void
find_filled(Reads *x, const Func *f)
{
    region_each_deep(f->body, op)
    {
        SharedRoot *root;
        int n = op->kind == OP_TMA_LOAD ? shared_roots(op_operand(op, 1), x->arena, &root)
                                        : 0;
        for (int i = 0; i < n; i++)
            vec_push(x->arena, &x->filled, span_of(root[i].alloc));
    }
}

/* Do threads read bytes here that TMA may fill? */
static bool
reads(const Reads *x, const Op *op)
{
    Effect e;
    int64_t at = attr_int(&op->attrs, ATTR_OFFSET, 0);
    int64_t bytes = scratch_bytes(op, x->target);
    if (bytes && overlaps(x, (Span){at, at + bytes}))
        return true;
    bool steps = op_is_async_dot(op) && wgmma_by_steps(op) && !wgmma_fences(op);
    for (int i = 0; i < 2 && opkind_effect(op->kind, i, &e); i++) {
        SharedRoot *root;
        bool threads = !(e.kind & ACC_ASYNC) || (steps && e.operand == DOT_LEFT);
        if (e.resource != RES_SHARED || !threads || !(e.kind & ACC_READ) ||
            op_operand(op, e.operand)->type->kind != TY_MEM)
            continue;
        int n = shared_roots(op_operand(op, e.operand), x->arena, &root);
        for (int k = 0; k < n; k++)
            if (overlaps(x, span_of(root[k].alloc)))
                return true;
    }
    return false;
}

static bool
is_barrier(const Reads *x, const Op *op)
{
    return (op->kind == OP_BARRIER && !attr_has(&op->attrs, ATTR_GROUPS)) ||
           (scratch_bytes(op, x->target) && !scratch_in_warp(op, x->target));
}

/* ---- which barriers are the last before a copy */

static bool find_last(Reads *x, const Region *r, bool soon, int loops);

static bool
find_last_in_loop(Reads *x, const Op *op, bool soon, int loops)
{
    bool insert = x->insert, again = loops > MAX_LOOPS, head = soon;
    for (int round = again; round < 2; round++) {
        x->insert = insert && round;
        if (op->kind == OP_WHILE)
            again = find_last(x, op->regions[1], head || again, loops);
        head = find_last(x, op->regions[0], soon || again, loops);
        again |= head;
    }
    x->insert = insert;
    return op->kind == OP_FOR ? soon || head : head;
}

/* Walks a region backwards and notes the last barriers before copies. soon: behind the
   region, may a copy come before the next barrier? Returns the same for in front of
   it. */
static bool
find_last(Reads *x, const Region *r, bool soon, int loops)
{
    for (const Op *op = r->last; op; op = op->prev) {
        if (op->kind == OP_FOR || op->kind == OP_WHILE) {
            soon = find_last_in_loop(x, op, soon, loops + 1);
        } else if (op->kind == OP_IF || op->kind == OP_WARP_SPECIALIZE) {
            bool before = false;
            for (int i = 0; i < op->nregion; i++)
                before |= find_last(x, op->regions[i], soon, loops);
            soon = before;
        } else if (is_barrier(x, op)) {
            if (soon && x->insert)
                vec_push(x->arena, &x->last, op);
            soon = false;
        }
        soon |= op->kind == OP_TMA_LOAD;
    }
    return soon;
}

/* ---- what has been read in front of them */

/* Does op tell a thread that issues copies that this thread has read? */
static bool
tells(const Reads *x, const Op *op)
{
    for (int i = 0; i < x->last.n; i++)
        if (x->last.at[i] == op)
            return true;
    return op->kind == OP_BAR_ARRIVE;
}

static bool walk(Reads *x, Region *r, bool read, int depth, int loops);

/* Walks a loop once; `head`: something has been read since the last fence. Returns that
   for the next head; *left: for behind the loop. */
static bool
walk_round(Reads *x, const Op *op, bool head, bool *left, int depth, int loops)
{
    bool end = walk(x, op->regions[0], head, depth, loops);
    *left = op->kind == OP_FOR ? head || end : end;
    return op->kind == OP_FOR ? end : walk(x, op->regions[1], end, depth, loops);
}

static bool
walk_loop(Reads *x, const Op *op, bool read, int depth, int loops)
{
    bool insert = x->insert, left;
    x->insert = false;
    if (!read)
        read = loops > MAX_LOOPS || walk_round(x, op, read, &left, depth, loops);
    x->insert = insert;
    walk_round(x, op, read, &left, depth, loops);
    return left;
}

/* Walks a region. read: something has been read since the last fence, at its beginning;
   returns the same for its end. */
static bool
walk(Reads *x, Region *r, bool read, int depth, int loops)
{
    region_each(r, op)
    {
        if (read && tells(x, op)) {
            read = false;
            x->changed |= x->insert;
            if (x->insert && x->check) {
                x->missing = x->missing ? x->missing : op;
            } else if (x->insert) {
                Builder b = builder_before(op);
                b.loc = op->loc;
                build_op(&b, OP_FENCE_ASYNC, NULL, 0, NULL, NULL, 0);
            }
        }
        if (op->kind == OP_FENCE_ASYNC)
            read = false;
        if (depth >= MAX_REGION_DEPTH)
            continue;
        if (op->kind == OP_FOR || op->kind == OP_WHILE) {
            read = walk_loop(x, op, read, depth + 1, loops + 1);
        } else if (op->kind == OP_IF || op->kind == OP_WARP_SPECIALIZE) {
            bool after = false;
            for (int i = 0; i < op->nregion; i++)
                after |= walk(x, op->regions[i], read, depth + 1, loops);
            read = after;
        }
        read |= reads(x, op);
    }
    return read;
}

static void
look(Reads *x, Func *f)
{
    find_filled(x, f);
    if (!x->filled.n)
        return;
    find_last(x, f->body, false, 0);
    walk(x, f->body, false, 0, 0);
}

/* Does another fence follow before the thread tells another one, and before an
   asynchronous read? */
static bool
is_repeated(const Op *fence, const TargetInfo *t)
{
    for (const Op *op = fence->next; op; op = op->next) {
        if (op->kind == OP_FENCE_ASYNC)
            return true;
        if (op->nregion || op->kind == OP_BAR_ARRIVE || op->kind == OP_TMA_LOAD ||
            op->kind == OP_TMA_STORE || op_is(op, T_CONVERGENT) ||
            op_is(op, T_TERMINATOR) || scratch_bytes(op, t))
            return false;
    }
    return false;
}

static bool
drop_repeated(void *user, Op *op)
{
    PassCx *cx = user;
    if (op->kind != OP_FENCE_ASYNC || !is_repeated(op, &cx->target))
        return false;
    op_erase(op);
    return true;
}

bool
pass_insert_read_fence(Func *f, PassCx *cx)
{
    Reads x = {.arena = &cx->s->tmp, .target = &cx->target, .insert = true};
    look(&x, f);
    x.changed |= pass_walk(f->body, drop_repeated, cx);
    return x.changed;
}

FormFault
insert_read_fence_check(Func *f, const TargetInfo *t, Arena *a)
{
    Reads x = {.arena = a, .target = t, .insert = true, .check = true};
    look(&x, f);
    return (FormFault){x.missing, "lets TMA overwrite what threads have read in front of "
                                  "it, and no fence is in between"};
}
