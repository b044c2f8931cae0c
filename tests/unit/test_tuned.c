/* Launches by .tune lines: the nearest key's configuration with its grid, the device's
   own lines before others', the first configuration where nothing was tuned, the file
   beside the source, and what the caller binds kept. */
#include "runtime/sdc.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Each program leaves its block and the number of programs. */
static const char source[] =
    "import triton\n"
    "import triton.language as tl\n"
    "@triton.autotune(configs=[triton.Config({'BLOCK': 16, 'BY': 1}),\n"
    "                          triton.Config({'BLOCK': 64, 'BY': 1})], key=['n'])\n"
    "@triton.jit\n"
    "def f(out, n, k, BLOCK: tl.constexpr, BY: tl.constexpr):\n"
    "    pid = tl.program_id(0)\n"
    "    tl.store(out + 2 * pid, BLOCK * BY)\n"
    "    tl.store(out + 2 * pid + 1, tl.num_programs(0))\n";

static const char lines[] =
    "# kernel | device | target | types | key | configuration | time\n"
    "f | some cpu | cpu | *i32,i32,i32 | n=100 | BLOCK=32 BY=1 | 1 us\n"
    "f | some cpu | cpu | *i32,i32,const | n=10000 | BLOCK=512 BY=1 | 1 us\n"
    "f | some gpu | sm_90a | *i32,i32,i32 | n=100 | BLOCK=1024 BY=1 | 1 us\n"
    "f | some cpu | cpu | *fp32,i32,i32 | n=100 | BLOCK=2048 BY=1 | 1 us\n"
    "g | some cpu | cpu | *i32,i32,i32 | n=100 | BLOCK=4096 BY=1 | 1 us\n";

static const char grid[] = "cdiv(n,BLOCK)";

static void
expect(SdcContext *cx, SdcFunction *f, int64_t n, int64_t k, int block, int programs)
{
    enum { MOST = 4096 };
    static int32_t out[2 * MOST];
    SdcArg args[] = {sdc_ptr(SDC_I32, out), sdc_int(n), sdc_int(k)};
    SdcKernel *kernel;
    SdcGrid size;
    memset(out, 0, sizeof out);
    ck_assert_msg(sdc_launch_tuned(f, grid, args, 3, NULL) == SDC_OK, "%s",
                  sdc_error(cx));
    ck_assert_int_eq(out[0], block);
    ck_assert_int_eq(out[1], programs);
    ck_assert_int_eq(sdc_specialize_tuned(f, args, 3, &kernel), SDC_OK);
    ck_assert_int_eq(sdc_kernel_grid(kernel, grid, args, 3, &size), SDC_OK);
    ck_assert_int_eq(size.x, programs);
    ck_assert_int_eq(size.y, 1);
}

static SdcModule *
module(SdcContext *cx, const char *name)
{
    SdcModule *m;
    ck_assert_msg(sdc_module_load_text(cx, name, source, sizeof source - 1, SDC_LANG_AUTO,
                                       &m) == SDC_OK,
                  "%s", sdc_error(cx));
    return m;
}

START_TEST(nearest_key)
{
    static const char *const by[] = {"BY=2"};
    SdcContext *cx;
    SdcFunction *f;
    ck_assert_int_eq(sdc_context_create(NULL, &cx), SDC_OK);
    SdcModule *m = module(cx, "no-such-folder/f.tk");
    ck_assert_int_eq(sdc_module_tune(m, lines), SDC_OK);
    ck_assert_int_eq(sdc_function_get(m, "f", NULL, 0, &f), SDC_OK);
    for (int turn = 0; turn < 2; turn++) {
        expect(cx, f, 100, 3, 32, 4);
        expect(cx, f, 90, 16, 32, 3);
        expect(cx, f, 1, 3, 32, 1);
        expect(cx, f, 5000, 3, 512, 10);
        expect(cx, f, 100000, 1, 512, 196);
    }
    ck_assert_int_eq(sdc_function_get(m, "f", by, 1, &f), SDC_OK);
    expect(cx, f, 100, 3, 64, 4);
    ck_assert_int_eq(sdc_module_tune(m, ""), SDC_ERROR_ARGUMENT);
    ck_assert(strstr(sdc_error(cx), "was launched"));
    sdc_context_destroy(cx);
}
END_TEST

