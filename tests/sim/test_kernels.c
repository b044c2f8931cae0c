/* Kernels of kernels_dsl on a simulated block, against plain loops: pipelined dots,
   attention and its gradients with a block or two of work, at several numbers of warps
   and stages; no barrier more than is needed. */
#include "tests/sim/layouts.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/sim/number.h"

enum { LD = 128, ROOM = 1 << 21 };

static _Alignas(256) unsigned char memory[ROOM];
static Random rng = {.state = 7};

static const char *
sixteen(int n)
{
    return n % 16 ? "i32" : "i32:16";
}

static const char *
target(void)
{
    return random_chance(&rng, 50) ? "sm_80" : "sm_90";
}

static uint64_t
at(size_t offset)
{
    return (uint64_t)(uintptr_t)(memory + offset);
}

static double
half(size_t offset, int i)
{
    uint16_t h;
    memcpy(&h, memory + offset + 2 * (size_t)i, 2);
    return (double)f16_of(h);
}

static void
put_half(size_t offset, int i, double x)
{
    uint16_t h = (uint16_t)f16_bits((float)x);
    memcpy(memory + offset + 2 * (size_t)i, &h, 2);
}

static float *
floats(size_t offset)
{
    return (float *)(void *)(memory + offset);
}

static void
met(const Kernel *k, const char *what, int most)
{
    if (most && k->barriers > most)
        ck_abort_msg("%s: %d barriers, at most %d are needed", what, k->barriers, most);
}

/* ---- dots; transposed: which operand lies column by column */

typedef struct Product {
    int m, n, k, bm, bn, bk, warps, stages;
    char transposed;
    bool fp32;
    int barriers;
} Product;

START_TEST(matmuls_are_right)
{
    static const Product cases[] = {
        /* a barrier a step, and two around the tile's way out */
        {64, 64, 128, 64, 64, 32, 4, 3, 0, false, 6},
        {64, 64, 96, 64, 64, 32, 4, 2, 0, false, 5},
        {64, 64, 96, 64, 32, 32, 2, 4, 'b', false, 5},
        {64, 32, 128, 64, 32, 32, 1, 7, 0, false, 0},
        {50, 60, 70, 64, 64, 32, 4, 2, 0, false, 0},
        {64, 64, 96, 64, 64, 32, 8, 1, 'a', false, 8},
        {32, 64, 64, 32, 64, 32, 4, 3, 0, true, 0},
    };
    const Product *c = &cases[_i];
    char spec[1024], what[64];
    const char *e = c->fp32 ? "fp32" : "fp16";
    bool ta = c->transposed == 'a', tb = c->transposed == 'b';
    snprintf(spec, sizeof spec,
             "a_ptr=*%s:16,b_ptr=*%s:16,c_ptr=*fp32:16,bias_ptr=None,M=%s,N=%s,K=%s,"
             "a_stride_m=%s,a_stride_k=%s,b_stride_k=%s,b_stride_n=%s,c_stride_m=i32:16,"
             "c_stride_n=1,BLOCK_M=%d,BLOCK_N=%d,BLOCK_K=%d,GROUP_M=8,HAS_BIAS=False,"
             "ACT=\"none\",PRECISION=\"ieee\"",
             e, e, sixteen(c->m), sixteen(c->n), sixteen(c->k), ta ? "1" : "i32:16",
             ta ? "i32:16" : "1", tb ? "1" : "i32:16", tb ? "i32:16" : "1", c->bm, c->bn,
             c->bk);
    snprintf(what, sizeof what, "matmul %d", _i);
    Kernel k = kernel_file("matmul", "matmul", spec, c->warps, c->stages, target());
    size_t size = LD * LD * (c->fp32 ? 4 : 2), to = 2 * size;
    static double x[2][LD][LD];
    memset(memory, 0, sizeof memory);
    for (int o = 0; o < 2; o++)
        for (int i = 0; i < LD; i++)
            for (int j = 0; j < LD; j++) {
                x[o][i][j] = random_between(&rng, -4, 4) / 4.0;
                int place = (o ? tb : ta) ? j * LD + i : i * LD + j;
                if (c->fp32)
                    floats((size_t)o * size)[place] = (float)x[o][i][j];
                else
                    put_half((size_t)o * size, place, x[o][i][j]);
            }
    uint64_t args[] = {
        at(0), at(size), at(to), (uint64_t)c->m, (uint64_t)c->n, (uint64_t)c->k,
        LD,    LD,       LD};
    kernel_run(&k, args, 9, memory, sizeof memory, (uint64_t)_i);
    for (int i = 0; i < c->m && i < c->bm; i++)
        for (int j = 0; j < c->n && j < c->bn; j++) {
            double want = 0, got = (double)floats(to)[i * LD + j];
            for (int q = 0; q < c->k; q++)
                want += x[0][i][q] * x[1][q][j];
            if (fabs(got - want) >= 1e-3)
                ck_abort_msg("%s: (%d, %d) is %g, not %g", what, i, j, got, want);
        }
    met(&k, what, c->barriers);
    kernel_free(&k);
}
END_TEST

