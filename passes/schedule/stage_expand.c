/* Software pipelining, the expansion. Loops that run two iterations at once are built
   first (rotation.c). Then planned loads become asynchronous copies to shared memory that
   are issued iterations ahead. Which loads, how many iterations ahead and into how many
   stages is written on the loop and its loads (form scheduled); stage_plan.c decides it.

       for %i = 0, %n, 32 (%p = %p0) {
         %a = load %p {stage=0}
         %m = local_alloc %a
         .. local_load %m ..
         yield %p'
       } {stages=3}

   becomes a prologue that starts the copies of the first two iterations into stages 0
   and 1 of a buffer, and

       for %i = 0, %n, 32 (%p = %p0, %ahead = %p2, %read = 0, %write = 2) {
         async_wait {pending=1}                  // this iteration's copies are there
         %more = %i + 64 < %n  // as unsigned numbers
         async_copy %ahead, %buf[%write], %more  // of the iteration after the next
         async_commit
         .. local_load %buf[%read] ..
         yield %p', %ahead', %read + 1 mod 3, %write + 1 mod 3
       }

   What the addresses need is computed a second time, for the later iteration; values that
   the loop itself no longer needs are dropped by dce. Copies of iterations that do not
   exist are masked off. The copies stand in front of the reads: they fill the stage that
   the iteration before has read, so a single barrier behind the wait serves both.

   Loads through descriptors become copies by TMA. These complete on an mbarrier of their
   stage, for which the iteration that reads them waits; its phase flips whenever the ring
   starts over. Loads that meet in one op, as the operands of a dot do, share a barrier:

         %f = bar_index %full, %read
         bar_wait %f, %phase
         %w = bar_index %full, %write
         bar_expect %w, %more {bytes=..}
         tma_load %desc, %buf[%write], %w, %i, %k, %more {waited}
*/
#include "ir/analysis/async_dot.h"
#include "ir/analysis/slice.h"
#include "ir/base/util.h"
#include "ir/base/vec.h"
#include "ir/build.h"
#include "ir/edit.h"
#include "ir/layout.h"
#include "ir/loop.h"
#include "ir/plan/pipeline.h"
#include "ir/plan/scratch.h"
#include "passes/mma/operand.h"
#include "passes/schedule/carry_loads.h"
#include "passes/schedule/channel.h"
#include "passes/schedule/occupancy.h"
#include "passes/schedule/rotation.h"
#include "passes/schedule/stage.h"

enum { MEET_DEPTH = 4 };

/* When an iteration reads what a load brings: if `cond` holds, or (`other`) does not;
   NULL: always. Else nothing is copied. */
typedef struct Need {
    Value *cond;
    bool other;
} Need;

/* TMA loads that are first used by the same op and share an mbarrier. */
typedef struct Group {
    Op *reader;     /* the first of their elements */
    const Op *meet; /* NULL: vectors' */
    Need need;
    int64_t bytes;  /* of one iteration */
    Value *full;    /* barriers, one for each stage */
    Value *now;     /* that of the stage being issued; NULL: nothing is yet */
} Group;

typedef struct Expand {
    Session *s;
    const PassCx *cx;
    Op *loop;
    Pipeline p;
    Vec(Op *) loads;
    Vec(Value *) bufs; /* one for each load */
    Vec(Need) needs;   /* the same */
    int ntma;          /* loads by TMA */
    Vec(Group) groups; /* of those */
    Vec(int) group_of; /* for each load; -1: no TMA */
    Slice slice;       /* what computes addresses */
    bool *ahead;       /* carried values that it needs */
    Value **state;     /* those, at the iteration being issued */
    Value *iv;
    Map map; /* body values -> values of the iteration being issued */
} Expand;

static const Type *
vector_buffer(Session *s, const Type *t)
{
    const Layout *l =
        layout_nvmma(s, 1, t->shape, (int)max_i64(type_bits(t), 8), 0, (int[]){0});
    return type_mem(s->types, t->elem, 1, t->shape, l, 0);
}

const Type *
staged_buffer(Session *s, const Op *load)
{
    const Value *v = &load->results[0];
    value_each_use(v, u)
        if (u->user->kind == OP_LOCAL_ALLOC)
            return u->user->results[0].type;
    return v->type->rank == 1 ? vector_buffer(s, v->type)
                              : operand_buffer_type(s, v->type, operand_fast_dim(v));
}

/* ---- one iteration ahead */

/* A load whose value is part of the addresses of planned loads: loaded at once, under the
   mask of the copies. */
