/* The matrix products against their references: dense in three
   spellings with every epilogue, and block-sparse with all three products of a linear
   layer behind block dropout. */
#include "tests/run/support/harness.h"

static const SdcDtype floats[] = {SDC_FP32, SDC_FP16, SDC_BF16};
enum { NFLOATS = 3 };

typedef struct Shape {
    int64_t M, N, K;
} Shape;

static const char *const act_names[] = {"none", "relu", "silu", "gelu"};

static const char *
case_name(Env *env, const char *kernel, SdcDtype t, const Shape *s)
{
    return env_text(env, "%s %s %lldx%lldx%lld", kernel, sdc_dtype_name(t),
                    (long long)s->M, (long long)s->N, (long long)s->K);
}

/* b is given as [N, K] in memory when `turned`. */
static void
matmul_case(Env *env, const char *kernel, SdcDtype t, SdcDtype result, const Shape *s,
            RefAct act, bool turned)
{
    Buf a = buf_random(env, t, 1, DIMS(s->M, s->K));
    Buf b = turned ? buf_swap(buf_random(env, t, 0, DIMS(s->N, s->K)), 0, 1)
                   : buf_random(env, t, 0, DIMS(s->K, s->N));
    Buf bias = buf_random(env, t, 0, DIMS(s->N));
    Buf c = buf_poison(env, result, 3, DIMS(s->M, s->N));
    bool has_bias = act != REF_NONE;
    double *want = env_doubles(env, s->M * s->N), *bound = env_doubles(env, s->M * s->N);
    ref_matmul(s->M, s->N, s->K, buf_doubles(env, &a), buf_doubles(env, &b),
               has_bias ? buf_doubles(env, &bias) : NULL, act, dot_unit(env, t), want,
               bound);
    const char *binds =
        env_text(env, "BLOCK_M=32 BLOCK_N=32 BLOCK_K=16 GROUP_M=2 HAS_BIAS=%s ACT='%s'",
                 has_bias ? "True" : "False", act_names[act]);
    int64_t tiles = ceil_div(s->M, 32) * ceil_div(s->N, 32);
    LAUNCH(env, kernel, sdc_grid(tiles, 1, 1), binds, buf_arg(&a), buf_arg(&b),
           buf_arg(&c), buf_arg(&bias), sdc_int(s->M), sdc_int(s->N), sdc_int(s->K),
           sdc_int(a.strides[0]), sdc_int(a.strides[1]), sdc_int(b.strides[0]),
           sdc_int(b.strides[1]), sdc_int(c.strides[0]), sdc_int(c.strides[1]));
    buf_check(env, &c, case_name(env, kernel, t, s), want, bound);
}

START_TEST(matmul)
{
    static const Shape shapes[] = {{1, 1, 1}, {70, 45, 33}, {64, 64, 64}, {33, 100, 7}};
    Env env = env_open("matmul");
    for (int t = 0; t < NFLOATS; t++)
        for (int s = 0; s < 4; s++) {
            env.at_end = (t + s) % 2;
            matmul_case(&env, "matmul", floats[t], floats[t], &shapes[s], (RefAct)s,
                        true);
            matmul_case(&env, "matmul_block", floats[t], floats[t], &shapes[s],
                        (RefAct)((s + 2) % 4), false);
        }
    matmul_case(&env, "matmul", SDC_FP16, SDC_FP32, &shapes[1], REF_NONE, false);
    env_close(&env);
}
END_TEST

START_TEST(matmul_desc)
{
    /* Rows and bases on 16 bytes, as descriptors ask. */
    static const Shape shapes[] = {{70, 48, 40}, {32, 32, 16}, {5, 8, 104}};
    Env env = env_open("matmul");
    for (int t = 0; t < NFLOATS; t++)
        for (int i = 0; i < 3; i++) {
            const Shape *s = &shapes[i];
            env.at_end = false;
            Buf a = buf_random(&env, floats[t], 8, DIMS(s->M, s->K));
            Buf b = buf_random(&env, floats[t], 0, DIMS(s->K, s->N));
            Buf c = buf_poison(&env, SDC_FP32, 4, DIMS(s->M, s->N));
            double *want = env_doubles(&env, s->M * s->N);
            double *bound = env_doubles(&env, s->M * s->N);
            ref_matmul(s->M, s->N, s->K, buf_doubles(&env, &a), buf_doubles(&env, &b),
                       NULL, REF_NONE, dot_unit(&env, floats[t]), want, bound);
            int64_t tiles = ceil_div(s->M, 32) * ceil_div(s->N, 32);
            LAUNCH(&env, "matmul_desc", sdc_grid(tiles, 1, 1),
                   "BLOCK_M=32 BLOCK_N=32 BLOCK_K=16", buf_arg(&a), buf_arg(&b),
                   buf_arg(&c), sdc_none(), sdc_int(s->M), sdc_int(s->N), sdc_int(s->K),
                   sdc_int(a.strides[0]), sdc_int(b.strides[0]), sdc_int(c.strides[0]));
            buf_check(&env, &c, case_name(&env, "matmul_desc", floats[t], s), want,
                      bound);
        }
    env_close(&env);
}
END_TEST

/* ---------------------------------------------------------------- SparseDrop */

/* A mask with two dead blocks in five. */
static Buf
mask_make(Env *env, int64_t rows, int64_t cols)
{
    Buf mask = buf_poison(env, SDC_I8, 0, DIMS(rows, cols));
    for (int64_t i = 0; i < rows * cols; i++)
        buf_set(&mask, i, env_random(env) % 5 > 1);
    return mask;
}

