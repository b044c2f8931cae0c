/* Loads an object file that codegen emitted for this machine into the process. */
#ifndef SDC_CODEGEN_JIT_LINK_H
#define SDC_CODEGEN_JIT_LINK_H

#include "ir/base/arena.h"

typedef struct Loaded Loaded;

/* Loads the object; *entry: the address of `symbol`. NULL on failure, with the reason in
   why[why_size]; out of memory it jumps to `fail`. The result must be kept as long as its
   code may run, then given to codegen_unload. */
Loaded *codegen_load_object(FailPoint *fail, const void *bytes, size_t size,
                            const char *symbol, void **entry, char *why, size_t why_size);
void codegen_unload(Loaded *l);

#endif
