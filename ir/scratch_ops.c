/* Scratch memory of the operations that hand elements from thread to thread, but for
   conversions and reductions: ir/scratch.c asks here for all others. */
#include "ir/base/util.h"
#include "ir/layout.h"
#include "ir/scratch.h"

static int64_t
tile_bytes(const Type *t)
{
    return type_numel(t) * shared_elem_bytes(t);
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
scratch_bytes_of_op(const Op *op)
{
    switch ((int)op->kind) {
    case OP_ATOMIC_RMW:
    case OP_ATOMIC_CAS: return atomic_bytes(op);
    default: return 0;
    }
}
