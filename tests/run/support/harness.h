/* What the run tests share: buffers with guards around them, launches through the public
   API, comparison with a reference.

   Every byte of a buffer that holds no element is poison, and stays it: what lies between
   strided elements, before the first and behind the last. A buffer ends (or begins) at a
   page that cannot be touched, so that reading one element too far is a fault, not luck.
   Outputs begin as NaN: an element that a kernel forgets is seen.

   With SDC_TEST_CHECK=1 launches are checked (SDC_CHECK_ACCESS), with 3 for NaN too: none
   may be refused.

   The same tests run on a GPU when the environment says so: see device.c. There a launch
   that the target does not support yet is counted and listed, and what it should have
   written is not compared. */
#ifndef TESTS_RUN_SUPPORT_HARNESS_H
#define TESTS_RUN_SUPPORT_HARNESS_H

#include <check.h>
#include <stdbool.h>
#include <stdint.h>

#include "runtime/sdc.h"
#include "tests/ref/ref.h"

typedef struct Block Block;

/* A context, one module, and the memory of one test. */
typedef struct Env {
    SdcContext *ctx;
    struct SdcrtCuda *cuda; /* NULL: launches run on the CPU */
    SdcModule *mod;
    const char *path, *text; /* of the module; NULL: the text is in the file */
    Block *blocks;
    uint64_t random;
    bool at_end; /* buffers end at the untouchable page, else they begin behind it */
} Env;

typedef struct Buf {
    SdcDtype dtype;
    int rank;
    int64_t shape[4], strides[4];
    unsigned char *data; /* element (0, ..., 0) */
    int64_t slots;       /* elements from the first to the last one, gaps included */
    unsigned char *page, *page_end; /* the memory that can be touched */
} Buf;

/* Opens kernels_dsl/NAME.tk; fails the test when it does not load. */
Env env_open(const char *name);
/* The same for any file, for a text. */
Env env_open_file(const char *path);
Env env_open_text(const char *name, const char *text);
Env env_open_tir(const char *text); /* tile IR */
void env_close(Env *env);
/* From here on launches are of kernels_dsl/NAME.tk, with the same memory. */
void env_turn_to(Env *env, const char *name);

/* Zeroed memory that lives as long as env. */
void *env_alloc(Env *env, size_t bytes);
double *env_doubles(Env *env, int64_t n);
/* Memory of the caller's that launches may point into, until env_close. */
void *env_lend(Env *env, void *mem, size_t size);
#define LEND(env, array) env_lend(env, array, sizeof(array))
uint64_t env_random(Env *env);
double env_normal(Env *env); /* mean 0, deviation 1, |x| < 4 */

/* The dimensions are given as a list: DIMS(rows, cols). */
#define DIMS(...) \
    (int)(sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t)), \
        (const int64_t[]) { __VA_ARGS__ }

/* A buffer with innermost stride 1 and `pad` poisoned elements behind each row. */
Buf buf_poison(Env *env, SdcDtype t, int64_t pad, int rank, const int64_t *shape);
Buf buf_random(Env *env, SdcDtype t, int64_t pad, int rank, const int64_t *shape);
/* A view with dimensions i and j exchanged. */
Buf buf_swap(Buf b, int i, int j);
int64_t buf_count(const Buf *b);
double buf_get(const Buf *b, int64_t slot);
void buf_set(Buf *b, int64_t slot, double v);
/* The elements as dense row-major doubles. */
double *buf_doubles(Env *env, const Buf *b);
SdcArg buf_arg(const Buf *b);

/* Fails unless all elements are within `bound` (NULL: zero) and a rounding of `want`, and
   all poison is in place. */
void buf_check(Env *env, const Buf *b, const char *what, const double *want,
               const double *bound);

/* `binds`: NAME=VALUE separated by spaces. False when the target does not support the
   kernel yet, or what it would read was to be made by one that it does not. */
bool launch(Env *env, const char *kernel, SdcGrid grid, const char *binds,
            const SdcArg *args, int nargs);
#define LAUNCH(env, kernel, grid, binds, ...) \
    launch(env, kernel, grid, binds, (const SdcArg[]){__VA_ARGS__}, \
           (int)(sizeof((const SdcArg[]){__VA_ARGS__}) / sizeof(SdcArg)))

/* For calls that take addresses, not launches: where a buffer is that such a call may be
   given (on a GPU a copy), and after the calls: waits, and has back what they wrote. */
void *env_place(Env *env, void *host);
void env_collect(Env *env);

/* printf into memory of env. */
const char *env_text(Env *env, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));

RefType ref_type(SdcDtype t); /* floating types */
double unit_of(SdcDtype t);   /* rounding of a value to t, 0 for fp32 and wider */

/* Error of a matmul of two fp32 numbers in a dot, relative: tf32 on tensor cores. */
double dot_unit(const Env *env, SdcDtype t);

/* The tree with kernels_dsl and tests: $SDC_TEST_ROOT, or where it was built. */
const char *test_root(void);

static inline int64_t
ceil_div(int64_t a, int64_t b)
{
    return (a + b - 1) / b;
}

/* Runs a suite and says in a line what it did on a GPU; main returns this. */
int suite_finish(const char *name, Suite *suite);

/* Runs a suite of one test case; main returns this. */
int suite_run(const char *name, const TTest *const *tests, int ntests);
#define RUN_TESTS(name, ...) \
    suite_run(name, (const TTest *const[]){__VA_ARGS__}, \
              (int)(sizeof((const TTest *const[]){__VA_ARGS__}) / sizeof(TTest *)))

#endif
