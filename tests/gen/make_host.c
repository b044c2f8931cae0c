/* Descriptors that the host makes, as arguments: loads, stores, rows by lists of their
   numbers, atomics, walks; sizes that no block divides, strides of 16 bytes and more. */
#include "tests/gen/gen.h"

static const char *
name(const Gen *g, int k)
{
    return tree_text(g->tree, "d_%d", k);
}

/* Of matrices, rows, or several matrices, whose blocks have at most n elements. */
static bool
random_host(Gen *g, Host *h, unsigned dts)
{
    Tree *t = g->tree;
    *h = (Host){.dt = dt_of(g, dts)};
    int least = 16 / dt_info[h->dt].bytes;
    int how = between(g, 0, 9);
    h->rank = how == 0 ? 1 : how < 3 ? 3 : 2;
    int last = h->rank - 1, cols = least << between(g, 0, 2);
    if (cols > t->n)
        return false;
    int room = log2_of(t->n / cols);
    h->block[last] = cols;
    h->strides[last] = 1;
    h->shape[last] = between(g, 1, 3 * cols);
    if (last == 0)
        return true;
    if (last == 2)
        h->block[0] = 1 << between(g, 0, room > 1 ? 1 : room);
    h->block[last - 1] = t->n / cols / (last == 2 ? h->block[0] : 1);
    h->block[last - 1] >>= between(g, 0, log2_of(h->block[last - 1]));
    if (h->block[last - 1] > 64)
        h->block[last - 1] = 64;
    h->shape[last - 1] = between(g, 1, 40);
    h->strides[last - 1] =
        (h->shape[last] + least - 1) / least * least + least * between(g, 0, 3);
    if (last == 2) {
        h->shape[0] = between(g, 1, 3);
        h->strides[0] = h->strides[1] * (h->shape[1] + between(g, 0, 2));
    }
    h->nan = BIT(h->dt) & FLOATS && chance(g, 15);
    return true;
}

static Type
block_of(const Host *h)
{
    Type s = {.dt = h->dt, .rank = h->rank};
    for (int i = 0; i < h->rank; i++)
        s.dim[i] = h->block[i];
    return s;
}

/* Where a block begins: partly outside, too; `moves` is what a loop adds, or "". */
static const char *
place(Gen *g, const Host *h, const char *moves)
{
    const char *s = "";
    for (int i = 0; i < h->rank; i++) {
        const char *at = i == h->rank - 1   ? one_of(g, "0|0|pid * 8|-1|3|16|pid")
                         : i == h->rank - 2 ? one_of(g, "0|pid|-1|pid * 2 - 1|1|pid * 16")
                                            : one_of(g, "0|pid|1");
        const char *by = i == h->rank - 1   ? one_of(g, "|| * 8| * -3")
                         : i == h->rank - 2 ? one_of(g, "| * 2| * 16| * 0")
                                            : one_of(g, "|| % 2");
        if (*moves && *by)
            at = tree_text(g->tree, "%s + %s%s", at, moves, by);
        s = tree_text(g->tree, "%s%s%s", s, i ? ", " : "", at);
    }
    return s;
}

static Value *
seen(const Host *h, Value *v)
{
    loaded(v);
    if (h->nan)
        v->flags = V_WILD;
    return v;
}

static Value *
host_load(Gen *g)
{
    Host h;
    int k;
    if (!random_host(g, &h, INTS | FLOATS | FP8S) || (k = host_new(g->tree, h)) < 0)
        return NULL;
    return seen(&h, let(g, block_of(&h),
                        chance(g, 80) ? "%s.load([%s])"
                                      : "tl.load_tensor_descriptor(%s, [%s])",
                        name(g, k), place(g, &h, "")));
}

