/* Decides which tile values get a buffer, and which work shares a loop nest.

   Regions are walked from their end, so that all nests that need the value of an op are
   known when the walk comes to it. A cheap value is computed again in each of them. A
   costly one (a load, a function, a long chain) gets a buffer if several nests need it,
   or if an inner loop or a larger nest would compute it repeatedly. The buffer is written
   in front of these nests, or in the first of them if that reads it at the same index.
   For long tiles, whose buffers leave the first-level cache before they are read, cheap
   functions of consecutive elements are computed again, too.

   A load is done inside its nest if no write comes between, and inside several nests if
   it is as cheap as a buffer. Carried tiles and results of dot, scan and the like always
   have buffers. */
#include "passes/cpu/simd.h"

#include "ir/analysis/nonpositive.h"
#include "ir/base/util.h"
#include "ir/edit.h"
#include "ir/fold.h"
#include "ir/loop.h"

#include <math.h>

enum { MAX_COST = 100000, MAX_DEPTH = 128, MAX_ROWS = 4, READ = 2, LONG = 16384 };

bool
simd_tile(const Value *v)
{
    return v->type->kind == TY_TILE;
}

Plan *
plan_get(Simd *n, const Value *v)
{
    Plan *p = map_get(&n->plans, v);
    if (!p) {
        p = arena_new(n->tmp, Plan);
        map_set(&n->plans, v, p);
    }
    return p;
}

OpPlan *
op_plan(Simd *n, const Op *op)
{
    OpPlan *p = map_get(&n->ops, op);
    if (!p) {
        p = arena_new(n->tmp, OpPlan);
        map_set(&n->ops, op, p);
    }
    return p;
}

Slot *
slot_new(Simd *n, const Type *elem, const Type *shape)
{
    Slot *s = arena_new(n->tmp, Slot);
    s->type = type_buf(n->tt, elem, shape->rank, shape->shape);
    return s;
}

Slot *
slot_find(Slot *s)
{
    while (s->same)
        s = s->same;
    return s;
}

const Type *
simd_wide(Simd *n, const Type *elem)
{
    if (scalar_is_float(elem->scalar))
        return elem->scalar == SK_F64 ? elem : type_scalar(n->tt, SK_F32);
    return n->i32;
}

/* The element type of operand i of a dot in its buffer: its own if the processor may have
   dot instructions for it, or converts it when packing. */
static const Type *
dot_element(Simd *n, const Op *op, int i)
{
    const Type *a = type_elem(op_operand(op, 0)->type);
    const Type *e = type_elem(op_operand(op, i)->type);
    bool alike = a == type_elem(op_operand(op, 1)->type);
    bool short_kind = e->scalar == SK_F16 || e->scalar == SK_BF16 || e->scalar == SK_I8;
    return alike && short_kind ? e : simd_wide(n, e);
}

/* ---- forward: order, cost and depth */

/* Is the result of this op always in a buffer? */
static bool
always_kept(const Op *op)
{
    switch ((int)op->kind) {
    case OP_DOT:
    case OP_REDUCE:
    case OP_SCAN:
    case OP_HISTOGRAM:
    case OP_TOPK:
    case OP_CAT:
    case OP_JOIN:
    case OP_ATOMIC_RMW:
    case OP_ATOMIC_CAS: return true;
    default: return op->nregion > 0;
    }
}

/* Is loading as cheap as reading a buffer? It is for a few rows of consecutive elements
   whose addresses and masks are arithmetic on indices. */
static bool
loads_cheaply(Simd *n, const Op *op)
{
    const Type *t = op_operand(op, 0)->type;
    int last = t->rank - 1;
    if (type_numel(t) > MAX_ROWS * t->shape[last] ||
        simd_slope(n, op_operand(op, 0), last) != 1)
        return false;
    for (int i = 0; i < op->noperand; i++) {
        const Plan *in = plan_get(n, op_operand(op, i));
        bool cheap = in->index && in->cost <= OP_COSTLY;
        if (simd_tile(op_operand(op, i)) && !cheap)
            return false;
    }
    return true;
}

