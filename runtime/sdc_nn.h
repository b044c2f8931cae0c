/* The kernels of the project as plain C functions on tensors, options and a stream; users
   need not know the language they are written in. Part of libsdc.

       SdcContextOptions on_gpu = {.target = "cuda"};
       SdcContext *ctx;  SdcKernels *k;
       sdc_context_create(&on_gpu, &ctx);
       sdc_kernels_create(ctx, &k);
       SdcTensor x = sdc_matrix(SDC_FP16, x_address, rows, cols), y = ..;
       SdcDropout drop = {.p = 0.1f, .seed = 1234, .offset = step * count};
       if (sdc_dropout_forward(k, &x, NULL, NULL, &y, &drop, stream) != SDC_OK)
           puts(sdc_error(ctx));

   Tensors. `data` is an address of the context's device (on the CPU, of memory). Strides
   count elements, and may be any number unless a function says otherwise. Tensors that
   are written must not overlap other tensors unless a function allows it. NULL for a
   tensor that a function calls "optional" means that there is none. The caller owns
   tensors and their memory; a call reads the SdcTensor and option structs only until it
   returns, and the memory until its work on the stream has ended.

   Streams. As for sdc_launch: on a GPU, work is put on `stream` (a CUstream; NULL: the
   default one) and the call returns at once. A call may be captured into a graph if the
   same call has been made before. On the CPU the work is done when the call returns. On
   sm_90 and later a kernel may start while the previous one on the stream still ends, and
   waits for it (launch_pdl of sdc_function_get).

   Compiling. The first call with new types, options or divisibilities compiles, which
   takes some ten to some hundred milliseconds; later calls find the compiled kernels.

   Workspace. Functions that need memory beside their tensors have a companion function
   that returns its size in bytes. The address must be a multiple of 256 bytes. The
   contents do not matter unless a function says so, and must not be changed until the
   work of the call has ended. Matmuls and functions on rows may also take temporary
   memory in stream order from a pool of the device that the handle keeps for later calls
   (drivers of CUDA 11.2 and later; with older ones they do without).

   Masks. Dropout stores no mask: the same p, seed and offset give the same mask again, on
   any target.

   Threads. A handle may be used by several threads at once, but must not be destroyed
   while another thread uses it.

   Errors. Functions return a status, and the message is in sdc_error(ctx).
   SDC_ERROR_ARGUMENT names the tensor or option that is wrong. The other statuses are
   those of sdc_launch. */
#ifndef SDC_NN_H
#define SDC_NN_H

#include "runtime/sdc.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct SdcKernels SdcKernels;

/* Makes a handle for the kernels on the context's device, which it opens if it is a GPU.
   Nothing is compiled. The handle must be destroyed before its context.
   SDC_ERROR_ENVIRONMENT: there is no such device; SDC_ERROR_ARGUMENT: a pointer is NULL;
   SDC_ERROR_MEMORY. */
SDC_API SdcStatus sdc_kernels_create(SdcContext *ctx, SdcKernels **out);
/* Frees the handle. None of its calls may be running, and their work on streams must have
   ended. NULL is allowed. */
SDC_API void sdc_kernels_destroy(SdcKernels *k);

enum { SDC_MAX_RANK = 4 };

typedef struct SdcTensor {
    SdcDtype dtype;
    int rank; /* 1 .. SDC_MAX_RANK */
    void *data;
    int64_t shape[SDC_MAX_RANK];
    int64_t strides[SDC_MAX_RANK]; /* in elements */
} SdcTensor;

/* A dense tensor with the last dimension contiguous; a vector of n elements; a row-major
   matrix. */
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

/* Writes how the last planned call was done, and why, to `to`, as snprintf does, and
   returns the length of the text without its NUL: the kernel, tiles and parts that were
   chosen, the time that was estimated for them, and the next best choice. Matmuls,
   functions on rows and attention are planned. If the environment has SDC_EXPLAIN=1 when
   the handle is made, each call also passes this text to the context's `print`. */
SDC_API size_t sdc_nn_explain(SdcKernels *k, char *to, size_t size);

/* From now on, matmuls and block dropout of this handle use the way that the planner
   estimates to be the best (0, the default), the second best (1), and so on; the last one
   if there are fewer. This is for measuring the estimates, which sdc_nn_explain prints.
   Ways differ in how results are rounded. On the CPU there is one way.
   SDC_ERROR_ARGUMENT: way is not 0 .. SDC_NN_WAYS - 1. */
enum { SDC_NN_WAYS = 64 };
SDC_API SdcStatus sdc_nn_take(SdcKernels *k, int way);

