/* cvt: all pairs of types with each rounding. An integer becomes a float through a double
   that is rounded to odd, so that only the last rounding counts. */
#include "tests/sim/machine.h"
#include "tests/sim/number.h"

#include <stdio.h>
#include <string.h>

typedef enum Kind {
    K_U8, K_S8, K_U16, K_S16, K_U32, K_S32, K_U64, K_S64,
    K_F16, K_BF16, K_F32, K_F64, K_TF32,
    K_F16X2, K_BF16X2, K_E4M3X2, K_E5M2X2, K_COUNT
} Kind;

static const char *const kind_name[K_COUNT] = {
    "u8",  "s8",   "u16", "s16", "u32",  "s32",   "u64",    "s64",   "f16",
    "bf16", "f32", "f64", "tf32", "f16x2", "bf16x2", "e4m3x2", "e5m2x2"};
static const uint8_t kind_bits[K_COUNT] = {8,  8,  16, 16, 32, 32, 64, 64, 16,
                                           16, 32, 64, 32, 32, 32, 16, 16};

enum { DST = 0, SRC = 5, RND = 10, WHOLE = 13, FINITE = 14, FIVE = 31 };

/* The operation as a number, the flags that it needs; -1: unknown. */
int
cvt_decode(const char *name, uint16_t *flags)
{
    static const char *const rounds[] = {"rn", "rz", "rm", "rp", "rna"};
    char text[64], *part;
    int kinds[2], n = 0, r = 0, code = 0;
    snprintf(text, sizeof text, "%s", name);
    for (part = strtok(text, "."); part; part = strtok(NULL, ".")) {
        bool known = strcmp(part, "cvt") == 0;
        for (int k = 0; k < K_COUNT && !known; k++)
            if (strcmp(part, kind_name[k]) == 0 && n < 2)
                kinds[n++] = k, known = true;
        for (int k = 0; k < 5 && !known; k++) {
            size_t len = strlen(rounds[k]);
            if (strncmp(part, rounds[k], len) == 0 &&
                (!part[len] || !strcmp(part + len, "i")))
                r = k, known = true, code |= part[len] ? 1 << WHOLE : 0;
        }
        if (!known && strcmp(part, "sat") == 0)
            *flags |= SAT;
        else if (!known && strcmp(part, "ftz") == 0)
            *flags |= FTZ;
        else if (!known && strcmp(part, "relu") == 0)
            *flags |= RELU;
        else if (!known && strcmp(part, "satfinite") == 0)
            code |= 1 << FINITE;
        else if (!known)
            return -1;
    }
    if (n != 2)
        return -1;
    return code | kinds[0] << DST | kinds[1] << SRC | r << RND;
}

static const Format *
format_of(Kind k)
{
    switch (k) {
    case K_F16:
    case K_F16X2: return &format_f16;
    case K_BF16:
    case K_BF16X2: return &format_bf16;
    case K_E4M3X2: return &format_e4m3;
    case K_E5M2X2: return &format_e5m2;
    case K_TF32: return &format_tf32;
    default: return &format_f32;
    }
}

static bool
is_integer(Kind k)
{
    return k <= K_S64;
}

static bool
is_signed(Kind k)
{
    return is_integer(k) && (k & 1);
}

static uint64_t
extend(uint64_t v, int bits, bool sign)
{
    if (bits == 64)
        return v;
    v &= ((uint64_t)1 << bits) - 1;
    return sign && v >> (bits - 1) & 1 ? v | ~(uint64_t)0 << bits : v;
}

static double
odd_double(uint64_t v, bool sign)
{
    bool negative = sign && v >> 63;
    uint64_t a = negative ? 0 - v : v;
    double x = (double)a;
    if (x < 0x1p64 && (uint64_t)x != a) {
        uint64_t bits = f64_bits(x);
        if (!(bits & 1))
            bits += (uint64_t)x < a ? 1 : (uint64_t)-1;
        x = f64_of(bits);
    } else if (x >= 0x1p64 && a) {
        x = f64_of(f64_bits(x) - 1);
    }
    return negative ? -x : x;
}

static double
whole(double x, Round r)
{
    switch (r) {
    case ROUND_ZERO: return trunc(x);
    case ROUND_DOWN: return floor(x);
    case ROUND_UP: return ceil(x);
    default: return rint(x);
    }
}

static uint64_t
to_integer(double x, Kind d, Kind s, Round r)
{
    int bits = kind_bits[d];
    if (x != x)
        return s != K_F64 && bits != 64 ? 0 : (uint64_t)1 << (bits - 1);
    double t = whole(x, r), limit = ldexp(1, is_signed(d) ? bits - 1 : bits);
    if (is_signed(d)) {
        if (t >= limit)
            return ((uint64_t)1 << (bits - 1)) - 1;
        return t < -limit ? (uint64_t)1 << (bits - 1) : (uint64_t)(int64_t)t;
    }
    if (t >= limit)
        return bits == 64 ? ~(uint64_t)0 : ((uint64_t)1 << bits) - 1;
    return t <= 0 ? 0 : (uint64_t)t;
}

