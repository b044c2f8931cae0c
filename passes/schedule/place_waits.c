/* Where asynchronous dots are waited for, and how many are under way then. Passes in
   front of this one say in which order a loop begins its dots (delay_dot.c,
   rotate_loop.c) and wait for each where it begins; here waits go where the results are
   used. A wait that lets some be under way has its place.

       %r = wgmma %k, %q, %zero                %r = wgmma %k, %q, %zero
       %s = wgmma_wait %r {pending=0}          %t = wgmma %v, %o, %zero
       %t = wgmma %v, %o, %zero          =>    %s = wgmma_wait %r {pending=1}
       %d = wgmma_wait %t {pending=0}          %p = exp2 %s
       %p = exp2 %s                            %d = wgmma_wait %t {pending=0}
       %x = mulf %p, %d                        %x = mulf %p, %d

   The tensor cores work on one dot while the warps work on another's result. A wait
   goes down within its block as far as nothing reads the result and nothing could touch
   what the dot still reads: buffers that are filled on the way are other ones, since
   places are given later (passes/finish/alloc_shared.c) and count to the wait. {pending}
   is the number of dots begun in between. What is loaded from shared memory for work on a
   result goes down as well: registers are short while dots are in flight.

   An accumulator that an iteration ends with stays in flight over its end, if at most
   arms of conditions read it (carry_accumulator.c):

       %s = for .. (%acc = %zero) {                %o = wgmma_open %zero : async<..>
         %r = wgmma %a, %b, %acc                   %t = for .. (%acc = %o) : async<..> {
         %y = wgmma_wait %r {pending=0}      =>      %r = wgmma %a, %b, %acc
         ..                                          wgmma_wait {pending=1}
         yield %y                                    ..
       } {pending=1}                                 yield %r
                                                   }
                                                   %s = wgmma_wait %t {pending=0}

   The tensor cores go on while the warps meet and start copies. Something in the
   iteration then says that the dots of the one before have read their buffers. Where
   stage_plan.c has asked for it, {pending=dots in flight}, and given the loop a buffer
   more, that is a wait behind its last dot; else a wait that is there, or that can be,
   before anything is written that they read. No dot stays that reads what the next
   iteration fills: what threads leave for it has two buffers (double_buffer.c), or it is
   waited for. */
#include "ir/analysis/accumulator.h"
#include "ir/analysis/async_dot.h"
#include "ir/analysis/shared.h"
#include "ir/base/util.h"
#include "ir/build.h"
#include "ir/edit.h"
#include "ir/plan/pipeline.h"
#include "passes/pass.h"
#include "passes/schedule/carry_accumulator.h"

bool pass_place_waits(Func *f, PassCx *cx);

/* ---- what dots read, and threads fill */

static const Op *
buffer_of(const Value *v)
{
    const Op *op = v->op;
    while (op && (op->kind == OP_LOCAL_TRANS || op->kind == OP_LOCAL_INDEX ||
                  op->kind == OP_LOCAL_SLICE))
        op = op_operand(op, 0)->op;
    return op && op->kind == OP_LOCAL_ALLOC ? op : NULL;
}

static bool
reads(const Op *dot, const Op *alloc)
{
    return buffer_of(op_operand(dot, DOT_LEFT)) == alloc ||
           buffer_of(op_operand(dot, DOT_RIGHT)) == alloc;
}

/* The buffer that threads leave a tile in; NULL: none, or nobody knows which. */
static const Op *
filled(const Op *op)
{
    bool own = op->kind == OP_LOCAL_ALLOC && op->noperand;
    return own ? op : op->kind == OP_LOCAL_STORE ? buffer_of(op_operand(op, 0)) : NULL;
}

