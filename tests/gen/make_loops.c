/* Programs of another kind (seeds from LOOP_SEEDS on): loops of matmuls over tiles that
   fill warpgroups, with what decides how they are scheduled for tensor cores: rows that
   begin off 128-byte lines, strides of any number, loads by addresses, pointers and block
   pointers that the loop moves, descriptors, operands that are transposed, converted,
   unpacked, computed, shared, carried or stand in front of the loop, matmuls in branches,
   in chains and in loops within loops, one tile after another, sums that programs add up.
   Neighbouring programs read one operand alike. */
#include <string.h>

#include "tests/gen/gen.h"

typedef struct Moving { /* a tile of pointers, or a block pointer, that a loop moves */
    Value *at;          /* NULL: there is none */
    Type s;             /* of what is read there */
    int along;          /* k runs along columns (1) or rows */
    bool block;
    const char *by; /* what the loop adds */
} Moving;

typedef struct Plan {
    Dt dt;       /* of operands */
    int m, n, k; /* of the tile of sums, and how far one step goes */
    int trips;   /* at most, of all loops together */
    bool plain;  /* one matmul of what is loaded: producers, persistence, clusters */
    Value *iv;   /* the innermost loop's counter, or NULL */
    Value *raw;  /* k times that, where the loop goes by k; or NULL */
    Value *first, *last_row; /* loaded: where rows begin, and one that is not there */
    Value *tile; /* which of a program's tiles, or NULL: the program's only one */
    int tiles;   /* of a program, one after another */
    int stride_n, stride_q;
    Value *acc[3], *state; /* sums; a row's largest value so far */
    int nacc, next;        /* which of them the next step adds to */
    Value *left, *right;   /* made in front of the loop, or NULL */
    const char *work;      /* memory where each step leaves the next one's, or NULL */
    Value *carried;        /* a left operand of the next step, or NULL */
    Value *last[2];        /* operands of the iteration's last matmul, to be shared */
    Moving moving[2];      /* a left and a right operand */
} Plan;

static Type
matrix(Dt dt, int rows, int cols)
{
    return (Type){.dt = dt, .rank = 2, .dim = {rows, cols}};
}

static Dt
sum_dt(const Plan *p)
{
    return p->dt == I8 ? I32 : F32;
}

static Value *
input(Value *v, Dt dt)
{
    if (dt == I8)
        return flt(v, 128, 0, 0);
    return flt(v, BIT(dt) & FP8S ? 8 : 16, BIT(dt) & FP8S ? 0 : 1, 0);
}

/* ---------------------------------------------------------------- operands */

enum { MOST_FIRST = 31, MAX_PLACES = 20 };

typedef struct Place { /* of a tile in its array: row and column it begins at, as text */
    const char *row, *col;
    int most_row, most_col; /* the largest that they can be */
    const char *stride;
    int most_stride;
} Place;

static const char *
sum(Tree *t, const char *a, const char *b)
{
    return !*a ? b : !*b ? a : tree_text(t, "%s + %s", a, b);
}

/* Where a tile of rows x cols is: along k, which columns run (`along` 1) or rows, the
   loop moves it; across, tiles and programs do. In texts @ is the loop's counter, # that
   times k, ^ the tile's, ~ and ! what is loaded of rows. */
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
        *(along ? &at.col : &at.row) =
            p->raw && step == p->k ? "#" : tree_text(t, "@ * %d", step);
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
        at.row = sum(t, at.row, "~");
        at.most_row += MOST_FIRST;
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
                               : NULL;
        if (v)
            u[k++] = v;
        out[n++] = v ? '$' : *c;
    }
    out[n] = 0;
    return let(g, s, out, u[0], u[1], u[2], u[3], u[4], u[5], u[6], u[7], u[8], u[9],
               u[10], u[11], u[12], u[13], u[14], u[15], u[16], u[17], u[18], u[19]);
}

