/* Operands of the matmuls of make_loops.c: loads of every form whose places the loop, the
   tile and the program decide, and what is done to them on the way. */
#include "tests/gen/loops.h"

Type
loop_tile(Dt dt, int rows, int cols)
{
    return (Type){.dt = dt, .rank = 2, .dim = {rows, cols}};
}

static Value *
input(Value *v, Dt dt)
{
    if (dt == I8)
        return flt(v, 128, 0, 0);
    return flt(v, BIT(dt) & FP8S ? 8 : 16, BIT(dt) & FP8S ? 0 : 1, 0);
}

/* ---------------------------------------------------------------- operands */

enum { MAX_PLACES = 20 };

typedef struct Place { /* of a tile in its array: row and column it begins at, as text */
    const char *row, *col;
    int most_row, most_col; /* the largest that they can be */
    const char *stride;
    int most_stride;
    bool below; /* along k it begins below 0 */
} Place;

static const char *
sum(Tree *t, const char *a, const char *b)
{
    return !*a ? b : !*b ? a : tree_text(t, "%s + %s", a, b);
}

/* Where a tile of rows x cols is: along k, which columns run (`along` 1) or rows, the
   loop moves it; across, tiles and programs do. In texts @ is the loop's counter, # that
   times k, ^ the tile's, ~ and ! what is loaded of rows, ` rows that were bent back. */
static Place
place(Gen *g, const Plan *p, int rows, int cols, int along)
{
    Tree *t = g->tree;
    Place at = {.row = "", .col = ""};
    int how = p->plain ? 0 : between(g, 0, 3), room;
    at.stride = how == 0 ? "n" : how == 1 ? "q" : NULL;
    at.most_stride = how == 0   ? p->stride_n
                     : how == 1 ? p->stride_q
                     : how == 2 ? cols * (1 + (int)rnd(g, 3))
                                : cols + 8 * between(g, 0, 5);
    if (!at.stride)
        at.stride = tree_text(t, "%d", at.most_stride);
    if (p->iv && (p->plain || chance(g, 90))) {
        int step = along ? cols : rows;
        bool raw = p->raw && step == p->k;
        at.below = raw && p->head.below;
        *(along ? &at.col : &at.row) = !raw       ? tree_text(t, "@ * %d", step)
                                       : at.below ? "#"
                                                  : tree_text(t, "#%s", p->head.from);
        *(along ? &at.most_col : &at.most_row) = (p->trips - 1) * step;
    }
    room = (t->len - cols - at.most_col) / at.most_stride - rows - at.most_row;
    if (p->tile && (p->plain || chance(g, 80))) {
        int step = along ? rows : cols;
        bool fits = along ? (p->tiles * t->nprog - 1) * step <= room
                          : at.most_col + (p->tiles * t->nprog - 1) * step +
                                    (rows + at.most_row) * at.most_stride + cols <=
                                t->len;
        if (fits && chance(g, p->plain ? 90 * along : 60)) {
            const char *o = tree_text(t, "^ * %d", step);
            *(along ? &at.row : &at.col) = sum(t, along ? at.row : at.col, o);
            *(along ? &at.most_row : &at.most_col) += (p->tiles * t->nprog - 1) * step;
        }
    } else if (along && (t->nprog - 1) * rows <= room && chance(g, 70)) {
        at.row = sum(t, at.row, tree_text(t, "pid * %d", rows));
        at.most_row += (t->nprog - 1) * rows;
    } else if (!along && chance(g, 30)) { /* two neighbours read the same */
        at.col = sum(t, at.col, tree_text(t, "(pid // 2) * %d", cols));
        at.most_col += (t->nprog - 1) / 2 * cols;
    }
    if (p->first && chance(g, 40)) {
        at.row = sum(t, at.row, p->back ? "(~ + q.to(tl.int32))" : "~");
        at.most_row += p->back ? p->stride_q : MOST_FIRST;
    }
    return at;
}

static bool
inside(const Tree *t, const Place *at, int rows, int cols)
{
    return (at->most_row + rows - 1) * at->most_stride + at->most_col + cols <= t->len;
}