/* ---------------------------------------------------------------- dropout

   Element (r, c) of [rows, cols] has the number i = r * cols + c, whatever its address.
   Its random number is a function of that, the seed and the offset alone: the mask does
   not depend on strides, the device, or the shape in which the elements are seen. */
typedef struct SdcDropout {
    float p;        /* the probability of dropping, 0 <= p < 1 */
    int64_t seed;   /* all 64 bits are used */
    int64_t offset; /* first counter; a call uses sdc_dropout_counters() of them */
    SdcActivation act;
    int per_element; /* nonzero: Triton's tl.rand(seed, offset + i) for element i; 0: word
                        i % 4 of tl.rand4x(seed, offset + i / 4), which is faster */
} SdcDropout;

/* Number of counters that a call on a [rows, cols] tensor uses. A later call with the
   same seed gets a different mask if its offset is larger by at least that. */
SDC_API int64_t sdc_dropout_counters(const SdcDropout *d, int64_t rows, int64_t cols);

/* out = residual + drop(act(x + bias)), where drop(v) is v / (1 - p) with probability 1 -
   p and 0 otherwise. x, residual and out are [rows, cols], of any floating types, with
   stride 1 along a row; bias is [cols], contiguous. `bias` and `residual` are
   optional. */
SDC_API SdcStatus sdc_dropout_forward(SdcKernels *k, const SdcTensor *x,
                                      const SdcTensor *bias, const SdcTensor *residual,
                                      const SdcTensor *out, const SdcDropout *d,
                                      void *stream);

/* The gradients for dy [rows, cols], the gradient of out: dx = drop(dy) * act'(x + bias)
   and dbias [cols], the sum of dx over the rows, which is optional. The gradient of the
   residual is dy itself. `x` and `bias` are those of the forward pass; without an
   activation they are not read and may be NULL. */
SDC_API SdcStatus sdc_dropout_backward(SdcKernels *k, const SdcTensor *dy,
                                       const SdcTensor *x, const SdcTensor *bias,
                                       const SdcTensor *dx, const SdcTensor *dbias,
                                       const SdcDropout *d, void *stream);

/* ---------------------------------------------------------------- block dropout + linear

   y = (x o m) w / (1 - p), where o is the elementwise product: x [M, K], w [K, N], y [M,
   N], all fp32, all fp16 or all bf16, with any strides. The mask m drops blocks of
   block_m x block_k elements of x: block (i, j) is kept if Triton's tl.rand(seed, offset
   + i * cdiv(K, block_k) + j) > p. What dropped blocks hold does not matter, and no mask
   is stored. */
typedef struct SdcBlockDropout {
    float p; /* 0 <= p < 1 */
    int64_t seed, offset;
    int block_m, block_k; /* 32, 64 or 128; 0: 128 */
    void *workspace;      /* optional; sdc_sparse_linear_workspace() bytes */
} SdcBlockDropout;

/* Size of the optional workspace in bytes. With it a call on 16-bit tensors with blocks
   of 128 x 128, at most 64 x 64 of them, may first launch a kernel that lists the live
   blocks, from which its matmuls take their work, where that is estimated to be faster
   (sdc_nn_explain). GPUs whose driver allocates memory in stream order need none from the
   caller. 0 where there are more blocks. */
SDC_API size_t sdc_sparse_linear_workspace(SdcKernels *k, int64_t M, int64_t K);

/* Computes y as above. */
SDC_API SdcStatus sdc_sparse_linear_forward(SdcKernels *k, const SdcTensor *x,
                                            const SdcTensor *w, const SdcTensor *y,
                                            const SdcBlockDropout *d, void *stream);

/* dx [M, K], which is 0 where x was dropped, and dw [K, N] for dy [M, N]; dx and dw are
   each optional. */
SDC_API SdcStatus sdc_sparse_linear_backward(SdcKernels *k, const SdcTensor *dy,
                                             const SdcTensor *x, const SdcTensor *w,
                                             const SdcTensor *dx, const SdcTensor *dw,
                                             const SdcBlockDropout *d, void *stream);

/* ---------------------------------------------------------------- matmul */

/* c = act(a b + bias): a [M, K] and b [K, N] are both fp32, both fp16 or both bf16, or
   each is fp8e4nv or fp8e5, with any strides; c [M, N] has any floating type and strides;
   bias [N] is contiguous and optional. On a GPU, matmuls of fp32 use tf32 unless
   `exact`. */
SDC_API SdcStatus sdc_matmul(SdcKernels *k, const SdcTensor *a, const SdcTensor *b,
                             const SdcTensor *bias, const SdcTensor *c, SdcActivation act,
                             int exact, void *stream);

