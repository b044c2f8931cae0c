/* tl.dot over types, precisions, shapes and warps: dots by threads, by mma.sync and
   by several of its matmuls of shorter numbers, of one matrix and of many. */
#include "tests/run/support/harness.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* What a precision may be off in a matmul before it is summed: of each operand 10 bits
   are kept, 10 of the rest, and the matmul of both rests is left out; 8 + 8 and
   8 + 8 + 8 bits. */
static double
unit_of_precision(const Env *env, SdcDtype t, const char *precision)
{
    if (t == SDC_FP64)
        return 0;
    if (!env->cuda || t != SDC_FP32 || strcmp(precision, "ieee") == 0)
        return 0;
    if (strcmp(precision, "tf32x3") == 0)
        return 3 * 0x1p-20;
    if (strcmp(precision, "bf16x3") == 0)
        return 3 * 0x1p-18;
    if (strcmp(precision, "bf16x6") == 0)
        return 4 * 0x1p-26;
    return dot_unit(env, t);
}

/* The reference allows sums in fp32: those in fp64 are as much better. */
static void
reference(const Env *env, SdcDtype t, const char *precision, int64_t M, int64_t N,
          int64_t K, const double *x, const double *y, const double *bias, double *want,
          double *bound)
{
    double unit = unit_of_precision(env, t, precision);
    int64_t sums = strcmp(precision, "bf16x6") == 0 ? 6 * K : 3 * K;
    ref_matmul(M, N, K, x, y, bias, REF_NONE, unit + REF_U32 * (double)sums, want, bound);
    for (int64_t i = 0; t == SDC_FP64 && i < M * N; i++)
        bound[i] *= 0x1p-28;
}

typedef struct Case {
    SdcDtype type, result;
    const char *precision;
    int B, M, N, K, warps;
    const char *how; /* x, y: it lies turned in memory; w: work on both before */
} Case;

static bool
is(const Case *c, char how)
{
    return strchr(c->how, how) != NULL;
}

static const char *
binds_of(Env *env, const Case *c)
{
    static const char *const truth[] = {"False", "True"};
    return env_text(
        env, "M=%d N=%d K=%d PRECISION='%s' num_warps=%d%s%s%s%s%s%s", c->M, c->N, c->K,
        c->precision, c->warps, c->B ? "" : " TURN_X=", c->B ? "" : truth[is(c, 'x')],
        c->B ? env_text(env, " B=%d TURN=", c->B) : " TURN_Y=", truth[is(c, 'y')],
        c->B ? "" : " WORK=", c->B ? "" : truth[is(c, 'w')]);
}

static void
run_case(const Case *c)
{
    char path[4096];
    snprintf(path, sizeof path, "%s/tests/run/dots.tk", test_root());
    Env env = env_open_file(path);
    env.at_end = false;
    int64_t B = c->B ? c->B : 1, M = c->M, N = c->N, K = c->K;
    Buf x = buf_random(&env, c->type, 0, DIMS(B, is(c, 'x') ? K : M, is(c, 'x') ? M : K));
    Buf y = buf_random(&env, c->type, 0, DIMS(B, is(c, 'y') ? N : K, is(c, 'y') ? K : N));
    Buf z = buf_poison(&env, c->result, 0, DIMS(B, M, N));
    LAUNCH(&env, c->B ? "batched" : "product", sdc_grid(1, 1, 1), binds_of(&env, c),
           buf_arg(&x), buf_arg(&y), buf_arg(&z));
    Buf xs = is(c, 'x') ? buf_swap(x, 1, 2) : x, ys = is(c, 'y') ? buf_swap(y, 1, 2) : y;
    double *xd = buf_doubles(&env, &xs), *yd = buf_doubles(&env, &ys);
    for (int64_t i = 0; is(c, 'w') && i < M * K; i++)
        xd[i] += xd[i];
    for (int64_t i = K / 2 * N; is(c, 'w') && i < K * N; i++)
        yd[i] = 0;
    double *want = env_doubles(&env, B * M * N), *bound = env_doubles(&env, B * M * N);
    for (int64_t b = 0; b < B; b++)
        reference(&env, c->type, c->precision, M, N, K, xd + b * M * K, yd + b * K * N,
                  NULL, want + b * M * N, bound + b * M * N);
    if (c->type == SDC_I8)
        memset(bound, 0, sizeof(double) * (size_t)(B * M * N));
    buf_check(&env, &z, binds_of(&env, c), want, bound);
    env_close(&env);
}

