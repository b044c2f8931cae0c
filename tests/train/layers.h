/* Layers of the training proof, forward and backward, each a few launches. Matrices are
   dense, row-major, fp32. Parameters lie one after the other in one array, and so do
   their gradients and moments: one launch of AdamW is a step. */
#ifndef TESTS_TRAIN_LAYERS_H
#define TESTS_TRAIN_LAYERS_H

#include "tests/train/machine.h"

/* What happens in front of a linear layer that drops: nothing, dropout of elements, or of
   blocks fused with the matmul. */
typedef enum Mode { DENSE, DROPOUT, SPARSEDROP } Mode;

typedef struct Net {
    Machine *m;
    Mode mode;
    double p;
    bool learning;   /* else nothing is dropped */
    int64_t seed;    /* of this step's masks */
    int tile, block; /* of matmuls, of masks */
    int64_t n;       /* parameters */
    float *host;     /* their initial values, until net_ready */
    float *w, *g, *m1, *m2;
    float *part, *rows; /* workspace of norms and of attention */
    int64_t part_size, rows_size;
    uint64_t random;
} Net;

/* Position of `n` parameters around `mean`; only before net_ready. */
int64_t net_param(Net *net, int64_t n, double mean, double deviation);
bool net_ready(Net *net);
void net_step(Net *net, int64_t step, double rate);

uint64_t next_random(uint64_t *state);

/* y [rows, out] = x [rows, in] w [in, out] + b; b < 0: none. */
void linear(Net *net, const float *x, int64_t w, int64_t b, float *y, int64_t rows,
            int64_t in, int64_t out);
/* Sets the gradients of w and b; dx: NULL when nobody wants it. */
void linear_back(Net *net, const float *x, const float *dy, int64_t w, int64_t b,
                 float *dx, int64_t rows, int64_t in, int64_t out);

/* A linear layer without bias behind what net->mode drops; `layer` tells the masks of a
   step apart. kept [rows, in]: what dropout left, for the way back. */
typedef struct Dropping {
    int layer;
    const float *x;
    float *kept;
    int64_t w, rows, in, out;
} Dropping;

void drop_linear(Net *net, const Dropping *d, float *y);
void drop_linear_back(Net *net, const Dropping *d, const float *dy, float *dx);

/* w: cols weights, then cols biases. stats: mean and rstd, 2 * rows. */
void norm(Net *net, const float *x, int64_t w, float *y, float *stats, int64_t rows,
          int64_t cols);
void norm_back(Net *net, const float *dy, const float *x, int64_t w, const float *stats,
               float *dx, int64_t rows, int64_t cols);

void gelu(Net *net, const float *x, float *y, int64_t n);
void gelu_back(Net *net, const float *dy, const float *x, float *dx, int64_t n);
void add(Net *net, const float *x, const float *y, float *out, int64_t n);

/* Causal self-attention of `texts` sequences; qkv [texts * length, 3 * heads * dim].
   Unless net->mode is DENSE, weights are dropped; `layer` tells their masks apart. */
typedef struct Heads {
    int64_t texts, length, heads, dim;
    int layer;
} Heads;

void attention(Net *net, const Heads *h, const float *qkv, float *o, float *lse);
void attention_back(Net *net, const Heads *h, const float *qkv, const float *o,
                    const float *lse, const float *dy, float *dqkv);

/* place < 0: no embedding of places. */
void embed(Net *net, const int32_t *token, int64_t table, int64_t place, float *out,
           int64_t tokens, int64_t length, int64_t dim);
void embed_back(Net *net, const int32_t *token, const float *dy, int64_t table,
                int64_t words, int64_t place, int64_t tokens, int64_t length,
                int64_t dim);

/* Losses, and the gradient of their mean in the place of the logits. */
void entropy(Net *net, float *logits, const int32_t *target, float *loss, int64_t rows,
             int64_t cols);

#endif
