/* Loops over rows whose tiles do not fit into registers take fewer rows at a time.

       for %n = %lo, %hi, 256 {                for %n = %lo, %hi, 16 {
         %r = add (splat %n), (arange 256)       %r = add (splat %n), (arange 16)
         %m = cmpi %r, (splat %hi)               %m = cmpi %r, (splat %hi)
         %x = load .. : tile<256x1024>     =>    %x = load .. : tile<16x1024>
         %y = reduce %x {axis=1}                 %y = reduce %x {axis=1}
         store .., %y, %m                        store .., %y, %m
       }                                       }

   Registers that are too few would be spilled to memory. Besides, where the loop ends
   inside its first tile, most rows behind the end are not computed any more.

   The result is the same if rows are independent: everything that depends on the row's
   index is computed row by row, the loop carries nothing, stores are masked by the loop's
   own end, and what is stored is only loaded at the same address. Rows behind the end
   load and store nothing. */
#include "ir/analysis/param.h"
#include "ir/base/map.h"
#include "ir/base/util.h"
#include "ir/build.h"
#include "ir/edit.h"
#include "ir/fold.h"
#include "passes/pass.h"

#include <string.h>

enum {
    MOST_WORDS = 256, /* a tile of so many words per thread does not fit: it has 255 */
    WORDS = 64,       /* words per thread of the shorter tiles */
    MOST_DEPTH = 64,
    MOST_VISITS = 4096,
    MOST_OPERANDS = 8,
};

typedef struct Steps {
    Session *s;
    Func *f;
    Op *loop;
    Region *body;
    int64_t rows, fewer; /* of a step, before and after */
    Map dim;    /* Value of the body that depends on the row -> int, its row dimension */
    Map narrow; /* Value that does not -> Narrow, the same with fewer rows */
    int visits; /* of is_alike, at most MOST_VISITS */
} Steps;

typedef struct Narrow {
    int dim; /* that was shortened */
    Value *to;
} Narrow;

/* -1: v does not depend on the row */
static int
row_dim(const Steps *c, const Value *v)
{
    const int *d = map_get(&c->dim, v);
    return d ? *d : -1;
}

static void
set_dim(Steps *c, const Value *v, int d)
{
    int *at = arena_new(&c->s->tmp, int);
    *at = d;
    map_set(&c->dim, v, at);
}

/* The op that makes v, behind expand_dims and broadcasts. */
static const Op *
below_shape(const Value *v)
{
    const Op *op = v->op;
    while (op && (op->kind == OP_EXPAND_DIMS || op->kind == OP_BROADCAST))
        op = op_operand(op, 0)->op;
    return op;
}

/* Is op the index of the tile's rows: splat(loop index) + arange from 0? */
static bool
is_index(const Steps *c, const Op *op)
{
    if (!op || op->kind != OP_ADD || op->parent != c->body ||
        !type_is_tile(op->results[0].type) || op->results[0].type->rank != 1 ||
        op->results[0].type->shape[0] != c->rows)
        return false;
    for (int i = 0; i < 2; i++) {
        const Op *from = value_def(op_operand(op, i), OP_SPLAT);
        const Op *range = value_def(op_operand(op, 1 - i), OP_ARANGE);
        if (from && range && op_operand(from, 0) == c->body->args[0] &&
            attr_int(&range->attrs, ATTR_START, 0) == 0)
            return true;
    }
    return false;
}

/* Is the mask false for all rows from the loop's end on? */
static bool
ends_with_loop(const Steps *c, const Value *mask, int depth)
{
    const Op *op = below_shape(mask);
    if (!op || depth > MOST_DEPTH)
        return false;
    if (op->kind == OP_AND)
        return ends_with_loop(c, op_operand(op, 0), depth + 1) ||
               ends_with_loop(c, op_operand(op, 1), depth + 1);
    Name pred = op->kind == OP_CMPI ? attr_str(&op->attrs, ATTR_PRED) : NULL;
    if (!pred || strcmp(pred, "slt") != 0)
        return false;
    const Op *end = below_shape(op_operand(op, 1));
    return is_index(c, below_shape(op_operand(op, 0))) && end && end->kind == OP_SPLAT &&
           op_operand(end, 0) == op_operand(c->loop, 1);
}

