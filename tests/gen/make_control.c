/* Loops and branches with values that they change, helpers, scalars, random numbers. A
   loop makes at most MAX_TRIPS passes where sums of floats depend on it, eight otherwise.
 */
#include "tests/gen/gen.h"

/* How far a float may go that a loop or branch changes. */
static const struct {
    int bits, frac;
} room[NDT] = {[F16] = {10, 3}, [BF16] = {7, 2}, [F32] = {14, 4}, [F64] = {14, 4}};

static double
room_bound(Dt dt)
{
    return (double)(1 << (room[dt].bits - room[dt].frac));
}

/* A variable that starts as v. */
static Value *
variable(Gen *g, Value *v)
{
    bool is_float = BIT(v->t.dt) & FLOATS;
    if (is_float)
        v = small(g, v, room[v->t.dt].bits, room[v->t.dt].frac);
    Value *a = let(g, v->t, "$", v);
    a->letter = 'a';
    if (is_float)
        flt(a, room_bound((Dt)v->t.dt) * (v->t.dt == F32 ? 16 : 1), room[v->t.dt].frac,
            V_ZERO);
    return a;
}

static void
update(Gen *g, Value *a, int inside)
{
    Dt dt = (Dt)a->t.dt;
    const char *tl = dt_info[dt].tl;
    if (dt == I1) {
        Value *b = pick(g, (Want){.dts = BOOLS, .into = &a->t});
        set(g, a, "$ %s $", a, one_of(g, "&|^|=="), b);
        return;
    }
    if (BIT(dt) & FLOATS) {
        Value *b = pick(g, (Want){.dts = BIT(dt), .into = &a->t});
        Value *c = pick(g, (Want){.dts = BOOLS, .into = &a->t});
        if (!b)
            return;
        if (dt == F32 && inside && chance(g, 50)) {
            b = small(g, b, 9, 2);
            set(g, a, chance(g, 70) ? "$ + $" : "$ - $", a, b);
            return;
        }
        b = small(g, b, room[dt].bits, room[dt].frac);
        if (c && chance(g, 50))
            set(g, a, "tl.where($, $, $)", c, a, b);
        else
            set(g, a, "tl.%s($, $).to(tl.%s)", chance(g, 50) ? "maximum" : "minimum", a,
                b, tl);
        return;
    }
    Value *b = pick(g, (Want){.dts = INTS | BOOLS, .into = &a->t});
    if (!b || chance(g, 12))
        set(g, a, "($ * 3 + 1).to(tl.%s)", a, tl);
    else if (chance(g, 20))
        set(g, a, "tl.where($ > 0, $, $).to(tl.%s)", b, a, b, tl);
    else
        set(g, a, "($ %s $).to(tl.%s)", a, one_of(g, "+|-|^|*|&"), b, tl);
}

static int
variables(Gen *g, Value **out, int most)
{
    int n = 0, want = between(g, 1, most);
    for (int i = 0; i < want; i++) {
        Value *v = pick(g, (Want){.dts = NUMS | BOOLS, .never = V_WILD});
        if (v)
            out[n++] = variable(g, v);
    }
    return n;
}

static Value *
counter(Gen *g, Value *i)
{
    Value *iv = let(g, scalar(I32), "tl.to_tensor($)", i);
    return iv;
}

/* A value of each pass to a place of its own. */
static void
put_each(Gen *g, Value *iv)
{
    Tree *t = g->tree;
    Value *v = pick(
        g, (Want){.dts = INTS | BIT(F32) | BIT(F16), .min_rank = 1, .never = V_ZERO});
    if (!v || g->depth != 1 || numel(&v->t) > t->n)
        return;
    Dt dt = (Dt)v->t.dt;
    int at = t->slots[BUF_EXACT][dt] * t->nprog * t->n;
    t->slots[BUF_EXACT][dt] += 8;
    const char *o = offsets(g, &v->t);
    act(g,
        "tl.store(o_%s + (pid * %d + %d) + $ * %d + %s, $, mask=(%s >= 0) & ($ >= 0) & "
        "($ < 8))",
        dt_info[dt].sig, t->n, at, iv, t->nprog * t->n, o, v, o, iv, iv);
}

typedef struct Moving {
    Value *ptr;
    Dt dt;
    int step;
} Moving;

/* A tile of pointers that moves in each of at most eight passes. */
static Moving
moving(Gen *g)
{
    Tree *t = g->tree;
    Dt dt = dt_of(g, INTS | FLOATS);
    Type s = random_shape(g, dt);
    int step = (t->len - numel(&s)) / 8;
    if (step > 3 && chance(g, 50))
        step = between(g, 1, step);
    Value *p = let(g, s, "p_%s + %s", dt_info[dt].sig, offsets(g, &s));
    p->letter = 'a';
    p->flags = V_SPECIAL;
    return (Moving){p, dt, step};
}

