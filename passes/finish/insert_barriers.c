/* Inserts barriers where accesses of shared memory by different threads conflict.

       local_store %a, %x                      local_store %a, %x
       %y = local_load %a : ..           =>    barrier
                                               %y = local_load %a : ..

   The walk keeps a state: which bytes may have been read and written since the last
   barrier. (Buffers have their offsets, passes/finish/alloc_shared.c.) An op that
   accesses bytes that were written, or writes bytes that were read, gets a barrier in
   front of it, and the state is empty then. An op that exchanges data through scratch
   memory has a barrier of its own between writing and reading, so it leaves a read in the
   state.

   An asynchronous copy counts as a write when it is issued: no thread may still read the
   bytes. Other threads see the data only after the issuing thread has waited for the
   copy, and a barrier. So the first access behind an async_wait gets the barrier. A
   pipelined loop needs one barrier in each iteration, since it issues its next copies
   right behind it.

   A copy by TMA may complete the phase of its mbarrier at once, as may an arrival that no
   copy follows. All threads must have seen the phase before, since they tell only two
   phases apart: so that counts as a write of what their waits read.

   wgmma and TMA stores read until they are waited for; a barrier does not end that. The
   stages of a pipelined loop are told apart by the iteration that they belong to.

   What each warpgroup stores to rows of its own, and sends by TMA, {groups}, needs only a
   barrier of its own warps: they do not wait for the other warpgroups, which may still
   multiply. Where all threads must meet nearby for another reason, their barriers do for
   both: so those of warpgroups are taken where there are not more barriers with them.

   The state at the head of a loop depends on the barriers in its body. So the body is
   walked without inserting until the states at head and end agree, then once more to
   insert. A loop of one iteration, such as the rest that pass peel leaves, has no such
   state: what its end accesses does not conflict with what its begin does. */
#include "ir/analysis/async_dot.h"
#include "ir/analysis/shared.h"
#include "ir/base/util.h"
#include "ir/base/vec.h"
#include "ir/build.h"
#include "ir/edit.h"
#include "ir/plan/scratch.h"
#include "passes/forms.h"

typedef enum Done {
    DONE_READ,
    DONE_WRITE,
    IN_FLIGHT, /* by an asynchronous copy that was not waited for */
    READING,   /* by a wgmma that was not waited for */
    STORING    /* by a TMA store that was not waited for */
} Done;

typedef struct Access {
    Done done;
    int64_t first, end; /* bytes */
    const Op *in_warp;  /* an op in which each warp has bytes of its own, and that so does
                           not conflict with itself; or NULL */
    int groups;         /* so many warpgroups have rows of their own; 0: any thread */
    int age;            /* READING: wgmmas issued since */
    bool phase;         /* a wait for an mbarrier's phase, or what may complete one */
    const Op *loop;     /* the bytes are the stage that this loop uses `ahead` iterations
                           later; NULL: any stage */
    int ahead, stages;  /* stages: of the buffer */
} Access;

typedef struct State {
    Vec(Access) at;
} State;

typedef struct Barriers {
    Arena *arena;
    const TargetInfo *target;
    bool groups; /* warpgroups may meet on their own */
    bool insert; /* barriers; else the walk only computes states */
    bool count;  /* insert nothing, but count in `n` what would be inserted */
    int n;
    bool check;  /* insert nothing, but note in `missing` where a barrier would go */
    const Op *missing;
    bool changed;
} Barriers;

/* Loops nested deeper than MAX_LOOPS are not walked until states agree: their state is
   that of all their accesses. */
enum { MAX_ROUNDS = 8, MAX_LOOPS = 5, MAX_AGE = 8, MEET_ALL = 1 };

static State walk(Barriers *b, const Region *r, State s, int depth, int loops);

/* ---- sets of accesses */

static bool
state_has(const State *s, const Access *a)
{
    for (int i = 0; i < s->at.n; i++) {
        const Access *x = &s->at.at[i];
        if (x->done == a->done && x->first == a->first && x->end == a->end &&
            x->in_warp == a->in_warp && x->groups == a->groups && x->age == a->age &&
            x->phase == a->phase && x->loop == a->loop && x->ahead == a->ahead)
            return true;
    }
    return false;
}

