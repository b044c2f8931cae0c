/* The kernels of the project as plain functions of C: tensors, options and a stream; no
   word of the language they are written in. Part of libsdc.

       SdcContextOptions on_gpu = {.target = "cuda"};
       SdcContext *ctx;  SdcKernels *k;
       sdc_context_create(&on_gpu, &ctx);
       sdc_kernels_create(ctx, &k);
       SdcTensor x = sdc_matrix(SDC_FP16, x_address, rows, cols), y = ..;
       SdcDropout drop = {.p = 0.1f, .seed = 1234, .offset = step * count};
       if (sdc_dropout_forward(k, &x, NULL, NULL, &y, &drop, stream) != SDC_OK)
           puts(sdc_error(ctx));

   Tensors. `data` is an address of the context's device (or of memory, on the CPU);
   strides count elements and may be anything unless a function says otherwise. Tensors
   that are written do not overlap others. A NULL tensor stands
   for one that is not there where a function says "optional".

   Streams. As for sdc_launch: on a GPU work is put on `stream` (CUstream; NULL: the
   default one) and the call returns at once, also while a graph is captured, once the
   same call has been made before; on the CPU it is done when the call returns. From sm_90
   on a kernel may begin while the one in front of it on the stream ends, and waits for it
   (launch_pdl of sdc_function_get).

   Compiling. The first call with new types, options or divisibilities compiles, in some
   ten to some hundred milliseconds; later ones find what they need.

   Workspace. Functions that need memory beside their tensors have a sibling that says how
   much; the address falls on 256 bytes. What it holds does not matter unless it is said.
   Matmuls and rows may take temporary memory besides, in the order of the stream, from a
   pool of the handle's device that keeps it for later calls (drivers of CUDA 11.2; older
   ones do without).

   Masks. Dropout keeps no mask: who gives p, seed and offset again gets the same one, on
   any target.

   Threads. A handle may be used by several threads at once. Errors are statuses, with
   the message in sdc_error(ctx): SDC_ERROR_ARGUMENT names the tensor that does not fit;
   the others as sdc_launch. */
#ifndef SDC_NN_H
#define SDC_NN_H

#include "runtime/sdc.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct SdcKernels SdcKernels;

/* Opens the device, if it is a GPU; compiles nothing. The handle ends with
   sdc_kernels_destroy, before its context. SDC_ERROR_ENVIRONMENT: no such device. */
SDC_API SdcStatus sdc_kernels_create(SdcContext *ctx, SdcKernels **out);
SDC_API void sdc_kernels_destroy(SdcKernels *k); /* NULL is allowed */

enum { SDC_MAX_RANK = 4 };

typedef struct SdcTensor {
    SdcDtype dtype;
    int rank; /* 1 .. SDC_MAX_RANK */
    void *data;
    int64_t shape[SDC_MAX_RANK];
    int64_t strides[SDC_MAX_RANK]; /* in elements */
} SdcTensor;

/* Dense, the last dimension fastest. */
static inline SdcTensor
sdc_tensor(SdcDtype t, void *data, int rank, const int64_t *shape)
{
    SdcTensor x;
    int64_t stride = 1;
    x.dtype = t;
    x.rank = rank = shape ? rank : 0;
    x.data = data;
    for (int i = SDC_MAX_RANK - 1; i >= 0; i--) {
        x.shape[i] = i < rank ? shape[i] : 0;
        x.strides[i] = i < rank ? stride : 0;
        stride *= i < rank ? shape[i] : 1;
    }
    return x;
}

static inline SdcTensor
sdc_vector(SdcDtype t, void *data, int64_t n)
{
    return sdc_tensor(t, data, 1, &n);
}

static inline SdcTensor
sdc_matrix(SdcDtype t, void *data, int64_t rows, int64_t cols)
{
    int64_t shape[2];
    shape[0] = rows;
    shape[1] = cols;
    return sdc_tensor(t, data, 2, shape);
}

typedef enum SdcActivation {
    SDC_ACT_NONE,
    SDC_ACT_RELU,
    SDC_ACT_SILU, /* x / (1 + exp(-x)) */
    SDC_ACT_GELU  /* x * (1 + erf(x / sqrt 2)) / 2 */
} SdcActivation;

/* How the last planned call was done, and why: kernel, tiles, parts, what was guessed and
   what came next. Written as snprintf does; the result is the text's length without its
   NUL. With SDC_EXPLAIN=1 in the environment when the handle is made, each call gives the
   same text to the context's `print`. Matmuls, reductions over rows and attention are
   planned. */
