/* Layouts for accesses of memory. Those of dots are in layout_dot.c.

   An access prefers neighbouring elements in neighbouring lanes, and up to 16 bytes of
   them in one thread. Accesses of one shape along one dimension share a layout, so that
   tiles loaded from two arrays can be added without a conversion.

   The widest access decides how many consecutive elements a thread holds, up to what the
   narrowest store or atomic in the innermost loop takes at once. If a thread held more,
   each store of a warp would leave gaps between its lanes, and a sector of 32 bytes would
   be written in several parts. A store whose neighbours are some elements apart, but less
   than a sector, or at an unknown distance, limits threads to one element for the same
   reason. Loads have no such limit: the cache holds the sector for the next load. */
#include "passes/layout/layout.h"

#include "ir/analysis/affine.h"
#include "ir/base/util.h"
#include "ir/fold.h"
#include "ir/plan/atomic_run.h"

enum { ACCESS_BYTES = 16 };

/* ---- memory */

/* The choice for accesses of tiles like t along dim; any dim if that is -1. */
static Choice *
choice_of(Layouts *p, const Type *t, int dim)
{
    for (int i = 0; i < p->choices.n; i++) {
        Choice *c = &p->choices.at[i];
        if (type_same_shape(c->shape, t) && (dim < 0 || c->dim == dim))
            return c;
    }
    Choice c = {.shape = t, .vec = 1, .dim = dim};
    vec_push(&p->s->tmp, &p->choices, c);
    return &p->choices.at[p->choices.n - 1];
}

static bool
is_atomic(const Op *op)
{
    return op->kind == OP_ATOMIC_RMW || op->kind == OP_ATOMIC_CAS;
}

/* How many elements along d one access may take: as many as are known to be contiguous,
   aligned and under one mask, and at most ACCESS_BYTES. */
static int
access_run(Layouts *p, const Op *op, int d)
{
    const Value *ptr = op_operand(op, 0);
    int bytes = (int)max_i64(1, type_bits(type_elem(ptr->type)->elem) / 8);
    int64_t run = axis_aligned_run(axis_of(p->axis, ptr), d, bytes);
    int mask = op->kind == OP_LOAD ? 1 : 2;
    if (op->noperand > mask && op->kind != OP_ATOMIC_CAS)
        run = min_i64(run, axis_of(p->axis, op_operand(op, mask))->constancy[d]);
    if (is_atomic(op))
        run = min_i64(run, atomic_run(op, p->target));
    return (int)min_i64(run, ACCESS_BYTES / bytes);
}

bool
layout_is_access(const Op *op)
{
    return op->kind == OP_LOAD || op->kind == OP_STORE || is_atomic(op);
}

static bool
is_access(const Op *op)
{
    return layout_is_access(op) && type_is_tile(op_operand(op, 0)->type);
}

int
layout_access_dim(const Op *op, int *vec)
{
    const Attr *contig = attr_find(&op->attrs, ATTR_CONTIG);
    int dim = (int)attr_int(&op->attrs, ATTR_ALONG, -1);
    *vec = 1;
    for (int d = 0; contig && d < contig->n; d++) {
        if (contig->v.ints[d] > *vec) {
            *vec = (int)contig->v.ints[d];
            dim = d;
        }
    }
    return dim;
}

/* Both elements of a pair that join makes or split takes must be in one thread. Two
   joins or splits in a row are common, so pairs of pairs are kept together. */
enum { PAIRED = 4 };

static void
collect_pairs(Layouts *p, const Op *op)
{
    const Value *v = op->kind == OP_JOIN ? &op->results[0] : op_operand(op, 0);
    vec_push(&p->s->tmp, &p->paired, type_numel(v->type));
}

/* The least number of consecutive elements that a thread should hold of a tile of n
   elements, whatever its alignment. PAIRED if a tile of as many elements is joined or
   split, since that may be this one after a reshape. */
static int
least_of(const Layouts *p, int64_t n)
{
    for (int i = 0; i < p->paired.n; i++)
        if (p->paired.at[i] == n)
            return PAIRED;
    return 1;
}

/* The usual distance in memory, in elements, between neighbours of v along dimension d.
   Usual, since a quotient rarely changes from one neighbour to the next (distance 0) and
   a remainder rarely wraps (the distance of its operand). False when it is not known.
   *left: operations that the walk may still visit. */
