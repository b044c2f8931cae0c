/* Formats of floats, written from their definitions: sign, exponent with a bias,
   mantissa. Everything goes by way of double, which holds every number of every other
   format, and is rounded once. */
#include "tests/interp/machine.h"

#include <math.h>
#include <string.h>

typedef struct Format {
    int mant, bias;
    uint64_t largest;  /* code of the largest finite number */
    uint64_t infinity; /* its code, or 0 when there is none */
    uint64_t nan;      /* the NaN that conversions give */
    bool saturates;    /* conversions give the largest number in place of infinity */
} Format;

static const Format formats[SK_COUNT] = {
    [SK_F8E5] = {2, 15, 0x7b, 0x7c, 0x7f, true},
    [SK_F8E4] = {3, 7, 0x7e, 0, 0x7f, true},
    [SK_F8E4B15] = {3, 15, 0x7e, 0, 0x7e, true}, /* clamped to 1.75, NaN like the rest */
    [SK_F16] = {10, 15, 0x7bff, 0x7c00, 0x7fff, false},
    [SK_BF16] = {7, 127, 0x7f7f, 0x7f80, 0x7fff, false},
    [SK_F32] = {23, 127, 0x7f7fffff, 0x7f800000, 0x7fffffff, false},
    [SK_F64] = {52, 1023, 0x7fefffffffffffff, 0x7ff0000000000000, 0x7fffffffffffffff,
                false},
};

static const uint64_t double_sign = (uint64_t)1 << 63;

static uint64_t
bits_of(double x)
{
    uint64_t u;
    memcpy(&u, &x, sizeof u);
    return u;
}

static double
double_of(uint64_t u)
{
    double x;
    memcpy(&x, &u, sizeof x);
    return x;
}

uint64_t
format_nan(ScalarKind k)
{
    return formats[k].nan;
}

double
format_decode(ScalarKind k, uint64_t bits)
{
    const Format *f = &formats[k];
    if (k == SK_F64)
        return double_of(bits);
    int width = scalar_bits(k);
    bool negative = bits >> (width - 1) & 1;
    uint64_t code = bits & (((uint64_t)1 << (width - 1)) - 1);
    double x;
    if (code >> f->mant == 0)
        x = ldexp((double)code, 1 - f->bias - f->mant);
    else if (f->infinity && code >= f->infinity)
        x = code == f->infinity ? HUGE_VAL : NAN;
    else if (k == SK_F8E4 && code == 0x7f)
        x = NAN;
    else
        x = double_of((code << (52 - f->mant)) + ((uint64_t)(1023 - f->bias) << 52));
    return negative ? -x : x;
}

/* The code of a magnitude below the normal numbers of the format, or in them: slow and
   plain. */
static uint64_t
round_magnitude(const Format *f, double a, bool rtz)
{
    int e;
    frexp(a, &e); /* a in [2^(e-1), 2^e) */
    int least = 1 - f->bias, top = e - 1 < least ? least : e - 1;
    double q = ldexp(a, f->mant - top); /* exact: only the exponent moves */
    double r = rtz ? floor(q) : nearbyint(q);
    uint64_t code = (uint64_t)r;
    if (e - 1 >= least)
        code += ((uint64_t)(top + f->bias) - 1) << f->mant;
    return code;
}

/* Half up, from a half: what the hardware's shortcut for this format does. */
static uint64_t
encode_e4b15(double x)
{
    uint64_t half = format_encode(SK_F16, x, false), a = half & 0x7fff;
    if (a > 0x3f00)
        a = 0x3f00;
    return ((a + 0x40) >> 7) | (half >> 8 & 0x80);
}

uint64_t
format_encode(ScalarKind k, double x, bool rtz)
{
    const Format *f = &formats[k];
    if (k == SK_F64)
        return bits_of(x);
    if (k == SK_F8E4B15 && !rtz)
        return encode_e4b15(x);
    if (x != x)
        return f->nan;
    uint64_t u = bits_of(x), a = u & ~double_sign, code;
    uint64_t sign = (u >> 63) << (scalar_bits(k) - 1);
    int e = (int)(a >> 52) - 1023;
    if (a == bits_of(HUGE_VAL)) {
        code = f->saturates ? f->largest : f->infinity;
    } else if (e < 1 - f->bias) {
        code = a ? round_magnitude(f, double_of(a), rtz) : 0;
    } else {
        int drop = 52 - f->mant;
        uint64_t half = ((uint64_t)1 << (drop - 1)) - 1 + (a >> drop & 1);
        code = (a + (rtz ? 0 : half)) >> drop;
        code -= (uint64_t)(1023 - f->bias) << f->mant;
        if (code > f->largest)
            code = rtz || f->saturates ? f->largest : f->infinity;
    }
    return code | sign;
}

void
format_read(ScalarKind k, const uint64_t *in, double *out, int64_t n)
{
    if (k == SK_F64) {
        memcpy(out, in, (size_t)n * sizeof *out);
    } else if (k == SK_F32) {
        for (int64_t i = 0; i < n; i++) {
            uint32_t u = (uint32_t)in[i];
            float x;
            memcpy(&x, &u, sizeof x);
            out[i] = (double)x;
        }
    } else {
        for (int64_t i = 0; i < n; i++)
            out[i] = format_decode(k, in[i]);
    }
}

/* A NaN of arithmetic: one of several. */
static uint64_t
some_nan(const Machine *m, ScalarKind k)
{
    uint64_t nan = formats[k].nan;
    if (m->undefined && scalar_bits(k) > 8)
        nan = (nan ^ (m->undefined & 1 ? 1 : 2)) | (uint64_t)1 << (scalar_bits(k) - 1);
    return nan;
}

void
format_write(const Machine *m, ScalarKind k, const double *in, uint64_t *out, int64_t n)
{
    if (k == SK_F32) {
        for (int64_t i = 0; i < n; i++) {
            float x = (float)in[i];
            uint32_t u;
            memcpy(&u, &x, sizeof u);
            out[i] = u;
        }
    } else {
        for (int64_t i = 0; i < n; i++)
            out[i] = format_encode(k, in[i], false);
    }
    for (int64_t i = 0; i < n; i++)
        if (in[i] != in[i])
            out[i] = some_nan(m, k);
}
