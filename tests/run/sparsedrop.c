/* Block dropout fused with matmuls: the layer y = x w and both its gradients against
   their references, over every form of the kernels. Masks are drawn from a seed, in the
   matmuls themselves or beforehand into words; programs have a tile each, a part of the
   inner dimension, or take several tiles one after another.

   Elements of dead blocks are NaN where they are not to be read. */
#include <math.h>
#include <string.h>

#include "tests/run/support/harness.h"

static const SdcDtype floats[] = {SDC_FP32, SDC_FP16, SDC_BF16};
enum {
    NFLOATS = 3,
    SORTED = -1,
    PAIRS = -2,
    LISTED = -3,
    PARTS = -4,
    WHOLE = -5,
    WHOLE_PARTS = -6,
    NPARTS = 3
};

typedef struct Layer {
    int64_t M, N, K;
    int64_t mask_m, mask_k;        /* elements of x that a block of the mask covers */
    int block_m, block_n, block_k; /* tiles of M, N and K, for all three matmuls */
    float p;
    int64_t seed, first;
    int programs; /* 0: one for each tile; SORTED: those, most work first; PAIRS: sdd
                     takes two blocks; PARTS: the inner dimension in so many;
                     WHOLE: dead blocks are multiplied, too */
    bool stored;
} Layer;

/* The mask over a [rows, cols] of blocks, as a matmul sees it. */
typedef struct Mask {
    int64_t rows, cols, height, width, count_m, count_k;
    const int8_t *live;
    SdcArg words;
    int64_t stride;
    bool turned; /* of x transposed */
} Mask;

typedef struct Product {
    const char *name; /* dsd or sdd */
    const Buf *a, *b;
    Buf *c;
    int64_t M, N, K;
    int block_m, block_n, block_k;
} Product;

static const char *
layer_name(Env *env, const char *what, SdcDtype t, const Layer *l)
{
    return env_text(env, "%s %s %lldx%lldx%lld blocks %lldx%lld p %g programs %d %s",
                    what, sdc_dtype_name(t), (long long)l->M, (long long)l->N,
                    (long long)l->K, (long long)l->mask_m, (long long)l->mask_k,
                    (double)l->p, l->programs, l->stored ? "stored" : "seeded");
}

/* The mask of the reference; its words by kernel block_mask, checked bit by bit. */
static Mask
mask_make(Env *env, const Layer *l, bool turned)
{
    int64_t bm = ceil_div(l->M, l->mask_m), bk = ceil_div(l->K, l->mask_k);
    Mask m = {.rows = bm,
              .cols = bk,
              .height = l->mask_m,
              .width = l->mask_k,
              .count_m = bk,
              .count_k = 1,
              .words = sdc_none()};
    if (turned)
        m = (Mask){.rows = bk,
                   .cols = bm,
                   .height = l->mask_k,
                   .width = l->mask_m,
                   .count_m = 1,
                   .count_k = bk,
                   .words = sdc_none(),
                   .turned = true};
    int8_t *live = env_alloc(env, (size_t)(m.rows * m.cols));
    for (int64_t i = 0; i < m.rows * m.cols; i++) {
        uint32_t words[4];
        int64_t at = i / m.cols * m.count_m + i % m.cols * m.count_k;
        ref_philox_at(l->seed, (uint64_t)(l->first + at), words);
        live[i] = ref_uniform(words[0]) > l->p;
    }
    m.live = live;
    m.stride = ceil_div(m.cols, 64) + 1;
    if (!l->stored)
        return m;
    Buf words = buf_poison(env, SDC_I64, 1, DIMS(m.rows, m.stride - 1));
    m.words = buf_arg(&words);
    if (!LAUNCH(env, "block_mask", sdc_grid(ceil_div(m.rows, 4), ceil_div(m.cols, 64), 1),
                "BLOCK_R=4", m.words, sdc_int(m.rows), sdc_int(m.cols), sdc_int(m.stride),
                sdc_int(l->seed), sdc_int(l->first), sdc_float((double)l->p),
                sdc_int(m.count_m), sdc_int(m.count_k)))
        return m;
    for (int64_t i = 0; i < m.rows; i++)
        for (int64_t j = 0; j < ceil_div(m.cols, 64) * 64; j++) {
            uint64_t word;
            memcpy(&word, words.data + (i * m.stride + j / 64) * 8, sizeof(word));
            bool want = j < m.cols && live[i * m.cols + j];
            ck_assert_msg((word >> j % 64 & 1) == want, "block (%lld, %lld) of the mask",
                          (long long)i, (long long)j);
        }
    return m;
}

