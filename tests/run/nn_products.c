/* Batches of matmuls and matmuls of different sizes, sdc_matmul_with and
   sdc_matmul_grouped, with bias, activation and residual: strides of any kind, matrices
   that a batch shares, groups without rows. */
#include <stdlib.h>
#include <string.h>

#include "tests/run/support/nn.h"

/* pad: elements more from row to row; transposed: columns lie along memory; shares: all
   of the batch have one b. */
typedef struct Batch {
    SdcDtype t, to;
    int64_t batch, m, n, k, pad;
    bool transposed_a, transposed_b, shares, bias, rows, residual;
    SdcActivation act;
    const char *says; /* of the explanation on sm_90a */
    bool scales, fast;
} Batch;

static Buf
operand(Env *env, SdcDtype t, int64_t pad, bool transposed, int64_t n, int64_t rows,
        int64_t cols)
{
    Buf x = transposed ? buf_random(env, t, pad, DIMS(n, cols, rows))
                   : buf_random(env, t, pad, DIMS(n, rows, cols));
    return transposed ? buf_swap(x, 1, 2) : x;
}

/* The residual on top of what a matmul should be. */
static void
add_residual(int64_t n, const double *residual, double *want, double *bound)
{
    for (int64_t i = 0; i < n; i++) {
        want[i] += residual[i];
        bound[i] += 2 * REF_U32 *
                    ((want[i] < 0 ? -want[i] : want[i]) +
                     (residual[i] < 0 ? -residual[i] : residual[i]));
    }
}

static bool
is_hopper(Nn *n)
{
    SdcDevice d;
    return n->env.cuda && sdc_context_device(n->env.ctx, &d) == SDC_OK &&
           strcmp(d.target, "sm_90a") == 0;
}

/* What a matmul may be off before it is summed in fp32. A step of 32 of Hopper's tensor
   cores loses up to 2^-12 of a sum of fp8. */
static bool
is_fp8(SdcDtype t)
{
    return t == SDC_FP8E4NV || t == SDC_FP8E5;
}

static double
unit_of_sums(const Env *env, SdcDtype t, int64_t k, bool fast)
{
    int64_t steps = (fast || k < 128 ? k + 31 : 128) / 32;
    return is_fp8(t) && env->cuda ? (double)steps * 0x1p-12 : dot_unit(env, t);
}

/* The sums of one of a batch, as if its scales were those of its operands. */
static void
one_of_batch(Env *env, const Batch *s, const double *x, const double *y, const double *z,
             const double *rows, const double *cols, double *want, double *bound)
{
    double *a = env_doubles(env, s->m * s->k), *b = env_doubles(env, s->k * s->n);
    for (int64_t i = 0; i < s->m * s->k; i++)
        a[i] = x[i] * (s->scales ? rows[i / s->k] : 1);
    for (int64_t i = 0; i < s->k * s->n; i++)
        b[i] = y[i] * (s->scales ? cols[i % s->n] : 1);
    double unit = unit_of_sums(env, s->t, s->k, s->fast) + (s->scales ? 4 * REF_U32 : 0);
    ref_matmul(s->m, s->n, s->k, a, b, z, (RefAct)s->act, unit, want, bound);
}

