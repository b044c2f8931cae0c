/* sdc_nn.h: what attention may have beside its tensors, SdcAttentionOptions: whether it
   fits, and as arguments of the kernels (kernels_dsl/flash_attention.tk, options). */
#include "runtime/nn/attention.h"

static bool
vector_fits(Call *c, const SdcTensor *t, int64_t n, const char *what)
{
    return !t || (call_shape(c, t, what, SHAPE(n)) && call_dense(c, t, what) &&
                  call_need(c, t->dtype == SDC_FP32, "'%s' needs to be fp32", what));
}

static bool
bias_fits(Call *c, const SdcTensor *t, const AttentionShape *s)
{
    return !t ||
           (call_need(c, !s->packed, "packed sequences have no bias") &&
            call_shape(c, t, "bias", SHAPE(s->batch, s->heads, s->M, s->longest_n)) &&
            call_float(c, t, "bias"));
}

bool
attention_options(Call *c, const SdcAttention *a, SdcAttentionOptions *to)
{
    *to = (SdcAttentionOptions){.size = sizeof *to};
    if (!a->options)
        return true;
    if (!call_options(c, a->options, to, sizeof *to))
        return false;
    return call_need(c, to->window >= 0, "the window is %lld, needed is >= 0",
                     (long long)to->window) &&
           call_need(c, to->cap >= 0, "the cap is %g, needed is >= 0", (double)to->cap);
}

bool
attention_options_fit(Call *c, const AttentionShape *s)
{
    const SdcAttentionOptions *o = &s->options;
    return vector_fits(c, o->slopes, s->heads, "slopes") &&
           vector_fits(c, o->key_scale, s->key_heads, "key_scale") &&
           vector_fits(c, o->value_scale, s->key_heads, "value_scale") &&
           bias_fits(c, o->bias, s) &&
           call_need(c, !o->pages || !s->packed || s->longest_n >= 0,
                     "pages need the longest number of keys");
}

bool
attention_is_changed(const AttentionShape *s)
{
    const SdcAttentionOptions *o = &s->options;
    return o->window || o->cap > 0 || o->slopes || o->bias || o->key_lengths ||
           o->pages || o->key_scale || o->value_scale;
}

void
attention_bind_options(Call *c, const AttentionShape *s)
{
    const SdcAttentionOptions *o = &s->options;
    if (o->window)
        call_bind_bool(c, "WINDOW", true);
    if (o->cap > 0)
        call_bind_bool(c, "CAPPED", true);
    if (o->pages)
        call_bind(c, "PAGE", s->page);
}

static void
lengths(Call *c, const int32_t *p)
{
    if (p)
        call_ptr(c, SDC_I32, (void *)(uintptr_t)p);
    else
        call_tensor(c, NULL);
}

void
attention_grad_options(Call *c, const AttentionShape *s)
{
    const SdcAttentionOptions *o = &s->options;
    if (o->window)
        call_int(c, o->window);
    else
        call_tensor(c, NULL);
    if (o->cap > 0)
        call_float_arg(c, (double)o->cap);
    else
        call_tensor(c, NULL);
    call_tensor(c, o->slopes);
    call_tensor(c, o->bias);
    for (int i = 0; i < 4; i++)
        if (o->bias)
            call_int(c, o->bias->strides[i]);
        else
            call_tensor(c, NULL);
    lengths(c, o->key_lengths);
}

bool
attention_forward_only(const AttentionShape *s)
{
    const SdcAttentionOptions *o = &s->options;
    return o->pages || o->key_scale || o->value_scale;
}

void
attention_option_args(Call *c, const AttentionShape *s)
{
    const SdcAttentionOptions *o = &s->options;
    call_int(c, o->window);
    call_float_arg(c, (double)o->cap);
    call_tensor(c, o->slopes);
    call_tensor(c, o->bias);
    for (int i = 0; i < 4; i++)
        call_int(c, o->bias ? o->bias->strides[i] : 0);
    lengths(c, o->key_lengths);
    lengths(c, o->pages);
    call_int(c, o->pages_stride);
    call_tensor(c, o->key_scale);
    call_tensor(c, o->value_scale);
}
