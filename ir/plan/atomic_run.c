/* Elements of one atomic instruction. */
#include "ir/plan/atomic_run.h"

#include <string.h>

int
atomic_run(const Op *op, const TargetInfo *t)
{
    enum { BYTES = 16, PAIR = 2 };
    const Type *e = type_elem(op_operand(op, 1)->type);
    Name rmw = op->kind == OP_ATOMIC_RMW ? attr_str(&op->attrs, ATTR_RMW) : NULL;
    if (!rmw || strcmp(rmw, "fadd") != 0 || e->kind != TY_SCALAR)
        return 1;
    switch ((int)e->scalar) {
    case SK_F32: return t->atomic_runs ? BYTES / 4 : 1;
    case SK_BF16: return t->atomic_runs ? BYTES / 2 : t->bf16 ? PAIR : 1;
    case SK_F16: return t->atomic_runs ? BYTES / 2 : PAIR;
    default: return 1;
    }
}
