/* Where asynchronous dots are waited for, and how many may be in flight then. Earlier
   passes decide the order in which a loop issues its dots (delay_dot.c, rotate_loop.c),
   and leave a wait right behind each. This pass moves waits down to where the results are
   used. Waits that already let some dots stay in flight are not moved.

       %r = wgmma %k, %q, %zero                %r = wgmma %k, %q, %zero
       %s = wgmma_wait %r {pending=0}          %t = wgmma %v, %o, %zero
       %t = wgmma %v, %o, %zero          =>    %s = wgmma_wait %r {pending=1}
       %d = wgmma_wait %t {pending=0}          %p = exp2 %s
       %p = exp2 %s                            %d = wgmma_wait %t {pending=0}
       %x = mulf %p, %d                        %x = mulf %p, %d

   The tensor cores work on one dot while the warps work on the result of another. A wait
   moves down within its block as long as nothing reads the result and nothing can
   overwrite what the dot still reads. Buffers that are filled on the way are other
   buffers, because shared memory is placed later (passes/finish/alloc_shared.c) and
   treats buffers as live up to the wait. {pending} is the number of dots issued in
   between. Loads from shared memory for the work on a result move down as well: registers
   are scarce while dots are in flight.

   An accumulator that an iteration ends with stays in flight over its end, if only arms
   of conditions read it (carry_accumulator.c):

       %s = for .. (%acc = %zero) {                %o = wgmma_open %zero : async<..>
         %r = wgmma %a, %b, %acc                   %t = for .. (%acc = %o) : async<..> {
         %y = wgmma_wait %r {pending=0}      =>      %r = wgmma %a, %b, %acc
         ..                                          wgmma_wait {pending=1}
         yield %y                                    ..
       } {pending=1}                                 yield %r
                                                   }
                                                   %s = wgmma_wait %t {pending=0}

   Where such a loop runs once for each of several tiles, numbers that are needed only
   behind it, as the place of its results, are computed there, while the last dots run.

   The tensor cores go on while the warps wait at barriers and issue copies. Some wait in
   the iteration must then imply that the dots of the iteration before have read their
   buffers. Where stage_plan.c planned for it, {pending=dots in flight}, and gave the loop
   one more buffer, that is a wait behind its last dot; else it is a wait that exists, or
   can be inserted, ahead of everything that overwrites what they read. No dot stays in
   flight that reads what the next iteration overwrites: what threads store for it has two
   buffers (double_buffer.c), or it is waited for. */
#include "ir/analysis/accumulator.h"
#include "ir/analysis/async_dot.h"
#include "ir/analysis/shared.h"
#include "ir/base/util.h"
#include "ir/build.h"
#include "ir/edit.h"
#include "ir/plan/pipeline.h"
#include "passes/pass.h"
#include "passes/schedule/carry_accumulator.h"
#include "passes/schedule/join_sums.h"

/* ---- what dots read and threads fill */

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

/* The buffer that op stores a tile to; NULL: none, or it is not known which. */
static const Op *
filled(const Op *op)
{
    bool own = op->kind == OP_LOCAL_ALLOC && op->noperand;
    return own ? op : op->kind == OP_LOCAL_STORE ? buffer_of(op_operand(op, 0)) : NULL;
}

/* May the store overwrite what the load, or a dot in front of the wait, reads? */
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

/* ---- waits move down */

static bool
uses(const Op *op, const Value *v)
{
    for (int i = 0; i < op->noperand; i++)
        if (op_operand(op, i) == v)
            return true;
    return false;
}

/* May the wait or load `moved` go behind op? Not behind a wait for a later dot, which
   would wait for this dot, too. */
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

/* The op in front of which `op` can go at most: the first user of its result. */
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

/* From the last op to the first, so that a wait that moves down meets only waits that are
   already in their places. */
