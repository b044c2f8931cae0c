/* Element types of the public interface: names, sizes, and conversion from and to double,
   so that a host without fp16, bf16 or fp8 of its own can fill and read buffers. */
#include "runtime/sdc.h"

#include <math.h>
#include <stdbool.h>
#include <string.h>

typedef enum { KIND_NONE, KIND_INT, KIND_UINT, KIND_FLOAT } Kind;

/* Floats: exponent and mantissa bits, bias. `finite`: no infinity, all ones is NaN;
   `fnuz`: no infinity and no -0, whose bits are NaN. */
typedef struct DtypeInfo {
    const char *name, *alias, *alias2;
    Kind kind;
    int8_t size, exp, man;
    int16_t bias;
    bool finite, fnuz;
} DtypeInfo;

static const DtypeInfo info[SDC_DTYPE_COUNT] = {
    [SDC_BOOL] = { "i1", "bool", "u1", KIND_UINT, 1, 0, 0, 0, false },
    [SDC_I8] = { "i8", "int8", "int8", KIND_INT, 1, 0, 0, 0, false },
    [SDC_I16] = { "i16", "int16", "int16", KIND_INT, 2, 0, 0, 0, false },
    [SDC_I32] = { "i32", "int32", "int", KIND_INT, 4, 0, 0, 0, false },
    [SDC_I64] = { "i64", "int64", "long", KIND_INT, 8, 0, 0, 0, false },
    [SDC_U8] = { "u8", "uint8", "uint8", KIND_UINT, 1, 0, 0, 0, false },
    [SDC_U16] = { "u16", "uint16", "uint16", KIND_UINT, 2, 0, 0, 0, false },
    [SDC_U32] = { "u32", "uint32", "uint32", KIND_UINT, 4, 0, 0, 0, false },
    [SDC_U64] = { "u64", "uint64", "uint64", KIND_UINT, 8, 0, 0, 0, false },
    [SDC_FP8E5] = { "fp8e5", "float8e5", "float8_e5m2", KIND_FLOAT, 1, 5, 2, 15, false },
    [SDC_FP8E4NV] = { "fp8e4nv", "float8e4nv", "float8_e4m3fn", KIND_FLOAT, 1, 4, 3, 7,
                      true },
    [SDC_FP8E4B15] = { "fp8e4b15", "float8e4b15", "fp8e4b15", KIND_FLOAT, 1, 4, 3, 15,
                       true },
    [SDC_FP8E4B8] = { "fp8e4b8", "float8e4b8", "float8_e4m3fnuz", KIND_FLOAT, 1, 4, 3, 8,
                      false, true },
    [SDC_FP8E5B16] = { "fp8e5b16", "float8e5b16", "float8_e5m2fnuz", KIND_FLOAT, 1, 5, 2,
                       16, false, true },
    [SDC_FP16] = { "fp16", "f16", "float16", KIND_FLOAT, 2, 5, 10, 15, false },
    [SDC_BF16] = { "bf16", "bfloat16", "bfloat", KIND_FLOAT, 2, 8, 7, 127, false },
    [SDC_FP32] = { "fp32", "f32", "float32", KIND_FLOAT, 4, 8, 23, 127, false },
    [SDC_FP64] = { "fp64", "f64", "float64", KIND_FLOAT, 8, 11, 52, 1023, false },
};

static const DtypeInfo *
find(SdcDtype t)
{
    return t > SDC_DTYPE_NONE && t < SDC_DTYPE_COUNT ? &info[t] : NULL;
}

const char *
sdc_dtype_name(SdcDtype t)
{
    const DtypeInfo *d = find(t);
    return d ? d->name : NULL;
}

int
sdc_dtype_size(SdcDtype t)
{
    const DtypeInfo *d = find(t);
    return d ? d->size : 0;
}

int
sdc_dtype_is_float(SdcDtype t)
{
    const DtypeInfo *d = find(t);
    return d && d->kind == KIND_FLOAT;
}

SdcDtype
sdc_dtype_by_name(const char *name, size_t n)
{
    for (int t = 1; name && t < SDC_DTYPE_COUNT; t++) {
        const char *const names[] = { info[t].name, info[t].alias, info[t].alias2 };
        for (int i = 0; i < 3; i++)
            if (strlen(names[i]) == n && memcmp(names[i], name, n) == 0)
                return (SdcDtype)t;
    }
    return SDC_DTYPE_NONE;
}

