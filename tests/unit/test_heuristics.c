/* @triton.heuristics in launches: constexprs that follow from the values of arguments,
   and a specialization for each of what they say. */
#include "runtime/sdc.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>

static const char source[] = "import triton\n"
                             "import triton.language as tl\n"
                             "@triton.heuristics({\n"
                             "    'EVEN': lambda args: args['n'] % args['BLOCK'] == 0,\n"
                             "    'HAS_BIAS': lambda args: args['bias'] is not None,\n"
                             "})\n"
                             "@triton.jit\n"
                             "def k(x, bias, n, BLOCK: tl.constexpr, EVEN: tl.constexpr, "
                             "HAS_BIAS: tl.constexpr):\n"
                             "    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)\n"
                             "    v = tl.load(x + i, mask=i < n, other=0.0)\n"
                             "    if HAS_BIAS:\n"
                             "        v += tl.load(bias)\n"
                             "    if EVEN:\n"
                             "        tl.store(x + i, v + 10)\n"
                             "    else:\n"
                             "        tl.store(x + i, v + 20, mask=i < n)\n";

START_TEST(values_decide)
{
    static const char *const bind[] = {"BLOCK=16"};
    SdcContext *cx;
    SdcModule *m;
    SdcFunction *f;
    SdcKernel *first, *again, *other;
    float x[32] = {0}, bias = 1;
    ck_assert_int_eq(sdc_context_create(NULL, &cx), SDC_OK);
    ck_assert_int_eq(
        sdc_module_load_text(cx, "k.tk", source, sizeof source - 1, SDC_LANG_AUTO, &m),
        SDC_OK);
    ck_assert_int_eq(sdc_function_get(m, "k", bind, 1, &f), SDC_OK);
    const struct {
        int n;
        int with_bias;
        float want;
    } rows[] = {{32, 0, 10}, {33, 0, 20}, {32, 1, 11}, {31, 1, 21}, {32, 0, 10}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        x[0] = 0;
        SdcArg args[] = {sdc_ptr(SDC_FP32, x),
                         rows[i].with_bias ? sdc_ptr(SDC_FP32, &bias) : sdc_none(),
                         sdc_int(rows[i].n > 32 ? 31 : rows[i].n)};
        if (rows[i].n > 32)
            args[2] = sdc_int(15);
        ck_assert_msg(sdc_launch(f, sdc_grid(2, 1, 1), args, 3, NULL) == SDC_OK, "%s",
                      sdc_error(cx));
        ck_assert_msg(x[0] == rows[i].want, "row %zu: %g", i, (double)x[0]);
    }
    SdcArg args[] = {sdc_ptr(SDC_FP32, x), sdc_none(), sdc_int(32)};
    ck_assert_int_eq(sdc_specialize(f, args, 3, &first), SDC_OK);
    ck_assert_int_eq(sdc_specialize(f, args, 3, &again), SDC_OK);
    args[2] = sdc_int(48);
    ck_assert_int_eq(sdc_specialize(f, args, 3, &other), SDC_OK);
    ck_assert_ptr_eq(first, again);
    ck_assert_ptr_ne(first, other);
    int64_t even;
    ck_assert_int_eq(sdc_kernel_constant(other, "EVEN", &even), 1);
    ck_assert_int_eq(even, 1);
    sdc_context_destroy(cx);
}
END_TEST

int
main(void)
{
    Suite *s = suite_create("heuristics");
    TCase *t = tcase_create("heuristics");
    tcase_set_timeout(t, 60);
    tcase_add_test(t, values_decide);
    suite_add_tcase(s, t);
    SRunner *r = srunner_create(s);
    srunner_run_all(r, CK_NORMAL);
    int failed = srunner_ntests_failed(r);
    srunner_free(r);
    return failed != 0;
}
