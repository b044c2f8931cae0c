/* Registers of dots, and programs per SM; see occupancy.h. */
#include "passes/schedule/occupancy.h"

#include "ir/analysis/async_dot.h"
#include "ir/base/util.h"
#include "ir/buffer.h"
#include "ir/edit.h"
#include "ir/plan/wgmma_left.h"
#include "ir/plan/wgmma_promote.h"
#include "passes/pass.h"
#include "passes/schedule/double_buffer.h"

/* The value whose registers v shares; v itself if there is none. */
static const Value *
same_registers(const Value *v)
{
    const Op *op = v->op;
    if (op && op->kind == OP_CONVERT_LAYOUT &&
        op_operand(op, 0)->type->layout == v->type->layout)
        return op_operand(op, 0);
    if (op && op_is_dot_wait(op))
        return op_operand(op, v->index);
    return v;
}

bool
mma_counted(const Op *dot, int operand)
{
    const Value *v = op_operand(dot, operand), *from = same_registers(v);
    if (operand == DOT_ACC)
        return dot_added_to(dot) && !v->uses->next;
    for (const Op *op = dot->prev; op; op = op->prev)
        if (op_is_async_dot(op) && same_registers(op_operand(op, DOT_LEFT)) == from)
            return true;
    return false;
}

/* 32-bit registers of a left operand that threads read step by step, with four steps in
   registers at once. */
static int64_t
step_registers(const Op *dot)
{
    enum { STEPS = 4, WORD = 4 };
    const Type *a = op_operand(dot, 0)->type;
    int64_t row = min_i64(a->shape[1] * type_bits(a) / 8, STEPS * WGMMA_STEP_BYTES);
    return wgmma_by_steps(dot) ? wgmma_rows_at_once(dot) * row / WORD : 0;
}

/* Accumulators that a dot in parts needs, its sum included: two, or three where the next
   part runs while one is added. */
static int
part_tiles(const Op *dot)
{
    const Op *next = dot->next;
    return next && op_is_dot_wait(next) ? 2 : 3;
}

static int
total(DotRegisters n)
{
    return n.accumulators + n.kept + n.filled;
}

static int
words_of(const Type *t)
{
    t = dot_tile(t);
    return t->kind == TY_TILE ? (int)(type_numel(t) * type_bits(t) / 32) : 0;
}

/* Parts follow one another, so only the largest counts. */
static void
add_dot(DotRegisters *n, DotRegisters *parts, const Op *dot)
{
    const Value *left = op_operand(dot, DOT_LEFT);
    int sum = mma_counted(dot, DOT_ACC) ? 0 : words_of(op_operand(dot, DOT_ACC)->type);
    int own = mma_counted(dot, DOT_LEFT) ? 0 : words_of(left->type);
    int steps = (int)step_registers(dot);
    if (value_outside(left, dot->parent))
        n->kept += own;
    else
        n->filled += own;
    if (attr_has(&dot->attrs, ATTR_PART)) {
        parts->accumulators = (int)max_i64(parts->accumulators, part_tiles(dot) * sum);
        parts->filled = (int)max_i64(parts->filled, steps);
    } else {
        n->accumulators += sum;
        n->filled += steps;
        parts->accumulators =
            (int)max_i64(parts->accumulators, wgmma_piece_registers(dot));
    }
}

DotRegisters
dot_registers(const Region *r)
{
    DotRegisters own = {0}, parts = {0}, inner = {0};
    for (const Op *op = r->first; op; op = op->next) {
        if (op_is_async_dot(op))
            add_dot(&own, &parts, op);
        for (int i = 0; i < op->nregion; i++) {
            DotRegisters in = dot_registers(op->regions[i]);
            inner = total(in) > total(inner) ? in : inner;
        }
    }
    own.accumulators += parts.accumulators;
    own.filled += parts.filled;
    return total(own) > total(inner) ? own : inner;
}

int
mma_registers(const Region *r)
{
    return total(dot_registers(r));
}

int64_t
stage_bytes(const Op *loop)
{
    int64_t sum = 0;
    for (const Op *op = loop->regions[0]->first; op; op = op->next) {
        if (op_is_planned(op))
            sum += type_bytes(op->results[0].type);
    }
    return sum;
}

int64_t
loop_bytes(const Op *loop, int stages)
{
    int64_t sum = stage_bytes(loop) * stages;
    for (const Op *op = loop->regions[0]->first; op; op = op->next) {
        const Op *from = op->noperand ? op_operand(op, 0)->op : NULL;
        bool planned = from && op_is_planned(from);
        if (op->kind == OP_LOCAL_ALLOC && op->noperand && !planned)
            sum += (is_double_buffered(op) ? 2 : 1) *
                   shared_buffer_bytes(op->results[0].type);
    }
    return sum;
}

int64_t
occupancy(const Func *f, const TargetInfo *target, int64_t words, int beside,
          int64_t bytes)
{
    enum { RESERVED = 1024 };
    int64_t threads = 32 * (int64_t)f->num_warps;
    int64_t by_registers = target->registers / (threads * (words / threads + beside));
    return min_i64(max_i64(1, by_registers),
                   (target->shared_bytes + RESERVED) / (bytes + RESERVED));
}
