/* Arguments of `sdc run`: NAME=SPEC to a value or an array. */
#ifndef SDC_CLI_SPEC_H
#define SDC_CLI_SPEC_H

#include "runtime/cli/grid.h"
#include "runtime/cli/npy.h"

/* Elements of a tuple, those that are tuples counted too. */
enum { SPEC_MAX_ITEMS = 24 };

typedef struct RunArg {
    const char *name; /* not terminated: `name_len` letters of the option's text */
    size_t name_len;
    SdcArg value; /* a pointer points into `array` */
    Array array;
    /* A descriptor; a tuple's items and descriptors. */
    SdcDesc desc[SPEC_MAX_ITEMS];
    SdcArg item[SPEC_MAX_ITEMS];
    int ndesc, nitem;
} RunArg;

/* A spec that needs no other argument: a number, a truth value, none. */
bool spec_is_scalar(const char *spec);

/* A spec of an array: of a file, or made here. */
bool spec_is_array(const char *spec);

/* Reads a number, a truth value or none. */
bool spec_read_scalar(const char *spec, SdcArg *out);

/* "desc:NAME[BLOCK]", "(3, NAME, ..)": a spec over other arguments. */
bool spec_is_over(const char *spec);

/* Such a spec has the argument `name`, of n letters, in it. */
bool spec_names(const char *spec, const char *name, size_t n);

/* An argument by name, NULL: none is given. */
typedef const RunArg *SpecFind(void *user, const char *name, size_t n);

/* Reads such a spec into arg->value. */
bool spec_read_over(const char *spec, Expr *expr, SpecFind *find, void *user,
                    RunArg *arg, char *why, size_t why_size);

/* The argument is over the array whose elements are `at`. */
bool spec_uses(const RunArg *a, const void *at);

/* ... which are at `to` from now on. */
void spec_move(RunArg *a, const void *from, void *to);

/* Reads SPEC into arg->value and arg->array; `expr` gives names to shapes and to "3*w",
   which is what no other spec is. On failure
   returns false with the reason in `why`; *environment when the machine is at fault. */
bool spec_read(const char *spec, Expr *expr, RunArg *arg, char *why, size_t why_size,
               bool *environment);

#endif
