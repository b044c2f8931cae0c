/* Builds one group as a loop nest over strips.

       %s = reduce(addf) %e {axis=1}         for %i = 0, 64, 1 {
       store %p, %e, %m                =>      %a = for %j = 0, 256, 32 (%x = -0.0) {
                                                 if all lanes of %m { .. } else { .. }
                                                 .. vstore; yield %x + e }
                                               %s = reduce %a; buf_store }

   The loop over the reduced dimension is the innermost one. Lanes run along the dimension
   along which most accesses are contiguous.

   A strip is built in up to five ways; each is the else arm of the one before, and is
   left out if the one before assumes nothing:

       fast     masks are full, strides are 1, a quotient is the same in all lanes
       two      a quotient changes in one lane; or strides are numbers of the launch
       none     masks are empty (strip_slow)
       ordered  lanes do not wrap, so that they are next to each other in memory
       general  nothing is assumed (strip_general) */
#include "passes/cpu/simd_emit.h"

#include "ir/base/util.h"
#include "ir/edit.h"

static void
emit_init(Emit *e, Simd *n, Group *g)
{
    *e = (Emit){.n = n, .g = g};
    const Type *t = g->shape;
    e->lane = simd_lane_dim(n, g);
    e->w = simd_lane_count(n, g, t->shape[e->lane]);
    e->row_dim = simd_transpose_dim(n, g, e->lane);
    int block = 0;
    if (e->row_dim >= 0)
        block = simd_transpose_size(n, g, simd_widest(g), e->lane, e->row_dim);
    int high = block ? block : simd_rows_beside(g, e->lane);
    e->square = block > 0;
    e->w = block ? block : e->w;
    e->row_dim = block ? e->row_dim : high > 1 ? 0 : -1;
    e->high = high;
    for (int d = 0; d < t->rank; d++) {
        int64_t step = d == e->lane ? e->w : d == e->row_dim ? high : 1;
        e->ix[d] = (Ix){d == e->lane && e->w > 1 ? IX_AFF : IX_CONST, 0, NULL};
        if (t->shape[d] > step && d != g->axis)
            e->order[e->nloop++] = d;
    }
    if (g->axis >= 0 && t->shape[g->axis] > (g->axis == e->lane ? e->w : 1))
        e->order[e->nloop++] = g->axis;
}

/* ---- the strip */

static void
emit_effect(Emit *e, Cx *cx, Op *op)
{
    Value *in[16];
    if (op->kind == OP_ASSERT) {
        simd_assert(cx, op, e->ix);
        return;
    }
    if (op->noperand > 16) {
        diag_error(&e->n->s->diag, op->loc, "not supported yet: '%s' of %d values",
                   op_info[op->kind].name, op->noperand);
        return;
    }
    for (int i = 0; i < op->noperand; i++)
        in[i] = ev_strip(cx, simd_eval(cx, op_operand(op, i), e->ix));
    const Type *t = NULL;
    if (op->nresult)
        t = strip_type(cx, type_elem(op_result(op, 0)->type));
    cx->b.loc = op->loc;
    Value *mask = op->kind == OP_ATOMIC_RMW && op->noperand > 2 ? in[2] : NULL;
    simd_check(cx, op, in[0], mask, NULL, e->w, e->ix);
    Op *r = build_op(&cx->b, op->kind, in, op->noperand, &op->attrs,
                     op->nresult ? &t : NULL, op->nresult);
    Slot *s = op->nresult ? plan_get(e->n, op_result(op, 0))->slot : NULL;
    if (s) {
        Ev ev = {.kind = e->w == 1 ? EV_UNI : EV_VEC, .v = op_result(r, 0)};
        simd_slot_store(cx, s, e->g->shape->rank, e->ix, ev);
    }
}

