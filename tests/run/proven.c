/* Masks that hold for all elements or for none, as the compiler can prove, and arbitrary
   use of what they choose: numbers that are not masks, of every width, floats, tiles that
   are spread, sums of a loop that lost its mask. */
#include <math.h>

#include "tests/run/support/harness.h"

enum { N = 32 };

static const struct {
    const char *name;
    SdcDtype type;
} kernels[] = {
    {"and_choice", SDC_I32},
    {"and_one", SDC_I32},
    {"or_choice", SDC_I32},
    {"or_nothing", SDC_I32},
    {"and_nothing", SDC_I32},
    {"narrow", SDC_I32},
    {"chain", SDC_I32},
    {"flag", SDC_I32},
    {"loop", SDC_I32},
    {"column", SDC_FP32},
    {"half_column", SDC_FP32},
    {"float_nothing", SDC_FP32},
    {"hidden_columns", SDC_FP32},
    {"unsigned_window", SDC_I32},
    {"counted", SDC_I32},
    {"branches", SDC_I32},
    {"wraps", SDC_I32},
};

enum { KERNELS = (int)(sizeof(kernels) / sizeof(*kernels)) };

static double
wanted(int kernel, const int *x, int i, int n)
{
    int v = x[i], sum = 0;
    switch (kernel) {
    case 0: return v & 6;
    case 1: return v & 1;
    case 2: return v | 5;
    case 3: return 9;
    case 4: return 4;
    case 5: return (int8_t)(v & 2) * 256 + ((v | 9) & 255);
    case 6: return (-3 ^ v) * 4 + 3;
    case 7: return v > 0;
    case 8:
        for (int k = 0; k < n; k++)
            sum += (x[k] & 6) | 8;
        return sum + i;
    case 9: return 1.5;
    case 10: return -0x1.998p-4 + 0x1.9ap-4 * 4; /* 0.1 as fp16 and as bf16 */
    case 11: return 2.5;
    case 12: return 4 * n + i;
    case 13: return ((i < 5 ? -7 : v) & 12) + (i < 5 ? 1000 : 0);
    case 14:
        for (int k = 2; k < n; k += 3)
            sum += 1 + 5 + 3; /* the last of them for what it counts */
        return sum + (n > 0 ? 2 * n : 0);
    case 15:
        if (n <= 5)
            return v & 6;
        return (i < n - 5 ? 1 : 2) + (n < 20 ? 10 : 1000);
    default:
        return (i > 10 ? 1 : 2) + (i == 10 ? 0 : 4) + (i > 27 ? 8 : 0) +
               (200000000 * (int64_t)i % (INT64_C(1) << 32) > INT32_MAX ? 32 : 0);
    }
}

START_TEST(known_masks)
{
    Env env = env_open("../tests/run/proven");
    int v[N];
    Buf x[2] = {buf_poison(&env, SDC_I32, 0, DIMS(N)),
                buf_poison(&env, SDC_FP32, 0, DIMS(N))};
    for (int i = 0; i < N; i++) {
        v[i] = i * 37 % 101 - 50;
        buf_set(&x[0], i, v[i]);
        buf_set(&x[1], i, v[i]);
    }
    const int lengths[] = {0, 1, 7, 8, 16, 29};
    for (int k = 0; k < KERNELS; k++)
        for (int l = 0; l < 6; l++) {
            Buf out = buf_poison(&env, kernels[k].type, 0, DIMS(N));
            double *want = env_doubles(&env, N);
            for (int i = 0; i < N; i++)
                want[i] = wanted(k, v, i, lengths[l]);
            LAUNCH(&env, kernels[k].name, sdc_grid(1, 1, 1), "B=32",
                   buf_arg(&x[kernels[k].type == SDC_FP32]), buf_arg(&out),
                   sdc_int(lengths[l]));
            buf_check(&env, &out, env_text(&env, "%s, %d", kernels[k].name, lengths[l]),
                      want, NULL);
        }
    env_close(&env);
}
END_TEST

int
main(void)
{
    return RUN_TESTS("proven", known_masks);
}
