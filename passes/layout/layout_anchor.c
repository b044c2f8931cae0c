/* Where layouts come from: accesses of memory; dots are in layout_dot.c.

   An access wants neighbouring lanes on neighbouring elements and up to 16 bytes of them
   in one thread. Accesses of one shape along one dimension share a layout, so that what
   is loaded from two arrays can be added without an exchange. */
#include "passes/layout/layout.h"

#include "ir/analysis/affine.h"
#include "ir/base/util.h"

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
    return (int)min_i64(run, ACCESS_BYTES / bytes);
}

bool
layout_is_access(const Op *op)
{
    return op->kind == OP_LOAD || op->kind == OP_STORE || op->kind == OP_ATOMIC_RMW ||
           op->kind == OP_ATOMIC_CAS;
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

/* What is taken apart or joined in pairs must be in one thread. */
enum { PAIRED = 4 };

/* Where one access takes one element, neighbours of memory still belong to neighbouring
   lanes, and into one row of a buffer. */
static void
see_order(Layouts *p, Op *op)
{
    const Value *ptr = op_operand(op, 0);
    const Op *loop = op->parent->parent;
    int64_t step;
    Affine at;
    if (!affine_of(ptr, loop && loop->kind == OP_FOR ? loop : NULL, &at))
        return;
    for (int d = 0; d < ptr->type->rank && d < AFFINE_RANK; d++)
        if (ptr->type->shape[d] > 1 && poly_is_const(&at.at[d], &step) && step == 1)
            attr_set_int(&p->s->mod, &op->attrs, ATTR_ALONG, d);
}

void
layout_see(Layouts *p, Op *op)
{
    if (op->kind == OP_JOIN || op->kind == OP_SPLIT)
        p->least = PAIRED;
    if (!is_access(op))
        return;
    const Type *t = op_operand(op, 0)->type;
    int64_t runs[MAX_RANK];
    int vec;
    for (int d = 0; d < t->rank; d++)
        runs[d] = access_run(p, op, d);
    attr_set_ints(&p->s->mod, &op->attrs, ATTR_CONTIG, runs, t->rank);
    int dim = layout_access_dim(op, &vec);
    if (dim < 0)
        see_order(p, op);
    dim = layout_access_dim(op, &vec);
    if (dim < 0)
        return;
    Choice *c = choice_of(p, t, dim);
    c->vec = (int)max_i64(c->vec, vec);
}

static const Layout *
layout_along(Layouts *p, const Type *t, int along)
{
    Choice *c = choice_of(p, t, along);
    if (c->layout)
        return c->layout;
    int order[MAX_RANK], n = 0, dim = c->dim < 0 ? t->rank - 1 : c->dim;
    order[n++] = dim;
    for (int d = t->rank - 1; d >= 0; d--)
        if (d != dim)
            order[n++] = d;
    int64_t each = type_numel(t) / (32 * p->f->num_warps);
    int64_t vec = max_i64(c->vec, p->least);
    vec = min_i64(min_i64(vec, each < 1 ? 1 : each), t->shape[dim]);
    c->layout = layout_spread(p->s, t->rank, t->shape, (int)vec, order, p->f->num_warps);
    return c->layout;
}

const Layout *
layout_default(Layouts *p, const Type *t)
{
    return type_is_tile(t) && !t->layout ? layout_along(p, t, -1) : NULL;
}

static void
anchor_pointer(Layouts *p, Op *op)
{
    int vec;
    Value *ptr = op_operand(op, 0);
    layout_give(p, ptr, layout_along(p, ptr->type, layout_access_dim(op, &vec)));
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
adds_product(const Op *op)
{
    return op->kind == OP_ATOMIC_RMW && !op->results[0].uses &&
           layout_from_dot(unmoved(op_operand(op, 1)), 0);
}

void
layout_anchor_address(Layouts *p, Op *op)
{
    if (is_access(op) && !adds_product(op))
        anchor_pointer(p, op);
}

void
layout_anchor_data(Layouts *p, Op *op)
{
    if (!is_access(op))
        return;
    if (adds_product(op))
        layout_give(p, op_operand(op, 0), op_operand(op, 1)->type->layout);
    anchor_pointer(p, op);
    if (op->nresult)
        layout_give(p, &op->results[0], op_operand(op, 0)->type->layout);
}
