/* Attention backward: the reference against finite differences, the kernels, from the
   forward pass on, against the reference. dQ by atomic additions and by its own pass;
   dropout, sequences of different lengths in a row. */
#include "tests/run/support/harness.h"

#include <math.h>
#include <string.h>

typedef struct Case {
    int64_t batch, heads, group, M, N, dim;
    bool causal, own_pass;
    int block_m, block_n;
    int warps; /* 0: any, and every dtype */
    float drop;
    /* Sequences of these lengths, one after another; M and N are the longest then. */
    const int32_t *ms, *ns;
} Case;

static const int32_t lengths_m[] = {40, 1, 0, 17, 33}, lengths_n[] = {40, 16, 9, 50, 0};

static const Case cases[] = {
    {1, 1, 1, 1, 1, 16, false, false, 16, 16, 0, 0, NULL, NULL},
    {1, 1, 1, 1, 1, 16, true, true, 16, 16, 0, 0, NULL, NULL},
    {2, 4, 2, 70, 70, 32, true, false, 32, 16, 0, 0, NULL, NULL},
    {2, 2, 1, 70, 70, 32, true, true, 16, 32, 0, 0, NULL, NULL},
    {1, 2, 1, 33, 90, 64, true, false, 16, 32, 0, 0, NULL, NULL},
    {1, 2, 2, 100, 45, 16, true, false, 32, 16, 0, 0, NULL, NULL},
    {1, 2, 2, 100, 45, 16, true, true, 32, 64, 0, 0, NULL, NULL},
    {2, 2, 1, 50, 77, 64, false, false, 32, 32, 0, 0, NULL, NULL},
    {1, 3, 3, 64, 64, 32, true, false, 32, 32, 0, 0, NULL, NULL},
    {3, 3, 1, 50, 60, 16, true, false, 16, 16, 0, 0, NULL, NULL},
    {1, 1, 1, 20, 64, 128, false, true, 16, 16, 0, 0, NULL, NULL},
    {1, 1, 1, 40, 40, 256, true, false, 16, 16, 0, 0, NULL, NULL},
    /* 96 dimensions, dropout (the same mask in all tiles), sequences in a row */
    {1, 2, 1, 50, 40, 96, true, false, 32, 16, 0, 0, NULL, NULL},
    {1, 2, 2, 40, 50, 96, false, true, 16, 16, 0, 0.25f, NULL, NULL},
    {2, 2, 1, 70, 60, 32, true, false, 32, 16, 0, 0.5f, NULL, NULL},
    {2, 2, 2, 70, 60, 16, false, true, 16, 64, 0, 0.1f, NULL, NULL},
    {5, 2, 2, 40, 50, 32, true, false, 16, 32, 0, 0, lengths_m, lengths_n},
    {5, 2, 1, 40, 50, 16, false, true, 32, 16, 0, 0.5f, lengths_m, lengths_n},
    {5, 2, 1, 40, 50, 16, true, false, 32, 16, 0, 0.5f, lengths_m, lengths_n},
    /* The tiles that ship for Hopper, in fp16 alone. */
    {1, 2, 1, 150, 200, 64, true, false, 64, 64, 4, 0, NULL, NULL},
    {1, 1, 1, 130, 257, 128, true, false, 64, 128, 8, 0, NULL, NULL},
    {1, 1, 1, 257, 130, 128, false, true, 64, 128, 8, 0, NULL, NULL},
    {1, 1, 1, 256, 200, 64, true, false, 128, 128, 8, 0.25f, NULL, NULL},
    {1, 1, 1, 150, 130, 96, true, false, 64, 64, 8, 0.25f, NULL, NULL},
    {1, 1, 1, 100, 130, 256, true, false, 32, 64, 8, 0, NULL, NULL},
    /* As long as sequences get. */
    {1, 1, 1, 3, 65536, 16, true, false, 16, 64, 0, 0, NULL, NULL},
    {1, 1, 1, 65535, 3, 16, false, false, 64, 16, 0, 0, NULL, NULL},
};

enum { SEED = 0x1234567 };

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
    bool ieee;          /* fp32 in full precision */
    int64_t rows, keys; /* of all sequences, of one in a dense batch */
    int32_t *cu_m, *cu_n;
    int64_t shares; /* programs to a head of keys; above 1 dk and dv are added up */
    Buf q, k, v, o, dout, lse, lse2, delta, sum, dq, dk, dv, key_sums;
} Problem;

