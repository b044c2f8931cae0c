/* Error functions that are only ever added to a number of at least 1, as in GELU:

       %e = erf %x
       %s = addf %one, %e            =>       erf .. {beside_one}

   Rounding the sum loses what lies below 2^-24, so the values near 0 need not be right
   relative to their own size, which is half of the work of an error function. */
#include "passes/cpu/simd.h"

#include "ir/fold.h"

#include <math.h>

static bool
is_added_to_one(const Op *user, const Value *v)
{
    Const c;
    if (user->kind != OP_ADDF && user->kind != OP_SUBF)
        return false;
    const Value *other = op_operand(user, op_operand(user, 0) == v);
    return other != v && value_const(other, &c) && c.is_float && fabs(c.f) >= 1;
}

bool
simd_beside_one(const Op *op)
{
    const Value *v = &op->results[0];
    if (!v->uses || type_elem(v->type)->scalar != SK_F32)
        return false;
    value_each_use(v, u) if (!is_added_to_one(u->user, v)) return false;
    return true;
}
