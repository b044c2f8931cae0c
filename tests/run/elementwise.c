/* The elementwise kernels against their references: sizes that do not
   fill the tiles, all floating types, and dropout's promise that its mask depends on seed
   and index alone. */
#include <stdlib.h>
#include <string.h>

#include "tests/run/support/harness.h"

static const SdcDtype floats[] = {SDC_FP32, SDC_FP16, SDC_BF16};
static const int64_t sizes[] = {1, 31, 256, 1000, 4099};
enum { NFLOATS = 3, NSIZES = 5 };

START_TEST(addition)
{
    Env env = env_open("vector_add");
    static const SdcDtype types[] = {SDC_FP32, SDC_FP16, SDC_BF16, SDC_FP64,
                                     SDC_I8,   SDC_I32,  SDC_I64};
    for (int t = 0; t < 7; t++)
        for (int s = 0; s < NSIZES; s++) {
            int64_t n = sizes[s];
            env.at_end = (t + s) % 2;
            Buf x = buf_random(&env, types[t], 0, DIMS(n));
            Buf y = buf_random(&env, types[t], 0, DIMS(n));
            Buf out = buf_poison(&env, types[t], 0, DIMS(n));
            double *want = env_doubles(&env, n);
            ref_vector_add(n, buf_doubles(&env, &x), buf_doubles(&env, &y), want);
            LAUNCH(&env, "vector_add", sdc_grid(ceil_div(n, 256), 1, 1), "BLOCK=256",
                   buf_arg(&x), buf_arg(&y), buf_arg(&out), sdc_int(n));
            buf_check(&env, &out, sdc_dtype_name(types[t]), want, NULL);
        }
    env_close(&env);
}
END_TEST

/* Integers wrap; a launch over nothing touches nothing. */
START_TEST(addition_edges)
{
    Env env = env_open("vector_add");
    int8_t x[2] = {127, -128}, y[2] = {1, -1}, out[2] = {0, 0};
    LEND(&env, x), LEND(&env, y), LEND(&env, out);
    if (LAUNCH(&env, "vector_add", sdc_grid(1, 1, 1), "BLOCK=16", sdc_ptr(SDC_I8, x),
               sdc_ptr(SDC_I8, y), sdc_ptr(SDC_I8, out), sdc_int(2))) {
        ck_assert_int_eq(out[0], -128);
        ck_assert_int_eq(out[1], 127);
    }
    Buf none = buf_poison(&env, SDC_FP32, 0, DIMS(1));
    LAUNCH(&env, "vector_add", sdc_grid(1, 1, 1), "BLOCK=16", buf_arg(&none),
           buf_arg(&none), buf_arg(&none), sdc_int(0));
    LAUNCH(&env, "vector_add", sdc_grid(0, 1, 1), "BLOCK=16", buf_arg(&none),
           buf_arg(&none), buf_arg(&none), sdc_int(1));
    ck_assert_uint_eq(none.data[0], 0xff);
    ck_assert_uint_eq(none.data[3], 0xff);
    env_close(&env);
}
END_TEST

START_TEST(add_mul_add)
{
    Env env = env_open("add_mul_add");
    for (int t = 0; t < NFLOATS; t++)
        for (int s = 0; s < NSIZES; s++) {
            int64_t n = sizes[s];
            Buf in[4];
            double *values[4];
            env.at_end = (t + s) % 2;
            for (int i = 0; i < 4; i++) {
                in[i] = buf_random(&env, floats[t], 0, DIMS(n));
                values[i] = buf_doubles(&env, &in[i]);
            }
            Buf out = buf_poison(&env, floats[t], 0, DIMS(n));
            double *want = env_doubles(&env, n), *bound = env_doubles(&env, n);
            ref_add_mul_add(n, values[0], values[1], values[2], values[3], want, bound);
            LAUNCH(&env, "add_mul_add", sdc_grid(ceil_div(n, 512), 1, 1), "BLOCK=512",
                   buf_arg(&in[0]), buf_arg(&in[1]), buf_arg(&in[2]), buf_arg(&in[3]),
                   buf_arg(&out), sdc_int(n));
            buf_check(&env, &out, sdc_dtype_name(floats[t]), want, bound);
        }
    env_close(&env);
}
END_TEST

typedef struct Drop {
    int64_t n, seed;
    float p;
} Drop;

static void
dropout_case(Env *env, SdcDtype t, const Drop *d, const char *kernel, int block, int tile)
{
    Buf x = buf_random(env, t, 0, DIMS(d->n));
    Buf out = buf_poison(env, t, 0, DIMS(d->n));
    double *want = env_doubles(env, d->n), *bound = env_doubles(env, d->n);
    ref_dropout(d->n, buf_doubles(env, &x), d->p, d->seed, strchr(kernel, '4') != NULL,
                want, bound);
    LAUNCH(env, kernel, sdc_grid(ceil_div(d->n, block), 1, 1),
           env_text(env, tile ? "BLOCK=%d TILE=%d" : "BLOCK=%d", block, tile),
           buf_arg(&x), buf_arg(&out), sdc_int(d->n), sdc_float((double)d->p),
           sdc_int(d->seed));
    const char *what = env_text(env, "%s %s n=%lld p=%g seed=%lld BLOCK=%d TILE=%d",
                                kernel, sdc_dtype_name(t), (long long)d->n, (double)d->p,
                                (long long)d->seed, block, tile);
    buf_check(env, &out, what, want, bound);
}

