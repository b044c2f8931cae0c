/* Arrays too large to be looked at: they lie on the target alone, a kernel fills them
   with numbers that follow from index and salt, and results are read back in places. The
   places are both ends, what surrounds 2^31 elements and 2^32 bytes, and some at random.

   SDC_TEST_LARGE=1: as large as is meant, which takes a GPU of 139 GiB; else so small
   that the same steps run anywhere. One line is printed a kernel. */
#ifndef TESTS_RUN_SUPPORT_BIG_H
#define TESTS_RUN_SUPPORT_BIG_H

#include <stdbool.h>
#include <stdint.h>

#include "runtime/sdc.h"
#include "runtime/sdc_nn.h"

enum { BIG_ARRAYS = 32, BIG_PLACES = 64 };

typedef struct Big {
    SdcContext *cx;
    SdcKernels *nn;
    struct SdcrtCuda *cuda; /* NULL: the CPU */
    SdcModule *filler;
    bool full, dry; /* dry: nothing runs, and nothing is compared */
    void *array[BIG_ARRAYS];
    int narray;
    int64_t checked, bytes, widest; /* of this kernel; elements that an index spans */
    double start;
    char wrong[300]; /* what was, first; "": nothing */
} Big;

Big big_open(void);
void big_close(Big *b);

/* Memory until big_done. */
void *big_take(Big *b, size_t bytes);
/* n elements: big_value(i, salt), a multiple of 1/128 in [-1, 1). */
void *big_filled(Big *b, SdcDtype t, int64_t n, int salt);
double big_value(int64_t i, int salt);
/* Elements first .. first + n - 1. */
void big_read(Big *b, SdcDtype t, const void *array, int64_t first, int64_t n,
              double *out);
void big_write(Big *b, void *array, const void *from, size_t bytes);

/* Launches a kernel of kernels_dsl/FILE.tk; bind: constexprs with a space between. */
void big_launch(Big *b, const char *file, const char *kernel, const char *bind,
                SdcGrid grid, const SdcArg *args, int nargs);
/* What a function of sdc_nn.h gives. */
void big_ok(Big *b, SdcStatus status);

/* Indices 0 <= i < n that are worth a look, where an element has so many bytes and
   `step` of them make one index (rows). Returns how many. */
int big_places(int64_t n, int64_t step, int bytes, int64_t out[BIG_PLACES]);
void big_expect(Big *b, int64_t at, double got, double want, double tolerance);
/* The line of a kernel; fails the test when something was wrong. */
void big_done(Big *b, const char *kernel);

#endif
