/* Every function of sdc.h with NULL, and numbers out of range, for each of its arguments:
   a status and a message that says what is wrong, never a signal. The last test reads the
   header and this file: a function that is not called here fails it. */
#include "runtime/sdc.h"
#include "tests/unit/all_called.h"

#include <check.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char text[] = "import triton\n"
                           "import triton.language as tl\n"
                           "@triton.jit\n"
                           "def k(x, y, n, f, B: tl.constexpr):\n"
                           "    o = tl.program_id(0) * B + tl.arange(0, B)\n"
                           "    m = o < n\n"
                           "    tl.store(y + o, tl.load(x + o, mask=m) * f, mask=m)\n";
static const char types[] = "*fp32,*fp32,i32,fp32,64";

static SdcContext *cx;
static SdcModule *mod;
static SdcFunction *fn;
static SdcKernel *kernel;
static float x[64], y[64];
static SdcArg args[4];
static const SdcGrid one = {1, 1, 1};

static void
setup(void)
{
    static const char *const bind[] = {"B=64"};
    ck_assert_int_eq(sdc_context_create(NULL, &cx), SDC_OK);
    ck_assert_int_eq(sdc_module_load_text(cx, "k.tk", text, strlen(text), 0, &mod), 0);
    ck_assert_int_eq(sdc_function_get(mod, "k", bind, 1, &fn), SDC_OK);
    ck_assert_int_eq(sdc_kernel_get(mod, "k", types, NULL, 0, &kernel), SDC_OK);
    args[0] = sdc_ptr(SDC_FP32, x);
    args[1] = sdc_ptr(SDC_FP32, y);
    args[2] = sdc_int(64);
    args[3] = sdc_float(2);
    ck_assert_int_eq(sdc_launch(fn, one, args, 4, NULL), SDC_OK);
}

static void
teardown(void)
{
    sdc_context_destroy(cx);
}

