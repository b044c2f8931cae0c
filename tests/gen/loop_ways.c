/* Ways for operands from memory to the matmuls of make_loops.c, other than a tile that is
   loaded as the matmul takes it: parts that are joined, tiles that are split, transposed
   or spread, rows by a list of their numbers; and what reductions and scans do to a tile
   between two matmuls. */
#include "tests/gen/loops.h"

static Type
tile3(Dt dt, int a, int b, int c)
{
    return (Type){.dt = dt, .rank = 3, .dim = {a, b, c}};
}

/* Two tiles of half the columns or rows, in turns or one behind the other. */
static Value *
joined(Gen *g, const Plan *p, Dt dt, int rows, int cols, int along)
{
    bool by_rows = chance(g, 40);
    int r = by_rows ? rows / 2 : rows, c = by_rows ? cols : cols / 2;
    Value *a = loop_tile_of(g, p, dt, r, c, along);
    Value *b = chance(g, 80) ? loop_tile_of(g, p, dt, r, c, along) : a;
    Type s = loop_tile(dt, rows, cols);
    int way = between(g, 0, 2);
    Value *v;
    if (way == 0 && !by_rows)
        v = let(g, s, "tl.interleave($, $)", a, b);
    else if (way == 1)
        v = let(g, s, "tl.cat($, $, dim=%d)", a, b, by_rows ? 0 : 1);
    else
        v = let(g, s, "tl.reshape(tl.permute(tl.join($, $), %s), [%d, %d])", a, b,
                by_rows ? one_of(g, "(2, 0, 1)|(0, 2, 1)")
                        : one_of(g, "(0, 2, 1)|(0, 1, 2)"),
                rows, cols);
    return flt(v, a->bound > b->bound ? a->bound : b->bound,
               a->frac > b->frac ? a->frac : b->frac, a->flags | b->flags);
}

/* One half of a tile of twice the columns, or their difference. */
static Value *
halved(Gen *g, const Plan *p, Dt dt, int rows, int cols, int along)
{
    Value *w = loop_tile_of(g, p, dt, rows, 2 * cols, along), *b;
    Value *x = let(g, tile3(dt, rows, cols, 2),
                   chance(g, 50) ? "tl.reshape($, [%d, %d, 2])"
                                 : "tl.permute(tl.reshape($, [%d, 2, %d]), (0, 2, 1))",
                   w, rows, cols);
    if (chance(g, 50))
        x = let(g, tile3(dt, rows, 2, cols), "tl.permute($, (0, 2, 1))", x),
        x = let(g, tile3(dt, rows, cols, 2), "tl.permute($, (0, 2, 1))", x);
    Type s = loop_tile(dt, rows, cols);
    Value *a = let2(g, s, s, &b, "tl.split($)", x);
    like(a, w);
    like(b, w);
    if (dt != I8 && !(BIT(dt) & FP8S) && chance(g, 30))
        return flt(let(g, s, "$ - $", a, b), 2 * w->bound, w->frac, V_ZERO);
    return chance(g, 50) ? a : b;
}

/* A tile that lies in memory by blocks, or in one row. */
static Value *
blocks(Gen *g, const Plan *p, Dt dt, int rows, int cols)
{
    Tree *t = g->tree;
    Type s = loop_tile(dt, rows, cols),
         flat = {.dt = dt, .rank = 1, .dim = {rows * cols}};
    int room = (t->len - rows * cols) / 4 / 16 * 16;
    Value *w = p->iv ? let(g, flat, "tl.load(p_%s + $ * %d + tl.arange(0, %d))",
                           dt_info[dt].sig, p->iv, room, rows * cols)
                     : let(g, flat, "tl.load(p_%s + tl.arange(0, %d))", dt_info[dt].sig,
                           rows * cols);
    int r = rows / 8, c = cols / 8;
    Value *v;
    switch (between(g, 0, 3)) {
    case 0: v = let(g, s, "tl.reshape($, [%d, %d])", w, rows, cols); break;
    case 1: v = let(g, s, "tl.trans(tl.reshape($, [%d, %d]))", w, cols, rows); break;
    case 2:
        v = let(g, s, "$.reshape(%d, %d, 8, 8).permute(0, 2, 1, 3).reshape(%d, %d)", w, r,
                c, rows, cols);
        break;
    default:
        v = let(g, s, "$.reshape(%d, 8, 8, %d).permute(3, 1, 0, 2).reshape(%d, %d)", w, r,
                c, rows, cols);
        if (c * 8 != rows || r * 8 != cols)
            v = let(g, s, "tl.reshape($, [%d, %d])", w, rows, cols);
    }
    return flt(v,
               dt == I8         ? 128
               : BIT(dt) & FP8S ? 8
                                : 16,
               dt == I8 || BIT(dt) & FP8S ? 0 : 1, 0);
}