SDC_API size_t sdc_nn_explain(SdcKernels *k, char *to, size_t size);

/* Matmuls of this handle are done from now on in the way that the planner guesses to be
   the best (way 0, as at first), the second best (1), and so on; the last one where there
   are fewer: to measure guesses, which sdc_nn_explain tells. Results differ in how they
   are rounded. On the CPU there is one way. SDC_ERROR_ARGUMENT: way is below 0 or above
   SDC_NN_WAYS - 1. */
enum { SDC_NN_WAYS = 64 };
SDC_API SdcStatus sdc_nn_take(SdcKernels *k, int way);

/* ---------------------------------------------------------------- dropout */

typedef struct SdcDropout {
    float p;        /* the probability of dropping, 0 <= p < 1 */
    int64_t seed;   /* all 64 bits count */
    int64_t offset; /* of the counters, modulo 2^64: sdc_dropout_counters a call */
    SdcActivation act;
    int per_element; /* nonzero: Triton's tl.rand(seed, offset + index) for each element;
                        0: four elements share a counter, which is faster */
} SdcDropout;

/* Counters that a call uses: the next one with the same seed adds them to its offset. */
SDC_API int64_t sdc_dropout_counters(const SdcDropout *d, int64_t rows, int64_t cols);

/* out = residual + drop(act(x + bias)), drop(v) = v / (1 - p) where kept and 0 elsewhere.
   x, residual, out [rows, cols] of any floating type, stride 1 along a row; bias [cols]
   contiguous. `bias` and `residual` are optional. */
SDC_API SdcStatus sdc_dropout_forward(SdcKernels *k, const SdcTensor *x,
                                      const SdcTensor *bias, const SdcTensor *residual,
                                      const SdcTensor *out, const SdcDropout *d,
                                      void *stream);

/* The gradients for dy [rows, cols], that of out: dx = drop(dy) * act'(x + bias) and,
   optional, dbias [cols], the sum of dx over the rows. The residual's is dy. `x` and
   `bias` are those of the forward pass; without an activation they are not read, and may
   be NULL. */
SDC_API SdcStatus sdc_dropout_backward(SdcKernels *k, const SdcTensor *dy,
                                       const SdcTensor *x, const SdcTensor *bias,
                                       const SdcTensor *dx, const SdcTensor *dbias,
                                       const SdcDropout *d, void *stream);

/* ---------------------------------------------------------------- block dropout + linear

   y = (x o m) w / (1 - p): x [M, K], w [K, N], y [M, N], one of fp32, fp16, bf16, all of
   one type, any strides. m drops blocks of block_m x block_k elements of x: block (i, j)
   is kept when Triton's tl.rand(seed, offset + i * cdiv(K, block_k) + j) > p. Dead blocks
   are neither read nor multiplied, and no mask is stored. */
typedef struct SdcBlockDropout {
    float p; /* 0 <= p < 1 */
    int64_t seed, offset;
    int block_m, block_k; /* 32, 64 or 128; 0: 128 */
    void *workspace;      /* optional: sdc_sparse_linear_workspace bytes, for one call */
} SdcBlockDropout;

/* With this memory a call of 16-bit tensors and blocks of 128 x 128, at most 64 x 64 of
   them, may begin with a launch that lists the live blocks, from which its matmuls take
   their work: where that is faster, which sdc_nn_explain tells. A GPU that lends memory
   in the order of a stream needs none of the caller's. 0 where there are more blocks. */
SDC_API size_t sdc_sparse_linear_workspace(SdcKernels *k, int64_t M, int64_t K);

/* y, as above. */
SDC_API SdcStatus sdc_sparse_linear_forward(SdcKernels *k, const SdcTensor *x,
                                            const SdcTensor *w, const SdcTensor *y,
                                            const SdcBlockDropout *d, void *stream);

/* dx [M, K] (zero where x was dropped) and dw [K, N] for dy [M, N]; each optional. */
SDC_API SdcStatus sdc_sparse_linear_backward(SdcKernels *k, const SdcTensor *dy,
                                             const SdcTensor *x, const SdcTensor *w,
                                             const SdcTensor *dx, const SdcTensor *dw,
                                             const SdcBlockDropout *d, void *stream);

/* ---------------------------------------------------------------- matmul */