static void
state_add(Barriers *b, State *s, Access a)
{
    if (a.first < a.end && !state_has(s, &a))
        vec_push(b->arena, &s->at, a);
}

static State
state_join(Barriers *b, const State *x, const State *y)
{
    State s = {0};
    for (int i = 0; i < x->at.n; i++)
        state_add(b, &s, x->at.at[i]);
    for (int i = 0; y && i < y->at.n; i++)
        state_add(b, &s, y->at.at[i]);
    return s;
}

static bool
state_same(const State *x, const State *y)
{
    bool same = x->at.n == y->at.n;
    for (int i = 0; i < x->at.n && same; i++)
        same = state_has(y, &x->at.at[i]);
    return same;
}

/* What a barrier orders: all accesses, or those of warpgroups to rows of their own. */
static void
state_clear(State *s, int groups)
{
    int n = 0;
    for (int i = 0; i < s->at.n; i++)
        if (s->at.at[i].done > DONE_WRITE || (groups && s->at.at[i].groups != groups))
            s->at.at[n++] = s->at.at[i];
    s->at.n = n;
}

static bool
is_read(const Access *a)
{
    return a->done == DONE_READ || a->done == READING || a->done == STORING;
}

/* Of warpgroups that have the same rows in the same buffer. */
static bool
same_groups(const Access *x, const Access *a)
{
    return x->groups && x->groups == a->groups && x->first == a->first &&
           x->end == a->end;
}

/* How many warpgroups meet on their own so that `a` may follow; MEET_ALL: all threads do
   as one; 0: nothing conflicts. */
static int
conflicts(const State *s, const Access *a)
{
    int groups = 0;
    for (int i = 0; i < s->at.n; i++) {
        const Access *x = &s->at.at[i];
        bool apart = x->end <= a->first || a->end <= x->first;
        bool reads = is_read(x) && is_read(a);
        bool own = x->in_warp && x->in_warp == a->in_warp;
        apart |=
            x->loop && x->loop == a->loop && x->first == a->first && x->ahead != a->ahead;
        if (x->done == IN_FLIGHT || apart || reads || own || (a->phase && !x->phase))
            continue;
        if (!same_groups(x, a))
            return MEET_ALL;
        groups = a->groups;
    }
    return groups;
}

/* ---- what an op accesses */

/* Adds an access of the bytes of v, a buffer or mbarrier. */
static void
add_value(Barriers *b, State *to, const Op *op, const Value *v, Done done)
{
    SharedRoot *root;
    int n = shared_roots(v, b->arena, &root);
    for (int i = 0; i < n; i++) {
        const Type *t = root[i].alloc->results[0].type;
        int64_t at = attr_int(&root[i].alloc->attrs, ATTR_OFFSET, 0);
        int64_t size = t->kind == TY_BAR ? 8 : shared_stage_stride(t);
        int64_t stages = max_i64(1, t->stages), stage = root[i].stage;
        bool one = stage >= 0 && stage < stages;
        at += one ? stage * size : 0;
        Access a = {.done = done,
                    .first = at,
                    .end = at + (one ? size : stages * size),
                    .groups = (int)attr_int(&op->attrs, ATTR_GROUPS, 0),
                    .phase = op->kind == OP_BAR_WAIT};
        if (root[i].loop && t->stages) {
            a.loop = root[i].loop;
            a.stages = t->stages;
            a.ahead = root[i].ahead % t->stages;
        }
        state_add(b, to, a);
    }
}

/* The mbarrier whose phase op may complete without another; NULL: none. */
static const Value *
completes(const Op *op)
{
    bool empty = op->kind == OP_BAR_EXPECT && !attr_int(&op->attrs, ATTR_BYTES, 0);
    return op->kind == OP_TMA_LOAD ? op_operand(op, 2)
           : empty                 ? op_operand(op, 0)
                                   : NULL;
}

