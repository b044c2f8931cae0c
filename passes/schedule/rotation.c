/* A loop of two stages is built by its schedule: see rotation.h.

       for %i {                            if lo < hi {
         a = first(i)       {[0,0]}          a0 = first(lo)
         x = second(a, x)   {[1,1]}          for %i = lo + step .. (%p = a0) {
         yield x                               a = first(i)
       }                              =>       x = second(p, x)     of i - step
                                               yield a, x
                                             }
                                             x = second(p, x)       of the last
                                           }

   The new loop runs stage 0 of an iteration and stage 1 of the one before, and carries
   what stage 1 needs from stage 0.

   Where stage 1 only writes memory, and a mask can keep it from that, the first iteration
   of stage 0 stays in the loop: stage 1 runs on zeros there and writes nothing. That
   saves a copy of stage 0. An atomic addition is not masked but adds a neutral value,
   which costs a select per element: ptxas turns each masked atomic into a branch, and
   moves nothing over branches.

   A wait lets dots of the other stage that were issued behind its own stay in flight.
   Work of stage 0 in front of a wait of stage 1 is there to overlap with the dot, so it
   is pinned. */
#include "passes/schedule/rotation.h"

#include "ir/analysis/async_dot.h"
#include "ir/base/util.h"
#include "ir/base/vec.h"
#include "ir/build.h"
#include "ir/edit.h"
#include "ir/loop.h"

#include <string.h>

typedef struct Rotation {
    Session *s;
    Op *loop, *kernel;  /* the old loop and the new one */
    Op *cond;           /* around what runs only when the loop does */
    Vec(Value *) cross; /* what stage 1 needs from stage 0 */
    bool masked;        /* the first iteration of stage 0 is in the new loop */
    Map at[2];          /* values of the body -> those of each stage in the new loop */
} Rotation;

/* ---- the schedule */

static int
part(const Op *op, int i)
{
    const Attr *a = attr_find(&op->attrs, ATTR_SCHEDULE);
    return a && a->n == 2 ? (int)a->v.ints[i] : -1;
}

int
rotation_stage(const Op *op)
{
    return part(op, 0);
}

int
rotation_order(const Op *op)
{
    return part(op, 1);
}

void
rotation_set(Session *s, Op *op, int stage, int order)
{
    attr_set_ints(&s->mod, &op->attrs, ATTR_SCHEDULE, (int64_t[]){stage, order}, 2);
}

bool
loop_is_rotated(const Op *loop)
{
    if (loop->kind == OP_FOR)
        for (const Op *op = loop->regions[0]->first; op; op = op->next)
            if (attr_has(&op->attrs, ATTR_SCHEDULE))
                return true;
    return false;
}

bool
writes_by_mask(const Op *op)
{
    return op->kind == OP_STORE || (op->kind == OP_ATOMIC_RMW && !op_has_uses(op));
}

int
rotation_stage_of(const Region *body, const Value *v)
{
    if (!v->op && v->region == body && v->index)
        v = op_operand(body->last, v->index - 1);
    return v->op && v->op->parent == body ? rotation_stage(v->op) : 0;
}

static bool
is_second(const Rotation *r, int carried)
{
    const Region *body = r->loop->regions[0];
    return rotation_stage_of(body, body->args[carried + 1]) == 1;
}

static void
add_cross(Rotation *r, const Op *op)
{
    const Region *body = r->loop->regions[0];
    for (int i = 0; i < op->noperand; i++) {
        Value *v = op_operand(op, i);
        bool known = (v->op ? v->op->parent : v->region) != body ||
                     rotation_stage_of(body, v) == 1;
        for (int k = 0; k < r->cross.n && !known; k++)
            known = r->cross.at[k] == v;
        if (!known)
            vec_push(&r->s->tmp, &r->cross, v);
    }
    for (int i = 0; i < op->nregion; i++)
        region_each(op->regions[i], in)
            add_cross(r, in);
}

/* Is it a type of numbers, and of tiles of them, which can be 0? */
static bool
is_number(const Type *t)
{
    return (type_is_tile(t) || t == type_elem(t)) && type_elem(t)->kind == TY_SCALAR;
}

