/* Software pipelining, the plan: which loads of a loop are issued ahead of their use, and
   by how many iterations.

   A loop that feeds dots from memory waits for memory in every iteration unless the loads
   of later iterations are in flight. The plan marks the loads that can be: {stage=0} on
   the load, {stages=n, prefetch=k} on the loop. The load of iteration i is then issued k
   iterations before its use, into one of n buffers. Nothing is moved here; stage-expand
   does that.

   A load qualifies when its addresses depend on nothing that takes the loop long to
   compute: the loop counter, carried addresses, other loads (a list of blocks) and pure
   arithmetic. A loop that writes memory keeps its loads in place, also those that
   addresses depend on, unless it writes through another parameter of the kernel: as
   everywhere in sdc, two parameters are assumed to point to different memory when a loop
   uses both. A loop that waits for other programs (op_acquires) keeps all of them. Loads
   inside of conditions move in front of these first (stage_lift.c). */
#include "ir/analysis/accumulator.h"
#include "ir/analysis/async_dot.h"
#include "ir/analysis/param.h"
#include "ir/analysis/slice.h"
#include "ir/base/util.h"
#include "ir/base/vec.h"
#include "ir/build.h"
#include "ir/edit.h"
#include "ir/fold.h"
#include "ir/layout.h"
#include "ir/loop.h"
#include "ir/plan/pipeline.h"
#include "ir/plan/scratch.h"
#include "passes/mma/operand.h"
#include "passes/forms.h"
#include "passes/schedule/occupancy.h"
#include "passes/schedule/persist.h"
#include "passes/schedule/rotation.h"
#include "passes/schedule/stage.h"
#include "passes/schedule/stage_lift.h"
#include "passes/schedule/tma_tile.h"

enum { MAX_STAGES = 8 };

typedef struct Plan {
    Session *s;
    Func *f;
    const TargetInfo *target;
    Op *loop;
    Writes writes;   /* of the loop */
    Map lifted;      /* loads of tiles that feed dots in conditions: Op -> itself */
    bool by_threads; /* some load is pipelined by cp.async */
} Plan;

static bool
is_hazard(const Plan *p, const Op *load)
{
    return p->writes.ordered || writes_reach(&p->writes, op_operand(load, 0));
}

/* Does op belong to the path through a buffer that stage_read.c makes? */
static bool
through_buffer(const Op *op)
{
    const Op *alloc =
        op->kind == OP_LOCAL_LOAD ? value_def(op_operand(op, 0), OP_LOCAL_ALLOC) : op;
    return alloc && alloc->kind == OP_LOCAL_ALLOC && alloc->noperand &&
           alloc->parent == op->parent;
}

/* The innermost region around r that is not an arm of a condition. */
static const Region *
around_conditions(const Region *r)
{
    while (r->parent && r->parent->kind == OP_IF)
        r = r->parent->parent;
    return r;
}

/* Slice callback: may v of a later iteration be computed in this one? Both arms of a
   condition are copied, but loads in them stay, because no mask there says that the
   iteration exists. */
static bool
enter_ahead(Slice *sl, const Value *v)
{
    const Plan *p = sl->user;
    const Op *op = v->op;
    const Region *r = op ? op->parent : v->region;
    bool here = r == sl->within, condition = op && op->kind == OP_IF;
    bool plain = !op || condition || op_is(op, T_PURE) ||
                 (here && op->kind == OP_LOAD && !is_hazard(p, op)) ||
                 (here && through_buffer(op));
    if (!plain || (op && ((op->nregion && !condition) || op->kind == OP_DOT)) ||
        (op ? around_conditions(r) : r) != sl->within)
        sl->why = "the loop computes it";
    return true;
}

/* Can the operands of the load be computed iterations ahead? */
static bool
runs_ahead(Plan *p, const Op *load)
{
    Slice sl;
    bool can = true;
    slice_init(&sl, &p->s->tmp, p->loop->regions[0], enter_ahead, p);
    for (int i = load->kind == OP_DESC_LOAD; i < load->noperand && can; i++)
        can = slice_add(&sl, op_operand(load, i));
    return can;
}