/* May the store fill what the load, or a dot in front of the wait, reads? */
static bool
overwrites(const Op *store, const Op *reader)
{
    const Op *alloc = filled(store);
    bool read = !alloc;
    if (reader->kind == OP_LOCAL_LOAD) {
        const Op *own = buffer_of(op_operand(reader, 0));
        return read || !own || own == alloc;
    }
    for (const Op *op = store->prev; op && !read; op = op->prev)
        read = op_is_async_dot(op) && reads(op, alloc);
    return read;
}

/* ---- waits go down */

static bool
uses(const Op *op, const Value *v)
{
    for (int i = 0; i < op->noperand; i++)
        if (op_operand(op, i) == v)
            return true;
    return false;
}

/* Work that a dot in flight does not mind. A wait for a later dot would wait for
   this one, too. */
static bool
may_pass(const Op *op, const Op *moved)
{
    if (op->nregion || op_is(op, T_TERMINATOR))
        return false;
    switch ((int)op->kind) {
    case OP_LOCAL_ALLOC:
    case OP_LOCAL_LOAD:
    case OP_FENCE_ASYNC:
    case OP_BAR_EXPECT:
    case OP_BAR_WAIT:
    case OP_TMA_LOAD: /* into another stage than those that are read */
    case OP_LOAD:
    case OP_STORE: return true;
    case OP_LOCAL_STORE: return !overwrites(op, moved);
    case OP_ATOMIC_RMW: return !op->results[0].uses;
    default: return op_is_async_dot(op) || op_is_pure(op);
    }
}

/* How far down `op` can go: to the first use of its result at most. */
static Op *
place_for(const Op *op)
{
    bool load = op->kind == OP_LOCAL_LOAD;
    Op *at = op->next;
    while (at && (may_pass(at, op) || (load && op_is_dot_wait(at))) &&
           !uses(at, &op->results[0]))
        at = at->next;
    return at;
}

static bool
sink_wait(Session *s, Op *wait)
{
    const Op *dot = wait_dot(wait);
    if (!dot || dot->parent != wait->parent || wait_pending(wait))
        return false;
    Op *at = place_for(wait);
    if (!at || at == wait->next)
        return false;
    op_move_before(wait, at);
    attr_set_int(&s->mod, &wait->attrs, ATTR_PENDING, dots_between(dot->next, wait));
    return true;
}

static bool
sink_load(Op *load)
{
    Op *at = place_for(load);
    if (!at || !dots_between(load, at))
        return false;
    op_move_before(load, at);
    return true;
}

/* From the last to the first, so that a wait that goes further down meets only those
   that have found their places. */
static bool
sink(Session *s, Region *r)
{
    bool changed = false;
    for (Op *op = r->last, *prev; op; op = prev) {
        prev = op->prev;
        for (int i = 0; i < op->nregion; i++)
            changed |= sink(s, op->regions[i]);
        if (op_is_dot_wait(op))
            changed |= sink_wait(s, op);
        else if (op->kind == OP_LOCAL_LOAD)
            changed |= sink_load(op);
    }
    return changed;
}

/* ---- what the next iteration writes */

/* Does the body wait for what was begun before it, ahead of all that fills buffers? Other
   warps fill them, too: all have waited where threads leave a tile behind the wait, and a
   dot reads it. */
static bool
waits_early(const Region *body)
{
    const Op *left = NULL;
    int n = 0;
    bool waited = false, met = false;
    for (const Op *op = body->first; op; op = op->next) {
        const Op *leaves = filled(op);
        if (op->nregion || (op->kind == OP_LOCAL_STORE && !leaves) ||
            op->kind == OP_ASYNC_COPY || (op->kind == OP_TMA_LOAD && !met) ||
            (leaves && !waited))
            return false;
        if (op_is_dot_wait(op))
            waited |= wait_pending(op) <= n;
        left = leaves ? leaves : left;
        if (op_is_async_dot(op)) {
            met |= left && reads(op, left);
            n++;
        }
    }
    return waited;
}

/* A wait for what was begun before the body, in front of the first tile that threads
   leave, if a dot that the body has begun goes on meanwhile. */
