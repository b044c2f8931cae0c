/* Loads in loops of dots whose elements repeat: each address is loaded once.

       %k = divs %r, splat(8)             // 0 x 8, 1 x 8, ..
       %p = addptr %q, %k * %n            %p' = addptr %q', arange(8) * %n
       %x = load %p : tile<64x64>    =>   %x' = load %p' : tile<8x64>
                                          %x = reshape (broadcast (reshape %x')),
                                               8x1x64 to 8x8x64 to 64x64

   Packed weights, with eight rows in one word, and scales of blocks are loaded so. A
   stage of the pipelined loop then takes an eighth of the shared memory and of the
   copies, and the smaller tile is often one that TMA can load. A tile of one address
   becomes one element.

   ir/analysis/axis.c says which elements repeat (constancy). For the distinct elements,
   every c-th one, the addresses are computed again, back through arithmetic, shape
   operations and values that the loop carries. */
#include "ir/analysis/axis.h"
#include "ir/base/map.h"
#include "ir/base/util.h"
#include "ir/base/vec.h"
#include "ir/build.h"
#include "ir/edit.h"
#include "ir/fold.h"
#include "passes/pass.h"

enum { MOST_DEPTH = 64, MOST_VALUES = 512 };

/* Per dimension of a tile, how many consecutive elements are equal: only every by[d]-th
   one is computed. */
typedef struct Steps {
    int64_t by[MAX_RANK];
} Steps;

/* A value whose distinct elements are wanted. */
typedef struct Done {
    const Value *from;
    Steps steps;
    Value *to; /* its distinct elements; NULL: not built yet */
} Done;

typedef struct Distinct {
    Session *s;
    Vec(Done) done;
} Distinct;

typedef struct Found {
    Op *load;
    Steps steps;
} Found;

typedef struct Find {
    Arena *arena;
    Axis *axis;
    Vec(Found) found;
} Find;

/* ---- which loads */

/* How many elements repeat in a load: as many as in all of its operands. False: none. */
static bool
steps_of(Find *x, const Op *load, Steps *out)
{
    const Type *t = load->results[0].type;
    bool some = false;
    for (int d = 0; d < t->rank; d++) {
        int64_t by = t->shape[d];
        for (int i = 0; i < load->noperand; i++)
            by = min_i64(by, axis_of(x->axis, op_operand(load, i))->constancy[d]);
        out->by[d] = by;
        some |= by > 1;
    }
    return some;
}

/* Is the op in a loop with dots, where loads are pipelined? */
static bool
is_in_dot_loop(const Op *op)
{
    const Op *loop = op->parent->parent;
    return loop && loop->kind == OP_FOR && region_has(op->parent, OP_DOT);
}

static bool
find(void *user, Op *op)
{
    Find *x = user;
    Found f = {.load = op};
    if (op->kind == OP_LOAD && type_is_tile(op->results[0].type) &&
        !attr_has(&op->attrs, ATTR_VOLATILE) && is_in_dot_loop(op) &&
        steps_of(x, op, &f.steps))
        vec_push(x->arena, &x->found, f);
    return false;
}

/* ---- can the distinct elements of a value be computed alone? */

/* The entry for v with these steps; NULL: there is none. */
static Done *
done(const Distinct *x, const Value *v, const Steps *st)
{
    for (int i = 0; i < x->done.n; i++) {
        Done *at = &x->done.at[i];
        bool same = at->from == v;
        for (int d = 0; same && d < v->type->rank; d++)
            same = at->steps.by[d] == st->by[d];
        if (same)
            return at;
    }
    return NULL;
}

/* The steps of the operand of an expand_dims or broadcast whose result has steps st. */
static Steps
steps_below(const Op *op, const Steps *st)
{
    Steps in = *st;
    const Type *from = op_operand(op, 0)->type;
    int axis = (int)attr_int(&op->attrs, ATTR_AXIS, 0);
    for (int d = 0; d < from->rank; d++) {
        if (op->kind == OP_EXPAND_DIMS)
            in.by[d] = st->by[d + (d >= axis)];
        else if (from->shape[d] == 1)
            in.by[d] = 1;
    }
    return in;
}