static void
measure(Simd *n, Op *op)
{
    int64_t cost = op_cost(op), again = cost;
    int depth = 0;
    bool index = op_is(op, T_PURE) && !op->nregion && op->kind != OP_GATHER;
    for (int i = 0; i < op->noperand; i++) {
        Value *v = op_operand(op, i);
        if (!simd_tile(v))
            continue;
        Plan *p = plan_get(n, v);
        cost += p->cost;
        again += p->again;
        depth = p->depth > depth ? p->depth : depth;
        index &= p->index;
    }
    if (op->kind == OP_LOAD && simd_tile(op_result(op, 0)) && loads_cheaply(n, op))
        again = READ;
    if (always_kept(op)) {
        cost = again = READ;
        depth = 0;
        index = false;
    }
    for (int i = 0; i < op->nresult; i++) {
        Plan *p = plan_get(n, op_result(op, i));
        p->cost = (int)min_i64(cost, MAX_COST);
        p->again = (int)min_i64(again, MAX_COST);
        p->depth = depth + 1;
        p->index = index;
    }
}

static void
measure_region(Simd *n, Region *r, int nesting)
{
    if (nesting > MAX_REGION_DEPTH)
        return;
    region_each(r, op)
    {
        op_plan(n, op)->order = n->order++;
        if ((op->kind == OP_EXP || op->kind == OP_EXP2) && nonpositive_exponent(op))
            attr_set_flag(&n->s->mod, &op->attrs, ATTR_NONPOSITIVE);
        if (op->kind == OP_ERF && simd_beside_one(op))
            attr_set_flag(&n->s->mod, &op->attrs, ATTR_BESIDE_ONE);
        measure(n, op);
        if (op->kind != OP_REDUCE && op->kind != OP_SCAN)
            for (int i = 0; i < op->nregion; i++)
                measure_region(n, op->regions[i], nesting + 1);
    }
}

/* ---- backward */

/* Group g needs v. */
static void
demand(Simd *n, Value *v, Group *g, bool shifted)
{
    if (!simd_tile(v))
        return;
    Plan *p = plan_get(n, v);
    shifted |= !type_same_shape(v->type, g->shape);
    for (int i = 0; i < p->nd; i++) {
        if (p->d[i].g == g) {
            p->d[i].shifted |= shifted;
            return;
        }
    }
    if (p->nd == SIMD_MAX_DEMAND)
        p->many = true;
    else
        p->d[p->nd++] = (Demand){g, shifted};
}

static void
demand_operands(Simd *n, Op *op, Group *g, bool shifted)
{
    for (int i = 0; i < op->noperand; i++)
        demand(n, op_operand(op, i), g, shifted);
}

/* An op that is computed where it is used: the groups that need it need its operands. */
static void
pass_down(Simd *n, Op *op, const Plan *p)
{
    bool shifts = !op_is(op, T_ELEMENTWISE) && op->kind != OP_LOAD;
    for (int i = 0; i < p->nd; i++)
        demand_operands(n, op, p->d[i].g, p->d[i].shifted || shifts);
    for (int i = 0; p->many && i < op->noperand; i++)
        if (simd_tile(op_operand(op, i)))
            plan_get(n, op_operand(op, i))->many = true;
}

static Group *
group_new(Simd *n, Op *at, const Type *shape, int axis)
{
    Group *g = arena_new(n->tmp, Group);
    g->at = at;
    g->region = at->parent;
    g->shape = shape;
    g->axis = axis;
    return g;
}

static bool
demands_at_index(const Plan *p, const Group *g)
{
    if (p->many)
        return false;
    for (int i = 0; i < p->nd; i++)
        if (p->d[i].g == g && p->d[i].shifted)
            return false;
    return true;
}

static bool
used_before(Simd *n, const Value *v, const Group *g)
{
    int at = op_plan(n, g->at)->order;
    value_each_use(v, u) if (op_plan(n, u->user)->order <= at) return true;
    return false;
}

/* May this root be part of group g, which is later in the code? */
static bool
can_join(Simd *n, const Root *r, const Type *shape, int axis, const Group *g)
{
    if (!g || g->closed || g->region != r->op->parent ||
        !type_same_shape(shape, g->shape) ||
        (axis >= 0 && g->axis >= 0 && axis != g->axis))
        return false;
    if ((r->kind == ROOT_STORE && n->loads_since) || !simd_may_join(n, r->op, g))
        return false;
    if (r->kind == ROOT_MAT)
        return demands_at_index(plan_get(n, r->v), g);
    for (int i = 0; r->kind == ROOT_REDUCE && i < r->op->nresult; i++) {
        Value *v = op_result(r->op, i);
        const Plan *p = plan_get(n, v);
        if (!simd_tile(v) && used_before(n, v, g))
            return false;
        if (p->many)
            return false;
        for (int k = 0; k < p->nd; k++)
            if (p->d[k].g == g)
                return false;
    }
    return true;
}

