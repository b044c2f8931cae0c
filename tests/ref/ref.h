/* References of the project's kernels: plain loops in double precision.

   They include nothing of sdc, so that they share none of its mistakes. Inputs are dense
   row-major arrays of doubles, made from a kernel's own buffers by ref_gather, so that it
   starts from exactly the numbers that the kernel saw. Beside each result stands a bound:
   how far a kernel that computes in fp32 may be from it before the result is rounded to
   its type. ref_compare adds that rounding.

   Bounds are the usual first-order ones: a sum of n terms errs by n half-ulps of the sum
   of the magnitudes, in whatever order it is taken. */
#ifndef TESTS_REF_REF_H
#define TESTS_REF_REF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define REF_U32 0x1p-24 /* half an ulp of fp32, relative */

/* ---------------------------------------------------------------- types (convert.c) */

typedef enum RefType { REF_FP32, REF_FP16, REF_BF16, REF_FP64 } RefType;

int ref_size(RefType t);     /* bytes */
double ref_unit(RefType t);  /* half an ulp, relative */
double ref_tiny(RefType t);  /* the smallest positive number */
double ref_load(RefType t, const void *p, int64_t i);
void ref_store(RefType t, void *p, int64_t i, double v); /* as ref_round */
double ref_round(RefType t, double v); /* to nearest, ties to even */

/* out[...] = p[sum of index * stride] over `rank` dimensions, dense row-major. */
void ref_gather(RefType t, const void *p, int rank, const int64_t *shape,
                const int64_t *strides, double *out);

/* Index of the first element further from `want` than bound + one rounding to `t`, or -1.
   Infinities and NaNs must be in the same places. `bound` may be NULL: zero. */
int64_t ref_compare(RefType t, int64_t n, const double *got, const double *want,
                    const double *bound);

/* ---------------------------------------------------------------- random (philox.c) */

/* Philox-4x32-10 of Salmon et al., "Parallel random numbers: as easy as 1, 2, 3". */
void ref_philox(const uint32_t counter[4], const uint32_t key[2], uint32_t out[4]);

void ref_philox64(const uint64_t counter[4], const uint64_t key[2], uint64_t out[4]);

/* Triton's convention: key = the seed as 64 bits, counter = (offset, 0, 0). */
void ref_philox_at(int64_t seed, uint64_t offset, uint32_t out[4]);

/* Triton's map of 32 random bits to [0, 1), in fp32. */
float ref_uniform(uint32_t bits);

/* The published known answers hold. */
bool ref_philox_selftest(void);

/* ---------------------------------------------------------------- elementwise.c */

void ref_vector_add(int64_t n, const double *x, const double *y, double *out);
void ref_add_mul_add(int64_t n, const double *a, const double *b, const double *c,
                     const double *d, double *out, double *bound);

/* Word 0 of counter i, or with `four` word i % 4 of counter i / 4. */
void ref_dropout(int64_t n, const double *x, float p, int64_t seed, bool four,
                 double *out, double *bound);

typedef enum RefAct { REF_NONE, REF_RELU, REF_SILU, REF_GELU } RefAct;

double ref_act(RefAct act, double x);
double ref_slope(RefAct act, double x); /* 0 where relu has none */

/* out = residual + drop(act(x + bias)) over [rows, cols] and dx, its gradient to x; bias
   [cols] and residual may be NULL. Element i = r * cols + c is decided by word 0 of
   counter offset + i, or with `four` by word i % 4 of counter offset + i / 4. */
typedef struct RefDrop {
    int64_t rows, cols;
    const double *x, *bias, *residual, *dy;
    RefAct act;
    float p;
    int64_t seed;
    uint64_t offset;
    bool four;
    double *out, *dx, *out_bound, *dx_bound; /* results */
} RefDrop;

void ref_drop(const RefDrop *d);
bool ref_drop_keeps(const RefDrop *d, int64_t row, int64_t col);

/* either[i]: the variate is so near to the threshold that both answers are right;
   out[i] is then what a kept element has. */
void ref_dropout_normal(int64_t n, const double *x, float threshold, int64_t seed,
                        double *out, double *bound, bool *either);
double ref_normal(int64_t seed, uint64_t offset);

/* ---------------------------------------------------------------- rows.c */

void ref_softmax(int64_t rows, int64_t cols, const double *x, double *out, double *bound);

typedef struct RefNorm {
    int64_t rows, cols;
    const double *x, *w, *b, *dy;
    double eps;
    double *y, *mean, *rstd, *dx, *dw, *db; /* results */
    double *y_bound, *mean_bound, *rstd_bound, *dx_bound, *dw_bound, *db_bound;
} RefNorm;

void ref_layer_norm(const RefNorm *n);

/* y = x * rstd * w and its gradients, dx with `add` on top (NULL: none). */
typedef struct RefRms {
    int64_t rows, cols;
    const double *x, *w, *dy, *add;
    double eps;
    double *y, *rstd, *dx, *dw; /* results */
    double *y_bound, *rstd_bound, *dx_bound, *dw_bound;
} RefRms;

void ref_rms_norm(const RefRms *n);

