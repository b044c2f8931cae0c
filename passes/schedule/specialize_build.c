/* Builds the roles of pass specialize. Each role is a copy of the part of the kernel that
   it needs; loops and conditions that contain loads of a ring also carry its stage and
   phase. A consumer waits for phase 0 in its first round through the stages, the producer
   for the phase before that, which counts as complete. */
#include "passes/schedule/channel.h"
#include "passes/schedule/specialize.h"

#include "ir/base/util.h"
#include "ir/loop.h"
#include "ir/plan/pipeline.h"

#include <string.h>

typedef struct Role {
    Specialize *sp;
    int which;
    Map map;            /* values of the kernel -> values of the role */
    PipelineState at[SP_RINGS]; /* next stage of each ring */
    const Op *stop;     /* first op that is not part of the source kernel */
} Role;

static void copy_region(Role *r, Builder *b, const Region *from);

/* ---- rings */

/* Tile k of the group in the stage; its layout may differ from that of the first group
   that uses the ring. */
static Value *
slot_of(Builder *b, const Ring *ring, int k, const Group *g, Value *stage)
{
    return channel_stage(b, ring->buf[k], stage, CHANNEL_ANY,
                         specialize_buffer(g->load[k]));
}

static void
release_stage(Builder *b, const Ring *ring, Value *stage, Value *pred)
{
    Value *in[2] = {channel_stage(b, ring->empty, stage, CHANNEL_ANY, NULL), pred};
    build_op(b, OP_BAR_ARRIVE, in, pred ? 2 : 1, NULL, NULL, 0);
}

static Value *
stage_before(Builder *b, const Ring *ring, Value *stage)
{
    const Type *i32 = stage->type;
    Value *first = build_cmp(b, OP_CMPI, "eq", stage, build_int(b, i32, 0));
    Value *less = build_binary(b, OP_SUB, stage, build_int(b, i32, 1));
    return build_select(b, first, build_int(b, i32, ring->stages - 1), less);
}

/* Producer: issues all loads of the group, where the last of them stands. */
static void
issue_loads(Role *r, Builder *b, const Group *g)
{
    const Ring *ring = &r->sp->ring[g->ring];
    PipelineState *at = &r->at[g->ring];
    channel_wait(b, ring->empty, *at, CHANNEL_ANY);
    Value *full = channel_stage(b, ring->full, at->stage, CHANNEL_ANY, NULL);
    channel_expect(b, full, ring->bytes, NULL);
    for (int k = 0; k < g->n; k++)
        channel_copy(b, g->load[k], slot_of(b, ring, k, g, at->stage), full, &r->map,
                     NULL);
    *at = channel_next(b, *at, ring->stages);
}

/* Copier: stores the tile to the next stage of the group's ring and releases the stage it
   came from. */
static void
hand_on(Role *r, Builder *b, const Group *g)
{
    const Ring *ring = &r->sp->ring[g->ring];
    PipelineState *at = &r->at[g->ring];
    channel_wait(b, ring->empty, *at, CHANNEL_ANY);
    Value *in[2] = {slot_of(b, ring, 0, g, at->stage),
                    value_mapped(&r->map, op_operand(g->load[0], 0))};
    build_op(b, OP_LOCAL_STORE, in, 2, NULL, NULL, 0);
    Value *full = channel_stage(b, ring->full, at->stage, CHANNEL_ANY, NULL);
    build_op(b, OP_BAR_ARRIVE, &full, 1, NULL, NULL, 0);
    *at = channel_next(b, *at, ring->stages);
    const int from = r->sp->group[g->source].ring;
    release_stage(b, &r->sp->ring[from], r->at[from].stage, NULL);
    r->at[from] = channel_next(b, r->at[from], r->sp->ring[from].stages);
}

/* Copier: copies a view, or a load in the layout of the copier's warps. */
static void
copy_move(Role *r, Builder *b, Op *op)
{
    const Group *g;
    int slot;
    if (op->kind != OP_LOCAL_LOAD) {
        op_clone(b, op, &r->map);
        return;
    }
    g = specialize_group(r->sp, op->results[0].uses->user, &slot);
    const Type *t = type_with_layout(r->sp->s->types, op->results[0].type, g->layout);
    Value *m = value_mapped(&r->map, op_operand(op, 0));
    map_set(&r->map, &op->results[0],
            &build_op(b, OP_LOCAL_LOAD, &m, 1, NULL, &t, 1)->results[0]);
}

