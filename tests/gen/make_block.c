/* Matrices in memory: blocks by block pointers and descriptors, partly outside, also one
   after another in a loop; strides of any number and sign that the launch decides. */
#include "tests/gen/gen.h"

/* Blocks of a matrix of `rows` x `cols` in an input, partly outside. */
typedef struct Matrix {
    Dt dt;
    int rows, cols, stride, bm, bn;
    Type block;
} Matrix;

static bool
matrix_of(Gen *g, Matrix *m, unsigned dts)
{
    Tree *t = g->tree;
    m->dt = dt_of(g, dts);
    int least = 16 / dt_info[m->dt].bytes;
    m->bn = least * (chance(g, 50) ? 1 : 2);
    if (m->bn > t->n)
        return false;
    m->bm = 1 << between(g, 0, log2_of(t->n / m->bn));
    if (m->bm > 32)
        m->bm = 32;
    m->stride = least * between(g, 1, t->len / least > 6 ? 6 : t->len / least);
    int most = t->len / m->stride;
    m->rows = between(g, 1, most > 40 ? 40 : most);
    m->cols = between(g, 1, m->stride);
    m->block = (Type){.dt = m->dt, .rank = 2, .dim = {m->bm, m->bn}};
    return true;
}

Value *
make_descriptor(Gen *g)
{
    Matrix m;
    if (!matrix_of(g, &m, INTS | FLOATS))
        return NULL;
    bool nan = BIT(m.dt) & FLOATS && chance(g, 20);
    g->tree->aligned = true;
    const char *sig = dt_info[m.dt].sig;
    Value *d = let(g, scalar(I32),
                   "tl.make_tensor_descriptor(p_%s, shape=[%d, %d], strides=[%d, 1], "
                   "block_shape=[%d, %d]%s)",
                   sig, m.rows, m.cols, m.stride, m.bm, m.bn,
                   nan ? ", padding_option=\"nan\"" : "");
    d->flags = V_SPECIAL;
    const char *row = one_of(g, "0|pid|-1|pid * 2 - 1|1|pid * 16|3");
    const char *col = one_of(g, "0|pid|1|-1|3");
    Value *v = loaded(let(g, m.block, "$.load([%s, %d * (%s)])", d, row,
                          16 / dt_info[m.dt].bytes, col));
    if (nan)
        v->flags = V_WILD;
    return v;
}

/* Dimensions that are not checked lie within: their offset is 0. */
Value *
make_block(Gen *g)
{
    Matrix m;
    if (!g->old || !matrix_of(g, &m, INTS | FLOATS))
        return NULL;
    Tree *t = g->tree;
    bool flipped = chance(g, 25), rows = true, cols = true;
    if (m.stride >= m.bn && chance(g, 30)) {
        cols = false;
        m.cols = m.stride;
    } else if (m.rows >= m.bm && chance(g, 40)) {
        rows = false;
    }
    const char *at_row = rows ? one_of(g, "0|pid|-1|pid * 2 - 1|1|3|pid * 8") : "0";
    const char *at_col = cols ? one_of(g, "0|pid|1|-1|3|4") : "0";
    const char *first = flipped ? at_col : at_row, *second = flipped ? at_row : at_col;
    Value *p =
        let(g, scalar(I32),
            "tl.make_block_ptr(p_%s, shape=(%d, %d), strides=(%s), offsets=(%s, %s), "
            "block_shape=(%d, %d), order=%s)",
            dt_info[m.dt].sig, flipped ? m.cols : m.rows, flipped ? m.rows : m.cols,
            tree_text(t, flipped ? "1, %d" : "%d, 1", m.stride), first, second,
            flipped ? m.bn : m.bm, flipped ? m.bm : m.bn, flipped ? "(0, 1)" : "(1, 0)");
    p->flags = V_SPECIAL;
    if (chance(g, 40)) {
        const char *by_row = rows ? one_of(g, "0|1|-1|pid") : "0";
        const char *by_col = cols ? one_of(g, "0|1|4|-2|pid * 3") : "0";
        p = let(g, scalar(I32), "tl.advance($, (%s, %s))", p, flipped ? by_col : by_row,
                flipped ? by_row : by_col);
        p->flags = V_SPECIAL;
    }
    Type s = m.block;
    if (flipped) {
        s.dim[0] = m.bn;
        s.dim[1] = m.bm;
    }
    const char *check = rows && cols ? "(0, 1)" : rows != flipped ? "(0,)" : "(1,)";
    const char *pad = "";
    if (chance(g, 60))
        pad = BIT(m.dt) & FLOATS && chance(g, 40) ? ", padding_option=\"nan\""
                                                  : ", padding_option=\"zero\"";
    Value *v = loaded(let(g, s, "tl.load($, boundary_check=%s%s)", p, check, pad));
    if (pad[0] && pad[18] == 'n')
        v->flags = V_WILD;
    return v;
}

