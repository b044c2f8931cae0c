/* Floating types by their bits: what a kernel's buffer holds, as doubles and back.

   Written from the formats (IEEE 754 binary32, binary16; bfloat16), not with a compiler's
   own half types, which not all of them have. */
#include <math.h>
#include <string.h>

#include "tests/ref/ref.h"

typedef struct Format {
    int bits, mantissa, bias;
} Format;

static Format
format_of(RefType t)
{
    switch (t) {
    case REF_FP32: return (Format){32, 23, 127};
    case REF_FP16: return (Format){16, 10, 15};
    case REF_BF16: return (Format){16, 7, 127};
    case REF_FP64: break;
    }
    return (Format){64, 52, 1023};
}

int
ref_size(RefType t)
{
    return format_of(t).bits / 8;
}

double
ref_unit(RefType t)
{
    return ldexp(1.0, -format_of(t).mantissa - 1);
}

double
ref_tiny(RefType t)
{
    Format f = format_of(t);
    return ldexp(1.0, 1 - f.bias - f.mantissa);
}

static double
decode(Format f, uint64_t bits)
{
    uint64_t mantissa = bits & ((1ull << f.mantissa) - 1);
    int width = f.bits - 1 - f.mantissa;
    int exponent = (int)(bits >> f.mantissa & ((1ull << width) - 1));
    double sign = bits >> (f.bits - 1) & 1 ? -1.0 : 1.0;
    if (exponent == (1 << width) - 1)
        return mantissa ? NAN : sign * INFINITY;
    if (exponent == 0)
        return sign * ldexp((double)mantissa, 1 - f.bias - f.mantissa);
    return sign * ldexp((double)(mantissa | 1ull << f.mantissa),
                        exponent - f.bias - f.mantissa);
}

/* Rounds to the format's spacing at v; nearbyint is ties to even in the default mode. */
double
ref_round(RefType t, double v)
{
    Format f = format_of(t);
    if (t == REF_FP64 || v == 0 || !isfinite(v))
        return v;
    int exponent;
    frexp(v, &exponent); /* |v| = [0.5, 1) * 2^exponent */
    if (exponent < 2 - f.bias)
        exponent = 2 - f.bias;
    double spacing = ldexp(1.0, exponent - 1 - f.mantissa);
    double rounded = nearbyint(v / spacing) * spacing;
    double largest = ldexp(2.0 - ldexp(1.0, -f.mantissa), f.bias);
    return fabs(rounded) > largest ? copysign(INFINITY, v) : rounded;
}

static uint64_t
encode(Format f, double v)
{
    uint64_t sign = signbit(v) ? 1ull << (f.bits - 1) : 0;
    int width = f.bits - 1 - f.mantissa;
    uint64_t top = (uint64_t)((1 << width) - 1) << f.mantissa;
    if (isnan(v))
        return sign | top | 1ull << (f.mantissa - 1);
    if (isinf(v))
        return sign | top;
    if (v == 0)
        return sign;
    int exponent;
    frexp(v, &exponent);
    double a = fabs(v);
    if (exponent - 1 < 1 - f.bias) /* subnormal */
        return sign | (uint64_t)ldexp(a, f.mantissa - (1 - f.bias));
    uint64_t mantissa = (uint64_t)ldexp(a, f.mantissa - (exponent - 1));
    mantissa -= 1ull << f.mantissa; /* the leading one is not stored */
    return sign | (uint64_t)(exponent - 1 + f.bias) << f.mantissa | mantissa;
}

double
ref_load(RefType t, const void *p, int64_t i)
{
    const char *at = (const char *)p + i * ref_size(t);
    if (t == REF_FP64) {
        double v;
        memcpy(&v, at, sizeof(v));
        return v;
    }
    if (t == REF_FP32) {
        uint32_t bits;
        memcpy(&bits, at, sizeof(bits));
        return decode(format_of(t), bits);
    }
    uint16_t bits;
    memcpy(&bits, at, sizeof(bits));
    return decode(format_of(t), bits);
}

void
ref_store(RefType t, void *p, int64_t i, double v)
{
    char *at = (char *)p + i * ref_size(t);
    if (t == REF_FP64) {
        memcpy(at, &v, sizeof(v));
        return;
    }
    uint64_t bits = encode(format_of(t), ref_round(t, v));
    uint32_t bits32 = (uint32_t)bits;
    uint16_t bits16 = (uint16_t)bits;
    if (t == REF_FP32)
        memcpy(at, &bits32, sizeof(bits32));
    else
        memcpy(at, &bits16, sizeof(bits16));
}

void
ref_gather(RefType t, const void *p, int rank, const int64_t *shape,
           const int64_t *strides, double *out)
{
    int64_t total = 1;
    for (int d = 0; d < rank; d++)
        total *= shape[d];
    for (int64_t i = 0; i < total; i++) {
        int64_t rest = i, offset = 0;
        for (int d = rank - 1; d >= 0; d--) {
            offset += rest % shape[d] * strides[d];
            rest /= shape[d];
        }
        out[i] = ref_load(t, p, offset);
    }
}

int64_t
ref_compare(RefType t, int64_t n, const double *got, const double *want,
            const double *bound)
{
    for (int64_t i = 0; i < n; i++) {
        if (isnan(want[i]) || isnan(got[i])) {
            if (isnan(want[i]) && isnan(got[i]))
                continue;
            return i;
        }
        if (got[i] == want[i])
            continue;
        double allowed = ref_unit(t) * fabs(want[i]) + ref_tiny(t);
        if (bound)
            allowed += bound[i];
        /* Written so that a bound that is not a number fails. */
        if (!(fabs(got[i] - want[i]) <= allowed) || isinf(want[i]))
            return i;
    }
    return -1;
}
