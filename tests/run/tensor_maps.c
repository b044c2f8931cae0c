/* Products of tensors that the kernel alone knows: addresses, sizes and strides come from
   memory, and where TMA has them the kernel writes their tensor maps. Tensors without
   elements, rows that end anywhere, one map written again and again. Small integers, so
   that every sum is exact. */
#include <stdio.h>
#include <string.h>

#include "tests/run/support/harness.h"
#include "tests/run/support/oracle.h"

enum { GROUPS = 5, EXPERTS = 5 };

/* [M, N, K] */
static const int sizes[GROUPS][3] = {
    {64, 64, 64}, {130, 72, 96}, {0, 64, 32}, {200, 136, 40}, {72, 200, 0}};

static Env
env_open_maps(void)
{
    char path[4096];
    snprintf(path, sizeof path, "%s/tests/run/tensor_maps.tk", test_root());
    return env_open_file(path);
}

static Buf
integers(Env *env, int64_t rows, int64_t cols)
{
    Buf b = buf_poison(env, SDC_FP16, 8, DIMS(rows ? rows : 1, cols ? cols : 8));
    for (int64_t i = 0; i < b.shape[0]; i++)
        for (int64_t j = 0; j < b.shape[1]; j++)
            buf_set(&b, i * b.strides[0] + j, (double)(env_random(env) % 5) - 2);
    return b;
}

/* c = a b^T; of all elements of a buffer those outside of [m, n] are not looked at. */
static void
product(const double *a, const double *b, double *c, const int *size, int64_t a_cols,
        int64_t b_cols, int64_t c_cols)
{
    for (int m = 0; m < size[0]; m++)
        for (int n = 0; n < size[1]; n++)
            for (int k = 0; k < size[2]; k++)
                c[m * c_cols + n] += a[m * a_cols + k] * b[n * b_cols + k];
}

START_TEST(grouped)
{
    if (oracle_wanted()) /* the interpreter knows of no addresses in memory */
        return;
    Env env = env_open_maps();
    Buf a[GROUPS], b[GROUPS], c[GROUPS];
    uint64_t *list[3];
    int32_t *size = env_alloc(&env, sizeof sizes);
    int32_t *stride = env_alloc(&env, sizeof sizes);
    for (int i = 0; i < 3; i++)
        list[i] = env_alloc(&env, GROUPS * sizeof *list[i]);
    for (int g = 0; g < GROUPS; g++) {
        const int *s = sizes[g];
        a[g] = integers(&env, s[0], s[2]);
        b[g] = integers(&env, s[1], s[2]);
        c[g] = buf_poison(&env, SDC_FP16, 8, DIMS(s[0] ? s[0] : 1, s[1]));
        const Buf *of[] = {&a[g], &b[g], &c[g]};
        for (int i = 0; i < 3; i++) {
            size[g * 3 + i] = s[i];
            stride[g * 3 + i] = (int32_t)of[i]->strides[0];
            list[i][g] = (uint64_t)(uintptr_t)env_place(&env, of[i]->data);
        }
    }
    if (LAUNCH(&env, "grouped", sdc_grid(_i, 1, 1),
               env_text(&env, "PROGRAMS=%d BLOCK_M=64 BLOCK_N=64 BLOCK_K=32", _i),
               sdc_ptr(SDC_I64, list[0]), sdc_ptr(SDC_I64, list[1]),
               sdc_ptr(SDC_I64, list[2]), sdc_ptr(SDC_I32, size),
               sdc_ptr(SDC_I32, stride), sdc_int(GROUPS))) {
        env_collect(&env);
        for (int g = 0; g < GROUPS; g++) {
            if (!sizes[g][0])
                continue;
            double *want = env_doubles(&env, buf_count(&c[g]));
            product(buf_doubles(&env, &a[g]), buf_doubles(&env, &b[g]), want, sizes[g],
                    a[g].shape[1], b[g].shape[1], c[g].shape[1]);
            buf_check(&env, &c[g], env_text(&env, "group %d", g), want, NULL);
        }
    }
    env_close(&env);
}
END_TEST