/* Sums of the parts, in their order, to where the result is. */
static void
parts_add(const Buf *parts, Buf *c)
{
    int64_t M = c->shape[0], N = c->shape[1];
    for (int64_t i = 0; i < M; i++)
        for (int64_t j = 0; j < N; j++) {
            float sum = 0;
            for (int q = 0; q < NPARTS; q++)
                sum += (float)buf_get(parts, (q * M + i) * parts->strides[0] +
                                                 j * parts->strides[1]);
            buf_set(c, i * c->strides[0] + j * c->strides[1], (double)sum);
        }
}

static int
power_over(int64_t n)
{
    int p = 1;
    while (p < n)
        p *= 2;
    return p;
}

/* By a kernel that multiplies all blocks; false: there is no result to compare. */
static bool
whole_launch(Env *env, const Layer *l, const Mask *m, Product *p, double scale)
{
    bool dsd = p->name[0] == 'd';
    int parts = l->programs == WHOLE_PARTS ? NPARTS : 1, rest = p->block_n / 2;
    int64_t tiles = ceil_div(p->M, p->block_m) * ceil_div(p->N, p->block_n + rest);
    int64_t part = ceil_div(ceil_div(p->K, parts), p->block_k) * p->block_k;
    const char *binds = env_text(
        env, "BLOCK_M=%d BLOCK_N=%d REST_N=%d BLOCK_K=%d MASK_M=%lld MASK_%c=%lld",
        p->block_m, p->block_n, rest, p->block_k, (long long)m->height, dsd ? 'K' : 'N',
        (long long)m->width);
    Buf sums = *p->c;
    if (parts > 1)
        sums = buf_poison(env, SDC_FP32, 3, DIMS(parts * p->M, p->N));
    SdcArg args[] = {buf_arg(p->a),
                     buf_arg(p->b),
                     buf_arg(&sums),
                     sdc_int(p->M),
                     sdc_int(p->N),
                     sdc_int(p->K),
                     sdc_float(scale),
                     sdc_int(p->a->strides[0]),
                     sdc_int(p->a->strides[1]),
                     sdc_int(p->b->strides[0]),
                     sdc_int(p->b->strides[1]),
                     sdc_int(sums.strides[0]),
                     sdc_int(sums.strides[1]),
                     sdc_int(l->seed),
                     sdc_int(l->first),
                     sdc_float((double)l->p),
                     sdc_int(m->count_m),
                     sdc_int(m->count_k),
                     sdc_int(parts),
                     sdc_int(part),
                     sdc_int(p->M * sums.strides[0])};
    bool ran = launch(env, dsd ? "dsd_whole" : "sdd_whole",
                      sdc_grid((int32_t)(tiles * parts), 1, 1), binds, args,
                      (int)(sizeof args / sizeof *args));
    if (parts > 1 && ran)
        parts_add(&sums, p->c);
    return ran || parts == 1;
}

