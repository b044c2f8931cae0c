/* Layouts for every tile: which thread holds which element.

   Two kinds of operations are anchors, which prefer a layout of their own. An access of
   memory prefers one in which neighbouring threads hold neighbouring elements; a dot
   needs the register fragments of the matrix instructions. From the anchors layouts flow
   along the data. Dots come first, since they can work in no other layout; then loads.
   What no anchor reaches (indices, constants, masks) takes the layout of its users: it is
   cheap to compute in any.

       %r = arange : tile<64xi32, #a>             %r = arange : tile<64xi32, #slice>
       %c = convert_layout %r : #slice      =>    %e = expand_dims %r : tile<64x1xi32, #b>
       %e = expand_dims %c {axis=1} : #b

   A convert_layout that remains at the end exchanges data between threads. Loads and
   stores carry {contig} from here on: how many elements, per dimension, one access may
   take at once. */
#include "ir/base/util.h"
#include "passes/layout/layout.h"

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

/* A broadcast of a tile that no anchor reached takes the layout of its operand, repeated
   along the new elements. Not a broadcast of a vector: it is cheap to convert, and so
   follows other operands of its users. */
static void
give_repeated(Layouts *p, Op *op)
{
    const Layout *l = op->kind == OP_BROADCAST ? op_operand(op, 0)->type->layout : NULL;
    const Type *t = op->nresult ? op->results[0].type : NULL;
    int sides = 0;
    for (int d = 0; l && d < t->rank; d++)
        sides += l->log_shape[d] > 0;
    if (sides < 2)
        return;
    for (int d = 0; d < t->rank; d++)
        if (t->shape[d] > 1 && !l->log_shape[d])
            l = layout_repeat(p->s, l, d, log2_floor((uint64_t)t->shape[d]));
    layout_give(p, &op->results[0], l);
}

/* Can op make its result in any layout, as of arange and constants alone? */
static bool
is_index(const Layouts *p, const Op *op)
{
    if (op->kind == OP_ARANGE || op->kind == OP_CONST || op->kind == OP_SPLAT)
        return true;
    if (!op_is(op, T_ELEMENTWISE) && !op_is(op, T_SHAPE))
        return false;
    for (int i = 0; i < op->noperand; i++) {
        const Value *v = op_operand(op, i);
        if (type_is_tile(v->type) && !(v->op && map_has(&p->indices, v->op)))
            return false;
    }
    return true;
}

/* Tiles of data that no anchor reached, as what is computed of vectors. Their layout
   flows on at once: the reshapes and reductions of a sort keep that of the tile that is
   sorted. Vectors are cheap to convert, and take what their users have; tiles that are
   split again and again want pairs in a thread each time, which their defaults have. */
static void
give_data_default(Layouts *p, Op *op)
{
    if (is_index(p, op)) {
        map_set(&p->indices, op, op);
        return;
    }
    if (!op->nresult || !op_is(op, T_ELEMENTWISE) || op->results[0].type->rank < 2)
        return;
    for (int i = 0; i < op->noperand; i++) {
        const Op *from = op_operand(op, i)->op;
        if (from && from->kind == OP_SPLIT)
            return;
    }
    layout_give(p, &op->results[0], layout_default(p, op->results[0].type));
    layout_flow(p, true);
}

/* A layout of v in which what its user splits off next has its default; NULL: nothing is
   split off. Halves of halves are then exchanged once. */
static const Layout *
for_next_split(Layouts *p, const Value *v, int depth)
{
    enum { DEPTH = 8 };
    const Op *op = v->uses ? v->uses->user : NULL;
    const Value *r = op && op->nresult ? &op->results[0] : NULL;
    if (!r || v->uses->next || depth > DEPTH || !type_is_tile(r->type))
        return NULL;
    const Layout *l = r->type->layout ? r->type->layout : for_next_split(p, r, depth + 1);
    if (op->kind == OP_SPLIT)
        return layout_join(p->s, l ? l : layout_default(p, r->type));
    return l && op_is(op, T_SHAPE) ? layout_operand(p->s, op, l) : NULL;
}

