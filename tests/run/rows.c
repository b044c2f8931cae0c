/* The kernels that reduce rows against their references: odd numbers of
   columns, rows with gaps, transposed inputs, fewer programs than rows. */
#include <math.h>

#include "tests/run/support/harness.h"

static const SdcDtype floats[] = {SDC_FP32, SDC_FP16, SDC_BF16};
enum { NFLOATS = 3 };

static int64_t
power_above(int64_t n)
{
    int64_t p = 1;
    while (p < n)
        p *= 2;
    return p;
}

static SdcArg
stride_arg(const Buf *b, int d)
{
    return sdc_int(b->strides[d]);
}

START_TEST(softmax)
{
    static const int64_t shapes[][3] = {{1, 1, 1}, {5, 129, 5}, {7, 1000, 3}, {3, 64, 2}};
    Env env = env_open("softmax");
    for (int t = 0; t < NFLOATS; t++)
        for (int s = 0; s < 4; s++) {
            int64_t rows = shapes[s][0], cols = shapes[s][1];
            env.at_end = (t + s) % 2;
            Buf x = buf_random(&env, floats[t], 3, DIMS(rows, cols));
            double *want = env_doubles(&env, rows * cols);
            double *bound = env_doubles(&env, rows * cols);
            ref_softmax(rows, cols, buf_doubles(&env, &x), want, bound);
            for (int online = 0; online < 2; online++) {
                const char *kernel = online ? "softmax_online" : "softmax";
                int64_t block = online ? 32 : power_above(cols);
                Buf out = buf_poison(&env, floats[t], 1, DIMS(rows, cols));
                LAUNCH(&env, kernel, sdc_grid(shapes[s][2], 1, 1),
                       env_text(&env, "BLOCK=%lld", (long long)block), buf_arg(&x),
                       buf_arg(&out), stride_arg(&x, 0), stride_arg(&out, 0),
                       sdc_int(rows), sdc_int(cols));
                buf_check(&env, &out,
                          env_text(&env, "%s %s %lldx%lld", kernel,
                                   sdc_dtype_name(floats[t]), (long long)rows,
                                   (long long)cols),
                          want, bound);
            }
        }
    env_close(&env);
}
END_TEST

/* Large numbers do not overflow, and -inf weighs nothing. */
START_TEST(softmax_extremes)
{
    float x[4] = {1e30f, 1e30f, -1e30f, -INFINITY}, out[4];
    Env env = env_open("softmax");
    LEND(&env, x), LEND(&env, out);
    for (int online = 0; online < 2; online++) {
        if (!LAUNCH(&env, online ? "softmax_online" : "softmax", sdc_grid(1, 1, 1),
                    "BLOCK=4", sdc_ptr(SDC_FP32, x), sdc_ptr(SDC_FP32, out), sdc_int(4),
                    sdc_int(4), sdc_int(1), sdc_int(4)))
            continue;
        ck_assert_double_eq_tol((double)out[0], 0.5, 0x1p-22);
        ck_assert_double_eq_tol((double)out[1], 0.5, 0x1p-22);
        ck_assert_double_eq((double)out[2], 0.0);
        ck_assert_double_eq((double)out[3], 0.0);
    }
    env_close(&env);
}
END_TEST

/* The buffers of one layer norm, and what the reference says of them. */
typedef struct Norm {
    int64_t rows, cols, parts;
    SdcDtype t;
    Buf x, w, b, dy, y, mean, rstd, dx, dw, db, dw_part, db_part;
    RefNorm ref;
} Norm;

