/* SdcAttentionOptions: windows, caps, slopes, biases, lengths of keys, pages and fp8 with
   scales, alone and together, for few queries and for many, and the gradients of all but
   pages and scales. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/sdc_nn.h"
#include "tests/run/support/harness.h"

typedef struct Case {
    SdcDtype t, t_key;
    int64_t heads, key_heads, m, n, dim;
    bool causal;
    int64_t window;
    float cap;
    bool slopes, bias, lengths, scales;
    int64_t page; /* 0: none */
} Case;

enum { BATCH = 2 };
#define HALF SDC_FP16, SDC_FP16

static const Case cases[] = {
    {HALF, 4, 2, 1, 300, 64, true, 70, 0, false, false, false, false, 0},
    {HALF, 2, 1, 150, 400, 64, true, 100, 0, false, false, false, false, 0},
    {HALF, 2, 2, 140, 140, 64, false, 40, 0, false, false, false, false, 0},
    {HALF, 2, 2, 200, 90, 32, true, 300, 0, false, false, false, false, 0},
    {HALF, 4, 2, 500, 90, 64, false, 40, 0, false, false, true, false, 0},
    {SDC_BF16, SDC_BF16, 4, 2, 3, 200, 128, true, 0, 2.5f, false, false, false, false, 0},
    {HALF, 2, 1, 130, 150, 64, true, 0, 1.5f, true, false, false, false, 0},
    {HALF, 4, 4, 2, 100, 64, false, 0, 0, true, false, true, false, 0},
    {HALF, 2, 1, 130, 140, 64, false, 0, 0, false, true, false, false, 0},
    {HALF, 4, 1, 5, 140, 64, true, 0, 0, false, true, true, false, 0},
    {HALF, 4, 2, 1, 500, 64, true, 0, 0, false, false, true, false, 16},
    {HALF, 4, 2, 130, 200, 128, true, 0, 0, false, false, true, false, 16},
    {SDC_BF16, SDC_BF16, 2, 2, 1, 333, 96, true, 50, 3, true, false, true, false, 7},
    {SDC_FP16, SDC_FP8E4NV, 8, 2, 1, 400, 128, true, 0, 0, false, false, true, true, 0},
    {SDC_BF16, SDC_FP8E5, 4, 2, 2, 300, 64, true, 0, 0, false, false, true, true, 32},
    {SDC_FP16, SDC_FP8E4NV, 2, 1, 130, 200, 64, true, 0, 0, false, false, false, true, 0},
    {SDC_FP32, SDC_FP32, 2, 1, 4, 90, 40, true, 30, 1, true, true, true, false, 8},
    {SDC_FP32, SDC_FP32, 2, 1, 140, 150, 40, false, 33, 1, true, true, true, false, 0},
    {SDC_BF16, SDC_BF16, 4, 2, 150, 90, 128, true, 20, 2, true, true, false, false, 0},
};