/* Options of a matmul; an option that is zero or NULL is not used. */
typedef struct SdcMatmulOptions {
    size_t size; /* sizeof(SdcMatmulOptions), or 0 */
    /* [N], or [batch, N] ([groups, N]) with any stride between rows; stride 1 along a
       row */
    const SdcTensor *bias;
    const SdcTensor *residual; /* shaped as c, any floating type and strides; may be c */
    SdcActivation act;
    int exact; /* nonzero: matmuls of fp32 in full precision, not in tf32 */
    /* Factors of the rows of a and of the columns of b, fp32: [M] and [N], or [batch, M]
       and [batch, N]; 1 may stand for M, N and the batch, which is one factor for all.
       Any strides. */
    const SdcTensor *a_scale, *b_scale;
    /* Tensor cores of Hopper keep about 14 bits of a sum of fp8. 0: partial sums are
       added in fp32 after every 128 elements of K; nonzero: they are not, which is
       faster. */
    int fast_sums;
} SdcMatmulOptions;

/* c = act(a_scale b_scale a b + bias) + residual, for a [M, K], b [K, N], c [M, N] as in
   sdc_matmul, or each with a batch in front, [batch, M, K] and so on, with any strides; a
   batch stride of 0 shares one matrix among the batch. Small results of long sums are
   also split along K. Tensor cores need fp8 operands to be contiguous along K: others are
   transposed by the matmul or before it. `o` may be NULL. */
SDC_API SdcStatus sdc_matmul_with(SdcKernels *k, const SdcTensor *a, const SdcTensor *b,
                                  const SdcTensor *c, const SdcMatmulOptions *o,
                                  void *stream);

/* Matmuls of different sizes in one launch, as for a mixture of experts. The rows of a
   [rows, K] and c [rows, N] are sorted by group; rows offsets[g] .. offsets[g + 1] - 1
   belong to group g and are multiplied by b[g] of b [groups, K, N]. offsets is [groups +
   1], i32, contiguous and on the device; its values are in 0 .. rows and do not decrease.
   Rows of no group are not written. Options are as above, with a_scale [rows], and
   b_scale [N] or [groups, N], where 1 may stand for each of these. */
SDC_API SdcStatus sdc_matmul_grouped(SdcKernels *k, const SdcTensor *a,
                                     const SdcTensor *b, const SdcTensor *offsets,
                                     const SdcTensor *c, const SdcMatmulOptions *o,
                                     void *stream);

/* The gradient of b for a grouped matmul: c[g] = a[rows of g]^T b[rows of g], for a
   [rows, M], b [rows, N] and c [groups, M, N]; 0 for a group without rows. (The gradient
   of a is sdc_matmul_grouped with the last two dimensions of b exchanged.) */
SDC_API SdcStatus sdc_matmul_grouped_sum(SdcKernels *k, const SdcTensor *a,
                                         const SdcTensor *b, const SdcTensor *offsets,
                                         const SdcTensor *c, int exact, void *stream);

/* ---------------------------------------------------------------- rows */

/* out = softmax(x) along the rows of x and out [rows, cols], which may have any floating
   types, with stride 1 along a row. */
SDC_API SdcStatus sdc_softmax_forward(SdcKernels *k, const SdcTensor *x,
                                      const SdcTensor *out, void *stream);

/* y = (x - mean) * rstd * w + b along the rows of x and y [rows, cols], where mean is the
   mean of a row and rstd = 1 / sqrt(variance + eps). Any floating types, stride 1 along a
   row; w and b [cols], contiguous; mean and rstd [rows], fp32, contiguous, are outputs
   that the backward pass needs. */
SDC_API SdcStatus sdc_layer_norm_forward(SdcKernels *k, const SdcTensor *x,
                                         const SdcTensor *w, const SdcTensor *b,
                                         const SdcTensor *y, const SdcTensor *mean,
                                         const SdcTensor *rstd, double eps, void *stream);

/* Bytes of workspace that the backward pass needs, for any number of rows; 0 if cols is
   not positive. */
SDC_API size_t sdc_layer_norm_workspace(SdcKernels *k, int64_t cols);

/* dx [rows, cols], and dw and db [cols], contiguous, for dy [rows, cols]; mean and rstd
   are those of the forward pass. `workspace`: sdc_layer_norm_workspace() bytes. Sums over
   rows are always taken in the same order. */
SDC_API SdcStatus sdc_layer_norm_backward(SdcKernels *k, const SdcTensor *dy,
                                          const SdcTensor *x, const SdcTensor *w,
                                          const SdcTensor *mean, const SdcTensor *rstd,
                                          const SdcTensor *dx, const SdcTensor *dw,
                                          const SdcTensor *db, void *workspace,
                                          void *stream);

