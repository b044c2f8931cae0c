/* The table of implicit conversions between operands. */
#ifndef SDC_FRONTEND_PROMOTE_H
#define SDC_FRONTEND_PROMOTE_H

#include "frontend/dtype.h"

typedef enum PromoteResult { PROMOTE_OK, PROMOTE_SIGNS, PROMOTE_TYPES } PromoteResult;

/* Weak: a literal or another compile-time number. div_or_mod: of '/', '//' and '%'. */
PromoteResult promote(DType a, bool weak_a, DType b, bool weak_b, bool div_or_mod,
                      DType *out);
DType promote_int(DType a, DType b);

#endif