/* Dense tensors have an entry for each of a batch, sequences in a row have one. */
static int64_t
entries(const Case *c)
{
    return c->ms ? 1 : c->batch;
}

static SdcGrid
grid_queries(const Case *c)
{
    return sdc_grid(ceil_div(c->M, c->block_m), c->batch * c->heads, 1);
}

static SdcGrid
grid_keys(const Case *c, int64_t shares)
{
    return sdc_grid(ceil_div(c->N, c->block_n), c->batch * (c->heads / c->group) * shares,
                    1);
}

/* For kernels that take each row for itself. */
static SdcGrid
grid_rows(const Problem *p)
{
    return sdc_grid(ceil_div(p->rows, p->c->block_m), entries(p->c) * p->c->heads, 1);
}

static int32_t *
sums(Env *env, const int32_t *lengths, int64_t n)
{
    int32_t *cu = env_alloc(env, (size_t)(n + 1) * sizeof(int32_t));
    for (int64_t i = 0; i < n; i++)
        cu[i + 1] = cu[i] + lengths[i];
    return cu;
}

static Problem
problem_make(Env *env, SdcDtype t, const Case *c, int64_t shares)
{
    int64_t kv = c->heads / c->group, B = entries(c);
    Problem p = {.c = c,
                 .scale = 1.0f / (float)c->dim * 4.0f,
                 .rows = c->M,
                 .keys = c->N,
                 .shares = shares};
    if (c->ms) {
        p.cu_m = sums(env, c->ms, c->batch);
        p.cu_n = sums(env, c->ns, c->batch);
        p.rows = p.cu_m[c->batch];
        p.keys = p.cu_n[c->batch];
    }
    int64_t M = p.rows, N = p.keys, H = c->heads, D = c->dim;
    /* Queries lie as [batch, M, heads, dim], keys and values by head. */
    p.q = buf_swap(buf_random(env, t, 0, DIMS(B, M, H, D)), 1, 2);
    p.k = buf_random(env, t, 8, DIMS(B, kv, N, D));
    p.v = buf_random(env, t, 0, DIMS(B, kv, N, D));
    p.dout = buf_random(env, t, 8, DIMS(B, H, M, D));
    p.o = buf_swap(buf_poison(env, t, 4, DIMS(B, M, H, D)), 1, 2);
    p.dq = buf_swap(buf_poison(env, t, 8, DIMS(B, M, H, D)), 1, 2);
    p.dk = buf_poison(env, t, 0, DIMS(B, kv, N, D));
    p.dv = buf_swap(buf_poison(env, t, 0, DIMS(B, N, kv, D)), 1, 2);
    p.lse = buf_poison(env, SDC_FP32, 0, DIMS(B * H * M));
    int64_t pad = ceil_div(M, 64) * 64 - M;
    p.lse2 = buf_poison(env, SDC_FP32, pad, DIMS(B * H, M));
    p.delta = buf_poison(env, SDC_FP32, pad, DIMS(B * H, M));
    p.sum = buf_poison(env, SDC_FP32, 0, DIMS(B * H * ceil_div(M, 64) * 64, D));
    p.key_sums = buf_poison(env, SDC_FP32, 0, DIMS(2 * B * kv * ceil_div(N, 64) * 64, D));
    p.what = env_text(env, "%s M=%lld N=%lld dim=%lld shares=%lld%s%s%s drop=%g",
                      sdc_dtype_name(t), (long long)c->M, (long long)c->N,
                      (long long)c->dim, (long long)shares, c->causal ? " causal" : "",
                      c->own_pass ? " own pass" : "", c->ms ? " in a row" : "",
                      (double)c->drop);
    p.binds =
        env_text(env, "HEAD_DIM=%lld BLOCK_M=%d BLOCK_N=%d CAUSAL=%s GROUP=%lld%s%s%s",
                 (long long)c->dim, c->block_m, c->block_n, c->causal ? "True" : "False",
                 (long long)c->group, c->drop > 0 ? " DROPOUT=True" : "",
                 p.ieee ? " PRECISION=\"ieee\"" : "",
                 c->warps ? env_text(env, " num_warps=%d num_stages=2", c->warps) : "");
    return p;
}

