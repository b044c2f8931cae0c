/* Scratch memory of the operations that hand elements from thread to thread, but for
   conversions and reductions: ir/plan/scratch.c asks here for all others. */
#include "ir/base/util.h"
#include "ir/layout.h"
#include "ir/plan/gather.h"
#include "ir/plan/scan_plan.h"
#include "ir/plan/scratch.h"
#include "ir/plan/tma_box.h"

static int64_t
tile_bytes(const Type *t)
{
    return type_numel(t) * shared_elem_bytes(t);
}

static Session *
session_of(const Op *op)
{
    return op->parent->func->module->s;
}

/* The old value is handed from the thread that acted to those that hold copies. */
static int64_t
atomic_bytes(const Op *op)
{
    const Type *t = op->results[0].type;
    bool one = t->layout && !layout_is_replicated(t->layout);
    return one || !op->results[0].uses ? 0 : tile_bytes(t);
}

int64_t
second_offset(const Op *op)
{
    const Value *first = op->kind == OP_GATHER ? op_operand(op, 0) : &op->results[0];
    return (tile_bytes(first->type) + 15) & ~(int64_t)15;
}

/* The tile that is looked up in or counted in, and the second operand if it has another
   layout than the one it is wanted in. */
static int64_t
second_bytes(const Op *op, const Layout *l)
{
    bool moves = op->noperand > 1 && op_operand(op, 1)->type->layout != l;
    return second_offset(op) + (moves ? tile_bytes(op_operand(op, 1)->type) : 0);
}

static int64_t
gather_bytes(const Op *op)
{
    GatherPlan p;
    return gather_in_warp(op, &p) ? 0 : second_bytes(op, op->results[0].type->layout);
}

static int64_t
scan_scratch(const Op *op)
{
    ScanPlan p;
    if (!op_operand(op, 0)->type->layout)
        return 0;
    scan_plan(session_of(op), op, &p);
    return scan_bytes(op, &p);
}

int64_t
scratch_bytes_of_op(const Op *op)
{
    switch ((int)op->kind) {
    case OP_ATOMIC_RMW:
    case OP_ATOMIC_CAS: return atomic_bytes(op);
    case OP_GATHER: return gather_bytes(op);
    case OP_HISTOGRAM: return second_bytes(op, op_operand(op, 0)->type->layout);
    case OP_SCAN: return scan_scratch(op);
    case OP_TENSOR_MAP: return TENSOR_MAP_BYTES;
    default: return 0;
    }
}