/* A text with the counters in their places. */
static Value *
load(Gen *g, const Plan *p, Type s, const char *text)
{
    Value *u[MAX_PLACES] = {NULL};
    char out[1600];
    size_t n = 0, k = 0;
    for (const char *c = text; *c && n < sizeof out - 2 && k < MAX_PLACES; c++) {
        Value *v = *c == '@'   ? p->iv
                   : *c == '#' ? p->raw
                   : *c == '^' ? p->tile
                   : *c == '~' ? p->first
                   : *c == '!' ? p->last_row
                   : *c == '`' ? p->bent
                               : NULL;
        if (v)
            u[k++] = v;
        out[n++] = v ? '$' : *c;
    }
    out[n] = 0;
    return let(g, s, out, u[0], u[1], u[2], u[3], u[4], u[5], u[6], u[7], u[8], u[9],
               u[10], u[11], u[12], u[13], u[14], u[15], u[16], u[17], u[18], u[19]);
}

/* A tile of `high` rows of `wide` elements by a descriptor: the host's, over memory of
   its own, or one that is made where it is read, of what the loop and memory say. NULL:
   the kernel's own, which no loop changes. */
static Value *
described(Gen *g, const Plan *p, Type s, const Place *at, int high, int wide)
{
    Tree *t = g->tree;
    Dt dt = (Dt)s.dt;
    const char *row = *at->row ? at->row : "0", *col = *at->col ? at->col : "0";
    int how = between(g, 0, 9), rows = s.dim[0];
    if (how < 4) {
        Host h = {.dt = dt, .rank = 2, .shape = {high, wide}};
        h.strides[0] = at->most_stride;
        h.strides[1] = 1;
        h.block[0] = rows;
        h.block[1] = s.dim[1];
        int k = host_new(t, h);
        if (k >= 0)
            return input(load(g, p, s, tree_text(t, "d_%d.load([%s, %s])", k, row, col)),
                         dt);
    }
    if (how < 6 || at->below)
        return NULL;
    const char *left = p->last_row && chance(g, 50)
                           ? tree_text(t, "tl.minimum(!, %d)", rows)
                           : tree_text(t, "%d", between(g, 1, rows));
    if (how == 9 && p->iv)
        left = tree_text(t, "tl.maximum(%d - @, 1)", between(g, 2, rows));
    return input(load(g, p, s,
                      tree_text(t,
                                "tl.make_tensor_descriptor(p_%s + (%s) * %s, shape=[%s, "
                                "%d], strides=[%s, 1], block_shape=[%d, %d]).load([0, "
                                "%s])",
                                dt_info[dt].sig, row, at->stride, left, wide, at->stride,
                                rows, s.dim[1], col)),
                 dt);
}

/* ---------------------------------------------------------------- rows bent back */

static void
bend_to(Gen *g, const Plan *p, const char *rows)
{
    Tree *t = g->tree;
    switch (between(g, 0, 2)) {
    case 0: set(g, p->bent, tree_text(t, "%s %%%% (%s)", rows, p->end), p->row); return;
    case 1:
        set(g, p->bent, tree_text(t, "tl.minimum(%s, %s - 1)", rows, p->end), p->row);
        return;
    default:
        set(g, p->bent, tree_text(t, "tl.where(%s < %s, %s, 0)", rows, p->end, rows),
            p->row, p->row);
    }
}

void
loop_bend(Gen *g, Plan *p)
{
    Tree *t = g->tree;
    Type s = {.dt = I32, .rank = 1, .dim = {p->m}};
    static const char *const ends[] = {"n", "tl.to_tensor(q).to(tl.int32)", "40", "64",
                                       "(m * 24 + 1)"};
    const int most[] = {(int)t->arg_n, (int)t->arg_q, 40, 64, 4 * 24 + 1};
    int how = between(g, 0, 4);
    p->end = ends[how];
    p->most_end = most[how];
    p->row = p->tile ? let(g, s, "$ * %d + tl.arange(0, %d)", p->tile, p->m, p->m)
                     : let(g, s, "%stl.arange(0, %d)",
                           chance(g, 60) ? tree_text(t, "pid * %d + ", p->m) : "", p->m);
    p->bent = let(g, s, "tl.arange(0, %d) %% (%s)", p->m, p->end);
    p->bent->letter = 'a';
    p->row->flags = p->bent->flags = V_SPECIAL;
    p->bends = chance(g, 20);
    if (chance(g, 40)) {
        Value *c = let(g, scalar(I1), "%s", one_of(g, "pid == 0|m > 2|n > 70"));
        Stmt *f = block_new(g, 2);
        f->is_if = true;
        f->use[f->nuse++] = c;
        f->head[0] = "if \x80";
        f->head[1] = "else";
        for (int i = 0; i < 2; i++) {
            Stmt **tail = block_open(g, f, i);
            int scope = g->nval;
            bend_to(g, p, "$");
            block_close(g, tail, scope);
        }
        return;
    }
    bend_to(g, p, "$");
}