/* The call is refused with this status and a message that holds `why`. */
#define REFUSED(call, status, why)                                                     \
    do {                                                                               \
        int got = (int)(call);                                                         \
        ck_assert_msg(got == (status) && strstr(sdc_error(cx), (why)),                 \
                      "%s: status %d, %s", #call, got, sdc_error(cx));                 \
    } while (0)
#define WRONG(call, why) REFUSED(call, SDC_ERROR_ARGUMENT, why)
/* Without a context there is no message. */
#define REJECTED(call) ck_assert_int_eq((int)(call), SDC_ERROR_ARGUMENT)

START_TEST(contexts_are_checked)
{
    SdcContext *c = cx;
    SdcDevice device;
    SdcCacheInfo info;
    SdcPlace place;
    const char *none[] = {NULL};
    REJECTED(sdc_context_create(NULL, NULL));
    REJECTED(sdc_context_create(&(SdcContextOptions){.ninclude = 1}, &c));
    ck_assert_ptr_null(c);
    REJECTED(sdc_context_create(
        &(SdcContextOptions){.include_dirs = none, .ninclude = 1}, &c));
    REJECTED(sdc_context_create(&(SdcContextOptions){.ninclude = -1}, &c));
    REJECTED(sdc_context_create(&(SdcContextOptions){.threads = -1}, &c));
    REJECTED(sdc_context_create(&(SdcContextOptions){.device = -1}, &c));
    REJECTED(sdc_context_create(&(SdcContextOptions){.worker_seconds = -1}, &c));
    REJECTED(sdc_context_create(&(SdcContextOptions){.target = "sm_1"}, &c));
    sdc_context_destroy(NULL);
    ck_assert_int_eq(sdc_context_threads(NULL), 0);
    REJECTED(sdc_context_device(NULL, &device));
    WRONG(sdc_context_device(cx, &device), "the context's target is the CPU");
    REJECTED(sdc_cache(NULL, SDC_CACHE_STAT, -1, &info));
    WRONG(sdc_cache(cx, (SdcCacheAction)99, -1, NULL), "no such action");
    WRONG(sdc_cache(cx, (SdcCacheAction)-1, -1, &info), "no such action");
    ck_assert_ptr_nonnull(strstr(sdc_error(NULL), "sdc_context_create was given"));
    ck_assert_str_eq(sdc_warnings(NULL), "");
    ck_assert_str_eq(sdc_error_reproducer(NULL), "");
    ck_assert_int_eq(sdc_error_place(NULL, &place), 0);
    ck_assert_int_eq(sdc_error_place(cx, NULL), 0);
    ck_assert_ptr_nonnull(sdc_status_name((SdcStatus)-5));
    ck_assert_ptr_nonnull(sdc_version());
    ck_assert_int_eq(sdc_lost_compiles(NULL), 0);
    ck_assert_ptr_nonnull(sdc_targets());
}
END_TEST

START_TEST(modules_are_checked)
{
    SdcModule *m;
    const SdcParam *p;
    const SdcCheck *check;
    int n;
    SdcFuseOptions fuse = {.kernels = "k"};
    REJECTED(sdc_module_load_file(NULL, "x", &m));
    WRONG(sdc_module_load_file(cx, NULL, &m), "path and out are needed");
    WRONG(sdc_module_load_file(cx, "x", NULL), "path and out are needed");
    REFUSED(sdc_module_load_file(cx, "/no/such", &m), SDC_ERROR_FILE, "cannot read");
    REJECTED(sdc_module_load_text(NULL, "k", text, 4, 0, &m));
    WRONG(sdc_module_load_text(cx, NULL, text, 4, 0, &m), "name, text and out");
    WRONG(sdc_module_load_text(cx, "k", NULL, 4, 0, &m), "name, text and out");
    WRONG(sdc_module_load_text(cx, "k", text, 4, 0, NULL), "name, text and out");
    WRONG(sdc_module_load_text(cx, "k", text, 4, (SdcLang)9, &m),
          "no language has number 9");
    WRONG(sdc_module_load_text(cx, "k", text, 4, (SdcLang)-1, &m), "no language");
    REFUSED(sdc_module_load_text(cx, "k", text, SIZE_MAX, 0, &m), SDC_ERROR_SOURCE,
            "at most");
    sdc_module_unload(NULL);
    ck_assert_int_eq(sdc_module_kernel_count(NULL), 0);
    ck_assert_ptr_null(sdc_module_kernel_name(NULL, 0));
    ck_assert_ptr_null(sdc_module_kernel_name(mod, -1));
    ck_assert_ptr_null(sdc_module_kernel_name(mod, 1));
    REJECTED(sdc_module_params(NULL, "k", &p, &n));
    WRONG(sdc_module_params(mod, NULL, &p, &n), "no name of a kernel");
    WRONG(sdc_module_params(mod, "zz", &p, &n), "no kernel is named 'zz'");
    WRONG(sdc_module_params(mod, "k", NULL, &n), "no place to put it");
    WRONG(sdc_module_params(mod, "k", &p, NULL), "no place to put it");
    REJECTED(sdc_module_check(NULL, NULL, &check));
    WRONG(sdc_module_check(mod, NULL, NULL), "no place to put the result");
    ck_assert_ptr_null(sdc_message(NULL, 0));
    ck_assert_ptr_null(sdc_message(cx, -1));
    ck_assert_ptr_null(sdc_message(cx, 1));
    WRONG(sdc_module_check(mod, &(SdcCheckOptions){.ntarget = 1}, &check),
          "announced, and none given");
    WRONG(sdc_module_check(mod, &(SdcCheckOptions){.nbind = 1}, &check), "none given");
    REFUSED(sdc_module_check(mod, &(SdcCheckOptions){.kernel = "zz"}, &check),
            SDC_ERROR_ARGUMENT, "no kernel is named 'zz'");
    ck_assert_ptr_null(check);
    REJECTED(sdc_fuse(NULL, &fuse, &m));
    WRONG(sdc_fuse(mod, NULL, &m), "no kernels are named");
    WRONG(sdc_fuse(mod, &(SdcFuseOptions){0}, &m), "no kernels are named");
    WRONG(sdc_fuse(mod, &fuse, NULL), "no place to put the module");
    WRONG(sdc_fuse(mod, &(SdcFuseOptions){.kernels = "k,=k"}, &m), "'' is no name");
}
END_TEST

START_TEST(dtypes_are_checked)
{
    double d = 0;
    ck_assert_ptr_null(sdc_dtype_name((SdcDtype)-1));
    ck_assert_ptr_null(sdc_dtype_name(SDC_DTYPE_COUNT));
    ck_assert_int_eq(sdc_dtype_size((SdcDtype)271), 0);
    ck_assert_int_eq(sdc_dtype_by_name(NULL, 4), SDC_DTYPE_NONE);
    ck_assert_int_eq(sdc_dtype_is_float((SdcDtype)-7), 0);
    ck_assert(sdc_dtype_load(SDC_FP64, NULL) == 0);
    ck_assert(sdc_dtype_load((SdcDtype)99, &d) == 0);
    sdc_dtype_store(SDC_FP64, 1, NULL);
    sdc_dtype_store((SdcDtype)99, 1, &d);
    ck_assert(d == 0);
    /* What does not fit 32 bits is refused, not cut down to what does. */
    ck_assert_int_eq(sdc_grid(-((int64_t)1 << 32) + 1, 1, 1).x, -1);
    ck_assert_int_eq(sdc_grid(1, INT64_MIN, (int64_t)1 << 31).y, -1);
    ck_assert_int_eq(sdc_grid(1, 1, (int64_t)1 << 31).z, -1);
    ck_assert_int_eq(sdc_grid(INT32_MAX, 0, 1).x, INT32_MAX);
}
END_TEST

START_TEST(bindings_are_checked)
{
    SdcFunction *f;
    SdcKernel *k;
    SdcOutput *out, *header;
    const char *none[] = {"B=64", NULL}, *twice[] = {"B=64", "num_warps=4", "B=128"};
    const char *other[] = {"zz=1"}, *bare[] = {"B"};
    REJECTED(sdc_function_get(NULL, "k", NULL, 0, &f));
    WRONG(sdc_function_get(mod, NULL, NULL, 0, &f), "no name of a kernel");
    WRONG(sdc_function_get(mod, "zz", NULL, 0, &f),
          "no kernel is named 'zz'; kernels of the file: 'k'");
    WRONG(sdc_function_get(mod, "k", NULL, 2, &f), "2 bindings are announced");
    WRONG(sdc_function_get(mod, "k", none, -1, &f), "number of bindings is -1");
    WRONG(sdc_function_get(mod, "k", none, 2, &f), "binding 1 is NULL");
    WRONG(sdc_function_get(mod, "k", twice, 3, &f), "'B' is bound twice");
    WRONG(sdc_function_get(mod, "k", other, 1, &f),
          "'zz=1' binds no parameter of 'k'; its parameters: ");
    WRONG(sdc_function_get(mod, "k", bare, 1, &f), "'B' binds nothing: write NAME=VALUE");
    WRONG(sdc_function_get(mod, "k", NULL, 0, NULL), "no place to put it");
    REJECTED(sdc_kernel_get(NULL, "k", types, NULL, 0, &k));
    WRONG(sdc_kernel_get(mod, NULL, types, NULL, 0, &k), "no name of a kernel");
    WRONG(sdc_kernel_get(mod, "zz", types, NULL, 0, &k), "no kernel is named 'zz'");
    WRONG(sdc_kernel_get(mod, "k", types, NULL, 2, &k), "2 bindings are announced");
    WRONG(sdc_kernel_get(mod, "k", types, none, 2, &k), "binding 1 is NULL");
    WRONG(sdc_kernel_get(mod, "k", types, twice, 3, &k), "'B' is bound twice");
    WRONG(sdc_kernel_get(mod, "k", types, NULL, 0, NULL), "no place to put it");
    SdcCompileOptions o = {.signature = types};
    REJECTED(sdc_compile(NULL, &o, &out));
    WRONG(sdc_compile(mod, NULL, &out), "no options");
    WRONG(sdc_compile(mod, &o, NULL), "no place to put the output");
    o.emit = (SdcEmit)99;
    WRONG(sdc_compile(mod, &o, &out), "nothing to emit has number 99");
    o = (SdcCompileOptions){.signature = types, .bind = twice, .nbind = 3};
    WRONG(sdc_compile(mod, &o, &out), "'B' is bound twice");
    o.bind = NULL;
    WRONG(sdc_compile(mod, &o, &out), "3 bindings are announced");
    const char *target[] = {"cpu", NULL};
    SdcBundleOptions b = {.targets = target, .ntarget = 2};
    REJECTED(sdc_bundle(NULL, &b, &out, &header));
    WRONG(sdc_bundle(mod, NULL, &out, &header), "no options");
    WRONG(sdc_bundle(mod, &b, NULL, &header), "no place");
    WRONG(sdc_bundle(mod, &b, &out, NULL), "no place");
    WRONG(sdc_bundle(mod, &b, &out, &header), "target 1 is NULL");
    b = (SdcBundleOptions){.ntarget = 1};
    WRONG(sdc_bundle(mod, &b, &out, &header), "1 targets are announced");
    b = (SdcBundleOptions){.nsignature = 1};
    WRONG(sdc_bundle(mod, &b, &out, &header), "1 signatures are announced");
    b = (SdcBundleOptions){.bind = none, .nbind = 2};
    WRONG(sdc_bundle(mod, &b, &out, &header), "binding 1 is NULL");
}
END_TEST

START_TEST(outputs_are_checked)
{
    size_t size = 1;
    int n = 1;
    ck_assert_ptr_null(sdc_output_data(NULL, &size));
    ck_assert_uint_eq(size, 0);
    ck_assert_ptr_null(sdc_output_meta(NULL, &n));
    ck_assert_int_eq(n, 0);
    ck_assert_ptr_null(sdc_output_meta(NULL, NULL));
    ck_assert_ptr_null(sdc_output_data(NULL, NULL));
    ck_assert_str_eq(sdc_output_times(NULL), "");
    ck_assert_str_eq(sdc_output_explain(NULL), "");
    sdc_output_destroy(NULL);
}
END_TEST

/* Arguments that no launch can have; each function that takes some refuses them. */
START_TEST(arguments_are_checked)
{
    SdcKernel *k;
    SdcGrid g;
    struct {
        const SdcArg *args;
        int n;
        const char *why;
        SdcArg first;
    } bad[] = {
        {NULL, 4, "the arguments of 'k' are NULL", {0, 0, {0}}},
        {args, -1, "takes 4 arguments, -1 are given", args[0]},
        {args, 3, "takes 4 arguments, 3 are given", args[0]},
        {args, INT32_MAX, "takes 4 arguments, 2147483647 are given", args[0]},
        {args, 4, "'x' of 'k' is of kind 77", {77, SDC_FP32, {x}}},
        {args, 4, "'x' of 'k' is of kind -1", {-1, SDC_FP32, {x}}},
        {args, 4, "'x' of 'k' is of type 271", {SDC_ARG_PTR, SDC_FP32 + 256, {x}}},
        {args, 4, "'x' of 'k' is of type -3", {SDC_ARG_PTR, -3, {x}}},
    };
    SdcTuneOptions t = {.grid = "1", .bytes = (size_t[4]){0}};
    SdcTuning *tuning;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        args[0] = bad[i].first;
        WRONG(sdc_specialize(fn, bad[i].args, bad[i].n, &k), bad[i].why);
        WRONG(sdc_specialize_tuned(fn, bad[i].args, bad[i].n, &k), bad[i].why);
        WRONG(sdc_launch(fn, one, bad[i].args, bad[i].n, NULL), bad[i].why);
        WRONG(sdc_launch_tuned(fn, "1", bad[i].args, bad[i].n, NULL), bad[i].why);
        WRONG(sdc_kernel_launch(kernel, one, bad[i].args, bad[i].n, NULL), bad[i].why);
        WRONG(sdc_kernel_launch_threads(kernel, one, bad[i].args, bad[i].n, 1),
              bad[i].why);
        WRONG(sdc_kernel_grid(kernel, "1", bad[i].args, bad[i].n, &g), bad[i].why);
        t.args = bad[i].args;
        t.nargs = bad[i].n;
        WRONG(sdc_tune(mod, &t, &tuning), bad[i].args ? bad[i].why : "are needed");
    }
    args[0] = (SdcArg){SDC_ARG_BUFFER, SDC_FP32, {NULL}};
    WRONG(sdc_launch(fn, one, args, 4, NULL), "argument 'x' of 'k'");
    WRONG(sdc_kernel_launch(kernel, one, args, 4, NULL), "argument 'x' of 'k'");
    args[0] = (SdcArg){SDC_ARG_DESC, SDC_FP32, {NULL}};
    WRONG(sdc_launch(fn, one, args, 4, NULL), "needs a type");
    SdcDesc d = {.dtype = SDC_FP32, .rank = 99};
    args[0] = sdc_desc(&d);
    WRONG(sdc_launch(fn, one, args, 4, NULL), "needs a type");
    WRONG(sdc_kernel_launch(kernel, one, args, 4, NULL), "must be a pointer");
    /* A null pointer is one like any other where nothing is touched. */
    args[0] = sdc_ptr(SDC_FP32, NULL);
    args[2] = sdc_int(0);
    ck_assert_int_eq(sdc_launch(fn, one, args, 4, NULL), SDC_OK);
    ck_assert_int_eq(sdc_kernel_launch(kernel, one, args, 4, NULL), SDC_OK);
}
END_TEST

