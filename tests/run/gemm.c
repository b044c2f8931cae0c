/* The dense matmul against its reference, in four spellings with every
   epilogue. */
#include "tests/run/support/harness.h"

#include <stdio.h>
#include <stdlib.h>

static const SdcDtype floats[] = {SDC_FP32, SDC_FP16, SDC_BF16};
enum { NFLOATS = 3 };

typedef struct Shape {
    int64_t M, N, K;
} Shape;

static const char *const act_names[] = {"none", "relu", "silu", "gelu"};

static const char *
case_name(Env *env, const char *kernel, SdcDtype t, const Shape *s)
{
    return env_text(env, "%s %s %lldx%lldx%lld", kernel, sdc_dtype_name(t),
                    (long long)s->M, (long long)s->N, (long long)s->K);
}

/* b is given as [N, K] in memory when `turned`. */
static void
matmul_case(Env *env, const char *kernel, SdcDtype t, SdcDtype result, const Shape *s,
            RefAct act, bool turned)
{
    Buf a = buf_random(env, t, 1, DIMS(s->M, s->K));
    Buf b = turned ? buf_swap(buf_random(env, t, 0, DIMS(s->N, s->K)), 0, 1)
                   : buf_random(env, t, 0, DIMS(s->K, s->N));
    Buf bias = buf_random(env, t, 0, DIMS(s->N));
    Buf c = buf_poison(env, result, 3, DIMS(s->M, s->N));
    bool has_bias = act != REF_NONE;
    double *want = env_doubles(env, s->M * s->N), *bound = env_doubles(env, s->M * s->N);
    ref_matmul(s->M, s->N, s->K, buf_doubles(env, &a), buf_doubles(env, &b),
               has_bias ? buf_doubles(env, &bias) : NULL, act, dot_unit(env, t), want,
               bound);
    const char *binds =
        env_text(env, "BLOCK_M=32 BLOCK_N=32 BLOCK_K=16 GROUP_M=2 HAS_BIAS=%s ACT='%s'",
                 has_bias ? "True" : "False", act_names[act]);
    int64_t tiles = ceil_div(s->M, 32) * ceil_div(s->N, 32);
    LAUNCH(env, kernel, sdc_grid(tiles, 1, 1), binds, buf_arg(&a), buf_arg(&b),
           buf_arg(&c), buf_arg(&bias), sdc_int(s->M), sdc_int(s->N), sdc_int(s->K),
           sdc_int(a.strides[0]), sdc_int(a.strides[1]), sdc_int(b.strides[0]),
           sdc_int(b.strides[1]), sdc_int(c.strides[0]), sdc_int(c.strides[1]));
    buf_check(env, &c, case_name(env, kernel, t, s), want, bound);
}

START_TEST(matmul)
{
    static const Shape shapes[] = {{1, 1, 1}, {70, 45, 33}, {64, 64, 64}, {33, 100, 7}};
    Env env = env_open("matmul");
    for (int t = 0; t < NFLOATS; t++)
        for (int s = 0; s < 4; s++) {
            env.at_end = (t + s) % 2;
            matmul_case(&env, "matmul", floats[t], floats[t], &shapes[s], (RefAct)s,
                        true);
            matmul_case(&env, "matmul_block", floats[t], floats[t], &shapes[s],
                        (RefAct)((s + 2) % 4), false);
        }
    matmul_case(&env, "matmul", SDC_FP16, SDC_FP32, &shapes[1], REF_NONE, false);
    env_close(&env);
}
END_TEST

/* By descriptors: rows and bases on 16 bytes, as these ask. `tile` x `tile` results in
   steps of `step`; `programs`: 0 one for each tile, else so many take turns. */
static void
desc_case(Env *env, const char *kernel, SdcDtype t, SdcDtype result, const Shape *s,
          int tile, int step, int64_t programs)
{
    Buf a = buf_random(env, t, 8, DIMS(s->M, s->K));
    Buf b = buf_random(env, t, 0, DIMS(s->K, s->N));
    Buf c = buf_poison(env, result, 8, DIMS(s->M, s->N));
    double *want = env_doubles(env, s->M * s->N);
    double *bound = env_doubles(env, s->M * s->N);
    ref_matmul(s->M, s->N, s->K, buf_doubles(env, &a), buf_doubles(env, &b), NULL,
               REF_NONE, dot_unit(env, t), want, bound);
    int64_t tiles = ceil_div(s->M, tile) * ceil_div(s->N, tile);
    const char *binds =
        env_text(env, "BLOCK_M=%d BLOCK_N=%d BLOCK_K=%d", tile, tile, step);
    LAUNCH(env, kernel, sdc_grid(programs ? programs : tiles, 1, 1), binds, buf_arg(&a),
           buf_arg(&b), buf_arg(&c), sdc_none(), sdc_int(s->M), sdc_int(s->N),
           sdc_int(s->K), sdc_int(a.strides[0]), sdc_int(b.strides[0]),
           sdc_int(c.strides[0]));
    buf_check(env, &c, case_name(env, kernel, t, s), want, bound);
}

