/* Integer expressions over the arguments of a launch, as text and as code in metadata:
   sums, differences, products, // and % as Python rounds, cdiv, min, max. All in 64 bits;
   what overflows or divides by zero is an error and never a number. */
#ifndef SDCRT_EXPR_H
#define SDCRT_EXPR_H

#include "runtime/rt/sdcrt.h"

#ifdef __cplusplus
extern "C" {
#endif

/* What a name stands for: 1: the number *value; 2: argument number *value of the launch;
   0: nothing. */
typedef int SdcrtExprLookup(void *user, const char *name, size_t n, int64_t *value);

typedef struct SdcrtExprError {
    const char *what; /* static text */
    int column;       /* from 1, in the text that was read */
    char name[64];    /* the name that is unknown, or "" */
} SdcrtExprError;

/* Reads a list of expressions divided by commas; how many, or -1. */
SDCRT_API int sdcrt_expr_parse(const char *text, size_t n, SdcrtExprLookup *lookup,
                               void *user, SdcrtExpr *out, int most, SdcrtExprError *e);

/* Its value with these arguments; 0 on failure. */
SDCRT_API int sdcrt_expr_eval(const SdcrtExpr *x, const int64_t *args, int64_t *out,
                              SdcrtExprError *e);

#ifdef __cplusplus
}
#endif

#endif