/* ---- structured ops with rings inside */

static bool
wanted(const Role *r, const Value *v)
{
    return r->which == SP_CONSUMER || map_has(&r->sp->keep.values, v);
}

static int
add_places(const Role *r, const Op *op, Value **to, int n)
{
    for (int i = 0; i < r->sp->nring; i++)
        if (specialize_inside(r->sp, i, op)) {
            to[n++] = r->at[i].stage;
            to[n++] = r->at[i].phase;
        }
    return n;
}

/* Sets the stage and phase of the rings in op from `from` on: results of op, or arguments
   of its region. */
static void
set_places(Role *r, const Op *op, Value *const *from)
{
    for (int i = 0; i < r->sp->nring; i++)
        if (specialize_inside(r->sp, i, op)) {
            r->at[i].stage = *from++;
            r->at[i].phase = *from++;
        }
}

static Value **
result_list(Role *r, Op *op)
{
    Value **v = arena_array(&r->sp->s->tmp, Value *, op->nresult + 1);
    for (int i = 0; i < op->nresult; i++)
        v[i] = op_result(op, i);
    return v;
}

/* Ends a region that has been copied to b: yields the values that are wanted, and the
   stages and phases. */
static void
copy_yield(Role *r, Builder *b, const Op *op, const Op *yield, Value *const *carrier)
{
    Value **out = arena_array(&r->sp->s->tmp, Value *, yield->noperand + 2 * SP_RINGS);
    int n = 0;
    for (int i = 0; i < yield->noperand; i++)
        if (wanted(r, carrier[i]))
            out[n++] = value_mapped(&r->map, op_operand(yield, i));
    build_yield(b, out, add_places(r, op, out, n));
}

/* Releases the stage of the previous iteration at the end of the body, for groups whose
   release is deferred by one iteration. */
static void
release_deferred(Role *r, Builder *b, const Op *old, Op *loop)
{
    const Specialize *sp = r->sp;
    for (int i = 0; i < sp->ngroup && r->which == SP_CONSUMER; i++) {
        const Group *g = &sp->group[i];
        if (g->loop != old || g->last)
            continue;
        const Ring *ring = &sp->ring[g->ring];
        PipelineState *at = &r->at[g->ring];
        Value *later =
            build_cmp(b, OP_CMPI, "ne", loop->regions[0]->args[0], op_operand(loop, 0));
        release_stage(b, ring, stage_before(b, ring, at->stage), later);
        *at = channel_next(b, *at, ring->stages);
    }
}

/* Behind the loop, if the ring goes on: releases the stage of the last iteration. */
static void
release_last(Role *r, Builder *b, const Op *old, Op *loop)
{
    const Specialize *sp = r->sp;
    for (int i = 0; i < sp->ngroup && r->which == SP_CONSUMER; i++) {
        const Group *g = &sp->group[i];
        const Ring *ring = &sp->ring[g->ring];
        if (g->loop != old || g->last || !ring->again)
            continue;
        Value *any = build_loop_reaches(b, loop, 0);
        release_stage(b, ring, stage_before(b, ring, r->at[g->ring].stage), any);
    }
}

/* The pipeline of the consumers' loop, which issues no loads itself: the stages of its
   deepest ring. */
static Pipeline
pipeline_in_roles(const Specialize *sp, const Op *loop)
{
    Pipeline p = {.pending = pipeline_of(loop).pending};
    for (int i = 0; i < sp->ngroup; i++)
        if (sp->group[i].loop == loop)
            p.stages = (int)max_i64(p.stages, sp->ring[sp->group[i].ring].stages);
    return p;
}

static void
copy_for(Role *r, Builder *b, const Op *op)
{
    const Region *from = op->regions[0];
    int n = 0, m = 0, all = op->nresult;
    Value **init = arena_array(&r->sp->s->tmp, Value *, all + 2 * SP_RINGS);
    for (int i = 0; i < all; i++)
        if (wanted(r, from->args[i + 1]))
            init[n++] = value_mapped(&r->map, op_operand(op, i + 3));
    Op *loop = build_for(b, value_mapped(&r->map, op_operand(op, 0)),
                         value_mapped(&r->map, op_operand(op, 1)),
                         value_mapped(&r->map, op_operand(op, 2)), init,
                         add_places(r, op, init, n));
    Region *to = loop->regions[0];
    map_set(&r->map, from->args[0], to->args[0]);
    to->args[0]->name = from->args[0]->name;
    for (int i = 0; i < all; i++) {
        if (!wanted(r, from->args[i + 1]))
            continue;
        to->args[m + 1]->name = from->args[i + 1]->name;
        loop->results[m].name = op->results[i].name;
        map_set(&r->map, from->args[i + 1], to->args[m + 1]);
        map_set(&r->map, &op->results[i], &loop->results[m]);
        m++;
    }
    set_places(r, op, to->args + 1 + n);
    Builder in = builder_at_end(b->func, to);
    in.loc = op->loc;
    copy_region(r, &in, from);
    release_deferred(r, &in, op, loop);
    copy_yield(r, &in, op, from->last, from->args + 1);
    if (r->which == SP_CONSUMER)
        pipeline_set(r->sp->s, loop, pipeline_in_roles(r->sp, op));
    set_places(r, op, result_list(r, loop) + n);
    release_last(r, b, op, loop);
}

