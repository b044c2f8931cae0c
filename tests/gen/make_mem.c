/* Memory: loads of every form within the inputs, stores to slots that each program has
   for itself. Indices are within by what they are made of, or masks say which are. */
#include "tests/gen/gen.h"

Value *
mask_for(Gen *g, const Type *shape)
{
    Value *c = pick(g, (Want){.dts = BOOLS, .same = shape});
    if (c && chance(g, 60))
        return c;
    if (shape->rank == 2 && chance(g, 45)) { /* rows and columns */
        const char *words = "n|m|q|n - 1|3|tl.to_tensor(n) - pid * 16|16";
        const char *rows = one_of(g, words), *cols = one_of(g, words);
        return let(g, with_dt(*shape, I1),
                   "(tl.arange(0, %d)[:, None] < %s) %s (tl.arange(0, %d)[None, :] < %s)",
                   shape->dim[0], rows, chance(g, 80) ? "&" : "|", shape->dim[1], cols);
    }
    const char *bound =
        chance(g, 50) ? "n" : tree_text(g->tree, "%d", between(g, 0, numel(shape) + 2));
    return let(g, with_dt(*shape, I1), "%s < %s", offsets(g, shape), bound);
}

/* An index expression of the shape below `len`, which has at least four times n. */
static const char *
index_of(Gen *g, const Type *s, Value **by)
{
    Tree *t = g->tree;
    int k = numel(s), room = t->len - k;
    const char *o = offsets(g, s);
    *by = NULL;
    switch (between(g, 0, 9)) {
    case 0:
    case 1: { /* gathered */
        Value *ix = pick(g, (Want){.dts = INTS, .same = s});
        if (!ix)
            return o;
        *by = ix;
        int bits = log2_of(t->len + 1) - 1;
        return tree_text(t, chance(g, 60) ? ".to(tl.int32) & %d" : ".to(tl.int64) & %d",
                         (1 << bits) - 1);
    }
    case 2: {
        int step = between(g, 1, (t->len - 1) / k > 4 ? 4 : (t->len - 1) / k);
        return tree_text(t, "%s * %d + %d", o, step,
                         between(g, 0, t->len - 1 - step * (k - 1)));
    }
    case 3:
    case 4:
        if (s->rank == 1 && k * t->nprog <= t->len && chance(g, 30))
            return tree_text(t,
                             "tl.max_contiguous(tl.multiple_of(%s + pid * %d, %d), %d)",
                             o, k, k, k);
        return tree_text(t, "%s + pid * %d", o, room / t->nprog);
    case 5: return tree_text(t, "%d - %s", t->len - 1 - between(g, 0, room), o);
    case 6:
        if (chance(g, 50)) { /* through the end of the numbers and round again */
            int mask = (1 << (log2_of(t->len + 1) - 1)) - 1;
            const char *far = one_of(g, "2147483640|2147483647 - n|m * 715827882|"
                                        "(pid + 1) * 1073741820|-2147483640");
            if (chance(g, 70))
                return tree_text(t, "((%s + %s) & %d)", o, far, mask);
            return tree_text(t, "(((%s).to(tl.int8) + 100).to(tl.int32) & %d)", o,
                             mask > 127 ? 127 : mask);
        }
        return tree_text(t, "(%s ^ %d)", o, between(g, 0, k - 1));
    case 7: return tree_text(t, "(%s + tl.abs(tl.to_tensor(n))) %% %d", o, k);
    default: return o;
    }
}

static const char *
other_for(Gen *g, Dt dt)
{
    if (BIT(dt) & (FLOATS | FP8S))
        return one_of(g, "0.0|1.5|-2.0|1.0");
    if (dt == I1)
        return one_of(g, "0|1");
    return one_of(g, BIT(dt) & UINTS ? "0|1|7|100" : "0|-1|5|100");
}

