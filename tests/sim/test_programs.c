/* Random programs of conversions, buffers, reductions, loops and conditions that leave
   every tile as it was: they must end with the right elements, whatever shares its offset
   in shared memory, and without a race. [SEED [COUNT]] */
#include "tests/sim/layouts.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LAYOUTS = 4, MAX_VALUES = 200, MAX_DEPTH = 2 };

/* What a region may use. */
typedef struct Scope {
    int value[MAX_VALUES], layout[MAX_VALUES], n;
    int buffer[MAX_VALUES], nbuffer;
} Scope;

typedef struct Program {
    Random r;
    Text s;
    int n, rows, cols, names, warp_bits;
} Program;

static void steps(Program *p, Scope *s, int depth, int count);

static int
pick(Program *p, int n)
{
    return (int)random_below(&p->r, (uint32_t)n);
}

static void
indent(Program *p, int depth)
{
    text_add(&p->s, "%*s", 2 * depth + 2, "");
}

/* "%vN = " */
static int
define(Program *p, int depth)
{
    indent(p, depth);
    text_add(&p->s, "%%v%d = ", ++p->names);
    return p->names;
}

static void
keep(Scope *s, int value, int layout)
{
    ck_assert_int_lt(s->n, MAX_VALUES);
    s->value[s->n] = value;
    s->layout[s->n++] = layout;
}

static void
tile(Program *p, int l)
{
    text_add(&p->s, "tile<%dxi32, #a%d>", p->n, l);
}

static void
convert(Program *p, Scope *s, int depth)
{
    int from = s->value[pick(p, s->n)], l = pick(p, LAYOUTS), v = define(p, depth);
    text_add(&p->s, "convert_layout %%v%d : ", from);
    tile(p, l);
    text_add(&p->s, "\n");
    keep(s, v, l);
}

static void
fill(Program *p, Scope *s, int depth)
{
    int k = pick(p, s->n), x = define(p, depth);
    text_add(&p->s, "reshape %%v%d : tile<%dx%dxi32, #b%d>\n", s->value[k], p->rows,
             p->cols, s->layout[k]);
    if (s->nbuffer && random_chance(&p->r, 50)) {
        indent(p, depth);
        text_add(&p->s, "local_store %%v%d, %%v%d\n", s->buffer[pick(p, s->nbuffer)], x);
        return;
    }
    int b = define(p, depth);
    text_add(&p->s, "local_alloc %%v%d : mem<i32, [%d,%d], #sh>\n", x, p->rows, p->cols);
    ck_assert_int_lt(s->nbuffer, MAX_VALUES);
    s->buffer[s->nbuffer++] = b;
}

static void
read_buffer(Program *p, Scope *s, int depth)
{
    if (!s->nbuffer)
        return;
    int l = pick(p, LAYOUTS), b = s->buffer[pick(p, s->nbuffer)], x = define(p, depth);
    text_add(&p->s, "local_load %%v%d : tile<%dx%dxi32, #b%d>\n", b, p->rows, p->cols, l);
    int v = define(p, depth);
    text_add(&p->s, "reshape %%v%d : ", x);
    tile(p, l);
    text_add(&p->s, "\n");
    keep(s, v, l);
}

/* Adds the sum of all elements less what it must be. */
static void
reduce(Program *p, Scope *s, int depth)
{
    int k = pick(p, s->n), from = s->value[k], l = s->layout[k], r = define(p, depth);
    text_add(&p->s, "reduce %%v%d {axis=0} : i32 (%%q%d: i32, %%r%d: i32) {\n", from, r,
             r);
    int sum = define(p, depth + 1);
    text_add(&p->s, "add %%q%d, %%r%d : i32\n", r, r);
    indent(p, depth + 1);
    text_add(&p->s, "yield %%v%d\n", sum);
    indent(p, depth);
    text_add(&p->s, "}\n");
    int zero = define(p, depth);
    text_add(&p->s, "sub %%v%d, %%total : i32\n", r);
    int t = define(p, depth);
    text_add(&p->s, "splat %%v%d : ", zero);
    tile(p, l);
    text_add(&p->s, "\n");
    int v = define(p, depth);
    text_add(&p->s, "add %%v%d, %%v%d : ", from, t);
    tile(p, l);
    text_add(&p->s, "\n");
    keep(s, v, l);
}

/* A region that yields one of its last tiles of layout l. */
static void
body(Program *p, const Scope *outer, int depth, int l, int most)
{
    Scope s = *outer;
    int same[3], n = 0;
    steps(p, &s, depth + 1, random_between(&p->r, 0, most));
    for (int k = s.n - 1; k >= 0 && n < 3; k--)
        if (s.layout[k] == l)
            same[n++] = s.value[k];
    indent(p, depth + 1);
    text_add(&p->s, "yield %%v%d\n", same[pick(p, n)]);
}

static void
loop(Program *p, Scope *s, int depth)
{
    int k = pick(p, s->n), from = s->value[k], l = s->layout[k];
    int r = define(p, depth), carried = ++p->names;
    text_add(&p->s, "for %%i%d = %%c0, %%c%d, %%c1 (%%v%d = %%v%d) : ", r,
             random_between(&p->r, 1, 3), carried, from);
    tile(p, l);
    text_add(&p->s, " {\n");
    Scope inner = *s;
    keep(&inner, carried, l);
    keep(&inner, carried, l);
    body(p, &inner, depth, l, 4);
    indent(p, depth);
    text_add(&p->s, "}\n");
    keep(s, r, l);
}