typedef struct Run {
    Env env;
    SdcKernels *k;
    const Case *c;
    int64_t pages; /* of a sequence */
    Buf q, key, value, o, lse, slopes, bias, scale[2];
    int32_t *lengths, *table;
    float scale_of;
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

static void
make(Run *r)
{
    const Case *c = r->c;
    Env *env = &r->env;
    int64_t page = c->page ? c->page : c->n;
    r->pages = ceil_div(c->n, page);
    int64_t all = c->page ? BATCH * r->pages + 3 : BATCH;
    r->q = buf_swap(buf_random(env, c->t, 0, DIMS(BATCH, c->m, c->heads, c->dim)), 1, 2);
    r->key = buf_random(env, c->t_key, 16, DIMS(all, c->key_heads, page, c->dim));
    r->value = buf_random(env, c->t_key, 0, DIMS(all, c->key_heads, page, c->dim));
    r->o = buf_swap(buf_poison(env, c->t, 4, DIMS(BATCH, c->m, c->heads, c->dim)), 1, 2);
    r->lse = buf_poison(env, SDC_FP32, 0, DIMS(BATCH, c->heads, c->m));
    r->slopes = buf_random(env, SDC_FP32, 0, DIMS(c->heads));
    r->bias = buf_random(env, c->t, 3, DIMS(BATCH, 1, c->m, c->n));
    r->bias.shape[1] = c->heads; /* one for all heads */
    r->bias.strides[1] = 0;
    for (int64_t i = 0; i < c->heads; i++)
        buf_set(&r->slopes, i, 0.5 / (double)(i + 1));
    for (int i = 0; i < 2; i++) {
        r->scale[i] = buf_random(env, SDC_FP32, 0, DIMS(c->key_heads));
        for (int64_t h = 0; h < c->key_heads; h++)
            buf_set(&r->scale[i], h, c->scales ? 0.5 + 0.25 * (double)(h + i) : 1);
    }
    r->lengths = env_alloc(env, BATCH * sizeof(int32_t));
    r->table = env_alloc(env, (size_t)(BATCH * r->pages) * sizeof(int32_t));
    for (int b = 0; b < BATCH; b++) {
        r->lengths[b] = (int32_t)(c->lengths ? c->n - 17 * b - 1 : c->n);
        /* from behind, so that no page is where its number is */
        for (int64_t i = 0; i < r->pages; i++)
            r->table[b * r->pages + i] =
                (int32_t)(c->page ? all - 1 - (i * BATCH + b) : b);
    }
}

/* Keys or values as the kernel should see them: [BATCH, key heads, n, dim]. */
static double *
gathered(Run *r, const Buf *from, const Buf *scale)
{
    const Case *c = r->c;
    int64_t page = from->shape[2], at = 0;
    double *all = buf_doubles(&r->env, from), *factor = buf_doubles(&r->env, scale);
    double *to = env_doubles(&r->env, BATCH * c->key_heads * c->n * c->dim);
    for (int64_t b = 0; b < BATCH; b++)
        for (int64_t h = 0; h < c->key_heads; h++)
            for (int64_t n = 0; n < c->n; n++)
                for (int64_t d = 0; d < c->dim; d++) {
                    int64_t p = r->table[b * r->pages + n / page];
                    int64_t row = (p * c->key_heads + h) * page + n % page;
                    to[at++] = all[row * c->dim + d] * factor[h];
                }
    return to;
}

/* The options of a call; what is placed on a device until env_collect. */
typedef struct Given {
    SdcTensor slopes, bias, scale[2];
    SdcAttentionOptions more;
    SdcAttention a;
} Given;

static void
give(Run *r, Given *g)
{
    const Case *c = r->c;
    g->slopes = tensor(r, &r->slopes);
    g->bias = tensor(r, &r->bias);
    for (int i = 0; i < 2; i++)
        g->scale[i] = tensor(r, &r->scale[i]);
    g->more = (SdcAttentionOptions){
        .size = sizeof g->more,
        .window = c->window,
        .cap = c->cap,
        .slopes = c->slopes ? &g->slopes : NULL,
        .bias = c->bias ? &g->bias : NULL,
        .key_lengths = c->lengths ? env_place(&r->env, r->lengths) : NULL,
        .pages = c->page ? env_place(&r->env, r->table) : NULL,
        .pages_stride = r->pages,
        .key_scale = c->scales ? &g->scale[0] : NULL,
        .value_scale = c->scales ? &g->scale[1] : NULL};
    g->a = (SdcAttention){.scale = r->scale_of,
                          .causal = c->causal,
                          .longest_k = c->n,
                          .options = &g->more};
}

static void
gradients(Run *r, RefAttentionGrad *grad, const Buf *dout, int deterministic)
{
    const Case *c = r->c;
    Env *env = &r->env;
    Given g;
    Buf dq = buf_poison(env, c->t, 8, DIMS(BATCH, c->heads, c->m, c->dim));
    Buf dk = buf_poison(env, c->t, 0, DIMS(BATCH, c->key_heads, c->n, c->dim));
    Buf dv = buf_poison(env, c->t, 3, DIMS(BATCH, c->key_heads, c->n, c->dim));
    SdcTensor q = tensor(r, &r->q), key = tensor(r, &r->key), o = tensor(r, &r->o);
    SdcTensor value = tensor(r, &r->value), lse = tensor(r, &r->lse);
    SdcTensor tout = tensor(r, dout), tq = tensor(r, &dq), tk = tensor(r, &dk);
    SdcTensor tv = tensor(r, &dv);
    give(r, &g);
    g.a.deterministic = deterministic;
    size_t bytes = sdc_flash_attention_workspace(r->k, &q, &g.a);
    void *work = env_place(env, env_alloc(env, bytes));
    SdcStatus s = sdc_flash_attention_backward(r->k, &q, &key, &value, &o, &lse, &tout,
                                               &tq, &tk, &tv, &g.a, work, NULL);
    ck_assert_msg(s == SDC_OK, "%s", sdc_error(env->ctx));
    env_collect(env);
    buf_check(env, &dq, "dq", grad->dq, grad->dq_bound);
    buf_check(env, &dk, "dk", grad->dk, grad->dk_bound);
    buf_check(env, &dv, "dv", grad->dv, grad->dv_bound);
}

/* Where there are gradients, by both ways. */
static void
backward(Run *r, const RefAttention *ref)
{
    const Case *c = r->c;
    Env *env = &r->env;
    int64_t rows = BATCH * c->heads * c->m, size = rows * c->dim;
    int64_t keys = BATCH * c->key_heads * c->n * c->dim;
    Buf dout = buf_random(env, c->t, 0, DIMS(BATCH, c->heads, c->m, c->dim));
    double *out = env_doubles(env, 2 * size + 4 * keys + 2 * rows);
    RefAttentionGrad grad = {.a = ref,
                             .o = buf_doubles(env, &r->o),
                             .dout = buf_doubles(env, &dout),
                             .dq = out,
                             .dq_bound = out + size,
                             .dk = out + 2 * size,
                             .dk_bound = out + 2 * size + keys,
                             .dv = out + 2 * size + 2 * keys,
                             .dv_bound = out + 2 * size + 3 * keys,
                             .delta = out + 2 * size + 4 * keys,
                             .delta_bound = out + 2 * size + 4 * keys + rows};
    if (c->page || c->scales || c->t != c->t_key)
        return;
    ref_attention_grad(&grad);
    gradients(r, &grad, &dout, 0);
    gradients(r, &grad, &dout, 1);
}

static void
compare(Run *r, const char *what)
{
    const Case *c = r->c;
    int64_t rows = BATCH * c->heads * c->m, size = rows * c->dim;
    double *out = env_doubles(&r->env, 2 * size + 2 * rows);
    RefAttention ref = {BATCH,
                        c->heads,
                        c->heads / c->key_heads,
                        c->m,
                        c->n,
                        c->dim,
                        .q = buf_doubles(&r->env, &r->q),
                        .k = gathered(r, &r->key, &r->scale[0]),
                        .v = gathered(r, &r->value, &r->scale[1]),
                        .scale = (double)r->scale_of,
                        .causal = c->causal,
                        .weight_unit = unit_of(c->t),
                        .dot_unit = dot_unit(&r->env, c->t),
                        .window = c->window,
                        .cap = (double)c->cap,
                        .slopes = c->slopes ? buf_doubles(&r->env, &r->slopes) : NULL,
                        .bias = c->bias ? buf_doubles(&r->env, &r->bias) : NULL,
                        .lengths = r->lengths,
                        .o = out,
                        .o_bound = out + size,
                        .lse = out + 2 * size,
                        .lse_bound = out + 2 * size + rows};
    ref_attention(&ref);
    buf_check(&r->env, &r->lse, what, ref.lse, ref.lse_bound);
    buf_check(&r->env, &r->o, what, ref.o, ref.o_bound);
    backward(r, &ref);
}

START_TEST(options)
{
    const Case *c = &cases[_i];
    char why[1024];
    setenv("SIM_PROCESSORS", "4", 1);
    Run r = {.env = env_open("vector_add"), .c = c, .scale_of = 4.0f / (float)c->dim};
    r.env.at_end = _i % 2;
    SdcStatus s = sdc_kernels_create(r.env.ctx, &r.k);
    ck_assert_msg(s == SDC_OK, "%s", sdc_error(r.env.ctx));
    make(&r);
    SdcTensor q = tensor(&r, &r.q), key = tensor(&r, &r.key), o = tensor(&r, &r.o);
    SdcTensor value = tensor(&r, &r.value), lse = tensor(&r, &r.lse);
    Given g;
    give(&r, &g);
    s = sdc_flash_attention_forward(r.k, &q, &key, &value, &o, &lse, &g.a, NULL);
    ck_assert_msg(s == SDC_OK, "%s", sdc_error(r.env.ctx));
    sdc_nn_explain(r.k, why, sizeof why);
    env_collect(&r.env);
    compare(&r, why);
    sdc_kernels_destroy(r.k);
    env_close(&r.env);
}
END_TEST

START_TEST(refusals)
{
    Env env = env_open("vector_add");
    SdcKernels *k;
    ck_assert_int_eq(sdc_kernels_create(env.ctx, &k), SDC_OK);
    int64_t shape[] = {1, 1, 4, 16};
    float mem[64] = {0};
    SdcTensor x = sdc_tensor(SDC_FP32, mem, 4, shape);
    SdcTensor lse = sdc_tensor(SDC_FP32, mem, 3, shape), slopes = lse;
    SdcAttentionOptions more = {.size = 1};
    SdcAttention a = {.options = &more};
    ck_assert_int_eq(sdc_flash_attention_forward(k, &x, &x, &x, &x, &lse, &a, NULL),
                     SDC_ERROR_ARGUMENT);
    ck_assert_ptr_nonnull(strstr(sdc_error(env.ctx), "options of 1 bytes"));
    more = (SdcAttentionOptions){.size = sizeof more, .slopes = &slopes};
    ck_assert_int_eq(sdc_flash_attention_forward(k, &x, &x, &x, &x, &lse, &a, NULL),
                     SDC_ERROR_ARGUMENT);
    ck_assert_ptr_nonnull(strstr(sdc_error(env.ctx), "'slopes' has 3 dimensions"));
    int32_t page = 0;
    more = (SdcAttentionOptions){.size = sizeof more, .pages = &page};
    a.longest_k = 4;
    ck_assert_int_eq(sdc_flash_attention_backward(k, &x, &x, &x, &x, &lse, &x, &x, &x, &x,
                                                  &a, mem, NULL),
                     SDC_ERROR_ARGUMENT);
    ck_assert_ptr_nonnull(strstr(sdc_error(env.ctx), "of the forward pass alone"));
    sdc_kernels_destroy(k);
    env_close(&env);
}
END_TEST

int
main(void)
{
    Suite *suite = suite_create("nn_attention_options");
    TCase *tc = tcase_create("options");
    tcase_set_timeout(tc, 600);
    tcase_add_loop_test(tc, options, 0, (int)(sizeof cases / sizeof *cases));
    tcase_add_test(tc, refusals);
    suite_add_tcase(suite, tc);
    return suite_finish("nn_attention_options", suite);
}
