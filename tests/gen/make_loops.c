/* Programs of another kind (seeds from LOOP_SEEDS on): loops of matmuls over tiles that
   fill warpgroups, with what decides how they are scheduled for tensor cores: rows that
   begin off 128-byte lines, strides of any number, loads by addresses, pointers and block
   pointers that the loop moves, descriptors, operands that are transposed, converted,
   unpacked, computed, shared, carried or stand in front of the loop, matmuls in branches,
   in chains and in loops within loops, one tile after another, sums that programs add up.
   Neighbouring programs read one operand alike. */
#include <string.h>

#include "tests/gen/loops.h"

static Dt
sum_dt(const Plan *p)
{
    return p->dt == I8 ? I32 : F32;
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
    Type s = loop_tile(sum_dt(p), a->t.dim[0], b->t.dim[1]);
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
    Type s = loop_tile(p->dt, rows, cols);
    if (p->last[0] && same_shape(&p->last[0]->t, &s) && chance(g, 40))
        return p->last[0];
    if (p->left && same_shape(&p->left->t, &s) && chance(g, 40))
        return p->left;
    return loop_operand(g, p, rows, cols, 1);
}

static Value *
right_operand(Gen *g, Plan *p, int rows, int cols)
{
    Type s = loop_tile(p->dt, rows, cols), across = loop_tile(p->dt, cols, rows);
    Value *v = p->last[1];
    if (v && same_shape(&v->t, &s) && chance(g, 40))
        return v;
    if (v && same_shape(&v->t, &across) && chance(g, 40))
        return like(let(g, s, "$.T", v), v);
    if (p->right && same_shape(&p->right->t, &s) && chance(g, 25))
        return p->right;
    return loop_operand(g, p, rows, cols, 0);
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
        c = let(g, loop_tile(I1, acc->t.dim[0], 1), "tl.arange(0, %d)[:, None] %s",
                acc->t.dim[0], one_of(g, "< n|>= m * 8|% 2 == 0|< 1000"));
    (void)p;
    if (c)
        set(g, acc, "$ + tl.where($, $, 0)", acc, c, v);
    else
        set(g, acc, chance(g, 80) ? "$ + $" : "$ - $", acc, v);
}

/* Each row's largest numbers become 1: a reduction stands between two matmuls. */
static Value *
beside_most(Gen *g, Value *v)
{
    Type row = {.dt = v->t.dt, .rank = 1, .dim = {v->t.dim[0]}};
    if (BIT(v->t.dt) & FP8S)
        return v;
    Value *most = let(g, row, "tl.max($, 1)", v);
    most->flags |= V_SPECIAL;
    return like(let(g, v->t, "tl.where($ >= $[:, None], 1, $).to(tl.%s)", v, most, v,
                    dt_info[v->t.dt].tl),
                v);
}