START_TEST(experts)
{
    enum { N = 72, K = 80, ROWS = 270 };
    static const int32_t begins[EXPERTS + 1] = {0, 64, 64, 205, 206, ROWS};
    Env env = env_open_maps();
    int32_t *first = env_alloc(&env, sizeof begins);
    memcpy(first, begins, sizeof begins);
    Buf x = integers(&env, ROWS, K), w = integers(&env, EXPERTS * N, K);
    Buf y = buf_poison(&env, SDC_FP16, 8, DIMS(ROWS, N));
    if (LAUNCH(&env, "experts", sdc_grid(3, 2, EXPERTS),
               "BLOCK_M=64 BLOCK_N=64 BLOCK_K=32", buf_arg(&x), buf_arg(&w), buf_arg(&y),
               sdc_ptr(SDC_I32, first), sdc_int(N), sdc_int(K), sdc_int(x.strides[0]),
               sdc_int(w.strides[0]), sdc_int(y.strides[0]))) {
        double *want = env_doubles(&env, ROWS * N);
        const double *dx = buf_doubles(&env, &x), *dw = buf_doubles(&env, &w);
        for (int e = 0; e < EXPERTS; e++) {
            const int size[3] = {begins[e + 1] - begins[e], N, K};
            product(dx + begins[e] * K, dw + e * N * K, want + begins[e] * N, size, K, K,
                    N);
        }
        buf_check(&env, &y, "experts", want, NULL);
    }
    env_close(&env);
}
END_TEST

START_TEST(ragged)
{
    enum { D = 64, ROWS = 411 };
    static const int32_t begins[EXPERTS + 1] = {0, 128, 128, 131, 331, ROWS};
    Env env = env_open_maps();
    int32_t *first = env_alloc(&env, sizeof begins);
    memcpy(first, begins, sizeof begins);
    Buf q = integers(&env, ROWS, D), k = integers(&env, ROWS, D);
    Buf v = integers(&env, ROWS, D), o = buf_poison(&env, SDC_FP32, 8, DIMS(ROWS, D));
    const char *binds = env_text(&env, "D=64 BLOCK_M=64 BLOCK_N=32 ROLES=%d", _i);
    if (LAUNCH(&env, "ragged", sdc_grid(4, EXPERTS, 1), binds, buf_arg(&q), buf_arg(&k),
               buf_arg(&v), buf_arg(&o), sdc_ptr(SDC_I32, first), sdc_int(q.strides[0]),
               sdc_int(o.strides[0]))) {
        double *want = env_doubles(&env, ROWS * D);
        const double *x = buf_doubles(&env, &q), *y = buf_doubles(&env, &k);
        const double *z = buf_doubles(&env, &v);
        for (int e = 0; e < EXPERTS; e++)
            for (int m = begins[e]; m < begins[e + 1]; m++)
                for (int j = begins[e]; j < begins[e + 1]; j++) {
                    double s = 0;
                    for (int d = 0; d < D; d++)
                        s += x[m * D + d] * y[j * D + d];
                    for (int d = 0; d < D; d++)
                        want[m * D + d] += s * z[j * D + d];
                }
        buf_check(&env, &o, binds, want, NULL);
    }
    env_close(&env);
}
END_TEST

START_TEST(picked)
{
    enum { ROWS = 70, N = 72, K = 80, PICKS = 5 };
    static const int32_t picks[PICKS] = {2, 0, -1, EXPERTS, EXPERTS - 1};
    const int size[3] = {ROWS, N, K};
    Env env = env_open_maps();
    int32_t *list = env_alloc(&env, sizeof picks);
    memcpy(list, picks, sizeof picks);
    Buf x = integers(&env, ROWS, K), w = integers(&env, EXPERTS * N, K);
    Buf y = buf_poison(&env, SDC_FP16, 8, DIMS(PICKS, ROWS, N));
    if (LAUNCH(&env, "picked", sdc_grid(2, 2, PICKS), "BLOCK_M=64 BLOCK_N=64 BLOCK_K=32",
               buf_arg(&x), buf_arg(&w), buf_arg(&y), sdc_ptr(SDC_I32, list),
               sdc_int(ROWS), sdc_int(N), sdc_int(K), sdc_int(EXPERTS),
               sdc_int(x.strides[0]), sdc_int(w.strides[0]), sdc_int(N * w.strides[0]),
               sdc_int(y.strides[1]), sdc_int(y.strides[0]))) {
        double *want = env_doubles(&env, PICKS * ROWS * N);
        const double *dx = buf_doubles(&env, &x), *dw = buf_doubles(&env, &w);
        for (int i = 0; i < PICKS; i++)
            if (picks[i] >= 0 && picks[i] < EXPERTS)
                product(dx, dw + picks[i] * N * K, want + i * ROWS * N, size, K, K, N);
        buf_check(&env, &y, "picked", want, NULL);
    }
    env_close(&env);
}
END_TEST

int
main(void)
{
    Suite *suite = suite_create("tensor_maps");
    TCase *tc = tcase_create("tensor_maps");
    tcase_set_timeout(tc, 600);
    tcase_add_loop_test(tc, grouped, 1, 4);
    tcase_add_test(tc, experts);
    tcase_add_loop_test(tc, ragged, 0, 2);
    tcase_add_test(tc, picked);
    suite_add_tcase(suite, tc);
    return suite_finish("tensor_maps", suite);
}
