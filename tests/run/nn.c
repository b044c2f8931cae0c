/* The functions of sdc_nn.h against the references, on ragged sizes and odd strides: that
   each picks kernels, tiles, grids and arguments which belong together. What the kernels
   compute is tested beside them. */
#include <stdlib.h>
#include <string.h>

#include "tests/run/support/nn.h"

/* ---------------------------------------------------------------- dropout */

static void
dropout_case(Nn *n, SdcDtype t, const SdcDropout *d, int64_t rows, int64_t cols)
{
    Env *env = &n->env;
    Buf x = buf_random(env, t, 3, DIMS(rows, cols));
    Buf dy = buf_random(env, t, 0, DIMS(rows, cols));
    Buf res = buf_random(env, t, 1, DIMS(rows, cols));
    Buf bias = buf_random(env, t, 0, DIMS(cols));
    Buf out = buf_poison(env, t, 2, DIMS(rows, cols));
    Buf dx = buf_poison(env, t, 0, DIMS(rows, cols));
    Buf db = buf_poison(env, t, 0, DIMS(cols));
    int64_t size = rows * cols;
    RefDrop r = {.rows = rows,
                 .cols = cols,
                 .x = buf_doubles(env, &x),
                 .bias = buf_doubles(env, &bias),
                 .residual = buf_doubles(env, &res),
                 .dy = buf_doubles(env, &dy),
                 .act = (RefAct)d->act,
                 .p = d->p,
                 .seed = d->seed,
                 .offset = (uint64_t)d->offset,
                 .four = !d->per_element,
                 .out = env_doubles(env, size),
                 .dx = env_doubles(env, size),
                 .out_bound = env_doubles(env, size),
                 .dx_bound = env_doubles(env, size)};
    ref_drop(&r);
    SdcTensor tx = tensor(n, &x), tdy = tensor(n, &dy), tres = tensor(n, &res);
    SdcTensor tbias = tensor(n, &bias), tout = tensor(n, &out), tdx = tensor(n, &dx);
    SdcTensor tdb = tensor(n, &db);
    good(n, sdc_dropout_forward(n->k, &tx, &tbias, &tres, &tout, d, NULL));
    good(n, sdc_dropout_backward(n->k, &tdy, &tx, &tbias, &tdx, &tdb, d, NULL));
    env_collect(env);
    buf_check(env, &out, "dropout", r.out, r.out_bound);
    buf_check(env, &dx, "dropout dx", r.dx, r.dx_bound);
    double *got = buf_doubles(env, &dx), *sum = env_doubles(env, cols);
    double *bound = env_doubles(env, cols);
    for (int64_t i = 0; i < size; i++) {
        sum[i % cols] += got[i];
        bound[i % cols] += REF_U32 * (double)rows * (got[i] < 0 ? -got[i] : got[i]);
    }
    buf_check(env, &db, "dropout dbias", sum, bound);
}

/* Without a bias: rows one behind the other in memory, which are taken as one, and rows
   with gaps; the same mask in both. */
static void
plain_case(Nn *n, const SdcDropout *d, int64_t rows, int64_t cols, int64_t pad)
{
    Env *env = &n->env;
    int64_t size = rows * cols;
    Buf x = buf_random(env, SDC_FP16, pad, DIMS(rows, cols));
    Buf res = buf_random(env, SDC_FP16, pad, DIMS(rows, cols));
    Buf dy = buf_random(env, SDC_FP16, pad, DIMS(rows, cols));
    Buf out = buf_poison(env, SDC_FP16, pad, DIMS(rows, cols));
    Buf dx = buf_poison(env, SDC_FP16, pad, DIMS(rows, cols));
    RefDrop r = {.rows = rows,
                 .cols = cols,
                 .x = buf_doubles(env, &x),
                 .residual = buf_doubles(env, &res),
                 .dy = buf_doubles(env, &dy),
                 .act = (RefAct)d->act,
                 .p = d->p,
                 .seed = d->seed,
                 .offset = (uint64_t)d->offset,
                 .four = !d->per_element,
                 .out = env_doubles(env, size),
                 .dx = env_doubles(env, size),
                 .out_bound = env_doubles(env, size),
                 .dx_bound = env_doubles(env, size)};
    ref_drop(&r);
    SdcTensor tx = tensor(n, &x), tres = tensor(n, &res), tout = tensor(n, &out);
    SdcTensor tdy = tensor(n, &dy), tdx = tensor(n, &dx);
    good(n, sdc_dropout_forward(n->k, &tx, NULL, &tres, &tout, d, NULL));
    good(n, sdc_dropout_backward(n->k, &tdy, &tx, NULL, &tdx, NULL, d, NULL));
    env_collect(env);
    buf_check(env, &out, "plain", r.out, r.out_bound);
    buf_check(env, &dx, "plain dx", r.dx, r.dx_bound);
}