static void
copy_out(Emit *e, Cx *cx, const Root *r, Ev ev)
{
    Ix ix[MAX_RANK + 1];
    int rank = e->g->shape->rank;
    for (int d = 0; d < rank; d++)
        ix[d] = e->ix[d];
    if (r->axis >= 0 && r->offset) {
        Ix *x = &ix[r->axis];
        if (x->v)
            x->v = build_binary(&cx->b, OP_ADD, x->v,
                                simd_int(&cx->b, cx->n->i64, r->offset));
        else
            x->c += r->offset;
    }
    if (r->transposed) {
        Ix x = ix[rank - 1];
        ix[rank - 1] = ix[rank - 2];
        ix[rank - 2] = x;
    }
    if (r->minor)
        ix[rank++] = (Ix){IX_CONST, r->offset, NULL};
    simd_slot_store(cx, r->dst, rank, ix, ev);
}

/* Would this COPY write to the buffer that the value is in already? */
static bool
is_in_place(Simd *n, const Root *r)
{
    Slot *s = simd_tile(r->v) ? plan_get(n, r->v)->slot : NULL;
    return s && r->axis < 0 && !r->minor && slot_find(s) == slot_find(r->dst);
}

/* Builds the roots of one strip in program order. Buffers that other roots of the nest
   still read are written last. accs: the accumulators, which are updated. */
static void
strip_eval(Emit *e, Cx *cx, Value **accs)
{
    Group *g = e->g;
    int at = 0;
    cx->g = g;
    for (int i = g->items.n - 1; i >= 0; i--) {
        Root *r = &g->items.at[i];
        Ev ev;
        cx->b.loc = r->op->loc;
        switch (r->kind) {
        case ROOT_LOAD:
        case ROOT_COPY: simd_eval(cx, r->v, e->ix); break;
        case ROOT_MAT:
            ev = simd_define(cx, r->v, e->ix);
            simd_remember(cx, r->v, e->ix, ev);
            simd_slot_store(cx, plan_get(e->n, r->v)->slot, g->shape->rank, e->ix, ev);
            break;
        case ROOT_STORE: simd_store(cx, r->op, e->ix); break;
        case ROOT_ROWS: simd_rows_step(cx, r, e->ix); break;
        case ROOT_EFFECT: emit_effect(e, cx, r->op); break;
        case ROOT_PRINT: simd_print(cx, r->op, (int)r->offset, e->ix); break;
        case ROOT_REDUCE:
            simd_reduce_step(e, cx, at, accs);
            at += r->op->noperand;
            break;
        case ROOT_SCALAR:
            ev = simd_eval(cx, r->v, e->ix);
            map_set(&e->n->map, op_result(r->op, 0), ev.v);
            break;
        }
    }
    for (int i = g->items.n - 1; i >= 0; i--) {
        Root *r = &g->items.at[i];
        if (r->kind == ROOT_COPY && !is_in_place(e->n, r))
            copy_out(e, cx, r, simd_eval(cx, r->v, e->ix));
    }
    if (!cx->square) {
        simd_fetch_stores(cx, e->ix);
        simd_fetch_loads(cx, e->ix);
    }
}

/* Moves the ops of an arm in front of the branch: no assumption was made, so the fast
   code is the only code. */
static void
inline_arm(Op *branch, Region *arm)
{
    region_each(arm, op)
        if (!op_is(op, T_TERMINATOR))
            op_move_before(op, branch);
}

/* Is the arm for empty masks so much less work than the general one that it is worth its
   code? It must touch no memory but buffers, and compute no more vectors than
   accumulators and buffers need. */
static bool
is_worthwhile(Emit *e, const Region *arm)
{
    int strips = 0;
    region_each(arm, op) {
        if (op->kind == OP_BUF_STORE || op_is(op, T_TERMINATOR))
            continue;
        if (op->nregion || !op_is(op, T_PURE))
            return false;
        bool free = op->kind == OP_SPLAT || op->kind == OP_CONST;
        strips += op->nresult && simd_tile(op_result(op, 0)) && !free;
    }
    return strips <= 2 * e->nacc;
}

static int
cost_of(const Region *arm)
{
    int cost = 0;
    region_each(arm, op)
        cost += op_cost(op);
    return cost;
}

/* Opens an `if` at b, whose condition is set later. cx: for its first arm; pre: for tests
   in front of it. */
static Op *
arm_open(Emit *e, Builder *b, const Type *const *types, Cx *pre, Cx *cx)
{
    Op *branch = build_if(b, build_int(b, e->n->i1, 1), types, e->nacc);
    cx_init(pre, e->n, builder_before(branch), e->w);
    cx_init(cx, e->n, builder_at_end(e->n->f, branch->regions[0]), e->w);
    cx->pre = pre;
    return branch;
}