static bool
step_along(const Value *v, int d, int *left, int64_t *step)
{
    const Op *op = v->op;
    int64_t a = 0, b = 0;
    Const factor;
    *step = 0;
    if (--*left < 0)
        return false;
    if (!type_is_tile(v->type) || v->type->shape[d] == 1)
        return true;
    if (!op) {
        const Op *loop = v->region->parent;
        return loop && loop->kind == OP_FOR && v->index > 0 &&
               step_along(op_operand(loop, v->index + 2), d, left, step);
    }
    switch ((int)op->kind) {
    case OP_CONST:
    case OP_SPLAT: return true;
    case OP_ARANGE: *step = 1; return true;
    case OP_EXPAND_DIMS: {
        int axis = (int)attr_int(&op->attrs, ATTR_AXIS, 0);
        return step_along(op_operand(op, 0), d > axis ? d - 1 : d, left, step);
    }
    case OP_BROADCAST:
    case OP_CONVERT_LAYOUT:
    case OP_SEXT:
    case OP_ZEXT:
    case OP_TRUNC:
    case OP_REMS:
    case OP_REMU: return step_along(op_operand(op, 0), d, left, step);
    case OP_DIVS:
    case OP_DIVU: return step_along(op_operand(op, 0), d, left, &a);
    case OP_ADD:
    case OP_SUB:
    case OP_ADDPTR:
        if (!step_along(op_operand(op, 0), d, left, &a) ||
            !step_along(op_operand(op, 1), d, left, &b))
            return false;
        *step = op->kind == OP_SUB ? a - b : a + b;
        return true;
    case OP_MUL:
        if (!step_along(op_operand(op, 0), d, left, &a) ||
            !step_along(op_operand(op, 1), d, left, &b) || (a && b))
            return false;
        *step = a + b;
        if (*step && !value_const(op_operand(op, a ? 1 : 0), &factor))
            return false;
        *step *= *step ? factor.i : 1;
        return true;
    default: return false;
    }
}

/* How many elements of t a sector has, the unit in which memory is read and written. */
static int64_t
sector_elements(const Type *t)
{
    enum { SECTOR_BYTES = 32 };
    return SECTOR_BYTES / max_i64(1, type_bits(type_elem(t)->elem) / 8);
}

/* The largest power of two, up to AXIS_MAX_DIV, that is known to divide the
   polynomial. */
static int64_t
poly_divisor(Layouts *p, const Poly *sum)
{
    int64_t least = AXIS_MAX_DIV;
    for (int i = 0; i < sum->n; i++) {
        uint64_t k = (uint64_t)sum->t[i].k, by = k & (0 - k);
        for (int x = 0; x < sum->t[i].n && by < AXIS_MAX_DIV; x++)
            by *= (uint64_t)axis_of(p->axis, sum->t[i].x[x])->div[0];
        least = by < (uint64_t)least ? (int64_t)by : least;
    }
    return least;
}

/* The distance between neighbours along dimension d, where it is known. `at`: the address
   as a polynomial, or NULL. */
static bool
step_of(const Value *ptr, const Affine *at, int d, int64_t *step)
{
    enum { VISITS = 200 };
    int left = VISITS;
    *step = 0;
    return at ? poly_is_const(&at->at[d], step) : step_along(ptr, d, &left, step);
}

/* A lower bound of the distance, in elements, between neighbours along dimension d of an
   access; 0 when nothing is known. If the distance itself is known it is in *known and is
   the bound; if not, *known is 0 and the bound is the largest power of two that divides
   the distance. `at`: the address as a polynomial, or NULL. */
static int64_t
least_step(Layouts *p, const Value *ptr, const Affine *at, int d, int64_t *known)
{
    if (step_of(ptr, at, d, known))
        return *known < 0 ? -*known : *known;
    *known = 0;
    return at ? poly_divisor(p, &at->at[d]) : 0;
}

void
layout_steps(const Op *op, int64_t *step)
{
    const Value *ptr = op_operand(op, 0);
    const Op *loop = op->parent->parent;
    const Attr *contig = attr_find(&op->attrs, ATTR_CONTIG);
    Affine at;
    bool affine = affine_of(ptr, loop && loop->kind == OP_FOR ? loop : NULL, &at);
    for (int d = 0; d < ptr->type->rank; d++) {
        int64_t known;
        bool found = step_of(ptr, affine && d < AFFINE_RANK ? &at : NULL, d, &known);
        if (contig && contig->v.ints[d] > 1)
            step[d] = 1;
        else
            step[d] = !found ? STEP_UNKNOWN : known < 0 ? -known : known;
    }
}