START_TEST(launches_are_checked)
{
    SdcKernel *k;
    SdcGrid g;
    int64_t value;
    SdcKernelUse use;
    REJECTED(sdc_launch(NULL, one, args, 4, NULL));
    REJECTED(sdc_launch_tuned(NULL, "1", args, 4, NULL));
    REJECTED(sdc_specialize(NULL, args, 4, &k));
    REJECTED(sdc_specialize_tuned(NULL, args, 4, &k));
    REJECTED(sdc_kernel_launch(NULL, one, args, 4, NULL));
    REJECTED(sdc_kernel_launch_threads(NULL, one, args, 4, 1));
    REJECTED(sdc_kernel_grid(NULL, "1", args, 4, &g));
    WRONG(sdc_specialize(fn, args, 4, NULL), "no place to put the kernel");
    WRONG(sdc_specialize_tuned(fn, args, 4, NULL), "no place to put the kernel");
    WRONG(sdc_kernel_grid(kernel, NULL, args, 4, &g), "grid: no text");
    WRONG(sdc_kernel_grid(kernel, "1", args, 4, NULL), "grid: no place to put it");
    WRONG(sdc_launch_tuned(fn, NULL, args, 4, NULL), "grid: no text");
    WRONG(sdc_kernel_launch_threads(kernel, one, args, 4, -1), "-1 threads");
    WRONG(sdc_launch(fn, one, args, 4, x), "takes no stream");
    WRONG(sdc_launch(fn, sdc_grid(-1, 1, 1), args, 4, NULL), "out of range");
    WRONG(sdc_launch(fn, sdc_grid(1, 1LL << 40, 1), args, 4, NULL), "out of range");
    WRONG(sdc_launch(fn, sdc_grid(1, 1, -(1LL << 32) + 1), args, 4, NULL),
          "out of range");
    ck_assert_int_eq(sdc_kernel_writes(NULL, 0), 0);
    ck_assert_int_eq(sdc_kernel_writes(kernel, -1), 0);
    ck_assert_int_eq(sdc_kernel_writes(kernel, 99), 0);
    ck_assert_int_eq(sdc_kernel_constant(NULL, "B", &value), 0);
    ck_assert_int_eq(sdc_kernel_constant(kernel, NULL, &value), 0);
    ck_assert_int_eq(sdc_kernel_constant(kernel, "B", NULL), 0);
    ck_assert_ptr_null(sdc_kernel_ptx(NULL));
    REJECTED(sdc_kernel_use(NULL, &use));
    WRONG(sdc_kernel_use(kernel, &use), "no kernel of a GPU");
}
END_TEST

