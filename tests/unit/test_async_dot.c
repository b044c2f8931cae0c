/* What passes ask of asynchronous dots: which wait is whose, what adds to what, what
   becomes an operand. */
#include "ir/analysis/accumulator.h"
#include "ir/analysis/async_dot.h"
#include "ir/text.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

static const char text[] =
    "#acc = mma<m=64, n=64, warps=[4,1]>\n"
    "#sh = shared<f16, swizzle=128, order=[1,0]>\n"
    "#left = dot<m=64, op=0, k=2, warps=[4,1]>\n"
    "kernel @f(%q: tile<64x64xptr<f32>, #acc> {sig=\"\"},"
    " %x: tile<64x64xf16, #left> {sig=\"\"}, %n: i32 {sig=\"i32\"})"
    " {warps=4, form=3} {\n"
    "  %z = const {fvalue=0x0p+0} : tile<64x64xf32, #acc>\n"
    "  %m = local_alloc : mem<f16, [64,64], #sh>\n"
    "  %a = wgmma %m, %m, %z : async<tile<64x64xf32, #acc>>\n"
    "  %b = wgmma_wait %a {pending=0} : tile<64x64xf32, #acc>\n"
    "  %c = wgmma %x, %m, %b : async<tile<64x64xf32, #acc>>\n"
    "  %d = wgmma %m, %m, %c : async<tile<64x64xf32, #acc>>\n"
    "  %u = wgmma %m, %m, %z : async<tile<64x64xf32, #acc>>\n"
    "  %e = wgmma_wait %d {pending=1} : tile<64x64xf32, #acc>\n"
    "  %v = wgmma_wait %u {pending=0} : tile<64x64xf32, #acc>\n"
    "  store %q, %e\n"
    "  %s, %sum, %seen = for %i = %n, %n, %n (%t = %v, %o = %z, %l = %z)"
    " : tile<64x64xf32, #acc>, tile<64x64xf32, #acc>, tile<64x64xf32, #acc> {\n"
    "    %h = ftrunc %t : tile<64x64xf16, #acc>\n"
    "    %k = local_alloc %h : mem<f16, [64,64], #sh>\n"
    "    %r = wgmma %m, %k, %z : async<tile<64x64xf32, #acc>>\n"
    "    %w = wgmma_wait %r {pending=0} : tile<64x64xf32, #acc>\n"
    "    %g = wgmma %m, %m, %o : async<tile<64x64xf32, #acc>>\n"
    "    %j = wgmma_wait %g {pending=0} : tile<64x64xf32, #acc>\n"
    "    store %q, %l\n"
    "    %y = wgmma %m, %m, %l : async<tile<64x64xf32, #acc>>\n"
    "    %aa = wgmma_wait %y {pending=0} : tile<64x64xf32, #acc>\n"
    "    yield %w, %j, %aa\n"
    "  }\n"
    "  store %q, %s\n"
    "  return\n"
    "}\n";
static Source src = {.path = "test.tir", .text = text, .size = sizeof text - 1};

static Session *s;
static Region *body, *loop;

static void
setup(void)
{
    s = session_new(0);
    Module *m = module_read(s, &src);
    ck_assert_ptr_nonnull(m);
    body = m->funcs[0]->body;
    region_each(body, op) if (op->kind == OP_FOR) loop = op->regions[0];
}

static void
teardown(void)
{
    session_free(s);
}

static Op *
named(const Region *r, const char *name)
{
    region_each(r, op) if (op->nresult && op->results[0].name &&
                           strcmp(op->results[0].name, name) == 0) return op;
    ck_abort_msg("no %%%s", name);
}

START_TEST(ops_issue_to_and_wait_for_queues)
{
    ck_assert_int_eq(opkind_issues(OP_ASYNC_COPY), QUEUE_COPY);
    ck_assert_int_eq(opkind_waits(OP_ASYNC_WAIT), QUEUE_COPY);
    ck_assert_int_eq(opkind_issues(OP_TMA_STORE), opkind_waits(OP_TMA_WAIT));
    ck_assert_int_eq(opkind_issues(OP_TMA_LOAD), QUEUE_NONE);
    ck_assert_int_eq(opkind_issues(OP_DOT), QUEUE_NONE);
    ck_assert(op_is_async_dot(named(body, "a")) && op_is(named(body, "a"), T_DOT));
    ck_assert(op_is_dot_wait(named(body, "b")) && !op_is(named(body, "b"), T_DOT));
}
END_TEST

START_TEST(each_dot_has_its_wait)
{
    ck_assert_ptr_eq(dot_wait(named(body, "a")), named(body, "b"));
    ck_assert_ptr_eq(dot_full_wait(named(body, "a")), named(body, "b"));
    ck_assert_ptr_null(dot_wait(named(body, "c")));
    ck_assert_ptr_eq(dot_wait(named(body, "d")), named(body, "e"));
    ck_assert_ptr_null(dot_full_wait(named(body, "d")));
    ck_assert_ptr_eq(wait_dot(named(body, "e")), named(body, "d"));
    ck_assert_int_eq(wait_pending(named(body, "e")), 1);
}
END_TEST

START_TEST(chains_of_dots_on_one_accumulator)
{
    ck_assert_ptr_eq(dot_adding_to(named(body, "a")), named(body, "c"));
    ck_assert_ptr_eq(dot_adding_to(named(body, "c")), named(body, "d"));
    ck_assert_ptr_null(dot_adding_to(named(body, "d")));
    ck_assert_ptr_eq(dot_added_to(named(body, "d")), named(body, "c"));
    ck_assert_ptr_eq(dot_added_to(named(body, "c")), named(body, "a"));
    ck_assert_ptr_null(dot_added_to(named(body, "u")));
    ck_assert_int_eq(dots_between(named(body, "b"), named(body, "e")), 3);
    ck_assert_int_eq(dots_between(body->first, NULL), 4);
    ck_assert_int_eq(dots_within(body), 7);
    ck_assert_int_eq(dot_carried(named(loop, "g")), 1);
    ck_assert_int_eq(dot_carried(named(loop, "r")), -1);
    ck_assert_int_eq(dot_carried(named(loop, "y")), -1); /* stored as well */
    ck_assert_int_eq(dot_carried(named(body, "a")), -1);
}
END_TEST

START_TEST(operands_in_shared_memory)
{
    const Op *c = named(body, "c");
    ck_assert(!dot_reads_shared(c, DOT_LEFT) && dot_reads_shared(c, DOT_RIGHT));
    ck_assert(!dot_reads_shared(c, DOT_ACC));
    ck_assert_ptr_eq(dot_tile(c->results[0].type), named(body, "b")->results[0].type);
    ck_assert(value_feeds_dot(loop->args[1], loop, true));
    ck_assert(value_feeds_dot(loop->args[1], NULL, true));
    ck_assert(!value_feeds_dot(loop->args[1], body, false));
    ck_assert(!value_feeds_dot(&named(body, "e")->results[0], NULL, false));
}
END_TEST

int
main(void)
{
    Suite *suite = suite_create("async_dot");
    TCase *c = tcase_create("async_dot");
    tcase_add_checked_fixture(c, setup, teardown);
    tcase_add_test(c, ops_issue_to_and_wait_for_queues);
    tcase_add_test(c, each_dot_has_its_wait);
    tcase_add_test(c, chains_of_dots_on_one_accumulator);
    tcase_add_test(c, operands_in_shared_memory);
    suite_add_tcase(suite, c);
    SRunner *r = srunner_create(suite);
    srunner_run_all(r, CK_NORMAL);
    int failed = srunner_ntests_failed(r);
    srunner_free(r);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
