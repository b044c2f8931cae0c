/* Root mean square norm, cross entropy, SwiGLU and rotary embedding of sdc_nn.h against
   their references: each type, rows of any length, rows with gaps, results in the place
   of operands. */
#include <math.h>
#include <stdlib.h>

#include "tests/run/support/nn.h"

/* One tile, several rows a tile, one tile after another, parts of a row, with so many
   SMs: the simulator takes their number from its environment. */
static const struct {
    SdcDtype t;
    int64_t rows, cols, pad;
    const char *processors;
} rows_of[] = {{SDC_FP32, 5, 1, 1, "4"},      {SDC_FP16, 37, 130, 3, "4"},
               {SDC_BF16, 40, 128, 8, "4"},   {SDC_FP32, 5, 300, 0, "4"},
               {SDC_BF16, 9, 9000, 8, "2"},   {SDC_FP16, 3, 20001, 1, "4"},
               {SDC_FP32, 2, 70001, 0, "132"}};

static void
rms_case(Nn *n, SdcDtype t, int64_t rows, int64_t cols, int64_t pad, bool adds)
{
    Env *env = &n->env;
    int64_t size = rows * cols;
    Buf x = buf_random(env, t, pad, DIMS(rows, cols));
    Buf dy = buf_random(env, t, 2 * pad, DIMS(rows, cols));
    Buf add = buf_random(env, t, 0, DIMS(rows, cols));
    Buf w = buf_random(env, t, 0, DIMS(cols));
    Buf y = buf_poison(env, t, pad, DIMS(rows, cols));
    Buf dx = buf_poison(env, t, pad, DIMS(rows, cols));
    Buf rstd = buf_poison(env, SDC_FP32, 0, DIMS(rows));
    Buf dw = buf_poison(env, SDC_FP32, 0, DIMS(cols));
    double *out = env_doubles(env, 4 * size + 2 * rows + 2 * cols);
    RefRms r = {.rows = rows,
                .cols = cols,
                .x = buf_doubles(env, &x),
                .w = buf_doubles(env, &w),
                .dy = buf_doubles(env, &dy),
                .add = adds ? buf_doubles(env, &add) : NULL,
                .eps = (double)1e-5f,
                .y = out,
                .y_bound = out + size,
                .dx = out + 2 * size,
                .dx_bound = out + 3 * size,
                .rstd = out + 4 * size,
                .rstd_bound = out + 4 * size + rows,
                .dw = out + 4 * size + 2 * rows,
                .dw_bound = out + 4 * size + 2 * rows + cols};
    ref_rms_norm(&r);
    SdcTensor tx = tensor(n, &x), tdy = tensor(n, &dy), tadd = tensor(n, &add);
    SdcTensor tw = tensor(n, &w), ty = tensor(n, &y), tdx = tensor(n, &dx);
    SdcTensor tr = tensor(n, &rstd), tdw = tensor(n, &dw);
    void *work = env_place(env, env_alloc(env, sdc_rms_norm_workspace(n->k, cols)));
    good(n, sdc_rms_norm_forward(n->k, &tx, &tw, &ty, &tr, r.eps, NULL));
    good(n, sdc_rms_norm_backward(n->k, &tdy, &tx, &tw, &tr, adds ? &tadd : NULL, &tdx,
                                  &tdw, work, NULL));
    env_collect(env);
    buf_check(env, &rstd, "rms rstd", r.rstd, r.rstd_bound);
    buf_check(env, &y, "rms y", r.y, r.y_bound);
    buf_check(env, &dx, "rms dx", r.dx, r.dx_bound);
    buf_check(env, &dw, "rms dw", r.dw, r.dw_bound);
}

START_TEST(rms_norm)
{
    setenv("SIM_PROCESSORS", rows_of[_i].processors, 1);
    Nn n = nn_open();
    rms_case(&n, rows_of[_i].t, rows_of[_i].rows, rows_of[_i].cols, rows_of[_i].pad,
             _i % 2);
    nn_close(&n);
}
END_TEST

/* ---- cross entropy */

enum { IGNORE = -100 };

/* Whole numbers below `limit`; the second row's IGNORE, the third and fourth one's the
   nearest that are no columns, and the fifth one's, a lane's of a last tile. */