static SdcStatus
nothing(void *user, void *stream)
{
    (void)user, (void)stream;
    return SDC_OK;
}

START_TEST(measuring_is_checked)
{
    SdcTimes times;
    SdcTuning *t;
    SdcTuneOptions o = {.grid = "1", .args = args, .nargs = 4};
    const char *none[] = {NULL};
    REJECTED(sdc_measure(NULL, nothing, NULL, NULL, &times));
    WRONG(sdc_measure(cx, NULL, NULL, NULL, &times), "nothing to launch");
    WRONG(sdc_measure(cx, nothing, NULL, NULL, NULL), "no place to put the times");
    REJECTED(sdc_module_tune(NULL, ""));
    REJECTED(sdc_tune(NULL, &o, &t));
    WRONG(sdc_tune(mod, NULL, &t), "are needed");
    WRONG(sdc_tune(mod, &o, &t), "are needed"); /* bytes */
    o.bytes = (size_t[4]){0};
    WRONG(sdc_tune(mod, &o, NULL), "no place to put the result");
    o.kernel = "zz";
    WRONG(sdc_tune(mod, &o, &t), "no kernel is named 'zz'");
    o.kernel = NULL;
    o.bind = none;
    o.nbind = 1;
    WRONG(sdc_tune(mod, &o, &t), "binding 0 is NULL");
    o.grid = NULL;
    WRONG(sdc_tune(mod, &o, &t), "are needed");
    ck_assert_ptr_null(sdc_tuning_trial(NULL, 0));
    ck_assert_str_eq(sdc_tuning_line(NULL), "");
    ck_assert_str_eq(sdc_tuning_warnings(NULL), "");
    ck_assert_str_eq(sdc_tuning_times(NULL), "");
    sdc_tuning_destroy(NULL);
    ck_assert_int_eq(sdc_module_tune(mod, NULL), SDC_OK);
}
END_TEST

