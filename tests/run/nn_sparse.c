/* sdc_sparse_linear_*: block dropout and a linear layer, forward and backward, over every
   way that the planner has: tiles, parts of the inner dimension, both gradients in one
   launch, a list. Results lie between guard bands; elements of dead blocks are NaN. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tests/run/support/nn.h"

/* pad: elements more from row to row, of everything. */
typedef struct Sparse {
    SdcDtype t;
    int64_t m, n, k, pad;
    SdcBlockDropout d;
    /* of the explanations of forward and backward on sm_90a; NULL: anything */
    const char *y_says, *dx_says;
} Sparse;

/* Of `wants`, beside the gradients 1 dx and 2 dw: neighbours of a column of x are
   neighbours in memory. */
enum { X_BY_COLUMNS = 4 };

static void
says(Nn *n, const char *what)
{
    char why[1024];
    SdcDevice d;
    bool hopper = n->env.cuda && sdc_context_device(n->env.ctx, &d) == SDC_OK &&
                  strcmp(d.target, "sm_90a") == 0;
    sdc_nn_explain(n->k, why, sizeof why);
    ck_assert_msg(strstr(why, "sdc_sparse_linear_"), "%s", why);
    ck_assert_msg(!what || !hopper || strstr(why, what), "no '%s' in: %s", what, why);
}

/* The mask, and that of x transposed; what is dead in x is not to be read. */
static void
masks_of(const Sparse *s, int bm, int bk, Buf *x, int8_t *live, int8_t *turned)
{
    int64_t rows = ceil_div(s->m, bm), cols = ceil_div(s->k, bk);
    for (int64_t i = 0; i < rows * cols; i++) {
        uint32_t words[4];
        ref_philox_at(s->d.seed, (uint64_t)(s->d.offset + i), words);
        live[i] = turned[i % cols * rows + i / cols] = ref_uniform(words[0]) > s->d.p;
    }
    for (int64_t i = 0; i < s->m; i++)
        for (int64_t j = 0; j < s->k; j++)
            if (!live[i / bm * cols + j / bk])
                buf_set(x, i * x->strides[0] + j * x->strides[1], NAN);
}

static void
sparse_case(Nn *n, const Sparse *s, int wants)
{
    Env *env = &n->env;
    int64_t M = s->m, N = s->n, K = s->k;
    int bm = s->d.block_m ? s->d.block_m : 128, bk = s->d.block_k ? s->d.block_k : 128;
    int64_t rows = ceil_div(M, bm), cols = ceil_div(K, bk);
    int8_t *live = env_alloc(env, (size_t)(rows * cols));
    int8_t *live_t = env_alloc(env, (size_t)(rows * cols));
    bool columns = wants & X_BY_COLUMNS;
    Buf stored = columns ? buf_random(env, s->t, s->pad, DIMS(K, M))
                         : buf_random(env, s->t, s->pad, DIMS(M, K));
    Buf x = columns ? buf_swap(stored, 0, 1) : stored;
    Buf w = buf_random(env, s->t, s->pad, DIMS(K, N));
    Buf dy = buf_random(env, s->t, s->pad, DIMS(M, N));
    Buf y = buf_poison(env, s->t, s->pad, DIMS(M, N));
    Buf dx = buf_poison(env, s->t, s->pad, DIMS(M, K));
    Buf dw = buf_poison(env, s->t, s->pad, DIMS(K, N));
    masks_of(s, bm, bk, &x, live, live_t);
    SdcTensor tx = tensor(n, &x), tw = tensor(n, &w), tdy = tensor(n, &dy);
    SdcTensor ty = tensor(n, &y), tdx = tensor(n, &dx), tdw = tensor(n, &dw);
    SdcBlockDropout d = s->d; /* env_collect takes what is placed on a GPU away */
    if (d.workspace)
        d.workspace = env_place(env, d.workspace);
    for (int i = 0; i < 2; i++) /* the second one by the plan that was kept */
        good(n, sdc_sparse_linear_forward(n->k, &tx, &tw, &ty, &d, NULL));
    says(n, s->y_says);
    good(n, sdc_sparse_linear_backward(n->k, &tdy, &tx, &tw, wants & 1 ? &tdx : NULL,
                                       wants & 2 ? &tdw : NULL, &d, NULL));
    says(n, (wants & 3) == 3 ? s->dx_says : NULL);
    env_collect(env);
    Buf xt = buf_swap(x, 0, 1), wt = buf_swap(w, 0, 1);
    double scale = (double)(float)(1 / (1 - (double)d.p)), unit = dot_unit(env, s->t);
    int64_t most = M * N > K * N ? M * N : K * N;
    most = most > M * K ? most : M * K;
    double *want = env_doubles(env, most), *bound = env_doubles(env, most);
    RefMask mask = {live, cols, bm, bk}, turned = {live_t, rows, bk, bm};
    ref_dsd(M, N, K, buf_doubles(env, &x), buf_doubles(env, &w), &mask, scale, unit, want,
            bound);
    buf_check(env, &y, "sparse y", want, bound);
    if (wants & 1) {
        ref_sdd(M, K, N, buf_doubles(env, &dy), buf_doubles(env, &wt), &mask, scale, unit,
                want, bound);
        buf_check(env, &dx, "sparse dx", want, bound);
    }
    if (wants & 2) {
        ref_dsd(K, N, M, buf_doubles(env, &xt), buf_doubles(env, &dy), &turned, scale,
                unit, want, bound);
        buf_check(env, &dw, "sparse dw", want, bound);
    }
}

