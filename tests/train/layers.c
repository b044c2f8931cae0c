/* The layers of the training proof as launches of kernels_dsl, see layers.h. */
#include "tests/train/layers.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { ALIGN = 16, WIDE = 1024, MAX_PARAMS = 1 << 24 };

/* Sizes for a GPU, which has programs for few columns and many rows take many at a time.
 */
static bool
large(const Net *net)
{
    return net->tile > 64;
}

static SdcArg
at(const float *array, int64_t offset)
{
    return offset < 0 ? sdc_none() : sdc_ptr(SDC_FP32, array + offset);
}

static SdcGrid
grid1(int64_t n)
{
    return sdc_grid(n, 1, 1);
}

static int64_t
power_above(int64_t n)
{
    int64_t p = 1;
    while (p < n)
        p *= 2;
    return p;
}

uint64_t
next_random(uint64_t *state)
{
    uint64_t x = *state += 0x9e3779b97f4a7c15u;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return x ^ (x >> 31);
}

/* ---- parameters */

int64_t
net_param(Net *net, int64_t n, double mean, double deviation)
{
    int64_t from = net->n;
    int64_t end = (from + n + ALIGN - 1) / ALIGN * ALIGN;
    float *more =
        end <= MAX_PARAMS ? realloc(net->host, (size_t)end * sizeof(float)) : NULL;
    if (!more) {
        net->m->failed = true;
        return 0;
    }
    net->host = more;
    net->n = end;
    for (int64_t i = from; i < end; i++) {
        double u = (double)(next_random(&net->random) >> 11) * 0x1p-53;
        net->host[i] = (float)(mean + deviation * sqrt(3) * (2 * u - 1));
    }
    return from;
}

bool
net_ready(Net *net)
{
    Machine *m = net->m;
    float **arrays[] = {&net->w, &net->g, &net->m1, &net->m2};
    for (int i = 0; i < 4; i++)
        *arrays[i] = machine_floats(m, net->n);
    net->part = machine_floats(m, net->part_size);
    net->rows = machine_floats(m, net->rows_size);
    machine_write(m, net->w, net->host, net->n * (int64_t)sizeof(float));
    free(net->host);
    net->host = NULL;
    return !m->failed;
}

void
net_step(Net *net, int64_t step, double rate)
{
    const double beta1 = 0.9, beta2 = 0.99;
    RUN(net->m, "adamw", "adamw", grid1(ceil_div(net->n, WIDE)), "BLOCK=1024",
        at(net->w, 0), at(net->g, 0), at(net->m1, 0), at(net->m2, 0), sdc_none(),
        sdc_int(net->n), sdc_float(1), sdc_float(rate), sdc_float(beta1),
        sdc_float(beta2), sdc_float(1e-8), sdc_float(0.01),
        sdc_float(1 - pow(beta1, (double)step)), sdc_float(1 - pow(beta2, (double)step)));
}

/* ---- matmuls */

typedef struct Matrix {
    const float *p;
    int64_t down, right; /* strides */
} Matrix;

static Matrix
dense(const float *p, int64_t cols)
{
    return (Matrix){p, cols, 1};
}

static Matrix
turned(const float *p, int64_t cols)
{
    return (Matrix){p, 1, cols};
}

/* Smaller tiles where a GPU would have too few, and taller ones where it has many. */
static void
tile_for(const Net *net, int64_t M, int64_t N, bool rows, int tile[2])
{
    enum { ENOUGH = 66 };
    tile[0] = tile[1] = net->tile;
    if (!large(net))
        return;
    if (rows && ceil_div(M, 2 * tile[0]) * ceil_div(N, tile[1]) >= ENOUGH)
        tile[0] *= 2;
    while (tile[1] > 32 && ceil_div(M, tile[0]) * ceil_div(N, tile[1]) < ENOUGH)
        tile[0] = tile[1] /= 2;
}

/* c [M, N] = a b + bias */
static void
product(Net *net, Matrix a, Matrix b, SdcArg bias, float *c, int64_t M, int64_t N,
        int64_t K)
{
    char binds[160];
    bool has_bias = bias.kind == SDC_ARG_PTR;
    int tile[2];
    tile_for(net, M, N, a.right == 1, tile);
    snprintf(binds, sizeof(binds),
             "BLOCK_M=%d BLOCK_N=%d BLOCK_K=%d num_warps=%d HAS_BIAS=%s", tile[0],
             tile[1], tile[1] < net->tile ? 64 : 32, tile[1] > 64 ? 8 : 4,
             has_bias ? "True" : "False");
    RUN(net->m, "matmul", "matmul", grid1(ceil_div(M, tile[0]) * ceil_div(N, tile[1])),
        binds, floats_arg(a.p), floats_arg(b.p), floats_arg(c), bias, sdc_int(M),
        sdc_int(N), sdc_int(K), sdc_int(a.down), sdc_int(a.right), sdc_int(b.down),
        sdc_int(b.right), sdc_int(N), sdc_int(1));
}

