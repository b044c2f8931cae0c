/* Exponentials whose operand is never above 0 (or is NaN), as x - max(x) in a softmax:
   they need no bound above and, since their results are at most 1, a simpler scaling.

       %m = reduce(maxf) %x {axis=1}
       %e = exp (%x - broadcast(expand_dims %m))       =>       exp .. {nonpositive}

   y is at least x where y comes from the maximum of x along a dimension, or is an
   elementwise maximum with x, through operations on shapes that keep every element where
   it is. */
#include "ir/analysis/nonpositive.h"

#include "ir/analysis/reduction.h"

enum { MAX_DEPTH = 16 };

/* Dimension k of a value runs with dimension dim[k] of x; -1: it has one element. */
typedef struct Along {
    int rank;
    int dim[MAX_RANK];
} Along;

static bool
is_max(const Op *op)
{
    return op->kind == OP_MAXF || op->kind == OP_MAXNAN;
}

static bool
is_identity(const Along *a, const Value *x)
{
    bool same = a->rank == x->type->rank;
    for (int i = 0; i < a->rank && same; i++)
        same = a->dim[i] == i;
    return same;
}

/* Is this the maximum of x along a dimension, the others where x has them? */
static bool
is_maximum_of(const Op *op, const Value *x, const Along *a)
{
    const Op *by = reduction_operation(op);
    int axis = (int)attr_int(&op->attrs, ATTR_AXIS, 0);
    if (!by || !is_max(by) || op_operand(op, 0) != x)
        return false;
    for (int i = 0; i < a->rank; i++)
        if (a->dim[i] != i + (i >= axis) && x->type->shape[i + (i >= axis)] != 1)
            return false;
    return true;
}

static bool
at_least(const Value *y, const Value *x, Along a, int depth)
{
    const Op *op = y->op;
    if (y == x)
        return is_identity(&a, x);
    if (!op || depth > MAX_DEPTH)
        return false;
    const Value *from = op->noperand ? op_operand(op, 0) : NULL;
    switch ((int)op->kind) {
    case OP_SPLAT: a.rank = 0; break;
    case OP_BROADCAST:
        for (int i = 0; i < a.rank; i++)
            if (from->type->shape[i] == 1)
                a.dim[i] = -1;
        break;
    case OP_EXPAND_DIMS: {
        int axis = (int)attr_int(&op->attrs, ATTR_AXIS, 0);
        for (int i = axis; i + 1 < a.rank; i++)
            a.dim[i] = a.dim[i + 1];
        a.rank--;
        break;
    }
    case OP_MAXF:
    case OP_MAXNAN:
        return at_least(from, x, a, depth + 1) ||
               at_least(op_operand(op, 1), x, a, depth + 1);
    case OP_REDUCE: return is_maximum_of(op, x, &a);
    default: return false;
    }
    return at_least(from, x, a, depth + 1);
}

bool
nonpositive_exponent(const Op *op)
{
    const Value *v = op_operand(op, 0);
    Op *sub = value_def(v, OP_SUBF);
    if (!type_is_tile(v->type) || !sub)
        return false;
    Along a = {.rank = v->type->rank};
    for (int i = 0; i < a.rank; i++)
        a.dim[i] = i;
    return at_least(op_operand(sub, 1), op_operand(sub, 0), a, 0);
}