/* Rows by a list of their numbers, as pointers or through a descriptor. */
static Value *
listed(Gen *g, const Plan *p, Dt dt, int rows, int cols)
{
    Tree *t = g->tree;
    Type r = {.dt = I32, .rank = 1, .dim = {rows}}, s = loop_tile(dt, rows, cols);
    const char *sig = dt_info[dt].sig;
    int stride = cols + 16 * between(g, 0, 3), high = 16 << between(g, 0, 2);
    Value *ix = p->iv && chance(g, 60)
                    ? let(g, r, "tl.load(p_i32 + $ * 16 + tl.arange(0, %d)) & %d", p->iv,
                          rows, high - 1)
                    : let(g, r, "tl.load(p_i32 + tl.arange(0, %d)) & %d", rows, high - 1);
    if (high * stride + 64 > t->len)
        return NULL;
    Value *v;
    if (cols * dt_info[dt].bytes >= 32 && rows >= 8 && chance(g, 50)) {
        t->aligned = true;
        const char *col = p->iv && chance(g, 50)
                              ? tree_text(t, "$ * 16 - %d", between(g, 0, 16))
                              : NULL;
        const char *d = tree_text(t,
                                  "tl.make_tensor_descriptor(p_%s, shape=[%d, %d], "
                                  "strides=[%d, 1], block_shape=[1, %d]).gather($, %s)",
                                  sig, high - between(g, 0, 3), cols - between(g, 0, 9),
                                  stride, cols, col ? col : "0");
        v = let(g, s, d, ix, p->iv);
    } else {
        v = let(g, s,
                tree_text(t,
                          "tl.load(p_%s + $[:, None] * %d + tl.arange(0, %d)[None, :]%s)",
                          sig, stride, cols,
                          BIT(dt) & FP8S ? ""
                                         : one_of(g, "|, mask=($ > 3)[:, None], other=0|"
                                                     ", mask=($ > 3)[:, None], other=1")),
                ix, ix);
    }
    return flt(v,
               dt == I8         ? 128
               : BIT(dt) & FP8S ? 8
                                : 16,
               dt == I8 || BIT(dt) & FP8S ? 0 : 1, 0);
}

/* One row or column for all, or one number. */
static Value *
spread(Gen *g, const Plan *p, Dt dt, int rows, int cols, int along)
{
    bool row = chance(g, 50);
    Value *w = loop_tile_of(g, p, dt, row ? 1 : rows, row ? cols : 1, along);
    return like(
        let(g, loop_tile(dt, rows, cols), "tl.broadcast_to($, [%d, %d])", w, rows, cols),
        w);
}

/* Elements moved along a dimension. */
static Value *
moved(Gen *g, const Plan *p, Dt dt, int rows, int cols, int along)
{
    Value *w = loop_tile_of(g, p, dt, rows, cols, along);
    int axis = (int)rnd(g, 2), n = axis ? cols : rows;
    Type s = loop_tile(dt, rows, cols);
    if (BIT(dt) & FP8S || chance(g, 50))
        return like(let(g, s, "tl.flip($, %d)", w, axis), w);
    Value *ix =
        let(g, loop_tile(I32, rows, cols),
            "(tl.arange(0, %d)[:, None] * %d + tl.arange(0, %d)[None, :] * %d) & %d",
            rows, between(g, 0, 7), cols, between(g, 0, 7), n - 1);
    return like(let(g, s, "tl.gather($, $, %d)", w, ix, axis), w);
}

