/* x.__add__(y) and the other methods of a tensor that are operators: what Python calls
   for x + y, a kernel may call itself. `__radd__` has the operands in the other order. */
#include "frontend/builtin.h"
#include "ir/base/util.h"

#include <string.h>

Val
bi_operator(Sema *s, Args *a)
{
    static const struct {
        const char *name;
        BinOp op;
        bool swapped;
    } methods[] = {
#define BOTH(name, op) {"__" name "__", op, false}, {"__r" name "__", op, true}
        BOTH("add", BIN_ADD),           BOTH("sub", BIN_SUB), BOTH("mul", BIN_MUL),
        BOTH("truediv", BIN_DIV),       BOTH("mod", BIN_MOD), BOTH("and", BIN_AND),
        BOTH("floordiv", BIN_FLOORDIV), BOTH("or", BIN_OR),   BOTH("xor", BIN_XOR),
        BOTH("lshift", BIN_SHL),        BOTH("rshift", BIN_SHR),
        {"__eq__", BIN_EQ, false},      {"__ne__", BIN_NE, false},
        {"__lt__", BIN_LT, false},      {"__le__", BIN_LE, false},
        {"__gt__", BIN_GT, false},      {"__ge__", BIN_GE, false},
#undef BOTH
    };
    for (size_t i = 0; i < COUNT_OF(methods); i++)
        if (strcmp(methods[i].name, a->b->name) == 0)
            return binary(s, methods[i].op, a->v[methods[i].swapped],
                          a->v[!methods[i].swapped], a->loc);
    Val x = a->v[0];
    return strcmp(a->b->name, "__neg__") == 0 ? tensor_minus(s, x, a->loc)
                                              : tensor_invert(s, x, a->loc);
}
