/* Triton's tutorials 04 (dropout with a stored mask), 05 (layer norm) and 06 (attention),
   unmodified, on the CPU target: forward and backward against the references, launched as
   the tutorials' host code does.

       SDC_TUTORIALS=Triton's folder python/tutorials

   Without it the test says SKIPPED: the sources of others are not kept here. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "tests/run/support/harness.h"

static Env
tutorial_open(const char *file)
{
    char path[4096];
    snprintf(path, sizeof(path), "%s/%s", getenv("SDC_TUTORIALS"), file);
    return env_open_file(path);
}

/* A buffer of zeros. */
static Buf
zeros(Env *env, SdcDtype t, int64_t n)
{
    Buf b = buf_poison(env, t, 0, DIMS(n));
    for (int64_t i = 0; i < n; i++)
        buf_set(&b, i, 0);
    return b;
}

/* ---------------------------------------------------------------- 04 */

START_TEST(dropout)
{
    enum { N = 1000 };
    double want[N], bound[N];
    Env env = tutorial_open("04-low-memory-dropout.py");
    Buf x = buf_random(&env, SDC_FP32, 0, DIMS(N));
    Buf keep = buf_random(&env, SDC_I32, 0, DIMS(N)); /* any number but 0 keeps */
    Buf out = buf_poison(&env, SDC_FP32, 0, DIMS(N));
    for (int64_t i = 0; i < N; i += 3)
        buf_set(&keep, i, 0);
    for (int64_t i = 0; i < N; i++) {
        double kept = 1 - (double)0.3f;
        want[i] = buf_get(&keep, i) != 0 ? buf_get(&x, i) / kept : 0;
        bound[i] = 4 * REF_U32 * fabs(want[i]); /* a division of two ulp, 1 - p rounded */
    }
    LAUNCH(&env, "_dropout", sdc_grid(4, 1, 1), "BLOCK_SIZE=256", buf_arg(&x),
           buf_arg(&keep), buf_arg(&out), sdc_int(N), sdc_float(0.3));
    buf_check(&env, &out, "out", want, bound);
    puts("04-low-memory-dropout: _dropout: right");
    env_close(&env);
}
END_TEST

/* ---------------------------------------------------------------- 05 */

enum { GROUP = 3 }; /* buffers that the rows' gradients are added up in */

typedef struct Norm {
    SdcDtype t;
    int64_t rows, cols, block;
    Buf x, w, b, dy, y, mean, rstd, dx, dw, db, dw_part, db_part, lock;
    RefNorm ref;
} Norm;

static void
norm_make(Env *env, Norm *n)
{
    int64_t rows = n->rows, cols = n->cols;
    n->x = buf_random(env, n->t, 5, DIMS(rows, cols));
    n->dy = buf_random(env, n->t, 5, DIMS(rows, cols)); /* one stride for x, dy, dx, y */
    n->y = buf_poison(env, n->t, 5, DIMS(rows, cols));
    n->dx = buf_poison(env, n->t, 5, DIMS(rows, cols));
    n->w = buf_random(env, n->t, 0, DIMS(cols));
    n->b = buf_random(env, n->t, 0, DIMS(cols));
    n->mean = buf_poison(env, SDC_FP32, 0, DIMS(rows));
    n->rstd = buf_poison(env, SDC_FP32, 0, DIMS(rows));
    n->dw = buf_poison(env, n->t, 0, DIMS(cols));
    n->db = buf_poison(env, n->t, 0, DIMS(cols));
    n->dw_part = zeros(env, n->t, GROUP * cols);
    n->db_part = zeros(env, n->t, GROUP * cols);
    n->lock = zeros(env, SDC_I32, 2 * GROUP);
    RefNorm *r = &n->ref;
    *r = (RefNorm){.rows = rows,
                   .cols = cols,
                   .x = buf_doubles(env, &n->x),
                   .w = buf_doubles(env, &n->w),
                   .b = buf_doubles(env, &n->b),
                   .dy = buf_doubles(env, &n->dy),
                   .eps = (double)1e-5f};
    double **const out[] = {&r->y,    &r->y_bound,    &r->mean, &r->mean_bound,
                            &r->rstd, &r->rstd_bound, &r->dx,   &r->dx_bound,
                            &r->dw,   &r->dw_bound,   &r->db,   &r->db_bound};
    for (size_t i = 0; i < sizeof(out) / sizeof(out[0]); i++)
        *out[i] = env_doubles(env, (rows + 1) * cols + rows);
    ref_layer_norm(r);
    /* The partial sums are kept in the type of x. */
    for (int64_t i = 0; i < rows * cols; i++) {
        double hat = (r->x[i] - r->mean[i / cols]) * r->rstd[i / cols];
        double slip = unit_of(n->t) * (double)(rows + 1) * fabs(r->dy[i]);
        r->dw_bound[i % cols] += slip * fabs(hat);
        r->db_bound[i % cols] += slip;
    }
}

