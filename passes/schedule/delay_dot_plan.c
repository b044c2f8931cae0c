/* The plan of pass delay-dot: which ops run an iteration later, whether they may and
   whether it pays off, and where in that iteration they go. Nothing is changed here. */
#include "passes/schedule/delay_dot.h"

#include "ir/analysis/async_dot.h"
#include "ir/analysis/param.h"
#include "ir/base/util.h"
#include "ir/edit.h"
#include "ir/layout.h"
#include "ir/loop.h"
#include "ir/plan/pipeline.h"
#include "passes/schedule/occupancy.h"
#include "passes/schedule/rotation.h"

/* Registers of a thread that may be used by what is counted; the rest is for all else. */
enum { MOST_REGISTERS = 240 };

/* ---- which ops are late */

/* The first dot may consist of several, each of which adds to the result of the one
   before. */
static bool
find_first(Delay *d)
{
    Op *dot = d->loop->regions[0]->first;
    while (dot && !op_is_async_dot(dot))
        dot = dot->next;
    while (dot) {
        d->first = dot_full_wait(dot);
        dot = d->first ? dot_adding_to(dot) : NULL;
    }
    return d->first != NULL;
}

static bool
any_in(const Op *op, const Map *set)
{
    for (int i = 0; i < op->noperand; i++)
        if (op_operand(op, i)->op && map_has(set, op_operand(op, i)->op))
            return true;
    return false;
}

bool
delay_all_users_in(const Op *op, const Map *set)
{
    for (int i = 0; i < op->nresult; i++)
        value_each_use(&op->results[i], u)
            if (!map_has(set, u->user))
                return false;
    return op_has_uses(op);
}

static bool
any_user_in(const Op *op, const Map *set)
{
    for (int i = 0; i < op->nresult; i++)
        value_each_use(&op->results[i], u)
            if (map_has(set, u->user))
                return true;
    return false;
}

static bool
is_light(const Delay *d, const Op *op)
{
    const Region *body = d->loop->regions[0];
    for (int i = 0; i < op->noperand; i++) {
        const Value *v = op_operand(op, i);
        bool given = value_outside(v, body) || (!v->op && !type_is_tile(v->type));
        if (!given && !(v->op && map_has(&d->light, v->op)))
            return false;
    }
    return op_is_pure(op) && !op->nregion;
}

/* May op move to the next iteration with a delayed dot whose result it takes as operand
   `index`? */
static bool
may_follow(const Delay *d, const Op *op, int index)
{
    if (op->parent != d->loop->regions[0] || op->nregion || op_is(op, T_TERMINATOR))
        return false;
    if (op_is_async_dot(op))
        return index == DOT_ACC && dot_full_wait(op);
    if (writes_by_mask(op))
        return index == 1 && !op_has_uses(op) && param_of(op_operand(op, 0)) &&
               !attr_has(&op->attrs, ATTR_VOLATILE);
    return op_is_dot_wait(op) || op_is_pure(op);
}

/* Does everything that depends on op end up in memory? *set: those ops. */
static bool
follow(const Delay *d, Op *op, Map *set, int depth)
{
    enum { CHAIN_DEPTH = 64 };
    map_set(set, op, op);
    if (writes_by_mask(op))
        return true;
    for (int i = 0; i < op->nresult; i++)
        value_each_use(&op->results[i], u)
            if (!may_follow(d, u->user, u->index) || depth > CHAIN_DEPTH ||
                (!map_has(set, u->user) && !follow(d, u->user, set, depth + 1)))
                return false;
    return op_has_uses(op);
}

/* Loaded tiles stay in the buffer of their iteration, which is what is prefetched. */
static bool
is_loaded(const Value *v)
{
    return value_def(v, OP_LOAD) || value_def(v, OP_DESC_LOAD);
}

static bool
is_view(const Op *op)
{
    return (op->kind == OP_LOCAL_ALLOC && op->noperand &&
            !is_loaded(op_operand(op, 0))) ||
           op->kind == OP_LOCAL_TRANS || op->kind == OP_LOCAL_SLICE ||
           op->kind == OP_CONVERT_LAYOUT;
}

/* What depends on the first dot, and what computes addresses. */
static void
find_needs(Delay *d)
{
    map_set(&d->needs, d->first, d->first);
    region_each(d->loop->regions[0], op) {
        if (any_in(op, &d->needs))
            map_set(&d->needs, op, op);
        if (is_light(d, op))
            map_set(&d->light, op, op);
    }
}