static void
read_schedule(Rotation *r)
{
    const Region *body = r->loop->regions[0];
    r->masked = true;
    for (int i = 0; i < r->loop->nresult; i++)
        r->masked &= !is_second(r, i);
    for (const Op *op = body->first; op != body->last; op = op->next) {
        if (rotation_stage(op) == 0)
            continue;
        bool writes = op_effects(op).writes & 1u << RES_GLOBAL;
        r->masked &= !writes || writes_by_mask(op);
        add_cross(r, op);
    }
    for (int i = 0; i < r->cross.n; i++)
        r->masked &= !r->cross.at[i]->op || is_number(r->cross.at[i]->type);
}

/* ---- the new loop */

/* What op leaves to the next iteration is what stage 0 begins that one with. */
static void
hand_on(Rotation *r, const Op *op)
{
    const Region *body = r->loop->regions[0];
    for (int i = 0; i < r->loop->nresult; i++) {
        Value *next = op_operand(body->last, i);
        if (next->op == op)
            map_set(&r->at[0], body->args[i + 1], value_mapped(&r->at[1], next));
    }
}

/* Copies ops of the body, those of one stage or (-1) of both, in the order of the
   schedule. */
static void
copy_body(Rotation *r, Builder *b, int stage)
{
    const Region *body = r->loop->regions[0];
    int most = 0;
    for (const Op *op = body->first; op != body->last; op = op->next)
        most = (int)max_i64(most, rotation_order(op));
    for (int order = 0; order <= most; order++)
        for (const Op *op = body->first; op != body->last; op = op->next) {
            int own = rotation_stage(op);
            if (rotation_order(op) != order || (stage >= 0 && own != stage))
                continue;
            op_clone(b, op, &r->at[own]);
            if (own == 1)
                hand_on(r, op);
        }
}

static void
clear_maps(Rotation *r)
{
    for (int k = 0; k < 2; k++)
        map_init(&r->at[k], &r->s->tmp);
}

/* The new loop from lo on. init: what it begins with, what the old loop carries and then
   what stage 1 needs. */
static void
build_kernel(Rotation *r, Builder *b, Value *lo, Value **init)
{
    Op *old = r->loop;
    Region *from = old->regions[0];
    int n = old->nresult, m = n + r->cross.n;
    Op *loop = build_for(b, lo, op_operand(old, 1), op_operand(old, 2), init, m);
    Region *to = loop->regions[0];
    Builder in = builder_at_end(b->func, to);
    Value **out = arena_array(&r->s->tmp, Value *, m + 1);
    in.loc = old->loc;
    r->kernel = loop;
    attr_copy(&r->s->mod, &loop->attrs, &old->attrs);
    clear_maps(r);
    for (int i = 0; i <= n; i++) {
        to->args[i]->name = from->args[i]->name;
        map_set(&r->at[i && is_second(r, i - 1)], from->args[i], to->args[i]);
    }
    for (int i = 0; i < r->cross.n; i++)
        map_set(&r->at[1], r->cross.at[i], to->args[n + 1 + i]);
    copy_body(r, &in, -1);
    for (int i = 0; i < n; i++)
        out[i] = value_mapped(&r->at[is_second(r, i)], op_operand(from->last, i));
    for (int i = 0; i < r->cross.n; i++)
        out[n + i] = value_mapped(&r->at[0], r->cross.at[i]);
    build_yield(&in, out, m);
}

/* A wait of the new loop. */
static void
set_wait(Session *s, Op *wait)
{
    const Op *dot = wait_dot(wait);
    int dots = 0, others = 0;
    for (const Op *op = wait->prev; dot && op != dot; op = op->prev) {
        bool other = rotation_stage(op) != rotation_stage(wait);
        others += other;
        dots += other && op_is_async_dot(op);
    }
    if (dots)
        attr_set_int(&s->mod, &wait->attrs, ATTR_PENDING, wait_pending(wait) + dots);
    if (rotation_stage(wait) == 1 && others > dots)
        attr_set_flag(&s->mod, &wait->attrs, ATTR_PINNED);
}

