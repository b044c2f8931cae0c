/* Accumulators that begin with something: where a dot is added to a tile and goes nowhere
   else, its accumulator begins with the tile. Tensor cores add as they multiply; no
   registers are needed for a second tile beside the accumulator.

       %p = dot %a, %b, %zero : tile<64x64xf32>
       %c = addf %x, %p : tile<64x64xf32>
       =>
       %c = dot %a, %b, %x : tile<64x64xf32>

   The dot stays where it is when %x is there by then: what stands between it and the
   addition was to run beside it. Three additions stay:
   - of a tile that repeats a vector or a number: to begin with it costs as many moves as
     additions, and the dot would wait for it;
   - of dots of fp8: tensor cores keep fewer bits of their accumulators than fp32 has
     (docs/language.md), and a source that adds outside of the dot gets fp32's;
   - where the dot begins with something already. */
#include "ir/analysis/async_dot.h"
#include "ir/edit.h"
#include "ir/fold.h"
#include "passes/pass.h"

#include <math.h>

static bool
is_zero(const Value *v)
{
    Const c;
    return value_const(v, &c) && (c.is_float ? c.f == 0 && !signbit(c.f) : c.i == 0);
}

/* The first of the dots, each beginning with the one before, that end in `v`; all in
   the block of `sum`, nothing else uses them. */
static Op *
first_dot(const Value *v, const Op *sum)
{
    for (;;) {
        Op *dot = value_def(v, OP_DOT);
        if (!dot || dot->parent != sum->parent || v->uses->next || dot_of_fp8(dot))
            return NULL;
        v = op_operand(dot, 2);
        if (is_zero(v))
            return dot;
    }
}

static bool
repeats(const Value *v)
{
    Const c;
    return value_def(v, OP_BROADCAST) || value_def(v, OP_SPLAT) || value_const(v, &c);
}

static Value *
begin_with(Op *dot, Value *x, Value *end, Op *sum)
{
    if (!x->op || x->op->parent != dot->parent || op_before(x->op, dot)) {
        op_set_operand(dot, 2, x);
        return end;
    }
    if (end != &dot->results[0])
        return NULL;
    op_move_before(dot, sum);
    op_set_operand(dot, 2, x);
    return end;
}

/* The dot that `sum` adds something to, once it begins with that instead. */
static Value *
begun(Op *sum)
{
    for (int i = 1; i >= 0; i--) {
        Value *x = op_operand(sum, 1 - i), *end = op_operand(sum, i);
        Op *dot = first_dot(end, sum);
        if (dot && is_zero(x))
            return end; /* which is no -0.0: it began with 0.0 */
        Value *v = dot && !repeats(x) ? begin_with(dot, x, end, sum) : NULL;
        if (v)
            return v;
    }
    return NULL;
}

static bool
visit(void *user, Op *op)
{
    (void)user;
    Value *v = op->kind == OP_ADDF || op->kind == OP_ADD ? begun(op) : NULL;
    if (!v)
        return false;
    if (op->results[0].name)
        v->name = op->results[0].name;
    value_replace(&op->results[0], v);
    op_erase(op);
    return true;
}

bool
pass_fold_accumulator(Func *f, PassCx *cx)
{
    (void)cx;
    return pass_walk(f->body, visit, NULL);
}
