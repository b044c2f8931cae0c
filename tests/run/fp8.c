/* Matmuls of 8-bit floats, of operands in any order of memory: numbers are small and
   whole, so that every sum is exact, however the unit adds it up (one of Hopper keeps 14
   bits of a sum). */
#include "tests/run/support/harness.h"

#include <math.h>
#include <stdio.h>

static const SdcDtype types[] = {SDC_FP8E4NV, SDC_FP8E5};

typedef struct Shape {
    int64_t M, N, K;
} Shape;

static Env
open_file(void)
{
    char path[4096];
    snprintf(path, sizeof path, "%s/tests/run/fp8.tk", test_root());
    Env env = env_open_file(path);
    env.at_end = false;
    return env;
}

/* rows x columns, `across`: columns in a row of memory. The format of bias 15 ends
 * at 1.875.
 */
static Buf
operand(Env *env, SdcDtype t, int64_t rows, int64_t cols, bool across)
{
    Buf b = across ? buf_random(env, t, 0, DIMS(cols, rows))
                   : buf_random(env, t, 0, DIMS(rows, cols));
    for (int64_t i = 0; t == SDC_FP8E4B15 && i < b.slots; i++)
        buf_set(&b, i, (double)(i * 5 % 7 - 3) / 4);
    for (int64_t i = 0; (t == SDC_FP8E4NV || t == SDC_FP8E5) && i < b.slots; i++)
        buf_set(&b, i, (double)(env_random(env) % 7) - 3);
    return across ? buf_swap(b, 0, 1) : b;
}

/* Bits 0 and 1 of `order`: a and b lie across the inner dimension. */
static void
product(Env *env, SdcDtype ta, SdcDtype tb, SdcDtype tc, int order, const Shape *s, int m,
        int n, int k, const char *more)
{
    Buf a = operand(env, ta, s->M, s->K, order & 1);
    Buf b = operand(env, tb, s->K, s->N, !(order & 2));
    Buf c = buf_poison(env, tc, 0, DIMS(s->M, s->N));
    double *want = env_doubles(env, s->M * s->N), *bound = env_doubles(env, s->M * s->N);
    ref_matmul(s->M, s->N, s->K, buf_doubles(env, &a), buf_doubles(env, &b), NULL,
               REF_NONE, 0, want, bound);
    for (int64_t i = 0; i < s->M * s->N; i++)
        bound[i] = 0;
    int64_t tiles = ceil_div(s->M, m) * ceil_div(s->N, n);
    const char *binds =
        env_text(env, "BLOCK_M=%d BLOCK_N=%d BLOCK_K=%d %s", m, n, k, more);
    LAUNCH(env, "product", sdc_grid(tiles, 1, 1), binds, buf_arg(&a), buf_arg(&b),
           buf_arg(&c), sdc_int(s->M), sdc_int(s->N), sdc_int(s->K),
           sdc_int(a.strides[0]), sdc_int(a.strides[1]), sdc_int(b.strides[0]),
           sdc_int(b.strides[1]));
    buf_check(env, &c,
              env_text(env, "%s %s order %d %lldx%lldx%lld %s", sdc_dtype_name(ta),
                       sdc_dtype_name(tb), order, (long long)s->M, (long long)s->N,
                       (long long)s->K, binds),
              want, bound);
}

/* All orders and types, one or two warpgroups, whole tiles and parts. */
START_TEST(orders)
{
    static const Shape shapes[] = {{128, 128, 256}, {80, 208, 336}};
    Env env = open_file();
    for (int order = 0; order < 4; order++)
        for (int i = 0; i < 4; i++)
            product(&env, types[i & 1], types[i >> 1], SDC_FP32, order,
                    &shapes[(order + i) % 2], 64, 64, 64,
                    i & 1 ? "num_warps=8 num_stages=3" : "num_warps=4");
    /* no unit multiplies this one: as halves */
    for (int order = 0; order < 4; order++)
        product(&env, SDC_FP8E4B15, SDC_FP8E4B15, SDC_FP32, order, &shapes[order % 2], 64,
                64, 64, "num_warps=4");
    env_close(&env);
}
END_TEST

