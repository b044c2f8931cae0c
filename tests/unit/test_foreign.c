/* What hosts of another language or another version count on: the argument makers are
   functions of the library, and option structs are read by the size that they say. */
#include "runtime/sdc.h"

#include <check.h>
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

/* The library's function, not the header's. */
#define OF_LIBRARY(type, name, ...)                                                      \
    type (*lib_##name)(__VA_ARGS__);                                                     \
    void *found_##name = dlsym(RTLD_DEFAULT, #name);                                     \
    ck_assert_msg(found_##name != NULL, "%s is no symbol of libsdc", #name);             \
    memcpy(&lib_##name, &found_##name, sizeof found_##name)

static void
same(SdcArg a, SdcArg b)
{
    ck_assert_int_eq(a.kind, b.kind);
    ck_assert_int_eq(a.dtype, b.dtype);
    ck_assert_int_eq(a.v.i, b.v.i);
}

START_TEST(makers_are_symbols)
{
    float data[4];
    SdcBuffer buffer = {SDC_FP32, data, sizeof data};
    SdcDesc desc = {.dtype = SDC_FP16, .rank = 1, .base = data};
    OF_LIBRARY(SdcArg, sdc_ptr, SdcDtype, const void *);
    OF_LIBRARY(SdcArg, sdc_buffer, const SdcBuffer *);
    OF_LIBRARY(SdcArg, sdc_int, int64_t);
    OF_LIBRARY(SdcArg, sdc_int_of, SdcDtype, int64_t);
    OF_LIBRARY(SdcArg, sdc_float, double);
    OF_LIBRARY(SdcArg, sdc_float_of, SdcDtype, double);
    OF_LIBRARY(SdcArg, sdc_none, void);
    OF_LIBRARY(SdcArg, sdc_tuple, const SdcArg *, int);
    OF_LIBRARY(SdcArg, sdc_desc, const SdcDesc *);
    OF_LIBRARY(SdcArg, sdc_desc_nan, const SdcDesc *);
    OF_LIBRARY(SdcArg, sdc_desc_tf32, const SdcDesc *);
    OF_LIBRARY(SdcGrid, sdc_grid, int64_t, int64_t, int64_t);
    same(lib_sdc_ptr(SDC_FP32, data), sdc_ptr(SDC_FP32, data));
    same(lib_sdc_buffer(&buffer), sdc_buffer(&buffer));
    same(lib_sdc_int(1ll << 40), sdc_int(1ll << 40));
    same(lib_sdc_int_of(SDC_I8, -3), sdc_int_of(SDC_I8, -3));
    same(lib_sdc_float(0.5), sdc_float(0.5));
    same(lib_sdc_float_of(SDC_FP64, 0.1), sdc_float_of(SDC_FP64, 0.1));
    same(lib_sdc_none(), sdc_none());
    SdcArg two[] = {sdc_int(1), sdc_int(2)};
    same(lib_sdc_tuple(two, 2), sdc_tuple(two, 2));
    same(lib_sdc_desc(&desc), sdc_desc(&desc));
    same(lib_sdc_desc_nan(&desc), sdc_desc_nan(&desc));
    same(lib_sdc_desc_tf32(&desc), sdc_desc_tf32(&desc));
    SdcGrid g = lib_sdc_grid(3, -1, 1ll << 40);
    ck_assert(g.x == 3 && g.y == -1 && g.z == -1);
}
END_TEST

/* A host whose header ends after `threads`, and one that knows a member more. */
START_TEST(options_of_other_versions)
{
    SdcContext *cx = NULL;
    SdcContextOptions old;
    memset(&old, 0x55, sizeof old); /* what lies behind the older struct */
    old.size = offsetof(SdcContextOptions, threads) + sizeof old.threads;
    old.include_dirs = NULL;
    old.ninclude = 0;
    old.threads = 3;
    ck_assert_int_eq(sdc_context_create(&old, &cx), SDC_OK);
    ck_assert_int_eq(sdc_context_threads(cx), 3);

    struct {
        SdcContextOptions o;
        uint64_t more;
    } newer = {.o = {.size = sizeof newer, .threads = 2}};
    SdcContext *other = NULL;
    ck_assert_int_eq(sdc_context_create(&newer.o, &other), SDC_OK);
    ck_assert_int_eq(sdc_context_threads(other), 2);
    sdc_context_destroy(other);
    newer.more = 1;
    ck_assert_int_eq(sdc_context_create(&newer.o, &other), SDC_ERROR_ARGUMENT);
    newer.o.size = 4;
    ck_assert_int_eq(sdc_context_create(&newer.o, &other), SDC_ERROR_ARGUMENT);
    sdc_context_destroy(cx);
}
END_TEST

START_TEST(wrong_sizes_are_said)
{
    static const char text[] = "import triton\nimport triton.language as tl\n"
                               "@triton.jit\ndef f(x):\n    tl.store(x, 1.0)\n";
    SdcContext *cx;
    SdcModule *mod, *fused;
    SdcOutput *out, *header;
    const SdcCheck *checked;
    SdcTuning *tuning;
    ck_assert_int_eq(sdc_context_create(NULL, &cx), SDC_OK);
    ck_assert_int_eq(sdc_module_load_text(cx, "f.tk", text, strlen(text), SDC_LANG_AUTO,
                                          &mod), SDC_OK);
    SdcCompileOptions compile = {.size = 3};
    ck_assert_int_eq(sdc_compile(mod, &compile, &out), SDC_ERROR_ARGUMENT);
    ck_assert_ptr_nonnull(strstr(sdc_error(cx), "compile: options of 3 bytes"));
    SdcBundleOptions bundle = {.size = 3};
    ck_assert_int_eq(sdc_bundle(mod, &bundle, &out, &header), SDC_ERROR_ARGUMENT);
    ck_assert_ptr_nonnull(strstr(sdc_error(cx), "bundle: options of 3 bytes"));
    SdcCheckOptions check = {.size = 3};
    ck_assert_int_eq(sdc_module_check(mod, &check, &checked), SDC_ERROR_ARGUMENT);
    ck_assert_ptr_nonnull(strstr(sdc_error(cx), "check: options of 3 bytes"));
    SdcFuseOptions fuse = {.size = 3, .kernels = "f"};
    ck_assert_int_eq(sdc_fuse(mod, &fuse, &fused), SDC_ERROR_ARGUMENT);
    ck_assert_ptr_nonnull(strstr(sdc_error(cx), "fuse: options of 3 bytes"));
    SdcTuneOptions tune = {.size = 3};
    ck_assert_int_eq(sdc_tune(mod, &tune, &tuning), SDC_ERROR_ARGUMENT);
    ck_assert_ptr_nonnull(strstr(sdc_error(cx), "tune: options of 3 bytes"));
    sdc_context_destroy(cx);
}
END_TEST

int
main(void)
{
    Suite *s = suite_create("foreign");
    TCase *t = tcase_create("hosts");
    tcase_add_test(t, makers_are_symbols);
    tcase_add_test(t, options_of_other_versions);
    tcase_add_test(t, wrong_sizes_are_said);
    suite_add_tcase(s, t);
    SRunner *r = srunner_create(s);
    srunner_run_all(r, CK_ENV);
    int failed = srunner_ntests_failed(r);
    srunner_free(r);
    return failed != 0;
}
