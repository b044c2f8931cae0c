/* Specs of arguments:

       @x.npy  @w.npy:bf16                    an array from a file
       randn:f32[4096]  randint:i32[8,K]:42   an array made here, with a seed
       3  i64:3  0.5  fp64:0.5  true  none    a value
       3*w                                    a number, of integer arguments
       desc:x[64,64]  (3, x, desc:x[64])      over other arguments: spec_over.c

   Generated numbers are a function of seed and index alone, so that a run can be repeated
   and any part of an array made anywhere. */
#include "runtime/cli/spec.h"
#include "ir/base/util.h"

#include <errno.h>
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef enum {
    GEN_ZEROS,
    GEN_ONES,
    GEN_EMPTY,
    GEN_ARANGE,
    GEN_RAND,
    GEN_RANDN,
    GEN_RANDINT,
    GEN_COUNT
} Gen;

static const char *const gen_names[GEN_COUNT] = {
    [GEN_ZEROS] = "zeros",     [GEN_ONES] = "ones", [GEN_EMPTY] = "empty",
    [GEN_ARANGE] = "arange",   [GEN_RAND] = "rand", [GEN_RANDN] = "randn",
    [GEN_RANDINT] = "randint",
};

static uint64_t
mix(uint64_t seed, uint64_t i)
{
    uint64_t x = seed * 0xd1342543de82ef95u + (i + 1) * 0x9e3779b97f4a7c15u;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return x ^ (x >> 31);
}

static double
uniform(uint64_t seed, uint64_t i)
{
    return (double)(mix(seed, i) >> 11) * 0x1p-53;
}

static double
generate(Gen gen, uint64_t seed, int64_t i)
{
    uint64_t at = (uint64_t)i;
    switch (gen) {
    case GEN_ONES: return 1;
    case GEN_ARANGE: return (double)i;
    case GEN_RAND: return uniform(seed, at);
    case GEN_RANDN:
        return sqrt(-2 * log(uniform(seed, 2 * at) + 0x1p-54)) *
               cos(6.283185307179586 * uniform(seed, 2 * at + 1));
    case GEN_RANDINT: return floor(uniform(seed, at) * 100);
    case GEN_ZEROS:
    case GEN_EMPTY:
    case GEN_COUNT: break;
    }
    return 0;
}

/* Large arrays are made by all cores. */
enum { MAX_THREADS = 64, LEAST_PART = 1 << 16 };

typedef struct Filling {
    const Array *a;
    Gen gen;
    uint64_t seed;
    int64_t from, to;
} Filling;

static void *
fill_part(void *arg)
{
    const Filling *f = arg;
    int size = sdc_dtype_size(f->a->dtype);
    char *p = (char *)f->a->data + f->from * size;
    for (int64_t i = f->from; i < f->to; i++, p += size)
        sdc_dtype_store(f->a->dtype, generate(f->gen, f->seed, i), p);
    return NULL;
}

static void
fill(Array *a, Gen gen, uint64_t seed)
{
    char *p = a->data;
    if (gen == GEN_ZEROS)
        return;
    a->empty = gen == GEN_EMPTY;
    if (gen == GEN_EMPTY) { /* what nobody writes shows: NaN, or a large number */
        memset(p,
               a->dtype == SDC_BOOL           ? 1
               : sdc_dtype_is_float(a->dtype) ? 0xff
                                              : 0x7f,
               a->bytes);
        return;
    }
    Filling part[MAX_THREADS];
    pthread_t thread[MAX_THREADS];
    int64_t n = (a->count + LEAST_PART - 1) / LEAST_PART;
    n = min_i64(max_i64(n, 1), min_i64(sysconf(_SC_NPROCESSORS_ONLN), MAX_THREADS));
    n = max_i64(n, 1);
    bool running[MAX_THREADS] = {false};
    for (int64_t i = n - 1; i >= 0; i--) {
        part[i] = (Filling){a, gen, seed, a->count / n * i,
                            i == n - 1 ? a->count : a->count / n * (i + 1)};
        running[i] = i && pthread_create(&thread[i], NULL, fill_part, &part[i]) == 0;
        if (!running[i])
            fill_part(&part[i]);
    }
    for (int64_t i = 0; i < n; i++)
        if (running[i])
            pthread_join(thread[i], NULL);
}

/* ---------------------------------------------------------------- numbers */

static bool
value_text(const char *text, SdcDtype t, SdcArg *out)
{
    char *end;
    if (strcmp(text, "none") == 0 || strcmp(text, "None") == 0) {
        *out = sdc_none();
        return t == SDC_DTYPE_NONE;
    }
    if (strcmp(text, "true") == 0 || strcmp(text, "True") == 0 ||
        strcmp(text, "false") == 0 || strcmp(text, "False") == 0) {
        *out = sdc_int_of(SDC_BOOL, (*text | 32) == 't');
        return t == SDC_DTYPE_NONE || t == SDC_BOOL;
    }
    if (!*text || *text == ' ')
        return false;
    errno = 0;
    long long i = strtoll(text, &end, 0);
    if (!*end && !errno && !sdc_dtype_is_float(t)) {
        *out = t == SDC_DTYPE_NONE ? sdc_int(i) : sdc_int_of(t, i);
        return true;
    }
    errno = 0;
    unsigned long long u = strtoull(text, &end, 0);
    if (!*end && !errno && *text != '-' && (t == SDC_U64 || t == SDC_DTYPE_NONE)) {
        *out = sdc_int_of(SDC_U64, (int64_t)u);
        return true;
    }
    double f = strtod(text, &end);
    if (*end || (t != SDC_DTYPE_NONE && !sdc_dtype_is_float(t)))
        return false;
    *out = sdc_float_of(t == SDC_DTYPE_NONE ? SDC_FP32 : t, f);
    return true;
}