/* What op accesses, except for its scratch memory. */
static State
accesses(Barriers *b, const Op *op)
{
    State s = {0};
    Effect e;
    for (int i = 0; i < 2; i++) {
        if (!opkind_effect(op->kind, i, &e) || e.operand >= op->noperand ||
            !type_is_shared(op_operand(op, e.operand)->type))
            continue;
        const Value *v = op_operand(op, e.operand);
        bool write = (e.kind & ACC_WRITE) && e.resource == RES_SHARED;
        Done done = write                 ? e.kind & ACC_ASYNC ? IN_FLIGHT : DONE_WRITE
                    : op_is_async_dot(op) ? READING
                    : e.kind & ACC_ASYNC  ? STORING
                                          : DONE_READ;
        add_value(b, &s, op, v, done);
    }
    if (op->kind == OP_BAR_WAIT) /* its declared effect is on all memory */
        add_value(b, &s, op, op_operand(op, 0), DONE_READ);
    if ((op->kind == OP_LOCAL_ALLOC && op->noperand) || op->kind == OP_BAR_ALLOC)
        add_value(b, &s, op, &op->results[0], DONE_WRITE);
    return s;
}

static Access
scratch_access(Barriers *b, const Op *op, int64_t bytes)
{
    int64_t at = attr_int(&op->attrs, ATTR_OFFSET, 0);
    bool in_warp = scratch_in_warp(op, b->target);
    return (Access){.done = DONE_WRITE,
                    .first = at,
                    .end = at + bytes,
                    .in_warp = in_warp ? op : NULL};
}

/* ---- the walk */

static void
put_barrier(Barriers *b, Op *op, State *s, int groups)
{
    AttrList attrs = {0};
    groups = groups == MEET_ALL || !b->groups ? 0 : groups;
    state_clear(s, groups);
    if (!b->insert)
        return;
    b->n++;
    if (b->count)
        return;
    if (b->check) {
        b->missing = b->missing ? b->missing : op;
        return;
    }
    Builder at = builder_before(op);
    at.loc = op->loc;
    if (groups)
        attr_set_int(&at.s->mod, &attrs, ATTR_GROUPS, groups);
    build_op(&at, OP_BARRIER, NULL, 0, &attrs, NULL, 0);
    b->changed = true;
}

static void
visit_scratch(Barriers *b, Op *op, int64_t bytes, State *s)
{
    Access a = scratch_access(b, op, bytes);
    if (conflicts(s, &a))
        put_barrier(b, op, s, MEET_ALL);
    if (a.in_warp)
        state_add(b, s, a); /* its barriers are those of warps */
    else
        state_clear(s, 0);
    a.done = DONE_READ;
    state_add(b, s, a);
}

/* A wait: wgmmas issued at least `pending` wgmmas ago have read their operands. */
static void
retire(Barriers *b, State *s, int64_t pending)
{
    State old = *s;
    *s = (State){0};
    for (int i = 0; i < old.at.n; i++) {
        Access a = old.at.at[i];
        if (a.done == READING && a.age >= pending) {
            a.done = DONE_READ;
            a.age = 0;
        }
        state_add(b, s, a);
    }
}

/* A wait for TMA stores: the thread that issued them knows that TMA has read; the others
   do after the next barrier. */
static void
stores_done(Barriers *b, State *s)
{
    State old = *s;
    *s = (State){0};
    for (int i = 0; i < old.at.n; i++) {
        Access a = old.at.at[i];
        a.done = a.done == STORING ? DONE_READ : a.done;
        state_add(b, s, a);
    }
}

static void
grow_older(State *s)
{
    for (int i = 0; i < s->at.n; i++)
        if (s->at.at[i].done == READING && s->at.at[i].age < MAX_AGE)
            s->at.at[i].age++;
}

/* Whom the accesses `now` have to meet behind those of s; 0: nobody. */
static int
meeting(const State *s, const State *now)
{
    int meet = 0;
    for (int i = 0; i < now->at.n; i++) {
        int one = conflicts(s, &now->at.at[i]);
        meet = meet && one && meet != one ? MEET_ALL : one ? one : meet;
    }
    return meet;
}

/* Warpgroups take turns from here to pingpong_arrive: at a barrier in between the first
   would wait for those that wait for their turn. What a turn needs is met in front of
   it. */
static void
visit_turn(Barriers *b, Op *op, State *s)
{
    State turn = {0};
    for (Op *at = op->next; at && at->kind != OP_PINGPONG_ARRIVE; at = at->next) {
        State now = accesses(b, at);
        for (int i = 0; i < now.at.n; i++)
            state_add(b, &turn, now.at.at[i]);
    }
    int meet = meeting(s, &turn);
    if (meet)
        put_barrier(b, op, s, meet);
}

