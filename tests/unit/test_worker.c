/* Compiles in a process of their own: they give what compiles here give, and when they
   crash, hang or are not there the host learns it by a status. */
#include "runtime/sdc.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define SDC SDC_TMP "/../../sdc"

static const char source[] =
    "import triton\n"
    "import triton.language as tl\n"
    "@triton.jit\n"
    "def k(x, n, BLOCK: tl.constexpr):\n"
    "    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)\n"
    "    tl.store(x + i, tl.load(x + i, mask=i < n) + 1, mask=i < n)\n";

/* A launch of k with this worker; the message goes to `text`. */
static SdcStatus
launch(const char *worker, int seconds, const char *block, float *first, char *text,
       size_t size)
{
    SdcContextOptions o = {.worker = worker, .worker_seconds = seconds};
    SdcContext *cx;
    SdcModule *m;
    SdcFunction *f;
    float x[64] = {41};
    ck_assert_int_eq(sdc_context_create(&o, &cx), SDC_OK);
    ck_assert_int_eq(
        sdc_module_load_text(cx, "k.tk", source, sizeof source - 1, SDC_LANG_AUTO, &m),
        SDC_OK);
    ck_assert_int_eq(sdc_function_get(m, "k", &block, 1, &f), SDC_OK);
    SdcArg args[] = {sdc_ptr(SDC_FP32, x), sdc_int(64)};
    SdcStatus status = sdc_launch(f, sdc_grid(1, 1, 1), args, 2, NULL);
    snprintf(text, size, "%s", sdc_error(cx));
    *first = x[0];
    sdc_context_destroy(cx);
    return status;
}

static const char *
script(const char *name, const char *text)
{
    static char path[600];
    snprintf(path, sizeof path, "%s/%s", SDC_TMP, name);
    FILE *f = fopen(path, "w");
    ck_assert_ptr_nonnull(f);
    fprintf(f, "#!/bin/sh\n%s\n", text);
    fclose(f);
    ck_assert_int_eq(chmod(path, 0700), 0);
    return path;
}

START_TEST(workers_end_as_they_should)
{
    char text[3000];
    setenv("SDC_CACHE", "off", 1);
    float x;
    ck_assert_msg(launch(SDC, 600, "BLOCK=64", &x, text, sizeof text) == SDC_OK, "%s",
                  text);
    ck_assert(x == 42);
    /* An error of the source comes with its message. */
    ck_assert_int_eq(launch(SDC, 600, "BLOCK=63", &x, text, sizeof text),
                     SDC_ERROR_SOURCE);
    ck_assert_msg(strstr(text, "k.tk:5") && strstr(text, "power of 2"), "%s", text);
    ck_assert_int_eq(launch("/no/such", 0, "BLOCK=64", &x, text, sizeof text),
                     SDC_ERROR_ENVIRONMENT);
    ck_assert_int_eq(
        launch(script("crash", "kill -SEGV $$"), 0, "BLOCK=64", &x, text, sizeof text),
        SDC_ERROR_INTERNAL);
    ck_assert_msg(strstr(text, "signal 11") != NULL, "%s", text);
    ck_assert_int_eq(
        launch(script("hang", "exec sleep 60"), 1, "BLOCK=64", &x, text, sizeof text),
        SDC_ERROR_SOURCE);
    ck_assert_msg(strstr(text, "more than 1 second") != NULL, "%s", text);
    ck_assert_int_eq(
        launch(script("garbage", "cat >/dev/null; head -c 3000 /dev/urandom"), 0,
               "BLOCK=64", &x, text, sizeof text),
        SDC_ERROR_ENVIRONMENT);
    ck_assert_int_eq(
        launch(script("quiet", "exit 7"), 0, "BLOCK=64", &x, text, sizeof text),
        SDC_ERROR_ENVIRONMENT);
    ck_assert_msg(strstr(text, "exit status 7") != NULL, "%s", text);
    ck_assert(x == 41);
}
END_TEST

int
main(void)
{
    Suite *s = suite_create("worker");
    TCase *t = tcase_create("worker");
    tcase_set_timeout(t, 60);
    tcase_add_test(t, workers_end_as_they_should);
    suite_add_tcase(s, t);
    SRunner *r = srunner_create(s);
    srunner_run_all(r, CK_NORMAL);
    int failed = srunner_ntests_failed(r);
    srunner_free(r);
    return failed != 0;
}
