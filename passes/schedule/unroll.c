/* Unrolls loops without dots that wait for memory, so that the loads of several
   iterations are in flight at once.

       for %i = %lo, %hi, 1 (%s = %z) {      %t = for %i = %lo, %mid, 4 (%s = %z) {
         %x = load %p + %i                     %x0 = load ..
         %s1 = add %s, %x              =>      .. %x3 = load %p + (%i + 3)
         yield %s1                             %s1 = add %s, %x0 ..
       }                                       yield %s4
                                             }
                                             %u = for %i = %mid, %hi, 1 (%s = %t) { .. }

   A loop that loads from and stores to the same array is unrolled if the addresses of the
   copies are those of the first iteration plus a constant: ptxas then sees that what one
   iteration stores is not what the next one loads, and loads first. With two arrays it
   cannot know that, every iteration would wait for its loads, and the loop is left alone.

   The order of iterations stays the same, and so do the bits of sums. Where nothing in
   the loop writes memory, the loads move in front of the other work; where something
   does, whole iterations follow one another. Reductions within a thread (which pass
   defer-reduction leaves) count as ordinary work, and so do branches around loads
   (unroll_ifs.c) where nothing is stored. Loops whose threads already load much at once
   are left alone.

   Loops of a known number of iterations may be written out completely
   (unroll_whole.c). */
#include "ir/analysis/affine.h"
#include "ir/analysis/slice.h"
#include "ir/base/util.h"
#include "ir/base/vec.h"
#include "ir/build.h"
#include "ir/edit.h"
#include "ir/fold.h"
#include "ir/layout.h"
#include "ir/loop.h"
#include "ir/plan/pipeline.h"
#include "passes/cost.h"
#include "passes/pass.h"
#include "passes/schedule/unroll.h"

#include <stdlib.h>

enum {
    COPIES = 4,       /* at most */
    MAX_LOADED = 32,  /* registers of a thread that are loaded at once */
    MAX_CODE = 512,   /* instructions of one iteration afterwards: other warps hide what
                         is left of a load's latency, and code has to be fetched */
    BODY_OPS = 160,
    MOST_GROWTH = 1 << 20, /* elements; accesses have offsets of 24 bits */
};

typedef struct Unroll {
    Session *s;
    bool changed;
} Unroll;

/* One loop. */
typedef struct Body {
    Session *s;
    Region *region;
    Vec(Op *) ops;   /* of an iteration, without its yield */
    Slice ahead;     /* loads, and what they depend on */
    Map *copy;       /* of an iteration's values; [0] is empty: itself */
    Map growth;       /* Op of an access -> int64_t: elements that its address grows by */
} Body;

/* Does op reduce only elements that each thread holds itself, with a region that uses no
   other value of the loop? */
static bool
stays_in_thread(const Op *op, const Region *loop)
{
    if (op->kind != OP_REDUCE || !op_operand(op, 0)->type->layout)
        return false;
    const Layout *l = op_operand(op, 0)->type->layout;
    int axis = (int)attr_int(&op->attrs, ATTR_AXIS, 0);
    for (int d = 0; d < LD_COUNT; d++)
        for (int i = 0; d != LD_REG && i < l->nbasis[d]; i++)
            if (layout_part(l, l->basis[d][i], axis))
                return false;
    region_each(op->regions[0], in)
    {
        if (in->nregion)
            return false;
        for (int i = 0; i < in->noperand; i++) {
            const Value *v = op_operand(in, i);
            if (!value_outside(v, op->regions[0]) || value_outside(v, loop))
                continue;
            return false;
        }
    }
    return true;
}

/* How many iterations may be unrolled into one; 1: the loop does not qualify. */
static int
copies_for(const Op *loop)
{
    int64_t loaded = 0, code = 0, n = 0;
    bool stores = region_has(loop->regions[0], OP_STORE);
    region_each(loop->regions[0], op)
    {
        if (!stores && op->kind == OP_IF && unroll_flat_if(op, &loaded, &code))
            continue;
        if ((op->nregion && !stays_in_thread(op, loop->regions[0])) || n++ > BODY_OPS)
            return 1;
        if (op->kind == OP_YIELD)
            continue;
        bool load = op->kind == OP_LOAD && !attr_has(&op->attrs, ATTR_VOLATILE);
        if (!load && op->kind != OP_STORE && !op_is_pure(op))
            return 1;
        loaded += load ? unroll_loaded(op) : 0;
        code += op_code(op, 0);
    }
    int copies = COPIES;
    while (copies > 1 && (loaded * copies > MAX_LOADED || code * copies > MAX_CODE))
        copies /= 2;
    return loaded ? copies : 1;
}

/* Marks what loads depend on, also through values that the loop carries. */
static void
mark_ahead(Body *b)
{
    if (region_has(b->region, OP_STORE))
        return;
    for (int i = 0; i < b->ops.n; i++)
        if (b->ops.at[i]->kind == OP_LOAD)
            slice_add(&b->ahead, &b->ops.at[i]->results[0]);
}