static void
issue_plain_load(Expand *e, Builder *b, Op *op, Value *pred)
{
    Op *to = load_where(b, op, &e->map, pred);
    attr_drop(&to->attrs, ATTR_STAGE);
    map_set(&e->map, &op->results[0], &to->results[0]);
}

/* Whether the iteration that is being issued reads what it loads, or (`so` false) does
   not; NULL: it does. */
static Value *
needed(const Expand *e, Builder *b, Need need, bool so)
{
    Value *c = need.cond ? value_mapped(&e->map, need.cond) : NULL;
    if (c && need.other == so)
        c = build_binary(b, OP_XOR, c, build_int(b, c->type, 1));
    return c;
}

static Value *
both(Builder *b, Value *x, Value *y)
{
    return x && y ? build_binary(b, OP_AND, x, y) : x ? x : y;
}

static Value *
issue_copy(Expand *e, Builder *b, int k, Value *stage, Value *pred)
{
    Op *load = e->loads.at[k];
    Value *ptr = value_mapped(&e->map, op_operand(load, 0));
    Value *mask = load->noperand > 1 ? value_mapped(&e->map, op_operand(load, 1)) : NULL;
    Value *in[4] = {ptr, channel_stage(b, e->bufs.at[k], stage, e->p.ahead, NULL),
                    build_guard(b, pred, mask, ptr->type),
                    needed(e, b, e->needs.at[k], true)};
    AttrList attrs = load->attrs;
    b->loc = load->loc;
    Op *copy = build_op(b, OP_ASYNC_COPY, in, in[3] ? 4 : 3, &attrs, NULL, 1);
    attr_drop(&copy->attrs, ATTR_STAGE);
    return &copy->results[0];
}

static void
issue_tma(Expand *e, Builder *b, int k, Value *stage, Value *pred)
{
    Op *load = e->loads.at[k];
    Group *g = &e->groups.at[e->group_of.at[k]];
    b->loc = load->loc;
    Value *some = both(b, needed(e, b, g->need, true), pred);
    if (!g->now) {
        g->now = channel_stage(b, g->full, stage, e->p.ahead, NULL);
        if (g->need.cond)
            channel_expect(b, g->now, 0, both(b, needed(e, b, g->need, false), pred));
        channel_expect(b, g->now, g->bytes, some);
    }
    Value *mem = channel_stage(b, e->bufs.at[k], stage, e->p.ahead, NULL);
    Op *copy = channel_copy(b, load, mem, g->now, &e->map, some);
    attr_set_flag(&e->s->mod, &copy->attrs, ATTR_WAITED);
}

/* Issues the copies of the iteration that e->iv and e->state stand for into `stage`, and
   advances both to the next iteration. */
static void
issue(Expand *e, Builder *b, const Region *body, Value *stage, Value *pred)
{
    int n = e->loop->nresult, k = 0, ntoken = 0;
    for (int i = 0; i < e->groups.n; i++)
        e->groups.at[i].now = NULL;
    map_init(&e->map, &e->s->tmp);
    map_set(&e->map, body->args[0], e->iv);
    for (int i = 0; i < n; i++)
        if (e->ahead[i])
            map_set(&e->map, body->args[i + 1], e->state[i]);
    Value **tokens = arena_array(&e->s->tmp, Value *, e->loads.n);
    for (Op *op = body->first; op; op = op->next) {
        if (k < e->loads.n && e->loads.at[k] == op) {
            if (op->kind == OP_LOAD)
                tokens[ntoken++] = issue_copy(e, b, k, stage, pred);
            else
                issue_tma(e, b, k, stage, pred);
            k++;
        }
        if (slice_has(&e->slice, op)) {
            if (op->kind == OP_LOAD)
                issue_plain_load(e, b, op, pred);
            else
                slice_clone(&e->slice, b, op, &e->map);
        }
    }
    if (ntoken)
        build_op(b, OP_ASYNC_COMMIT, tokens, ntoken, NULL, NULL, 1);
    for (int i = 0; i < n; i++)
        if (e->ahead[i])
            e->state[i] = value_mapped(&e->map, op_operand(body->last, i));
}

static void
prologue(Expand *e, Builder *b)
{
    const Type *i32 = type_scalar(e->s->types, SK_I32);
    for (int i = 0; i < e->loop->nresult; i++)
        e->state[i] = op_operand(e->loop, i + 3);
    e->iv = op_operand(e->loop, 0);
    for (int k = 0; k < e->p.ahead; k++) {
        issue(e, b, e->loop->regions[0], build_int(b, i32, k),
              build_loop_reaches(b, e->loop, k));
        e->iv = build_binary(b, OP_ADD, e->iv, op_operand(e->loop, 2));
    }
}