START_TEST(shapes)
{
    static const Sparse all[] = {
        {SDC_FP16, 256, 128, 256, 0, {.p = 0.4f, .seed = 5}, NULL, NULL},
        {SDC_FP32,
         100,
         50,
         130,
         3,
         {.p = 0.5f, .seed = -9, .offset = 100, .block_m = 32, .block_k = 64},
         NULL,
         NULL},
        /* rectangular, sizes that are multiples of no tile */
        {SDC_FP16, 72, 520, 136, 8, {.p = 0.3f, .seed = 2}, NULL, NULL},
        {SDC_BF16, 520, 24, 264, 0, {.p = 0.2f, .seed = 3, .block_m = 64}, NULL, NULL},
        {SDC_BF16, 33, 65, 129, 1, {.p = 0.6f, .seed = 4, .block_k = 32}, NULL, NULL},
        /* nothing is dead; as good as surely everything, whole rows with it */
        {SDC_FP16, 200, 72, 264, 0, {.p = 0, .seed = 7}, NULL, NULL},
        {SDC_FP16, 300, 64, 200, 0, {.p = 0.9999f, .seed = 8}, NULL, NULL},
        {SDC_BF16, 300, 64, 700, 0, {.p = 0.8f, .seed = 9}, NULL, NULL},
        /* one row, one column, one element */
        {SDC_FP16, 1, 64, 300, 0, {.p = 0.5f, .seed = 10}, NULL, NULL},
        {SDC_FP16, 64, 1, 300, 0, {.p = 0.5f, .seed = 11}, NULL, NULL},
        {SDC_FP16, 300, 64, 1, 0, {.p = 0.5f, .seed = 12}, NULL, NULL},
        /* more than 64 blocks in a row: words of several */
        {SDC_FP16,
         64,
         64,
         2200,
         0,
         {.p = 0.5f, .seed = 13, .block_m = 32, .block_k = 32},
         NULL,
         NULL}};
    Nn n = nn_open();
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        for (int wants = 3; wants >= (i % 3 ? 3 : 1); wants--)
            sparse_case(&n, &all[i], wants);
    nn_close(&n);
}
END_TEST