START_TEST(dropout)
{
    static const Drop cases[] = {{1, 3, 0.5f},
                                 {1000, 123, 0.25f},
                                 {4099, (1ll << 40) + 17, 0.9f},
                                 {515, -1, 0.0f}};
    static const char *const kernels[] = {"dropout_fwd", "dropout_bwd", "dropout4_fwd",
                                          "dropout4_bwd"};
    Env env = env_open("dropout");
    ck_assert(ref_philox_selftest());
    for (int k = 0; k < 4; k++)
        for (int t = 0; t < NFLOATS; t++)
            for (int c = 0; c < 4; c++) {
                env.at_end = (k + t + c) % 2;
                dropout_case(&env, floats[t], &cases[c], kernels[k], 256, 0);
            }
    env_close(&env);
}
END_TEST

/* Any tile size gives the mask of the reference, hence the same one. */
START_TEST(dropout_tiles)
{
    static const int blocks[] = {4, 16, 64, 2048};
    const Drop d = {777, 99, 0.4f};
    Env env = env_open("dropout");
    for (int b = 0; b < 4; b++) {
        dropout_case(&env, SDC_FP32, &d, "dropout_fwd", blocks[b], 0);
        dropout_case(&env, SDC_FP32, &d, "dropout_bwd", blocks[b], blocks[b] / 4);
        dropout_case(&env, SDC_FP32, &d, "dropout4_fwd", blocks[b], 0);
    }
    env_close(&env);
}
END_TEST

/* The backward pass drops what the forward pass dropped, and the share that is kept is
   1 - p: of 2^16 elements within five deviations. */
START_TEST(dropout_share)
{
    enum { N = 1 << 16 };
    Env env = env_open("dropout");
    float *x = env_alloc(&env, N * sizeof(float));
    float *forth = env_alloc(&env, N * sizeof(float));
    float *back = env_alloc(&env, N * sizeof(float));
    for (int i = 0; i < N; i++)
        x[i] = 1.0f;
    for (int four = 0; four < 2; four++) {
        const char *fwd = four ? "dropout4_fwd" : "dropout_fwd";
        const char *bwd = four ? "dropout4_bwd" : "dropout_bwd";
        if (!LAUNCH(&env, fwd, sdc_grid(N / 1024, 1, 1), "BLOCK=1024",
                    sdc_ptr(SDC_FP32, x), sdc_ptr(SDC_FP32, forth), sdc_int(N),
                    sdc_float(0.25), sdc_int(5)) ||
            !LAUNCH(&env, bwd, sdc_grid(N / 512, 1, 1), "BLOCK=512", sdc_ptr(SDC_FP32, x),
                    sdc_ptr(SDC_FP32, back), sdc_int(N), sdc_float(0.25), sdc_int(5)))
            continue;
        ck_assert_mem_eq(forth, back, N * sizeof(float));
        int kept = 0;
        for (int i = 0; i < N; i++)
            kept += forth[i] != 0;
        ck_assert_int_lt(abs(kept - N * 3 / 4), 5 * 111);
    }
    env_close(&env);
}
END_TEST

START_TEST(dropout_normal)
{
    Env env = env_open("dropout_normal");
    for (int t = 0; t < NFLOATS; t++)
        for (int s = 0; s < NSIZES; s++) {
            int64_t n = sizes[s], seed = 5 + s;
            float threshold = s % 2 ? 1.0f : 0.3f;
            Buf x = buf_random(&env, floats[t], 0, DIMS(n));
            Buf out = buf_poison(&env, floats[t], 0, DIMS(n));
            double *want = env_doubles(&env, n), *bound = env_doubles(&env, n);
            bool *either = env_alloc(&env, (size_t)n);
            ref_dropout_normal(n, buf_doubles(&env, &x), threshold, seed, want, bound,
                               either);
            LAUNCH(&env, t % 2 ? "dropout_normal_fwd" : "dropout_normal_bwd",
                   sdc_grid(ceil_div(n, 128), 1, 1), "BLOCK=128", buf_arg(&x),
                   buf_arg(&out), sdc_int(n), sdc_float((double)threshold),
                   sdc_int(seed));
            for (int64_t i = 0; i < n; i++)
                if (either[i] && buf_get(&out, i) == 0)
                    want[i] = 0;
            buf_check(&env, &out, sdc_dtype_name(floats[t]), want, bound);
        }
    env_close(&env);
}
END_TEST

int
main(void)
{
    return RUN_TESTS("elementwise", addition, addition_edges, add_mul_add, dropout,
                     dropout_tiles, dropout_share, dropout_normal);
}