/* ---- the loop */

static void
wait_for(Expand *e, Builder *b, int pending)
{
    AttrList attrs = {0};
    if (e->ntma == e->loads.n)
        return;
    attr_set_int(&b->s->mod, &attrs, ATTR_PENDING, pending);
    build_op(b, OP_ASYNC_WAIT, NULL, 0, &attrs, NULL, 1);
}

/* Waits in front of the first op that reads what the copies of the group bring. */
static void
wait_group(Expand *e, const Group *g, PipelineState at)
{
    Builder b = builder_before(g->reader);
    b.loc = e->loop->loc;
    channel_wait(&b, g->full, at, 0);
}

/* The first op of the body that reads v, or that reads a buffer of type `mem` into which
   v is stored; `first` if that comes earlier. */
static Op *
first_reader(const Region *body, Value *v, const Type *mem, Op *first)
{
    value_each_use(v, u) {
        Op *user = u->user;
        bool view = user->kind == OP_LOCAL_TRANS ||
                    (user->kind == OP_LOCAL_ALLOC && user->results[0].type == mem);
        user = op_in_region(user, body);
        if (view && user == u->user)
            first = first_reader(body, &user->results[0], mem, first);
        else if (!first || op_before(user, first))
            first = user;
    }
    return first;
}

/* Users of the load read its stage of the buffer instead. */
static void
read_stage(Expand *e, int k, Value *stage)
{
    Op *load = e->loads.at[k];
    Builder b = builder_before(load);
    Value *m = channel_stage(&b, e->bufs.at[k], stage, 0, NULL);
    value_each_use(&load->results[0], u) {
        Op *user = u->user;
        if (user->kind != OP_LOCAL_ALLOC || user->results[0].type != m->type)
            continue;
        value_replace(&user->results[0], m);
        op_erase(user);
    }
    if (load->results[0].uses) { /* behind the wait, which the first of them has */
        const Type *t = load->results[0].type;
        Op *first = first_reader(load->parent, &load->results[0], m->type, NULL);
        Builder at = builder_before(first);
        Op *read = build_op(&at, OP_LOCAL_LOAD, &m, 1, NULL, &t, 1);
        value_replace(&load->results[0], &read->results[0]);
    }
    op_erase(load);
}

/* Where copies are issued, if they wait for dots to be issued first; NULL: at the start
   of the iteration. The thread that issues copies holds up its warp, so the dots go
   first, up to the last one that reads what threads stored for it in this iteration. The
   threads meet in front of that dot anyway, so the copies need no barrier of their
   own. */
static Op *
product_before_copies(const Region *body)
{
    Op *at = NULL;
    region_each(body, op) {
        bool exchange = op->kind == OP_LOCAL_ALLOC && op->noperand;
        Op *first = exchange ? first_reader(body, &op->results[0], NULL, NULL) : NULL;
        if ((op_is_async_dot(op) && !at) || (first && op_is_async_dot(first)))
            at = first ? first : op;
    }
    return at;
}

/* The body's last dot, with the wait for it. */
static Op *
last_dot(const Region *body)
{
    Op *op = body->last;
    while (op->prev && !op_is_async_dot(op))
        op = op->prev;
    return op_is_async_dot(op) && dot_wait(op) ? dot_wait(op) : op;
}

/* The new loop, with the body of the old one and the place of an iteration in the rings:
   *read, where it reads, *write, where it issues. Carries what the old loop does, what
   the iteration that is being issued needs of that, and those places. */