typedef struct RefWeighted {
    int64_t rows, cols;
    const double *x, *w, *dy;
    double *y, *dx, *dw;
    double *y_bound, *dx_bound, *dw_bound;
} RefWeighted;

void ref_weighted_sum(const RefWeighted *s);

/* ---------------------------------------------------------------- gates.c */

/* out = silu(gate) * up, element by element, and its gradients. */
typedef struct RefSwiglu {
    int64_t n;
    const double *gate, *up, *dout;
    double *out, *dgate, *dup; /* results */
    double *out_bound, *dgate_bound, *dup_bound;
} RefSwiglu;

void ref_swiglu(const RefSwiglu *s);

/* x, out [rows, dim]; row r is turned by the angles of row place[r] of cos and sin
   [.., half]; sign -1: back. */
typedef struct RefRotary {
    int64_t rows, dim, half;
    const double *x, *cos, *sin;
    const int64_t *place;
    bool pairs;
    double sign;
    double *out, *bound; /* results */
} RefRotary;

void ref_rotary(const RefRotary *r);

/* ---------------------------------------------------------------- training.c */

typedef struct RefEntropy {
    int64_t rows, cols;
    const double *x;
    const int64_t *target;
    int64_t ignore;
    double scale;
    double *loss, *dx, *loss_bound, *dx_bound; /* results */
} RefEntropy;

void ref_cross_entropy(const RefEntropy *e);

/* w, m and v: before the step, and then after it. */
typedef struct RefAdam {
    int64_t n;
    const double *g;
    double scale, lr, beta1, beta2, eps, decay, fix1, fix2;
    double *w, *m, *v, *w_bound, *m_bound, *v_bound;
} RefAdam;

void ref_adamw(const RefAdam *a);

void ref_activation(RefAct act, int64_t n, const double *x, const double *dy, double *out,
                    double *out_bound, double *dx, double *dx_bound);

typedef struct RefEmbedding {
    int64_t tokens, words, length, dim;
    const int64_t *token;
    const double *table, *place, *dy; /* place may be NULL */
    double *out, *dtable, *dplace;    /* results */
    double *out_bound, *dtable_bound, *dplace_bound;
} RefEmbedding;

void ref_embedding(const RefEmbedding *e);

/* ---------------------------------------------------------------- gemm.c */

/* c [M, N] = act(a [M, K] b [K, N] + bias [N]); `bias` may be NULL. `unit`: what a
   product may be off before it is summed, relative: 0 in fp32, 2^-9 with operands cut to
   tf32. */
void ref_matmul(int64_t M, int64_t N, int64_t K, const double *a, const double *b,
                const double *bias, RefAct act, double unit, double *c, double *bound);

/* A mask of blocks: entry (i, j) covers rows x cols elements; `blocks` in a row. */
typedef struct RefMask {
    const int8_t *live;
    int64_t blocks, rows, cols;
} RefMask;

/* c = scale * (a masked over (M, K)) b */
void ref_dsd(int64_t M, int64_t N, int64_t K, const double *a, const double *b,
             const RefMask *mask, double scale, double unit, double *c, double *bound);
/* c = scale * (a b) masked over (M, N) */
void ref_sdd(int64_t M, int64_t N, int64_t K, const double *a, const double *b,
             const RefMask *mask, double scale, double unit, double *c, double *bound);

/* ---------------------------------------------------------------- attention.c */

typedef struct RefAttention {
    int64_t batch, heads, group, M, N, dim;
    const double *q, *k, *v; /* [batch, heads, M, dim], [batch, heads / group, N, dim] */
    double scale;
    bool causal;
    double weight_unit;      /* rounding of a weight to the type of v; 0 for fp32 */
    double dot_unit;         /* of a product before it is summed: ref_matmul's unit */
    /* Weights dropped with this probability, by the seed; the pair (head, query, key) of
       the mask has head + first_head. */
    float drop;
    int64_t seed, first_head;
    int64_t value_dim; /* of v and o; 0: dim */
    /* Options, zero: none. Query i is at the place of key i + n - M, n the keys that
       count (lengths [batch], else N): it sees those less than `window` away; scores s
       become cap * tanh(s / cap), less slopes [heads] * distance, plus bias [batch,
       heads, M, N]. */
    int64_t window;
    double cap;
    const double *slopes, *bias;
    const int32_t *lengths;
    double *o, *lse;
    double *o_bound, *lse_bound;
} RefAttention;

void ref_attention(const RefAttention *a);

/* What a weight is multiplied by: 0, or 1 / (1 - drop). `head` counts over the batch. */
double ref_attention_keep(const RefAttention *a, int64_t head, int64_t i, int64_t j);

/* ---------------------------------------------------------------- attention_grad.c */

/* Gradients of the same attention: `a` has been through ref_attention. `o` is the output
   that the kernel is given, in its type. Where a kernel rounds weights to multiply them,
   it rounds the gradients of scores as well. */
typedef struct RefAttentionGrad {
    const RefAttention *a;
    const double *o, *dout;        /* as a->o */
    double *delta, *dq, *dk, *dv;  /* delta [batch, heads, M]: sum of o * dout */
    double *delta_bound, *dq_bound, *dk_bound, *dv_bound;
} RefAttentionGrad;

void ref_attention_grad(const RefAttentionGrad *g);

#endif