/* The strip with any masks. Lanes that do not wrap are an arm of their own: those of a
   masked strip would be gathered one by one otherwise. */
static void
strip_general(Emit *e, Builder *b, const Type *const *types, Value **accs)
{
    Value **near = arena_array(e->n->tmp, Value *, e->nacc + 1);
    Cx pre, cx;
    for (int i = 0; i < e->nacc; i++)
        near[i] = accs[i];
    Op *branch = arm_open(e, b, types, &pre, &cx);
    cx.ordered = true;
    strip_eval(e, &cx, near);
    if (!cx.cond) {
        inline_arm(branch, branch->regions[0]);
        op_erase(branch);
        for (int i = 0; i < e->nacc; i++)
            accs[i] = near[i];
        return;
    }
    build_yield(&cx.b, near, e->nacc);
    op_set_operand(branch, 0, cx.cond);
    attr_set_int(&e->n->s->mod, &branch->attrs, ATTR_LIKELY, 0);
    cx_init(&cx, e->n, builder_at_end(e->n->f, branch->regions[1]), e->w);
    strip_eval(e, &cx, accs);
    build_yield(&cx.b, accs, e->nacc);
    for (int i = 0; i < e->nacc; i++)
        accs[i] = op_result(branch, i);
}

/* The strip without the assumptions of fast code: an arm for empty masks, if that is
   worthwhile, and the general code. only: there is no fast code. */
static void
strip_slow(Emit *e, Builder *b, const Type *const *types, Value **accs, bool only)
{
    Value **none = arena_array(e->n->tmp, Value *, e->nacc + 1);
    Cx pre, cx;
    for (int i = 0; i < e->nacc; i++)
        none[i] = accs[i];
    Op *branch = arm_open(e, b, types, &pre, &cx);
    cx.none = true;
    strip_eval(e, &cx, none);
    bool apart = cx.cond && is_worthwhile(e, branch->regions[0]);
    if (!apart) {
        op_erase(branch);
        strip_general(e, b, types, accs);
        return;
    }
    build_yield(&cx.b, none, e->nacc);
    op_set_operand(branch, 0, cx.cond);
    if (only)
        attr_set_int(&e->n->s->mod, &branch->attrs, ATTR_LIKELY, 1);
    Builder rest = builder_at_end(e->n->f, branch->regions[1]);
    strip_general(e, &rest, types, accs);
    build_yield(&rest, accs, e->nacc);
    for (int i = 0; i < e->nacc; i++)
        accs[i] = op_result(branch, i);
}

/* The strip with fewer assumptions than its fast code makes, as `how` says: quotients in
   two runs of lanes, any quotients (apart), or strides that are numbers of the launch
   (steps). Else strip_slow. */
static void
strip_else(Emit *e, Builder *b, const Type *const *types, Value **accs, Cx how)
{
    Value **two = arena_array(e->n->tmp, Value *, e->nacc + 1);
    Cx pre, cx;
    for (int i = 0; i < e->nacc; i++)
        two[i] = accs[i];
    Op *branch = arm_open(e, b, types, &pre, &cx);
    cx.fast = true;
    cx.two = pre.two = how.two;
    cx.steps = pre.steps = how.steps;
    cx.apart = pre.apart = how.apart;
    strip_eval(e, &cx, two);
    if (!cx.cond) {
        op_erase(branch);
        strip_slow(e, b, types, accs, false);
        return;
    }
    build_yield(&cx.b, two, e->nacc);
    op_set_operand(branch, 0, cx.cond);
    Builder slow = builder_at_end(e->n->f, branch->regions[1]);
    strip_slow(e, &slow, types, accs, false);
    build_yield(&slow, accs, e->nacc);
    for (int i = 0; i < e->nacc; i++)
        accs[i] = op_result(branch, i);
}

