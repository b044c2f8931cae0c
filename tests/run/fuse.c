/* Fused chains against the same kernels launched one after the other: the same bits where
   no matmul meets a sum over a seam (they may be contracted when fused), and within the
   bound of the reference where it does. */
#include <stdio.h>
#include <string.h>

#include "tests/run/support/harness.h"

enum { BLOCK = 256 };

static const SdcDtype floats[] = {SDC_FP32, SDC_FP16, SDC_BF16};
static const int64_t sizes[] = {1, 255, 256, 1000, 4099};

static Env
env_fused(const char *kernels, const char *bind)
{
    char path[4096];
    snprintf(path, sizeof path, "%s/tests/run/chain.tk", test_root());
    Env env = env_open_file(path);
    SdcFuseOptions o = {.kernels = kernels, .bind = bind, .name = "fused"};
    SdcStatus status = sdc_fuse(env.mod, &o, &env.mod);
    ck_assert_msg(status == SDC_OK, "%s", sdc_error(env.ctx));
    return env;
}

static void
same_bits(const Buf *a, const Buf *b, const char *what)
{
    size_t bytes = (size_t)buf_count(a) * (size_t)sdc_dtype_size(a->dtype);
    ck_assert_msg(memcmp(a->data, b->data, bytes) == 0, "%s differs", what);
}

static SdcGrid
programs(int64_t n)
{
    return sdc_grid(ceil_div(n, BLOCK), 1, 1);
}

/* The memo's example: d + (a + b) * c from three kernels. */
START_TEST(add_mul_add)
{
    Env env = env_fused("add,mul,last=add", "add.x=a,add.y=b,mul.y=c,last.y=d,"
                                            "add.out=mul.x,mul.out=last.x");
    for (int s = 0; s < 5; s++) {
        int64_t n = sizes[s];
        Buf in[4];
        double *v[4], *want = env_doubles(&env, n), *bound = env_doubles(&env, n);
        env.at_end = s % 2;
        for (int i = 0; i < 4; i++) {
            in[i] = buf_random(&env, SDC_FP32, 0, DIMS(n));
            v[i] = buf_doubles(&env, &in[i]);
        }
        Buf out = buf_poison(&env, SDC_FP32, 0, DIMS(n));
        ref_add_mul_add(n, v[0], v[1], v[2], v[3], want, bound);
        if (LAUNCH(&env, "fused", programs(n), "BLOCK=256", buf_arg(&in[0]),
                   buf_arg(&in[1]), sdc_int(n), buf_arg(&in[2]), buf_arg(&in[3]),
                   buf_arg(&out)))
            buf_check(&env, &out, "add mul add", want, bound);
    }
    env_close(&env);
}
END_TEST

/* bias, gelu and dropout, with buffers of the arrays' type; `kept` is stored as well. */
static void
bias_gelu_dropout_case(Env *env, SdcDtype t, int64_t n, bool kept)
{
    int64_t cols = 37;
    Buf x = buf_random(env, t, 0, DIMS(n)), bias = buf_random(env, t, 0, DIMS(cols));
    Buf h1 = buf_poison(env, t, 0, DIMS(n)), h2 = buf_poison(env, t, 0, DIMS(n));
    Buf want = buf_poison(env, t, 0, DIMS(n)), out = buf_poison(env, t, 0, DIMS(n));
    Buf mid = buf_poison(env, t, 0, DIMS(n));
    SdcArg p = sdc_float(0.25), seed = sdc_int(77), count = sdc_int(n);
    bool done = LAUNCH(env, "add_bias", programs(n), "BLOCK=256", buf_arg(&x),
                       buf_arg(&bias), buf_arg(&h1), count, sdc_int(cols)) &&
                LAUNCH(env, "gelu", programs(n), "BLOCK=256", buf_arg(&h1), buf_arg(&h2),
                       count) &&
                LAUNCH(env, "dropout", programs(n), "BLOCK=256", buf_arg(&h2),
                       buf_arg(&want), count, p, seed);
    if (kept)
        done = done &&
               LAUNCH(env, "fused", programs(n), "BLOCK=256", buf_arg(&x), buf_arg(&bias),
                      count, sdc_int(cols), buf_arg(&mid), buf_arg(&out), p, seed);
    else
        done =
            done && LAUNCH(env, "fused", programs(n), "BLOCK=256", buf_arg(&x),
                           buf_arg(&bias), count, sdc_int(cols), buf_arg(&out), p, seed);
    if (!done)
        return;
    same_bits(&want, &out, sdc_dtype_name(t));
    if (kept)
        same_bits(&h2, &mid, "what was kept");
}