/* Inputs of floats hold multiples of 1/2 up to 16, those of 8 bits whole numbers to 8. */
Value *
loaded(Value *v)
{
    Dt dt = (Dt)v->t.dt;
    if (BIT(dt) & FP8S)
        return flt(v, 8, 0, 0);
    return flt(v, 16, 1, 0);
}

Value *
load_from(Gen *g, Dt dt, Type shape)
{
    Tree *t = g->tree;
    Value *by;
    const char *sig = dt_info[dt].sig;
    const char *ix = index_of(g, &shape, &by);
    Type r = with_dt(shape, dt);
    bool wild = BIT(dt) & FLOATS && chance(g, 12);
    const char *p = tree_text(t, wild ? "w_%s" : "p_%s", sig);
    Value *v;
    if (chance(g, 40) && !by) {
        v = let(g, r, "tl.load(%s + %s)", p, ix);
    } else if (chance(g, 40)) {
        v = by ? let(g, r, "tl.load(%s + ($%s))", p, by, ix)
               : let(g, r, "tl.load(%s + (%s))", p, ix);
    } else {
        Value *m = mask_for(g, &shape);
        const char *other = chance(g, 35) || BIT(dt) & FP8S
                                ? ""
                                : tree_text(t, ", other=%s", other_for(g, dt));
        const char *far = one_of(g, "268435456|16777216|-134217728|100000");
        bool away = chance(g, 30); /* masked lanes point anywhere */
        if (by && away)
            v = let(g, r, "tl.load(%s + (($%s) + tl.where($, 0, %s)), mask=$%s)", p, by,
                    ix, m, far, m, other);
        else if (by)
            v = let(g, r, "tl.load(%s + ($%s), mask=$%s)", p, by, ix, m, other);
        else if (away)
            v = let(g, r, "tl.load(%s + (%s + tl.where($, 0, %s)), mask=$%s)", p, ix, m,
                    far, m, other);
        else
            v = let(g, r, "tl.load(%s + (%s), mask=$%s)", p, ix, m, other);
    }
    return wild ? flt(v, 0, 0, V_WILD) : loaded(v);
}

Value *
make_load(Gen *g)
{
    return load_from(g, dt_of(g, ALL), random_shape(g, I32));
}

/* Stores a value to a slot of its own: in its type, or widened. */
void
put(Gen *g, Value *v)
{
    Tree *t = g->tree;
    if (g->quiet || numel(&v->t) > t->n || v->flags & V_SPECIAL)
        return;
    Dt dt = (Dt)v->t.dt;
    Dt out = dt;
    if (BIT(dt) & (INTS | BOOLS) && chance(g, 45))
        out = dt == U64 ? U64 : I64;
    else if (BIT(dt) & FLOATS && chance(g, 30))
        out = F64;
    else if (BIT(dt) & FLOATS && chance(g, 15))
        out = F32;
    if (out == F32 && dt == F64)
        out = F64;
    BufKind kind = v->flags & V_ZERO ? BUF_ZERO : BUF_EXACT;
    int at = t->slots[kind][out]++ * t->nprog * t->n;
    const char *to = tree_text(t, "%s_%s + (pid * %d + %d)", kind == BUF_ZERO ? "z" : "o",
                               dt_info[out].sig, t->n, at);
    const char *cast = out == dt ? "" : tree_text(t, ".to(tl.%s)", dt_info[out].tl);
    if (v->t.rank == 0) {
        act(g, "tl.store(%s, $%s)", to, v, cast);
        return;
    }
    int how = between(g, 0, 19);
    int k = numel(&v->t);
    if (how < 4) {
        Value *m = pick(g, (Want){.dts = BOOLS, .same = &v->t});
        if (m) {
            act(g, "tl.store(%s + %s, $%s, mask=$)", to, offsets(g, &v->t), v, cast, m);
            return;
        }
    }
    if (how == 4)
        act(g, "tl.store(%s + %s, $%s, mask=%s < %s)", to, offsets(g, &v->t), v, cast,
            offsets(g, &v->t), one_of(g, "n|m|q"));
    else if (how == 5)
        act(g, "tl.store(%s + (%d - %s), $%s)", to, k - 1, offsets(g, &v->t), v, cast);
    else if (how < 8 && g->old && v->t.rank == 2 &&
             out != I1) /* those of bools are of bytes */
        act(g,
            "tl.store(tl.make_block_ptr(%s, shape=(%d, %d), strides=(%d, 1), "
            "offsets=(0, 0), block_shape=(%d, %d), order=(1, 0)), $%s%s)",
            to, v->t.dim[0], v->t.dim[1], v->t.dim[1], v->t.dim[0], v->t.dim[1], v, cast,
            chance(g, 50) ? ", boundary_check=(0, 1)" : "");
    else if (how < 10 && v->t.rank == 2 && v->t.dim[1] * dt_info[out].bytes >= 16 &&
             out != I1 && !(BIT(out) & FP8S)) {
        t->aligned = true;
        int cols = v->t.dim[1] - (chance(g, 30) ? 1 : 0);
        act(g,
            "tl.make_tensor_descriptor(%s, shape=[%d, %d], strides=[%d, 1], "
            "block_shape=[%d, %d]).store([0, 0], $%s)",
            to, v->t.dim[0], cols, v->t.dim[1], v->t.dim[0], v->t.dim[1], v, cast);
    } else
        act(g, "tl.store(%s + %s, $%s)", to, offsets(g, &v->t), v, cast);
}