/* c = act(a b + bias): a [M, K], b [K, N], one of fp32, fp16, bf16, or each either of
   fp8e4nv and fp8e5, any strides; c [M, N], any floating type and strides; bias [N],
   contiguous, optional. Matmuls of fp32 are taken in tf32 on a GPU, unless `exact`. */
SDC_API SdcStatus sdc_matmul(SdcKernels *k, const SdcTensor *a, const SdcTensor *b,
                             const SdcTensor *bias, const SdcTensor *c, SdcActivation act,
                             int exact, void *stream);

/* What a matmul may have besides; zero or NULL: it has not. */
typedef struct SdcMatmulOptions {
    size_t size; /* sizeof(SdcMatmulOptions), or 0 */
    /* [N], or [batch, N] ([groups, N]) with any stride from one to the next; stride 1
       along a row */
    const SdcTensor *bias;
    const SdcTensor *residual; /* as c, any floating type and strides; may be c */
    SdcActivation act;
    int exact; /* nonzero: matmuls of fp32 in full precision, not in tf32 */
    /* What the rows of a and the columns of b are multiplied by, fp32: [M] and [N], or
       [batch, M] and [batch, N], where 1 may stand for M, N and the batch (one number for
       all); any strides. */
    const SdcTensor *a_scale, *b_scale;
    /* Hopper's tensor cores keep some 14 bits of a sum of fp8. 0: their sums are added up
       in fp32 every 128 of K; nonzero: they are not, which is faster. */
    int fast_sums;
} SdcMatmulOptions;

/* c = act(a_scale b_scale a b + bias) + residual: a [M, K], b [K, N], c [M, N] as
   sdc_matmul has them, or with a batch in front of each, [batch, M, K] and so on, with
   any strides: 0 where all of a batch share one. Small matrices of long sums are divided
   along K too. Tensor cores want fp8 along K: what lies across is transposed on the way,
   or first. `o` NULL: no options. */
SDC_API SdcStatus sdc_matmul_with(SdcKernels *k, const SdcTensor *a, const SdcTensor *b,
                                  const SdcTensor *c, const SdcMatmulOptions *o,
                                  void *stream);

/* Matmuls of different sizes in one launch (mixture of experts). The rows of a [rows, K]
   and c [rows, N] are sorted by group, and those of group g, offsets[g] to offsets[g + 1]
   - 1, are multiplied by b[g] of b [groups, K, N]; offsets [groups + 1] is i32,
   contiguous and on the device, does not decrease, and its numbers are 0 to rows. Rows of
   no group are not written. Options as above; a_scale is [rows], b_scale [N] or
   [groups, N] (1 may stand for each of these). */
SDC_API SdcStatus sdc_matmul_grouped(SdcKernels *k, const SdcTensor *a,
                                     const SdcTensor *b, const SdcTensor *offsets,
                                     const SdcTensor *c, const SdcMatmulOptions *o,
                                     void *stream);

/* The gradient of b of such a matmul: c[g] = a[rows of g]^T b[rows of g], for a
   [rows, M], b [rows, N] and c [groups, M, N]; 0 for a group without rows. (That of a is
   sdc_matmul_grouped with the dimensions of b exchanged.) */
SDC_API SdcStatus sdc_matmul_grouped_sum(SdcKernels *k, const SdcTensor *a,
                                         const SdcTensor *b, const SdcTensor *offsets,
                                         const SdcTensor *c, int exact, void *stream);

/* ---------------------------------------------------------------- rows */

/* out = softmax(x) over the last dimension: [rows, cols], any floating types, stride 1
   along a row. */
SDC_API SdcStatus sdc_softmax_forward(SdcKernels *k, const SdcTensor *x,
                                      const SdcTensor *out, void *stream);

/* y = (x - mean) * rstd * w + b over rows of x [rows, cols], stride 1 along a row; w, b
   [cols], contiguous; mean, rstd [rows], fp32, contiguous: kept for the backward pass. */
SDC_API SdcStatus sdc_layer_norm_forward(SdcKernels *k, const SdcTensor *x,
                                         const SdcTensor *w, const SdcTensor *b,
                                         const SdcTensor *y, const SdcTensor *mean,
                                         const SdcTensor *rstd, double eps, void *stream);

/* Bytes of the backward pass's workspace, whatever the number of rows; 0: no columns. */
SDC_API size_t sdc_layer_norm_workspace(SdcKernels *k, int64_t cols);

/* dx [rows, cols], dw and db [cols], contiguous, for dy [rows, cols]; mean and rstd are
   the forward pass's. Sums over rows are taken in an order that is always the same. */
