/* A loop carries an accumulator in flight; it is waited for only in arms of conditions
   that read it, and behind the loop.

       %s = for .. (%acc = %zero) {            %o = wgmma_open %zero
         %r = wgmma %a, %b, %acc               %t = for .. (%acc = %o) : async<..> {
         %x = wgmma_wait %r {pending=0}          %r = wgmma %a, %b, %acc
         %y = if %last {                         %y = if %last : async<..> {
           store %p, %x                  =>        %x = wgmma_wait %r {pending=0}
           yield %zero                             store %p, %x
         } else {                                  %z = wgmma_open %zero
           yield %x                                yield %z
         }                                       } else {
         yield %y                                  yield %r
       }                                         }
                                                 yield %y
                                               }
                                               %s = wgmma_wait %t {pending=0}

   A select by a scalar becomes a condition, because a select would read the registers. A
   condition that reads the accumulator gets it as an additional result, so that the paths
   with and without the wait end in the same registers. */
#include "passes/schedule/carry_accumulator.h"

#include "ir/analysis/accumulator.h"
#include "ir/analysis/async_dot.h"
#include "ir/edit.h"

typedef struct Carry {
    Op *dot, *wait; /* the last dot that adds to it, whose wait is removed */
    Op *at;         /* current op of the loop body */
} Carry;

Op *
build_dot_wait(Builder *b, Value **dots, int n, int64_t pending)
{
    AttrList attrs = {0};
    attr_set_int(&b->s->mod, &attrs, ATTR_PENDING, pending);
    return build_op(b, OP_WGMMA_WAIT, dots, n, &attrs, NULL, n);
}

static Value *
open_at(Builder *b, Value *tile)
{
    return &build_op(b, OP_WGMMA_OPEN, &tile, 1, NULL, NULL, 1)->results[0];
}

/* Dots issued between c->dot and the op c->at, in whose arm it is waited for. Only those
   of the loop body count, because those in arms may not have been issued. */
static int
begun_since(const Carry *c)
{
    const Op *dot = c->dot, *first = dot->parent->first;
    return op_before(dot, c->at)
               ? dots_between(dot->next, c->at)
               : dots_between(first, c->at) + dots_between(dot->next, NULL);
}

/* Replaces the uses of `name` by v, in the block of op from op on. */
static void
replace_from(Value *name, Value *v, const Op *op)
{
    for (Use *u = name->uses, *next; u; u = next) {
        const Op *user = op_in_region(u->user, op->parent);
        next = u->next;
        if (user && (user == op || op_before(op, user)))
            op_set_operand(u->user, u->index, v);
    }
}

static bool
is_used_in(const Value *v, const Op *op)
{
    value_each_use(v, u) if (op_in_region(u->user, op->parent) == op) return true;
    return false;
}

/* Turns a select into a condition. */
static Op *
as_if(Op *select)
{
    Builder b = builder_before(select);
    b.loc = select->loc;
    const Op *splat = op_operand(select, 0)->op;
    Op *to = build_if(&b, op_operand(splat, 0), &select->results[0].type, 1);
    for (int k = 0; k < 2; k++) {
        Builder in = builder_at_end(b.func, to->regions[k]);
        Value *v = op_operand(select, k + 1);
        in.loc = select->loc;
        build_yield(&in, &v, 1);
    }
    to->results[0].name = select->results[0].name;
    value_replace(&select->results[0], &to->results[0]);
    op_erase(select);
    return to;
}

static Value *thread(Carry *c, Region *r, Value **name, Value *v, int depth, bool live);

/* Waits for an accumulator that an arm does not yield: its registers get reused. */
static void
drop_at(const Carry *c, Op *yield, Value *sums)
{
    Builder b = builder_before(yield);
    b.loc = yield->loc;
    if (sums->type->kind == TY_ASYNC)
        build_dot_wait(&b, &sums, 1, begun_since(c));
}

/* Makes what an arm yields a value in flight; `sums` is the accumulator in that arm. */
static Value *
in_flight(const Carry *c, Op *yield, Value *v, Value *sums)
{
    Builder b = builder_before(yield);
    b.loc = yield->loc;
    if (v != sums)
        drop_at(c, yield, sums);
    return v->type->kind == TY_ASYNC ? v : open_at(&b, v);
}

static bool
is_used_behind(const Value *v, const Op *op)
{
    value_each_use(v, u)
    {
        const Op *user = op_in_region(u->user, op->parent);
        if (user && op_before(op, user))
            return true;
    }
    return false;
}

