/* Implicit conversions between operands: the type that an operator computes in. */
#ifndef SDC_FRONTEND_PROMOTE_H
#define SDC_FRONTEND_PROMOTE_H

#include "frontend/dtype.h"

typedef enum PromoteResult { PROMOTE_OK, PROMOTE_SIGNS, PROMOTE_TYPES } PromoteResult;

/* *out: the common type of operands a and b. weak_a, weak_b: the operand is a
   compile-time number. div_or_mod: the operator is '/', '//' or '%'. PROMOTE_SIGNS: a
   division of a signed by an unsigned integer; PROMOTE_TYPES: there is no common type. */
PromoteResult promote(DType a, bool weak_a, DType b, bool weak_b, bool div_or_mod,
                      DType *out);
/* The common type of two integer types. */
DType promote_int(DType a, DType b);

#endif