/* ---- attention */

typedef struct Attention {
    int m, n, dim, bm, bn, warps, stages;
    bool causal;
} Attention;

typedef double Rows[LD + 64][64];

static void
normal_rows(size_t offset, int rows, int dim, Rows x)
{
    for (int i = 0; i < rows; i++)
        for (int d = 0; d < dim; d++) {
            put_half(offset, i * dim + d, random_normal(&rng));
            x[i][d] = half(offset, i * dim + d);
        }
}

static double
dot(const double *x, const double *y, int n)
{
    double sum = 0;
    for (int d = 0; d < n; d++)
        sum += x[d] * y[d];
    return sum;
}

/* The weights of row i over all keys; the log of the sum of exponentials. */
static double
weights(const Attention *c, const double *q, Rows k, int i, double *w)
{
    int seen = c->causal && i + c->n - c->m + 1 < c->n ? i + c->n - c->m + 1 : c->n;
    double most = -INFINITY, total = 0;
    for (int j = 0; j < seen; j++) {
        w[j] = dot(q, k[j], c->dim) / sqrt(c->dim);
        most = fmax(most, w[j]);
    }
    for (int j = 0; j < seen; j++)
        total += exp(w[j] - most);
    for (int j = 0; j < c->n; j++)
        w[j] = j < seen ? exp(w[j] - most) / total : 0;
    return most + log(total);
}

static void
add_strides(char *to, size_t size, const char *names, const char *rows,
            const char *prefix)
{
    size_t n = strlen(to);
    for (int k = 0; names[k]; k++) {
        const char *p = prefix[k] == '-' ? "" : "d";
        n +=
            (size_t)snprintf(to + n, size - n,
                             ",%s%c_stride_b=i32:16,%s%c_stride_h=i32:16,"
                             "%s%c_stride_%c=i32:16,%s%c_stride_d=1",
                             p, names[k], p, names[k], p, names[k], rows[k], p, names[k]);
    }
}

static Rows xq, xk, xv, xo;

