/* How much memory a program reads and writes, by the sizes of its tiles: masks and caches
   are not considered, and a loop counts as one iteration. */
#ifndef SDC_PASSES_ACCESS_TRAFFIC_H
#define SDC_PASSES_ACCESS_TRAFFIC_H

#include "ir/ir.h"

/* Appends to *out one line for each kernel parameter that is read or written through, in
   bytes, and their sum, in all and for each element stored. f: tile IR before layouts and
   before lower-cpu. */
void traffic_print(Buf *out, const Func *f);

#endif
