/* A block of a transformer on sdc_nn.h alone, forward and backward: RMS norm, one matmul
   for queries, keys and values, rotary embedding, causal attention, a matmul onto the
   residual, RMS norm, SwiGLU between two matmuls, onto the residual again.

       x1 = x + attention(rotary(norm(x) qkv)) out
       y = x1 + swiglu(norm(x1) gate_up) down

   An example of how calls follow each other, what is kept for the way back and what lies
   in the place of what. */
#ifndef TESTS_BLOCK_BLOCK_H
#define TESTS_BLOCK_BLOCK_H

#include "runtime/sdc_nn.h"

typedef struct BlockShape {
    int64_t batch, length;        /* sequences, tokens of each */
    int64_t width, heads, hidden; /* width is a multiple of 2 * heads */
    int type;                     /* SdcDtype of tokens and weights */
} BlockShape;

/* Dense, rows first: norms [width], qkv [width, 3 width], out [width, width], gate_up
   [width, 2 hidden], down [hidden, width]; or their gradients. */
typedef struct BlockWeights {
    void *norm1, *qkv, *out, *norm2, *gate_up, *down;
} BlockWeights;

/* What a block works on. `memory` is block_memory bytes on the device, aligned to 256:
   what forward leaves there backward reads. */
typedef struct Block {
    SdcKernels *k;
    BlockShape shape;
    BlockWeights w;
    float *cos, *sin; /* [length, width / heads / 2] */
    void *memory;
} Block;

SDC_API size_t block_memory(SdcKernels *k, const BlockShape *s);

/* x, y [batch * length, width]; x stays for the way back. */
SDC_API SdcStatus block_forward(const Block *b, void *x, void *y, void *stream);
/* dx and the gradients of all weights, for dy. */
SDC_API SdcStatus block_backward(const Block *b, void *x, void *dy, void *dx,
                                 const BlockWeights *grad, void *stream);

#endif