/* Finds the dimension along which an access of one element at a time should run, for
   ATTR_ALONG: neighbours in memory still belong in neighbouring lanes, and in one row of
   a shared buffer. It is the dimension whose distance is one element. A load without such
   a dimension takes that of the least distance: outer strides of an array are multiples
   of inner ones, so a comparison of their divisors tells them apart. Returns the known
   distance, in elements, of the nearest neighbours; 0 when one of them is not known. */
static int64_t
find_order(Layouts *p, Op *op)
{
    const Value *ptr = op_operand(op, 0);
    const Op *loop = op->parent->parent;
    Affine at;
    bool affine = affine_of(ptr, loop && loop->kind == OP_FOR ? loop : NULL, &at);
    int64_t nearest = INT64_MAX, least = INT64_MAX;
    int one = -1, along = -1, wide = 0;
    for (int d = 0; d < ptr->type->rank && d < AFFINE_RANK; d++) {
        int64_t known;
        if (ptr->type->shape[d] == 1)
            continue;
        int64_t step = least_step(p, ptr, affine ? &at : NULL, d, &known);
        nearest = min_i64(nearest, known < 0 ? -known : known);
        one = known == 1 ? d : one;
        wide++;
        along = step < least ? d : step == least ? -1 : along;
        least = min_i64(least, step);
    }
    if (one >= 0 || op->kind == OP_STORE || wide < 2 || !least ||
        least >= sector_elements(ptr->type))
        along = one;
    if (along >= 0)
        attr_set_int(&p->s->mod, &op->attrs, ATTR_ALONG, along);
    return nearest;
}

static int
loops_around(const Op *op)
{
    int n = 0;
    for (const Op *up = op->parent->parent; up; up = up->parent->parent)
        n += up->kind == OP_FOR || up->kind == OP_WHILE;
    return n;
}

void
layout_collect_fetched(Layouts *p, Op *op)
{
    if (op->kind != OP_DOT)
        return;
    Vec(Value *) work = {0};
    vec_push(&p->s->tmp, &work, op_operand(op, 0));
    vec_push(&p->s->tmp, &work, op_operand(op, 1));
    for (int i = 0; i < work.n; i++) {
        Op *from = work.at[i]->op;
        if (!from || map_has(&p->fetched, from))
            continue;
        bool moves = op_is(from, T_ELEMENTWISE) || from->kind == OP_TRANS ||
                     from->kind == OP_RESHAPE || from->kind == OP_JOIN;
        if (from->kind == OP_LOAD || moves)
            map_set(&p->fetched, from, from);
        for (int k = 0; moves && k < from->noperand; k++)
            vec_push(&p->s->tmp, &work, op_operand(from, k));
    }
}

/* FOR_DATA, FOR_MATMUL or FOR_FILL */
static int
purpose(const Layouts *p, const Op *op)
{
    const Value *v = op->kind == OP_STORE ? op_operand(op, 1) : NULL;
    if (v && v->op && (v->op->kind == OP_CONST || v->op->kind == OP_SPLAT))
        return FOR_FILL;
    return map_has(&p->fetched, op) ? FOR_MATMUL : FOR_DATA;
}

void
layout_collect_access(Layouts *p, Op *op)
{
    if (op->kind == OP_JOIN || op->kind == OP_SPLIT)
        collect_pairs(p, op);
    if (!is_access(op))
        return;
    const Type *t = op_operand(op, 0)->type;
    int64_t runs[MAX_RANK];
    int vec;
    for (int d = 0; d < t->rank; d++)
        runs[d] = access_run(p, op, d);
    attr_set_ints(&p->s->mod, &op->attrs, ATTR_CONTIG, runs, t->rank);
    int dim = layout_access_dim(op, &vec);
    if (dim < 0) {
        int64_t nearest = find_order(p, op);
        dim = layout_access_dim(op, &vec);
        if (dim < 0 && (op->kind != OP_STORE || nearest >= sector_elements(t)))
            return;
    }
    Choice *c = choice_of(p, t, dim);
    c->vec = (int)max_i64(c->vec, vec);
    int loops = loops_around(op), what = purpose(p, op);
    if (what == FOR_DATA)
        c->data = (int)max_i64(c->data, vec);
    int *stored = what == FOR_FILL ? &c->filled : &c->stored;
    if (loops > c->loops)
        c->stored = 0;
    c->loops = (int)max_i64(c->loops, loops);
    if (op->kind != OP_LOAD && loops == c->loops)
        *stored = *stored ? (int)min_i64(*stored, vec) : vec;
}

