/* Tells debuggers and profilers about code that was loaded into the process. */
#ifndef SDC_CODEGEN_JIT_DEBUG_H
#define SDC_CODEGEN_JIT_DEBUG_H

#include <stddef.h>

typedef struct JitSymbols JitSymbols;

/* Registers an object file whose function `symbol` was loaded at `entry`. NULL if it
   cannot be read or memory is short: then nothing is registered. */
JitSymbols *jit_debug_add(const void *object, size_t size, const char *symbol,
                          const void *entry);
/* To be called before the code is unloaded; s may be NULL. */
void jit_debug_remove(JitSymbols *s);

#endif
