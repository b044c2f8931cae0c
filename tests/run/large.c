/* Every kernel that ships, on tensors of more than 2^31 elements and 2^32 bytes and with
   strides of 64 bits, as far as its own limits go (offsets of 32 bits: 2^31 elements
   less a block). Results are compared in places with a reference in double precision;
   see support/big.h for the sizes: without SDC_TEST_LARGE=1 everything is small. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/run/support/big.h"
#include "tests/run/support/harness.h"

enum { SEED = 77, COLS = 16384 };

static const float drop_p = 0.25f, threshold = 1.5f;

/* More than 2^31 elements: rows of `cols`. */
static int64_t
many_rows(const Big *b, int64_t cols)
{
    return (b->full ? (INT64_C(1) << 31) / cols : 67) + 5;
}

static int64_t
row_length(const Big *b)
{
    return b->full ? COLS : 64;
}

static double
half_tolerance(double want)
{
    return 2e-3 + 2e-3 * fabs(want);
}

/* ---------------------------------------------------------------- along an array */

/* What follows the array's length. */
typedef enum Extra { NOTHING, DROP, DROP_LONG, NEAR } Extra;

typedef struct Flat {
    const char *file, *kernel, *bind; /* bind begins with BLOCK=n */
    int nin;
    SdcDtype type;
    double (*f)(const double *x, int64_t i);
    double tolerance;
    Extra extra; /* DROP_LONG: indices have 64 bits */
} Flat;

static double
sum2(const double *x, int64_t i)
{
    (void)i;
    return x[0] + x[1];
}

static double
add_mul_add(const double *x, int64_t i)
{
    (void)i;
    return x[3] + (x[0] + x[1]) * x[2];
}

static double
gelu(const double *x, int64_t i)
{
    (void)i;
    return ref_act(REF_GELU, x[0]);
}

static double
silu_slope(const double *x, int64_t i)
{
    (void)i;
    return x[0] * ref_slope(REF_SILU, x[1]);
}

static double
dropped(double x, uint64_t counter, int word)
{
    uint32_t bits[4];
    ref_philox_at(SEED, counter, bits);
    return ref_uniform(bits[word]) > drop_p ? x / (1 - (double)drop_p) : 0;
}

static double
drop_each(const double *x, int64_t i)
{
    return dropped(x[0], (uint64_t)i, 0);
}

static double
drop_four(const double *x, int64_t i)
{
    return dropped(x[0], (uint64_t)i / 4, (int)(i % 4));
}

static double
drop_normal(const double *x, int64_t i)
{
    double z = fabs(ref_normal(SEED, (uint64_t)i));
    if (fabs(z - 1.5) < 1e-3)
        return NAN; /* either is right */
    return z < 1.5 ? x[0] / erf(1.5 / sqrt(2)) : 0;
}

static int
add_extra(Extra extra, SdcArg *args, int n)
{
    if (extra == NOTHING)
        return n;
    args[n++] = sdc_float(extra == NEAR ? (double)threshold : (double)drop_p);
    args[n++] = sdc_int(SEED);
    if (extra == DROP_LONG)
        args[n++] = sdc_int_of(SDC_I64, 0);
    return n;
}

static void
flat(Big *b, const Flat *k)
{
    int64_t places[BIG_PLACES], n = 70001;
    SdcArg args[12];
    int nargs = 0, bytes = sdc_dtype_size(k->type),
        block = atoi(strchr(k->bind, '=') + 1);
    if (b->full)
        n = k->extra == DROP_LONG ? many_rows(b, COLS) * COLS
                                  : (INT64_C(1) << 31) - block;
    for (int i = 0; i < k->nin; i++)
        args[nargs++] = sdc_ptr(k->type, big_filled(b, k->type, n, 1000 * i));
    void *out = big_take(b, (size_t)n * (size_t)bytes);
    args[nargs++] = sdc_ptr(k->type, out);
    args[nargs++] = k->extra == DROP_LONG ? sdc_int_of(SDC_I64, n) : sdc_int(n);
    nargs = add_extra(k->extra, args, nargs);
    big_launch(b, k->file, k->kernel, k->bind, sdc_grid((n + block - 1) / block, 1, 1),
               args, nargs);
    int count = big_places(n, 1, bytes, places);
    for (int p = 0; p < count; p++) {
        double x[4], got;
        for (int i = 0; i < k->nin; i++)
            x[i] = big_value(places[p], 1000 * i);
        double want = k->f(x, places[p]);
        big_read(b, k->type, out, places[p], 1, &got);
        if (!isnan(want))
            big_expect(b, places[p], got, want, k->tolerance * (1 + fabs(want)));
    }
    big_done(b, k->kernel);
}