START_TEST(dropout)
{
    Nn n = nn_open();
    const SdcDropout a = {.p = 0.1f, .seed = 1ll << 50, .offset = 7, .act = SDC_ACT_GELU};
    const SdcDropout b = {.p = 0.5f, .seed = 3, .offset = 1ll << 40, .per_element = 1};
    dropout_case(&n, SDC_FP32, &a, 33, 70);
    dropout_case(&n, SDC_BF16, &b, 5, 1100);
    for (int gap = 0; gap < 2; gap++) {
        plain_case(&n, &a, 3000, 1, gap * 2);
        plain_case(&n, &a, 70, 33, gap * 2);
        plain_case(&n, &a, 4, 1023, gap * 2);
        plain_case(&n, &b, 3, 150, gap * 2);
    }
    ck_assert_int_eq(sdc_dropout_counters(&a, 33, 70), 578);
    ck_assert_int_eq(sdc_dropout_counters(&b, 5, 1100), 5500);
    nn_close(&n);
}
END_TEST

/* ---------------------------------------------------------------- matmuls */

START_TEST(matmul)
{
    static const SdcDtype types[] = {SDC_FP32, SDC_FP16, SDC_BF16};
    Nn n = nn_open();
    Env *env = &n.env;
    for (int i = 0; i < 3; i++) {
        int64_t M = i ? 150 : 20, N = 70, K = 45 + i;
        Buf a = buf_random(env, types[i], 1, DIMS(M, K));
        Buf b = buf_swap(buf_random(env, types[i], 0, DIMS(N, K)), 0, 1);
        Buf bias = buf_random(env, SDC_FP32, 0, DIMS(N));
        Buf c = buf_poison(env, types[i], 2, DIMS(M, N));
        SdcTensor ta = tensor(&n, &a), tb = tensor(&n, &b), tc = tensor(&n, &c);
        SdcTensor tbias = tensor(&n, &bias);
        double *want = env_doubles(env, M * N), *bound = env_doubles(env, M * N);
        RefAct act = (RefAct)i;
        good(&n, sdc_matmul(n.k, &ta, &tb, i ? &tbias : NULL, &tc, (SdcActivation)i,
                            i == 0, NULL));
        env_collect(env);
        ref_matmul(M, N, K, buf_doubles(env, &a), buf_doubles(env, &b),
                   i ? buf_doubles(env, &bias) : NULL, act, 0, want, bound);
        buf_check(env, &c, "matmul", want, bound);
    }
    nn_close(&n);
}
END_TEST

/* A shape, how the operands lie (1: turned), what rows of a, b and c have beyond their
   columns, and how far a begins behind 16 bytes, in elements. */
typedef struct Shape {
    SdcDtype t;
    int64_t m, n, k;
    int turned_a, turned_b;
    int64_t pad[3], shift;
    const char *says; /* of the explanation on sm_90a; NULL: anything */
} Shape;

static Buf
operand(Env *env, SdcDtype t, int64_t pad, bool turned, int64_t rows, int64_t cols)
{
    Buf x = turned ? buf_random(env, t, pad, DIMS(cols, rows))
                   : buf_random(env, t, pad, DIMS(rows, cols));
    return turned ? buf_swap(x, 0, 1) : x;
}