START_TEST(large_tiles)
{
    static const Shape shape = {144, 272, 400}, one = {128, 256, 400};
    Env env = open_file();
    for (int order = 0; order < 4; order++) {
        product(&env, types[0], types[1], SDC_FP32, order, &one, 128, 256, 128,
                "num_warps=8 num_stages=2");
        product(&env, types[0], types[order & 1], SDC_FP32, order, &shape, 128, 128, 128,
                "num_warps=8 num_stages=3");
        product(&env, types[0], types[0], SDC_FP32, order, &shape, 128, 128, 128,
                "num_warps=8 num_stages=3 WARP_SPECIALIZE=True");
    }
    env_close(&env);
}
END_TEST

/* Operands that threads read a step at a time: few and many steps, rows and columns;
   results in halves, of which every sum is one. */
START_TEST(steps)
{
    static const struct {
        Shape shape;
        int m, n, k;
        const char *more;
    } all[] = {
        {{64, 64, 96}, 64, 64, 32, "num_warps=4"},
        {{128, 144, 160}, 128, 64, 64, "num_warps=4 num_stages=2"},
        {{80, 256, 512}, 64, 256, 256, "num_warps=4 num_stages=2"},
        {{256, 144, 160}, 256, 128, 64, "num_warps=8 num_stages=2"},
        {{128, 256, 160}, 64, 256, 32, "num_warps=8 num_stages=4"},
        {{272, 80, 288}, 256, 64, 128, "num_warps=8 WARP_SPECIALIZE=True"},
        {{96, 272, 160}, 128, 128, 32, "num_warps=4 WARP_SPECIALIZE=True"},
        {{144, 96, 320}, 128, 128, 64, "num_warps=8 num_stages=1"},
        {{64, 256, 320}, 64, 256, 64, "num_warps=8 IMPRECISE=64"},
        {{128, 144, 640}, 128, 128, 256, "num_warps=8 IMPRECISE=128"},
    };
    Env env = open_file();
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        for (int order = 0; order < 4; order++)
            if (order != 2) {
                const Shape *s = &all[i].shape;
                product(&env, types[i & 1], types[order & 1], i & 1 ? SDC_FP32 : SDC_FP16,
                        order, s, all[i].m, all[i].n, all[i].k, all[i].more);
            }
    env_close(&env);
}
END_TEST

/* Sums that threads put together. */
START_TEST(imprecise)
{
    static const Shape shape = {128, 144, 336};
    static const char *const by[] = {"0", "32", "64", "100", "128"};
    Env env = open_file();
    for (int i = 0; i < 5; i++) {
        const char *binds = env_text(&env, "num_warps=%d IMPRECISE=%s WARP_SPECIALIZE=%s",
                                     i & 1 ? 8 : 4, by[i], i & 2 ? "True" : "False");
        product(&env, types[0], types[i & 1], SDC_FP32, i % 4, &shape, 64, 128, 128,
                binds);
    }
    env_close(&env);
}
END_TEST

/* The same where a thread has no registers for the tile twice: pieces of its columns, one
   or two parts an iteration, with roles and without. */
START_TEST(imprecise_pieces)
{
    static const struct {
        Shape shape;
        int m, n, k;
        const char *more;
    } all[] = {
        {{144, 272, 400}, 128, 256, 128, "num_warps=8 num_stages=2 IMPRECISE=128"},
        {{256, 128, 320}, 256, 128, 128, "num_warps=8 num_stages=3 IMPRECISE=96"},
        {{128, 144, 512}, 128, 128, 256, "num_warps=4 num_stages=2 IMPRECISE=64"},
    };
    Env env = open_file();
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        for (int order = 0; order < 4; order++)
            product(&env, types[0], types[order & 1], SDC_FP32, order, &all[i].shape,
                    all[i].m, all[i].n, all[i].k, all[i].more);
    env_close(&env);
}
END_TEST

/* Rows that are the columns of what warpgroups multiply. */
START_TEST(few_rows)
{
    static const struct {
        Shape shape;
        int m, n, k;
        const char *more;
    } all[] = {
        {{16, 144, 400}, 16, 64, 128, "num_warps=4 num_stages=4"},
        {{40, 272, 336}, 32, 128, 64, "num_warps=8 num_stages=3 IMPRECISE=64"},
        {{33, 208, 272}, 16, 128, 256, "num_warps=4 num_stages=2 IMPRECISE=128"},
        {{7, 80, 77}, 32, 64, 32, "num_warps=4"},
    };
    Env env = open_file();
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        for (int order = 0; order < 4; order++)
            product(&env, types[i & 1], types[order & 1], i & 1 ? SDC_FP16 : SDC_FP32,
                    order, &all[i].shape, all[i].m, all[i].n, all[i].k, all[i].more);
    env_close(&env);
}
END_TEST