static const Flat arrays_of[] = {
    {"vector_add", "vector_add", "BLOCK=1024", 2, SDC_FP32, sum2, 1e-6, NOTHING},
    {"add_mul_add", "add_mul_add", "BLOCK=1024", 4, SDC_FP16, add_mul_add, 2e-3,
     NOTHING},
    {"activation", "act_fwd", "BLOCK=1024 ACT='gelu'", 1, SDC_FP32, gelu, 1e-5, NOTHING},
    {"activation", "act_bwd", "BLOCK=1024 ACT='silu'", 2, SDC_FP32, silu_slope, 1e-5,
     NOTHING},
    {"dropout", "dropout_fwd", "BLOCK=8192 TILE=1024", 1, SDC_FP32, drop_each, 1e-6,
     DROP},
    {"dropout", "dropout_bwd", "BLOCK=1024", 1, SDC_FP32, drop_each, 1e-6, DROP},
    {"dropout", "dropout4_fwd", "BLOCK=1024", 1, SDC_FP32, drop_four, 1e-6, DROP},
    {"dropout", "dropout4_bwd", "BLOCK=1024", 1, SDC_FP32, drop_four, 1e-6, DROP},
    {"dropout", "dropout_long_fwd", "BLOCK=1024", 1, SDC_FP16, drop_each, 2e-3,
     DROP_LONG},
    {"dropout", "dropout_long_bwd", "BLOCK=1024 FOUR=True", 1, SDC_FP32, drop_four, 1e-6,
     DROP_LONG},
    {"dropout_normal", "dropout_normal_fwd", "BLOCK=1024", 1, SDC_FP32, drop_normal,
     1e-5, NEAR},
    {"dropout_normal", "dropout_normal_bwd", "BLOCK=1024", 1, SDC_FP32, drop_normal,
     1e-5, NEAR},
};

START_TEST(arrays)
{
    Big b = big_open();
    for (size_t i = 0; i < sizeof arrays_of / sizeof *arrays_of; i++)
        flat(&b, &arrays_of[i]);
    big_close(&b);
}
END_TEST

/* w is read back; m and v begin as what they are filled with, v in [0, 1). */
START_TEST(steps_of_adamw)
{
    Big b = big_open();
    int64_t places[BIG_PLACES], n = b.full ? (INT64_C(1) << 31) - 1024 : 70001;
    void *w = big_filled(&b, SDC_FP32, n, 0), *g = big_filled(&b, SDC_FP16, n, 1);
    void *m = big_filled(&b, SDC_FP32, n, 2), *v = big_filled(&b, SDC_FP32, n, 3);
    const SdcArg args[] = {
        sdc_ptr(SDC_FP32, w), sdc_ptr(SDC_FP16, g), sdc_ptr(SDC_FP32, m),
        sdc_ptr(SDC_FP32, v), sdc_none(),           sdc_int(n),
        sdc_float(0.5),       sdc_float(0.125),     sdc_float(0.5),
        sdc_float(0.75),      sdc_float(1e-2),      sdc_float(0.25),
        sdc_float(0.5),       sdc_float(0.25)};
    big_launch(&b, "adamw", "adamw", "BLOCK=1024", sdc_grid((n + 1023) / 1024, 1, 1),
               args, 14);
    int count = big_places(n, 1, 4, places);
    for (int p = 0; p < count; p++) {
        int64_t i = places[p];
        double got[3], h = 0.5 * big_value(i, 1), w0 = big_value(i, 0);
        double m1 = 0.5 * big_value(i, 2) + 0.5 * h;
        double v1 = 0.75 * big_value(i, 3) + 0.25 * h * h;
        double w1 = w0 - 0.125 * (0.25 * w0 + m1 / 0.5 / (sqrt(v1 / 0.25) + 1e-2));
        big_read(&b, SDC_FP32, m, i, 1, &got[0]);
        big_read(&b, SDC_FP32, v, i, 1, &got[1]);
        big_read(&b, SDC_FP32, w, i, 1, &got[2]);
        big_expect(&b, i, got[0], m1, 1e-6);
        big_expect(&b, i, got[1], v1, 1e-6);
        if (v1 >= 0) /* what the filler calls v may be no square */
            big_expect(&b, i, got[2], w1, 1e-3 * (1 + fabs(w1)));
    }
    big_done(&b, "adamw");
    big_close(&b);
}
END_TEST