static void
visit_op(Barriers *b, Op *op, State *s)
{
    if (op->kind == OP_PINGPONG_WAIT) {
        visit_turn(b, op, s);
        return;
    }
    if (op_is_dot_wait(op)) {
        retire(b, s, wait_pending(op));
        return;
    }
    if (opkind_waits(op->kind) == QUEUE_STORE && !wait_pending(op)) {
        stores_done(b, s);
        return;
    }
    if (op_is_async_dot(op))
        grow_older(s);
    if (op->kind == OP_BARRIER) {
        state_clear(s, (int)attr_int(&op->attrs, ATTR_GROUPS, 0));
        return;
    }
    if (opkind_waits(op->kind) == QUEUE_COPY) {
        bool all = !wait_pending(op);
        State old = *s;
        *s = (State){0};
        for (int i = 0; i < old.at.n; i++) {
            Access a = old.at.at[i];
            if (a.done != IN_FLIGHT || !all)
                state_add(b, s, a);
            a.done = a.done == IN_FLIGHT ? DONE_WRITE : a.done;
            state_add(b, s, a);
        }
        return;
    }
    int64_t bytes = scratch_bytes(op, b->target);
    if (bytes)
        visit_scratch(b, op, bytes, s);
    State now = accesses(b, op), phase = {0};
    if (completes(op))
        add_value(b, &phase, op, completes(op), DONE_WRITE);
    for (int i = 0; i < phase.at.n; i++)
        phase.at.at[i].phase = true;
    int meet = meeting(s, &phase) ? MEET_ALL : meeting(s, &now);
    if (meet)
        put_barrier(b, op, s, meet);
    for (int i = 0; i < now.at.n; i++)
        /* what TMA writes is ordered by its mbarrier */
        if (now.at.at[i].done != IN_FLIGHT || op->kind == OP_ASYNC_COPY)
            state_add(b, s, now.at.at[i]);
}

/* The state at the end of an iteration as the next one sees it: a stage that is used
   `ahead` iterations later is one iteration nearer. */
static void
next_iteration(State *s, const Op *loop)
{
    for (int i = 0; i < s->at.n; i++) {
        Access *a = &s->at.at[i];
        if (a->loop == loop)
            a->ahead = (a->ahead + a->stages - 1) % a->stages;
    }
}

static void
leave_loop(State *s, const Op *loop)
{
    for (int i = 0; i < s->at.n; i++)
        if (s->at.at[i].loop == loop)
            s->at.at[i].loop = NULL;
}

/* Walks a loop once, from state `head`; returns the state at its next head, *out: the one
   behind the loop. */
static State
walk_round(Barriers *b, const Op *op, State head, State *out, int depth, int loops)
{
    State s = walk(b, op->regions[0], head, depth + 1, loops + 1);
    *out = op->kind == OP_FOR ? head : s;
    next_iteration(&s, op);
    return op->kind == OP_FOR ? s : walk(b, op->regions[1], s, depth + 1, loops + 1);
}

/* Adds all accesses of a region, as if it had no barriers. */
static void
collect(Barriers *b, const Region *r, State *s, int depth)
{
    for (Op *op = r->first; op && depth <= MAX_REGION_DEPTH; op = op->next) {
        State now = accesses(b, op);
        int64_t bytes = scratch_bytes(op, b->target);
        if (bytes)
            state_add(b, &now, scratch_access(b, op, bytes));
        for (int i = 0; i < now.at.n; i++) {
            Access a = now.at.at[i];
            state_add(b, s, a);
            a.done = DONE_WRITE;
            state_add(b, s, a);
        }
        for (int i = 0; i < op->nregion; i++)
            collect(b, op->regions[i], s, depth + 1);
    }
}

