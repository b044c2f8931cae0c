/* See ir/analysis/reduction.h. */
#include "ir/analysis/reduction.h"

const Op *
reduction_operation(const Op *reduce)
{
    const Region *r = reduce->regions[0];
    const Op *op = r->first;
    if (reduce->noperand != 1 || !op || op->next != r->last || op->noperand != 2 ||
        op->nresult != 1 || op_operand(r->last, 0) != &op->results[0])
        return NULL;
    const Value *x = op_operand(op, 0), *y = op_operand(op, 1);
    bool arguments = x->region == r && y->region == r && x != y;
    return arguments ? op : NULL;
}
