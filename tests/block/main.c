/* The block on the CPU, beside the same in double precision made of tests/ref. Without
   arguments small shapes in fp32 and bf16, whose results are compared:

       block                                          small shapes, exit status 1: wrong
       block BATCH LENGTH WIDTH HEADS HIDDEN          milliseconds of a pass, in bf16 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "tests/block/block.h"
#include "tests/ref/ref.h"

enum { NWEIGHTS = 6, ARRAYS = 256 };

typedef struct Run {
    SdcContext *cx;
    Block b;
    RefType type;
    int64_t n; /* tokens */
    void *x, *y, *dy, *dx;
    void *weight[NWEIGHTS], *grad[NWEIGHTS];
    int64_t count[NWEIGHTS];
    void *arrays[ARRAYS];
    int narrays;
    uint64_t random;
} Run;

static void *
take(Run *r, size_t bytes)
{
    void *p = r->narrays < ARRAYS ? aligned_alloc(256, (bytes / 256 + 1) * 256) : NULL;
    if (!p) {
        fprintf(stderr, "block: no memory for %zu bytes\n", bytes);
        exit(1);
    }
    memset(p, 0, bytes);
    return r->arrays[r->narrays++] = p;
}

static double *
doubles(Run *r, int64_t n)
{
    return take(r, (size_t)n * sizeof(double));
}

/* n numbers around `mean`, of about that deviation. */
static void *
filled(Run *r, int64_t n, double mean, double deviation)
{
    char *p = take(r, (size_t)n * (size_t)ref_size(r->type));
    for (int64_t i = 0; i < n; i++) {
        r->random = r->random * 6364136223846793005u + 1442695040888963407u;
        double u = (double)(r->random >> 11) * 0x1p-53;
        ref_store(r->type, p, i, mean + deviation * 3.46 * (u - 0.5));
    }
    return p;
}

static double *
loaded(Run *r, const void *p, int64_t n)
{
    double *out = doubles(r, n);
    for (int64_t i = 0; i < n; i++)
        out[i] = ref_load(r->type, p, i);
    return out;
}

static void
run_make(Run *r, const BlockShape *s)
{
    int64_t n = s->batch * s->length, w = s->width, h = s->hidden;
    int64_t half = w / s->heads / 2;
    const int64_t count[NWEIGHTS] = {w, 3 * w * w, w * w, w, 2 * w * h, w * h};
    const double deviation[NWEIGHTS] = {0.1, 1 / sqrt((double)w), 1 / sqrt((double)w),
                                        0.1, 1 / sqrt((double)w), 1 / sqrt((double)h)};
    r->n = n;
    r->b.shape = *s;
    r->type = s->type == SDC_BF16 ? REF_BF16 : REF_FP32;
    for (int i = 0; i < NWEIGHTS; i++) {
        r->count[i] = count[i];
        r->weight[i] = filled(r, count[i], count[i] == w, deviation[i]);
        r->grad[i] = take(r, (size_t)count[i] * (size_t)ref_size(r->type));
    }
    memcpy(&r->b.w, r->weight, sizeof r->b.w);
    r->x = filled(r, n * w, 0, 1);
    r->dy = filled(r, n * w, 0, 1);
    r->y = take(r, (size_t)(n * w) * (size_t)ref_size(r->type));
    r->dx = take(r, (size_t)(n * w) * (size_t)ref_size(r->type));
    r->b.cos = take(r, (size_t)(s->length * half) * sizeof(float));
    r->b.sin = take(r, (size_t)(s->length * half) * sizeof(float));
    for (int64_t i = 0; i < s->length * half; i++) {
        double angle =
            (double)(i / half) * pow(10000, -(double)(i % half) / (double)half);
        r->b.cos[i] = (float)cos(angle);
        r->b.sin[i] = (float)sin(angle);
    }
    r->b.memory = take(r, block_memory(r->b.k, s));
}

