/* Products of several iterations at once.

   A loop of dots reads and writes the whole accumulator in each iteration. Where k goes
   in short steps that costs as much as the products. If nothing in the loop looks at the
   accumulator, operands are kept for some iterations, until the last one at least, and
   multiplied together; sums are added up in the same order.

       for .. (%acc) {                     for .. {
         %c = dot %a, %b, %acc        =>     %last = is there no other iteration
         yield %c }                          buf_dot %a, .., %last, %kept {at_once=4} } */
#include "passes/cpu/simd.h"

#include "ir/base/util.h"
#include "ir/edit.h"
#include "ir/loop.h"

/* DEEP: bytes along k, behind which the accumulator costs little. MOST: bytes of what is
   kept, a quarter of a second-level cache. LEAST: rows and columns. */
enum { DEEP = 256, MOST = 1 << 18, LEAST = 16, WIDEST = 4 };

/* Does the loop around the dot carry its result, for no other use than the next dot? */
static bool
is_carried(Simd *n, Op *dot)
{
    Op *loop = dot->parent->parent;
    Value *sums = op_operand(dot, 2), *r = op_result(dot, 0);
    if (!loop || loop->kind != OP_FOR || !loop_step(loop) || !value_only_user(r) ||
        !value_only_user(sums))
        return false;
    const Region *body = loop->regions[0];
    for (int i = 0; i < loop->nresult; i++)
        if (op_operand(body->last, i) == r)
            return body->args[i + 1] == sums &&
                   slot_find(plan_get(n, r)->slot) == slot_find(plan_get(n, sums)->slot);
    return false;
}

int64_t
simd_at_once(Simd *n, Op *dot)
{
    const Type *a = op_operand(dot, 0)->type, *c = op_result(dot, 0)->type;
    if (n->f->check || c->rank != 2 || c->shape[0] < LEAST || c->shape[1] < LEAST ||
        !is_carried(n, dot))
        return 1;
    int bits = (int)max_i64(type_bits(a), type_bits(op_operand(dot, 1)->type));
    int64_t depth = a->shape[1], rounds = DEEP * 8 / (depth * max_i64(bits, 8));
    while (rounds > 1 && simd_kept_bytes(dot, rounds) > MOST)
        rounds /= 2;
    return max_i64(rounds, 1);
}

int64_t
simd_kept_bytes(const Op *dot, int64_t rounds)
{
    const Type *a = op_operand(dot, 0)->type, *c = dot->results[0].type;
    int widest = (int)max_i64(type_bits(c) / 8, WIDEST);
    return (c->shape[0] + c->shape[1]) * a->shape[1] * rounds * widest;
}

Value *
simd_last_round(Builder *b)
{
    Op *loop = b->region->parent;
    Value *more = build_iteration_exists(b, loop, loop->regions[0]->args[0], 1);
    return build_binary(b, OP_XOR, more, build_int(b, more->type, 1));
}
