/* Shape operations: moves that move nothing vanish, uniform tiles stay uniform, and
   elementwise work sinks below the broadcast that repeats it:

       %b = broadcast %x : tile<64x128xi32>          // %x: tile<64x1xi32>
       %s = splat %k : tile<64x128xi32>
       %r = mul %b, %s                        =>     %r = broadcast (mul %x, splat %k)

   so that index arithmetic is done once per row, not once per element. */
#include "passes/simplify/canon.h"

#include <string.h>

static bool
is_splat(const Value *v)
{
    return v->op && (v->op->kind == OP_SPLAT || v->op->kind == OP_CONST);
}

/* The scalar that a uniform tile repeats, made anew for a constant. */
static Value *
scalar_of(Builder *b, Value *v)
{
    if (v->op->kind == OP_SPLAT)
        return op_operand(v->op, 0);
    Const c;
    value_const(v, &c);
    const Type *e = type_elem(v->type);
    return c.is_float ? build_float(b, e, c.f) : build_int(b, e, c.i);
}

static Value *
rebuild(Builder *b, const Op *op, Value *const *operands, const Type *like)
{
    TypeTable *tt = b->s->types;
    const Type *t = type_like(tt, like, type_elem(op->results[0].type));
    Op *small = build_op(b, op->kind, operands, op->noperand, &op->attrs, &t, 1);
    return &small->results[0];
}

static Value *
sink_splats(Builder *b, Op *op)
{
    Value *in[8];
    for (int i = 0; i < op->noperand; i++)
        if (!is_splat(op_operand(op, i)))
            return NULL;
    for (int i = 0; i < op->noperand; i++)
        in[i] = scalar_of(b, op_operand(op, i));
    return build_splat(b, rebuild(b, op, in, in[0]->type), op->results[0].type);
}

/* The tile that all broadcast operands come from must have one shape; uniform operands
   are splat to it. */
static Value *
sink_broadcasts(Builder *b, Op *op)
{
    const Type *small = NULL;
    for (int i = 0; i < op->noperand; i++) {
        Value *v = op_operand(op, i);
        Op *bc = value_def(v, OP_BROADCAST);
        if (bc && (!small || type_same_shape(small, op_operand(bc, 0)->type)))
            small = op_operand(bc, 0)->type;
        else if (bc || !is_splat(v))
            return NULL;
    }
    if (!small)
        return NULL;
    Value *in[8];
    for (int i = 0; i < op->noperand; i++) {
        Value *v = op_operand(op, i);
        Op *bc = value_def(v, OP_BROADCAST);
        const Type *t = type_like(b->s->types, small, type_elem(v->type));
        in[i] = bc ? op_operand(bc, 0) : build_splat(b, scalar_of(b, v), t);
    }
    return build_broadcast(b, rebuild(b, op, in, small), op->results[0].type->shape);
}

/* (x ^ splat a) ^ splat b => x ^ splat (a ^ b), in any order of the operands: keys of
   Philox that do not depend on the element meet once, not in each. Sums stay as they are:
   passes know addresses by the order of their parts. */
static Value *
gather_splats(Builder *b, Op *op)
{
    if (op->kind != OP_XOR)
        return NULL;
    for (int i = 0; i < 2; i++) {
        Op *in = value_def(op_operand(op, i), OP_XOR);
        Value *a = op_operand(op, !i);
        for (int k = 0; in && is_splat(a) && k < 2; k++)
            if (is_splat(op_operand(in, k)))
                return build_binary(b, OP_XOR, op_operand(in, !k),
                                    build_binary(b, OP_XOR, a, op_operand(in, k)));
    }
    return NULL;
}

static Value *
elementwise(Builder *b, Op *op)
{
    if (!op_is(op, T_PURE | T_ELEMENTWISE) || op->nresult != 1 || !op->noperand ||
        op->noperand > 8 || op->kind == OP_HINT || op->kind == OP_ASM ||
        !type_is_tile(op->results[0].type) || op->results[0].type->layout)
        return NULL;
    Value *v = sink_splats(b, op);
    if (!v)
        v = sink_broadcasts(b, op);
    return v ? v : gather_splats(b, op);
}

static bool
is_identity(const Attr *perm)
{
    for (int i = 0; i < perm->n; i++)
        if (perm->v.ints[i] != i)
            return false;
    return true;
}

static Value *
transpose(Builder *b, Op *op)
{
    const Attr *perm = attr_find(&op->attrs, ATTR_PERM);
    Op *in = value_def(op_operand(op, 0), OP_TRANS);
    if (perm && is_identity(perm))
        return op_operand(op, 0);
    const Attr *inner = in ? attr_find(&in->attrs, ATTR_PERM) : NULL;
    if (!perm || !inner || perm->n != inner->n)
        return NULL;
    int64_t both[MAX_RANK];
    for (int i = 0; i < perm->n; i++)
        both[i] = inner->v.ints[perm->v.ints[i]];
    return build_trans(b, op_operand(in, 0), both);
}

Value *
canon_shape(Builder *b, Op *op)
{
    if (op_is(op, T_ELEMENTWISE))
        return elementwise(b, op);
    if (op->nresult != 1 || op->noperand != 1 || !op_is(op, T_SHAPE))
        return op->kind == OP_CONVERT_LAYOUT &&
                       op_operand(op, 0)->type == op->results[0].type
                   ? op_operand(op, 0)
                   : NULL;
    Value *x = op_operand(op, 0);
    const Type *t = op->results[0].type;
    if (op->kind != OP_TRANS && x->type == t)
        return x;
    if (t->layout)
        return NULL; /* layout passes decide from here on */
    if (value_def(x, OP_SPLAT) && op->kind != OP_SPLAT && type_is_tile(t))
        return build_splat(b, op_operand(x->op, 0), t);
    Op *in = value_def(x, op->kind);
    if (op->kind == OP_BROADCAST && in)
        return build_broadcast(b, op_operand(in, 0), t->shape);
    if (op->kind == OP_RESHAPE && in && type_is_tile(t) &&
        type_is_tile(op_operand(in, 0)->type))
        return build_reshape(b, op_operand(in, 0), t->rank, t->shape);
    return op->kind == OP_TRANS ? transpose(b, op) : NULL;
}
