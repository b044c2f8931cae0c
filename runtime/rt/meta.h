/* What a host must know to launch a compiled kernel: written by codegen, read by the
   launcher, the cache and the generated headers. Plain data, no pointers into the
   compiler. This header is part of libsdcrt and includes nothing of sdc. */
#ifndef SDCRT_META_H
#define SDCRT_META_H

#include <stdint.h>

enum { SDCRT_MAX_PARAMS = 128, SDCRT_NAME_MAX = 128 };

typedef enum SdcrtParamKind {
    SDCRT_PTR,
    SDCRT_INT,   /* bits 1..64 */
    SDCRT_FLOAT  /* bits 16, 32, 64; passed as the bits of that type */
} SdcrtParamKind;

typedef struct SdcrtParam {
    char name[SDCRT_NAME_MAX];
    char sig[32];         /* Triton's spelling: "*fp32", "i32", "u8" */
    uint8_t kind;         /* SdcrtParamKind */
    uint8_t bits;
    uint8_t is_unsigned;
    /* the code relies on this divisor of the value or address; 1: none */
    uint16_t div;
    uint8_t written;      /* pointer: the kernel may store through it */
    uint16_t source;      /* position in the source's parameter list */
} SdcrtParam;

typedef struct SdcrtMeta {
    char name[SDCRT_NAME_MAX];   /* kernel as in the source */
    char symbol[SDCRT_NAME_MAX]; /* symbol in the object or PTX */
    char target[32];             /* "cpu", "sm_90a" */
    int32_t nparam;
    int32_t num_warps, num_stages, num_ctas;
    int64_t shared_bytes;        /* GPU: dynamic shared memory */
    int64_t scratch_bytes;       /* CPU: scratch per running program, 64-byte aligned */
    SdcrtParam params[SDCRT_MAX_PARAMS];
} SdcrtMeta;

/* Entry of a CPU kernel: runs the programs `first` .. `last` - 1 of the grid, numbered
   with axis 0 fastest. `args`: one 8-byte slot per parameter (pointers; integers sign-
   or zero-extended; floats as the bits of their type in the low bytes). `scratch`:
   scratch_bytes of this thread, 64-byte aligned, contents undefined. */
typedef void SdcrtCpuEntry(const uint64_t *args, const int32_t grid[3], int64_t first,
                           int64_t last, void *scratch);

#endif
