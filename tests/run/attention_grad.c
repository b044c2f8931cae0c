/* Gradients of attention: the reference against finite differences, the kernels, from the
   forward pass on, against the reference. dQ by atomic additions and by its own pass. */
#include "tests/run/support/harness.h"

#include <math.h>

typedef struct Case {
    int64_t batch, heads, group, M, N, dim;
    bool causal, own_pass;
    int block_m, block_n;
    int warps; /* 0: any */
} Case;

static const Case cases[] = {
    {1, 1, 1, 1, 1, 16, false, false, 16, 16, 0},
    {1, 1, 1, 1, 1, 16, true, true, 16, 16, 0},
    {2, 4, 2, 70, 70, 32, true, false, 32, 16, 0},
    {2, 2, 1, 70, 70, 32, true, true, 16, 32, 0},
    {1, 2, 1, 33, 90, 64, true, false, 16, 32, 0},
    {1, 2, 2, 100, 45, 16, true, false, 32, 16, 0},
    {1, 2, 2, 100, 45, 16, true, true, 32, 64, 0},
    {2, 2, 1, 50, 77, 64, false, false, 32, 32, 0},
    {1, 3, 3, 64, 64, 32, true, false, 32, 32, 0},
    {1, 1, 1, 20, 64, 128, false, true, 16, 16, 0},
    {1, 1, 1, 40, 40, 256, true, false, 16, 16, 0},
    /* The tiles that ship for Hopper, in fp16 alone. */
    {1, 2, 1, 150, 200, 64, true, false, 64, 64, 4},
    {1, 1, 1, 130, 257, 128, true, false, 64, 128, 8},
    {1, 1, 1, 257, 130, 128, false, true, 64, 128, 8},
    {1, 1, 1, 256, 200, 64, true, false, 128, 128, 8},
};

/* The arguments of a launch, collected. */
typedef struct Args {
    SdcArg at[64];
    int n;
} Args;

static void
arg(Args *a, SdcArg v)
{
    ck_assert_int_lt(a->n, 64);
    a->at[a->n++] = v;
}

static void
arg_bufs(Args *a, Buf *const *b, int n)
{
    for (int i = 0; i < n; i++)
        arg(a, buf_arg(b[i]));
}

static void
arg_strides(Args *a, Buf *const *b, int n)
{
    for (int i = 0; i < n; i++)
        for (int d = 0; d < 4; d++)
            arg(a, sdc_int(b[i]->strides[d]));
}

static void
arg_sizes(Args *a, int n, const int64_t *size)
{
    for (int i = 0; i < n; i++)
        arg(a, sdc_int(size[i]));
}

/* ---------------------------------------------------------------- one problem */

typedef struct Problem {
    const Case *c;
    const char *binds, *what;
    float scale;
    Buf q, k, v, o, dout, lse, lse2, delta, sum, dq, dk, dv;
} Problem;

static SdcGrid
grid_queries(const Case *c)
{
    return sdc_grid(ceil_div(c->M, c->block_m), c->batch * c->heads, 1);
}

static SdcGrid
grid_keys(const Case *c)
{
    return sdc_grid(ceil_div(c->N, c->block_n), c->batch * (c->heads / c->group), 1);
}

static Problem
problem_make(Env *env, SdcDtype t, const Case *c)
{
    int64_t kv = c->heads / c->group;
    Problem p = {.c = c, .scale = 1.0f / (float)c->dim * 4.0f};
    /* Queries lie as [batch, M, heads, dim], keys and values by head. */
    p.q = buf_swap(buf_random(env, t, 0, DIMS(c->batch, c->M, c->heads, c->dim)), 1, 2);
    p.k = buf_random(env, t, 8, DIMS(c->batch, kv, c->N, c->dim));
    p.v = buf_random(env, t, 0, DIMS(c->batch, kv, c->N, c->dim));
    p.dout = buf_random(env, t, 8, DIMS(c->batch, c->heads, c->M, c->dim));
    p.o = buf_swap(buf_poison(env, t, 4, DIMS(c->batch, c->M, c->heads, c->dim)), 1, 2);
    p.dq = buf_swap(buf_poison(env, t, 8, DIMS(c->batch, c->M, c->heads, c->dim)), 1, 2);
    p.dk = buf_poison(env, t, 0, DIMS(c->batch, kv, c->N, c->dim));
    p.dv = buf_swap(buf_poison(env, t, 0, DIMS(c->batch, c->N, kv, c->dim)), 1, 2);
    p.lse = buf_poison(env, SDC_FP32, 0, DIMS(c->batch * c->heads * c->M));
    p.lse2 = buf_poison(env, SDC_FP32, 0, DIMS(c->batch * c->heads * c->M));
    p.delta = buf_poison(env, SDC_FP32, 0, DIMS(c->batch * c->heads * c->M));
    p.sum = buf_poison(env, SDC_FP32, 0, DIMS(c->batch * c->heads * c->M, c->dim));
    p.what = env_text(env, "%s M=%lld N=%lld dim=%lld%s%s", sdc_dtype_name(t),
                      (long long)c->M, (long long)c->N, (long long)c->dim,
                      c->causal ? " causal" : "", c->own_pass ? " own pass" : "");
    p.binds =
        env_text(env, "HEAD_DIM=%lld BLOCK_M=%d BLOCK_N=%d CAUSAL=%s GROUP=%lld %s",
                 (long long)c->dim, c->block_m, c->block_n, c->causal ? "True" : "False",
                 (long long)c->group,
                 c->warps ? env_text(env, "num_warps=%d num_stages=2", c->warps) : "");
    return p;
}

