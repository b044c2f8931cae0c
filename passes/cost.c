/* See cost.h. */
#include "passes/cost.h"

#include "ir/base/util.h"
#include "ir/layout.h"

typedef struct Cost {
    int time, code;
} Cost;

static Cost
cost(const Op *op)
{
    switch ((int)op->kind) {
#define COST(id, time, code)                                                             \
    case OP_##id: return (Cost){time, code};
#include "passes/cost.def"
    default: return (Cost){1, 1};
    }
}

int
op_cost(const Op *op)
{
    return cost(op).time;
}

static int64_t
elements(const Type *t)
{
    return type_is_tile(t) && t->layout ? layout_regs(t->layout) : 1;
}

int64_t
op_code(const Op *op, int depth)
{
    enum { ACCESS_BITS = 128 };
    int64_t n = 1, inner = 0;
    for (int i = 0; i < op->nresult; i++)
        n = max_i64(n, elements(op->results[i].type));
    if (op->kind == OP_LOAD || op->kind == OP_STORE) {
        const Type *t =
            op->kind == OP_LOAD ? op->results[0].type : op_operand(op, 1)->type;
        n = max_i64(elements(t) * type_bits(t) / ACCESS_BITS, 1);
    }
    for (int i = 0; i < op->nregion && depth < MAX_REGION_DEPTH; i++)
        inner += region_code(op->regions[i], depth + 1);
    if (op->kind == OP_REDUCE || op->kind == OP_SCAN) /* its region is of one element */
        return inner * max_i64(n, elements(op_operand(op, 0)->type));
    return inner + n * cost(op).code;
}

int64_t
region_code(const Region *r, int depth)
{
    int64_t n = 0;
    for (const Op *op = r->first; op; op = op->next)
        n += op_code(op, depth);
    return n;
}
