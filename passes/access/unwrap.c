/* Undoes the wrapping of row and column numbers that lie behind the end of a matrix, and
   masks the loads instead.

       %w = rems %x, splat(%m)
       %a = load %p + %w[:, None] * %s      =>   %a = load %p + %x[:, None] * %s,
       .. dot %a, %b ..                                    (%x < %m)[:, None]
       store %c + %x[:, None] * .., %y, (%x < %m)[:, None] & ..

   and the same for select(x < m, x, 0) and min(x, m - 1).

   Authors wrap an index to save the mask in the loop: the tile's last rows are then other
   rows of the matrix, and the store at the end masks them off. But wrapped addresses are
   no rows and columns of a matrix: no wide access and no TMA can load them. So the index
   becomes what it was before wrapping and the loads are masked, for any size of the
   matrix.

   The results are the same if the wrapped elements are never used. The pass follows them
   from the index through addresses, loads, elementwise work, dots (not along the inner
   dimension), reductions along other dimensions and carried values. They may only reach
   stores whose masks exclude them. An index for which this cannot be shown stays as it
   is; passes/access/assume_divisible.c may handle it.

   A wrapped index may leave a branch, or the iteration of a loop that made it. What is
   inside is then compared in front of that branch or loop, so it has to be the same
   there: an index of the previous iteration is no index of this one. */
#include "ir/analysis/affine.h"
#include "ir/analysis/natural.h"
#include "ir/base/map.h"
#include "ir/base/util.h"
#include "ir/base/vec.h"
#include "ir/build.h"
#include "ir/edit.h"
#include "passes/pass.h"

enum { MOST_VALUES = 4096, MASK_DEPTH = 16, BRING_DEPTH = 8 };

/* A wrapped index w, of rank 1: it equals x for elements that are inside the matrix. */
typedef struct Wrapped {
    Value *w, *x;
    Op *inside; /* the comparison that says which are; NULL: x < end, or x <= last */
    Value *end;
    Value *last;
    Affine room; /* an element is inside if room >= 0 */
} Wrapped;

typedef struct Unwrap {
    Session *s;
    Axis *axis;
    Wrapped wrapped;
    Op *at;            /* in front of which the mask of what is inside is built */
    Map dims;          /* Value that depends on w -> 1 + its dimension that is w's */
    Vec(Value *) work; /* the same values, in the order in which they are followed */
    Vec(Op *) loads;   /* that depend on w */
} Unwrap;

/* ---- which indices are wrapped */

/* *out = b - a - less, which is >= 0 if a <= b (less: a < b). False: that is no
   polynomial. */
static bool
room_of(const Value *a, const Value *b, bool less, Affine *out)
{
    Affine left;
    Poly one = poly_const(1);
    bool ok = affine_of(a, NULL, &left) && affine_of(b, NULL, out) && !left.ptr &&
              !out->ptr && poly_add(&out->base, &left.base, -1);
    for (int d = 0; d < AFFINE_RANK && ok; d++)
        ok = poly_add(&out->at[d], &left.at[d], -1);
    return ok && (!less || poly_add(&out->base, &one, -1));
}

/* *room, which is >= 0 if the signed comparison holds. False: op is something else. */
static bool
comparison(const Op *op, Affine *room)
{
    Name pred = attr_str(&op->attrs, ATTR_PRED);
    bool greater = pred[1] == 'g';
    return op->kind == OP_CMPI && pred[0] == 's' &&
           room_of(op_operand(op, greater), op_operand(op, !greater), pred[2] == 't',
                   room);
}

/* Does op wrap an index? Then u->wrapped says how. */
static bool
is_wrapped(Unwrap *u, Op *op)
{
    Wrapped *t = &u->wrapped;
    *t = (Wrapped){.w = op->nresult ? &op->results[0] : NULL};
    if (!t->w || !type_is_tile(t->w->type) || t->w->type->rank != 1)
        return false;
    switch ((int)op->kind) {
    case OP_REMS:
        t->x = op_operand(op, 0);
        t->end = op_operand(op, 1);
        return value_def(t->end, OP_SPLAT) && natural_is(u->axis, t->x) &&
               room_of(t->x, t->end, true, &t->room);
    case OP_MINS:
        for (int i = 0; i < 2; i++) {
            t->x = op_operand(op, i);
            t->last = op_operand(op, 1 - i);
            if (value_def(t->last, OP_SPLAT) && room_of(t->x, t->last, false, &t->room))
                return true;
        }
        return false;
    case OP_SELECT:
        t->inside = value_def(op_operand(op, 0), OP_CMPI);
        t->x = op_operand(op, 1);
        return t->inside && comparison(t->inside, &t->room);
    default: return false;
    }
}

/* ---- masks */

/* Is the mask false for all elements that are not inside along `dim`? It has to be a
   comparison of x, before or after the rewriting: a wrapped index is no polynomial. */