/* Some rows, by a list of their numbers. */
static Value *
gathered_rows(Gen *g)
{
    Matrix m;
    if (!matrix_of(g, &m, INTS | FLOATS))
        return NULL;
    int rows = 8 << between(g, 0, 2), least = 32 / dt_info[m.dt].bytes;
    if (m.bn < least)
        m.bn = least;
    if (m.bn > m.stride || rows * m.bn > g->tree->n)
        return NULL;
    Dt from = dt_of(g, INTS);
    Type r = {.dt = from, .rank = 1, .dim = {rows}};
    Value *ix = let(g, r, "tl.load(p_%s + tl.arange(0, %d))", dt_info[from].sig, rows);
    g->tree->aligned = true;
    Value *d = let(g, scalar(I32),
                   "tl.make_tensor_descriptor(p_%s, shape=[%d, %d], strides=[%d, 1], "
                   "block_shape=[1, %d])",
                   dt_info[m.dt].sig, m.rows, m.cols, m.stride, m.bn);
    d->flags = V_SPECIAL;
    Type s = {.dt = m.dt, .rank = 2, .dim = {rows, m.bn}};
    return loaded(let(g, s, "$.gather(($ %% %d).to(tl.int32), %s)", d, ix, m.rows + 2,
                      one_of(g, "0|pid|3")));
}

/* Blocks that a loop walks over: a block pointer that moves, a descriptor of two or three
   dimensions whose index does. */
Value *
make_advance(Gen *g)
{
    Matrix m;
    if (chance(g, 15))
        return gathered_rows(g);
    if (g->depth > 1 || !matrix_of(g, &m, INTS | BIT(F32) | BIT(F16) | BIT(BF16)))
        return NULL;
    Tree *t = g->tree;
    const char *sig = dt_info[m.dt].sig, *tl = dt_info[m.dt].tl;
    bool pointer = g->old && chance(g, 50), is_float = BIT(m.dt) & FLOATS;
    bool deep = !pointer && 2 * m.rows * m.stride <= t->len && chance(g, 40);
    int down = chance(g, 60) ? m.bm : between(g, -2, m.bm + 1);
    int right = chance(g, 60) ? 0 : between(g, -3, m.bn);
    const char *row = one_of(g, "0|0|-1|pid|3"), *col = one_of(g, "0|0|1|-1|pid * 2");
    Value *at;
    if (pointer) {
        at = let(g, scalar(I32),
                 "tl.make_block_ptr(p_%s, shape=(%d, %d), strides=(%d, 1), offsets=(%s, "
                 "%s), block_shape=(%d, %d), order=(1, 0))",
                 sig, m.rows, m.cols, m.stride, row, col, m.bm, m.bn);
        at->letter = 'a';
    } else {
        t->aligned = true;
        at = let(g, scalar(I32),
                 "tl.make_tensor_descriptor(p_%s, shape=[%s%d, %d], strides=[%s%d, 1], "
                 "block_shape=[%s%d, %d])",
                 sig, deep ? "2, " : "", m.rows, m.cols,
                 deep ? tree_text(t, "%d, ", m.rows * m.stride) : "", m.stride,
                 deep ? "1, " : "", m.bm, m.bn);
    }
    at->flags = V_SPECIAL;
    Value *acc = let(g, m.block, "tl.full(%s, 0, tl.%s)", dims(g, &m.block), tl);
    acc->letter = 'a';
    flt(acc, 128, 1, V_ZERO);
    Value *to = NULL;
    int room = 5 * numel(&m.block) / t->n + 2;
    if (!g->quiet && !g->depth && chance(g, 35)) { /* each block is stored, too */
        t->aligned = true;
        int first = t->slots[BUF_EXACT][m.dt];
        t->slots[BUF_EXACT][m.dt] += room;
        to = let(g, scalar(I32),
                 "tl.make_tensor_descriptor(o_%s + (%d + pid * %d), shape=[%d, %d], "
                 "strides=[%d, 1], block_shape=[%d, %d])",
                 sig, first * t->nprog * t->n, room * t->n,
                 5 * m.bm - between(g, 0, m.bm - 1), m.bn - (chance(g, 30) ? 1 : 0), m.bn,
                 m.bm, m.bn);
        to->flags = V_SPECIAL;
    }
    Value *i = value_new(g, scalar(I32), 'i');
    i->flags = V_SPECIAL;
    Stmt *b = loop_new(g,
                       tree_text(t, "for %s in %s(0, %s)", value_name(t, i),
                                 one_of(g, "range|tl.range"), one_of(g, "3|4|m|2")),
                       i, false);
    int scope = g->nval;
    Stmt **tail = block_open(g, b, 0);
    Value *iv = let(g, scalar(I32), "tl.to_tensor($)", i), *v;
    if (pointer)
        v = let(g, m.block, "tl.load($, boundary_check=(0, 1), padding_option=\"zero\")",
                at);
    else if (deep)
        v = let(g, m.block,
                "tl.reshape($.load([$ %% 2, %s + $ * %d, %s + $ * %d]), [%d, %d])", at,
                iv, row, iv, down, col, iv, right, m.bm, m.bn);
    else
        v = let(g, m.block, "$.load([%s + $ * %d, %s + $ * %d])", at, row, iv, down, col,
                iv, right);
    loaded(v);
    if (chance(g, 40))
        block_of_steps(g, 1);
    if (to)
        act(g, "$.store([$ * %d, 0], $)", to, iv, m.bm, v);
    if (is_float && m.dt != F32)
        set(g, acc, "tl.maximum($, $).to(tl.%s)", acc, v, tl);
    else
        set(g, acc, "$ %s $", acc, one_of(g, "+|-"), v);
    if (pointer)
        set(g, at, "tl.advance($, (%d, %d))", at, down, right);
    block_close(g, tail, scope);
    return acc;
}

