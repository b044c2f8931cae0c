/* Axis facts against the values themselves: random integer expressions over a rank-2 tile
   are evaluated element by element, and every fact must hold of what comes out. */
#include "ir/analysis/axis.h"
#include "ir/build.h"
#include "ir/fold.h"
#include "ir/text.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

enum { ROWS = 16, COLS = 32, VALUES = 60, TRIALS = 1000 };

typedef struct Sample {
    Value *v;
    bool tile; /* else scalar */
    int64_t at[ROWS][COLS];
} Sample;

typedef struct World {
    Session *s;
    Func *f;
    Builder b;
    Sample x[VALUES];
    int n;
    uint64_t seed;
} World;

static uint32_t
rnd(World *w, uint32_t n)
{
    w->seed = w->seed * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(w->seed >> 33) % n;
}

static const Type *
tile_type(World *w)
{
    int64_t shape[2] = {ROWS, COLS};
    return type_tile(w->s->types, type_scalar(w->s->types, SK_I32), 2, shape, NULL);
}

static Sample *
add(World *w, Value *v)
{
    Sample *x = &w->x[w->n++];
    x->v = v;
    x->tile = type_is_tile(v->type);
    return x;
}

static void
fill(Sample *x, int64_t v)
{
    for (int i = 0; i < ROWS; i++)
        for (int j = 0; j < COLS; j++)
            x->at[i][j] = v;
}

/* arange along one dimension, repeated along the other */
static void
add_arange(World *w, int dim)
{
    int64_t n = dim ? COLS : ROWS, shape[2] = {ROWS, COLS};
    int64_t first = rnd(w, 3) * 8;
    const Type *t = type_tile(w->s->types, type_scalar(w->s->types, SK_I32), 1, &n, NULL);
    AttrList l = {0};
    attr_set_int(&w->s->mod, &l, ATTR_START, first);
    Value *r = &build_op(&w->b, OP_ARANGE, NULL, 0, &l, &t, 1)->results[0];
    r = build_broadcast(&w->b, build_expand_dims(&w->b, r, 1 - dim), shape);
    Sample *x = add(w, r);
    for (int i = 0; i < ROWS; i++)
        for (int j = 0; j < COLS; j++)
            x->at[i][j] = first + (dim ? j : i);
}

static void
add_binary(World *w)
{
    static const OpKind ops[] = {OP_ADD,  OP_SUB,  OP_MUL,  OP_AND,  OP_OR,   OP_XOR,
                                 OP_SHL,  OP_SHRS, OP_SHRU, OP_DIVS, OP_DIVU, OP_REMS,
                                 OP_REMU, OP_MINS, OP_MAXU, OP_ADD,  OP_ADD,  OP_MUL};
    static const int64_t consts[] = {1, 2, 3, 4, 7, 8, 15, 16, 31, 5, 64, 0};
    OpKind k = ops[rnd(w, sizeof ops / sizeof *ops)];
    Sample *a = &w->x[rnd(w, (uint32_t)w->n)], *b = &w->x[rnd(w, (uint32_t)w->n)];
    Sample c = {0};
    if (rnd(w, 2)) {
        int64_t v = consts[rnd(w, sizeof consts / sizeof *consts)];
        c.v = build_int(&w->b, tile_type(w), v);
        fill(&c, v);
        b = &c;
    }
    Value *v = build_binary(&w->b, k, a->v, b->v);
    Sample out = {.v = v};
    for (int i = 0; i < ROWS; i++) {
        for (int j = 0; j < COLS; j++) {
            const Const in[2] = {{.i = a->at[i][j]}, {.i = b->at[i][j]}};
            Const r;
            if (!fold_op(v->op, in, &r))
                return; /* undefined somewhere: nothing is promised */
            out.at[i][j] = r.i;
        }
    }
    Sample *x = add(w, v);
    out.tile = true;
    *x = out;
}