/* Where no warpgroup multiplies: few columns, few warps; rows that are no multiple of 16
   bytes. */
START_TEST(small_tiles)
{
    static const Shape shapes[] = {{40, 48, 96}, {35, 41, 77}};
    Env env = open_file();
    for (int order = 0; order < 4; order++)
        for (int i = 0; i < 2; i++) {
            product(&env, types[i], types[order & 1], SDC_FP32, order, &shapes[i], 32, 32,
                    32, "num_warps=4");
            product(&env, types[0], types[i], SDC_FP32, order, &shapes[i], 64, 32, 32,
                    "num_warps=2");
            product(&env, types[0], types[i], SDC_FP32, order, &shapes[1], 64, 64, 64,
                    "num_warps=4");
        }
    env_close(&env);
}
END_TEST

static void
single_tile(Env *env, SdcDtype ta, SdcDtype tb, SdcDtype tc, int order, bool scaled,
            int64_t M, int64_t N, const char *more)
{
    const int64_t K = 64;
    Buf a = operand(env, ta, M, K, order & 1);
    Buf b = operand(env, tb, K, N, !(order & 2));
    Buf c = buf_poison(env, tc, 0, DIMS(M, N));
    double *want = env_doubles(env, M * N), *bound = env_doubles(env, M * N);
    ref_matmul(M, N, K, buf_doubles(env, &a), buf_doubles(env, &b), NULL, REF_NONE, 0,
               want, bound);
    for (int i = 0; i < M * N; i++)
        bound[i] = 0;
    const char *binds = env_text(env, "M=%d N=%d K=%d SCALED=%s IMPRECISE=%d %s", (int)M,
                                 (int)N, (int)K, scaled ? "True" : "False",
                                 order % 3 * 32, more);
    LAUNCH(env, "single", sdc_grid(1, 1, 1), binds, buf_arg(&a), buf_arg(&b), buf_arg(&c),
           sdc_int(a.strides[0]), sdc_int(a.strides[1]), sdc_int(b.strides[0]),
           sdc_int(b.strides[1]));
    buf_check(env, &c, env_text(env, "single order %d %s", order, binds), want, bound);
}

static void
single_case(Env *env, SdcDtype ta, SdcDtype tb, SdcDtype tc, int order, bool scaled)
{
    single_tile(env, ta, tb, tc, order, scaled, 64, scaled ? 64 : 32, "");
}

/* Outside of a loop; int8, too, which goes the same ways; in parts that a thread has no
   registers for all columns of, which begin with zeros. */
START_TEST(single)
{
    Env env = open_file();
    for (int order = 0; order < 4; order++) {
        single_case(&env, types[0], types[0], SDC_FP32, order, false);
        single_case(&env, types[0], types[1], SDC_FP32, order, true);
        single_case(&env, SDC_I8, SDC_I8, SDC_I32, order, false);
        single_tile(&env, types[0], types[1], SDC_FP32, order, false, 128, 256,
                    "num_warps=8");
        single_tile(&env, types[1], types[0], SDC_FP32, order, false, 16, 64, "");
    }
    env_close(&env);
}
END_TEST

typedef struct Matrices {
    SdcDtype a, b;
    int B, M, N, K, warps;
    bool turned; /* b: [N, K] in memory */
} Matrices;