/* False: there is no result to compare. */
static bool
product_launch(Env *env, const Layer *l, const Mask *m, Product *p, double scale)
{
    bool dsd = p->name[0] == 'd', sorted = l->programs == SORTED;
    int64_t tiles_m = ceil_div(p->M, p->block_m), tiles_n = ceil_div(p->N, p->block_n);
    int rows = 1;
    while (rows < tiles_m)
        rows *= 2;
    const char *binds =
        env_text(env, "BLOCK_M=%d BLOCK_N=%d BLOCK_K=%d MASK_M=%lld MASK_%c=%lld",
                 p->block_m, p->block_n, p->block_k, (long long)m->height,
                 dsd ? 'K' : 'N', (long long)m->width);
    int cols = rows > 8 ? 8 : 16; /* more and fewer than there are */
    if (sorted)
        /* Rows are ranked by all pairs of them: many are too many for a warp alone. */
        binds = env_text(env, "%s ROWS=%d COLS=%d%s", binds, rows, cols,
                         rows > 128 ? " num_warps=8" : "");
    if (sorted && !dsd)
        tiles_n = ceil_div(p->N, m->width) * (m->width / p->block_n);
    bool pairs = l->programs == PAIRS && !dsd && m->width == p->block_n;
    if (pairs)
        tiles_n = ceil_div(p->N, m->width) / 2 + 1;
    int64_t programs = tiles_m * tiles_n;
    if (dsd)
        binds = env_text(env, "%s ONE_WORD=%s", binds, m->cols <= 64 ? "True" : "False");
    int parts = l->programs == PARTS ? NPARTS : 1;
    Buf sums = *p->c;
    if (parts > 1)
        sums = buf_poison(env, SDC_FP32, 3, DIMS(parts * p->M, p->N));
    SdcArg more[3] = {sdc_int(sorted ? 4 : programs), sdc_int(parts),
                      sdc_int(p->M * sums.strides[0])};
    SdcArg args[] = {buf_arg(p->a),
                     buf_arg(p->b),
                     buf_arg(&sums),
                     m->words,
                     sdc_int(p->M),
                     sdc_int(p->N),
                     sdc_int(p->K),
                     sdc_float(scale),
                     sdc_int(p->a->strides[0]),
                     sdc_int(p->a->strides[1]),
                     sdc_int(p->b->strides[0]),
                     sdc_int(p->b->strides[1]),
                     sdc_int(sums.strides[0]),
                     sdc_int(sums.strides[1]),
                     sdc_int(m->stride),
                     sdc_int(l->seed),
                     sdc_int(l->first),
                     sdc_float((double)l->p),
                     sdc_int(m->count_m),
                     sdc_int(m->count_k),
                     more[dsd ? 0 : 1],
                     more[dsd ? 1 : 2],
                     more[2]};
    int n = (int)(sizeof args / sizeof *args);
    const char *kernel = dsd ? "dsd_matmul" : pairs ? "sdd_pairs" : "sdd_matmul";
    bool ran =
        launch(env, kernel, sdc_grid((int32_t)(programs * parts), 1, 1), binds, args,
               dsd     ? n
               : pairs ? n - 3
                       : n - 1);
    if (parts > 1 && ran)
        parts_add(&sums, p->c);
    return ran || parts == 1;
}

/* What kernel work_list makes of the seed: of the mask, and behind it of the transposed
   one. */
typedef struct List {
    SdcArg order[2], words[2], work;
} List;

enum { PROGRAMS = 3 };

static List
list_make(Env *env, const Layer *l, int64_t rows, int64_t cols, int few)
{
    int size = power_over(rows > cols ? rows : cols);
    int32_t *order = env_alloc(env, (size_t)(2 * size) * sizeof(*order));
    int64_t *words = env_alloc(env, (size_t)(2 * size) * sizeof(*words));
    Buf work = buf_poison(env, SDC_I32, 0, DIMS(4 + 3 * rows * cols));
    List list = {.work = buf_arg(&work)};
    for (int i = 0; i < 2; i++) {
        list.order[i] = sdc_ptr(SDC_I32, order + i * size);
        list.words[i] = sdc_ptr(SDC_I64, words + i * size);
    }
    LAUNCH(env, "work_list", sdc_grid(2, 1, 1), env_text(env, "SIZE=%d", size),
           list.order[0], list.work, list.words[0], sdc_int(rows), sdc_int(cols),
           sdc_int(l->seed), sdc_int(l->first), sdc_float((double)l->p), sdc_int(cols),
           sdc_int(1), sdc_int(few));
    return list;
}

/* From the list; rows of tiles are blocks. */
static void
listed_launch(Env *env, const Layer *l, const Mask *m, Product *p, double scale)
{
    p->block_m = (int)m->height;
    List list = list_make(env, l, m->turned ? m->cols : m->rows,
                          m->turned ? m->rows : m->cols, 0);
    const char *binds =
        env_text(env, "BLOCK_M=%d BLOCK_N=%d BLOCK_K=%d MASK_M=%d MASK_K=%lld",
                 p->block_m, p->block_n, p->block_k, p->block_m, (long long)m->width);
    LAUNCH(env, "dsd_listed", sdc_grid(PROGRAMS, 1, 1), binds, buf_arg(p->a),
           buf_arg(p->b), buf_arg(p->c), list.order[m->turned], list.words[m->turned],
           sdc_int(p->M), sdc_int(p->N), sdc_int(p->K), sdc_float(scale),
           sdc_int(p->a->strides[0]), sdc_int(p->a->strides[1]),
           sdc_int(p->b->strides[0]), sdc_int(p->b->strides[1]),
           sdc_int(p->c->strides[0]), sdc_int(p->c->strides[1]));
}