START_TEST(attention_is_right)
{
    static const Attention cases[] = {
        {64, 64, 32, 64, 32, 4, 3, false},
        {64, 128, 64, 64, 32, 4, 2, true},
        {50, 90, 32, 64, 32, 4, 3, false},
        {32, 64, 64, 32, 64, 2, 1, false},
        {64, 96, 32, 16, 32, 4, 4, false},
    };
    const Attention *c = &cases[_i];
    char spec[2048];
    snprintf(
        spec, sizeof spec,
        "q_ptr=*fp16:16,k_ptr=*fp16:16,v_ptr=*fp16:16,o_ptr=*fp16:16,lse_ptr=*fp32:16,"
        "scale=fp32");
    add_strides(spec, sizeof spec, "qkvo", "mnnm", "----");
    size_t n = strlen(spec);
    snprintf(spec + n, sizeof spec - n,
             ",H=i32,M=%s,N=%s,cu_q_ptr=None,cu_k_ptr=None,p=fp32,seed=i32,HEAD_DIM=%d,"
             "BLOCK_M=%d,BLOCK_N=%d,CAUSAL=%s,GROUP=1",
             sixteen(c->m), sixteen(c->n), c->dim, c->bm, c->bn,
             c->causal ? "True" : "False");
    Kernel k = kernel_file("flash_attention", "flash_attention_fwd", spec, c->warps,
                           c->stages, target());
    int rows = c->m > c->n ? c->m : c->n;
    size_t size = (size_t)rows * (size_t)c->dim * 2;
    memset(memory, 0, sizeof memory);
    normal_rows(0, rows, c->dim, xq);
    normal_rows(size, rows, c->dim, xk);
    normal_rows(2 * size, rows, c->dim, xv);
    uint64_t args[32] = {at(0),        at(size),     at(2 * size),
                         at(3 * size), at(4 * size), f32_raw((float)(1 / sqrt(c->dim)))};
    int na = 6;
    for (int t = 0; t < 4; t++, na += 3) {
        args[na] = args[na + 1] = (uint64_t)(rows * c->dim);
        args[na + 2] = (uint64_t)c->dim;
    }
    args[na++] = 1, args[na++] = (uint64_t)c->m, args[na++] = (uint64_t)c->n, na += 2;
    kernel_run(&k, args, na, memory, sizeof memory, (uint64_t)_i);
    double w[LD + 64];
    for (int i = 0; i < c->m && i < c->bm; i++) {
        weights(c, xq[i], xk, i, w);
        for (int d = 0; d < c->dim; d++) {
            double want = 0, got = half(3 * size, i * c->dim + d);
            for (int j = 0; j < c->n; j++)
                want += w[j] * xv[j][d];
            if (fabs(got - want) >= 4e-3)
                ck_abort_msg("attention %d: (%d, %d) is %g, not %g", _i, i, d, got, want);
        }
    }
    kernel_free(&k);
}
END_TEST

/* ---- gradients: the first program's dk and dv of its keys, and what it adds to dq */

/* Of an element of dq_sum, which lies in tiles of 16 x 8. */
static int
place_of_sum(int row, int col, int dim)
{
    int tile = row / 16 * (dim / 8) + col / 8;
    return tile * 128 + row % 8 * 16 + col % 8 / 2 * 4 + row % 16 / 8 * 2 + col % 2;
}

static void
gradient_spec(const Attention *c, char *spec, size_t size)
{
    static const char *const tensors[] = {"q", "k", "v", "do"};
    size_t n = 0;
    for (int t = 0; t < 4; t++)
        n += (size_t)snprintf(spec + n, size - n, "%s_ptr=*fp16:16,", tensors[t]);
    snprintf(spec + n, size - n,
             "dk_ptr=*fp16:16,dv_ptr=*fp16:16,lse2_ptr=*fp32:16,delta_ptr=*fp32:16,"
             "dq_sum_ptr=*fp32:16,scale=fp32");
    add_strides(spec, size, "qkvokv", "mnnmnn", "---ddd");
    n = strlen(spec);
    snprintf(spec + n, size - n,
             ",H=i32,M=%s,N=%s,cu_q_ptr=None,cu_k_ptr=None,p=fp32,seed=i32,HEAD_DIM=%d,"
             "BLOCK_M=%d,BLOCK_N=%d,CAUSAL=%s,GROUP=1",
             sixteen(c->m), sixteen(c->n), c->dim, c->bm, c->bn,
             c->causal ? "True" : "False");
}

static void
close_to(const char *what, int i, int d, double got, double want, double by)
{
    if (!(fabs(got - want) < by))
        ck_abort_msg("%s (%d, %d) is %g, not %g", what, i, d, got, want);
}