/* a is the end of a matrix that has `shift` elements more in each row in memory. */
static void
shape_case(Nn *n, const Shape *s)
{
    Env *env = &n->env;
    char why[1024];
    int64_t rows = s->m + (s->turned_a ? s->shift : 0);
    int64_t cols = s->k + (s->turned_a ? 0 : s->shift);
    Buf a = operand(env, s->t, s->pad[0], s->turned_a, rows, cols);
    Buf b = operand(env, s->t, s->pad[1], s->turned_b, s->k, s->n);
    Buf bias = buf_random(env, SDC_FP32, 0, DIMS(s->n));
    Buf c = buf_poison(env, s->t, s->pad[2], DIMS(s->m, s->n));
    SdcTensor ta = tensor(n, &a), tb = tensor(n, &b), tc = tensor(n, &c);
    SdcTensor tbias = tensor(n, &bias);
    double *all = buf_doubles(env, &a), *part = env_doubles(env, s->m * s->k);
    double *want = env_doubles(env, s->m * s->n), *bound = env_doubles(env, s->m * s->n);
    ta.data = (char *)ta.data + s->shift * sdc_dtype_size(s->t);
    ta.shape[0] = s->m;
    ta.shape[1] = s->k;
    for (int64_t i = 0; i < s->m; i++)
        for (int64_t j = 0; j < s->k; j++)
            part[i * s->k + j] = all[(i + rows - s->m) * cols + j + cols - s->k];
    good(n, sdc_matmul(n->k, &ta, &tb, &tbias, &tc, SDC_ACT_RELU, 0, NULL));
    env_collect(env);
    ref_matmul(s->m, s->n, s->k, part, buf_doubles(env, &b), buf_doubles(env, &bias),
               (RefAct)SDC_ACT_RELU, dot_unit(env, s->t), want, bound);
    ck_assert_uint_eq(sdc_nn_explain(n->k, why, sizeof why), strlen(why));
    SdcDevice d;
    bool hopper = env->cuda && sdc_context_device(env->ctx, &d) == SDC_OK &&
                  strcmp(d.target, "sm_90a") == 0;
    ck_assert_msg(!s->says || !hopper || strstr(why, s->says), "no '%s' in: %s", s->says,
                  why);
    buf_check(env, &c, "matmul", want, bound);
}

START_TEST(matmul_shapes)
{
    static const Shape shapes[] = {
        /* rows of whole 16 bytes, whatever the number of elements */
        {SDC_FP16, 72, 136, 200, 0, 0, {0, 0, 0}, 0, NULL},
        {SDC_BF16, 136, 72, 104, 1, 1, {0, 0, 0}, 0, NULL},
        /* numbers of four bytes that lie across the inner dimension, one side or both */
        {SDC_FP32, 136, 264, 200, 1, 1, {0, 0, 0}, 0, NULL},
        {SDC_FP32, 264, 136, 104, 1, 0, {0, 0, 0}, 0, NULL},
        /* results that no tensor map takes, operands that it does */
        {SDC_FP16, 70, 67, 96, 0, 1, {0, 0, 0}, 0, NULL},
        /* one row, one column, one step */
        {SDC_FP16, 1, 72, 200, 0, 1, {0, 0, 0}, 0, NULL},
        {SDC_FP16, 72, 1, 200, 0, 0, {0, 0, 0}, 0, NULL},
        {SDC_BF16, 33, 65, 1, 0, 0, {0, 0, 0}, 0, NULL},
        /* long sums of few tiles */
        {SDC_FP16, 8, 64, 2048, 0, 1, {0, 0, 0}, 0, "parts"},
        {SDC_FP32, 20, 50, 1500, 0, 0, {0, 2, 1}, 0, "parts"},
        /* rows that begin anywhere, or not on 16 bytes */
        {SDC_FP16, 512, 513, 1031, 0, 0, {0, 0, 0}, 0, "packed first"},
        {SDC_BF16, 130, 129, 131, 1, 1, {1, 3, 5}, 0, NULL},
        {SDC_FP16, 136, 128, 152, 0, 0, {7, 0, 0}, 1, NULL},
        {SDC_FP32, 65, 66, 67, 1, 0, {0, 1, 2}, 3, NULL},
    };
    Nn n = nn_open();
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
        shape_case(&n, &shapes[i]);
    nn_close(&n);
}
END_TEST

/* ---------------------------------------------------------------- rows */

static void
softmax_case(Nn *n, int64_t rows, int64_t cols, int x_pad, int pad)
{
    Env *env = &n->env;
    Buf x = buf_random(env, SDC_FP16, x_pad, DIMS(rows, cols));
    Buf out = buf_poison(env, SDC_FP32, pad, DIMS(rows, cols));
    double *want = env_doubles(env, rows * cols);
    double *bound = env_doubles(env, rows * cols);
    SdcTensor tx = tensor(n, &x), tout = tensor(n, &out);
    good(n, sdc_softmax_forward(n->k, &tx, &tout, NULL));
    env_collect(env);
    ref_softmax(rows, cols, buf_doubles(env, &x), want, bound);
    buf_check(env, &out, "softmax", want, bound);
}