/* What the planner decides by. */
START_TEST(ways)
{
    static const Sparse all[] = {
        /* few tiles, long sums */
        {SDC_FP16, 64, 64, 4096, 0, {.p = 0.3f, .seed = 5}, " parts", NULL},
        {SDC_FP16, 2048, 64, 64, 0, {.p = 0.3f, .seed = 6}, NULL, "parts"},
        /* both gradients in one launch, in the orders of its tiles */
        {SDC_FP16, 1100, 40, 1024, 0, {.p = 0.1f, .seed = 0}, NULL, "one launch"},
        {SDC_FP16, 1100, 40, 1024, 0, {.p = 0.4f, .seed = 1}, NULL, "one launch"},
        {SDC_FP16, 1100, 40, 1024, 0, {.p = 0.8f, .seed = 2}, NULL, "one launch"},
        {SDC_FP16,
         2100,
         40,
         96,
         0,
         {.p = 0.3f, .seed = 4, .block_m = 32, .block_k = 32},
         NULL,
         NULL},
        /* rows that no tensor map takes */
        {SDC_FP16, 256, 129, 256, 0, {.p = 0.2f, .seed = 3}, NULL, NULL},
        /* small blocks, few of them dropped; where no tensor map takes x, too */
        {SDC_FP16,
         200,
         2056,
         1200,
         0,
         {.p = 0.05f, .seed = 3, .block_m = 32, .block_k = 32},
         NULL,
         "dx of all blocks"},
        {SDC_FP16,
         200,
         2056,
         1201,
         0,
         {.p = 0.05f, .seed = 5, .block_m = 32, .block_k = 32},
         "y by a plain matmul",
         "dw by a plain matmul"}};
    setenv("SIM_PROCESSORS", "132", 1); /* as an H200 has, on which plans are fitted */
    Nn n = nn_open();
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        sparse_case(&n, &all[i], 3 | (all[i].t == SDC_BF16 ? X_BY_COLUMNS : 0));
    nn_close(&n);
}
END_TEST

/* Ways that the planner takes for layers too large for this: all blocks are multiplied.
   As an H200 has SMs. */
START_TEST(whole)
{
    setenv("SIM_PROCESSORS", "132", 1);
    Nn n = nn_open();
    Sparse a = {.t = SDC_FP16,
                .m = 136,
                .n = 72,
                .k = 200,
                .d = {.p = 0.4f, .seed = 8, .block_m = 64, .block_k = 64},
                .y_says = "y of all blocks"};
    ck_assert_int_eq(sdc_nn_take(n.k, 7), SDC_OK);
    sparse_case(&n, &a, 3);
    a.t = SDC_BF16;
    a.y_says = NULL;
    char why[1024] = "";
    SdcDevice d;
    bool hopper = n.env.cuda && sdc_context_device(n.env.ctx, &d) == SDC_OK &&
                  strcmp(d.target, "sm_90a") == 0;
    for (int way = 8; way < 24 && !strstr(why, "dw of all blocks"); way++) {
        ck_assert_int_eq(sdc_nn_take(n.k, way), SDC_OK);
        sparse_case(&n, &a, 2);
        sdc_nn_explain(n.k, why, sizeof why);
        way += hopper ? 0 : 24; /* only Hopper has it */
    }
    ck_assert(!hopper || strstr(why, "dw of all blocks"));
    nn_close(&n);
}
END_TEST

/* With memory for one, on the CPU always. */
START_TEST(listed)
{
    Nn n = nn_open();
    void *work = env_alloc(&n.env, sdc_sparse_linear_workspace(n.k, 500, 700));
    Sparse a = {SDC_FP16, 500, 264, 700, 0, {.p = 0.3f, .seed = 1ll << 40}, NULL, NULL};
    a.d.offset = 9;
    a.d.workspace = work;
    sparse_case(&n, &a, 3);
    sparse_case(&n, &a, 1);
    sparse_case(&n, &a, 2);
    Sparse b = {SDC_BF16, 256, 100, 384, 0, {.p = 0.6f, .seed = 3}, NULL, NULL};
    b.d.workspace = work;
    sparse_case(&n, &b, 3);
    nn_close(&n);
}
END_TEST

int
main(void)
{
    return RUN_TESTS("nn_sparse", shapes, ways, whole, listed);
}