START_TEST(matmul_desc)
{
    static const Shape shapes[] = {{70, 48, 40}, {32, 32, 16}, {5, 8, 104}};
    Env env = env_open("matmul");
    env.at_end = false;
    for (int t = 0; t < NFLOATS; t++)
        for (int i = 0; i < 3; i++) {
            desc_case(&env, "matmul_desc", floats[t], SDC_FP32, &shapes[i], 32, 16, 0);
            desc_case(&env, "matmul_persistent", floats[t], SDC_FP32, &shapes[i], 32, 16,
                      1 + i);
        }
    env_close(&env);
}
END_TEST

/* Tiles that warpgroups multiply, where there are any: sums of few and of many steps, of
   which none leaves the ring of stages where it began. */
START_TEST(matmul_large)
{
    static const Shape shapes[] = {
        {192, 128, 96}, {200, 136, 472}, {64, 192, 32}, {72, 64, 1000}};
    Env env = env_open("matmul");
    env.at_end = false;
    for (int t = 0; t < NFLOATS; t++)
        for (int i = 0; i < 4; i++) {
            desc_case(&env, "matmul_desc", floats[t], floats[t], &shapes[i], 64, 32, 0);
            for (int64_t n = 1; n <= 5; n += 2)
                desc_case(&env, "matmul_persistent", floats[t], floats[t], &shapes[i], 64,
                          32, n);
        }
    env_close(&env);
}
END_TEST

/* Rows that wrap around: sizes that tiles divide, where they run on, and others. */
START_TEST(wrapping)
{
    static const Shape shapes[] = {{128, 192, 96}, {200, 136, 72}, {128, 72, 40}};
    char path[4096];
    snprintf(path, sizeof path, "%s/tests/run/wrapping_matmul.tk", test_root());
    Env env = env_open_file(path);
    env.at_end = false;
    for (int t = 0; t < NFLOATS; t++)
        for (int i = 0; i < 3; i++) {
            const Shape *s = &shapes[i];
            Buf a = buf_random(&env, floats[t], 0, DIMS(s->M, s->K));
            Buf b = buf_random(&env, floats[t], 0, DIMS(s->K, s->N));
            Buf c = buf_poison(&env, floats[t], 8, DIMS(s->M, s->N));
            double *want = env_doubles(&env, s->M * s->N);
            double *bound = env_doubles(&env, s->M * s->N);
            ref_matmul(s->M, s->N, s->K, buf_doubles(&env, &a), buf_doubles(&env, &b),
                       NULL, REF_NONE, dot_unit(&env, floats[t]), want, bound);
            int64_t tiles = ceil_div(s->M, 64) * ceil_div(s->N, 64);
            LAUNCH(&env, "wrapping_matmul", sdc_grid(tiles, 1, 1),
                   "BLOCK_M=64 BLOCK_N=64 BLOCK_K=32", buf_arg(&a), buf_arg(&b),
                   buf_arg(&c), sdc_int(s->M), sdc_int(s->N), sdc_int(s->K),
                   sdc_int(a.strides[0]), sdc_int(1), sdc_int(b.strides[0]), sdc_int(1),
                   sdc_int(c.strides[0]), sdc_int(1));
            buf_check(&env, &c, case_name(&env, "wrapping_matmul", floats[t], s), want,
                      bound);
        }
    env_close(&env);
}
END_TEST

/* Rows that begin off the cache's lines: programs run in clusters of two, where there are
   any, and what both read comes once. Rows of tiles that pair, and that do not; an odd
   number of tiles; another order of programs; neighbours in turns. */
static void
pointer_case(Env *env, SdcDtype t, const Shape *s, int64_t rows, const char *binds,
             bool transposed)
{
    Buf a = transposed ? buf_random(env, t, 0, DIMS(s->K, s->M))
                   : buf_random(env, t, 0, DIMS(s->M, s->K));
    Buf b = transposed ? buf_random(env, t, 0, DIMS(s->N, s->K))
                   : buf_random(env, t, 0, DIMS(s->K, s->N));
    Buf c = buf_poison(env, t, 8, DIMS(s->M, s->N));
    int64_t row[2] = {a.strides[0], b.strides[0]};
    double *want = env_doubles(env, s->M * s->N);
    double *bound = env_doubles(env, s->M * s->N);
    double *x = buf_doubles(env, &a), *y = buf_doubles(env, &b);
    if (transposed) {
        double *xt = env_doubles(env, s->M * s->K), *yt = env_doubles(env, s->K * s->N);
        for (int64_t k = 0; k < s->K; k++) {
            for (int64_t m = 0; m < s->M; m++)
                xt[m * s->K + k] = x[k * s->M + m];
            for (int64_t n = 0; n < s->N; n++)
                yt[k * s->N + n] = y[n * s->K + k];
        }
        x = xt, y = yt;
    }
    ref_matmul(s->M, s->N, s->K, x, y, NULL, REF_NONE, dot_unit(env, t), want, bound);
    LAUNCH(env, "matmul", sdc_grid(ceil_div(s->M, rows) * ceil_div(s->N, 128), 1, 1),
           binds, buf_arg(&a), buf_arg(&b), buf_arg(&c), sdc_none(), sdc_int(s->M),
           sdc_int(s->N), sdc_int(s->K), sdc_int(transposed ? 1 : row[0]),
           sdc_int(transposed ? row[0] : 1), sdc_int(transposed ? 1 : row[1]),
           sdc_int(transposed ? row[1] : 1), sdc_int(c.strides[0]), sdc_int(1));
    buf_check(env, &c, case_name(env, "clusters", t, s), want, bound);
}