typedef struct Product {
    const Buf *a, *b, *mask;
    Buf *c;
    Shape s;
    int64_t mask_rows, mask_cols; /* elements an entry covers */
    int block_m, block_n, block_k;
} Product;

static const double scale = 1 / 0.75;

static void
product_run(Env *env, const char *kernel, const Product *p)
{
    bool dsd = kernel[0] == 'd';
    const char *binds =
        env_text(env, "BLOCK_M=%d BLOCK_N=%d BLOCK_K=%d MASK_M=%lld MASK_%c=%lld",
                 p->block_m, p->block_n, p->block_k, (long long)p->mask_rows,
                 dsd ? 'K' : 'N', (long long)p->mask_cols);
    int64_t tiles = ceil_div(p->s.M, p->block_m) * ceil_div(p->s.N, p->block_n);
    LAUNCH(env, kernel, sdc_grid(tiles, 1, 1), binds, buf_arg(p->a), buf_arg(p->b),
           buf_arg(p->c), buf_arg(p->mask), sdc_int(p->s.M), sdc_int(p->s.N),
           sdc_int(p->s.K), sdc_float(scale), sdc_int(p->a->strides[0]),
           sdc_int(p->a->strides[1]), sdc_int(p->b->strides[0]),
           sdc_int(p->b->strides[1]), sdc_int(p->c->strides[0]),
           sdc_int(p->c->strides[1]), sdc_int(p->mask->strides[0]),
           sdc_int(p->mask->strides[1]));
    double *dense = buf_doubles(env, p->mask);
    int8_t *live = env_alloc(env, (size_t)buf_count(p->mask));
    for (int64_t i = 0; i < buf_count(p->mask); i++)
        live[i] = (int8_t)dense[i];
    RefMask mask = {live, p->mask->shape[1], p->mask_rows, p->mask_cols};
    double *want = env_doubles(env, p->s.M * p->s.N);
    double *bound = env_doubles(env, p->s.M * p->s.N);
    (dsd ? ref_dsd : ref_sdd)(p->s.M, p->s.N, p->s.K, buf_doubles(env, p->a),
                              buf_doubles(env, p->b), &mask, (double)(float)scale,
                              dot_unit(env, p->a->dtype), want, bound);
    buf_check(env, p->c, case_name(env, kernel, p->c->dtype, &p->s), want, bound);
}

/* y = x w, dx = dy w^T and dw = x^T dy; blocks of mm x mk of x are dropped. */
static void
layer_run(Env *env, SdcDtype t, const Shape *s, int64_t mm, int64_t mk)
{
    int64_t M = s->M, N = s->N, K = s->K;
    Buf x = buf_random(env, t, 0, DIMS(M, K)), w = buf_random(env, t, 1, DIMS(K, N));
    Buf dy = buf_random(env, t, 0, DIMS(M, N));
    Buf mask = mask_make(env, ceil_div(M, mm), ceil_div(K, mk));
    Buf y = buf_poison(env, t, 2, DIMS(M, N)), dx = buf_poison(env, t, 2, DIMS(M, K));
    Buf dw = buf_poison(env, t, 0, DIMS(K, N));
    Buf xt = buf_swap(x, 0, 1), wt = buf_swap(w, 0, 1), mt = buf_swap(mask, 0, 1);
    product_run(env, "dsd_matmul",
                &(Product){&x, &w, &mask, &y, {M, N, K}, mm, mk, 32, 32, 16});
    product_run(env, "sdd_matmul",
                &(Product){&dy, &wt, &mask, &dx, {M, K, N}, mm, mk, 32, 16, 16});
    product_run(env, "dsd_matmul",
                &(Product){&xt, &dy, &mt, &dw, {K, N, M}, mk, mm, 16, 32, 16});
}

START_TEST(sparsedrop)
{
    static const struct {
        Shape s;
        int64_t mm, mk;
    } cases[] = {{{64, 64, 64}, 32, 16}, {{100, 70, 90}, 64, 32}, {{33, 20, 17}, 32, 16}};
    Env env = env_open("sparsedrop");
    for (int t = 0; t < NFLOATS; t++)
        for (int c = 0; c < 3; c++) {
            env.at_end = (t + c) % 2;
            layer_run(&env, floats[t], &cases[c].s, cases[c].mm, cases[c].mk);
        }
    env_close(&env);
}
END_TEST

/* Dead blocks are not read: they are NaN here, and no NaN comes out. */
START_TEST(sparsedrop_dead)
{
    Env env = env_open("sparsedrop");
    Buf x = buf_poison(&env, SDC_FP32, 0, DIMS(32, 64));
    Buf w = buf_random(&env, SDC_FP32, 0, DIMS(64, 32));
    Buf y = buf_poison(&env, SDC_FP32, 0, DIMS(32, 32));
    int8_t mask[4] = {0, 0, 0, 0};
    LEND(&env, mask);
    double *zero = env_doubles(&env, 32 * 32);
    LAUNCH(&env, "dsd_matmul", sdc_grid(1, 1, 1),
           "BLOCK_M=32 BLOCK_N=32 BLOCK_K=16 MASK_M=32 MASK_K=16", buf_arg(&x),
           buf_arg(&w), buf_arg(&y), sdc_ptr(SDC_I8, mask), sdc_int(32), sdc_int(32),
           sdc_int(64), sdc_float(2.0), sdc_int(64), sdc_int(1), sdc_int(32), sdc_int(1),
           sdc_int(32), sdc_int(1), sdc_int(4), sdc_int(1));
    buf_check(&env, &y, "all blocks dead", zero, NULL);
    env_close(&env);
}
END_TEST

int
main(void)
{
    return RUN_TESTS("gemm", matmul, matmul_desc, sparsedrop, sparsedrop_dead);
}