/* One matmul, or two of which the second takes the first one's result. */
static void
one_step(Gen *g, Plan *p, Value *acc)
{
    int rows = acc->t.dim[0], cols = acc->t.dim[1];
    Value *a, *b;
    if (p->plain) {
        a = loop_operand(g, p, rows, p->k, 1);
        b = loop_operand(g, p, p->k, cols, 0);
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
        if (chance(g, 25))
            a = beside_most(g, a);
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

/* What an iteration is left out by: its number, or a flag of a list, as of blocks that
   are empty. */
static Value *
iteration_counts(Gen *g, const Plan *p)
{
    if (chance(g, 50))
        return let(g, scalar(I1), "$ %s", p->iv, one_of(g, "% 2 == 0|> 0|< 2|== 1"));
    return let(g, scalar(I1), "tl.load(p_i32 + $%s) %s", p->iv,
               one_of(g, "| * 2 + pid| + n| + pid * 4"),
               one_of(g, "> 0|% 2 == 0|!= 0|& 3 != 0|< 100"));
}

static void
branch(Gen *g, Plan *p)
{
    int arms = between(g, 1, 2), scope = g->nval;
    Value *c = p->iv && chance(g, 70)
                   ? iteration_counts(g, p)
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

/* ---------------------------------------------------------------- sums that are read */

static Value *
some_iterations(Gen *g, const Plan *p)
{
    return chance(g, 80)
               ? let(g, scalar(I1), "$ %s", p->iv,
                     one_of(g, "% 2 == 1|== m - 1|== 1|> 0|== 2|== 0|< 0|>= 0"))
               : let(g, scalar(I1), "%s", one_of(g, "m > 2|n > 70|pid == 0"));
}

static Stmt **
arm(Gen *g, Stmt **f, Value *c, const char *other)
{
    *f = block_new(g, other ? 2 : 1);
    (*f)->is_if = true;
    (*f)->use[(*f)->nuse++] = c;
    (*f)->head[0] = "if \x80";
    (*f)->head[1] = other;
    return block_open(g, *f, 0);
}

static void
reset(Gen *g, Value *acc)
{
    set(g, acc, "tl.full(%s, %s, tl.%s)", dims(g, &acc->t), one_of(g, "0|0|0|-2"),
        dt_info[acc->t.dt].tl);
}

/* Stored, summed up, or changed. */
static void
read_in_arm(Gen *g, Value *acc, bool keeps)
{
    Type row = {.dt = acc->t.dt, .rank = 1, .dim = {acc->t.dim[0]}};
    if (keeps || chance(g, 70))
        put(g, acc);
    else if (chance(g, 40))
        put(g, flt(let(g, row, "tl.max($, 1)", acc), acc->bound, acc->frac, V_ZERO));
    else
        set(g, acc, "-$", acc);
}

/* Sums that only some iterations read, in arms of conditions, as a persistent matmul of
   one loop does; those may begin anew with zeros, there or by a select behind it. */
static void
read_some(Gen *g, Plan *p)
{
    Value *acc = p->acc[rnd(g, (uint32_t)p->nacc)], *c = some_iterations(g, p);
    Stmt *f, *inner;
    int scope = g->nval, way = between(g, 0, 5);
    Stmt **tail = arm(g, &f, c, way == 5 ? "else" : NULL);
    if (way == 4) {
        Value *d = some_iterations(g, p);
        int in = g->nval;
        Stmt **to = arm(g, &inner, d, chance(g, 50) ? "else" : NULL);
        read_in_arm(g, acc, false);
        block_close(g, to, in);
        if (inner->nbody > 1) {
            to = block_open(g, inner, 1);
            (chance(g, 50) ? reset(g, acc) : read_in_arm(g, acc, true));
            block_close(g, to, in);
        }
        if (chance(g, 50))
            reset(g, acc);
    } else if (way) {
        read_in_arm(g, acc, way == 1);
    }
    if (way < 2 || way == 5)
        reset(g, acc);
    block_close(g, tail, scope);
    if (way == 5) {
        tail = block_open(g, f, 1);
        read_in_arm(g, acc, false);
        block_close(g, tail, scope);
    }
    if (way == 3)
        set(g, acc, "tl.where($, 0, $)", c, acc);
}

/* What ends a loop that is a `while`: its counter, the bits of a loaded number, or a sum
   that is large. */
enum { UP = 1, BITS, LARGE };

static const char *
while_head(Gen *g, int way, const char *hi)
{
    return way == BITS  ? one_of(g, "while \x80 > 0|while \x80 != 0")
           : way == UP ? tree_text(g->tree, "while \x80 < %s", hi)
                       : tree_text(g->tree, "while (\x80 < %s) & (\x81 > 0)", hi);
}

static void
while_next(Gen *g, const Plan *p, int way, Value *i, Value *go)
{
    if (way == BITS)
        set(g, i, one_of(g, "$ & ($ - 1)|$ - 1|$ >> 1"), i, i);
    else
        set(g, i, "$ + 1", i);
    if (way == LARGE)
        set(g, go, "(tl.max(tl.max($, 1), 0) < %s).to(tl.int32)", p->acc[0],
            one_of(g, "8|200|1000"));
}

/* How often a loop goes round; \x80: the counter of the loop around it. */
static const char *
rounds(Gen *g, const Plan *p, const Value *outer, bool is_while)
{
    if (!outer)
        return p->plain ? "m" : one_of(g, "m|m|m|3|4|2");
    if (BIT(p->dt) & FP8S) /* sums of few bits */
        return "2";
    return is_while ? one_of(g, "2|3|m - 1|1")
                    : one_of(g, "2|2|1|3|m|m - 1|\x80 + 1|\x80 & 1");
}

/* The head of a loop that makes `hi` passes, not from 0 up by 1, and in `from` what its
   counter comes to when that is taken off: counters near the ends of their types, steps
   that are arguments, steps down. NULL: an ordinary one. */
static const char *
odd_head(Gen *g, const char *name, const char *hi, const char **from)
{
    static const struct {
        const char *range, *from; /* %s: how many passes */
    } of[] = {{"2147483647 - (%s), 2147483647", "- 2147483647 + (%s)"},
              {"-2147483648, -2147483648 + (%s)", "+ 2147483647 + 1"},
              {"-2147483648 + (%s), -2147483648, -1", "+ 2147483647"},
              {"4294967294, tl.to_tensor(%s).to(tl.int64) + 4294967294", "- 4294967294"},
              {"tl.to_tensor(%s).to(tl.int64) - 3000000000, -3000000000, -1",
               "+ 2999999999"},
              {"0, (%s) * n, n", "// n"},
              {"q, q + (%s) * q, q", "// q - 1"},
              {"(%s) * 2, 0, -2", "// 2 - 1"},
              {"0, (%s) * 536870911, 536870911", "// 536870911"},
              {"0, (%s) * tl.num_programs(0), tl.num_programs(0)",
               "// tl.num_programs(0)"}};
    int k = between(g, 0, (int)(sizeof of / sizeof *of) - 1);
    Tree *t = g->tree;
    *from = tree_text(t, of[k].from, hi);
    return tree_text(t, "for %s in %s(%s)", name, one_of(g, "range|tl.range"),
                     tree_text(t, of[k].range, hi));
}

/* A loop of n steps. */
static void
loop(Gen *g, Plan *p, int n)
{
    Tree *t = g->tree;
    Value *outer = p->iv, *last[2] = {p->last[0], p->last[1]};
    Value *i = value_new(g, scalar(I32), 'i'), *go = value_new(g, scalar(I32), 'i');
    i->flags = go->flags = V_SPECIAL;
    int way = chance(g, p->plain ? 8 : 16) ? between(g, UP, LARGE) : 0;
    bool is_while = way != 0, by_k = !outer && !is_while && chance(g, 35);
    const char *hi = rounds(g, p, outer, is_while);
    if (way == BITS)
        begin(g, i, "tl.load(p_i32 + %d) & 3", between(g, 0, 40));
    else if (is_while)
        begin(g, i, "tl.to_tensor(0)");
    if (way == LARGE)
        begin(g, go, "tl.to_tensor(1)");
    const char *name = value_name(t, i), *range = one_of(g, "range|tl.range");
    const char *head =
        is_while ? while_head(g, way, hi)
        : by_k ? tree_text(t, "for %s in %s(0, %s * %d, %d)", name, range, hi, p->k, p->k)
        : !p->plain && chance(g, 8)
            ? tree_text(t, "for %s in %s(%s - 1, -1, -1)", name, range, hi)
            : tree_text(t, "for %s in %s(0, %s)", name, range, hi);
    const char *from = NULL;
    if (!is_while && !by_k && !hi[1] && chance(g, 12)) /* not of another counter */
        head = odd_head(g, name, hi, &from);
    Stmt *b = loop_new(g, head, i, is_while);
    if (way == LARGE)
        b->use[b->nuse++] = go;
    else if (outer && !is_while)
        b->use[b->nuse++] = outer;
    int scope = g->nval;
    Stmt **tail = block_open(g, b, 0);
    p->last[0] = p->last[1] = NULL;
    Value *raw = p->raw;
    p->raw = by_k ? let(g, scalar(I32), "tl.to_tensor($)", i) : NULL;
    p->iv = by_k   ? let(g, scalar(I32), "$ // %d", p->raw, p->k)
            : from ? let(g, scalar(I32), "(tl.to_tensor($) %s).to(tl.int32)", i, from)
                   : let(g, scalar(I32), "tl.to_tensor($)", i);
    if (chance(g, 8))
        read_some(g, p);
    Value *left = p->left;
    Type work = loop_tile(p->dt, p->m, p->k);
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
    if (chance(g, p->plain ? 60 : 25))
        read_some(g, p);
    for (int k = 0; k < 2 && !outer; k++) {
        const Moving *x = &p->moving[k];
        if (x->at && x->block)
            set(g, x->at, "tl.advance($, %s)", x->at, x->by);
        else if (x->at)
            set(g, x->at, "$ + %s", x->at, x->by);
    }
    if (p->bent && p->bends && !outer)
        loop_bend_again(g, p);
    if (is_while)
        while_next(g, p, way, i, go);
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
        if (p->plain && !(g->depth < 3 && p->iv && chance(g, 20))) {
            one_step(g, p, acc);
        } else if (p->plain) {
            branch(g, p);
        } else if (g->depth < 3 && p->iv && chance(g, 14)) {
            branch(g, p);
        } else if (g->depth < 3 && p->iv && chance(g, 12)) {
            loop(g, p, 1);
        } else if (chance(g, 8) && acc->t.dt == F32) {
            Value *v = loop_operand(g, p, acc->t.dim[0], acc->t.dim[1], 1);
            if (v->t.dt != F32)
                v = like(let(g, acc->t, "$.to(tl.float32)", v), v);
            add_to(g, p, acc, v);
        } else {
            one_step(g, p, acc);
        }
    }
}

/* ---------------------------------------------------------------- a tile of results */

/* By a descriptor of the host's, cut anywhere in the last tile: stored, or added up by
   all programs. */
static bool
store_host(Gen *g, const Plan *p, Value *v)
{
    Dt dt = (Dt)v->t.dt;
    int rows = v->t.dim[0], cols = v->t.dim[1], bytes = dt_info[dt].bytes;
    bool adds = dt == F32 && chance(g, 20);
    int all = adds ? rows : g->tree->nprog * (p->tile ? p->tiles : 1) * rows;
    if (cols * bytes < 16)
        return false;
    Host h = {.dt = dt, .output = true, .kind = adds ? BUF_ATOMIC : BUF_ZERO, .rank = 2};
    h.shape[0] = all - (chance(g, 50) ? between(g, 0, rows - 1) : 0);
    h.shape[1] = cols - (chance(g, 50) ? between(g, 0, cols - 1) : 0);
    h.strides[0] = cols + 16 / bytes * between(g, 0, 2);
    h.strides[1] = 1;
    h.block[0] = rows;
    h.block[1] = cols;
    int k = host_new(g->tree, h);
    if (k < 0)
        return false;
    if (adds)
        act(g, "d_%d.atomic_add([0, 0], $)", k, small(g, v, 5, 0));
    else if (p->tile)
        act(g, "d_%d.store([$ * %d, 0], $)", k, p->tile, rows, v);
    else
        act(g, "d_%d.store([pid * %d, 0], $)", k, rows, v);
    return true;
}

/* Only the rows that were not bent back, or nearly. */
static void
store_inside(Gen *g, const Plan *p, Value *v)
{
    Tree *t = g->tree;
    Dt dt = (Dt)v->t.dt;
    int at = t->slots[BUF_ZERO][dt] * t->nprog * t->n;
    t->slots[BUF_ZERO][dt] += p->tile ? p->tiles : 1;
    const char *cols = chance(g, 30) ? tree_text(t, " & (tl.arange(0, %d)[None, :] < 11)",
                                                 v->t.dim[1])
                                     : "";
    const char *text = tree_text(t, "%d + %s * %d + %s, $, mask=($[:, None] %s)%s)", at,
                                 p->tile ? "$" : "pid", t->n, offsets(g, &v->t),
                                 loop_inside(g, p), cols);
    text = tree_text(t, "tl.store(z_%s + %s", dt_info[dt].sig, text);
    if (p->tile)
        act(g, text, p->tile, v, p->row);
    else
        act(g, text, v, p->row);
}

static void
store(Gen *g, const Plan *p, Value *v)
{
    Tree *t = g->tree;
    if (p->bent && v->t.rank == 2 && v->t.dim[0] == p->m && chance(g, 85)) {
        store_inside(g, p, v);
        return;
    }
    if (chance(g, 15) && store_host(g, p, v))
        return;
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

/* ---------------------------------------------------------------- other loops */

static Stmt **
counted(Gen *g, Plan *p, const char *hi)
{
    Value *i = value_new(g, scalar(I32), 'i');
    i->flags = V_SPECIAL;
    const char *head = tree_text(g->tree, "for %s in %s(0, %s)", value_name(g->tree, i),
                                 one_of(g, "range|tl.range"), hi);
    Stmt **tail = block_open(g, loop_new(g, head, i, false), 0);
    p->iv = let(g, scalar(I32), "tl.to_tensor($)", i);
    p->last[0] = p->last[1] = NULL;
    return tail;
}

/* A loop that carries nothing: each iteration's matmul goes to memory. */
static void
loop_of_stores(Gen *g, Plan *p)
{
    Tree *t = g->tree;
    Dt dt = sum_dt(p);
    int scope = g->nval, at = t->slots[BUF_ZERO][dt] * t->nprog * t->n;
    bool adds = dt == F32 && chance(g, 30);
    Stmt **tail = counted(g, p, one_of(g, "m|m|3"));
    Value *a = left_operand(g, p, p->m, p->k), *b = right_operand(g, p, p->k, p->n);
    Value *v = matmul(g, p, a, b, NULL);
    if (adds) {
        t->slots[BUF_ATOMIC][F32] = 1;
        act(g, "tl.atomic_add(at_fp32 + (%s & 15), $)", offsets(g, &v->t),
            small(g, v, 5, 0));
    } else {
        t->slots[BUF_ZERO][dt] += 4;
        act(g, "tl.store(z_%s + %d + ($ * %d + pid) * %d + %s, $)", dt_info[dt].sig, at,
            p->iv, t->nprog, t->n, offsets(g, &v->t), v);
    }
    block_close(g, tail, scope);
    p->iv = NULL;
}

/* Several small matmuls at once, in three dimensions. */
static void
loop_of_batches(Gen *g, Plan *p)
{
    Tree *t = g->tree;
    if (BIT(p->dt) & FP8S)
        return;
    int e = 2 << between(g, 0, 1), k = p->dt == I8 ? 32 : 16, scope;
    Type x = {.dt = p->dt, .rank = 3, .dim = {e, 16, k}}, y = x, z = x;
    Type s = {.dt = sum_dt(p), .rank = 3, .dim = {e, 16, 16}};
    const char *sig = dt_info[p->dt].sig;
    int step = (t->len - numel(&x)) / 4;
    if (numel(&s) > t->n)
        return;
    y.dim[1] = k;
    y.dim[2] = 16;
    z.dim[1] = 16;
    Value *acc = let(g, s, "tl.full(%s, %s, tl.%s)", dims(g, &s), one_of(g, "0|1"),
                     dt_info[s.dt].tl);
    acc->letter = 'a';
    flt(acc, 1 << 19, 2, V_ZERO);
    scope = g->nval;
    Stmt **tail = counted(g, p, one_of(g, "m|m|3"));
    Value *a = let(g, x, "tl.load(p_%s + $ * %d + %s)", sig, p->iv, step, offsets(g, &x));
    bool across = chance(g, 50);
    Value *b = !across
                   ? let(g, y, "tl.load(p_%s + $ * %d + %s)", sig, p->iv, step / 2,
                         offsets(g, &y))
                   : let(g, z, "tl.load(p_%s + %s)", sig, offsets(g, &z));
    if (across)
        b = let(g, y, "tl.permute($, (0, 2, 1))", b);
    if (chance(g, 50))
        set(g, acc, "tl.dot($, $, $)", a, b, acc);
    else
        set(g, acc, "$ + tl.dot($, $)", acc, a, b);
    block_close(g, tail, scope);
    p->iv = NULL;
    put(g, acc);
}

/* A right operand for all iterations: loaded, or made by a matmul. */
static Value *
right_in_front(Gen *g, Plan *p)
{
    Value *b = loop_operand(g, p, p->k, p->n, 0);
    if (!chance(g, 25))
        return b;
    return narrowed(g, p, matmul(g, p, loop_operand(g, p, p->k, p->k, 1), b, NULL));
}

static void
one_tile(Gen *g, Plan *p)
{
    p->nacc = chance(g, 60) || p->m * p->n > 8192 ? 1 : between(g, 2, 3);
    p->state = p->carried = p->left = p->right = p->last[0] = p->last[1] = NULL;
    p->nacc = p->plain ? 1 : p->nacc;
    for (int i = 0; i < p->nacc; i++) {
        Type s = loop_tile(sum_dt(p), p->m, i && chance(g, 30) ? p->k : p->n);
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
    p->iv = p->row = p->bent = NULL;
    if (!p->plain && chance(g, 25)) { /* in registers */
        Value *a = loop_operand(g, p, p->m, p->k, 1);
        Value *b = loop_operand(g, p, p->k, p->k, 0);
        p->left = narrowed(g, p, matmul(g, p, a, b, NULL));
    } else if (!p->plain && chance(g, 30)) {
        p->left = loop_operand(g, p, p->m, p->k, 1);
    }
    p->work = NULL;
    if (!p->plain && BIT(p->dt) & (BIT(F16) | BIT(BF16) | BIT(F32)) && chance(g, 12)) {
        Type s = loop_tile(p->dt, p->m, p->k);
        int at = g->tree->slots[BUF_ZERO][p->dt]++ * g->tree->nprog * g->tree->n;
        p->work = tree_text(g->tree, "z_%s + (pid * %d + %d) + %s", dt_info[p->dt].sig,
                            g->tree->n, at, offsets(g, &s));
        Value *first = loop_operand(g, p, p->m, p->k, 1);
        first = narrowed(g, p, first);
        act(g, "tl.store(%s, $)", p->work, first);
        act(g, "tl.debug_barrier()");
    }
    if (!p->plain && chance(g, 25))
        p->right = right_in_front(g, p);
    if (chance(g, 25) && p->n <= 64 && (p->n > 16 || dt_info[p->dt].bytes > 1)) {
        Value *first = loop_operand(g, p, p->m, p->n, 1);
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
    if (chance(g, 20))
        loop_bend(g, p);
    else if (chance(g, 30))
        p->moving[0] = loop_moving(g, p, p->m, p->k, 1);
    if (chance(g, 30))
        p->moving[1] = loop_moving(g, p, p->k, p->n, 0);
    p->iv = iv;
    Stmt *f = NULL;
    int scope = g->nval;
    Stmt **tail = NULL;
    if (!p->plain && chance(g, 10)) {
        Value *c = let(g, scalar(I1), "%s",
                       one_of(g, "pid == 0|m > 2|n > 70|tl.load(p_i32 + pid) > 0"));
        tail = arm(g, &f, c, NULL);
    }
    loop(g, p, p->plain ? 1 : between(g, p->nacc, p->nacc + 1));
    if (f)
        block_close(g, tail, scope);
    if (!p->tile && chance(g, 12))
        loop_of_stores(g, p);
    if (!p->tile && chance(g, 8))
        loop_of_batches(g, p);
    if (p->left && chance(g, 15))
        store(g, p, p->left);
    for (int i = 0; i < p->nacc; i++)
        store(g, p, p->acc[i]);
    if (p->state && !p->tile)
        put(g, p->state);
}

/* Some programs end before their loop. */
static void
early_return(Gen *g)
{
    Stmt *f;
    Value *c = let(g, scalar(I1), "%s",
                   one_of(g, "pid == 1|m < 2|tl.load(p_i32 + pid) < 0|n < 70"));
    Stmt **tail = arm(g, &f, c, NULL);
    act(g, "return");
    block_close(g, tail, g->nval);
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
    p->plain = chance(g, large ? 70 : 20) && p->m >= 64;
    t->len = p->plain ? 131072 : 65536;
    memcpy(t->grid, grids[large ? 1 + rnd(g, 3) : rnd(g, 5)], sizeof t->grid);
    t->nprog = t->grid[0] * t->grid[1] * t->grid[2];
    t->warps = 4 << between(g, 0, 1);
    t->stages = between(g, 1, chance(g, 20) ? 6 : 4);
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
    if (!p.plain && chance(g, 6))
        early_return(g);
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