/* One tile, several rows a tile, one tile after another, parts of a row: the last two by
   the number of SMs, which the simulator takes from its environment. */
static const struct {
    int64_t rows, cols;
    const char *processors;
} rows_of[] = {{5, 1, "4"},     {37, 130, "4"},   {5, 300, "4"},     {9, 9000, "2"},
               {3, 20001, "4"}, {5, 17000, "2"},  {2, 70001, "132"}, {5, 9003, "2"},
               {5, 33003, "2"}, {2, 16389, "132"}};

/* Rows whose columns are a multiple of 4 have strides that are, too. */
static int
pad_of(int64_t cols)
{
    return cols % 8 == 0 ? 8 : cols % 4 == 0 ? 4 : 1;
}

START_TEST(softmax)
{
    setenv("SIM_PROCESSORS", rows_of[_i].processors, 1);
    Nn n = nn_open();
    int64_t rows = rows_of[_i].rows, cols = rows_of[_i].cols;
    int pad = pad_of(cols);
    softmax_case(&n, rows, cols, 2 * pad, pad);
    if (pad == 1) /* rows that begin anywhere, of both alike */
        softmax_case(&n, rows, cols, 0, 0);
    nn_close(&n);
}
END_TEST

static void
norm_case(Nn *n, int64_t rows, int64_t cols)
{
    Env *env = &n->env;
    int64_t size = rows * cols;
    int pad = pad_of(cols);
    Buf b[10];
    SdcTensor t[10];
    /* x dy w b | y dx mean rstd dw db */
    for (int i = 0; i < 10; i++) {
        bool matrix = i < 2 || i == 4 || i == 5, row = i == 6 || i == 7;
        if (matrix)
            b[i] = i < 2 ? buf_random(env, SDC_FP32, 2 * pad, DIMS(rows, cols))
                         : buf_poison(env, SDC_FP32, pad, DIMS(rows, cols));
        else
            b[i] = i < 4 ? buf_random(env, SDC_FP32, 0, DIMS(cols))
                         : buf_poison(env, SDC_FP32, 0, DIMS(row ? rows : cols));
        t[i] = tensor(n, &b[i]);
    }
    double *o[12];
    for (int i = 0; i < 12; i++)
        o[i] = env_doubles(env, size);
    double eps = (double)1e-5f;
    RefNorm r = {.rows = rows,
                 .cols = cols,
                 .x = buf_doubles(env, &b[0]),
                 .w = buf_doubles(env, &b[2]),
                 .b = buf_doubles(env, &b[3]),
                 .dy = buf_doubles(env, &b[1]),
                 .eps = eps,
                 .y = o[0],
                 .mean = o[1],
                 .rstd = o[2],
                 .dx = o[3],
                 .dw = o[4],
                 .db = o[5],
                 .y_bound = o[6],
                 .mean_bound = o[7],
                 .rstd_bound = o[8],
                 .dx_bound = o[9],
                 .dw_bound = o[10],
                 .db_bound = o[11]};
    ref_layer_norm(&r);
    void *work = env_place(env, env_alloc(env, sdc_layer_norm_workspace(n->k, cols)));
    good(n, sdc_layer_norm_forward(n->k, &t[0], &t[2], &t[3], &t[4], &t[6], &t[7], eps,
                                   NULL));
    good(n, sdc_layer_norm_backward(n->k, &t[1], &t[0], &t[2], &t[6], &t[7], &t[5], &t[8],
                                    &t[9], work, NULL));
    env_collect(env);
    buf_check(env, &b[4], "y", r.y, r.y_bound);
    buf_check(env, &b[6], "mean", r.mean, r.mean_bound);
    buf_check(env, &b[7], "rstd", r.rstd, r.rstd_bound);
    buf_check(env, &b[5], "dx", r.dx, r.dx_bound);
    buf_check(env, &b[8], "dw", r.dw, r.dw_bound);
    buf_check(env, &b[9], "db", r.db, r.db_bound);
}