void
loop_bend_again(Gen *g, const Plan *p)
{
    bend_to(g, p, one_of(g, "$|($ + 5)|tl.maximum($ - 16, 0)"));
}

const char *
loop_inside(Gen *g, const Plan *p)
{
    return tree_text(g->tree, one_of(g, "< %s|< %s|<= %s - 1|< %s - 3|< %s + 2"), p->end);
}

/* ---------------------------------------------------------------- tiles */

/* A tile of those rows; NULL: they are too many for the memory. */
static Value *
tile_of_bent(Gen *g, const Plan *p, Type s)
{
    Tree *t = g->tree;
    int cols = s.dim[1];
    Place at = place(g, p, s.dim[0], cols, 1);
    if (at.below || (p->most_end - 1) * at.most_stride + at.most_col + cols > t->len)
        return NULL;
    const char *col = sum(t, at.col, tree_text(t, "tl.arange(0, %d)", cols));
    const char *mask = "";
    if (chance(g, 50))
        mask = tree_text(t, ", mask=(%s)[None, :] < %d%s", col,
                         at.most_col + cols - between(g, 0, cols - 1),
                         BIT(s.dt) & FP8S     ? ""
                         : BIT(s.dt) & FLOATS ? ", other=0.0"
                                              : ", other=0");
    return input(load(g, p, s,
                      tree_text(t, "tl.load(p_%s + `[:, None] * %s + (%s)[None, :]%s)",
                                dt_info[s.dt].sig, at.stride, col, mask)),
                 (Dt)s.dt);
}

/* Which elements of the tile at `at`, of these rows and columns, are loaded, and how. */
static const char *
masked(Gen *g, const Plan *p, Dt dt, const Place *at, Type s, int along, const char *row,
       const char *col)
{
    Tree *t = g->tree;
    int rows = s.dim[0], cols = s.dim[1];
    const char *mask = "";
    const char *other =
        BIT(dt) & FP8S     ? ""
        : BIT(dt) & FLOATS ? one_of(g, ", other=0.0|, other=0.0|, other=1.0|, other=-1.5")
                           : one_of(g, ", other=0|, other=1|, other=-7");
    int most = at->most_col + cols;
    if (at->below)
        mask = tree_text(t, ", mask=((%s)%s >= 0)%s%s", along ? col : row,
                         along ? "[None, :]" : "[:, None]",
                         one_of(g, "|| & (pid < 3)| & (m < 3)"), other);
    else
        switch (between(g, 0, 7)) {
        case 0: /* the last step along k is short */
        case 1:
            mask = tree_text(t, ", mask=(%s)[None, :] < %d%s", col,
                             most - between(g, 0, cols - 1), other);
            break;
        case 2:
            mask = tree_text(t, ", mask=(%s)[:, None] %s%s", row,
                             p->last_row && chance(g, 60)
                                 ? one_of(g, "< !|<= !|< tl.minimum(!, n)")
                                 : one_of(g, "< n|< 50|< 64|< m * 24|< 127"),
                             other);
            break;
        case 3:
            mask = tree_text(t, ", mask=((%s)[:, None] < %d) & ((%s)[None, :] < %s)%s",
                             row, at->most_row + rows - between(g, 0, 9), col,
                             one_of(g, "n|64|m * 16|31"), other);
            break;
        }
    if (!*mask && !at->below && chance(g, 10))
        mask = tree_text(t, ", mask=%s%s", loop_mask(g, rows, cols), other);
    if (chance(g, 10))
        mask = tree_text(t, "%s%s", mask,
                         one_of(g, ", eviction_policy=\"evict_last\"|, cache_modifier="
                                   "\".cg\"|, volatile=True|, eviction_policy="
                                   "\"evict_first\""));
    return mask;
}