/* Warpgroups take turns at the dots of the new loop. */
static void
take_turns(Region *body)
{
    Op *first = NULL, *last = NULL;
    region_each(body, op)
        if (op_is_async_dot(op)) {
            first = first ? first : op;
            last = op;
        }
    Builder before = builder_before(first), behind = builder_after(last);
    build_op(&before, OP_PINGPONG_WAIT, NULL, 0, NULL, NULL, 0);
    build_op(&behind, OP_PINGPONG_ARRIVE, NULL, 0, NULL, NULL, 0);
}

/* ---- writes of stage 1 in the first iteration */

/* The value that op can add without changing memory; NULL: op does not add. */
static Value *
neutral(Builder *b, const Op *op)
{
    Name how = op->kind == OP_ATOMIC_RMW ? attr_str(&op->attrs, ATTR_RMW) : NULL;
    const Type *t = op_operand(op, 1)->type;
    if (how && strcmp(how, "fadd") == 0)
        return build_float(b, t, -0.0);
    return how && strcmp(how, "add") == 0 ? build_int(b, t, 0) : NULL;
}

/* Makes op write only if `cond` holds. anywhere: its address may be invalid else. */
static void
write_if(Op *op, Value *cond, bool anywhere)
{
    Builder b = builder_before(op);
    Value *to = op_operand(op, 0), *v = op_operand(op, 1);
    b.loc = op->loc;
    Value *mask = build_guard(&b, cond, NULL, to->type);
    Value *none = op->noperand > 2 || anywhere ? NULL : neutral(&b, op);
    if (none)
        op_set_operand(op, 1, build_select(&b, mask, v, none));
    else if (op->noperand > 2)
        op_set_operand(op, 2, build_binary(&b, OP_AND, op_operand(op, 2), mask));
    else
        op_add_operand(op, mask);
}

static void
mask_writes(Rotation *r)
{
    Region *body = r->kernel->regions[0];
    Value *before = map_get(&r->at[1], r->loop->regions[0]->args[0]), *later = NULL;
    bool anywhere = false; /* zeros may have become addresses */
    for (int i = 0; i < r->cross.n; i++)
        anywhere |= r->cross.at[i]->op && !type_is_float(type_elem(r->cross.at[i]->type));
    region_each(body, op) {
        if (rotation_stage(op) != 1 || !writes_by_mask(op))
            continue;
        Builder b = builder_before(op);
        b.loc = r->loop->loc;
        if (!later)
            later = build_cmp(&b, OP_CMPI, "ne", body->args[0],
                              before ? before : op_operand(r->loop, 0));
        write_if(op, later, anywhere);
    }
}

/* What stage 1 gets in the first iteration: what the loop begins with, which are valid
   addresses, and zeros. */
static Value *
before_first(const Rotation *r, Builder *b, const Value *v)
{
    const Type *t = v->type;
    if (!v->op)
        return op_operand(r->loop, v->index ? v->index + 2 : 0);
    return type_is_float(type_elem(t)) ? build_float(b, t, 0) : build_int(b, t, 0);
}

/* ---- around the new loop */

/* A condition that the old loop has an iteration; without one, its n results are what the
   loop begins with. Returns the builder of the arm where it has. */
static Builder
when_it_runs(Rotation *r, Builder *b, int n)
{
    const Op *old = r->loop;
    Value **begin = arena_array(&r->s->tmp, Value *, n + 1);
    const Type **types = arena_array(&r->s->tmp, const Type *, n + 1);
    for (int i = 0; i < n; i++) {
        begin[i] = op_operand(old, i + 3);
        types[i] = begin[i]->type;
    }
    r->cond = build_if(b, build_loop_reaches(b, old, 0), types, n);
    Builder arm = builder_at_end(b->func, r->cond->regions[1]);
    arm.loc = old->loc;
    build_yield(&arm, begin, n);
    arm = builder_at_end(b->func, r->cond->regions[0]);
    arm.loc = old->loc;
    return arm;
}