static Group *
root_add(Simd *n, Root r, const Type *shape, int axis, Op *at, bool alone)
{
    Group *g = n->cur;
    if (alone || !can_join(n, &r, shape, axis, g)) {
        g = group_new(n, at, shape, axis);
        g->closed = alone;
        g->then = n->cur;
        if (n->cur)
            n->cur->before = g;
        vec_push(n->tmp, &op_plan(n, at)->groups, g);
        n->cur = g;
        n->loads_since = false;
    }
    if (axis >= 0)
        g->axis = axis;
    vec_push(n->tmp, &g->items, r);
    return g;
}

static void
note_cost(Simd *n, Group *g, const Value *v)
{
    g->cost = (int)max_i64(g->cost, plan_get(n, v)->cost);
}

static void
root_copy(Simd *n, Op *at, Value *v, Slot *dst, bool alone)
{
    Root r = {.kind = ROOT_COPY, .op = at, .v = v, .dst = dst, .axis = -1};
    Group *g = root_add(n, r, v->type, -1, at, alone);
    note_cost(n, g, v);
    demand(n, v, g, false);
}

static void
keep(Simd *n, Op *op, Value *v)
{
    Plan *p = plan_get(n, v);
    p->slot = slot_new(n, type_elem(v->type), v->type);
    simd_share_with_branch(n, op, v);
    Root r = {.kind = ROOT_MAT, .op = op, .v = v, .axis = -1};
    Group *g = root_add(n, r, v->type, -1, op, false);
    note_cost(n, g, v);
    demand_operands(n, op, g, !op_is(op, T_ELEMENTWISE) && op->kind != OP_LOAD);
}

/* Would v be computed repeatedly if it was computed where it is needed? */
static bool
repeated(const Op *op, const Value *v, const Plan *p)
{
    if (p->many || p->nd > 1)
        return true;
    const Demand *d = &p->d[0];
    return d->g->region != op->parent ||
           (d->shifted && type_numel(d->g->shape) > type_numel(v->type));
}

static bool
loads_again(Simd *n, const Op *op, const Plan *p)
{
    for (int i = 0; i < p->nd; i++)
        if (p->d[i].shifted)
            return false;
    return loads_cheaply(n, op);
}

/* Is a buffer of v larger than what the first-level cache keeps beside other data? */
static bool
is_long(const Value *v)
{
    return type_bytes(v->type) > LONG;
}

/* Does the op repeat elements? Its operand gets the buffer then, which is smaller, and
   lanes are still known to be equal. */
static bool
spreads(const Op *op)
{
    return op->kind == OP_BROADCAST || op->kind == OP_EXPAND_DIMS || op->kind == OP_SPLAT;
}

static bool
plan_load(Simd *n, Op *op, Plan *p)
{
    if (p->many || op_acquires(op) || (p->nd > 1 && !loads_again(n, op, p)))
        return false;
    for (int i = 0; i < p->nd; i++)
        if (p->d[i].g->region != op->parent ||
            !simd_may_sink(n, op, p->d[i].g, p->d[i].shifted))
            return false;
    Root r = {.kind = ROOT_LOAD, .op = op, .v = op_result(op, 0), .axis = -1};
    for (int i = 0; i < p->nd; i++)
        if (!p->d[i].shifted)
            vec_push(n->tmp, &p->d[i].g->items, r);
    p->lazy = true;
    return true;
}

static void
plan_pure(Simd *n, Op *op)
{
    bool split = false;
    for (int i = 0; i < op->nresult; i++) {
        Value *v = op_result(op, i);
        Plan *p = plan_get(n, v);
        if (!p->nd && !p->many)
            continue;
        bool deep = p->depth > MAX_DEPTH;
        int cost = is_long(v) ? p->again : p->cost;
        bool costly = p->keep || (cost > OP_COSTLY && op->kind != OP_LOAD &&
                                  repeated(op, v, p));
        bool load = op->kind == OP_LOAD;
        if (costly && spreads(op)) {
            plan_get(n, op_operand(op, 0))->keep = true;
            costly = false;
        }
        if (load ? !costly && plan_load(n, op, p) : !deep && !costly) {
            pass_down(n, op, p);
            continue;
        }
        if (split || op_acquires(op)) /* split, second half: its operand is needed now */
            n->cur = NULL;
        keep(n, op, v);
        split = true;
    }
    if (op_acquires(op)) {
        vec_push(n->tmp, &n->writers, ((Writer){op, op_plan(n, op)->order, NULL}));
        n->cur = NULL;
    }
}

