/* The block of block.h. Each function of sdc_nn.h is a call on the stream; the first one
   that fails ends the pass. */
#include "tests/block/block.h"

static const double eps = 1e-5;

/* What lies in the block's memory. */
typedef struct Parts {
    SdcTensor h1, rstd1, qkv, o, lse, x1, h2, rstd2, both, m; /* of the way forward */
    SdcTensor dm, dboth, dh, dx1, d_o, dqkv;                  /* of the way back */
    void *norm_work, *attention_work;
    size_t used;
} Parts;

static void *
place(Parts *p, void *memory, size_t bytes)
{
    size_t at = p->used;
    p->used += (bytes + 255) / 256 * 256;
    return memory ? (char *)memory + at : NULL;
}

static SdcTensor
matrix(Parts *p, const Block *b, SdcDtype t, int64_t rows, int64_t cols)
{
    size_t bytes = (size_t)(rows * cols) * (size_t)sdc_dtype_size(t);
    return sdc_matrix(t, place(p, b->memory, bytes), rows, cols);
}

static SdcTensor
numbers(Parts *p, const Block *b, int64_t n)
{
    return sdc_vector(SDC_FP32, place(p, b->memory, (size_t)n * sizeof(float)), n);
}

/* `heads` heads of attention among the columns of a matrix, from head `first` on. */
static SdcTensor
heads_of(const Block *b, const SdcTensor *t, int64_t first, int64_t heads)
{
    const BlockShape *s = &b->shape;
    int64_t dim = s->width / s->heads, pitch = t->strides[0];
    SdcTensor x = {.dtype = t->dtype,
                   .rank = 4,
                   .data = (char *)t->data + first * dim * sdc_dtype_size(t->dtype),
                   .shape = {s->batch, heads, s->length, dim},
                   .strides = {s->length * pitch, dim, pitch, 1}};
    return x;
}

static Parts
parts_of(const Block *b)
{
    const BlockShape *s = &b->shape;
    int64_t n = s->batch * s->length, w = s->width, h = s->hidden;
    SdcDtype t = (SdcDtype)s->type;
    SdcAttention a = {.causal = 1};
    Parts p = {0};
    p.h1 = matrix(&p, b, t, n, w);
    p.rstd1 = numbers(&p, b, n);
    p.qkv = matrix(&p, b, t, n, 3 * w);
    p.o = matrix(&p, b, t, n, w);
    p.lse = numbers(&p, b, n * s->heads);
    p.x1 = matrix(&p, b, t, n, w);
    p.h2 = matrix(&p, b, t, n, w);
    p.rstd2 = numbers(&p, b, n);
    p.both = matrix(&p, b, t, n, 2 * h);
    p.m = matrix(&p, b, t, n, h);
    p.dm = matrix(&p, b, t, n, h);
    p.dboth = matrix(&p, b, t, n, 2 * h);
    p.dh = matrix(&p, b, t, n, w);
    p.dx1 = matrix(&p, b, t, n, w);
    p.d_o = matrix(&p, b, t, n, w);
    p.dqkv = matrix(&p, b, t, n, 3 * w);
    const int64_t lse[3] = {s->batch, s->heads, s->length};
    p.lse = sdc_tensor(SDC_FP32, p.lse.data, 3, lse);
    SdcTensor q = heads_of(b, &p.qkv, 0, s->heads);
    p.norm_work = place(&p, b->memory, sdc_rms_norm_workspace(b->k, w));
    p.attention_work = place(&p, b->memory, sdc_flash_attention_workspace(b->k, &q, &a));
    return p;
}

size_t
block_memory(SdcKernels *k, const BlockShape *s)
{
    Block b = {.k = k, .shape = *s};
    return parts_of(&b).used;
}

static SdcTensor
columns(const SdcTensor *t, int64_t first, int64_t n)
{
    SdcTensor x = *t;
    x.data = (char *)t->data + first * sdc_dtype_size(t->dtype);
    x.shape[1] = n;
    return x;
}

static SdcTensor
transposed(const SdcTensor *t)
{
    SdcTensor x = *t;
    x.shape[0] = t->shape[1];
    x.shape[1] = t->shape[0];
    x.strides[0] = t->strides[1];
    x.strides[1] = t->strides[0];
    return x;
}

/* c = a b + residual, unless that is NULL. */
static SdcStatus
product(const Block *b, const SdcTensor *a, const SdcTensor *w, const SdcTensor *residual,
        const SdcTensor *c, void *stream)
{
    SdcMatmulOptions o = {.size = sizeof o, .residual = residual};
    return sdc_matmul_with(b->k, a, w, c, &o, stream);
}

/* The gradients of c = a w: da = dc w^T, dw = a^T dc. */
static SdcStatus
product_back(const Block *b, const SdcTensor *a, const SdcTensor *w, const SdcTensor *dc,
             const SdcTensor *da, const SdcTensor *dw, void *stream)
{
    SdcTensor wt = transposed(w), at = transposed(a);
    SdcStatus s = product(b, &at, dc, NULL, dw, stream);
    return s == SDC_OK ? product(b, dc, &wt, NULL, da, stream) : s;
}

/* Queries and keys, which are neighbours, at once and in place. */
static SdcStatus
turn(const Block *b, const SdcTensor *qkv, int inverse, void *stream)
{
    const BlockShape *s = &b->shape;
    int64_t half = s->width / s->heads / 2;
    SdcRotary r = {.size = sizeof r, .inverse = inverse};
    SdcTensor x = heads_of(b, qkv, 0, 2 * s->heads);
    SdcTensor cos = sdc_matrix(SDC_FP32, b->cos, s->length, half);
    SdcTensor sin = sdc_matrix(SDC_FP32, b->sin, s->length, half);
    return sdc_rotary(b->k, &x, &cos, &sin, &x, &r, stream);
}