static void
product_check(Env *env, const Layer *l, const Mask *m, const Product *p)
{
    double scale = 1 / (1 - (double)l->p);
    RefMask mask = {m->live, m->cols, m->height, m->width};
    double *want = env_doubles(env, p->M * p->N), *bound = env_doubles(env, p->M * p->N);
    (p->name[0] == 'd' ? ref_dsd : ref_sdd)(
        p->M, p->N, p->K, buf_doubles(env, p->a), buf_doubles(env, p->b), &mask,
        (double)(float)scale, dot_unit(env, p->a->dtype), want, bound);
    buf_check(env, p->c, layer_name(env, p->name, p->c->dtype, l), want, bound);
}

static void
product_run(Env *env, const Layer *l, const Mask *m, Product *p)
{
    bool whole = l->programs == WHOLE || l->programs == WHOLE_PARTS;
    if (p->name[0] == 'd' && p->block_k > m->width)
        p->block_k = (int)m->width; /* a step is never more than a block */
    double scale = 1 / (1 - (double)l->p);
    bool has = true;
    if (l->programs == LISTED && p->name[0] == 'd')
        listed_launch(env, l, m, p, scale);
    else if (whole)
        has = whole_launch(env, l, m, p, scale);
    else if (l->programs != LISTED)
        has = product_launch(env, l, m, p, scale);
    if (has)
        product_check(env, l, m, p);
}

/* Both gradients at once, by `programs`, from the list. */
static void
gradients_run(Env *env, const Layer *l, const Mask *m, const Mask *mt, int programs,
              const Buf *x, const Buf *w, const Buf *dy, Product *dx, Product *dw)
{
    List list = list_make(env, l, m->rows, m->cols, programs);
    int step = l->block_m < m->height ? l->block_m : (int)m->height;
    const char *binds =
        env_text(env, "MASK_M=%lld MASK_K=%lld BLOCK_N=%d STEP=%d", (long long)m->height,
                 (long long)m->width, l->block_n, step);
    bool alone = programs == 9; /* dx */
    if (alone)
        binds = env_text(env, "%s BOTH=False", binds);
    SdcArg dx_arg = buf_arg(dx->c), dw_arg = buf_arg(dw->c);
    LAUNCH(env, "gradients_listed", sdc_grid(programs, 1, 1), binds, buf_arg(dy),
           buf_arg(x), buf_arg(w), dx_arg, dx_arg, dx_arg, dw_arg, dw_arg, list.work,
           list.order[1], list.words[1], sdc_int(l->M), sdc_int(l->N), sdc_int(l->K),
           sdc_float(1 / (1 - (double)l->p)), sdc_int(dy->strides[0]),
           sdc_int(dy->strides[1]), sdc_int(x->strides[0]), sdc_int(x->strides[1]),
           sdc_int(w->strides[0]), sdc_int(w->strides[1]), sdc_int(dx->c->strides[0]),
           sdc_int(dx->c->strides[1]), sdc_int(dw->c->strides[0]),
           sdc_int(dw->c->strides[1]));
    product_check(env, l, m, dx);
    if (!alone)
        product_check(env, l, mt, dw);
}

/* The same by a program for each tile, whose masks are drawn from the seed. */
static void
gradients_seeded(Env *env, const Layer *l, const Mask *m, const Mask *mt, const Buf *x,
                 const Buf *w, const Buf *dy, Product *dx, Product *dw)
{
    bool sorted = l->programs == SORTED;
    int64_t wide = ceil_div(l->K, l->block_k);
    if (sorted)
        wide = ceil_div(l->K, m->width) * (m->width / l->block_k);
    int64_t programs = ceil_div(l->M, l->block_m) * wide +
                       ceil_div(l->K, l->block_k) * ceil_div(l->N, l->block_n);
    const char *binds = env_text(
        env,
        "MASK_M=%lld MASK_K=%lld BLOCK_M=%d BLOCK_K=%d BLOCK_N=%d STEP=%d ROWS=%d "
        "SORTED=%d ONE_WORD=%s",
        (long long)m->height, (long long)m->width, l->block_m, l->block_k, l->block_n,
        l->block_m, sorted ? power_over(ceil_div(l->M, l->block_m)) : 0,
        sorted ? power_over(ceil_div(l->K, l->block_k)) : 0,
        m->rows <= 64 ? "True" : "False");
    LAUNCH(env, "gradients_matmul", sdc_grid(programs, 1, 1), binds, buf_arg(dy),
           buf_arg(x), buf_arg(w), buf_arg(dx->c), buf_arg(dw->c), sdc_int(l->M),
           sdc_int(l->N), sdc_int(l->K), sdc_float(1 / (1 - (double)l->p)),
           sdc_int(dy->strides[0]), sdc_int(dy->strides[1]), sdc_int(x->strides[0]),
           sdc_int(x->strides[1]), sdc_int(w->strides[0]), sdc_int(w->strides[1]),
           sdc_int(dx->c->strides[0]), sdc_int(dx->c->strides[1]),
           sdc_int(dw->c->strides[0]), sdc_int(dw->c->strides[1]), sdc_int(l->seed),
           sdc_int(l->first), sdc_float((double)l->p), sdc_int(sorted ? 2 : 0),
           sdc_int(1), sdc_int(0));
    product_check(env, l, m, dx);
    product_check(env, l, mt, dw);
}