/* ---- ops with nests of their own */

static void
plan_store(Simd *n, Op *op)
{
    Root r = {.kind = ROOT_STORE, .op = op, .axis = -1};
    Group *g = root_add(n, r, op_operand(op, 0)->type, -1, op, false);
    note_cost(n, g, op_operand(op, 1));
    demand_operands(n, op, g, false);
    vec_push(n->tmp, &n->writers, ((Writer){op, op_plan(n, op)->order, g}));
}

static void
plan_reduce(Simd *n, Op *op)
{
    int axis = (int)attr_int(&op->attrs, ATTR_AXIS, 0);
    Root r = {.kind = ROOT_REDUCE, .op = op, .axis = -1};
    Group *g = root_add(n, r, op_operand(op, 0)->type, axis, op, false);
    for (int i = 0; i < op->nresult; i++) {
        Value *v = op_result(op, i);
        if (simd_tile(v))
            plan_get(n, v)->slot = slot_new(n, type_elem(v->type), v->type);
        note_cost(n, g, op_operand(op, i));
    }
    demand_operands(n, op, g, false);
}

static void
plan_effect(Simd *n, Op *op)
{
    const Type *shape = NULL;
    for (int i = 0; i < op->noperand && !shape; i++)
        shape = simd_tile(op_operand(op, i)) ? op_operand(op, i)->type : NULL;
    Root r = {.kind = ROOT_EFFECT, .op = op, .axis = -1};
    for (int i = 0; i < op->nresult; i++) {
        Value *v = op_result(op, i);
        if (v->uses)
            plan_get(n, v)->slot = slot_new(n, type_elem(v->type), v->type);
    }
    n->cur = NULL;
    Group *g = root_add(n, r, shape, -1, op, true);
    demand_operands(n, op, g, false);
    vec_push(n->tmp, &n->writers, ((Writer){op, op_plan(n, op)->order, NULL}));
    n->cur = NULL;
}

/* Operands are printed one after the other and may have different shapes. */
static void
plan_print(Simd *n, Op *op)
{
    OpPlan *p = op_plan(n, op);
    p->each = arena_array(n->tmp, Group *, op->noperand);
    for (int i = 0; i < op->noperand; i++) {
        Value *v = op_operand(op, i);
        if (!simd_tile(v))
            continue;
        p->each[i] = group_new(n, op, v->type, -1);
        p->each[i]->closed = true;
        Root r = {.kind = ROOT_PRINT, .op = op, .v = v, .axis = -1, .offset = i};
        vec_push(n->tmp, &p->each[i]->items, r);
        note_cost(n, p->each[i], v);
        demand(n, v, p->each[i], false);
    }
    vec_push(n->tmp, &n->writers, ((Writer){op, p->order, NULL}));
    n->cur = NULL;
}

static void
plan_dot(Simd *n, Op *op)
{
    OpPlan *p = op_plan(n, op);
    Value *r = op_result(op, 0);
    plan_get(n, r)->slot = slot_new(n, simd_wide(n, type_elem(r->type)), r->type);
    simd_share_with_branch(n, op, r);
    for (int i = 0; i < 3; i++) {
        Value *v = op_operand(op, i);
        Slot *to = plan_get(n, r)->slot;
        if (i == 2 && simd_zero(v))
            break;
        if (i < 2)
            to = p->operand[i] = slot_new(n, dot_element(n, op, i), v->type);
        p->pack[i] = group_new(n, op, v->type, -1);
        p->pack[i]->closed = true;
        Root root = {.kind = ROOT_COPY, .op = op, .v = v, .dst = to, .axis = -1};
        root.either = i < 2;
        vec_push(n->tmp, &p->pack[i]->items, root);
        note_cost(n, p->pack[i], v);
        demand(n, v, p->pack[i], false);
    }
    n->cur = NULL;
}

/* cat and join: the parts are written into one buffer. scan: works in its result's
   buffer. */
