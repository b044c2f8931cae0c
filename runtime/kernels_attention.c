/* sdc_nn.h: flash attention, forward and backward. */
#include <math.h>
#include <string.h>

#include "runtime/kernels.h"

/* `batch`, `M` and `N` of the tensors; sequences and the longest of them for the grids.
 */
typedef struct Shape {
    int64_t batch, heads, key_heads, M, N, dim;
    int64_t sequences, longest_m, longest_n;
    bool packed; /* sequences behind one another */
} Shape;

static bool
attention_fits(Call *c, const SdcTensor *q, const SdcTensor *key, const SdcTensor *value,
               const SdcTensor *lse, const SdcAttention *a, Shape *s)
{
    if (!call_need(c, a != NULL, "the options are missing") ||
        !call_need(c, a->scale >= 0, "the scale is %g, needed is > 0",
                   (double)a->scale) ||
        !call_shape(c, q, "q", SHAPE(-1, -1, -1, -1)) ||
        !call_shape(c, key, "key", SHAPE(q->shape[0], -1, -1, q->shape[3])) ||
        !call_shape(c, value, "value", 4, key->shape) ||
        !call_same_type(c, key, q, "key") || !call_same_type(c, value, q, "value"))
        return false;
    *s = (Shape){.batch = q->shape[0],
                 .heads = q->shape[1],
                 .key_heads = key->shape[1],
                 .M = q->shape[2],
                 .N = key->shape[2],
                 .dim = q->shape[3],
                 .packed = a->cu_q != NULL};
    s->sequences = s->packed ? a->sequences : s->batch;
    s->longest_m = s->packed ? a->longest_q : s->M;
    s->longest_n = s->packed ? a->longest_k : s->N;
    int64_t d = s->dim;
    call_need(c, !s->packed || (a->cu_k && s->batch == 1 && a->sequences >= 0),
              "packed sequences need 'cu_k' and a batch of 1");
    call_need(c, a->p >= 0 && a->p < 1, "p is %g, needed is 0 <= p < 1", (double)a->p);
    call_need(c, q->dtype == SDC_FP32 || q->dtype == SDC_FP16 || q->dtype == SDC_BF16,
              "'q' is %s, possible are fp32, fp16 and bf16", sdc_dtype_name(q->dtype));
    call_need(c, d == 16 || d == 32 || d == 64 || d == 96 || d == 128 || d == 256,
              "heads of %lld elements, possible are 16, 32, 64, 96, 128 and 256",
              (long long)d);
    call_need(c, s->key_heads > 0 && s->heads % s->key_heads == 0,
              "%lld heads are no multiple of %lld key heads", (long long)s->heads,
              (long long)s->key_heads);
    call_shape(c, lse, "lse", SHAPE(s->batch, s->heads, s->M));
    call_need(c, c->status != SDC_OK || lse->dtype == SDC_FP32, "'lse' needs to be fp32");
    return c->status == SDC_OK && call_dense(c, lse, "lse");
}

static double
scale_of(const SdcAttention *a, const Shape *s)
{
    return a->scale > 0 ? (double)a->scale : 1 / sqrt((double)s->dim);
}

static void
bind_common(Call *c, const SdcAttention *a, const Shape *s, int block_m, int block_n)
{
    call_bind(c, "HEAD_DIM", s->dim);
    call_bind(c, "BLOCK_M", block_m);
    call_bind(c, "BLOCK_N", block_n);
    call_bind_bool(c, "CAUSAL", a->causal != 0);
    call_bind(c, "GROUP", s->heads / s->key_heads);
    call_bind_bool(c, "DROPOUT", a->p > 0);
    call_bind_text(c, "PRECISION", a->exact ? "ieee" : "tf32");
}

/* The kernels of attention compute offsets of heads and rows in 64 bits by themselves, so
   strides are as wide as they are. The batch of packed sequences has none. */
static void
strides(Call *c, const SdcTensor *t, bool packed)
{
    for (int i = 0; i < t->rank; i++)
        call_int(c, i == 0 && packed ? 0 : t->strides[i]);
}

static void
call_lengths(Call *c, const SdcAttention *a, const Shape *s)
{
    call_int(c, s->heads);
    call_int(c, s->M);
    call_int(c, s->N);
    if (s->packed) {
        call_ptr(c, SDC_I32, (void *)(uintptr_t)a->cu_q);
        call_ptr(c, SDC_I32, (void *)(uintptr_t)a->cu_k);
    } else {
        call_tensor(c, NULL);
        call_tensor(c, NULL);
    }
    call_float_arg(c, (double)a->p);
    call_int(c, a->seed);
}

/* Tiles by what was measured (docs/performance.md). */
typedef struct Tile {
    int m, n, warps, stages;
} Tile;

static bool
is_hopper(const SdcKernels *k)
{
    return k->on_gpu && strcmp(k->cx->gpu_target, "sm_90a") == 0;
}