/* Written, then read by other threads of the program. */
Value *
make_reload(Gen *g)
{
    Tree *t = g->tree;
    Value *v = pick(g, (Want){.dts = ALL, .min_rank = 1, .never = V_ZERO});
    if (!v || g->quiet || g->depth || numel(&v->t) > t->n)
        return NULL;
    Dt dt = (Dt)v->t.dt;
    int at = t->slots[BUF_EXACT][dt]++ * t->nprog * t->n;
    const char *to = tree_text(t, "o_%s + (pid * %d + %d)", dt_info[dt].sig, t->n, at);
    act(g, "tl.store(%s + %s, $)", to, offsets(g, &v->t), v);
    act(g, "tl.debug_barrier()");
    Type s = v->t;
    return like(let(g, s, "tl.load(%s + (%d - %s))", to, numel(&s) - 1, offsets(g, &s)),
                v);
}

/* A loop that reads what it has stored, by other threads: in place, or one tile further.
 */
Value *
make_recur(Gen *g)
{
    Tree *t = g->tree;
    Dt dt = dt_of(g, INTS | BIT(F32) | BIT(F16));
    Type s = random_shape(g, dt);
    int k = numel(&s), room = (6 * k + t->n - 1) / t->n, most = t->len - k;
    if (g->quiet || g->depth || room > 6)
        return NULL;
    bool is_float = BIT(dt) & FLOATS, on = chance(g, 60);
    BufKind kind = is_float ? BUF_ZERO : BUF_EXACT;
    int first = t->slots[kind][dt] * t->nprog * t->n;
    t->slots[kind][dt] += room;
    const char *sig = dt_info[dt].sig, *tl = dt_info[dt].tl, *o = offsets(g, &s);
    const char *back = chance(g, 50) ? tree_text(t, "(%d - %s)", k - 1, o) : o;
    const char *base = tree_text(t, "%s_%s + (%d + pid * %d)", is_float ? "z" : "o", sig,
                                 first, room * t->n);
    Value *v = loaded(let(g, s, "tl.load(p_%s + %s)", sig, o));
    act(g, "tl.store(%s + %s, $)", base, o, v);
    act(g, "tl.debug_barrier()");
    Value *i = value_new(g, scalar(I32), 'i');
    i->flags = V_SPECIAL;
    Stmt *b = loop_new(g,
                       tree_text(t, "for %s in %s(0, %s)", value_name(t, i),
                                 one_of(g, "range|tl.range"), one_of(g, "3|4|m|5")),
                       i, false);
    int scope = g->nval;
    Stmt **tail = block_open(g, b, 0);
    Value *iv = let(g, scalar(I32), "tl.to_tensor($)", i);
    const char *from = on ? tree_text(t, " * %d", k) : " * 0";
    Value *old = loaded(let(g, s, "tl.load(%s + $%s + %s)", base, iv, from, back));
    Value *more = loaded(let(g, s, "tl.load(p_%s + $ * %d + %s)", sig, iv, most / 8, o));
    if (chance(g, 30))
        block_of_steps(g, 1);
    act(g, "tl.debug_barrier()");
    const char *to = on ? tree_text(t, "($ + 1) * %d", k) : "$ * 0";
    const char *what = is_float ? one_of(g, "tl.maximum($, $)|tl.where($ > 0, $, 1.0)")
                                : one_of(g, "$ * 3 + $|$ - $|$ ^ $");
    act(g, tree_text(t, "tl.store(%s + %s + %s, (%s).to(tl.%s))", base, to, o, what, tl),
        iv, old, more);
    act(g, "tl.debug_barrier()");
    block_close(g, tail, scope);
    v = let(g, s, "tl.load(%s + %s)", base, back);
    return flt(v, 16, 1, V_ZERO);
}

