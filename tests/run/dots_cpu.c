/* tl.dot on every kind of processor that this one can stand for: blocks of sums by
   vectors of 16, 32 and 64 bytes, with rows left over and without, products of pairs and
   fours of elements, tiles of AMX; operands as they are multiplied and transposed. */
#include "ir/base/util.h"
#include "runtime/rt/sdcrt.h"
#include "tests/run/support/harness.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const cpus[] = {"x86-64",     "x86-64-v3",      "x86-64-v4",
                                   "cooperlake", "sapphirerapids", "native"};

static bool
runs(const char *cpu)
{
    int level = sdcrt_cpu_host_level();
#ifdef __x86_64__
    if (strcmp(cpu, "cooperlake") == 0)
        return level >= 4 && __builtin_cpu_supports("avx512bf16") &&
               __builtin_cpu_supports("avx512vnni");
#endif
    return sdcrt_cpu_level(cpu) <= level;
}

/* With code for `cpu`; false: this is a GPU, or a processor that does not run it. */
static bool
opened(Env *env, const char *cpu)
{
    char path[4096];
    if (!runs(cpu))
        return false;
    snprintf(path, sizeof path, "%s/tests/run/dots.tk", test_root());
    setenv("SDC_TEST_CPU", cpu, 1);
    *env = env_open_file(path);
    env->at_end = false;
    bool gpu = env->cuda != NULL;
    if (gpu)
        env_close(env);
    return !gpu;
}

/* M, N, and K in multiples of 32 bytes, of which a dot has one at least. */
static const int shapes[][3] = {{1, 64, 2},   {2, 4, 1},    {4, 8, 4},   {8, 16, 1},
                                {16, 32, 8},  {32, 16, 2},  {64, 64, 1}, {128, 128, 4},
                                {16, 2, 2},   {64, 8, 1},   {32, 1, 2},  {256, 32, 1},
                                {4, 128, 16}, {32, 64, 2},  {2, 2, 1},    {1, 64, 4},
                                {1, 32, 8},   {2, 64, 2},   {1, 128, 2},  {1, 256, 16}};
static const SdcDtype types[] = {SDC_FP32, SDC_FP64, SDC_FP16, SDC_BF16, SDC_I8};

static void
run_case(Env *env, SdcDtype type, const int *shape, bool turn_x, bool turn_y)
{
    static const char *const truth[] = {"False", "True"};
    int64_t M = shape[0], N = shape[1], K = shape[2] * 32 / sdc_dtype_size(type);
    const char *binds =
        env_text(env,
                 "M=%d N=%d K=%d PRECISION='ieee' TURN_X=%s TURN_Y=%s WORK=False "
                 "num_warps=1",
                 shape[0], shape[1], (int)K, truth[turn_x], truth[turn_y]);
    bool exact = type == SDC_I8;
    SdcDtype result = exact ? SDC_I32 : type == SDC_FP64 ? SDC_FP64 : SDC_FP32;
    Buf x = buf_random(env, type, 0, DIMS(turn_x ? K : M, turn_x ? M : K));
    Buf y = buf_random(env, type, 0, DIMS(turn_y ? N : K, turn_y ? K : N));
    Buf z = buf_poison(env, result, 0, DIMS(M, N));
    LAUNCH(env, "product", sdc_grid(1, 1, 1), binds, buf_arg(&x), buf_arg(&y),
           buf_arg(&z));
    Buf xs = turn_x ? buf_swap(x, 0, 1) : x, ys = turn_y ? buf_swap(y, 0, 1) : y;
    double *want = env_doubles(env, M * N), *bound = env_doubles(env, M * N);
    ref_matmul(M, N, K, buf_doubles(env, &xs), buf_doubles(env, &ys), NULL, REF_NONE,
               REF_U32 * (double)(K + 8), want, bound);
    for (int64_t i = 0; i < M * N; i++)
        bound[i] *= exact ? 0 : type == SDC_FP64 ? 0x1p-28 : 1;
    buf_check(env, &z, binds, want, bound);
}

START_TEST(products)
{
    const char *cpu = cpus[_i / COUNT_OF(types)];
    Env env;
    if (!opened(&env, cpu))
        return;
    for (int i = 0; i < COUNT_OF(shapes); i++)
        run_case(&env, types[_i % COUNT_OF(types)], shapes[i], i & 1, i & 2);
    env_close(&env);
}
END_TEST