void
linear(Net *net, const float *x, int64_t w, int64_t b, float *y, int64_t rows, int64_t in,
       int64_t out)
{
    product(net, dense(x, in), dense(net->w + w, out), at(net->w, b), y, rows, out, in);
}

void
linear_back(Net *net, const float *x, const float *dy, int64_t w, int64_t b, float *dx,
            int64_t rows, int64_t in, int64_t out)
{
    product(net, turned(x, in), dense(dy, out), sdc_none(), net->g + w, in, out, rows);
    if (dx)
        product(net, dense(dy, out), turned(net->w + w, out), sdc_none(), dx, rows, in,
                out);
    if (b >= 0)
        RUN(net->m, "dropout", "bias_grad", grid1(ceil_div(out, large(net) ? 32 : 64)),
            large(net) ? "BLOCK_R=1024 BLOCK_C=32 num_warps=16" : "BLOCK_R=16 BLOCK_C=64",
            floats_arg(dy), at(net->g, b), sdc_int(rows), sdc_int(out), sdc_int(out));
}

/* ---- what is dropped */

static int64_t
seed_of(const Net *net, int layer)
{
    return net->seed * 64 + layer;
}

/* One of SparseDrop's matmuls: dsd, or sdd. count_i, count_j: how the number of a block
   grows along the rows and columns that the mask covers. */
static void
sparse(Net *net, const Dropping *d, const char *kernel, Matrix a, Matrix b, float *c,
       const int64_t size[3], const int64_t count[2])
{
    char binds[160];
    int tile = net->tile < net->block ? net->tile : net->block, n = 20;
    bool dsd = kernel[0] == 'd';
    int64_t tiles = ceil_div(size[0], tile) * ceil_div(size[1], tile);
    SdcArg args[23] = {floats_arg(a.p),
                       floats_arg(b.p),
                       floats_arg(c),
                       sdc_none(),
                       sdc_int(size[0]),
                       sdc_int(size[1]),
                       sdc_int(size[2]),
                       sdc_float(1 / (1 - net->p)),
                       sdc_int(a.down),
                       sdc_int(a.right),
                       sdc_int(b.down),
                       sdc_int(b.right),
                       sdc_int(size[1]),
                       sdc_int(1),
                       sdc_int(1),
                       sdc_int(seed_of(net, d->layer)),
                       sdc_int(0),
                       sdc_float(net->p),
                       sdc_int(count[0]),
                       sdc_int(count[1])};
    if (dsd)
        args[n++] = sdc_int(tiles); /* in one wave */
    args[n++] = sdc_int(1);
    args[n++] = sdc_int(0);
    snprintf(binds, sizeof(binds),
             "BLOCK_M=%d BLOCK_N=%d BLOCK_K=32 MASK_M=%d MASK_%c=%d", tile, tile,
             net->block, dsd ? 'K' : 'N', net->block);
    machine_run(net->m, "sparsedrop", kernel, grid1(tiles), binds, args, n);
}

static void
dropout(Net *net, const char *kernel, int layer, const float *x, float *y, int64_t n)
{
    RUN(net->m, "dropout", kernel, grid1(ceil_div(n, WIDE)), "BLOCK=1024", floats_arg(x),
        floats_arg(y), sdc_int(n), sdc_float(net->p), sdc_int(seed_of(net, layer)));
}

static Mode
mode_now(const Net *net)
{
    return net->learning ? net->mode : DENSE;
}

void
drop_linear(Net *net, const Dropping *d, float *y)
{
    const float *x = d->x;
    if (mode_now(net) == SPARSEDROP) {
        const int64_t size[] = {d->rows, d->out, d->in};
        const int64_t count[] = {ceil_div(d->in, net->block), 1};
        sparse(net, d, "dsd_matmul", dense(x, d->in), dense(net->w + d->w, d->out), y,
               size, count);
        return;
    }
    if (mode_now(net) == DROPOUT) {
        dropout(net, "dropout4_fwd", d->layer, x, d->kept, d->rows * d->in);
        x = d->kept;
    }
    linear(net, x, d->w, -1, y, d->rows, d->in, d->out);
}

void
drop_linear_back(Net *net, const Dropping *d, const float *dy, float *dx)
{
    if (mode_now(net) == SPARSEDROP) {
        int64_t blocks = ceil_div(d->in, net->block);
        const int64_t dw[] = {d->in, d->out, d->rows}, along[] = {1, blocks};
        const int64_t size[] = {d->rows, d->in, d->out}, count[] = {blocks, 1};
        sparse(net, d, "dsd_matmul", turned(d->x, d->in), dense(dy, d->out),
               net->g + d->w, dw, along);
        sparse(net, d, "sdd_matmul", dense(dy, d->out), turned(net->w + d->w, d->out), dx,
               size, count);
        return;
    }
    bool drops = mode_now(net) == DROPOUT;
    linear_back(net, drops ? d->kept : d->x, dy, d->w, -1, dx, d->rows, d->in, d->out);
    if (drops)
        dropout(net, "dropout4_bwd", d->layer, dx, dx, d->rows * d->in);
}

