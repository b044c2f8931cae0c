/* What comes back when a stage fails from within: internal errors, memory that runs out,
   limits. Each is a status with a message, and the context goes on working. */
#include "runtime/internal.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

static SdcContext *
setup(size_t limit)
{
    SdcContext *cx;
    SdcContextOptions o = {.memory_limit = limit};
    ck_assert_int_eq(sdc_context_create(&o, &cx), SDC_OK);
    return cx;
}

static SdcStatus
buggy(Session *s, void *arg)
{
    (void)arg;
    diag_error(&s->diag, (Loc){0}, "said before");
    bug(&s->fail, "the number %d", 42);
}

static SdcStatus
greedy(Session *s, void *arg)
{
    for (int i = 0; i < 1000; i++)
        *(void **)arg = arena_alloc(&s->mod, 1 << 16, 8);
    return SDC_OK;
}

static SdcStatus
fine(Session *s, void *arg)
{
    (void)arg;
    diag_warning(&s->diag, (Loc){0}, "look out");
    return SDC_OK;
}

START_TEST(internal_errors_are_statuses)
{
    SdcContext *cx = setup(0);
    for (int i = 0; i < 3; i++) {
        ck_assert_int_eq(context_call(cx, buggy, NULL), SDC_ERROR_INTERNAL);
        ck_assert(strstr(sdc_error(cx), "internal error at"));
        ck_assert(strstr(sdc_error(cx), "the number 42"));
        ck_assert(strstr(sdc_error(cx), "said before"));
        ck_assert_int_eq(context_call(cx, fine, NULL), SDC_OK);
        ck_assert(strstr(sdc_warnings(cx), "look out"));
    }
    sdc_context_destroy(cx);
}
END_TEST

START_TEST(limits_are_statuses)
{
    SdcContext *cx = setup(8 << 20);
    void *last;
    ck_assert_int_eq(context_call(cx, greedy, &last), SDC_ERROR_SOURCE);
    ck_assert(strstr(sdc_error(cx), "memory limit of 8 MiB"));
    ck_assert_int_eq(context_call(cx, fine, NULL), SDC_OK);
    sdc_context_destroy(cx);
}
END_TEST

/* Which kernel, where, what to do. */
START_TEST(limits_have_a_place)
{
    static const char text[] = "import triton\n"
                               "import triton.language as tl\n"
                               "@triton.jit\n"
                               "def k(x):\n"
                               "    for i in tl.static_range(20000):\n"
                               "        tl.store(x + i, i)\n";
    SdcContext *cx = setup(1 << 20);
    SdcModule *m;
    SdcOutput *out;
    SdcCompileOptions o = {.signature = "*i32", .target = "sm_80", .emit = SDC_EMIT_ASM};
    ck_assert_int_eq(sdc_module_load_text(cx, "k.tk", text, sizeof text - 1,
                                          SDC_LANG_AUTO, &m),
                     SDC_OK);
    ck_assert_int_eq(sdc_compile(m, &o, &out), SDC_ERROR_SOURCE);
    const char *said = sdc_error(cx);
    ck_assert_msg(strstr(said, "memory limit of 1 MiB reached in 'frontend' of kernel "
                               "'k', k.tk:6; smaller tiles or fewer unrolled") != NULL,
                  "%s", said);
    ck_assert(strstr(said, "memory_limit allows more"));
    sdc_context_destroy(cx);
}
END_TEST

START_TEST(a_session_that_cannot_begin)
{
    SdcContext *cx = setup(64); /* less than the first chunk */
    ck_assert_int_eq(context_call(cx, fine, NULL), SDC_ERROR_MEMORY);
    ck_assert(strstr(sdc_error(cx), "out of memory"));
    sdc_context_destroy(cx);
}
END_TEST

/* A compile that fails inside of a pass hands out the IR before it; here the "pass" is a
   use of the result that fails. */
static SdcStatus
fail_late(Session *s, CompileResult *r, void *arg)
{
    (void)r, (void)arg;
    bug(&s->fail, "after all passes");
}

START_TEST(reproducers_can_be_read)
{
    SdcContext *cx = setup(0);
    static const char text[] =
        "kernel @f(%p: ptr<i32> {sig=\"*i32\"}, %n: i32 {sig=\"i32\"}) "
        "{warps=4, stages=3} {\n"
        "  %dead = add %n, %n : i32\n"
        "  store %p, %n\n"
        "  return\n"
        "}\n";
    CompileJob job = {
        .src = {.path = "a.tir", .text = text, .size = sizeof text - 1},
        .is_tir = true,
        .opt = {.target = "cpu", .emit = SDC_EMIT_TIR, .passes = "canon,dce"},
    };
    ck_assert_int_eq(compile_call(cx, &job, fail_late, NULL), SDC_ERROR_INTERNAL);
    const char *r = sdc_error_reproducer(cx);
    ck_assert_msg(strncmp(r, "// RUN: %sdc compile %s --target=cpu", 36) == 0, "%s", r);
    ck_assert(strstr(r, "store %p, %n") && !strstr(r, "%dead"));
    ck_assert(strstr(sdc_error(cx), "after all passes"));
    SdcModule *mod;
    ck_assert_int_eq(sdc_module_load_text(cx, "r.tir", r, strlen(r), SDC_LANG_AUTO, &mod),
                     SDC_OK);
    sdc_context_destroy(cx);
}
END_TEST

int
main(void)
{
    Suite *suite = suite_create("context");
    TCase *c = tcase_create("context");
    tcase_add_test(c, internal_errors_are_statuses);
    tcase_add_test(c, limits_are_statuses);
    tcase_add_test(c, limits_have_a_place);
    tcase_add_test(c, a_session_that_cannot_begin);
    tcase_add_test(c, reproducers_can_be_read);
    suite_add_tcase(suite, c);
    SRunner *r = srunner_create(suite);
    srunner_run_all(r, CK_NORMAL);
    int failed = srunner_ntests_failed(r);
    srunner_free(r);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
