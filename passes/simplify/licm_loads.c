/* Loads of the same in every iteration, of a loop that writes no memory, move in front of
   it once tiles have layouts; what is computed from them can follow.

       for %i = %lo, %hi, 1 {                %some = cmpi slt %lo, %hi
         %x = load %p               =>       %x = load %p, %some
         ..                                  for %i = %lo, %hi, 1 { ..

   Without an iteration nothing may be read. Loops with dots keep their loads, which the
   pipeline schedule wants there, and so do loops where registers would be short: a load
   that finds its line in the first cache costs less than a program fewer. */
#include "passes/simplify/licm_loads.h"

#include "ir/base/util.h"
#include "ir/build.h"
#include "ir/edit.h"
#include "ir/layout.h"
#include "ir/loop.h"

enum {
    MOST_WORDS = 96, /* registers of a thread for what is moved */
    REGISTERS = 168, /* with what the loop carries and computes */
    TILES = 3,       /* of the largest kind, that an iteration has at the same time */
};

static int64_t
words_of(const Type *t)
{
    int64_t n = type_is_tile(t) && t->layout ? layout_regs(t->layout) : 1;
    return (n * max_i64(type_bits(t), 1) + 31) / 32;
}

/* Registers for what may be moved; 0 where none may. */
static int64_t
room_of(const Op *loop)
{
    int64_t most = 0, carried = 0;
    OpEffects effects = op_effects(loop);
    if (loop->kind != OP_FOR || loop_step(loop) <= 0 || effects.writes ||
        region_has_trait(loop->regions[0], T_DOT))
        return 0;
    region_each_deep(loop->regions[0], op)
    {
        if (attr_has(&op->attrs, ATTR_VOLATILE))
            return 0;
        for (int i = 0; i < op->nresult; i++)
            if (type_elem(op->results[i].type)->kind != TY_PTR)
                most = max_i64(most, words_of(op->results[i].type));
    }
    for (int i = 0; i < loop->nresult; i++)
        carried += words_of(loop->results[i].type);
    return min_i64(MOST_WORDS, REGISTERS - carried - TILES * most);
}

static bool
is_invariant(const Op *op, const Region *body)
{
    if (op->kind != OP_LOAD)
        return false;
    for (int i = 0; i < op->noperand; i++)
        if (!value_outside(op_operand(op, i), body))
            return false;
    return true;
}

bool
licm_loads(Op *loop)
{
    int64_t room = room_of(loop);
    Value *some = NULL;
    bool changed = false;
    region_each(loop->regions[0], op)
    {
        if (room <= 0)
            break;
        if (!is_invariant(op, loop->regions[0]) || words_of(op->results[0].type) > room)
            continue;
        room -= words_of(op->results[0].type);
        op_move_before(op, loop);
        changed = true;
        if (loop_trips(loop) > 0)
            continue;
        if (!some) {
            Builder b = builder_before(op);
            b.loc = loop->loc;
            Value *lo = op_operand(loop, 0), *hi = op_operand(loop, 1);
            some = build_cmp(&b, OP_CMPI, "slt", lo, hi);
        }
        load_guard(op, some);
    }
    return changed;
}