static const char *
rows_binds(Env *env, const Case *c)
{
    return env_text(env, "HEAD_DIM=%lld BLOCK_M=%d", (long long)c->dim, c->block_m);
}

static void
run_forward(Env *env, Problem *p)
{
    Args a = {0};
    const Case *c = p->c;
    arg_bufs(&a, (Buf *[]){&p->q, &p->k, &p->v, &p->o, &p->lse}, 5);
    arg(&a, sdc_float((double)p->scale));
    arg_strides(&a, (Buf *[]){&p->q, &p->k, &p->v, &p->o}, 4);
    arg_sizes(&a, 3, (int64_t[]){c->heads, c->M, c->N});
    launch(env, "flash_attention_fwd", grid_queries(c), p->binds, a.at, a.n);
}

static void
run_rows(Env *env, Problem *p)
{
    Args a = {0};
    const Case *c = p->c;
    arg_bufs(&a, (Buf *[]){&p->o, &p->dout, &p->lse, &p->lse2, &p->delta}, 5);
    arg(&a, c->own_pass ? sdc_none() : buf_arg(&p->sum));
    arg_strides(&a, (Buf *[]){&p->o, &p->dout}, 2);
    arg_sizes(&a, 2, (int64_t[]){c->heads, c->M});
    launch(env, "flash_attention_bwd_rows", grid_queries(c), rows_binds(env, c), a.at,
           a.n);
}

static void
run_keys(Env *env, Problem *p)
{
    Args a = {0};
    const Case *c = p->c;
    arg_bufs(
        &a, (Buf *[]){&p->q, &p->k, &p->v, &p->dout, &p->lse2, &p->delta, &p->dk, &p->dv},
        8);
    arg(&a, c->own_pass ? sdc_none() : buf_arg(&p->sum));
    arg(&a, sdc_float((double)p->scale));
    arg_strides(&a, (Buf *[]){&p->q, &p->k, &p->v, &p->dout, &p->dk, &p->dv}, 6);
    arg_sizes(&a, 3, (int64_t[]){c->heads, c->M, c->N});
    const char *binds =
        env_text(env, "%s DQ=%s", p->binds, c->own_pass ? "False" : "True");
    launch(env, "flash_attention_bwd", grid_keys(c), binds, a.at, a.n);
}

static void
run_queries(Env *env, Problem *p)
{
    Args a = {0};
    const Case *c = p->c;
    if (c->own_pass) {
        arg_bufs(
            &a, (Buf *[]){&p->q, &p->k, &p->v, &p->dout, &p->lse2, &p->delta, &p->dq}, 7);
        arg(&a, sdc_float((double)p->scale));
        arg_strides(&a, (Buf *[]){&p->q, &p->k, &p->v, &p->dout, &p->dq}, 5);
        arg_sizes(&a, 3, (int64_t[]){c->heads, c->M, c->N});
        launch(env, "flash_attention_bwd_dq", grid_queries(c), p->binds, a.at, a.n);
        return;
    }
    arg_bufs(&a, (Buf *[]){&p->sum, &p->dq}, 2);
    arg(&a, sdc_float((double)p->scale));
    arg_strides(&a, (Buf *[]){&p->dq}, 1);
    arg_sizes(&a, 2, (int64_t[]){c->heads, c->M});
    launch(env, "flash_attention_bwd_cast", grid_queries(c), rows_binds(env, c), a.at,
           a.n);
}

static RefAttention
reference(Env *env, const Problem *p, SdcDtype t)
{
    const Case *c = p->c;
    int64_t rows = c->batch * c->heads * c->M;
    double *out = env_doubles(env, 2 * rows * c->dim + 2 * rows);
    RefAttention ref = {c->batch,
                        c->heads,
                        c->group,
                        c->M,
                        c->N,
                        c->dim,
                        .q = buf_doubles(env, &p->q),
                        .k = buf_doubles(env, &p->k),
                        .v = buf_doubles(env, &p->v),
                        .scale = (double)p->scale,
                        .causal = c->causal,
                        .weight_unit = unit_of(t),
                        .dot_unit = dot_unit(env, t),
                        .o = out,
                        .o_bound = out + rows * c->dim,
                        .lse = out + 2 * rows * c->dim,
                        .lse_bound = out + 2 * rows * c->dim + rows};
    ref_attention(&ref);
    return ref;
}

