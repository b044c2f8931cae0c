/* Matmuls and attention on tensors of more than 2^31 elements and 2^32 bytes, and on
   few rows that lie far apart: strides of 64 bits. See large.c. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tests/run/support/big.h"
#include "tests/run/support/harness.h"

enum { K = 64, SEED = 77 };

static double
tolerance(double want)
{
    return 4e-3 + 2e-3 * fabs(want);
}

/* A matrix [rows, cols], rows `stride` elements apart. */
static SdcTensor
apart(void *data, int64_t rows, int64_t cols, int64_t stride)
{
    SdcTensor t = sdc_matrix(SDC_FP16, data, rows, cols);
    t.strides[0] = stride;
    return t;
}

static double
at(const SdcTensor *t, int64_t i, int64_t j, int salt)
{
    return big_value(i * t->strides[0] + j * t->strides[1], salt);
}

static double
read_at(Big *b, const SdcTensor *t, int64_t i, int64_t j)
{
    double x;
    big_read(b, t->dtype, t->data, i * t->strides[0] + j * t->strides[1], 1, &x);
    return x;
}

/* Rows of t that are worth a look. */
static int
row_places(const SdcTensor *t, int64_t out[BIG_PLACES])
{
    return big_places(t->shape[0], t->strides[0], 2, out);
}

/* c = a b, a filled with salt 0, b with salt 1. */
static void
check_product(Big *b, const SdcTensor *a, const SdcTensor *x, const SdcTensor *c)
{
    int64_t m[BIG_PLACES], n[BIG_PLACES];
    int rows = row_places(c, m), cols = big_places(c->shape[1], 1, 2, n);
    for (int i = 0; i < rows; i++)
        for (int j = 0; j < cols; j++) {
            double want = 0;
            for (int64_t k = 0; k < a->shape[1]; k++)
                want += at(a, m[i], k, 0) * at(x, k, n[j], 1);
            big_expect(b, m[i] * c->strides[0] + n[j], read_at(b, c, m[i], n[j]), want,
                       tolerance(want));
        }
}

START_TEST(many_results)
{
    Big b = big_open();
    int64_t M = b.full ? 65600 : 200, N = b.full ? 32768 : 96;
    SdcTensor a = sdc_matrix(SDC_FP16, big_filled(&b, SDC_FP16, M * K, 0), M, K);
    SdcTensor x = sdc_matrix(SDC_FP16, big_filled(&b, SDC_FP16, K * N, 1), K, N);
    SdcTensor c = sdc_matrix(SDC_FP16, big_filled(&b, SDC_FP16, M * N, 2), M, N);
    big_ok(&b, sdc_matmul(b.nn, &a, &x, NULL, &c, SDC_ACT_NONE, 0, NULL));
    check_product(&b, &a, &x, &c);
    big_done(&b, "sdc_matmul");
    big_close(&b);
}
END_TEST

typedef struct Apart {
    SdcTensor a, x, c;
} Apart;

static Apart
matrices_apart(Big *b, int64_t inner)
{
    int64_t M = b->full ? 2056 : 136, N = b->full ? 256 : 72;
    int64_t rows = b->full ? (1 << 20) + 8 : inner + 8;
    int64_t wide = b->full ? (INT64_C(1) << 31) / inner + 8 : N + 8;
    Apart t;
    t.a = apart(big_filled(b, SDC_FP16, M * rows, 0), M, inner, rows);
    t.x = apart(big_filled(b, SDC_FP16, inner * wide, 1), inner, N, wide);
    if (!b->full)
        rows = N + 8;
    t.c = apart(big_filled(b, SDC_FP16, M * rows, 2), M, N, rows);
    return t;
}

static SdcArg
far(int64_t stride)
{
    return sdc_int_of(SDC_I64, stride);
}

START_TEST(rows_far_apart)
{
    static const char *const kernels[] = {"matmul", "matmul_block", "matmul_desc",
                                          "matmul_persistent"};
    Big b = big_open();
    for (int k = -1; k < 4; k++) {
        Apart t = matrices_apart(&b, K);
        int64_t sizes[] = {t.a.shape[0], t.x.shape[1]};
        int64_t tiles = (sizes[0] + 63) / 64 * ((sizes[1] + 63) / 64);
        SdcArg args[13] = {sdc_ptr(SDC_FP16, t.a.data),
                           sdc_ptr(SDC_FP16, t.x.data),
                           sdc_ptr(SDC_FP16, t.c.data),
                           sdc_none(),
                           sdc_int(sizes[0]),
                           sdc_int(sizes[1]),
                           sdc_int(K)};
        int n = 7;
        args[n++] = far(t.a.strides[0]);
        if (k < 2)
            args[n++] = sdc_int(1);
        args[n++] = far(t.x.strides[0]);
        if (k < 2)
            args[n++] = sdc_int(1);
        args[n++] = far(t.c.strides[0]);
        if (k < 2)
            args[n++] = sdc_int(1);
        if (k < 0)
            big_ok(&b, sdc_matmul(b.nn, &t.a, &t.x, NULL, &t.c, SDC_ACT_NONE, 0, NULL));
        else
            big_launch(&b, "matmul", kernels[k], "BLOCK_M=64 BLOCK_N=64 BLOCK_K=32",
                       sdc_grid(k == 3 ? (tiles + 2) / 3 : tiles, 1, 1), args, n);
        check_product(&b, &t.a, &t.x, &t.c);
        big_done(&b, k < 0 ? "sdc_matmul, rows apart" : kernels[k]);
    }
    big_close(&b);
}
END_TEST

