/* Attention through sdc_nn.h over shapes. Forward: few queries and many, groups of heads,
   widths that are no powers of two, values of another width, sequences in a row, keys in
   parts; backward: widths, both ways to dq. What the plan chose is looked at where it is
   the point of a line. */
#include <stdlib.h>
#include <string.h>

#include "runtime/sdc_nn.h"
#include "tests/run/support/device.h"
#include "tests/run/support/harness.h"

enum { MOST_SEQUENCES = 4 };

/* Lengths of sequences in a row come after the rest; m and n are their longest then. */
typedef struct Case {
    SdcDtype t;
    int64_t batch, heads, key_heads, m, n, dim, value_dim;
    bool causal;
    const char *processors; /* of the simulator */
    const char *says;       /* of the explanation, on so many of sm_90a */
    int64_t lengths_q[MOST_SEQUENCES], lengths_k[MOST_SEQUENCES];
} Case;

static const Case cases[] = {
    /* decoding: one query, heads that share keys, a tile of 16 rows */
    {SDC_FP16, 1, 8, 2, 1, 700, 64, 64, false, "4", "keys in ", {0}, {0}},
    {SDC_BF16, 2, 8, 1, 1, 333, 128, 128, true, "4", "rows of all heads", {0}, {0}},
    {SDC_FP16, 3, 4, 4, 1, 100, 32, 32, false, "2", "rows of all heads", {0}, {0}},
    {SDC_FP32, 1, 6, 2, 1, 400, 64, 64, false, "4", "keys in ", {0}, {0}},
    /* some queries: rows of several of them, parts that some do not see */
    {SDC_FP16, 1, 8, 2, 5, 620, 64, 64, true, "8", "keys in ", {0}, {0}},
    {SDC_BF16, 1, 4, 1, 17, 515, 128, 128, true, "8", "keys in ", {0}, {0}},
    {SDC_FP16, 1, 2, 1, 70, 800, 64, 64, true, "8", NULL, {0}, {0}},
    {SDC_FP16, 1, 4, 2, 9, 5, 64, 64, true, "8", NULL, {0}, {0}},
    /* many queries that see no key: on few processors without programs of their own */
    {SDC_BF16, 1, 4, 2, 700, 130, 80, 80, true, "1", NULL, {0}, {0}},
    {SDC_FP16, 1, 2, 1, 400, 90, 192, 192, true, "1", NULL, {0}, {0}},
    {SDC_FP16, 1, 2, 1, 1000, 70, 64, 64, true, "8", NULL, {0}, {0}},
    /* widths */
    {SDC_FP16, 1, 4, 2, 130, 200, 96, 96, true, "1", NULL, {0}, {0}},
    {SDC_BF16, 1, 2, 2, 140, 150, 80, 80, false, "1", NULL, {0}, {0}},
    {SDC_FP16, 1, 2, 1, 130, 170, 72, 72, true, "1", NULL, {0}, {0}},
    {SDC_FP16, 1, 2, 1, 130, 140, 112, 112, true, "1", NULL, {0}, {0}},
    {SDC_BF16, 1, 2, 1, 129, 140, 160, 160, false, "1", NULL, {0}, {0}},
    {SDC_FP16, 1, 2, 2, 130, 150, 192, 128, true, "1", NULL, {0}, {0}},
    {SDC_FP32, 1, 2, 1, 70, 90, 40, 24, true, "1", NULL, {0}, {0}},
    {SDC_FP16, 1, 1, 1, 33, 45, 5, 7, false, "1", NULL, {0}, {0}},
    {SDC_FP16, 1, 8, 2, 1, 600, 192, 128, false, "4", "keys in ", {0}, {0}},
    {SDC_BF16, 1, 8, 2, 3, 333, 72, 112, true, "4", NULL, {0}, {0}},
    {SDC_FP16, 1, 4, 1, 1, 300, 256, 256, false, "4", "keys in ", {0}, {0}},
    /* programs that take one tile after another; one tile of columns, masked */
    {SDC_FP16, 2, 3, 1, 300, 170, 128, 128, false, "2", "persistent", {0}, {0}},
    {SDC_BF16, 1, 4, 4, 260, 130, 64, 64, false, "1", "persistent", {0}, {0}},
    {SDC_FP16, 1, 4, 2, 130, 300, 96, 112, false, "1", NULL, {0}, {0}},
    /* groups, whose keys tensor maps take */
    {SDC_FP16, 2, 4, 2, 150, 260, 128, 128, true, "1", NULL, {0}, {0}},
    /* sequences in a row: decoding with keys of different lengths, and many queries */
    {SDC_FP16, 1, 8, 2, 1, 512, 64, 64, true, "4", "keys in ", {1, 1, 1}, {512, 3, 200}},
    {SDC_BF16, 1, 4, 2, 4, 300, 64, 64, true, "4", NULL, {4, 0, 2, 1}, {300, 7, 2, 64}},
    {SDC_FP16, 1, 4, 2, 150, 180, 64, 64, true, "1", NULL, {150, 20}, {180, 90}},
};

