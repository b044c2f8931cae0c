/* What running kernels tell their host: device_print and device_assert through the public
   interface, with many threads. */
#include "runtime/sdc.h"

#include <check.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

static const char source[] =
    "import triton\n"
    "import triton.language as tl\n"
    "@triton.jit\n"
    "def show(x, n, BLOCK: tl.constexpr):\n"
    "    i = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)\n"
    "    tl.device_print('at', tl.load(x + i))\n"
    "@triton.jit(debug=True)\n"
    "def count(x, n):\n"
    "    p = tl.program_id(0)\n"
    "    tl.device_assert(p != n, 'no')\n"
    "    tl.store(x + p, 1)\n";

enum { MAX_LINES = 256 };

typedef struct Said {
    char line[MAX_LINES][80];
    int n, inside;
} Said;

static void
hear(void *user, const char *line)
{
    Said *s = user;
    ck_assert_int_eq(s->inside++, 0); /* one at a time */
    if (s->n < MAX_LINES)
        strncpy(s->line[s->n++], line, sizeof s->line[0] - 1);
    s->inside--;
}

static SdcFunction *
setup(SdcContext **cx, const SdcContextOptions *o, const char *kernel, const char *bind)
{
    SdcModule *mod;
    SdcFunction *f;
    ck_assert_int_eq(sdc_context_create(o, cx), SDC_OK);
    ck_assert_int_eq(sdc_module_load_text(*cx, "k.tk", source, sizeof source - 1,
                                          SDC_LANG_TRITON, &mod),
                     SDC_OK);
    ck_assert_int_eq(sdc_function_get(mod, kernel, &bind, bind ? 1 : 0, &f), SDC_OK);
    return f;
}

static bool
heard(const Said *s, const char *line)
{
    for (int i = 0; i < s->n; i++)
        if (strcmp(s->line[i], line) == 0)
            return true;
    return false;
}

START_TEST(prints_reach_the_host)
{
    Said said = {0};
    SdcContext *cx;
    SdcContextOptions o = {.threads = 8, .print = hear, .print_user = &said};
    SdcFunction *f = setup(&cx, &o, "show", "BLOCK=4");
    float x[16];
    for (int i = 0; i < 16; i++)
        x[i] = (float)i;
    SdcArg args[] = {sdc_ptr(SDC_FP32, x), sdc_int(16)};
    ck_assert_int_eq(sdc_launch(f, sdc_grid(2, 4, 1), args, 2, NULL), SDC_OK);
    ck_assert_int_eq(said.n, 32);
    ck_assert(heard(&said, "pid (1, 2, 0) idx (3) at: 11.000000"));
    ck_assert(heard(&said, "pid (0, 3, 0) idx (0) at: 12.000000"));
    sdc_context_destroy(cx);
}
END_TEST

START_TEST(nobody_listens)
{
    SdcContext *cx;
    SdcFunction *f = setup(&cx, NULL, "show", "BLOCK=4");
    float x[16] = {0};
    SdcArg args[] = {sdc_ptr(SDC_FP32, x), sdc_int(16)};
    ck_assert_int_eq(sdc_launch(f, sdc_grid(1, 4, 1), args, 2, NULL), SDC_OK);
    sdc_context_destroy(cx);
}
END_TEST

START_TEST(an_assertion_ends_the_launch)
{
    enum { PROGRAMS = 100000 };
    for (int threads = 1; threads <= 8; threads *= 8) {
        SdcContext *cx;
        SdcContextOptions o = {.threads = threads};
        SdcFunction *f = setup(&cx, &o, "count", NULL);
        int32_t *x = calloc(PROGRAMS, sizeof *x);
        SdcArg args[] = {sdc_ptr(SDC_I32, x), sdc_int(500)};
        ck_assert_int_eq(sdc_launch(f, sdc_grid(PROGRAMS, 1, 1), args, 2, NULL),
                         SDC_ERROR_CHECK);
        const char *said = sdc_error(cx);
        ck_assert_ptr_nonnull(strstr(said, "k.tk:10:5: error: assertion failed: no"));
        ck_assert_ptr_nonnull(strstr(said, "pid (500, 0, 0) idx () of 'count'"));
        SdcPlace place;
        ck_assert_int_eq(sdc_error_place(cx, &place), 1);
        ck_assert_int_eq(place.line, 10);
        ck_assert_int_eq(x[500], 0);
        ck_assert(threads > 1 || (x[499] == 1 && x[501] == 0));
        /* The context works on. */
        args[1] = sdc_int(-5);
        ck_assert_int_eq(sdc_launch(f, sdc_grid(PROGRAMS, 1, 1), args, 2, NULL), SDC_OK);
        ck_assert_int_eq(x[500], 1);
        ck_assert_str_eq(sdc_status_name(SDC_ERROR_CHECK), "SDC_ERROR_CHECK");
        free(x);
        sdc_context_destroy(cx);
    }
}
END_TEST

int
main(void)
{
    Suite *s = suite_create("hooks");
    TCase *t = tcase_create("hooks");
    tcase_add_test(t, prints_reach_the_host);
    tcase_add_test(t, nobody_listens);
    tcase_add_test(t, an_assertion_ends_the_launch);
    suite_add_tcase(s, t);
    SRunner *r = srunner_create(s);
    srunner_run_all(r, CK_NORMAL);
    int failed = srunner_ntests_failed(r);
    srunner_free(r);
    return failed != 0;
}