SDC_API SdcStatus sdc_layer_norm_backward(SdcKernels *k, const SdcTensor *dy,
                                          const SdcTensor *x, const SdcTensor *w,
                                          const SdcTensor *mean, const SdcTensor *rstd,
                                          const SdcTensor *dx, const SdcTensor *dw,
                                          const SdcTensor *db, void *workspace,
                                          void *stream);

/* y = x * rstd * w, rstd = 1 / sqrt(mean(x^2) + eps), over rows of x [rows, cols], any
   floating types, stride 1 along a row; w [cols], contiguous; rstd [rows], fp32,
   contiguous: kept for the backward pass. */
SDC_API SdcStatus sdc_rms_norm_forward(SdcKernels *k, const SdcTensor *x,
                                       const SdcTensor *w, const SdcTensor *y,
                                       const SdcTensor *rstd, double eps, void *stream);

/* Bytes of the backward pass's workspace, whatever the number of rows; 0: no columns. */
SDC_API size_t sdc_rms_norm_workspace(SdcKernels *k, int64_t cols);

/* dx [rows, cols] and dw [cols], contiguous, for dy [rows, cols]; rstd is the forward
   pass's. `add` [rows, cols], optional: the gradient that reaches x beside this norm,
   added to dx; it may be dx. The sums over rows are taken in an order that is always the
   same. */
SDC_API SdcStatus sdc_rms_norm_backward(SdcKernels *k, const SdcTensor *dy,
                                        const SdcTensor *x, const SdcTensor *w,
                                        const SdcTensor *rstd, const SdcTensor *add,
                                        const SdcTensor *dx, const SdcTensor *dw,
                                        void *workspace, void *stream);

/* loss[r] = lse[r] - x[r, target[r]], lse[r] the logarithm of the sum of exp(x[r, c]): x
   [rows, cols], any floating type, stride 1 along a row; target [rows], i32 or i64; loss
   and lse [rows], fp32, all contiguous; lse is kept for the backward pass. A row whose
   target is `ignore`, a negative number, has loss 0. */
SDC_API SdcStatus sdc_cross_entropy_forward(SdcKernels *k, const SdcTensor *x,
                                            const SdcTensor *target,
                                            const SdcTensor *loss, const SdcTensor *lse,
                                            int64_t ignore, void *stream);

/* dx[r, c] = dloss[r] * scale * (exp(x[r, c] - lse[r]) - (c == target[r])), 0 where the
   target is `ignore`. dloss [rows], any floating type, contiguous; NULL: 1. (Of the mean
   of the losses: no dloss, and scale is 1 / rows that count.) dx may be x. */
SDC_API SdcStatus sdc_cross_entropy_backward(SdcKernels *k, const SdcTensor *x,
                                             const SdcTensor *target,
                                             const SdcTensor *lse,
                                             const SdcTensor *dloss, const SdcTensor *dx,
                                             double scale, int64_t ignore, void *stream);

/* ---------------------------------------------------------------- gates, positions */

/* out = silu(gate) * up: [rows, cols], any floating types, stride 1 along a row; gate and
   up may be halves of the rows of one matrix, out may be one of them. */
SDC_API SdcStatus sdc_swiglu_forward(SdcKernels *k, const SdcTensor *gate,
                                     const SdcTensor *up, const SdcTensor *out,
                                     void *stream);

/* dgate and dup for dout; they may take the place of gate and up. */
SDC_API SdcStatus sdc_swiglu_backward(SdcKernels *k, const SdcTensor *dout,
                                      const SdcTensor *gate, const SdcTensor *up,
                                      const SdcTensor *dgate, const SdcTensor *dup,
                                      void *stream);

typedef struct SdcRotary {
    size_t size;   /* sizeof(SdcRotary), or 0 */
    int pairs;     /* nonzero: columns 2 j and 2 j + 1 are a pair, else j and j + half */
    int inverse;   /* nonzero: turned back, which is the gradient */
    int64_t first; /* the position of row 0 of M */
    /* [batch, M], i32, on the device: the position of each row; NULL: they count up */
    const SdcTensor *places;
} SdcRotary;

/* Rotary position embedding: pairs (a, b) of columns of x [batch, heads, M, dim], any
   floating type and strides, become (a cos - b sin, b cos + a sin), by row `position` of
   cos and sin [positions, half], any floating type, contiguous. Columns from 2 * half on
   are copied. out as x; it may be x. `r` NULL: the defaults. */
