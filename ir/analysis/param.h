/* Which parameter of the kernel an address comes from. As everywhere in sdc, two
   parameters are assumed to point to different memory when both are used in one loop. */
#ifndef SDC_IR_ANALYSIS_PARAM_H
#define SDC_IR_ANALYSIS_PARAM_H

#include "ir/ir.h"

/* The parameter that a pointer, a tile of pointers or a tensor descriptor comes from;
   NULL: it is not that simple. */
Value *param_of(Value *v);

/* What ops write in global memory, which limits how far reads can move up, and these ops
   down. */
typedef struct Writes {
    bool all;     /* any memory, or other programs may have written before */
    bool ordered; /* there is a barrier or the like, which no access may cross */
    int n;        /* otherwise these parameters */
    const Value *to[8];
} Writes;
/* Adds what op and the ops inside of it write. Waits for asynchronous work count as
   ordering nothing but that work. */
void writes_add(Writes *w, const Op *op);
/* May a read through this address read what they write? */
bool writes_reach(const Writes *w, Value *address);

/* The origin of an address: a parameter, or an address that was loaded through a
   parameter (`loads` 1), or through such an address, and so on. Addresses from lists in
   different parameters are assumed to be different memory, as parameters are; so are a
   list and what it points to. */
typedef struct Origin {
    const Value *param; /* NULL: it is not that simple */
    int loads;
} Origin;
Origin origin_of(const Value *v);

/* May a write to one be read through the other? */
bool origin_may_be(Origin to, Origin from);
/* May the kernel itself have written memory of that origin when it reaches `op`, in front
   of it or in an earlier iteration? */
bool origin_written_before(const Op *op, Origin from);

#endif
