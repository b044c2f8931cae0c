/* Operations whose elements change threads, in random layouts: scans, gather, histograms,
   the old values of atomics; right elements and no race. Chains of join, split, cat and
   transpositions have the layouts that pass `layout` gives them. [SEED [COUNT]] */
#include "tests/sim/layouts.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST = 1024, MAX_LAYOUTS = 32 };

/* A kernel of three pointers to MOST numbers each, p, q and r; want: what must lie in q
   and r in the end, `nwant` of them. */
typedef struct Case {
    Random r;
    Text head, body;
    Bases layout[MAX_LAYOUTS];
    int nlayout, names, bits, n, warp_bits;
    int32_t p[MOST], q[MOST], out[MOST];
    int32_t want_q[MOST], want[MOST];
    int nwant, nwant_q;
    bool bare; /* without layouts */
} Case;

static int
name_layout(Case *c, Bases l, int cols)
{
    ck_assert_int_lt(c->nlayout, MAX_LAYOUTS);
    text_add(&c->head, "#l%d = ", c->nlayout);
    text_layout(&c->head, &l, cols);
    text_add(&c->head, "\n");
    c->layout[c->nlayout] = l;
    return c->nlayout++;
}

static int
layout(Case *c, int bits, int cols)
{
    return name_layout(c, layout_bent(&c->r, layout_random(&c->r, bits, c->warp_bits)),
                       cols);
}

static int
define(Case *c)
{
    text_add(&c->body, "  %%v%d = ", ++c->names);
    return c->names;
}

static int
pointers(Case *c, char p, int n, int l)
{
    int i = define(c);
    text_add(&c->body, "arange {start=0} : tile<%dxi32, #l%d>\n", n, l);
    int s = define(c);
    text_add(&c->body, "splat %%%c : tile<%dxptr<i32>, #l%d>\n", p, n, l);
    int a = define(c);
    text_add(&c->body, "addptr %%v%d, %%v%d : tile<%dxptr<i32>, #l%d>\n", s, i, n, l);
    return a;
}

static int
load(Case *c, char p, int n, int l)
{
    int a = pointers(c, p, n, l), v = define(c);
    text_add(&c->body, "load %%v%d : tile<%dxi32, #l%d>\n", a, n, l);
    return v;
}

static void
store(Case *c, int v, int n, int l)
{
    int a = pointers(c, 'r', n, l);
    text_add(&c->body, "  store %%v%d, %%v%d\n", a, v);
    c->nwant = n;
}

/* (a, b) and then (c, d) is (a + c, b + d + a * c): not commutative. */
static void
scan_want(Case *c, int rows, int cols, int axis, bool reverse)
{
    int lines = axis ? rows : cols, length = axis ? cols : rows;
    for (int line = 0; line < lines; line++) {
        int32_t a = 0, b = 0;
        for (int k = 0; k < length; k++) {
            int i = reverse ? length - 1 - k : k;
            int at = axis ? line * cols + i : i * cols + line;
            int32_t x = c->p[at], y = c->q[at];
            b = k ? b + y + a * x : y;
            a = k ? a + x : x;
            c->want[at] = b;
        }
    }
}

static void
scan(Case *c)
{
    int rows = 1 << random_between(&c->r, 0, c->bits), cols = c->n / rows, x[2];
    int axis = random_between(&c->r, 0, 1), l = layout(c, c->bits, 0);
    bool reverse = random_chance(&c->r, 50);
    int m = layout(c, c->bits, cols);
    int k = random_chance(&c->r, 60) ? m : layout(c, c->bits, cols);
    int square = name_layout(c, c->layout[l], cols);
    for (int j = 0; j < 2; j++) {
        int v = load(c, j ? 'q' : 'p', c->n, l), u = define(c);
        text_add(&c->body, "convert_layout %%v%d : tile<%dxi32, #l%d>\n", v, c->n, l);
        v = define(c);
        text_add(&c->body, "reshape %%v%d : tile<%dx%dxi32, #l%d>\n", u, rows, cols,
                 square);
        x[j] = define(c);
        text_add(&c->body, "convert_layout %%v%d : tile<%dx%dxi32, #l%d>\n", v, rows,
                 cols, m);
    }
    text_add(&c->body,
             "  %%s0, %%s1 = scan %%v%d, %%v%d {axis=%d%s} : tile<%dx%dxi32, #l%d>, "
             "tile<%dx%dxi32, #l%d> (%%a: i32, %%b: i32, %%c: i32, %%d: i32) {\n"
             "    %%ac = add %%a, %%c : i32\n    %%m = mul %%a, %%c : i32\n"
             "    %%bd = add %%b, %%d : i32\n    %%e = add %%bd, %%m : i32\n"
             "    yield %%ac, %%e\n  }\n",
             x[0], x[1], axis, reverse ? ", reverse" : "", rows, cols, k, rows, cols, k);
    int y = define(c);
    text_add(&c->body, "convert_layout %%s1 : tile<%dx%dxi32, #l%d>\n", rows, cols,
             square);
    int z = define(c);
    text_add(&c->body, "reshape %%v%d : tile<%dxi32, #l%d>\n", y, c->n, l);
    scan_want(c, rows, cols, axis, reverse);
    store(c, z, c->n, l);
}