SDC_API SdcStatus sdc_rotary(SdcKernels *k, const SdcTensor *x, const SdcTensor *cos,
                             const SdcTensor *sin, const SdcTensor *out,
                             const SdcRotary *r, void *stream);

/* ---------------------------------------------------------------- attention */

/* What attention may have besides; zero or NULL: it has not. Query i of M is at the place
   of key i + N - M of N. Pages and scales are of the forward pass alone; a bias has no
   gradient. */
typedef struct SdcAttentionOptions {
    size_t size;    /* sizeof(SdcAttentionOptions), or 0 */
    int64_t window; /* a query sees keys less than so many places away (with `causal` none
                       behind its own) */
    float cap;      /* scores s = scale q k^T become cap * tanh(s / cap) */
    /* [heads], fp32: slopes[h] * distance is taken from the scores (ALiBi) */
    const SdcTensor *slopes;
    /* [batch, heads, M, N], any floating type, any strides, 0 too: added to the scores;
       -inf hides a key */
    const SdcTensor *bias;
    /* On the device, i32, [batch]: the first so many keys of a sequence count, N of above
       is their number. */
    const int32_t *key_lengths;
    /* Keys and values in pages: key and value are [pages, key heads, page, dim], and key
       n of sequence b is row n % page of page pages[b * pages_stride + n / page]; on the
       device, i32. `longest_k` of SdcAttention says how many keys a sequence has, at
       most. */
    const int32_t *pages;
    int64_t pages_stride;
    /* [key heads], fp32: what keys and values are multiplied by, which may be fp8 (e4m3,
       e5m2) where queries are fp16 or bf16 */
    const SdcTensor *key_scale, *value_scale;
} SdcAttentionOptions;

typedef struct SdcAttention {
    float scale; /* of q k^T, > 0; 0: 1 / sqrt(dim) */
    int causal;  /* nonzero: the last query sees all keys, the one before one less */
    int deterministic; /* nonzero: gradients are the same bits in every run, for seven
                          matmuls a pair of tiles instead of five */
    int exact;         /* nonzero: matmuls of fp32 in full precision, not in tf32 */
    float p;           /* dropout of weights after the softmax, 0 <= p < 1; 0: none */
    int64_t seed;      /* of dropout: no mask is stored */
    /* Sequences of different lengths, one behind the other: batch is 1, and sequence b is
       rows cu_q[b] .. cu_q[b + 1] - 1 of q and cu_k[b] .. of key. On the device, i32,
       [sequences + 1]; NULL: every sequence of the batch has all queries and keys. */
    const int32_t *cu_q, *cu_k;
    int64_t sequences, longest_q, longest_k;
    const SdcAttentionOptions *options; /* NULL: none */
} SdcAttention;

/* o = softmax(scale q k^T) v: q [batch, heads, M, dim], key [batch, key heads, N, dim],
   value [batch, key heads, N, value dim], o [batch, heads, M, value dim] of one type,
   fp32, fp16 or bf16, any strides (a tensor [batch, M, heads, dim] is given with its
   middle dimensions exchanged); heads is a multiple of the key heads. lse [batch, heads,
   M], fp32, contiguous: the logarithms of the sums of exponentials, kept for the backward
   pass. dim and value dim 1 to 256. No memory grows with M * N.

   Few queries (decoding): programs that share a head of keys read parts of it, and what
   they found is added up in a second launch, in an order that is always the same. */
SDC_API SdcStatus sdc_flash_attention_forward(SdcKernels *k, const SdcTensor *q,
                                              const SdcTensor *key,
                                              const SdcTensor *value, const SdcTensor *o,
                                              const SdcTensor *lse, const SdcAttention *a,
                                              void *stream);

/* Bytes of workspace of the backward pass for queries `q`. */
SDC_API size_t sdc_flash_attention_workspace(SdcKernels *k, const SdcTensor *q,
                                             const SdcAttention *a);

/* dq, dk, dv, shaped as q, key, value, for dout, the gradient to o. o and lse are what
   the forward pass wrote. */
SDC_API SdcStatus sdc_flash_attention_backward(
    SdcKernels *k, const SdcTensor *q, const SdcTensor *key, const SdcTensor *value,
    const SdcTensor *o, const SdcTensor *lse, const SdcTensor *dout, const SdcTensor *dq,
    const SdcTensor *dk, const SdcTensor *dv, const SdcAttention *a, void *workspace,
    void *stream);

#ifdef __cplusplus
}
#endif

#endif