static Op *
build_loop(Expand *e, PipelineState *read, PipelineState *write)
{
    Op *old = e->loop;
    Region *from = old->regions[0];
    Builder b = builder_before(old);
    const Type *i32 = type_scalar(e->s->types, SK_I32);
    int n = old->nresult, m = 0;
    b.loc = old->loc;
    Value **init = arena_array(&e->s->tmp, Value *, 2 * n + 3);
    for (int i = 0; i < n; i++)
        init[m++] = op_operand(old, i + 3);
    for (int i = 0; i < n; i++)
        if (e->ahead[i])
            init[m++] = e->state[i];
    int place = m;
    init[m++] = build_int(&b, i32, 0);
    init[m++] = build_int(&b, i32, e->p.ahead % e->p.stages);
    if (e->ntma)
        init[m++] = build_int(&b, i32, 0);
    Op *loop = build_for(&b, op_operand(old, 0), op_operand(old, 1), op_operand(old, 2),
                         init, m);
    Region *to = loop->regions[0];
    for (int i = 0, a = n + 1; i < n; i++)
        if (e->ahead[i])
            e->state[i] = to->args[a++];
    Value **places = to->args + 1 + place;
    *read = (PipelineState){places[0], e->ntma ? places[2] : NULL};
    *write = (PipelineState){.stage = places[1]};
    for (int i = 0; i <= n; i++) {
        to->args[i]->name = from->args[i]->name;
        value_replace(from->args[i], to->args[i]);
    }
    region_each(from, op)
        op_move_to_end(op, to);
    return loop;
}

/* The op in front of which the body issues copies. If dots stay in flight over the end of
   an iteration, the one behind the last dot: all are under way then, ahead of what reads
   sums. Mostly `start`: copies come first. */
static Op *
place_of_copies(const Expand *e, const Region *body, Op *start)
{
    if (e->p.pending)
        return last_dot(body)->next;
    Op *product = e->ntma == e->loads.n ? product_before_copies(body) : NULL;
    return product ? product->next : start;
}

/* Have all copies been issued in front of the loop? Groups of cp.async are counted in
   each iteration nevertheless. */
static bool
is_filled_once(const Expand *e)
{
    return e->ntma == e->loads.n && pipeline_is_whole(e->loop);
}

/* The body waits for its own copies, issues those of a later iteration, and reads. */
static void
fill_body(Expand *e, Region *body, PipelineState read, PipelineState write)
{
    const Op *old = e->loop;
    Op *start = body->first;
    Builder in = builder_before(start);
    in.loc = old->loc;
    wait_for(e, &in, e->p.ahead - 1);
    for (int i = 0; i < e->groups.n; i++)
        wait_group(e, &e->groups.at[i], read);
    if (!is_filled_once(e)) {
        in.before = place_of_copies(e, body, start);
        Value *far = build_binary(&in, OP_MUL, op_operand(old, 2),
                                  build_int(&in, op_operand(old, 2)->type, e->p.ahead));
        e->iv = build_binary(&in, OP_ADD, body->args[0], far);
        issue(e, &in, body, write.stage,
              build_iteration_exists(&in, old, body->args[0], e->p.ahead));
    }
    for (int k = 0; k < e->loads.n; k++)
        read_stage(e, k, read.stage);
}

static void
hand_on(Expand *e, Region *body, PipelineState read, PipelineState write)
{
    Op *yield = body->last;
    Builder at = builder_before(yield);
    at.loc = e->loop->loc;
    for (int i = 0; i < e->loop->nresult; i++)
        if (e->ahead[i])
            op_add_operand(yield, e->state[i]);
    read = channel_next(&at, read, e->p.stages);
    op_add_operand(yield, read.stage);
    op_add_operand(yield, channel_next(&at, write, e->p.stages).stage);
    if (read.phase)
        op_add_operand(yield, read.phase);
}

static void
rebuild(Expand *e)
{
    Op *old = e->loop;
    PipelineState read, write;
    Op *loop = build_loop(e, &read, &write);
    fill_body(e, loop->regions[0], read, write);
    hand_on(e, loop->regions[0], read, write);
    for (int i = 0; i < old->nresult; i++) {
        loop->results[i].name = old->results[i].name;
        value_replace(&old->results[i], &loop->results[i]);
    }
    pipeline_hand_on(e->s, old, loop);
    Builder b = builder_after(loop);
    wait_for(e, &b, 0);
    op_erase(old);
}

/* The barriers of the stages. What threads wrote where TMA will write comes
   first. */
static void
make_barriers(Expand *e, Builder *b)
{
    for (int i = 0; i < e->groups.n; i++)
        e->groups.at[i].full = channel_bars(b, e->p.stages, 1);
    build_op(b, OP_FENCE_ASYNC, NULL, 0, NULL, NULL, 0);
}

/* The op in which the elements that `reader` reads meet those of other loads. Waiting for
   each separately would keep all of the first operand in registers until the second may
   be read. */
