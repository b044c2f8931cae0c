/* A stack that is the library's own. */
#ifndef SDC_RUNTIME_STACK_H
#define SDC_RUNTIME_STACK_H

#include <stdbool.h>

enum { STACK_MIB = 256 };

typedef void StackFn(void *arg);

/* Runs fn(arg) on this thread and a new stack of STACK_MIB; false when there is no
   address space for it. Nothing may jump out of `fn`. */
bool stack_run(StackFn *fn, void *arg);

#endif