/* The dots that depend on the first and end in memory, with what depends on them. */
static void
find_dots(Delay *d)
{
    Region *body = d->loop->regions[0];
    region_each(body, op) {
        Map set;
        map_init(&set, &d->s->tmp);
        if (!op_is_async_dot(op) || !map_has(&d->needs, op) || !dot_full_wait(op) ||
            !follow(d, op, &set, 0))
            continue;
        region_each(body, in)
            if (map_has(&set, in))
                map_set(&d->late, in, in);
        map_set(&d->begin, op, op);
        map_set(&d->begin, dot_full_wait(op), op);
    }
}

/* What they need: ops for them alone are late, too; others compute it again. */
static void
find_operands(Delay *d)
{
    const Region *body = d->loop->regions[0];
    for (Op *op = body->last->prev; op; op = op->prev)
        if (!map_has(&d->late, op) && delay_all_users_in(op, &d->late) &&
            (is_view(op) || map_has(&d->light, op)))
            map_set(&d->late, op, op);
    for (Op *op = body->last->prev; op; op = op->prev)
        if (map_has(&d->light, op) && !map_has(&d->late, op) &&
            (any_user_in(op, &d->late) || any_user_in(op, &d->again)))
            map_set(&d->again, op, op);
}

static bool
find_late(Delay *d)
{
    find_needs(d);
    find_dots(d);
    find_operands(d);
    region_each(d->loop->regions[0], op)
        if (map_has(&d->late, op) || map_has(&d->again, op))
            vec_push(&d->s->tmp, &d->order, op);
    return d->order.n > 0;
}

/* ---- whether they may and should be late */

static const char *
branches(const Region *body)
{
    for (const Op *op = body->first; op; op = op->next)
        if (op->nregion)
            return "the loop has branches or loops";
    return NULL;
}

static bool
add_cross(Delay *d, Value *v)
{
    const Type *elem = type_elem(v->type);
    if (value_outside(v, d->loop->regions[0]) ||
        (v->op && (map_has(&d->late, v->op) || map_has(&d->again, v->op))))
        return true;
    for (int i = 0; i < d->cross.n; i++)
        if (d->cross.at[i] == v)
            return true;
    vec_push(&d->s->tmp, &d->cross, v);
    bool number = elem->kind == TY_SCALAR, plain = number || elem->kind == TY_PTR;
    return (type_is_tile(v->type) || v->type == elem) && (v->op ? number : plain);
}

static const char *
find_cross(Delay *d)
{
    for (int i = 0; i < d->order.n; i++)
        for (int k = 0; k < d->order.at[i]->noperand; k++)
            if (!add_cross(d, op_operand(d->order.at[i], k)))
                return "an operand is in a buffer that only this iteration has";
    return NULL;
}

static int64_t
words_of(const Type *t)
{
    return type_is_tile(t) ? type_numel(t) * type_bits(t) / 32 : 0;
}

/* Registers for the addresses of cp.async copies, 16 bytes each. */
static int64_t
words_of_copies(const Op *op)
{
    const Type *t = op->kind == OP_LOAD && op_is_planned(op) ? op->results[0].type : NULL;
    return t && t->rank > 1 ? 2 * type_numel(t) * type_bits(t) / 128 : 0;
}

/* Registers for vectors of indices, such as the bounds of a mask: each thread holds its
   part once for all accumulators along the other dimension. */
static int64_t
words_of_indices(const Delay *d, const Op *op)
{
    if (op->kind != OP_BROADCAST || !op_has_uses(op))
        return 0;
    const Value *v = op_operand(op, 0);
    bool computed = v->op && map_has(&d->light, v->op) && !map_has(&d->late, op);
    return computed ? 32 * d->f->num_warps * layout_regs(v->type->layout) *
                          (type_bits(v->type) / 32)
                    : 0;
}

/* Counts registers: accumulators and operands that stay in registers; what else the loop
   needs; what is carried over. */
static void
count_words(Delay *d)
{
    const Region *body = d->loop->regions[0];
    DotRegisters dots = dot_registers(body);
    d->words = dots.accumulators + dots.kept;
    region_each(body, op)
        d->others += words_of_copies(op) + words_of_indices(d, op);
    for (int i = 0; i < d->cross.n; i++)
        d->crossing += words_of(d->cross.at[i]->type);
}

static int64_t
programs(const Delay *d, int64_t words)
{
    int64_t bytes = loop_bytes(d->loop, pipeline_of(d->loop).stages);
    return occupancy(d->f, d->target, words, USUALLY_BESIDE, bytes);
}

/* Why the delayed dots would be waited for anyway; NULL: they would not. The registers of
   a left operand are filled again in the iteration the dot is delayed to; and an
   operation with release semantics waits for all accesses before it (attention backward
   as it is mostly written, tests/loops/stored.tk, where both apply: 0.93 to 1.01 times as
   fast delayed; H200, sdc bench, 2026-11-23). */
