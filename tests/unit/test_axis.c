/* Axis facts against the values themselves: random integer expressions over a rank-2 tile
   are evaluated element by element, and every fact must hold of what comes out. */
#include "ir/analysis/axis.h"
#include "ir/build.h"
#include "ir/fold.h"

#include <check.h>
#include <stdlib.h>

enum { ROWS = 16, COLS = 32, VALUES = 60, TRIALS = 300 };

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
        bool run = k % f->contig[d] ? (int32_t)v == (int32_t)(before + 1)
                                    : v % f->div[d] == 0;
        bool same = k % f->constancy[d] == 0 || v == before;
        if (!run || !same || (f->known && v != f->value) || (f->nonneg && v < 0))
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

int
main(void)
{
    Suite *suite = suite_create("axis");
    TCase *c = tcase_create("axis");
    tcase_set_timeout(c, 60);
    tcase_add_test(c, facts_hold);
    tcase_add_test(c, vector_add_is_a_run);
    suite_add_tcase(suite, c);
    SRunner *r = srunner_create(suite);
    srunner_run_all(r, CK_NORMAL);
    int failed = srunner_ntests_failed(r);
    srunner_free(r);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
