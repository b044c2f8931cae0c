/* What values are computed from: through loops, conditions and bodies. */
#include "ir/analysis/slice.h"
#include "ir/text.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

static const char text[] =
    "kernel @f(%p: ptr<i32> {sig=\"*i32\"}, %n: i32 {sig=\"i32\"}, %q: i1 {sig=\"i1\"})"
    " {} {\n"
    "  %zero = const {value=0} : i32\n"
    "  %one = const {value=1} : i32\n"
    "  %two = add %one, %one : i32\n"
    "  %far = add %n, %n : i32\n"
    "  %r, %s, %u = for %i = %zero, %n, %one (%x = %zero, %y = %one, %w = %far)"
    " : i32, i32, i32 {\n"
    "    %a = add %x, %i : i32\n"
    "    %b = add %y, %y : i32\n"
    "    %c = if %q : i32 {\n"
    "      %d = add %a, %two : i32\n"
    "      %e = add %b, %b : i32\n"
    "      yield %d\n"
    "    } else {\n"
    "      yield %zero\n"
    "    }\n"
    "    %v = addptr %p, %c : ptr<i32>\n"
    "    %l = load %v : i32\n"
    "    yield %a, %b, %l\n"
    "  }\n"
    "  %k = splat %far : tile<4xi32>\n"
    "  %m = reduce %k {axis=0} : i32 (%g: i32, %h: i32) {\n"
    "    %o = add %g, %h : i32\n"
    "    %t = add %o, %u : i32\n"
    "    yield %t\n"
    "  }\n"
    "  store %p, %m\n"
    "  return\n"
    "}\n";
static Source src = {.path = "test.tir", .text = text, .size = sizeof text - 1};

static Session *s;
static Region *body, *loop, *arm;

static Op *
named(const Region *r, const char *name)
{
    region_each(r, op) if (op->nresult && op->results[0].name &&
                           strcmp(op->results[0].name, name) == 0) return op;
    ck_abort_msg("no %%%s", name);
}

static Value *
value(const Region *r, const char *name)
{
    return &named(r, name)->results[0];
}

static void
setup(void)
{
    s = session_new(0);
    Module *m = module_read(s, &src);
    ck_assert_ptr_nonnull(m);
    body = m->funcs[0]->body;
    region_each(body, op) if (op->kind == OP_FOR) loop = op->regions[0];
    arm = named(loop, "c")->regions[0];
}

static void
teardown(void)
{
    session_free(s);
}

/* A loop carries what its own body needs of the iteration before. */
START_TEST(carried_value_takes_its_own_chain)
{
    Slice sl;
    slice_init(&sl, &s->tmp, loop, NULL, NULL);
    ck_assert(slice_add(&sl, value(loop, "a")));
    ck_assert(slice_has(&sl, named(loop, "a")) && map_has(&sl.values, loop->args[1]));
    ck_assert(!slice_has(&sl, named(loop, "b")) && !map_has(&sl.values, loop->args[2]));
    ck_assert(!slice_has(&sl, loop->parent) && !slice_has(&sl, named(body, "zero")));
}
END_TEST

/* One result of a condition, with what it depends on. */
START_TEST(one_result_of_an_if)
{
    Slice sl;
    slice_init(&sl, &s->tmp, body, NULL, NULL);
    ck_assert(slice_add(&sl, value(loop, "v")));
    ck_assert(slice_has(&sl, named(loop, "c")) && slice_has(&sl, named(arm, "d")));
    ck_assert(!slice_has(&sl, named(arm, "e")) && !slice_has(&sl, named(loop, "b")));
    ck_assert(slice_has(&sl, named(body, "two")) && slice_has(&sl, loop->parent));
    ck_assert(map_has(&sl.values, body->args[1]) && map_has(&sl.values, body->args[2]));
}
END_TEST

/* What decides whether an op runs, and nothing of what it computes. */
START_TEST(what_decides_whether_an_op_runs)
{
    Slice sl;
    slice_init(&sl, &s->tmp, body, NULL, NULL);
    ck_assert(slice_add_control(&sl, named(arm, "d")));
    ck_assert(slice_has(&sl, named(loop, "c")) && slice_has(&sl, loop->parent));
    ck_assert(slice_has(&sl, named(body, "one")) && !slice_has(&sl, named(loop, "a")));
}
END_TEST

/* Other bodies are taken whole: with the sum goes what the loop leaves. */
START_TEST(body_of_a_reduction_is_taken_whole)
{
    Slice sl;
    slice_init(&sl, &s->tmp, body, NULL, NULL);
    ck_assert(slice_add(&sl, value(body, "m")));
    ck_assert(slice_has(&sl, named(body, "k")) && slice_has(&sl, named(loop, "l")));
    ck_assert(map_has(&sl.values, loop->args[3]) && slice_has(&sl, named(body, "far")));
    ck_assert(!slice_has(&sl, named(loop, "b")));
}
END_TEST

/* What one op takes, in its bodies as well. */
START_TEST(operands_of_an_op_and_of_its_bodies)
{
    Slice sl;
    slice_init(&sl, &s->tmp, loop, NULL, NULL);
    ck_assert(slice_add_operands(&sl, named(loop, "c")));
    ck_assert(slice_has(&sl, named(loop, "a")) && slice_has(&sl, named(loop, "b")));
    ck_assert(!slice_has(&sl, named(loop, "c")) && !slice_has(&sl, named(loop, "l")));
}
END_TEST

static bool
no_load(Slice *sl, const Value *v)
{
    if (v->op && v->op->kind == OP_LOAD)
        sl->why = "a load";
    return !v->op || v->op->kind != OP_IF;
}

/* What is given ends there; what is refused ends all. */
START_TEST(stops_at_given_and_refused_ops)
{
    Slice sl;
    slice_init(&sl, &s->tmp, loop, no_load, NULL);
    ck_assert(slice_add(&sl, value(loop, "v")));
    ck_assert(map_has(&sl.values, value(loop, "c")) && !slice_has(&sl, named(arm, "d")));
    ck_assert(!slice_add(&sl, value(loop, "l")));
    ck_assert_str_eq(sl.why, "a load");
    ck_assert(!slice_add(&sl, value(loop, "b")) && !slice_has(&sl, named(loop, "b")));
}
END_TEST

int
main(void)
{
    Suite *suite = suite_create("slice");
    TCase *c = tcase_create("slice");
    tcase_add_checked_fixture(c, setup, teardown);
    tcase_add_test(c, carried_value_takes_its_own_chain);
    tcase_add_test(c, one_result_of_an_if);
    tcase_add_test(c, what_decides_whether_an_op_runs);
    tcase_add_test(c, body_of_a_reduction_is_taken_whole);
    tcase_add_test(c, operands_of_an_op_and_of_its_bodies);
    tcase_add_test(c, stops_at_given_and_refused_ops);
    suite_add_tcase(suite, c);
    SRunner *r = srunner_create(suite);
    srunner_run_all(r, CK_NORMAL);
    int failed = srunner_ntests_failed(r);
    srunner_free(r);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