static const char *
stalls(const Delay *d)
{
    for (int i = 0; i < d->order.n; i++) {
        const Op *op = d->order.at[i];
        const Value *left = op_is_async_dot(op) ? op_operand(op, DOT_LEFT) : NULL;
        if (left && type_is_tile(left->type) && !value_outside(left, d->loop->regions[0]))
            return "its left operand is in registers";
        if (op_releases(op))
            return "an atomic operation that releases waits for all before it, "
                   "sem=\"relaxed\" does not";
    }
    return NULL;
}

/* Do the delayed dots take long enough to be worth it? They overlap with the work on the
   result of the first dot, and should take about half as long as one exponential per
   element of it, or nearly as long where no other program keeps the tensor cores busy
   (attention backward of 64 dimensions, 64x64, 4 warps: 1.07 times as fast delayed;
   64x128, 8 warps: 0.97 to 0.98, and 1.04 to 1.06 with 96 dimensions; H200,
   tests/gpu/compare.py, 2026-11-23). */
static bool
is_long(const Delay *d)
{
    enum { DEPTH = 64, ALONE = 96 };
    int64_t steps = 0, each = d->alone ? ALONE : DEPTH;
    for (int i = 0; i < d->order.n; i++) {
        const Op *op = d->order.at[i];
        if (op_is_async_dot(op))
            steps +=
                type_numel(op->results[0].type->elem) * op_operand(op, 0)->type->shape[1];
    }
    return steps >= each * type_numel(d->first->results[0].type);
}

static const char *
why_not(Delay *d)
{
    const char *why = branches(d->loop->regions[0]);
    why = why ? why : rotation_hazard(d->loop->regions[0], &d->late);
    why = why ? why : find_cross(d);
    why = why ? why : stalls(d);
    if (why)
        return why;
    int64_t threads = 32 * (int64_t)d->f->num_warps;
    count_words(d);
    if (programs(d, d->words + d->crossing) < programs(d, d->words))
        return "an SM would run fewer programs";
    if (d->words + d->crossing + d->others > MOST_REGISTERS * threads)
        return "registers are short";
    d->alone = programs(d, d->words + d->crossing) < 2;
    return !is_long(d) ? "it is short beside the work on the first" : NULL;
}

/* ---- where the work on the first dot's result ends, and other dots are issued */

/* In front of the ops that prepare an operand of the next dot that depends on the first:
   narrowing it and storing it to a buffer. */
static void
find_end(Delay *d)
{
    Region *body = d->loop->regions[0];
    Op *op = d->first->next;
    while (op != body->last &&
           (!op_is_async_dot(op) || !map_has(&d->needs, op) || map_has(&d->late, op)))
        op = op->next;
    d->end = op;
    for (int i = 0; op != body->last && i < 2; i++)
        for (Op *by = op_operand(op, i)->op;
             by && by->parent == body && map_has(&d->needs, by) &&
             (is_view(by) || by->kind == OP_TRANS || by->kind == OP_FTRUNC);
             by = op_operand(by, 0)->op)
            if (op_before(by, d->end))
                d->end = by;
}

/* Finds dots in between whose results are not needed before that place. */
static void
find_moved(Delay *d)
{
    Map moved;
    map_init(&moved, &d->s->tmp);
    for (Op *op = d->end; op != d->first; op = op->prev) {
        Op *wait = op_is_async_dot(op) && op != d->end ? dot_full_wait(op) : NULL;
        bool needed = !wait || map_has(&d->needs, op) || map_has(&d->late, op);
        if (needed)
            continue;
        value_each_use(&wait->results[0], u)
            needed |= u->user->parent != op->parent ||
                      (op_before(u->user, d->end) && !map_has(&moved, u->user));
        if (!needed)
            map_set(&moved, op, op);
    }
    region_each(d->loop->regions[0], op)
        if (map_has(&moved, op))
            vec_push(&d->s->tmp, &d->moved, op);
}

bool
delay_plan(Delay *d, const char **why)
{
    *why = NULL;
    if (attr_has(&d->loop->attrs, ATTR_DOTS_STAY) || pipeline_of(d->loop).stages < 2 ||
        !loop_step(d->loop))
        return false;
    map_init(&d->needs, &d->s->tmp);
    map_init(&d->light, &d->s->tmp);
    map_init(&d->late, &d->s->tmp);
    map_init(&d->again, &d->s->tmp);
    map_init(&d->begin, &d->s->tmp);
    if (!find_first(d) || !find_late(d))
        return false;
    *why = why_not(d);
    if (*why)
        return false;
    find_end(d);
    find_moved(d);
    return true;
}