/* The copy of v in the k-th iteration. */
static Value *
version(Body *b, Value *v, int k)
{
    while (k > 0 && !v->op && v->region == b->region && v->index > 0) {
        v = op_operand(b->region->last, v->index - 1);
        k--;
    }
    return k > 0 && map_has(&b->copy[k], v) ? map_get(&b->copy[k], v) : v;
}

/* Is every factor except the loop counter computed outside of the loop? */
static bool
is_even(const Poly *p, const Region *body)
{
    for (int i = 0; i < p->n; i++)
        for (int x = 0; x < p->t[i].n; x++)
            if (p->t[i].x[x] != body->args[0] && !value_outside(p->t[i].x[x], body))
                return false;
    return true;
}

/* Notes by how much the address of an access grows from one iteration to the next, if
   that is a constant and nothing else changes it. Returns its base pointer, else NULL. */
static const Value *
see_growth(Body *b, const Op *op, int64_t step)
{
    Affine at;
    const Value *iv = b->region->args[0];
    int64_t *grows = arena_new(&b->s->tmp, int64_t);
    if (!affine_of(op_operand(op, 0), b->region->parent, &at) ||
        !at.ptr || !value_outside(at.ptr, b->region) || !is_even(&at.base, b->region))
        return NULL;
    for (int i = 0; i < at.base.n; i++) {
        const PolyTerm *t = &at.base.t[i];
        int factors = 0;
        for (int x = 0; x < t->n; x++)
            factors += t->x[x] == iv;
        if (factors && t->n > 1)
            return NULL;
        *grows += factors ? t->k : 0;
    }
    for (int d = 0; d < AFFINE_RANK; d++)
        for (int i = 0; i < at.at[d].n; i++)
            for (int x = 0; x < at.at[d].t[i].n; x++)
                if (!value_outside(at.at[d].t[i].x[x], b->region))
                    return NULL;
    if (!*grows || step > MOST_GROWTH || llabs(*grows) > MOST_GROWTH / step)
        return NULL;
    map_set(&b->growth, op, grows);
    return at.ptr;
}

/* Do all accesses of the loop go to one array, and grow by constants? */
static bool
sees_apart(Body *b, int64_t step)
{
    const Value *array = NULL;
    for (int i = 0; i < b->ops.n; i++) {
        const Op *op = b->ops.at[i];
        if (op->kind != OP_LOAD && op->kind != OP_STORE)
            continue;
        const Value *to = see_growth(b, op, step);
        if (!to || (array && to != array))
            return false;
        array = to;
    }
    return true;
}

static Value *
grown(Body *b, Builder *at, const Op *op, int64_t n)
{
    Value *p = op_operand(op, 0);
    const int64_t *by = map_get(&b->growth, op);
    const Type *i32 = type_scalar(b->s->types, SK_I32);
    const Type *t = type_is_tile(p->type) ? type_like(b->s->types, p->type, i32) : i32;
    return build_binary(at, OP_ADDPTR, p, build_int(at, t, n * *by));
}

static void
copy_op(Body *b, Builder *at, const Op *op, int k, int64_t step)
{
    for (int i = 0; i < op->noperand; i++) {
        Value *v = op_operand(op, i);
        map_set(&b->copy[k], v, version(b, v, k));
    }
    at->loc = op->loc;
    Op *copy = op_clone(at, op, &b->copy[k]);
    Builder in_front = builder_before(copy);
    in_front.loc = op->loc;
    if (map_has(&b->growth, op))
        op_set_operand(copy, 0, grown(b, &in_front, op, k * step));
}

static void
copy_iterations(Body *b, int copies, int64_t step)
{
    Region *r = b->region;
    Value *iv = r->args[0];
    Op *first = NULL; /* that loads do not need */
    for (int i = 0; i < b->ops.n; i++) {
        Op *op = b->ops.at[i];
        if (!slice_has(&b->ahead, op))
            first = first ? first : op;
        else if (first)
            op_move_before(op, first);
    }
    Builder loads = builder_before(first ? first : r->last);
    Builder rest = builder_before(r->last);
    for (int k = 1; k < copies; k++) {
        loads.loc = r->parent->loc;
        map_set(&b->copy[k], iv,
                build_binary(&loads, OP_ADD, iv, build_int(&loads, iv->type, k * step)));
        for (int i = 0; i < b->ops.n; i++)
            if (slice_has(&b->ahead, b->ops.at[i]))
                copy_op(b, &loads, b->ops.at[i], k, step);
    }
    for (int k = 1; k < copies; k++)
        for (int i = 0; i < b->ops.n; i++)
            if (!slice_has(&b->ahead, b->ops.at[i]))
                copy_op(b, &rest, b->ops.at[i], k, step);
    Vec(Value *) last = {0};
    for (int i = 0; i < r->last->noperand; i++)
        vec_push(&b->s->tmp, &last, version(b, op_operand(r->last, i), copies - 1));
    for (int i = 0; i < last.n; i++)
        op_set_operand(r->last, i, last.at[i]);
}

