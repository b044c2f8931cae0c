/* Memory of arrays between pages that nobody may touch. A launch without checks that goes
   outside of its arrays (sdc bench, tune, run --time) ends the command with a message
   instead of spoiling what the command keeps elsewhere. */
#ifndef SDC_CLI_GUARD_H
#define SDC_CLI_GUARD_H

#include <stddef.h>

/* Zeros, 64-byte aligned; NULL: there is not so much memory. From the main thread. */
void *guard_alloc(size_t bytes);
/* What messages call it; `name` lives as long as the memory. */
void guard_name(const void *data, const char *name);
void guard_free(void *data);

#endif