static void
norm_run(Env *env, Norm *n)
{
    const RefNorm *r = &n->ref;
    SdcArg stride = sdc_int(n->x.strides[0]), cols = sdc_int(n->cols);
    int64_t whole = 16;
    while (whole < n->cols)
        whole *= 2;
    LAUNCH(env, "_layer_norm_fwd_fused", sdc_grid(n->rows, 1, 1),
           env_text(env, "BLOCK_SIZE=%lld", (long long)n->block), buf_arg(&n->x),
           buf_arg(&n->y), buf_arg(&n->w), buf_arg(&n->b), buf_arg(&n->mean),
           buf_arg(&n->rstd), stride, cols, sdc_float(r->eps));
    buf_check(env, &n->mean, "mean", r->mean, r->mean_bound);
    buf_check(env, &n->rstd, "rstd", r->rstd, r->rstd_bound);
    buf_check(env, &n->y, "y", r->y, r->y_bound);
    LAUNCH(env, "_layer_norm_bwd_dx_fused", sdc_grid(n->rows, 1, 1),
           env_text(env, "BLOCK_SIZE_N=%lld GROUP_SIZE_M=%d", (long long)whole, GROUP),
           buf_arg(&n->dx), buf_arg(&n->dy), buf_arg(&n->dw_part), buf_arg(&n->db_part),
           buf_arg(&n->x), buf_arg(&n->w), buf_arg(&n->mean), buf_arg(&n->rstd),
           buf_arg(&n->lock), stride, cols);
    buf_check(env, &n->dx, "dx", r->dx, r->dx_bound);
    int64_t parts = n->rows < GROUP ? n->rows : GROUP;
    LAUNCH(env, "_layer_norm_bwd_dwdb", sdc_grid(ceil_div(n->cols, 32), 1, 1),
           "BLOCK_SIZE_M=2 BLOCK_SIZE_N=32", buf_arg(&n->dw_part), buf_arg(&n->db_part),
           buf_arg(&n->dw), buf_arg(&n->db), sdc_int(parts), cols);
    buf_check(env, &n->dw, "dw", r->dw, r->dw_bound);
    buf_check(env, &n->db, "db", r->db, r->db_bound);
}

START_TEST(layer_norm)
{
    static const SdcDtype types[] = {SDC_FP32, SDC_FP16};
    static const int64_t shapes[][3] = {{1, 1, 16}, {7, 100, 32}, {20, 333, 512}};
    Env env = tutorial_open("05-layer-norm.py");
    for (int t = 0; t < 2; t++)
        for (int s = 0; s < 3; s++) {
            Norm n = {types[t], shapes[s][0], shapes[s][1], shapes[s][2], .ref = {0}};
            env.at_end = (t + s) % 2;
            norm_make(&env, &n);
            norm_run(&env, &n);
            printf("05-layer-norm: %s %lldx%lld forward, dx, dw, db: right\n",
                   sdc_dtype_name(n.t), (long long)n.rows, (long long)n.cols);
        }
    env_close(&env);
}
END_TEST

/* ---------------------------------------------------------------- 06 */

