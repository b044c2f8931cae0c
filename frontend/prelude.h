/* The part of the library that is written in the language: kernels_dsl/lib/<file>.tk,
   carried inside of the compiler as text and parsed when first used. */
#ifndef SDC_FRONTEND_PRELUDE_H
#define SDC_FRONTEND_PRELUDE_H

#include "frontend/sema.h"

/* Is m a file of the library? Such files see builtins that are private to it. */
bool prelude_owns(const FrontModule *m);
/* The function `name` of library file `file`; an error at loc if it cannot be read. */
Val prelude_function(Sema *s, const char *file, const char *name, Loc loc);

#endif
