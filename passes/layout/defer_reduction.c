/* A loop that adds the result of a reduction to a carried sum in each iteration: threads
   add up parts of it, and the reduction across lanes is done once, behind the loop.

       %t = for .. (%sum = 0) : tile<128xf32> {
         %r = reduce %w {axis=1} add          // of 128x128: in registers and over 4 lanes
         %m = mulf %sum, %g
         %y = addf %m, %r
         yield %y
       }
   =>
       %p = for .. (%part = 0) : tile<128x4xf32> {
         %r = reduce %w {axis=1} add          // in registers alone
         %m = mulf %part, (broadcast %g)
         %y = addf %m, %r
         yield %y
       }
       %t = reduce %p {axis=1} add

   The carried tile has a column for each thread that shares a row; for a sum of all
   elements, it has one number for each thread. It takes no more registers than the sum
   did, since each of these threads had a copy of that. Numbers are added in another
   order, but none is rounded more often. If a second loop goes on with the sum of a first
   one, it goes on with its parts. */
#include "ir/analysis/reduction.h"
#include "ir/base/map.h"
#include "ir/base/util.h"
#include "ir/build.h"
#include "ir/edit.h"
#include "ir/fold.h"
#include "ir/layout.h"
#include "passes/pass.h"

#include <math.h>

typedef struct Partial {
    Session *s;
    Map parts; /* the sum behind a rewritten loop -> the parts that it is reduced from */
    Op *loop;
    int i;          /* which of its carried values is looked at */
    Op *mul;        /* rescales the carried value; NULL: nothing does */
    Value *rescale; /* the factor */
    Op *add;        /* carried value + result of the reduction */
    Op *reduce;
    int axis; /* that is reduced */
    /* The reduced tile reshaped so that each dimension of the axis belongs to registers
       or to threads alone; the axis becomes dimensions first .. first + n - 1 of rank. */
    int rank, first, n;
    int64_t shape[MAX_RANK];
    bool regs[MAX_RANK]; /* of the dimension: it is in registers */
    const Type *type;    /* of the carried parts */
} Partial;

static bool
is_sum(const Op *reduce)
{
    const Op *op = reduction_operation(reduce);
    return op && op->kind == OP_ADDF;
}

/* Does the loop compute carried value i as (value [* rescale]) + reduce? Fills in the
   fields of p that say so. */
static bool
match(Partial *p)
{
    Region *body = p->loop->regions[0];
    Value *arg = body->args[p->i + 1], *end = op_operand(body->last, p->i);
    const Type *t = arg->type;
    bool row = t->kind == TY_TILE && t->rank == 1 && t->layout;
    if ((!row && t->kind != TY_SCALAR) || !type_is_float(t))
        return false;
    Op *add = value_def(end, OP_ADDF), *mul = value_only_user(arg);
    if (!add || add->parent != body || value_only_user(end) != body->last || !mul)
        return false;
    p->add = add;
    p->mul = mul->kind == OP_MULF && mul->parent == body ? mul : NULL;
    p->rescale = NULL;
    Value *old = p->mul ? &mul->results[0] : arg;
    if (value_only_user(old) != add)
        return false;
    if (p->mul)
        p->rescale = op_operand(mul, op_operand(mul, 0) == arg);
    p->reduce = value_def(op_operand(add, op_operand(add, 0) == old), OP_REDUCE);
    return p->reduce && p->reduce->parent == body &&
           value_only_user(&p->reduce->results[0]) == add && is_sum(p->reduce) &&
           op_operand(p->reduce, 0)->type->rank == 1 + row && p->rescale != arg;
}

/* Which of register, lane, warp and block selects coordinate bit `bit`? LD_COUNT: none,
   or several together. */
static LayoutDim
owner(const Layout *l, uint32_t bit)
{
    LayoutDim who = LD_COUNT;
    for (int d = 0; d < LD_COUNT; d++)
        for (int i = 0; i < l->nbasis[d]; i++) {
            if (!(l->basis[d][i] & bit))
                continue;
            if (l->basis[d][i] != bit || who != LD_COUNT)
                return LD_COUNT;
            who = (LayoutDim)d;
        }
    return who;
}

/* Cuts the axis into dimensions of registers and of threads. False if that cannot be, or
   if no thread shares the axis with another, so that nothing is gained. */
static bool
cut_axis(Partial *p)
{
    const Type *t = op_operand(p->reduce, 0)->type;
    const Layout *l = t->layout;
    bool threads = false;
    p->axis = (int)attr_int(&p->reduce->attrs, ATTR_AXIS, 0);
    p->first = p->axis;
    p->rank = 0;
    if (p->axis == 1)
        p->shape[p->rank++] = t->shape[0];
    for (int bit = l->log_shape[p->axis] - 1; bit >= 0; bit--) {
        LayoutDim who = owner(l, 1u << (layout_shift(l, p->axis) + bit));
        bool regs = who == LD_REG, more = p->rank > p->first;
        if (who == LD_COUNT || who == LD_BLOCK)
            return false;
        threads |= !regs;
        if (more && p->regs[p->rank - 1] == regs) {
            p->shape[p->rank - 1] *= 2;
            continue;
        }
        if (p->rank == MAX_RANK - 1)
            return false;
        p->regs[p->rank] = regs;
        p->shape[p->rank++] = 2;
    }
    p->n = p->rank - p->first;
    if (p->axis + 1 < t->rank)
        p->shape[p->rank++] = t->shape[1];
    return threads;
}

/* v, whose type gets layout l. */
static Value *
with_layout(Session *s, Value *v, const Layout *l)
{
    value_set_type(v, type_with_layout(s->types, v->type, l));
    return v;
}