START_TEST(layer_norm)
{
    setenv("SIM_PROCESSORS", rows_of[_i].processors, 1);
    Nn n = nn_open();
    norm_case(&n, rows_of[_i].rows, rows_of[_i].cols);
    nn_close(&n);
}
END_TEST

/* ---------------------------------------------------------------- attention */

enum { BATCH = 2, HEADS = 4, GROUP = 2, QUERIES = 70, KEYS = 90, DIM = 32 };

static void
attention_case(Nn *n, SdcDtype t, const SdcAttention *a)
{
    Env *env = &n->env;
    int64_t rows = BATCH * HEADS * QUERIES, nq = rows * DIM;
    int64_t nk = BATCH * (HEADS / GROUP) * KEYS * DIM;
    Buf b[9]; /* q k v dout | o dq dk dv lse; queries lie as [batch, M, heads, dim] */
    SdcTensor x[9];
    for (int i = 0; i < 8; i++) {
        bool keys = i == 1 || i == 2 || i >= 6;
        int pad = i % 3 * 8;
        Buf (*make)(Env *, SdcDtype, int64_t, int, const int64_t *) =
            i < 4 ? buf_random : buf_poison;
        b[i] = keys ? make(env, t, pad, DIMS(BATCH, HEADS / GROUP, KEYS, DIM))
                    : buf_swap(make(env, t, pad, DIMS(BATCH, QUERIES, HEADS, DIM)), 1, 2);
    }
    b[8] = buf_poison(env, SDC_FP32, 0, DIMS(BATCH, HEADS, QUERIES));
    for (int i = 0; i < 9; i++)
        x[i] = tensor(n, &b[i]);
    size_t bytes = sdc_flash_attention_workspace(n->k, &x[0], a);
    void *work = env_place(env, env_alloc(env, bytes));
    good(n,
         sdc_flash_attention_forward(n->k, &x[0], &x[1], &x[2], &x[4], &x[8], a, NULL));
    good(n, sdc_flash_attention_backward(n->k, &x[0], &x[1], &x[2], &x[4], &x[8], &x[3],
                                         &x[5], &x[6], &x[7], a, work, NULL));
    Buf again[3]; /* dq dk dv once more: the same bits, where that is promised */
    SdcTensor y[3];
    for (int i = 0; i < 3 && a->deterministic; i++) {
        again[i] = i ? buf_poison(env, t, 0, DIMS(BATCH, HEADS / GROUP, KEYS, DIM))
                     : buf_poison(env, t, 0, DIMS(BATCH, HEADS, QUERIES, DIM));
        y[i] = tensor(n, &again[i]);
    }
    if (a->deterministic)
        good(n, sdc_flash_attention_backward(n->k, &x[0], &x[1], &x[2], &x[4], &x[8],
                                             &x[3], &y[0], &y[1], &y[2], a, work, NULL));
    env_collect(env);
    for (int i = 0; i < 3 && a->deterministic; i++) {
        int64_t size = i ? nk : nq;
        ck_assert_mem_eq(buf_doubles(env, &again[i]), buf_doubles(env, &b[5 + i]),
                         (size_t)size * sizeof(double));
    }
    double *o = env_doubles(env, 4 * nq + 4 * nk + 4 * rows);
    double *g = o + 2 * nq, *s = g + 2 * nq + 4 * nk;
    RefAttention ref = {BATCH,
                        HEADS,
                        GROUP,
                        QUERIES,
                        KEYS,
                        DIM,
                        .q = buf_doubles(env, &b[0]),
                        .k = buf_doubles(env, &b[1]),
                        .v = buf_doubles(env, &b[2]),
                        .scale = (double)a->scale,
                        .causal = a->causal,
                        .drop = a->p,
                        .seed = a->seed,
                        .weight_unit = unit_of(t),
                        .dot_unit = dot_unit(env, t),
                        .o = o,
                        .o_bound = o + nq,
                        .lse = s,
                        .lse_bound = s + rows};
    ref_attention(&ref);
    RefAttentionGrad grad = {.a = &ref,
                             .o = buf_doubles(env, &b[4]),
                             .dout = buf_doubles(env, &b[3]),
                             .delta = s + 2 * rows,
                             .delta_bound = s + 3 * rows,
                             .dq = g,
                             .dq_bound = g + nq,
                             .dk = g + 2 * nq,
                             .dk_bound = g + 2 * nq + nk,
                             .dv = g + 2 * nq + 2 * nk,
                             .dv_bound = g + 2 * nq + 3 * nk};
    ref_attention_grad(&grad);
    buf_check(env, &b[4], "o", ref.o, ref.o_bound);
    buf_check(env, &b[8], "lse", ref.lse, ref.lse_bound);
    buf_check(env, &b[5], "dq", grad.dq, grad.dq_bound);
    buf_check(env, &b[6], "dk", grad.dk, grad.dk_bound);
    buf_check(env, &b[7], "dv", grad.dv, grad.dv_bound);
}