/* Turns a select of v by the condition of op into a result of op, if it stands behind op
   and nothing in between uses v. */
static void
take_select(Op *op, Value *v)
{
    Op *select = NULL;
    value_each_use(v, u)
    {
        Op *user = op_in_region(u->user, op->parent);
        if (user && op_before(op, user) && (!select || op_before(user, select)))
            select = user;
    }
    if (!select || !select_is_scalar(select) ||
        op_operand(op_operand(select, 0)->op, 0) != op_operand(op, 0))
        return;
    Value *then = op_operand(select, 1), *other = op_operand(select, 2);
    const Value *new = then == v ? other : then;
    if (new->op && new->op->parent == op->parent && !op_before(new->op, op))
        return;
    value_replace(&select->results[0], if_carry(op, then, other));
    op_erase(select);
}

/* Threads the accumulator through a condition; the value that holds it behind. */
static Value *
thread_if(Carry *c, Op *op, Value **name, Value *v, int depth, bool live)
{
    Value *end[2];
    int at = accumulator_result(op, *name);
    bool waited = v->type->kind == TY_TILE;
    live = at < 0 && (live || is_used_behind(*name, op));
    for (int k = 0; k < 2; k++) {
        Value *last = *name;
        Op *yield = op->regions[k]->last;
        end[k] = thread(c, op->regions[k], &last, v, depth + 1, live);
        if (at >= 0 && op_operand(yield, at) == last)
            op_set_operand(yield, at, end[k]);
    }
    int reads = end[0] != v ? 0 : 1;
    if (at < 0 && (waited || end[reads] == v))
        return v;
    for (int k = 0; k < 2 && !waited; k++) {
        Op *yield = op->regions[k]->last;
        if (at >= 0)
            op_set_operand(yield, at,
                           in_flight(c, yield, op_operand(yield, at), end[k]));
        else if (live)
            end[k] = in_flight(c, yield, end[k], end[k]);
        else
            drop_at(c, yield, end[k]);
    }
    if (at < 0)
        return live ? if_carry(op, end[0], end[1]) : end[reads];
    *name = &op->results[at];
    value_set_type(*name, v->type);
    return *name;
}

/* Threads the accumulator through a region. v holds it at the start, *name is the value
   that stands for it in the IR. A wait is inserted in front of the first reader; behind
   it v is a tile. Returns what holds it at the end of the region, if it is live there,
   and sets *name. */
static Value *
thread(Carry *c, Region *r, Value **name, Value *v, int depth, bool live)
{
    for (Op *op = r->first, *again; op != r->last; op = again ? again : op->next) {
        bool waited = v->type->kind == TY_TILE;
        again = NULL;
        c->at = depth ? c->at : op;
        if (op == c->wait || !is_used_in(*name, op))
            continue;
        if (op_is_async_dot(op) && !depth) {
            op_set_operand(op, DOT_ACC, v);
            *name = dot_sums(op);
            v = op == c->dot ? &op->results[0] : *name;
        } else if (op->kind == OP_IF) {
            take_select(op, *name);
            v = thread_if(c, op, name, v, depth, live);
        } else if (select_is_scalar(op)) {
            if (!waited)
                again = as_if(op);
            else
                *name = v = &op->results[0];
        } else if (!waited) {
            Builder b = builder_before(op);
            b.loc = op->loc;
            Value *tile = &build_dot_wait(&b, &v, 1, begun_since(c))->results[0];
            replace_from(*name, tile, op);
            *name = v = tile;
            again = op;
        }
    }
    return v;
}

void
carry_accumulator(Op *loop, int i, Op *dot)
{
    Carry c = {.dot = dot, .wait = dot_wait(dot)};
    Region *body = dot->parent;
    Value *arg = body->args[i + 1], *name = arg, *init = op_operand(loop, i + 3);
    Builder b = builder_before(loop);
    b.loc = dot->loc;
    op_set_operand(loop, i + 3, open_at(&b, init));
    value_set_type(arg, dot->results[0].type);
    Value *end = thread(&c, body, &name, arg, 0, true);
    op_set_operand(body->last, i, end);
    op_erase(c.wait);
    Value *r = op_result(loop, i);
    value_set_type(r, dot->results[0].type);
    b = builder_after(loop);
    b.loc = dot->loc;
    Op *done = build_dot_wait(&b, &r, 1, 0);
    value_replace(r, &done->results[0]);
    op_set_operand(done, 0, r);
    done->results[0].name = r->name;
}
