/* Indices that were bent back into a matrix where is not used what lies behind its end.

       %w = rems %x, splat(%m)
       %a = load %p + %w[:, None] * %s      =>   %a = load %p + %x[:, None] * %s,
       .. dot %a, %b ..                                    (%x < %m)[:, None]
       store %c + %x[:, None] * .., %y, (%x < %m)[:, None] & ..

   and the same for select(x < m, x, 0) and min(x, m - 1).

   An author who wants no mask in the loop lets the rows that are too many be other rows,
   and masks them off at the end. Addresses that wrap around are no rows and columns of a
   matrix any more, though: not wide, and nothing for TMA. So the index becomes what it
   was before and the loads are masked, for any size of the matrix.

   That is the same where the elements along that dimension whose index was bent are not
   seen: followed from the index through addresses, loads, elementwise work, dots (not
   along their inner dimension), reductions along other dimensions and what loops carry,
   they only reach stores whose masks leave them out. What cannot be shown to stays as it
   is (and may be passes/access/assume_divisible.c's). */
#include "ir/analysis/affine.h"
#include "ir/analysis/natural.h"
#include "ir/base/map.h"
#include "ir/base/util.h"
#include "ir/base/vec.h"
#include "ir/build.h"
#include "ir/edit.h"
#include "passes/pass.h"

bool pass_unwrap(Func *f, PassCx *cx);

enum { MOST_VALUES = 4096, MASK_DEPTH = 16 };

/* An index tile of rank 1 that equals `x` where `inside` holds for its element. */
typedef struct Bent {
    Value *w, *x;
    Op *inside;  /* a comparison there is; NULL: 0 <= x < end (or <= last) */
    Value *end;  /* scalar or tile; one of these two without `inside` */
    Value *last;
    Affine room; /* inside means: room >= 0 */
} Bent;

typedef struct Unwrap {
    Session *s;
    Axis *axis;
    Bent bent;
    Map dims;          /* Value -> 1 + the dimension whose elements are those of w */
    Vec(Value *) work; /* values to be followed */
    Vec(Op *) loads;   /* that depend on w */
} Unwrap;

/* ---- what is bent */

/* a <= b, a < b as b - a - less >= 0; false where that is no sum. */
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

static bool
comparison(const Op *op, Affine *room)
{
    Name pred = attr_str(&op->attrs, ATTR_PRED);
    bool turned = pred[1] == 'g';
    return op->kind == OP_CMPI && pred[0] == 's' &&
           room_of(op_operand(op, turned), op_operand(op, !turned), pred[2] == 't', room);
}

static bool
is_bent(Unwrap *u, Op *op)
{
    Bent *t = &u->bent;
    *t = (Bent){.w = op->nresult ? &op->results[0] : NULL};
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

/* Does the mask hold only where the elements of w along `dim` are inside, whatever w
   becomes? It says so of x: a bent index is no sum. */
static bool
leaves_out(Unwrap *u, const Value *mask, int dim, int depth)
{
    const Op *op = mask->op;
    if (!op || depth > MASK_DEPTH || !type_is_tile(mask->type))
        return false;
    switch ((int)op->kind) {
    case OP_AND:
        return leaves_out(u, op_operand(op, 0), dim, depth + 1) ||
               leaves_out(u, op_operand(op, 1), dim, depth + 1);
    case OP_EXPAND_DIMS: {
        int axis = (int)attr_int(&op->attrs, ATTR_AXIS, 0);
        return axis != dim &&
               leaves_out(u, op_operand(op, 0), dim - (dim > axis), depth + 1);
    }
    case OP_BROADCAST:
        return op_operand(op, 0)->type->shape[dim] == mask->type->shape[dim] &&
               leaves_out(u, op_operand(op, 0), dim, depth + 1);
    case OP_TRANS:
        dim = (int)attr_find(&op->attrs, ATTR_PERM)->v.ints[dim];
        return leaves_out(u, op_operand(op, 0), dim, depth + 1);
    case OP_CMPI: {
        Affine room, more = u->bent.room;
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

/* ---- following */

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
    if (up->kind == OP_FOR)
        return reach(u, up->regions[0]->args[i + 1], dim) &&
               reach(u, &up->results[i], dim);
    return up->kind == OP_IF && reach(u, &up->results[i], dim);
}

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
        return op->noperand == 3 && leaves_out(u, op_operand(op, 2), dim, 0);
    case OP_ATOMIC_RMW:
        return op->noperand == 3 && !op_has_uses(op) &&
               leaves_out(u, op_operand(op, 2), dim, 0);
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

/* Are the elements that are not inside seen by nobody? */
static bool
is_unseen(Unwrap *u)
{
    map_init(&u->dims, &u->s->tmp);
    u->work.n = u->loads.n = 0;
    bool ok = reach(u, u->bent.w, 0);
    for (int i = 0; i < u->work.n && ok; i++) {
        Value *v = u->work.at[i];
        int dim = (int)(uintptr_t)map_get(&u->dims, v) - 1;
        for (const Use *use = v->uses; use && ok; use = use->next)
            ok = follow_use(u, use, dim);
    }
    return ok && u->loads.n > 0;
}

/* ---- rewriting */

/* Behind x, which every user of w can see. */
static Value *
build_inside(Unwrap *u, Builder *b)
{
    const Bent *t = &u->bent;
    if (t->inside)
        return &t->inside->results[0];
    return t->end ? build_cmp(b, OP_CMPI, "slt", t->x, t->end)
                  : build_cmp(b, OP_CMPI, "sle", t->x, t->last);
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
        op_set_operand(load, 1,
                       build_binary(&b, OP_AND, op_operand(load, 1), inside));
}

static bool
visit(void *user, Op *op)
{
    Unwrap *u = user;
    if (!is_bent(u, op) || !is_unseen(u))
        return false;
    Builder b = builder_before(op);
    b.loc = op->loc;
    Value *inside = build_inside(u, &b);
    for (int i = 0; i < u->loads.n; i++)
        mask_load(u, u->loads.at[i], inside);
    if (!u->bent.x->name)
        u->bent.x->name = u->bent.w->name;
    value_replace(u->bent.w, u->bent.x);
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