static const char *
rows_binds(Env *env, const Case *c)
{
    return env_text(env, "HEAD_DIM=%lld BLOCK_M=%d", (long long)c->dim, c->block_m);
}

/* Sizes, sequences and dropout, as three of the kernels take them. */
static void
arg_tail(Args *a, const Problem *p)
{
    const Case *c = p->c;
    arg_sizes(a, 3, (int64_t[]){c->heads, p->rows, p->keys});
    arg(a, c->ms ? sdc_ptr(SDC_I32, p->cu_m) : sdc_none());
    arg(a, c->ms ? sdc_ptr(SDC_I32, p->cu_n) : sdc_none());
    arg(a, sdc_float((double)c->drop));
    arg(a, sdc_int(SEED));
}

/* The options of the backward, none given. */
static void
arg_options(Args *a)
{
    for (int i = 0; i < 9; i++)
        arg(a, sdc_none());
}

/* Strides; those of a batch are 0 where sequences lie in a row. */
static void
arg_places(Args *a, const Problem *p, Buf *const *b, int n)
{
    for (int i = 0; i < n; i++)
        for (int d = 0; d < 4; d++)
            arg(a, sdc_int(d || !p->c->ms ? b[i]->strides[d] : 0));
}

static void
run_forward(Env *env, Problem *p)
{
    Args a = {0};
    arg_bufs(&a, (Buf *[]){&p->q, &p->k, &p->v, &p->o, &p->lse}, 5);
    arg(&a, sdc_float((double)p->scale));
    arg_places(&a, p, (Buf *[]){&p->q, &p->k, &p->v, &p->o}, 4);
    arg_tail(&a, p);
    launch(env, "flash_attention_fwd", grid_queries(p->c), p->binds, a.at, a.n);
}

static void
run_rows(Env *env, Problem *p)
{
    Args a = {0};
    const Case *c = p->c;
    arg_bufs(&a, (Buf *[]){&p->o, &p->dout, &p->lse, &p->lse2, &p->delta}, 5);
    arg(&a, c->own_pass ? sdc_none() : buf_arg(&p->sum));
    arg_places(&a, p, (Buf *[]){&p->o, &p->dout}, 2);
    arg_sizes(&a, 2, (int64_t[]){c->heads, p->rows});
    arg(&a, p->shares > 1 ? buf_arg(&p->key_sums) : sdc_none());
    arg(&a, p->shares > 1 ? sdc_int(buf_count(&p->key_sums) / 1024) : sdc_none());
    launch(env, "flash_attention_bwd_rows", grid_rows(p), rows_binds(env, c), a.at, a.n);
}

/* The second half of the sums of shares. */
static SdcArg
value_sums(const Problem *p)
{
    SdcArg a = buf_arg(&p->key_sums);
    a.v.ptr = (char *)a.v.ptr + buf_count(&p->key_sums) / 2 * (int64_t)sizeof(float);
    return a;
}

static void
run_keys(Env *env, Problem *p)
{
    Args a = {0};
    const Case *c = p->c;
    arg_bufs(&a, (Buf *[]){&p->q, &p->k, &p->v, &p->dout, &p->lse2, &p->delta}, 6);
    arg(&a, p->shares > 1 ? buf_arg(&p->key_sums) : buf_arg(&p->dk));
    arg(&a, p->shares > 1 ? value_sums(p) : buf_arg(&p->dv));
    arg(&a, c->own_pass ? sdc_none() : buf_arg(&p->sum));
    arg(&a, sdc_float((double)p->scale));
    arg_places(&a, p, (Buf *[]){&p->q, &p->k, &p->v, &p->dout, &p->dk, &p->dv}, 6);
    arg_tail(&a, p);
    arg_options(&a);
    const char *binds = p->binds;
    if (p->shares > 1)
        binds = env_text(env, "%s SHARES=%lld", binds, (long long)p->shares);
    launch(env, "flash_attention_bwd", grid_keys(c, p->shares), binds, a.at, a.n);
}

