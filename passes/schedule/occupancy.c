/* Registers of dots, and programs of an SM; see occupancy.h. */
#include "passes/schedule/occupancy.h"

#include "ir/analysis/async_dot.h"
#include "ir/base/util.h"
#include "ir/plan/wgmma_left.h"
#include "ir/plan/wgmma_promote.h"
#include "passes/pass.h"

/* Where the elements of v were left, in the same registers. */
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
mma_counted(const Op *product, int operand)
{
    const Value *v = op_operand(product, operand), *from = same_registers(v);
    if (operand == DOT_ACC)
        return dot_added_to(product) && !v->uses->next;
    for (const Op *op = product->prev; op; op = op->prev)
        if (op_is_async_dot(op) && same_registers(op_operand(op, DOT_LEFT)) == from)
            return true;
    return false;
}

/* 32-bit registers of a left operand that threads read by steps, of which four are there
   at once. */
static int64_t
step_registers(const Op *product)
{
    enum { STEPS = 4, WORD = 4 };
    const Type *a = op_operand(product, 0)->type;
    int64_t row = a->shape[1] * type_bits(a) / 8;
    return wgmma_by_steps(product)
               ? a->shape[0] * min_i64(row, STEPS * WGMMA_STEP_BYTES) / WORD
               : 0;
}

/* Accumulators of a dot in parts, with the sum of them: two, or three where the next part
   goes on while one is added. */
static int
part_tiles(const Op *product)
{
    const Op *next = product->next;
    return next && op_is_dot_wait(next) ? 2 : 3;
}

static int
registers(const Region *r, int depth)
{
    int own = 0, inner = 0, parts = 0, steps = 0;
    for (const Op *op = r->first; op && depth < MAX_REGION_DEPTH; op = op->next) {
        bool part = op_is_async_dot(op) && attr_has(&op->attrs, ATTR_PART);
        int step = op_is_async_dot(op) ? (int)step_registers(op) : 0;
        if (part)
            steps = step > steps ? step : steps; /* one part's follow another's */
        else
            own += step;
        if (op_is_async_dot(op))
            parts = (int)max_i64(parts, wgmma_piece_registers(op));
        for (int i = DOT_LEFT; op_is_async_dot(op) && i <= DOT_ACC; i += DOT_ACC) {
            const Type *t = dot_tile(op_operand(op, i)->type);
            if (t->kind != TY_TILE || mma_counted(op, i))
                continue;
            int words = (int)(type_numel(t) * type_bits(t) / 32);
            if (part && i == DOT_ACC)
                parts = (int)max_i64(parts, part_tiles(op) * words);
            else
                own += words;
        }
        for (int i = 0; i < op->nregion; i++)
            inner = (int)max_i64(inner, registers(op->regions[i], depth + 1));
    }
    own += parts + steps;
    return own > inner ? own : inner;
}

int
mma_registers(const Region *r)
{
    return registers(r, 0);
}

int64_t
stage_bytes(const Op *loop)
{
    int64_t sum = 0;
    for (const Op *op = loop->regions[0]->first; op; op = op->next) {
        bool load = op->kind == OP_LOAD || op->kind == OP_DESC_LOAD;
        const Type *t = load ? op->results[0].type : NULL;
        if (load && attr_has(&op->attrs, ATTR_STAGE))
            sum += type_numel(t) * max_i64(type_bits(t), 8) / 8;
    }
    return sum;
}

int64_t
occupancy(const Func *f, const TargetInfo *target, int64_t words, int64_t bytes)
{
    enum { REGISTERS = 65536, BESIDE = 40, RESERVED = 1024 };
    int64_t threads = 32 * (int64_t)f->num_warps;
    int64_t by_registers = REGISTERS / (threads * (words / threads + BESIDE));
    return min_i64(max_i64(1, by_registers),
                   (target->shared_bytes + RESERVED) / (bytes + RESERVED));
}