START_TEST(nothing_tuned)
{
    static const char *const texts[] = {
        NULL, "", "nonsense", "f | a | b",
        "f | x | cpu | *i32,i32 | n=1 | BLOCK=32 BY=1 | 1 us\n"};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        SdcContext *cx;
        SdcFunction *f;
        ck_assert_int_eq(sdc_context_create(NULL, &cx), SDC_OK);
        SdcModule *m = module(cx, "no-such-folder/f.tk");
        if (texts[i])
            ck_assert_int_eq(sdc_module_tune(m, texts[i]), SDC_OK);
        ck_assert_int_eq(sdc_function_get(m, "f", NULL, 0, &f), SDC_OK);
        expect(cx, f, 100, 3, 16, 7);
        sdc_context_destroy(cx);
    }
}
END_TEST

START_TEST(beside_the_source)
{
    char dir[] = "/tmp/test_tuned.XXXXXX", path[64], tune[80];
    ck_assert(mkdtemp(dir));
    snprintf(path, sizeof path, "%s/f.tk", dir);
    snprintf(tune, sizeof tune, "%s.tune", path);
    FILE *a = fopen(path, "w"), *b = fopen(tune, "w");
    ck_assert(a && b && fputs(source, a) >= 0 && fputs(lines, b) >= 0);
    ck_assert(fclose(a) == 0 && fclose(b) == 0);
    SdcContext *cx;
    SdcModule *m;
    SdcFunction *f;
    ck_assert_int_eq(sdc_context_create(NULL, &cx), SDC_OK);
    ck_assert_int_eq(sdc_module_load_file(cx, path, &m), SDC_OK);
    ck_assert_int_eq(sdc_function_get(m, "f", NULL, 0, &f), SDC_OK);
    expect(cx, f, 100, 3, 32, 4);
    sdc_context_destroy(cx);
    unlink(path);
    unlink(tune);
    rmdir(dir);
}
END_TEST

START_TEST(bad_tune_files_are_refused)
{
    SdcContext *cx;
    SdcFunction *f;
    int32_t out[4];
    SdcArg args[] = {sdc_ptr(SDC_I32, out), sdc_int(1), sdc_int(3)};
    ck_assert_int_eq(sdc_context_create(NULL, &cx), SDC_OK);
    SdcModule *m = module(cx, "f.tk");
    ck_assert_int_eq(sdc_function_get(m, "f", NULL, 0, &f), SDC_OK);
    ck_assert_int_eq(sdc_launch_tuned(f, "cdiv(m,BLOCK)", args, 3, NULL),
                     SDC_ERROR_ARGUMENT);
    ck_assert(strstr(sdc_error(cx), "'m'"));
    ck_assert_int_eq(sdc_launch_tuned(f, "n//(k-3)", args, 3, NULL), SDC_ERROR_ARGUMENT);
    ck_assert_int_eq(sdc_launch_tuned(f, grid, args, 2, NULL), SDC_ERROR_ARGUMENT);
    ck_assert_int_eq(sdc_launch_tuned(f, NULL, args, 3, NULL), SDC_ERROR_ARGUMENT);
    ck_assert_int_eq(sdc_launch_tuned(NULL, grid, args, 3, NULL), SDC_ERROR_ARGUMENT);
    ck_assert_int_eq(sdc_module_tune(NULL, ""), SDC_ERROR_ARGUMENT);
    sdc_context_destroy(cx);
}
END_TEST

int
main(void)
{
    Suite *s = suite_create("tuned");
    TCase *t = tcase_create("tuned");
    tcase_set_timeout(t, 120);
    tcase_add_test(t, nearest_key);
    tcase_add_test(t, nothing_tuned);
    tcase_add_test(t, beside_the_source);
    tcase_add_test(t, bad_tune_files_are_refused);
    suite_add_tcase(s, t);
    SRunner *r = srunner_create(s);
    srunner_run_all(r, CK_NORMAL);
    int failed = srunner_ntests_failed(r);
    srunner_free(r);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