/* Does the load fill a buffer for dots directly? */
static bool
goes_to_buffer(const Op *load)
{
    value_each_use(&load->results[0], u) if (u->user->kind == OP_LOCAL_ALLOC &&
                                             u->user->parent == load->parent) return true;
    return false;
}

static bool
fills_buffer(const Plan *p, const Op *load)
{
    const Type *t = load->results[0].type;
    return type_is_tile(t) && t->rank > 1 &&
           (map_has(&p->lifted, load) ||
            value_feeds_dot(&load->results[0], load->parent, false));
}

/* Why the load has to stay in its place; NULL: it can be pipelined. */
static const char *
why_not(Plan *p, Op *load, const char *no_tma)
{
    if (attr_has(&load->attrs, ATTR_VOLATILE))
        return "it is volatile";
    if (is_hazard(p, load))
        return "the loop may write that memory, or waits for other programs";
    if (load->noperand > 2 && !value_is_zero(op_operand(load, 2)))
        return "masked-off elements are not 0";
    if (!runs_ahead(p, load))
        return "its addresses depend on what the loop computes";
    if (!no_tma || operand_copies(load))
        return NULL;
    return arena_printf(&p->s->tmp, "%s, and its pieces are too small for cp.async",
                        no_tma);
}

static void
say_why(Session *s, Op *load, const char *why)
{
    attr_set_str(&s->mod, &load->attrs, ATTR_WHY, name_of(&s->names, why));
}

/* Can the load be pipelined? Notes on the load why not, or why TMA cannot do it. */
static bool
plan_load(Plan *p, Op *load)
{
    const char *no_tma =
        p->target->tma ? tma_refuses(p->f, p->loop, load) : "the target has no TMA";
    const char *why = why_not(p, load, no_tma);
    if (why || (no_tma && p->target->tma))
        say_why(p->s, load, why ? why : no_tma);
    return !why;
}

/* May the plan take the load? Tiles that do not lie in a buffer as they are loaded only
   where there is memory for them. */
static bool
may_plan(const PassCx *cx, const Op *load)
{
    const Type *t = load->results[0].type;
    bool tile = type_is_tile(t) && t->rank > 1 && !goes_to_buffer(load);
    return type_is_tile(t) && !(tile && cx->budget->no_tiles);
}

/* Moves loads out of conditions: tiles for dots, then, if there are such, vectors. All
   can be planned where they are now, by threads if not by TMA. */
static void
lift_loads(Plan *p, const PassCx *cx)
{
    Lift l;
    stage_lift_find(&l, p->s, p->loop, &p->writes);
    for (int tiles = 1; tiles >= 0; tiles--)
        for (int i = 0; i < l.loads.n && (tiles || p->lifted.n); i++) {
            Op *load = l.loads.at[i];
            bool feeds = fills_buffer(p, load);
            if ((tiles ? !feeds : load->results[0].type->rank > 1) ||
                !operand_copies(load) || !may_plan(cx, load) || !stage_lift(&l, load))
                continue;
            bool planned = plan_load(p, load);
            if (planned && tiles)
                map_set(&p->lifted, load, load);
            if (planned) /* it says what holds of the loop as it is so far */
                attr_drop(&load->attrs, ATTR_WHY);
            else
                stage_lift_undo(&l);
        }
}

static bool
enter_unplanned(Slice *sl, const Value *v)
{
    (void)sl;
    return !v->op || !op_is_planned(v->op);
}

/* What an iteration computes in place: everything but what only the addresses of planned
   loads need, which is computed ahead. */
static Slice
read_in_place(Session *s, const Op *loop)
{
    Slice sl;
    const Region *body = loop->regions[0];
    slice_init(&sl, &s->tmp, body, enter_unplanned, NULL);
    region_each(body, op)
    {
        bool load = op->kind == OP_LOAD && !attr_has(&op->attrs, ATTR_VOLATILE);
        if (op != body->last && !load && !op_is_pure(op))
            slice_add_operands(&sl, op);
    }
    for (int i = 0; i < loop->nresult; i++)
        if (loop->results[i].uses)
            slice_add(&sl, op_operand(body->last, i));
    return sl;
}

/* Is the dot an accumulation over the whole loop: its accumulator goes into the next
   iteration, and only arms of conditions read it? Then the wait can move to the next
   iteration. Not with a left operand in registers, because the next iteration overwrites
   those, even with a copy of a loop-invariant value; nor where the dot is split into
   pieces, the last of which is waited for anyway. */
