/* Dots of fp32 whose precision is made of several dots (input_precision "tf32x3" and
   "bf16x3") become these dots where wgmma can compute them, which reads its right operand
   from shared memory and is twice as fast as mma.sync:

       %y = dot %a, %b, %c {precision="tf32x3"}

       %s1 = dot a1, b0, 0        what is small
       %s2 = dot a0, b1, %s1
       %s  = select (cmpf "uno" %s2, %s2), 0, %s2
       %y  = %c + dot a0, b0, %s

   x0 is what tensor cores keep of x, and x1 = x - x0. Of fp32 that is read as tf32 they
   ignore the low bits, so a0 and b0 are the operands themselves there, wherever they lie.
   Where x0 is infinite x1 is not a number, or 0 * x0 is: so the small dots have a sum of
   their own, of which NaN counts as 0 (codegen/gen_nv_mma.c does the same for what is
   left). Threads add %c, because tensor cores round their sums towards zero: of k = 1024
   in one accumulator the error is ten times as large as of 32 at a time (H200).

   Where a loop adds up dots, reads their sum in no iteration, and registers hold a third
   accumulator, the small dots have one sum for all iterations, and the large ones come
   first:

       %y, %s = for .. (%c = .., %t = 0) {
         %d  = %c + dot a0, b0, 0
         %s1 = dot a1, b0, %t
         %s2 = dot a0, b1, %s1
         yield %d, %s2
       }
       %z = %y + select (cmpf "uno" %s, %s), 0, %s

   One NaN drops the small parts of all iterations; the large sum is infinite or NaN then.

   Accumulators and operands have to fit into registers together. A loaded right operand
   of tf32 has to lie along the inner dimension, since two copies across it in each
   iteration cost more than the tensor cores save (2048^3, tiles of 64x64x32 to
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
    KEPT_SUM = 216,     /* the same, with the small sum of a loop */
    LOW_BITS = -0x2000 /* those of fp32 that tf32 has */
};

/* The large part of x, and what is left of x. */
static Value *
large_tf32(Builder *b, Value *x)
{
    (void)b;
    return x;
}

static Value *
small_tf32(Builder *b, Value *x, Value *large)
{
    (void)large;
    const Type *i32 = type_scalar(b->s->types, SK_I32), *f32 = type_elem(x->type);
    Value *bits = build_cast(b, OP_BITCAST, x, i32);
    bits = build_binary(b, OP_AND, bits, build_int(b, bits->type, LOW_BITS));
    return build_binary(b, OP_SUBF, x, build_cast(b, OP_BITCAST, bits, f32));
}

static Value *
large_bf16(Builder *b, Value *x)
{
    return build_cast(b, OP_FTRUNC, x, type_scalar(b->s->types, SK_BF16));
}

static Value *
small_bf16(Builder *b, Value *x, Value *large)
{
    Value *kept = build_cast(b, OP_FEXT, large, type_elem(x->type));
    Value *small = build_binary(b, OP_SUBF, x, kept);
    return build_cast(b, OP_FTRUNC, small, type_elem(large->type));
}

typedef struct Precision {
    const char *name;
    bool along; /* the right operand has to lie along the inner dimension */
    Value *(*large)(Builder *b, Value *x);
    Value *(*small)(Builder *b, Value *x, Value *large);
} Precision;

static const Precision precisions[] = {
    {"tf32x3", true, large_tf32, small_tf32},
    {"bf16x3", false, large_bf16, small_bf16},
};

/* What `op` is of other operands, in one dot. */
static Value *
dot_of(Builder *b, const Op *op, Value *x, Value *y, Value *acc)
{
    Op *new = build_op(b, OP_DOT, (Value *[]){x, y, acc}, 3, &op->attrs, NULL, 1);
    attr_set_str(&b->s->mod, &new->attrs, ATTR_PRECISION, name_of(&b->s->names, "tf32"));
    return op_result(new, 0);
}

/* Can warpgroups compute the dot, with two accumulators and both parts of the left
   operand in registers? `third`: and with one more, where the parts count as what they
   are: both of bf16, or the small one of tf32. */
static bool
fits(const Func *f, const PassCx *cx, const Op *op, bool third)
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
    int64_t acc = type_numel(c) / threads;
    return c->shape[1] / (groups / down) >= COLUMNS && 2 * acc + 2 * left <= KEPT &&
           (!third || 3 * acc + left <= KEPT_SUM);
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

