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
    if (BIT(p->dt) & FP8S && chance(g, 40))
        return one_of(g, ", max_num_imprecise_acc=32|, max_num_imprecise_acc=0");
    return p->dt != F32 || !chance(g, 25)
               ? ""
               : one_of(g, ", input_precision=\"ieee\"|, input_precision=\"tf32x3\"|"
                           ", input_precision=\"bf16x3\"");
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
        if (chance(g, 35))
            a = chance(g, 50) ? beside_most(g, a) : loop_judged(g, a);
        b = right_operand(g, p, inner, cols);
    } else {
        a = left_operand(g, p, rows, p->k);
        b = right_operand(g, p, p->k, cols);
    }
    if (chance(g, 60)) {
        Value *v = matmul(g, p, a, b, acc);
        set(g, acc, "$", v);
    } else if (chance(g, 12)) { /* all across */
        Value *x = let(g, loop_tile(acc->t.dt, cols, rows), "tl.trans($)", acc);
        set(g, acc, "tl.trans(tl.dot(tl.trans($), tl.trans($), $%s))", b, a, like(x, acc),
            precision(g, p));
    } else {
        add_to(g, p, acc, matmul(g, p, a, b, NULL));
    }
    if (p->carried && p->carried->t.dim[0] == rows && p->carried->t.dim[1] == cols &&
        chance(g, 60)) {
        Value *next = narrowed(g, p, acc);
        set(g, p->carried, "$", next);
    }
}

/* A result that leaves the loop in every iteration, of the iteration's first matmul: as
   the gradient of queries does. */
