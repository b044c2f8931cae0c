/* Transfer functions of axis facts: what holds of an op's result when the facts of its
   operands hold. Shared by ir/analysis/axis.c (the walk) and axis_rules.c. */
#ifndef SDC_IR_ANALYSIS_AXIS_RULES_H
#define SDC_IR_ANALYSIS_AXIS_RULES_H

#include "ir/analysis/axis.h"

/* What holds of any value of the type. */
AxisFacts axis_nothing(const Type *t);
/* What holds when either holds. */
AxisFacts axis_join(const AxisFacts *a, const AxisFacts *b, const Type *t);
bool axis_same(const AxisFacts *a, const AxisFacts *b);
/* Largest power of two that divides v, up to the cap. */
int64_t axis_pow2(int64_t v);
/* A divisor of every element. */
int64_t axis_all_div(const AxisFacts *f, const Type *t);
/* Is every element the same known integer? */
bool axis_known(const AxisFacts *f, int64_t *value);
/* Facts of result i; in[] are those of the operands. nowrap: as axis_new_nowrap. */
AxisFacts axis_rule(const Op *op, int i, const AxisFacts *const *in, bool nowrap);

#endif