START_TEST(clusters)
{
    static const Shape shapes[] = {{1000, 392, 136},
                                   {392, 264, 328},
                                   {300, 520, 200},
                                   {1160, 72, 264},
                                   {128, 200, 72}};
    static const char common[] = "BLOCK_M=128 BLOCK_N=128 BLOCK_K=64 num_warps=8";
    Env env = env_open("matmul");
    env.at_end = false;
    for (int i = 0; i < 5; i++)
        for (int transposed = 0; transposed < 2; transposed++)
            for (int rows = 1; rows <= 8; rows *= 8)
                pointer_case(&env, i % 2 ? SDC_FP16 : SDC_BF16, &shapes[i], 128,
                             env_text(&env, "%s GROUP_M=%d", common, rows), transposed);
    env_close(&env);
}
END_TEST

/* Tiles of fp32 that take more than half of the shared memory leave it in pieces: of
   columns, or of rows where the matmul is computed transposed. */
START_TEST(pieces)
{
    static const Shape shapes[] = {{1100, 392, 72}, {260, 1000, 100}};
    static const char binds[] = "BLOCK_M=256 BLOCK_N=128 BLOCK_K=32 num_warps=8";
    Env env = env_open("matmul");
    env.at_end = false;
    for (int i = 0; i < 2; i++)
        for (int transposed = 0; transposed < 2; transposed++)
            pointer_case(&env, SDC_FP32, &shapes[i], 256, binds, transposed);
    env_close(&env);
}
END_TEST

/* A tile's sums do not begin with those of the tile before it, even where it adds up
   nothing; warpgroups store their rows on their own. */
START_TEST(steps)
{
    enum { M = 900, N = 128, K = 256, BLOCK = 128, STEP = 64, TILES = 8 };
    static const int32_t counts[TILES] = {2, 0, 3, 1, 0, 0, 4, 2};
    char path[4096];
    snprintf(path, sizeof path, "%s/tests/run/steps.tk", test_root());
    Env env = env_open_file(path);
    env.at_end = false;
    int32_t *list = env_alloc(&env, sizeof counts);
    memcpy(list, counts, sizeof counts);
    Buf a = buf_random(&env, SDC_FP16, 0, DIMS(M, K));
    Buf b = buf_random(&env, SDC_FP16, 0, DIMS(K, N));
    Buf c = buf_poison(&env, SDC_FP16, 8, DIMS(M, N));
    double *want = env_doubles(&env, M * N), *bound = env_doubles(&env, M * N);
    const double *x = buf_doubles(&env, &a), *y = buf_doubles(&env, &b);
    for (int t = 0; t < TILES; t++) {
        int64_t rows = t < TILES - 1 ? BLOCK : M - t * BLOCK, depth = counts[t] * STEP;
        double *part = env_doubles(&env, rows * (depth + 1));
        for (int64_t i = 0; i < rows; i++)
            for (int64_t k = 0; k < depth; k++)
                part[i * depth + k] = x[(t * BLOCK + i) * K + k];
        ref_matmul(rows, N, depth, part, y, NULL, REF_NONE, dot_unit(&env, SDC_FP16),
                   want + t * BLOCK * N, bound + t * BLOCK * N);
    }
    for (int programs = 1; programs <= 3; programs++) {
        const char *binds = "BLOCK_M=128 BLOCK_N=128 BLOCK_K=64 num_warps=8";
        LAUNCH(&env, "steps", sdc_grid(programs, 1, 1), binds, buf_arg(&a), buf_arg(&b),
               buf_arg(&c), sdc_ptr(SDC_I32, list), sdc_int(M), sdc_int(N), sdc_int(K),
               sdc_int(a.strides[0]), sdc_int(b.strides[0]), sdc_int(c.strides[0]));
        buf_check(&env, &c, "steps", want, bound);
    }
    env_close(&env);
}
END_TEST

int
main(void)
{
    setenv("SIM_PROCESSORS", "6", 0); /* programs take turns, there too */
    return RUN_TESTS("gemm", matmul, matmul_desc, matmul_large, wrapping, clusters,
                     pieces, steps);
}
