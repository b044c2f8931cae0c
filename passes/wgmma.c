/* Products that a warpgroup computes asynchronously (wgmma, sm_90a): their operands stay
   in shared memory.

       %y = dot %a, %b, %x {unit="wgmma"}   =>   %ma = local_alloc %a : mem<..>
                                                 %mb = local_alloc %b : mem<..>
                                                 %r = wgmma %ma, %mb, %x : async<tile<..>>
                                                 %y = wgmma_wait %r {pending=0}

   The left operand comes from registers when its elements are there already: results of
   another product, whose accumulator has the operand's fragments. What is computed from
   one loaded tile is loaded into shared memory and computed on the fragments. The right
   operand always lies in shared memory, and so does what is written for it: the tensor
   cores read by another path than threads write, so pass `fence` stands between. */
#include "passes/operand.h"

#include <string.h>

bool pass_wgmma(Func *f, PassCx *cx);

/* A transpose costs nothing: the buffer is looked at the other way round. */
static Value *
buffer_for(Session *s, Builder *b, Value *v)
{
    Op *trans = value_def(v, OP_TRANS);
    Value *m = operand_buffer(s, b, trans ? op_operand(trans, 0) : v);
    return trans ? operand_turned(s, b, m, trans) : m;
}

/* Is memory's order the one across the inner dimension of a left operand? */
static bool
lies_across(const Value *v)
{
    Op *trans = value_def(v, OP_TRANS);
    const Type *t = trans ? op_operand(trans, 0)->type : v->type;
    return operand_fast_dim(t->layout) == (trans ? 1 : 0);
}

static Value *
left_operand(Session *s, Builder *b, Op *dot, Value *v)
{
    int n, warps[2], bits = type_bits(v->type);
    const Layout *regs = NULL;
    Value *load = NULL;
    if (layout_is_wgmma(dot->results[0].type->layout, &n, warps))
        regs = layout_wgmma_operand(s, v->type->shape, warps, bits < 32 ? 32 / bits : 1);
    if (regs && layout_conversion(v->type->layout, regs).kind <= CONV_REG) {
        const Type *t = type_with_layout(s->types, v->type, regs);
        return &build_op(b, OP_CONVERT_LAYOUT, &v, 1, NULL, &t, 1)->results[0];
    }
    if (regs && !value_def(v, OP_LOAD) && operand_is_work_on_load(v, &load) && load &&
        load->op->parent == dot->parent) {
        const Type *t = type_with_layout(s->types, load->type, regs);
        Value *m = operand_buffer(s, b, load);
        m = &build_op(b, OP_LOCAL_LOAD, &m, 1, NULL, &t, 1)->results[0];
        return operand_redo(s, b, v, regs, load, m);
    }
    Value *m = buffer_for(s, b, v);
    if (!regs || bits != 32 || !lies_across(v))
        return m;
    const Type *t = type_with_layout(s->types, v->type, regs);
    return &build_op(b, OP_LOCAL_LOAD, &m, 1, NULL, &t, 1)->results[0];
}

static void
lower(Session *s, Op *dot)
{
    Builder b = builder_before(dot);
    b.loc = dot->loc;
    Value *in[3] = {left_operand(s, &b, dot, op_operand(dot, 0)),
                    buffer_for(s, &b, op_operand(dot, 1)), op_operand(dot, 2)};
    Value *r = &build_op(&b, OP_WGMMA, in, 3, &dot->attrs, NULL, 1)->results[0];
    AttrList attrs = {0};
    attr_drop(&r->op->attrs, ATTR_UNIT);
    attr_set_int(&s->mod, &attrs, ATTR_PENDING, 0);
    Op *wait = build_op(&b, OP_WGMMA_WAIT, &r, 1, &attrs, NULL, 1);
    wait->results[0].name = dot->results[0].name;
    value_replace(&dot->results[0], &wait->results[0]);
    op_erase(dot);
}

static bool
visit(void *user, Op *op)
{
    Name unit = attr_str(&op->attrs, ATTR_UNIT);
    if (op->kind != OP_DOT || !unit || strcmp(unit, "wgmma") != 0)
        return false;
    lower(user, op);
    return true;
}

bool
pass_wgmma(Func *f, PassCx *cx)
{
    return pass_walk(f->body, visit, cx->s);
}