static void
stored_case(Env *env, SdcDtype type, const int *shape, int64_t rows, bool turn)
{
    int64_t M = shape[0], N = shape[1], K = shape[2];
    const char *binds = env_text(env, "M=%d N=%d K=%d TURN=%s", shape[0], shape[1],
                                 shape[2], turn ? "True" : "False");
    Buf x = buf_random(env, type, 0, DIMS(M, 2 * K));
    Buf y = buf_random(env, type, 0, DIMS(turn ? N : 2 * K, turn ? 2 * K : N));
    Buf z = buf_poison(env, SDC_FP32, 0, DIMS(rows, N));
    LAUNCH(env, "stored", sdc_grid(1, 1, 1), binds, buf_arg(&x), buf_arg(&y),
           buf_arg(&z), sdc_int(rows));
    Buf ys = turn ? buf_swap(y, 0, 1) : y;
    double *want = env_doubles(env, rows * N), *bound = env_doubles(env, rows * N);
    ref_matmul(rows, N, 2 * K, buf_doubles(env, &x), buf_doubles(env, &ys), NULL,
               REF_NONE, REF_U32 * (double)(2 * K + 8), want, bound);
    buf_check(env, &z, env_text(env, "%s, %d rows", binds, (int)rows), want, bound);
}

/* One row, as of a decoder, and a few. */
START_TEST(some_rows)
{
    static const int sizes[][3] = {{16, 64, 32}, {4, 16, 64}, {16, 4, 16}, {32, 32, 16}};
    static const SdcDtype kinds[] = {SDC_FP32, SDC_FP16, SDC_BF16};
    Env env;
    if (!opened(&env, cpus[_i]))
        return;
    for (int i = 0; i < COUNT_OF(sizes); i++)
        for (int k = 0; k < COUNT_OF(kinds); k++)
            for (int rows = 1; rows <= 3; rows++)
                stored_case(&env, kinds[k], sizes[i], rows, (i + k + rows) & 1);
    for (int i = 0; i < COUNT_OF(sizes); i++)
        for (int turn = 0; turn < 2; turn++)
            stored_case(&env, SDC_FP32, sizes[i], 1, turn);
    env_close(&env);
}
END_TEST

/* Bytes at the ends of their range: what is added to make them positive must come off. */
START_TEST(ends)
{
    Env env;
    if (!opened(&env, cpus[_i]))
        return;
    enum { M = 16, N = 32, K = 64 };
    Buf x = buf_random(&env, SDC_I8, 0, DIMS(M, K));
    Buf y = buf_random(&env, SDC_I8, 0, DIMS(K, N));
    Buf z = buf_poison(&env, SDC_I32, 0, DIMS(M, N));
    for (int i = 0; i < M * K; i++)
        ((int8_t *)x.data)[i] = i % 3 ? -128 : 127;
    for (int i = 0; i < N * K; i++)
        ((int8_t *)y.data)[i] = i % 5 ? -128 : 127;
    LAUNCH(&env, "product", sdc_grid(1, 1, 1),
           "M=16 N=32 K=64 PRECISION='ieee' TURN_X=False TURN_Y=False WORK=False",
           buf_arg(&x), buf_arg(&y), buf_arg(&z));
    double *want = env_doubles(&env, M * N), *bound = env_doubles(&env, M * N);
    ref_matmul(M, N, K, buf_doubles(&env, &x), buf_doubles(&env, &y), NULL, REF_NONE, 0,
               want, bound);
    memset(bound, 0, sizeof *bound * M * N);
    buf_check(&env, &z, "ends", want, bound);
    env_close(&env);
}
END_TEST

/* Subnormal numbers of bf16, which the units of some processors take for zero: in one row
   of x, or in one column of y, whose panels alone go another way. */
