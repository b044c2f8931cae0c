/* A dot at the end of an iteration whose result is only stored runs in the next iteration
   instead, beside the first dot of that one: its ops get stage 1 of the loop's schedule
   (rotation.h).

       for %i {                                for %i (%e = 0, %j = lo) {
         %s = dot %k, q[%i]                      %s = dot %k, q[%i]
         %p = f(%s)                              %r = dot %e, %k
         %t = dot %v, o[%i]               =>     %p = f(%s)
         %x = dot %p, o[%i], %x                  %t = dot %v, o[%i]
         %d = g(%p, %t)                          atomic_add c[%j], %r if %i != lo
         %r = dot %d, %k                         %x = dot %p, o[%i], %x
         atomic_add c[%i], %r                    %d = g(%p, %t)
       }                                         yield %d, %i
                                               }
                                               if lo < hi { %r = dot %e, %k  .. }

   Only %s is waited for where f begins, so the tensor cores have work meanwhile, and the
   threads that store %r do not wait for it. The first iteration multiplies zeros and
   stores nothing.

   Dots that do not need %s, such as %t above, are issued where the work on %s ends:
   otherwise their accumulators would be live together with that of the delayed dot.
   Vectors that are added to their results are known by then, so they become initial
   accumulators (fold_accumulator.c does the same for other tiles). If the program is
   alone on its SM, these dots are issued before the result of the delayed dot is stored;
   of several programs one stores while another multiplies (attention backward, 16384 on
   an H200, tests/gpu/compare.py, 2026-11-22: 128 dimensions 9.4 ms, 11.3 the other way
   round, 64 dimensions with two programs 11.6, 12.5 the other way round).

   This is correct because the loop writes nothing else, and reads nothing through the
   parameters that the delayed stores write. Loops with branches stay as they are, and so
   do dots that read buffers which the next iteration fills again. */
#include "passes/schedule/delay_dot.h"

#include "ir/analysis/async_dot.h"
#include "ir/base/util.h"
#include "ir/build.h"
#include "ir/edit.h"
#include "ir/fold.h"
#include "passes/pass.h"
#include "passes/schedule/rotation.h"

/* ---- what is added to the result of a dot that moves */

/* The vector or scalar that v broadcasts; NULL: it does not. */
static Value *
repeated(Value *v)
{
    bool repeats = false;
    while (v->op && (v->op->kind == OP_BROADCAST || v->op->kind == OP_SPLAT ||
                     v->op->kind == OP_EXPAND_DIMS || v->op->kind == OP_CONVERT_LAYOUT)) {
        repeats |= v->op->kind == OP_BROADCAST || v->op->kind == OP_SPLAT;
        v = op_operand(v->op, 0);
    }
    return repeats ? v : NULL;
}

/* v, which broadcasts `from`, made to broadcast `by` instead, at b. */
static Value *
repeat(Builder *b, Value *v, Value *from, Value *by)
{
    if (v == from)
        return by;
    Map map;
    map_init(&map, &b->s->tmp);
    Value *in = repeat(b, op_operand(v->op, 0), from, by);
    map_set(&map, op_operand(v->op, 0), in);
    return &op_clone(b, v->op, &map)->results[0];
}

/* Makes what is added to the result of `wait` the accumulator of `begin`, the first of
   the dots that add up to it. */
static void
fold_sum(Op *begin, Op *wait)
{
    Op *add = value_only_user(&wait->results[0]);
    bool sub = add && add->kind == OP_SUBF;
    if (!add || (!sub && add->kind != OP_ADDF) ||
        !value_is_zero(op_operand(begin, DOT_ACC)) || dot_of_fp8(begin) ||
        attr_has(&begin->attrs, ATTR_PART) || (sub && wait->results[0].uses->index))
        return;
    Value *x = op_operand(add, 1 - wait->results[0].uses->index), *from = repeated(x);
    bool there =
        from && (value_outside(from, begin->parent) || !from->op ||
                 (from->op->parent == begin->parent && op_before(from->op, begin)));
    if (!there)
        return;
    Builder b = builder_before(begin);
    b.loc = add->loc;
    Value *by = sub ? build_unary(&b, OP_NEGF, from) : from;
    op_set_operand(begin, 2, repeat(&b, x, from, by));
    wait->results[0].name = add->results[0].name;
    value_replace(&add->results[0], &wait->results[0]);
    op_erase(add);
}

