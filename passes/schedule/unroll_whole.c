/* Which loops of a known number of iterations pass unroll writes out completely: those
   that look for their own index in a tile whose elements a thread holds all by itself.

       for %k = 0, 32, 1 (%v = ..) {           %row = %v's element 0
         %here = cmpi %rows, splat %k             .. %v less a multiple of it
         %row = reduce (select %here, %v, 0)  =>  %row = %v's element 1
         .. %v less a multiple of %row            ..
       }

   That is how a row of a tile in registers is taken: elimination, substitution, a list of
   the best so far. With the index known each comparison is known for each register, and
   so the selects and sums behind it are renamings. In a loop they are most of its
   instructions. */
#include "ir/analysis/async_dot.h"
#include "ir/base/map.h"
#include "ir/edit.h"
#include "ir/layout.h"
#include "ir/loop.h"
#include "passes/cost.h"
#include "passes/schedule/unroll.h"

enum {
    MOST_TRIPS = 64,
    MOST_WHOLE = 4096, /* instructions of all iterations */
    KNOWN_DEPTH = 12,
};

/* What is known once the loop's index is. */
typedef struct Known {
    const Op *loop;
    Map of; /* Value of an op -> what for each register of a thread is a constant then */
    Map thin; /* Value -> of which most elements are one constant */
} Known;

static bool
in_registers(const Layout *l)
{
    for (int d = 0; l && d < LD_COUNT; d++)
        for (int i = 0; d != LD_REG && i < l->nbasis[d]; i++)
            if (l->basis[d][i])
                return false;
    return l;
}

static bool
reduces_registers(const Op *reduce)
{
    const Layout *l = op_operand(reduce, 0)->type->layout;
    int axis = (int)attr_int(&reduce->attrs, ATTR_AXIS, 0);
    for (int d = 0; l && d < LD_COUNT; d++)
        for (int i = 0; d != LD_REG && i < l->nbasis[d]; i++)
            if (layout_part(l, l->basis[d][i], axis))
                return false;
    return l;
}

static bool
is_known(Known *k, Value *v, int depth)
{
    const Op *op = v->op;
    if (v == k->loop->regions[0]->args[0] || map_has(&k->of, v))
        return true;
    if (!op || depth > KNOWN_DEPTH || !op_is(op, T_PURE) || op->nregion)
        return false;
    if (op->kind == OP_ARANGE)
        return in_registers(v->type->layout);
    if (op->kind != OP_CONST && !op->noperand)
        return false;
    if (op->noperand && !op_is(op, T_ELEMENTWISE) && !op_is(op, T_SHAPE))
        return false;
    for (int i = 0; i < op->noperand; i++)
        if (!is_known(k, op_operand(op, i), depth + 1))
            return false;
    map_set(&k->of, v, v);
    return true;
}

/* Does op take nothing, or next to nothing, where the index is known? */
static bool
vanishes(Known *k, Op *op)
{
    if (!op->nresult)
        return false;
    if (op->kind == OP_SELECT && is_known(k, op_operand(op, 0), 0)) {
        if (is_known(k, op_operand(op, 1), 0) || is_known(k, op_operand(op, 2), 0))
            map_set(&k->thin, &op->results[0], &op->results[0]);
        return true;
    }
    if (op->kind == OP_REDUCE)
        return op->noperand == 1 && map_has(&k->thin, op_operand(op, 0)) &&
               reduces_registers(op);
    return is_known(k, &op->results[0], 0);
}

int
unroll_whole(Arena *arena, const Op *loop)
{
    int64_t trips = loop_trips(loop), code = 0, gone = 0;
    Known k = {.loop = loop};
    if (trips < 2 || trips > MOST_TRIPS)
        return 0;
    map_init(&k.of, arena);
    map_init(&k.thin, arena);
    region_each(loop->regions[0], op)
    {
        bool plain = op->kind == OP_REDUCE || !op->nregion;
        bool load = op->kind == OP_LOAD && !attr_has(&op->attrs, ATTR_VOLATILE);
        if (!plain || op_is(op, T_DOT) ||
            (!load && op->kind != OP_STORE && op->kind != OP_YIELD && !op_is_pure(op)))
            return 0;
        int64_t own = op_code(op, 0);
        code += own;
        gone += vanishes(&k, op) ? own : 0;
    }
    bool pays = 2 * gone >= code && (code - gone) * trips <= MOST_WHOLE;
    return pays ? (int)trips : 0;
}