static void
norm_make(Env *env, Norm *n)
{
    int64_t rows = n->rows, cols = n->cols;
    n->x = buf_random(env, n->t, 3, DIMS(rows, cols));
    n->dy = buf_random(env, n->t, 1, DIMS(rows, cols));
    n->w = buf_random(env, n->t, 0, DIMS(cols));
    n->b = buf_random(env, n->t, 0, DIMS(cols));
    n->y = buf_poison(env, n->t, 2, DIMS(rows, cols));
    n->dx = buf_poison(env, n->t, 5, DIMS(rows, cols));
    n->mean = buf_poison(env, SDC_FP32, 0, DIMS(rows));
    n->rstd = buf_poison(env, SDC_FP32, 0, DIMS(rows));
    n->dw = buf_poison(env, n->t, 0, DIMS(cols));
    n->db = buf_poison(env, n->t, 0, DIMS(cols));
    n->dw_part = buf_poison(env, SDC_FP32, 0, DIMS(n->parts, cols));
    n->db_part = buf_poison(env, SDC_FP32, 0, DIMS(n->parts, cols));
    double *out = env_doubles(env, 4 * rows * cols + 4 * rows + 4 * cols);
    RefNorm *r = &n->ref;
    *r = (RefNorm){.rows = rows,
                   .cols = cols,
                   .x = buf_doubles(env, &n->x),
                   .w = buf_doubles(env, &n->w),
                   .b = buf_doubles(env, &n->b),
                   .dy = buf_doubles(env, &n->dy),
                   .eps = (double)1e-5f};
    r->y = out;
    r->y_bound = r->y + rows * cols;
    r->dx = r->y_bound + rows * cols;
    r->dx_bound = r->dx + rows * cols;
    r->mean = r->dx_bound + rows * cols;
    r->mean_bound = r->mean + rows;
    r->rstd = r->mean_bound + rows;
    r->rstd_bound = r->rstd + rows;
    r->dw = r->rstd_bound + rows;
    r->dw_bound = r->dw + cols;
    r->db = r->dw_bound + cols;
    r->db_bound = r->db + cols;
    ref_layer_norm(r);
}

static void
norm_run(Env *env, Norm *n)
{
    const char *bind = env_text(env, "BLOCK=%lld", (long long)power_above(n->cols));
    const RefNorm *r = &n->ref;
    LAUNCH(env, "layer_norm_fwd", sdc_grid(n->rows, 1, 1), bind, buf_arg(&n->x),
           buf_arg(&n->w), buf_arg(&n->b), buf_arg(&n->y), buf_arg(&n->mean),
           buf_arg(&n->rstd), stride_arg(&n->x, 0), stride_arg(&n->y, 0),
           sdc_int(n->cols), sdc_float(r->eps));
    buf_check(env, &n->mean, "mean", r->mean, r->mean_bound);
    buf_check(env, &n->rstd, "rstd", r->rstd, r->rstd_bound);
    buf_check(env, &n->y, "y", r->y, r->y_bound);
    LAUNCH(env, "layer_norm_bwd", sdc_grid(n->parts, 1, 1), bind, buf_arg(&n->dy),
           buf_arg(&n->x), buf_arg(&n->w), buf_arg(&n->mean), buf_arg(&n->rstd),
           buf_arg(&n->dx), buf_arg(&n->dw_part), buf_arg(&n->db_part),
           stride_arg(&n->dy, 0), stride_arg(&n->x, 0), stride_arg(&n->dx, 0),
           sdc_int(n->rows), sdc_int(n->cols));
    buf_check(env, &n->dx, "dx", r->dx, r->dx_bound);
    LAUNCH(env, "layer_norm_bwd_sum", sdc_grid(ceil_div(n->cols, 64), 1, 1),
           "BLOCK_P=4 BLOCK_C=64", buf_arg(&n->dw_part), buf_arg(&n->db_part),
           buf_arg(&n->dw), buf_arg(&n->db), sdc_int(n->parts), sdc_int(n->cols));
    buf_check(env, &n->dw, "dw", r->dw, r->dw_bound);
    buf_check(env, &n->db, "db", r->db, r->db_bound);
}

START_TEST(layer_norm)
{
    static const int64_t shapes[][3] = {{1, 2, 1}, {5, 129, 2}, {9, 1000, 4}};
    Env env = env_open("layernorm");
    for (int t = 0; t < NFLOATS; t++)
        for (int s = 0; s < 3; s++) {
            Norm n = {shapes[s][0], shapes[s][1], shapes[s][2], .t = floats[t]};
            env.at_end = (t + s) % 2;
            norm_make(&env, &n);
            norm_run(&env, &n);
        }
    env_close(&env);
}
END_TEST