static bool
is_chain(const Op *dot)
{
    return !attr_has(&dot->attrs, ATTR_MAX_IMPRECISE) &&
           dot_reads_shared(dot, DOT_LEFT) && dot_carried(dot) >= 0;
}

/* Number of dots that can stay in flight over the end of an iteration; 0 when one of them
   must be waited for. */
static int
count_chains(const Op *loop)
{
    int n = 0;
    for (const Op *op = loop->regions[0]->first; op; op = op->next) {
        if (op_is_async_dot(op) && !is_chain(op))
            return 0;
        n += op_is_async_dot(op);
    }
    return n == dots_within(loop->regions[0]) ? n : 0;
}

/* Do several dots of the loop add up? */
static bool
has_sums(const Op *loop)
{
    for (const Op *op = loop->regions[0]->first; op; op = op->next)
        if (op_is_async_dot(op) && dot_adding_to(op))
            return true;
    return false;
}

/* 32-bit registers of all threads for what dots by threads and mma add up. */
static int64_t
sum_registers(const Region *body)
{
    int64_t words = 0;
    for (const Op *op = body->first; op; op = op->next) {
        const Type *t = op->kind == OP_DOT ? op->results[0].type : NULL;
        words += t ? type_numel(t) * max_i64(32, type_bits(t)) / 32 : 0;
    }
    return words;
}

/* How many programs fit on an SM if the loop has this many stages. */
static int64_t
programs(const Plan *p, int stages)
{
    const Region *body = p->loop->regions[0];
    return occupancy(p->f, p->target, mma_registers(body) + sum_registers(body),
                     USUALLY_BESIDE, loop_bytes(p->loop, stages));
}

bool
stage_once(Func *f, const TargetInfo *t, const Op *loop, int ahead)
{
    int64_t trips = loop_trips(loop);
    return trips > 1 && trips <= ahead && !op_in_loop(loop) &&
           !(f->num_warps > 4 && persist_suits(f, t, loop));
}

/* Sets the depth of the pipeline. A dot in flight still reads the stage of the
   iteration before. Copies are issued behind the dot that read their stage (pass
   stage-expand), so nothing is lost; but with one more buffer they can be issued
   earlier. That is not worth it where an SM would then run one program instead of two,
   one of which hides the waits of the other, unless that one program is to be
   persistent; nor in a loop of so few iterations that all their copies are issued in
   front of it. Where several dots add up, none stays in flight unless one warpgroup has
   the SM for itself (H200, loops of two dots with 1 and 2 warpgroups on an SM: 1.08 and
   1.10, 0.96 to 1.00). Dots that are not asynchronous have read their stage when the
   next copies are issued: there the stage that costs an SM its second program is left
   out. */
static void
plan_depth(Plan *p, int stages, int most)
{
    Op *loop = p->loop;
    if (stage_once(p->f, p->target, loop, stages - 1))
        stages = most = (int)loop_trips(loop) + 1;
    int ahead = stages - 1, chains = count_chains(loop);
    int64_t one = programs(p, stages + 1);
    if (has_sums(loop) && (p->f->num_warps > 4 || programs(p, stages) > 1))
        chains = 0;
    bool persistent = !p->by_threads && p->f->num_warps > 4 &&
                      persist_suits(p->f, p->target, loop) &&
                      stage_bytes(loop) * stages >= PERSIST_BYTES;
    bool fewer = !persistent && !op_in_loop(loop) && one < 2 && programs(p, stages) > one;
    if (!dots_within(loop->regions[0]) && stages > 3 && programs(p, stages) < 2 &&
        programs(p, stages - 1) > 1) {
        stages--;
        ahead--;
    }
    if (chains && stages < most && !fewer &&
        loop_bytes(loop, stages + 1) <= p->target->shared_bytes)
        stages++;
    else if (stages <= 2)
        chains = 0;
    pipeline_set(p->s, loop, (Pipeline){stages, ahead, chains});
}

