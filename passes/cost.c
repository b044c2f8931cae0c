/* See cost.h. */
#include "passes/cost.h"

int
op_cost(const Op *op)
{
    switch ((int)op->kind) {
    case OP_LOAD: return 100;
    case OP_EXP:
    case OP_EXP2:
    case OP_LOG:
    case OP_LOG2:
    case OP_SIN:
    case OP_COS:
    case OP_ERF:
    case OP_LIBM:
    case OP_REMF: return 30;
    case OP_DIVS:
    case OP_DIVU:
    case OP_REMS:
    case OP_REMU: return 10;
    case OP_DIVF:
    case OP_DIVRN:
    case OP_SQRT:
    case OP_SQRTRN:
    case OP_RSQRT: return 8;
    case OP_MULHIS:
    case OP_MULHIU: return 3;
    case OP_CONST:
    case OP_SPLAT:
    case OP_ARANGE:
    case OP_BROADCAST:
    case OP_EXPAND_DIMS: return 0;
    default: return 1;
    }
}
