/* What bounds say of comparisons, against the values themselves: random programs over two
   parameters of 8 bits, where everything wraps soon, with conditions, a loop and a
   carried sum, are run for many parameters, and every answer must hold in every
   iteration. */
#include "ir/analysis/bounds.h"
#include "ir/build.h"

#include <check.h>
#include <string.h>

enum { TRIALS = 1500, MAX_VALUES = 24, CLAIMS = 12, LANES = 8 };

typedef struct Cell {
    Value *v;
    OpKind op; /* OP_CONST: a parameter, counter or number, set from outside */
    int x, y;  /* cells of the operands */
} Cell;

typedef struct Claim {
    const char *pred;
    int x, y;
    bool lanes; /* x + 0, 1, .. */
    int answer;
} Claim;

typedef struct World {
    Session *s;
    Func *f;
    Builder b;
    const Type *i8;
    Cell cell[MAX_VALUES];
    int n, at[MAX_VALUES];
    Claim claim[CLAIMS];
    int nclaim;
    uint64_t seed;
} World;

static int
rnd(World *w, int n)
{
    w->seed = w->seed * 6364136223846793005u + 1442695040888963407u;
    return (int)((uint32_t)(w->seed >> 33) % (uint32_t)n);
}

static int
add(World *w, Value *v, OpKind op, int x, int y)
{
    w->cell[w->n] = (Cell){v, op, x, y};
    return w->n++;
}

static int
add_number(World *w, int c)
{
    w->at[w->n] = c;
    return add(w, build_int(&w->b, w->i8, c), OP_CONST, 0, 0);
}

static void
add_expression(World *w)
{
    static const OpKind ops[] = {OP_ADD,  OP_SUB,  OP_ADD,  OP_SUB, OP_MUL,
                                 OP_DIVS, OP_MINS, OP_MAXS, OP_ADD};
    static const int numbers[] = {1, 2, 3, 4, 7, 8, 15, 16, 31, 5};
    OpKind k = ops[rnd(w, 9)];
    int x = rnd(w, w->n), y = rnd(w, w->n);
    if (k == OP_MUL || k == OP_DIVS || rnd(w, 2))
        y = add_number(w, numbers[rnd(w, 10)]);
    add(w, build_binary(&w->b, k, w->cell[x].v, w->cell[y].v), k, x, y);
}

static int
value_of(OpKind k, int x, int y)
{
    switch ((int)k) {
    case OP_ADD: return (int8_t)(x + y);
    case OP_SUB: return (int8_t)(x - y);
    case OP_MUL: return (int8_t)(x * y);
    case OP_DIVS: return x / y;
    case OP_MINS: return x < y ? x : y;
    default: return x > y ? x : y;
    }
}

static void
evaluate(World *w, int from, int to)
{
    for (int i = from; i < to; i++) {
        const Cell *c = &w->cell[i];
        if (c->op != OP_CONST)
            w->at[i] = value_of(c->op, w->at[c->x], w->at[c->y]);
    }
}

static bool
holds(const char *pred, int x, int y)
{
    if (pred[0] == 'e')
        return x == y;
    if (pred[0] == 'n')
        return x != y;
    if (pred[0] == 'u') {
        x = (uint8_t)x;
        y = (uint8_t)y;
    }
    bool less = pred[1] == 'l', equal = pred[2] == 'e';
    return (equal && x == y) || (less ? x < y : x > y);
}

static const char *
random_pred(World *w)
{
    static const char *const preds[] = {"slt", "sle", "sgt", "sge", "eq",
                                        "ne",  "ult", "uge", "slt", "sge"};
    return preds[rnd(w, 10)];
}

static Op *
compare(World *w, const Claim *c)
{
    Value *x = w->cell[c->x].v, *y = w->cell[c->y].v;
    if (c->lanes) {
        int64_t n = LANES;
        const Type *i32 = type_scalar(w->s->types, SK_I32);
        const Type *t = type_tile(w->s->types, i32, 1, &n, NULL);
        AttrList l = {0};
        attr_set_int(&w->s->mod, &l, ATTR_START, 0);
        Value *r = op_result(build_op(&w->b, OP_ARANGE, NULL, 0, &l, &t, 1), 0);
        r = build_cast(&w->b, OP_TRUNC, r, w->i8);
        x = build_binary(&w->b, OP_ADD, build_splat(&w->b, x, r->type), r);
        y = build_splat(&w->b, y, r->type);
    }
    return build_cmp(&w->b, OP_CMPI, c->pred, x, y)->op;
}

static void
check_claims(World *w)
{
    for (int i = 0; i < w->nclaim; i++) {
        const Claim *c = &w->claim[i];
        for (int k = 0; k < (c->lanes ? LANES : 1); k++) {
            int x = (int8_t)(w->at[c->x] + k);
            if (c->answer >= 0 && holds(c->pred, x, w->at[c->y]) != c->answer)
                ck_abort_msg("claim %d of seed %d", i, (int)w->seed);
        }
    }
}