/* How the dot is to be split; NULL: it is not. */
static const Precision *
splits(Splitter *s, const Op *op)
{
    Name said = op->kind == OP_DOT ? attr_str(&op->attrs, ATTR_PRECISION) : NULL;
    for (int i = 0; said && op->results[0].uses && i < COUNT_OF(precisions); i++)
        if (strcmp(said, precisions[i].name) == 0)
            return fits(s->f, s->cx, op, false) &&
                           !(precisions[i].along && lies_across(s, op_operand(op, 1)))
                       ? &precisions[i]
                       : NULL;
    return NULL;
}

/* A sum that only counts where it is a number. */
static Value *
number_of(Builder *b, Value *sum, Value *zero)
{
    return build_select(b, build_cmp(b, OP_CMPF, "uno", sum, sum), zero, sum);
}

static void
split(const Precision *p, Op *op)
{
    Builder b = builder_before(op);
    b.loc = op->loc;
    Value *x = op_operand(op, 0), *y = op_operand(op, 1);
    Value *x0 = p->large(&b, x), *x1 = p->small(&b, x, x0);
    Value *y0 = p->large(&b, y), *y1 = p->small(&b, y, y0);
    Value *zero = build_float(&b, op->results[0].type, 0.0);
    Value *sum = dot_of(&b, op, x1, y0, zero);
    sum = number_of(&b, dot_of(&b, op, x0, y1, sum), zero);
    sum = dot_of(&b, op, x0, y0, sum);
    value_replace(&op->results[0], build_binary(&b, OP_ADDF, op_operand(op, 2), sum));
}

/* ---- a sum over a loop */

enum { DOTS = 16 };

/* The dots that a value which the loop carries begins with, goes through and ends with,
   nothing else reading it in an iteration: their number, 0 if it is no such value. */
static int
dots_from(Splitter *s, const Value *arg, Op **dot)
{
    const Op *yield = arg->region->last;
    int n = 0;
    for (const Value *v = arg; v->uses && !v->uses->next && n < DOTS; n++) {
        const Use *u = v->uses;
        if (u->user == yield)
            return u->index == arg->index - 1 ? n : 0;
        if (u->index != 2 || u->user->parent != arg->region || !splits(s, u->user) ||
            !fits(s->f, s->cx, u->user, true))
            return 0;
        dot[n] = u->user;
        v = &u->user->results[0];
    }
    return 0;
}

/* Splits these dots, with one sum of the small ones for the whole loop. */
static void
split_sum(Splitter *s, Op *loop, int i, Op **dot, int n)
{
    Builder b = builder_before(loop);
    Op *yield = loop->regions[0]->last;
    b.loc = dot[0]->loc;
    Value *zero = build_float(&b, dot[0]->results[0].type, 0.0);
    Value *small = for_carry(loop, zero), *sum;
    for (int k = 0; k < n; k++) {
        const Precision *p = splits(s, dot[k]);
        Value *x = op_operand(dot[k], 0), *y = op_operand(dot[k], 1);
        b = builder_before(dot[k]);
        b.loc = dot[k]->loc;
        Value *x0 = p->large(&b, x), *y0 = p->large(&b, y), *y1 = NULL;
        if (y0 != y) /* threads store both parts, and meet once */
            y1 = p->small(&b, y, y0);
        sum = dot_of(&b, dot[k], x0, y0, zero);
        small = dot_of(&b, dot[k], p->small(&b, x, x0), y0, small);
        small = dot_of(&b, dot[k], x0, y1 ? y1 : p->small(&b, y, y0), small);
        sum = build_binary(&b, OP_ADDF, op_operand(dot[k], 2), sum);
        value_replace(&dot[k]->results[0], sum);
    }
    op_add_operand(yield, small);
    b = builder_after(loop);
    b.loc = dot[0]->loc;
    sum = op_result(loop, i);
    small = number_of(&b, op_result(loop, loop->nresult - 1), zero);
    Value *all = build_binary(&b, OP_ADDF, sum, small);
    value_replace(sum, all);
    op_set_operand(all->op, 0, sum);
}

static bool
visit(void *user, Op *op)
{
    Splitter *s = user;
    const Precision *p = splits(s, op);
    Op *dot[DOTS], *loop = op->parent->parent;
    if (!p)
        return false;
    const Value *arg = op_operand(op, 2);
    bool carried = loop && loop->kind == OP_FOR && !arg->op && arg->index > 0 &&
                   arg->region == op->parent;
    int n = carried ? dots_from(s, arg, dot) : 0;
    if (n)
        split_sum(s, loop, arg->index - 1, dot, n);
    else
        split(p, op);
    return true;
}

bool
pass_split_dot(Func *f, PassCx *cx)
{
    Splitter s = {f, cx, NULL};
    return pass_walk(f->body, visit, &s);
}
