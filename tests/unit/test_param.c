/* Which memory ops write, and which reads may find it. */
#include "ir/analysis/param.h"
#include "ir/text.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

static const char text[] =
    "kernel @f(%p: ptr<f32> {sig=\"*fp32\"}, %q: ptr<f32> {sig=\"*fp32\"},"
    " %c: ptr<i32> {sig=\"*i32\"}, %n: i32 {sig=\"i32\"}) {warps=4} {\n"
    "  %one = const {value=1} : i32\n"
    "  %pi = addptr %p, %one : ptr<f32>\n"
    "  %at = sext %n : i64\n"
    "  %odd = inttoptr %at : ptr<f32>\n"
    "  %x = load %pi : f32\n"
    "  for %i = %one, %n, %one {\n"
    "    store %pi, %x\n"
    "    yield\n"
    "  }\n"
    "  store %odd, %x\n"
    "  print %x {message=\"x\"}\n"
    "  %old = atomic_rmw %c, %one {rmw=\"add\", sem=\"relaxed\"} : i32\n"
    "  %two = add %old, %one : i32\n"
    "  return\n"
    "}\n";
static Source src = {.path = "test.tir", .text = text, .size = sizeof text - 1};

static Session *s;
static Func *f;

static void
setup(void)
{
    s = session_new(0);
    Module *m = module_read(s, &src);
    ck_assert_ptr_nonnull(m);
    f = m->funcs[0];
}

static void
teardown(void)
{
    session_free(s);
}

static Writes
writes_of(OpKind kind)
{
    Writes w = {0};
    const Op *op = f->body->first;
    while (op->kind != kind)
        op = op->next;
    writes_add(&w, op);
    return w;
}

START_TEST(through_parameters)
{
    Value *p = f->body->args[0], *q = f->body->args[1], *odd = p;
    region_each(f->body, op) if (op->kind == OP_INTTOPTR) odd = &op->results[0];
    Writes none = writes_of(OP_LOAD), w = writes_of(OP_FOR);
    ck_assert(!none.all && !none.ordered && !none.n);
    ck_assert(!writes_reach(&none, p) && !writes_reach(&none, odd));
    ck_assert(!w.all && !w.ordered && w.n == 1);
    ck_assert(writes_reach(&w, p) && !writes_reach(&w, q) && writes_reach(&w, odd));
}
END_TEST

START_TEST(one_parameter_again_and_again)
{
    Value *p = f->body->args[0], *q = f->body->args[1];
    Writes w = {0};
    region_each(f->body, op) for (int i = 0; i < 20 && op->kind == OP_FOR; i++)
        writes_add(&w, op);
    ck_assert(!w.all && w.n == 1);
    ck_assert(writes_reach(&w, p) && !writes_reach(&w, q));
}
END_TEST

START_TEST(writes_of_unknown_reach)
{
    Value *q = f->body->args[1];
    Writes odd = writes_of(OP_STORE), print = writes_of(OP_PRINT);
    Writes old = writes_of(OP_ATOMIC_RMW);
    ck_assert(odd.all && writes_reach(&odd, q));
    ck_assert(print.ordered && !print.all && !writes_reach(&print, q));
    ck_assert(old.all && writes_reach(&old, q));
}
END_TEST

int
main(void)
{
    Suite *suite = suite_create("param");
    TCase *c = tcase_create("param");
    tcase_add_checked_fixture(c, setup, teardown);
    tcase_add_test(c, through_parameters);
    tcase_add_test(c, one_parameter_again_and_again);
    tcase_add_test(c, writes_of_unknown_reach);
    suite_add_tcase(suite, c);
    SRunner *r = srunner_create(suite);
    srunner_run_all(r, CK_NORMAL);
    int failed = srunner_ntests_failed(r);
    srunner_free(r);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