/* ---------------------------------------------------------------- SparseDrop */

enum { INNER = 512, BLOCK = 128 };

static double
kept(int64_t m, int64_t k)
{
    uint32_t bits[4];
    ref_philox_at(SEED, (uint64_t)(m / BLOCK * (INNER / BLOCK) + k / BLOCK), bits);
    return ref_uniform(bits[0]) > 0.5f ? 2 : 0; /* 1 / (1 - p) */
}

static void
sparse(bool listed)
{
    Big b = big_open();
    int64_t m[BIG_PLACES], k[BIG_PLACES];
    SdcBlockDropout d = {.p = 0.5f, .seed = SEED, .block_m = BLOCK, .block_k = BLOCK};
    Apart t = matrices_apart(&b, INNER);
    SdcTensor dy = t.c, dx = t.a, dw = t.x;
    dy.data = big_filled(&b, SDC_FP16, t.c.shape[0] * t.c.strides[0], 3);
    dx.data = big_filled(&b, SDC_FP16, t.a.shape[0] * t.a.strides[0], 4);
    dw.data = big_filled(&b, SDC_FP16, t.x.shape[0] * t.x.strides[0], 5);
    int64_t M = t.c.shape[0], N = t.c.shape[1];
    if (listed)
        d.workspace = big_take(&b, sdc_sparse_linear_workspace(b.nn, M, INNER) + 1);
    big_ok(&b, sdc_sparse_linear_forward(b.nn, &t.a, &t.x, &t.c, &d, NULL));
    big_ok(&b, sdc_sparse_linear_backward(b.nn, &dy, &t.a, &t.x, &dx, &dw, &d, NULL));
    int rows = row_places(&t.c, m), inner = row_places(&t.x, k);
    for (int i = 0; i < rows; i++)
        for (int64_t n = 0; n < N; n += N / 3) {
            double want = 0;
            for (int64_t c = 0; c < INNER; c++)
                want += at(&t.a, m[i], c, 0) * kept(m[i], c) * at(&t.x, c, n, 1);
            big_expect(&b, m[i], read_at(&b, &t.c, m[i], n), want, 5 * tolerance(want));
        }
    for (int i = 0; i < rows; i++)
        for (int j = 0; j < inner; j++) {
            double want = 0;
            for (int64_t n = 0; n < N; n++)
                want += at(&dy, m[i], n, 3) * at(&t.x, k[j], n, 1);
            want *= kept(m[i], k[j]);
            big_expect(&b, m[i], read_at(&b, &dx, m[i], k[j]), want,
                       5 * tolerance(want));
        }
    for (int j = 0; j < inner; j++)
        for (int64_t n = 0; n < N; n += N / 3) {
            double want = 0;
            for (int64_t r = 0; r < M; r++)
                want += at(&t.a, r, k[j], 0) * kept(r, k[j]) * at(&dy, r, n, 3);
            big_expect(&b, k[j], read_at(&b, &dw, k[j], n), want, 5 * tolerance(want));
        }
    big_done(&b, listed ? "sdc_sparse_linear_*, list" : "sdc_sparse_linear_*");
    big_close(&b);
}

START_TEST(sparse_linear)
{
    sparse(false);
    sparse(true);
}
END_TEST

/* ---------------------------------------------------------------- attention */

enum { DIM = 64 };

/* One head of one sequence: what it must give. */
typedef struct Head {
    int64_t M, first; /* rows; index of its first element */
    double *p;        /* [M, M] weights */
    double *dp;       /* [M, M] what the gradient makes of them */
} Head;

static double
dot(const Head *h, int64_t i, int sa, int64_t j, int sb)
{
    double sum = 0;
    for (int64_t d = 0; d < DIM; d++)
        sum += big_value(h->first + i * DIM + d, sa) *
               big_value(h->first + j * DIM + d, sb);
    return sum;
}

