/* Linear inequalities over unknown integers: is k1 x1 + k2 x2 + .. + c <= 0, given other
   inequalities of that form, and the bounds and a divisor of each x? Integers are
   mathematical ones here: nothing wraps. */
#ifndef SDC_IR_ANALYSIS_LINEAR_H
#define SDC_IR_ANALYSIS_LINEAR_H

#include "ir/analysis/axis.h"
#include "ir/base/vec.h"

__extension__ typedef __int128 Wide; /* no coefficient or sum overflows it */

enum { LINEAR_TERMS = 6 };

/* The sum of k[i] * x[i], plus a number between lo and hi. */
typedef struct Linear {
    int n;
    const Value *x[LINEAR_TERMS];
    Wide k[LINEAR_TERMS];
    Wide lo, hi;
    bool valid; /* false: too many terms or too large */
} Linear;

/* Linear forms that are known to be at most 0. */
typedef struct Known {
    Arena *arena;
    Axis *axis; /* bounds and divisors of each x */
    Vec(Linear) facts;
    int budget; /* steps that proofs may still take */
} Known;

Linear linear_const(Wide c);
Linear linear_between(int64_t lo, int64_t hi);
Linear linear_of(const Value *x);
Linear linear_add(const Linear *a, Wide k, const Linear *b); /* a + k b */
Linear linear_plus(const Linear *a, Wide c);

/* Learns that f <= 0. */
void known_add(Known *g, const Linear *f);
/* Is f <= 0 provable? */
bool known_negative(Known *g, const Linear *f);

#endif