static void
kill_blocks(Buf *x, const Mask *m)
{
    for (int64_t i = 0; i < x->shape[0]; i++)
        for (int64_t j = 0; j < x->shape[1]; j++)
            if (!m->live[i / m->height * m->cols + j / m->width])
                buf_set(x, i * x->strides[0] + j * x->strides[1], NAN);
}

/* y = x w, dx = dy w^T and dw = x^T dy, with blocks of x dropped. */
static void
layer_run(Env *env, SdcDtype t, const Layer *l)
{
    int64_t M = l->M, N = l->N, K = l->K;
    int bm = l->block_m, bn = l->block_n, bk = l->block_k;
    Buf x = buf_random(env, t, 0, DIMS(M, K)), w = buf_random(env, t, 1, DIMS(K, N));
    Buf dy = buf_random(env, t, 0, DIMS(M, N));
    Buf y = buf_poison(env, t, 2, DIMS(M, N)), dx = buf_poison(env, t, 2, DIMS(M, K));
    Buf dw = buf_poison(env, t, 0, DIMS(K, N));
    Buf xt = buf_swap(x, 0, 1), wt = buf_swap(w, 0, 1);
    Mask m = mask_make(env, l, false), mt = mask_make(env, l, true);
    kill_blocks(&x, &m);
    Product py = {"dsd", &x, &w, &y, M, N, K, bm, bn, bk};
    Product pdx = {"sdd", &dy, &wt, &dx, M, K, N, bm, bk, bn};
    Product pdw = {"dsd", &xt, &dy, &dw, K, N, M, bk, bn, bm};
    product_run(env, l, &m, &py);
    if (l->programs == LISTED) {
        for (int programs = 1; programs <= 27; programs *= 3) {
            dx = buf_poison(env, t, 2, DIMS(M, K));
            dw = buf_poison(env, t, 0, DIMS(K, N));
            gradients_run(env, l, &m, &mt, programs, &x, &w, &dy, &pdx, &pdw);
        }
        dw = buf_poison(env, t, 0, DIMS(K, N));
    } else {
        product_run(env, l, &m, &pdx);
    }
    product_run(env, l, &mt, &pdw);
    if ((l->programs == 0 || l->programs == SORTED) && !l->stored && m.height % bm == 0 &&
        m.width % bk == 0) {
        dx = buf_poison(env, t, 2, DIMS(M, K));
        dw = buf_poison(env, t, 0, DIMS(K, N));
        gradients_seeded(env, l, &m, &mt, &x, &w, &dy, &pdx, &pdw);
    }
}

/* Whole tiles and ragged ones; blocks as tiles and larger; no block dead, most, and, as
   good as surely, all. */
static const Layer layers[] = {
    {64, 64, 64, 32, 16, 32, 32, 16, 0.4f, 7, 0, 0, false},
    {100, 70, 90, 64, 32, 32, 32, 16, 0.25f, 1ll << 40, 5, 0, false},
    {33, 20, 17, 32, 16, 32, 16, 16, 0.0f, -3, 1ll << 33, 0, false},
    {128, 64, 96, 32, 32, 16, 32, 32, 0.9f, 11, 0, 0, false},
    {40, 33, 64, 16, 16, 16, 16, 16, 0.9999f, 2, 0, 0, false},
};
enum { NLAYERS = (int)(sizeof(layers) / sizeof(layers[0])) };

