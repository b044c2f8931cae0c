/* Which parameter of the kernel an address comes from. As everywhere in sdc, two
   parameters are two pieces of memory when both are used in one loop. */
#ifndef SDC_IR_ANALYSIS_PARAM_H
#define SDC_IR_ANALYSIS_PARAM_H

#include "ir/ir.h"

/* Of a pointer, a tile of pointers or a tensor descriptor; NULL: that is not plain. */
Value *param_of(Value *v);

/* May the kernel itself have written memory of that parameter when it comes to `op`, in
   front of it or in an earlier iteration? */
bool param_written_before(const Op *op, const Value *param);

#endif