static void
gather(Case *c)
{
    int lg = random_between(&c->r, 4, 8), count = 1 << lg;
    int a = layout(c, c->bits, 0), b = layout(c, lg, 0), to = b;
    if (random_chance(&c->r, 50))
        to = layout(c, lg, 0);
    for (int k = 0; k < MOST; k++)
        c->q[k] = (int32_t)random_below(&c->r, (uint32_t)c->n);
    int src = load(c, 'p', c->n, a), index = load(c, 'q', count, b), y = define(c);
    text_add(&c->body, "gather %%v%d, %%v%d {axis=0} : tile<%dxi32, #l%d>\n", src, index,
             count, to);
    for (int k = 0; k < count; k++)
        c->want[k] = c->p[c->q[k]];
    store(c, y, count, to);
}

static void
histogram(Case *c)
{
    int lg = random_between(&c->r, 1, 6), bins = 1 << lg;
    int a = layout(c, c->bits, 0), b = layout(c, lg, 0), m = layout(c, c->bits, 0);
    int x = load(c, 'p', c->n, a), mask = 0;
    if (random_chance(&c->r, 50)) {
        m = random_chance(&c->r, 50) ? a : m;
        int zero = define(c);
        text_add(&c->body, "const {value=0} : tile<%dxi32, #l%d>\n", c->n, m);
        int q = load(c, 'q', c->n, m);
        mask = define(c);
        text_add(&c->body, "cmpi %%v%d, %%v%d {pred=\"sgt\"} : tile<%dxi1, #l%d>\n", q,
                 zero, c->n, m);
    }
    int y = define(c);
    text_add(&c->body, "histogram %%v%d", x);
    if (mask)
        text_add(&c->body, ", %%v%d", mask);
    text_add(&c->body, " : tile<%dxi32, #l%d>\n", bins, b);
    for (int k = 0; k < c->n; k++)
        if ((!mask || c->q[k] > 0) && c->p[k] >= 0 && c->p[k] < bins)
            c->want[c->p[k]]++;
    store(c, y, bins, b);
}

static int32_t
apply(int op, int32_t x, int32_t y)
{
    switch (op) {
    case 0: return x + y;
    case 1: return x > y ? x : y;
    case 2: return x < y ? x : y;
    case 3: return x ^ y;
    case 4: return y;
    default: return x;
    }
}

static void
atomic(Case *c)
{
    static const char *const names[] = {"add", "smax", "smin", "xor", "xchg"};
    int l = layout(c, c->bits, 0), op = (int)random_below(&c->r, 6);
    int x = load(c, 'p', c->n, l), to = pointers(c, 'q', c->n, l), y = define(c);
    if (op < 5)
        text_add(&c->body, "atomic_rmw %%v%d, %%v%d {rmw=\"%s\"}", to, x, names[op]);
    else
        text_add(&c->body, "atomic_cas %%v%d, %%v%d, %%v%d", to, x, x);
    text_add(&c->body, " : tile<%dxi32, #l%d>\n", c->n, l);
    c->nwant_q = c->n;
    for (int k = 0; k < c->n; k++) {
        c->want_q[k] = apply(op, c->q[k], c->p[k]);
        c->want[k] = c->q[k];
    }
    if (random_chance(&c->r, 70))
        store(c, y, c->n, l);
}

