/* A random float is compared with one bound for all elements: the integers it was made
   of are compared instead, with a bound that is computed once.

       %y = select %neg, ~%x, %x              %t = smallest y whose float passes
       %f = sitof %y                          %a = add %x, splat %t
       %u = mulf %f, 0x1.fffffep-32     =>    %k = cmpi %a, splat (2 %t - 1) {ugt}
       %k = cmpf %u, splat %p {ogt}

   This is how tl.rand makes floats of its 32 random bits. Exact for every p: with
   w = sitof(y) * 2^-31, which is exact, w * (1 - 2^-24) lies between half an ulp and one
   ulp below w (exactly half an ulp, and that a float, where w is a power of two), so u
   is the float right below w, and 0 for y = 0. Hence u > p just when w is at least the
   second float above p, u >= p when it is at least the next one. t is the first integer
   that rounds (to nearest, ties to even) to such a w. The two sides of the choice are
   one range of x around 0: y < t just when x + t < 2 t, without a sign. */
#include "ir/build.h"
#include "ir/edit.h"
#include "ir/fold.h"
#include "passes/pass.h"

#include <string.h>

/* x with its sign folded away, where v is ~x for a negative x and x else; else NULL. */
static Value *
folded_sign(const Value *v)
{
    Op *choice = value_def(v, OP_SELECT);
    if (!choice)
        return NULL;
    Value *x = op_operand(choice, 2), *inverse = op_operand(choice, 1);
    Op *negative = value_def(op_operand(choice, 0), OP_CMPI);
    if (!negative || op_operand(negative, 0) != x ||
        !value_is_int(op_operand(negative, 1), 0) ||
        strcmp(attr_str(&negative->attrs, ATTR_PRED), "slt") != 0)
        return NULL;
    Op *op = value_def(inverse, OP_XOR);
    if (op && op_operand(op, 0) == x && value_is_int(op_operand(op, 1), -1))
        return x;
    op = value_def(inverse, OP_SUB);
    if (op && op_operand(op, 1) == x && value_is_int(op_operand(op, 0), -1))
        return x;
    Op *minus = op ? value_def(op_operand(op, 0), OP_SUB) : NULL;
    return minus && value_is_int(op_operand(op, 1), 1) && op_operand(minus, 1) == x &&
                   value_is_int(op_operand(minus, 0), 0)
               ? x
               : NULL;
}

/* The random bits x behind the float u, else NULL. */
static Value *
bits_of_random(const Value *u)
{
    Op *scaled = value_def(u, OP_MULF);
    Const c;
    if (!scaled || type_elem(u->type)->scalar != SK_F32 ||
        !value_const(op_operand(scaled, 1), &c) || (float)c.f != 0x1.fffffep-32F)
        return NULL;
    Op *made = value_def(op_operand(scaled, 0), OP_SITOF);
    if (!made)
        return NULL;
    Value *x = folded_sign(op_operand(made, 0));
    return x && type_elem(x->type)->scalar == SK_I32 ? x : NULL;
}

static Value *
choose(Builder *b, const char *pred, Value *x, Value *y, Value *then, Value *otherwise)
{
    OpKind k = type_elem(x->type)->scalar == SK_F32 ? OP_CMPF : OP_CMPI;
    return build_select(b, build_cmp(b, k, pred, x, y), then, otherwise);
}

/* The first integer of 1..2^31 whose random float is above p by `ulps` - 1 floats. A
   NaN counts as 1, which no random float reaches, and what is below the least normal
   number as that, under which no random float but 0 is: an integer made of a float
   outside of its range would be undefined, whether it is used or not. Not as 0: ptxas
   makes an addition that saturates of a minimum with 1 and a maximum with 0, and that
   gives 0 for a NaN. */
