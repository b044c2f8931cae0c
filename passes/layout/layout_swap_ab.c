/* Transposes a dot that wgmma can compute only that way, or better: A * B becomes the
   transpose of B' * A'.

       %y = dot %a, %b, %x  =>  %bt = trans %b, %at = trans %a, %xt = trans %x
                                %yt = dot %bt, %at, %xt
                                %y = trans %yt

   There are three reasons. wgmma reads 32-bit operands from shared memory only if they
   are contiguous along the inner dimension, which a row-major right operand [K, N] is
   not; as the left operand of the transpose it may come from registers, which threads
   load in any order. For 8-bit operands this saves a copy (layout_transposes_bytes). And
   an fp8 dot with fewer rows than wgmma has can use them as columns
   (layout_transposes_few_rows); mma.sync has no fp8 on Hopper.

   The transposes cost nothing: the first two are views of a buffer, the third, of the
   accumulator, only renames registers. An accumulator that a loop carries is carried
   transposed.

   Called when accesses know along which dimension they run, before layouts are given. */
#include "passes/layout/layout.h"

#include <string.h>

static const int64_t swap[2] = {1, 0};

static const Type *
transposed(Layouts *p, const Type *t)
{
    const int64_t shape[2] = {t->shape[1], t->shape[0]};
    return type_tile(p->s->types, type_elem(t), 2, shape, NULL);
}

/* The transpose of an initial value. That of a constant is a constant. */
static Value *
transpose_init(Layouts *p, Builder *b, Value *v)
{
    Op *c = value_def(v, OP_CONST);
    const Type *t = transposed(p, v->type);
    return c ? &build_op(b, OP_CONST, NULL, 0, &c->attrs, &t, 1)->results[0]
             : build_trans(b, v, swap);
}

/* Should this dot be transposed? */
static bool
wants_transpose(Layouts *p, const Op *dot)
{
    const Type *a = op_operand(dot, 0)->type, *acc = dot->results[0].type;
    Name precision = attr_str(&dot->attrs, ATTR_PRECISION);
    if (!p->target->wgmma || p->f->num_warps % 4)
        return false;
    if (layout_transposes_bytes(dot) || layout_transposes_few_rows(p, dot))
        return layout_has_unit(p, dot);
    if (a->rank != 2 || a->scalar != SK_F32 || acc->scalar != SK_F32 || !precision ||
        strcmp(precision, "tf32") != 0 || acc->shape[0] < 8 || acc->shape[1] < 64)
        return false;
    return layout_operand_dim(op_operand(dot, 0)) == 1 &&
           layout_operand_dim(op_operand(dot, 1)) == 1;
}

/* Users of v, which is transposed now, get it as it was. */
static void
transpose_back(Value *v)
{
    Builder b = builder_after(v->op);
    b.loc = v->op->loc;
    Value *back = build_trans(&b, v, swap);
    value_replace(v, back);
    op_set_operand(back->op, 0, v);
    back->name = v->name;
}

void
layout_swap_ab(Layouts *p, Op *op)
{
    if (op->kind != OP_DOT || !wants_transpose(p, op))
        return;
    Op *loop = layout_accumulating_loop(op);
    Value *acc = op_operand(op, 2);
    if (!loop && !value_def(acc, OP_CONST))
        return;
    Builder b = builder_before(op);
    b.loc = op->loc;
    Value *left = build_trans(&b, op_operand(op, 1), swap);
    Value *right = build_trans(&b, op_operand(op, 0), swap);
    const Type *t = transposed(p, acc->type);
    if (loop) {
        int i = acc->index;
        Builder out = builder_before(loop);
        out.loc = loop->loc;
        op_set_operand(loop, i + 2, transpose_init(p, &out, op_operand(loop, i + 2)));
        value_set_type(acc, t);
        Value *sum = op_result(loop, i - 1);
        value_set_type(sum, t);
        transpose_back(sum);
    } else {
        op_set_operand(op, 2, transpose_init(p, &b, acc));
    }
    op_set_operand(op, 0, left);
    op_set_operand(op, 1, right);
    value_set_type(&op->results[0], t);
    if (!loop)
        transpose_back(&op->results[0]);
}
