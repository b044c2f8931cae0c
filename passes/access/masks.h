/* Masks whose value is known. */
#ifndef SDC_PASSES_ACCESS_MASKS_H
#define SDC_PASSES_ACCESS_MASKS_H

#include "ir/ir.h"

/* Comparison cmp gives `holds` for all elements: rewrites its users, what is computed
   from it by conjunction, broadcast and change of layout, and the accesses and selects
   that it masks. Operations without users stay for dce; cmp stays too, so that a walk
   that stands on it can go on. */
void mask_is(Session *s, Op *cmp, bool holds);

#endif
