/* Numbers packed into others: nibbles and bits of a word, taken apart by shifts, joined
   in the order that the tile wants, scaled by rows or groups; and matmuls of formats that
   have scales of their own. */
#include "tests/gen/gen.h"

/* The halves of bytes as a tile of twice as many rows or columns. */
Value *
nibbles(Gen *g, Value *w, bool rows)
{
    Type h = w->t, j = w->t;
    j.dim[j.rank++] = 2;
    Value *lo, *hi;
    if (w->t.dt == I8 && chance(g, 50)) { /* with their sign */
        lo = let(g, h, "($ << 4).to(tl.int8) >> 4", w);
        hi = let(g, h, "$ >> 4", w);
    } else {
        lo = let(g, h, "$ & 15", w);
        hi = let(g, h, "($ >> 4) & 15", w);
    }
    if (!rows) {
        h.dim[1] *= 2;
        return chance(g, 50)
                   ? let(g, h, "tl.interleave($, $)", lo, hi)
                   : let(g, h, "tl.reshape(tl.join($, $), %s)", lo, hi, dims(g, &h));
    }
    h.dim[0] *= 2;
    Value *both = let(g, j, "tl.join($, $)", lo, hi);
    return let(g, h, "tl.reshape(tl.permute($, (0, 2, 1)), %s)", both, dims(g, &h));
}

/* Numbers up to 15 as floats of the type around zero, then times a scale. */
Value *
dequantized(Gen *g, Value *v, Dt dt)
{
    const char *tl = dt_info[dt].tl, *sig = dt_info[dt].sig;
    Type s = with_dt(v->t, dt);
    Value *f = chance(g, 50) ? let(g, s, "$.to(tl.%s) - 8.0", v, tl)
                             : let(g, s, "($.to(tl.int8) - 8).to(tl.%s)", v, tl);
    flt(f, 16, 0, V_ZERO);
    switch (between(g, 0, 3)) {
    case 0: return f;
    case 1:
        return flt(
            let(g, s, "$ * tl.load(p_%s + tl.arange(0, %d))[None, :]", f, sig, s.dim[1]),
            256, 1, V_ZERO);
    case 2:
        return flt(let(g, s, "$ * tl.load(p_%s + tl.arange(0, %d) // 8)[:, None]", f, sig,
                       s.dim[0]),
                   256, 1, V_ZERO);
    default: return flt(let(g, s, "$ * 0.5", f), 8, 1, V_ZERO);
    }
}

Value *
make_unpack(Gen *g)
{
    Tree *t = g->tree;
    int k = log2_of(t->n) - 3;
    Dt dt = dt_of(g, BIT(U8) | BIT(I8) | BIT(I32) | BIT(U32) | BIT(I16));
    int lr = between(g, 0, k);
    Type s = {.dt = dt, .rank = 2, .dim = {1 << lr, 1 << between(g, 0, k - lr)}};
    Value *w = load_from(g, dt, s);
    if (chance(g, 55)) {
        Value *v = nibbles(g, w, chance(g, 50));
        return chance(g, 30) ? v : dequantized(g, v, dt_of(g, FLOATS));
    }
    /* all of a word's parts by a dimension of shifts */
    int bits = chance(g, 60) ? 4 : chance(g, 50) ? 2 : 1, n = 8 / bits;
    Type c = {.dt = dt, .rank = 3, .dim = {s.dim[0], s.dim[1], n}};
    Type r = {.dt = dt, .rank = 2, .dim = {s.dim[0], s.dim[1] * n}};
    Value *v = let(g, c,
                   "($[:, :, None] >> (tl.arange(0, %d) * %d)[None, None, :].to("
                   "tl.%s)) & %d",
                   w, n, bits, dt_info[dt].tl, (1 << bits) - 1);
    v = let(g, r, "tl.reshape($, %s)", v, dims(g, &r));
    if (bits == 1 && chance(g, 60))
        return let(g, with_dt(r, I1), "$ != 0", v);
    return chance(g, 40) ? v : dequantized(g, v, dt_of(g, FLOATS));
}

typedef struct Format {
    const char *name, *dt;
    int packed;
    double bound;
    int frac;
} Format;