/* ---------------------------------------------------------------- rows of a matrix */

typedef struct Rows {
    int64_t rows, cols;
    void *x, *y;
    double *in, *got; /* a row */
    int64_t place[BIG_PLACES];
    int nplace;
} Rows;

static Rows
rows_open(Big *b, SdcDtype t)
{
    Rows r = {.cols = row_length(b)};
    r.rows = many_rows(b, r.cols);
    r.x = big_filled(b, t, r.rows * r.cols, 0);
    r.y = big_take(b, (size_t)(r.rows * r.cols) * (size_t)sdc_dtype_size(t));
    r.in = calloc((size_t)r.cols, sizeof *r.in);
    r.got = calloc((size_t)r.cols, sizeof *r.got);
    ck_assert(r.in && r.got);
    r.nplace = big_places(r.rows, r.cols, sdc_dtype_size(t), r.place);
    return r;
}

/* The p-th place: in and got of its row. */
static int64_t
rows_look(Big *b, Rows *r, SdcDtype t, int p)
{
    int64_t row = r->place[p];
    for (int64_t c = 0; c < r->cols; c++)
        r->in[c] = big_value(row * r->cols + c, 0);
    big_read(b, t, r->y, row * r->cols, r->cols, r->got);
    return row;
}

static void
rows_close(Big *b, Rows *r, const char *kernel)
{
    free(r->in);
    free(r->got);
    big_done(b, kernel);
}

static double
exp_sum(const Rows *r)
{
    double sum = 0;
    for (int64_t c = 0; c < r->cols; c++)
        sum += exp(r->in[c]);
    return sum;
}

static void
softmax_rows(Big *b, const char *kernel)
{
    Rows r = rows_open(b, SDC_FP16);
    SdcTensor x = sdc_matrix(SDC_FP16, r.x, r.rows, r.cols), y = x;
    y.data = r.y;
    if (!kernel) {
        big_ok(b, sdc_softmax_forward(b->nn, &x, &y, NULL));
    } else {
        const SdcArg args[] = {sdc_ptr(SDC_FP16, r.x),
                               sdc_ptr(SDC_FP16, r.y),
                               sdc_int_of(SDC_I64, r.cols),
                               sdc_int_of(SDC_I64, r.cols),
                               sdc_int(r.rows),
                               sdc_int(r.cols)};
        char bind[64];
        snprintf(bind, sizeof bind, "BLOCK=%d num_warps=16",
                 strcmp(kernel, "softmax") == 0 ? (int)r.cols : 1024);
        big_launch(b, "softmax", kernel, bind, sdc_grid(r.rows, 1, 1), args, 6);
    }
    for (int p = 0; p < r.nplace; p++) {
        int64_t row = rows_look(b, &r, SDC_FP16, p);
        double sum = exp_sum(&r);
        for (int64_t c = 0; c < r.cols; c++)
            big_expect(b, row * r.cols + c, r.got[c], exp(r.in[c]) / sum,
                       4e-3 * exp(r.in[c]) / sum + 1e-7);
    }
    rows_close(b, &r, kernel ? kernel : "sdc_softmax_forward");
}

static void
cross_entropy_rows(Big *b, const char *kernel)
{
    Rows r = rows_open(b, SDC_FP16);
    float *losses = big_take(b, (size_t)r.rows * sizeof *losses);
    int64_t *target = big_take(b, (size_t)r.rows * sizeof *target);
    int64_t *host = calloc((size_t)r.rows, sizeof *host);
    ck_assert_ptr_nonnull(host);
    for (int64_t i = 0; i < r.rows; i++)
        host[i] = i * 31 % r.cols;
    big_write(b, target, host, (size_t)r.rows * sizeof *host);
    const SdcArg args[] = {sdc_ptr(SDC_FP16, r.x),
                           sdc_ptr(SDC_I64, target),
                           sdc_ptr(SDC_FP32, losses),
                           sdc_ptr(SDC_FP16, r.y),
                           sdc_int_of(SDC_I64, r.cols),
                           sdc_int_of(SDC_I64, r.cols),
                           sdc_int(r.rows),
                           sdc_int(r.cols),
                           sdc_float(64.0),
                           sdc_int(-1)};
    char bind[64];
    snprintf(bind, sizeof bind, "BLOCK=%d num_warps=16",
             strcmp(kernel, "cross_entropy") == 0 ? (int)r.cols : 1024);
    big_launch(b, "cross_entropy", kernel, bind, sdc_grid(r.rows, 1, 1), args, 10);
    for (int p = 0; p < r.nplace; p++) {
        int64_t row = rows_look(b, &r, SDC_FP16, p);
        double sum = exp_sum(&r), loss;
        big_read(b, SDC_FP32, losses, row, 1, &loss);
        big_expect(b, row, loss, log(sum) - r.in[host[row]], 1e-3);
        for (int64_t c = 0; c < r.cols; c++) {
            double want = 64.0 * (exp(r.in[c]) / sum - (c == host[row]));
            big_expect(b, row * r.cols + c, r.got[c], want, 4e-3 * fabs(want) + 1e-5);
        }
    }
    free(host);
    rows_close(b, &r, kernel);
}

