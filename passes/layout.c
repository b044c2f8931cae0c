/* Layouts for every tile: which thread holds which element.

   A shape that memory is touched in gets one layout (the anchors): its accesses say along
   which dimension elements are contiguous and how many one thread can move at once. From
   there layouts go backwards, through elementwise work unchanged and through operations
   that change the shape as these ask (a slice for expand_dims, a squash for broadcast,
   ..). Where an operand still has another layout than its user needs, a convert_layout is
   put in between; conversions of values that are cheap to compute are then removed by
   computing the value again, in the layout wanted:

       %r = arange : tile<64xi32, #a>             %r = arange : tile<64xi32, #slice>
       %c = convert_layout %r : #slice      =>    %e = expand_dims %r : tile<64x1xi32, #b>
       %e = expand_dims %c {axis=1} : #b

   What remains is an exchange between threads. Loads and stores carry {contig} from
   here on: the elements, per dimension, that one access may take together. */
#include "ir/analysis/axis.h"
#include "ir/base/map.h"
#include "ir/base/util.h"
#include "ir/base/vec.h"
#include "ir/build.h"
#include "ir/edit.h"
#include "ir/layout.h"
#include "passes/pass.h"

bool pass_layout(Func *f, PassCx *cx);

enum { ACCESS_BYTES = 16, REMAT_DEPTH = 64 };

typedef struct Choice {
    const Type *shape; /* a tile of that shape, without layout */
    int vec, dim;      /* widest access and its dimension */
    bool anchor;       /* memory is accessed in this shape */
    const Layout *layout;
} Choice;

typedef struct Layouts {
    Session *s;
    Func *f;
    Axis *axis;
    Vec(Choice) choices;
    Vec(Op *) converts;
    int least; /* elements in a row that a thread should hold, aligned or not */
} Layouts;

/* ---- one layout for each shape */

static Choice *
choice_of(Layouts *p, const Type *t)
{
    for (int i = 0; i < p->choices.n; i++)
        if (type_same_shape(p->choices.at[i].shape, t))
            return &p->choices.at[i];
    Choice c = {.shape = t, .vec = 1, .dim = t->rank - 1};
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
    int mask = op->kind == OP_STORE ? 2 : 1;
    if (op->noperand > mask)
        run = min_i64(run, axis_of(p->axis, op_operand(op, mask))->constancy[d]);
    return (int)min_i64(run, ACCESS_BYTES / bytes);
}

/* What is taken apart or joined in pairs must be in one thread. */
enum { PAIRED = 4 };

static void
see_access(Layouts *p, Op *op)
{
    if (op->kind == OP_JOIN || op->kind == OP_SPLIT)
        p->least = PAIRED;
    if (op->kind != OP_LOAD && op->kind != OP_STORE)
        return;
    const Type *t = op_operand(op, 0)->type;
    if (!type_is_tile(t))
        return;
    Choice *c = choice_of(p, t);
    c->anchor = true;
    int64_t runs[MAX_RANK];
    for (int d = 0; d < t->rank; d++) {
        runs[d] = access_run(p, op, d);
        if (runs[d] > c->vec) {
            c->vec = (int)runs[d];
            c->dim = d;
        }
    }
    attr_set_ints(&p->s->mod, &op->attrs, ATTR_CONTIG, runs, t->rank);
}

static const Layout *
layout_for(Layouts *p, const Type *t)
{
    Choice *c = choice_of(p, t);
    if (c->layout)
        return c->layout;
    int order[MAX_RANK], n = 0;
    order[n++] = c->dim;
    for (int d = t->rank - 1; d >= 0; d--)
        if (d != c->dim)
            order[n++] = d;
    int64_t each = type_numel(t) / (32 * p->f->num_warps);
    int64_t vec = max_i64(c->vec, p->least);
    vec = min_i64(min_i64(vec, each < 1 ? 1 : each), t->shape[c->dim]);
    c->layout = layout_spread(p->s, t->rank, t->shape, (int)vec, order, p->f->num_warps);
    return c->layout;
}

static void
give(Layouts *p, Value *v)
{
    if (type_is_tile(v->type) && !v->type->layout)
        value_set_type(v, type_with_layout(p->s->types, v->type, layout_for(p, v->type)));
}

static void
each_op(Layouts *p, Region *r, void (*fn)(Layouts *, Op *), int depth)
{
    if (depth > MAX_REGION_DEPTH)
        return;
    region_each(r, op)
    {
        fn(p, op);
        for (int i = 0; i < op->nregion; i++)
            each_op(p, op->regions[i], fn, depth + 1);
    }
}

static void
give_results(Layouts *p, Op *op)
{
    for (int i = 0; i < op->nresult; i++)
        give(p, &op->results[i]);
}

/* Values of anchored shapes, and those that cross the edge of a region: there one layout
   must do for all that meet. */
