/* Loads an object file that codegen emitted for this machine into the process. */
#ifndef SDC_CODEGEN_JIT_LINK_H
#define SDC_CODEGEN_JIT_LINK_H

#include <stddef.h>

typedef struct Loaded Loaded;

/* NULL on failure, with the reason in `why`. Keep it for as long as its code may run. */
Loaded *codegen_load_object(const void *bytes, size_t size, char *why, size_t why_size);
/* NULL when the object has no such symbol. Thread-safe. */
void *codegen_symbol(Loaded *l, const char *symbol, char *why, size_t why_size);
void codegen_unload(Loaded *l);

#endif
