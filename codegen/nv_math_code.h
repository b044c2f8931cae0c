/* Functions of libclc as bitcode, by their mangled names ("_Z3erff"); a NULL name ends
   the list, which is empty when libclc was not found at build time. */
#ifndef SDC_CODEGEN_NV_MATH_CODE_H
#define SDC_CODEGEN_NV_MATH_CODE_H

#include <stddef.h>

typedef struct NvMathCode {
    const char *name;
    const unsigned char *bits;
    size_t size;
} NvMathCode;

extern const NvMathCode nv_math_codes[];

#endif
