/* The kernels of a training step against their references: odd sizes, rows with gaps,
   every type, targets that do not count, results in the place of operands. */
#include <math.h>
#include <string.h>

#include "tests/run/support/harness.h"

static const SdcDtype floats[] = {SDC_FP32, SDC_FP16, SDC_BF16};
enum { NFLOATS = 3, IGNORE = -100 };

static int64_t
power_above(int64_t n)
{
    int64_t p = 1;
    while (p < n)
        p *= 2;
    return p;
}

/* Integers below `limit` as a buffer of type t, and as the reference wants them. */
static Buf
buf_whole(Env *env, SdcDtype t, int64_t n, int64_t limit, int64_t **out)
{
    Buf b = buf_random(env, t, 0, DIMS(n));
    *out = env_alloc(env, (size_t)n * sizeof(**out));
    for (int64_t i = 0; i < n; i++) {
        (*out)[i] = (int64_t)(env_random(env) % (uint64_t)limit);
        buf_set(&b, i, (double)(*out)[i]);
    }
    return b;
}

/* ---- cross entropy */

static void
entropy(Env *env, SdcDtype t, int64_t rows, int64_t cols, int64_t programs, bool in_place)
{
    double *all = env_doubles(env, 2 * (rows * cols + rows));
    RefEntropy e = {.rows = rows,
                    .cols = cols,
                    .ignore = IGNORE,
                    .scale = (double)(1.0f / (float)rows),
                    .dx = all,
                    .dx_bound = all + rows * cols,
                    .loss = all + 2 * rows * cols,
                    .loss_bound = all + 2 * rows * cols + rows};
    int64_t *targets;
    Buf x = buf_random(env, t, 3, DIMS(rows, cols));
    Buf target = buf_whole(env, rows % 2 ? SDC_I32 : SDC_I64, rows, cols, &targets);
    int64_t others[] = {[1] = IGNORE, [2] = cols, [3] = -1}; /* the last: no columns */
    for (int64_t i = 1; i < 4 && rows > i + 1; i++) {
        targets[i] = others[i];
        buf_set(&target, i, (double)others[i]);
    }
    e.x = buf_doubles(env, &x);
    e.target = targets;
    ref_cross_entropy(&e);
    for (int online = 0; online < 2; online++) {
        if (in_place && online)
            continue;
        const char *kernel = online ? "cross_entropy_online" : "cross_entropy";
        Buf loss = buf_poison(env, SDC_FP32, 0, DIMS(rows));
        Buf dx = in_place ? x : buf_poison(env, t, 1, DIMS(rows, cols));
        int64_t block = online ? 32 : power_above(cols);
        for (int only = online; only >= 0; only--) {
            LAUNCH(env, kernel, sdc_grid(programs, 1, 1),
                   env_text(env, "BLOCK=%lld", (long long)block), buf_arg(&x),
                   buf_arg(&target), buf_arg(&loss), only ? sdc_none() : buf_arg(&dx),
                   sdc_int(x.strides[0]), sdc_int(dx.strides[0]), sdc_int(rows),
                   sdc_int(cols), sdc_float(e.scale), sdc_int(IGNORE));
            buf_check(env, &loss, kernel, e.loss, e.loss_bound);
        }
        buf_check(env, &dx, kernel, e.dx, e.dx_bound);
    }
}

START_TEST(cross_entropy)
{
    static const int64_t shapes[][3] = {{1, 1, 1}, {5, 129, 5}, {8, 1000, 3}, {3, 64, 2}};
    Env env = env_open("cross_entropy");
    for (int t = 0; t < NFLOATS; t++)
        for (int s = 0; s < 4; s++) {
            env.at_end = (t + s) % 2;
            entropy(&env, floats[t], shapes[s][0], shapes[s][1], shapes[s][2], s == 3);
        }
    env_close(&env);
}
END_TEST

/* ---- AdamW */