static Tile
forward_tile(const SdcKernels *k, const Shape *s, SdcDtype t, bool dropout, bool causal)
{
    bool hopper = is_hopper(k);
    if (t == SDC_FP32 || !k->on_gpu) {
        bool wide = s->dim > 128 || (t == SDC_FP32 && s->dim > 64);
        return (Tile){k->on_gpu && !wide ? 128 : 64, wide ? 32 : 64,
                      k->on_gpu && s->dim > 64 && !wide ? 8 : 4, 3};
    }
    if (!hopper)
        return s->dim > 128 ? (Tile){64, 32, 4, 3}
                            : (Tile){128, s->dim == 96 ? 32 : 64, s->dim > 32 ? 8 : 4, 3};
    if (s->dim == 64 && !dropout && s->longest_m > (causal ? 8192 : 128))
        return (Tile){256, 64, 16, 4};
    if (s->dim == 128 && !dropout)
        return (Tile){128, 128, 8, 2};
    return (Tile){128, 64, s->dim < 128 && !dropout ? 4 : 8, s->dim > 64 ? 2 : 3};
}

/* Are there tiles for Hopper? */
static bool
is_fast(const SdcKernels *k, const Shape *s, SdcDtype t, const SdcAttention *a)
{
    return is_hopper(k) && t != SDC_FP32 && !a->deterministic && !(a->p > 0) &&
           (s->dim == 64 || s->dim == 128);
}

static Tile
backward_tile(const SdcKernels *k, const Shape *s, SdcDtype t, const SdcAttention *a)
{
    if (is_fast(k, s, t, a))
        return s->dim == 64 ? (Tile){64, 64, 4, 2} : (Tile){64, 128, 8, 3};
    return (Tile){s->dim > 64 ? 32 : 64, s->dim > 128 ? 32 : 64,
                  k->on_gpu && t != SDC_FP32 ? 8 : 4, 2};
}

SdcStatus
sdc_flash_attention_forward(SdcKernels *k, const SdcTensor *q, const SdcTensor *key,
                            const SdcTensor *value, const SdcTensor *o,
                            const SdcTensor *lse, const SdcAttention *a, void *stream)
{
    Call c = call_begin(k, "sdc_flash_attention_forward");
    Shape s;
    if (c.status != SDC_OK || !attention_fits(&c, q, key, value, lse, a, &s) ||
        !call_shape(&c, o, "o", 4, q->shape) || !call_same_type(&c, o, q, "o"))
        return c.status;
    Tile tile = forward_tile(k, &s, q->dtype, a->p > 0, a->causal);
    bind_common(&c, a, &s, tile.m, tile.n);
    call_bind(&c, "num_warps", tile.warps);
    call_bind(&c, "num_stages", tile.stages);
    call_tensor(&c, q);
    call_tensor(&c, key);
    call_tensor(&c, value);
    call_tensor(&c, o);
    call_tensor(&c, lse);
    call_float_arg(&c, scale_of(a, &s));
    strides(&c, q, s.packed);
    strides(&c, key, s.packed);
    strides(&c, value, s.packed);
    strides(&c, o, s.packed);
    call_lengths(&c, a, &s);
    return call_run(&c, "flash_attention", "flash_attention_fwd",
                    sdc_grid(ceil_over(s.longest_m, tile.m), s.sequences * s.heads, 1),
                    stream);
}

/* ---------------------------------------------------------------- gradients */

/* Workspace: for each row of queries lse2, delta and, where gradients are added up in
   memory, the sums for dq, in tiles of so many rows. */
enum { SUM_ROWS = 64 };

typedef struct Grads {
    const SdcTensor *q, *key, *value, *o, *lse, *dout, *dq, *dk, *dv;
    const SdcAttention *a;
    Shape s;
    float *lse2, *delta, *sums;
    Tile tile;
    bool late; /* the products for dq one tile later */
} Grads;

static size_t
sum_elements(const SdcTensor *q)
{
    return (size_t)(q->shape[0] * q->shape[1] * ceil_over(q->shape[2], SUM_ROWS) *
                    SUM_ROWS * q->shape[3]);
}

size_t
sdc_flash_attention_workspace(SdcKernels *k, const SdcTensor *q, const SdcAttention *a)
{
    if (!k || !q || q->rank != 4 || !a)
        return 0;
    size_t rows = (size_t)(q->shape[0] * q->shape[1] * q->shape[2]);
    return sizeof(float) * (2 * rows + (a->deterministic ? 0 : sum_elements(q)));
}

static SdcStatus
grad_rows(Call *c, const Grads *g, void *stream)
{
    enum { BLOCK_M = 64 };
    call_next(c);
    call_bind(c, "HEAD_DIM", g->s.dim);
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
    strides(c, g->o, false);
    strides(c, g->dout, false);
    call_int(c, g->s.heads);
    call_int(c, g->s.M);
    return call_run(c, "flash_attention_bwd", "flash_attention_bwd_rows",
                    sdc_grid(ceil_over(g->s.M, BLOCK_M), g->s.batch * g->s.heads, 1),
                    stream);
}

