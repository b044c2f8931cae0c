/* Loads an object file that codegen emitted for this machine into the process. */
#ifndef SDC_CODEGEN_JIT_LINK_H
#define SDC_CODEGEN_JIT_LINK_H

#include "ir/base/arena.h"

typedef struct Loaded Loaded;

/* The object and the place of `symbol` in it. NULL on failure, with the reason in `why`;
   out of memory it leaves through `fail`. Keep it for as long as its code may run. */
Loaded *codegen_load_object(FailPoint *fail, const void *bytes, size_t size,
                            const char *symbol, void **entry, char *why, size_t why_size);
void codegen_unload(Loaded *l);

#endif