static void
add_compare(World *w, const Axis *facts)
{
    (void)facts;
    static const char *const preds[] = {"slt", "sle", "sgt", "sge", "eq", "ult", "uge"};
    Sample *a = &w->x[rnd(w, (uint32_t)w->n)], *b = &w->x[rnd(w, (uint32_t)w->n)];
    if (type_bits(a->v->type) == 1 || type_bits(b->v->type) == 1)
        return;
    Value *v = build_cmp(&w->b, OP_CMPI, preds[rnd(w, 7)], a->v, b->v);
    Value *one = build_int(&w->b, tile_type(w), 1),
          *two = build_int(&w->b, tile_type(w), 0);
    Value *pick = build_select(&w->b, v, one, two);
    Sample *x = add(w, pick);
    for (int i = 0; i < ROWS; i++) {
        for (int j = 0; j < COLS; j++) {
            const Const in[2] = {{.i = a->at[i][j]}, {.i = b->at[i][j]}};
            Const r = {0};
            ck_assert(fold_op(v->op, in, &r));
            x->at[i][j] = r.i;
        }
    }
}

static int64_t
element(const Sample *x, int dim, int line, int k)
{
    return dim ? x->at[line][k] : x->at[k][line];
}

static bool
line_holds(const Sample *x, const AxisFacts *f, int d, int line, int n)
{
    for (int k = 0; k < n; k++) {
        int64_t v = element(x, d, line, k), before = k ? element(x, d, line, k - 1) : 0;
        bool run = k % f->contig[d] ? v == before + 1 : v % f->div[d] == 0;
        bool same = k % f->constancy[d] == 0 || v == before;
        bool bounds = v >= f->lo && v <= f->hi && (!f->nonneg || v >= 0);
        if (!run || !same || !bounds || (f->known && v != f->value))
            return false;
    }
    return true;
}

START_TEST(facts_hold)
{
    for (int trial = 0; trial < TRIALS; trial++) {
        World w = {.s = session_new(0), .seed = (uint64_t)trial * 977 + 1};
        Module *m = module_new(w.s);
        w.f = func_new(m, "f", (Loc){0});
        int64_t div = (int64_t)1 << rnd(&w, 5);
        Value *p = func_param(w.f, "n", "i32", type_scalar(w.s->types, SK_I32), div);
        w.b = builder_at_end(w.f, w.f->body);
        fill(add(&w, build_splat(&w.b, p, tile_type(&w))),
             (int32_t)((uint32_t)div * (rnd(&w, 1u << 30) - (1u << 29))));
        add_arange(&w, 0);
        add_arange(&w, 1);
        while (w.n < 12)
            if (rnd(&w, 6))
                add_binary(&w);
            else
                add_compare(&w, NULL);
        Axis *a = axis_new(w.f, &w.s->tmp);
        for (int i = 0; i < w.n; i++) {
            const AxisFacts *f = axis_of(a, w.x[i].v);
            for (int line = 0; line < COLS; line++) {
                ck_assert(line_holds(&w.x[i], f, 0, line, ROWS));
                ck_assert(line_holds(&w.x[i], f, 1, line % ROWS, COLS));
            }
        }
        session_free(w.s);
    }
}
END_TEST

/* What the coalescing of the simplest kernel needs: pid * 1024 + arange, and the
   pointers. */
