/* Elements that change threads, on a simulated block: conversions between random layouts,
   tiles through shared buffers, reductions; every element type. [SEED [COUNT]] */
#include "tests/sim/layouts.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/sim/number.h"

/* How a tile of i32 becomes one of the type and is written out. */
typedef struct Type {
    const char *make, *elem;
    int bytes;
} Type;

static const Type types[] = {
    {"bitcast", "i32", 4}, {"trunc", "i16", 2}, {"trunc", "i8", 1}, {"sext", "i64", 8},
    {"sitof", "f16", 2},   {"sitof", "f32", 4}, {"sitof", "f64", 8}};
enum { I32, I16, I8, I64, F16, F32, F64, TYPES };

static uint64_t
pack(const Type *t, int v)
{
    switch (t - types) {
    case F16: return f16_bits((float)v);
    case F32: return f32_raw((float)v);
    case F64: return f64_bits(v);
    default: return (uint64_t)(int64_t)v;
    }
}

static void
head(Text *s, int warp_bits, const char *elem)
{
    text_add(s, "kernel @f(%%p: ptr<%s> {sig=\"*x\", div=16}) {warps=%d, form=3} {\n",
             elem, 1 << warp_bits);
}

static void
alias(Text *s, const char *name, const Bases *l, int cols)
{
    text_add(s, "#%s = ", name);
    text_layout(s, l, cols);
    text_add(s, "\n");
}

static void
store(Text *s, int n, const char *elem)
{
    text_add(s,
             "  %%i = arange {start=0} : tile<%dxi32, #b>\n"
             "  %%ps = splat %%p : tile<%dxptr<%s>, #b>\n"
             "  %%pp = addptr %%ps, %%i : tile<%dxptr<%s>, #b>\n"
             "  store %%pp, %%y\n  return\n}\n",
             n, n, elem, n, elem);
}

static void
values(Text *s, int n, const Type *t)
{
    text_add(s,
             "  %%x0 = arange {start=1} : tile<%dxi32, #a>\n"
             "  %%x = %s %%x0 : tile<%dx%s, #a>\n",
             n, t->make, n, t->elem);
}

static void
convert_in_loop(Text *s, int n, const char *e)
{
    text_add(s,
             "  %%c0 = const {value=0} : i32\n  %%c1 = const {value=1} : i32\n"
             "  %%c3 = const {value=3} : i32\n"
             "  %%z = for %%k = %%c0, %%c3, %%c1 (%%w = %%x) : tile<%dx%s, #a> {\n"
             "    %%u = convert_layout %%w : tile<%dx%s, #b>\n"
             "    %%v = convert_layout %%u : tile<%dx%s, #a>\n    yield %%v\n  }\n"
             "  %%y = convert_layout %%z : tile<%dx%s, #b>\n",
             n, e, n, e, n, e, n, e);
}

static void
through_buffer(Text *s, int n, int rows, const char *e)
{
    int cols = n / rows;
    text_add(
        s,
        "  %%x2 = reshape %%x : tile<%dx%dx%s, #a2>\n  %%c1 = const {value=1} : i32\n"
        "  %%m = local_alloc {stages=2} : mem<%s, [%d,%d], #sh, stages=2>\n"
        "  %%m1 = local_index %%m, %%c1 : mem<%s, [%d,%d], #sh>\n"
        "  local_store %%m1, %%x2\n"
        "  %%y2 = local_load %%m1 : tile<%dx%dx%s, #b2>\n"
        "  %%y = reshape %%y2 : tile<%dx%s, #b>\n",
        rows, cols, e, e, rows, cols, e, rows, cols, rows, cols, e, n, e);
}

/* A case: its text, and what must lie in memory in the end. */
typedef struct Case {
    Text s;
    const Type *t;
    int n;
    int64_t want[2048];
} Case;

static void
move_case(Random *r, Case *c)
{
    enum { CONVERT, NEAR, LOOP, BUFFER, MATRIX };
    int kind = (int)random_below(r, 5), bits = random_between(r, 5, 10);
    int warp_bits = random_between(r, 0, 3);
    c->t = &types[random_below(r, TYPES)];
    Bases a = layout_bent(r, layout_random(r, bits, warp_bits));
    Bases b = kind == NEAR ? layout_near(r, a)
                           : layout_bent(r, layout_random(r, bits, warp_bits));
    if (kind == MATRIX) {
        static const int some[] = {I16, F16, I16, F32, I8};
        c->t = &types[some[random_below(r, 5)]];
        bits = random_between(r, 8 + warp_bits, 11);
        layout_fragments(r, bits, warp_bits, &a, &b);
    }
    int n = c->n = 1 << bits, rows = 1 << random_between(r, 0, bits), cols = n / rows;
    static const int swizzles[] = {0, 32, 64, 128};
    alias(&c->s, "a", &a, 0);
    alias(&c->s, "b", &b, 0);
    alias(&c->s, "a2", &a, cols);
    alias(&c->s, "b2", &b, cols);
    text_add(&c->s, "#sh = shared<%s, swizzle=%d>\n", c->t->elem,
             swizzles[random_below(r, 4)]);
    head(&c->s, warp_bits, c->t->elem);
    values(&c->s, n, c->t);
    if (kind == BUFFER)
        through_buffer(&c->s, n, rows, c->t->elem);
    else if (kind == LOOP)
        convert_in_loop(&c->s, n, c->t->elem);
    else /* in rounds, if it can */
        text_add(&c->s, "  %%y = convert_layout %%x %s: tile<%dx%s, #b>\n",
                 random_chance(r, 50) ? "{bytes=256} " : "", n, c->t->elem);
    store(&c->s, n, c->t->elem);
    for (int v = 0; v < n; v++)
        c->want[v] = v + 1;
}