static Value *
first_above(Builder *b, Value *p, int ulps)
{
    const Type *f32 = p->type, *i32 = type_scalar(b->s->types, SK_I32);
    Value *one = build_int(b, i32, 1);
    p = build_binary(b, OP_MINF, p, build_float(b, f32, 1.0));
    p = build_binary(b, OP_MAXF, p, build_float(b, f32, 0x1p-126));
    Value *bits = build_cast(b, OP_BITCAST, p, i32);
    bits = build_binary(b, OP_ADD, bits, build_int(b, i32, ulps));
    Value *w = build_binary(b, OP_MULF, build_cast(b, OP_BITCAST, bits, f32),
                            build_float(b, f32, 0x1p31));
    /* Up to 2^24 integers are floats; above, what rounds to w begins half way below. */
    Value *exact = build_cast(b, OP_FTOUI, build_unary(b, OP_CEIL, w), i32);
    bits = build_cast(b, OP_BITCAST, w, i32);
    Value *below = build_cast(b, OP_BITCAST, build_binary(b, OP_SUB, bits, one), f32);
    below = build_cast(b, OP_FTOUI, below, i32);
    Value *half = build_binary(b, OP_SHRU, build_binary(b, OP_SUB, exact, below), one);
    Value *odd = build_binary(b, OP_AND, bits, one);
    Value *middle = build_binary(b, OP_ADD, build_binary(b, OP_ADD, below, half), odd);
    Value *t = choose(b, "ole", w, build_float(b, f32, 0x1p24), exact, middle);
    t = build_binary(b, OP_MAXU, t, one);
    return build_binary(b, OP_MINU, t, build_int(b, i32, INT32_MIN));
}

/* The comparison of random bits x that equals u `pred` p. */
static Value *
compare_bits(Builder *b, Value *x, Value *p, bool or_equal, bool less)
{
    const Type *tile = x->type, *i32 = type_scalar(b->s->types, SK_I32);
    const Type *mask = type_like(b->s->types, tile, type_scalar(b->s->types, SK_I1));
    /* u < p is the opposite of u >= p, but for a NaN; both hold for every u or for none
       where p is below 0 */
    bool at_least = or_equal != less;
    Value *zero = build_float(b, p->type, 0.0);
    Value *all = build_cmp(b, OP_CMPF, at_least ? "ole" : "olt", p, zero);
    if (less)
        all = build_binary(b, OP_OR, all, build_cmp(b, OP_CMPF, "uno", p, p));
    Value *t = first_above(b, p, at_least ? 1 : 2);
    Value *sum = build_binary(b, OP_ADD, x, build_splat(b, t, tile));
    Value *last = build_binary(b, OP_ADD, t, t);
    last = build_binary(b, OP_SUB, last, build_int(b, i32, 1));
    last = build_splat(b, last, tile);
    if (!less)
        return build_binary(b, OP_OR, build_cmp(b, OP_CMPI, "ugt", sum, last),
                            build_splat(b, all, mask));
    Value *none = build_binary(b, OP_XOR, all, build_int(b, all->type, 1));
    return build_binary(b, OP_AND, build_cmp(b, OP_CMPI, "ule", sum, last),
                        build_splat(b, none, mask));
}

static const struct {
    const char *pred;
    bool less, or_equal;
} preds[] = {{"ogt", false, false},
             {"oge", false, true},
             {"olt", true, false},
             {"ole", true, true}};

/* One comparison; the float goes when this was its last use. */
static bool
rewrite(Op *op)
{
    if (op->results[0].type->kind != TY_TILE)
        return false;
    for (size_t i = 0; i < sizeof preds / sizeof *preds; i++) {
        if (strcmp(attr_str(&op->attrs, ATTR_PRED), preds[i].pred) != 0)
            continue;
        for (int side = 0; side < 2; side++) {
            Value *x = bits_of_random(op_operand(op, side));
            Op *bound = value_def(op_operand(op, !side), OP_SPLAT);
            if (!x || !bound)
                continue;
            Builder b = builder_before(op);
            b.loc = op->loc;
            /* p < u is u > p */
            value_replace(&op->results[0],
                          compare_bits(&b, x, op_operand(bound, 0), preds[i].or_equal,
                                       preds[i].less != (side == 1)));
            return true;
        }
    }
    return false;
}

static bool
visit(void *user, Op *op)
{
    (void)user;
    return op->kind == OP_CMPF && rewrite(op);
}

bool
pass_fold_rand_compare(Func *f, PassCx *cx)
{
    (void)cx;
    return pass_walk(f->body, visit, NULL);
}
