/* sdc_nn.h: attention, backward. */
#include "runtime/nn/attention.h"

/* Workspace: for each row of queries lse2, delta and, where gradients are added up in
   memory, the sums for dq. A head has a whole number of tiles of so many rows. */
enum { SUM_ROWS = 64 };

typedef struct Grads {
    const SdcTensor *q, *key, *value, *o, *lse, *dout, *dq, *dk, *dv;
    const SdcAttention *a;
    AttentionShape s;
    float *lse2, *delta, *sums;
    float *key_sums, *value_sums; /* of shares; NULL: dk and dv are stored */
    GradPlan plan;
} Grads;

static size_t
work_rows(const SdcTensor *q)
{
    return (size_t)(q->shape[0] * q->shape[1] * ceil_over(q->shape[2], SUM_ROWS) *
                    SUM_ROWS);
}

static size_t
sum_elements(const SdcTensor *x)
{
    return work_rows(x) * (size_t)attention_columns((int)x->shape[3], false);
}

size_t
sdc_flash_attention_workspace(SdcKernels *k, const SdcTensor *q, const SdcAttention *a)
{
    if (!k || !q || q->rank != 4 || q->shape[3] < 1 || q->shape[3] > ATTENTION_MOST_DIM ||
        !a)
        return 0;
    return sizeof(float) * (2 * work_rows(q) + (a->deterministic ? 0 : sum_elements(q)));
}

/* Memory for the sums of shares, both in one piece: a whole number of ZERO words. */
static bool
borrow_sums(Call *c, Grads *g)
{
    size_t key = sum_elements(g->key), value = sum_elements(g->value);
    if (g->plan.shares == 1)
        return true;
    g->key_sums = call_borrow(c, (int64_t)((key + value) * sizeof(float)));
    g->value_sums = g->key_sums ? g->key_sums + key : NULL;
    return g->key_sums != NULL;
}

static SdcStatus
grad_rows(Call *c, const Grads *g, void *stream)
{
    enum { BLOCK_M = 64, ZERO = 1024 };
    call_next(c);
    call_bind(c, "HEAD_DIM", g->s.dim);
    if (g->s.value_dim != g->s.dim)
        call_bind(c, "VALUE_DIM", g->s.value_dim);
    call_bind(c, "BLOCK_M", BLOCK_M);
    call_tensor(c, g->o);
    call_tensor(c, g->dout);
    call_tensor(c, g->lse);
    call_ptr(c, SDC_FP32, g->lse2);
    call_ptr(c, SDC_FP32, g->delta);
    if (g->sums)
        call_ptr(c, SDC_FP32, g->sums);
    else
        call_tensor(c, NULL);
    attention_strides(c, g->o, false);
    attention_strides(c, g->dout, false);
    call_int(c, g->s.heads);
    call_int(c, g->s.M);
    if (g->key_sums) {
        call_ptr(c, SDC_FP32, g->key_sums);
        call_int(c, (int64_t)((sum_elements(g->key) + sum_elements(g->value)) / ZERO));
    } else {
        call_tensor(c, NULL);
        call_tensor(c, NULL);
    }
    return call_run(c, "flash_attention_bwd", "flash_attention_bwd_rows",
                    sdc_grid(ceil_over(g->s.M, BLOCK_M), g->s.batch * g->s.heads, 1),
                    stream);
}

/* What both big kernels begin with. */
static void
grad_inputs(Call *c, const Grads *g, const AttentionTile *t)
{
    attention_bind(c, g->a, &g->s, t);
    call_bind_bool(c, "CAUSAL", g->a->causal != 0);
    call_bind_bool(c, "DROPOUT", g->a->p > 0);
    call_tensor(c, g->q);
    call_tensor(c, g->key);
    call_tensor(c, g->value);
    call_tensor(c, g->dout);
    call_ptr(c, SDC_FP32, g->lse2);
    call_ptr(c, SDC_FP32, g->delta);
}

/* The numbers behind the strides. */
static void
grad_numbers(Call *c, const Grads *g)
{
    attention_lengths(c, g->a, &g->s);
    call_float_arg(c, (double)g->a->p);
    call_int(c, g->a->seed);
    attention_grad_options(c, &g->s);
}

static void
grad_strides(Call *c, const Grads *g)
{
    attention_strides(c, g->q, g->s.packed);
    attention_strides(c, g->key, g->s.packed);
    attention_strides(c, g->value, g->s.packed);
    attention_strides(c, g->dout, g->s.packed);
}

static SdcStatus
grad_keys(Call *c, const Grads *g, void *stream)
{
    const AttentionTile *t = &g->plan.keys;
    grad_inputs(c, g, t);
    if (g->key_sums) {
        call_bind(c, "SHARES", g->plan.shares);
        call_ptr(c, SDC_FP32, g->key_sums);
        call_ptr(c, SDC_FP32, g->value_sums);
    } else {
        call_tensor(c, g->dk);
        call_tensor(c, g->dv);
    }
    if (g->sums)
        call_ptr(c, SDC_FP32, g->sums);
    else
        call_tensor(c, NULL);
    call_float_arg(c, attention_scale(g->a, &g->s));
    grad_strides(c, g);
    attention_strides(c, g->dk, g->s.packed);
    attention_strides(c, g->dv, g->s.packed);
    grad_numbers(c, g);
    return call_run(c, "flash_attention_bwd", "flash_attention_bwd",
                    sdc_grid(ceil_over(g->s.longest_n, t->n),
                             g->s.sequences * g->s.key_heads * g->plan.shares, 1),
                    stream);
}

