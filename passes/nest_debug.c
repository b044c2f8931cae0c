/* Prints and assertions in cpu form: strips with the index of their lanes, for the host
   that prints them.

       print %x, %n {message="x"}      =>    for %i = 0, 256, 32 {
                                               vprint %strip, %i {message="x"} }
                                             vprint %n {message="x"} */
#include "passes/nest.h"

#include "ir/edit.h"

/* The strip, and where it is in its tile: {axis} is the dimension of its lanes. */
static Op *
build_lanes(Cx *cx, OpKind k, Value **in, int n, int rank, const Ix *ix, AttrList *l)
{
    int axis = nest_index(cx, rank, ix, in + n);
    if (axis >= 0 && axis < rank)
        attr_set_int(&cx->n->s->mod, l, ATTR_AXIS, axis);
    return build_op(&cx->b, k, in, n + rank, l, NULL, 0);
}

static int
rank_of(const Value *v)
{
    return nest_tile(v) ? v->type->rank : 0;
}

void
nest_print(Cx *cx, Op *op, int operand, const Ix *ix)
{
    Arena *mod = &cx->n->s->mod;
    Value *v = op_operand(op, operand), *in[MAX_RANK + 1];
    const Attr *is_signed = attr_find(&op->attrs, ATTR_SIGNED);
    const Attr *message = attr_find(&op->attrs, ATTR_MESSAGE);
    AttrList l = {0};
    in[0] = ev_strip(cx, nest_eval(cx, v, ix));
    if (message)
        attr_set_str(mod, &l, ATTR_MESSAGE, message->v.s);
    if (attr_has(&op->attrs, ATTR_HEX))
        attr_set_flag(mod, &l, ATTR_HEX);
    if (is_signed && operand < is_signed->n)
        attr_set_ints(mod, &l, ATTR_SIGNED, &is_signed->v.ints[operand], 1);
    attr_set_ints(mod, &l, ATTR_PART, (int64_t[]){operand, op->noperand}, 2);
    build_lanes(cx, OP_VPRINT, in, 1, rank_of(v), ix, &l);
}

/* All operands of a print, in their order. */
void
nest_prints(Nest *n, Builder *b, Op *op)
{
    OpPlan *p = op_plan(n, op);
    b->loc = op->loc;
    if (!op->noperand) {
        op_clone(b, op, &n->map);
        return;
    }
    for (int i = 0; i < op->noperand; i++) {
        Cx cx;
        if (p->each && p->each[i]) {
            nest_group(n, b, p->each[i]);
            continue;
        }
        b->loc = op->loc;
        cx_init(&cx, n, *b, 1);
        nest_print(&cx, op, i, NULL);
    }
}

/* Lanes that the mask leaves out hold by definition. */
void
nest_assert(Cx *cx, Op *op, const Ix *ix)
{
    Value *in[MAX_RANK + 1];
    const Attr *message = attr_find(&op->attrs, ATTR_MESSAGE);
    AttrList l = {0};
    in[0] = ev_strip(cx, nest_eval(cx, op_operand(op, 0), ix));
    if (op->noperand > 1) {
        Value *mask = ev_strip(cx, nest_eval(cx, op_operand(op, 1), ix));
        Value *off = build_binary(&cx->b, OP_XOR, mask, build_int(&cx->b, mask->type, 1));
        in[0] = build_binary(&cx->b, OP_OR, in[0], off);
    }
    if (message)
        attr_set_str(&cx->n->s->mod, &l, ATTR_MESSAGE, message->v.s);
    cx->b.loc = op->loc;
    build_lanes(cx, OP_VASSERT, in, 1, rank_of(op_operand(op, 0)), ix, &l);
}