/* The strip as a loop over shorter strips in two runs of lanes. */
static void
strip_pieces(Emit *e, Builder *b, const Type *const *types, Value **accs)
{
    const Ix lane = e->ix[e->lane];
    const Type *i64 = e->n->i64;
    int w = e->w, piece = simd_run_lanes(e->n, e->g, w);
    if (piece == w) {
        strip_else(e, b, types, accs, (Cx){.two = true});
        return;
    }
    Op *loop = build_for(b, simd_int(b, i64, 0), simd_int(b, i64, w),
                         simd_int(b, i64, piece), NULL, 0);
    Builder in = builder_at_end(e->n->f, loop->regions[0]);
    in.loc = b->loc;
    Value *at = loop->regions[0]->args[0];
    if (lane.v)
        at = build_binary(&in, OP_ADD, lane.v, at);
    e->ix[e->lane] = (Ix){IX_AFF, 0, at};
    e->w = piece;
    strip_else(e, &in, types, accs, (Cx){.two = true});
    build_yield(&in, NULL, 0);
    e->w = w;
    e->ix[e->lane] = lane;
}

/* The strip where a quotient is not the same in all lanes: in two runs if `runs` says
   that they are long enough, else with any quotients. */
static void
strip_runs(Emit *e, Builder *b, const Type *const *types, Value **accs, Value *runs)
{
    Op *branch = build_if(b, runs, types, e->nacc);
    Value **pieces = arena_array(e->n->tmp, Value *, e->nacc + 1);
    for (int i = 0; i < e->nacc; i++)
        pieces[i] = accs[i];
    Builder arm = builder_at_end(e->n->f, branch->regions[0]);
    strip_pieces(e, &arm, types, pieces);
    build_yield(&arm, pieces, e->nacc);
    arm = builder_at_end(e->n->f, branch->regions[1]);
    strip_else(e, &arm, types, accs, (Cx){.apart = true});
    build_yield(&arm, accs, e->nacc);
    for (int i = 0; i < e->nacc; i++)
        accs[i] = op_result(branch, i);
}

/* The strip in all the ways that it needs; see the head of this file. */
static void
strip_emit(Emit *e, Builder *b, Value **accs)
{
    const Type **types = arena_array(e->n->tmp, const Type *, e->nacc + 1);
    Value **fast = arena_array(e->n->tmp, Value *, e->nacc + 1);
    Cx pre, cx;
    if (e->w == 1) {
        cx_init(&cx, e->n, *b, 1);
        strip_eval(e, &cx, accs);
        return;
    }
    for (int i = 0; i < e->nacc; i++) {
        types[i] = e->acc[i].type;
        fast[i] = accs[i];
    }
    Op *branch = arm_open(e, b, types, &pre, &cx);
    cx.fast = true;
    strip_eval(e, &cx, fast);
    Value *runs = cx.runs;
    if (runs && cx.short_runs) {
        op_erase(branch);
        strip_runs(e, b, types, accs, runs);
        return;
    }
    if (!cx.cond) {
        bool skip = cx.skips && cost_of(branch->regions[0]) > OP_COSTLY;
        if (!skip)
            inline_arm(branch, branch->regions[0]);
        op_erase(branch);
        if (skip)
            strip_slow(e, b, types, accs, true);
        for (int i = 0; i < e->nacc && !skip; i++)
            accs[i] = fast[i];
        return;
    }
    build_yield(&cx.b, fast, e->nacc);
    op_set_operand(branch, 0, cx.cond);
    attr_set_int(&e->n->s->mod, &branch->attrs, ATTR_LIKELY, 0);
    Builder slow = builder_at_end(e->n->f, branch->regions[1]);
    if (runs)
        strip_runs(e, &slow, types, accs, runs);
    else if (cx.stepped && !e->n->f->check)
        strip_else(e, &slow, types, accs, (Cx){.steps = true});
    else
        strip_slow(e, &slow, types, accs, false);
    build_yield(&slow, accs, e->nacc);
    for (int i = 0; i < e->nacc; i++)
        accs[i] = op_result(branch, i);
}

static void
block_rows(Builder *b, Value *first, int size, Value **rows)
{
    for (int i = 0; i < size; i++)
        rows[i] = i ? build_binary(b, OP_ADD, first, simd_int(b, first->type, i)) : first;
}