typedef struct Attn {
    int64_t batch, heads, n, dim;
    bool causal;
    int block_m, block_n;
    Buf q, k, v, o, lse; /* [batch, heads, n, dim], lse in base 2 */
    RefAttention ref;
} Attn;

/* Two to the power of a score is e to the power of it times ln 2, and so the scale is a
   quarter times ln 2: what the backward pass has in place of k, k times scale / ln 2, is
   then free of rounding, and belongs to exactly the weights of the forward pass. */
static const double LN2 = 0.69314718055994530942;

static void
attn_make(Env *env, Attn *a, int64_t rows)
{
    int64_t all = a->batch * a->heads * rows;
    a->q = buf_random(env, SDC_FP16, 0, DIMS(a->batch, a->heads, a->n, a->dim));
    a->k = buf_random(env, SDC_FP16, 0, DIMS(a->batch, a->heads, a->n, a->dim));
    a->v = buf_random(env, SDC_FP16, 0, DIMS(a->batch, a->heads, a->n, a->dim));
    a->o = buf_poison(env, SDC_FP16, 0, DIMS(a->batch, a->heads, a->n, a->dim));
    a->lse = buf_poison(env, SDC_FP32, 0, DIMS(all));
    RefAttention *r = &a->ref;
    double *in[3];
    const Buf *const from[3] = {&a->q, &a->k, &a->v};
    for (int i = 0; i < 3; i++) { /* rows beyond the tensors read as zero */
        const double *x = buf_doubles(env, from[i]);
        in[i] = env_doubles(env, all * a->dim);
        for (int64_t j = 0; j < buf_count(from[i]); j++)
            in[i][j] = x[j];
    }
    *r = (RefAttention){a->batch,
                        a->heads,
                        1,
                        rows,
                        rows,
                        a->dim,
                        .q = in[0],
                        .k = in[1],
                        .v = in[2],
                        .scale = 0.25 * LN2,
                        .causal = a->causal,
                        .weight_unit = unit_of(SDC_FP16)};
    double **const out[] = {&r->o, &r->o_bound, &r->lse, &r->lse_bound};
    for (int i = 0; i < 4; i++)
        *out[i] = env_doubles(env, all * a->dim);
    ref_attention(r);
}

static void
attn_forward(Env *env, Attn *a)
{
    int64_t rows = ceil_div(a->n, a->block_m) * a->block_m;
    attn_make(env, a, rows);
    LAUNCH(env, "_attn_fwd", sdc_grid(rows / a->block_m, a->batch * a->heads, 1),
           env_text(env,
                    "HEAD_DIM=%lld BLOCK_M=%d BLOCK_N=%d FP8_OUTPUT=False STAGE=%d "
                    "warp_specialize=False IS_HOPPER=False",
                    (long long)a->dim, a->block_m, a->block_n, a->causal ? 3 : 1),
           sdc_float(a->ref.scale), buf_arg(&a->lse), sdc_int(a->batch),
           sdc_int(a->heads), buf_arg(&a->q), buf_arg(&a->k), buf_arg(&a->v),
           buf_arg(&a->o), sdc_int(a->n));
    int64_t all = a->batch * a->heads * rows;
    double *want = env_doubles(env, all), *bound = env_doubles(env, all);
    for (int64_t i = 0; i < all; i++) {
        want[i] = a->ref.lse[i] / LN2;
        bound[i] = a->ref.lse_bound[i] / LN2;
    }
    buf_check(env, &a->lse, "M", want, bound);
    buf_check(env, &a->o, "O", a->ref.o, a->ref.o_bound);
    printf("06-fused-attention: forward %lldx%lldx%lldx%lld%s: right\n",
           (long long)a->batch, (long long)a->heads, (long long)a->n, (long long)a->dim,
           a->causal ? " causal" : "");
}