static bool
run_pass(Run *r)
{
    BlockWeights grad;
    memcpy(&grad, r->grad, sizeof grad);
    SdcStatus s = block_forward(&r->b, r->x, r->y, NULL);
    if (s == SDC_OK)
        s = block_backward(&r->b, r->x, r->dy, r->dx, &grad, NULL);
    if (s != SDC_OK)
        fprintf(stderr, "block: %s\n", sdc_error(r->cx));
    return s == SDC_OK;
}

/* ---- the same in double precision */

/* c [m, n] += a b; ta, tb: the operand lies transposed. */
static void
times(int64_t m, int64_t n, int64_t k, const double *a, bool ta, const double *b, bool tb,
      double *c)
{
    for (int64_t i = 0; i < m; i++)
        for (int64_t l = 0; l < k; l++) {
            double x = ta ? a[l * m + i] : a[i * k + l];
            for (int64_t j = 0; j < n; j++)
                c[i * n + j] += x * (tb ? b[j * k + l] : b[l * n + j]);
        }
}

/* Columns of [n, cols] as [batch, heads, length, dim], or back. */
static void
split_heads(const BlockShape *s, double *matrix, int64_t cols, int64_t first,
            double *heads, bool back)
{
    int64_t dim = s->width / s->heads;
    for (int64_t i = 0; i < s->batch * s->heads * s->length * dim; i++) {
        int64_t j = i % dim, m = i / dim % s->length, h = i / dim / s->length % s->heads;
        int64_t b = i / dim / s->length / s->heads;
        double *at = &matrix[(b * s->length + m) * cols + first + h * dim + j];
        if (back)
            *at = heads[i];
        else
            heads[i] = *at;
    }
}

static double *
rotated(Run *r, const double *x, double sign)
{
    const BlockShape *s = &r->b.shape;
    int64_t dim = s->width / s->heads, half = dim / 2, rows = r->n * s->heads;
    double *c = doubles(r, s->length * half), *d = doubles(r, s->length * half);
    int64_t *place = take(r, (size_t)rows * sizeof *place);
    for (int64_t i = 0; i < s->length * half; i++) {
        c[i] = (double)r->b.cos[i];
        d[i] = (double)r->b.sin[i];
    }
    for (int64_t i = 0; i < rows; i++)
        place[i] = i % s->length;
    RefRotary t = {rows,
                   dim,
                   half,
                   x,
                   c,
                   d,
                   place,
                   false,
                   sign,
                   doubles(r, rows * dim),
                   doubles(r, rows * dim)};
    ref_rotary(&t);
    return t.out;
}

static RefRms
normed(Run *r, const double *x, const double *w, const double *dy, const double *add)
{
    int64_t n = r->n, cols = r->b.shape.width;
    double *p = doubles(r, 4 * n * cols + 2 * n + 2 * cols);
    RefRms q = {
        .rows = n, .cols = cols, .x = x, .w = w, .dy = dy, .add = add, .eps = 1e-5};
    q.y = p;
    q.y_bound = p + n * cols;
    q.dx = p + 2 * n * cols;
    q.dx_bound = p + 3 * n * cols;
    q.rstd = p + 4 * n * cols;
    q.rstd_bound = q.rstd + n;
    q.dw = q.rstd_bound + n;
    q.dw_bound = q.dw + cols;
    ref_rms_norm(&q);
    return q;
}