typedef struct Run {
    Env env;
    SdcKernels *k;
    const Case *c;
    int64_t sequences, rows, keys; /* of the tensors' M and N */
    Buf q, key, value, o, lse;
    float scale;
} Run;

static SdcTensor
tensor(Run *r, const Buf *b)
{
    SdcTensor t = {
        .dtype = b->dtype, .rank = b->rank, .data = env_place(&r->env, b->data)};
    for (int i = 0; i < b->rank; i++) {
        t.shape[i] = b->shape[i];
        t.strides[i] = b->strides[i];
    }
    return t;
}

/* rows begin .. begin + count - 1 of each head of `all`, of `total` rows */
static double *
cut(Run *r, const double *all, int64_t heads, int64_t total, int64_t begin, int64_t count,
    int64_t dim)
{
    double *part = env_doubles(&r->env, heads * count * dim + 1);
    for (int64_t h = 0; h < heads; h++)
        for (int64_t i = 0; i < count * dim; i++)
            part[h * count * dim + i] = all[(h * total + begin) * dim + i];
    return part;
}

static void
paste(const double *part, double *all, int64_t heads, int64_t total, int64_t begin,
      int64_t count, int64_t dim)
{
    for (int64_t h = 0; h < heads; h++)
        for (int64_t i = 0; i < count * dim; i++)
            all[(h * total + begin) * dim + i] = part[h * count * dim + i];
}

/* o, its bounds, lse and those, of all rows */
typedef struct Want {
    double *o, *o_bound, *lse, *lse_bound;
} Want;

static Want
want_of(Run *r, int64_t batch, int64_t m)
{
    int64_t rows = batch * r->c->heads * m, size = rows * r->c->value_dim;
    double *at = env_doubles(&r->env, 2 * size + 2 * rows + 1);
    return (Want){at, at + size, at + 2 * size, at + 2 * size + rows};
}

static Want
reference(Run *r, int64_t batch, int64_t m, int64_t n, const double *q, const double *k,
          const double *v)
{
    Want w = want_of(r, batch, m);
    RefAttention ref = {batch,
                        r->c->heads,
                        r->c->heads / r->c->key_heads,
                        m,
                        n,
                        r->c->dim,
                        .value_dim = r->c->value_dim,
                        .q = q,
                        .k = k,
                        .v = v,
                        .scale = (double)r->scale,
                        .causal = r->c->causal,
                        .weight_unit = unit_of(r->c->t),
                        .dot_unit = dot_unit(&r->env, r->c->t),
                        .o = w.o,
                        .o_bound = w.o_bound,
                        .lse = w.lse,
                        .lse_bound = w.lse_bound};
    ref_attention(&ref);
    return w;
}

static Want
wanted(Run *r)
{
    const Case *c = r->c;
    double *q = buf_doubles(&r->env, &r->q), *k = buf_doubles(&r->env, &r->key);
    double *v = buf_doubles(&r->env, &r->value);
    if (!c->lengths_q[0])
        return reference(r, c->batch, c->m, c->n, q, k, v);
    Want all = want_of(r, 1, r->rows);
    int64_t at_q = 0, at_k = 0;
    for (int i = 0; i < r->sequences; i++) {
        int64_t m = c->lengths_q[i], n = c->lengths_k[i];
        Want w = reference(r, 1, m, n, cut(r, q, c->heads, r->rows, at_q, m, c->dim),
                           cut(r, k, c->key_heads, r->keys, at_k, n, c->dim),
                           cut(r, v, c->key_heads, r->keys, at_k, n, c->value_dim));
        paste(w.o, all.o, c->heads, r->rows, at_q, m, c->value_dim);
        paste(w.o_bound, all.o_bound, c->heads, r->rows, at_q, m, c->value_dim);
        paste(w.lse, all.lse, c->heads, r->rows, at_q, m, 1);
        paste(w.lse_bound, all.lse_bound, c->heads, r->rows, at_q, m, 1);
        at_q += m;
        at_k += n;
    }
    return all;
}

