/* Where layouts come from: accesses of memory and matrix products.

   An access wants neighbouring lanes on neighbouring elements and up to 16 bytes of them
   in one thread. Accesses of one shape along one dimension share a layout, so that what
   is loaded from two arrays can be added without an exchange.

   A product wants its accumulator and operands in the fragments of mma.sync. The warps
   are laid over the result so that the fewest operand elements are read twice; if the
   result becomes the left operand of another product, all of them along the rows: then
   its fragments are that operand's already. What mma cannot compute (fp32 in full
   precision, fp64, small sizes) is done by each thread on the elements that it owns. */
#include "passes/layout.h"

#include "ir/analysis/affine.h"
#include "ir/base/util.h"

#include <string.h>

enum { ACCESS_BYTES = 16, CHAIN_DEPTH = 24 };

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

static bool comes_from_dot(const Value *v, int depth);

/* The dimension that memory runs along, -1 when it is not known; one access takes *vec
   elements. */
static int
access_dim(const Op *op, int *vec)
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
    int dim = access_dim(op, &vec);
    if (dim < 0)
        see_order(p, op);
    dim = access_dim(op, &vec);
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
    layout_give(p, ptr, layout_along(p, ptr->type, access_dim(op, &vec)));
}

/* Before its elements were given other places. */
static const Value *
unmoved(const Value *v)
{
    while (v->op && (v->op->kind == OP_RESHAPE || v->op->kind == OP_TRANS))
        v = op_operand(v->op, 0);
    return v;
}

/* The sum of a product that is added to memory: the lanes that share a row of a fragment
   fill a sector together, so nothing is gained by an exchange before. */