/* ---- which values depend on the row */

/* Dimension d of the result of a shape operation, as a dimension of its operand. */
static int
dim_below(const Op *op, int d)
{
    int axis = (int)attr_int(&op->attrs, ATTR_AXIS, 0);
    return op->kind == OP_EXPAND_DIMS && d > axis ? d - 1 : d;
}

/* Is v, which does not depend on the row, constant along d and cheap to compute again? */
static bool
is_alike(Steps *c, const Value *v, int d, int depth)
{
    const Op *op = v->op;
    if (!type_is_tile(v->type) || v->type->shape[d] == 1)
        return true;
    if (!op || depth > MOST_DEPTH || c->visits++ > MOST_VISITS || row_dim(c, v) >= 0)
        return false;
    if (op->kind == OP_CONST || op->kind == OP_SPLAT)
        return true;
    bool expands = op->kind == OP_EXPAND_DIMS && attr_int(&op->attrs, ATTR_AXIS, 0) != d;
    if (expands || op->kind == OP_BROADCAST)
        return is_alike(c, op_operand(op, 0), dim_below(op, d), depth + 1);
    bool can = op_is(op, T_PURE) && op_is(op, T_ELEMENTWISE) && !op->nregion &&
               op->noperand <= MOST_OPERANDS;
    for (int i = 0; can && i < op->noperand; i++)
        can = is_alike(c, op_operand(op, i), d, depth + 1);
    return can;
}

/* The row dimension of op's results, if that of its operands is d; -1: op does not work
   row by row. */
static int
result_dim(const Op *op, int d)
{
    int axis = (int)attr_int(&op->attrs, ATTR_AXIS, 0);
    switch ((int)op->kind) {
    case OP_LOAD: return attr_has(&op->attrs, ATTR_VOLATILE) ? -1 : d;
    case OP_STORE:
    case OP_BROADCAST: return d;
    case OP_EXPAND_DIMS: return d + (axis <= d);
    case OP_REDUCE: return axis == d ? -1 : d - (axis < d);
    default: return op_is(op, T_PURE) && op_is(op, T_ELEMENTWISE) ? d : -1;
    }
}

/* Notes the row dimension of op's results. False: the loop cannot be shortened. */
static bool
find_dims(Steps *c, const Op *op)
{
    int d = -1;
    for (int i = 0; i < op->noperand; i++) {
        int at = row_dim(c, op_operand(op, i));
        if (at >= 0 && d >= 0 && at != d)
            return false;
        d = at >= 0 ? at : d;
    }
    if (is_index(c, op)) {
        set_dim(c, &op->results[0], 0);
        return true;
    }
    if (d < 0)
        return op_is_pure(op) && (!op->nregion || op->kind == OP_REDUCE);
    for (int i = 0; i < op->noperand; i++)
        if (row_dim(c, op_operand(op, i)) < 0 && !is_alike(c, op_operand(op, i), d, 0))
            return false;
    int to = result_dim(op, d);
    for (int i = 0; to >= 0 && i < op->nresult; i++)
        set_dim(c, &op->results[i], to);
    return to >= 0 && (op->kind != OP_STORE || op->noperand > 2) &&
           (op->kind != OP_STORE || ends_with_loop(c, op_operand(op, 2), 0));
}

/* Are the arrays that the loop stores to only loaded at the address of the store? */
static bool
keeps_places(const Steps *c)
{
    Writes writes = {0};
    const Value *place = NULL;
    bool several = false;
    region_each(c->body, op) if (op->kind == OP_STORE)
    {
        writes_add(&writes, op);
        several |= place && place != op_operand(op, 0);
        place = op_operand(op, 0);
    }
    region_each(c->body, op) if (op->kind == OP_LOAD)
    {
        if (writes_reach(&writes, op_operand(op, 0)) &&
            (several || op_operand(op, 0) != place))
            return false;
    }
    return true;
}

