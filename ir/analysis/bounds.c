/* Values of tile IR as linear forms.

   A form says what a value is as a number of mathematics: scalars that are left as they
   are, times constants, plus an interval (the lanes of an `arange`). Arithmetic wraps, so
   an addition is looked into only where the sum provably fits its type, with the same
   facts that the comparison is decided by; else it stays opaque. Where

       for %k = 0, %K, 16 { cmpi (splat (sub %K, %k)) > arange(0, 16) }

   asks for k + 15 - K + 1 <= 0, that K - k does not wrap follows from 0 <= k < K.

   Some scalars are opaque but not unknown (quotients, minima, sums that may wrap): what
   is known of them is added to the facts when they are met first. */
#include "ir/analysis/bounds.h"

#include "ir/analysis/axis_rules.h"
#include "ir/analysis/linear.h"
#include "ir/base/map.h"
#include "ir/base/util.h"

#include <string.h>

enum { DEPTH = 24, STEPS = 600, AGAIN = 128 };

/* A scalar whose definition is among the facts, as far as it is settled. */
typedef struct Defined {
    const Value *v;
    bool settled;
} Defined;

struct Bounds {
    Known known;
    Vec(Defined) defined;
    Map place; /* Value -> its first number in `defined`, from 1 */
};

static Linear form(Bounds *b, const Value *v, int depth);

Bounds *
bounds_new(Axis *axis, Arena *arena)
{
    Bounds *b = arena_new(arena, Bounds);
    b->known = (Known){.arena = arena, .axis = axis};
    map_init(&b->place, arena);
    return b;
}

BoundsMark
bounds_mark(const Bounds *b)
{
    return (BoundsMark){b->known.facts.n, b->defined.n};
}

void
bounds_leave(Bounds *b, BoundsMark m)
{
    b->known.facts.n = m.facts;
    b->defined.n = m.defined;
    int n = b->place.n;
    while (n > 0 && (intptr_t)b->place.entries[n - 1].val > m.defined)
        n--;
    map_truncate(&b->place, n);
}

/* ---- facts about opaque scalars */

static Linear
minus(const Linear *x, const Linear *y)
{
    return linear_add(x, -1, y);
}

/* x <= y + c */
static void
learn(Bounds *b, const Linear *x, const Linear *y, Wide c)
{
    Linear f = minus(x, y);
    f = linear_plus(&f, -c);
    known_add(&b->known, &f);
}

/* x <= y + c? */
static bool
at_most(Bounds *b, const Linear *x, const Linear *y, Wide c)
{
    Linear f = minus(x, y);
    f = linear_plus(&f, -c);
    return known_negative(&b->known, &f);
}

static bool
not_negative(Bounds *b, const Linear *x)
{
    Linear zero = linear_const(0);
    return at_most(b, &zero, x, 0);
}

/* q = n / d toward zero: d q and n are less than d apart, and d q <= n when n >= 0. */
static bool
settle_quotient(Bounds *b, const Op *op, const Linear *q, bool first, int depth)
{
    int64_t d;
    if (!axis_known(axis_of(b->known.axis, op_operand(op, 1)), &d) || d <= 0)
        return true;
    Linear n = form(b, op_operand(op, 0), depth + 1), zero = linear_const(0);
    Linear dq = linear_add(&zero, d, q);
    if (first) {
        learn(b, &dq, &n, d - 1);
        learn(b, &n, &dq, d - 1);
    }
    if (!not_negative(b, &n))
        return false;
    learn(b, &dq, &n, 0);
    return true;
}

