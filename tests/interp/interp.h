/* An interpreter of tile IR, the oracle of the random tests: plain C, element by element,
   no LLVM, nothing shared with passes or code generation but the IR itself. */
#ifndef SDC_TESTS_INTERP_H
#define SDC_TESTS_INTERP_H

#include <stdint.h>

#include "ir/ir.h"

typedef enum InterpStatus {
    INTERP_OK,
    INTERP_BOUNDS,      /* an active lane is outside of every buffer: see message */
    INTERP_UNINIT,      /* reserved */
    INTERP_LIMIT,       /* more steps than allowed */
    INTERP_UNSUPPORTED, /* an operation that it does not know */
    INTERP_ASSERT       /* device_assert failed */
} InterpStatus;

typedef struct InterpArg {
    void *data;     /* pointer parameters: host memory, changed in place */
    uint64_t bytes; /* its size */
    int64_t i;      /* integer parameters */
    double f;       /* float parameters */
} InterpArg;

typedef struct InterpOptions {
    uint64_t max_steps; /* operations times elements; 0: no limit */
    /* What docs/ir.md leaves undefined (a quotient by zero, the bits of a NaN, ..) gets
       the value of generated code for 0, and other ones for other numbers: what differs
       between two runs with two numbers is undefined and not to be compared. */
    uint64_t undefined;
    int64_t programs; /* above 0: only so many, spread over the grid, first and last */
} InterpOptions;

/* Runs all programs of the grid one after the other (x fastest) of `f`, a kernel as the
   front end makes it or after any pass before layouts (block pointers, descriptors and
   masked accesses alike). `args` in the order of its parameters. `message` gets one line
   that says what is wrong and where. */
InterpStatus interp_run(const Func *f, const InterpArg *args, int narg,
                        const int64_t grid[3], const InterpOptions *options,
                        char *message, int size);

#endif
