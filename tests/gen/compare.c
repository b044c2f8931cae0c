/* Comparison of outputs. Exact ones bit for bit, but that any NaN is as good as another;
   those where IEEE 754 or Triton leave the sign of a zero open, as numbers; inexact ones
   within the tolerance of their buffer. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/gen/run.h"

static bool
same(const ProgramArg *a, SdcDtype t, const unsigned char *x, const unsigned char *y,
     int size)
{
    if (memcmp(x, y, (size_t)size) == 0)
        return true;
    if (!sdc_dtype_is_float(t))
        return false;
    double p = sdc_dtype_load(t, x), q = sdc_dtype_load(t, y);
    if (isnan(p) || isnan(q))
        return isnan(p) && isnan(q);
    if (a->exact)
        return false;
    return p == q || fabs(p - q) <= a->tolerance * (1 + fabs(p));
}

static int
show(char *out, int size, SdcDtype t, const unsigned char *x)
{
    if (sdc_dtype_is_float(t))
        return snprintf(out, (size_t)size, "%.17g", sdc_dtype_load(t, x));
    uint64_t u = 0;
    int n = sdc_dtype_size(t);
    memcpy(&u, x, (size_t)n);
    if (t >= SDC_I8 && t <= SDC_I64)
        return snprintf(out, (size_t)size, "%lld",
                        (long long)(int64_t)(u << (64 - 8 * n)) >> (64 - 8 * n));
    return snprintf(out, (size_t)size, "%llu", (unsigned long long)u);
}

bool
outputs_equal(const Program *p, const Outputs *want, const Outputs *got, char *text,
              int size)
{
    for (int i = 0; i < p->narg; i++) {
        const ProgramArg *a = &p->arg[i];
        if (!a->is_output)
            continue;
        SdcDtype t = sdc_dtype_by_name(a->dtype, strlen(a->dtype));
        int width = sdc_dtype_size(t);
        if (memcmp(want->of[i], got->of[i], a->bytes) == 0)
            continue;
        size_t bad = 0, first = 0;
        for (size_t k = 0; k < a->count; k++) {
            const unsigned char *x = want->of[i] + k * (size_t)width;
            const unsigned char *y = got->of[i] + k * (size_t)width;
            const unsigned char *o =
                want->other[i] ? want->other[i] + k * (size_t)width : x;
            if (!same(a, t, x, y, width) && same(a, t, x, o, width) && bad++ == 0)
                first = k;
        }
        if (!bad)
            continue;
        int n = snprintf(text, (size_t)size, "%s[%zu]: expected ", a->name, first);
        n += show(text + n, size - n, t, want->of[i] + first * (size_t)width);
        n += snprintf(text + n, (size_t)(size - n), ", got ");
        n += show(text + n, size - n, t, got->of[i] + first * (size_t)width);
        snprintf(text + n, (size_t)(size - n), " (%zu of %zu differ)", bad, a->count);
        return false;
    }
    return true;
}

void
outputs_free(Outputs *o)
{
    for (int i = 0; i < PROGRAM_MAX_ARGS; i++) {
        free(o->of[i]);
        free(o->other[i]);
    }
    memset(o, 0, sizeof *o);
}