static void
copy_if(Role *r, Builder *b, Op *op)
{
    Specialize *sp = r->sp;
    PipelineState before[SP_RINGS];
    const Type **types =
        arena_array(&sp->s->tmp, const Type *, op->nresult + 2 * SP_RINGS);
    Value **places = arena_array(&sp->s->tmp, Value *, 2 * SP_RINGS);
    int n = 0, m = 0, extra = add_places(r, op, places, 0);
    for (int i = 0; i < op->nresult; i++)
        if (wanted(r, &op->results[i]))
            types[n++] = op->results[i].type;
    for (int i = 0; i < extra; i++)
        types[n + i] = places[i]->type;
    memcpy(before, r->at, sizeof before);
    Op *to = build_if(b, value_mapped(&r->map, op_operand(op, 0)), types, n + extra);
    for (int k = 0; k < 2; k++) {
        Builder in = builder_at_end(b->func, to->regions[k]);
        in.loc = op->loc;
        memcpy(r->at, before, sizeof before);
        copy_region(r, &in, op->regions[k]);
        copy_yield(r, &in, op, op->regions[k]->last, result_list(r, op));
    }
    for (int i = 0; i < op->nresult; i++)
        if (wanted(r, &op->results[i])) {
            to->results[m].name = op->results[i].name;
            map_set(&r->map, &op->results[i], &to->results[m++]);
        }
    set_places(r, op, result_list(r, to) + n);
}

/* ---- a region */

static bool
has_rings(const Role *r, const Op *op)
{
    for (int i = 0; i < r->sp->nring; i++)
        if (specialize_inside(r->sp, i, op))
            return true;
    return false;
}

static int
filler(const Group *g)
{
    return g->layout ? SP_COPIER : SP_PRODUCER;
}

static int
reader(const Group *g)
{
    return g->copied ? SP_COPIER : SP_CONSUMER;
}

static void
copy_op(Role *r, Builder *b, Op *op)
{
    int slot;
    const Group *g = specialize_group(r->sp, op, &slot);
    const Value *load = op->nresult ? map_get(&r->sp->fill, &op->results[0]) : NULL;
    if (g && r->which == filler(g)) {
        if (g->layout)
            hand_on(r, b, g);
        else if (slot == g->n - 1)
            issue_loads(r, b, g);
    } else if (g && r->which == reader(g)) {
        Value *m = slot_of(b, &r->sp->ring[g->ring], slot, g, r->at[g->ring].stage);
        m->name = op->results[0].name;
        map_set(&r->map, &op->results[0], m);
    } else if (g) {
        return;
    } else if (load) {
        if (map_has(&r->map, load))
            map_set(&r->map, &op->results[0], value_mapped(&r->map, (Value *)load));
    } else if (map_has(&r->sp->moves, op)) {
        if (r->which == SP_COPIER)
            copy_move(r, b, op);
    } else if (op->kind == OP_MAKE_DESC || op->kind == OP_TENSOR_MAP) {
        return; /* stays where all roles see it */
    } else if (r->which != SP_CONSUMER && !slice_has(&r->sp->keep, op)) {
        return;
    } else if (op->kind == OP_FOR && (r->which != SP_CONSUMER || has_rings(r, op))) {
        copy_for(r, b, op);
    } else if (op->kind == OP_IF && (r->which != SP_CONSUMER || has_rings(r, op))) {
        copy_if(r, b, op);
    } else {
        op_clone(b, op, &r->map);
    }
}