static void
batch_case(Nn *n, const Batch *s)
{
    Env *env = &n->env;
    int64_t mn = s->m * s->n, mk = s->m * s->k, kn = s->k * s->n, size = s->batch * mn;
    char why[1024];
    Buf a = operand(env, s->t, s->pad, s->transposed_a, s->batch, s->m, s->k);
    Buf b = operand(env, s->t, s->pad, s->transposed_b, s->shares ? 1 : s->batch, s->k,
                    s->n);
    Buf bias = s->rows ? buf_random(env, SDC_FP32, 3, DIMS(s->batch, s->n))
                       : buf_random(env, SDC_FP32, 0, DIMS(s->n));
    Buf add = buf_random(env, s->to, 1, DIMS(s->batch, s->m, s->n));
    Buf c = buf_poison(env, s->to, 2 * s->pad, DIMS(s->batch, s->m, s->n));
    SdcTensor ta = tensor(n, &a), tb = tensor(n, &b), tc = tensor(n, &c);
    Buf rows = buf_random(env, SDC_FP32, 0, DIMS(s->batch, s->m));
    Buf cols = buf_random(env, SDC_FP32, 2, DIMS(s->batch, s->n));
    SdcTensor tbias = tensor(n, &bias), tadd = tensor(n, &add);
    SdcTensor trows = tensor(n, &rows), tcols = tensor(n, &cols);
    SdcMatmulOptions o = {.size = sizeof o,
                          .bias = s->bias ? &tbias : NULL,
                          .residual = s->residual ? &tadd : NULL,
                          .act = s->act,
                          .a_scale = s->scales ? &trows : NULL,
                          .b_scale = s->scales ? &tcols : NULL,
                          .fast_sums = s->fast};
    if (s->shares) {
        tb.shape[0] = s->batch;
        tb.strides[0] = 0;
    }
    good(n, sdc_matmul_with(n->k, &ta, &tb, &tc, &o, NULL));
    env_collect(env);
    double *x = buf_doubles(env, &a), *y = buf_doubles(env, &b);
    double *z = buf_doubles(env, &bias);
    double *want = env_doubles(env, size), *bound = env_doubles(env, size);
    for (int64_t i = 0; i < s->batch; i++)
        one_of_batch(env, s, x + i * mk, y + (s->shares ? 0 : i * kn),
                     s->bias ? z + (s->rows ? i * s->n : 0) : NULL,
                     buf_doubles(env, &rows) + i * s->m,
                     buf_doubles(env, &cols) + i * s->n, want + i * mn, bound + i * mn);
    if (s->residual)
        add_residual(size, buf_doubles(env, &add), want, bound);
    sdc_nn_explain(n->k, why, sizeof why);
    ck_assert_msg(!s->says || !is_hopper(n) || strstr(why, s->says), "no '%s' in: %s",
                  s->says, why);
    buf_check(env, &c, "batch", want, bound);
}

/* fp8 in all orders of memory; scales of rows and columns. */
START_TEST(short_floats)
{
    static const Batch cases[] = {
        {SDC_FP8E4NV, SDC_BF16, 1, 144, 272, 400, 0, 0, 1, .bias = 0},
        {SDC_FP8E4NV, SDC_BF16, 1, 144, 272, 400, 0, 0, 0, .scales = true},
        {SDC_FP8E5, SDC_FP32, 2, 80, 96, 208, 16, 1, 0, .bias = true, .fast = true},
        {SDC_FP8E4NV, SDC_FP32, 2, 72, 100, 515, 0, 1, 1, .scales = true,
         .act = SDC_ACT_RELU, .bias = true},
        {SDC_FP8E4NV, SDC_BF16, 1, 33, 47, 65, 0, 1, 0, .residual = true},
        {SDC_FP8E5, SDC_FP32, 3, 50, 40, 72, 0, 0, 1, .shares = true, .scales = true},
        {SDC_FP8E4NV, SDC_FP32, 1, 1, 72, 200, 0, 1, 0, .scales = true},
        {SDC_FP8E5, SDC_FP32, 2, 40, 1, 72, 3, 0, 1, .scales = true, .fast = true},
        {SDC_FP16, SDC_FP16, 2, 16, 64, 2048, 0, 0, 1, .shares = true, .scales = true},
    };
    Nn n = nn_open();
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        batch_case(&n, &cases[i]);
    nn_close(&n);
}
END_TEST

START_TEST(batches)
{
    static const Batch cases[] = {
        {SDC_FP16, SDC_FP16, 3, 72, 136, 96, 0, 0, 0, .says = "3 of"},
        {SDC_BF16, SDC_BF16, 2, 40, 72, 136, 8, 0, 1, .bias = 1, .rows = 1,
         .residual = 1, .act = SDC_ACT_GELU},
        {SDC_FP32, SDC_FP32, 2, 33, 50, 70, 1, 1, 0, .bias = 1, .act = SDC_ACT_RELU},
        {SDC_FP16, SDC_FP32, 5, 16, 64, 64, 0, 1, 1, .shares = 1, .residual = 1,
         .act = SDC_ACT_SILU},
        /* few tiles, long sums; rows that begin anywhere */
        {SDC_BF16, SDC_BF16, 2, 16, 64, 2048, 0, 0, 1, .bias = 1, .rows = 1,
         .residual = 1, .act = SDC_ACT_SILU},
        {SDC_FP16, SDC_FP16, 2, 256, 257, 515, 0, 0, 0, .shares = 1},
        {SDC_FP16, SDC_FP16, 2, 30, 31, 33, 1, 1, 1, .residual = 1},
        /* no batch, a residual; one row */
        {SDC_BF16, SDC_BF16, 1, 130, 200, 72, 0, 0, 0, .bias = 1, .residual = 1},
        {SDC_FP16, SDC_FP16, 4, 1, 72, 200, 0, 0, 1, .bias = 0},
    };
    Nn n = nn_open();
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        batch_case(&n, &cases[i]);
    nn_close(&n);
}
END_TEST