START_TEST(vector_add_is_a_run)
{
    Session *s = session_new(0);
    Module *m = module_new(s);
    Func *f = func_new(m, "f", (Loc){0});
    const Type *i32 = type_scalar(s->types, SK_I32), *f32 = type_scalar(s->types, SK_F32);
    int64_t n = 1024;
    const Type *ti = type_tile(s->types, i32, 1, &n, NULL);
    const Type *tp = type_tile(s->types, type_ptr(s->types, f32, 0), 1, &n, NULL);
    Value *p = func_param(f, "p", "*fp32", type_ptr(s->types, f32, 0), 16);
    Value *len = func_param(f, "n", "i32", i32, 16);
    Builder b = builder_at_end(f, f->body);
    AttrList l = {0};
    attr_set_int(&s->mod, &l, ATTR_AXIS, 0);
    Value *pid = &build_op(&b, OP_PROGRAM_ID, NULL, 0, &l, NULL, 1)->results[0];
    l = (AttrList){0};
    attr_set_int(&s->mod, &l, ATTR_START, 0);
    Value *r = &build_op(&b, OP_ARANGE, NULL, 0, &l, &ti, 1)->results[0];
    Value *base = build_binary(&b, OP_MUL, pid, build_int(&b, i32, 1024));
    Value *offs = build_binary(&b, OP_ADD, build_splat(&b, base, ti), r);
    Value *mask = build_cmp(&b, OP_CMPI, "slt", offs, build_splat(&b, len, ti));
    Value *ptr = build_binary(&b, OP_ADDPTR, build_splat(&b, p, tp), offs);
    Axis *a = axis_new(f, &s->tmp);
    ck_assert_int_eq(axis_of(a, offs)->contig[0], 1024);
    ck_assert_int_eq(axis_of(a, offs)->div[0], 1024);
    ck_assert_int_eq(axis_of(a, mask)->constancy[0], 16);
    ck_assert_int_eq(axis_of(a, ptr)->contig[0], 1024);
    ck_assert_int_eq(axis_of(a, ptr)->div[0], 16);
    ck_assert_int_eq(axis_aligned_run(axis_of(a, ptr), 0, 4), 4);
    session_free(s);
}
END_TEST

/* ---- facts of named values in text */

typedef struct Text {
    Session *s;
    Func *f;
    Axis *a;
} Text;

static Text
read_text(const char *body)
{
    Text x = {.s = session_new(0)};
    const char *head =
        "kernel @f(%p: ptr<f16> {sig=\"*fp16\", div=16},"
        " %n: i32 {sig=\"i32\"}, %m: i32 {sig=\"i32\", div=16}) {warps=4, stages=3} {\n";
    char *text = arena_printf(&x.s->perm, "%s%s  return\n}\n", head, body);
    Source *src = arena_new(&x.s->perm, Source);
    *src = (Source){.path = "test.tir", .text = text, .size = strlen(text)};
    Module *m = module_read(x.s, src);
    ck_assert_ptr_nonnull(m);
    x.f = m->funcs[0];
    x.a = axis_new(x.f, &x.s->tmp);
    return x;
}

static const Value *
find_in(const Region *r, const char *name)
{
    const Value *hit = NULL;
    for (int i = 0; i < r->narg && !hit; i++)
        if (r->args[i]->name && strcmp(r->args[i]->name, name) == 0)
            hit = r->args[i];
    for (const Op *op = r->first; op && !hit; op = op->next) {
        for (int i = 0; i < op->nresult && !hit; i++)
            if (op->results[i].name && strcmp(op->results[i].name, name) == 0)
                hit = &op->results[i];
        for (int i = 0; i < op->nregion && !hit; i++)
            hit = find_in(op->regions[i], name);
    }
    return hit;
}

static AxisFacts
facts(const Text *x, Axis *a, const char *name)
{
    const Value *v = find_in(x->f->body, name);
    ck_assert_ptr_nonnull(v);
    return *axis_of(a, v);
}