/* Builds the loop over the remaining iterations; it takes over the uses of the
   results. */
static void
build_rest(Unroll *u, Op *loop, Value *from)
{
    Vec(Use *) uses = {0};
    for (int i = 0; i < loop->nresult; i++)
        value_each_use(&loop->results[i], use) vec_push(&u->s->tmp, &uses, use);
    Builder b = builder_after(loop);
    b.loc = loop->loc;
    Map map;
    map_init(&map, &u->s->tmp);
    Op *rest = op_clone(&b, loop, &map);
    for (int i = 0; i < uses.n; i++)
        op_set_operand(uses.at[i]->user, uses.at[i]->index,
                       &rest->results[uses.at[i]->value->index]);
    op_set_operand(rest, 0, from);
    for (int i = 0; i < loop->nresult; i++)
        op_set_operand(rest, 3 + i, &loop->results[i]);
}

/* The end of the unrolled loop: lo plus as many whole rounds as fit. */
static Value *
end_of_rounds(Op *loop, int64_t round)
{
    Builder b = builder_before(loop);
    b.loc = loop->loc;
    Value *lo = op_operand(loop, 0);
    Value *span = build_binary(&b, OP_MAXS, op_operand(loop, 1), lo);
    span = build_binary(&b, OP_SUB, span, lo); /* exact as an unsigned number */
    Value *n = build_int(&b, lo->type, round);
    span = build_binary(&b, OP_MUL, build_binary(&b, OP_DIVU, span, n), n);
    return build_binary(&b, OP_ADD, lo, span);
}

static void
see_body(Body *b, Session *s, Op *loop, int copies)
{
    *b = (Body){.s = s, .region = loop->regions[0]};
    b->copy = arena_array(&s->tmp, Map, copies);
    slice_init(&b->ahead, &s->tmp, b->region, NULL, NULL);
    map_init(&b->growth, &s->tmp);
    for (int k = 0; k < copies; k++)
        map_init(&b->copy[k], &s->tmp);
    region_each(b->region, op) if (op != b->region->last)
        vec_push(&s->tmp, &b->ops, op);
}

/* Writes out all iterations; what is left is a loop of one. */
static void
write_out(Unroll *u, Op *loop, int trips)
{
    Body b;
    int64_t step = loop_step(loop), loaded = 0;
    see_body(&b, u->s, loop, trips);
    for (int i = 0; i < b.ops.n; i++)
        loaded += b.ops.at[i]->kind == OP_LOAD ? unroll_loaded(b.ops.at[i]) : 0;
    if (loaded * trips <= MAX_LOADED)
        mark_ahead(&b);
    copy_iterations(&b, trips, step);
    value_replace(b.region->args[0], op_operand(loop, 0));
    for (int i = 1; i < b.region->narg; i++)
        value_replace(b.region->args[i], op_operand(loop, 2 + i));
    op_splice(loop, b.region);
    u->changed = true;
}

static void
visit_loop(Unroll *u, Op *loop)
{
    int64_t step = loop_step(loop);
    if (pipeline_of(loop).stages == 1 || /* what peel left */
        loop_is_pipelined(loop) || !step)
        return;
    int trips = unroll_whole(&u->s->tmp, loop);
    if (trips) {
        write_out(u, loop, trips);
        return;
    }
    int copies = copies_for(loop);
    if (copies < 2)
        return;
    if (!region_has(loop->regions[0], OP_STORE))
        unroll_flatten(loop);
    Body b;
    see_body(&b, u->s, loop, copies);
    if (region_has(b.region, OP_STORE) && !sees_apart(&b, step))
        return;
    Value *mid = end_of_rounds(loop, copies * step);
    build_rest(u, loop, mid);
    op_set_operand(loop, 1, mid);
    Builder at = builder_before(loop);
    op_set_operand(loop, 2, build_int(&at, op_operand(loop, 2)->type, copies * step));
    mark_ahead(&b);
    copy_iterations(&b, copies, step);
    attr_set_int(&u->s->mod, &loop->attrs, ATTR_AT_ONCE, copies);
    u->changed = true;
}

bool
pass_unroll(Func *f, PassCx *cx)
{
    Unroll u = {.s = cx->s};
    Vec(Op *) loops = {0};
    region_each_deep(f->body, op) if (op->kind == OP_FOR)
        vec_push(&cx->s->tmp, &loops, op);
    for (int i = 0; i < loops.n; i++)
        visit_loop(&u, loops.at[i]);
    return u.changed;
}
