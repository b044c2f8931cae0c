/* Types: equal ones are one pointer, different ones differ, queries, spelling. */
#include "ir/session.h"

#include <check.h>
#include <stdlib.h>

static const int64_t shape[3] = {128, 64, 2};

START_TEST(equal_types_are_one)
{
    Session *s = session_new(0);
    TypeTable *t = s->types;
    const Type *f16 = type_scalar(t, SK_F16), *f32 = type_scalar(t, SK_F32);
    const Type *p = type_ptr(t, f16, 0);
    ck_assert_ptr_eq(p, type_ptr(t, type_scalar(t, SK_F16), 0));
    ck_assert_ptr_ne(p, type_ptr(t, f16, 3));
    ck_assert_ptr_ne(p, type_ptr(t, f32, 0));
    const Type *x = type_tile(t, f16, 2, shape, NULL);
    ck_assert_ptr_eq(x, type_tile(t, f16, 2, shape, NULL));
    ck_assert_ptr_ne(x, type_tile(t, f16, 1, shape, NULL));
    ck_assert_ptr_ne(x, type_tile(t, f16, 2, shape + 1, NULL));
    ck_assert_ptr_ne(x, type_desc(t, f16, 2, shape));
    ck_assert_ptr_ne(type_bar(t, 0), type_bar(t, 2));
    ck_assert_ptr_ne(type_mem(t, f16, 2, shape, NULL, 0),
                     type_mem(t, f16, 2, shape, NULL, 3));
    for (int64_t i = 1; i < 3000; i++) {
        const Type *a = type_buf(t, f32, 1, &i);
        ck_assert_int_eq(a->shape[0], i);
        ck_assert_ptr_eq(a, type_buf(t, f32, 1, &i));
    }
    ck_assert_ptr_eq(x, type_tile(t, f16, 2, shape, NULL));
    session_free(s);
}
END_TEST

START_TEST(queries_of_elements_and_sizes)
{
    Session *s = session_new(0);
    TypeTable *t = s->types;
    const Type *i1 = type_scalar(t, SK_I1), *f16 = type_scalar(t, SK_F16);
    const Type *x = type_tile(t, f16, 2, shape, NULL);
    const Type *p = type_tile(t, type_ptr(t, f16, 0), 2, shape, NULL);
    ck_assert_ptr_eq(type_elem(x), f16);
    ck_assert_ptr_eq(type_elem(f16), f16);
    ck_assert_int_eq(type_numel(x), 8192);
    ck_assert_int_eq(type_numel(f16), 1);
    ck_assert(type_is_float(x) && !type_is_int(x) && !type_is_ptr(x));
    ck_assert(type_is_ptr(p) && !type_is_int(p) && !type_is_float(p));
    ck_assert_int_eq(type_bits(p), 64);
    ck_assert_int_eq(type_bits(i1), 1);
    ck_assert(type_same_shape(x, p) && !type_same_shape(x, f16));
    ck_assert_ptr_eq(type_like(t, x, i1), type_tile(t, i1, 2, shape, NULL));
    ck_assert_ptr_eq(type_like(t, f16, i1), i1);
    for (int k = 0; k < SK_COUNT; k++) {
        const char *name = scalar_name((ScalarKind)k);
        size_t n = 0;
        while (name[n])
            n++;
        ck_assert_int_eq(scalar_by_name(name, n), k);
    }
    ck_assert_int_eq(scalar_by_name("f32x", 4), SK_NONE);
    session_free(s);
}
END_TEST

START_TEST(types_print_as_in_text)
{
    Session *s = session_new(0);
    TypeTable *t = s->types;
    const Type *f16 = type_scalar(t, SK_F16);
    const Type *x = type_tile(t, f16, 2, shape, NULL);
    ck_assert_str_eq(type_str(&s->perm, type_ptr(t, f16, 0)), "ptr<f16>");
    ck_assert_str_eq(type_str(&s->perm, type_ptr(t, f16, 3)), "ptr<f16, 3>");
    ck_assert_str_eq(type_str(&s->perm, x), "tile<128x64xf16>");
    ck_assert_str_eq(type_str(&s->perm, type_async(t, x)), "async<tile<128x64xf16>>");
    ck_assert_str_eq(
        type_str(&s->perm, type_tile(t, type_ptr(t, f16, 0), 1, shape, NULL)),
        "tile<128xptr<f16>>");
    ck_assert_str_eq(type_str(&s->perm, type_mem(t, f16, 2, shape, NULL, 3)),
                     "mem<f16, [128,64], stages=3>");
    ck_assert_str_eq(type_str(&s->perm, type_buf(t, f16, 2, shape)),
                     "buf<f16, [128,64]>");
    ck_assert_str_eq(type_str(&s->perm, type_bar(t, 2)), "bar<stages=2>");
    ck_assert_str_eq(type_str(&s->perm, type_token(t)), "token");
    session_free(s);
}
END_TEST

int
main(void)
{
    Suite *suite = suite_create("type");
    TCase *c = tcase_create("type");
    tcase_add_test(c, equal_types_are_one);
    tcase_add_test(c, queries_of_elements_and_sizes);
    tcase_add_test(c, types_print_as_in_text);
    suite_add_tcase(suite, c);
    SRunner *r = srunner_create(suite);
    srunner_run_all(r, CK_NORMAL);
    int failed = srunner_ntests_failed(r);
    srunner_free(r);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
