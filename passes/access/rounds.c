/* Makes loops count 0, 1, 2..: those whose addresses move by another amount than they
   count by, and those that count down.

       for %k = 0, %K, 64 (%p = %q) {        %n = divs %K, 64 + (rems %K, 64 > 0)
         ..                                  for %i = 0, %n, 1 (%p = %q) {
         %p1 = addptr %p, splat %s      =>     %k = mul %i, 64
         yield %p1                             ..
       }                                       %p1 = addptr %p, splat %s

   The address of iteration %i is then %q + %i * %s, which the search for TMA tiles
   recognises as rows of a matrix. As a function of %k it would be %q + %k * (%s / 64),
   whose factor is no integer (ir/analysis/affine.h).

   A loop of dots that counts down, from lo to above a constant hi, can be pipelined like
   any other then. Its index becomes max(lo + %i * step, least), which changes no value.
   The max keeps later passes from splitting the sum into the base of a tensor, lo, and a
   negative coordinate in it. What divides lo and step divides `least`, too, the least of
   such above hi: masks that compare with the index stay constant for as many elements.
   Comparisons alone get the sum without the max: %c < lo + %i * step is the bound lo of a
   row, in which %c - %i * step is the place. */
#include "ir/analysis/affine.h"
#include "ir/analysis/axis.h"
#include "ir/base/util.h"
#include "ir/build.h"
#include "ir/edit.h"
#include "ir/fold.h"
#include "passes/pass.h"

/* Does the loop carry a pointer that moves by something that step does not divide? */
static bool
moves_otherwise(const Op *loop, int64_t step)
{
    const Region *body = loop->regions[0];
    for (int i = 1; i < body->narg; i++) {
        Affine by;
        if (!type_is_ptr(body->args[i]->type) || !affine_step(body->args[i], loop, &by))
            continue;
        for (int k = 0; k < by.base.n; k++)
            if (by.base.t[k].k % step)
                return true;
    }
    return false;
}

/* How many iterations a loop has that counts down by `by` from lo to above hi. */
static Value *
rounds_down(Builder *b, Value *lo, Value *hi, int64_t by)
{
    Value *left = build_binary(b, OP_SUB, lo, hi), *one = build_int(b, lo->type, 1);
    if (by == 1)
        return left;
    Value *n = build_binary(b, OP_SUB, left, one);
    n = build_binary(b, OP_DIVS, n, build_int(b, lo->type, by));
    n = build_binary(b, OP_ADD, n, one);
    return build_select(b, build_cmp(b, OP_CMPI, "sgt", lo, hi), n,
                        build_int(b, lo->type, 0));
}

/* How many iterations a loop has that counts from 0 to below hi by `by`. */
static Value *
rounds_up(Builder *b, Value *hi, Value *by)
{
    Value *rest = build_binary(b, OP_REMS, hi, by);
    rest = build_cmp(b, OP_CMPI, "sgt", rest, build_int(b, hi->type, 0));
    return build_binary(b, OP_ADD, build_binary(b, OP_DIVS, hi, by),
                        build_cast(b, OP_ZEXT, rest, hi->type));
}

/* The loop counts 0 .. n - 1. `at`, computed from the new index by op `first` and its
   users, replaces the old index. */
static void
count(Op *loop, Value *n, Value *at, Op *first)
{
    Builder b = builder_before(loop);
    Value *round = loop->regions[0]->args[0];
    b.loc = loop->loc;
    op_set_operand(loop, 0, build_int(&b, n->type, 0));
    op_set_operand(loop, 1, n);
    op_set_operand(loop, 2, build_int(&b, n->type, 1));
    value_replace(round, at);
    op_set_operand(first, 0, round);
}

/* The least index above hi of a loop that counts down from lo by `by`. */
static int64_t
least_index(Axis *axis, const Value *lo, int64_t hi, int64_t by)
{
    int64_t g = gcd_i64(axis_of(axis, lo)->div[0], by);
    int64_t least = (hi + g) / g * g;
    return least <= INT32_MAX ? least : hi + 1;
}

static bool
only_compares(const Op *op)
{
    if (op->kind != OP_SPLAT)
        return op->kind == OP_CMPI;
    value_each_use(&op->results[0], u)
        if (u->user->kind != OP_CMPI)
            return false;
    return true;
}

/* Comparisons with `at` are made with `bare`, which is the same number. */
static void
compare_bare(Value *at, Value *bare)
{
    value_each_use(at, u)
        if (only_compares(u->user))
            op_set_operand(u->user, u->index, bare);
}

static bool
visit(void *user, Op *op)
{
    Const lo, hi, step;
    Axis *axis = user;
    if (op->kind != OP_FOR || !value_const(op_operand(op, 2), &step))
        return false;
    bool from_zero = value_const(op_operand(op, 0), &lo) && !lo.i;
    bool to_zero = value_const(op_operand(op, 1), &hi) && hi.i >= -1;
    bool up = step.i > 1 && from_zero && moves_otherwise(op, step.i);
    bool down =
        step.i < 0 && step.i > INT32_MIN && to_zero && region_has(op->regions[0], OP_DOT);
    if (!up && !down)
        return false;
    Value *begin = op_operand(op, 0), *end = op_operand(op, 1), *by = op_operand(op, 2);
    Builder b = builder_before(op), in = builder_before(op->regions[0]->first);
    b.loc = in.loc = op->loc;
    Value *round = op->regions[0]->args[0];
    if (up) {
        Value *at = build_binary(&in, OP_MUL, round, by);
        count(op, rounds_up(&b, end, by), at, at->op);
        return true;
    }
    int64_t least = least_index(axis, begin, hi.i, -step.i);
    Value *far = build_binary(&in, OP_MUL, round, by);
    Value *bare = build_binary(&in, OP_ADD, begin, far);
    Value *at = build_binary(&in, OP_MAXS, bare, build_int(&in, begin->type, least));
    count(op, rounds_down(&b, begin, end, -step.i), at, far->op);
    compare_bare(at, bare);
    return true;
}

bool
pass_rounds(Func *f, PassCx *cx)
{
    return pass_walk(f->body, visit, axis_new(f, &cx->s->tmp));
}