static void
adamw(Env *env, SdcDtype grad, SdcDtype narrow, int64_t n)
{
    double *all = env_doubles(env, 3 * n);
    Buf w = buf_random(env, SDC_FP32, 0, DIMS(n)), g = buf_random(env, grad, 0, DIMS(n));
    Buf m = buf_random(env, SDC_FP32, 0, DIMS(n)),
        v = buf_random(env, SDC_FP32, 0, DIMS(n));
    Buf copy = buf_poison(env, narrow, 0, DIMS(n));
    for (int64_t i = 0; i < n; i++)
        buf_set(&v, i, fabs(buf_get(&v, i)));
    RefAdam a = {.n = n,
                 .g = buf_doubles(env, &g),
                 .w = buf_doubles(env, &w),
                 .m = buf_doubles(env, &m),
                 .v = buf_doubles(env, &v),
                 .scale = 0.25,
                 .lr = (double)1e-2f,
                 .beta1 = (double)0.9f,
                 .beta2 = (double)0.999f,
                 .eps = (double)1e-8f,
                 .decay = (double)0.1f,
                 .fix1 = (double)(float)(1 - pow(0.9, 3)),
                 .fix2 = (double)(float)(1 - pow(0.999, 3)),
                 .w_bound = all,
                 .m_bound = all + n,
                 .v_bound = all + 2 * n};
    bool has_copy = narrow != SDC_FP32;
    LAUNCH(env, "adamw", sdc_grid(ceil_div(n, 128), 1, 1), "BLOCK=128", buf_arg(&w),
           buf_arg(&g), buf_arg(&m), buf_arg(&v), has_copy ? buf_arg(&copy) : sdc_none(),
           sdc_int(n), sdc_float(a.scale), sdc_float(a.lr), sdc_float(a.beta1),
           sdc_float(a.beta2), sdc_float(a.eps), sdc_float(a.decay), sdc_float(a.fix1),
           sdc_float(a.fix2));
    ref_adamw(&a);
    buf_check(env, &m, "m", a.m, a.m_bound);
    buf_check(env, &v, "v", a.v, a.v_bound);
    buf_check(env, &w, "w", a.w, a.w_bound);
    if (has_copy)
        buf_check(env, &copy, "copy", a.w, a.w_bound);
}

START_TEST(adamw_step)
{
    static const int64_t sizes[] = {1, 127, 1000};
    Env env = env_open("adamw");
    for (int t = 0; t < NFLOATS; t++)
        for (int s = 0; s < 3; s++) {
            env.at_end = (t + s) % 2;
            adamw(&env, floats[t], floats[s], sizes[s]);
        }
    env_close(&env);
}
END_TEST

/* ---- activations */

START_TEST(activations)
{
    static const int64_t sizes[] = {1, 257, 1000};
    static const struct {
        const char *bind;
        RefAct act;
    } acts[] = {{"BLOCK=256 ACT=\"relu\"", REF_RELU},
                {"BLOCK=256 ACT=\"silu\"", REF_SILU},
                {"BLOCK=256 ACT=\"gelu\"", REF_GELU}};
    Env env = env_open("activation");
    for (int t = 0; t < NFLOATS; t++)
        for (int k = 0; k < 3; k++) {
            int64_t n = sizes[(t + k) % 3];
            env.at_end = (t + k) % 2;
            double *all = env_doubles(&env, 4 * n);
            Buf x = buf_random(&env, floats[t], 0, DIMS(n));
            Buf dy = buf_random(&env, floats[t], 0, DIMS(n));
            Buf y = buf_poison(&env, floats[t], 0, DIMS(n));
            buf_set(&x, 0, 0.0);
            ref_activation(acts[k].act, n, buf_doubles(&env, &x), buf_doubles(&env, &dy),
                           all, all + n, all + 2 * n, all + 3 * n);
            SdcGrid grid = sdc_grid(ceil_div(n, 256), 1, 1);
            LAUNCH(&env, "act_fwd", grid, acts[k].bind, buf_arg(&x), buf_arg(&y),
                   sdc_int(n));
            buf_check(&env, &y, acts[k].bind, all, all + n);
            LAUNCH(&env, "act_bwd", grid, acts[k].bind, buf_arg(&dy), buf_arg(&x),
                   buf_arg(&dy), sdc_int(n));
            buf_check(&env, &dy, acts[k].bind, all + 2 * n, all + 3 * n);
        }
    env_close(&env);
}
END_TEST

