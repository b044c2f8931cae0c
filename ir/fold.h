/* Constants of tile IR and their arithmetic. Floats are folded only where IEEE
   arithmetic gives one answer (no transcendental functions: their last bit belongs to
   the target). */
#ifndef SDC_IR_FOLD_H
#define SDC_IR_FOLD_H

#include "ir/ir.h"

/* Integers are sign-extended from their width, i1 is 0 or 1. Floats are exact in
   double. */
typedef struct Const {
    bool is_float;
    int64_t i;
    double f;
} Const;

/* The value of a constant: a const op, or a splat, broadcast or reshape of one. */
bool value_const(const Value *v, Const *out);
bool value_is_int(const Value *v, int64_t i); /* constant integer equal to i */
bool value_is_zero(const Value *v); /* constant 0 of any type, of either sign */

/* Result of an elementwise op on constants `in`, one per operand. False when it is not
   folded (division by zero, an op without a rule, arithmetic in fp8). */
bool fold_op(const Op *op, const Const *in, Const *out);

/* An integer as the given type holds it; a double rounded to nearest even in it. */
int64_t const_wrap(ScalarKind k, int64_t v);
double const_round(ScalarKind k, double v);

#endif
