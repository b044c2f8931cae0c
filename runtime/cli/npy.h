/* Arrays of the command line, and NumPy's .npy files. */
#ifndef SDC_CLI_NPY_H
#define SDC_CLI_NPY_H

#include "ir/base/arena.h"
#include "runtime/sdc.h"

#include <stdbool.h>

enum { NPY_MAX_RANK = 16 };

/* Elements in C order; data is 64-byte aligned, see guard.h: array_done frees it. */
typedef struct Array {
    SdcDtype dtype;
    int rank;
    int64_t shape[NPY_MAX_RANK];
    int64_t count; /* elements */
    void *data;
    size_t bytes;
    bool empty; /* nothing was put in */
} Array;

/* Allocates `data`, zeroed. False when it is above 1 TiB or memory is short. */
bool array_alloc(Array *a);
void array_done(Array *a);

/* Reads a file of format 1.0, 2.0 or 3.0: little endian, C order. `as`: element type to
   read u1, u2 and raw bytes as (bf16, fp8), SDC_DTYPE_NONE for the file's own. On failure
   returns false with the reason in `why`; *environment is true when the machine is at
   fault. The file may hold anything: nothing is believed unchecked. */
bool npy_read(const char *path, SdcDtype as, Array *a, char *why, size_t why_size,
              bool *environment);

/* The same from memory, header only: how many bytes of `head` it takes; 0 on failure. */
size_t npy_header(const unsigned char *head, size_t n, SdcDtype as, Array *a, char *why,
                  size_t why_size);

/* Header and data as the bytes of a file, in the arena. bf16 becomes u2 and fp8 u1. */
const char *npy_bytes(Arena *arena, const Array *a, size_t *size);

#endif