/* Each layer in one of the types, another one for another `turn`. */
static void
layers_run(int programs, int turn)
{
    Env env = env_open("sparsedrop");
    for (int i = 0; i < NLAYERS; i++) {
        Layer l = layers[i];
        env.at_end = (turn + i) % 2;
        l.programs = programs;
        l.stored = (i + turn) % 2;
        layer_run(&env, floats[(turn + i) % NFLOATS], &l);
    }
    env_close(&env);
}

START_TEST(tiles)
{
    for (int t = 0; t < NFLOATS; t++)
        layers_run(0, t);
}
END_TEST

START_TEST(sorted)
{
    layers_run(SORTED, 1);
}
END_TEST

START_TEST(pairs)
{
    layers_run(PAIRS, 2);
}
END_TEST

START_TEST(parts)
{
    layers_run(PARTS, 0);
}
END_TEST

START_TEST(listed)
{
    Env env = env_open("sparsedrop_list");
    for (int i = 0; i < NLAYERS; i++) {
        Layer l = layers[i];
        l.programs = LISTED;
        env.at_end = i % 2;
        layer_run(&env, floats[i % NFLOATS], &l);
    }
    env_close(&env);
}
END_TEST

/* Tiles of several blocks, some of which live. */
START_TEST(large)
{
    static const Layer many[] = {
        {64, 64, 64, 16, 16, 32, 32, 32, 0.5f, 21, 0, 0, false},
        {70, 50, 90, 16, 16, 64, 32, 64, 0.7f, 22, 3, 0, false},
        {33, 40, 100, 16, 32, 32, 16, 64, 0.4f, 23, 0, 0, false},
        {96, 32, 48, 32, 16, 16, 32, 32, 0.9f, 24, 0, 0, false},
    };
    Env env = env_open("sparsedrop");
    for (int i = 0; i < 8; i++) {
        Layer l = many[i / 2];
        env.at_end = i / 2 % 2;
        l.stored = i % 2;
        layer_run(&env, floats[i % NFLOATS], &l);
    }
    env_close(&env);
}
END_TEST

/* All blocks multiplied: tiles of a block, of a part of one, and of several. */
START_TEST(whole)
{
    static const Layer all[] = {
        {64, 64, 64, 32, 16, 32, 32, 16, 0.4f, 7, 0, 0, false},
        {100, 70, 90, 64, 32, 32, 32, 16, 0.25f, 1ll << 40, 5, 0, false},
        {70, 50, 90, 16, 16, 64, 32, 64, 0.7f, 22, 3, 0, false},
        {33, 40, 100, 16, 32, 32, 16, 64, 0.4f, 23, 0, 0, false},
        {33, 20, 17, 32, 16, 32, 16, 16, 0.9999f, -3, 1ll << 33, 0, false},
        {16, 20, 16 * 130 - 5, 16, 16, 16, 16, 32, 0.5f, 19, 0, 0, false},
        {16 * 70 - 3, 20, 40, 16, 16, 32, 16, 32, 0.5f, 20, 0, 0, false},
    };
    Env env = env_open("sparsedrop_whole");
    for (int i = 0; i < (int)(sizeof all / sizeof *all); i++) {
        Layer l = all[i];
        env.at_end = i % 2;
        l.programs = i % 3 == 2 ? WHOLE_PARTS : WHOLE;
        layer_run(&env, floats[(i + 1) % NFLOATS], &l);
    }
    env_close(&env);
}
END_TEST

/* Rows of more than 64 blocks have masks of several words. */
START_TEST(words)
{
    Env env = env_open("sparsedrop");
    for (int i = 0; i < 6; i++) {
        Layer l = {16, 20, 16 * 130 - 5, 16, 16, 16, 16, 16, 0.5f, 19, 0, 0, false};
        l.programs = i == 3 ? SORTED : i == 1 ? PAIRS : i == 5 ? PARTS : 0;
        l.stored = i / 2 == 1;
        if (i > 3) { /* those of x transposed */
            l.M = l.K;
            l.K = 16;
        }
        layer_run(&env, SDC_FP32, &l);
    }
    env_close(&env);
}
END_TEST

int
main(void)
{
    return RUN_TESTS("sparsedrop", tiles, sorted, pairs, parts, listed, large, whole,
                     words);
}
