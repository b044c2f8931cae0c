/* Matmuls of three dimensions and of formats with scales in loops, with sums that are
   carried, and in loops within loops that go round at other times. */
#include "tests/gen/gen.h"

typedef struct Deep {
    Dt dt;
    int e, m, n, k;
    Value *iv;
} Deep;

static Type
cube(Dt dt, int e, int rows, int cols)
{
    return (Type){.dt = dt, .rank = 3, .dim = {e, rows, cols}};
}

static Value *
part(Gen *g, const Deep *d, Type s)
{
    Tree *t = g->tree;
    const char *sig = dt_info[s.dt].sig;
    int step = (t->len - numel(&s)) / 4;
    const char *mask = "";
    if (chance(g, 30))
        mask = tree_text(t, ", mask=tl.arange(0, %d)[None, None, :] < %s, other=%s",
                         s.dim[2], one_of(g, "n|17|m * 8"), s.dt == I8 ? "0" : "0.0");
    return loaded(let(g, s, "tl.load(p_%s + ($ & 3) * %d + %s%s)", sig, d->iv, step,
                      offsets(g, &s), mask));
}

static void
add_cube(Gen *g, const Deep *d, Value *acc)
{
    const char *precise = d->dt == F32 ? ", input_precision=\"ieee\"" : "";
    Value *a = part(g, d, cube(d->dt, d->e, d->m, d->k)), *b;
    if (chance(g, 40)) {
        b = part(g, d, cube(d->dt, d->e, d->n, d->k));
        b = like(let(g, cube(d->dt, d->e, d->k, d->n), "tl.permute($, (0, 2, 1))", b), b);
    } else {
        b = part(g, d, cube(d->dt, d->e, d->k, d->n));
    }
    if (chance(g, 60)) {
        set(g, acc, "tl.dot($, $, $%s)", a, b, acc, precise);
        return;
    }
    Value *v = let(g, acc->t, "tl.dot($, $%s)", a, b, precise);
    set(g, acc, chance(g, 70) ? "$ + $" : "$ - $", acc, v);
}

static Stmt *
turns(Gen *g, const char *hi, Value *outer)
{
    Value *i = value_new(g, scalar(I32), 'i');
    i->flags = V_SPECIAL;
    Stmt *b = loop_new(g,
                       tree_text(g->tree, "for %s in %s(0, %s)", value_name(g->tree, i),
                                 one_of(g, "range|tl.range"), hi),
                       i, false);
    if (outer)
        b->use[b->nuse++] = outer;
    return b;
}

static Value *
cubes(Gen *g)
{
    Tree *t = g->tree;
    if (t->n < 512)
        return NULL;
    Deep d = {.dt = dt_of(g, BIT(F16) | BIT(BF16) | BIT(F32) | BIT(I8))};
    d.e = 2 << between(g, 0, t->n >= 1024);
    d.m = d.n = 16;
    d.k = d.dt == I8 ? 32 : 16;
    Type s = cube(d.dt == I8 ? I32 : F32, d.e, d.m, d.n);
    Value *acc[2];
    for (int i = 0; i < 2; i++) {
        acc[i] = let(g, s, "tl.zeros(%s, tl.%s)", dims(g, &s), dt_info[s.dt].tl);
        acc[i]->letter = 'a';
        flt(acc[i], 1 << 17, 2, V_ZERO);
    }
    Stmt *b = turns(g, one_of(g, "m|3|2|n & 3"), NULL);
    int scope = g->nval;
    Stmt **tail = block_open(g, b, 0);
    Value *iv = d.iv = let(g, scalar(I32), "tl.to_tensor($)", b->res[0]);
    add_cube(g, &d, acc[0]);
    if (chance(g, 50)) {
        Stmt *c = turns(g, one_of(g, "2|m & 1|\x80 + 1|3 - \x80"), iv);
        int in = g->nval;
        Stmt **after = block_open(g, c, 0);
        d.iv = let(g, scalar(I32), "tl.to_tensor($) + $", c->res[0], iv);
        add_cube(g, &d, acc[chance(g, 70)]);
        block_close(g, after, in);
        d.iv = iv;
    }
    if (chance(g, 30))
        add_cube(g, &d, acc[1]);
    block_close(g, tail, scope);
    put(g, acc[1]);
    return acc[0];
}

