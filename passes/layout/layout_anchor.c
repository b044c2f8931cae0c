/* Where layouts come from: accesses of memory; dots are in layout_dot.c.

   An access wants neighbouring lanes on neighbouring elements and up to 16 bytes of them
   in one thread. Accesses of one shape along one dimension share a layout, so that what
   is loaded from two arrays can be added without an exchange.

   The widest access says how many elements a thread holds, but not more than one store or
   atomic operation takes in the innermost loop: with more, each of them would leave gaps
   between the lanes of a warp, and memory is written in pieces of 32 bytes. So it is
   where neighbours are a few elements apart, or nobody knows how far. Loads with gaps are
   completed by the cache. */
#include "passes/layout/layout.h"

#include "ir/analysis/affine.h"
#include "ir/base/util.h"
#include "ir/fold.h"
#include "ir/plan/atomic_run.h"

enum { ACCESS_BYTES = 16 };

/* ---- memory */

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

/* Elements along d that one access of this pointer tile may take. */
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

/* What is taken apart or joined in pairs must be in one thread, of pairs of pairs too. */
enum { PAIRED = 4 };

static void
see_pairs(Layouts *p, const Op *op)
{
    const Value *v = op->kind == OP_JOIN ? &op->results[0] : op_operand(op, 0);
    vec_push(&p->s->tmp, &p->paired, type_numel(v->type));
}

/* Elements in a row that a thread should hold of a tile of n, aligned or not: it may be
   one that is taken apart when it has as many elements. */
static int
least_of(const Layouts *p, int64_t n)
{
    for (int i = 0; i < p->paired.n; i++)
        if (p->paired.at[i] == n)
            return PAIRED;
    return 1;
}

/* How far apart in memory, in elements, most neighbours along dimension d are: a quotient
   by the same number rarely changes from one to the next, a remainder rarely wraps. False
   when that is not known. */
static bool
step_along(const Value *v, int d, int *left, int64_t *step)
{
    const Op *op = v->op;
    int64_t a = 0, b = 0;
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
        return !*step || value_is_int(op_operand(op, a ? 1 : 0), 1);
    default: return false;
    }
}

/* Elements of one piece of memory that is read or written. */
static int64_t
apart(const Type *t)
{
    enum { PIECE_BYTES = 32 };
    return PIECE_BYTES / max_i64(1, type_bits(type_elem(t)->elem) / 8);
}

/* The largest power of two that is known to divide the polynomial. */
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

/* How far apart, in elements, neighbours along dimension d are at least: in *known how
   far if that is known, and else what divides it says. 0: one element, or nobody knows.
 */
static int64_t
least_step(Layouts *p, const Value *ptr, const Affine *at, int d, int64_t *known)
{
    enum { VISITS = 200 };
    int left = VISITS;
    *known = 0;
    if (at ? poly_is_const(&at->at[d], known) : step_along(ptr, d, &left, known))
        return *known < 0 ? -*known : *known;
    *known = 0;
    return at ? poly_divisor(p, &at->at[d]) : 0;
}

/* Where one access takes one element, neighbours of memory still belong to neighbouring
   lanes, and into one row of a buffer. Where no step of a load is one element it is the
   least: outer strides of an array are multiples of inner ones, and so what divides them
   says which is which. How far apart, in elements, the nearest neighbours are; 0: not
   known. */
static int64_t
see_order(Layouts *p, Op *op)
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
        least >= apart(ptr->type))
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
layout_see_fetched(Layouts *p, Op *op)
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

static int
purpose(const Layouts *p, const Op *op)
{
    const Value *v = op->kind == OP_STORE ? op_operand(op, 1) : NULL;
    if (v && v->op && (v->op->kind == OP_CONST || v->op->kind == OP_SPLAT))
        return FOR_FILL;
    return map_has(&p->fetched, op) ? FOR_MATMUL : FOR_DATA;
}

void
layout_see(Layouts *p, Op *op)
{
    if (op->kind == OP_JOIN || op->kind == OP_SPLIT)
        see_pairs(p, op);
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
        int64_t nearest = see_order(p, op);
        dim = layout_access_dim(op, &vec);
        if (dim < 0 && (op->kind != OP_STORE || nearest >= apart(t)))
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

/* Before its elements were given other places. */
static const Value *
unmoved(const Value *v)
{
    while (v->op && (v->op->kind == OP_RESHAPE || v->op->kind == OP_TRANS))
        v = op_operand(v->op, 0);
    return v;
}

/* The sum of a dot that is added to memory: the lanes that share a row of a fragment
   fill a sector together, so nothing is gained by an exchange before. */
static bool
adds_dot(const Op *op)
{
    return op->kind == OP_ATOMIC_RMW && !op->results[0].uses &&
           layout_from_dot(unmoved(op_operand(op, 1)));
}

/* A vector of fewer elements than threads, loaded one by one: where a reduction left its
   addresses they stay, in several lanes alike. Lanes of its own would save no access and
   cost exchanges through shared memory, in a loop in every iteration. */
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