/* A block of strips, which may be a square that is transposed in registers. Where masks
   exclude a part of it, strips are built one after the other. */
static void
block_emit(Emit *e, Builder *b)
{
    Simd *n = e->n;
    Ix *row = &e->ix[e->row_dim], *lane = &e->ix[e->lane];
    Square t = {.size = e->w};
    Cx pre, cx;
    block_rows(b, row->v ? row->v : simd_int(b, n->i64, 0), e->high, t.b);
    block_rows(b, lane->v ? lane->v : simd_int(b, n->i64, 0), e->square ? e->w : 1, t.a);
    *lane = (Ix){IX_AFF, 0, t.a[0]};
    Op *branch = arm_open(e, b, NULL, &pre, &cx);
    cx.fast = true;
    cx.square = e->square ? &t : NULL;
    cx.rows = e->square ? 0 : e->high;
    for (int i = 0; i < e->high; i++) {
        *row = (Ix){IX_UNI, 0, t.b[i]};
        strip_eval(e, &cx, NULL);
    }
    if (!cx.cond) {
        inline_arm(branch, branch->regions[0]);
        op_erase(branch);
        return;
    }
    build_yield(&cx.b, NULL, 0);
    op_set_operand(branch, 0, cx.cond);
    attr_set_int(&n->s->mod, &branch->attrs, ATTR_LIKELY, 0);
    Builder slow = builder_at_end(n->f, branch->regions[1]);
    slow.loc = b->loc;
    Op *loop = build_for(&slow, simd_int(&slow, n->i64, 0),
                         simd_int(&slow, n->i64, e->high), simd_int(&slow, n->i64, 1),
                         NULL, 0);
    Builder in = builder_at_end(n->f, loop->regions[0]);
    in.loc = b->loc;
    Value *at = build_binary(&in, OP_ADD, t.b[0], loop->regions[0]->args[0]);
    *row = (Ix){IX_UNI, 0, at};
    strip_emit(e, &in, NULL);
    build_yield(&in, NULL, 0);
    build_yield(&slow, NULL, 0);
}

/* ---- loops */

static Op *
loop_open(Emit *e, Builder *b, int d, Value *const *inits, int n)
{
    const Type *i64 = e->n->i64;
    bool lane = d == e->lane && e->w > 1;
    int step = lane ? e->w : d == e->row_dim ? e->high : 1;
    Op *loop = build_for(b, simd_int(b, i64, 0), simd_int(b, i64, e->g->shape->shape[d]),
                         simd_int(b, i64, step), inits, n);
    e->ix[d] = (Ix){lane ? IX_AFF : IX_UNI, 0, loop->regions[0]->args[0]};
    return loop;
}

/* The strips of a row, or of a tile: accs becomes what they are reduced to. */
static void
emit_strips(Emit *e, Builder *b, Value **accs)
{
    bool reduced = e->g->axis >= 0;
    int d = e->nloop ? e->order[e->nloop - 1] : -1;
    if (d < 0 || (reduced && d != e->g->axis)) {
        /* The reduced dimension is one step: the loop over d is an ordinary one. */
        if (e->row_dim >= 0)
            block_emit(e, b);
        else
            strip_emit(e, b, accs);
        return;
    }
    Op *loop = loop_open(e, b, d, accs, e->nacc);
    Builder in = builder_at_end(e->n->f, loop->regions[0]);
    in.loc = b->loc;
    for (int i = 0; i < e->nacc; i++)
        accs[i] = loop->regions[0]->args[i + 1];
    if (reduced)
        e->first = build_cmp(&in, OP_CMPI, "eq", loop->regions[0]->args[0],
                             simd_int(&in, e->n->i64, 0));
    if (e->row_dim >= 0)
        block_emit(e, &in);
    else
        strip_emit(e, &in, accs);
    build_yield(&in, accs, e->nacc);
    for (int i = 0; i < e->nacc; i++)
        accs[i] = op_result(loop, i);
}