Value *
loop_woven(Gen *g, const Plan *p, Dt dt, int rows, int cols, int along)
{
    switch (between(g, 0, 6)) {
    case 0:
        if (cols >= 32)
            return joined(g, p, dt, rows, cols, along);
        break;
    case 1:
        if (rows * cols <= 8192)
            return halved(g, p, dt, rows, cols, along);
        break;
    case 2:
    case 3: return blocks(g, p, dt, rows, cols);
    case 4: return listed(g, p, dt, rows, cols);
    case 5: return spread(g, p, dt, rows, cols, along);
    default: return moved(g, p, dt, rows, cols, along);
    }
    return NULL;
}

const char *
loop_mask(Gen *g, int rows, int cols)
{
    Tree *t = g->tree;
    switch (between(g, 0, 6)) {
    case 0: return one_of(g, "pid == 0|m > 2|n > 70|q < 0");
    case 1: return tree_text(t, "(tl.load(p_i32 + tl.arange(0, %d)) > 0)[:, None]", rows);
    case 2: return tree_text(t, "(tl.load(p_i32 + tl.arange(0, %d)) > 0)[None, :]", cols);
    case 3:
        return tree_text(
            t, "(tl.arange(0, %d)[:, None] < n) | (tl.arange(0, %d)[None, :] < %d)", rows,
            cols, between(g, 0, cols));
    case 4:
        return tree_text(t, "tl.arange(0, %d)[:, None] >= tl.arange(0, %d)[None, :]",
                         rows, cols);
    case 5:
        return tree_text(t, "tl.arange(0, %d)[None, :] // %d > %d", cols,
                         1 << between(g, 0, 5), between(g, 0, 3));
    default: return tree_text(t, "tl.load(p_i32 + pid + %d) > 0", between(g, 0, 9));
    }
}

Value *
loop_judged(Gen *g, Value *v)
{
    bool whole = v->t.dt == I8;
    Dt by = whole ? I32 : F32;
    if (BIT(v->t.dt) & FP8S)
        return v;
    int axis = (int)rnd(g, 2), n = v->t.dim[!axis];
    const char *at = axis ? "[:, None]" : "[None, :]";
    Type s = with_dt(v->t, by), row = {.dt = by, .rank = 1, .dim = {n}};
    Value *w = let(g, s, "$.to(tl.%s)", v, dt_info[by].tl), *c;
    w->flags |= V_SPECIAL;
    switch (between(g, 0, 3)) {
    case 0:
        c = let(g, row, "tl.sum($, %d)", w, axis);
        c->flags |= V_SPECIAL;
        c = let(g, with_dt(v->t, I1), "tl.broadcast_to(($ > 0)%s, [%d, %d])", c, at,
                v->t.dim[0], v->t.dim[1]);
        break;
    case 1:
        c = let(g, s, "tl.cumsum($, %d%s)", w, axis, one_of(g, "|, reverse=True"));
        c->flags |= V_SPECIAL;
        c = let(g, with_dt(v->t, I1), "$ > 0", c);
        break;
    case 2:
        c = let(g, with_dt(row, I32), "tl.arg%s($, %d)", one_of(g, "max|min"), w, axis);
        c->flags |= V_SPECIAL;
        c = let(g, with_dt(v->t, I1), "$%s == tl.arange(0, %d)%s", c, at, v->t.dim[axis],
                axis ? "[None, :]" : "[:, None]");
        break;
    default:
        c = let(g, with_dt(row, I32), "tl.sum(($ > 0).to(tl.int32), %d)", w, axis);
        c->flags |= V_SPECIAL;
        c = let(g, with_dt(v->t, I1), "$ < $%s", w, c, at);
    }
    v = whole
            ? flt(let(g, v->t, "tl.where($, $, 1).to(tl.int8)", c, v), 128, 0, 0)
            : flt(let(g, v->t, "tl.where($, $, -$)", c, v, v), v->bound, v->frac, V_ZERO);
    return v;
}