typedef struct Weighted {
    Buf x, w, dy, y, dx, dw, part;
    RefWeighted ref;
} Weighted;

static void
weighted_make(Env *env, Weighted *s, SdcDtype t, int64_t rows, int64_t cols, bool turned)
{
    /* Turned, rows are the fast dimension in memory. */
    s->x = turned ? buf_swap(buf_random(env, t, 2, DIMS(cols, rows)), 0, 1)
                  : buf_random(env, t, 3, DIMS(rows, cols));
    s->w = buf_random(env, t, 0, DIMS(cols));
    s->dy = buf_random(env, t, 0, DIMS(rows));
    s->y = buf_poison(env, t, 0, DIMS(rows));
    s->dx = buf_poison(env, t, 1, DIMS(rows, cols));
    s->dw = buf_poison(env, t, 0, DIMS(cols));
    s->part = buf_poison(env, SDC_FP32, 0, DIMS(ceil_div(rows, 16), cols));
    double *out = env_doubles(env, 2 * (rows * cols + rows + cols));
    RefWeighted *r = &s->ref;
    *r = (RefWeighted){rows, cols, .x = buf_doubles(env, &s->x),
                       .w = buf_doubles(env, &s->w), .dy = buf_doubles(env, &s->dy)};
    r->y = out;
    r->y_bound = r->y + rows;
    r->dw = r->y_bound + rows;
    r->dw_bound = r->dw + cols;
    r->dx = r->dw_bound + cols;
    r->dx_bound = r->dx + rows * cols;
    ref_weighted_sum(r);
}

static void
weighted_run(Env *env, Weighted *s)
{
    const RefWeighted *r = &s->ref;
    int64_t parts = ceil_div(r->rows, 16);
    LAUNCH(env, "weighted_sum_fwd", sdc_grid(parts, 1, 1), "BLOCK_R=16 BLOCK_C=32",
           buf_arg(&s->x), buf_arg(&s->w), buf_arg(&s->y), stride_arg(&s->x, 0),
           stride_arg(&s->x, 1), stride_arg(&s->w, 0), stride_arg(&s->y, 0),
           sdc_int(r->rows), sdc_int(r->cols));
    buf_check(env, &s->y, "y", r->y, r->y_bound);
    LAUNCH(env, "weighted_sum_bwd", sdc_grid(parts, 1, 1), "BLOCK_R=16 BLOCK_C=32",
           buf_arg(&s->dy), buf_arg(&s->x), buf_arg(&s->w), buf_arg(&s->dx),
           buf_arg(&s->part), stride_arg(&s->dy, 0), stride_arg(&s->x, 0),
           stride_arg(&s->x, 1), stride_arg(&s->w, 0), stride_arg(&s->dx, 0),
           stride_arg(&s->dx, 1), sdc_int(r->rows), sdc_int(r->cols));
    buf_check(env, &s->dx, "dx", r->dx, r->dx_bound);
    LAUNCH(env, "weighted_sum_bwd_sum", sdc_grid(ceil_div(r->cols, 16), 1, 1),
           "BLOCK_P=2 BLOCK_C=16", buf_arg(&s->part), buf_arg(&s->dw), sdc_int(parts),
           sdc_int(r->cols));
    buf_check(env, &s->dw, "dw", r->dw, r->dw_bound);
}

START_TEST(weighted_sum)
{
    static const int64_t shapes[][2] = {{1, 1}, {37, 50}, {64, 33}};
    Env env = env_open("weighted_sum");
    for (int t = 0; t < NFLOATS; t++)
        for (int i = 0; i < 3; i++)
            for (int turned = 0; turned < 2; turned++) {
                Weighted s;
                env.at_end = (t + i) % 2;
                weighted_make(&env, &s, floats[t], shapes[i][0], shapes[i][1], turned);
                weighted_run(&env, &s);
            }
    env_close(&env);
}
END_TEST

int
main(void)
{
    return RUN_TESTS("rows", softmax, softmax_extremes, layer_norm, weighted_sum);
}