/* Pointers to the n numbers of one of the arguments. */
static int
bare_pointers(Case *c, char p, int n)
{
    int i = define(c);
    text_add(&c->body, "arange {start=0} : tile<%dxi32>\n", n);
    int s = define(c);
    text_add(&c->body, "splat %%%c : tile<%dxptr<i32>>\n", p, n);
    int a = define(c);
    text_add(&c->body, "addptr %%v%d, %%v%d : tile<%dxptr<i32>>\n", s, i, n);
    return a;
}

static int
bare_reshape(Case *c, int v, int rows, int cols)
{
    int r = define(c);
    text_add(&c->body,
             cols ? "reshape %%v%d : tile<%dx%dxi32>\n"
                  : "reshape %%v%d : tile<%dxi32>\n",
             v, rows, cols);
    return r;
}

/* Two tiles of one shape, what they are called and what they hold. */
typedef struct Pair {
    int name[2], rows, cols;
    int32_t v[2][MOST];
} Pair;

/* One behind the other along an axis, in either order. */
static void
pair_cat(Case *c, Pair *p)
{
    Pair old = *p;
    int axis = random_between(&c->r, 0, 1), y[2];
    *(axis ? &p->cols : &p->rows) *= 2;
    for (int k = 0; k < 2; k++) {
        y[k] = define(c);
        text_add(&c->body, "cat %%v%d, %%v%d {axis=%d} : tile<%dx%dxi32>\n", old.name[k],
                 old.name[!k], axis, p->rows, p->cols);
        for (int i = 0; i < p->rows * p->cols; i++) {
            int row = i / p->cols, col = i % p->cols;
            int of = row / old.rows + col / old.cols;
            p->v[k][i] = old.v[k ^ of][row % old.rows * old.cols + col % old.cols];
        }
        p->name[k] = y[k];
    }
}

/* Side by side, the new dimension anywhere, and as rows and columns again. */
static void
pair_join(Case *c, Pair *p)
{
    static const int perm[][3] = {{0, 1, 2}, {0, 2, 1}, {2, 0, 1}, {2, 1, 0}};
    Pair old = *p;
    const int *by = perm[random_below(&c->r, 4)], dim[] = {old.rows, old.cols, 2};
    int step[] = {dim[by[1]] * dim[by[2]], dim[by[2]], 1}, at[3];
    p->rows = dim[by[0]];
    p->cols = dim[by[1]] * dim[by[2]];
    for (int k = 0; k < 2; k++) {
        int j = define(c);
        text_add(&c->body, "join %%v%d, %%v%d : tile<%dx%dx2xi32>\n", old.name[k],
                 old.name[!k], old.rows, old.cols);
        int t = define(c);
        text_add(&c->body, "trans %%v%d {perm=[%d,%d,%d]} : tile<%dx%dx%dxi32>\n", j,
                 by[0], by[1], by[2], dim[by[0]], dim[by[1]], dim[by[2]]);
        p->name[k] = bare_reshape(c, t, p->rows, p->cols);
        for (at[0] = 0; at[0] < old.rows; at[0]++)
            for (at[1] = 0; at[1] < old.cols; at[1]++)
                for (at[2] = 0; at[2] < 2; at[2]++) {
                    int to = 0;
                    for (int d = 0; d < 3; d++)
                        to += at[by[d]] * step[d];
                    p->v[k][to] = old.v[k ^ at[2]][at[0] * old.cols + at[1]];
                }
    }
}

/* Every other element of the first, and the others plus the second's. */
static void
pair_split(Case *c, Pair *p)
{
    Pair old = *p;
    int half[2][2], n = p->rows * (p->cols /= 2);
    for (int k = 0; k < 2; k++) {
        int x = define(c);
        text_add(&c->body, "reshape %%v%d : tile<%dx%dx2xi32>\n", old.name[k], p->rows,
                 p->cols);
        half[k][0] = ++c->names;
        half[k][1] = ++c->names;
        text_add(&c->body,
                 "  %%v%d, %%v%d = split %%v%d : tile<%dx%dxi32>, tile<%dx%dxi32>\n",
                 half[k][0], half[k][1], x, p->rows, p->cols, p->rows, p->cols);
    }
    p->name[0] = half[0][0];
    p->name[1] = define(c);
    text_add(&c->body, "add %%v%d, %%v%d : tile<%dx%dxi32>\n", half[0][1], half[1][0],
             p->rows, p->cols);
    for (int i = 0; i < n; i++) {
        p->v[0][i] = old.v[0][2 * i];
        p->v[1][i] = old.v[0][2 * i + 1] + old.v[1][2 * i];
    }
}