/* ---- formats with scales */

typedef struct Format {
    const char *name;
    Dt dt;
    double bound;
    int frac;
} Format;

static const Format formats[] = {{"e2m1", U8, 6, 1},
                                 {"e4m3", E4, 8, 0},
                                 {"e5m2", E5, 8, 0},
                                 {"bf16", BF16, 16, 1},
                                 {"fp16", F16, 16, 1}};

static Value *
scaled(Gen *g, const Deep *d, const Format *f, int outer, bool rhs, bool packed_k)
{
    bool halves = f->dt == U8;
    int in = d->k / (halves && packed_k ? 2 : 1);
    int out = outer / (halves && !packed_k ? 2 : 1);
    Type s = {.dt = f->dt, .rank = 2, .dim = {rhs ? in : out, rhs ? out : in}};
    int step = (g->tree->len - numel(&s)) / 4;
    return let(g, s, "tl.load(p_%s + ($ & 3) * %d + %s)", dt_info[f->dt].sig, d->iv, step,
               offsets(g, &s));
}

static Value *
factors(Gen *g, const Deep *d, int outer)
{
    Type s = {.dt = U8, .rank = 2, .dim = {outer, d->k / 32}};
    return let(g, s, "(tl.load(p_u8 + $ * 8 + %s) & 3) + 126", d->iv, offsets(g, &s));
}

static void
add_scaled(Gen *g, const Deep *d, Value *acc)
{
    const Format *a = &formats[rnd(g, 5)], *b = &formats[rnd(g, 5)];
    bool pa = a->dt != U8 || chance(g, 60), pb = b->dt != U8 || chance(g, 60);
    Value *x = scaled(g, d, a, d->m, false, pa), *y = scaled(g, d, b, d->n, true, pb);
    Value *sx = chance(g, 75) ? factors(g, d, d->m) : NULL;
    Value *sy = chance(g, 75) ? factors(g, d, d->n) : NULL;
    Value *use[6] = {x};
    int at = 1;
    if (sx)
        use[at++] = sx;
    use[at++] = y;
    if (sy)
        use[at++] = sy;
    const char *packs = tree_text(g->tree, "%s%s", pa ? "" : ", lhs_k_pack=False",
                                  pb ? "" : ", rhs_k_pack=False");
    const char *fmt =
        tree_text(g->tree, "tl.dot_scaled($, %s, \"%s\", $, %s, \"%s\"",
                  sx ? "$" : "None", a->name, sy ? "$" : "None", b->name);
    if (chance(g, 60)) {
        use[at++] = acc;
        set(g, acc, tree_text(g->tree, "%s, acc=$%s)", fmt, packs), use[0], use[1],
            use[2], use[3], use[4]);
        return;
    }
    Value *v = let(g, acc->t, tree_text(g->tree, "%s%s)", fmt, packs), use[0], use[1],
                   use[2], use[3]);
    set(g, acc, "$ + $", acc, v);
}

static Value *
scaled_loop(Gen *g)
{
    Tree *t = g->tree;
    int room = log2_of(t->n) - 8, lm = between(g, 0, room > 2 ? 2 : room);
    Deep d = {.m = 16 << lm, .n = 16 << between(g, 0, room - lm > 2 ? 2 : room - lm)};
    d.k = 32 << between(g, 0, 1);
    if ((d.m > d.n ? d.m : d.n) * d.k + 64 > t->len)
        return NULL;
    Type s = {.dt = F32, .rank = 2, .dim = {d.m, d.n}};
    Value *acc = let(g, s, "tl.zeros(%s, tl.float32)", dims(g, &s));
    acc->letter = 'a';
    flt(acc, 1 << 20, 4, V_ZERO);
    Stmt *b = turns(g, one_of(g, "m|3|2"), NULL);
    int scope = g->nval;
    Stmt **tail = block_open(g, b, 0);
    d.iv = let(g, scalar(I32), "tl.to_tensor($)", b->res[0]);
    add_scaled(g, &d, acc);
    block_close(g, tail, scope);
    return acc;
}

Value *
make_deep(Gen *g)
{
    if (g->tree->n < 256 || g->depth)
        return NULL;
    return chance(g, 60) ? cubes(g) : scaled_loop(g);
}