/* The shared layout for accesses of tiles like t along a dimension (-1: any), for a
   purpose. */
static const Layout *
layout_along(Layouts *p, const Type *t, int along, int what)
{
    Choice *c = choice_of(p, t, along);
    const Layout **known = &c->layout[what];
    int most[CHOICES] = {[FOR_DATA] = c->stored, [FOR_FILL] = c->filled};
    if (*known)
        return *known;
    int order[MAX_RANK], n = 0, dim = c->dim < 0 ? t->rank - 1 : c->dim;
    order[n++] = dim;
    for (int d = t->rank - 1; d >= 0; d--)
        if (d != dim)
            order[n++] = d;
    int64_t each = type_numel(t) / (32 * p->f->num_warps);
    int64_t vec = what == FOR_DATA && c->data ? c->data : c->vec;
    vec = most[what] ? min_i64(vec, most[what]) : vec;
    vec = min_i64(max_i64(vec, least_of(p, type_numel(t))), each < 1 ? 1 : each);
    vec = min_i64(vec, t->shape[dim]);
    *known = what == FOR_DATA ? layout_chosen(p, c) : NULL;
    if (!*known)
        *known = layout_spread(p->s, t->rank, t->shape, (int)vec, order, p->f->num_warps);
    return *known;
}

const Layout *
layout_default(Layouts *p, const Type *t)
{
    return type_is_tile(t) && !t->layout ? layout_along(p, t, -1, FOR_DATA) : NULL;
}

static void
anchor_pointer(Layouts *p, Op *op)
{
    int vec;
    Value *ptr = op_operand(op, 0);
    int dim = layout_access_dim(op, &vec);
    layout_give(p, ptr, layout_along(p, ptr->type, dim, purpose(p, op)));
}

/* v before reshapes and transposes. */
static const Value *
unmoved(const Value *v)
{
    while (v->op && (v->op->kind == OP_RESHAPE || v->op->kind == OP_TRANS))
        v = op_operand(v->op, 0);
    return v;
}

/* Does op add the result of a dot to memory atomically? It does so in the layout of the
   dot: the lanes that share a row of a fragment fill a sector together, so a conversion
   would gain nothing. */
static bool
adds_dot(const Op *op)
{
    return op->kind == OP_ATOMIC_RMW && !op->results[0].uses &&
           layout_from_dot(unmoved(op_operand(op, 1)));
}

/* Does op load a vector of fewer elements than there are threads, one by one? It keeps
   the layout of its addresses even if several lanes hold copies, as after a reduction. A
   layout without copies would save no access, and a conversion to it would go through
   shared memory, in a loop in every iteration. */
static bool
goes_by_address(const Layouts *p, const Op *op)
{
    int vec;
    const Type *t = op_operand(op, 0)->type;
    layout_access_dim(op, &vec);
    return op->kind == OP_LOAD && t->rank == 1 && vec == 1 &&
           type_numel(t) < 32 * p->f->num_warps;
}

void
layout_anchor_address(Layouts *p, Op *op)
{
    if (is_access(op) && !adds_dot(op) && !goes_by_address(p, op))
        anchor_pointer(p, op);
}

void
layout_follow_address(Layouts *p, Op *op)
{
    if (is_access(op) && goes_by_address(p, op))
        layout_give(p, &op->results[0], op_operand(op, 0)->type->layout);
}

void
layout_anchor_rest(Layouts *p, Op *op)
{
    if (!is_access(op) || !goes_by_address(p, op))
        return;
    anchor_pointer(p, op);
    layout_follow_address(p, op);
}

void
layout_anchor_data(Layouts *p, Op *op)
{
    if (!is_access(op) || goes_by_address(p, op))
        return;
    if (adds_dot(op))
        layout_give(p, op_operand(op, 0), op_operand(op, 1)->type->layout);
    anchor_pointer(p, op);
    if (op->nresult)
        layout_give(p, &op->results[0], op_operand(op, 0)->type->layout);
}
