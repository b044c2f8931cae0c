/* sdc_nn.h: attention, forward. The plan says which kernel, tiles and parts of the keys
   (runtime/nn/plan_attention.c); here it is carried out. */
#include "runtime/nn/attention.h"

#include "ir/base/util.h"

#include <math.h>

enum { JOIN = 4096 };

static bool
is_fp8(SdcDtype t)
{
    return t == SDC_FP8E5 || t == SDC_FP8E4NV;
}

static bool
tensors_fit(Call *c, const SdcTensor *q, const SdcTensor *key, const SdcTensor *value,
            bool pages)
{
    if (!call_shape(c, q, "q", SHAPE(-1, -1, -1, -1)) ||
        !call_shape(c, key, "key",
                    SHAPE(pages ? -1 : q->shape[0], -1, -1, q->shape[3])) ||
        !call_shape(c, value, "value",
                    SHAPE(key->shape[0], key->shape[1], key->shape[2], -1)))
        return false;
    bool mixed = is_fp8(key->dtype) && q->dtype != SDC_FP32;
    return (mixed || call_same_type(c, key, q, "key")) &&
           call_same_type(c, value, key, "value");
}

static bool
lengths_fit(Call *c, const SdcAttention *a, const AttentionShape *s)
{
    const SdcAttentionOptions *o = &s->options;
    return call_need(c, !s->packed || (s->batch == 1 && a->sequences >= 0 &&
                                       (a->cu_k || o->key_lengths)),
                     "packed sequences need 'cu_k' and a batch of 1") &&
           call_need(c, !o->pages || (s->page > 0 && s->longest_n >= 0),
                     "pages of %lld keys, %lld keys at most", (long long)s->page,
                     (long long)s->longest_n);
}

bool
attention_fits(Call *c, const SdcTensor *q, const SdcTensor *key, const SdcTensor *value,
               const SdcTensor *lse, const SdcAttention *a, AttentionShape *s)
{
    SdcAttentionOptions options;
    if (!call_need(c, a != NULL, "the options are missing") ||
        !call_need(c, a->scale >= 0, "the scale is %g, needed is > 0",
                   (double)a->scale) ||
        !attention_options(c, a, &options) ||
        !tensors_fit(c, q, key, value, options.pages != NULL))
        return false;
    bool pages = options.pages != NULL;
    *s = (AttentionShape){.batch = q->shape[0],
                          .heads = q->shape[1],
                          .key_heads = key->shape[1],
                          .M = q->shape[2],
                          .N = pages ? a->longest_k : key->shape[2],
                          .dim = q->shape[3],
                          .value_dim = value->shape[3],
                          .packed = a->cu_q != NULL,
                          .options = options,
                          .page = key->shape[2]};
    s->sequences = s->packed ? a->sequences : s->batch;
    s->longest_m = s->packed ? a->longest_q : s->M;
    s->longest_n = s->packed ? a->longest_k : s->N;
    call_need(c, a->p >= 0 && a->p < 1, "p is %g, needed is 0 <= p < 1", (double)a->p);
    call_need(c, q->dtype == SDC_FP32 || q->dtype == SDC_FP16 || q->dtype == SDC_BF16,
              "'q' is %s, possible are fp32, fp16 and bf16", sdc_dtype_name(q->dtype));
    const int64_t dims[2] = {s->dim, s->value_dim};
    for (int i = 0; i < 2; i++)
        call_need(c, dims[i] >= 1 && dims[i] <= ATTENTION_MOST_DIM,
                  "heads of %lld elements, possible are 1 to %d", (long long)dims[i],
                  ATTENTION_MOST_DIM);
    call_need(c, s->key_heads > 0 && s->heads % s->key_heads == 0,
              "%lld heads are no multiple of %lld key heads", (long long)s->heads,
              (long long)s->key_heads);
    call_shape(c, lse, "lse", SHAPE(s->batch, s->heads, s->M));
    call_need(c, c->status != SDC_OK || lse->dtype == SDC_FP32, "'lse' needs to be fp32");
    return c->status == SDC_OK && call_dense(c, lse, "lse") && lengths_fit(c, a, s) &&
           attention_options_fit(c, s);
}

/* With a window no more than those of all queries, and of the tiles that they begin
   in. */
static int64_t
keys_seen(const AttentionShape *s)
{
    int64_t wide = s->longest_m + s->options.window + ATTENTION_MOST_KEYS;
    return s->options.window ? min_i64(s->longest_n, wide) : s->longest_n;
}