START_TEST(dlpack_tensors_are_checked)
{
    SdcArg a;
    SdcDesc d;
    const int32_t block[2] = {16, 16};
    REJECTED(sdc_arg_dlpack(NULL, x, &a));
    WRONG(sdc_arg_dlpack(cx, NULL, &a), "DLPack: no tensor");
    WRONG(sdc_arg_dlpack(cx, x, NULL), "no place to put the argument");
    REJECTED(sdc_desc_dlpack(NULL, x, block, &d));
    WRONG(sdc_desc_dlpack(cx, NULL, block, &d), "DLPack: no tensor");
    WRONG(sdc_desc_dlpack(cx, x, NULL, &d), "no sizes of a block");
    WRONG(sdc_desc_dlpack(cx, x, block, NULL), "no place to put the descriptor");
}
END_TEST

START_TEST(ranges_are_checked)
{
    SdcContext *plain = cx;
    SdcContextOptions o = {.check = SDC_CHECK_ACCESS};
    ck_assert_int_eq(sdc_context_create(&o, &cx), SDC_OK);
    REJECTED(sdc_register_range(NULL, x, 4, "x"));
    WRONG(sdc_register_range(cx, NULL, 4, "x"), "begins at NULL");
    WRONG(sdc_register_range(cx, x, SIZE_MAX, "x"), "beyond all addresses");
    sdc_unregister_range(NULL, x);
    sdc_unregister_range(cx, NULL);
    REJECTED(sdc_range_unwritten(NULL, x));
    WRONG(sdc_range_unwritten(cx, NULL), "no range begins");
    REJECTED(sdc_range_shape(NULL, x, 1, (int64_t[]){4}));
    WRONG(sdc_range_shape(cx, x, 1, (int64_t[]){4}), "no range begins");
    WRONG(sdc_range_shape(cx, x, 1, NULL), "a range has at most");
    WRONG(sdc_range_shape(cx, x, 99, (int64_t[]){4}), "at most 32 dimensions");
    WRONG(sdc_range_shape(cx, x, -1, (int64_t[]){4}), "at most 32 dimensions");
    sdc_context_destroy(cx);
    cx = plain;
}
END_TEST

START_TEST(nothing_is_left_out)
{
    const char *self = "tests/unit/test_api_misuse.c";
    ck_assert_int_gt(all_called("runtime/sdc.h", "\nSDC_API ", "(", self), 50);
}
END_TEST

int
main(void)
{
    Suite *suite = suite_create("api_misuse");
    TCase *c = tcase_create("api_misuse");
    tcase_add_checked_fixture(c, setup, teardown);
    tcase_set_timeout(c, 100);
    tcase_add_test(c, contexts_are_checked);
    tcase_add_test(c, modules_are_checked);
    tcase_add_test(c, dtypes_are_checked);
    tcase_add_test(c, bindings_are_checked);
    tcase_add_test(c, outputs_are_checked);
    tcase_add_test(c, arguments_are_checked);
    tcase_add_test(c, launches_are_checked);
    tcase_add_test(c, measuring_is_checked);
    tcase_add_test(c, dlpack_tensors_are_checked);
    tcase_add_test(c, ranges_are_checked);
    tcase_add_test(c, nothing_is_left_out);
    suite_add_tcase(suite, c);
    SRunner *r = srunner_create(suite);
    srunner_run_all(r, CK_NORMAL);
    int failed = srunner_ntests_failed(r);
    srunner_free(r);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