#define FP32(precision, ...)                                                             \
    {                                                                                    \
        SDC_FP32, SDC_FP32, precision, __VA_ARGS__                                       \
    }

/* Matrices: M, N, K, warps. */
static const Case matrices[] = {
    FP32("ieee", 0, 64, 64, 64, 1, ""),
    FP32("ieee", 0, 64, 64, 64, 4, ""),
    FP32("ieee", 0, 64, 64, 64, 4, "xy"),
    FP32("ieee", 0, 16, 16, 16, 4, ""),
    FP32("ieee", 0, 128, 32, 16, 1, "x"),
    FP32("ieee", 0, 16, 128, 32, 2, "y"),
    FP32("ieee", 0, 32, 32, 128, 4, "w"),
    FP32("ieee", 0, 128, 128, 16, 1, ""),
    FP32("ieee", 0, 2, 4, 32, 4, ""),
    FP32("tf32", 0, 32, 32, 32, 4, ""),
    FP32("tf32", 0, 64, 8, 8, 4, ""), /* eight columns: a buffer of one core matrix */
    FP32("tf32", 0, 128, 8, 32, 8, "y"),
    FP32("tf32x3", 0, 64, 64, 32, 4, ""),
    FP32("tf32x3", 0, 16, 16, 16, 1, "xy"),
    FP32("tf32x3", 0, 32, 64, 128, 2, "w"),
    FP32("tf32x3", 0, 64, 64, 32, 4, "x"),
    FP32("bf16x3", 0, 64, 64, 32, 4, ""),
    FP32("bf16x3", 0, 32, 16, 64, 1, "xy"),
    FP32("bf16x3", 0, 16, 64, 16, 4, "yw"),
    FP32("bf16x6", 0, 64, 64, 32, 4, ""),
    FP32("bf16x6", 0, 32, 16, 64, 1, "xy"),
    FP32("bf16x6", 0, 64, 16, 16, 2, "xw"),
    FP32("bf16x6", 0, 16, 16, 8, 1, ""),
    {SDC_FP64, SDC_FP64, "ieee", 0, 32, 32, 32, 4, ""},
    {SDC_FP64, SDC_FP64, "ieee", 0, 16, 16, 16, 1, "xy"},
    {SDC_FP64, SDC_FP64, "ieee", 0, 64, 32, 64, 4, "yw"},
    {SDC_FP64, SDC_FP64, "ieee", 0, 8, 8, 16, 1, ""},
    {SDC_I8, SDC_FP32, "ieee", 0, 32, 32, 64, 4, ""},
    {SDC_I8, SDC_FP32, "ieee", 0, 64, 64, 32, 1, "y"},
    {SDC_I8, SDC_FP32, "ieee", 0, 8, 8, 64, 2, ""},
    {SDC_FP16, SDC_FP32, "ieee", 0, 8, 8, 32, 4, ""},
    {SDC_FP16, SDC_FP32, "ieee", 0, 128, 256, 16, 1, ""},
    {SDC_FP16, SDC_FP32, "ieee", 0, 128, 256, 32, 4, ""},
    {SDC_BF16, SDC_FP32, "ieee", 0, 64, 64, 128, 1, "xy"},
    /* several warpgroups share the width of a swizzle */
    {SDC_FP16, SDC_FP32, "ieee", 0, 64, 128, 64, 16, ""},
    {SDC_BF16, SDC_FP32, "ieee", 0, 64, 128, 32, 32, "x"},
    {SDC_FP16, SDC_FP32, "ieee", 0, 128, 128, 32, 32, "w"},
};