/* The first of a chain of dots, each of which adds to the result of the one before. */
static Op *
first_of(Op *dot)
{
    for (Op *before = dot; before; before = dot_added_to(before))
        dot = before;
    return dot;
}

static bool
is_moved(const Delay *d, const Op *op)
{
    const Op *dot = op_is_dot_wait(op) ? wait_dot(op) : op;
    for (int i = 0; i < d->moved.n; i++)
        if (d->moved.at[i] == dot)
            return true;
    return false;
}

/* Moves dots to where the work on the first ends. Returns the op in front of which the
   results of the delayed dots are stored. */
static Op *
move_dots(Delay *d)
{
    Op *front = d->end->prev;
    while (is_moved(d, front))
        front = front->prev;
    for (int i = 0; i < d->moved.n; i++) {
        Op *dot = d->moved.at[i], *wait = dot_full_wait(dot);
        op_move_before(dot, d->end);
        op_move_before(wait, d->end);
        fold_sum(first_of(dot), wait);
    }
    return d->alone ? d->end : front->next;
}

/* ---- the loop */

/* Duplicates what both iterations compute from their counters. */
static void
repeat_light(Delay *d)
{
    Region *body = d->loop->regions[0];
    for (Op *op = body->last; op; op = op->prev) {
        if (!map_has(&d->again, op))
            continue;
        Map map;
        map_init(&map, &d->s->tmp);
        Builder b = builder_after(op);
        b.loc = op->loc;
        Op *copy = op_clone(&b, op, &map);
        map_set(&d->late, copy, copy);
        for (Op *in = copy->next; in; in = in->next)
            for (int i = 0; map_has(&d->late, in) && i < in->noperand; i++)
                if (op_operand(in, i)->op == op)
                    op_set_operand(in, i, &copy->results[op_operand(in, i)->index]);
    }
    for (Op *op = body->last; op; op = op->prev)
        if (map_has(&d->late, op) && delay_all_users_in(op, &d->begin))
            map_set(&d->begin, op, op);
}

/* Writes the schedule: the first dot; the delayed ones; the work on the first; what is
   stored; the rest. */
static void
delay(Delay *d)
{
    enum { FIRST, DELAYED, WORK, STORES, REST };
    int order = FIRST;
    repeat_light(d);
    const Op *rest = move_dots(d);
    region_each(d->loop->regions[0], op) {
        if (op_is(op, T_TERMINATOR))
            break;
        if (op == rest)
            order = REST;
        if (map_has(&d->late, op))
            rotation_set(d->s, op, 1, map_has(&d->begin, op) ? DELAYED : STORES);
        else
            rotation_set(d->s, op, 0, order);
        if (op == d->first)
            order = WORK;
        if (map_has(&d->late, op) && op_is_async_dot(op))
            attr_set_flag(&d->s->mod, &op->attrs, ATTR_DELAYED);
    }
}

static void
say_why(Delay *d, const char *why)
{
    const char *text =
        arena_printf(&d->s->tmp, "not delayed to the next iteration, %s", why);
    for (int i = 0; i < d->order.n; i++)
        if (op_is_async_dot(d->order.at[i]))
            attr_set_str(&d->s->mod, &d->order.at[i]->attrs, ATTR_WHY,
                         name_of(&d->s->names, text));
}

static bool
visit_loop(Func *f, PassCx *cx, Op *loop)
{
    Delay d = {.s = cx->s, .f = f, .target = &cx->target, .loop = loop};
    const char *why;
    bool can = delay_plan(&d, &why);
    if (can)
        delay(&d);
    else if (why)
        say_why(&d, why);
    return can || why;
}

static bool
visit(Func *f, PassCx *cx, Region *r)
{
    bool changed = false;
    region_each(r, op) {
        bool roles = op->kind == OP_WARP_SPECIALIZE;
        for (int i = 0; i < op->nregion && !roles; i++)
            changed |= visit(f, cx, op->regions[i]);
        if (op->kind == OP_FOR && !loop_is_rotated(op))
            changed |= visit_loop(f, cx, op);
    }
    return changed;
}

bool
pass_delay_dot(Func *f, PassCx *cx)
{
    return cx->target.wgmma && visit(f, cx, f->body);
}