static void
branch(Program *p, Scope *s, int depth)
{
    int l = s->layout[pick(p, s->n)], r = define(p, depth);
    text_add(&p->s, "if %%cond%d : ", pick(p, 2));
    tile(p, l);
    text_add(&p->s, " {\n");
    body(p, s, depth, l, 3);
    indent(p, depth);
    text_add(&p->s, "} else {\n");
    body(p, s, depth, l, 3);
    indent(p, depth);
    text_add(&p->s, "}\n");
    keep(s, r, l);
}

static void
steps(Program *p, Scope *s, int depth, int count)
{
    static void (*const kinds[])(Program *, Scope *, int) = {
        convert, convert, fill, fill, read_buffer, reduce, loop, branch};
    while (count-- > 0)
        kinds[pick(p, depth < MAX_DEPTH ? 8 : 6)](p, s, depth);
}

/* The text; how many tiles it adds in the end. */
static int
write_program(Program *p)
{
    int bits, total = 0, tiles;
    Scope s = {.n = 0};
    Bases l[LAYOUTS];
    static const int swizzles[] = {0, 32, 64};
    p->warp_bits = random_between(&p->r, 0, 2);
    bits = random_between(&p->r, 5, 8);
    p->n = 1 << bits;
    p->rows = 1 << random_between(&p->r, 0, bits);
    p->cols = p->n / p->rows;
    for (int k = 0; k < LAYOUTS; k++) {
        l[k] = layout_random(&p->r, bits, p->warp_bits);
        text_add(&p->s, "#a%d = ", k);
        text_layout(&p->s, &l[k], 0);
        text_add(&p->s, "\n#b%d = ", k);
        text_layout(&p->s, &l[k], p->cols);
        text_add(&p->s, "\n");
    }
    text_add(&p->s, "#sh = shared<i32, swizzle=%d>\n\n", swizzles[pick(p, 3)]);
    text_add(&p->s,
             "kernel @f(%%p: ptr<i32> {sig=\"*i32\"}, %%n: i32 {sig=\"i32\"}) {warps=%d, "
             "form=3} {\n",
             1 << p->warp_bits);
    for (int k = 0; k < 4; k++)
        text_add(&p->s, "  %%c%d = const {value=%d} : i32\n", k, k);
    text_add(&p->s,
             "  %%total = const {value=%d} : i32\n"
             "  %%cond0 = cmpi %%n, %%c1 {pred=\"slt\"} : i1\n"
             "  %%cond1 = cmpi %%n, %%c1 {pred=\"sge\"} : i1\n"
             "  %%v0 = arange {start=1} : tile<%dxi32, #a0>\n",
             p->n * (p->n + 1) / 2, p->n);
    keep(&s, 0, 0);
    steps(p, &s, 0, random_between(&p->r, 4, 12));
    tiles = s.n < 4 ? s.n : 4;
    for (int k = 0; k < tiles; k++) { /* without one twice */
        int at = k + pick(p, s.n - k), from = s.value[at];
        s.value[at] = s.value[k];
        int v = define(p, 0);
        text_add(&p->s, "convert_layout %%v%d : tile<%dxi32, #a1>\n", from, p->n);
        if (k) {
            int sum = define(p, 0);
            text_add(&p->s, "add %%v%d, %%v%d : tile<%dxi32, #a1>\n", total, v, p->n);
            v = sum;
        }
        total = v;
    }
    text_add(&p->s,
             "  %%i = arange {start=0} : tile<%dxi32, #a1>\n"
             "  %%ps = splat %%p : tile<%dxptr<i32>, #a1>\n"
             "  %%pp = addptr %%ps, %%i : tile<%dxptr<i32>, #a1>\n"
             "  store %%pp, %%v%d\n  return\n}\n",
             p->n, p->n, p->n, total);
    return tiles;
}

static int seed = 1, count = 15;

START_TEST(random_programs_are_right)
{
    int barriers = 0;
    for (int i = 0; i < count; i++) {
        Program p = {.r = {.state = (uint64_t)seed * 1000003u + (uint64_t)i}};
        random_below(&p.r, 2);
        int tiles = write_program(&p);
        Kernel k = kernel_ir(p.s.at, pick(&p, 2) ? "sm_80" : "sm_90",
                             "alloc-shared,insert-barriers");
        for (uint64_t arm = 0; arm < 2; arm++) {
            int32_t memory[256] = {0};
            uint64_t args[] = {(uint64_t)(uintptr_t)memory, arm};
            kernel_run(&k, args, 2, memory, (size_t)p.n * 4, 2 * (uint64_t)i + arm);
            barriers += k.barriers;
            for (int v = 0; v < p.n; v++)
                if (memory[v] != tiles * (v + 1))
                    ck_abort_msg("element %d, case %d of seed %d:\n%s", v, i, seed,
                                 p.s.at);
        }
        kernel_free(&k);
        free(p.s.at);
    }
    printf("%d programs, seed %d, %d barriers met\n", count, seed, barriers);
}
END_TEST

int
main(int argc, char **argv)
{
    seed = argc > 1 ? atoi(argv[1]) : seed;
    count = argc > 2 ? atoi(argv[2]) : count;
    Suite *suite = suite_create("programs");
    TCase *tc = tcase_create("programs");
    tcase_set_timeout(tc, 300);
    tcase_add_test(tc, random_programs_are_right);
    suite_add_tcase(suite, tc);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed > 0;
}
