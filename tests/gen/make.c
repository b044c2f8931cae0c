/* A program: its sizes, a subset of the features (so that what is drawn is drawn often),
   and statements. The same seed gives the same program wherever the same compiler built
   this: the order in which C evaluates arguments is the compiler's. */
#include <math.h>
#include <string.h>

#include "tests/gen/gen.h"

static const struct {
    Maker *make;
    double weight;
    const char *name;
} makers[] = {
#define MAKER(name, weight) {make_##name, weight, #name},
#include "tests/gen/makers.def"
};

enum { NMAKER = sizeof makers / sizeof *makers };

int
maker_number(const char *name)
{
    for (int i = 0; i < NMAKER; i++)
        if (strcmp(makers[i].name, name) == 0)
            return i + 1;
    return 0;
}

void
step(Gen *g)
{
    double total = 0;
    for (int i = 0; i < NMAKER; i++)
        total += makers[i].weight * g->boost[i];
    for (int tries = 0; tries < 12; tries++) {
        double at = total * rnd(g, 1 << 20) / (1 << 20);
        int k = 0;
        while (k + 1 < NMAKER && (at -= makers[k].weight * g->boost[k]) >= 0)
            k++;
        Value *v = makers[k].make(g);
        if (v) {
            if (chance(g, 70)) /* others are seen by what is made of them */
                put(g, v);
            return;
        }
    }
}

bool
block_of_steps(Gen *g, int n)
{
    for (int i = 0; i < n; i++)
        step(g);
    return n > 0;
}

static void
sizes(Gen *g)
{
    static const int n[] = {16, 16, 32, 32, 64, 64, 128, 256, 256, 512, 1024};
    static const int grids[][3] = {{1, 1, 1}, {2, 1, 1}, {2, 1, 1}, {4, 1, 1},
                                   {3, 1, 1}, {2, 2, 1}, {1, 2, 2}, {1, 3, 1}};
    static const int warps[] = {4, 4, 1, 2, 8};
    Tree *t = g->tree;
    t->n = n[rnd(g, sizeof n / sizeof *n)];
    t->len = 4 * t->n;
    if (chance(g, 25))
        t->len += between(g, 1, 3);   /* the end is not at a round address */
    if (t->n >= 256 && chance(g, 50)) /* room for operands of products */
        t->len = 16384;
    memcpy(t->grid, grids[rnd(g, sizeof grids / sizeof *grids)], sizeof t->grid);
    if (t->n <= 64 && chance(g, 12)) {
        static const int large[][3] = {{16, 1, 1}, {5, 3, 2}, {1, 1, 7}};
        memcpy(t->grid, large[rnd(g, 3)], sizeof t->grid);
    }
    t->nprog = t->grid[0] * t->grid[1] * t->grid[2];
    t->warps = warps[rnd(g, 5)];
    t->stages = between(g, 1, 4);
    int all[] = {t->n, t->n - 1, t->n + 1, t->n / 2, 16, 1, 0, 3, 2 * t->n, 17};
    t->arg_n = all[rnd(g, 10)];
    t->arg_m = between(g, 0, 5);
    t->arg_q = chance(g, 30) ? 16 * between(g, 0, 4) : between(g, -3, 40);
    t->arg_s = between(g, -8, 8) * 0.5;
    t->atomic = one_of(g, "add|max|min|and|or|xor|add");
    g->old = chance(g, 40);
    for (int dt = 0; dt < NDT; dt++)
        if (chance(g, dt == BF16 ? 50 : 20))
            g->banned |= BIT(dt);
    for (int i = 0; i < NMAKER; i++) {
        static const double boost[] = {0, 1, 1, 1, 1, 4};
        g->boost[i] = boost[rnd(g, 6)];
    }
    if (chance(g, 18)) { /* products need large tiles */
        t->n = 256 << between(g, 0, 2);
        t->len = 16384;
        for (int i = 0; i < NMAKER; i++)
            if (strcmp(makers[i].name, "dot") == 0)
                g->boost[i] = 12;
    }
    uint64_t most = t->seed >> MAKER_SHIFT;
    if (most && most <= NMAKER)
        g->boost[most - 1] = 60 / makers[most - 1].weight;
}

Tree *
tree_make(uint64_t seed)
{
    Tree *t = tree_new(seed);
    Gen *g = tree_alloc(t, sizeof *g);
    *g = (Gen){.tree = t, .rng = seed * 0x2545f4914f6cdd1du + 1, .tail = &t->body};
    if (seed >= LOOP_SEEDS) {
        make_loops(g);
        return t;
    }
    sizes(g);
    static const char *const names[] = {"pid", "n", "m"};
    for (int i = 0; i < 3; i++) /* so that they can be picked as any other value */
        let(g, scalar(I32), "%s", names[i]);
    flt(let(g, scalar(F32), "s"), 16, 1, 0);
    let(g, scalar(I64), "tl.to_tensor(q).to(tl.int64)");
    int loads = between(g, 1, 3);
    for (int i = 0; i < loads; i++)
        put(g, make_load(g));
    int steps = between(g, 2, 10);
    for (int i = 0; i < steps; i++)
        step(g);
    for (int i = g->nval > 4 ? g->nval - 4 : 0; i < g->nval; i++)
        put(g, g->val[i]);
    return t;
}

Program *
gen_program(uint64_t seed)
{
    Tree *t = tree_make(seed);
    Program *p = tree_program(t);
    tree_free(t);
    return p;
}