START_TEST(rows_of_logits)
{
    Big b = big_open();
    softmax_rows(&b, NULL);
    softmax_rows(&b, "softmax");
    softmax_rows(&b, "softmax_online");
    cross_entropy_rows(&b, "cross_entropy");
    cross_entropy_rows(&b, "cross_entropy_online");
    big_close(&b);
}
END_TEST

typedef struct Moments {
    double mean, rstd;
} Moments;

static Moments
moments(const Rows *r)
{
    Moments m = {0, 0};
    for (int64_t c = 0; c < r->cols; c++)
        m.mean += r->in[c] / (double)r->cols;
    for (int64_t c = 0; c < r->cols; c++)
        m.rstd += (r->in[c] - m.mean) * (r->in[c] - m.mean) / (double)r->cols;
    m.rstd = 1 / sqrt(m.rstd + 1e-5);
    return m;
}

/* dx of the rows looked at, dw and db of some columns. */
static void
layer_norm_back(Big *b, Rows *r, SdcTensor x, SdcTensor w, SdcTensor mean,
                SdcTensor rstd)
{
    SdcTensor dy = x, dx = x, dw, db;
    dy.data = big_filled(b, SDC_FP16, r->rows * r->cols, 5);
    dx.data = r->y;
    dw = sdc_vector(SDC_FP32, big_take(b, (size_t)r->cols * 4), r->cols);
    db = sdc_vector(SDC_FP32, big_take(b, (size_t)r->cols * 4), r->cols);
    void *work = big_take(b, sdc_layer_norm_workspace(b->nn, r->cols));
    big_ok(b, sdc_layer_norm_backward(b->nn, &dy, &x, &w, &mean, &rstd, &dx, &dw, &db,
                                      work, NULL));
    for (int p = 0; p < r->nplace; p++) {
        int64_t row = rows_look(b, r, SDC_FP16, p), first = row * r->cols;
        Moments m = moments(r);
        double along = 0, sum = 0;
        for (int64_t c = 0; c < r->cols; c++) {
            double g = big_value(first + c, 5) * big_value(c, 3);
            along += g * (r->in[c] - m.mean) * m.rstd / (double)r->cols;
            sum += g / (double)r->cols;
        }
        for (int64_t c = 0; c < r->cols; c++) {
            double g = big_value(first + c, 5) * big_value(c, 3);
            double hat = (r->in[c] - m.mean) * m.rstd;
            double want = m.rstd * (g - hat * along - sum);
            big_expect(b, first + c, r->got[c], want, half_tolerance(want));
        }
    }
    double *kept = calloc((size_t)r->rows, 2 * sizeof *kept);
    ck_assert_ptr_nonnull(kept);
    big_read(b, SDC_FP32, mean.data, 0, r->rows, kept);
    big_read(b, SDC_FP32, rstd.data, 0, r->rows, kept + r->rows);
    for (int64_t c = 0; c < r->cols; c += r->cols - 1) {
        double want[2] = {0, 0}, got;
        for (int64_t i = 0; i < r->rows; i++) {
            double g = big_value(i * r->cols + c, 5);
            want[0] += g * (big_value(i * r->cols + c, 0) - kept[i]) * kept[r->rows + i];
            want[1] += g;
        }
        big_read(b, SDC_FP32, dw.data, c, 1, &got);
        big_expect(b, c, got, want[0], 0.05 + 1e-4 * fabs(want[0]));
        big_read(b, SDC_FP32, db.data, c, 1, &got);
        big_expect(b, c, got, want[1], 0.05 + 1e-4 * fabs(want[1]));
    }
    free(kept);
}