/* Sums of lengths, where the device finds them. */
static const int32_t *
sums(Run *r, const int64_t *lengths)
{
    int32_t *at = env_alloc(&r->env, sizeof(int32_t) * (MOST_SEQUENCES + 1));
    for (int i = 0; i < MOST_SEQUENCES; i++)
        at[i + 1] = at[i] + (int32_t)lengths[i];
    return env_place(&r->env, at);
}

static void
make_tensors(Run *r)
{
    const Case *c = r->c;
    r->rows = c->m;
    r->keys = c->n;
    r->sequences = c->batch;
    if (c->lengths_q[0]) {
        r->rows = r->keys = r->sequences = 0;
        for (int i = 0; i < MOST_SEQUENCES && c->lengths_k[i]; i++) {
            r->rows += c->lengths_q[i];
            r->keys += c->lengths_k[i];
            r->sequences++;
        }
    }
    /* queries lie as [batch, M, heads, dim], keys and values by head */
    r->q = buf_swap(
        buf_random(&r->env, c->t, 0, DIMS(c->batch, r->rows, c->heads, c->dim)), 1, 2);
    r->key = buf_random(&r->env, c->t, 8, DIMS(c->batch, c->key_heads, r->keys, c->dim));
    r->value =
        buf_random(&r->env, c->t, 0, DIMS(c->batch, c->key_heads, r->keys, c->value_dim));
    r->o = buf_swap(
        buf_poison(&r->env, c->t, 4, DIMS(c->batch, r->rows, c->heads, c->value_dim)), 1,
        2);
    r->lse = buf_poison(&r->env, SDC_FP32, 0, DIMS(c->batch, c->heads, r->rows));
}

static void
good(Run *r, SdcStatus s)
{
    ck_assert_msg(s == SDC_OK, "%s: %s", sdc_status_name(s), sdc_error(r->env.ctx));
}

static Run
run_open(const Case *c, bool at_end)
{
    setenv("SIM_PROCESSORS", c->processors, 1);
    Run r = {.env = env_open("vector_add"), .c = c};
    r.env.at_end = at_end;
    r.scale = 4.0f / (float)c->dim;
    good(&r, sdc_kernels_create(r.env.ctx, &r.k));
    make_tensors(&r);
    return r;
}

static bool
simulated(void)
{
    return getenv("SDC_LIBCUDA") && !device_dry();
}

static bool
is_hopper(Run *r)
{
    SdcDevice d;
    return r->env.cuda && sdc_context_device(r->env.ctx, &d) == SDC_OK &&
           strcmp(d.target, "sm_90a") == 0;
}

START_TEST(forward)
{
    const Case *c = &cases[_i];
    char why[1024];
    Run r = run_open(c, _i % 2);
    SdcTensor q = tensor(&r, &r.q), key = tensor(&r, &r.key);
    SdcTensor value = tensor(&r, &r.value), o = tensor(&r, &r.o);
    SdcTensor lse = tensor(&r, &r.lse);
    SdcAttention a = {.scale = r.scale, .causal = c->causal};
    if (c->lengths_q[0]) {
        a.cu_q = sums(&r, c->lengths_q);
        a.cu_k = sums(&r, c->lengths_k);
        a.sequences = r.sequences;
        a.longest_q = c->m;
        a.longest_k = c->n;
    }
    good(&r, sdc_flash_attention_forward(r.k, &q, &key, &value, &o, &lse, &a, NULL));
    sdc_nn_explain(r.k, why, sizeof why);
    env_collect(&r.env);
    Want w = wanted(&r);
    /* the fake driver and a GPU have other numbers of SMs, and other plans */
    ck_assert_msg(!c->says || !is_hopper(&r) || !simulated() || strstr(why, c->says),
                  "no '%s' in: %s", c->says, why);
    buf_check(&r.env, &r.lse, why, w.lse, w.lse_bound);
    buf_check(&r.env, &r.o, why, w.o, w.o_bound);
    sdc_kernels_destroy(r.k);
    env_close(&r.env);
}
END_TEST