AttentionAsk
attention_ask(const AttentionShape *s, SdcDtype t, const SdcAttention *a)
{
    return (AttentionAsk){.sequences = s->sequences,
                          .heads = s->heads,
                          .key_heads = s->key_heads,
                          .m = s->longest_m,
                          .n = keys_seen(s),
                          .dim = (int)s->dim,
                          .value_dim = (int)s->value_dim,
                          .bytes = sdc_dtype_size(t),
                          .changed = attention_is_changed(s),
                          .exact = a->exact,
                          .causal = a->causal,
                          .dropout = a->p > 0,
                          .deterministic = a->deterministic,
                          .packed = s->packed};
}

double
attention_scale(const SdcAttention *a, const AttentionShape *s)
{
    return a->scale > 0 ? (double)a->scale : 1 / sqrt((double)s->dim);
}

void
attention_bind(Call *c, const SdcAttention *a, const AttentionShape *s,
               const AttentionTile *t)
{
    call_next(c);
    call_bind(c, "HEAD_DIM", s->dim);
    if (s->value_dim != s->dim)
        call_bind(c, "VALUE_DIM", s->value_dim);
    call_bind(c, "BLOCK_M", t->m);
    call_bind(c, "BLOCK_N", t->n);
    call_bind(c, "GROUP", s->heads / s->key_heads);
    call_bind_text(c, "PRECISION", a->exact ? "ieee" : "tf32");
    call_bind(c, "num_warps", t->warps);
    call_bind(c, "num_stages", t->stages);
}

/* The kernels of attention compute offsets of heads and rows in 64 bits by themselves, so
   strides are as wide as they are. The batch of packed sequences has none. */
void
attention_strides(Call *c, const SdcTensor *t, bool packed)
{
    for (int i = 0; i < t->rank; i++)
        call_int(c, i == 0 && packed ? 0 : t->strides[i]);
}

void
attention_lengths(Call *c, const SdcAttention *a, const AttentionShape *s)
{
    call_int(c, s->heads);
    call_int(c, s->M);
    call_int(c, s->N);
    const int32_t *cu[] = {s->packed ? a->cu_q : NULL, s->packed ? a->cu_k : NULL};
    for (int i = 0; i < 2; i++)
        if (cu[i])
            call_ptr(c, SDC_I32, (void *)(uintptr_t)cu[i]);
        else
            call_tensor(c, NULL);
}

/* ---------------------------------------------------------------- forward */

typedef struct Forward {
    const SdcTensor *q, *key, *value, *o, *lse;
    const SdcAttention *a;
    AttentionShape s;
    AttentionPlan plan;
} Forward;

static void
forward_tensors(Call *c, const Forward *f)
{
    call_tensor(c, f->q);
    call_tensor(c, f->key);
    call_tensor(c, f->value);
    call_tensor(c, f->o);
    call_tensor(c, f->lse);
}

static void
forward_strides(Call *c, const Forward *f)
{
    attention_strides(c, f->q, f->s.packed);
    attention_strides(c, f->key, f->s.packed);
    attention_strides(c, f->value, f->s.packed);
    attention_strides(c, f->o, f->s.packed);
}

/* Programs of a sequence and head. Tiles of queries that see no key are stores, which the
   others do beside their own, but no fewer programs than run at once. */
static int64_t
programs_of(const Call *c, const Forward *f)
{
    const AttentionTile *t = &f->plan.tile;
    const AttentionShape *s = &f->s;
    int64_t window = s->options.window, tiles = ceil_over(s->longest_m, t->m);
    if (s->packed || !(f->a->causal || window))
        return tiles;
    int64_t blind = s->M - s->N - (f->a->causal ? 0 : window - 1);
    int64_t at_once = (int64_t)c->k->device.processors * t->resident;
    int64_t least = ceil_over(at_once, s->sequences * s->heads);
    return blind <= 0 ? tiles : min_i64(tiles, max_i64(tiles - blind / t->m, least));
}

static void
by_queries(Call *c, const Forward *f)
{
    const AttentionTile *t = &f->plan.tile;
    int64_t tiles = programs_of(c, f);
    int64_t pairs = f->s.sequences * f->s.heads;
    attention_bind(c, f->a, &f->s, t);
    if (t->wide)
        call_bind_bool(c, "WIDE", true);
    if (f->plan.turns) {
        call_bind_bool(c, "AHEAD", f->plan.ahead);
    } else {
        call_bind_bool(c, "CAUSAL", f->a->causal != 0);
        call_bind_bool(c, "DROPOUT", f->a->p > 0);
    }
    forward_tensors(c, f);
    call_float_arg(c, attention_scale(f->a, &f->s));
    forward_strides(c, f);
    attention_lengths(c, f->a, &f->s);
    call_float_arg(c, (double)f->a->p);
    call_int(c, f->a->seed);
    bool changed = attention_is_changed(&f->s);
    if (changed) {
        attention_bind_options(c, &f->s);
        attention_option_args(c, &f->s);
    }
    if (!f->plan.turns) {
        call_run(c, "flash_attention",
                 changed ? "flash_attention_fwd_options" : "flash_attention_fwd",
                 sdc_grid(tiles, pairs, 1), c->stream);
        return;
    }
    call_int(c, tiles);
    call_int(c, pairs);
    int64_t at_once = (int64_t)c->k->device.processors * t->resident;
    call_run(c, "flash_attention", "flash_attention_fwd_tiles",
             call_grid(c, min_i64(at_once, tiles * pairs)), c->stream);
}