START_TEST(bias_gelu_dropout)
{
    for (int t = 0; t < 3; t++)
        for (int kept = 0; kept < 2; kept++) {
            const char *name = sdc_dtype_name(floats[t]);
            char bind[200];
            snprintf(bind, sizeof bind,
                     kept ? "add_bias.out=gelu.x:%s,gelu.out=mid,dropout.x=mid"
                          : "add_bias.out=gelu.x:%s,gelu.out=dropout.x:%s",
                     name, name);
            Env env = env_fused("add_bias,gelu,dropout", bind);
            for (int s = 3; s < 5; s++) {
                env.at_end = (s + t) % 2;
                bias_gelu_dropout_case(&env, floats[t], sizes[s], kept);
            }
            env_close(&env);
        }
}
END_TEST

/* Block pointers, and lanes that the mask leaves out but the next kernel sees. */
START_TEST(row_blocks)
{
    Env env = env_fused("scale_rows,subtract_top", "scale_rows.out=subtract_top.x");
    for (int cols = 60; cols <= 64; cols += 4) {
        int64_t rows = 5;
        Buf x = buf_random(&env, SDC_FP32, 0, DIMS(rows, cols));
        for (int64_t i = 0; i < rows * cols; i++)
            if (buf_get(&x, i) < 0)
                buf_set(&x, i, -buf_get(&x, i));
        Buf h = buf_poison(&env, SDC_FP32, 0, DIMS(rows, cols));
        Buf want = buf_poison(&env, SDC_FP32, 0, DIMS(rows, cols));
        Buf out = buf_poison(&env, SDC_FP32, 0, DIMS(rows, cols));
        SdcArg k = sdc_float(-2.0);
        if (LAUNCH(&env, "scale_rows", sdc_grid(rows, 1, 1), "BLOCK=64", buf_arg(&x),
                   buf_arg(&h), sdc_int(rows), sdc_int(cols), k) &&
            LAUNCH(&env, "subtract_top", sdc_grid(rows, 1, 1), "BLOCK=64", buf_arg(&h),
                   buf_arg(&want), sdc_int(rows), sdc_int(cols)) &&
            LAUNCH(&env, "fused", sdc_grid(rows, 1, 1), "BLOCK=64", buf_arg(&x),
                   sdc_int(rows), sdc_int(cols), k, buf_arg(&out)))
            same_bits(&want, &out, "rows");
    }
    env_close(&env);
}
END_TEST

START_TEST(refused)
{
    Env env = env_fused("gelu,reverse", "gelu.out=reverse.x");
    float x[4] = {1, 2, 3, 4};
    SdcFunction *f;
    const char *bind[] = {"BLOCK=16"};
    SdcArg args[] = {sdc_ptr(SDC_FP32, x), sdc_int(4), sdc_ptr(SDC_FP32, x)};
    ck_assert_int_eq(sdc_function_get(env.mod, "fused", bind, 1, &f), SDC_OK);
    SdcKernel *k;
    ck_assert_int_eq(sdc_specialize(f, args, 3, &k), SDC_ERROR_SOURCE);
    ck_assert_ptr_nonnull(strstr(sdc_error(env.ctx), "'gelu.out' is loaded at other"));
    ck_assert_ptr_nonnull(strstr(sdc_error(env.ctx), "stored here"));
    SdcModule *none;
    SdcFuseOptions o = {.kernels = "gelu,gelu"};
    ck_assert_int_eq(sdc_fuse(env.mod, &o, &none), SDC_ERROR_ARGUMENT);
    ck_assert_ptr_null(none);
    ck_assert_int_eq(sdc_fuse(env.mod, NULL, &none), SDC_ERROR_ARGUMENT);
    env_close(&env);
}
END_TEST

int
main(void)
{
    return RUN_TESTS("fuse", add_mul_add, bias_gelu_dropout, row_blocks, refused);
}