static void
reduction(Text *s, int rows, int cols, int axis, const char *e)
{
    int m = axis ? rows : cols;
    const char *add = *e == 'f' ? "addf" : "add";
    text_add(
        s,
        "  %%x2 = reshape %%x : tile<%dx%dx%s, #a2>\n  %%c0 = const {value=0} : i32\n"
        "  %%c1 = const {value=1} : i32\n  %%c2 = const {value=2} : i32\n"
        "  %%zero = const {%s} : tile<%dx%s, #b>\n"
        "  %%y = for %%k = %%c0, %%c2, %%c1 (%%w = %%zero) : tile<%dx%s, #b> {\n"
        "    %%y1 = reduce %%x2 {axis=%d} : tile<%dx%s, #b> (%%q: %s, %%r: %s) {\n"
        "      %%s = %s %%q, %%r : %s\n      yield %%s\n    }\n"
        "    %%w2 = %s %%w, %%y1 : tile<%dx%s, #b>\n    yield %%w2\n  }\n",
        rows, cols, e, *e == 'f' ? "fvalue=0.0" : "value=0", m, e, m, e, axis, m, e, e, e,
        add, e, add, m, e);
}

static void
reduce_case(Random *r, Case *c)
{
    static const int some[] = {I32, I16, I64, F32};
    c->t = &types[some[random_below(r, 4)]];
    int bits = random_between(r, 5, 10), warp_bits = random_between(r, 0, 3);
    int lg = random_between(r, 1, bits - 1), rows = 1 << lg, cols = 1 << (bits - lg);
    int axis = random_between(r, 0, 1), m = axis ? rows : cols, n = rows * cols;
    Bases a = layout_random(r, bits, warp_bits), b = a;
    for (int part = 0; part < 3; part++)
        for (int k = 0; k < b.n[part]; k++)
            b.v[part][k] = axis ? b.v[part][k] / cols : b.v[part][k] % cols;
    int kept = 0;
    for (int k = 0; k < b.n[REGS]; k++)
        if (b.v[REGS][k])
            b.v[REGS][kept++] = b.v[REGS][k];
    b.n[REGS] = kept;
    if (!random_chance(r, 60)) { /* as the layout leaves them, else anywhere */
        int lm = 0;
        while (1 << lm < m)
            lm++;
        b = layout_random(r, lm, warp_bits);
    }
    c->n = m;
    alias(&c->s, "a", &a, 0);
    alias(&c->s, "b", &b, 0);
    alias(&c->s, "a2", &a, cols);
    head(&c->s, warp_bits, c->t->elem);
    values(&c->s, n, c->t);
    reduction(&c->s, rows, cols, axis, c->t->elem);
    store(&c->s, m, c->t->elem);
    for (int v = 0; v < n; v++)
        c->want[axis ? v / cols : v % cols] += 2 * (v + 1);
}

static int seed = 1, count = 40;

START_TEST(random_conversions_are_right)
{
    for (int i = 0; i < count; i++) {
        Random r = {.state = (uint64_t)seed * 1000003u + (uint64_t)i};
        static Case c;
        c = (Case){.n = 0};
        random_below(&r, 2);
        if (random_chance(&r, 75))
            move_case(&r, &c);
        else
            reduce_case(&r, &c);
        Kernel k = kernel_ir(c.s.at, random_chance(&r, 50) ? "sm_80" : "sm_90",
                             "alloc-shared,insert-barriers");
        size_t bytes = (size_t)c.n * (size_t)c.t->bytes;
        unsigned char *memory = calloc(1, bytes);
        uint64_t arg = (uint64_t)(uintptr_t)memory;
        kernel_run(&k, &arg, 1, memory, bytes, (uint64_t)i);
        for (int v = 0; v < c.n; v++) {
            uint64_t want = pack(c.t, (int)c.want[v]);
            if (memcmp(memory + v * c.t->bytes, &want, (size_t)c.t->bytes) != 0)
                ck_abort_msg("element %d, case %d of seed %d:\n%s", v, i, seed, c.s.at);
        }
        free(memory);
        kernel_free(&k);
        free(c.s.at);
    }
    printf("%d programs, seed %d\n", count, seed);
}
END_TEST

int
main(int argc, char **argv)
{
    seed = argc > 1 ? atoi(argv[1]) : seed;
    count = argc > 2 ? atoi(argv[2]) : count;
    Suite *suite = suite_create("exchange");
    TCase *tc = tcase_create("exchange");
    tcase_set_timeout(tc, 300);
    tcase_add_test(tc, random_conversions_are_right);
    suite_add_tcase(suite, tc);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed > 0;
}