/* One block after another; each may be stored by a second descriptor. */
static Value *
host_walk(Gen *g)
{
    Tree *t = g->tree;
    Host h;
    int k, to = -1;
    if (!random_host(g, &h, INTS | BIT(F32) | BIT(F16) | BIT(BF16)) ||
        (k = host_new(t, h)) < 0)
        return NULL;
    Type s = block_of(&h);
    const char *tl = dt_info[h.dt].tl;
    Value *acc = let(g, s, "tl.full(%s, 0, tl.%s)", dims(g, &s), tl);
    acc->letter = 'a';
    flt(acc, 128, 1, h.nan ? V_WILD | V_ZERO : V_ZERO);
    if (h.rank == 2 && chance(g, 50)) { /* as many rows as there are, less some */
        Host out = {.dt = h.dt, .output = true, .rank = 2};
        out.kind = BIT(h.dt) & FLOATS ? BUF_ZERO : BUF_EXACT;
        out.shape[0] = 5 * t->nprog * h.block[0] - between(g, 0, h.block[0] - 1);
        out.shape[1] = h.block[1] - between(g, 0, h.block[1] - 1);
        out.strides[0] = h.block[1];
        out.strides[1] = 1;
        out.block[0] = h.block[0];
        out.block[1] = h.block[1];
        to = host_new(t, out);
    }
    Value *i = value_new(g, scalar(I32), 'i');
    i->flags = V_SPECIAL;
    Stmt *b = loop_new(g,
                       tree_text(t, "for %s in %s(0, %s)", value_name(t, i),
                                 one_of(g, "range|tl.range"), one_of(g, "3|4|m|2|n & 3")),
                       i, false);
    int scope = g->nval;
    Stmt **tail = block_open(g, b, 0);
    Value *v = seen(&h, let(g, s, "%s.load([%s])", name(g, k),
                            place(g, &h, value_name(t, i))));
    if (chance(g, 40))
        block_of_steps(g, 1);
    if (to >= 0)
        act(g, "%s.store([(pid * 5 + %s) * %d, 0], $)", name(g, to), value_name(t, i),
            h.block[0], v);
    if (h.nan)
        set(g, acc, "tl.where($ != $, $, 1.0).to(tl.%s)", v, v, acc, tl);
    else if (BIT(h.dt) & FLOATS && h.dt != F32)
        set(g, acc, "tl.maximum($, $).to(tl.%s)", acc, v, tl);
    else
        set(g, acc, "$ %s $", acc, one_of(g, "+|-"), v);
    block_close(g, tail, scope);
    return acc;
}

/* What a value of two dimensions or one is put by: all of a block, or a part. */
static Value *
host_store(Gen *g)
{
    Tree *t = g->tree;
    Value *v = pick(g, (Want){.dts = NUMS, .min_rank = 1, .max_rank = 2});
    if (!v || g->quiet || numel(&v->t) > t->n ||
        v->t.dim[v->t.rank - 1] * dt_info[v->t.dt].bytes < 16)
        return NULL;
    Dt dt = (Dt)v->t.dt;
    int cols = v->t.dim[v->t.rank - 1], rows = v->t.rank == 2 ? v->t.dim[0] : 1;
    int least = 16 / dt_info[dt].bytes;
    Host h = {.dt = dt, .output = true, .rank = v->t.rank};
    h.kind = v->flags & V_ZERO ? BUF_ZERO : BUF_EXACT;
    h.block[h.rank - 1] = cols;
    h.block[0] = v->t.dim[0];
    h.strides[h.rank - 1] = 1;
    if (h.rank == 2) {
        h.shape[0] = t->nprog * rows - between(g, 0, rows - 1);
        h.shape[1] = cols - between(g, 0, cols - 1);
        h.strides[0] = cols + least * between(g, 0, 2);
    } else {
        h.shape[0] = t->nprog * cols - between(g, 0, cols - 1);
    }
    int k = host_new(t, h);
    if (k < 0)
        return NULL;
    if (h.rank == 2)
        act(g, "%s.store([pid * %d, 0], $)", name(g, k), rows, v);
    else
        act(g, "%s.store([pid * %d], $)", name(g, k), cols, v);
    return v;
}

