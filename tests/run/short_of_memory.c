/* Matmuls whose stages do not fit shared memory: they do without (passes/budget.h), and
   compute the same. Small integers, so that every sum is exact.

   tests/cli/budget.test says what each configuration does without on which GPU. */
#include <stdio.h>

#include "tests/run/support/harness.h"

typedef struct Case {
    int M, N, K, m, n, k; /* sizes; of a tile */
    int scaled, warps, stages, work;
} Case;

static const Case cases[] = {
    {136, 120, 384, 128, 128, 128, 1, 8, 2, 0}, /* scales are loaded in place */
    {136, 120, 384, 128, 128, 128, 1, 8, 4, 0}, /* and stages are fewer */
    {200, 264, 320, 128, 256, 64, 0, 8, 8, 0},
    {136, 120, 320, 128, 128, 128, 0, 4, 3, 0}, /* no room for two programs with roles */
    {72, 136, 512, 64, 128, 256, 0, 4, 4, 0},
    {136, 120, 520, 128, 128, 256, 0, 8, 3, 0}, /* not even two stages */
    {136, 120, 520, 256, 128, 256, 0, 8, 3, 0}, /* sm_80: not even one */
    {72, 24, 520, 64, 16, 256, 0, 1, 3, 0},     /* one warp: rows of copies are long */
    {56, 64, 768, 64, 64, 256, 0, 4, 6, 1},    /* no second buffer for a * s */
    {56, 64, 256, 64, 64, 64, 0, 4, 2, 1},
    {56, 64, 192, 64, 64, 64, 0, 4, 2, 2},
};

/* -1, 0 or 1; between rows there is poison. */
static Buf
integers(Env *env, SdcDtype t, int64_t rows, int64_t cols, int64_t pad)
{
    Buf b = buf_poison(env, t, pad, DIMS(rows, cols));
    for (int64_t i = 0; i < rows; i++)
        for (int64_t j = 0; j < cols; j++)
            buf_set(&b, i * b.strides[0] + j, (double)(env_random(env) % 3) - 1);
    return b;
}

/* What WORK makes of the matmul of a[i, p] and b[p, j]. */
static double
factor(const Case *c, const double *x, const double *z, int i, int p, int j)
{
    double sum = 0;
    if (c->work == 1)
        return z[p];
    if (c->work == 0)
        return c->scaled ? z[(p / c->k * c->M + i) * c->N + j] : 1;
    for (int q = p / c->k * c->k; q < c->K && q / c->k == p / c->k; q++)
        sum += x[i * c->K + q];
    return sum;
}

static double *
wanted(Env *env, const Case *c, const Buf *a, const Buf *b, const Buf *s)
{
    const double *x = buf_doubles(env, a), *y = buf_doubles(env, b);
    const double *z = buf_doubles(env, s);
    double *want = env_doubles(env, (int64_t)c->M * c->N);
    for (int i = 0; i < c->M; i++)
        for (int p = 0; p < c->K; p++)
            for (int j = 0; j < c->N; j++) {
                double by = x[i * c->K + p] * y[p * c->N + j];
                if (by != 0)
                    want[i * c->N + j] += by * factor(c, x, z, i, p, j);
            }
    return want;
}

START_TEST(products)
{
    const Case *c = &cases[_i];
    char path[4096];
    snprintf(path, sizeof path, "%s/tests/run/short_of_memory.tk", test_root());
    Env env = env_open_file(path);
    int64_t tiles = ceil_div(c->K, c->k);
    Buf a = integers(&env, SDC_FP16, c->M, c->K, 8);
    Buf b = integers(&env, SDC_FP16, c->K, c->N, 16);
    Buf s = c->work ? integers(&env, SDC_FP32, 1, c->K, 0)
                    : integers(&env, SDC_FP32, tiles * c->M, c->N, 8);
    Buf out = buf_poison(&env, SDC_FP16, 8, DIMS(c->M, c->N));
    const char *binds = env_text(&env,
                                 "BLOCK_M=%d BLOCK_N=%d BLOCK_K=%d SCALED=%s WORK=%d "
                                 "num_warps=%d num_stages=%d",
                                 c->m, c->n, c->k, c->scaled ? "True" : "False", c->work,
                                 c->warps, c->stages);
    SdcGrid grid = sdc_grid((int)ceil_div(c->M, c->m), (int)ceil_div(c->N, c->n), 1);
    if (LAUNCH(&env, "scaled", grid, binds, buf_arg(&a), buf_arg(&b), buf_arg(&s),
               buf_arg(&out), sdc_int(c->M), sdc_int(c->N), sdc_int(c->K),
               sdc_int(a.strides[0]), sdc_int(b.strides[0]), sdc_int(s.strides[0]),
               sdc_int(out.strides[0])))
        buf_check(&env, &out, binds, wanted(&env, c, &a, &b, &s), NULL);
    env_close(&env);
}
END_TEST

int
main(void)
{
    Suite *suite = suite_create("short_of_memory");
    TCase *tc = tcase_create("products");
    tcase_set_timeout(tc, 600);
    tcase_add_loop_test(tc, products, 0, (int)(sizeof cases / sizeof *cases));
    suite_add_tcase(suite, tc);
    return suite_finish("short_of_memory", suite);
}