Value *
loop_tile_of(Gen *g, const Plan *p, Dt dt, int rows, int cols, int along)
{
    Tree *t = g->tree;
    const char *sig = dt_info[dt].sig;
    Type s = loop_tile(dt, rows, cols);
    Value *bent =
        p->bent && along && rows == p->m && chance(g, 70) ? tile_of_bent(g, p, s) : NULL;
    if (bent)
        return bent;
    Place at = place(g, p, rows, cols, along);
    if (!inside(t, &at, rows, cols))
        at = (Place){.row = "", .col = "", .stride = tree_text(t, "%d", cols)};
    const char *row = sum(t, at.row, tree_text(t, "tl.arange(0, %d)", rows));
    const char *col = sum(t, at.col, tree_text(t, "tl.arange(0, %d)", cols));
    /* rows that come round again, or the last one for all behind it */
    if (chance(g, 10) && !at.below)
        row = tree_text(t, one_of(g, "(%s) %% %s|tl.minimum(%s, %s - 1)"), row,
                        one_of(g, "n|q|40|64"));
    bool lines = at.most_stride * dt_info[dt].bytes % 16 == 0 && at.most_stride;
    if (lines && chance(g, 35) && cols * dt_info[dt].bytes >= 16) {
        t->aligned = true;
        int high = at.most_row + rows, wide = at.most_col + cols;
        if (chance(g, 40))
            high -= between(g, 0, rows - 1);
        if (chance(g, 40))
            wide -= between(g, 0, cols - 1);
        Value *v = chance(g, 50) ? described(g, p, s, &at, high, wide) : NULL;
        if (v)
            return v;
        if (2 * high * at.most_stride + wide <= t->len && chance(g, 25))
            return input(load(g, p, s,
                              tree_text(t,
                                        "tl.make_tensor_descriptor(p_%s, shape=[2, %d, "
                                        "%d], strides=[%d * %s, %s, 1], block_shape=[1, "
                                        "%d, %d]).load([pid %% 2, %s, %s]).reshape(%d, "
                                        "%d)",
                                        sig, high, wide, high, at.stride, at.stride, rows,
                                        cols, *at.row ? at.row : "0",
                                        *at.col ? at.col : "0", rows, cols)),
                         dt);
        return input(
            load(g, p, s,
                 tree_text(t,
                           "tl.make_tensor_descriptor(p_%s, shape=[%d, %d], "
                           "strides=[%s, 1], block_shape=[%d, %d]).load([%s, %s])",
                           sig, high, wide, at.stride, rows, cols, *at.row ? at.row : "0",
                           *at.col ? at.col : "0")),
            dt);
    }
    const char *mask = masked(g, p, dt, &at, s, along, row, col);
    const char *far = "";
    if (chance(g, 8)) { /* there and back */
        const char *by = one_of(g, "tl.full([], 3000000000, tl.int64)|"
                                   "tl.full([], -2147483648, tl.int64)|268435456");
        far = tree_text(t, " + %s", by);
        mask = tree_text(t, " - %s%s", by, mask);
    }
    const char *wide = chance(g, 12) ? ".to(tl.int64)" : "";
    const char *text =
        tree_text(t, "tl.load(p_%s%s + (%s)[:, None]%s * %s + (%s)[None, :]%s)", sig, far,
                  row, wide, at.stride, col, mask);
    return input(load(g, p, s, text), dt);
}

/* An operand that the loop will find by what it moves from step to step. */
Moving
loop_moving(Gen *g, const Plan *p, int rows, int cols, int along)
{
    Tree *t = g->tree;
    const char *sig = dt_info[p->dt].sig;
    Place at = place(g, p, rows, cols, along);
    Moving m = {.s = loop_tile(p->dt, rows, cols), .along = along};
    *(along ? &at.most_col : &at.most_row) += (p->trips - 1) * (along ? cols : rows);
    if (!inside(t, &at, rows, cols))
        return m;
    const char *row = *at.row ? at.row : "0", *col = *at.col ? at.col : "0";
    m.block = chance(g, 40);
    if (m.block) {
        int high = at.most_row + rows - (chance(g, 40) ? between(g, 0, rows - 1) : 0);
        int wide = at.most_col + cols - (chance(g, 40) ? between(g, 0, cols - 1) : 0);
        m.by = tree_text(t, "(%d, %d)", along ? 0 : rows, along ? cols : 0);
        m.at = load(g, p, m.s,
                    tree_text(t,
                              "tl.make_block_ptr(p_%s, shape=(%d, %d), strides=(%s, 1), "
                              "offsets=(%s, %s), block_shape=(%d, %d), order=(1, 0))",
                              sig, high, wide, at.stride, row, col, rows, cols));
    } else {
        m.by =
            along ? tree_text(t, "%d", cols) : tree_text(t, "%d * %s", rows, at.stride);
        m.at = load(g, p, m.s,
                    tree_text(t,
                              "p_%s + (%s + tl.arange(0, %d))[:, None] * %s + (%s + "
                              "tl.arange(0, %d))[None, :]",
                              sig, row, rows, at.stride, col, cols));
    }
    m.at->letter = 'a';
    m.at->flags = V_SPECIAL;
    return m;
}