/* ---------------------------------------------------------------- backward */

static const Case grads[] = {
    {SDC_FP16, 1, 2, 1, 150, 170, 64, 64, true, "1", "tiles 64x64", {0}, {0}},
    {SDC_BF16, 1, 2, 2, 130, 140, 96, 96, true, "1", "tiles 64x128", {0}, {0}},
    {SDC_FP16, 1, 2, 1, 100, 140, 72, 72, false, "1", NULL, {0}, {0}},
    {SDC_FP16, 1, 1, 1, 70, 90, 112, 112, true, "1", NULL, {0}, {0}},
    {SDC_BF16, 1, 2, 1, 90, 70, 128, 128, true, "1", "tiles 64x128", {0}, {0}},
    /* heads that share keys in programs of their own, which add up */
    {SDC_BF16, 2, 8, 2, 101, 150, 128, 128, true, "16", "programs to a head", {0}, {0}},
    {SDC_FP16, 1, 4, 1, 70, 90, 72, 96, false, "16", "programs to a head", {0}, {0}},
    {SDC_FP16, 1, 2, 1, 90, 100, 192, 128, true, "1", NULL, {0}, {0}},
    {SDC_BF16, 1, 1, 1, 70, 130, 256, 256, false, "1", "tiles 64x64", {0}, {0}},
    {SDC_FP32, 1, 2, 1, 40, 50, 40, 24, true, "1", NULL, {0}, {0}},
    {SDC_FP16, 2, 1, 1, 33, 45, 5, 7, false, "1", NULL, {0}, {0}},
};

/* Gradients and their bounds. */
typedef struct GradWant {
    double *dq, *dk, *dv, *dq_bound, *dk_bound, *dv_bound;
} GradWant;

static GradWant
wanted_grads(Run *r, const Buf *o, const Buf *dout)
{
    const Case *c = r->c;
    int64_t rows = c->batch * c->heads * c->m, keys = c->batch * c->key_heads * c->n;
    int64_t size[] = {rows * c->dim, keys * c->dim, keys * c->value_dim};
    double *at[6];
    for (int i = 0; i < 6; i++)
        at[i] = env_doubles(&r->env, size[i % 3]);
    Want w = want_of(r, c->batch, c->m);
    RefAttention ref = {c->batch,
                        c->heads,
                        c->heads / c->key_heads,
                        c->m,
                        c->n,
                        c->dim,
                        .value_dim = c->value_dim,
                        .q = buf_doubles(&r->env, &r->q),
                        .k = buf_doubles(&r->env, &r->key),
                        .v = buf_doubles(&r->env, &r->value),
                        .scale = (double)r->scale,
                        .causal = c->causal,
                        .weight_unit = unit_of(c->t),
                        .dot_unit = dot_unit(&r->env, c->t),
                        .o = w.o,
                        .o_bound = w.o_bound,
                        .lse = w.lse,
                        .lse_bound = w.lse_bound};
    ref_attention(&ref);
    RefAttentionGrad grad = {.a = &ref,
                             .o = buf_doubles(&r->env, o),
                             .dout = buf_doubles(&r->env, dout),
                             .delta = env_doubles(&r->env, rows),
                             .delta_bound = env_doubles(&r->env, rows),
                             .dq = at[0],
                             .dk = at[1],
                             .dv = at[2],
                             .dq_bound = at[3],
                             .dk_bound = at[4],
                             .dv_bound = at[5]};
    ref_attention_grad(&grad);
    return (GradWant){at[0], at[1], at[2], at[3], at[4], at[5]};
}