/* w, ds: each row's weights and their gradients. */
static void
check_gradients(const Attention *c, double (*w)[LD + 64], double (*ds)[LD + 64],
                size_t dk, size_t dv, size_t dq)
{
    int keys = c->n < c->bn ? c->n : c->bn;
    for (int j = 0; j < keys; j++)
        for (int d = 0; d < c->dim; d++) {
            double want_k = 0, want_v = 0;
            for (int i = 0; i < c->m; i++) {
                want_k += ds[i][j] * xq[i][d] / sqrt(c->dim);
                want_v += w[i][j] * xo[i][d];
            }
            close_to("dk", j, d, half(dk, j * c->dim + d), want_k, 1e-2);
            close_to("dv", j, d, half(dv, j * c->dim + d), want_v, 1e-2);
        }
    for (int i = 0; i < c->m; i++)
        for (int d = 0; d < c->dim; d++) {
            double want = 0;
            for (int j = 0; j < keys; j++)
                want += ds[i][j] * xk[j][d];
            close_to("dq", i, d, (double)floats(dq)[place_of_sum(i, d, c->dim)], want,
                     2e-2);
        }
}

START_TEST(attention_backward_is_right)
{
    static const Attention cases[] = {
        {64, 64, 32, 32, 64, 4, 2, false},
        {64, 96, 64, 32, 64, 4, 3, true},
        {50, 70, 32, 32, 32, 2, 2, false},
        {150, 64, 32, 32, 64, 4, 3, false},
        {96, 96, 32, 32, 32, 4, 2, true},
        /* two loops with layouts of their own */
        {128, 128, 32, 128, 128, 8, 2, true},
    };
    const Attention *c = &cases[_i];
    static double w[LD + 64][LD + 64], ds[LD + 64][LD + 64];
    char spec[4096];
    gradient_spec(c, spec, sizeof spec);
    Kernel k = kernel_file("flash_attention_bwd", "flash_attention_bwd", spec, c->warps,
                           c->stages, target());
    int rows = ((c->m > c->n ? c->m : c->n) + 63) / 64 * 64;
    size_t size = (size_t)rows * (size_t)c->dim * 2, lse = 6 * size,
           delta = lse + 4 * (size_t)rows, dq = delta + 4 * (size_t)rows;
    memset(memory, 0, sizeof memory);
    normal_rows(0, c->m, c->dim, xq);
    normal_rows(size, c->n, c->dim, xk);
    normal_rows(2 * size, c->n, c->dim, xv);
    normal_rows(3 * size, c->m, c->dim, xo);
    for (int i = 0; i < c->m; i++) {
        double sum = 0, dw[LD + 64];
        floats(lse)[i] = (float)(weights(c, xq[i], xk, i, w[i]) / log(2));
        for (int j = 0; j < c->n; j++) {
            dw[j] = dot(xo[i], xv[j], c->dim);
            sum += w[i][j] * dw[j];
        }
        floats(delta)[i] = (float)-sum;
        for (int j = 0; j < c->n; j++)
            ds[i][j] = w[i][j] * (dw[j] - sum);
    }
    uint64_t args[40] = {at(0),        at(size),
                         at(2 * size), at(3 * size),
                         at(lse),      at(delta),
                         at(4 * size), at(5 * size),
                         at(dq),       f32_raw((float)(1 / sqrt(c->dim)))};
    int na = 10;
    for (int t = 0; t < 6; t++, na += 3) {
        args[na] = args[na + 1] = (uint64_t)(rows * c->dim);
        args[na + 2] = (uint64_t)c->dim;
    }
    args[na++] = 1, args[na++] = (uint64_t)c->m, args[na++] = (uint64_t)c->n, na += 2;
    kernel_run(&k, args, na, memory, sizeof memory, (uint64_t)_i);
    check_gradients(c, w, ds, 4 * size, 5 * size, dq);
    kernel_free(&k);
}
END_TEST

/* ---- rows */