/* The result takes the place of the residual. */
START_TEST(in_place)
{
    enum { M = 50, N = 72, K = 40 };
    Nn n = nn_open();
    Env *env = &n.env;
    Buf a = buf_random(env, SDC_BF16, 0, DIMS(M, K));
    Buf b = buf_random(env, SDC_BF16, 0, DIMS(K, N));
    Buf c = buf_random(env, SDC_FP32, 4, DIMS(M, N));
    double *add = buf_doubles(env, &c), *want = env_doubles(env, 2 * M * N);
    SdcTensor ta = tensor(&n, &a), tb = tensor(&n, &b), tc = tensor(&n, &c);
    SdcMatmulOptions o = {.size = sizeof o, .residual = &tc};
    good(&n, sdc_matmul_with(n.k, &ta, &tb, &tc, &o, NULL));
    env_collect(env);
    ref_matmul(M, N, K, buf_doubles(env, &a), buf_doubles(env, &b), NULL, REF_NONE,
               dot_unit(env, SDC_BF16), want, want + M * N);
    add_residual(M * N, add, want, want + M * N);
    buf_check(env, &c, "sum", want, want + M * N);
    nn_close(&n);
}
END_TEST

/* ---- groups */

enum { MOST = 9 };

typedef struct Groups {
    SdcDtype t;
    int64_t n, k, pad;
    bool transposed, epilogue;
    int groups;
    int64_t sizes[MOST], before, behind; /* rows of no group in front and at the end */
    bool scales;
} Groups;

static SdcTensor
offsets_of(Nn *n, const Groups *s, int32_t *at)
{
    int32_t row = (int32_t)s->before;
    for (int i = 0; i < s->groups; i++) {
        at[i] = row;
        row += (int32_t)s->sizes[i];
    }
    at[s->groups] = row;
    int32_t *copy = env_alloc(&n->env, (size_t)(s->groups + 1) * sizeof *copy);
    memcpy(copy, at, (size_t)(s->groups + 1) * sizeof *copy);
    return sdc_vector(SDC_I32, env_place(&n->env, copy), s->groups + 1);
}

static void
scale_rows(int64_t rows, int64_t cols, const double *by_row, const double *by_col,
           double *x)
{
    for (int64_t i = 0; i < rows * cols; i++)
        x[i] *= by_row ? by_row[i / cols] : by_col[i % cols];
}

/* The gradient of b, of types that it has. */
static void
group_sums(Nn *n, const Groups *s, const Buf *a)
{
    Env *env = &n->env;
    int64_t rows = a->shape[0], kn = s->k * s->n;
    int32_t at[MOST + 1];
    SdcTensor offsets = offsets_of(n, s, at);
    Buf dy = buf_random(env, s->t, 0, DIMS(rows, s->n));
    Buf db = buf_poison(env, s->t, 0, DIMS(s->groups, s->k, s->n));
    SdcTensor ta = tensor(n, a), tdy = tensor(n, &dy), tdb = tensor(n, &db);
    good(n, sdc_matmul_grouped_sum(n->k, &ta, &tdy, &offsets, &tdb, 0, NULL));
    env_collect(env);
    double *x = buf_doubles(env, a), *g = buf_doubles(env, &dy);
    double *dw = env_doubles(env, 2 * s->groups * kn),
           *xt = env_doubles(env, rows * s->k);
    for (int i = 0; i < s->groups; i++) {
        int64_t first = at[i], size = s->sizes[i];
        for (int64_t r = 0; r < size; r++)
            for (int64_t j = 0; j < s->k; j++)
                xt[j * size + r] = x[(first + r) * s->k + j];
        ref_matmul(s->k, s->n, size, xt, g + first * s->n, NULL, REF_NONE,
                   dot_unit(env, s->t), dw + i * kn, dw + (s->groups + i) * kn);
    }
    buf_check(env, &db, "sums of groups", dw, dw + s->groups * kn);
}