static const Op *
meeting(const Op *reader)
{
    for (int depth = 0; depth < MEET_DEPTH; depth++) {
        bool moves = reader->kind == OP_LOCAL_LOAD ||
                     (op_is(reader, T_PURE) && reader->noperand == 1);
        const Use *u = moves && reader->nresult == 1 ? reader->results[0].uses : NULL;
        if (!u || u->next || u->user->parent != reader->parent)
            break;
        reader = u->user;
    }
    return reader;
}

/* *arm: that of a condition of the body in which all ops stand that read v; false: there
   is none. Views of v, and the buffer that the load is to fill, read nothing yet. */
static bool
read_in_arm(const Value *v, const Region *body, const Type *mem, const Region **arm)
{
    value_each_use(v, u)
    {
        const Op *user = u->user, *top = op_in_region(user, body);
        bool view = user->kind == OP_LOCAL_TRANS ||
                    (user->kind == OP_LOCAL_ALLOC && user->results[0].type == mem);
        if (top == user && (!view || !read_in_arm(&user->results[0], body, mem, arm)))
            return false;
        if (top == user)
            continue;
        bool first = top->kind == OP_IF && region_within(user->parent, top->regions[0]);
        if (top->kind != OP_IF || (*arm && *arm != top->regions[!first]))
            return false;
        *arm = top->regions[!first];
    }
    return true;
}

/* Is v known where the load is issued, or computed in front of it from what is? */
static bool
known_ahead(const Expand *e, const Op *load, const Value *v, int depth)
{
    const Op *op = v->op;
    if (value_outside(v, load->parent))
        return true;
    if (!op || op->parent != load->parent || !op_before(op, load) || depth > MEET_DEPTH)
        return false;
    bool plain = !op->nregion && op_is(op, T_PURE) && !type_is_tile(v->type);
    for (int i = 0; plain && i < op->noperand; i++)
        plain = known_ahead(e, load, op_operand(op, i), depth + 1);
    return plain || map_has(&e->slice.values, v);
}

/* If only one arm of a condition reads what the load brings: whether that arm runs, where
   the load's mask asks for that, too. */
static Need
need_of(const Expand *e, const Op *load, const Type *mem)
{
    const Region *body = load->parent, *arm = NULL;
    if (!read_in_arm(&load->results[0], body, mem, &arm) || !arm)
        return (Need){0};
    const Op *cond = arm->parent;
    Value *c = op_operand(cond, 0);
    bool known = c->op && c->op->parent == body && known_ahead(e, load, c, 0);
    return known ? (Need){c, arm == cond->regions[1]} : (Need){0};
}

static int
find_group(Expand *e, Op *load, const Type *mem, Need need)
{
    Op *reader = first_reader(load->parent, &load->results[0], mem, NULL);
    bool vector = load->results[0].type->rank == 1;
    int i = 0;
    if (!reader)
        reader = load;
    const Op *meet = vector ? NULL : meeting(reader); /* vectors arrive together */
    while (i < e->groups.n &&
           (e->groups.at[i].meet != meet || e->groups.at[i].need.cond != need.cond ||
            e->groups.at[i].need.other != need.other))
        i++;
    if (i == e->groups.n)
        vec_push(&e->s->tmp, &e->groups,
                 ((Group){.reader = reader, .meet = meet, .need = need}));
    if (op_before(reader, e->groups.at[i].reader))
        e->groups.at[i].reader = reader;
    e->groups.at[i].bytes += shared_stage_bytes(mem);
    return i;
}

/* What load k of the loop needs ahead. */
static void
open_slice(Expand *e, Op *load)
{
    bool tma = load->kind == OP_DESC_LOAD;
    for (int i = tma; i < load->noperand && (tma || i < 2); i++)
        slice_add(&e->slice, op_operand(load, i));
    Need need = need_of(e, load, staged_buffer(e->s, load));
    if (need.cond)
        slice_add(&e->slice, need.cond);
    vec_push(&e->s->tmp, &e->needs, need);
    e->ntma += tma;
}

/* Its buffer, and the barriers that it shares. */
static void
open_load(Expand *e, Builder *b, Op *load, Need need)
{
    const Type *one = staged_buffer(e->s, load);
    vec_push(&e->s->tmp, &e->bufs, channel_buffer(b, one, e->p.stages));
    int group = load->kind == OP_DESC_LOAD ? find_group(e, load, one, need) : -1;
    vec_push(&e->s->tmp, &e->group_of, group);
}

/* Is v needed by the prologue: by the loop itself, or inside of it by loads or by what
   computes their addresses? */