/* Salts: q 0, k 1, v 2, dout 3. */
static void
head_weights(Head *h, double *lse)
{
    int64_t M = h->M;
    for (int64_t i = 0; i < M; i++) {
        double sum = 0, delta = 0;
        for (int64_t j = 0; j < M; j++) {
            h->p[i * M + j] = exp(dot(h, i, 0, j, 1) / 8);
            h->dp[i * M + j] = dot(h, i, 3, j, 2);
            sum += h->p[i * M + j];
        }
        lse[i] = log(sum);
        for (int64_t j = 0; j < M; j++) {
            h->p[i * M + j] /= sum;
            delta += h->p[i * M + j] * h->dp[i * M + j];
        }
        for (int64_t j = 0; j < M; j++)
            h->dp[i * M + j] = h->p[i * M + j] * (h->dp[i * M + j] - delta) / 8;
    }
}

/* sum over j of w[i, j] (or w[j, i]) times row j of what `salt` filled, column d. */
static double
weighted(const Head *h, const double *w, bool transposed, int64_t i, int salt, int64_t d)
{
    double sum = 0;
    for (int64_t j = 0; j < h->M; j++)
        sum += w[transposed ? j * h->M + i : i * h->M + j] *
               big_value(h->first + j * DIM + d, salt);
    return sum;
}

static void
check_head(Big *b, int64_t pair, int64_t M, const SdcTensor *lse, const SdcTensor out[4])
{
    Head h = {.M = M, .first = pair * M * DIM};
    double *want = calloc((size_t)M, sizeof *want);
    h.p = calloc((size_t)(M * M), sizeof *h.p);
    h.dp = calloc((size_t)(M * M), sizeof *h.dp);
    ck_assert(want && h.p && h.dp);
    head_weights(&h, want);
    for (int64_t i = 0; i < M; i += M / 5) {
        double got;
        big_read(b, SDC_FP32, lse->data, pair * M + i, 1, &got);
        big_expect(b, pair * M + i, got, want[i], 1e-3);
        for (int64_t d = 0; d < DIM; d += 9) {
            const double values[4] = {
                weighted(&h, h.p, false, i, 2, d), weighted(&h, h.dp, false, i, 1, d),
                weighted(&h, h.dp, true, i, 0, d), weighted(&h, h.p, true, i, 3, d)};
            for (int t = 0; t < 4; t++) {
                big_read(b, SDC_FP16, out[t].data, h.first + i * DIM + d, 1, &got);
                big_expect(b, h.first + i * DIM + d, got, values[t],
                           tolerance(values[t]));
            }
        }
    }
    free(want);
    free(h.p);
    free(h.dp);
}

static void
attend(bool deterministic)
{
    Big b = big_open();
    int64_t heads = b.full ? 32 : 2, batch = b.full ? 1024 : 1, M = b.full ? 1040 : 80;
    int64_t shape[] = {batch, heads, M, DIM}, n = batch * heads * M * DIM;
    int64_t places[BIG_PLACES];
    SdcAttention a = {.deterministic = deterministic};
    SdcTensor in[4], out[4]; /* q k v dout, o dq dk dv */
    for (int i = 0; i < 4; i++) {
        in[i] = sdc_tensor(SDC_FP16, big_filled(&b, SDC_FP16, n, i), 4, shape);
        out[i] = sdc_tensor(SDC_FP16, big_filled(&b, SDC_FP16, n, 5 + i), 4, shape);
    }
    SdcTensor lse = sdc_tensor(SDC_FP32, big_take(&b, (size_t)(n / DIM) * 4), 3, shape);
    void *work = big_take(&b, sdc_flash_attention_workspace(b.nn, &in[0], &a) + 1);
    big_ok(&b, sdc_flash_attention_forward(b.nn, &in[0], &in[1], &in[2], &out[0], &lse,
                                           &a, NULL));
    big_ok(&b, sdc_flash_attention_backward(b.nn, &in[0], &in[1], &in[2], &out[0], &lse,
                                            &in[3], &out[1], &out[2], &out[3], &a, work,
                                            NULL));
    int count = big_places(batch * heads, M * DIM, 2, places);
    for (int p = 0; p < count && p < 7; p++) /* both ends, and what surrounds 2^31 */
        check_head(&b, places[p], M, &lse, out);
    big_done(&b,
             deterministic ? "sdc_flash_attention_*, det." : "sdc_flash_attention_*");
    big_close(&b);
}

START_TEST(attention)
{
    attend(false);
    attend(true);
}
END_TEST

int
main(void)
{
    return RUN_TESTS("large_products", many_results, rows_far_apart, sparse_linear,
                     attention);
}
