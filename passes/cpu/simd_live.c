/* How many rows and columns of a dot's result are stored, or added to memory, in the end.

   At the end of a matrix a part of the tile is stored, which the mask of the store says.
   If the result of a dot goes only to such stores, through elementwise work, the rows and
   columns behind the bounds need not be computed and may hold anything.

       store %p, %sums, (%rows < %m) & (%cols < %n)
             =>  buf_dot %a, %b, %sums, %zero, (%m - %rows[0]), (%n - %cols[0]) */
#include "passes/cpu/simd.h"

#include "ir/base/util.h"
#include "ir/edit.h"

#include <string.h>

enum { MOST_VALUES = 256, MOST_STORES = 8, MOST_ROUNDS = 8, MOST_STEPS = 64 };

typedef struct Live {
    Simd *n;
    Op *dot;
    Map seen;
    int left; /* values that may still be visited */
    Op *stores[MOST_STORES];
    int nstore;
    Op *rounds[MOST_ROUNDS]; /* loops that carry the result: bounds must be the same in
                                all of their iterations */
    int nround;
} Live;

/* ---- where the result goes */

static bool goes_to(Live *l, const Use *u);

static bool
flows(Live *l, Value *v)
{
    if (map_get(&l->seen, v))
        return true;
    if (--l->left < 0)
        return false;
    map_set(&l->seen, v, v);
    value_each_use(v, u) if (!goes_to(l, u)) return false;
    return true;
}

/* Follows operand i of the terminator `end`: to the results of the op around it, and to
   the next iteration of a loop. */
static bool
flows_out(Live *l, const Op *end, int i)
{
    Op *around = end->parent->parent;
    if (around && around->kind == OP_FOR) {
        if (l->nround == MOST_ROUNDS)
            return false;
        l->rounds[l->nround++] = around;
        if (!flows(l, around->regions[0]->args[i + 1]))
            return false;
    }
    return around && (around->kind == OP_FOR || around->kind == OP_IF) &&
           flows(l, op_result(around, i));
}

static bool
goes_to(Live *l, const Use *u)
{
    Op *op = u->user;
    int i = u->index;
    switch ((int)op->kind) {
    case OP_STORE:
    case OP_ATOMIC_RMW:
        if (i != 1 || op->noperand < 3 || l->nstore == MOST_STORES)
            return false;
        l->stores[l->nstore++] = op;
        return true;
    case OP_DOT: return i == 2 && flows(l, op_result(op, 0));
    case OP_YIELD: return flows_out(l, op, i);
    case OP_FOR:
        return i >= 3 && flows(l, op->regions[0]->args[i - 2]) &&
               flows(l, op_result(op, i - 3));
    default: break;
    }
    return op_is(op, T_ELEMENTWISE) && op->nresult == 1 &&
           type_same_shape(op_result(op, 0)->type, u->value->type) &&
           flows(l, op_result(op, 0));
}

/* ---- what masks say */

static bool
is_inside(const Region *r, const Region *of)
{
    while (r && r != of)
        r = r->parent ? r->parent->parent : NULL;
    return r;
}

/* Is v computed at the place of the dot, and the same in all iterations that the result
   goes through? */
static bool
is_there(const Live *l, const Value *v)
{
    const Region *from = v->op ? v->op->parent : v->region;
    for (int i = 0; i < l->nround; i++)
        if (is_inside(from, l->rounds[i]->regions[0]))
            return false;
    return is_inside(l->dot->parent, from) && map_get(&l->n->map, v);
}

/* Is v arithmetic on such numbers and indices? *left: steps. */
static bool
is_index(const Live *l, const Value *v, int *left)
{
    bool tile = simd_tile(v);
    if (!tile && is_there(l, v))
        return true;
    const Op *op = v->op;
    const Plan *p = plan_get(l->n, v);
    if (!op || --*left < 0 || op->nregion || op->nresult != 1 || !op_is(op, T_PURE) ||
        (tile && (p->slot || !p->index)))
        return false;
    for (int i = 0; i < op->noperand; i++)
        if (!is_index(l, op_operand(op, i), left))
            return false;
    return true;
}

typedef struct Bound {
    Value *first; /* of the old code: the smallest index */
    Value *end;   /* of the old code: indices are below it */
    bool closed;  /* .. or equal to it */
} Bound;

/* Is op, a comparison, a bound of dimension d of the result? at[k]: the dimension of the
   result that dimension k of the mask is, or -1. */
static bool
compares(const Live *l, const Op *op, const int *at, int d, int64_t size, Bound *b)
{
    const char *pred = attr_str(&op->attrs, ATTR_PRED);
    const Type *t = op_operand(op, 0)->type;
    bool less = strcmp(pred, "slt") == 0 || strcmp(pred, "sle") == 0;
    bool more = strcmp(pred, "sgt") == 0 || strcmp(pred, "sge") == 0;
    int along = -1, left = MOST_STEPS;
    for (int k = 0; k < t->rank; k++)
        if (at[k] == d && t->shape[k] == size)
            along = k;
    if ((!less && !more) || along < 0 || type_numel(t) != size)
        return false;
    *b = (Bound){op_operand(op, more), op_operand(op, less), pred[2] == 'e'};
    return axis_of(l->n->axis, b->first)->contig[along] >= size &&
           axis_of(l->n->axis, b->end)->constancy[along] >= size &&
           is_index(l, b->first, &left) && is_index(l, b->end, &left);
}