START_TEST(softmax_needs_no_further_barrier)
{
    /* each of the two reductions has a barrier of its own; none is added */
    static const int cases[][3] = {{1000, 1024, 4}, {2000, 2048, 8}};
    int cols = cases[_i][0], width = cases[_i][1];
    char spec[128];
    snprintf(spec, sizeof spec, "*fp32:16,*fp32:16,i32,i32,i32,i32,%d", width);
    Kernel k = kernel_file("softmax", "softmax", spec, cases[_i][2], 1, target());
    double most = -INFINITY, total = 0;
    for (int i = 0; i < width; i++)
        floats(0)[i] = (float)random_normal(&rng);
    uint64_t w = (uint64_t)width, args[] = {at(0), at(4 * w), w, w, 1, (uint64_t)cols};
    kernel_run(&k, args, 6, memory, sizeof memory, (uint64_t)_i);
    for (int i = 0; i < cols; i++)
        most = fmax(most, (double)floats(0)[i]);
    for (int i = 0; i < cols; i++)
        total += exp((double)floats(0)[i] - most);
    for (int i = 0; i < cols; i++)
        close_to("softmax", 0, i, (double)floats(4 * w)[i],
                 exp((double)floats(0)[i] - most) / total, 1e-6);
    met(&k, "softmax", 2);
    kernel_free(&k);
}
END_TEST

/* erf and tanh of numbers of all sizes, NaN and infinities among them: within so many
   ulp, the simulator's 2^x being exact. */
START_TEST(odd_function)
{
    enum { WIDTH = 1024 };
    static const float edges[] = {0.0f,   -0.0f, INFINITY, -INFINITY, NAN,
                                  1e-40f, 3.9f,  4.1f,     -1.0f,     0.99999994f};
    bool erf_ = _i == 0;
    double ulps = erf_ ? 1.2 : 2;
    Text s = {0};
    text_add(
        &s,
        "kernel @odd(%%x: ptr<f32> {div=16}, %%y: ptr<f32> {div=16}) {warps=4, stages=1} "
        "{\n  %%i = arange {start=0} : tile<%dxi32>\n"
        "  %%p = splat %%x : tile<%dxptr<f32>>\n"
        "  %%a = addptr %%p, %%i : tile<%dxptr<f32>>\n"
        "  %%v = load %%a : tile<%dxf32>\n  %%e = %s : tile<%dxf32>\n"
        "  %%q = splat %%y : tile<%dxptr<f32>>\n"
        "  %%b = addptr %%q, %%i : tile<%dxptr<f32>>\n  store %%b, %%e\n  return\n}\n",
        WIDTH, WIDTH, WIDTH, WIDTH, erf_ ? "erf %v" : "libm %v {fn=\"tanh\"}", WIDTH,
        WIDTH, WIDTH);
    Kernel k = kernel_ir(s.at, target(), NULL);
    for (int i = 0; i < WIDTH; i++)
        floats(0)[i] =
            i < 10 ? edges[i]
                   : (float)((random_chance(&rng, 50) ? -1 : 1) *
                             exp2(random_below(&rng, 1 << 20) * 16.2 / (1 << 20) - 14));
    uint64_t args[] = {at(0), at(4 * WIDTH)};
    kernel_run(&k, args, 2, memory, sizeof memory, 1);
    for (int i = 0; i < WIDTH; i++) {
        double x = (double)floats(0)[i], got = (double)floats(4 * WIDTH)[i];
        double want = erf_ ? erf(x) : tanh(x);
        int e;
        frexp(want, &e);
        double ulp = exp2(fmax(e - 24, -149));
        bool near = fabs(got - want) <= ulps * ulp && signbit(got) == signbit(want);
        if (!near && !(want != want && got != got))
            ck_abort_msg("%s(%g) is %.9g, not %.9g", erf_ ? "erf" : "tanh", x, got, want);
    }
    kernel_free(&k);
    free(s.at);
}
END_TEST

int
main(void)
{
    Suite *suite = suite_create("kernels");
    TCase *tc = tcase_create("kernels");
    tcase_set_timeout(tc, 300);
    tcase_add_loop_test(tc, matmuls_are_right, 0, 7);
    tcase_add_loop_test(tc, attention_is_right, 0, 5);
    tcase_add_loop_test(tc, attention_backward_is_right, 0, 6);
    tcase_add_loop_test(tc, softmax_needs_no_further_barrier, 0, 2);
    tcase_add_loop_test(tc, odd_function, 0, 2);
    suite_add_tcase(suite, tc);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed > 0;
}