/* Stage 1 of the last iteration, as it stood: there is nothing to overlap with. */
static void
finish(Rotation *r, Builder *b)
{
    const Op *old = r->loop;
    clear_maps(r);
    for (int i = 0; i < old->nresult; i++)
        map_set(&r->at[1], old->regions[0]->args[i + 1], &r->kernel->results[i]);
    for (int i = 0; i < r->cross.n; i++)
        map_set(&r->at[1], r->cross.at[i], &r->kernel->results[old->nresult + i]);
    region_each(old->regions[0], op)
        if (rotation_stage(op) == 1)
            op_clone(b, op, &r->at[1]);
}

static void
replace_loop(const Rotation *r, Op *by)
{
    for (int i = 0; i < r->loop->nresult; i++) {
        by->results[i].name = r->loop->results[i].name;
        value_replace(&r->loop->results[i], &by->results[i]);
    }
}

/* The first iteration of stage 0 is in the loop. */
static void
rotate_masked(Rotation *r)
{
    Op *old = r->loop;
    int n = old->nresult;
    Value **begin = arena_array(&r->s->tmp, Value *, n + r->cross.n + 1);
    Builder b = builder_before(old);
    b.loc = old->loc;
    for (int i = 0; i < n; i++)
        begin[i] = op_operand(old, i + 3);
    for (int i = 0; i < r->cross.n; i++)
        begin[n + i] = before_first(r, &b, r->cross.at[i]);
    build_kernel(r, &b, op_operand(old, 0), begin);
    mask_writes(r);
    Builder in = when_it_runs(r, &b, 0);
    finish(r, &in);
    build_yield(&in, NULL, 0);
    replace_loop(r, r->kernel);
}

/* It is in front of it. */
static void
rotate_peeled(Rotation *r)
{
    Op *old = r->loop;
    const Region *body = old->regions[0];
    int n = old->nresult;
    Value **v = arena_array(&r->s->tmp, Value *, n + r->cross.n + 1);
    Value *lo = op_operand(old, 0);
    Builder b = builder_before(old);
    b.loc = old->loc;
    Builder in = when_it_runs(r, &b, n);
    clear_maps(r);
    map_set(&r->at[0], body->args[0], lo);
    for (int i = 0; i < n; i++)
        map_set(&r->at[0], body->args[i + 1], op_operand(old, i + 3));
    copy_body(r, &in, 0);
    for (int i = 0; i < n; i++)
        v[i] = is_second(r, i) ? op_operand(old, i + 3)
                               : value_mapped(&r->at[0], op_operand(body->last, i));
    for (int i = 0; i < r->cross.n; i++)
        v[n + i] = value_mapped(&r->at[0], r->cross.at[i]);
    build_kernel(r, &in, build_binary(&in, OP_ADD, lo, op_operand(old, 2)), v);
    finish(r, &in);
    for (int i = 0; i < n; i++)
        v[i] = is_second(r, i) ? value_mapped(&r->at[1], op_operand(body->last, i))
                               : &r->kernel->results[i];
    build_yield(&in, v, n);
    replace_loop(r, r->cond);
}

static void
drop_schedule(Region *region)
{
    region_each_deep(region, op)
        attr_drop(&op->attrs, ATTR_SCHEDULE);
}

bool
rotation_expand(Session *s, Op *loop)
{
    Rotation r = {.s = s, .loop = loop};
    if (!loop_is_rotated(loop))
        return false;
    read_schedule(&r);
    if (r.masked)
        rotate_masked(&r);
    else
        rotate_peeled(&r);
    region_each(r.kernel->regions[0], op)
        if (op_is_dot_wait(op))
            set_wait(s, op);
    if (attr_has(&loop->attrs, ATTR_PINGPONG))
        take_turns(r.kernel->regions[0]);
    attr_drop(&r.kernel->attrs, ATTR_PINGPONG);
    drop_schedule(r.kernel->regions[0]);
    drop_schedule(r.cond->regions[0]);
    op_erase(loop);
    return true;
}