/* The loop that carries v. */
static Op *
carrier(const Value *v)
{
    Op *loop = v->op ? NULL : v->region->parent;
    return loop && loop->kind == OP_FOR && v->index > 0 ? loop : NULL;
}

/* Can the distinct elements of v be computed? Adds entries for it and for what it
   needs. */
static bool
can(Distinct *x, Value *v, const Steps *st, int depth)
{
    const Op *op = v->op, *loop = carrier(v);
    if (!type_is_tile(v->type) || done(x, v, st))
        return true;
    if (depth > MOST_DEPTH || x->done.n >= MOST_VALUES || (!op && !loop))
        return false;
    vec_push(&x->s->tmp, &x->done, ((Done){v, *st, NULL}));
    if (loop)
        return can(x, op_operand(loop, v->index + 2), st, depth + 1) &&
               can(x, op_operand(v->region->last, v->index - 1), st, depth + 1);
    if (op->kind == OP_SPLAT || op->kind == OP_ARANGE)
        return true;
    if (!op_is(op, T_PURE) || op->nregion || op->nresult != 1)
        return false;
    bool shape = op->kind == OP_EXPAND_DIMS || op->kind == OP_BROADCAST;
    if (!shape && !op_is(op, T_ELEMENTWISE))
        return false;
    Steps in = shape ? steps_below(op, st) : *st;
    for (int i = 0; i < op->noperand; i++)
        if (!can(x, op_operand(op, i), &in, depth + 1))
            return false;
    return true;
}

/* ---- build the distinct elements */

/* The type of the distinct elements of a tile of type t. */
static const Type *
fewer(const Distinct *x, const Type *t, const Steps *st)
{
    int64_t shape[MAX_RANK];
    for (int d = 0; d < t->rank; d++)
        shape[d] = t->shape[d] / st->by[d];
    return type_tile(x->s->types, type_elem(t), t->rank, shape, NULL);
}

static Value *every(Distinct *x, Value *v, const Steps *st);

/* The distinct elements of carried value v: the loop carries them, too. */
static Value *
carry(Distinct *x, const Value *v, const Steps *st)
{
    Op *loop = carrier(v);
    int at = v->index;
    Value *arg = for_carry(loop, every(x, op_operand(loop, at + 2), st));
    done(x, v, st)->to = arg;
    Op *yield = loop->regions[0]->last;
    op_add_operand(yield, every(x, op_operand(yield, at - 1), st));
    return arg;
}

/* Every c-th element of an arange: start, start + c, .. */
static Value *
range(Builder *b, const Op *op, const Type *t, int64_t c)
{
    AttrList none = {0};
    attr_set_int(&b->s->mod, &none, ATTR_START, 0);
    int64_t start = attr_int(&op->attrs, ATTR_START, 0);
    Value *v = &build_op(b, OP_ARANGE, NULL, 0, &none, &t, 1)->results[0];
    v = c > 1 ? build_binary(b, OP_MUL, v, build_int(b, t, c)) : v;
    return start ? build_binary(b, OP_ADD, v, build_int(b, t, start)) : v;
}

/* (arange * c) / n as arange * (c / n), if n divides c; these products do not wrap. NULL:
   op is something else. */
static Value *
quotient(Builder *b, const Op *op, Value *const *in)
{
    const Op *mul = op->kind == OP_DIVS ? value_def(in[0], OP_MUL) : NULL;
    Const c, n;
    if (!mul || !value_def(op_operand(mul, 0), OP_ARANGE) ||
        !value_const(op_operand(mul, 1), &c) || !value_const(in[1], &n) || n.i < 1 ||
        c.i % n.i)
        return NULL;
    return build_binary(b, OP_MUL, op_operand(mul, 0),
                        build_int(b, in[0]->type, c.i / n.i));
}

