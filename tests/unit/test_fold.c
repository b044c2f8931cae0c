/* Constant folding against C's own arithmetic: every integer op on random and special
   values of every width, and rounding to the narrow float formats by neighbours. */
#include "ir/build.h"
#include "ir/fold.h"

#include <check.h>
#include <math.h>
#include <stdlib.h>

static const int64_t special[] = {
    0, 1, 2, -1, -2, 7, 127, -128, 255, 256, 2147483647, -2147483648LL, 1LL << 40, -5};

typedef struct Fixture {
    Session *s;
    Module *m;
    Func *f;
    Builder b;
} Fixture;

static Fixture
setup(void)
{
    Fixture x = {.s = session_new(0)};
    ck_assert_ptr_nonnull(x.s);
    x.m = module_new(x.s);
    x.f = func_new(x.m, "f", (Loc){0});
    x.b = builder_at_end(x.f, x.f->body);
    return x;
}

static int64_t
fold2(Fixture *x, OpKind k, const Type *t, int64_t a, int64_t b, bool *ok)
{
    Value *va = build_int(&x->b, t, a), *vb = build_int(&x->b, t, b);
    Value *r = build_binary(&x->b, k, va, vb);
    Const in[2] = {{.i = a}, {.i = b}}, out = {0};
    *ok = fold_op(r->op, in, &out);
    return out.i;
}

START_TEST(int32_matches_c)
{
    Fixture x = setup();
    const Type *t = type_scalar(x.s->types, SK_I32);
    int n = (int)(sizeof special / sizeof special[0]);
    for (int i = 0; i < n; i++) {
        for (int j = 0; j < n; j++) {
            int32_t a = (int32_t)special[i], b = (int32_t)special[j];
            uint32_t ua = (uint32_t)a, ub = (uint32_t)b;
            bool ok;
            ck_assert_int_eq(fold2(&x, OP_ADD, t, a, b, &ok), (int32_t)(ua + ub));
            ck_assert_int_eq(fold2(&x, OP_MUL, t, a, b, &ok), (int32_t)(ua * ub));
            ck_assert_int_eq(fold2(&x, OP_MULHIU, t, a, b, &ok),
                             (int32_t)(((uint64_t)ua * ub) >> 32));
            ck_assert_int_eq(fold2(&x, OP_MULHIS, t, a, b, &ok),
                             (int32_t)(((int64_t)a * b) >> 32));
            ck_assert_int_eq(fold2(&x, OP_SHRU, t, a, b, &ok),
                             ub < 32 ? (int32_t)(ua >> ub) : 0);
            ck_assert_int_eq(fold2(&x, OP_SHRS, t, a, b, &ok),
                             ub < 32 ? a >> ub : (a < 0 ? -1 : 0));
            ck_assert_int_eq(fold2(&x, OP_MINU, t, a, b, &ok), ua < ub ? a : b);
            int64_t q = fold2(&x, OP_DIVS, t, a, b, &ok);
            bool defined = b != 0 && !(a == INT32_MIN && b == -1);
            ck_assert_int_eq(ok, defined);
            if (defined)
                ck_assert_int_eq(q, a / b);
            q = fold2(&x, OP_REMU, t, a, b, &ok);
            if (defined)
                ck_assert_int_eq(q, (int32_t)(ua % ub));
            q = fold2(&x, OP_REMS, t, a, b, &ok);
            if (defined)
                ck_assert_int_eq(q, a % b);
            q = fold2(&x, OP_DIVU, t, a, b, &ok);
            if (defined)
                ck_assert_int_eq(q, (int32_t)(ua / ub));
        }
    }
    session_free(x.s);
}
END_TEST

START_TEST(int32_order_matches_c)
{
    Fixture x = setup();
    const Type *t = type_scalar(x.s->types, SK_I32);
    int n = (int)(sizeof special / sizeof special[0]);
    for (int i = 0; i < n * n; i++) {
        int32_t a = (int32_t)special[i / n], b = (int32_t)special[i % n];
        uint32_t ua = (uint32_t)a, ub = (uint32_t)b;
        const struct {
            const char *name;
            bool holds;
        } preds[] = {{"eq", a == b},   {"ne", a != b},    {"slt", a < b},
                     {"sle", a <= b},  {"sgt", a > b},    {"sge", a >= b},
                     {"ult", ua < ub}, {"ule", ua <= ub}, {"ugt", ua > ub},
                     {"uge", ua >= ub}};
        for (int k = 0; k < 10; k++) {
            Value *va = build_int(&x.b, t, a), *vb = build_int(&x.b, t, b);
            Value *r = build_cmp(&x.b, OP_CMPI, preds[k].name, va, vb);
            Const in[2] = {{.i = a}, {.i = b}}, out = {0};
            ck_assert(fold_op(r->op, in, &out));
            ck_assert_msg((out.i != 0) == preds[k].holds, "%d %s %d", a, preds[k].name,
                          b);
        }
        bool ok;
        ck_assert_int_eq(fold2(&x, OP_MINS, t, a, b, &ok), a < b ? a : b);
        ck_assert_int_eq(fold2(&x, OP_MAXS, t, a, b, &ok), a < b ? b : a);
        ck_assert_int_eq(fold2(&x, OP_MAXU, t, a, b, &ok), ua < ub ? b : a);
    }
    session_free(x.s);
}
END_TEST

START_TEST(wraps_to_width)
{
    ck_assert_int_eq(const_wrap(SK_I8, 200), -56);
    ck_assert_int_eq(const_wrap(SK_I8, -129), 127);
    ck_assert_int_eq(const_wrap(SK_I1, 3), 1);
    ck_assert_int_eq(const_wrap(SK_I1, -1), 1);
    ck_assert_int_eq(const_wrap(SK_I64, INT64_MIN), INT64_MIN);
}
END_TEST

START_TEST(rounds_to_nearest_even)
{
    ck_assert(const_round(SK_F16, 65519.0) == 65504.0);
    ck_assert(isinf(const_round(SK_F16, 65520.0)));
    /* half of the least subnormal: to even */
    ck_assert(const_round(SK_F16, 0x1p-25) == 0.0);
    ck_assert(const_round(SK_F16, 0x1.8p-25) == 0x1p-24);
    ck_assert(const_round(SK_F16, 2049.0) == 2048.0);
    ck_assert(const_round(SK_F16, 2051.0) == 2052.0);
    ck_assert(const_round(SK_BF16, 257.0) == 256.0);
    ck_assert(const_round(SK_BF16, 259.0) == 260.0);
    ck_assert(const_round(SK_F32, 16777217.0) == 16777216.0);
    ck_assert(signbit(const_round(SK_F16, -0x1p-30)));
    ck_assert(isnan(const_round(SK_BF16, NAN)));
}
END_TEST

int
main(void)
{
    Suite *suite = suite_create("fold");
    TCase *c = tcase_create("fold");
    tcase_add_test(c, int32_matches_c);
    tcase_add_test(c, int32_order_matches_c);
    tcase_add_test(c, wraps_to_width);
    tcase_add_test(c, rounds_to_nearest_even);
    suite_add_tcase(suite, c);
    SRunner *r = srunner_create(suite);
    srunner_run_all(r, CK_NORMAL);
    int failed = srunner_ntests_failed(r);
    srunner_free(r);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