static void
move(Gen *g, Moving *m, bool before)
{
    if (!before) {
        set(g, m->ptr, "$ + %d", m->ptr, m->step);
        return;
    }
    Value *v;
    if (chance(g, 50)) {
        Value *c = mask_for(g, &m->ptr->t);
        const char *other = BIT(m->dt) & FLOATS ? one_of(g, "|, other=1.5|, other=0.0")
                                                : one_of(g, "|, other=7|, other=0");
        v = let(g, m->ptr->t, "tl.load($, mask=$%s)", m->ptr, c, other);
    } else {
        v = let(g, m->ptr->t, "tl.load($)", m->ptr);
    }
    flt(v, 16, 1, 0);
}

/* The head of a loop; the counter's variable in `i`. */
static const char *
head_of(Gen *g, Value *i, bool *is_while)
{
    Tree *t = g->tree;
    const char *name = value_name(t, i);
    const char *lo = one_of(g, "0|0|0|1|pid|-2"),
               *hi = one_of(g, "3|4|m|m|pid % 4 + 1|0");
    const char *step = chance(g, 25) ? ", 2" : "";
    int how = between(g, 0, 9);
    *is_while = how == 9;
    if (how == 9)
        return tree_text(t,
                         one_of(g, "while \x80 < %s|while (\x80 < %s) & (pid < 2)|"
                                   "while (\x80 < %s) & (n > 2)"),
                         one_of(g, "3|m|1|2"));
    if (how == 8)
        return tree_text(t, "for %s in tl.static_range(%s, %s)", name, one_of(g, "0|1"),
                         one_of(g, "2|3|0"));
    if (how == 7 && chance(g, 40))
        return tree_text(t, "for %s in range(%s, -1, -1)", name, one_of(g, "3|m|2"));
    if (how > 3)
        return tree_text(t, "for %s in tl.range(%s, %s%s%s)", name, lo, hi, step,
                         one_of(g,
                                "|, num_stages=2|, num_stages=3|, loop_unroll_factor=2|"
                                ", flatten=True|, disable_licm=True"));
    return tree_text(t, "for %s in range(%s, %s%s)", name, lo, hi, step);
}

Value *
make_for(Gen *g)
{
    if (g->depth > 1)
        return NULL;
    Value *a[3];
    int n = variables(g, a, 3);
    if (n == 0)
        return NULL;
    bool moves = chance(g, 45), is_while;
    Moving m = {0};
    if (moves)
        m = moving(g);
    Value *i = value_new(g, scalar(I32), 'i');
    i->flags = V_SPECIAL;
    const char *head = head_of(g, i, &is_while);
    if (is_while)
        begin(g, i, "tl.to_tensor(%s)", one_of(g, "0|0|1"));
    Stmt *b = loop_new(g, head, i, is_while);
    Stmt **tail = g->tail;
    int scope = g->nval;
    g->tail = &b->body[0];
    g->depth++;
    g->quiet++;
    g->loops++;
    Value *iv = counter(g, i);
    if (moves)
        move(g, &m, true);
    block_of_steps(g, between(g, 1, 4));
    for (int k = 0; k < n; k++)
        if (chance(g, 90))
            update(g, a[k], 1);
    if (chance(g, 25))
        put_each(g, iv);
    if (moves)
        move(g, &m, false);
    if (is_while)
        set(g, i, "$ + 1", i);
    g->loops--;
    g->quiet--;
    g->depth--;
    g->nval = scope;
    g->tail = tail;
    for (int k = 1; k < n; k++)
        put(g, a[k]);
    return a[0];
}

Value *
make_if(Gen *g)
{
    if (g->depth > 2)
        return NULL;
    Value *a[2];
    int n = variables(g, a, 2);
    if (n == 0)
        return NULL;
    Value *s = pick(g, (Want){.dts = INTS, .max_rank = 0});
    if (s && s->t.rank)
        s = NULL;
    Value *c;
    if (s && chance(g, 50))
        c = let(g, scalar(I1), "$ %s", s, one_of(g, "> 0|& 1 == 0|< 5|!= 3|<= 0"));
    else
        c = let(g, scalar(I1), "%s",
                one_of(g,
                       "pid == 0|pid > 1|n > 10|m < 3|m == 0|q > 0|s > 0.0|pid >= 0|"
                       "(pid > 0) and (n > 3)|(pid == 1) or (m > 2)|not (n > 16)|n < n"));
    Value *d = let(g, scalar(I1), "m > %d", between(g, 0, 3));
    int arms = between(g, 1, 3);
    Stmt *b = block_new(g, arms);
    b->is_if = true;
    b->use[b->nuse++] = c;
    b->use[b->nuse++] = d;
    b->head[0] = "if \x80";
    if (arms > 1)
        b->head[arms - 1] = "else";
    if (arms > 2)
        b->head[1] = "elif \x81";
    Stmt **tail = g->tail;
    int scope = g->nval;
    g->depth++;
    g->quiet++;
    for (int k = 0; k < arms; k++) {
        g->tail = &b->body[k];
        block_of_steps(g, between(g, 0, 3));
        for (int i = 0; i < n; i++)
            if (chance(g, 85))
                update(g, a[i], 0);
        g->nval = scope;
    }
    g->quiet--;
    g->depth--;
    g->tail = tail;
    for (int k = 1; k < n; k++)
        put(g, a[k]);
    return a[0];
}

