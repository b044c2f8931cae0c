/* What `sdc run` prints of an array. */
#ifndef SDC_CLI_SUMMARY_H
#define SDC_CLI_SUMMARY_H

#include "runtime/cli/npy.h"

#include <stdio.h>

/* One line: name, type and shape, sum, min, max, NaNs if any, first elements. Depends on
   the elements' bits alone. */
void summary_print(FILE *to, const char *name, const Array *a);

#endif