/* c is the residual too, so that rows of no group keep what they were. */
static void
groups_case(Nn *n, const Groups *s)
{
    Env *env = &n->env;
    int32_t at[MOST + 1];
    int64_t rows = s->before + s->behind, kn = s->k * s->n;
    SdcDtype to = is_fp8(s->t) ? SDC_BF16 : s->t;
    for (int i = 0; i < s->groups; i++)
        rows += s->sizes[i];
    Buf a = buf_random(env, s->t, s->pad, DIMS(rows, s->k));
    Buf b = operand(env, s->t, 0, s->transposed, s->groups, s->k, s->n);
    Buf bias = buf_random(env, SDC_FP32, 0, DIMS(s->groups, s->n));
    Buf by_row = buf_random(env, SDC_FP32, 0, DIMS(rows));
    Buf by_col = buf_random(env, SDC_FP32, 1, DIMS(s->groups, s->n));
    Buf c = buf_random(env, to, s->pad, DIMS(rows, s->n));
    SdcTensor ta = tensor(n, &a), tb = tensor(n, &b), tc = tensor(n, &c);
    SdcTensor tbias = tensor(n, &bias), trows = tensor(n, &by_row);
    SdcTensor tcols = tensor(n, &by_col), offsets = offsets_of(n, s, at);
    double *add = buf_doubles(env, &c), *want = env_doubles(env, 2 * rows * s->n);
    double *bound = want + rows * s->n;
    memcpy(want, add, (size_t)(rows * s->n) * sizeof *want);
    SdcMatmulOptions o = {.size = sizeof o,
                          .residual = &tc,
                          .bias = s->epilogue ? &tbias : NULL,
                          .act = s->epilogue ? SDC_ACT_RELU : SDC_ACT_NONE,
                          .a_scale = s->scales ? &trows : NULL,
                          .b_scale = s->scales ? &tcols : NULL};
    good(n, sdc_matmul_grouped(n->k, &ta, &tb, &offsets, &tc, &o, NULL));
    env_collect(env);
    double *x = buf_doubles(env, &a), *y = buf_doubles(env, &b);
    double *z = buf_doubles(env, &bias), *cols = buf_doubles(env, &by_col);
    double unit = unit_of_sums(env, s->t, s->k, false) + (s->scales ? 4 * REF_U32 : 0);
    if (s->scales)
        scale_rows(rows, s->k, buf_doubles(env, &by_row), NULL, x);
    for (int i = 0; i < s->groups; i++) {
        int64_t first = at[i], size = s->sizes[i];
        if (s->scales)
            scale_rows(s->k, s->n, NULL, cols + i * s->n, y + i * kn);
        ref_matmul(size, s->n, s->k, x + first * s->k, y + i * kn,
                   s->epilogue ? z + i * s->n : NULL, s->epilogue ? REF_RELU : REF_NONE,
                   unit, want + first * s->n, bound + first * s->n);
        add_residual(size * s->n, add + first * s->n, want + first * s->n,
                     bound + first * s->n);
    }
    buf_check(env, &c, "groups", want, bound);
    if (!is_fp8(s->t))
        group_sums(n, s, &a);
}