static void
plan_parts(Simd *n, Op *op)
{
    int nres = op->nresult;
    n->cur = NULL;
    for (int i = 0; i < nres; i++) {
        Value *v = op_result(op, i);
        plan_get(n, v)->slot = slot_new(n, type_elem(v->type), v->type);
    }
    int axis = (int)attr_int(&op->attrs, ATTR_AXIS, 0);
    int64_t offset = 0;
    for (int i = 0; i < op->noperand; i++) {
        Value *v = op_operand(op, i);
        Root r = {.kind = ROOT_COPY, .op = op, .v = v, .axis = -1};
        r.dst = plan_get(n, op_result(op, op->kind == OP_SCAN ? i : 0))->slot;
        if (op->kind == OP_CAT) {
            r.axis = axis;
            r.offset = offset;
            offset += v->type->shape[axis];
        } else if (op->kind == OP_JOIN) {
            r.minor = true;
            r.offset = i;
        }
        Group *g = root_add(n, r, v->type, -1, op, false);
        note_cost(n, g, v);
        demand(n, v, g, false);
    }
    if (n->cur)
        n->cur->closed = true;
    n->cur = NULL;
}

/* Ops whose operands and result are whole buffers. */
static void
plan_whole(Simd *n, Op *op)
{
    Value *v = op_result(op, 0);
    plan_get(n, v)->slot = slot_new(n, type_elem(v->type), v->type);
    for (int i = 0; i < op->noperand; i++) {
        OpPlan *p = op_plan(n, op);
        p->operand[i] =
            slot_new(n, type_elem(op_operand(op, i)->type), op_operand(op, i)->type);
        root_copy(n, op, op_operand(op, i), p->operand[i], true);
    }
    n->cur = NULL;
}

/* ---- structured ops */

static void plan_region(Simd *n, Region *r, int nesting);

static Slot **
tile_slots(Simd *n, Op *op, Region *args, int first_arg, int count)
{
    Slot **s = arena_array(n->tmp, Slot *, count + 1);
    for (int i = 0; i < count; i++) {
        Value *v = args ? args->args[first_arg + i] : op_result(op, i);
        if (!simd_tile(v))
            continue;
        s[i] = slot_new(n, type_elem(v->type), v->type);
        plan_get(n, v)->slot = s[i];
    }
    return s;
}

static void
results_in(Simd *n, Op *op, Slot **s)
{
    for (int i = 0; i < op->nresult; i++)
        if (s[i])
            plan_get(n, op_result(op, i))->slot = s[i];
}

bool
simd_zero(const Value *v)
{
    Const c;
    return value_const(v, &c) && (c.is_float ? c.f == 0 && !signbit(c.f) : c.i == 0);
}

/* A dot whose accumulator is zeros in front of the loop: the buffer is not filled with
   them, but the first iteration overwrites it. */
static bool
zero_first(Simd *n, Op *loop, Slot **s, int i)
{
    Region *body = loop->regions[0];
    Value *sums = body->args[i + 1];
    Op *dot = s[i] ? value_def(op_operand(body->last, i), OP_DOT) : NULL;
    if (!dot || dot->parent != body || !simd_zero(op_operand(loop, 3 + i)) ||
        slot_find(plan_get(n, op_result(dot, 0))->slot) != slot_find(s[i]) ||
        !loop_step(loop))
        return false;
    value_each_use(sums, u) if (u->user != dot) return false;
    if (op_operand(dot, 2) != sums || op_operand(dot, 0) == sums ||
        op_operand(dot, 1) == sums)
        return false;
    op_plan(n, dot)->zero_first = loop;
    Root r = {.kind = ROOT_COPY,
              .op = loop,
              .v = op_operand(loop, 3 + i),
              .dst = s[i],
              .axis = -1};
    Group *g = root_add(n, r, r.v->type, -1, loop, true);
    g->unless = loop;
    n->cur = NULL;
    return true;
}

static void
inits_in(Simd *n, Op *loop, Slot **s)
{
    for (int i = loop->nresult - 1; i >= 0; i--)
        if (s[i] && !zero_first(n, loop, s, i))
            root_copy(n, loop, op_operand(loop, 3 + i), s[i], false);
}

static void
copies_in(Simd *n, Op *at, Slot **s, int first, int count)
{
    for (int i = count - 1; i >= 0; i--)
        if (s[i])
            root_copy(n, at, op_operand(at, first + i), s[i], false);
}