static void
join_parts(Call *c, const Forward *f, float *part, float *stat)
{
    int64_t parts = power_over(f->plan.parts, ATTENTION_MOST_PARTS);
    int64_t cols = power_over(f->s.value_dim, JOIN / parts);
    call_next(c);
    call_bind(c, "VALUE_DIM", f->s.value_dim);
    call_bind(c, "PARTS", parts);
    call_bind(c, "BLOCK_D", cols);
    call_bind(c, "num_warps", 4);
    call_tensor(c, f->o);
    call_tensor(c, f->lse);
    call_ptr(c, SDC_FP32, part);
    call_ptr(c, SDC_FP32, stat);
    attention_strides(c, f->o, false);
    call_int(c, f->s.heads);
    call_int(c, f->s.M);
    call_int(c, f->plan.parts);
    call_run(c, "flash_attention_split", "flash_attention_join",
             sdc_grid(f->s.batch * f->s.heads * f->s.M,
                      ceil_over(f->s.value_dim, cols), 1),
             c->stream);
}

static void
by_parts(Call *c, const Forward *f)
{
    const AttentionTile *t = &f->plan.tile;
    int64_t group = f->s.heads / f->s.key_heads;
    int64_t rows = f->s.batch * f->s.heads * f->s.M, parts = f->plan.parts;
    float *part = NULL, *stat = NULL;
    if (parts > 1) { /* first the sums, where they are as aligned as can be */
        part = call_borrow(c, parts * rows * (f->s.value_dim + 2) *
                                  (int64_t)sizeof(float));
        if (!part)
            return;
        stat = part + parts * rows * f->s.value_dim;
    }
    attention_bind(c, f->a, &f->s, t);
    call_bind_bool(c, "CAUSAL", f->a->causal != 0);
    forward_tensors(c, f);
    if (part) {
        call_ptr(c, SDC_FP32, part);
        call_ptr(c, SDC_FP32, stat);
    } else {
        call_tensor(c, NULL);
        call_tensor(c, NULL);
    }
    call_float_arg(c, attention_scale(f->a, &f->s));
    forward_strides(c, f);
    attention_lengths(c, f->a, &f->s);
    call_int(c, rows);
    call_int(c, parts);
    call_int(c, f->plan.keys);
    attention_bind_options(c, &f->s);
    attention_option_args(c, &f->s);
    call_run(c, "flash_attention_split", "flash_attention_split",
             sdc_grid(ceil_over(f->s.longest_m * group, t->m) * parts,
                      f->s.sequences * f->s.key_heads, 1),
             c->stream);
    if (part)
        join_parts(c, f, part, stat);
}

SdcStatus
sdc_flash_attention_forward(SdcKernels *k, const SdcTensor *q, const SdcTensor *key,
                            const SdcTensor *value, const SdcTensor *o,
                            const SdcTensor *lse, const SdcAttention *a, void *stream)
{
    Call c = call_begin(k, "sdc_flash_attention_forward");
    Forward f = {.q = q, .key = key, .value = value, .o = o, .lse = lse, .a = a};
    if (c.status != SDC_OK || !attention_fits(&c, q, key, value, lse, a, &f.s) ||
        !call_shape(&c, o, "o",
                    SHAPE(q->shape[0], q->shape[1], q->shape[2], value->shape[3])) ||
        !call_same_type(&c, o, q, "o"))
        return c.status;
    c.stream = stream;
    if (!f.s.batch || !f.s.heads || !f.s.M)
        return SDC_OK;
    AttentionAsk ask = attention_ask(&f.s, q->dtype, a);
    f.plan = attention_plan(&k->device, &ask);
    call_note(&c, &(Note){.kind = NOTE_ATTENTION, .of.attention = {ask, f.plan}});
    (f.plan.split ? by_parts : by_queries)(&c, &f);
    return call_end(&c);
}
