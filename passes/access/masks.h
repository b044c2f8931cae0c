/* Masks whose value was found out. */
#ifndef SDC_PASSES_ACCESS_MASKS_H
#define SDC_PASSES_ACCESS_MASKS_H

#include "ir/ir.h"

/* The comparison gives the same for all elements: its uses, what is made of it by
   conjunction, repetition and change of layout, and the accesses and choices that it
   masks are rewritten. Operations that become unused stay for dce; the comparison too, so
   that a walk that stands on it can go on. */
void mask_is(Session *s, Op *cmp, bool holds);

#endif
