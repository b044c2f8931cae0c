/* Attention against its reference: lengths that do not fill the tiles,
   more keys than queries and the reverse, grouped heads, heads that lie apart. */
#include "tests/run/support/harness.h"

typedef struct Case {
    int64_t batch, heads, group, M, N, dim;
    bool causal;
    int block_m, block_n;
    int warps, stages; /* 0: any, and every dtype */
    bool steep;        /* scores whose largest grows by far from tile to tile */
} Case;

static const Case cases[] = {
    {1, 1, 1, 1, 1, 16, false, 16, 16, 0, 0, false},
    {2, 4, 2, 70, 70, 32, true, 32, 16, 0, 0, false},
    {1, 2, 1, 33, 90, 64, true, 16, 32, 0, 0, false},
    {1, 2, 2, 100, 45, 16, true, 32, 16, 0, 0, false},
    {2, 2, 1, 50, 77, 64, false, 32, 32, 0, 0, false},
    {1, 1, 1, 20, 64, 128, true, 16, 16, 0, 0, false},
    {1, 3, 3, 64, 64, 32, true, 32, 32, 0, 0, false},
    {1, 2, 1, 40, 200, 32, true, 32, 16, 0, 0, true},
    /* Tiles without a program, several of one and none of another. */
    {1, 4, 2, 150, 37, 32, true, 16, 16, 0, 0, false},
    /* The tiles that ship for Hopper, in fp16 alone: many tiles of keys, so that the
       warpgroups of a program go round their rings. */
    {2, 3, 1, 384, 1200, 64, false, 128, 128, 8, 3, false},
    {1, 2, 1, 700, 700, 64, true, 128, 128, 8, 3, false},
    {1, 2, 2, 300, 900, 64, true, 128, 64, 4, 3, false},
    {1, 2, 1, 600, 600, 64, true, 256, 64, 16, 4, false},
    {1, 2, 1, 300, 1100, 128, false, 128, 128, 8, 2, false},
    {1, 2, 1, 640, 640, 128, true, 128, 128, 8, 2, false},
    {1, 2, 1, 300, 500, 96, true, 128, 64, 8, 2, false},
    {1, 1, 1, 300, 500, 96, true, 128, 128, 8, 2, false},
    {1, 1, 1, 150, 500, 192, true, 128, 64, 8, 2, false},
    {1, 2, 1, 200, 300, 256, true, 64, 32, 8, 2, false},
    {1, 2, 1, 300, 900, 64, true, 128, 64, 4, 3, true},
    {1, 2, 1, 200, 1100, 128, false, 128, 128, 8, 2, true},
    {1, 1, 1, 150, 500, 192, true, 128, 64, 8, 2, true},
};

static SdcArg
stride_arg(const Buf *b, int d)
{
    return sdc_int(b->strides[d]);
}

static void
attention_case(Env *env, SdcDtype t, const Case *c)
{
    int64_t rows = c->batch * c->heads * c->M;
    /* Queries and results lie as [batch, M, heads, dim], keys and values by head. */
    Buf q = buf_swap(buf_random(env, t, 0, DIMS(c->batch, c->M, c->heads, c->dim)), 1, 2);
    Buf k = buf_random(env, t, 8, DIMS(c->batch, c->heads / c->group, c->N, c->dim));
    Buf v = buf_random(env, t, 0, DIMS(c->batch, c->heads / c->group, c->N, c->dim));
    Buf o = buf_swap(buf_poison(env, t, 4, DIMS(c->batch, c->M, c->heads, c->dim)), 1, 2);
    Buf lse = buf_poison(env, SDC_FP32, 0, DIMS(rows));
    float scale = 1.0f / (float)c->dim * (c->steep ? 64.0f : 4.0f);
    double *out = env_doubles(env, 2 * rows * c->dim + 2 * rows);
    RefAttention ref = {c->batch,
                        c->heads,
                        c->group,
                        c->M,
                        c->N,
                        c->dim,
                        .q = buf_doubles(env, &q),
                        .k = buf_doubles(env, &k),
                        .v = buf_doubles(env, &v),
                        .scale = (double)scale,
                        .causal = c->causal,
                        .weight_unit = unit_of(t),
                        .dot_unit = dot_unit(env, t),
                        .o = out,
                        .o_bound = out + rows * c->dim,
                        .lse = out + 2 * rows * c->dim,
                        .lse_bound = out + 2 * rows * c->dim + rows};
    ref_attention(&ref);
    int64_t tiles = ceil_div(c->M, c->block_m), seeing = 1 + ceil_div(c->N, c->block_m);
    const char *binds = env_text(
        env, "HEAD_DIM=%lld BLOCK_M=%d BLOCK_N=%d CAUSAL=%s GROUP=%lld%s",
        (long long)c->dim, c->block_m, c->block_n, c->causal ? "True" : "False",
        (long long)c->group,
        c->warps ? env_text(env, " num_warps=%d num_stages=%d", c->warps, c->stages)
                 : "");
    LAUNCH(env, "flash_attention_fwd",
           sdc_grid(c->causal && seeing < tiles ? seeing : tiles, c->batch * c->heads, 1),
           binds,
           buf_arg(&q), buf_arg(&k), buf_arg(&v), buf_arg(&o), buf_arg(&lse),
           sdc_float((double)scale), stride_arg(&q, 0), stride_arg(&q, 1),
           stride_arg(&q, 2), stride_arg(&q, 3), stride_arg(&k, 0), stride_arg(&k, 1),
           stride_arg(&k, 2), stride_arg(&k, 3), stride_arg(&v, 0), stride_arg(&v, 1),
           stride_arg(&v, 2), stride_arg(&v, 3), stride_arg(&o, 0), stride_arg(&o, 1),
           stride_arg(&o, 2), stride_arg(&o, 3), sdc_int(c->heads), sdc_int(c->M),
           sdc_int(c->N), sdc_none(), sdc_none(), sdc_float(0), sdc_int(0));
    const char *what = env_text(env, "%s [%s] M=%lld N=%lld", sdc_dtype_name(t), binds,
                                (long long)c->M, (long long)c->N);
    buf_check(env, &lse, what, ref.lse, ref.lse_bound);
    buf_check(env, &o, what, ref.o, ref.o_bound);
}

static void
attention_all(SdcDtype t)
{
    Env env = env_open("flash_attention");
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        if (cases[i].warps && t != SDC_FP16)
            continue;
        env.at_end = i % 2;
        attention_case(&env, t, &cases[i]);
    }
    env_close(&env);
}

START_TEST(attention_fp32)
{
    attention_all(SDC_FP32);
}
END_TEST

START_TEST(attention_fp16)
{
    attention_all(SDC_FP16);
}
END_TEST

START_TEST(attention_bf16)
{
    attention_all(SDC_BF16);
}
END_TEST

int
main(void)
{
    return RUN_TESTS("attention", attention_fp32, attention_fp16, attention_bf16);
}
