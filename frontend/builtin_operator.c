/* x.__add__(y) and the other methods of a tensor that are operators: what Python calls
   for x + y, a kernel may call itself. `__radd__` has the operands in the other order. */
#include "frontend/builtin.h"

#include <string.h>

Val
bi_operator(Sema *s, Args *a)
{
    /* A comparison's reflected method is another one's own, which is found first. */
    for (int swapped = 0; swapped < 2; swapped++)
        for (int op = 0; op < BIN_COUNT; op++)
            if (strcmp(binop_method[op][swapped], a->b->name) == 0)
                return binary(s, (BinOp)op, a->v[swapped], a->v[!swapped], a->loc);
    Val x = a->v[0];
    return strcmp(a->b->name, "__neg__") == 0 ? tensor_minus(s, x, a->loc)
                                              : tensor_invert(s, x, a->loc);
}