static bool
excludes_outside(Unwrap *u, const Value *mask, int dim, int depth)
{
    const Op *op = mask->op;
    if (!op || depth > MASK_DEPTH || !type_is_tile(mask->type))
        return false;
    switch ((int)op->kind) {
    case OP_AND:
        return excludes_outside(u, op_operand(op, 0), dim, depth + 1) ||
               excludes_outside(u, op_operand(op, 1), dim, depth + 1);
    case OP_EXPAND_DIMS: {
        int axis = (int)attr_int(&op->attrs, ATTR_AXIS, 0);
        return axis != dim &&
               excludes_outside(u, op_operand(op, 0), dim - (dim > axis), depth + 1);
    }
    case OP_BROADCAST:
        return op_operand(op, 0)->type->shape[dim] == mask->type->shape[dim] &&
               excludes_outside(u, op_operand(op, 0), dim, depth + 1);
    case OP_TRANS:
        dim = (int)attr_find(&op->attrs, ATTR_PERM)->v.ints[dim];
        return excludes_outside(u, op_operand(op, 0), dim, depth + 1);
    case OP_CMPI: {
        Affine room, more = u->wrapped.room;
        int64_t k;
        if (!comparison(op, &room))
            return false;
        for (int d = 0; d < AFFINE_RANK; d++)
            if (!poly_same(&room.at[d], d == dim ? &more.at[0] : &(Poly){0}))
                return false;
        return poly_add(&more.base, &room.base, -1) && poly_is_const(&more.base, &k) &&
               k >= 0;
    }
    default: return false;
    }
}

/* ---- follow the elements of w */

/* Notes that dimension dim of v is that of w. False: v cannot be followed, or another of
   its dimensions is. */
static bool
reach(Unwrap *u, Value *v, int dim)
{
    uintptr_t known = (uintptr_t)map_get(&u->dims, v);
    if (known)
        return known == (uintptr_t)dim + 1;
    if (u->work.n >= MOST_VALUES || !type_is_tile(v->type))
        return false;
    map_set(&u->dims, v, (void *)((uintptr_t)dim + 1));
    vec_push(&u->s->tmp, &u->work, v);
    return true;
}

static bool
reach_load(Unwrap *u, Op *load, int dim)
{
    bool known = false;
    for (int i = 0; i < u->loads.n; i++)
        known |= u->loads.at[i] == load;
    if (!known)
        vec_push(&u->s->tmp, &u->loads, load);
    return !attr_has(&load->attrs, ATTR_VOLATILE) && reach(u, &load->results[0], dim);
}

static bool
reach_dot(Unwrap *u, Op *op, int operand, int dim)
{
    int rank = op->results[0].type->rank, inner = operand == 0 ? rank - 1 : rank - 2;
    return (operand == 2 || dim != inner) && reach(u, &op->results[0], dim);
}

/* Operand i of a yield. */
static bool
reach_yield(Unwrap *u, const Op *yield, int i, int dim)
{
    Op *up = yield->parent->parent;
    if (up->kind == OP_FOR && !up->regions[0]->args[i + 1]->uses && !up->results[i].uses)
        return true; /* as a tile's index that a loop over tiles makes anew */
    if (op_in_region(u->at, yield->parent))
        u->at = up;
    if (up->kind == OP_FOR)
        return reach(u, up->regions[0]->args[i + 1], dim) &&
               reach(u, &up->results[i], dim);
    return up->kind == OP_IF && reach(u, &up->results[i], dim);
}

/* Follows one use of a value whose dimension dim is that of w. False: elements that are
   not inside may be used there. */
static bool
follow_use(Unwrap *u, const Use *use, int dim)
{
    Op *op = use->user;
    int i = use->index;
    Value *r = op->nresult ? &op->results[0] : NULL;
    if (op_is(op, T_PURE | T_ELEMENTWISE))
        return reach(u, r, dim);
    switch ((int)op->kind) {
    case OP_EXPAND_DIMS:
        return reach(u, r, dim + (dim >= (int)attr_int(&op->attrs, ATTR_AXIS, 0)));
    case OP_BROADCAST:
        return op_operand(op, 0)->type->shape[dim] == r->type->shape[dim] &&
               reach(u, r, dim);
    case OP_TRANS: {
        const Attr *perm = attr_find(&op->attrs, ATTR_PERM);
        for (int d = 0; d < r->type->rank; d++)
            if (perm->v.ints[d] == dim)
                return reach(u, r, d);
        return false;
    }
    case OP_LOAD: return reach_load(u, op, dim);
    case OP_STORE:
        return op->noperand == 3 && excludes_outside(u, op_operand(op, 2), dim, 0);
    case OP_ATOMIC_RMW:
        return op->noperand == 3 && !op_has_uses(op) &&
               excludes_outside(u, op_operand(op, 2), dim, 0);
    case OP_DOT: return reach_dot(u, op, i, dim);
    case OP_REDUCE:
    case OP_SCAN: {
        int axis = (int)attr_int(&op->attrs, ATTR_AXIS, 0);
        bool ok = axis != dim, less = op->kind == OP_REDUCE && axis < dim;
        for (int k = 0; k < op->nresult && ok; k++)
            ok = reach(u, &op->results[k], dim - less);
        return ok;
    }
    case OP_FOR:
        return i >= 3 && reach(u, op->regions[0]->args[i - 2], dim) &&
               reach(u, &op->results[i - 3], dim);
    case OP_YIELD: return reach_yield(u, op, i, dim);
    default: return false;
    }
}