static void
plan_structured(Simd *n, Op *op, int nesting)
{
    OpPlan *p = op_plan(n, op);
    OpEffects fx = op_effects(op);
    int writers = n->writers.n;
    n->cur = NULL;
    if (op->kind == OP_FOR) {
        p->carry = tile_slots(n, op, op->regions[0], 1, op->nresult);
        results_in(n, op, p->carry);
    } else if (op->kind == OP_WHILE) {
        p->carry = tile_slots(n, op, op->regions[0], 0, op->regions[0]->narg);
        p->carry2 = tile_slots(n, op, op->regions[1], 0, op->regions[1]->narg);
        results_in(n, op, p->carry2);
    } else
        p->carry = tile_slots(n, op, NULL, 0, op->nresult);
    for (int i = op->nregion - 1; i >= 0; i--) {
        n->cur = NULL;
        plan_region(n, op->regions[i], nesting + 1);
    }
    if (op->kind == OP_FOR)
        simd_carry_in_place(n, op, p->carry);
    n->writers.n = writers;
    n->cur = NULL;
    if (op->kind == OP_FOR)
        inits_in(n, op, p->carry);
    else if (op->kind == OP_WHILE)
        copies_in(n, op, p->carry, 0, op->regions[0]->narg);
    if (fx.writes)
        vec_push(n->tmp, &n->writers, ((Writer){op, p->order, NULL}));
    n->cur = NULL;
}

static void
plan_terminator(Simd *n, Op *op)
{
    Op *up = op->parent->parent;
    n->cur = NULL;
    if (!up)
        return;
    OpPlan *p = op_plan(n, up);
    if (op->kind == OP_CONDITION)
        copies_in(n, op, p->carry2, 1, op->noperand - 1);
    else
        copies_in(n, op, p->carry, 0, op->noperand);
}

bool
simd_touches_tiles(const Op *op)
{
    for (int i = 0; i < op->noperand; i++)
        if (simd_tile(op_operand(op, i)))
            return true;
    for (int i = 0; i < op->nresult; i++)
        if (simd_tile(op_result((Op *)op, i)))
            return true;
    return false;
}

static void
plan_scalar(Simd *n, Op *op)
{
    OpEffects fx = op_effects(op);
    if (fx.writes) {
        vec_push(n->tmp, &n->writers, ((Writer){op, op_plan(n, op)->order, NULL}));
        if (n->cur)
            n->cur->closed = true;
    }
    n->loads_since |= fx.reads != 0;
}

static void
plan_op(Simd *n, Op *op, int nesting)
{
    if (op_is(op, T_TERMINATOR)) {
        plan_terminator(n, op);
        return;
    }
    if (op->kind == OP_REDUCE) {
        plan_reduce(n, op);
        return;
    }
    if (op->nregion && op->kind != OP_SCAN) {
        plan_structured(n, op, nesting);
        return;
    }
    if (!simd_touches_tiles(op)) {
        plan_scalar(n, op);
        return;
    }
    switch ((int)op->kind) {
    case OP_STORE: plan_store(n, op); break;
    case OP_DOT: plan_dot(n, op); break;
    case OP_SCAN:
    case OP_CAT:
    case OP_JOIN: plan_parts(n, op); break;
    case OP_TOPK:
    case OP_HISTOGRAM: plan_whole(n, op); break;
    case OP_ATOMIC_RMW:
    case OP_ATOMIC_CAS:
    case OP_ASSERT: plan_effect(n, op); break;
    case OP_PRINT: plan_print(n, op); break;
    default:
        if (op->nresult && !simd_tile(op_result(op, 0))) {
            Root r = {.kind = ROOT_SCALAR, .op = op, .v = op_operand(op, 0), .axis = -1};
            n->cur = NULL;
            Group *g = root_add(n, r, op_operand(op, 0)->type, -1, op, true);
            demand(n, op_operand(op, 0), g, false);
            n->cur = NULL;
        } else {
            if (op->kind == OP_GATHER && !plan_get(n, op_operand(op, 0))->slot)
                plan_get(n, op_operand(op, 0))->many = true;
            plan_pure(n, op);
        }
    }
}

static void
plan_region(Simd *n, Region *r, int nesting)
{
    if (nesting > MAX_REGION_DEPTH)
        fail_jump(&n->s->fail, FAIL_LIMIT, "control flow nested deeper than %d levels",
                  MAX_REGION_DEPTH);
    for (Op *op = r->last, *prev; op; op = prev) {
        prev = op->prev;
        plan_op(n, op, nesting);
    }
}

void
simd_plan(Simd *n)
{
    measure_region(n, n->f->body, 0);
    plan_region(n, n->f->body, 0);
}
