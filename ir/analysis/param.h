/* Which parameter of the kernel an address comes from. As everywhere in sdc, two
   parameters are two pieces of memory when both are used in one loop. */
#ifndef SDC_IR_ANALYSIS_PARAM_H
#define SDC_IR_ANALYSIS_PARAM_H

#include "ir/ir.h"

/* Of a pointer, a tile of pointers or a tensor descriptor; NULL: that is not plain. */
Value *param_of(Value *v);

/* What ops write in global memory: what keeps reads from running ahead of them, and them
   from running behind reads. */
typedef struct Writes {
    bool all;     /* not through plain parameters, or other programs may write before */
    bool ordered; /* there is a barrier, or the like, over which no access moves */
    int n;        /* else parameters, each */
    const Value *to[8];
} Writes;
/* What op and the ops in it write. Waits for asynchronous work order nothing else. */
void writes_add(Writes *w, const Op *op);
/* May a read through this address find what they write? */
bool writes_reach(const Writes *w, Value *address);

/* What an address begins with: a parameter, or an address that was loaded through one
   (`loads` 1), or through such a one. Addresses from lists in different parameters are
   different memory, as parameters are, and so are a list and what it names. */
typedef struct Origin {
    const Value *param; /* NULL: that is not plain */
    int loads;
} Origin;
Origin origin_of(const Value *v);

/* May what goes to one be what comes from the other? */
bool origin_may_be(Origin to, Origin from);
/* May the kernel itself have written memory of that origin when it comes to `op`, in
   front of it or in an earlier iteration? */
bool origin_written_before(const Op *op, Origin from);

#endif