/* How many rows of the largest tile fit; 0: all of a step do. */
static int64_t
rows_that_fit(const Steps *c)
{
    int64_t words = 0;
    region_each(c->body, op) for (int i = 0; i < op->nresult; i++)
    {
        const Type *t = op->results[i].type;
        if (row_dim(c, &op->results[i]) >= 0 && type_is_float(t) && type_is_tile(t))
            words = max_i64(words, type_numel(t) * type_bits(t) / 32);
    }
    int64_t threads = 32 * (int64_t)c->f->num_warps, rows = c->rows;
    if (words < MOST_WORDS * threads)
        return 0;
    for (; rows > 1 && words > WORDS * threads; words /= 2)
        rows /= 2;
    return rows;
}

/* ---- fewer rows */

/* Type t with fewer rows along d. */
static const Type *
narrow_type(const Steps *c, const Type *t, int d)
{
    int64_t shape[MAX_RANK];
    for (int i = 0; i < t->rank; i++)
        shape[i] = i == d && t->shape[i] == c->rows ? c->fewer : t->shape[i];
    return type_tile(c->s->types, type_elem(t), t->rank, shape, NULL);
}

/* v, which is constant along d, with fewer rows there. */
static Value *
narrow(Steps *c, Builder *b, Value *v, int d)
{
    if (!type_is_tile(v->type) || v->type->shape[d] == 1)
        return v;
    Narrow *known = map_get(&c->narrow, v);
    if (known && known->dim == d)
        return known->to;
    Value *in[MOST_OPERANDS];
    const Op *op = v->op;
    bool shape = op->kind == OP_EXPAND_DIMS || op->kind == OP_BROADCAST;
    for (int i = 0; i < op->noperand; i++)
        in[i] = narrow(c, b, op_operand(op, i), shape ? dim_below(op, d) : d);
    const Type *t = narrow_type(c, v->type, d);
    known = arena_new(&c->s->tmp, Narrow);
    *known = (Narrow){
        d, op_result(build_op(b, op->kind, in, op->noperand, &op->attrs, &t, 1), 0)};
    map_set(&c->narrow, v, known);
    return known->to;
}

/* Gives all tiles of the loop that depend on the row fewer rows, and the loop that
   step. */
static void
shorten(Steps *c)
{
    for (Op *op = c->body->first; op != c->body->last; op = op->next) {
        Builder b = builder_before(op);
        b.loc = op->loc;
        bool index = is_index(c, op);
        int d = index ? 0 : -1;
        for (int i = 0; i < op->noperand; i++)
            d = (int)max_i64(d, row_dim(c, op_operand(op, i)));
        for (int i = 0; d >= 0 && i < op->noperand; i++) {
            Value *v = op_operand(op, i);
            if (row_dim(c, v) >= 0)
                continue;
            const Type *t = index ? narrow_type(c, v->type, 0) : NULL;
            bool range = index && v->op->kind == OP_ARANGE;
            op_set_operand(
                op, i,
                range
                    ? op_result(build_op(&b, OP_ARANGE, NULL, 0, &v->op->attrs, &t, 1), 0)
                    : narrow(c, &b, v, d));
        }
        for (int i = 0; d >= 0 && i < op->nresult; i++) {
            Value *v = &op->results[i];
            value_set_type(v, narrow_type(c, v->type, row_dim(c, v)));
        }
    }
    Builder b = builder_before(c->loop);
    b.loc = c->loop->loc;
    op_set_operand(c->loop, 2, build_int(&b, op_operand(c->loop, 2)->type, c->fewer));
}

static bool
visit(void *user, Op *loop)
{
    PassCx *cx = user;
    Const step;
    if (loop->kind != OP_FOR || loop->nresult ||
        !value_const(op_operand(loop, 2), &step) || step.i < 2)
        return false;
    Steps c = {.s = cx->s,
               .f = loop->parent->func,
               .loop = loop,
               .body = loop->regions[0],
               .rows = step.i};
    map_init(&c.dim, &cx->s->tmp);
    map_init(&c.narrow, &cx->s->tmp);
    region_each(c.body, op) if (op != c.body->last && !find_dims(&c, op)) return false;
    c.fewer = keeps_places(&c) ? rows_that_fit(&c) : 0;
    if (!c.fewer)
        return false;
    shorten(&c);
    return true;
}

bool
pass_short_steps(Func *f, PassCx *cx)
{
    return pass_walk(f->body, visit, cx);
}