static bool
prologue_needs(const Expand *e, const Value *v)
{
    const Op *loop = e->loop;
    value_each_use(v, u) {
        const Op *in = op_in_region(u->user, loop->regions[0]);
        if (in ? slice_has(&e->slice, in) || op_is_planned(in)
               : u->user == loop && (u->index < 3 || e->ahead[u->index - 3]))
            return true;
    }
    return false;
}

/* Does op read what threads load in front of the loop, or what `late` computes of it? */
static bool
waits_for_load(const Op *op, const Region *in, const Map *late)
{
    for (int i = 0; i < op->noperand; i++) {
        const Op *from = op_operand(op, i)->op;
        bool load = from && from->kind == OP_LOAD && from->parent == in;
        if (load || (from && map_has(late, from)))
            return true;
    }
    return false;
}

/* Do only ops in `late` need op in front of the loop, and the loop itself no buffer of
   it, for which its threads would have to meet? */
static bool
may_be_late(const Expand *e, const Op *op, const Map *late)
{
    for (int i = 0; i < op->nresult; i++)
        value_each_use(&op->results[i], u) {
            const Op *user = op_in_region(u->user, op->parent);
            if (op_before(user, e->loop) ? !map_has(late, user)
                                         : op->kind == OP_LOCAL_ALLOC)
                return false;
        }
    return true;
}

/* Threads wait for what they load in front of the loop, such as the queries of attention,
   behind the copies of the prologue: these are under way then, too. The buffers that it
   goes through have no place in those of the copies then, which may not cost a program on
   the SM. ring: bytes of these. */
static void
wait_behind_prologue(Expand *e, int64_t ring)
{
    Vec(Op *) late = {0};
    Map is_late;
    int64_t most = e->cx->target.shared_bytes, bytes = ring;
    map_init(&is_late, &e->s->tmp);
    if (e->ntma != e->loads.n || !ring)
        return;
    for (Op *op = e->loop->parent->first; op != e->loop; op = op->next) {
        bool moves = op->kind == OP_LOCAL_ALLOC || op->kind == OP_LOCAL_LOAD ||
                     (!op->nregion && op_is_pure(op));
        if (!waits_for_load(op, op->parent, &is_late))
            continue;
        for (int i = 0; i < op->nresult; i++)
            moves &= !prologue_needs(e, &op->results[i]);
        if (!moves)
            return;
        if (op->kind == OP_LOCAL_ALLOC)
            bytes += shared_stage_bytes(op->results[0].type);
        vec_push(&e->s->tmp, &late, op);
        map_set(&is_late, op, op);
    }
    for (int i = 0; i < late.n; i++)
        if (!may_be_late(e, late.at[i], &is_late))
            return;
    if (most / bytes != most / ring)
        return;
    for (int i = 0; i < late.n; i++)
        op_move_before(late.at[i], e->loop);
}

static bool
expand_loop(void *user, Op *loop)
{
    const PassCx *cx = user;
    Session *s = cx->s;
    Expand e = {.s = s, .cx = cx, .loop = loop, .p = pipeline_of(loop)};
    if (!loop_is_pipelined(loop))
        return false;
    region_each(loop->regions[0], op)
        if (op_is_planned(op))
            vec_push(&s->tmp, &e.loads, op);
    if (!e.loads.n)
        return false;
    e.ahead = arena_array(&s->tmp, bool, loop->nresult + 1);
    e.state = arena_array(&s->tmp, Value *, loop->nresult + 1);
    slice_init(&e.slice, &s->tmp, loop->regions[0], NULL, NULL);
    for (int k = 0; k < e.loads.n; k++)
        open_slice(&e, e.loads.at[k]);
    for (int i = 0; i < loop->nresult; i++)
        e.ahead[i] = map_has(&e.slice.values, loop->regions[0]->args[i + 1]);
    int64_t ring = loop_bytes(loop, e.p.stages);
    Builder b = builder_before(loop);
    b.loc = loop->loc;
    for (int k = 0; k < e.loads.n; k++)
        open_load(&e, &b, e.loads.at[k], e.needs.at[k]);
    if (e.ntma)
        make_barriers(&e, &b);
    prologue(&e, &b);
    wait_behind_prologue(&e, ring);
    rebuild(&e);
    return true;
}

static bool
rotate_loop(void *user, Op *loop)
{
    return rotation_expand(user, loop);
}

bool
pass_stage_expand(Func *f, PassCx *cx)
{
    bool changed = pass_walk(f->body, rotate_loop, cx->s);
    return pass_walk(f->body, expand_loop, cx) || changed;
}