static const Case batches[] = {
    {SDC_FP16, SDC_FP16, "ieee", 8, 32, 32, 32, 4, ""},
    {SDC_FP16, SDC_FP32, "ieee", 2, 16, 64, 32, 4, "y"},
    {SDC_FP16, SDC_FP32, "ieee", 4, 16, 16, 16, 1, ""},
    {SDC_BF16, SDC_FP32, "ieee", 2, 32, 16, 64, 8, ""},
    {SDC_I8, SDC_FP32, "ieee", 4, 16, 16, 32, 4, "y"},
    FP32("ieee", 8, 32, 32, 32, 4, ""),
    FP32("ieee", 4, 16, 16, 16, 1, "y"),
    FP32("ieee", 32, 2, 2, 32, 4, ""),
    FP32("tf32", 4, 16, 16, 16, 2, ""),
    FP32("tf32x3", 4, 16, 32, 16, 4, "y"),
    FP32("bf16x3", 2, 32, 16, 32, 4, ""),
    FP32("bf16x6", 2, 16, 16, 32, 1, ""),
    {SDC_FP64, SDC_FP64, "ieee", 2, 16, 16, 16, 4, ""},
};

START_TEST(matrix)
{
    run_case(&matrices[_i]);
}
END_TEST

START_TEST(batch)
{
    run_case(&batches[_i]);
}
END_TEST

/* K = 96: rows that TMA can copy; 84: it cannot, and the last step is not a whole one. */
START_TEST(in_steps)
{
    static const struct {
        SdcDtype type;
        const char *precision;
        int M, N, K, step, warps;
    } all[] = {
        {SDC_FP32, "ieee", 32, 64, 84, 16, 4},   {SDC_FP32, "ieee", 64, 32, 96, 32, 1},
        {SDC_FP32, "tf32x3", 64, 32, 84, 32, 4}, {SDC_FP32, "tf32x3", 32, 64, 96, 16, 4},
        {SDC_FP32, "bf16x3", 32, 32, 96, 16, 4}, {SDC_FP32, "bf16x6", 32, 64, 84, 32, 4},
        {SDC_FP64, "ieee", 32, 32, 96, 16, 4},   {SDC_FP64, "ieee", 16, 32, 84, 16, 2},
        {SDC_FP32, "tf32", 64, 256, 192, 64, 4},
        {SDC_FP32, "tf32", 128, 128, 256, 128, 4},
    };
    char path[4096];
    snprintf(path, sizeof path, "%s/tests/run/dots.tk", test_root());
    Env env = env_open_file(path);
    env.at_end = false;
    int64_t M = all[_i].M, N = all[_i].N, K = all[_i].K;
    Buf x = buf_random(&env, all[_i].type, 0, DIMS(M, K));
    Buf y = buf_random(&env, all[_i].type, 0, DIMS(K, N));
    Buf bias = buf_random(&env, all[_i].type, 0, DIMS(N));
    Buf z = buf_poison(&env, all[_i].type, 0, DIMS(M, N));
    const char *binds =
        env_text(&env, "M=%d N=%d STEP=%d PRECISION='%s' num_warps=%d", (int)M, (int)N,
                 all[_i].step, all[_i].precision, all[_i].warps);
    LAUNCH(&env, "steps", sdc_grid(1, 1, 1), binds, buf_arg(&x), buf_arg(&y),
           buf_arg(&bias), buf_arg(&z), sdc_int(K));
    double *want = env_doubles(&env, M * N), *bound = env_doubles(&env, M * N);
    reference(&env, all[_i].type, all[_i].precision, M, N, K, buf_doubles(&env, &x),
              buf_doubles(&env, &y), buf_doubles(&env, &bias), want, bound);
    buf_check(&env, &z, binds, want, bound);
    env_close(&env);
}
END_TEST

/* One operand in every turn of a loop, with so many stages of the other one that shared
   memory has no room for both (sm_80): they go through registers. */