static void
emit_inner(Emit *e, Builder *b)
{
    Value **accs = arena_array(e->n->tmp, Value *, e->g->items.n * SIMD_MAX_IN + 1);
    Op *around = e->g->around;
    e->nacc = 0;
    e->first = NULL;
    if (e->g->axis >= 0)
        simd_acc_init(e, b);
    for (int i = 0; i < e->nacc; i++)
        accs[i] = e->acc[i].v;
    if (around) {
        Builder in;
        Op *loop = simd_around(e->n, b, around, accs, e->nacc, &in);
        emit_strips(e, &in, accs);
        simd_around_end(e->n, &in, around, loop, accs, e->nacc);
    } else
        emit_strips(e, b, accs);
    for (int i = 0; i < e->nacc; i++)
        e->acc[i].v = accs[i];
    for (int i = 0; i < e->nacc; i += e->acc[i].root->op->noperand)
        simd_reduce_finish(e, b, i);
}

static Op *
count_to(Emit *e, Builder *b, int64_t n, int64_t step, Builder *in)
{
    const Type *i64 = e->n->i64;
    Op *loop = build_for(b, simd_int(b, i64, 0), simd_int(b, i64, n),
                         simd_int(b, i64, step), NULL, 0);
    *in = builder_at_end(e->n->f, loop->regions[0]);
    in->loc = b->loc;
    return loop;
}

/* The loop over rows, dimension d, of which several are reduced together. */
static void
emit_rows(Emit *e, Builder *b, int d)
{
    Builder in, each;
    Op *loop = count_to(e, b, e->g->shape->shape[d], e->rows, &in);
    Value *first = loop->regions[0]->args[0];
    e->row = count_to(e, &in, e->rows, 1, &each)->regions[0]->args[0];
    e->ix[d] = (Ix){IX_UNI, 0, build_binary(&each, OP_ADD, first, e->row)};
    emit_inner(e, &each);
    build_yield(&each, NULL, 0);
    e->row = NULL;
    e->ix[d] = (Ix){IX_AFF, 0, first};
    simd_reduce_rows(e, &in);
    build_yield(&in, NULL, 0);
}

static void
emit_level(Emit *e, Builder *b, int level)
{
    bool reduced = e->g->axis >= 0;
    bool inner = e->nloop && reduced && e->order[e->nloop - 1] == e->g->axis;
    int outer = e->nloop - (inner || (!reduced && e->nloop));
    if (level >= outer) {
        emit_inner(e, b);
        return;
    }
    int d = e->order[level >= 0 ? level : 0];
    if (reduced && level == outer - 1 && (e->rows = simd_rows_together(e, d)) > 1) {
        emit_rows(e, b, d);
        return;
    }
    Op *loop = loop_open(e, b, d, NULL, 0);
    Builder in = builder_at_end(e->n->f, loop->regions[0]);
    in.loc = b->loc;
    emit_level(e, &in, level + 1);
    build_yield(&in, NULL, 0);
}

static bool
has_work(Simd *n, const Group *g)
{
    for (int i = 0; i < g->items.n; i++)
        if (g->items.at[i].kind != ROOT_LOAD &&
            !(g->items.at[i].kind == ROOT_COPY && is_in_place(n, &g->items.at[i])))
            return true;
    return false;
}

void
simd_group(Simd *n, Builder *b, Group *g)
{
    Emit e;
    if (!has_work(n, g))
        return;
    emit_init(&e, n, g);
    b->loc = g->at->loc;
    emit_level(&e, b, 0);
}

void
simd_copy(Simd *n, Builder *b, Slot *from, Slot *to)
{
    Emit e = {.n = n};
    Group g = {.axis = -1};
    Cx cx;
    const Type *t = slot_find(from)->type;
    g.shape = type_tile(n->tt, t->elem, t->rank, t->shape, NULL);
    emit_init(&e, n, &g);
    Builder at = *b;
    for (int k = 0; k < e.nloop; k++) {
        Op *loop = loop_open(&e, &at, e.order[k], NULL, 0);
        at = builder_at_end(n->f, loop->regions[0]);
        Op *end = build_yield(&at, NULL, 0);
        at = builder_before(end);
    }
    cx_init(&cx, n, at, e.w);
    Ev ev = simd_slot_load(&cx, from, t->elem, e.ix);
    simd_slot_store(&cx, to, t->rank, e.ix, ev);
}
