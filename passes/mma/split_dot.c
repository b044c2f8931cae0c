/* Dots of fp32 whose precision is made of several dots (input_precision "tf32x3" and
   "bf16x3") become these dots where wgmma can compute them, which reads its right operand
   from shared memory and is twice as fast as mma.sync:

       %y = dot %a, %b, %c {precision="tf32x3"}

       %s1 = dot a1, b0, 0        what is small
       %s2 = dot a0, b1, %s1
       %s  = select (cmpf "uno" %s2, %s2), 0, %s2
       %y  = dot a0, b0, %c + %s

   x0 is what tensor cores keep of x, and x1 = x - x0. Of fp32 that is read as tf32 they
   ignore the low bits, so a0 and b0 are the operands themselves there, wherever they lie.
   Where x0 is infinite x1 is not a number, or 0 * x0 is: so the small dots have a sum of
   their own, of which NaN counts as 0 (codegen/gen_nv_mma.c does the same for what is
   left). Accumulators and operands have to fit into registers together. A loaded right
   operand of tf32 has to lie along the inner dimension, since two copies across it in
   each iteration cost more than the tensor cores save (2048^3, tiles of 64x64x32 to
   128x128x32, H200, 2026-11-27: 0.60 to 0.74 of mma.sync's rate; along it 1.40 and
   1.66). */
#include "ir/analysis/axis.h"
#include "ir/base/util.h"
#include "ir/build.h"
#include "ir/edit.h"
#include "passes/pass.h"

#include <string.h>

enum {
    WARPS = 4, /* of a warpgroup */
    ROWS = 64, /* that it multiplies at once */
    COLUMNS = 8,
    LEAST_K = 16,
    THREADS = 128,
    KEPT = 200,         /* registers of a thread */
    LOW_BITS = -0x2000 /* those of fp32 that tf32 has */
};

bool pass_split_dot(Func *f, PassCx *cx);

typedef struct Parts {
    Value *large, *small;
} Parts;

static Parts
split_tf32(Builder *b, Value *x)
{
    const Type *i32 = type_scalar(b->s->types, SK_I32), *f32 = type_elem(x->type);
    Value *bits = build_cast(b, OP_BITCAST, x, i32);
    bits = build_binary(b, OP_AND, bits, build_int(b, bits->type, LOW_BITS));
    Value *kept = build_cast(b, OP_BITCAST, bits, f32);
    return (Parts){x, build_binary(b, OP_SUBF, x, kept)};
}

static Parts
split_bf16(Builder *b, Value *x)
{
    const Type *bf16 = type_scalar(b->s->types, SK_BF16), *f32 = type_elem(x->type);
    Value *large = build_cast(b, OP_FTRUNC, x, bf16);
    Value *small = build_binary(b, OP_SUBF, x, build_cast(b, OP_FEXT, large, f32));
    return (Parts){large, build_cast(b, OP_FTRUNC, small, bf16)};
}

static const struct {
    const char *name;
    bool along; /* the right operand has to lie along the inner dimension */
    Parts (*split)(Builder *b, Value *x);
} precisions[] = {{"tf32x3", true, split_tf32}, {"bf16x3", false, split_bf16}};

/* What `op` is of other operands, in one dot. */
static Value *
dot_of(Builder *b, const Op *op, Value *x, Value *y, Value *acc)
{
    Op *new = build_op(b, OP_DOT, (Value *[]){x, y, acc}, 3, &op->attrs, NULL, 1);
    attr_set_str(&b->s->mod, &new->attrs, ATTR_PRECISION, name_of(&b->s->names, "tf32"));
    return op_result(new, 0);
}

/* Can warpgroups compute the dot, with two accumulators and both parts of the left
   operand in registers? */
static bool
fits(const Func *f, const PassCx *cx, const Op *op)
{
    const Type *a = op_operand(op, 0)->type, *c = op->results[0].type;
    if (!cx->target.wgmma || f->num_warps % WARPS || c->rank != 2 || c->shape[0] < ROWS ||
        a->shape[1] < LEAST_K || type_elem(a)->scalar != SK_F32 ||
        type_elem(c)->scalar != SK_F32)
        return false;
    int64_t groups = f->num_warps / WARPS, down = 1;
    while (2 * down <= groups && c->shape[0] >= 2 * down * ROWS)
        down *= 2;
    int64_t threads = THREADS * groups, left = type_numel(a) / (THREADS * down);
    return c->shape[1] / (groups / down) >= COLUMNS &&
           2 * type_numel(c) / threads + 2 * left <= KEPT;
}

typedef struct Splitter {
    Func *f;
    PassCx *cx;
    Axis *axis; /* NULL until it is needed */
} Splitter;

/* Is right operand v made of a loaded tile that is contiguous along the columns? */
static bool
lies_across(Splitter *s, const Value *v)
{
    enum { DEPTH = 16 };
    int inner = 0;
    for (int i = 0; v->op && i < DEPTH; i++) {
        const Op *op = v->op;
        if (op->kind == OP_LOAD) {
            if (!s->axis)
                s->axis = axis_new_nowrap(s->f, &s->cx->s->tmp);
            const AxisFacts *at = axis_of(s->axis, op_operand(op, 0));
            return at->contig[1 - inner] > at->contig[inner];
        }
        if (op->kind == OP_TRANS)
            inner = 1 - inner;
        else if (!op_is(op, T_ELEMENTWISE) || !op->noperand)
            return false;
        v = op_operand(op, 0);
    }
    return false;
}

static bool
visit(void *user, Op *op)
{
    Splitter *s = user;
    Name said = op->kind == OP_DOT ? attr_str(&op->attrs, ATTR_PRECISION) : NULL;
    for (int i = 0; said && i < COUNT_OF(precisions); i++) {
        if (strcmp(said, precisions[i].name) != 0 || !fits(s->f, s->cx, op) ||
            (precisions[i].along && lies_across(s, op_operand(op, 1))))
            continue;
        Builder b = builder_before(op);
        b.loc = op->loc;
        Parts x = precisions[i].split(&b, op_operand(op, 0));
        Parts y = precisions[i].split(&b, op_operand(op, 1));
        Value *zero = build_float(&b, op->results[0].type, 0.0);
        Value *sum = dot_of(&b, op, x.small, y.large, zero);
        sum = dot_of(&b, op, x.large, y.small, sum);
        Value *bad = build_cmp(&b, OP_CMPF, "uno", sum, sum);
        sum = build_select(&b, bad, zero, sum);
        sum = build_binary(&b, OP_ADDF, op_operand(op, 2), sum);
        value_replace(&op->results[0], dot_of(&b, op, x.large, y.large, sum));
        return true;
    }
    return false;
}

bool
pass_split_dot(Func *f, PassCx *cx)
{
    Splitter s = {f, cx, NULL};
    return pass_walk(f->body, visit, &s);
}
