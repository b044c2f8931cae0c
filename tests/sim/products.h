/* Elements of the operands of dots, as mma.sync and wgmma know them. */
#ifndef SDC_TESTS_SIM_PRODUCTS_H
#define SDC_TESTS_SIM_PRODUCTS_H

#include "tests/sim/number.h"

enum { P_F16, P_BF16, P_TF32, P_S8, P_U8, P_E4M3, P_E5M2, P_F32, P_S32, P_KINDS };

static inline int
product_bytes(int kind)
{
    return kind <= P_BF16 ? 2 : kind == P_TF32 ? 4 : 1;
}

static inline float
product_element(uint32_t v, int kind)
{
    switch (kind) {
    case P_F16: return f16_of(v & 0xffff);
    case P_BF16: return bf16_of(v & 0xffff);
    case P_TF32: return f32_of(v & ~0x1fffu);
    case P_S8: return (float)(int8_t)v;
    case P_U8: return (float)(uint8_t)v;
    case P_E5M2: return f16_of((v & 0xff) << 8);
    default: {
        float x = f16_of((v & 0x7f) << 7) * 256.0f;
        x = (v & 0x7f) == 0x7f ? NAN : x;
        return v & 0x80 ? -x : x;
    }
    }
}

/* Accumulators, of `n` columns: every dot is exact, and so nearly is the sum.
   b: k rows of n. */
static inline void
product_row(const float *a, const float *b, int k, int n, double *sum)
{
    for (int x = 0; x < k; x++) {
        double v = (double)a[x];
        for (int j = 0; j < n; j++)
            sum[j] += v * (double)b[x * n + j];
    }
}

static inline double
product_start(uint32_t bits, int acc)
{
    return acc == P_S32 ? (double)(int32_t)bits : (double)f32_of(bits);
}

static inline uint32_t
product_result(double x, int acc)
{
    return acc == P_S32 ? (uint32_t)(int64_t)x : f32_bits((float)x);
}

#endif
