/* What buffers hold before a launch. Depends on the seed and the parameter's name alone,
   so that a program that is made smaller reads what it read before. */
#include <math.h>
#include <string.h>

#include "runtime/sdc.h"
#include "tests/gen/gen.h"

static uint64_t
next(uint64_t *x)
{
    uint64_t z = (*x += 0x9e3779b97f4a7c15u);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

static double
wild_float(uint64_t r)
{
    static const double special[] = {0,      -0.0,   INFINITY, -INFINITY, NAN,     1e-40,
                                     -3e-41, 5e-324, 3.4e38,   65504,     6e-8,    1e-310,
                                     448,    57344,  0.1,      -1e-5,     1.5e-45, 1};
    if (r % 4 == 0)
        return special[(r >> 8) % (sizeof special / sizeof *special)];
    static const int ties[] = {3, 4, 8, 11}; /* half way between fp8s, bf16s, fp16s */
    uint64_t digits = (r >> 8) & 0xffffff;
    if (r % 4 == 1) {
        int n = ties[(r >> 4) % 4];
        digits = (digits >> (24 - n) | 1) << (24 - n);
    }
    double x = 1 + (double)digits / 0x1000000;
    int e = (int)((r >> 40) % 64) - 32;
    return ldexp((r >> 34) & 1 ? -x : x, e);
}

static void
integer(unsigned char *to, Dt dt, uint64_t r)
{
    bool is_signed = BIT(dt) & SINTS;
    int bits = dt_info[dt].bits;
    uint64_t most = (bits == 64 ? ~(uint64_t)0 : ((uint64_t)1 << bits) - 1) >> is_signed;
    uint64_t x;
    switch (r % 16) {
    case 0: x = most; break;
    case 1: x = is_signed ? ~most : 0; break;
    case 2:
    case 3:
    case 4:
    case 5: x = r >> 8; break;
    default: x = is_signed ? (r >> 8) % 20 - 9 : (r >> 8) % 20; break;
    }
    memcpy(to, &x, (size_t)dt_info[dt].bytes); /* little endian */
}

static SdcDtype
dtype(const char *sig)
{
    return sdc_dtype_by_name(sig, strlen(sig));
}

void
input_fill(uint64_t seed, ProgramArg *a, Dt dt, bool wild)
{
    uint64_t x = seed * 31 + 7;
    for (const char *p = a->name; *p; p++)
        x = x * 131 + (unsigned char)*p;
    SdcDtype t = dtype(a->dtype);
    int bytes = dt_info[dt].bytes;
    for (size_t i = 0; i < a->count; i++) {
        unsigned char *to = a->data + i * (size_t)bytes;
        uint64_t r = next(&x);
        if (BIT(dt) & INTS)
            integer(to, dt, r);
        else if (dt == I1)
            *to = r >> 20 & 1;
        else if (wild && r % 3 == 0 && !(BIT(dt) & FP8S))
            memcpy(to, &r, (size_t)bytes); /* any bits */
        else if (wild)
            sdc_dtype_store(t, wild_float(r), to);
        else if (BIT(dt) & FP8S)
            sdc_dtype_store(t, (double)(r % 17) - 8, to);
        else if (r % 16 == 0)
            sdc_dtype_store(t, -0.0, to);
        else
            sdc_dtype_store(t, ((double)((r >> 8) % 65) - 32) * 0.5, to);
    }
    if (a->is_output && BIT(dt) & FLOATS) /* counters: whole numbers */
        for (size_t i = 0; i < a->count; i++)
            sdc_dtype_store(t, (double)(i % 5), a->data + i * (size_t)bytes);
}

void
poison_fill(ProgramArg *a)
{
    for (size_t i = 0; i < a->bytes; i++)
        a->data[i] = (unsigned char)(0x51 + i % 7);
}