static void
pairs(Case *c)
{
    static Pair p;
    c->bare = true;
    p.rows = 1 << random_between(&c->r, 0, c->bits);
    p.cols = c->n / p.rows;
    for (int k = 0; k < 2; k++) {
        int a = bare_pointers(c, k ? 'q' : 'p', c->n), v = define(c);
        text_add(&c->body, "load %%v%d : tile<%dxi32>\n", a, c->n);
        p.name[k] = bare_reshape(c, v, p.rows, p.cols);
        memcpy(p.v[k], k ? c->q : c->p, (size_t)c->n * 4);
    }
    for (int steps = random_between(&c->r, 1, 4); steps > 0; steps--) {
        int way = random_between(&c->r, 0, 2);
        if (way == 2 && p.cols > 1)
            pair_split(c, &p);
        else if (2 * p.rows * p.cols <= MOST)
            (way ? pair_join : pair_cat)(c, &p);
    }
    int n = p.rows * p.cols, sum = define(c);
    text_add(&c->body, "sub %%v%d, %%v%d : tile<%dx%dxi32>\n", p.name[0], p.name[1],
             p.rows, p.cols);
    sum = bare_reshape(c, sum, n, 0);
    int to = bare_pointers(c, 'r', n);
    text_add(&c->body, "  store %%v%d, %%v%d\n", to, sum);
    for (int i = 0; i < n; i++)
        c->want[i] = p.v[0][i] - p.v[1][i];
    c->nwant = n;
}

static int seed = 1, count = 60;

START_TEST(random_moves_are_right)
{
    static void (*const kinds[])(Case *) = {scan, gather, histogram, atomic, pairs};
    for (int i = 0; i < count; i++) {
        static Case c;
        c = (Case){.r = {.state = (uint64_t)seed * 1000003u + (uint64_t)i}};
        random_below(&c.r, 2);
        c.warp_bits = random_between(&c.r, 0, 2);
        c.bits = random_between(&c.r, 4, 8);
        c.n = 1 << c.bits;
        for (int k = 0; k < MOST; k++) {
            c.p[k] = random_between(&c.r, -9, 9);
            c.q[k] = random_between(&c.r, -9, 9);
        }
        kinds[i % (int)(sizeof kinds / sizeof *kinds)](&c);
        Text s = {0};
        text_add(&s, "%s", c.head.at ? c.head.at : "");
        text_add(&s,
                 "kernel @f(%%p: ptr<i32> {sig=\"*i32\"}, %%q: ptr<i32> {sig=\"*i32\"}, "
                 "%%r: ptr<i32> {sig=\"*i32\"}) {warps=%d, form=%d} {\n",
                 1 << c.warp_bits, c.bare ? 1 : 3);
        text_add(&s, "%s  return\n}\n", c.body.at);
        Kernel k = kernel_ir(s.at, "sm_80",
                             c.bare ? "layout,alloc-shared,insert-barriers"
                                    : "alloc-shared,insert-barriers");
        uint64_t args[] = {(uint64_t)(uintptr_t)c.p, (uint64_t)(uintptr_t)c.q,
                           (uint64_t)(uintptr_t)c.out};
        kernel_run(&k, args, 3, &c, sizeof c, (uint64_t)i);
        for (int v = 0; v < c.nwant; v++)
            if (c.out[v] != c.want[v])
                ck_abort_msg("element %d, case %d of seed %d:\n%s", v, i, seed, s.at);
        for (int v = 0; v < c.nwant_q; v++)
            if (c.q[v] != c.want_q[v])
                ck_abort_msg("place %d, case %d of seed %d:\n%s", v, i, seed, s.at);
        kernel_free(&k);
        free(s.at);
        free(c.head.at);
        free(c.body.at);
    }
    printf("%d cases, seed %d\n", count, seed);
}
END_TEST

int
main(int argc, char **argv)
{
    seed = argc > 1 ? atoi(argv[1]) : seed;
    count = argc > 2 ? atoi(argv[2]) : count;
    Suite *suite = suite_create("moves");
    TCase *tc = tcase_create("moves");
    tcase_set_timeout(tc, 300);
    tcase_add_test(tc, random_moves_are_right);
    suite_add_tcase(suite, tc);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed > 0;
}