/* Shared counters: one commutative operation a program text, its result unused. */
Value *
make_atomic(Gen *g)
{
    Value *a = pick(g, (Want){.dts = INTS, .min_rank = 1});
    if (!a || (g->depth && chance(g, 50)))
        return NULL;
    Tree *t = g->tree;
    Dt dt = dt_of(g, BIT(I32) | BIT(U32) | BIT(I64) | BIT(F32));
    bool sums = dt == F32;
    const char *op = sums ? "add" : t->atomic;
    t->slots[BUF_ATOMIC][dt] = 1;
    Value *ix = pick(g, (Want){.dts = INTS, .same = &a->t});
    const char *how = one_of(g, "|, sem=\"relaxed\"|, sem=\"release\"|, scope=\"gpu\"");
    const char *bits = sums ? " & 7" : "";
    if (chance(g, 50)) {
        Value *m = mask_for(g, &a->t);
        act(g, "tl.atomic_%s(at_%s + ($ & 15).to(tl.int32), ($%s).to(tl.%s), mask=$%s)",
            op, dt_info[dt].sig, ix, a, bits, dt_info[dt].tl, m, how);
    } else {
        act(g, "tl.atomic_%s(at_%s + ($ & 15).to(tl.int32), ($%s).to(tl.%s)%s)", op,
            dt_info[dt].sig, ix, a, bits, dt_info[dt].tl, how);
    }
    return a;
}

/* Each lane's own element: any operation, and the old value goes on. */
Value *
make_exchange(Gen *g)
{
    Tree *t = g->tree;
    Value *a = pick(g, (Want){.dts = BIT(I32) | BIT(I64), .min_rank = 1});
    if (!a || g->quiet || g->depth || numel(&a->t) > t->n)
        return NULL;
    Dt dt = (Dt)a->t.dt;
    int at = t->slots[BUF_EXACT][dt]++ * t->nprog * t->n;
    const char *to = tree_text(t, "o_%s + (pid * %d + %d) + %s", dt_info[dt].sig, t->n,
                               at, offsets(g, &a->t));
    if (chance(g, 30))
        return let(g, a->t, "tl.atomic_cas(%s, $, $)", to, a, a);
    const char *op = one_of(g, "add|xchg|max|min|and|or|xor");
    if (chance(g, 40)) {
        Value *m = mask_for(g, &a->t);
        return let(g, a->t, "tl.where($, tl.atomic_%s(%s, $, mask=$), 3)", m, op, to, a,
                   m);
    }
    return let(g, a->t, "tl.atomic_%s(%s, $)", op, to, a);
}