/* Some programs end here; what they have not stored stays. */
Value *
make_return(Gen *g)
{
    if (g->depth || g->nval < 12)
        return NULL;
    Value *c =
        let(g, scalar(I1), "%s", one_of(g, "pid == 1|pid > 0|n < 2|m == 3|q > 30"));
    Stmt *b = block_new(g, 1);
    b->is_if = true;
    b->use[b->nuse++] = c;
    b->head[0] = "if \x80";
    Stmt **tail = g->tail;
    g->tail = &b->body[0];
    act(g, "return");
    g->tail = tail;
    return c;
}

/* A condition as an expression: both sides of one type. */
Value *
make_choice(Gen *g)
{
    Value *a = pick(g, (Want){.dts = NUMS | BOOLS});
    Value *b = a ? pick(g, (Want){.dts = BIT(a->t.dt), .same = &a->t}) : NULL;
    if (!b)
        return NULL;
    if (chance(g, 20))
        act(g, "tl.assume(%s)", one_of(g, "pid >= 0|pid < 1024"));
    Value *v = let(g, a->t, "$ if %s else $", a,
                   one_of(g, "pid == 0|n > 16|m < 3|pid >= 0|q != 2"), b);
    return flt(v, a->bound > b->bound ? a->bound : b->bound,
               a->frac > b->frac ? a->frac : b->frac, a->flags | b->flags);
}

Value *
make_scalar(Gen *g)
{
    int how = between(g, 0, 5);
    if (how == 0)
        return let(g, scalar(I32), "tl.load(p_i32 + %d)", between(g, 0, g->tree->n - 1));
    if (how == 1)
        return let(g, scalar(I32), "%s",
                   one_of(g,
                          "pid + 0|tl.to_tensor(n) + 0|tl.to_tensor(m) * 3|pid * n - m|"
                          "tl.num_programs(0) * 2|tl.cdiv(tl.to_tensor(n), 16)"));
    if (how == 2)
        return flt(let(g, scalar(F32), "s * 1.0"), 16, 2, 0);
    if (how == 3)
        return let(g, scalar(I64), "(%s).to(tl.int64)",
                   one_of(g,
                          "tl.to_tensor(q) + 1|tl.to_tensor(q) >> 3|pid.to(tl.int64) * q|"
                          "tl.to_tensor(q) * n"));
    if (how == 4) {
        Dt dt = dt_of(g, NUMS);
        return flt(let(g, scalar(dt), "tl.load(p_%s + pid)", dt_info[dt].sig), 16, 1, 0);
    }
    Dt dt = dt_of(g, NUMS);
    Type s = random_shape(g, dt);
    const char *k = BIT(dt) & FLOATS  ? one_of(g, "0.0|1.5|-2.0")
                    : BIT(dt) & SINTS ? one_of(g, "0|1|5|64|-7|-1|-128|100")
                                      : one_of(g, "0|1|5|64|255");
    return flt(let(g, s, "tl.full(%s, %s, tl.%s)", dims(g, &s), k, dt_info[dt].tl), 2, 1,
               0);
}

Value *
make_helper(Gen *g)
{
    Value *a = pick(g, (Want){.dts = SINTS});
    if (!a)
        return NULL;
    Value *b = pick(g, (Want){.dts = BIT(a->t.dt), .same = &a->t}), *second;
    int how = between(g, 0, 4);
    if (how == 0) {
        const char *k = one_of(g, "|, 5|, k=2|, flip=True|, k=7, flip=True");
        Value *v = let2(g, a->t, a->t, &second, "h_two($, $%s)", a, b, k);
        put(g, second);
        return v;
    }
    Value *s = pick(g, (Want){.dts = SINTS});
    if (how == 1 && s->t.rank == 0)
        return let(g, a->t, "h_early($, $)", a, s);
    if (how == 2)
        return let(g, a->t, "h_loop($, %s)", a, one_of(g, "m|3|0"));
    if (how == 3)
        return let(g, a->t, "h_apply(($, $), %s)", a, b, one_of(g, "h_add|h_xor|h_mul"));
    return let(g, a->t, "h_add($, b=$)", a, b);
}

Value *
make_random(Gen *g)
{
    Type s = random_shape(g, I32);
    const char *o = offsets(g, &s);
    int seed = between(g, 0, 9);
    switch (between(g, 0, 3)) {
    case 0: return let(g, with_dt(s, U32), "tl.randint(%d, %s)", seed, o);
    case 1:
        return let(g, with_dt(s, I1), "tl.rand(%d, %s) > %s", seed, o,
                   one_of(g, "0.5|0.1|0.75|s"));
    case 2: return let(g, with_dt(s, U32), "tl.randint(n, pid * %d + %s)", numel(&s), o);
    default: break;
    }
    return flt(let(g, with_dt(s, F32), "tl.rand(%d, %s)", seed, o), 0, 0,
               V_WILD | V_PROD);
}
