/* The verifier against IR that no reader or builder makes: broken lists, places and
   types. */
#include "ir/build.h"
#include "ir/edit.h"
#include "ir/text.h"
#include "ir/verify.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

static const char text[] =
    "kernel @f(%n: i32 {sig=\"i32\"}, %x: f32 {sig=\"fp32\"}) {warps=4} {\n"
    "  %one = const {value=1} : i32\n"
    "  %y = addf %x, %x : f32\n"
    "  %z = for %i = %one, %n, %one (%a = %y) : f32 {\n"
    "    %b = mulf %a, %a : f32\n"
    "    yield %b\n"
    "  }\n"
    "  return\n"
    "}\n";
static Source src = {.path = "test.tir", .text = text, .size = sizeof text - 1};

typedef struct Case {
    Session *s;
    Func *f;
    Op *one, *y, *loop, *ret;
} Case;

static Case
start(void)
{
    Case c = {.s = session_new(0)};
    Module *m = module_read(c.s, &src);
    ck_assert_ptr_nonnull(m);
    c.f = m->funcs[0];
    c.one = c.f->body->first;
    c.y = c.one->next;
    c.loop = c.y->next;
    c.ret = c.loop->next;
    return c;
}

static void
refused(Case *c, const char *why)
{
    ck_assert(!func_verify(c->f));
    bool found = false;
    for (const DiagItem *d = c->s->diag.first; d; d = d->next)
        found |= strstr(d->text, why) != NULL;
    ck_assert_msg(found, "no '%s' among the violations; first: %s", why,
                  c->s->diag.first->text);
    session_free(c->s);
}

START_TEST(use_lists)
{
    Case c = start();
    c.y->operands[1].index = 0;
    refused(&c, "use list of operand 1 is broken");
    c = start();
    c.y->operands[0].user = c.one;
    refused(&c, "use list of operand 0 is broken");
}
END_TEST

START_TEST(uses_follow_definitions)
{
    Case c = start();
    op_move_before(c.y, c.one);
    ck_assert(func_verify(c.f));
    op_move_before(c.loop, c.y);
    refused(&c, "'for': operand 3 is not defined where it is used");
    c = start();
    op_move_before(c.ret, c.y);
    refused(&c, "must be the last op");
}
END_TEST

START_TEST(parents_of_ops_are_right)
{
    Case c = start();
    c.y->parent = c.loop->regions[0];
    refused(&c, "op list is broken");
}
END_TEST

START_TEST(results_and_arguments_have_their_types)
{
    Case c = start();
    c.y->results[0].type = type_scalar(c.s->types, SK_F64);
    refused(&c, "result 0 must be f32, not f64");
    c = start();
    c.loop->regions[0]->args[0]->type = type_scalar(c.s->types, SK_I64);
    refused(&c, "region argument 0 must be i32, not i64");
    c = start();
    c.y->results[0].index = 4;
    refused(&c, "result 0 is malformed");
}
END_TEST

START_TEST(ops_have_their_regions)
{
    Case c = start();
    c.loop->nregion = 0;
    refused(&c, "0 regions, needs 1");
    c = start();
    region_arg(c.loop->regions[0], type_scalar(c.s->types, SK_F32), NULL);
    refused(&c, "body must have 2 arguments");
}
END_TEST

START_TEST(deep_nesting_is_refused)
{
    Session *s = session_new(0);
    Func *f = func_new(module_new(s), "f", (Loc){0});
    Builder b = builder_at_end(f, f->body);
    if (setjmp(s->fail.env) == 0) {
        s->fail.set = 1;
        for (int i = 0; i < MAX_REGION_DEPTH + 5; i++) {
            Value *c = build_int(&b, type_scalar(s->types, SK_I1), 1);
            Op *op = build_if(&b, c, NULL, 0);
            b = builder_at_end(f, op->regions[0]);
        }
        ck_abort_msg("no limit");
    }
    ck_assert_int_eq(s->fail.reason, FAIL_LIMIT);
    session_free(s);
}
END_TEST

int
main(void)
{
    Suite *suite = suite_create("verify");
    TCase *c = tcase_create("verify");
    tcase_add_test(c, use_lists);
    tcase_add_test(c, uses_follow_definitions);
    tcase_add_test(c, parents_of_ops_are_right);
    tcase_add_test(c, results_and_arguments_have_their_types);
    tcase_add_test(c, ops_have_their_regions);
    tcase_add_test(c, deep_nesting_is_refused);
    suite_add_tcase(suite, c);
    SRunner *r = srunner_create(suite);
    srunner_run_all(r, CK_NORMAL);
    int failed = srunner_ntests_failed(r);
    srunner_free(r);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