/* Rows and columns as far apart as arguments say, forward or backward; the addresses of
   32 or 64 bits. Where it would end outside, a mask leaves rows out. */
Value *
make_strided(Gen *g)
{
    Tree *t = g->tree;
    const struct {
        const char *text;
        int64_t is;
    } by[] = {{"n", t->arg_n},
              {"q", t->arg_q},
              {"m", t->arg_m},
              {"-n", -t->arg_n},
              {"-q", -t->arg_q},
              {"(n + 1)", t->arg_n + 1},
              {"q * 2", 2 * t->arg_q},
              {"-16", -16},
              {"(m - n)", t->arg_m - t->arg_n},
              {"tl.cdiv(n, 2)", (t->arg_n + 1) / 2}};
    static const int cols_by[] = {1, 1, 1, -1, 2, 0};
    Dt dt = dt_of(g, ALL);
    Type s = {.dt = dt, .rank = 2};
    int k = log2_of(t->n), lr = between(g, 0, k);
    s.dim[0] = 1 << lr;
    s.dim[1] = 1 << (k - lr);
    int how = between(g, 0, 9), step = cols_by[rnd(g, 6)];
    int64_t last_row = (s.dim[0] - 1) * by[how].is, last_col = (s.dim[1] - 1) * step;
    int64_t low = (last_row < 0 ? last_row : 0) + (last_col < 0 ? last_col : 0);
    int64_t wide = last_col < 0 ? -last_col : last_col;
    int64_t tall = last_row < 0 ? -last_row : last_row;
    int rows = s.dim[0];
    if (wide >= t->len)
        return NULL;
    while (rows > 0 && tall + wide >= t->len) { /* those in front of it are there */
        int64_t each = by[how].is < 0 ? -by[how].is : by[how].is;
        rows--;
        tall = (rows ? rows - 1 : 0) * each;
        low = (by[how].is < 0 ? -tall : 0) + (last_col < 0 ? last_col : 0);
    }
    int first = (int)-low;
    if (first + tall + wide + 1 < t->len && first == 0)
        first = between(g, 0, (int)(t->len - 1 - tall - wide));
    const char *sig = dt_info[dt].sig;
    const char *cast = one_of(g, "||.to(tl.int64)");
    const char *ix = tree_text(
        t, "%d + tl.arange(0, %d)[:, None]%s * %s + tl.arange(0, %d)[None, :] * %d",
        first, s.dim[0], cast, by[how].text, s.dim[1], step);
    const char *mask = "";
    if (rows < s.dim[0] || chance(g, 30))
        mask = tree_text(t, ", mask=tl.arange(0, %d)[:, None] < %d%s", s.dim[0], rows,
                         BIT(dt) & FP8S ? "" : one_of(g, ", other=0|, other=1|"));
    const char *more =
        one_of(g, "|||, eviction_policy=\"evict_first\"|, cache_modifier=\".cg\"");
    return loaded(let(g, s, "tl.load(p_%s + (%s)%s%s)", sig, ix, mask, more));
}