/* 1000 = 8 * 125: a block of 8 cannot wrap at 32 bits, a longer one can. */
START_TEST(offsets_that_may_wrap)
{
    Text x = read_text("  %pid = program_id {axis=0} : i32\n"
                       "  %c = const {value=1000} : i32\n"
                       "  %b = mul %pid, %c : i32\n"
                       "  %bs = splat %b : tile<128xi32>\n"
                       "  %r = arange {start=0} : tile<128xi32>\n"
                       "  %o = add %bs, %r : tile<128xi32>\n"
                       "  %ps = splat %p : tile<128xptr<f16>>\n"
                       "  %q = addptr %ps, %o : tile<128xptr<f16>>\n"
                       "  %o2 = add %bs, %r {nowrap} : tile<128xi32>\n"
                       "  %q2 = addptr %ps, %o2 : tile<128xptr<f16>>\n"
                       "  %w = sext %o : tile<128xi64>\n"
                       "  %w2 = add %w, %w : tile<128xi64>\n"
                       "  %bs64 = sext %bs : tile<128xi64>\n"
                       "  %r64 = sext %r : tile<128xi64>\n"
                       "  %o64 = add %bs64, %r64 : tile<128xi64>\n");
    ck_assert_int_eq(facts(&x, x.a, "q").contig[0], 8);
    ck_assert_int_eq(facts(&x, x.a, "q").div[0], 16);
    ck_assert_int_eq(facts(&x, x.a, "w").contig[0], 8);
    ck_assert_int_eq(facts(&x, x.a, "q2").contig[0], 128);
    ck_assert_int_eq(facts(&x, x.a, "o64").contig[0], 128);
    ck_assert_int_eq(facts(&x, x.a, "o64").div[0], 8);
    ck_assert_int_eq(facts(&x, x.a, "w2").contig[0], 1);
    session_free(x.s);
}
END_TEST

/* What is taken not to wrap does where a constant index passes the end of its type: a
   mask of eight lanes, then none, is not one of sixteen. */
START_TEST(constants_that_wrap)
{
    Text x = read_text("  %r = arange {start=0} : tile<512xi32>\n"
                       "  %c = const {value=2147483640} : tile<512xi32>\n"
                       "  %o = add %r, %c : tile<512xi32>\n"
                       "  %z = const {value=0} : tile<512xi32>\n"
                       "  %w = cmpi %o, %z {pred=\"sgt\"} : tile<512xi1>\n");
    Axis *address = axis_new_nowrap(x.f, &x.s->tmp);
    ck_assert_int_le(facts(&x, address, "w").constancy[0], 8);
    session_free(x.s);
}
END_TEST

/* -3, -2, -1, 0, ...: unsigned, the first three are the largest of all. */
START_TEST(negative_numbers_widened)
{
    Text x = read_text("  %r = arange {start=0} : tile<128xi32>\n"
                       "  %c3 = const {value=-3} : i32\n"
                       "  %m3 = splat %c3 : tile<128xi32>\n"
                       "  %o = add %r, %m3 : tile<128xi32>\n"
                       "  %z = zext %o : tile<128xi64>\n"
                       "  %w = sext %o : tile<128xi64>\n"
                       "  %c8 = const {value=-8} : i32\n"
                       "  %m8 = splat %c8 : tile<128xi32>\n"
                       "  %o8 = add %r, %m8 : tile<128xi32>\n"
                       "  %z8 = zext %o8 : tile<128xi64>\n");
    ck_assert_int_eq(facts(&x, x.a, "o").contig[0], 128);
    ck_assert_int_eq(facts(&x, x.a, "w").contig[0], 128);
    ck_assert_int_eq(facts(&x, x.a, "w").lo, -3);
    ck_assert_int_eq(facts(&x, x.a, "z").contig[0], 1);
    ck_assert_int_eq(facts(&x, x.a, "z").lo, 0);
    ck_assert_int_eq(facts(&x, x.a, "z").hi, UINT32_MAX);
    ck_assert_int_eq(facts(&x, x.a, "z8").contig[0], 8);
    session_free(x.s);
}
END_TEST

