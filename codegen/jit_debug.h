/* Tells debuggers and profilers of code that was loaded into the process. */
#ifndef SDC_CODEGEN_JIT_DEBUG_H
#define SDC_CODEGEN_JIT_DEBUG_H

#include <stddef.h>

typedef struct JitSymbols JitSymbols;

/* An object file whose function `symbol` lies at `entry`. NULL when it is not to be
   understood or memory is short: then nobody is told. */
JitSymbols *jit_debug_add(const void *object, size_t size, const char *symbol,
                          const void *entry);
void jit_debug_remove(JitSymbols *s); /* before it is unloaded; NULL is allowed */

#endif
