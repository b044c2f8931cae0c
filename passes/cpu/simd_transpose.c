/* Blocks that are transposed in registers.

   If a nest loads along one dimension and stores along another, lanes can run along only
   one of them; the accesses along the other would go lane by lane, each to a cache line
   of its own. Such a nest is computed in square blocks. Lanes run along the stores'
   dimension. What is contiguous along the other one is loaded in strips along that, a
   block at once, transposed in registers, and remembered as the strips of all rows of the
   block.

       for %j = 0, 64, 16 { for %i = 0, 64, 16 {      // lanes along i
         %x0 = vload &x[i, j..] .. %x15 = vload &x[i + 15, j..]
         %y0, .. %y15 = log2(16) rounds of vzip       // lane i of %yr: x[i, j + r]
         vstore &y[j, i..], %y0 .. } }

   Each round interleaves rows r and r + half of the block: their first halves become row
   2 r, their second halves row 2 r + 1. */
#include "passes/cpu/simd.h"

#include "ir/base/util.h"

/* MOST_COST: a block's code is that of a strip as many times as it has rows. */
enum { MOST_STEPS = 256, MOST_COST = 1000, LEAST = 4 };

/* ---- which nests need it */

/* Is v loaded from memory that is contiguous along dimension b and not along a? */
static bool
transposed(Simd *n, const Value *v, int a, int b, int *left)
{
    const Op *op = v->op;
    if (!simd_tile(v) || --*left < 0 || v->type->shape[a] == 1 || v->type->shape[b] == 1)
        return false;
    if (plan_get(n, v)->slot)
        return b == v->type->rank - 1;
    if (!op)
        return false;
    int axis = (int)attr_int(&op->attrs, ATTR_AXIS, 0);
    const Attr *perm = attr_find(&op->attrs, ATTR_PERM);
    switch ((int)op->kind) {
    case OP_LOAD:
        return simd_runs_along(n, op_operand(op, 0), b) &&
               !simd_runs_along(n, op_operand(op, 0), a);
    case OP_BROADCAST: return transposed(n, op_operand(op, 0), a, b, left);
    case OP_EXPAND_DIMS:
        return a != axis && b != axis &&
               transposed(n, op_operand(op, 0), a - (a > axis), b - (b > axis), left);
    case OP_TRANS:
        return transposed(n, op_operand(op, 0), (int)perm->v.ints[a],
                          (int)perm->v.ints[b], left);
    default: break;
    }
    for (int i = 0; op_is(op, T_ELEMENTWISE) && i < op->noperand; i++)
        if (transposed(n, op_operand(op, i), a, b, left))
            return true;
    return false;
}

/* The value that a root computes; NULL: blocks do not have roots of this kind. */
static const Value *
computed(const Root *r)
{
    switch (r->kind) {
    case ROOT_STORE: return op_operand(r->op, 1);
    case ROOT_LOAD:
    case ROOT_MAT:
    case ROOT_COPY: return r->v;
    default: return NULL;
    }
}

int
simd_transpose_dim(Simd *n, const Group *g, int lane)
{
    int left = MOST_STEPS, found = -1;
    if (g->axis >= 0 || g->cost > MOST_COST || n->f->check)
        return -1;
    for (int i = 0; i < g->items.n; i++)
        if (!computed(&g->items.at[i]))
            return -1;
    for (int b = 0; b < g->shape->rank && found < 0; b++)
        for (int i = 0; i < g->items.n && b != lane; i++)
            if (transposed(n, computed(&g->items.at[i]), lane, b, &left))
                found = b;
    return found;
}

int
simd_transpose_size(const Simd *n, const Group *g, int bits, int a, int b)
{
    int64_t size = min_i64(n->vector_bytes * 8 / max_i64(bits, 8), SIMD_MOST_SQUARE);
    size = min_i64(size, min_i64(g->shape->shape[a], g->shape->shape[b]));
    return size < LEAST ? 0 : (int)size;
}

/* ---- a block */

static Value *
zip(Cx *cx, Value *x, Value *y, bool high)
{
    AttrList l = {0};
    Value *in[2] = {x, y};
    if (high)
        attr_set_flag(&cx->n->s->mod, &l, ATTR_HIGH);
    return op_result(build_op(&cx->b, OP_VZIP, in, 2, &l, NULL, 1), 0);
}

static void
transpose(Cx *cx, Value **rows, int size)
{
    Value *next[SIMD_MOST_SQUARE];
    for (int round = 1; round < size; round *= 2) {
        for (int r = 0; r < size / 2; r++) {
            next[2 * r] = zip(cx, rows[r], rows[r + size / 2], false);
            next[2 * r + 1] = zip(cx, rows[r], rows[r + size / 2], true);
        }
        for (int r = 0; r < size; r++)
            rows[r] = next[r];
    }
}

/* The dimensions of ix that have the block's lanes, *a, and its rows, *b, and which row
   it is; false: it has not both. */
static bool
find_dims(const Square *t, int rank, const Ix *ix, int *a, int *b, int *row)
{
    *a = *b = -1;
    for (int d = 0; d < rank; d++) {
        bool lanes = ix[d].kind == IX_AFF;
        if (ix[d].kind == IX_VEC || (lanes && (ix[d].v != t->a[0] || *a >= 0)))
            return false;
        if (lanes)
            *a = d;
        for (int r = 0; ix[d].kind == IX_UNI && r < t->size; r++) {
            if (ix[d].v != t->b[r])
                continue;
            if (*b >= 0)
                return false;
            *b = d;
            *row = r;
        }
    }
    return *a >= 0 && *b >= 0;
}

/* Is the memory that the load reads written in the same nest? */
static bool
is_written(const Cx *cx, const Op *load)
{
    for (int i = 0; i < cx->g->items.n; i++) {
        const Root *r = &cx->g->items.at[i];
        if (r->kind == ROOT_STORE && op_operand(r->op, 0) == op_operand(load, 0))
            return true;
    }
    return false;
}

bool
simd_transpose(Cx *cx, Value *v, const Ix *ix, Ev *out)
{
    const Square *t = cx->square;
    const Type *elem = type_elem(v->type);
    Op *load = value_def(v, OP_LOAD);
    int a, b, row = 0, left = MOST_STEPS;
    Slot *slot = plan_get(cx->n, v)->slot;
    if ((!slot && !load) || elem->kind != TY_SCALAR || elem->scalar == SK_I1 ||
        !find_dims(t, v->type->rank, ix, &a, &b, &row) ||
        !transposed(cx->n, v, a, b, &left) || (!slot && is_written(cx, load)))
        return false;
    Ix at[MAX_RANK];
    Value *rows[SIMD_MOST_SQUARE];
    for (int d = 0; d < v->type->rank; d++)
        at[d] = ix[d];
    at[b] = (Ix){IX_AFF, 0, t->b[0]};
    cx->square = NULL;
    for (int c = 0; c < t->size; c++) {
        at[a] = (Ix){IX_UNI, 0, t->a[c]};
        rows[c] = ev_strip(cx, slot ? simd_slot_load(cx, slot, elem, at)
                                    : simd_load(cx, load, at));
    }
    cx->square = t;
    transpose(cx, rows, t->size);
    at[a] = ix[a];
    for (int r = 0; r < t->size; r++) {
        at[b] = (Ix){IX_UNI, 0, t->b[r]};
        simd_remember(cx, v, at, (Ev){.kind = EV_VEC, .v = rows[r]});
    }
    *out = (Ev){.kind = EV_VEC, .v = rows[row]};
    return true;
}
