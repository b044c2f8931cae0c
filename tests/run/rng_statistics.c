/* What is dropped is left to chance: how often, in which patterns, and near and far with
   no connection, for elements, for blocks of SparseDrop's masks and for weights of
   attention. Seeds are fixed: a pass stays one. */
#include <math.h>
#include <string.h>

#include "tests/run/support/harness.h"

enum { BITS = 1 << 18 };

/* Chi-square of the patterns of eight elements `step` apart against independent ones: 255
   degrees of freedom, so 5 deviations above the mean are 368. */
static double
chi_square(const unsigned char *keep, double p, int step)
{
    double sum = 0, count[256] = {0};
    int n = 0;
    for (int i = 0; i + 8 * step <= BITS; i += 8 * step)
        for (int j = 0; j < step; j++, n++) {
            int pattern = 0;
            for (int b = 0; b < 8; b++)
                pattern |= keep[i + j + b * step] << b;
            count[pattern]++;
        }
    for (int i = 0; i < 256; i++) {
        int kept = __builtin_popcount((unsigned)i);
        double want = n * pow(1 - p, kept) * pow(p, 8 - kept);
        sum += (count[i] - want) * (count[i] - want) / want;
    }
    return sum;
}

/* Correlation of a with b, `lag` elements further on, in deviations. */
static double
correlation(const unsigned char *a, const unsigned char *b, double p, int lag)
{
    double sum = 0;
    int n = BITS - lag;
    for (int i = 0; i < n; i++)
        sum += (a[i] - (1 - p)) * (b[i + lag] - (1 - p));
    return sum / (p * (1 - p)) / sqrt(n);
}

/* One mask: its share, its patterns, its rows and columns. */
static void
check_alone(const unsigned char *keep, double p)
{
    static const int lags[] = {1, 2, 3, 4, 5, 8, 32, 64, 128, 1024, 4096, 65536};
    int kept = 0;
    for (int k = 0; k < BITS; k++)
        kept += keep[k];
    ck_assert_double_lt(fabs(kept - BITS * (1 - p)), 5 * sqrt(BITS * p * (1 - p)));
    for (int step = 1; step <= 1024; step *= 4)
        ck_assert_double_lt(chi_square(keep, p, step), 368);
    for (int k = 0; k < 12; k++)
        ck_assert_double_lt(fabs(correlation(keep, keep, p, lags[k])), 5);
}

/* ---------------------------------------------------------------- elements */

/* The mask of BITS elements; false when the target has not got the kernel. */
static bool
elements(Env *env, bool four, float p, int64_t seed, int64_t offset, unsigned char *keep)
{
    float *x = env_alloc(env, BITS * sizeof(float));
    float *out = env_alloc(env, BITS * sizeof(float));
    for (int i = 0; i < BITS; i++)
        x[i] = 1;
    if (!LAUNCH(env, "dropout_long_fwd", sdc_grid(BITS / 1024, 1, 1),
                four ? "BLOCK=1024 FOUR=True" : "BLOCK=1024", sdc_ptr(SDC_FP32, x),
                sdc_ptr(SDC_FP32, out), sdc_int(BITS), sdc_float((double)p),
                sdc_int(seed), sdc_int(offset)))
        return false;
    for (int i = 0; i < BITS; i++)
        keep[i] = out[i] != 0;
    return true;
}

/* Elements near and far, of one call and of others with the next seed and the next
   counters, have nothing to do with each other. (Seeds are fixed: a pass stays one.) */
START_TEST(dropout)
{
    static const float ps[] = {0.5f, 0.25f, 0.6f};
    Env env = env_open("dropout");
    unsigned char *a = env_alloc(&env, BITS), *b = env_alloc(&env, BITS);
    unsigned char *c = env_alloc(&env, BITS);
    for (int i = 0; i < 6; i++) {
        bool four = i % 2;
        double p = (double)ps[i / 2];
        if (!elements(&env, four, ps[i / 2], 1000 + i, 0, a) ||
            !elements(&env, four, ps[i / 2], 1001 + i, 0, b) ||
            !elements(&env, four, ps[i / 2], 1000 + i, BITS / (four ? 4 : 1), c))
            continue;
        check_alone(a, p);
        for (int k = 0; k < 4; k++) {
            ck_assert_double_lt(fabs(correlation(a, b, p, k)), 5);
            ck_assert_double_lt(fabs(correlation(a, c, p, k)), 5);
        }
    }
    env_close(&env);
}
END_TEST