static uint64_t
clamp_integer(uint64_t v, bool from_signed, Kind d)
{
    int bits = kind_bits[d];
    uint64_t top = is_signed(d)  ? ((uint64_t)1 << (bits - 1)) - 1
                   : bits == 64 ? ~(uint64_t)0
                                : ((uint64_t)1 << bits) - 1;
    if (from_signed && (int64_t)v < 0) {
        int64_t low = is_signed(d) ? -(int64_t)top - 1 : 0;
        return (int64_t)v < low ? (uint64_t)low : v;
    }
    return v > top ? top : v;
}

static double
value_of(uint64_t v, Kind k, bool ftz)
{
    switch (k) {
    case K_F16: return (double)f16_of((uint32_t)v & 0xffff);
    case K_BF16: return (double)bf16_of((uint32_t)v & 0xffff);
    case K_F64: return f64_of(v);
    default: return (double)f32_of(ftz ? flush((uint32_t)v) : (uint32_t)v);
    }
}

static uint64_t
to_float(double x, Kind d, Round r, const Insn *i)
{
    bool finite = i->sub >> FINITE & 1;
    if (i->flags & RELU && (x < 0 || x != x || signbit(x)))
        x = x != x ? x : 0;
    if (i->flags & SAT)
        x = x > 0 ? x < 1 ? x : 1 : 0;
    if (d == K_F64)
        return f64_bits(x);
    uint32_t bits = number_pack(x, format_of(d), r, finite);
    if (d == K_TF32)
        bits <<= 13;
    if (d == K_F32 && i->flags & FTZ)
        bits = flush(bits);
    return bits;
}

static uint64_t
convert(const Insn *i, uint64_t a, uint64_t b)
{
    Kind d = i->sub >> DST & FIVE, s = i->sub >> SRC & FIVE;
    Round r = i->sub >> RND & 7;
    bool ftz = i->flags & FTZ;
    if (d >= K_F16X2 && s == K_F32) {
        int bits = kind_bits[d] / 2;
        return to_float(value_of(a, s, false), d, r, i) << bits |
               to_float(value_of(b, s, false), d, r, i);
    }
    if (d >= K_F16X2) { /* between pairs */
        const Format *f = format_of(s);
        int bits = kind_bits[d] / 2, half = kind_bits[s] / 2;
        uint32_t m = (1u << half) - 1;
        return to_float(number_unpack((uint32_t)(a >> half) & m, f), d, r, i) << bits |
               to_float(number_unpack((uint32_t)a & m, f), d, r, i);
    }
    if (is_integer(s)) {
        uint64_t v = extend(a, kind_bits[s], is_signed(s));
        if (!is_integer(d)) {
            if (d == K_F64 && r == ROUND_NEAREST)
                return f64_bits(is_signed(s) ? (double)(int64_t)v : (double)v);
            return to_float(odd_double(v, is_signed(s)), d, r, i);
        }
        return i->flags & SAT ? clamp_integer(v, is_signed(s), d) : v;
    }
    double x = value_of(a, s, ftz);
    if (is_integer(d))
        return to_integer(x, d, s, r);
    if (i->sub >> WHOLE & 1)
        x = whole(x, r);
    return to_float(x, d, r, i);
}

void
op_cvt(Warp *w, const Insn *i, uint32_t mask)
{
    Kind d = i->sub >> DST & FIVE, s = i->sub >> SRC & FIVE;
    int bits = kind_bits[d];
    bool from_wide = i->flags & TRANSPOSE, plain = !(i->flags & (SAT | RELU | FTZ));
    if (plain && !from_wide && is_integer(d) && is_integer(s) && kind_bits[s] == 32 &&
        bits == 64) {
        const uint32_t *a = R32(w, i->a);
        uint64_t *to = R64(w, i->d);
        if (is_signed(s))
            EACH(mask, to[l] = (uint64_t)(int64_t)(int32_t)a[l]);
        else
            EACH(mask, to[l] = a[l]);
        return;
    }
    if (plain && d == K_F16X2 && s == K_F32 && (i->sub >> RND) == 0) {
        const uint32_t *a = R32(w, i->a), *b = R32(w, i->b);
        uint32_t *to = R32(w, i->d);
        EACH(mask, to[l] = f16_bits(f32_of(a[l])) << 16 | f16_bits(f32_of(b[l])));
        return;
    }
    for (uint32_t m = mask; m; m &= m - 1) {
        int l = __builtin_ctz(m);
        uint64_t a = from_wide ? R64(w, i->a)[l] : R32(w, i->a)[l];
        uint64_t b = i->ns > 1 ? R32(w, i->b)[l] : 0, r = convert(i, a, b);
        if (is_integer(d))
            r = extend(r, bits, is_signed(d));
        if (i->flags & WIDE_DST)
            R64(w, i->d)[l] = r;
        else
            R32(w, i->d)[l] = i->flags & HALF_DST ? (uint32_t)r & 0xffff : (uint32_t)r;
    }
}