START_TEST(groups)
{
    static const Groups cases[] = {
        {SDC_FP16, 72, 96, 0, 0, 1, 4, {70, 0, 130, 5}, 0, .behind = 0},
        {SDC_BF16, 136, 64, 0, 1, 0, 3, {1, 64, 200}, 3, .behind = 7},
        {SDC_FP32, 50, 33, 1, 0, 1, 2, {20, 47}, 0, .behind = 1},
        {SDC_BF16, 64, 72, 8, 1, 1, 9, {0, 9, 8, 0, 0, 300, 1, 2, 0}, 2, .behind = 0},
        {SDC_FP16, 40, 41, 0, 0, 0, 1, {0}, 0, .behind = 5},
        {SDC_FP16, 264, 136, 0, 0, 0, 2, {129, 150}, 0, .behind = 0},
        {SDC_FP8E4NV, 144, 272, 0, 1, 1, 3, {70, 0, 130}, 5, 3, .scales = true},
        {SDC_FP8E5, 80, 208, 16, 0, 0, 2, {129, 33}, 0, .behind = 0},
        {SDC_BF16, 200, 72, 0, 0, 1, 2, {40, 90}, 0, 1, .scales = true},
    };
    Nn n = nn_open();
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        groups_case(&n, &cases[i]);
    nn_close(&n);
}
END_TEST

/* Each way that the planner knows, of all types and orders: tiles of any size, of
   columns that are two powers of two, in one part and in several. */
START_TEST(ways)
{
    static const Batch cases[] = {
        {SDC_FP16, SDC_FP16, 1, 34, 200, 515, 0, 0, 0, .bias = 0},
        {SDC_BF16, SDC_BF16, 1, 136, 200, 72, 8, 1, 1, .bias = 1, .residual = 1,
         .act = SDC_ACT_RELU},
        {SDC_FP32, SDC_FP32, 1, 36, 200, 36, 0, 0, 0, .bias = 1},
        {SDC_FP32, SDC_FP32, 1, 36, 200, 140, 4, 1, 0, .bias = 1},
        {SDC_FP8E4NV, SDC_BF16, 1, 80, 208, 528, 0, 1, 0, .scales = true},
        {SDC_FP8E4NV, SDC_BF16, 2, 32, 144, 272, 16, 1, 0, .fast = true, .shares = true},
        /* rows that begin on 8 bytes, and on 4 */
        {SDC_FP16, SDC_FP16, 2, 36, 100, 140, 0, 0, 0, .bias = 1},
        {SDC_BF16, SDC_BF16, 1, 34, 50, 270, 0, 1, 1, .bias = 1},
        {SDC_FP16, SDC_BF16, 2, 40, 168, 72, 0, 0, 1, .residual = 1, .scales = true,
         .act = SDC_ACT_SILU}};
    static const Groups two = {SDC_BF16, 200, 72, 8, 0, 1, 2, {70, 30}, 0, .behind = 0};
    enum { CASES = sizeof cases / sizeof *cases, LAST = CASES - 1 };
    for (int i = 0; i <= CASES; i++) {
        Nn n = nn_open();
        char last[1024] = "", now[1024] = ".";
        bool parts = false, packed = false, transposed = false;
        bool swapped = false;
        for (int way = 0; strcmp(last, now) && way < SDC_NN_WAYS; way++) {
            memcpy(last, now, sizeof now);
            good(&n, sdc_nn_take(n.k, way));
            if (i < CASES)
                batch_case(&n, &cases[i]);
            else
                groups_case(&n, &two);
            sdc_nn_explain(n.k, now, sizeof now);
            parts |= strstr(now, "parts") != NULL;
            packed |= strstr(now, "packed first") != NULL;
            transposed |= strstr(now, "a transposed first") != NULL;
            swapped |= strstr(now, "rows are columns of c") != NULL;
        }
        ck_assert(i || !is_hopper(&n) || (parts && packed));
        ck_assert(i < 3 || i >= LAST - 2 || !is_hopper(&n) || transposed);
        /* a bias is of columns, groups are of rows */
        ck_assert(!is_hopper(&n) || swapped == (i == 0 || i == LAST));
        nn_close(&n);
    }
}
END_TEST