static bool
wait_early(Region *body)
{
    Op *op = body->first;
    while (op && !filled(op))
        op = op->next;
    int n = dots_between(body->first, op);
    if (!op || !n)
        return false;
    Builder b = builder_before(op);
    b.loc = op->loc;
    Op *wait = build_dot_wait(&b, NULL, 0, n);
    if (waits_early(body))
        return true;
    op_erase(wait);
    return false;
}

/* Does the dot read a buffer that each iteration fills anew? */
static bool
reads_own(const Op *dot)
{
    bool own = false;
    for (int i = DOT_LEFT; i <= DOT_RIGHT; i++) {
        const Op *alloc = buffer_of(op_operand(dot, i));
        own |= alloc && alloc->parent == dot->parent;
    }
    return own;
}

/* Does the dot read only what stays where it is? */
static bool
reads_lasting(const Op *dot)
{
    for (int i = DOT_LEFT; i <= DOT_RIGHT; i++) {
        const Op *alloc = buffer_of(op_operand(dot, i));
        if (dot_reads_shared(dot, i) && (!alloc || alloc->parent == dot->parent))
            return false;
    }
    return true;
}

/* Are the left operand's registers written behind a wait of the iteration for what was
   begun before it? They are where it is made; where the dot is, if that is not in the
   iteration. The dot's own wait is to go. */
static bool
writes_late(const Op *dot)
{
    const Value *a = op_operand(dot, DOT_LEFT);
    const Op *own = dot_wait(dot);
    int n = 0;
    if (dot_reads_shared(dot, DOT_LEFT))
        return true;
    while (a->op && a->op->kind == OP_CONVERT_LAYOUT && a->op->parent == dot->parent)
        a = op_operand(a->op, 0);
    if (!a->op && a->region == dot->parent)
        return false; /* at the end of the iteration before */
    const Op *made = a->op && a->op->parent == dot->parent ? a->op : dot;
    for (const Op *op = dot->parent->first; op != made; op = op->next) {
        if (op != own && op_is_dot_wait(op) && wait_pending(op) <= n)
            return true;
        n += op_is_async_dot(op);
    }
    return false;
}

/* ---- accumulators stay in flight */

static bool
may_stay(const Op *dot)
{
    const Op *wait = dot_wait(dot);
    return wait->next == dot->parent->last && reads_lasting(dot) && writes_late(dot) &&
           (waits_early(dot->parent) || wait_early(dot->parent));
}

static bool
keep(void *user, Op *loop)
{
    Op *last = NULL;
    int n = 0;
    if (loop->kind != OP_FOR)
        return false;
    const Region *body = loop->regions[0];
    Pipeline p = pipeline_of(loop);
    bool planned = p.pending, had = planned;
    for (Op *op = body->first; op && planned; op = op->next)
        planned = !op_is_async_dot(op) || dot_carried(op) < 0 || !reads_own(op);
    for (Op *op = body->first; op; op = op->next) { /* waits behind op go */
        int i = op_is_async_dot(op) ? dot_carried(op) : -1;
        if (i < 0 || !(planned || may_stay(op)))
            continue;
        carry_accumulator(loop, i, op);
        last = op;
        n++;
    }
    bool copies = region_has(body, OP_ASYNC_COPY);
    while (planned && copies && last && last->next != body->last &&
           op_is_pure(last->next))
        last = last->next; /* addresses of the next copies need no dot */
    if (planned && last) {
        Builder b = builder_after(last);
        b.loc = last->loc;
        build_dot_wait(&b, NULL, 0, p.pending);
    }
    p.pending = n;
    if (had || last)
        pipeline_set(user, loop, p);
    return had || last;
}

bool
pass_place_waits(Func *f, PassCx *cx)
{
    bool changed = sink(cx->s, f->body);
    return pass_walk(f->body, keep, cx->s) || changed;
}