START_TEST(kept)
{
    enum { M = 128, K = 64, TURNS = 2 };
    char path[4096];
    snprintf(path, sizeof path, "%s/tests/run/dots.tk", test_root());
    Env env = env_open_file(path);
    env.at_end = false;
    Buf x = buf_random(&env, SDC_FP32, 0, DIMS(M, K));
    Buf y = buf_random(&env, SDC_FP32, 0, DIMS(TURNS * K, K));
    Buf z = buf_poison(&env, SDC_FP32, 0, DIMS(M, K));
    LAUNCH(&env, "kept", sdc_grid(1, 1, 1), "M=128 K=64 num_warps=4 num_stages=8",
           buf_arg(&x), buf_arg(&y), buf_arg(&z), sdc_int(TURNS));
    const double *xd = buf_doubles(&env, &x);
    double *twice = env_doubles(&env, M * K * TURNS);
    for (int i = 0; i < M * K * TURNS; i++)
        twice[i] = xd[i / (K * TURNS) * K + i % K];
    double *want = env_doubles(&env, M * K), *bound = env_doubles(&env, M * K);
    reference(&env, SDC_FP32, "ieee", M, K, K * TURNS, twice, buf_doubles(&env, &y), NULL,
              want, bound);
    buf_check(&env, &z, "kept", want, bound);
    env_close(&env);
}
END_TEST

/* Code that LLVM does not optimise, one and two instructions of a warpgroup high. */
START_TEST(among_loops)
{
    enum { M = 128, N = 64, K = 128, TURNS = 3 };
    char path[4096];
    snprintf(path, sizeof path, "%s/tests/run/dots.tk", test_root());
    Env env = env_open_file(path);
    env.at_end = false;
    Buf x = buf_random(&env, SDC_FP16, 0, DIMS(M, K));
    Buf y = buf_random(&env, SDC_FP16, 0, DIMS(K, N));
    Buf z = buf_poison(&env, SDC_FP32, 0, DIMS(M, N));
    Buf sum = buf_poison(&env, SDC_I32, 0, DIMS(1));
    const char *binds =
        env_text(&env, "M=%d N=%d STEP=32 num_warps=%d", M, N, _i ? 4 : 8);
    LAUNCH(&env, "among_loops", sdc_grid(1, 1, 1), binds, buf_arg(&x), buf_arg(&y),
           buf_arg(&z), buf_arg(&sum), sdc_int(K), sdc_int(TURNS));
    double *want = env_doubles(&env, M * N), *bound = env_doubles(&env, M * N);
    reference(&env, SDC_FP16, "ieee", M, N, K, buf_doubles(&env, &x),
              buf_doubles(&env, &y), NULL, want, bound);
    buf_check(&env, &z, binds, want, bound);
    uint32_t loops = 0;
    for (uint32_t i = 0; i < 65 * TURNS; i++)
        loops = loops * 3 + i % TURNS;
    double total = (int32_t)loops, exact = 0;
    buf_check(&env, &sum, "the loops' sum", &total, &exact);
    env_close(&env);
}
END_TEST