static void
leaves(Gen *g, Plan *p)
{
    enum { MOST_TRIPS = 6 };
    Tree *t = g->tree;
    Dt dt = sum_dt(p);
    int inner = p->dt == I8 || BIT(p->dt) & FP8S ? 32 : 16 << between(g, 0, 2);
    Value *a = left_operand(g, p, p->m, p->k), *b = right_operand(g, p, p->k, inner);
    a = narrowed(g, p, matmul(g, p, a, b, NULL));
    Value *v = matmul(g, p, a, loop_operand(g, p, inner, p->n, 0), NULL);
    if (dt == F32 && chance(g, 40)) {
        t->slots[BUF_ATOMIC][F32] = 1;
        act(g, "tl.atomic_add(at_fp32 + (%s & 15), $%s)", offsets(g, &v->t),
            small(g, v, 5, 0), one_of(g, "|, sem=\"relaxed\""));
        return;
    }
    int at = t->slots[BUF_ZERO][dt] * t->nprog * t->n;
    t->slots[BUF_ZERO][dt] += MOST_TRIPS;
    act(g, "tl.store(z_%s + %d + ($ * %d + pid) * %d + %s, $)", dt_info[dt].sig, at,
        p->iv, t->nprog, t->n, offsets(g, &v->t), v);
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
    return chance(g, 80) ? let(g, scalar(I1), "$ %s", p->iv,
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
    if (chance(g, 15) && acc->t.dt == F32) {
        g->tree->slots[BUF_ATOMIC][F32] = 1;
        act(g, "tl.atomic_add(at_fp32 + (%s & 15), $)", offsets(g, &acc->t),
            small(g, acc, 5, 0));
    } else if (keeps || chance(g, 70))
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

/* A loop of n steps. */
static void
loop(Gen *g, Plan *p, int n)
{
    Value *outer = p->iv, *last[2] = {p->last[0], p->last[1]};
    Value *i = value_new(g, scalar(I32), 'i'), *go = value_new(g, scalar(I32), 'i');
    i->flags = go->flags = V_SPECIAL;
    Head h = loop_head(g, p, i, go, outer);
    Stmt *b = loop_new(g, h.text, i, h.way != 0);
    if (h.way == HEAD_LARGE)
        b->use[b->nuse++] = go;
    else if (outer && !h.way)
        b->use[b->nuse++] = outer;
    int scope = g->nval;
    Stmt **tail = block_open(g, b, 0);
    Value *raw = p->raw;
    Head at = p->head;
    p->last[0] = p->last[1] = NULL;
    p->head = h;
    p->raw = h.by_k ? let(g, scalar(I32), "tl.to_tensor($)", i) : NULL;
    p->iv = h.by_k
                ? let(g, scalar(I32), "($%s) // %d", p->raw, h.from, p->k)
                : let(g, scalar(I32),
                      *h.from ? "(tl.to_tensor($)%s).to(tl.int32)" : "tl.to_tensor($)%s",
                      i, h.from);
    if (chance(g, 8))
        read_some(g, p);
    Value *left = p->left;
    Type work = loop_tile(p->dt, p->m, p->k);
    if (p->work && !outer)
        p->left = flt(p->ring ? let(g, work, "tl.load(%s + ($ %% %d) * %d)", p->work,
                                    p->iv, p->ring, p->ring_step)
                              : let(g, work, "tl.load(%s)", p->work),
                      16, 1, V_ZERO);
    steps(g, p, n);
    if (p->work && !outer) {
        Value *next = p->last[0] && same_shape(&p->last[0]->t, &work)
                          ? narrowed(g, p, p->last[0])
                          : p->left;
        act(g, "tl.debug_barrier()");
        if (p->ring)
            act(g, "tl.store(%s + (($ + %d) %% %d) * %d, -$)", p->work, p->iv, p->ahead,
                p->ring, p->ring_step, next);
        else
            act(g, "tl.store(%s, -$)", p->work, next);
        act(g, "tl.debug_barrier()");
    }
    p->left = left;
    if (chance(g, p->plain ? 60 : 25))
        read_some(g, p);
    if (p->nacc > 1 && same_shape(&p->acc[0]->t, &p->acc[1]->t) && chance(g, 15)) {
        Value *kept = like(let(g, p->acc[0]->t, "$", p->acc[0]), p->acc[0]);
        set(g, p->acc[0], "$", p->acc[1]);
        set(g, p->acc[1], "$", kept);
    }
    for (int k = 0; k < 2 && !outer; k++) {
        const Moving *x = &p->moving[k];
        if (x->at && x->block)
            set(g, x->at, "tl.advance($, %s)", x->at, x->by);
        else if (x->at)
            set(g, x->at, "$ + %s", x->at, x->by);
    }
    if (p->bent && p->bends && !outer)
        loop_bend_again(g, p);
    loop_next(g, p, i, go);
    block_close(g, tail, scope);
    p->iv = outer;
    p->raw = raw;
    p->head = at;
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
        } else if (p->iv && !p->tile && chance(g, 7)) {
            leaves(g, p);
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
    const char *cols =
        chance(g, 30) ? tree_text(t, " & (tl.arange(0, %d)[None, :] < 11)", v->t.dim[1])
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
    Value *b = !across ? let(g, y, "tl.load(p_%s + $ * %d + %s)", sig, p->iv, step / 2,
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

/* A loop, or two that go on with one another's sums: as attention does all but the last
   columns without a mask. */
static void
loops(Gen *g, Plan *p)
{
    static const char *const middle[] = {"(m // 2)", "(tl.load(p_i32 + pid) & 3)", "1",
                                         "tl.maximum(m - 1, 0)", "tl.minimum(m, 2)"};
    int n = p->plain ? 1 : between(g, p->nacc, p->nacc + 1);
    p->lo = p->hi = NULL;
    if (!chance(g, 20)) {
        loop(g, p, n);
        return;
    }
    p->lo = "0";
    p->hi = middle[rnd(g, 5)];
    loop(g, p, n);
    p->lo = p->hi;
    p->hi = "m";
    if (chance(g, 20))
        one_step(g, p, p->acc[0]);
    loop(g, p, n);
    p->lo = p->hi = NULL;
}

/* Memory, of one tile or of a ring of them, where steps leave left operands for others.
 */
static void
work_memory(Gen *g, Plan *p)
{
    p->work = NULL;
    if (!p->plain && BIT(p->dt) & (BIT(F16) | BIT(BF16) | BIT(F32)) && chance(g, 12)) {
        Type s = loop_tile(p->dt, p->m, p->k);
        Tree *t = g->tree;
        int at = t->slots[BUF_ZERO][p->dt] * t->nprog * t->n;
        p->ring = chance(g, 50) ? between(g, 2, 4) : 0;
        p->ahead = between(g, 1, p->ring ? p->ring : 1);
        p->ring_step = t->nprog * t->n;
        t->slots[BUF_ZERO][p->dt] += p->ring ? p->ring : 1;
        p->work = tree_text(g->tree, "z_%s + (pid * %d + %d) + %s", dt_info[p->dt].sig,
                            g->tree->n, at, offsets(g, &s));
        Value *first = loop_operand(g, p, p->m, p->k, 1);
        first = narrowed(g, p, first);
        for (int i = 0; i < p->ring || !i; i++)
            act(g, "tl.store(%s + %d, $)", p->work, i * p->ring_step, first);
        act(g, "tl.debug_barrier()");
    }
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
    work_memory(g, p);
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
    p->back = p->stride_q > MOST_FIRST && chance(g, 40);
    if (chance(g, 15)) /* as groups of rows have them */
        p->first = let(g, scalar(I32), "tl.load(p_i32 + %d) %s%d", between(g, 0, 20),
                       p->back ? "| -1 - " : "& ", MOST_FIRST);
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
    loops(g, p);
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

/* One loop over the steps of all tiles. */
static void
flat_tiles(Gen *g, Plan *p)
{
    Tree *t = g->tree;
    p->tiles = between(g, 2, 3);
    t->arg_m = between(g, 1, 4);
    p->acc[0] = let(g, loop_tile(sum_dt(p), p->m, p->n), "tl.full([%d, %d], 0, tl.%s)",
                    p->m, p->n, dt_info[sum_dt(p)].tl);
    p->acc[0]->letter = 'a';
    flt(p->acc[0], 1 << 19, 2, V_ZERO);
    Value *k = let(g, scalar(I32), "tl.to_tensor(-1)");
    Value *tile = let(g, scalar(I32), "pid * %d - 1", p->tiles);
    k->letter = tile->letter = 'a';
    k->flags = tile->flags = V_SPECIAL;
    int scope = g->nval;
    Stmt **tail = counted(g, p, tree_text(t, "m * %d", p->tiles)), *f;
    set(g, k, one_of(g, "tl.where($ == m - 1, 0, $ + 1)|tl.where($ < m - 1, $ + 1, 0)"),
        k, k);
    Stmt **to = arm(g, &f, let(g, scalar(I1), "$ == 0", k), NULL);
    set(g, tile, "$ + 1", tile);
    block_close(g, to, g->nval);
    p->iv = k;
    p->tile = tile;
    one_step(g, p, p->acc[0]);
    int in = g->nval;
    to = arm(g, &f, let(g, scalar(I1), "$ == m - 1", k), NULL);
    store(g, p, p->acc[0]);
    reset(g, p->acc[0]);
    block_close(g, to, in);
    block_close(g, tail, scope);
}

void
make_loops(Gen *g)
{
    Tree *t = g->tree;
    Plan p;
    loop_sizes(g, &p);
    if (p.plain && chance(g, 15)) {
        flat_tiles(g, &p);
        return;
    }
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
    Stmt *b =
        loop_new(g,
                 t->nprog == t->grid[0] && chance(g, 70)
                     ? tree_text(t, "for %s in tl.range(pid, %d, tl.num_programs(0)%s)",
                                 value_name(t, i), p.tiles * t->nprog - between(g, 0, 1),
                                 chance(g, 30) ? loop_options(g) : "")
                     : tree_text(t, "for %s in range(pid * %d, pid * %d + %d)",
                                 value_name(t, i), p.tiles, p.tiles, p.tiles),
                 i, false);
    int scope = g->nval;
    Stmt **tail = block_open(g, b, 0);
    p.tile = let(g, scalar(I32), "tl.to_tensor($)", i);
    one_tile(g, &p);
    block_close(g, tail, scope);
}