START_TEST(layer_norm)
{
    Big b = big_open();
    Rows r = rows_open(&b, SDC_FP16);
    SdcTensor x = sdc_matrix(SDC_FP16, r.x, r.rows, r.cols), y = x;
    SdcTensor w = sdc_vector(SDC_FP16, big_filled(&b, SDC_FP16, r.cols, 3), r.cols);
    SdcTensor a = sdc_vector(SDC_FP16, big_filled(&b, SDC_FP16, r.cols, 4), r.cols);
    SdcTensor mean = sdc_vector(SDC_FP32, big_take(&b, (size_t)r.rows * 4), r.rows);
    SdcTensor rstd = sdc_vector(SDC_FP32, big_take(&b, (size_t)r.rows * 4), r.rows);
    y.data = r.y;
    big_ok(&b, sdc_layer_norm_forward(b.nn, &x, &w, &a, &y, &mean, &rstd, 1e-5, NULL));
    for (int p = 0; p < r.nplace; p++) {
        int64_t row = rows_look(&b, &r, SDC_FP16, p);
        Moments m = moments(&r);
        for (int64_t c = 0; c < r.cols; c++) {
            double want =
                (r.in[c] - m.mean) * m.rstd * big_value(c, 3) + big_value(c, 4);
            big_expect(&b, row * r.cols + c, r.got[c], want, half_tolerance(want));
        }
    }
    layer_norm_back(&b, &r, x, w, mean, rstd);
    rows_close(&b, &r, "sdc_layer_norm_*");
    big_close(&b);
}
END_TEST

/* The sum over all rows of one column of dx. */
static double
bias_sum(const Rows *r, int64_t c)
{
    double sum = 0;
    for (int64_t row = 0; row < r->rows; row++) {
        int64_t i = row * r->cols + c;
        sum += dropped(big_value(i, 6), (uint64_t)i, 0) *
               ref_slope(REF_GELU, big_value(i, 0) + big_value(c, 3));
    }
    return sum;
}

START_TEST(fused_dropout)
{
    Big b = big_open();
    Rows r = rows_open(&b, SDC_FP16);
    SdcDropout d = {.p = drop_p, .seed = SEED, .act = SDC_ACT_GELU, .per_element = 1};
    SdcTensor x = sdc_matrix(SDC_FP16, r.x, r.rows, r.cols), y = x, rest = x, dy = x;
    SdcTensor bias = sdc_vector(SDC_FP16, big_filled(&b, SDC_FP16, r.cols, 3), r.cols);
    SdcTensor dbias = sdc_vector(SDC_FP32, big_take(&b, (size_t)r.cols * 4), r.cols);
    y.data = r.y;
    rest.data = big_filled(&b, SDC_FP16, r.rows * r.cols, 7);
    dy.data = big_filled(&b, SDC_FP16, r.rows * r.cols, 6);
    for (int back = 0; back < 2; back++) {
        if (back)
            big_ok(&b, sdc_dropout_backward(b.nn, &dy, &x, &bias, &y, &dbias, &d, NULL));
        else
            big_ok(&b, sdc_dropout_forward(b.nn, &x, &bias, &rest, &y, &d, NULL));
        for (int p = 0; p < r.nplace; p++) {
            int64_t row = rows_look(&b, &r, SDC_FP16, p);
            for (int64_t c = 0; c < r.cols; c += 7) {
                int64_t i = row * r.cols + c;
                double z = r.in[c] + big_value(c, 3), want;
                if (back)
                    want = dropped(big_value(i, 6), (uint64_t)i, 0) *
                           ref_slope(REF_GELU, z);
                else
                    want =
                        big_value(i, 7) + dropped(ref_act(REF_GELU, z), (uint64_t)i, 0);
                big_expect(&b, i, r.got[c], want, half_tolerance(want));
            }
        }
    }
    for (int64_t c = 0; c < r.cols; c += r.cols - 1) {
        double got, want = bias_sum(&r, c);
        big_read(&b, SDC_FP32, dbias.data, c, 1, &got);
        big_expect(&b, c, got, want, 0.5 + 1e-3 * fabs(want)); /* of rounded dx */
    }
    rows_close(&b, &r, "sdc_dropout_*");
    big_close(&b);
}
END_TEST

