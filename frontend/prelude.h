/* The part of the library that is written in the language: kernels_dsl/lib/<file>.tk,
   carried inside of the compiler as text and parsed when first used. */
#ifndef SDC_FRONTEND_PRELUDE_H
#define SDC_FRONTEND_PRELUDE_H

#include "frontend/sema.h"

/* Is this one of its files? Such a file sees the private builtins. */
bool prelude_owns(const FrontModule *m);
Val prelude_function(Sema *s, const char *file, const char *name, Loc loc);

#endif