START_TEST(backward)
{
    const Case *c = &grads[_i / 2];
    bool deterministic = _i % 2;
    char why[1024];
    Run r = run_open(c, deterministic);
    Env *env = &r.env;
    Buf dout = buf_swap(
        buf_random(env, c->t, 0, DIMS(c->batch, c->m, c->heads, c->value_dim)), 1, 2);
    Buf dq =
        buf_swap(buf_poison(env, c->t, 0, DIMS(c->batch, c->m, c->heads, c->dim)), 1, 2);
    Buf dk = buf_poison(env, c->t, 8, DIMS(c->batch, c->key_heads, c->n, c->dim));
    Buf dv = buf_poison(env, c->t, 0, DIMS(c->batch, c->key_heads, c->n, c->value_dim));
    Buf *const b[] = {&r.q, &r.key, &r.value, &r.o, &r.lse, &dout, &dq, &dk, &dv};
    SdcTensor t[9];
    for (int i = 0; i < 9; i++)
        t[i] = tensor(&r, b[i]);
    SdcAttention a = {
        .scale = r.scale, .causal = c->causal, .deterministic = deterministic};
    size_t bytes = sdc_flash_attention_workspace(r.k, &t[0], &a);
    void *work = env_place(env, env_alloc(env, bytes));
    good(&r,
         sdc_flash_attention_forward(r.k, &t[0], &t[1], &t[2], &t[3], &t[4], &a, NULL));
    good(&r, sdc_flash_attention_backward(r.k, &t[0], &t[1], &t[2], &t[3], &t[4], &t[5],
                                          &t[6], &t[7], &t[8], &a, work, NULL));
    sdc_nn_explain(r.k, why, sizeof why);
    env_collect(env);
    GradWant w = wanted_grads(&r, &r.o, &dout);
    ck_assert_msg(!c->says || deterministic || !is_hopper(&r) || strstr(why, c->says),
                  "no '%s' in: %s", c->says, why);
    buf_check(env, &dq, "dq", w.dq, w.dq_bound);
    buf_check(env, &dk, "dk", w.dk, w.dk_bound);
    buf_check(env, &dv, "dv", w.dv, w.dv_bound);
    sdc_kernels_destroy(r.k);
    env_close(env);
}
END_TEST

/* No query: nothing to compute, no workspace, gradients of keys that are zero. Strides
   of what has no elements are any, here those of torch. */
START_TEST(no_queries)
{
    SdcContext *cx;
    SdcKernels *k;
    enum { N = 2 * 20 * 16 };
    float key[N], value[N], dk[N], dv[N];
    for (int i = 0; i < N; i++)
        key[i] = value[i] = dk[i] = dv[i] = 1;
    SdcTensor rows = {SDC_FP32, 4, NULL, {1, 2, 0, 16}, {16, 16, 16, 1}};
    SdcTensor lse = {SDC_FP32, 3, NULL, {1, 2, 0}, {2, 1, 1}};
    SdcTensor keys = {SDC_FP32, 4, key, {1, 2, 20, 16}, {640, 320, 16, 1}};
    SdcTensor values = keys, dkeys = keys, dvalues = keys;
    values.data = value, dkeys.data = dk, dvalues.data = dv;
    SdcAttention a = {0};
    ck_assert_int_eq(sdc_context_create(NULL, &cx), SDC_OK);
    ck_assert_int_eq(sdc_kernels_create(cx, &k), SDC_OK);
    ck_assert_uint_eq(sdc_flash_attention_workspace(k, &rows, &a), 0);
    SdcStatus status =
        sdc_flash_attention_forward(k, &rows, &keys, &values, &rows, &lse, &a, NULL);
    ck_assert_msg(status == SDC_OK, "%s", sdc_error(cx));
    status = sdc_flash_attention_backward(k, &rows, &keys, &values, &rows, &lse, &rows,
                                          &rows, &dkeys, &dvalues, &a, NULL, NULL);
    ck_assert_msg(status == SDC_OK, "%s", sdc_error(cx));
    for (int i = 0; i < N; i++)
        ck_assert(dk[i] == 0 && dv[i] == 0);
    sdc_kernels_destroy(k);
    sdc_context_destroy(cx);
}
END_TEST

int
main(void)
{
    Suite *suite = suite_create("nn_attention");
    TCase *tc = tcase_create("forward");
    tcase_set_timeout(tc, 600);
    tcase_add_loop_test(tc, forward, 0, (int)(sizeof cases / sizeof *cases));
    suite_add_tcase(suite, tc);
    tc = tcase_create("backward");
    tcase_set_timeout(tc, 600);
    tcase_add_loop_test(tc, backward, 0, 2 * (int)(sizeof grads / sizeof *grads));
    tcase_add_test(tc, no_queries);
    suite_add_tcase(suite, tc);
    return suite_finish("nn_attention", suite);
}