START_TEST(weighted_sums)
{
    Big b = big_open();
    Rows r = rows_open(&b, SDC_FP16);
    enum { BLOCK_R = 64 };
    int64_t parts = (r.rows + BLOCK_R - 1) / BLOCK_R;
    SdcArg stride = sdc_int_of(SDC_I64, r.cols), one = sdc_int(1),
           rows = sdc_int(r.rows);
    SdcArg cols = sdc_int(r.cols), x = sdc_ptr(SDC_FP16, r.x);
    SdcArg w = sdc_ptr(SDC_FP32, big_filled(&b, SDC_FP32, r.cols, 3));
    SdcArg dy = sdc_ptr(SDC_FP32, big_filled(&b, SDC_FP32, r.rows, 6));
    SdcArg y = sdc_ptr(SDC_FP32, big_take(&b, (size_t)r.rows * 4));
    SdcArg part = sdc_ptr(SDC_FP32, big_take(&b, (size_t)(parts * r.cols) * 4));
    SdcArg dw = sdc_ptr(SDC_FP32, big_take(&b, (size_t)r.cols * 4));
    const SdcArg fwd[] = {x, w, y, stride, one, one, one, rows, cols};
    const SdcArg bwd[] = {
        dy,  x,    w,   sdc_ptr(SDC_FP16, r.y), part, one, stride, one, one, stride,
        one, rows, cols};
    const SdcArg sum[] = {part, dw, sdc_int(parts), cols};
    SdcGrid grid = sdc_grid(parts, 1, 1);
    big_launch(&b, "weighted_sum", "weighted_sum_fwd", "BLOCK_R=64 BLOCK_C=64", grid,
               fwd, 9);
    big_launch(&b, "weighted_sum", "weighted_sum_bwd", "BLOCK_R=64 BLOCK_C=64", grid,
               bwd, 13);
    big_launch(&b, "weighted_sum", "weighted_sum_bwd_sum", "BLOCK_P=32 BLOCK_C=64",
               sdc_grid((r.cols + 63) / 64, 1, 1), sum, 4);
    for (int p = 0; p < r.nplace; p++) {
        int64_t row = rows_look(&b, &r, SDC_FP16, p);
        double got, want = 0;
        for (int64_t c = 0; c < r.cols; c++) {
            double dx = big_value(row, 6) * big_value(c, 3);
            want += r.in[c] * big_value(c, 3);
            big_expect(&b, row * r.cols + c, r.got[c], dx, half_tolerance(dx));
        }
        big_read(&b, SDC_FP32, y.v.ptr, row, 1, &got);
        big_expect(&b, row, got, want, 1e-2);
    }
    for (int64_t c = 0; c < r.cols; c += r.cols - 1) {
        double got, want = 0;
        for (int64_t row = 0; row < r.rows; row++)
            want += big_value(row, 6) * big_value(row * r.cols + c, 0);
        big_read(&b, SDC_FP32, dw.v.ptr, c, 1, &got);
        big_expect(&b, c, got, want, 0.05 + 1e-4 * fabs(want));
    }
    rows_close(&b, &r, "weighted_sum_*");
    big_close(&b);
}
END_TEST

/* Offsets of 32 bits: a table of 2^31 elements less a row, all rows of the gradient
   written, few tokens. */