static bool
bounded(const Live *l, const Value *mask, const int *at, int d, int64_t size, Bound *b,
        int depth)
{
    const Op *op = mask->op;
    int in[MAX_RANK];
    if (!op || !simd_tile(mask) || depth > MOST_STEPS)
        return false;
    const Type *from = op->noperand ? op_operand(op, 0)->type : NULL;
    int axis = (int)attr_int(&op->attrs, ATTR_AXIS, 0);
    switch ((int)op->kind) {
    case OP_AND:
        return bounded(l, op_operand(op, 0), at, d, size, b, depth + 1) ||
               bounded(l, op_operand(op, 1), at, d, size, b, depth + 1);
    case OP_CMPI: return compares(l, op, at, d, size, b);
    case OP_BROADCAST:
        for (int k = 0; k < from->rank; k++)
            in[k] = from->shape[k] == 1 ? -1 : at[k];
        return bounded(l, op_operand(op, 0), in, d, size, b, depth + 1);
    case OP_EXPAND_DIMS:
        for (int k = 0; k < from->rank; k++)
            in[k] = at[k + (k >= axis)];
        return bounded(l, op_operand(op, 0), in, d, size, b, depth + 1);
    default: return false;
    }
}

/* ---- the number of rows or columns */

typedef struct Brought {
    Value *v[MOST_STEPS], *was[MOST_STEPS];
    int n;
} Brought;

/* Computes scalar v of the old code here, if that is done elsewhere. *to notes which
   values of Simd.map this replaces for the time being. */
static void
bring(Live *l, Cx *cx, Value *v, Brought *to)
{
    Op *op = v->op;
    if (!simd_tile(v) && is_there(l, v))
        return;
    for (int i = 0; i < op->noperand; i++)
        bring(l, cx, op_operand(op, i), to);
    if (simd_tile(v))
        return;
    to->v[to->n] = v;
    to->was[to->n++] = map_get(&l->n->map, v);
    op_clone(&cx->b, op, &l->n->map);
}

static Value *
first_of(Live *l, Cx *cx, Value *v)
{
    Ix zero[MAX_RANK];
    Brought here = {.n = 0};
    for (int i = 0; i < MAX_RANK; i++)
        zero[i] = (Ix){IX_CONST, 0, NULL};
    bring(l, cx, v, &here);
    Value *x = simd_eval(cx, v, zero).v;
    while (here.n--)
        map_set(&l->n->map, here.v[here.n], here.was[here.n]);
    return type_bits(x->type) < 64 ? build_cast(&cx->b, OP_SEXT, x, cx->n->i64) : x;
}

/* How many elements of dimension d are stored: i64, from 1 to its size. NULL: all. */
static Value *
extent(Live *l, Builder *b, int d)
{
    const Type *t = op_result(l->dot, 0)->type;
    int64_t size = t->shape[d];
    Value *most = NULL;
    Bound bounds[MOST_STORES];
    int at[MAX_RANK];
    Cx cx;
    for (int k = 0; k < t->rank; k++)
        at[k] = k;
    for (int i = 0; i < l->nstore; i++)
        if (!bounded(l, op_operand(l->stores[i], 2), at, d, size, &bounds[i], 0))
            return NULL;
    cx_init(&cx, l->n, *b, 1);
    for (int i = 0; i < l->nstore; i++) {
        Value *first = first_of(l, &cx, bounds[i].first);
        Value *end = first_of(l, &cx, bounds[i].end);
        Value *n = build_binary(&cx.b, OP_SUB, end, first);
        if (bounds[i].closed)
            n = build_binary(&cx.b, OP_ADD, n, simd_int(&cx.b, n->type, 1));
        most = most ? build_binary(&cx.b, OP_MAXS, most, n) : n;
    }
    if (most) {
        most = build_binary(&cx.b, OP_MAXS, most, simd_int(&cx.b, most->type, 1));
        most = build_binary(&cx.b, OP_MINS, most, simd_int(&cx.b, most->type, size));
    }
    *b = cx.b;
    return most;
}

bool
simd_live(Simd *n, Builder *b, Op *dot, Value **rows, Value **cols)
{
    Live l = {.n = n, .dot = dot, .left = MOST_VALUES};
    const Type *t = op_result(dot, 0)->type;
    map_init(&l.seen, n->tmp);
    *rows = *cols = NULL;
    /* checks look at all elements of the result */
    if (n->f->check || t->rank < 2 || !flows(&l, op_result(dot, 0)) || !l.nstore)
        return false;
    *rows = extent(&l, b, t->rank - 2);
    *cols = extent(&l, b, t->rank - 1);
    if (!*rows && !*cols)
        return false;
    *rows = *rows ? *rows : simd_int(b, n->i64, t->shape[t->rank - 2]);
    *cols = *cols ? *cols : simd_int(b, n->i64, t->shape[t->rank - 1]);
    return true;
}