/* s = x + c, c > 0, may wrap; then it comes out below every sum that did not. */
static bool
settle_sum(Bounds *b, const Op *op, const Linear *s, int depth)
{
    int64_t c, bits = type_bits(op->results[0].type);
    if (!axis_known(axis_of(b->known.axis, op_operand(op, 1)), &c) || c <= 0)
        return true;
    Linear x = form(b, op_operand(op, 0), depth + 1);
    Linear most = linear_const(axis_of(b->known.axis, op_operand(op, 0))->hi);
    if (!at_most(b, &most, s, ((Wide)1 << bits) - c - 1))
        return false;
    learn(b, s, &x, c);
    x = linear_plus(&x, c);
    learn(b, &x, s, 0);
    return true;
}

/* Learns what can be learnt of v now; true when there will be no more. */
static bool
settle(Bounds *b, const Value *v, bool first, int depth)
{
    const Op *op = v->op;
    Linear self = linear_of(v);
    bool least = op->kind == OP_MINS;
    switch ((int)op->kind) {
    case OP_DIVS: return settle_quotient(b, op, &self, first, depth);
    case OP_ADD: return settle_sum(b, op, &self, depth);
    case OP_MINS:
    case OP_MAXS:
        for (int i = 0; i < 2; i++) {
            Linear x = form(b, op_operand(op, i), depth + 1);
            learn(b, least ? &self : &x, least ? &x : &self, 0);
        }
        return true;
    case OP_HINT: { /* equal, and known to be a multiple of more */
        Linear x = form(b, op_operand(op, 0), depth + 1);
        learn(b, &self, &x, 0);
        learn(b, &x, &self, 0);
        return true;
    }
    default: return true;
    }
}

static void
define(Bounds *b, const Value *v, int depth)
{
    if (map_has(&b->place, v))
        return;
    int at = b->defined.n;
    map_set(&b->place, v, (void *)(intptr_t)(at + 1));
    vec_push(b->known.arena, &b->defined, ((Defined){.v = v, .settled = true}));
    bool done = settle(b, v, true, depth);
    b->defined.at[at].settled = done;
}

/* More facts may settle what did not settle before; the youngest are looked at, so that
   time does not grow with the square of a program. */
static void
settle_again(Bounds *b)
{
    int n = b->defined.n; /* what is met now is settled with what is known now */
    for (int i = n > AGAIN ? n - AGAIN : 0; i < n; i++) {
        if (b->defined.at[i].settled)
            continue;
        /* Said anew, so that it is forgotten with the facts that it rests on. */
        if (settle(b, b->defined.at[i].v, false, 0))
            vec_push(b->known.arena, &b->defined,
                     ((Defined){.v = b->defined.at[i].v, .settled = true}));
    }
}

/* ---- forms */

static Linear
opaque(Bounds *b, const Value *v, int depth)
{
    const AxisFacts *f = axis_of(b->known.axis, v);
    if (type_is_tile(v->type) || f->lo == f->hi)
        return linear_between(f->lo, f->hi);
    if (v->op && depth < DEPTH)
        define(b, v, depth);
    return linear_of(v);
}

static bool
fits(Bounds *b, const Linear *f, const Type *t)
{
    int bits = type_bits(t);
    Linear most = linear_const(((Wide)1 << (bits - 1)) - 1);
    Linear least = linear_const(-((Wide)1 << (bits - 1)));
    return f->valid && at_most(b, f, &most, 0) && at_most(b, &least, f, 0);
}

static Linear
arithmetic(Bounds *b, const Value *v, int depth)
{
    const Op *op = v->op;
    Linear none = linear_const(0), f = none;
    int64_t c;
    if (op->kind == OP_ADD || op->kind == OP_SUB) {
        f = form(b, op_operand(op, 0), depth + 1);
        Linear y = form(b, op_operand(op, 1), depth + 1);
        f = linear_add(&f, op->kind == OP_ADD ? 1 : -1, &y);
    } else {
        const AxisFacts *by = axis_of(b->known.axis, op_operand(op, 1));
        bool shift = op->kind == OP_SHL;
        if (!axis_known(by, &c) || (shift && (c < 0 || c > 32)))
            return opaque(b, v, depth);
        Linear x = form(b, op_operand(op, 0), depth + 1);
        f = linear_add(&none, shift ? (Wide)1 << c : c, &x);
    }
    return attr_has(&op->attrs, ATTR_NOWRAP) || fits(b, &f, v->type)
               ? f
               : opaque(b, v, depth);
}