static int64_t
a_target(Env *env, int64_t row, int64_t limit)
{
    int64_t outside[] = {[1] = IGNORE, [2] = limit, [3] = -1, [4] = limit + 17};
    return row >= 1 && row <= 4 ? outside[row]
                                : (int64_t)(env_random(env) % (uint64_t)limit);
}

static Buf
targets(Env *env, SdcDtype t, int64_t rows, int64_t limit, int64_t **out)
{
    Buf b = buf_random(env, t, 0, DIMS(rows));
    *out = env_alloc(env, (size_t)rows * sizeof(**out));
    for (int64_t i = 0; i < rows; i++) {
        (*out)[i] = a_target(env, i, limit);
        buf_set(&b, i, (double)(*out)[i]);
    }
    return b;
}

/* Given dloss, gradients are those of a sum; without, in the place of x and of a mean. */
static void
entropy_case(Nn *n, SdcDtype t, int64_t rows, int64_t cols, int64_t pad, bool given)
{
    Env *env = &n->env;
    int64_t size = rows * cols, *target;
    Buf x = buf_random(env, t, pad, DIMS(rows, cols));
    Buf to = targets(env, given ? SDC_I32 : SDC_I64, rows, cols, &target);
    Buf loss = buf_poison(env, SDC_FP32, 0, DIMS(rows));
    Buf lse = buf_poison(env, SDC_FP32, 0, DIMS(rows));
    Buf dloss = buf_random(env, t, 0, DIMS(rows));
    buf_set(&dloss, 1, (double)NAN); /* of the row that is ignored */
    Buf dx = buf_poison(env, t, 2 * pad, DIMS(rows, cols));
    double *all = env_doubles(env, 2 * size + 2 * rows);
    RefEntropy e = {.rows = rows,
                    .cols = cols,
                    .x = buf_doubles(env, &x),
                    .target = target,
                    .ignore = IGNORE,
                    .scale = given ? 1 : (double)(1.0f / (float)rows),
                    .dx = all,
                    .dx_bound = all + size,
                    .loss = all + 2 * size,
                    .loss_bound = all + 2 * size + rows};
    ref_cross_entropy(&e);
    double *factor = buf_doubles(env, &dloss);
    for (int64_t i = 0; i < size && given; i++) {
        double f = i / cols == 1 ? 1 : factor[i / cols];
        e.dx[i] *= f;
        e.dx_bound[i] = e.dx_bound[i] * (f < 0 ? -f : f) + 2 * REF_U32 * 4;
    }
    SdcTensor tx = tensor(n, &x), tto = tensor(n, &to), tloss = tensor(n, &loss);
    SdcTensor tlse = tensor(n, &lse), tdl = tensor(n, &dloss);
    SdcTensor tdx = given ? tensor(n, &dx) : tx;
    good(n, sdc_cross_entropy_forward(n->k, &tx, &tto, &tloss, &tlse, IGNORE, NULL));
    char why[1024];
    sdc_nn_explain(n->k, why, sizeof why);
    if (!env->cuda && cols <= 65536) /* each exponential once */
        ck_assert_msg(strstr(why, "a tile holds a row") != NULL, "%s", why);
    good(n, sdc_cross_entropy_backward(n->k, &tx, &tto, &tlse, given ? &tdl : NULL, &tdx,
                                       e.scale, IGNORE, NULL));
    env_collect(env);
    buf_check(env, &loss, "loss", e.loss, e.loss_bound);
    buf_check(env, given ? &dx : &x, "entropy dx", e.dx, e.dx_bound);
}

START_TEST(cross_entropy)
{
    setenv("SIM_PROCESSORS", rows_of[_i].processors, 1);
    Nn n = nn_open();
    entropy_case(&n, rows_of[_i].t, rows_of[_i].rows, rows_of[_i].cols, rows_of[_i].pad,
                 _i % 2);
    nn_close(&n);
}
END_TEST

/* ---- gates */