static bool
sink(Session *s, Region *r)
{
    bool changed = join_sums(r, true);
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

/* ---- what the next iteration overwrites */

/* Does the body wait for the dots of the iteration before ahead of everything that fills
   buffers? Other warps fill them, too: all of them have waited where threads store a tile
   behind the wait and a dot reads it. */
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

/* Inserts a wait for the dots of the iteration before, in front of the first tile that
   threads store, if a dot that the body has issued goes on meanwhile. */
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

/* Does the dot read a buffer that is filled in each iteration? */
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

/* Does the dot only read buffers whose contents last over iterations? */
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

/* What the left operand of the dot is, but for conversions of the iteration. */
static const Value *
left_of(const Op *dot)
{
    const Value *a = op_operand(dot, DOT_LEFT);
    while (a->op && a->op->kind == OP_CONVERT_LAYOUT && a->op->parent == dot->parent)
        a = op_operand(a->op, 0);
    return a;
}

/* Are the registers of the left operand written behind a wait for the dots of the
   iteration before? They are written where the operand is computed, or, if that is
   outside of the iteration, at the dot. `own`, the wait for the sums that stay in
   flight, does not count, because it is removed. */
static bool
writes_late(const Op *dot, const Op *own)
{
    const Value *a = left_of(dot);
    int n = 0;
    if (dot_reads_shared(dot, DOT_LEFT))
        return true;
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

/* Does the iteration write registers of a dot's left operand while dots of the one before
   are in flight, be it other dots? ptxas then waits for each wgmma before the next
   (C7513). */
static bool
writes_early(const Region *body, const Op *own)
{
    for (const Op *op = body->first; op; op = op->next) {
        const Op *made = op_is_async_dot(op) ? left_of(op)->op : NULL;
        if (made && made->parent == body && !writes_late(op, own))
            return true;
    }
    return false;
}

/* ---- accumulators stay in flight */

/* The dot whose sums in flight this one adds to; NULL: none. */
static const Op *
joined_to(const Op *dot)
{
    const Op *before = dot_added_to(dot);
    return before && op_operand(dot, DOT_ACC) == &before->results[0] ? before : NULL;
}

/* Is it the last one of the body that adds to these sums? */
static bool
is_last(const Op *dot, int i)
{
    for (const Op *op = dot->next; op; op = op->next)
        if (op_is_async_dot(op) && dot_carried(op) == i)
            return false;
    return dot_wait(dot) != NULL;
}

static bool
may_stay(const Op *dot)
{
    const Op *wait = dot_wait(dot);
    bool stays = wait->next == dot->parent->last;
    for (const Op *d = dot; d && stays; d = joined_to(d))
        stays = reads_lasting(d) && writes_late(d, wait);
    return stays && !writes_early(dot->parent, wait) &&
           (waits_early(dot->parent) || wait_early(dot->parent));
}

/* ---- work behind a loop whose dots are in flight */

static bool
is_needed_behind(const Op *op, const Op *loop)
{
    if (!op_is(op, T_PURE) || op->nregion || op->nresult != 1 || !op->results[0].uses ||
        type_is_tile(op->results[0].type))
        return false;
    value_each_use(&op->results[0], u)
    {
        const Op *user = op_in_region(u->user, op->parent);
        if (!user || user == loop || op_before(user, loop))
            return false;
    }
    return true;
}

/* Moves numbers that are needed only behind the loop there, in front of the wait for its
   dots. Between two tiles nothing is multiplied until the first dot of the next one is
   issued; a division takes some 100 cycles. */
static void
compute_behind(Session *s, Op *loop)
{
    Op *at = loop->next;
    bool much = false;
    for (Op *op = loop->prev, *prev; op; op = prev) {
        prev = op->prev;
        if (!is_needed_behind(op, loop))
            continue;
        much |= op_divides(op);
        op_move_before(op, at);
        at = op;
    }
    Op *wait = loop->next;
    while (wait && !op_is_dot_wait(wait))
        wait = wait->next;
    if (wait && much)
        attr_set_flag(&s->mod, &wait->attrs, ATTR_PINNED);
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
    for (Op *op = body->first; op; op = op->next) { /* waits behind op are removed */
        int i = op_is_async_dot(op) ? dot_carried(op) : -1;
        if (i < 0 || !is_last(op, i) || !(planned || may_stay(op)))
            continue;
        carry_accumulator(loop, i, op);
        last = op;
        for (const Op *d = op; d; d = joined_to(d))
            n++;
    }
    bool copies = region_has(body, OP_ASYNC_COPY);
    while (planned && copies && last && last->next != body->last &&
           op_is_pure(last->next))
        last = last->next; /* addresses of the next copies depend on no dot */
    if (planned && last) {
        Builder b = builder_after(last);
        b.loc = last->loc;
        build_dot_wait(&b, NULL, 0, p.pending);
    }
    p.pending = n;
    const Op *around = loop->parent->parent;
    if (last && around && around->kind == OP_FOR)
        compute_behind(user, loop);
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
