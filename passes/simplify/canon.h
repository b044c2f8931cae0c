/* The local rules of canonicalization, shared by its driver and its rule files. */
#ifndef SDC_PASSES_SIMPLIFY_CANON_H
#define SDC_PASSES_SIMPLIFY_CANON_H

#include "ir/build.h"
#include "ir/edit.h"
#include "ir/fold.h"
#include "passes/pass.h"

/* Each tries to simplify one op. A replacement value is returned and the driver
   replaces the op's only result by it; NULL: nothing to do. New ops go before `op`
   through `b`. */
Value *canon_algebra(Builder *b, Op *op); /* identities of arithmetic, casts, compare */
Value *canon_shape(Builder *b, Op *op);   /* splat, broadcast, reshape, trans */

/* All of them, constants folded first: for passes that know something about one op. The
   operands of `op` may change places, which *changed tells. */
Value *canon_value(Builder *b, Op *op, bool *changed);

/* What a mask of one known value makes of a load, store or atomic operation. */
typedef enum CanonAccess {
    ACCESS_KEPT,
    ACCESS_UNMASKED, /* the mask always held and is gone */
    ACCESS_NONE /* nothing is touched; a load gives *gives, others have no use: erase */
} CanonAccess;
CanonAccess canon_access(Builder *b, Op *op, Value **gives);

/* Structured ops: changes or erases `op` itself. True when it did. */
bool canon_control(Builder *b, Op *op);
/* A while loop: as a for loop, where it counts. */
bool canon_while(Builder *b, Op *loop);

#endif