/* A gradient [batch, heads, rows, dim] from its sums. */
static SdcStatus
grad_cast(Call *c, const float *sums, const SdcTensor *to, double scale, bool sequences,
          void *stream)
{
    enum { CAST_M = 64 };
    call_next(c);
    call_bind(c, "HEAD_DIM", to->shape[3]);
    call_bind(c, "BLOCK_M", CAST_M);
    call_bind_bool(c, "SEQUENCES", sequences);
    call_ptr(c, SDC_FP32, (void *)(uintptr_t)sums);
    call_tensor(c, to);
    call_float_arg(c, scale);
    attention_strides(c, to, false);
    call_int(c, to->shape[1]);
    call_int(c, to->shape[2]);
    return call_run(
        c, "flash_attention_bwd", "flash_attention_bwd_cast",
        sdc_grid(ceil_over(to->shape[2], CAST_M), to->shape[0] * to->shape[1], 1),
        stream);
}

static SdcStatus
grad_queries(Call *c, const Grads *g, void *stream)
{
    grad_inputs(c, g, &g->plan.queries);
    call_tensor(c, g->dq);
    call_float_arg(c, attention_scale(g->a, &g->s));
    grad_strides(c, g);
    attention_strides(c, g->dq, g->s.packed);
    grad_numbers(c, g);
    return call_run(c, "flash_attention_bwd_dq", "flash_attention_bwd_dq",
                    sdc_grid(ceil_over(g->s.longest_m, g->plan.queries.m),
                             g->s.sequences * g->s.heads, 1),
                    stream);
}

/* Workspace and plan are there. */
static SdcStatus
grad_run(Call *c, const Grads *g, void *stream)
{
    double scale = attention_scale(g->a, &g->s);
    SdcStatus status = grad_rows(c, g, stream);
    if (status == SDC_OK)
        status = grad_keys(c, g, stream);
    if (status == SDC_OK)
        status = g->sums ? grad_cast(c, g->sums, g->dq, scale, g->s.packed, stream)
                         : grad_queries(c, g, stream);
    if (status == SDC_OK && g->key_sums)
        status = grad_cast(c, g->key_sums, g->dk, scale, g->s.packed, stream);
    if (status == SDC_OK && g->key_sums)
        status = grad_cast(c, g->value_sums, g->dv, 1 / (1 - (double)g->a->p),
                           g->s.packed, stream);
    return status;
}

SdcStatus
sdc_flash_attention_backward(SdcKernels *k, const SdcTensor *q, const SdcTensor *key,
                             const SdcTensor *value, const SdcTensor *o,
                             const SdcTensor *lse, const SdcTensor *dout,
                             const SdcTensor *dq, const SdcTensor *dk,
                             const SdcTensor *dv, const SdcAttention *a, void *workspace,
                             void *stream)
{
    Call c = call_begin(k, "sdc_flash_attention_backward");
    Grads g = {.q = q,
               .key = key,
               .value = value,
               .o = o,
               .lse = lse,
               .dout = dout,
               .dq = dq,
               .dk = dk,
               .dv = dv,
               .a = a,
               .lse2 = workspace};
    if (c.status != SDC_OK || !attention_fits(&c, q, key, value, lse, a, &g.s))
        return c.status;
    const SdcTensor *in[] = {o, dout, dq, dk, dv}, *like[] = {NULL, NULL, q, key, value};
    static const char *const names[] = {"o", "dout", "dq", "dk", "dv"};
    const int64_t shape_o[] = {q->shape[0], q->shape[1], q->shape[2], value->shape[3]};
    for (int i = 0; i < 5; i++)
        if (!call_shape(&c, in[i], names[i], 4, like[i] ? like[i]->shape : shape_o) ||
            !call_same_type(&c, in[i], q, names[i]))
            return c.status;
    if (!call_need(&c, !attention_forward_only(&g.s),
                   "pages and scales are of the forward pass alone"))
        return c.status;
    size_t rows = work_rows(q);
    if (!call_need(&c, workspace != NULL || !rows, "the workspace is missing"))
        return c.status;
    if (!a->deterministic && workspace) { /* first, where it is as aligned as can be */
        g.sums = workspace;
        g.lse2 = g.sums + sum_elements(q);
    }
    g.delta = workspace ? g.lse2 + rows : NULL;
    AttentionAsk ask = attention_ask(&g.s, q->dtype, a);
    g.plan = grad_plan(&k->device, &ask);
    if ((g.s.packed && !a->cu_k) || !rows) /* sequences share keys; nothing sets zeros */
        g.plan.shares = 1;
    call_note(&c, &(Note){.kind = NOTE_GRAD, .of.grad = {ask, g.plan}});
    c.stream = stream;
    if (borrow_sums(&c, &g))
        grad_run(&c, &g, stream);
    return call_end(&c);
}