static void
matrices_case(Env *env, const Matrices *c)
{
    int64_t B = c->B, M = c->M, N = c->N, K = c->K;
    Buf a = operand(env, c->a, B * M, K, false);
    Buf b = operand(env, c->b, B * (c->turned ? N : K), c->turned ? K : N, false);
    Buf z = buf_poison(env, SDC_FP32, 0, DIMS(B, M, N));
    const char *binds = env_text(
        env, "M=%d N=%d K=%d PRECISION='ieee' num_warps=%d %s%s", c->M, c->N, c->K,
        c->warps,
        B > 1 ? env_text(env, "B=%d TURN=", c->B) : "TURN_X=False WORK=False TURN_Y=",
        c->turned ? "True" : "False");
    LAUNCH(env, B > 1 ? "batched" : "product", sdc_grid(1, 1, 1), binds, buf_arg(&a),
           buf_arg(&b), buf_arg(&z));
    double *x = buf_doubles(env, &a), *y = buf_doubles(env, &b);
    double *turned = env_doubles(env, B * N * K);
    for (int64_t i = 0; i < B * N * K; i++) {
        int64_t n = i % (N * K) / K, k = i % K;
        int64_t to = c->turned ? i / (N * K) * N * K + k * N + n : i;
        turned[to] = y[i];
    }
    double *want = env_doubles(env, B * M * N), *bound = env_doubles(env, B * M * N);
    for (int64_t i = 0; i < B; i++)
        ref_matmul(M, N, K, x + i * M * K, turned + i * K * N, NULL, REF_NONE, 0,
                   want + i * M * N, bound + i * M * N);
    for (int64_t i = 0; i < B * M * N; i++)
        bound[i] = 0;
    buf_check(env, &z, env_text(env, "%s %s", sdc_dtype_name(c->a), binds), want,
              bound);
}

/* Several matrices at once, and tiles of more sums than a thread has registers for, whose
   operands stay in shared memory: kernels of dots.tk. */
START_TEST(matrices)
{
    static const Matrices all[] = {
        {SDC_FP8E4NV, SDC_FP8E5, 4, 32, 32, 64, 4, true},
        {SDC_FP8E5, SDC_FP8E5, 2, 16, 64, 32, 1, false},
        {SDC_FP8E4B15, SDC_FP8E4B15, 4, 32, 16, 32, 4, true},
        {SDC_FP8E4B15, SDC_FP8E4B15, 2, 16, 16, 32, 2, false},
        {SDC_FP8E4NV, SDC_FP8E4NV, 4, 4, 8, 32, 4, false},
        {SDC_FP8E4NV, SDC_FP8E5, 1, 128, 128, 64, 1, true},
        {SDC_FP8E5, SDC_FP8E4NV, 1, 128, 128, 64, 1, false},
        {SDC_FP8E4B15, SDC_FP8E4B15, 1, 128, 128, 32, 1, true},
    };
    char path[4096];
    snprintf(path, sizeof path, "%s/tests/run/dots.tk", test_root());
    Env env = env_open_file(path);
    env.at_end = false;
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        matrices_case(&env, &all[i]);
    env_close(&env);
}
END_TEST

/* a b / 16 as 8 bits, times v. */
static void
chain_case(Env *env, SdcDtype t, bool across, int64_t D, const char *warps)
{
    enum { M = 64, K = 32, N = 160 };
    Buf a = buf_random(env, t, 0, DIMS(M, K)), b = buf_random(env, t, 0, DIMS(N, K));
    for (int64_t i = 0; i < buf_count(&a); i++) /* matmuls are few sixteens */
        buf_set(&a, i, (double)(i * 7 % 5 == 0 ? i % 3 - 1 : 0));
    for (int64_t i = 0; i < buf_count(&b); i++)
        buf_set(&b, i, 16 * (double)(i * 11 % 7 == 0 ? i % 5 - 2 : 0));
    Buf v = operand(env, t, N, D, across), c = buf_poison(env, SDC_FP32, 0, DIMS(M, D));
    double *x = buf_doubles(env, &a), *y = buf_doubles(env, &b),
           *z = buf_doubles(env, &v);
    double *want = env_doubles(env, M * D), *bound = env_doubles(env, M * D);
    for (int64_t m = 0; m < M; m++)
        for (int64_t d = 0; d < D; d++) {
            want[m * D + d] = bound[m * D + d] = 0;
            for (int64_t n = 0; n < N; n++) {
                double p = 0;
                for (int64_t k = 0; k < K; k++)
                    p += x[m * K + k] * y[n * K + k] / 16;
                want[m * D + d] += p * z[n * D + d];
            }
        }
    const char *binds =
        env_text(env, "M=%d K=%d D=%d BLOCK_N=32 %s", M, K, (int)D, warps);
    LAUNCH(env, "chain", sdc_grid(1, 1, 1), binds, buf_arg(&a), buf_arg(&b), buf_arg(&v),
           buf_arg(&c), sdc_int(N), sdc_int(v.strides[0]), sdc_int(v.strides[1]));
    buf_check(env, &c,
              env_text(env, "chain %s across %d %s", sdc_dtype_name(t), across, binds),
              want, bound);
}