/* ---- rows and elements */

void
norm(Net *net, const float *x, int64_t w, float *y, float *stats, int64_t rows,
     int64_t cols)
{
    char binds[32];
    snprintf(binds, sizeof(binds), "BLOCK=%lld", (long long)power_above(cols));
    RUN(net->m, "layernorm", "layer_norm_fwd", grid1(rows), binds, floats_arg(x),
        at(net->w, w), at(net->w, w + cols), floats_arg(y), floats_arg(stats),
        floats_arg(stats + rows), sdc_int(cols), sdc_int(cols), sdc_int(cols),
        sdc_float(1e-5));
}

void
norm_back(Net *net, const float *dy, const float *x, int64_t w, const float *stats,
          float *dx, int64_t rows, int64_t cols)
{
    char binds[32];
    int64_t parts = net->part_size / (2 * cols);
    float *dw = net->part, *db = net->part + parts * cols;
    snprintf(binds, sizeof(binds), "BLOCK=%lld", (long long)power_above(cols));
    RUN(net->m, "layernorm", "layer_norm_bwd", grid1(parts), binds, floats_arg(dy),
        floats_arg(x), at(net->w, w), floats_arg(stats), floats_arg(stats + rows),
        floats_arg(dx), floats_arg(dw), floats_arg(db), sdc_int(cols), sdc_int(cols),
        sdc_int(cols), sdc_int(rows), sdc_int(cols));
    RUN(net->m, "layernorm", "layer_norm_bwd_sum", grid1(ceil_div(cols, 64)),
        "BLOCK_P=16 BLOCK_C=64", floats_arg(dw), floats_arg(db), at(net->g, w),
        at(net->g, w + cols), sdc_int(parts), sdc_int(cols));
}

void
gelu(Net *net, const float *x, float *y, int64_t n)
{
    RUN(net->m, "activation", "act_fwd", grid1(ceil_div(n, WIDE)),
        "BLOCK=1024 ACT=\"gelu\"", floats_arg(x), floats_arg(y), sdc_int(n));
}

void
gelu_back(Net *net, const float *dy, const float *x, float *dx, int64_t n)
{
    RUN(net->m, "activation", "act_bwd", grid1(ceil_div(n, WIDE)),
        "BLOCK=1024 ACT=\"gelu\"", floats_arg(dy), floats_arg(x), floats_arg(dx),
        sdc_int(n));
}

void
add(Net *net, const float *x, const float *y, float *out, int64_t n)
{
    RUN(net->m, "vector_add", "vector_add", grid1(ceil_div(n, WIDE)), "BLOCK=1024",
        floats_arg(x), floats_arg(y), floats_arg(out), sdc_int(n));
}

void
entropy(Net *net, float *logits, const int32_t *target, float *loss, int64_t rows,
        int64_t cols)
{
    char binds[32];
    snprintf(binds, sizeof(binds), "BLOCK=%lld", (long long)power_above(cols));
    RUN(net->m, "cross_entropy", "cross_entropy", grid1(rows), binds, floats_arg(logits),
        sdc_ptr(SDC_I32, target), floats_arg(loss), floats_arg(logits), sdc_int(cols),
        sdc_int(cols), sdc_int(rows), sdc_int(cols), sdc_float(1.0 / (double)rows),
        sdc_int(-1));
}

void
embed(Net *net, const int32_t *token, int64_t table, int64_t place, float *out,
      int64_t tokens, int64_t length, int64_t dim)
{
    char binds[32];
    snprintf(binds, sizeof(binds), "BLOCK=%lld", (long long)power_above(dim));
    RUN(net->m, "embedding", "embedding_fwd", grid1(tokens), binds,
        sdc_ptr(SDC_I32, token), at(net->w, table), at(net->w, place), floats_arg(out),
        sdc_int(length), sdc_int(dim));
}

void
embed_back(Net *net, const int32_t *token, const float *dy, int64_t table, int64_t words,
           int64_t place, int64_t tokens, int64_t length, int64_t dim)
{
    char binds[32];
    snprintf(binds, sizeof(binds), "BLOCK=%lld", (long long)power_above(dim));
    RUN(net->m, "embedding", "embedding_bwd",
        sdc_grid(words, ceil_div(dim, large(net) ? 16 : 64), 1),
        large(net) ? "BLOCK_T=512 BLOCK_C=16" : "BLOCK_T=16 BLOCK_C=64",
        sdc_ptr(SDC_I32, token), floats_arg(dy), at(net->g, table), sdc_int(tokens),
        sdc_int(dim));
    if (place >= 0)
        RUN(net->m, "embedding", "embedding_place_bwd", grid1(length), binds,
            floats_arg(dy), at(net->g, place), sdc_int(tokens), sdc_int(length),
            sdc_int(dim));
}