/* ---- embeddings */

static void
embedding(Env *env, SdcDtype t, int64_t tokens, int64_t words, int64_t length,
          int64_t dim)
{
    double *all = env_doubles(env, 2 * dim * (tokens + words + length));
    int64_t *ids;
    Buf token = buf_whole(env, dim % 2 ? SDC_I64 : SDC_I32, tokens, words, &ids);
    Buf table = buf_random(env, t, 0, DIMS(words, dim));
    Buf place = buf_random(env, t, 0, DIMS(length, dim));
    Buf dy = buf_random(env, t, 0, DIMS(tokens, dim));
    Buf out = buf_poison(env, t, 0, DIMS(tokens, dim));
    Buf dtable = buf_poison(env, t, 0, DIMS(words, dim));
    Buf added = buf_random(env, SDC_FP32, 0, DIMS(words, dim));
    Buf dplace = buf_poison(env, t, 0, DIMS(length, dim));
    RefEmbedding e = {.tokens = tokens,
                      .words = words,
                      .length = length,
                      .dim = dim,
                      .token = ids,
                      .table = buf_doubles(env, &table),
                      .place = words % 2 ? buf_doubles(env, &place) : NULL,
                      .dy = buf_doubles(env, &dy)};
    e.out = all;
    e.out_bound = e.out + tokens * dim;
    e.dtable = e.out_bound + tokens * dim;
    e.dtable_bound = e.dtable + words * dim;
    e.dplace = e.dtable_bound + words * dim;
    e.dplace_bound = e.dplace + length * dim;
    ref_embedding(&e);
    for (int64_t i = 0; i < words * dim; i++)
        buf_set(&added, i, 0.0);
    const char *row = env_text(env, "BLOCK=%lld", (long long)power_above(dim));
    LAUNCH(env, "embedding_fwd", sdc_grid(tokens, 1, 1), row, buf_arg(&token),
           buf_arg(&table), e.place ? buf_arg(&place) : sdc_none(), buf_arg(&out),
           sdc_int(length), sdc_int(dim));
    buf_check(env, &out, "out", e.out, e.out_bound);
    LAUNCH(env, "embedding_bwd", sdc_grid(words, ceil_div(dim, 32), 1),
           "BLOCK_T=16 BLOCK_C=32", buf_arg(&token), buf_arg(&dy), buf_arg(&dtable),
           sdc_int(tokens), sdc_int(dim));
    buf_check(env, &dtable, "dtable", e.dtable, e.dtable_bound);
    LAUNCH(env, "embedding_bwd_add", sdc_grid(tokens, 1, 1), row, buf_arg(&token),
           buf_arg(&dy), buf_arg(&added), sdc_int(dim));
    buf_check(env, &added, "added", e.dtable, e.dtable_bound);
    LAUNCH(env, "embedding_place_bwd", sdc_grid(length, 1, 1), row, buf_arg(&dy),
           buf_arg(&dplace), sdc_int(tokens), sdc_int(length), sdc_int(dim));
    buf_check(env, &dplace, "dplace", e.dplace, e.dplace_bound);
}

START_TEST(embeddings)
{
    static const int64_t shapes[][4] = {
        {1, 1, 1, 1}, {37, 5, 12, 33}, {100, 50, 100, 64}};
    Env env = env_open("embedding");
    for (int t = 0; t < NFLOATS; t++)
        for (int s = 0; s < 3; s++) {
            env.at_end = (t + s) % 2;
            embedding(&env, floats[t], shapes[s][0], shapes[s][1], shapes[s][2],
                      shapes[s][3]);
        }
    env_close(&env);
}
END_TEST

int
main(void)
{
    return RUN_TESTS("training", cross_entropy, adamw_step, activations, embeddings);
}