START_TEST(chains)
{
    Env env = open_file();
    for (int i = 0; i < 8; i++)
        chain_case(&env, types[i & 1], i >> 1 & 1, i & 1 ? 64 : 32,
                   i & 4 ? "num_warps=8" : "num_warps=4");
    env_close(&env);
}
END_TEST

/* kernels_dsl's attention, v along the sequence or across it. Few weights are large:
   rounded to 4 bits, the others to a multiple of 2^-9 at least. */
static void
attention_case(Env *env, bool along, bool causal, const char *more)
{
    enum { M = 128, N = 192, D = 64 };
    const SdcDtype t = types[0];
    const double scale = 0x1p-9;
    Buf q = buf_random(env, t, 0, DIMS(1, 1, M, D)),
        k = buf_random(env, t, 0, DIMS(1, 1, N, D));
    Buf v = along ? buf_swap(buf_random(env, t, 0, DIMS(1, 1, D, N)), 2, 3)
                  : buf_random(env, t, 0, DIMS(1, 1, N, D));
    Buf o = buf_poison(env, SDC_FP16, 0, DIMS(1, 1, M, D));
    Buf lse = buf_poison(env, SDC_FP32, 0, DIMS(M));
    double *out = env_doubles(env, 2 * M * D + 2 * M);
    RefAttention ref = {.batch = 1,
                        .heads = 1,
                        .group = 1,
                        .M = M,
                        .N = N,
                        .dim = D,
                        .q = buf_doubles(env, &q),
                        .k = buf_doubles(env, &k),
                        .v = buf_doubles(env, &v),
                        .scale = scale,
                        .causal = causal,
                        .weight_unit = 0x1p-4,
                        .o = out,
                        .o_bound = out + M * D,
                        .lse = out + 2 * M * D,
                        .lse_bound = out + 2 * M * D + M};
    ref_attention(&ref);
    for (int i = 0; i < M * D; i++)
        for (int n = 0; n < N; n++)
            ref.o_bound[i] += 0x1p-10 * fabs(ref.v[n * D + i % D]);
    const char *binds = env_text(env, "HEAD_DIM=%d BLOCK_M=128 BLOCK_N=64 CAUSAL=%s %s",
                                 D, causal ? "True" : "False", more);
    LAUNCH(env, "flash_attention_fwd", sdc_grid(1, 1, 1), binds, buf_arg(&q), buf_arg(&k),
           buf_arg(&v), buf_arg(&o), buf_arg(&lse), sdc_float(scale),
           sdc_int(q.strides[0]), sdc_int(q.strides[1]), sdc_int(q.strides[2]),
           sdc_int(q.strides[3]), sdc_int(k.strides[0]), sdc_int(k.strides[1]),
           sdc_int(k.strides[2]), sdc_int(k.strides[3]), sdc_int(v.strides[0]),
           sdc_int(v.strides[1]), sdc_int(v.strides[2]), sdc_int(v.strides[3]),
           sdc_int(o.strides[0]), sdc_int(o.strides[1]), sdc_int(o.strides[2]),
           sdc_int(o.strides[3]), sdc_int(1), sdc_int(M), sdc_int(N), sdc_none(),
           sdc_none(), sdc_float(0), sdc_int(0));
    const char *what =
        env_text(env, "attention, v %s [%s]", along ? "along" : "across", binds);
    buf_check(env, &lse, what, ref.lse, ref.lse_bound);
    buf_check(env, &o, what, ref.o, ref.o_bound);
}

START_TEST(attention)
{
    Env env = env_open("flash_attention");
    env.at_end = false;
    for (int i = 0; i < 4; i++)
        attention_case(&env, i & 1, i >> 1, "num_warps=8 num_stages=2");
    attention_case(&env, true, false, "num_warps=4 num_stages=3");
    env_close(&env);
}
END_TEST

int
main(void)
{
    return RUN_TESTS("fp8", orders, large_tiles, steps, imprecise, imprecise_pieces,
                     few_rows, small_tiles, single, matrices, chains, attention);
}