START_TEST(embedding)
{
    Big b = big_open();
    int64_t dim = row_length(&b), words = b.full ? (INT64_C(1) << 31) / dim - 1 : 67;
    enum { TOKENS = 64 };
    int64_t place[BIG_PLACES];
    int32_t token[TOKENS];
    int count = big_places(words, dim, 4, place);
    for (int t = 0; t < TOKENS; t++)
        token[t] = (int32_t)place[t % count];
    void *tokens = big_take(&b, sizeof token);
    big_write(&b, tokens, token, sizeof token);
    SdcArg list = sdc_ptr(SDC_I32, tokens), size = sdc_int(dim);
    SdcArg table = sdc_ptr(SDC_FP32, big_filled(&b, SDC_FP32, words * dim, 0));
    SdcArg out = sdc_ptr(SDC_FP32, big_take(&b, (size_t)(TOKENS * dim) * 4));
    SdcArg dy = sdc_ptr(SDC_FP32, big_filled(&b, SDC_FP32, TOKENS * dim, 9));
    const SdcArg fwd[] = {list, table, sdc_none(), out, sdc_int(TOKENS), size};
    const SdcArg add[] = {list, dy, table, size};
    char bind[64];
    double *row = calloc((size_t)dim, 2 * sizeof *row), *before = row + dim;
    ck_assert_ptr_nonnull(row);
    snprintf(bind, sizeof bind, "BLOCK=%d num_warps=16", (int)dim);
    big_launch(&b, "embedding", "embedding_fwd", bind, sdc_grid(TOKENS, 1, 1), fwd, 6);
    big_launch(&b, "embedding", "embedding_bwd_add", bind, sdc_grid(TOKENS, 1, 1), add,
               4);
    for (int t = 0; t < count; t++) {
        big_read(&b, SDC_FP32, out.v.ptr, t * dim, dim, row);
        for (int64_t c = 0; c < dim; c++)
            big_expect(&b, token[t] * dim + c, row[c], big_value(token[t] * dim + c, 0),
                       0);
        big_read(&b, SDC_FP32, table.v.ptr, token[t] * dim, dim, row);
        for (int64_t c = 0; c < dim; c++) {
            before[c] = big_value(token[t] * dim + c, 0);
            for (int u = 0; u < TOKENS; u++)
                before[c] += token[u] == token[t] ? big_value(u * dim + c, 9) : 0;
            big_expect(&b, token[t] * dim + c, row[c], before[c], 1e-5);
        }
    }
    free(row);
    big_done(&b, "embedding_fwd, _bwd_add");
    big_close(&b);
}
END_TEST

/* Gradients that write every row of the table; of places there are as many as tokens. */
START_TEST(embedding_gradients)
{
    Big b = big_open();
    int64_t dim = row_length(&b), words = b.full ? (INT64_C(1) << 31) / dim - 1 : 67;
    enum { TOKENS = 64 };
    int64_t place[BIG_PLACES];
    int32_t token[TOKENS];
    int count = big_places(words, dim, 4, place);
    for (int t = 0; t < TOKENS; t++)
        token[t] = (int32_t)place[t * 7 % count];
    void *tokens = big_take(&b, sizeof token);
    big_write(&b, tokens, token, sizeof token);
    SdcArg dy = sdc_ptr(SDC_FP32, big_filled(&b, SDC_FP32, TOKENS * dim, 9));
    SdcArg table = sdc_ptr(SDC_FP32, big_filled(&b, SDC_FP32, words * dim, 0));
    const SdcArg args[] = {sdc_ptr(SDC_I32, tokens), dy, table, sdc_int(TOKENS),
                           sdc_int(dim)};
    big_launch(&b, "embedding", "embedding_bwd", "BLOCK_T=16 BLOCK_C=64",
               sdc_grid(words, (dim + 63) / 64, 1), args, 5);
    for (int p = 0; p < count; p++)
        for (int64_t c = 0; c < dim; c += 13) {
            double got, want = 0;
            for (int t = 0; t < TOKENS; t++)
                want += token[t] == place[p] ? big_value(t * dim + c, 9) : 0;
            big_read(&b, SDC_FP32, table.v.ptr, place[p] * dim + c, 1, &got);
            big_expect(&b, place[p] * dim + c, got, want, 1e-5);
        }
    big_done(&b, "embedding_bwd");

    SdcArg from = sdc_ptr(SDC_FP16, big_filled(&b, SDC_FP16, words * dim, 3));
    SdcArg to = sdc_ptr(SDC_FP32, big_filled(&b, SDC_FP32, words * dim, 0));
    const SdcArg of_places[] = {from, to, sdc_int(words), sdc_int(words), sdc_int(dim)};
    char bind[64];
    snprintf(bind, sizeof bind, "BLOCK=%d num_warps=16", (int)dim);
    big_launch(&b, "embedding", "embedding_place_bwd", bind, sdc_grid(words, 1, 1),
               of_places, 5);
    for (int p = 0; p < count; p++)
        for (int64_t c = 0; c < dim; c += 13) {
            double got;
            big_read(&b, SDC_FP32, to.v.ptr, place[p] * dim + c, 1, &got);
            big_expect(&b, place[p] * dim + c, got, big_value(place[p] * dim + c, 3), 0);
        }
    big_done(&b, "embedding_place_bwd");
    big_close(&b);
}
END_TEST

int
main(void)
{
    return RUN_TESTS("large", arrays, steps_of_adamw, rows_of_logits, layer_norm,
                     fused_dropout, weighted_sums, embedding, embedding_gradients);
}