/* A carried scalar that every iteration adds a constant to moves with the iteration:
   first value + (iv - lo) * constant / step. */
static Linear
carried(Bounds *b, const Value *v, int depth)
{
    const Op *loop = v->region->parent;
    if (!loop || loop->kind != OP_FOR || v->index == 0 || type_is_tile(v->type))
        return opaque(b, v, depth);
    const Value *last = op_operand(v->region->last, v->index - 1);
    const Op *next = last->op;
    int64_t by, step;
    if (last == v)
        return form(b, op_operand(loop, 2 + v->index), depth + 1);
    if (!next || (next->kind != OP_ADD && next->kind != OP_SUB) ||
        op_operand(next, 0) != v ||
        !axis_known(axis_of(b->known.axis, op_operand(next, 1)), &by) ||
        !axis_known(axis_of(b->known.axis, op_operand(loop, 2)), &step) || step <= 0 ||
        by % step != 0)
        return opaque(b, v, depth);
    by = next->kind == OP_SUB ? -(by / step) : by / step;
    Linear lo = form(b, op_operand(loop, 0), depth + 1);
    Linear iv = form(b, v->region->args[0], depth + 1);
    Linear f = form(b, op_operand(loop, 2 + v->index), depth + 1);
    Linear trips = minus(&iv, &lo);
    f = linear_add(&f, by, &trips);
    return fits(b, &f, v->type) ? f : opaque(b, v, depth);
}

static Linear
form(Bounds *b, const Value *v, int depth)
{
    const Op *op = v->op;
    if (!type_is_int(v->type) || type_bits(v->type) == 1)
        return (Linear){.valid = false};
    if (depth > DEPTH || b->known.budget <= 0)
        return opaque(b, v, DEPTH);
    if (!op)
        return carried(b, v, depth);
    switch ((int)op->kind) {
    case OP_SPLAT:
    case OP_BROADCAST:
    case OP_EXPAND_DIMS:
    case OP_RESHAPE:
    case OP_TRANS:
    case OP_CONVERT_LAYOUT:
    case OP_SEXT: {
        const Value *from = op_operand(op, 0);
        bool flag = type_bits(from->type) == 1;
        return flag ? opaque(b, v, depth) : form(b, from, depth + 1);
    }
    case OP_ZEXT:
    case OP_TRUNC: {
        Linear f = form(b, op_operand(op, 0), depth + 1);
        bool same = f.valid &&
                    (op->kind == OP_TRUNC ? fits(b, &f, v->type) : not_negative(b, &f));
        return same ? f : opaque(b, v, depth);
    }
    case OP_ADD:
    case OP_SUB:
    case OP_MUL:
    case OP_SHL: return arithmetic(b, v, depth);
    default: return opaque(b, v, depth);
    }
}

/* ---- conditions */

/* The comparison as x <= y + c: pred with sign or without. False for eq and ne. */
static bool
as_at_most(const char *pred, bool holds, bool *swap, int *c)
{
    static const struct {
        const char *pred;
        bool swap;
        int c;
    } all[] = {{"lt", false, -1}, {"le", false, 0}, {"gt", true, -1}, {"ge", true, 0}};
    for (int i = 0; i < COUNT_OF(all); i++) {
        if (strcmp(pred + 1, all[i].pred) != 0)
            continue;
        *swap = all[i].swap == holds; /* not (x <= y) is y <= x - 1 */
        *c = holds ? all[i].c : -1 - all[i].c;
        return true;
    }
    return false;
}

