/* Constants that the host code of a file passes to a kernel's parameters. */
#ifndef SDC_FRONTEND_TOLD_H
#define SDC_FRONTEND_TOLD_H

#include "frontend/module.h"

/* The text, in a, of the number or flag that a launch of the kernel passes to parameter
   `param`, number `at`, or that a variable of that name is set to; NULL: there is
   neither. */
const char *told_constant(FrontModule *m, Arena *a, const char *kernel, Name param,
                          int at);

#endif
