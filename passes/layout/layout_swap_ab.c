/* Dots of which a warpgroup computes the transpose, because it can only compute that
   or does it better.

       %y = dot %a, %b, %x  =>  %bt = trans %b, %at = trans %a, %xt = trans %x
                                %yt = dot %bt, %at, %xt
                                %y = trans %yt

   wgmma reads operands of 32 bits out of shared memory only when they lie along the inner
   dimension there. Rows of a right operand [K, N] lie across it. Seen transposed
   it is the left one, and that may come out of registers, where the threads read
   each element from where it lies. For operands of 8 bits that saves a copy
   (layout_transposes_bytes). Fewer rows of fp8 than wgmma has are its columns then:
   mma.sync on Hopper knows no fp8 (layout_turns_few_rows). The transposes cost nothing:
   two are ways to look at a buffer, and the third, of the sum, names registers; a sum
   that a loop carries is carried transposed.

   Called once accesses know along which dimension they run, before layouts are given. */
#include "passes/layout/layout.h"

#include <string.h>

static const int64_t swap[2] = {1, 0};

static const Type *
turned(Layouts *p, const Type *t)
{
    const int64_t shape[2] = {t->shape[1], t->shape[0]};
    return type_tile(p->s->types, type_elem(t), 2, shape, NULL);
}

/* A constant, transposed, is one of another shape. */
static Value *
turn_init(Layouts *p, Builder *b, Value *v)
{
    Op *c = value_def(v, OP_CONST);
    const Type *t = turned(p, v->type);
    return c ? &build_op(b, OP_CONST, NULL, 0, &c->attrs, &t, 1)->results[0]
             : build_trans(b, v, swap);
}

static bool
is_turnable(Layouts *p, const Op *dot)
{
    const Type *a = op_operand(dot, 0)->type, *acc = dot->results[0].type;
    Name precision = attr_str(&dot->attrs, ATTR_PRECISION);
    if (!p->target->wgmma || p->f->num_warps % 4)
        return false;
    if (layout_transposes_bytes(dot) || layout_turns_few_rows(p, dot))
        return layout_has_unit(p, dot);
    if (a->rank != 2 || a->scalar != SK_F32 || acc->scalar != SK_F32 || !precision ||
        strcmp(precision, "tf32") != 0 || acc->shape[0] < 8 || acc->shape[1] < 64)
        return false;
    return layout_operand_dim(op_operand(dot, 0)) == 1 &&
           layout_operand_dim(op_operand(dot, 1)) == 1;
}

/* Users of v take its transpose. */
static void
turn_back(Value *v)
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
    if (op->kind != OP_DOT || !is_turnable(p, op))
        return;
    Op *loop = layout_summing_loop(op);
    Value *acc = op_operand(op, 2);
    if (!loop && !value_def(acc, OP_CONST))
        return;
    Builder b = builder_before(op);
    b.loc = op->loc;
    Value *left = build_trans(&b, op_operand(op, 1), swap);
    Value *right = build_trans(&b, op_operand(op, 0), swap);
    const Type *t = turned(p, acc->type);
    if (loop) {
        int i = acc->index;
        Builder out = builder_before(loop);
        out.loc = loop->loc;
        op_set_operand(loop, i + 2, turn_init(p, &out, op_operand(loop, i + 2)));
        value_set_type(acc, t);
        Value *sum = op_result(loop, i - 1);
        value_set_type(sum, t);
        turn_back(sum);
    } else {
        op_set_operand(op, 2, turn_init(p, &b, acc));
    }
    op_set_operand(op, 0, left);
    op_set_operand(op, 1, right);
    value_set_type(&op->results[0], t);
    if (!loop)
        turn_back(&op->results[0]);
}