/* Elements of a scaled operand, `across` when the inner dimension runs along rows. */
static Value *
scaled_operand(Gen *g, const Format *f, int outer, int inner, bool rhs)
{
    int in = inner / f->packed;
    Type s = {.dt = f->dt[0] == 'u' ? U8 : E4, .rank = 2};
    s.dim[0] = rhs ? in : outer;
    s.dim[1] = rhs ? outer : in;
    const char *ix =
        tree_text(g->tree, "tl.arange(0, %d)[:, None] * %d + tl.arange(0, %d)[None, :]",
                  s.dim[0], s.dim[1], s.dim[1]);
    return let(g, s, "tl.load(p_%s + (%s))", f->dt, ix);
}

/* Scales between 1/2 and 4, for 32 elements each. */
static Value *
scales(Gen *g, int outer, int inner)
{
    int n = inner / 32;
    Type s = {.dt = U8, .rank = 2, .dim = {outer, n}};
    return let(g, s,
               "(tl.load(p_u8 + %d + tl.arange(0, %d)[:, None] * %d + tl.arange(0, "
               "%d)[None, :]) & 3) + 126",
               between(g, 0, 9), outer, n, n);
}

Value *
make_scaled(Gen *g)
{
    static const Format of[] = {{"e2m1", "u8", 2, 6, 1}, {"e4m3", "fp8e4nv", 1, 8, 0}};
    Tree *t = g->tree;
    if (t->n < 256 || g->depth)
        return NULL;
    const Format *a = &of[rnd(g, 2)], *b = &of[rnd(g, 2)];
    int room = log2_of(t->n) - 8, lm = between(g, 0, room > 2 ? 2 : room);
    int m = 16 << lm, n = 16 << between(g, 0, room - lm > 2 ? 2 : room - lm);
    int k = 32 << between(g, 0, 1);
    if ((m > n ? m : n) * k + 16 > t->len)
        return NULL;
    Value *x = scaled_operand(g, a, m, k, false), *y = scaled_operand(g, b, n, k, true);
    Value *sx = chance(g, 80) ? scales(g, m, k) : NULL;
    Value *sy = chance(g, 80) ? scales(g, n, k) : NULL;
    Type s = {.dt = F32, .rank = 2, .dim = {m, n}};
    double bound = a->bound * b->bound * 16 * k;
    int frac = a->frac + b->frac + 2;
    const char *kx = sx ? "$" : "None", *ky = sy ? "$" : "None";
    const char *fmt = tree_text(t, "tl.dot_scaled($, %s, \"%s\", $, %s, \"%s\")", kx,
                                a->name, ky, b->name);
    const Value *use[4] = {x};
    int at = 1;
    if (sx)
        use[at++] = sx;
    use[at++] = y;
    if (sy)
        use[at++] = sy;
    return flt(let(g, s, fmt, use[0], use[1], use[2], use[3]), bound, frac, V_ZERO);
}

/* A matmul for each of a few matrices. */
Value *
make_batch(Gen *g)
{
    Tree *t = g->tree;
    if (t->n < 512 || g->depth)
        return NULL;
    Dt dt = dt_of(g, BIT(F16) | BIT(BF16) | BIT(F32) | BIT(I8));
    int e = 2 << between(g, 0, t->n >= 1024), m = 16, n = 16, k = dt == I8 ? 32 : 16;
    Type x = {.dt = dt, .rank = 3, .dim = {e, m, k}};
    Type y = {.dt = dt, .rank = 3, .dim = {e, k, n}};
    const char *sig = dt_info[dt].sig;
    Value *a = let(g, x, "tl.load(p_%s + %s)", sig, offsets(g, &x));
    Value *b;
    if (chance(g, 50)) {
        Type z = {.dt = dt, .rank = 3, .dim = {e, n, k}};
        b = let(g, z, "tl.load(p_%s + %s)", sig, offsets(g, &z));
        b = let(g, y, "tl.permute($, (0, 2, 1))", b);
    } else {
        b = let(g, y,
                "tl.load(p_%s + %s, mask=tl.arange(0, %d)[None, :, None] < %s, "
                "other=%s)",
                sig, offsets(g, &y), k, one_of(g, "n|17|m * 8"), dt == I8 ? "0" : "0.0");
    }
    Type s = {.dt = dt == I8 ? I32 : F32, .rank = 3, .dim = {e, m, n}};
    const char *precise = dt == F32 ? ", input_precision=\"ieee\"" : "";
    Value *v = let(g, s, "tl.dot($, $%s)", a, b, precise);
    return flt(v, 256.0 * k, 2, V_ZERO);
}
