/* Which regions of reductions are one operation on two elements. */
#include "ir/analysis/reduction.h"
#include "ir/text.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

#define REDUCE(body)                                                                     \
    "kernel @f(%p: ptr<i32> {sig=\"*i32\"}, %n: i32 {sig=\"i32\"}) {} {\n"               \
    "  %k = splat %n : tile<4xi32>\n"                                                    \
    "  %m = reduce %k {axis=0} : i32 (%a: i32, %b: i32) {\n" body                        \
    "  }\n"                                                                              \
    "  store %p, %m\n"                                                                   \
    "  return\n"                                                                         \
    "}\n"

static OpKind
operation_of(const char *text)
{
    Session *s = session_new(0);
    Source src = {.path = "test.tir", .text = text, .size = strlen(text)};
    Module *m = module_read(s, &src);
    ck_assert_ptr_nonnull(m);
    OpKind kind = OP_COUNT;
    region_each(m->funcs[0]->body, op)
    {
        const Op *by = op->kind == OP_REDUCE ? reduction_operation(op) : NULL;
        kind = by ? by->kind : kind;
    }
    session_free(s);
    return kind;
}

START_TEST(one_operation_on_both_arguments)
{
    ck_assert_int_eq(operation_of(REDUCE("%c = add %a, %b : i32\n yield %c\n")), OP_ADD);
    ck_assert_int_eq(operation_of(REDUCE("%c = maxs %b, %a : i32\n yield %c\n")),
                     OP_MAXS);
}
END_TEST

START_TEST(anything_else_is_none)
{
    ck_assert_int_eq(operation_of(REDUCE("%c = add %a, %a : i32\n yield %c\n")),
                     OP_COUNT);
    ck_assert_int_eq(operation_of(REDUCE("%c = add %a, %n : i32\n yield %c\n")),
                     OP_COUNT);
    ck_assert_int_eq(operation_of(REDUCE("%c = add %a, %b : i32\n yield %a\n")),
                     OP_COUNT);
    ck_assert_int_eq(operation_of(REDUCE("%c = add %a, %b : i32\n"
                                         "%d = add %c, %n : i32\n yield %d\n")),
                     OP_COUNT);
    ck_assert_int_eq(operation_of(REDUCE("yield %a\n")), OP_COUNT);
}
END_TEST

int
main(void)
{
    Suite *suite = suite_create("reduction");
    TCase *c = tcase_create("reduction");
    tcase_add_test(c, one_operation_on_both_arguments);
    tcase_add_test(c, anything_else_is_none);
    suite_add_tcase(suite, c);
    SRunner *r = srunner_create(suite);
    srunner_run_all(r, CK_NORMAL);
    int failed = srunner_ntests_failed(r);
    srunner_free(r);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