static State
walk_loop(Barriers *b, const Op *op, State before, int depth, int loops)
{
    bool insert = b->insert;
    State head = state_join(b, &before, NULL), out;
    if (attr_has(&op->attrs, ATTR_ONCE)) { /* as the arm of a condition */
        State once = walk(b, op->regions[0], head, depth + 1, loops + 1);
        once = state_join(b, &before, &once);
        leave_loop(&once, op);
        return once;
    }
    b->insert = false;
    if (loops >= MAX_LOOPS)
        for (int i = 0; i < op->nregion; i++)
            collect(b, op->regions[i], &head, depth);
    for (int round = 0; loops < MAX_LOOPS; round++) {
        State end = walk_round(b, op, head, &out, depth, loops);
        State next = state_join(b, &before, &end);
        /* if states do not settle, take all accesses of all rounds */
        if (round >= MAX_ROUNDS)
            next = state_join(b, &head, &next);
        if (state_same(&next, &head))
            break;
        head = next;
    }
    b->insert = insert;
    State end = walk_round(b, op, head, &out, depth, loops);
    end = op->kind == OP_FOR ? state_join(b, &before, &end) : out;
    leave_loop(&end, op);
    return end;
}

static State
walk(Barriers *b, const Region *r, State s, int depth, int loops)
{
    s = state_join(b, &s, NULL); /* a copy of its own */
    for (Op *op = r->first; op && depth <= MAX_REGION_DEPTH; op = op->next) {
        switch ((int)op->kind) {
        case OP_FOR:
        case OP_WHILE: s = walk_loop(b, op, s, depth, loops); break;
        case OP_IF: {
            State then = walk(b, op->regions[0], s, depth + 1, loops);
            State other = walk(b, op->regions[1], s, depth + 1, loops);
            s = state_join(b, &then, &other);
            break;
        }
        case OP_WARP_SPECIALIZE:
            /* roles begin with an empty state, and meet at a barrier at the end */
            if (s.at.n)
                put_barrier(b, op, &s, MEET_ALL);
            for (int i = 0; i < op->nregion; i++)
                walk(b, op->regions[i], (State){0}, depth + 1, loops);
            break;
        default: visit_op(b, op, &s); break;
        }
    }
    return s;
}

/* A fence waits for the loads that a thread has in flight, and ptxas moves loads up to
   the barrier in front of them. Where threads load for later between a fence and the loop
   that reads what it is for, they meet behind the fence instead of in the loop. */
static bool
meet_behind_fence(void *user, Op *op)
{
    const Barriers *b = user;
    const Op *at = op->next;
    bool loads = false;
    if (op->kind != OP_FENCE_ASYNC)
        return false;
    for (; at; at = at->next) {
        bool load = at->kind == OP_LOAD && !op_acquires(at);
        if (at->nregion || scratch_bytes(at, b->target) || (!load && !op_is_pure(at)))
            break;
        loads |= load;
    }
    if (!loads || !at || !at->nregion)
        return false;
    Builder to = builder_after(op);
    to.loc = op->loc;
    build_op(&to, OP_BARRIER, NULL, 0, NULL, NULL, 0);
    return true;
}

static bool
find_groups(void *user, Op *op)
{
    bool *found = user;
    *found |= attr_has(&op->attrs, ATTR_GROUPS);
    return false;
}

/* Do warpgroups that meet on their own take no barrier more? */
static bool
groups_pay(const Barriers *b, const Func *f)
{
    Barriers own = *b, all = *b;
    bool found = false;
    pass_walk(f->body, find_groups, &found);
    own.count = all.count = own.groups = true;
    if (found) {
        walk(&own, f->body, (State){0}, 0, 0);
        walk(&all, f->body, (State){0}, 0, 0);
    }
    return found && own.n <= all.n;
}

bool
pass_insert_barriers(Func *f, PassCx *cx)
{
    Barriers b = {.arena = &cx->s->tmp, .target = &cx->target, .insert = true};
    b.changed = pass_walk(f->body, meet_behind_fence, &b);
    b.groups = groups_pay(&b, f);
    walk(&b, f->body, (State){0}, 0, 0);
    return b.changed;
}

FormFault
insert_barriers_check(Func *f, const TargetInfo *t, Arena *a)
{
    Barriers b = {
        .arena = a, .target = t, .groups = true, .insert = true, .check = true};
    walk(&b, f->body, (State){0}, 0, 0);
    return (FormFault){b.missing, "has a conflict in shared memory with an access in "
                                  "front of it, and no barrier is in between"};
}
