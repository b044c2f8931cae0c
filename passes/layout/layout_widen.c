/* Dots of 8-bit floats for which the target has no matrix instruction: before sm_89, and
   on all targets those of types other than fp8e5 and fp8e4nv, and those with fp16
   accumulators. Their operands become fp16.

       %y = dot %a, %b, %x    =>    %ah = fext %a : tile<..xf16>
                                    %bh = fext %b : tile<..xf16>
                                    %y = dot %ah, %bh, %x

   Every 8-bit float is exact in fp16, so the result is the same. Elements still move
   between threads as bytes: pass `stage-mma-operands` moves the conversion behind that.
   Small tiles are left alone: threads multiply them in fp32 (codegen/gen_nv_fma.c). */
#include "passes/layout/layout.h"

static Value *
as_half(Layouts *p, Builder *b, Value *v)
{
    const Type *half = type_scalar(p->s->types, SK_F16);
    Op *trans = value_def(v, OP_TRANS);
    if (!trans)
        return build_cast(b, OP_FEXT, v, half);
    const Attr *perm =
        attr_find(&trans->attrs, ATTR_PERM); /* a load is seen through it */
    return build_trans(b, build_cast(b, OP_FEXT, op_operand(trans, 0), half),
                       perm->v.ints);
}

void
layout_widen(Layouts *p, Op *op)
{
    enum { ROWS = 16, COLUMNS = 8 };
    if (op->kind != OP_DOT || layout_has_unit(p, op))
        return;
    const Type *acc = op->results[0].type;
    int r = acc->rank;
    if (acc->shape[r - 2] < ROWS || acc->shape[r - 1] < COLUMNS)
        return;
    Builder b = builder_before(op);
    b.loc = op->loc;
    for (int i = 0; i < 2; i++) {
        const Type *t = op_operand(op, i)->type;
        if (!type_is_float(t) || type_bits(t) != 8)
            return;
    }
    for (int i = 0; i < 2; i++)
        op_set_operand(op, i, as_half(p, &b, op_operand(op, i)));
}