/* y = x * rstd * w with rstd = 1 / sqrt(mean(x^2) + eps), along the rows of x and y
   [rows, cols], any floating types, stride 1 along a row; w [cols], contiguous; rstd
   [rows], fp32, contiguous, is an output that the backward pass needs. */
SDC_API SdcStatus sdc_rms_norm_forward(SdcKernels *k, const SdcTensor *x,
                                       const SdcTensor *w, const SdcTensor *y,
                                       const SdcTensor *rstd, double eps, void *stream);

/* Bytes of workspace that the backward pass needs, for any number of rows; 0 if cols is
   not positive. */
SDC_API size_t sdc_rms_norm_workspace(SdcKernels *k, int64_t cols);

/* dx [rows, cols], and dw [cols], contiguous, for dy [rows, cols]; rstd is that of the
   forward pass. `add` [rows, cols] is optional: the gradient that reaches x by a path
   around this norm, added to dx; it may be dx itself. `workspace`:
   sdc_rms_norm_workspace() bytes. Sums over rows are always taken in the same order. */
SDC_API SdcStatus sdc_rms_norm_backward(SdcKernels *k, const SdcTensor *dy,
                                        const SdcTensor *x, const SdcTensor *w,
                                        const SdcTensor *rstd, const SdcTensor *add,
                                        const SdcTensor *dx, const SdcTensor *dw,
                                        void *workspace, void *stream);

/* loss[r] = lse[r] - x[r, target[r]], where lse[r] is the logarithm of the sum of
   exp(x[r, c]) over c: x [rows, cols], any floating type, stride 1 along a row; target
   [rows], i32 or i64; loss and lse [rows], fp32; all vectors contiguous. The backward
   pass needs lse. A row whose target is `ignore`, any number, has loss 0. A row whose
   target is neither that nor one of the columns has loss NaN, on every device. */
SDC_API SdcStatus sdc_cross_entropy_forward(SdcKernels *k, const SdcTensor *x,
                                            const SdcTensor *target,
                                            const SdcTensor *loss, const SdcTensor *lse,
                                            int64_t ignore, void *stream);

/* dx[r, c] = dloss[r] * scale * (exp(x[r, c] - lse[r]) - (c == target[r])), 0 in rows
   whose target is `ignore` and NaN in rows whose target is no column. dloss [rows], any
   floating type, contiguous; NULL stands for 1. dx may be x. (For the mean of the losses:
   dloss NULL, and scale 1 / number of rows that are not ignored.) */
SDC_API SdcStatus sdc_cross_entropy_backward(SdcKernels *k, const SdcTensor *x,
                                             const SdcTensor *target,
                                             const SdcTensor *lse,
                                             const SdcTensor *dloss, const SdcTensor *dx,
                                             double scale, int64_t ignore, void *stream);

/* ---------------------------------------------------------------- gates, positions */

/* out = silu(gate) * up, all [rows, cols], any floating types, stride 1 along a row. gate
   and up may be the two halves of the rows of one matrix; out may be gate or up. */
SDC_API SdcStatus sdc_swiglu_forward(SdcKernels *k, const SdcTensor *gate,
                                     const SdcTensor *up, const SdcTensor *out,
                                     void *stream);

/* dgate and dup for dout, all [rows, cols]; dgate may be gate and dup may be up. */
SDC_API SdcStatus sdc_swiglu_backward(SdcKernels *k, const SdcTensor *dout,
                                      const SdcTensor *gate, const SdcTensor *up,
                                      const SdcTensor *dgate, const SdcTensor *dup,
                                      void *stream);

typedef struct SdcRotary {
    size_t size;   /* sizeof(SdcRotary), or 0 */
    int pairs;     /* nonzero: columns 2 j and 2 j + 1 are a pair; 0: j and j + half */
    int inverse;   /* nonzero: rotates backwards, which is the gradient */
    int64_t first; /* position of row 0 of M */
    /* [batch, M], i32, on the device: position of each row; NULL: first, first + 1, .. */
    const SdcTensor *places;
} SdcRotary;

/* Rotary position embedding: each pair (a, b) of columns of x [batch, heads, M, dim], any
   floating type and strides, becomes (a cos - b sin, b cos + a sin), where cos and sin
   are row `position` of cos and sin [positions, half], any floating type, contiguous.
   Columns from 2 * half on are copied. out is shaped as x, and may be x. `r` NULL: the
   defaults. */
