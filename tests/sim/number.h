/* Numbers of fewer bits than a float: packing with each rounding, exactly, and unpacking.
   Everything goes through double, which holds all of them. */
#ifndef SDC_TESTS_SIM_NUMBER_H
#define SDC_TESTS_SIM_NUMBER_H

#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

typedef enum Round { ROUND_NEAREST, ROUND_ZERO, ROUND_DOWN, ROUND_UP, ROUND_AWAY } Round;

typedef struct Format {
    int exp, man;
    bool finite; /* no infinities: all but one code are numbers (e4m3) */
    uint32_t nan;
} Format;

static const Format format_f16 = {5, 10, false, 0x7fff};
static const Format format_bf16 = {8, 7, false, 0x7fff};
static const Format format_e4m3 = {4, 3, true, 0x7f};
static const Format format_e5m2 = {5, 2, false, 0x7f};
static const Format format_tf32 = {8, 10, false, 0x3ffff};
static const Format format_f32 = {8, 23, false, 0x7fffffff};

static inline float
f32_of(uint32_t bits)
{
    float x;
    memcpy(&x, &bits, 4);
    return x;
}

static inline uint32_t
f32_raw(float x)
{
    uint32_t bits;
    memcpy(&bits, &x, 4);
    return bits;
}

/* GPUs have one NaN of fp32. */
static inline uint32_t
f32_bits(float x)
{
    return x != x ? 0x7fffffff : f32_raw(x);
}

static inline double
f64_of(uint64_t bits)
{
    double x;
    memcpy(&x, &bits, 8);
    return x;
}

static inline uint64_t
f64_bits(double x)
{
    uint64_t bits;
    memcpy(&bits, &x, 8);
    return bits;
}

static inline double
round_whole(double s, Round r, bool negative)
{
    double t = floor(s), rest = s - t;
    switch (r) {
    case ROUND_NEAREST: return rest > 0.5 || (rest == 0.5 && fmod(t, 2)) ? t + 1 : t;
    case ROUND_AWAY: return rest >= 0.5 ? t + 1 : t;
    case ROUND_DOWN: return rest > 0 && negative ? t + 1 : t;
    case ROUND_UP: return rest > 0 && !negative ? t + 1 : t;
    default: return t;
    }
}

/* saturate: what is too large becomes the largest number, infinities too. */
static inline uint32_t
number_pack(double x, const Format *f, Round r, bool saturate)
{
    int bias = (1 << (f->exp - 1)) - 1, e;
    uint32_t sign = signbit(x) ? 1u << (f->exp + f->man) : 0;
    uint32_t inf = ((1u << f->exp) - 1) << f->man;
    uint32_t max = f->finite ? inf | ((1u << f->man) - 2) : inf - 1, bits;
    bool negative = sign != 0;
    if (x != x)
        return f->nan;
    if (x == 0)
        return sign;
    x = fabs(x);
    if (isinf(x)) {
        bits = max + 1; /* e4m3 has a number where others have infinity */
    } else {
        frexp(x, &e);
        e = e - 1 < 1 - bias ? 1 - bias : e - 1;
        if (e > bias + 1)
            e = bias + 1;
        double n = round_whole(ldexp(x, f->man - e), r, negative);
        if (n >= ldexp(1, 30))
            n = ldexp(1, 30);
        uint64_t wide = (uint64_t)n + ((uint64_t)(e + bias - 1) << f->man);
        bits = wide > max ? max + 1 : (uint32_t)wide;
        if (bits > max && (r == ROUND_ZERO || (r == ROUND_DOWN && !negative) ||
                           (r == ROUND_UP && negative)))
            bits = max;
    }
    if (bits > max)
        bits = saturate ? max : f->finite ? f->nan : inf;
    return sign | bits;
}

static inline double
number_unpack(uint32_t bits, const Format *f)
{
    int bias = (1 << (f->exp - 1)) - 1;
    uint32_t e = bits >> f->man & ((1u << f->exp) - 1), m = bits & ((1u << f->man) - 1);
    bool negative = bits >> (f->exp + f->man) & 1;
    double x;
    if (e == (1u << f->exp) - 1 && (!f->finite || m == (1u << f->man) - 1))
        x = m ? (double)NAN : (double)INFINITY;
    else if (e)
        x = ldexp(m + (double)(1u << f->man), (int)e - bias - f->man);
    else
        x = ldexp(m, 1 - bias - f->man);
    return negative ? -x : x;
}

static inline float
f16_of(uint32_t h)
{
    uint32_t sign = (h & 0x8000) << 16, e = h >> 10 & 31, m = h & 1023;
    if (e == 0)
        return (sign ? -1.0f : 1.0f) * (float)m * 0x1p-24f;
    return f32_of(sign | (e == 31 ? 0x7f800000u : (e + 112) << 23) | m << 13);
}

static inline uint32_t
f16_bits(float x)
{
    uint32_t v = f32_raw(x), a = v & 0x7fffffff;
    if (a < 0x38800000 || a >= 0x477ff000)
        return number_pack(x, &format_f16, ROUND_NEAREST, false);
    a += 0xfff + (a >> 13 & 1);
    return (v >> 16 & 0x8000) | ((a - 0x38000000) >> 13);
}

static inline float
bf16_of(uint32_t h)
{
    return f32_of(h << 16);
}

static inline uint32_t
bf16_bits(float x)
{
    uint32_t v = f32_raw(x);
    return x != x ? 0x7fff : (v + 0x7fff + (v >> 16 & 1)) >> 16;
}

/* a * b + c, where the dot is exact in a double, to odd: rounding that to at most 24
   bits is as if the sum had been exact. */
static inline double
fma_odd(double a, double b, double c)
{
    double p = a * b, s = p + c, v = s - p, rest = (p - (s - v)) + (c - v);
    uint64_t bits = f64_bits(s);
    if (isfinite(s) && rest != 0 && !(bits & 1))
        bits += (rest > 0) == (s > 0) ? 1 : (uint64_t)-1;
    return f64_of(bits);
}

static inline uint32_t
flush(uint32_t bits)
{
    return bits & 0x7f800000 ? bits : bits & 0x80000000;
}

#endif