/* ---------------------------------------------------------------- blocks */

/* The mask of 512 x 512 blocks. */
static bool
blocks(Env *env, float p, int64_t seed, int64_t first, unsigned char *keep)
{
    enum { SIDE = 512 };
    uint64_t *words = env_alloc(env, BITS / 8);
    if (!LAUNCH(env, "block_mask", sdc_grid(SIDE / 4, SIDE / 64, 1), "BLOCK_R=4",
                sdc_ptr(SDC_I64, words), sdc_int(SIDE), sdc_int(SIDE), sdc_int(SIDE / 64),
                sdc_int(seed), sdc_int(first), sdc_float((double)p), sdc_int(SIDE),
                sdc_int(1)))
        return false;
    for (int i = 0; i < BITS; i++)
        keep[i] = words[i / 64] >> i % 64 & 1;
    return true;
}

/* Also from one step of training to the next, which goes on with the counters. */
START_TEST(sparsedrop)
{
    Env env = env_open("sparsedrop");
    unsigned char *a = env_alloc(&env, BITS), *b = env_alloc(&env, BITS);
    for (int i = 0; i < 2; i++) {
        float p = i ? 0.3f : 0.5f;
        if (!blocks(&env, p, 77 + i, 0, a) || !blocks(&env, p, 77 + i, BITS, b))
            continue;
        check_alone(a, (double)p);
        for (int k = 0; k < 4; k++)
            ck_assert_double_lt(fabs(correlation(a, b, (double)p, k)), 5);
    }
    env_close(&env);
}
END_TEST

/* ---------------------------------------------------------------- weights of attention
 */

/* All weights are equal before and values a diagonal: a result is a weight. */
static bool
weights(Env *env, float p, int64_t seed, int heads, unsigned char *keep)
{
    enum { N = 64, DIM = 64 };
    int64_t m = BITS / N / heads;
    float *q = env_alloc(env, BITS * sizeof(float)),
          *o = env_alloc(env, BITS * sizeof(float));
    float *k = env_alloc(env, (size_t)heads * N * DIM * sizeof(float));
    float *v = env_alloc(env, (size_t)heads * N * DIM * sizeof(float));
    float *lse = env_alloc(env, (size_t)(heads * m) * sizeof(float));
    for (int i = 0; i < heads * N; i++)
        v[i * DIM + i % N] = 1;
    SdcArg ptrs[] = {sdc_ptr(SDC_FP32, q), sdc_ptr(SDC_FP32, k), sdc_ptr(SDC_FP32, v),
                     sdc_ptr(SDC_FP32, o), sdc_ptr(SDC_FP32, lse)};
    SdcArg mb = sdc_int(BITS), mh = sdc_int(m * DIM), nb = sdc_int(heads * N * DIM),
           nh = sdc_int(N * DIM), row = sdc_int(DIM), one = sdc_int(1);
    if (!LAUNCH(env, "flash_attention_fwd", sdc_grid(ceil_div(m, 64), heads, 1),
                "HEAD_DIM=64 BLOCK_M=64 BLOCK_N=32 DROPOUT=True", ptrs[0], ptrs[1],
                ptrs[2], ptrs[3], ptrs[4], sdc_float(1), mb, mh, row, one, nb, nh, row,
                one, nb, nh, row, one, mb, mh, row, one, sdc_int(heads), sdc_int(m),
                sdc_int(N), sdc_none(), sdc_none(), sdc_float((double)p), sdc_int(seed)))
        return false;
    for (int i = 0; i < BITS; i++)
        keep[i] = o[i] != 0;
    return true;
}

START_TEST(attention)
{
    Env env = env_open("flash_attention");
    unsigned char *a = env_alloc(&env, BITS), *b = env_alloc(&env, BITS);
    for (int i = 0; i < 2; i++) {
        float p = i ? 0.25f : 0.5f;
        if (!weights(&env, p, 5, i ? 4 : 1, a) || !weights(&env, p, 6, i ? 4 : 1, b))
            continue;
        check_alone(a, (double)p);
        for (int k = 0; k < 4; k++)
            ck_assert_double_lt(fabs(correlation(a, b, (double)p, k)), 5);
    }
    env_close(&env);
}
END_TEST

int
main(void)
{
    return RUN_TESTS("chance", dropout, sparsedrop, attention);
}