/* gate and up are halves of one matrix; so are their gradients. */
static void
swiglu_case(Nn *n, SdcDtype t, int64_t rows, int64_t cols, int64_t pad)
{
    Env *env = &n->env;
    int64_t size = rows * cols;
    Buf both = buf_random(env, t, pad, DIMS(rows, 2, cols));
    Buf dout = buf_random(env, t, pad, DIMS(rows, cols));
    Buf out = buf_poison(env, t, 0, DIMS(rows, cols));
    Buf dboth = buf_poison(env, t, pad, DIMS(rows, 2, cols));
    double *x = buf_doubles(env, &both), *all = env_doubles(env, 8 * size);
    double *want = env_doubles(env, 4 * size);
    RefSwiglu r = {.n = size,
                   .gate = all,
                   .up = all + size,
                   .dout = buf_doubles(env, &dout),
                   .out = all + 2 * size,
                   .out_bound = all + 3 * size,
                   .dgate = all + 4 * size,
                   .dgate_bound = all + 5 * size,
                   .dup = all + 6 * size,
                   .dup_bound = all + 7 * size};
    for (int64_t i = 0; i < size; i++) {
        all[i] = x[i / cols * 2 * cols + i % cols];
        all[size + i] = x[(i / cols * 2 + 1) * cols + i % cols];
    }
    ref_swiglu(&r);
    for (int64_t i = 0; i < size; i++) {
        int64_t at = i / cols * 2 * cols + i % cols;
        want[at] = r.dgate[i];
        want[at + cols] = r.dup[i];
        want[2 * size + at] = r.dgate_bound[i];
        want[2 * size + at + cols] = r.dup_bound[i];
    }
    SdcTensor g[2], d[2], tb = tensor(n, &both), td = tensor(n, &dboth);
    for (int i = 0; i < 2; i++) {
        int64_t skip = i * tb.strides[1] * sdc_dtype_size(t);
        g[i] = (SdcTensor){.dtype = t, .rank = 2, .shape = {rows, cols}};
        d[i] = g[i];
        g[i].data = (char *)tb.data + skip;
        d[i].data = (char *)td.data + i * td.strides[1] * sdc_dtype_size(t);
        g[i].strides[0] = tb.strides[0];
        d[i].strides[0] = td.strides[0];
        g[i].strides[1] = d[i].strides[1] = 1;
    }
    SdcTensor tout = tensor(n, &out), tdout = tensor(n, &dout);
    good(n, sdc_swiglu_forward(n->k, &g[0], &g[1], &tout, NULL));
    good(n, sdc_swiglu_backward(n->k, &tdout, &g[0], &g[1], &d[0], &d[1], NULL));
    env_collect(env);
    buf_check(env, &out, "swiglu", r.out, r.out_bound);
    buf_check(env, &dboth, "swiglu gradients", want, want + 2 * size);
}

START_TEST(swiglu)
{
    Nn n = nn_open();
    swiglu_case(&n, SDC_FP32, 5, 70, 1);
    swiglu_case(&n, SDC_FP16, 3, 4100, 0);
    swiglu_case(&n, SDC_BF16, 300, 8, 8);
    swiglu_case(&n, SDC_BF16, 1, 1, 0);
    nn_close(&n);
}
END_TEST

/* ---- positions */

typedef struct Turn {
    SdcDtype t;
    int64_t batch, heads, m, dim, half;
    bool pairs, inverse, places, in_place;
    int64_t first;
} Turn;

