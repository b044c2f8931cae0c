/* Operations whose elements change threads, in random layouts: scans, gather, histograms,
   the old values of atomics; right elements and no race. Join, split and cat exchange by
   conversions: test_exchange. [SEED [COUNT]] */
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

static int seed = 1, count = 60;

START_TEST(random_moves_are_right)
{
    static void (*const kinds[])(Case *) = {scan, gather, histogram, atomic};
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
        text_add(&s, "%s", c.head.at);
        text_add(&s,
                 "kernel @f(%%p: ptr<i32> {sig=\"*i32\"}, %%q: ptr<i32> {sig=\"*i32\"}, "
                 "%%r: ptr<i32> {sig=\"*i32\"}) {warps=%d, form=3} {\n",
                 1 << c.warp_bits);
        text_add(&s, "%s  return\n}\n", c.body.at);
        Kernel k = kernel_ir(s.at, "sm_80", "alloc-shared,insert-barriers");
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