static void
learn_compare(Bounds *b, const Op *cmp, bool holds)
{
    const char *pred = attr_str(&cmp->attrs, ATTR_PRED);
    Linear x = form(b, op_operand(cmp, 0), 0), y = form(b, op_operand(cmp, 1), 0);
    bool swap;
    int c;
    if (!pred || !x.valid || !y.valid)
        return;
    if (strcmp(pred, holds ? "eq" : "ne") == 0) {
        learn(b, &x, &y, 0);
        learn(b, &y, &x, 0);
        return;
    }
    if (!as_at_most(pred, holds, &swap, &c))
        return;
    const Linear *low = swap ? &y : &x, *high = swap ? &x : &y;
    if (pred[0] == 'u') { /* as signed ones where the larger is not negative */
        Linear zero = linear_const(0);
        if (!not_negative(b, high))
            return;
        learn(b, &zero, low, 0);
    }
    learn(b, low, high, c);
}

static void
assume(Bounds *b, const Value *cond, bool holds, int depth)
{
    const Op *op = cond->op;
    if (!op || type_is_tile(cond->type) || depth > DEPTH)
        return;
    if (op->kind == OP_CMPI) {
        learn_compare(b, op, holds);
    } else if (op->kind == (holds ? OP_AND : OP_OR)) {
        assume(b, op_operand(op, 0), holds, depth + 1);
        assume(b, op_operand(op, 1), holds, depth + 1);
    }
}

void
bounds_assume(Bounds *b, const Value *cond, bool holds)
{
    b->known.budget = STEPS;
    assume(b, cond, holds, 0);
    settle_again(b);
}

void
bounds_assume_below(Bounds *b, const Value *x, int64_t c, const Value *y)
{
    b->known.budget = STEPS;
    Linear fx = form(b, x, 0), fy = form(b, y, 0);
    learn(b, &fx, &fy, -(Wide)c);
    settle_again(b);
}

static void
enter_loop(Bounds *b, const Op *op)
{
    const AxisFacts *step = axis_of(b->known.axis, op_operand(op, 2));
    Linear iv = linear_of(op->regions[0]->args[0]);
    b->known.budget = STEPS;
    Linear lo = form(b, op_operand(op, 0), 0), hi = form(b, op_operand(op, 1), 0);
    if (step->lo > 0) {
        learn(b, &lo, &iv, 0);
        learn(b, &iv, &hi, -1);
    } else if (step->hi < 0) {
        learn(b, &iv, &lo, 0);
        learn(b, &hi, &iv, -1);
    }
    settle_again(b);
}

void
bounds_enter(Bounds *b, const Op *op, int i)
{
    if (op->kind == OP_FOR)
        enter_loop(b, op);
    else if (op->kind == OP_IF)
        bounds_assume(b, op_operand(op, 0), i == 0);
}

int
bounds_compare(Bounds *b, const Op *cmp)
{
    const char *pred = attr_str(&cmp->attrs, ATTR_PRED);
    b->known.budget = STEPS;
    Linear x = form(b, op_operand(cmp, 0), 0), y = form(b, op_operand(cmp, 1), 0);
    bool swap;
    int c;
    if (!pred || !x.valid || !y.valid)
        return -1;
    if (strcmp(pred, "eq") == 0 || strcmp(pred, "ne") == 0) {
        if (at_most(b, &x, &y, -1) || at_most(b, &y, &x, -1))
            return pred[0] == 'n';
        return at_most(b, &x, &y, 0) && at_most(b, &y, &x, 0) ? pred[0] == 'e' : -1;
    }
    if (!as_at_most(pred, true, &swap, &c))
        return -1;
    if (pred[0] == 'u' && (!not_negative(b, &x) || !not_negative(b, &y)))
        return -1;
    const Linear *low = swap ? &y : &x, *high = swap ? &x : &y;
    if (at_most(b, low, high, c))
        return 1;
    return at_most(b, high, low, -1 - c) ? 0 : -1;
}