static Value *
tile_of(Gen *g, const Plan *p, Dt dt, int rows, int cols, int along)
{
    Tree *t = g->tree;
    const char *sig = dt_info[dt].sig;
    Type s = matrix(dt, rows, cols);
    Place at = place(g, p, rows, cols, along);
    if (!inside(t, &at, rows, cols))
        at = (Place){.row = "", .col = "", .stride = tree_text(t, "%d", cols)};
    const char *row = sum(t, at.row, tree_text(t, "tl.arange(0, %d)", rows));
    const char *col = sum(t, at.col, tree_text(t, "tl.arange(0, %d)", cols));
    if (chance(g, 10)) /* rows that come round again, or the last one for all behind it */
        row = tree_text(t, one_of(g, "(%s) %% %s|tl.minimum(%s, %s - 1)"), row,
                        one_of(g, "n|q|40|64"));
    bool lines = at.most_stride * dt_info[dt].bytes % 16 == 0 && at.most_stride;
    if (lines && chance(g, 35)) {
        t->aligned = true;
        int high = at.most_row + rows, wide = at.most_col + cols;
        if (chance(g, 40))
            high -= between(g, 0, rows - 1);
        if (chance(g, 40))
            wide -= between(g, 0, cols - 1);
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
    const char *mask = "";
    const char *other = BIT(dt) & FP8S ? ""
                        : BIT(dt) & FLOATS
                            ? one_of(g, ", other=0.0|, other=0.0|, other=1.0")
                            : one_of(g, ", other=0|, other=1");
    int most = at.most_col + cols;
    switch (between(g, 0, 5)) {
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
        mask = tree_text(t, ", mask=((%s)[:, None] < %d) & ((%s)[None, :] < %s)%s", row,
                         at.most_row + rows - between(g, 0, 9), col,
                         one_of(g, "n|64|m * 16|31"), other);
        break;
    }
    const char *text =
        tree_text(t, "tl.load(p_%s + (%s)[:, None] * %s + (%s)[None, :]%s)", sig, row,
                  at.stride, col, mask);
    return input(load(g, p, s, text), dt);
}

/* An operand that the loop will find by what it moves from step to step. */
static Moving
moving(Gen *g, const Plan *p, int rows, int cols, int along)
{
    Tree *t = g->tree;
    const char *sig = dt_info[p->dt].sig;
    Place at = place(g, p, rows, cols, along);
    Moving m = {.s = matrix(p->dt, rows, cols), .along = along};
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
    Value *w = tile_of(g, p, chance(g, 50) ? U8 : I8, by_rows ? rows / 2 : rows,
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
static Value *
operand(Gen *g, const Plan *p, int rows, int cols, int along)
{
    Dt dt = p->dt, from = dt;
    if (!p->plain && chance(g, 12))
        from = dt == F16    ? (chance(g, 50) ? F32 : I8)
               : dt == BF16 ? (chance(g, 50) ? F32 : F16)
                            : dt;
    Value *v;
    const Moving *m = &p->moving[!along];
    Type s = matrix(dt, rows, cols);
    if (p->iv && m->at && same_shape(&m->s, &s) && chance(g, p->plain ? 100 : 60))
        return touched(g, p, moving_load(g, p, m));
    if (p->plain) {
        v = tile_of(g, p, dt, rows, cols, along);
    } else if (BIT(dt) & (BIT(F16) | BIT(BF16)) && cols >= 32 && chance(g, 10)) {
        return unpacked(g, p, rows, cols, along);
    } else if (chance(g, 22)) {
        Value *w = touched(g, p, tile_of(g, p, from, cols, rows, !along));
        v = like(
            let(g, matrix(from, rows, cols), chance(g, 60) ? "$.T" : "tl.trans($)", w),
            w);
    } else {
        v = touched(g, p, tile_of(g, p, from, rows, cols, along));
    }
    if (from != dt) {
        v = like(let(g, with_dt(v->t, dt), "$.to(tl.%s)", v, dt_info[dt].tl), v);
        if (from == I8 && v->bound > 16) /* short enough for sums of many */
            v = small(g, v, 6, 0);
    }
    return v;
}

/* ---------------------------------------------------------------- matmuls */

static const char *
precision(Gen *g, const Plan *p)
{
    return p->dt == F32 && chance(g, 15) ? ", input_precision=\"ieee\"" : "";
}

static Value *
matmul(Gen *g, Plan *p, Value *a, Value *b, Value *acc)
{
    Type s = matrix(sum_dt(p), a->t.dim[0], b->t.dim[1]);
    double bound = a->bound * b->bound * a->t.dim[1];
    p->last[0] = a;
    p->last[1] = b;
    Value *v = acc ? let(g, s, "tl.dot($, $, $%s)", a, b, acc, precision(g, p))
                   : let(g, s, "tl.dot($, $%s)", a, b, precision(g, p));
    return flt(v, acc ? acc->bound : bound, a->frac + b->frac, V_ZERO);
}

/* A result as a left operand: few bits, in the operands' type. */
static Value *
narrowed(Gen *g, const Plan *p, Value *v)
{
    if (v->t.dt == I32) {
        v = let(g, v->t, "($ >> %d)", v, between(g, 6, 10));
        return flt(let(g, with_dt(v->t, I8), "$.to(tl.int8)", v), 128, 0, 0);
    }
    v = small(g, v, 5, 1);
    if (v->t.dt == (int)p->dt)
        return v;
    return like(let(g, with_dt(v->t, p->dt), "$.to(tl.%s)", v, dt_info[p->dt].tl), v);
}

static Value *
left_operand(Gen *g, Plan *p, int rows, int cols)
{
    Type s = matrix(p->dt, rows, cols);
    if (p->last[0] && same_shape(&p->last[0]->t, &s) && chance(g, 40))
        return p->last[0];
    if (p->left && same_shape(&p->left->t, &s) && chance(g, 40))
        return p->left;
    return operand(g, p, rows, cols, 1);
}

static Value *
right_operand(Gen *g, Plan *p, int rows, int cols)
{
    Type s = matrix(p->dt, rows, cols), across = matrix(p->dt, cols, rows);
    Value *v = p->last[1];
    if (v && same_shape(&v->t, &s) && chance(g, 40))
        return v;
    if (v && same_shape(&v->t, &across) && chance(g, 40))
        return like(let(g, s, "$.T", v), v);
    if (p->right && same_shape(&p->right->t, &s) && chance(g, 25))
        return p->right;
    return operand(g, p, rows, cols, 0);
}

/* A row's largest value so far decides a sign: as attention rescales its sums. */
static void
rescale(Gen *g, Plan *p, Value *s, Value *acc)
{
    Type row = {.dt = F32, .rank = 1, .dim = {s->t.dim[0]}};
    if (!p->state || s->t.dt != F32)
        return;
    Value *most = like(let(g, row, "tl.maximum($, tl.max($, 1))", p->state, s), p->state);
    Value *by = flt(let(g, row, "tl.where($ > $, -1.0, 1.0)", most, p->state), 1, 0, 0);
    if (acc->t.dim[0] == s->t.dim[0])
        set(g, acc, "$ * $[:, None]", acc, by);
    set(g, p->state, "$", most);
}

static void
add_to(Gen *g, Plan *p, Value *acc, Value *v)
{
    Value *c = NULL;
    if (chance(g, 25))
        c = let(g, matrix(I1, acc->t.dim[0], 1), "tl.arange(0, %d)[:, None] %s",
                acc->t.dim[0], one_of(g, "< n|>= m * 8|% 2 == 0|< 1000"));
    (void)p;
    if (c)
        set(g, acc, "$ + tl.where($, $, 0)", acc, c, v);
    else
        set(g, acc, chance(g, 80) ? "$ + $" : "$ - $", acc, v);
}

/* One matmul, or two of which the second takes the first one's result. */
static void
one_step(Gen *g, Plan *p, Value *acc)
{
    int rows = acc->t.dim[0], cols = acc->t.dim[1];
    Value *a, *b;
    if (p->plain) {
        a = operand(g, p, rows, p->k, 1);
        b = operand(g, p, p->k, cols, 0);
        set(g, acc, "tl.dot($, $, $)", a, b, acc);
        return;
    }
    if (p->carried && p->carried->t.dim[0] == rows && chance(g, 50)) {
        a = like(let(g, p->carried->t, "$", p->carried), p->carried);
        b = right_operand(g, p, a->t.dim[1], cols);
    } else if (chance(g, 40)) {
        int inner = p->dt == I8 || BIT(p->dt) & FP8S ? 32 : 16 << between(g, 0, 2);
        a = left_operand(g, p, rows, p->k);
        b = right_operand(g, p, p->k, inner);
        Value *s = matmul(g, p, a, b, NULL);
        rescale(g, p, s, acc);
        a = narrowed(g, p, s);
        b = right_operand(g, p, inner, cols);
    } else {
        a = left_operand(g, p, rows, p->k);
        b = right_operand(g, p, p->k, cols);
    }
    if (chance(g, 60)) {
        Value *v = matmul(g, p, a, b, acc);
        set(g, acc, "$", v);
    } else {
        add_to(g, p, acc, matmul(g, p, a, b, NULL));
    }
    if (p->carried && p->carried->t.dim[0] == rows && p->carried->t.dim[1] == cols &&
        chance(g, 60)) {
        Value *next = narrowed(g, p, acc);
        set(g, p->carried, "$", next);
    }
}

/* ---------------------------------------------------------------- loops and branches */

static void steps(Gen *g, Plan *p, int n);

static void
branch(Gen *g, Plan *p)
{
    int arms = between(g, 1, 2), scope = g->nval;
    Value *c = p->iv && chance(g, 70)
                   ? let(g, scalar(I1), "$ %s", p->iv, one_of(g, "% 2 == 0|> 0|< 2|== 1"))
                   : let(g, scalar(I1), "%s", one_of(g, "pid == 0|m > 2|n > 70|q < 0"));
    Stmt *f = block_new(g, arms);
    f->is_if = true;
    f->use[f->nuse++] = c;
    f->head[0] = "if \x80";
    f->head[1] = "else";
    for (int i = 0; i < arms; i++) {
        Value *last[2] = {p->last[0], p->last[1]};
        Stmt **tail = block_open(g, f, i);
        int inner = g->nval;
        steps(g, p, 1);
        block_close(g, tail, inner);
        p->last[0] = last[0];
        p->last[1] = last[1];
    }
    (void)scope;
}

/* A loop of n steps; `m` says how often it goes round, or a number. */
static void
loop(Gen *g, Plan *p, int n)
{
    Tree *t = g->tree;
    Value *outer = p->iv, *last[2] = {p->last[0], p->last[1]};
    Value *i = value_new(g, scalar(I32), 'i');
    i->flags = V_SPECIAL;
    bool is_while = chance(g, 8), by_k = !outer && !is_while && chance(g, 35);
    const char *hi = outer ? "2" : p->plain ? "m" : one_of(g, "m|m|m|3|4|2");
    if (is_while)
        begin(g, i, "tl.to_tensor(0)");
    const char *name = value_name(t, i), *range = one_of(g, "range|tl.range");
    const char *head =
        is_while ? tree_text(t, "while \x80 < %s", hi)
        : by_k ? tree_text(t, "for %s in %s(0, %s * %d, %d)", name, range, hi, p->k, p->k)
        : !p->plain && chance(g, 8)
            ? tree_text(t, "for %s in %s(%s - 1, -1, -1)", name, range, hi)
            : tree_text(t, "for %s in %s(0, %s)", name, range, hi);
    Stmt *b = loop_new(g, head, i, is_while);
    int scope = g->nval;
    Stmt **tail = block_open(g, b, 0);
    p->last[0] = p->last[1] = NULL;
    Value *raw = p->raw;
    p->raw = by_k ? let(g, scalar(I32), "tl.to_tensor($)", i) : NULL;
    p->iv = by_k ? let(g, scalar(I32), "$ // %d", p->raw, p->k)
                 : let(g, scalar(I32), "tl.to_tensor($)", i);
    Value *left = p->left;
    Type work = matrix(p->dt, p->m, p->k);
    if (p->work && !outer)
        p->left = flt(let(g, work, "tl.load(%s)", p->work), 16, 1, V_ZERO);
    steps(g, p, n);
    if (p->work && !outer) {
        Value *next = p->last[0] && same_shape(&p->last[0]->t, &work)
                          ? narrowed(g, p, p->last[0])
                          : p->left;
        act(g, "tl.debug_barrier()");
        act(g, "tl.store(%s, -$)", p->work, next);
        act(g, "tl.debug_barrier()");
    }
    p->left = left;
    for (int k = 0; k < 2 && !outer; k++) {
        const Moving *x = &p->moving[k];
        if (x->at && x->block)
            set(g, x->at, "tl.advance($, %s)", x->at, x->by);
        else if (x->at)
            set(g, x->at, "$ + %s", x->at, x->by);
    }
    if (is_while)
        set(g, i, "$ + 1", i);
    block_close(g, tail, scope);
    p->iv = outer;
    p->raw = raw;
    p->last[0] = last[0];
    p->last[1] = last[1];
}

static void
steps(Gen *g, Plan *p, int n)
{
    for (; n > 0; n--) {
        Value *acc = p->acc[p->next++ % p->nacc];
        if (p->plain) {
            one_step(g, p, acc);
        } else if (g->depth < 3 && p->iv && chance(g, 14)) {
            branch(g, p);
        } else if (g->depth < 3 && p->iv && chance(g, 8)) {
            loop(g, p, 1);
        } else if (chance(g, 8) && acc->t.dt == F32) {
            Value *v = operand(g, p, acc->t.dim[0], acc->t.dim[1], 1);
            if (v->t.dt != F32)
                v = like(let(g, acc->t, "$.to(tl.float32)", v), v);
            add_to(g, p, acc, v);
        } else {
            one_step(g, p, acc);
        }
    }
}

/* ---------------------------------------------------------------- a tile of results */

static void
store(Gen *g, const Plan *p, Value *v)
{
    Tree *t = g->tree;
    if (v->t.dt == F32 && chance(g, 8)) { /* of all programs together */
        v = small(g, v, 5, 0);
        t->slots[BUF_ATOMIC][F32] = 1;
        act(g, "tl.atomic_add(at_fp32 + (%s & 15), $%s)", offsets(g, &v->t), v,
            one_of(g, "|, sem=\"relaxed\""));
        return;
    }
    if (!p->tile) {
        if (BIT(v->t.dt) & FLOATS && chance(g, 30))
            v = small(g, v, 8, 1);
        put(g, v);
        return;
    }
    Dt dt = (Dt)v->t.dt;
    int at = t->slots[BUF_ZERO][dt] * t->nprog * t->n;
    t->slots[BUF_ZERO][dt] += p->tiles;
    if (chance(g, 50) && v->t.dim[1] * dt_info[dt].bytes >= 16) {
        t->aligned = true;
        act(g,
            "tl.make_tensor_descriptor(z_%s + %d, shape=[%d, %d], strides=[%d, 1], "
            "block_shape=[%d, %d]).store([$ * %d, 0], $)",
            dt_info[dt].sig, at, p->tiles * t->nprog * t->n / v->t.dim[1], v->t.dim[1],
            v->t.dim[1], v->t.dim[0], v->t.dim[1], p->tile, t->n / v->t.dim[1], v);
        return;
    }
    act(g, "tl.store(z_%s + %d + $ * %d + %s, $)", dt_info[dt].sig, at, p->tile, t->n,
        offsets(g, &v->t), v);
}

static void
one_tile(Gen *g, Plan *p)
{
    p->nacc = chance(g, 60) || p->m * p->n > 8192 ? 1 : between(g, 2, 3);
    p->state = p->carried = p->left = p->right = p->last[0] = p->last[1] = NULL;
    p->nacc = p->plain ? 1 : p->nacc;
    for (int i = 0; i < p->nacc; i++) {
        Type s = matrix(sum_dt(p), p->m, i && chance(g, 30) ? p->k : p->n);
        p->acc[i] = let(g, s, "tl.full(%s, %s, tl.%s)", dims(g, &s),
                        one_of(g, "0|0|0|1|-2"), dt_info[s.dt].tl);
        p->acc[i]->letter = 'a';
        flt(p->acc[i], 1 << 19, 2, V_ZERO);
    }
    if (sum_dt(p) == F32 && chance(g, 35)) {
        Type row = {.dt = F32, .rank = 1, .dim = {p->m}};
        p->state = let(g, row, "tl.full([%d], -100.0, tl.float32)", p->m);
        p->state->letter = 'a';
        flt(p->state, 1 << 19, 2, V_ZERO);
    }
    Value *iv = p->iv;
    p->iv = NULL;
    if (!p->plain && chance(g, 25)) { /* in registers */
        Value *a = operand(g, p, p->m, p->k, 1), *b = operand(g, p, p->k, p->k, 0);
        p->left = narrowed(g, p, matmul(g, p, a, b, NULL));
    } else if (!p->plain && chance(g, 30)) {
        p->left = operand(g, p, p->m, p->k, 1);
    }
    p->work = NULL;
    if (!p->plain && BIT(p->dt) & (BIT(F16) | BIT(BF16) | BIT(F32)) && chance(g, 12)) {
        Type s = matrix(p->dt, p->m, p->k);
        int at = g->tree->slots[BUF_ZERO][p->dt]++ * g->tree->nprog * g->tree->n;
        p->work = tree_text(g->tree, "z_%s + (pid * %d + %d) + %s", dt_info[p->dt].sig,
                            g->tree->n, at, offsets(g, &s));
        Value *first = operand(g, p, p->m, p->k, 1);
        first = narrowed(g, p, first);
        act(g, "tl.store(%s, $)", p->work, first);
        act(g, "tl.debug_barrier()");
    }
    if (!p->plain && chance(g, 25))
        p->right = operand(g, p, p->k, p->n, 0);
    if (chance(g, 25) && p->n <= 64 && (p->n > 16 || dt_info[p->dt].bytes > 1)) {
        Value *first = operand(g, p, p->m, p->n, 1);
        p->carried = let(g, first->t, "$", first);
        p->carried->letter = 'a';
        flt(p->carried, 16 > first->bound ? 16 : first->bound, 1, V_ZERO);
    }
    p->moving[0] = p->moving[1] = (Moving){0};
    p->first = p->last_row = NULL;
    if (chance(g, 15)) /* as groups of rows have them */
        p->first = let(g, scalar(I32), "tl.load(p_i32 + %d) & %d", between(g, 0, 20),
                       MOST_FIRST);
    if (chance(g, 25))
        p->last_row = let(g, scalar(I32), "tl.load(p_i32 + %s) & %s", one_of(g, "7|pid"),
                          one_of(g, "63|127|255"));
    if (chance(g, 30))
        p->moving[0] = moving(g, p, p->m, p->k, 1);
    if (chance(g, 30))
        p->moving[1] = moving(g, p, p->k, p->n, 0);
    p->iv = iv;
    loop(g, p, p->plain ? 1 : between(g, p->nacc, p->nacc + 1));
    if (p->left && chance(g, 15))
        store(g, p, p->left);
    for (int i = 0; i < p->nacc; i++)
        store(g, p, p->acc[i]);
    if (p->state && !p->tile)
        put(g, p->state);
}

static void
sizes(Gen *g, Plan *p)
{
    static const int rows[] = {64, 64, 64, 128, 128, 32, 16, 256};
    static const int strides[] = {64, 72, 80, 96, 100, 104, 112, 128, 136, 65, 144, 200};
    static const int grids[][3] = {{1, 1, 1}, {2, 1, 1}, {2, 1, 1}, {4, 1, 1}, {2, 2, 1}};
    Tree *t = g->tree;
    *p = (Plan){.dt = dt_of(g, BIT(F16) | BIT(BF16))};
    if (chance(g, 30))
        p->dt = dt_of(g, BIT(F32) | BIT(I8) | BIT(E4) | BIT(E5));
    bool bytes = p->dt == I8 || BIT(p->dt) & FP8S;
    p->m = rows[rnd(g, 8)];
    p->n = 16 << between(g, 0, p->m > 128 ? 2 : 3);
    p->k = BIT(p->dt) & FP8S ? 32 : (bytes ? 32 : 16) << between(g, 0, bytes ? 1 : 2);
    bool large = BIT(p->dt) & (BIT(F16) | BIT(BF16)) && chance(g, 15);
    if (large) { /* with producers, and clusters */
        p->m = p->n = 128;
        p->k = 64;
    }
    p->trips = 4;
    t->n = p->m * (p->n > p->k ? p->n : p->k);
    p->plain = large && chance(g, 70);
    t->len = p->plain ? 131072 : 65536;
    memcpy(t->grid, grids[large ? 1 + rnd(g, 3) : rnd(g, 5)], sizeof t->grid);
    t->nprog = t->grid[0] * t->grid[1] * t->grid[2];
    t->warps = 4 << between(g, 0, 1);
    t->stages = between(g, 1, 4);
    p->stride_n = strides[rnd(g, 12)];
    if (p->plain && chance(g, 80)) /* TMA, off the lines of 128 bytes */
        p->stride_n = 80 + 32 * between(g, 0, 3);
    t->arg_n = p->stride_n;
    p->stride_q = strides[rnd(g, 12)];
    t->arg_q = p->stride_q;
    t->arg_m = BIT(p->dt) & FP8S ? between(g, 0, 3) : between(g, 2 * p->plain, 4);
    t->arg_s = 0.5;
    t->aligned = chance(g, 85);
}

void
make_loops(Gen *g)
{
    Tree *t = g->tree;
    Plan p;
    sizes(g, &p);
    if (chance(g, 65)) {
        one_tile(g, &p);
        return;
    }
    /* One tile after another: as a persistent kernel, or a loop of each program's own. */
    p.tiles = between(g, 2, 3);
    Value *i = value_new(g, scalar(I32), 'i');
    i->flags = V_SPECIAL;
    Stmt *b = loop_new(g,
                       t->nprog == t->grid[0] && chance(g, 70)
                           ? tree_text(t, "for %s in %s(pid, %d, tl.num_programs(0)%s)",
                                       value_name(t, i), one_of(g, "range|tl.range"),
                                       p.tiles * t->nprog - between(g, 0, 1), "")
                           : tree_text(t, "for %s in range(pid * %d, pid * %d + %d)",
                                       value_name(t, i), p.tiles, p.tiles, p.tiles),
                       i, false);
    int scope = g->nval;
    Stmt **tail = block_open(g, b, 0);
    p.tile = let(g, scalar(I32), "tl.to_tensor($)", i);
    one_tile(g, &p);
    block_close(g, tail, scope);
}
