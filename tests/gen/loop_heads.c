/* Sizes of the loops of make_loops.c and their heads: where counters begin and end, how
   they go on, and what the source says of the loop. */
#include <string.h>

#include "tests/gen/loops.h"

void
loop_sizes(Gen *g, Plan *p)
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

const char *
loop_options(Gen *g)
{
    const char *s = "";
    if (chance(g, 25))
        s = tree_text(g->tree, ", num_stages=%d", between(g, 1, 5));
    if (chance(g, 15))
        s = tree_text(g->tree, "%s, warp_specialize=True", s);
    if (chance(g, 10))
        s = tree_text(g->tree, "%s, flatten=True", s);
    if (chance(g, 10))
        s = tree_text(g->tree, "%s, disallow_acc_multi_buffer=True", s);
    if (chance(g, 10))
        s = tree_text(g->tree, "%s, loop_unroll_factor=%d", s, between(g, 1, 4));
    return s;
}

static const char *
counts(Gen *g, const Value *i, const char *bounds)
{
    Tree *t = g->tree;
    bool told = chance(g, 50);
    return tree_text(t, "for %s in %s(%s%s)", value_name(t, i),
                     told ? "tl.range" : "range", bounds,
                     told && chance(g, 50) ? loop_options(g) : "");
}

static const char *
while_head(Gen *g, int way, const char *hi)
{
    return way == HEAD_BITS ? one_of(g, "while \x80 > 0|while \x80 != 0")
           : way == HEAD_UP ? tree_text(g->tree, "while \x80 < %s", hi)
                            : tree_text(g->tree, "while (\x80 < %s) & (\x81 > 0)", hi);
}

void
loop_next(Gen *g, const Plan *p, Value *i, Value *go)
{
    int way = p->head.way;
    if (way == HEAD_BITS)
        set(g, i, one_of(g, "$ & ($ - 1)|$ - 1|$ >> 1"), i, i);
    else if (way)
        set(g, i, "$ + 1", i);
    if (way == HEAD_LARGE)
        set(g, go, "(tl.max(tl.max($, 1), 0) < %s).to(tl.int32)", p->acc[0],
            one_of(g, "8|200|1000"));
}

/* How often a loop goes round; \x80: the counter of the loop around it. */
static const char *
rounds(Gen *g, const Plan *p, const Value *outer, bool is_while)
{
    if (!outer)
        return p->plain && chance(g, 80)
                   ? "m"
                   : one_of(g, "m|m|m|3|4|2|(tl.load(p_i32 + 7) & 3)|"
                               "(tl.load(p_i32 + pid) & 3)|(m - (pid & 1))");
    if (BIT(p->dt) & FP8S) /* sums of few bits */
        return "2";
    return is_while ? one_of(g, "2|3|m - 1|1")
                    : one_of(g, "2|2|1|3|m|(m - 1)|(\x80 + 1)|(\x80 & 1)");
}

/* Bounds of a loop that makes `hi` passes, not from 0 up by 1: below 0, near the ends of
   types, by steps that are arguments, down. */
static const char *
odd_bounds(Gen *g, const char *hi, const char **from)
{
    static const struct {
        const char *range, *from; /* %s: how many passes */
    } of[] = {
        {"2147483647 - %s, 2147483647", " - 2147483647 + %s"},
        {"-2147483648, -2147483648 + %s", " + 2147483647 + 1"},
        {"-2147483648 + %s, -2147483648, -1", " + 2147483647"},
        {"4294967294, tl.to_tensor(%s).to(tl.int64) + 4294967294", " - 4294967294"},
        {"tl.to_tensor(%s).to(tl.int64) - 3000000000, -3000000000, -1", " + 2999999999"},
        {"0, %s * n, n", " // n"},
        {"q, q + %s * q, q", " // q - 1"},
        {"%s * 2, 0, -2", " // 2 - 1"},
        {"0, %s * 536870911, 536870911", " // 536870911"},
        {"0, %s * tl.num_programs(0), tl.num_programs(0)", " // tl.num_programs(0)"},
        {"-%s, 0", " + %s"},
        {"-2, %s - 2", " + 2"},
        {"-1, -1 - %s, -1", " + %s"},
        {"-n, %s * n - n, n", " // n + 1"},
        {"-q, %s - q", " + q"},
        {"pid - 5, pid + %s - 5", " + 5 - pid"}};
    int k = between(g, 0, (int)(sizeof of / sizeof *of) - 1);
    Tree *t = g->tree;
    *from = tree_text(t, of[k].from, hi);
    return tree_text(t, of[k].range, hi);
}

/* The same of loops that go by the depth of a step. */
static const char *
bounds_by_k(Gen *g, const char *lo, const char *hi, int k, Head *h)
{
    Tree *t = g->tree;
    switch (*lo == '0' && !lo[1] ? between(g, 0, 9) : 9) {
    case 0:
        h->from = tree_text(t, " + %s * %d", hi, k);
        h->below = chance(g, 50);
        return tree_text(t, "-%s * %d, 0, %d", hi, k, k);
    case 1:
        h->from = tree_text(t, " + %d", 2 * k);
        h->below = chance(g, 50);
        return tree_text(t, "-%d, (%s - 2) * %d, %d", 2 * k, hi, k, k);
    case 2: return tree_text(t, "(%s - 1) * %d, -1, -%d", hi, k, k);
    case 3:
        h->from = tree_text(t, " - %d", k);
        return tree_text(t, "%s * %d, 0, -%d", hi, k, k);
    default: return tree_text(t, "%s * %d, %s * %d, %d", lo, k, hi, k, k);
    }
}

Head
loop_head(Gen *g, const Plan *p, Value *i, Value *go, const Value *outer)
{
    Tree *t = g->tree;
    Head h = {.from = ""};
    bool parts = !outer && p->lo;
    h.way = !chance(g, p->plain ? 8 : 16) ? 0 : between(g, HEAD_UP, HEAD_LARGE);
    if (parts && h.way)
        h.way = HEAD_UP;
    h.by_k = !outer && !h.way && chance(g, 35);
    const char *lo = parts ? p->lo : "0";
    const char *hi = parts ? p->hi : rounds(g, p, outer, h.way != 0);
    if (h.way == HEAD_BITS)
        begin(g, i, "tl.load(p_i32 + %d) & 3", between(g, 0, 40));
    else if (h.way)
        begin(g, i, "tl.to_tensor(%s)", lo);
    if (h.way == HEAD_LARGE)
        begin(g, go, "tl.to_tensor(1)");
    if (h.way)
        h.text = while_head(g, h.way, hi);
    else if (h.by_k)
        h.text = counts(g, i, bounds_by_k(g, lo, hi, p->k, &h));
    else if (!parts && !strchr(hi, '\x80') && chance(g, 18)) /* not of another counter */
        h.text = counts(g, i, odd_bounds(g, hi, &h.from));
    else if (!p->plain && chance(g, 8))
        h.text = counts(g, i, tree_text(t, "%s - 1, %s - 1, -1", hi, lo));
    else
        h.text = counts(g, i, tree_text(t, "%s, %s", lo, hi));
    return h;
}