START_TEST(attention)
{
    Nn n = nn_open();
    attention_case(
        &n, SDC_FP16,
        &(SdcAttention){.scale = 0.25f, .causal = 1, .p = 0.2f, .seed = 1ll << 40});
    attention_case(&n, SDC_FP32, &(SdcAttention){.scale = 0.125f, .deterministic = 1});
    attention_case(
        &n, SDC_BF16,
        &(SdcAttention){
            .scale = 0.25f, .deterministic = 1, .causal = 1, .p = 0.3f, .seed = 9});
    nn_close(&n);
}
END_TEST

/* ---------------------------------------------------------------- refusals */

START_TEST(refusals)
{
    Nn n = nn_open();
    float mem[64] = {0};
    SdcTensor a = sdc_matrix(SDC_FP32, mem, 4, 8), b = sdc_matrix(SDC_FP32, mem, 4, 4);
    SdcTensor half = sdc_matrix(SDC_FP16, mem, 8, 4), none = a;
    SdcDropout drop = {.p = 1.0f};
    ck_assert_int_eq(sdc_matmul(n.k, &a, &b, NULL, &b, SDC_ACT_NONE, 0, NULL),
                     SDC_ERROR_ARGUMENT);
    ck_assert_ptr_nonnull(
        strstr(sdc_error(n.env.ctx), "sdc_matmul: dimension 0 of 'b' is 4, needed is 8"));
    ck_assert_int_eq(sdc_matmul(n.k, &a, &half, NULL, &b, SDC_ACT_NONE, 0, NULL),
                     SDC_ERROR_ARGUMENT);
    ck_assert_ptr_nonnull(strstr(sdc_error(n.env.ctx), "'b' is fp16, needed is fp32"));
    ck_assert_int_eq(sdc_dropout_forward(n.k, &a, NULL, NULL, &a, &drop, NULL),
                     SDC_ERROR_ARGUMENT);
    ck_assert_ptr_nonnull(strstr(sdc_error(n.env.ctx), "p is 1"));
    none.data = NULL;
    ck_assert_int_eq(sdc_softmax_forward(n.k, &a, &none, NULL), SDC_ERROR_ARGUMENT);
    ck_assert_ptr_nonnull(strstr(sdc_error(n.env.ctx), "'out' has no memory"));
    ck_assert_int_eq(sdc_softmax_forward(n.k, NULL, &a, NULL), SDC_ERROR_ARGUMENT);
    ck_assert_int_eq(sdc_softmax_forward(NULL, &a, &a, NULL), SDC_ERROR_ARGUMENT);
    ck_assert_int_eq(sdc_sparse_linear_forward(n.k, &a, &half, &b,
                                               &(SdcBlockDropout){.block_m = 48}, NULL),
                     SDC_ERROR_ARGUMENT);
    ck_assert_ptr_nonnull(strstr(sdc_error(n.env.ctx), "blocks of 48"));
    nn_close(&n);
}
END_TEST

int
main(void)
{
    Suite *suite = suite_create("nn");
    const TTest *const once[] = {dropout, matmul, matmul_shapes, attention, refusals};
    TCase *tc = tcase_create("kernels");
    tcase_set_timeout(tc, 600);
    for (size_t i = 0; i < sizeof once / sizeof *once; i++)
        tcase_add_test(tc, once[i]);
    int n = (int)(sizeof rows_of / sizeof *rows_of);
    tcase_add_loop_test(tc, softmax, 0, n);
    tcase_add_loop_test(tc, layer_norm, 0, n);
    suite_add_tcase(suite, tc);
    return suite_finish("nn", suite);
}