/* What a matmul becomes an operand of: its error goes through the second. */
START_TEST(chained)
{
    static const struct {
        SdcDtype type; /* of the first matmul's operands */
        const char *precision;
        int M, N, K, warps;
    } all[] = {
        {SDC_FP32, "ieee", 64, 32, 16, 4},   {SDC_FP32, "ieee", 16, 32, 32, 1},
        {SDC_FP32, "tf32x3", 64, 64, 32, 4}, {SDC_FP32, "bf16x3", 32, 32, 32, 4},
        {SDC_FP32, "bf16x6", 32, 32, 16, 2}, {SDC_FP16, "ieee", 64, 64, 64, 4},
        {SDC_FP16, "tf32x3", 64, 32, 64, 4},
    };
    char path[4096];
    snprintf(path, sizeof path, "%s/tests/run/dots.tk", test_root());
    Env env = env_open_file(path);
    env.at_end = false;
    int64_t M = all[_i].M, N = all[_i].N, K = all[_i].K;
    Buf x = buf_random(&env, all[_i].type, 0, DIMS(M, K));
    Buf y = buf_random(&env, all[_i].type, 0, DIMS(K, N));
    Buf w = buf_random(&env, SDC_FP32, 0, DIMS(N, N));
    Buf z = buf_poison(&env, SDC_FP32, 0, DIMS(M, N));
    const char *precision = all[_i].precision;
    const char *binds = env_text(&env, "M=%d N=%d K=%d PRECISION='%s' num_warps=%d",
                                 (int)M, (int)N, (int)K, precision, all[_i].warps);
    LAUNCH(&env, "chain", sdc_grid(1, 1, 1), binds, buf_arg(&x), buf_arg(&y), buf_arg(&w),
           buf_arg(&z));
    double *mid = env_doubles(&env, M * N), *off = env_doubles(&env, M * N);
    double *want = env_doubles(&env, M * N), *bound = env_doubles(&env, M * N);
    double *wd = buf_doubles(&env, &w);
    reference(&env, all[_i].type, precision, M, N, K, buf_doubles(&env, &x),
              buf_doubles(&env, &y), NULL, mid, off);
    reference(&env, SDC_FP32, precision, M, N, N, mid, wd, NULL, want, bound);
    for (int64_t m = 0; m < M; m++)
        for (int64_t n = 0; n < N; n++)
            for (int64_t k = 0; k < N; k++)
                bound[m * N + n] += 1.01 * off[m * N + k] * fabs(wd[k * N + n]);
    buf_check(&env, &z, binds, want, bound);
    env_close(&env);
}
END_TEST

/* An infinite number makes the sums infinite that IEEE 754 says, though what is left of
   it behind its first part is not a number; one that is not a number makes its row so. */
START_TEST(infinite)
{
    static const char *const precisions[] = {"ieee", "tf32", "tf32x3", "bf16x3",
                                             "bf16x6"};
    enum { S = 32 };
    char path[4096];
    snprintf(path, sizeof path, "%s/tests/run/dots.tk", test_root());
    Env env = env_open_file(path);
    env.at_end = false;
    Case c = FP32(precisions[_i], 0, S, S, S, 4, "");
    Buf x = buf_poison(&env, SDC_FP32, 0, DIMS(S, S));
    Buf y = buf_poison(&env, SDC_FP32, 0, DIMS(S, S));
    Buf z = buf_poison(&env, SDC_FP32, 0, DIMS(S, S));
    for (int i = 0; i < S * S; i++) {
        buf_set(&x, i, i == 3 * S + 5 ? (double)INFINITY : i == 9 * S ? (double)NAN : 1);
        buf_set(&y, i, i % S == 7 ? -1 : 1);
    }
    LAUNCH(&env, "product", sdc_grid(1, 1, 1), binds_of(&env, &c), buf_arg(&x),
           buf_arg(&y), buf_arg(&z));
    double *want = env_doubles(&env, S * S);
    for (int i = 0; i < S * S; i++) {
        double row = i / S == 3 ? (double)INFINITY : i / S == 9 ? (double)NAN : S;
        want[i] = i % S == 7 ? -row : row;
    }
    buf_check(&env, &z, precisions[_i], want, NULL);
    env_close(&env);
}
END_TEST

int
main(void)
{
    Suite *s = suite_create("dots");
    TCase *tc = tcase_create("all");
    tcase_add_loop_test(tc, matrix, 0, (int)(sizeof matrices / sizeof *matrices));
    tcase_add_loop_test(tc, batch, 0, (int)(sizeof batches / sizeof *batches));
    tcase_add_loop_test(tc, in_steps, 0, 10);
    tcase_add_loop_test(tc, chained, 0, 7);
    tcase_add_test(tc, kept);
    tcase_add_loop_test(tc, infinite, 0, 5);
    tcase_add_loop_test(tc, among_loops, 0, 2);
    suite_add_tcase(s, tc);
    return suite_finish("dots", s);
}