/* Attention of heads q, k, v with gradients for d_o: out [4] is o, dq, dk, dv. */
static void
attended(Run *r, double *const qkv[3], const double *d_o, double *out[4])
{
    const BlockShape *s = &r->b.shape;
    int64_t dim = s->width / s->heads, size = r->n * s->width, rows = r->n * s->heads;
    double *p = doubles(r, 8 * size + 4 * rows);
    RefAttention a = {.batch = s->batch,
                      .heads = s->heads,
                      .group = 1,
                      .M = s->length,
                      .N = s->length,
                      .dim = dim,
                      .q = qkv[0],
                      .k = qkv[1],
                      .v = qkv[2],
                      .scale = 1 / sqrt((double)dim),
                      .causal = true,
                      .o = p,
                      .o_bound = p + size,
                      .lse = p + 8 * size,
                      .lse_bound = p + 8 * size + rows};
    RefAttentionGrad g = {.a = &a,
                          .o = a.o,
                          .dout = d_o,
                          .delta = a.lse + 2 * rows,
                          .delta_bound = a.lse + 3 * rows};
    ref_attention(&a);
    g.dq = p + 2 * size;
    g.dq_bound = p + 3 * size;
    g.dk = p + 4 * size;
    g.dk_bound = p + 5 * size;
    g.dv = p + 6 * size;
    g.dv_bound = p + 7 * size;
    ref_attention_grad(&g);
    out[0] = a.o;
    out[1] = g.dq;
    out[2] = g.dk;
    out[3] = g.dv;
}

/* want: y, dx, then the gradients of the weights. */
static void
reference(Run *r, double *want[2 + NWEIGHTS])
{
    const BlockShape *s = &r->b.shape;
    int64_t n = r->n, w = s->width, h = s->hidden, size = n * w;
    double *x = loaded(r, r->x, size), *dy = loaded(r, r->dy, size), *p[NWEIGHTS];
    double *none = doubles(r, size), *heads[3], *d_heads[4], *d_o = doubles(r, size);
    for (int i = 0; i < NWEIGHTS; i++) {
        p[i] = loaded(r, r->weight[i], r->count[i]);
        want[2 + i] = doubles(r, r->count[i]);
    }
    RefRms n1 = normed(r, x, p[0], none, NULL);
    double *qkv = doubles(r, 3 * size), *o = doubles(r, size), *x1 = doubles(r, size);
    times(n, 3 * w, w, n1.y, false, p[1], false, qkv);
    for (int i = 0; i < 3; i++) {
        heads[i] = doubles(r, size);
        split_heads(s, qkv, 3 * w, i * w, heads[i], false);
        if (i < 2)
            heads[i] = rotated(r, heads[i], 1);
    }
    attended(r, heads, d_o, d_heads);
    split_heads(s, o, w, 0, d_heads[0], true);
    memcpy(x1, x, (size_t)size * sizeof *x1);
    times(n, w, w, o, false, p[2], false, x1);
    RefRms n2 = normed(r, x1, p[3], none, NULL);
    double *both = doubles(r, 2 * n * h), *half = doubles(r, 9 * n * h);
    times(n, 2 * h, w, n2.y, false, p[4], false, both);
    for (int64_t i = 0; i < n * h; i++) {
        half[i] = both[i / h * 2 * h + i % h];
        half[n * h + i] = both[(i / h * 2 + 1) * h + i % h];
    }
    double *dm = half + 2 * n * h, *dboth = doubles(r, 2 * n * h);
    times(n, h, w, dy, false, p[5], true, dm);
    RefSwiglu g = {n * h,
                   half,
                   half + n * h,
                   dm,
                   half + 3 * n * h,
                   half + 4 * n * h,
                   half + 5 * n * h,
                   half + 6 * n * h,
                   half + 7 * n * h,
                   half + 8 * n * h};
    ref_swiglu(&g);
    want[0] = doubles(r, size);
    memcpy(want[0], x1, (size_t)size * sizeof *x1);
    times(n, w, h, g.out, false, p[5], false, want[0]);
    times(h, w, n, g.out, true, dy, false, want[7]);
    for (int64_t i = 0; i < n * h; i++) {
        dboth[i / h * 2 * h + i % h] = g.dgate[i];
        dboth[(i / h * 2 + 1) * h + i % h] = g.dup[i];
    }
    double *dh = doubles(r, size), *dqkv = doubles(r, 3 * size), *dn = doubles(r, size);
    times(w, 2 * h, n, n2.y, true, dboth, false, want[6]);
    times(n, w, 2 * h, dboth, false, p[4], true, dh);
    n2 = normed(r, x1, p[3], dh, dy);
    memcpy(want[5], n2.dw, (size_t)w * sizeof(double));
    times(w, w, n, o, true, n2.dx, false, want[4]);
    times(n, w, w, n2.dx, false, p[2], true, dn);
    split_heads(s, dn, w, 0, d_o, false);
    attended(r, heads, d_o, d_heads);
    for (int i = 0; i < 3; i++)
        split_heads(s, dqkv, 3 * w, i * w,
                    i < 2 ? rotated(r, d_heads[1 + i], -1) : d_heads[3], true);
    double *dh1 = doubles(r, size);
    times(w, 3 * w, n, n1.y, true, dqkv, false, want[3]);
    times(n, w, 3 * w, dqkv, false, p[1], true, dh1);
    n1 = normed(r, x, p[0], dh1, n2.dx);
    want[1] = n1.dx;
    memcpy(want[2], n1.dw, (size_t)w * sizeof(double));
}