/* ---- where the mask is built */

static bool
is_within(const Value *v, const Op *op)
{
    for (int i = 0; i < op->nregion; i++)
        if (!value_outside(v, op->regions[i]))
            return true;
    return false;
}

/* Can v, which is known where an index is wrapped, be computed in front of op? */
static bool
can_bring(const Value *v, const Op *op, int depth)
{
    if (!is_within(v, op))
        return true;
    if (!v->op || v->op->nregion || !op_is(v->op, T_PURE | T_SPEC) ||
        depth > BRING_DEPTH)
        return false;
    for (int i = 0; i < v->op->noperand; i++)
        if (!can_bring(op_operand(v->op, i), op, depth + 1))
            return false;
    return true;
}

static Value *
bring(Builder *b, Value *v, const Op *op, Map *map)
{
    if (!is_within(v, op))
        return v;
    if (!map_has(map, v)) {
        for (int i = 0; i < v->op->noperand; i++)
            bring(b, op_operand(v->op, i), op, map);
        op_clone(b, v->op, map);
    }
    return value_mapped(map, v);
}

static bool
can_build_inside(const Unwrap *u)
{
    const Wrapped *t = &u->wrapped;
    return t->inside ? can_bring(&t->inside->results[0], u->at, 0)
                     : can_bring(t->x, u->at, 0) &&
                           can_bring(t->end ? t->end : t->last, u->at, 0);
}

/* ---- */

/* Are the elements that are not inside never used? Fills u->dims and u->loads. */
static bool
is_unused_outside(Unwrap *u, Op *op)
{
    map_init(&u->dims, &u->s->tmp);
    u->work.n = u->loads.n = 0;
    u->at = op;
    bool ok = reach(u, u->wrapped.w, 0);
    for (int i = 0; i < u->work.n && ok; i++) {
        Value *v = u->work.at[i];
        int dim = (int)(uintptr_t)map_get(&u->dims, v) - 1;
        for (const Use *use = v->uses; use && ok; use = use->next)
            ok = follow_use(u, use, dim);
    }
    return ok && u->loads.n > 0 && can_build_inside(u);
}

/* ---- rewriting */

/* The mask of the elements that are inside, in front of all users of w. */
static Value *
build_inside(Unwrap *u, Builder *b)
{
    const Wrapped *t = &u->wrapped;
    Map map;
    map_init(&map, &u->s->tmp);
    if (t->inside)
        return bring(b, &t->inside->results[0], u->at, &map);
    Value *x = bring(b, t->x, u->at, &map);
    Value *end = bring(b, t->end ? t->end : t->last, u->at, &map);
    return build_cmp(b, OP_CMPI, t->end ? "slt" : "sle", x, end);
}

static void
mask_load(Unwrap *u, Op *load, Value *inside)
{
    const Type *t = load->results[0].type;
    Builder b = builder_before(load);
    b.loc = load->loc;
    int dim = (int)(uintptr_t)map_get(&u->dims, &load->results[0]) - 1;
    for (int d = 0; d < t->rank; d++)
        if (d != dim)
            inside = build_expand_dims(&b, inside, d);
    if (t->rank > 1)
        inside = build_broadcast(&b, inside, t->shape);
    if (load->noperand == 1)
        op_add_operand(load, inside);
    else
        op_set_operand(load, 1, build_binary(&b, OP_AND, op_operand(load, 1), inside));
}

static bool
visit(void *user, Op *op)
{
    Unwrap *u = user;
    if (!is_wrapped(u, op) || !is_unused_outside(u, op))
        return false;
    Builder b = builder_before(u->at);
    b.loc = op->loc;
    Value *inside = build_inside(u, &b);
    for (int i = 0; i < u->loads.n; i++)
        mask_load(u, u->loads.at[i], inside);
    if (!u->wrapped.x->name)
        u->wrapped.x->name = u->wrapped.w->name;
    value_replace(u->wrapped.w, u->wrapped.x);
    op_erase(op);
    return true;
}

bool
pass_unwrap(Func *f, PassCx *cx)
{
    Unwrap u = {.s = cx->s};
    u.axis = axis_new(f, &cx->s->tmp);
    return pass_walk(f->body, visit, &u);
}
