/* Accumulators of many operands, each of which wants a tensor map of its own: as
   many as a launch carries go by TMA, and threads copy the rest beside them. Small
   integers, so that every sum is exact. */
#include <stdio.h>

#include "tests/run/support/harness.h"

enum { M = 72, COLS = 24, K = 40 };

static const int pairs[] = {1, 6, 15, 16, 20};

static Buf
integers(Env *env, int64_t n, int64_t rows, int64_t cols)
{
    Buf b = buf_poison(env, SDC_FP16, 8, DIMS(n, rows, cols));
    for (int64_t i = 0; i < n * rows; i++)
        for (int64_t j = 0; j < cols; j++)
            buf_set(&b, i * b.strides[1] + j, (double)(env_random(env) % 3) - 1);
    return b;
}

START_TEST(products)
{
    int n = pairs[_i];
    char path[4096];
    snprintf(path, sizeof path, "%s/tests/run/many_maps.tk", test_root());
    Env env = env_open_file(path);
    Buf a = integers(&env, n, M, K), b = integers(&env, n, K, COLS);
    Buf out = buf_poison(&env, SDC_FP16, 8, DIMS(M, COLS));
    const double *x = buf_doubles(&env, &a), *y = buf_doubles(&env, &b);
    double *want = env_doubles(&env, M * COLS);
    for (int i = 0; i < n; i++)
        for (int m = 0; m < M; m++)
            for (int k = 0; k < K; k++)
                for (int j = 0; j < COLS; j++)
                    want[m * COLS + j] +=
                        x[(i * M + m) * K + k] * y[(i * K + k) * COLS + j];
    const char *binds = env_text(&env, "N=%d BLOCK_M=64 BLOCK_N=32 BLOCK_K=16", n);
    if (LAUNCH(&env, "products", sdc_grid((int)ceil_div(M, 64), 1, 1), binds, buf_arg(&a),
               buf_arg(&b), buf_arg(&out), sdc_int(M), sdc_int(COLS), sdc_int(K),
               sdc_int(a.strides[0]), sdc_int(b.strides[0]), sdc_int(a.strides[1]),
               sdc_int(b.strides[1]), sdc_int(out.strides[0])))
        buf_check(&env, &out, binds, want, NULL);
    env_close(&env);
}
END_TEST

int
main(void)
{
    Suite *suite = suite_create("many_maps");
    TCase *tc = tcase_create("products");
    tcase_set_timeout(tc, 600);
    tcase_add_loop_test(tc, products, 0, (int)(sizeof pairs / sizeof *pairs));
    suite_add_tcase(suite, tc);
    return suite_finish("many_maps", suite);
}