static double
decode(const DtypeInfo *d, unsigned bits)
{
    int sign = (int)(bits >> (d->exp + d->man)) & 1;
    int exp = (int)(bits >> d->man) & ((1 << d->exp) - 1);
    int man = (int)bits & ((1 << d->man) - 1);
    int top = (1 << d->exp) - 1;
    double v;
    if (d->fnuz && bits == 1u << (d->exp + d->man))
        return NAN;
    if (exp == top && !d->finite && !d->fnuz)
        v = man ? NAN : INFINITY;
    else if (exp == top && man == (1 << d->man) - 1 && !d->fnuz)
        v = NAN;
    else if (exp == 0)
        v = ldexp(man, 1 - d->bias - d->man);
    else
        v = ldexp(man + (1 << d->man), exp - d->bias - d->man);
    return sign ? -v : v;
}

static unsigned
encode_sized(const DtypeInfo *d, double x)
{
    unsigned sign = signbit(x) ? 1u << (d->exp + d->man) : 0;
    unsigned top = (1u << (d->exp + d->man)) - (1u << d->man);
    unsigned nan = d->finite ? top | ((1u << d->man) - 1) : top | (1u << (d->man - 1));
    unsigned over = d->finite ? nan : top;
    if (isnan(x))
        return sign | nan;
    x = fabs(x);
    if (isinf(x))
        return sign | over;
    int e;
    frexp(x, &e);
    e -= 1;
    if (x == 0 || e < 1 - d->bias)
        e = 1 - d->bias;
    /* In units of the last place: exact, so nearbyint rounds once. A carry out of the
       mantissa moves into the exponent by itself. */
    double units = nearbyint(ldexp(x, d->man - e));
    if (units >= ldexp(1, d->man + 2))
        return sign | over;
    unsigned m = (unsigned)units;
    unsigned bits = m < (1u << d->man)
                        ? m
                        : ((unsigned)(e + d->bias) << d->man) + (m - (1u << d->man));
    return sign | (bits > top && d->finite && bits >= nan ? nan
                   : bits >= top && !d->finite            ? over
                                                          : bits);
}

/* Round to nearest, ties to even. Above the range: infinity, or NaN if there is none. */
static unsigned
encode(const DtypeInfo *d, double x)
{
    if (!d->fnuz)
        return encode_sized(d, x);
    /* As if it had one exponent more, which all of those above the range have. */
    unsigned sign = 1u << (d->exp + d->man);
    DtypeInfo wide = *d;
    wide.exp++;
    unsigned bits = encode_sized(&wide, fabs(x));
    if (isnan(x) || bits >= sign)
        return sign;
    return bits | (bits && signbit(x) ? sign : 0);
}

double
sdc_dtype_load(SdcDtype t, const void *from)
{
    union {
        uint8_t u8;
        int8_t i8;
        uint16_t u16;
        int16_t i16;
        uint32_t u32;
        int32_t i32;
        uint64_t u64;
        int64_t i64;
        float f;
        double d;
    } v = { .u64 = 0 };
    const DtypeInfo *d = find(t);
    if (!d || !from)
        return 0;
    memcpy(&v, from, (size_t)d->size);
    switch (t) {
    case SDC_BOOL: return v.u8 != 0;
    case SDC_I8: return v.i8;
    case SDC_I16: return v.i16;
    case SDC_I32: return v.i32;
    case SDC_I64: return (double)v.i64;
    case SDC_U8: return v.u8;
    case SDC_U16: return v.u16;
    case SDC_U32: return v.u32;
    case SDC_U64: return (double)v.u64;
    case SDC_FP32: return v.f;
    case SDC_FP64: return v.d;
    default: return decode(d, v.u16);
    }
}

void
sdc_dtype_store(SdcDtype t, double x, void *to)
{
    const DtypeInfo *d = find(t);
    if (!d || !to)
        return;
    if (d->kind == KIND_FLOAT) {
        if (t == SDC_FP64) {
            memcpy(to, &x, sizeof x);
        } else if (t == SDC_FP32) {
            float f = (float)x;
            memcpy(to, &f, sizeof f);
        } else {
            uint16_t bits = (uint16_t)encode(d, x);
            memcpy(to, &bits, (size_t)d->size);
        }
        return;
    }
    /* Out of range saturates: a cast would be undefined. */
    uint64_t bits;
    if (t == SDC_BOOL)
        bits = x != 0;
    else if (isnan(x))
        bits = 0;
    else if (d->kind == KIND_UINT)
        bits = x <= 0 ? 0 : x >= 18446744073709551616.0 ? UINT64_MAX : (uint64_t)x;
    else
        bits = (uint64_t)(x <= -9223372036854775808.0  ? INT64_MIN
                          : x >= 9223372036854775808.0 ? INT64_MAX
                                                       : (int64_t)x);
    memcpy(to, &bits, (size_t)d->size);
}
