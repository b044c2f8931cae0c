/* A matmul whose tiles of rows are counted down from an argument. Small integers, so that
   every sum is exact. */
#include <stdio.h>

#include "tests/run/support/harness.h"

enum { M = 200, N = 72, K = 80, TILES = 4 };

static Buf
integers(Env *env, int64_t rows, int64_t cols)
{
    Buf b = buf_poison(env, SDC_FP16, 8, DIMS(rows, cols));
    for (int64_t i = 0; i < rows; i++)
        for (int64_t j = 0; j < cols; j++)
            buf_set(&b, i * b.strides[0] + j, (double)(env_random(env) % 5) - 2);
    return b;
}

START_TEST(rows_from_the_last)
{
    char path[4096];
    snprintf(path, sizeof path, "%s/tests/run/backwards.tk", test_root());
    Env env = env_open_file(path);
    Buf a = integers(&env, M, K), b = integers(&env, N, K);
    Buf c = buf_poison(&env, SDC_FP16, 8, DIMS(M, N));
    if (LAUNCH(&env, "backwards", sdc_grid(TILES, 2, 1),
               env_text(&env, "BLOCK_M=64 BLOCK_N=64 BLOCK_K=32 num_warps=%d", _i),
               buf_arg(&a), buf_arg(&b), buf_arg(&c), sdc_int(M), sdc_int(N), sdc_int(K),
               sdc_int(TILES), sdc_int(a.strides[0]), sdc_int(b.strides[0]),
               sdc_int(c.strides[0]))) {
        double *want = env_doubles(&env, M * N);
        const double *x = buf_doubles(&env, &a), *y = buf_doubles(&env, &b);
        for (int m = 0; m < M; m++)
            for (int n = 0; n < N; n++)
                for (int k = 0; k < K; k++)
                    want[m * N + n] += x[m * K + k] * y[n * K + k];
        buf_check(&env, &c, "backwards", want, NULL);
    }
    env_close(&env);
}
END_TEST

int
main(void)
{
    Suite *suite = suite_create("backwards");
    TCase *tc = tcase_create("backwards");
    tcase_set_timeout(tc, 600);
    tcase_add_loop_test(tc, rows_from_the_last, 4, 5);
    suite_add_tcase(suite, tc);
    return suite_finish("backwards", suite);
}