/* Weights or their gradients as tensors. */
typedef struct Weights {
    SdcTensor norm1, qkv, out, norm2, gate_up, down;
} Weights;

static Weights
weights_of(const Block *b, const BlockWeights *w)
{
    const BlockShape *s = &b->shape;
    SdcDtype t = (SdcDtype)s->type;
    return (Weights){sdc_vector(t, w->norm1, s->width),
                     sdc_matrix(t, w->qkv, s->width, 3 * s->width),
                     sdc_matrix(t, w->out, s->width, s->width),
                     sdc_vector(t, w->norm2, s->width),
                     sdc_matrix(t, w->gate_up, s->width, 2 * s->hidden),
                     sdc_matrix(t, w->down, s->hidden, s->width)};
}

#define TRY(call)                                                                        \
    do {                                                                                 \
        SdcStatus status_ = (call);                                                      \
        if (status_ != SDC_OK)                                                           \
            return status_;                                                              \
    } while (0)

SdcStatus
block_forward(const Block *b, void *x_data, void *y_data, void *stream)
{
    const BlockShape *s = &b->shape;
    Parts p = parts_of(b);
    Weights w = weights_of(b, &b->w);
    SdcAttention a = {.causal = 1};
    SdcTensor x = p.x1, y = p.x1;
    x.data = x_data;
    y.data = y_data;
    TRY(sdc_rms_norm_forward(b->k, &x, &w.norm1, &p.h1, &p.rstd1, eps, stream));
    TRY(product(b, &p.h1, &w.qkv, NULL, &p.qkv, stream));
    TRY(turn(b, &p.qkv, 0, stream));
    SdcTensor q = heads_of(b, &p.qkv, 0, s->heads);
    SdcTensor key = heads_of(b, &p.qkv, s->heads, s->heads);
    SdcTensor value = heads_of(b, &p.qkv, 2 * s->heads, s->heads);
    SdcTensor o = heads_of(b, &p.o, 0, s->heads);
    TRY(sdc_flash_attention_forward(b->k, &q, &key, &value, &o, &p.lse, &a, stream));
    TRY(product(b, &p.o, &w.out, &x, &p.x1, stream));
    TRY(sdc_rms_norm_forward(b->k, &p.x1, &w.norm2, &p.h2, &p.rstd2, eps, stream));
    TRY(product(b, &p.h2, &w.gate_up, NULL, &p.both, stream));
    SdcTensor gate = columns(&p.both, 0, s->hidden);
    SdcTensor up = columns(&p.both, s->hidden, s->hidden);
    TRY(sdc_swiglu_forward(b->k, &gate, &up, &p.m, stream));
    return product(b, &p.m, &w.down, &p.x1, &y, stream);
}

/* From dy to dx1 and the gradients of the perceptron. */
static SdcStatus
perceptron_back(const Block *b, const Parts *p, const SdcTensor *dy, const Weights *g,
                void *stream)
{
    int64_t h = b->shape.hidden;
    Weights w = weights_of(b, &b->w);
    SdcTensor gate = columns(&p->both, 0, h), up = columns(&p->both, h, h);
    SdcTensor dgate = columns(&p->dboth, 0, h), dup = columns(&p->dboth, h, h);
    TRY(product_back(b, &p->m, &w.down, dy, &p->dm, &g->down, stream));
    TRY(sdc_swiglu_backward(b->k, &p->dm, &gate, &up, &dgate, &dup, stream));
    TRY(product_back(b, &p->h2, &w.gate_up, &p->dboth, &p->dh, &g->gate_up, stream));
    return sdc_rms_norm_backward(b->k, &p->dh, &p->x1, &w.norm2, &p->rstd2, dy, &p->dx1,
                                 &g->norm2, p->norm_work, stream);
}

SdcStatus
block_backward(const Block *b, void *x_data, void *dy_data, void *dx_data,
               const BlockWeights *grad, void *stream)
{
    int64_t heads = b->shape.heads;
    Parts p = parts_of(b);
    Weights w = weights_of(b, &b->w), g = weights_of(b, grad);
    SdcAttention a = {.causal = 1};
    SdcTensor x = p.x1, dy = p.x1, dx = p.x1, qkv[3], dqkv[3];
    x.data = x_data;
    dy.data = dy_data;
    dx.data = dx_data;
    TRY(perceptron_back(b, &p, &dy, &g, stream));
    TRY(product_back(b, &p.o, &w.out, &p.dx1, &p.d_o, &g.out, stream));
    for (int i = 0; i < 3; i++) {
        qkv[i] = heads_of(b, &p.qkv, i * heads, heads);
        dqkv[i] = heads_of(b, &p.dqkv, i * heads, heads);
    }
    SdcTensor o = heads_of(b, &p.o, 0, heads), d_o = heads_of(b, &p.d_o, 0, heads);
    TRY(sdc_flash_attention_backward(b->k, &qkv[0], &qkv[1], &qkv[2], &o, &p.lse, &d_o,
                                     &dqkv[0], &dqkv[1], &dqkv[2], &a, p.attention_work,
                                     stream));
    TRY(turn(b, &p.dqkv, 1, stream));
    TRY(product_back(b, &p.h1, &w.qkv, &p.dqkv, &p.dh, &g.qkv, stream));
    return sdc_rms_norm_backward(b->k, &p.dh, &x, &w.norm1, &p.rstd1, &p.dx1, &dx,
                                 &g.norm1, p.norm_work, stream);
}
