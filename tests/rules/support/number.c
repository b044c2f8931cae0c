/* Formats of floating point as bits: decoding is exact in double, encoding rounds to
   nearest even with integer arithmetic. */
#include "tests/rules/support/eval.h"

#include "tests/rules/support/number.h"

#include <math.h>
#include <string.h>

typedef struct Format {
    int exponent, fraction, bias;
    bool infinity; /* the largest exponent is infinity and NaN */
    bool one_nan;  /* all ones are NaN */
} Format;

static Format
format_of(ScalarKind k)
{
    switch (k) {
    case SK_F8E5: return (Format){5, 2, 15, true, false};
    case SK_F8E4: return (Format){4, 3, 7, false, true};
    case SK_F8E4B15: return (Format){4, 3, 15, false, false};
    case SK_F16: return (Format){5, 10, 15, true, false};
    case SK_BF16: return (Format){8, 7, 127, true, false};
    case SK_F32: return (Format){8, 23, 127, true, false};
    default: return (Format){11, 52, 1023, true, false};
    }
}

uint64_t
bits_mask(int bits)
{
    return bits >= 64 ? UINT64_MAX : (UINT64_C(1) << bits) - 1;
}

int64_t
bits_signed(int bits, uint64_t v)
{
    v &= bits_mask(bits);
    if (bits < 64 && (v >> (bits - 1)) != 0)
        v |= ~bits_mask(bits);
    return (int64_t)v;
}

static double
double_of_bits(uint64_t bits)
{
    double d;
    memcpy(&d, &bits, sizeof d);
    return d;
}

static uint64_t
bits_of_double(double d)
{
    uint64_t bits;
    memcpy(&bits, &d, sizeof bits);
    return bits;
}

double
float_of_bits(ScalarKind k, uint64_t bits)
{
    Format f = format_of(k);
    int width = 1 + f.exponent + f.fraction;
    uint64_t fraction = bits & bits_mask(f.fraction);
    int e = (int)((bits >> f.fraction) & bits_mask(f.exponent));
    double sign = (bits >> (width - 1)) & 1 ? -1.0 : 1.0;
    if (k == SK_F64)
        return double_of_bits(bits);
    if (f.infinity && e == (int)bits_mask(f.exponent))
        return fraction ? NAN : sign * INFINITY;
    if (f.one_nan && (bits & bits_mask(width - 1)) == bits_mask(width - 1))
        return NAN;
    uint64_t m = e ? fraction | UINT64_C(1) << f.fraction : fraction;
    return sign * ldexp((double)m, (e ? e : 1) - f.bias - f.fraction);
}

bool
bits_are_nan(ScalarKind k, uint64_t bits)
{
    return isnan(float_of_bits(k, bits));
}

bool
bits_same(const Type *elem, uint64_t a, uint64_t b)
{
    if (a == b)
        return true;
    return elem->kind == TY_SCALAR && scalar_is_float(elem->scalar) &&
           bits_are_nan(elem->scalar, a) && bits_are_nan(elem->scalar, b);
}

/* m * 2^e, m != 0, as the format's bits without a sign. zero: toward zero. */
static uint64_t
encode(const Format *f, uint64_t m, int e, bool zero)
{
    while (!(m >> 63)) {
        m <<= 1;
        e--;
    }
    /* 1.xxx * 2^(e + 63) */
    int exponent = e + 63 + f->bias;
    int drop = 63 - f->fraction + (exponent < 1 ? 1 - exponent : 0);
    uint64_t q = drop > 63 ? 0 : m >> drop;
    uint64_t rest = drop > 64 ? 1 : drop == 64 ? m : m << (64 - drop);
    uint64_t half = UINT64_C(1) << 63;
    if (drop > 64) /* less than half of the least number */
        q = 0;
    else if (!zero && (rest > half || (rest == half && (q & 1))))
        q++;
    /* q has its leading one at `fraction` for a normal number: it adds to the exponent */
    uint64_t bits = exponent < 1 ? q : ((uint64_t)(exponent - 1) << f->fraction) + q;
    uint64_t top = (bits_mask(f->exponent) << f->fraction); /* infinity */
    if (f->infinity)
        return bits >= top ? (zero ? top - 1 : top) : bits;
    uint64_t last = bits_mask(f->exponent + f->fraction) - f->one_nan;
    return bits > last ? last + (f->one_nan && !zero) : bits;
}

static uint64_t
with_sign(const Format *f, bool negative, uint64_t bits)
{
    return bits | (uint64_t)negative << (f->exponent + f->fraction);
}

uint64_t
bits_of_number(ScalarKind k, double v, bool zero)
{
    Format f = format_of(k);
    if (k == SK_F64)
        return bits_of_double(v);
    bool negative = signbit(v);
    uint64_t nan = f.infinity ? (bits_mask(f.exponent) << f.fraction) |
                                    UINT64_C(1) << (f.fraction - 1)
                              : bits_mask(f.exponent + f.fraction);
    if (isnan(v))
        return with_sign(&f, negative, nan);
    if (isinf(v))
        return with_sign(&f, negative,
                         f.infinity ? bits_mask(f.exponent) << f.fraction : nan);
    if (v == 0)
        return with_sign(&f, negative, 0);
    uint64_t bits = bits_of_double(v);
    int e = (int)(bits >> 52 & 0x7ff);
    uint64_t m = bits & bits_mask(52);
    m |= (uint64_t)(e != 0) << 52;
    return with_sign(&f, negative, encode(&f, m, (e ? e : 1) - 1075, zero));
}

/* 8 bits: the largest number stands for all above it, there is one NaN, and e4b15 is a
   half clamped to 1.75, rounded half up. */
uint64_t
bits_narrowed(ScalarKind k, double v, bool zero)
{
    if (scalar_bits(k) > 8)
        return bits_of_number(k, v, zero);
    Format f = format_of(k);
    uint64_t sign = signbit(v) ? 0x80 : 0;
    if (k == SK_F8E4B15 && !zero) {
        uint64_t h = isnan(v) ? 0x7fff : bits_of_number(SK_F16, v, false);
        uint64_t a = h & 0x7fff;
        return ((a > 0x3f00 ? 0x3f00 : a) + 0x40) >> 7 | (h >> 8 & 0x80);
    }
    uint64_t most = k == SK_F8E5 ? 0x7b : 0x7e;
    if (isnan(v))
        return 0x7f;
    if (isinf(v) || v == 0)
        return (v != 0 ? most : 0) | sign;
    uint64_t bits = bits_of_double(v);
    int e = (int)(bits >> 52 & 0x7ff);
    uint64_t m = (bits & bits_mask(52)) | (uint64_t)(e != 0) << 52;
    bits = encode(&f, m, (e ? e : 1) - 1075, zero);
    return (bits > most ? most : bits) | sign;
}

uint64_t
bits_of_float(ScalarKind k, double v)
{
    return bits_of_number(k, v, false);
}

uint64_t
bits_of_integer(ScalarKind k, bool negative, uint64_t magnitude)
{
    Format f = format_of(k);
    return magnitude ? with_sign(&f, negative, encode(&f, magnitude, 0, false)) : 0;
}