static void
give_default(Layouts *p, Op *op)
{
    for (int i = 0; i < op->nresult; i++) {
        Value *v = &op->results[i];
        const Layout *l = op->kind == OP_SPLIT ? for_next_split(p, v, 0) : NULL;
        layout_give(p, v, l ? l : layout_default(p, v->type));
    }
    for (int k = 0; k < op->nregion; k++)
        for (int i = 0; i < op->regions[k]->narg; i++) {
            Value *v = op->regions[k]->args[i];
            layout_give(p, v, layout_default(p, v->type));
        }
}

/* Tiles one behind the other are pairs whose halves are moved apart:

       %z = cat %x, %y {axis=a}  =>  %p = join %x, %y as [outer, inner]
                                     %z = trans %p to [outer, 2, inner], reshaped

   so that only one operation, the conversion of a layout, exchanges elements. */
static void
lower_cat(Layouts *p, Op *op)
{
    (void)p;
    if (op->kind != OP_CAT)
        return;
    const Type *t = op_operand(op, 0)->type, *to = op->results[0].type;
    int axis = (int)attr_int(&op->attrs, ATTR_AXIS, 0);
    int64_t flat[2] = {1, 1};
    for (int d = 0; d < t->rank; d++)
        flat[d >= axis] *= t->shape[d];
    Builder b = builder_before(op);
    b.loc = op->loc;
    Value *in[2];
    for (int i = 0; i < 2; i++)
        in[i] = build_reshape(&b, op_operand(op, i), 2, flat);
    Value *v = &build_op(&b, OP_JOIN, in, 2, NULL, NULL, 1)->results[0];
    v = build_trans(&b, v, (const int64_t[]){0, 2, 1});
    value_replace(&op->results[0], build_reshape(&b, v, to->rank, to->shape));
    op_erase(op);
}

void
layout_place(Layouts *p)
{
    enum { ROUNDS = 8 }; /* a value carried through k nested loops takes k + 1 rounds */
    Func *f = p->f;
    layout_more_warps(f);
    each_op(p, f->body, lower_cat, 0);
    p->axis = axis_new_nowrap(f, &p->s->tmp); /* address arithmetic does not wrap */
    map_init(&p->dots, &p->s->tmp);
    map_init(&p->operands, &p->s->tmp);
    map_init(&p->fetched, &p->s->tmp);
    map_init(&p->indices, &p->s->tmp);
    each_op(p, f->body, layout_collect_fetched, 0);
    each_op(p, f->body, layout_collect_access, 0);
    each_op(p, f->body, layout_widen, 0);
    each_op(p, f->body, layout_collect_operands, 0);
    p->operand_bytes = layout_operand_bytes(p, f->body, 0);
    each_op(p, f->body, layout_swap_ab, 0);
    for (int i = 0; i < f->body->narg; i++) {
        Value *v = f->body->args[i];
        layout_give(p, v, layout_default(p, v->type));
    }
    each_op(p, f->body, layout_anchor_address, 0);
    layout_flow(p, false);
    each_op(p, f->body, layout_anchor_dot, 0);
    p->dots_only = true;
    layout_flow(p, true);
    p->dots_only = false;
    each_op(p, f->body, layout_anchor_data, 0);
    layout_flow(p, true);
    each_op(p, f->body, layout_follow_address, 0);
    layout_flow(p, true);
    each_op(p, f->body, layout_anchor_rest, 0);
    layout_flow(p, true);
    layout_flow_later(p);
    for (int i = 0; i < ROUNDS && layout_backward(p, f->body, 0); i++)
        layout_flow(p, false);
    each_op(p, f->body, give_repeated, 0);
    layout_flow(p, true);
    for (int i = 0; i < ROUNDS && layout_backward(p, f->body, 0); i++)
        layout_flow(p, false);
    if (!region_has_trait(f->body, T_DOT)) /* whose layouts reach the tiles that matter */
        each_op(p, f->body, give_data_default, 0);
    for (int i = 0; i < ROUNDS && layout_backward(p, f->body, 0); i++)
        layout_flow(p, false);
    each_op(p, f->body, give_default, 0);
    each_op(p, f->body, layout_fix, 0);
    layout_remat(p);
}

bool
pass_layout(Func *f, PassCx *cx)
{
    Layouts p = {.s = cx->s, .f = f, .target = &cx->target};
    p.ways = layout_choose(f, cx);
    layout_place(&p);
    return true;
}