/* x lies as [batch, M, heads, dim]. */
static void
rotary_case(Nn *n, const Turn *s)
{
    enum { POSITIONS = 200 };
    Env *env = &n->env;
    int64_t rows = s->batch * s->heads * s->m, size = rows * s->dim;
    Buf x =
        buf_swap(buf_random(env, s->t, 4, DIMS(s->batch, s->m, s->heads, s->dim)), 1, 2);
    Buf out = s->in_place
                  ? x
                  : buf_poison(env, s->t, 2, DIMS(s->batch, s->heads, s->m, s->dim));
    Buf cos = buf_random(env, SDC_FP32, 0, DIMS(POSITIONS, s->half));
    Buf sin = buf_random(env, SDC_FP32, 0, DIMS(POSITIONS, s->half));
    int32_t *table = env_alloc(env, (size_t)(s->batch * s->m) * sizeof *table);
    int64_t *place = env_alloc(env, (size_t)rows * sizeof *place);
    double *all = env_doubles(env, 2 * size);
    for (int64_t i = 0; i < s->batch * s->m; i++)
        table[i] = (int32_t)(env_random(env) % POSITIONS);
    for (int64_t i = 0; i < rows; i++)
        place[i] = s->places ? table[i / s->heads / s->m * s->m + i % s->m]
                             : s->first + i % s->m;
    RefRotary r = {.rows = rows,
                   .dim = s->dim,
                   .half = s->half,
                   .x = buf_doubles(env, &x),
                   .cos = buf_doubles(env, &cos),
                   .sin = buf_doubles(env, &sin),
                   .place = place,
                   .pairs = s->pairs,
                   .sign = s->inverse ? -1 : 1,
                   .out = all,
                   .bound = all + size};
    ref_rotary(&r);
    SdcTensor tx = tensor(n, &x), tc = tensor(n, &cos), ts = tensor(n, &sin);
    SdcTensor tout = s->in_place ? tx : tensor(n, &out);
    SdcTensor places = sdc_matrix(SDC_I32, env_place(env, table), s->batch, s->m);
    SdcRotary o = {.size = sizeof o,
                   .pairs = s->pairs,
                   .inverse = s->inverse,
                   .first = s->first,
                   .places = s->places ? &places : NULL};
    good(n, sdc_rotary(n->k, &tx, &tc, &ts, &tout, &o, NULL));
    env_collect(env);
    buf_check(env, &out, "rotary", r.out, r.bound);
}

START_TEST(rotary)
{
    static const Turn cases[] = {
        {SDC_FP32, 2, 3, 17, 64, 32, false, false, false, false, 5},
        {SDC_FP16, 1, 2, 70, 128, 64, false, true, false, true, 0},
        {SDC_BF16, 2, 2, 33, 80, 16, false, false, true, false, 0},
        {SDC_FP32, 1, 2, 9, 24, 12, true, false, true, false, 0},
        {SDC_BF16, 2, 1, 40, 64, 24, true, true, false, true, 3},
    };
    Nn n = nn_open();
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        rotary_case(&n, &cases[i]);
    nn_close(&n);
}
END_TEST

START_TEST(refusals)
{
    Nn n = nn_open();
    float mem[64] = {0};
    const int64_t shape[4] = {1, 1, 4, 8};
    SdcTensor m = sdc_matrix(SDC_FP32, mem, 4, 8), v = sdc_vector(SDC_FP32, mem, 4);
    SdcTensor x = sdc_tensor(SDC_FP32, mem, 4, shape), t = m;
    SdcTensor cos = sdc_matrix(SDC_FP32, mem, 3, 4);
    refused(&n, sdc_rms_norm_forward(n.k, &m, &v, &m, &v, 1e-5, NULL),
            "dimension 0 of 'w' is 4, needed is 8");
    refused(&n, sdc_cross_entropy_forward(n.k, &m, &v, &v, &v, -1, NULL),
            "'target' needs to be i32 or i64");
    refused(&n, sdc_rotary(n.k, &x, &cos, &cos, &x, NULL, NULL), "'cos' has 3");
    cos.shape[1] = 5;
    cos.strides[0] = 5;
    refused(&n, sdc_rotary(n.k, &x, &cos, &cos, &x, NULL, NULL), "'cos' has 5 columns");
    t.strides[1] = 2;
    refused(&n, sdc_swiglu_forward(n.k, &m, &t, &m, NULL), "'up' needs stride 1");
    nn_close(&n);
}
END_TEST

int
main(void)
{
    Suite *suite = suite_create("nn_rows");
    const TTest *const once[] = {swiglu, rotary, refusals};
    TCase *tc = tcase_create("kernels");
    tcase_set_timeout(tc, 600);
    for (size_t i = 0; i < sizeof once / sizeof *once; i++)
        tcase_add_test(tc, once[i]);
    int n = (int)(sizeof rows_of / sizeof *rows_of);
    tcase_add_loop_test(tc, rms_norm, 0, n);
    tcase_add_loop_test(tc, cross_entropy, 0, n);
    suite_add_tcase(suite, tc);
    return suite_finish("nn_rows", suite);
}