bool
spec_read_scalar(const char *spec, SdcArg *out)
{
    if (value_text(spec, SDC_DTYPE_NONE, out))
        return true;
    size_t n = strcspn(spec, ":");
    SdcDtype t = spec[n] ? sdc_dtype_by_name(spec, n) : SDC_DTYPE_NONE;
    return t != SDC_DTYPE_NONE && value_text(spec + n + 1, t, out);
}

bool
spec_is_scalar(const char *spec)
{
    SdcArg a;
    return spec_read_scalar(spec, &a);
}

/* ---------------------------------------------------------------- arrays */

static bool
read_file(const char *spec, Array *a, char *why, size_t size, bool *environment)
{
    char path[4096];
    const char *colon = strrchr(spec, ':');
    SdcDtype as =
        colon ? sdc_dtype_by_name(colon + 1, strlen(colon + 1)) : SDC_DTYPE_NONE;
    size_t n = as != SDC_DTYPE_NONE ? (size_t)(colon - spec) : strlen(spec);
    if (n >= sizeof path) {
        snprintf(why, size, "its path is too long");
        return false;
    }
    memcpy(path, spec, n);
    path[n] = '\0';
    char reason[200];
    if (npy_read(path, as, a, reason, sizeof reason, environment))
        return true;
    snprintf(why, size, "cannot read '%s': %s", path, reason);
    return false;
}

/* "DTYPE[SHAPE][:SEED]" after the generator's name. */
static bool
read_generated(Gen gen, const char *text, Expr *expr, Array *a, char *why, size_t size,
               bool *environment)
{
    size_t n = strcspn(text, "[:");
    a->dtype = sdc_dtype_by_name(text, n);
    if (a->dtype == SDC_DTYPE_NONE) {
        snprintf(why, size, "'%.*s' is no element type; write one like fp32 or i32",
                 n > 40 ? 40 : (int)n, text);
        return false;
    }
    const char *p = text + n;
    if (*p == '[') {
        const char *end = strrchr(p, ']');
        if (!end) {
            snprintf(why, size, "']' is missing behind the shape");
            return false;
        }
        if (end > p + 1) {
            a->rank =
                expr_list(expr, p + 1, (size_t)(end - p - 1), a->shape, NPY_MAX_RANK);
            if (a->rank < 0) {
                snprintf(why, size, "shape: %s", expr->error);
                return false;
            }
        }
        p = end + 1;
    }
    uint64_t seed = 0;
    if (*p == ':') {
        char *end;
        errno = 0;
        seed = strtoull(p + 1, &end, 0);
        if (end == p + 1 || *end || errno || p[1] == '-') {
            snprintf(why, size, "'%.40s' is no seed", p + 1);
            return false;
        }
    } else if (*p) {
        snprintf(why, size, "'%.40s' is left over", p);
        return false;
    }
    for (int i = 0; i < a->rank; i++) {
        if (a->shape[i] < 0) {
            snprintf(why, size, "a size of its shape is negative");
            return false;
        }
    }
    if (!array_alloc(a)) {
        snprintf(why, size, "no memory for an array of this shape");
        *environment = true;
        return false;
    }
    fill(a, gen, seed);
    return true;
}

/* The generator of "randn:f32[8]"; GEN_COUNT: it is no such array. */
static Gen
generator(const char *spec)
{
    size_t n = strcspn(spec, ":");
    int gen = 0;
    while (gen < GEN_COUNT &&
           (strlen(gen_names[gen]) != n || memcmp(gen_names[gen], spec, n) != 0))
        gen++;
    return spec[n] ? (Gen)gen : GEN_COUNT;
}

bool
spec_is_array(const char *spec)
{
    return *spec == '@' || generator(spec) != GEN_COUNT;
}

/* "3*w"; what is no expression at all is told as such. */
static bool
read_expression(const char *spec, Expr *expr, SdcArg *out, char *why, size_t why_size)
{
    int64_t value;
    if (expr_list(expr, spec, strlen(spec), &value, 1) == 1) {
        *out = sdc_int(value);
        return true;
    }
    size_t n = strlen(spec), name = strcspn(spec, ":");
    if (n > 4 && strcmp(spec + n - 4, ".npy") == 0)
        snprintf(why, why_size, "a file is read by @: '@%.80s'", spec);
    else if (spec[name] && strchr(spec, '['))
        snprintf(why, why_size, "'%.*s' makes no array; zeros, ones, empty, arange, "
                 "rand, randn and randint do", name > 40 ? 40 : (int)name, spec);
    else if (strpbrk(spec, "+-*/%("))
        snprintf(why, why_size, "%s", expr->error);
    else
        snprintf(why, why_size, "'%.80s' is neither a number, @FILE.npy nor "
                 "GENERATOR:DTYPE[SHAPE]", spec);
    return false;
}

bool
spec_read(const char *spec, Expr *expr, RunArg *arg, char *why, size_t why_size,
          bool *environment)
{
    *environment = false;
    if (spec_read_scalar(spec, &arg->value))
        return true;
    if (!spec_is_array(spec))
        return read_expression(spec, expr, &arg->value, why, why_size);
    bool ok = *spec == '@'
                  ? read_file(spec + 1, &arg->array, why, why_size, environment)
                  : read_generated(generator(spec), strchr(spec, ':') + 1, expr,
                                   &arg->array, why, why_size, environment);
    if (ok)
        arg->value = sdc_ptr(arg->array.dtype, arg->array.data);
    return ok;
}