START_TEST(loops_reach_a_fixpoint)
{
    Text x = read_text("  %c0 = const {value=0} : i32\n"
                       "  %c4 = const {value=4} : i32\n"
                       "  %c8 = const {value=8} : i32\n"
                       "  %c64 = const {value=64} : i32\n"
                       "  %r = arange {start=0} : tile<64xi32>\n"
                       "  %ps = splat %p : tile<64xptr<f16>>\n"
                       "  %q0 = addptr %ps, %r : tile<64xptr<f16>>\n"
                       "  %step = splat %c4 : tile<64xi32>\n"
                       "  %qe, %xe, %ye = for %i = %c0, %c64, %c8 (%q = %q0, "
                       "%x = %c64, %y = %c0) : tile<64xptr<f16>>, i32, i32 {\n"
                       "    %q2 = addptr %q, %step : tile<64xptr<f16>>\n"
                       "    %y2 = add %x, %c4 : i32\n"
                       "    yield %q2, %y, %y2\n"
                       "  }\n");
    AxisFacts i = facts(&x, x.a, "i"), q = facts(&x, x.a, "q");
    ck_assert_int_eq(i.div[0], 8);
    ck_assert_int_eq(i.lo, 0);
    ck_assert_int_eq(i.hi, 63);
    ck_assert_int_eq(q.contig[0], 64);
    ck_assert_int_eq(q.div[0], 8);
    ck_assert_int_eq(facts(&x, x.a, "x").div[0], 4); /* through y, two rounds later */
    ck_assert_int_eq(facts(&x, x.a, "ye").div[0], 4);
    ck_assert(!facts(&x, x.a, "xe").known);
    session_free(x.s);
}
END_TEST

START_TEST(while_carries_what_its_body_yields)
{
    Text x = read_text("  %c1 = const {value=1} : i32\n"
                       "  %c48 = const {value=48} : i32\n"
                       "  %e = while %c48 : i32 (%x: i32) {\n"
                       "    %go = cmpi %x, %m {pred=\"slt\"} : i1\n"
                       "    condition %go, %x\n"
                       "  }, (%y: i32) {\n"
                       "    %z = add %y, %m : i32\n"
                       "    yield %z\n"
                       "  }\n");
    ck_assert_int_eq(facts(&x, x.a, "e").div[0], 16);
    ck_assert_int_eq(facts(&x, x.a, "z").div[0], 16);
    ck_assert(!facts(&x, x.a, "y").known);
    session_free(x.s);
}
END_TEST

START_TEST(masks_and_shapes)
{
    Text x = read_text("  %r = arange {start=0} : tile<128xi32>\n"
                       "  %c128 = const {value=128} : tile<128xi32>\n"
                       "  %ms = splat %m : tile<128xi32>\n"
                       "  %full = cmpi %r, %c128 {pred=\"slt\"} : tile<128xi1>\n"
                       "  %part = cmpi %r, %ms {pred=\"slt\"} : tile<128xi1>\n"
                       "  %above = cmpi %r, %ms {pred=\"sgt\"} : tile<128xi1>\n"
                       "  %v = reshape %r : tile<8x16xi32>\n"
                       "  %t = trans %v {perm=[1,0]} : tile<16x8xi32>\n"
                       "  %s = reshape %ms : tile<8x16xi32>\n");
    AxisFacts full = facts(&x, x.a, "full"), v = facts(&x, x.a, "v");
    ck_assert(full.known && full.value == 1);
    ck_assert_int_eq(facts(&x, x.a, "part").constancy[0], 16);
    ck_assert_int_eq(facts(&x, x.a, "above").constancy[0], 1);
    ck_assert_int_eq(v.contig[1], 16);
    ck_assert_int_eq(v.contig[0], 1);
    ck_assert_int_eq(facts(&x, x.a, "t").contig[0], 16);
    ck_assert_int_eq(facts(&x, x.a, "s").constancy[0], 8);
    ck_assert_int_eq(facts(&x, x.a, "s").constancy[1], 16);
    session_free(x.s);
}
END_TEST

int
main(void)
{
    Suite *suite = suite_create("axis");
    TCase *c = tcase_create("axis");
    tcase_set_timeout(c, 60);
    tcase_add_test(c, facts_hold);
    tcase_add_test(c, vector_add_is_a_run);
    tcase_add_test(c, offsets_that_may_wrap);
    tcase_add_test(c, constants_that_wrap);
    tcase_add_test(c, negative_numbers_widened);
    tcase_add_test(c, loops_reach_a_fixpoint);
    tcase_add_test(c, while_carries_what_its_body_yields);
    tcase_add_test(c, masks_and_shapes);
    suite_add_tcase(suite, c);
    SRunner *r = srunner_create(suite);
    srunner_run_all(r, CK_NORMAL);
    int failed = srunner_ntests_failed(r);
    srunner_free(r);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