/* A reduction of v along an axis, with the region of p->reduce. */
static Value *
sum_over(Partial *p, Builder *b, Value *v, int axis)
{
    AttrList attrs = {0};
    Map map;
    const Region *from = p->reduce->regions[0];
    map_init(&map, &p->s->tmp);
    attr_set_int(&p->s->mod, &attrs, ATTR_AXIS, axis);
    Op *op = build_op(b, OP_REDUCE, &v, 1, &attrs, NULL, 1);
    Region *to = region_new(b->func, op);
    Builder in = builder_at_end(b->func, to);
    in.loc = b->loc;
    for (int k = 0; k < 2; k++)
        map_set(&map, from->args[k], region_arg(to, from->args[k]->type, NULL));
    region_clone_into(&in, from, &map);
    Value *end = map_get(&map, op_operand(from->last, 0));
    build_yield(&in, &end, 1);
    Value *sum = &op->results[0];
    return v->type->rank == 1
               ? sum
               : with_layout(p->s, sum, layout_slice(p->s, v->type->layout, axis));
}

/* p->type: the reduced tile without the dimensions of the axis that are in registers. */
static void
find_type(Partial *p)
{
    const Type *t = op_operand(p->reduce, 0)->type;
    const Layout *l = layout_reshape(p->s, t->layout, p->rank, p->shape);
    int64_t shape[2] = {t->shape[0], t->rank > 1 ? t->shape[1] : 1};
    for (int d = p->first + p->n - 1; d >= p->first; d--)
        if (p->regs[d]) {
            l = layout_slice(p->s, l, d);
            shape[p->axis] /= p->shape[d];
        }
    l = layout_reshape(p->s, l, t->rank, shape);
    p->type = type_tile(p->s->types, t->elem, t->rank, shape, l);
}

/* The operand of p->reduce, reduced over the dimensions that are in registers. */
static Value *
parts_of(Partial *p, Builder *b)
{
    Value *v = op_operand(p->reduce, 0);
    const Layout *l = layout_reshape(p->s, v->type->layout, p->rank, p->shape);
    v = with_layout(p->s, build_reshape(b, v, p->rank, p->shape), l);
    for (int d = p->first + p->n - 1; d >= p->first; d--)
        if (p->regs[d])
            v = sum_over(p, b, v, d);
    if (v->type != p->type)
        v = with_layout(p->s, build_reshape(b, v, p->type->rank, p->type->shape),
                        p->type->layout);
    return v;
}

/* v, a factor for each row or a scalar, as a factor for each part. */
static Value *
widen(Partial *p, Builder *b, Value *v)
{
    if (v->type->kind == TY_SCALAR)
        return build_splat(b, v, p->type);
    const Layout *l = p->type->layout, *one = layout_squash(p->s, l, p->axis);
    v = with_layout(p->s, build_expand_dims(b, v, p->axis), one);
    return with_layout(p->s, build_broadcast(b, v, p->type->shape), l);
}

/* The parts that the loop begins with: zeros, or the parts of a loop before it. NULL: the
   sum begins with something else. */
static Value *
begin(Partial *p)
{
    Value *init = op_operand(p->loop, p->i + 3), *parts = map_get(&p->parts, init);
    Const c;
    Builder b = builder_before(p->loop);
    b.loc = p->loop->loc;
    if (parts)
        return parts->type == p->type ? parts : NULL;
    if (!value_const(init, &c) || !c.is_float || c.f != 0 || signbit(c.f))
        return NULL;
    return build_float(&b, p->type, 0.0);
}

static bool
rewrite(Partial *p)
{
    Region *body = p->loop->regions[0];
    Value *arg = body->args[p->i + 1], *old = op_result(p->loop, p->i);
    const Layout *rows = arg->type->kind == TY_TILE
                             ? layout_slice(p->s, p->type->layout, p->axis)
                             : NULL;
    Value *init = begin(p);
    if (!init || (rows && (rows != arg->type->layout ||
                           (p->rescale && p->rescale->type->layout != rows))))
        return false;
    const Type *was = arg->type;
    Builder b = builder_before(p->add);
    b.loc = p->add->loc;
    Value *parts = parts_of(p, &b);
    value_set_type(arg, p->type);
    value_set_type(old, p->type);
    op_set_operand(p->loop, p->i + 3, init);
    Value *sum = arg;
    if (p->rescale)
        sum = build_binary(&b, OP_MULF, sum, widen(p, &b, p->rescale));
    sum = build_binary(&b, OP_ADDF, sum, parts);
    op_set_operand(body->last, p->i, sum);
    b = builder_after(p->loop);
    b.loc = p->loop->loc;
    Value *total = sum_over(p, &b, old, p->axis);
    Op *reduce = total->op;
    value_set_type(total, was);
    value_replace(old, total);
    op_set_operand(reduce, 0, old);
    total->name = old->name;
    map_set(&p->parts, total, old);
    op_erase(p->add);
    if (p->mul)
        op_erase(p->mul);
    op_erase(p->reduce);
    return true;
}

/* Loops are visited in their order, so p->parts has the sums of the loops before. */
static bool
visit(void *user, Op *op)
{
    Partial *p = user;
    bool changed = false;
    p->loop = op;
    for (p->i = 0; op->kind == OP_FOR && p->i < op->nresult; p->i++)
        if (match(p) && cut_axis(p)) {
            find_type(p);
            changed |= rewrite(p);
        }
    return changed;
}

bool
pass_defer_reduction(Func *f, PassCx *cx)
{
    Partial p = {.s = cx->s};
    map_init(&p.parts, &cx->s->tmp);
    return pass_walk(f->body, visit, &p);
}