static bool
plan_loop(void *user, Op *loop)
{
    PassCx *cx = user;
    Session *s = cx->s;
    Func *f = loop->parent->func;
    if (loop->kind != OP_FOR)
        return false;
    int depth = cx->budget->depth ? cx->budget->depth : MAX_STAGES + 1;
    int stages = (int)attr_int(&loop->attrs, ATTR_STAGES, f->num_stages);
    Plan p = {.s = s, .f = f, .target = &cx->target, .loop = loop};
    bool wanted = false, feeds = false;
    Vec(Op *) ahead = {0};
    if (stages > depth)
        stages = depth;
    if (stages < 2 || !loop_step(loop))
        return false;
    writes_add(&p.writes, loop);
    map_init(&p.lifted, &s->tmp);
    lift_loads(&p, cx);
    region_each(loop->regions[0], op) wanted |=
        op->kind == OP_LOAD && fills_buffer(&p, op);
    region_each(loop->regions[0], op)
    {
        if (!wanted || op->kind != OP_LOAD || !may_plan(cx, op) || !plan_load(&p, op))
            continue;
        feeds |= fills_buffer(&p, op);
        cx->budget->tiles |= op->results[0].type->rank > 1 && !goes_to_buffer(op);
        vec_push(&s->tmp, &ahead, op);
    }
    if (!feeds)
        return false;
    for (int i = 0; i < ahead.n; i++)
        attr_set_int(&s->mod, &ahead.at[i]->attrs, ATTR_STAGE, 0);
    Slice read = read_in_place(s, loop);
    for (int i = 0; i < ahead.n; i++) {
        Op *load = ahead.at[i];
        if (map_has(&read.values, &load->results[0])) {
            p.by_threads |= !cx->target.tma || attr_has(&load->attrs, ATTR_WHY);
            stage_read(s, load);
        } else {
            attr_drop(&load->attrs, ATTR_STAGE);
            say_why(s, load, "only addresses of loads that are issued ahead need it");
        }
    }
    plan_depth(&p, stages > MAX_STAGES ? MAX_STAGES : stages, depth);
    return true;
}

bool
pass_stage_plan(Func *f, PassCx *cx)
{
    return pass_walk(f->body, plan_loop, cx);
}

/* ---- the schedule as it is written down, whoever wrote it */

/* Why the load may not be issued ahead as the loop says; NULL: it may. */
static const char *
misplanned(Plan *p, const Op *load)
{
    const Op *loop = p->loop;
    if (!loop || loop->kind != OP_FOR || !attr_has(&loop->attrs, ATTR_STAGES))
        return "is issued ahead of a loop that says no number of stages";
    Pipeline to = pipeline_of(loop);
    bool once = load->kind == OP_DESC_LOAD && pipeline_is_whole(loop);
    if (to.ahead < 1 || to.ahead >= to.stages + once)
        return "is issued ahead by no iteration, or into a stage that is still read";
    if (!loop_step(loop))
        return "is issued ahead of a loop that does not count up in known steps";
    if (attr_has(&load->attrs, ATTR_VOLATILE) || is_hazard(p, load))
        return "is issued ahead of what may write the same memory";
    if (!runs_ahead(p, load))
        return "is issued ahead of what computes its addresses";
    if (to.pending && to.pending != count_chains(loop))
        return "is issued behind dots of which not all stay in flight";
    return NULL;
}

static FormFault
check_region(Plan *p, const Region *r, int depth)
{
    FormFault fault = {0};
    for (const Op *op = r->first; op && depth <= MAX_REGION_DEPTH; op = op->next) {
        if (op_is_planned(op)) {
            if (p->loop != r->parent) {
                p->loop = r->parent;
                p->writes = (Writes){0};
                if (p->loop)
                    writes_add(&p->writes, p->loop);
            }
            fault.why = misplanned(p, op);
            fault.op = fault.why ? op : NULL;
        }
        if (op->kind == OP_FOR && !fault.op)
            fault = rotation_check(p->s, op);
        for (int i = 0; i < op->nregion && !fault.op; i++)
            fault = check_region(p, op->regions[i], depth + 1);
        if (fault.op)
            break;
    }
    return fault;
}

FormFault
stage_plan_check(Func *f, const TargetInfo *t)
{
    Plan p = {.s = f->module->s, .f = f, .target = t};
    return check_region(&p, f->body, 0);
}
