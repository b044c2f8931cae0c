/* Self-attention of the training proof: queries, keys and values are columns of one
   matrix, and so are their gradients: the kernels take any strides. The gradient of the
   queries has a pass of its own, so that a rerun gives the same bits. */
#include <math.h>
#include <stdio.h>

#include "tests/train/layers.h"

enum { MAX_ARGS = 64 };

typedef struct Args {
    SdcArg at[MAX_ARGS];
    int n;
} Args;

static void
push(Args *a, SdcArg arg)
{
    if (a->n < MAX_ARGS)
        a->at[a->n++] = arg;
}

static void
push_floats(Args *a, const float *p)
{
    push(a, floats_arg(p));
}

/* Batch, head, row, column of a matrix with `width` columns. */
static void
push_strides(Args *a, const Heads *h, int64_t width)
{
    push(a, sdc_int(h->length * width));
    push(a, sdc_int(h->dim));
    push(a, sdc_int(width));
    push(a, sdc_int(1));
}

/* Sizes; every text is as long as the others; weights are dropped by a seed. */
static void
push_rest(const Net *net, Args *a, const Heads *h)
{
    push(a, sdc_int(h->heads));
    push(a, sdc_int(h->length));
    push(a, sdc_int(h->length));
    push(a, sdc_none());
    push(a, sdc_none());
    push(a, sdc_float(net->p));
    push(a, sdc_int(net->seed * 64 + 32 + h->layer));
}

static bool
drops(const Net *net)
{
    return net->learning && net->mode != DENSE;
}

static void
run(Net *net, const Heads *h, const char *file, const char *kernel, const char *binds,
    const Args *a)
{
    char text[160];
    snprintf(text, sizeof(text), "HEAD_DIM=%lld BLOCK_M=32 %s", (long long)h->dim, binds);
    machine_run(net->m, file, kernel,
                sdc_grid(ceil_div(h->length, 32), h->texts * h->heads, 1), text, a->at,
                a->n);
}

void
attention(Net *net, const Heads *h, const float *qkv, float *o, float *lse)
{
    int64_t width = h->heads * h->dim;
    Args a = {.n = 0};
    for (int i = 0; i < 3; i++)
        push_floats(&a, qkv + i * width);
    push_floats(&a, o);
    push_floats(&a, lse);
    push(&a, sdc_float(1 / sqrt((double)h->dim)));
    for (int i = 0; i < 3; i++)
        push_strides(&a, h, 3 * width);
    push_strides(&a, h, width);
    push_rest(net, &a, h);
    run(net, h, "flash_attention", "flash_attention_fwd",
        drops(net) ? "BLOCK_N=32 CAUSAL=True DROPOUT=True" : "BLOCK_N=32 CAUSAL=True",
        &a);
}

/* The way back to keys and values (two results), or to queries (one). */
static void
back(Net *net, const Heads *h, const float *qkv, const float *dy, const float *lse2,
     const float *delta, float *dqkv, bool queries)
{
    int64_t width = h->heads * h->dim;
    Args a = {.n = 0};
    for (int i = 0; i < 3; i++)
        push_floats(&a, qkv + i * width);
    push_floats(&a, dy);
    push_floats(&a, lse2);
    push_floats(&a, delta);
    if (queries) {
        push_floats(&a, dqkv);
    } else {
        push_floats(&a, dqkv + width);
        push_floats(&a, dqkv + 2 * width);
        push(&a, sdc_none());
    }
    push(&a, sdc_float(1 / sqrt((double)h->dim)));
    for (int i = 0; i < 3; i++)
        push_strides(&a, h, 3 * width);
    push_strides(&a, h, width);
    for (int i = 0; i < (queries ? 1 : 2); i++)
        push_strides(&a, h, 3 * width);
    push_rest(net, &a, h);
    for (int i = 0; i < 9; i++) /* options */
        push(&a, sdc_none());
    const char *kernel = queries ? "flash_attention_bwd_dq" : "flash_attention_bwd";
    run(net, h, kernel, kernel,
        drops(net) ? "BLOCK_N=32 CAUSAL=True DROPOUT=True" : "BLOCK_N=32 CAUSAL=True",
        &a);
}

void
attention_back(Net *net, const Heads *h, const float *qkv, const float *o,
               const float *lse, const float *dy, float *dqkv)
{
    int64_t width = h->heads * h->dim;
    float *lse2 = net->rows;
    float *delta = lse2 + h->texts * h->heads * ceil_div(h->length, 64) * 64;
    Args a = {.n = 0};
    push_floats(&a, o);
    push_floats(&a, dy);
    push_floats(&a, lse);
    push_floats(&a, lse2);
    push_floats(&a, delta);
    push(&a, sdc_none());
    push_strides(&a, h, width);
    push_strides(&a, h, width);
    push(&a, sdc_int(h->heads));
    push(&a, sdc_int(h->length));
    push(&a, sdc_none()); /* no sums of keys and values */
    push(&a, sdc_none());
    run(net, h, "flash_attention_bwd", "flash_attention_bwd_rows", "", &a);
    back(net, h, qkv, dy, lse2, delta, dqkv, false);
    back(net, h, qkv, dy, lse2, delta, dqkv, true);
}
