/* Which parameter of the kernel an address comes from. As everywhere in sdc, two
   parameters are two pieces of memory when both are used in one loop. */
#ifndef SDC_IR_ANALYSIS_PARAM_H
#define SDC_IR_ANALYSIS_PARAM_H

#include "ir/ir.h"

/* Of a pointer, a tile of pointers or a tensor descriptor; NULL: that is not plain. */
Value *param_of(Value *v);

#endif
