/* How much memory a program reads and writes, as far as its tiles say: masks and caches
   left aside, loops counted for one iteration. */
#ifndef SDC_PASSES_ACCESS_TRAFFIC_H
#define SDC_PASSES_ACCESS_TRAFFIC_H

#include "ir/ir.h"

/* One line for each kernel parameter that is read or written through, and the sum, also
   for each element that is stored. For tile IR before layouts or nests. */
void traffic_print(Buf *out, const Func *f);

#endif