static RefAttentionGrad
grad_make(Env *env, const RefAttention *a, const double *o, const double *dout)
{
    int64_t rows = a->batch * a->heads * a->M;
    int64_t queries = rows * a->dim;
    int64_t keys = a->batch * (a->heads / a->group) * a->N * a->dim;
    RefAttentionGrad g = {.a = a, .o = o, .dout = dout};
    g.delta = env_doubles(env, 2 * rows);
    g.delta_bound = g.delta + rows;
    g.dq = env_doubles(env, 2 * queries + 4 * keys);
    g.dq_bound = g.dq + queries;
    g.dk = g.dq_bound + queries;
    g.dk_bound = g.dk + keys;
    g.dv = g.dk_bound + keys;
    g.dv_bound = g.dv + keys;
    return g;
}

static void
grad_case(Env *env, SdcDtype t, const Case *c)
{
    Problem p = problem_make(env, t, c);
    run_forward(env, &p);
    env_turn_to(env, "flash_attention_bwd");
    run_rows(env, &p);
    run_keys(env, &p);
    run_queries(env, &p);
    RefAttention ref = reference(env, &p, t);
    RefAttentionGrad g =
        grad_make(env, &ref, buf_doubles(env, &p.o), buf_doubles(env, &p.dout));
    ref_attention_grad(&g);
    buf_check(env, &p.delta, p.what, g.delta, g.delta_bound);
    buf_check(env, &p.dv, p.what, g.dv, g.dv_bound);
    buf_check(env, &p.dk, p.what, g.dk, g.dk_bound);
    buf_check(env, &p.dq, p.what, g.dq, g.dq_bound);
}

static void
grad_all(SdcDtype t)
{
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        Env env = env_open("flash_attention");
        env.at_end = i % 2;
        if (!cases[i].warps || t == SDC_FP16)
            grad_case(&env, t, &cases[i]);
        env_close(&env);
    }
}

START_TEST(attention_grad_fp32)
{
    grad_all(SDC_FP32);
}
END_TEST

START_TEST(attention_grad_fp16)
{
    grad_all(SDC_FP16);
}
END_TEST

START_TEST(attention_grad_bf16)
{
    grad_all(SDC_BF16);
}
END_TEST

/* ---------------------------------------------------------------- finite differences */

/* sum(o * dout), what the gradients are of. */
static double
loss(RefAttention *a, const double *dout)
{
    double sum = 0;
    ref_attention(a);
    for (int64_t i = 0; i < a->batch * a->heads * a->M * a->dim; i++)
        sum += a->o[i] * dout[i];
    return sum;
}

static void
check_slopes(RefAttention *a, const double *dout, double *x, int64_t n,
             const double *slope)
{
    const double h = 0x1p-14;
    for (int64_t i = 0; i < n; i++) {
        double was = x[i];
        x[i] = was + h;
        double up = loss(a, dout);
        x[i] = was - h;
        double down = loss(a, dout);
        x[i] = was;
        /* of order h^2, and the rounding of the difference */
        ck_assert_double_le(fabs((up - down) / (2 * h) - slope[i]), 1e-6);
    }
}

static double *
normals(Env *env, int64_t n)
{
    double *x = env_doubles(env, n);
    for (int64_t i = 0; i < n; i++)
        x[i] = env_normal(env);
    return x;
}

START_TEST(attention_grad_slopes)
{
    Env env = env_open("flash_attention");
    for (int causal = 0; causal < 2; causal++) {
        enum { B = 1, H = 2, G = 2, M = 7, N = 5, D = 4, Q = B * H * M * D, K = N * D };
        double *q = normals(&env, Q), *k = normals(&env, K), *v = normals(&env, K);
        double *dout = normals(&env, Q), *out = env_doubles(&env, 4 * Q);
        RefAttention a = {B,
                          H,
                          G,
                          M,
                          N,
                          D,
                          .q = q,
                          .k = k,
                          .v = v,
                          .scale = 0.5,
                          .causal = causal,
                          .o = out,
                          .o_bound = out + Q,
                          .lse = out + 2 * Q,
                          .lse_bound = out + 3 * Q};
        ref_attention(&a);
        RefAttentionGrad g = grad_make(&env, &a, out, dout);
        ref_attention_grad(&g);
        check_slopes(&a, dout, q, Q, g.dq);
        check_slopes(&a, dout, k, K, g.dk);
        check_slopes(&a, dout, v, K, g.dv);
    }
    env_close(&env);
}
END_TEST

int
main(void)
{
    return RUN_TESTS("attention_grad", attention_grad_slopes, attention_grad_fp32,
                     attention_grad_fp16, attention_grad_bf16);
}
