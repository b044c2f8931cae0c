/* Arguments of `sdc run`: NAME=SPEC to a value or an array. */
#ifndef SDC_CLI_SPEC_H
#define SDC_CLI_SPEC_H

#include "runtime/cli/grid.h"
#include "runtime/cli/npy.h"

typedef struct RunArg {
    const char *name; /* not terminated: `name_len` letters of the option's text */
    size_t name_len;
    SdcArg value; /* a pointer points into `array` */
    Array array;
    SdcDesc desc;
    SdcArg items[16]; /* of a tuple */
} RunArg;

/* A spec that needs no other argument: a number, a truth value, none. */
bool spec_is_scalar(const char *spec);

/* "desc:NAME[BLOCK]": the letters of NAME, or NULL when the spec is no descriptor. */
const char *spec_desc_name(const char *spec, size_t *n);

/* Reads such a spec: a descriptor over the rows of `of`. */
bool spec_read_desc(const char *spec, Expr *expr, const RunArg *of, RunArg *arg,
                    char *why, size_t why_size);

/* Reads SPEC into arg->value and arg->array; `expr` gives names to shapes. On failure
   returns false with the reason in `why`; *environment when the machine is at fault. */
bool spec_read(const char *spec, Expr *expr, RunArg *arg, char *why, size_t why_size,
               bool *environment);

#endif
