/* What elements need of formats beyond eval.h. */
#ifndef TESTS_RULES_SUPPORT_NUMBER_H
#define TESTS_RULES_SUPPORT_NUMBER_H

#include "ir/type.h"

uint64_t bits_of_number(ScalarKind k, double v, bool toward_zero);
/* The same as a conversion: 8-bit floats saturate. */
uint64_t bits_narrowed(ScalarKind k, double v, bool toward_zero);
uint64_t bits_of_integer(ScalarKind k, bool negative, uint64_t magnitude);

#endif