/* What both big kernels begin with. */
static void
grad_inputs(Call *c, const Grads *g)
{
    call_next(c);
    bind_common(c, g->a, &g->s, g->tile.m, g->tile.n);
    call_bind(c, "num_warps", g->tile.warps);
    call_bind(c, "num_stages", g->tile.stages);
    call_tensor(c, g->q);
    call_tensor(c, g->key);
    call_tensor(c, g->value);
    call_tensor(c, g->dout);
    call_ptr(c, SDC_FP32, g->lse2);
    call_ptr(c, SDC_FP32, g->delta);
}

static void
grad_strides(Call *c, const Grads *g)
{
    strides(c, g->q, g->s.packed);
    strides(c, g->key, g->s.packed);
    strides(c, g->value, g->s.packed);
    strides(c, g->dout, g->s.packed);
}

static SdcStatus
grad_keys(Call *c, const Grads *g, void *stream)
{
    grad_inputs(c, g);
    call_bind_bool(c, "DQ", g->sums != NULL);
    call_bind_bool(c, "LATE", g->late);
    call_tensor(c, g->dk);
    call_tensor(c, g->dv);
    if (g->sums)
        call_ptr(c, SDC_FP32, g->sums);
    else
        call_tensor(c, NULL);
    call_float_arg(c, scale_of(g->a, &g->s));
    grad_strides(c, g);
    strides(c, g->dk, g->s.packed);
    strides(c, g->dv, g->s.packed);
    call_lengths(c, g->a, &g->s);
    return call_run(c, "flash_attention_bwd", "flash_attention_bwd",
                    sdc_grid(ceil_over(g->s.longest_n, g->tile.n),
                             g->s.sequences * g->s.key_heads, 1),
                    stream);
}

static SdcStatus
grad_queries(Call *c, const Grads *g, void *stream)
{
    enum { CAST_M = 64 };
    int64_t heads = g->s.batch * g->s.heads;
    if (!g->sums) {
        grad_inputs(c, g);
        call_tensor(c, g->dq);
        call_float_arg(c, scale_of(g->a, &g->s));
        grad_strides(c, g);
        strides(c, g->dq, g->s.packed);
        call_lengths(c, g->a, &g->s);
        return call_run(c, "flash_attention_bwd", "flash_attention_bwd_dq",
                        sdc_grid(ceil_over(g->s.longest_m, g->tile.m),
                                 g->s.sequences * g->s.heads, 1),
                        stream);
    }
    call_next(c);
    call_bind(c, "HEAD_DIM", g->s.dim);
    call_bind(c, "BLOCK_M", CAST_M);
    call_bind_bool(c, "SEQUENCES", g->s.packed);
    call_ptr(c, SDC_FP32, g->sums);
    call_tensor(c, g->dq);
    call_float_arg(c, scale_of(g->a, &g->s));
    strides(c, g->dq, false);
    call_int(c, g->s.heads);
    call_int(c, g->s.M);
    return call_run(c, "flash_attention_bwd", "flash_attention_bwd_cast",
                    sdc_grid(ceil_over(g->s.M, CAST_M), heads, 1), stream);
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
    const SdcTensor *like_q[] = {o, dout, dq}, *like_key[] = {dk, dv};
    static const char *const names_q[] = {"o", "dout", "dq"}, *const names_k[] = {"dk",
                                                                                  "dv"};
    for (int i = 0; i < 3; i++)
        if (!call_shape(&c, like_q[i], names_q[i], 4, q->shape) ||
            !call_same_type(&c, like_q[i], q, names_q[i]))
            return c.status;
    for (int i = 0; i < 2; i++)
        if (!call_shape(&c, like_key[i], names_k[i], 4, key->shape) ||
            !call_same_type(&c, like_key[i], q, names_k[i]))
            return c.status;
    if (!call_need(&c, workspace != NULL, "the workspace is missing"))
        return c.status;
    int64_t rows = g.s.batch * g.s.heads * g.s.M;
    if (!a->deterministic) { /* first, where it is as aligned as can be */
        g.sums = workspace;
        g.lse2 = g.sums + sum_elements(q);
    }
    g.delta = g.lse2 + rows;
    g.tile = backward_tile(k, &g.s, q->dtype, a);
    g.late = is_fast(k, &g.s, q->dtype, a) && !g.s.packed; /* or registers are short */
    SdcStatus status = grad_rows(&c, &g, stream);
    if (status == SDC_OK)
        status = grad_keys(&c, &g, stream);
    return status == SDC_OK ? grad_queries(&c, &g, stream) : status;
}
