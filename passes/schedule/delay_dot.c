/* A dot at the end of an iteration whose result is only stored runs in the next iteration
   instead, beside the first dot of that one: one stage later in terms of software
   pipelining.

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
   an H200: 128 dimensions 9.4 ms, 11.3 the other way round, 64 dimensions with two
   programs 11.6, 12.5 the other way round).

   This is correct because the loop writes nothing else, and reads nothing through the
   parameters that the delayed stores write. Loops with branches stay as they are, and so
   do dots that read buffers which the next iteration fills again. */
#include "passes/schedule/delay_dot.h"

#include "ir/analysis/async_dot.h"
#include "ir/base/util.h"
#include "ir/build.h"
#include "ir/edit.h"
#include "ir/fold.h"
#include "ir/loop.h"
#include "passes/pass.h"

#include <string.h>

bool pass_delay_dot(Func *f, PassCx *cx);

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
    bool there = from && (value_outside(from, begin->parent) || !from->op ||
                          (from->op->parent == begin->parent &&
                           op_before(from->op, begin)));
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

static void
move_dots(Delay *d, Op *where)
{
    for (int i = 0; i < d->moved.n; i++) {
        Op *dot = d->moved.at[i], *wait = dot_full_wait(dot);
        op_move_before(dot, where);
        op_move_before(wait, where);
        fold_sum(first_of(dot), wait);
    }
}

/* ---- the loop */

static Value *
zero(Builder *b, const Type *t)
{
    return type_is_float(type_elem(t)) ? build_float(b, t, 0) : build_int(b, t, 0);
}

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

/* Makes op write only if `cond` holds. An atomic addition is not masked but adds a
   neutral value, which costs a select per element: ptxas turns each masked atomic into a
   branch, and moves nothing over branches. */
static void
store_if(const Delay *d, Op *op, Value *cond)
{
    Builder b = builder_before(op);
    Value *to = op_operand(op, 0), *v = op_operand(op, 1), *mask = cond;
    b.loc = op->loc;
    if (type_is_tile(to->type))
        mask = build_splat(&b, cond, type_like(b.s->types, to->type, cond->type));
    Value *none = op->noperand > 2 || d->anywhere ? NULL : neutral(&b, op);
    if (none)
        op_set_operand(op, 1, build_select(&b, mask, v, none));
    else if (op->noperand > 2)
        op_set_operand(op, 2, build_binary(&b, OP_AND, op_operand(op, 2), mask));
    else
        op_add_operand(op, mask);
}

/* Behind the loop, runs the delayed ops of the last iteration. */
static void
finish(Delay *d, int carried)
{
    Op *loop = d->loop;
    Builder b = builder_after(loop);
    b.loc = loop->loc;
    Value *any = build_loop_reaches(&b, loop, 0);
    Op *cond = build_if(&b, any, NULL, 0);
    Builder in = builder_at_end(b.func, cond->regions[0]);
    Map map;
    map_init(&map, &d->s->tmp);
    in.loc = loop->loc;
    for (int i = carried; i < loop->nresult; i++)
        map_set(&map, loop->regions[0]->args[1 + i], &loop->results[i]);
    for (int i = 0; i < d->order.n; i++)
        op_clone(&in, d->order.at[i], &map);
    build_yield(&in, NULL, 0);
    in = builder_at_end(b.func, cond->regions[1]);
    build_yield(&in, NULL, 0);
}

static void
use(const Delay *d, const Value *v, Value *by)
{
    for (int k = 0; k < d->order.n; k++)
        for (int n = 0; n < d->order.at[k]->noperand; n++)
            if (op_operand(d->order.at[k], n) == v)
                op_set_operand(d->order.at[k], n, by);
}

/* Makes the loop carry what the delayed ops need from the iteration before. The first
   iteration gets the initial values of the loop, so that its addresses are valid. Returns
   the carried counter of the iteration before, NULL if it is not carried; in the first
   iteration it is that iteration's own. */
static Value *
carry(Delay *d)
{
    Op *loop = d->loop, *yield = loop->regions[0]->last;
    Value *before = NULL;
    for (int i = 0; i < d->cross.n; i++) {
        Value *v = d->cross.at[i];
        Builder b = builder_before(loop);
        b.loc = loop->loc;
        Value *init = v->op           ? zero(&b, v->type)
                      : v->index == 0 ? op_operand(loop, 0)
                                      : op_operand(loop, v->index + 2);
        Value *arg = for_carry(loop, init);
        op_add_operand(yield, v);
        use(d, v, arg);
        if (v == loop->regions[0]->args[0])
            before = arg;
    }
    return before;
}

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
    d->order.n = 0;
    region_each(body, op) if (map_has(&d->late, op)) vec_push(&d->s->tmp, &d->order, op);
    for (int i = d->order.n - 1; i >= 0; i--)
        if (delay_all_users_in(d->order.at[i], &d->begin))
            map_set(&d->begin, d->order.at[i], d->order.at[i]);
}

static void
delay(Delay *d)
{
    repeat_light(d);
    Op *loop = d->loop, *at = d->first, *stored = NULL;
    int carried = loop->nresult;
    Value *iv = loop->regions[0]->args[0], *before = carry(d);
    finish(d, carried);
    for (int i = 0; i < d->order.n; i++) {
        Op *op = d->order.at[i];
        if (op_is_async_dot(op))
            attr_set_flag(&d->s->mod, &op->attrs, ATTR_DELAYED);
        if (map_has(&d->begin, op)) {
            if (at->next != op)
                op_move_before(op, at->next);
            at = op;
        } else {
            op_move_before(op, d->end);
            stored = stored ? stored : op;
        }
    }
    Builder b = builder_before(stored);
    b.loc = loop->loc;
    Value *lo = op_operand(loop, 0);
    Value *later = build_cmp(&b, OP_CMPI, "ne", iv, before ? before : lo);
    for (int i = 0; i < d->order.n; i++)
        if (delay_writes(d->order.at[i]))
            store_if(d, d->order.at[i], later);
    move_dots(d, d->alone ? stored : d->end);
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
    region_each(r, op)
    {
        bool roles = op->kind == OP_WARP_SPECIALIZE;
        for (int i = 0; i < op->nregion && !roles; i++)
            changed |= visit(f, cx, op->regions[i]);
        if (op->kind == OP_FOR)
            changed |= visit_loop(f, cx, op);
    }
    return changed;
}

bool
pass_delay_dot(Func *f, PassCx *cx)
{
    return cx->target.wgmma && visit(f, cx, f->body);
}
