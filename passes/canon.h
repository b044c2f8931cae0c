/* The local rules of canonicalization, shared by its driver and its rule files. */
#ifndef SDC_PASSES_CANON_H
#define SDC_PASSES_CANON_H

#include "ir/build.h"
#include "ir/edit.h"
#include "ir/fold.h"
#include "passes/pass.h"

/* Each tries to simplify one op. A replacement value is returned and the driver
   replaces the op's only result by it; NULL: nothing to do. New ops go before `op`
   through `b`. */
Value *canon_algebra(Builder *b, Op *op); /* identities of arithmetic, casts, compare */
Value *canon_shape(Builder *b, Op *op);   /* splat, broadcast, reshape, trans */

/* Structured and memory ops: changes or erases `op` itself. True when it did. */
bool canon_control(Builder *b, Op *op);
bool canon_memory(Builder *b, Op *op);

#endif
