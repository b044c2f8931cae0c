/* Constants that host code of a file gives to a kernel's parameters. */
#ifndef SDC_FRONTEND_TOLD_H
#define SDC_FRONTEND_TOLD_H

#include "frontend/module.h"

/* The text of a number or flag that a launch of the kernel gives to this parameter, the
   `at`-th, or that a variable of the same name is set to; NULL: neither. */
const char *told_constant(FrontModule *m, Arena *a, const char *kernel, Name param,
                          int at);

#endif