SDC_API SdcStatus sdc_rotary(SdcKernels *k, const SdcTensor *x, const SdcTensor *cos,
                             const SdcTensor *sin, const SdcTensor *out,
                             const SdcRotary *r, void *stream);

/* ---------------------------------------------------------------- attention */

/* Options of attention; an option that is zero or NULL is not used. Query i of M has the
   position of key i + N - M of N. Pages and scales are for the forward pass only; a bias
   has no gradient. */
typedef struct SdcAttentionOptions {
    size_t size;    /* sizeof(SdcAttentionOptions), or 0 */
    int64_t window; /* a query attends only to keys at a distance below this (with
                       `causal` also not to later ones) */
    float cap;      /* scores s = scale q k^T become cap * tanh(s / cap) */
    /* [heads], fp32: slopes[h] * distance is subtracted from the scores (ALiBi) */
    const SdcTensor *slopes;
    /* [batch, heads, M, N], any floating type, any strides, also 0: added to the scores;
       -inf masks a key out */
    const SdcTensor *bias;
    /* On the device, i32, [batch]: number of keys of each sequence that count; it takes
       the place of N above. */
    const int32_t *key_lengths;
    /* Keys and values in pages: key and value are then [pages, key heads, page, dim], and
       key n of sequence b is row n % page of page pages[b * pages_stride + n / page]. On
       the device, i32. `longest_k` of SdcAttention is the largest number of keys of a
       sequence. */
    const int32_t *pages;
    int64_t pages_stride;
    /* [key heads], fp32: factors of keys and values, which may be fp8 (e4m3, e5m2) where
       queries are fp16 or bf16 */
    const SdcTensor *key_scale, *value_scale;
} SdcAttentionOptions;

typedef struct SdcAttention {
    float scale; /* factor of q k^T, > 0; 0: 1 / sqrt(dim) */
    int causal;  /* nonzero: the last query attends to all keys, the one before to
                     all but the last, and so on */
    int deterministic; /* nonzero: gradients are bitwise the same in every run, at the
                          cost of seven instead of five matmuls for each pair of tiles */
    int exact;         /* nonzero: matmuls of fp32 in full precision, not in tf32 */
    float p;           /* dropout of the weights after the softmax, 0 <= p < 1 */
    int64_t seed;      /* of dropout: no mask is stored */
    /* Sequences of different lengths, packed one behind the other: batch is 1, and
       sequence b is rows cu_q[b] .. cu_q[b + 1] - 1 of q and rows cu_k[b] .. cu_k[b + 1]
       - 1 of key and value. On the device, i32, [sequences + 1]. longest_q and longest_k
       are the largest lengths. NULL: every sequence of the batch has all queries and
       keys. */
    const int32_t *cu_q, *cu_k;
    int64_t sequences, longest_q, longest_k;
    const SdcAttentionOptions *options; /* NULL: none */
} SdcAttention;

/* o = softmax(scale q k^T) v: q [batch, heads, M, dim], key [batch, key heads, N, dim],
   value [batch, key heads, N, value dim], o [batch, heads, M, value dim], all fp32, all
   fp16 or all bf16, any strides (exchange the middle dimensions of a tensor [batch, M,
   heads, dim]). heads is a multiple of key heads; dim and value dim are 1 to 256. lse
   [batch, heads, M], fp32, contiguous, is an output that the backward pass needs: the
   logarithm of the sum of exponentials of each query. No memory grows with M * N.

   With few queries (decoding), several programs share a head of keys; a second launch
   combines their results, always in the same order. */
SDC_API SdcStatus sdc_flash_attention_forward(SdcKernels *k, const SdcTensor *q,
                                              const SdcTensor *key,
                                              const SdcTensor *value, const SdcTensor *o,
                                              const SdcTensor *lse, const SdcAttention *a,
                                              void *stream);

/* Bytes of workspace that the backward pass needs for queries `q`. */
SDC_API size_t sdc_flash_attention_workspace(SdcKernels *k, const SdcTensor *q,
                                             const SdcAttention *a);

/* dq, dk and dv, shaped as q, key and value, for dout, the gradient of o. o and lse are
   outputs of the forward pass. `workspace`: sdc_flash_attention_workspace() bytes. */
SDC_API SdcStatus sdc_flash_attention_backward(
    SdcKernels *k, const SdcTensor *q, const SdcTensor *key, const SdcTensor *value,
    const SdcTensor *o, const SdcTensor *lse, const SdcTensor *dout, const SdcTensor *dq,
    const SdcTensor *dk, const SdcTensor *dv, const SdcAttention *a, void *workspace,
    void *stream);

#ifdef __cplusplus
}
#endif

#endif