static void
give_anchors(Layouts *p, Op *op)
{
    bool crosses = op->kind == OP_FOR || op->kind == OP_WHILE || op->kind == OP_IF;
    for (int i = 0; i < op->nresult; i++)
        if (type_is_tile(op->results[i].type) &&
            (crosses || choice_of(p, op->results[i].type)->anchor))
            give(p, &op->results[i]);
    for (int k = 0; k < op->nregion; k++)
        for (int i = 0; i < op->regions[k]->narg; i++)
            give(p, op->regions[k]->args[i]);
}

/* ---- operations that change the shape */

static Value *
convert(Layouts *p, Builder *b, Value *v, const Layout *to)
{
    const Type *t = type_with_layout(p->s->types, v->type, to);
    if (t == v->type)
        return v;
    Op *op = build_op(b, OP_CONVERT_LAYOUT, &v, 1, NULL, &t, 1);
    vec_push(&p->s->tmp, &p->converts, op);
    return &op->results[0];
}

/* The layout that the operand of a moving op must have; NULL: the op says nothing. */
static const Layout *
operand_layout(Session *s, const Op *op, const Layout *to)
{
    const Type *t = op->noperand ? op_operand(op, 0)->type : NULL;
    const Layout *from = to;
    if (!t || !type_is_tile(t))
        return NULL;
    switch ((int)op->kind) {
    case OP_BROADCAST:
        for (int i = 0; i < t->rank; i++)
            if (t->shape[i] == 1 && to->lg[i])
                from = layout_squash(s, from, i);
        return from;
    case OP_EXPAND_DIMS:
        return layout_slice(s, to, (int)attr_int(&op->attrs, ATTR_AXIS, 0));
    case OP_RESHAPE: return layout_reshape(s, to, t->rank, t->shape);
    case OP_TRANS: {
        const Attr *perm = attr_find(&op->attrs, ATTR_PERM);
        int64_t back[MAX_RANK];
        for (int i = 0; i < t->rank; i++)
            back[perm->v.ints[i]] = i;
        return layout_trans(s, to, back);
    }
    case OP_JOIN: return layout_split(s, to);
    default: return NULL;
    }
}

/* Results that follow from the operand: made so, and converted for their users. */
static void
fix_results(Layouts *p, Op *op, const Layout *from)
{
    Builder b = builder_after(op);
    for (int i = 0; i < op->nresult && from; i++) {
        Value *v = &op->results[i];
        if (!type_is_tile(v->type) || v->type->layout == from)
            continue;
        const Layout *wanted = v->type->layout;
        value_set_type(v, type_with_layout(p->s->types, v->type, from));
        const Type *t = type_with_layout(p->s->types, v->type, wanted);
        Op *c = build_op(&b, OP_CONVERT_LAYOUT, &v, 1, NULL, &t, 1);
        value_replace(v, &c->results[0]);
        op_set_operand(c, 0, v);
        vec_push(&p->s->tmp, &p->converts, c);
    }
}

/* From users to what they use. */
static void
give_backward(Layouts *p, Region *r, int depth)
{
    for (Op *op = r->last; op && depth <= MAX_REGION_DEPTH; op = op->prev) {
        for (int i = 0; i < op->nregion; i++)
            give_backward(p, op->regions[i], depth + 1);
        const Layout *to = op->nresult ? op->results[0].type->layout : NULL;
        bool each = op_is(op, T_ELEMENTWISE);
        if (!to || (!each && !op_is(op, T_SHAPE)))
            continue;
        const Layout *need = each ? to : operand_layout(p->s, op, to);
        for (int i = 0; need && i < op->noperand; i++) {
            Value *v = op_operand(op, i);
            if (type_is_tile(v->type) && !v->type->layout)
                value_set_type(v, type_with_layout(p->s->types, v->type, need));
        }
    }
}

/* ---- operands that have another layout than their user needs */

static void
want(Layouts *p, Op *op, int i, const Type *like)
{
    Builder b = builder_before(op);
    Value *v = op_operand(op, i);
    if (type_is_tile(v->type) && like->layout)
        op_set_operand(op, i, convert(p, &b, v, like->layout));
}

static void
want_all(Layouts *p, Op *op, int first, const Type *like)
{
    for (int i = first; i < op->noperand; i++)
        want(p, op, i, like);
}

/* Values that end a region take the layouts of what they become. */
static void
fix_terminator(Layouts *p, Op *op)
{
    const Op *up = op->parent->parent;
    if (!up || (up->kind != OP_FOR && up->kind != OP_IF && up->kind != OP_WHILE))
        return;
    int first = op->kind == OP_CONDITION;
    for (int i = first; i < op->noperand; i++) {
        const Type *t = up->kind == OP_WHILE && !first ? up->regions[0]->args[i]->type
                                                       : up->results[i - first].type;
        want(p, op, i, t);
    }
}