/* Rows by a list: loaded, or put where no other row of any program goes. */
static Value *
host_rows(Gen *g)
{
    Tree *t = g->tree;
    Host h = {.rank = 2};
    h.dt = dt_of(g, INTS | FLOATS);
    int rows = 8 << between(g, 0, 2), cols = 32 / dt_info[h.dt].bytes;
    if (rows * cols > t->n)
        return NULL;
    h.block[0] = 1;
    h.block[1] = cols;
    h.strides[1] = 1;
    h.strides[0] = cols + 16 / dt_info[h.dt].bytes * between(g, 0, 2);
    Type s = {.dt = h.dt, .rank = 2, .dim = {rows, cols}};
    if (chance(g, 50) || g->quiet || g->depth) {
        h.shape[0] = between(g, 1, 40);
        h.shape[1] = between(g, 1, h.strides[0]);
        int k = host_new(t, h);
        Dt from = dt_of(g, INTS);
        Type r = {.dt = from, .rank = 1, .dim = {rows}};
        if (k < 0)
            return NULL;
        Value *ix =
            let(g, r, "tl.load(p_%s + tl.arange(0, %d))", dt_info[from].sig, rows);
        return loaded(let(g, s, "%s.gather(($ %% %d).to(tl.int32), %s)", name(g, k), ix,
                          h.shape[0] + 2, one_of(g, "0|pid|3")));
    }
    Value *v = pick(g, (Want){.dts = BIT(h.dt), .same = &s});
    if (!v)
        v = load_from(g, h.dt, s);
    h.output = true;
    h.kind = v->flags & V_ZERO ? BUF_ZERO : BUF_EXACT;
    h.shape[0] = rows * t->nprog - between(g, 0, 2); /* those behind the end stay away */
    h.shape[1] = cols - between(g, 0, cols - 1);
    int k = host_new(t, h);
    if (k < 0)
        return NULL;
    act(g, "%s.scatter($, (tl.arange(0, %d) * %d + %s & %d) + pid * %d, 0)", name(g, k),
        v, rows, 2 * between(g, 0, 9) + 1, one_of(g, "0|3|n"), rows - 1, rows);
    return v;
}

/* All programs change one block, by an operation that does not care who is first. */
static Value *
host_atomic(Gen *g)
{
    Tree *t = g->tree;
    Value *v = pick(g, (Want){.dts = WIDE | BIT(F32) | BIT(F16) | BIT(BF16),
                              .min_rank = 1,
                              .max_rank = 2,
                              .never = V_WILD});
    if (!v || numel(&v->t) > t->n || g->depth ||
        v->t.dim[v->t.rank - 1] * dt_info[v->t.dt].bytes < 16)
        return NULL;
    Host h = {.dt = (Dt)v->t.dt, .output = true, .kind = BUF_ATOMIC, .rank = v->t.rank};
    bool is_float = BIT(h.dt) & FLOATS;
    const char *op = one_of(g, !is_float       ? "add|max|min|and|or|xor"
                               : h.dt == F32 ? "add"
                                             : "add|add|max|min");
    for (int i = 0; i < h.rank; i++) {
        h.block[i] = v->t.dim[i];
        h.shape[i] = v->t.dim[i] - between(g, 0, v->t.dim[i] - 1);
        h.strides[i] = i == h.rank - 1 ? 1 : v->t.dim[i + 1];
    }
    if (is_float)
        v = small(g, v, 3, 0);
    int k = host_new(t, h);
    if (k < 0)
        return NULL;
    const char *at = h.rank == 1 ? one_of(g, "0|-4|3")
                                 : one_of(g, "0, 0|1, 0|-1, 4|pid & 1, 0");
    act(g, "%s.atomic_%s([%s], $)", name(g, k), op, at, v);
    return v;
}

Value *
make_host(Gen *g)
{
    switch (between(g, 0, 9)) {
    case 0:
    case 1:
    case 2: return host_load(g);
    case 3:
    case 4: return g->depth ? host_load(g) : host_walk(g);
    case 5:
    case 6: return host_store(g);
    case 7: return host_rows(g);
    default: return host_atomic(g);
    }
}