/* The distinct elements of op's result. */
static Value *
every_of(Distinct *x, Op *op, const Steps *st)
{
    const Type *t = fewer(x, op->results[0].type, st);
    bool shape = op->kind == OP_EXPAND_DIMS || op->kind == OP_BROADCAST;
    Steps below = shape ? steps_below(op, st) : *st;
    Value **in = arena_array(&x->s->tmp, Value *, op->noperand + 1);
    for (int i = 0; i < op->noperand; i++)
        in[i] = every(x, op_operand(op, i), &below);
    Builder b = builder_before(op);
    b.loc = op->loc;
    if (op->kind == OP_ARANGE)
        return range(&b, op, t, st->by[0]);
    if (op->kind == OP_BROADCAST)
        return build_broadcast(&b, in[0], t->shape);
    Value *less = quotient(&b, op, in);
    return less
               ? less
               : &build_op(&b, op->kind, in, op->noperand, &op->attrs, &t, 1)->results[0];
}

/* The distinct elements of v; v itself if it is a scalar. can() has said yes. */
static Value *
every(Distinct *x, Value *v, const Steps *st)
{
    const Done *was = type_is_tile(v->type) ? done(x, v, st) : NULL;
    if (!type_is_tile(v->type) || (was && was->to))
        return was ? was->to : v;
    if (carrier(v))
        return carry(x, v, st);
    Value *to = every_of(x, v->op, st);
    done(x, v, st)->to = to;
    return to;
}

/* A tile of type t in which each element of v is repeated. */
static Value *
spread(Builder *b, Value *v, const Type *t, const Steps *st)
{
    int64_t apart[MAX_RANK], full[MAX_RANK];
    int n = 0;
    for (int d = 0; d < t->rank; d++, n++) {
        int64_t by = st->by[d];
        apart[n] = t->shape[d] / by;
        full[n] = t->shape[d];
        if (by > 1 && apart[n] > 1) {
            full[n] = apart[n];
            n++;
            apart[n] = 1;
            full[n] = by;
        }
    }
    v = n > t->rank ? build_reshape(b, v, n, apart) : v;
    v = build_broadcast(b, v, full);
    return n > t->rank ? build_reshape(b, v, t->rank, t->shape) : v;
}

/* Replaces the load by one of its distinct elements; false: it cannot be. */
static bool
load_once(Session *s, const Found *f)
{
    Distinct x = {.s = s};
    Op *load = f->load;
    const Type *t = load->results[0].type;
    int cut = 0;
    for (int d = 0; d < t->rank; d++)
        cut += f->steps.by[d] > 1 && f->steps.by[d] < t->shape[d];
    if (t->rank + cut > MAX_RANK)
        return false;
    for (int i = 0; i < load->noperand; i++)
        if (!can(&x, op_operand(load, i), &f->steps, 0))
            return false;
    Value *in[3];
    for (int i = 0; i < load->noperand; i++)
        in[i] = every(&x, op_operand(load, i), &f->steps);
    Builder b = builder_before(load);
    b.loc = load->loc;
    Op *less = build_op(&b, OP_LOAD, in, load->noperand, &load->attrs, NULL, 1);
    less->results[0].name = load->results[0].name;
    value_replace(&load->results[0], spread(&b, &less->results[0], t, &f->steps));
    op_erase(load);
    return true;
}

bool
pass_distinct(Func *f, PassCx *cx)
{
    Find x = {.arena = &cx->s->tmp, .axis = axis_new_nowrap(f, &cx->s->tmp)};
    bool changed = false;
    pass_walk(f->body, find, &x);
    for (int i = 0; i < x.found.n; i++)
        changed |= load_once(cx->s, &x.found.at[i]);
    return changed;
}
