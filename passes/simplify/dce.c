/* Dead code: pure operations without uses; results of structured ops that nothing uses;
   values carried by a loop that only feed themselves.

       %x, %y = for ... (%a = .., %b = ..) { ... yield %a1, %b1 }     // %y unused
     =>
       %x = for ... (%a = ..) { ... yield %a1 }        // when %b feeds nothing but %b1

   Liveness is marked from effects backwards, so that cycles through loops die as well. */
#include "ir/base/map.h"
#include "ir/base/util.h"
#include "ir/base/vec.h"
#include "ir/edit.h"
#include "passes/pass.h"

typedef struct Dce {
    Arena *tmp;
    Map live;          /* Value or Op -> itself */
    Vec(Value *) todo; /* live values whose origin is still to be visited */
} Dce;

static void mark_op(Dce *d, Op *op);

static void
mark_value(Dce *d, Value *v)
{
    if (map_has(&d->live, v))
        return;
    map_set(&d->live, v, v);
    vec_push(d->tmp, &d->todo, v);
}

static Value *
yielded(const Region *r, int i)
{
    return op_operand(r->last, i);
}

/* What result i of a structured op depends on. */
static void
mark_result(Dce *d, Op *op, int i)
{
    switch ((int)op->kind) {
    case OP_IF:
        for (int r = 0; r < op->nregion; r++)
            mark_value(d, yielded(op->regions[r], i));
        break;
    case OP_FOR:
        mark_value(d, op_operand(op, 3 + i));
        mark_value(d, yielded(op->regions[0], i));
        break;
    default: /* reduce, scan, while: mark_op keeps all operands and terminators */ break;
    }
    mark_op(d, op);
}

static void
mark_arg(Dce *d, Value *v)
{
    Op *op = v->region->parent;
    if (!op)
        return; /* kernel parameter */
    mark_op(d, op);
    if (op->kind == OP_FOR && v->index > 0) {
        mark_value(d, op_operand(op, 3 + v->index - 1));
        mark_value(d, yielded(op->regions[0], v->index - 1));
    }
}

/* Ops whose yields live only as far as their results do. A while keeps all it carries: it
   is rare, and its two regions would make the cutting below twice as long. */
static bool
yields_by_result(const Op *op)
{
    return op && (op->kind == OP_FOR || op->kind == OP_IF);
}

/* An op that stays keeps its enclosing ops and its plain operands. Inits and yields of
   loops stay only for live carried values, see mark_result. */
static void
mark_op(Dce *d, Op *op)
{
    while (op && !map_has(&d->live, op)) {
        map_set(&d->live, op, op);
        int fixed = op->noperand;
        if (op->kind == OP_FOR)
            fixed = 3;
        else if (op->kind == OP_YIELD && yields_by_result(op->parent->parent))
            fixed = 0;
        for (int i = 0; i < fixed; i++)
            mark_value(d, op_operand(op, i));
        for (int r = 0; r < op->nregion; r++)
            if (op->regions[r]->last)
                mark_op(d, op->regions[r]->last);
        op = op->parent->parent;
    }
}

static void
mark_roots(Dce *d, Region *r, int depth)
{
    if (depth > MAX_REGION_DEPTH)
        return;
    region_each(r, op)
    {
        for (int i = 0; i < op->nregion; i++)
            mark_roots(d, op->regions[i], depth + 1);
        bool root = op->nregion ? false : !op_is(op, T_PURE) && !op_is(op, T_TERMINATOR);
        if (root && op->kind == OP_LOAD && !attr_has(&op->attrs, ATTR_VOLATILE))
            root = false; /* a read that nobody looks at */
        if (root) {
            OpEffects fx = op_effects(op);
            root = fx.writes || fx.keep || fx.convergent ||
                   attr_has(&op->attrs, ATTR_VOLATILE);
        }
        if (root || op->kind == OP_RETURN || op->kind == OP_WHILE)
            mark_op(d, op); /* a while may not end: it stays */
    }
}

static void
flush(Dce *d)
{
    while (d->todo.n) {
        Value *v = d->todo.at[--d->todo.n];
        if (!v->op)
            mark_arg(d, v);
        else if (v->op->nregion)
            mark_result(d, v->op, v->index);
        else
            mark_op(d, v->op);
    }
}

/* Is carried value i of a live loop dead everywhere? */
static bool
carried_dead(const Dce *d, const Op *op, int i)
{
    if (map_has(&d->live, &op->results[i]))
        return false;
    const Region *body = op->regions[0];
    return !map_has(&d->live, body->args[body->narg - op->nresult + i]);
}

/* Results of an if that nobody reads: their yields go before the arms are swept, so that
   what they kept alive dies in the same run. */
static bool
shrink_if(const Dce *d, Op *op)
{
    bool changed = false;
    for (int i = op->nresult - 1; i >= 0; i--) {
        if (map_has(&d->live, &op->results[i]) || op->results[i].uses)
            continue;
        op_drop_operand(op->regions[0]->last, i);
        op_drop_operand(op->regions[1]->last, i);
        op_drop_result(op, i);
        changed = true;
    }
    return changed;
}

/* A dead carried value first yields its own argument, which cuts the chain that computed
   the next one; once the body is swept, nothing but that yield reads the argument. */
static void
cut_carried(const Dce *d, Op *op)
{
    Region *body = op->regions[0];
    for (int i = 0; i < op->nresult; i++)
        if (carried_dead(d, op, i))
            op_set_operand(body->last, i, body->args[body->narg - op->nresult + i]);
}

static bool
shrink_carried(const Dce *d, Op *op)
{
    bool changed = false;
    Region *body = op->regions[0];
    for (int i = op->nresult - 1; i >= 0; i--) {
        int arg = body->narg - op->nresult + i;
        if (!carried_dead(d, op, i) || op->results[i].uses)
            continue;
        const Use *u = body->args[arg]->uses;
        if (!u || u->user != body->last || u->next)
            continue;
        op_drop_operand(body->last, i);
        op_drop_operand(op, 3 + i);
        region_drop_arg(body, arg);
        op_drop_result(op, i);
        changed = true;
    }
    return changed;
}

static bool
sweep(const Dce *d, Region *r, int depth)
{
    bool changed = false;
    if (depth > MAX_REGION_DEPTH)
        return false;
    for (Op *op = r->last, *prev; op; op = prev) {
        prev = op->prev;
        if (op_is(op, T_TERMINATOR))
            continue;
        if (!map_has(&d->live, op)) {
            if (op_has_uses(op))
                continue;
            op_erase(op);
            changed = true;
            continue;
        }
        if (op->kind == OP_IF)
            changed |= shrink_if(d, op);
        if (op->kind == OP_FOR)
            cut_carried(d, op);
        for (int i = 0; i < op->nregion; i++)
            changed |= sweep(d, op->regions[i], depth + 1);
        if (op->kind == OP_FOR)
            changed |= shrink_carried(d, op);
    }
    return changed;
}

bool
pass_dce(Func *f, PassCx *cx)
{
    Dce d = {.tmp = &cx->s->tmp};
    map_init(&d.live, d.tmp);
    mark_roots(&d, f->body, 0);
    flush(&d);
    return sweep(&d, f->body, 0);
}