static void
attn_backward(Env *env, Attn *a, const char *binds, int64_t block)
{
    int64_t all = a->batch * a->heads * a->n;
    Buf dout = buf_random(env, SDC_FP16, 0, DIMS(a->batch, a->heads, a->n, a->dim));
    Buf k = a->k, delta = buf_poison(env, SDC_FP32, 0, DIMS(all)), grad[3];
    for (int64_t i = 0; i < all * a->dim; i++)
        buf_set(&k, i, buf_get(&k, i) * 0.25);
    for (int i = 0; i < 3; i++)
        grad[i] = buf_poison(env, SDC_FP16, 0, DIMS(a->batch, a->heads, a->n, a->dim));
    RefAttentionGrad g = {
        .a = &a->ref, .o = buf_doubles(env, &a->o), .dout = buf_doubles(env, &dout)};
    double **const out[] = {&g.delta, &g.delta_bound, &g.dq, &g.dq_bound,
                            &g.dk,    &g.dk_bound,    &g.dv, &g.dv_bound};
    for (int i = 0; i < 8; i++)
        *out[i] = env_doubles(env, all * a->dim);
    ref_attention_grad(&g);
    LAUNCH(env, "_attn_bwd_preprocess", sdc_grid(a->n / 32, a->batch * a->heads, 1),
           env_text(env, "BLOCK_M=32 HEAD_DIM=%lld", (long long)a->dim), buf_arg(&a->o),
           buf_arg(&dout), buf_arg(&delta), sdc_int(a->batch), sdc_int(a->heads),
           sdc_int(a->n));
    buf_check(env, &delta, "delta", g.delta, g.delta_bound);
    LAUNCH(env, "_attn_bwd", sdc_grid(a->n / block, 1, a->batch * a->heads),
           env_text(env, "%s BLK_SLICE_FACTOR=2 HEAD_DIM=%lld CAUSAL=%s", binds,
                    (long long)a->dim, a->causal ? "True" : "False"),
           buf_arg(&a->q), buf_arg(&k), buf_arg(&a->v), sdc_float(a->ref.scale),
           buf_arg(&dout), buf_arg(&grad[0]), buf_arg(&grad[1]), buf_arg(&grad[2]),
           buf_arg(&a->lse), buf_arg(&delta), sdc_int(a->q.strides[0]),
           sdc_int(a->q.strides[1]), sdc_int(a->q.strides[2]), sdc_int(1),
           sdc_int(a->heads), sdc_int(a->n));
    buf_check(env, &grad[2], "dV", g.dv, g.dv_bound);
    buf_check(env, &grad[1], "dK", g.dk, g.dk_bound);
    buf_check(env, &grad[0], "dQ", g.dq, g.dq_bound);
    printf("06-fused-attention: backward %lldx%lldx%lldx%lld%s: right\n",
           (long long)a->batch, (long long)a->heads, (long long)a->n, (long long)a->dim,
           a->causal ? " causal" : "");
}

START_TEST(attention)
{
    Env env = tutorial_open("06-fused-attention.py");
    for (int causal = 0; causal < 2; causal++) {
        /* The kernel reads whole tiles: lengths divide them, but heads and batches are
         * odd. */
        Attn a = {2, 3, 192, 32, causal, 64, 32, .ref = {0}};
        attn_forward(&env, &a);
        attn_backward(&env, &a, "BLOCK_M1=32 BLOCK_N1=64 BLOCK_M2=64 BLOCK_N2=32", 64);
        Attn b = {1, 1, 128, 64, causal, 128, 64, .ref = {0}};
        env.at_end = false;
        attn_forward(&env, &b);
        attn_backward(&env, &b, "BLOCK_M1=32 BLOCK_N1=128 BLOCK_M2=128 BLOCK_N2=32", 128);
    }
    /* One head with a mask may end inside a tile: descriptors clip its rows, and what is
       beyond comes after every query. M has a place for each row of the tiles. */
    Attn c = {1, 1, 100, 64, true, 64, 32, .ref = {0}};
    attn_forward(&env, &c);
    env_close(&env);
}
END_TEST

int
main(void)
{
    if (!getenv("SDC_TUTORIALS")) {
        puts("SKIPPED: SDC_TUTORIALS names no folder");
        return 0;
    }
    return RUN_TESTS("tutorials", dropout, layer_norm, attention);
}