static Value *
moving_load(Gen *g, const Plan *p, const Moving *m)
{
    Dt dt = (Dt)m->s.dt;
    const char *other = BIT(dt) & FP8S     ? ""
                        : BIT(dt) & FLOATS ? one_of(g, ", other=0.0|, other=1.0")
                                           : ", other=0";
    int k = m->s.dim[m->along];
    Value *v;
    if (m->block)
        v = let(g, m->s, "tl.load($, boundary_check=(0, 1), padding_option=\"zero\")",
                m->at);
    else if (BIT(dt) & FP8S || chance(g, 50))
        v = let(g, m->s, "tl.load($)", m->at);
    else /* the last step along k is short */
        v = let(g, m->s, "tl.load($, mask=tl.arange(0, %d)[%s] < %s - $ * %d%s)", m->at,
                k, m->along ? "None, :" : ":, None", one_of(g, "n|40|m * 16|q"), p->iv, k,
                other);
    return input(v, dt);
}

/* Numbers of 4 bits, two in a byte of memory, with a scale or none. */
static Value *
unpacked(Gen *g, const Plan *p, int rows, int cols, int along)
{
    bool by_rows = chance(g, 60);
    Value *w = loop_tile_of(g, p, chance(g, 50) ? U8 : I8, by_rows ? rows / 2 : rows,
                            by_rows ? cols : cols / 2, along);
    return dequantized(g, nibbles(g, w, by_rows), p->dt);
}

/* What is done to an operand between its load and the matmul; mostly nothing. */
static Value *
touched(Gen *g, const Plan *p, Value *v)
{
    Dt dt = (Dt)v->t.dt;
    if (BIT(dt) & FP8S || dt == I8)
        return v;
    switch (between(g, 0, 19)) {
    case 0: return like(let(g, v->t, "tl.abs($)", v), v);
    case 1: return flt(let(g, v->t, "$ * 2", v), 2 * v->bound, v->frac, 0);
    case 2:
        return p->iv ? like(let(g, v->t, "tl.where($ > 0, $, -$)", p->iv, v, v), v) : v;
    case 3:
        return like(let(g, v->t, "tl.where(tl.arange(0, %d)[:, None] < %s, $, 0.0)",
                        v->t.dim[0], one_of(g, "n|m * 16|40"), v),
                    v);
    case 4: return flt(let(g, v->t, "$ + 1.0", v), v->bound + 1, v->frac, V_ZERO);
    default: return v;
    }
}

/* A tile of rows x cols in the type of operands, k along its columns (1) or rows. */
Value *
loop_operand(Gen *g, const Plan *p, int rows, int cols, int along)
{
    Dt dt = p->dt, from = dt;
    if (!p->plain && chance(g, 12))
        from = dt == F16    ? (chance(g, 50) ? F32 : I8)
               : dt == BF16 ? (chance(g, 50) ? F32 : F16)
                            : dt;
    Value *v;
    const Moving *m = &p->moving[!along];
    Type s = loop_tile(dt, rows, cols);
    if (p->iv && m->at && same_shape(&m->s, &s) && chance(g, p->plain ? 100 : 60))
        return touched(g, p, moving_load(g, p, m));
    if (p->plain) {
        v = loop_tile_of(g, p, dt, rows, cols, along);
    } else if (chance(g, 14) && (v = loop_woven(g, p, dt, rows, cols, along))) {
        return touched(g, p, v);
    } else if (BIT(dt) & (BIT(F16) | BIT(BF16)) && cols >= 32 && chance(g, 10)) {
        return unpacked(g, p, rows, cols, along);
    } else if (chance(g, 22)) {
        Value *w = touched(g, p, loop_tile_of(g, p, from, cols, rows, !along));
        v = like(
            let(g, loop_tile(from, rows, cols), chance(g, 60) ? "$.T" : "tl.trans($)", w),
            w);
    } else {
        v = touched(g, p, loop_tile_of(g, p, from, rows, cols, along));
    }
    if (from != dt) {
        v = like(let(g, with_dt(v->t, dt), "$.to(tl.%s)", v, dt_info[dt].tl), v);
        if (from == I8 && v->bound > 16) /* short enough for sums of many */
            v = small(g, v, 6, 0);
    }
    return v;
}