static bool
adds_product(const Op *op)
{
    return op->kind == OP_ATOMIC_RMW && !op->results[0].uses &&
           comes_from_dot(unmoved(op_operand(op, 1)), 0);
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

/* ---- products */

/* One mma instruction: k elements deep, kwidth of them in a 32-bit register. */
typedef struct MmaShape {
    int k, kwidth;
} MmaShape;

static bool
mma_shape(Layouts *p, const Op *op, MmaShape *out)
{
    ScalarKind a = op_operand(op, 0)->type->scalar, b = op_operand(op, 1)->type->scalar;
    ScalarKind acc = op_operand(op, 2)->type->scalar;
    Name precision = attr_str(&op->attrs, ATTR_PRECISION);
    bool tf32 = precision && strncmp(precision, "tf32", 4) == 0;
    bool fp8 = a == b && (a == SK_F8E5 || a == SK_F8E4);
    if (a == b && ((a == SK_F16 && (acc == SK_F32 || acc == SK_F16)) ||
                   (a == SK_BF16 && acc == SK_F32)))
        *out = (MmaShape){16, 2};
    else if (a == SK_F32 && b == SK_F32 && acc == SK_F32 && tf32)
        *out = (MmaShape){8, 1};
    else if (a == SK_I8 && b == SK_I8 && acc == SK_I32)
        *out = (MmaShape){32, 4};
    else if (fp8 && acc == SK_F32 && p->target->sm >= 89)
        *out = (MmaShape){32, 4};
    else
        return false;
    return true;
}

static bool leads_to_lhs(const Value *v, int depth);

static bool
use_leads_to_lhs(const Use *u, int depth)
{
    const Op *op = u->user;
    if (op->kind == OP_DOT)
        return u->index == 0;
    bool on = op_is(op, T_ELEMENTWISE) && op->nresult == 1;
    return on && leads_to_lhs(&op->results[0], depth + 1);
}

/* Does v, through elementwise work, become the left operand of a product? */
static bool
leads_to_lhs(const Value *v, int depth)
{
    value_each_use(v,
                   u) if (depth < CHAIN_DEPTH && use_leads_to_lhs(u, depth)) return true;
    return false;
}

/* Does v come, through elementwise work, from a product? */
static bool
comes_from_dot(const Value *v, int depth)
{
    const Op *op = v->op;
    if (!op || depth > CHAIN_DEPTH)
        return false;
    if (op->kind == OP_DOT)
        return true;
    for (int i = 0; op_is(op, T_ELEMENTWISE) && i < op->noperand; i++)
        if (comes_from_dot(op_operand(op, i), depth + 1))
            return true;
    return false;
}

/* warps[0] x warps[1] over an m x n result. Each warp reads m / warps[0] rows of the left
   and n / warps[1] columns of the right operand: the fewest of both together. */
static void
place_warps(Layouts *p, const Op *op, int64_t m, int64_t n, int warps[2])
{
    bool chain = leads_to_lhs(&op->results[0], 0) || comes_from_dot(op_operand(op, 0), 0);
    int64_t best = INT64_MAX;
    for (int w = 1; w <= p->f->num_warps; w *= 2) {
        int64_t wm = w, wn = p->f->num_warps / w;
        int64_t rows = max_i64(m / wm, 16), cols = max_i64(n / wn, 8);
        /* warps that find no rows or columns of their own repeat others' work */
        int64_t idle = max_i64(wm * 16 / m, 1) * max_i64(wn * 8 / n, 1);
        int64_t cost = (rows + cols) * idle * idle;
        if (chain && wn > 1)
            cost += m + n;
        if (cost < best) {
            best = cost;
            warps[0] = (int)wm;
            warps[1] = (int)wn;
        }
    }
}

/* Operand 0 or 1 of a product that threads compute element by element: every thread has
   the whole rows (columns) of its elements of the result. */
static const Layout *
fma_operand(Session *s, const Layout *acc, const Type *t, int op)
{
    int k = op == 0 ? t->rank - 1 : t->rank - 2;
    Layout out = {.kind = LK_DISTRIBUTED, .rank = t->rank};
    for (int i = 0; i < t->rank; i++)
        out.lg[i] = (uint8_t)log2_floor((uint64_t)t->shape[i]);
    for (int i = 0; i < out.lg[k]; i++)
        out.b[LD_REG][out.n[LD_REG]++] = 1u << (layout_shift(&out, k) + i);
    for (int d = 0; d < LD_COUNT; d++) {
        for (int i = 0; i < acc->n[d]; i++) {
            uint32_t c = 0;
            for (int j = 0; j < t->rank; j++)
                if (j != k)
                    c |= (uint32_t)layout_part(acc, acc->b[d][i], j)
                         << layout_shift(&out, j);
            if (c || d != LD_REG)
                out.b[d][out.n[d]++] = c;
        }
    }
    return layout_intern(s, &out);
}

int
layout_access_dim(const Op *op)
{
    int vec;
    return layout_is_access(op) ? access_dim(op, &vec) : -1;
}

int
layout_operand_dim(const Value *v)
{
    const Op *op = v->op;
    for (int i = 0; op && i < CHAIN_DEPTH; i++) {
        if (op->kind == OP_LOAD)
            return layout_access_dim(op);
        if (op->kind == OP_TRANS) {
            int dim = layout_operand_dim(op_operand(op, 0));
            return dim < 0 ? dim : 1 - dim;
        }
        if (!op_is(op, T_ELEMENTWISE) || !op->noperand)
            break;
        op = op_operand(op, 0)->op;
    }
    return -1;
}

/* Rows of 32 bytes at least; only 16-bit operands may lie across the inner dimension, and
   left ones of 32 bits, which come out of registers then (passes/wgmma.c). */
static bool
wgmma_reads(const Value *v, int inner, bool from_dot)
{
    enum { ROW = 32 };
    const Type *t = v->type;
    int bytes = type_bits(t) / 8, dim = layout_operand_dim(v);
    bool by_regs = bytes == 4 && inner == 1 && value_def(v, OP_TRANS) && dim >= 0;
    if (bytes != 2 && dim != inner && !by_regs)
        return false;
    return from_dot || (t->shape[0] * bytes >= ROW && t->shape[1] * bytes >= ROW);
}

/* Warpgroups lie along the rows, 64 of them each, as far as these go. */
static bool
plan_wgmma(Layouts *p, const Op *op, const MmaShape *mma, DotPlan *plan)
{
    const Value *a = op_operand(op, 0), *b = op_operand(op, 1);
    const Type *acc = op_operand(op, 2)->type;
    int groups = p->f->num_warps / 4, along = 1;
    if (!p->target->wgmma || p->f->num_warps % 4 || acc->shape[0] < 64 ||
        a->type->shape[1] < mma->k)
        return false;
    if (!wgmma_reads(a, 1, comes_from_dot(a, 0)) || !wgmma_reads(b, 0, false))
        return false;
    while (2 * along <= groups && acc->shape[0] >= 128 * along)
        along *= 2;
    int warps[2] = {4 * along, groups / along};
    int64_t n = acc->shape[1] / warps[1];
    if (n < 8 || (type_bits(a->type) == 8 && n < 16))
        return false;
    *plan = (DotPlan){.unit = "wgmma"};
    plan->acc = layout_wgmma(p->s, acc->shape, (int)min_i64(n, 256), warps);
    return true;
}

static DotPlan
plan_dot(Layouts *p, const Op *op)
{
    const Type *a = op_operand(op, 0)->type, *b = op_operand(op, 1)->type;
    const Type *acc = op_operand(op, 2)->type;
    MmaShape mma;
    DotPlan plan = {.unit = "fma"};
    if (acc->rank == 2 && mma_shape(p, op, &mma) && plan_wgmma(p, op, &mma, &plan))
        return plan;
    if (acc->rank == 2 && mma_shape(p, op, &mma) && acc->shape[0] >= 16 &&
        acc->shape[1] >= 8 && a->shape[1] >= mma.k) {
        int warps[2];
        place_warps(p, op, acc->shape[0], acc->shape[1], warps);
        plan.unit = "mma";
        plan.acc = layout_mma(p->s, acc->shape, warps);
        plan.a = layout_mma_operand(p->s, a->shape, warps, 0, mma.kwidth);
        plan.b = layout_mma_operand(p->s, b->shape, warps, 1, mma.kwidth);
        return plan;
    }
    plan.acc = acc->layout
                   ? acc->layout
                   : layout_along(p, type_with_layout(p->s->types, acc, NULL), -1);
    plan.a = fma_operand(p->s, plan.acc, a, 0);
    plan.b = fma_operand(p->s, plan.acc, b, 1);
    return plan;
}

void
layout_anchor_dot(Layouts *p, Op *op)
{
    if (op->kind != OP_DOT)
        return;
    DotPlan *plan = arena_new(&p->s->tmp, DotPlan);
    *plan = plan_dot(p, op);
    map_set(&p->dots, op, plan);
    attr_set_str(&p->s->mod, &op->attrs, ATTR_UNIT, name_of(&p->s->names, plan->unit));
    layout_give(p, &op->results[0], plan->acc);
    layout_give(p, op_operand(op, 2), plan->acc);
}