static void
fix_shape(Layouts *p, Op *op)
{
    if (op->kind == OP_LOAD || op->kind == OP_STORE || op->kind == OP_ATOMIC_RMW ||
        op->kind == OP_ATOMIC_CAS) {
        want_all(p, op, 1, op_operand(op, 0)->type);
        fix_results(p, op, op_operand(op, 0)->type->layout);
    } else if (op->kind == OP_FOR || op->kind == OP_WHILE) {
        int first = op->kind == OP_FOR ? 3 : 0;
        for (int i = first; i < op->noperand; i++)
            want(p, op, i, op->regions[0]->args[i - first + (op->kind == OP_FOR)]->type);
    } else if (op->kind == OP_REDUCE) {
        int axis = (int)attr_int(&op->attrs, ATTR_AXIS, 0);
        const Type *t = op_operand(op, 0)->type;
        want_all(p, op, 1, t);
        fix_results(p, op, t->rank > 1 ? layout_slice(p->s, t->layout, axis) : NULL);
    } else if (op->kind == OP_SPLIT) {
        fix_results(p, op, layout_split(p->s, op_operand(op, 0)->type->layout));
    } else if (op_is(op, T_TERMINATOR)) {
        fix_terminator(p, op);
    } else if (op->nresult && type_is_tile(op->results[0].type) &&
               op->kind != OP_CONVERT_LAYOUT) {
        const Type *t = op->results[0].type;
        const Layout *need = op_is(op, T_ELEMENTWISE) ? t->layout
                             : op_is(op, T_SHAPE) ? operand_layout(p->s, op, t->layout)
                                                  : NULL;
        Builder b = builder_before(op);
        for (int i = 0; need && i < op->noperand; i++)
            if (type_is_tile(op_operand(op, i)->type))
                op_set_operand(op, i, convert(p, &b, op_operand(op, i), need));
    }
}

/* ---- computing again instead of exchanging */

static bool
is_cheap(const Op *op)
{
    switch ((int)op->kind) {
    case OP_CONST:
    case OP_UNDEF:
    case OP_ARANGE:
    case OP_SPLAT:
    case OP_BROADCAST:
    case OP_EXPAND_DIMS:
    case OP_TRANS:
    case OP_CONVERT_LAYOUT: return true;
    case OP_RESHAPE: return !type_is_tile(op_operand(op, 0)->type);
    default: return op_is(op, T_PURE | T_ELEMENTWISE);
    }
}

static bool
can_remat(const Value *v, int depth)
{
    const Op *op = v->op;
    if (!type_is_tile(v->type))
        return true;
    if (!op || depth > REMAT_DEPTH || !is_cheap(op))
        return false;
    for (int i = 0; i < op->noperand; i++)
        if (!can_remat(op_operand(op, i), depth + 1))
            return false;
    return true;
}

static Value *
remat(Layouts *p, Builder *b, Value *v, const Layout *to, int depth)
{
    Op *op = v->op;
    Value *in[8];
    if (!type_is_tile(v->type) || v->type->layout == to || depth > REMAT_DEPTH)
        return v;
    if (op->kind == OP_CONVERT_LAYOUT)
        return remat(p, b, op_operand(op, 0), to, depth + 1);
    const Layout *need = op_is(op, T_ELEMENTWISE) ? to : operand_layout(p->s, op, to);
    if (op->noperand > 8)
        return v;
    for (int i = 0; i < op->noperand; i++)
        in[i] =
            need ? remat(p, b, op_operand(op, i), need, depth + 1) : op_operand(op, i);
    const Type *t = type_with_layout(p->s->types, v->type, to);
    b->loc = op->loc;
    Value *r = &build_op(b, op->kind, in, op->noperand, &op->attrs, &t, 1)->results[0];
    r->name = v->name;
    return r;
}

static void
remove_converts(Layouts *p)
{
    for (int i = p->converts.n - 1; i >= 0; i--) {
        Op *c = p->converts.at[i];
        Value *v = op_operand(c, 0);
        const Layout *to = c->results[0].type->layout;
        if (layout_conversion(v->type->layout, to).kind <= CONV_REG || !can_remat(v, 0))
            continue;
        Builder b = builder_before(c);
        value_replace(&c->results[0], remat(p, &b, v, to, 0));
        op_erase(c);
    }
}

bool
pass_layout(Func *f, PassCx *cx)
{
    Layouts p = {.s = cx->s, .f = f, .axis = axis_new(f, &cx->s->tmp), .least = 1};
    each_op(&p, f->body, see_access, 0);
    for (int i = 0; i < f->body->narg; i++)
        give(&p, f->body->args[i]);
    each_op(&p, f->body, give_anchors, 0);
    give_backward(&p, f->body, 0);
    each_op(&p, f->body, give_results, 0); /* what nothing asked anything of */
    each_op(&p, f->body, fix_shape, 0);
    remove_converts(&p);
    return true;
}
