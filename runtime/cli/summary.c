/* Sums are taken in double, in order, so that equal arrays print equal lines; NaN counts
   separately and stays out of sum, minimum and maximum. */
#include "runtime/cli/summary.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

enum { FIRST = 6 };

/* As many digits as tell the values of the type apart. */
static int
digits(SdcDtype t)
{
    return t == SDC_FP64 ? 17 : t == SDC_FP32 ? 9 : 5;
}

static void
print_element(FILE *to, SdcDtype t, const void *p)
{
    if (t == SDC_I64 || t == SDC_U64) { /* a double would lose their low bits */
        uint64_t bits;
        memcpy(&bits, p, sizeof bits);
        fprintf(to, t == SDC_I64 ? " %" PRId64 : " %" PRIu64, bits);
    } else if (sdc_dtype_is_float(t)) {
        double v = sdc_dtype_load(t, p);
        if (isnan(v)) /* what memory holds that nothing wrote has a sign, too */
            fputs(" nan", to);
        else
            fprintf(to, " %.*g", digits(t), v);
    } else {
        fprintf(to, " %.0f", sdc_dtype_load(t, p));
    }
}

void
summary_print(FILE *to, const char *name, const Array *a)
{
    int size = sdc_dtype_size(a->dtype);
    const char *p = a->data;
    double total = 0;
    int64_t nan = 0;
    const char *least = NULL, *most = NULL;
    double low = INFINITY, high = -INFINITY;
    for (int64_t i = 0; i < a->count; i++, p += size) {
        double v = sdc_dtype_load(a->dtype, p);
        if (isnan(v)) {
            nan++;
            continue;
        }
        total += v;
        if (v < low || !least) {
            low = v;
            least = p;
        }
        if (v > high || !most) {
            high = v;
            most = p;
        }
    }
    fprintf(to, "%s: %s[", name, sdc_dtype_name(a->dtype));
    for (int i = 0; i < a->rank; i++)
        fprintf(to, "%s%" PRId64, i ? "," : "", a->shape[i]);
    fprintf(to, "] sum %.*g", sdc_dtype_is_float(a->dtype) ? 12 : 17, total);
    if (least) {
        fputs(" min", to);
        print_element(to, a->dtype, least);
        fputs(" max", to);
        print_element(to, a->dtype, most);
    }
    if (nan)
        fprintf(to, " nan %" PRId64, nan);
    fputs(" first", to);
    p = a->data;
    for (int64_t i = 0; i < a->count && i < FIRST; i++, p += size)
        print_element(to, a->dtype, p);
    fputs(a->count > FIRST ? " ...\n" : "\n", to);
}