/* A gradient with so many heads and rows from its sums. */
static void
run_cast(Env *env, Problem *p, SdcArg sums, Buf *to, int64_t heads, int64_t rows,
         double scale)
{
    Args a = {0};
    const Case *c = p->c;
    arg(&a, sums);
    arg(&a, buf_arg(to));
    arg(&a, sdc_float(scale));
    arg_places(&a, p, &to, 1);
    arg_sizes(&a, 2, (int64_t[]){heads, rows});
    launch(env, "flash_attention_bwd_cast",
           sdc_grid(ceil_div(rows, c->block_m), entries(c) * heads, 1),
           env_text(env, "%s SEQUENCES=%s", rows_binds(env, c), c->ms ? "True" : "False"),
           a.at, a.n);
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
        arg_places(&a, p, (Buf *[]){&p->q, &p->k, &p->v, &p->dout, &p->dq}, 5);
        arg_tail(&a, p);
        arg_options(&a);
        env_turn_to(env, "flash_attention_bwd_dq");
        launch(env, "flash_attention_bwd_dq", grid_queries(c), p->binds, a.at, a.n);
        return;
    }
    run_cast(env, p, buf_arg(&p->sum), &p->dq, c->heads, p->rows, (double)p->scale);
    if (p->shares == 1)
        return;
    int64_t heads = c->heads / c->group;
    run_cast(env, p, buf_arg(&p->key_sums), &p->dk, heads, p->keys, (double)p->scale);
    run_cast(env, p, value_sums(p), &p->dv, heads, p->keys, 1 / (1 - (double)c->drop));
}

/* ---------------------------------------------------------------- the reference */

/* Rows first..first+n-1 of every head of entry b, between a whole tensor [entries, heads,
   rows, dim] and a dense part of it. */
typedef struct Part {
    int64_t b, heads, rows, dim, first, n;
} Part;

static void
copy_part(const Part *t, double *whole, double *part, bool back)
{
    for (int64_t h = 0; h < t->heads; h++)
        for (int64_t i = 0; i < t->n * t->dim; i++) {
            double *x = whole + ((t->b * t->heads + h) * t->rows + t->first) * t->dim + i;
            double *y = part + h * t->n * t->dim + i;
            *(back ? x : y) = *(back ? y : x);
        }
}

static double *
take(Env *env, const Part *t, const Buf *b)
{
    double *part = env_doubles(env, t->heads * t->n * t->dim);
    copy_part(t, buf_doubles(env, b), part, false);
    return part;
}

/* What the kernels should have written, and how far they may be off. */
typedef struct Wanted {
    double *o, *lse, *delta, *dq, *dk, *dv;
} Wanted;

static Wanted
wanted_make(Env *env, const Problem *p)
{
    int64_t rows = entries(p->c) * p->c->heads * p->rows;
    int64_t keys = entries(p->c) * (p->c->heads / p->c->group) * p->keys, D = p->c->dim;
    return (Wanted){
        .o = env_doubles(env, rows * D),
        .lse = env_doubles(env, rows),
        .delta = env_doubles(env, rows),
        .dq = env_doubles(env, rows * D),
        .dk = env_doubles(env, keys * D),
        .dv = env_doubles(env, keys * D),
    };
}