START_TEST(subnormal)
{
    Env env;
    if (!opened(&env, cpus[_i / 2]))
        return;
    enum { M = 32, N = 64, K = 64 };
    Buf x = buf_random(&env, SDC_BF16, 0, DIMS(M, K));
    Buf y = buf_random(&env, SDC_BF16, 0, DIMS(K, N));
    Buf z = buf_poison(&env, SDC_FP32, 0, DIMS(M, N));
    for (int k = 0; k < K; k++)
        if (_i % 2)
            buf_set(&y, k * N + 40, k % 3 ? 0x1p-130 : -0x1p-133);
        else
            buf_set(&x, 7 * K + k, k % 3 ? 0x1p-130 : -0x1p-133);
    for (int i = 0; i < N * K; i++)
        if (_i % 2 == 0)
            buf_set(&y, i, i % 5 ? 0x1p100 : -0x1p90);
    LAUNCH(&env, "product", sdc_grid(1, 1, 1),
           "M=32 N=64 K=64 PRECISION='ieee' TURN_X=False TURN_Y=False WORK=False",
           buf_arg(&x), buf_arg(&y), buf_arg(&z));
    double *want = env_doubles(&env, M * N), *bound = env_doubles(&env, M * N);
    ref_matmul(M, N, K, buf_doubles(&env, &x), buf_doubles(&env, &y), NULL, REF_NONE,
               REF_U32 * (K + 8), want, bound);
    for (int i = 0; i < M * N; i++)
        bound[i] += K * 0x1p-149;
    buf_check(&env, &z, "subnormal", want, bound);
    env_close(&env);
}
END_TEST

/* Steps that are multiplied several at once: whole tiles and ends of them, the last few
   steps, and subnormal numbers in one step. */
static void
steps_case(Env *env, SdcDtype type, const int *size, bool turn, bool rare)
{
    int64_t M = size[0], N = size[1], K = size[2];
    SdcDtype kind = type == SDC_I8 ? SDC_I32 : SDC_FP32;
    const char *binds =
        env_text(env, "TM=32 TN=64 TK=32 TURN=%s KIND=%s", turn ? "True" : "False",
                 type == SDC_I8 ? "tl.int32" : "tl.float32");
    Buf x = buf_random(env, type, 0, DIMS(M, K));
    Buf y = buf_random(env, type, 0, DIMS(turn ? N : K, turn ? K : N));
    Buf z = buf_poison(env, kind, 0, DIMS(M, N));
    for (int64_t m = 0; m < M && rare; m++)
        buf_set(&x, m * K + 40, m % 3 ? 0x1p-130 : -0x1p-133);
    for (int64_t n = 0; n < N && rare; n++)
        buf_set(&y, turn ? n * K + 40 : 40 * N + n, 0x1p120);
    LAUNCH(env, "in_steps", sdc_grid((M + 31) / 32, (N + 63) / 64, 1), binds, buf_arg(&x),
           buf_arg(&y), buf_arg(&z), sdc_int(M), sdc_int(N), sdc_int(K));
    Buf ys = turn ? buf_swap(y, 0, 1) : y;
    double *want = env_doubles(env, M * N), *bound = env_doubles(env, M * N);
    ref_matmul(M, N, K, buf_doubles(env, &x), buf_doubles(env, &ys), NULL, REF_NONE,
               type == SDC_I8 ? 0 : REF_U32 * (double)(K + 8), want, bound);
    buf_check(env, &z, env_text(env, "steps, %s, K=%d", binds, (int)K), want, bound);
}

START_TEST(in_steps)
{
    static const int sizes[][3] = {
        {64, 64, 352}, {33, 70, 96}, {1, 64, 160}, {20, 9, 61}};
    static const SdcDtype kinds[] = {SDC_FP32, SDC_FP16, SDC_BF16, SDC_I8};
    Env env;
    if (!opened(&env, cpus[_i]))
        return;
    for (int i = 0; i < COUNT_OF(sizes); i++)
        for (int k = 0; k < COUNT_OF(kinds); k++)
            for (int turn = 0; turn < 2; turn++)
                steps_case(&env, kinds[k], sizes[i], turn,
                           kinds[k] == SDC_BF16 && sizes[i][2] > 64);
    env_close(&env);
}
END_TEST

int
main(void)
{
    Suite *s = suite_create("dots_cpu");
    TCase *tc = tcase_create("all");
    tcase_add_loop_test(tc, products, 0, COUNT_OF(cpus) * COUNT_OF(types));
    tcase_add_loop_test(tc, some_rows, 0, COUNT_OF(cpus));
    tcase_add_loop_test(tc, ends, 0, COUNT_OF(cpus));
    tcase_add_loop_test(tc, in_steps, 0, COUNT_OF(cpus));
    tcase_add_loop_test(tc, subnormal, 0, 2 * COUNT_OF(cpus));
    suite_add_tcase(s, tc);
    return suite_finish("dots_cpu", s);
}