/* As many groups as there may be, of few rows. */
START_TEST(many_groups)
{
    enum { GROUPS = 4096, ROWS = 900, N = 16, K = 16 };
    Nn n = nn_open();
    Env *env = &n.env;
    int32_t *at = env_alloc(env, (GROUPS + 1) * sizeof *at);
    for (int i = 0; i <= GROUPS; i++)
        at[i] = i * ROWS / GROUPS;
    Buf a = buf_random(env, SDC_FP16, 0, DIMS(ROWS, K));
    Buf b = buf_random(env, SDC_FP16, 0, DIMS(GROUPS, K, N));
    Buf c = buf_poison(env, SDC_FP32, 0, DIMS(ROWS, N));
    SdcTensor ta = tensor(&n, &a), tb = tensor(&n, &b), tc = tensor(&n, &c);
    SdcTensor offsets = sdc_vector(SDC_I32, env_place(env, at), GROUPS + 1);
    double *x = buf_doubles(env, &a), *y = buf_doubles(env, &b);
    double *want = env_doubles(env, 2 * ROWS * N);
    good(&n, sdc_matmul_grouped(n.k, &ta, &tb, &offsets, &tc, NULL, NULL));
    env_collect(env);
    for (int i = 0; i < GROUPS; i++)
        ref_matmul(at[i + 1] - at[i], N, K, x + at[i] * K, y + i * K * N, NULL, REF_NONE,
                   dot_unit(env, SDC_FP16), want + at[i] * N,
                   want + (ROWS + at[i]) * N);
    buf_check(env, &c, "groups", want, want + ROWS * N);
    nn_close(&n);
}
END_TEST

/* Options without a size, and those of a host whose header has more. */
START_TEST(options_of_other_sizes)
{
    Nn n = nn_open();
    float mem[16] = {0};
    SdcTensor a = sdc_matrix(SDC_FP32, mem, 4, 4), b = sdc_matrix(SDC_FP32, mem, 3, 4);
    struct {
        SdcMatmulOptions known;
        int64_t later;
    } o = {{.act = SDC_ACT_RELU}, 0};
    const char *behind = "dimension 0 of 'b' is 3"; /* what is asked next */
    refused(&n, sdc_matmul_with(n.k, &a, &b, &a, &o.known, NULL), behind);
    o.known.size = sizeof o;
    refused(&n, sdc_matmul_with(n.k, &a, &b, &a, &o.known, NULL), behind);
    o.later = 1;
    refused(&n, sdc_matmul_with(n.k, &a, &b, &a, &o.known, NULL), "no member that");
    nn_close(&n);
}
END_TEST

START_TEST(refusals)
{
    Nn n = nn_open();
    float mem[64] = {0};
    int32_t at[3] = {0, 2, 4};
    const int64_t shape[3] = {2, 4, 4}, other[3] = {3, 4, 4};
    SdcTensor a = sdc_tensor(SDC_FP32, mem, 3, shape), b = a, row = a;
    SdcTensor m = sdc_matrix(SDC_FP32, mem, 4, 4), off = sdc_vector(SDC_I32, at, 3);
    SdcMatmulOptions o = {.size = 3};
    refused(&n, sdc_matmul_with(n.k, &a, &b, &a, &o, NULL), "options of 3 bytes");
    b = sdc_tensor(SDC_FP32, mem, 3, other);
    refused(&n, sdc_matmul_with(n.k, &a, &b, &a, NULL, NULL),
            "dimension 0 of 'b' is 3, needed is 2");
    refused(&n, sdc_matmul_with(n.k, &a, &m, &a, NULL, NULL), "'b' has 2 dimensions");
    o = (SdcMatmulOptions){.size = sizeof o, .residual = &m};
    refused(&n, sdc_matmul_with(n.k, &a, &row, &a, &o, NULL), "'residual' has 2");
    o = (SdcMatmulOptions){.size = sizeof o, .bias = &m};
    refused(&n, sdc_matmul_with(n.k, &a, &row, &a, &o, NULL),
            "dimension 0 of 'bias' is 4");
    refused(&n, sdc_matmul_grouped(n.k, &m, &b, &off, &m, NULL, NULL),
            "dimension 0 of 'b' is 3, needed is 2");
    o = (SdcMatmulOptions){.size = sizeof o, .a_scale = &m};
    refused(&n, sdc_matmul_grouped(n.k, &m, &a, &off, &m, &o, NULL),
            "'a_scale' has 2 dimensions, needed is 1");
    off.dtype = SDC_I64;
    refused(&n, sdc_matmul_grouped(n.k, &m, &a, &off, &m, NULL, NULL),
            "'offsets' needs to be i32");
    nn_close(&n);
}
END_TEST

int
main(void)
{
    return RUN_TESTS("nn_products", batches, short_floats, ways, in_place, groups,
                     many_groups, options_of_other_sizes, refusals);
}