static RefAttention
attention_make(Env *env, const Case *c, int64_t batch, int64_t M, int64_t N)
{
    int64_t rows = batch * c->heads * M;
    double *out = env_doubles(env, 2 * rows * c->dim + 2 * rows);
    return (RefAttention){batch,
                          c->heads,
                          c->group,
                          M,
                          N,
                          c->dim,
                          .causal = c->causal,
                          .drop = c->drop,
                          .seed = SEED,
                          .o = out,
                          .o_bound = out + rows * c->dim,
                          .lse = out + 2 * rows * c->dim,
                          .lse_bound = out + 2 * rows * c->dim + rows};
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

/* Sequence b, its results and bounds into `want` and `off`. */
static void
refer(Env *env, const Problem *p, SdcDtype t, int64_t b, Wanted *want, Wanted *off)
{
    const Case *c = p->c;
    int64_t at = c->ms ? 0 : b, kv = c->heads / c->group;
    int64_t m0 = c->ms ? p->cu_m[b] : 0, n0 = c->ms ? p->cu_n[b] : 0;
    int64_t M = c->ms ? c->ms[b] : c->M, N = c->ms ? c->ns[b] : c->N;
    Part q = {at, c->heads, p->rows, c->dim, m0, M}, k = {at, kv, p->keys, c->dim, n0, N};
    Part row = q;
    row.dim = 1;
    RefAttention a = attention_make(env, c, 1, M, N);
    a.q = take(env, &q, &p->q);
    a.k = take(env, &k, &p->k);
    a.v = take(env, &k, &p->v);
    a.scale = (double)p->scale;
    a.weight_unit = unit_of(t);
    a.dot_unit = p->ieee ? 0 : dot_unit(env, t);
    a.first_head = b * c->heads;
    ref_attention(&a);
    RefAttentionGrad g =
        grad_make(env, &a, take(env, &q, &p->o), take(env, &q, &p->dout));
    ref_attention_grad(&g);
    copy_part(&q, want->o, a.o, true), copy_part(&q, off->o, a.o_bound, true);
    copy_part(&row, want->lse, a.lse, true), copy_part(&row, off->lse, a.lse_bound, true);
    copy_part(&row, want->delta, g.delta, true);
    copy_part(&row, off->delta, g.delta_bound, true);
    copy_part(&q, want->dq, g.dq, true), copy_part(&q, off->dq, g.dq_bound, true);
    copy_part(&k, want->dk, g.dk, true), copy_part(&k, off->dk, g.dk_bound, true);
    copy_part(&k, want->dv, g.dv, true), copy_part(&k, off->dv, g.dv_bound, true);
}

static void
grad_case(Env *env, SdcDtype t, const Case *c, int64_t shares)
{
    Problem p = problem_make(env, t, c, shares);
    run_forward(env, &p);
    env_turn_to(env, "flash_attention_bwd");
    run_rows(env, &p);
    run_keys(env, &p);
    run_queries(env, &p);
    Wanted want = wanted_make(env, &p), off = wanted_make(env, &p);
    for (int64_t b = 0; b < c->batch; b++)
        refer(env, &p, t, b, &want, &off);
    for (int64_t i = 0; i < entries(c) * c->heads * p.rows; i++)
        want.delta[i] = -want.delta[i]; /* the kernels' has the other sign */
    buf_check(env, &p.lse, p.what, want.lse, off.lse);
    buf_check(env, &p.o, p.what, want.o, off.o);
    buf_check(env, &p.delta, p.what, want.delta, off.delta);
    buf_check(env, &p.dv, p.what, want.dv, off.dv);
    buf_check(env, &p.dk, p.what, want.dk, off.dk);
    buf_check(env, &p.dq, p.what, want.dq, off.dq);
}

/* All cases in fp16, every second one in either of the other types. */
static void
grad_all(SdcDtype t)
{
    for (int i = 0; i < (int)(sizeof(cases) / sizeof(cases[0])); i++) {
        if (t != SDC_FP16 && (cases[i].warps || i % 2 != (t == SDC_BF16)))
            continue;
        int64_t group = cases[i].own_pass ? 1 : cases[i].group;
        for (int64_t shares = 1; shares <= group; shares += group > 1 ? group - 1 : 1) {
            Env env = env_open("flash_attention");
            env.at_end = i / 2 % 2;
            grad_case(&env, t, &cases[i], shares);
            env_close(&env);
        }
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
    for (int i = 0; i < 3; i++) {
        const Case c = {1,    2,   2, 7, 5, 4, i > 0, false, 0, 0, 0, i == 2 ? 0.3f : 0,
                        NULL, NULL};
        int64_t nq = c.heads * c.M * c.dim, nk = c.N * c.dim;
        double *q = normals(&env, nq), *k = normals(&env, nk), *v = normals(&env, nk);
        double *dout = normals(&env, nq);
        RefAttention a = attention_make(&env, &c, 1, c.M, c.N);
        a.q = q, a.k = k, a.v = v, a.scale = 0.5;
        ref_attention(&a);
        double *o = env_doubles(&env, nq);
        memcpy(o, a.o, (size_t)nq * sizeof(double));
        RefAttentionGrad g = grad_make(&env, &a, o, dout);
        ref_attention_grad(&g);
        check_slopes(&a, dout, q, nq, g.dq);
        check_slopes(&a, dout, k, nk, g.dk);
        check_slopes(&a, dout, v, nk, g.dv);
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