static void
copy_region(Role *r, Builder *b, const Region *from)
{
    const Specialize *sp = r->sp;
    for (Op *op = from->first; op != from->last && op != r->stop; op = op->next) {
        for (int i = 0; i < sp->ngroup; i++)
            if (sp->group[i].first == op && r->which == reader(&sp->group[i]))
                channel_wait(b, sp->ring[sp->group[i].ring].full,
                             r->at[sp->group[i].ring], CHANNEL_ANY);
        b->loc = op->loc;
        copy_op(r, b, op);
        for (int i = 0; i < sp->ngroup; i++) {
            const Group *g = &sp->group[i];
            if (g->last != op || g->copied || r->which != reader(g))
                continue;
            PipelineState *at = &r->at[g->ring];
            release_stage(b, &sp->ring[g->ring], at->stage, NULL);
            *at = channel_next(b, *at, sp->ring[g->ring].stages);
        }
    }
}

/* ---- the kernel */

static int
reading_warps(const Specialize *sp, int ring)
{
    for (int i = 0; i < sp->ngroup; i++)
        if (sp->group[i].ring == ring && sp->group[i].copied)
            return SP_COPIERS;
    return sp->f->num_warps;
}

static void
make_rings(Specialize *sp, Builder *b)
{
    for (int i = 0; i < sp->nring; i++) {
        Ring *r = &sp->ring[i];
        for (int k = 0; k < r->n; k++) {
            r->buf[k] = channel_buffer(b, r->mem[k], r->stages);
        }
        r->full = channel_bars(b, r->stages, r->by_copier ? SP_COPIERS : 1);
        r->empty = channel_bars(b, r->stages, reading_warps(sp, i));
    }
}

static int
fills(const Specialize *sp, int ring)
{
    return sp->ring[ring].by_copier ? SP_COPIER : SP_PRODUCER;
}

static void
build_role(Specialize *sp, Op *split, int which, const Op *stop)
{
    const Type *i32 = type_scalar(sp->s->types, SK_I32);
    Role r = {.sp = sp, .which = which, .stop = stop};
    map_init(&r.map, &sp->s->tmp);
    Builder b = builder_at_end(sp->f, region_new(sp->f, split));
    b.loc = split->loc;
    for (int i = 0; i < sp->nring; i++)
        r.at[i] = (PipelineState){build_int(&b, i32, 0),
                          build_int(&b, i32, which == fills(sp, i))};
    copy_region(&r, &b, sp->f->body);
    build_yield(&b, NULL, 0);
}

/* Turns values that a role takes from outside into captures of `split`. */
static void
capture(Op *split, int role, Map *seen)
{
    const Region *r = split->regions[role];
    region_each_deep(r, op)
    {
        for (int i = 0; i < op->noperand; i++) {
            Value *v = op_operand(op, i);
            if (!value_outside(v, r))
                continue;
            if (!map_has(seen, v)) {
                map_set(seen, v, (void *)(intptr_t)(split->noperand + 1));
                op_add_operand(split, v);
                for (int k = 0; k < split->nregion; k++)
                    region_arg(split->regions[k], v->type, v->name);
            }
            intptr_t at = (intptr_t)map_get(seen, v) - 1;
            op_set_operand(op, i, r->args[at]);
        }
    }
}

void
specialize_build(Specialize *sp)
{
    const int64_t warps[SP_ROLES] = {1, sp->f->num_warps, SP_COPIERS};
    int roles = sp->ncopy ? SP_ROLES : SP_COPIER;
    Region *body = sp->f->body;
    Op *last = body->last->prev;
    Builder b = builder_before(body->last);
    AttrList attrs = {0};
    Map seen;
    map_init(&seen, &sp->s->tmp);
    b.loc = sp->group[0].loop->loc;
    make_rings(sp, &b);
    attr_set_ints(&sp->s->mod, &attrs, ATTR_WARPS, warps, roles);
    attr_set_ints(&sp->s->mod, &attrs, ATTR_REGS, sp->regs, roles);
    if (sp->blocks > 1)
        attr_set_int(&sp->s->mod, &attrs, ATTR_BLOCKS, sp->blocks);
    Op *split = build_op(&b, OP_WARP_SPECIALIZE, NULL, 0, &attrs, NULL, 0);
    const Op *stop = last->next;
    for (int k = 0; k < roles; k++)
        build_role(sp, split, k, stop);
    for (Op *op = last, *prev; op; op = prev) {
        prev = op->prev;
        if (!op_has_uses(op))
            op_erase(op);
    }
    for (int k = 0; k < roles; k++)
        capture(split, k, &seen);
}