typedef struct Loop {
    Op *op;
    int lo, hi, step, iv, carried, init, by, first, end;
} Loop;

static void
build_loop(World *w, Loop *l)
{
    static const int steps[] = {1, 2, 4, 8, 16, 3};
    l->step = steps[rnd(w, 6)];
    l->by = l->step * (rnd(w, 3) + 1) + (rnd(w, 4) == 0);
    l->lo = rnd(w, 3) ? add_number(w, rnd(w, 2) * 16) : rnd(w, w->n);
    l->hi = rnd(w, w->n);
    l->init = rnd(w, 2) ? l->lo : rnd(w, w->n);
    Value *step = build_int(&w->b, w->i8, l->step), *by = build_int(&w->b, w->i8, l->by);
    Value *init = w->cell[l->init].v;
    l->op = build_for(&w->b, w->cell[l->lo].v, w->cell[l->hi].v, step, &init, 1);
    w->b = builder_at_end(w->f, l->op->regions[0]);
    l->iv = add(w, l->op->regions[0]->args[0], OP_CONST, 0, 0);
    l->carried = add(w, l->op->regions[0]->args[1], OP_CONST, 0, 0);
    l->first = w->n;
    while (w->n < MAX_VALUES - 1)
        add_expression(w);
    l->end = w->n;
    Value *next = build_binary(&w->b, OP_ADD, w->cell[l->carried].v, by);
    Op *cmps[CLAIMS];
    for (; w->nclaim < CLAIMS; w->nclaim++) {
        Claim *c = &w->claim[w->nclaim];
        *c = (Claim){random_pred(w), rnd(w, w->n), rnd(w, w->n), rnd(w, 2), -1};
        cmps[w->nclaim] = compare(w, c);
    }
    build_yield(&w->b, &next, 1);
    Bounds *b = bounds_new(axis_new(w->f, &w->s->tmp), &w->s->tmp);
    for (Op *op = w->f->body->first; op; op = op->next)
        if (op->kind == OP_ASSUME)
            bounds_assume(b, op_operand(op, 0), true);
    bounds_enter(b, l->op, 0);
    for (int i = 0; i < w->nclaim; i++)
        w->claim[i].answer = bounds_compare(b, cmps[i]);
}

static void
run_loop(World *w, const Loop *l)
{
    int sum = w->at[l->init];
    for (int i = w->at[l->lo]; i < w->at[l->hi]; i += l->step) {
        w->at[l->iv] = i;
        w->at[l->carried] = sum;
        evaluate(w, l->first, l->end);
        check_claims(w);
        sum = (int8_t)(sum + l->by);
    }
}

START_TEST(answers_hold)
{
    int decided = 0, open = 0;
    for (int trial = 0; trial < TRIALS; trial++) {
        World w = {.s = session_new(0), .seed = (uint64_t)trial * 977 + 5};
        Module *m = module_new(w.s);
        w.f = func_new(m, "f", (Loc){0});
        w.i8 = type_scalar(w.s->types, SK_I8);
        int div = 1 << rnd(&w, 5);
        w.b = builder_at_end(w.f, w.f->body);
        add(&w, func_param(w.f, "a", "i8", w.i8, 1), OP_CONST, 0, 0);
        add(&w, func_param(w.f, "b", "i8", w.i8, div), OP_CONST, 0, 0);
        for (int i = 0; i < 3; i++)
            add_expression(&w);
        Claim promise = {random_pred(&w), rnd(&w, w.n), rnd(&w, w.n), false, 1};
        Value *cond = op_result(compare(&w, &promise), 0);
        build_op(&w.b, OP_ASSUME, &cond, 1, NULL, NULL, 0);
        int before = w.n;
        Loop loop;
        build_loop(&w, &loop);
        for (int i = 0; i < w.nclaim; i++)
            *(w.claim[i].answer >= 0 ? &decided : &open) += 1;
        for (int a = -128; a < 128; a += 1 + rnd(&w, 9)) {
            for (int b = -128; b < 128; b += div * (1 + rnd(&w, 5))) {
                w.at[0] = a;
                w.at[1] = b;
                evaluate(&w, 2, before);
                if (holds(promise.pred, w.at[promise.x], w.at[promise.y]))
                    run_loop(&w, &loop);
            }
        }
        session_free(w.s);
    }
    ck_assert_int_gt(decided, open / 8); /* or the test says nothing */
}
END_TEST

int
main(void)
{
    Suite *s = suite_create("bounds");
    TCase *t = tcase_create("bounds");
    tcase_set_timeout(t, 60);
    tcase_add_test(t, answers_hold);
    suite_add_tcase(s, t);
    SRunner *r = srunner_create(s);
    srunner_run_all(r, CK_NORMAL);
    int failed = srunner_ntests_failed(r);
    srunner_free(r);
    return failed != 0;
}