/* The distance of the vectors over the length of what it should be. */
static bool
near(Run *r, const char *what, const void *got, const double *want, int64_t n)
{
    double off = 0, all = 0, most = r->type == REF_BF16 ? 0x1p-6 : 0x1p-18;
    for (int64_t i = 0; i < n; i++) {
        double d = ref_load(r->type, got, i) - want[i];
        off += d * d;
        all += want[i] * want[i];
    }
    double error = sqrt(off / all);
    bool right = error <= most;
    if (!right)
        printf("block: %s is %.3g of its length away, at most %.3g\n", what, error, most);
    return right;
}

static bool
check(Run *r)
{
    static const char *const names[NWEIGHTS] = {"dnorm1", "dqkv",     "dout",
                                                "dnorm2", "dgate_up", "ddown"};
    double *want[2 + NWEIGHTS];
    int64_t size = r->n * r->b.shape.width;
    if (!run_pass(r))
        return false;
    reference(r, want);
    bool right = near(r, "y", r->y, want[0], size);
    right &= near(r, "dx", r->dx, want[1], size);
    for (int i = 0; i < NWEIGHTS; i++)
        right &= near(r, names[i], r->grad[i], want[2 + i], r->count[i]);
    return right;
}

static double
seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static bool
measure(Run *r)
{
    double best = INFINITY;
    for (int i = 0; i < 4; i++) {
        double start = seconds();
        if (!run_pass(r))
            return false;
        best = fmin(best, seconds() - start);
    }
    printf("forward and backward: %.3f ms\n", 1e3 * best);
    return true;
}

int
main(int argc, char **argv)
{
    static const BlockShape small[] = {{2, 37, 64, 2, 88, SDC_FP32},
                                       {1, 64, 96, 3, 100, SDC_BF16}};
    BlockShape given = {.type = SDC_BF16};
    if (argc != 1 && argc != 6) {
        fprintf(stderr, "usage: block [BATCH LENGTH WIDTH HEADS HIDDEN]\n");
        return 2;
    }
    for (int i = 1; i < argc; i++)
        (&given.batch)[i - 1] = strtoll(argv[i], NULL, 10);
    bool right = true;
    for (int i = 0; i < (argc == 1 ? 2 : 1); i++) {
        Run r = {.random = 1};
        SdcContextOptions options = {.target = "cpu"};
        if (sdc_context_create(&options, &r.cx) != SDC_OK ||
            sdc_kernels_create(r.cx, &r.b.k) != SDC_OK) {
            fprintf(stderr, "block: no context\n");
            return 1;
        }
        run_make(&r, argc == 1 ? &small[i] : &given);
        right &= argc == 1 ? check(&r) : measure(&r);
        sdc_kernels_destroy(r.b.k);
        sdc_context_destroy(r.cx);
        for (int j = 0; j < r.narrays; j++)
            free(r.arrays[j]);
    }
    puts(right ? "block: right" : "block: WRONG");
    return right ? 0 : 1;
}
