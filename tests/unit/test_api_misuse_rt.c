/* Every function of the launching library (sdcrt.h, cuda.h, bundle.h, expr.h) with NULL
   for each of its arguments, on the fake driver: a status and a message, no signal. */
#include "runtime/rt/bundle.h"
#include "runtime/rt/cuda.h"
#include "runtime/rt/expr.h"
#include "runtime/sdc.h"
#include "tests/unit/all_called.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FAKE SDC_TMP "/../../libfakecuda.so"

static SdcrtCuda *gpu;
static SdcrtError why;

static void
setup(void)
{
    setenv("SDC_LIBCUDA", FAKE, 1);
    ck_assert_msg(sdcrt_cuda_open(0, &gpu, &why) == SDCRT_OK, "%s", why.text);
}

static void
teardown(void)
{
    sdcrt_cuda_close(gpu);
}

/* Refused with a message that names what is missing, and without a place for one, too. */
#define WRONG(what, function, ...)                                                     \
    do {                                                                               \
        memset(&why, 0, sizeof why);                                                   \
        ck_assert_int_eq(function(__VA_ARGS__, &why), SDCRT_ERROR_ARGUMENT);           \
        ck_assert_msg(strstr(why.text, (what)) != NULL, "%s: %s", #function, why.text); \
        ck_assert_int_eq(function(__VA_ARGS__, NULL), SDCRT_ERROR_ARGUMENT);           \
    } while (0)

START_TEST(devices_are_checked)
{
    int n, driver;
    uint64_t id;
    SdcrtCuda *c;
    WRONG("open: out is NULL", sdcrt_cuda_open, 0, NULL);
    WRONG("count: devices", sdcrt_cuda_count, NULL, &driver);
    WRONG("count: driver", sdcrt_cuda_count, &n, NULL);
    ck_assert_int_ne(sdcrt_cuda_open(-1, &c, NULL), SDCRT_OK);
    ck_assert_ptr_null(c);
    sdcrt_cuda_close(NULL);
    ck_assert_ptr_null(sdcrt_cuda_info(NULL));
    WRONG("the device", sdcrt_cuda_context, NULL, &id);
    WRONG("context: id", sdcrt_cuda_context, gpu, NULL);
}
END_TEST

START_TEST(memory_is_checked)
{
    uint64_t p;
    size_t a, b;
    char byte = 0;
    WRONG("the device", sdcrt_cuda_alloc, NULL, 8, &p);
    WRONG("alloc: out", sdcrt_cuda_alloc, gpu, 8, NULL);
    WRONG("the device", sdcrt_cuda_borrow, NULL, 8, NULL, &p);
    WRONG("borrow: out", sdcrt_cuda_borrow, gpu, 8, NULL, NULL);
    ck_assert_int_eq(sdcrt_cuda_lends(NULL), 0);
    ck_assert_int_eq(sdcrt_cuda_lends(gpu), 1);
    ck_assert_int_eq(sdcrt_cuda_borrow(gpu, 8, NULL, &p, NULL), SDCRT_OK);
    WRONG("the device", sdcrt_cuda_return, NULL, p, NULL);
    ck_assert_int_eq(sdcrt_cuda_return(gpu, p, NULL, NULL), SDCRT_OK);
    ck_assert_int_eq(sdcrt_cuda_return(NULL, 0, NULL, NULL), SDCRT_OK);
    ck_assert_int_eq(sdcrt_cuda_alloc(gpu, 8, &p, NULL), SDCRT_OK);
    WRONG("the device", sdcrt_cuda_free, NULL, p);
    ck_assert_int_eq(sdcrt_cuda_free(NULL, 0, NULL), SDCRT_OK);
    WRONG("the device", sdcrt_cuda_write, NULL, p, &byte, 1);
    WRONG("write: from", sdcrt_cuda_write, gpu, p, NULL, 1);
    ck_assert_int_eq(sdcrt_cuda_write(gpu, p, NULL, 0, NULL), SDCRT_OK);
    WRONG("the device", sdcrt_cuda_read, NULL, &byte, p, 1);
    WRONG("read: to", sdcrt_cuda_read, gpu, NULL, p, 1);
    WRONG("the device", sdcrt_cuda_copy, NULL, p, p, 1);
    WRONG("the device", sdcrt_cuda_fill, NULL, p, 0, 1);
    WRONG("the device", sdcrt_cuda_memory, NULL, &a, &b);
    WRONG("memory: free_bytes", sdcrt_cuda_memory, gpu, NULL, &b);
    WRONG("memory: total", sdcrt_cuda_memory, gpu, &a, NULL);
    ck_assert_int_eq(sdcrt_cuda_free(gpu, p, NULL), SDCRT_OK);
}
END_TEST

START_TEST(streams_are_checked)
{
    void *out, *event;
    float ms;
    WRONG("the device", sdcrt_cuda_stream_create, NULL, &out);
    WRONG("stream: out", sdcrt_cuda_stream_create, gpu, NULL);
    sdcrt_cuda_stream_destroy(NULL, &ms);
    sdcrt_cuda_stream_destroy(gpu, NULL);
    WRONG("the device", sdcrt_cuda_stream_wait, NULL, NULL);
    WRONG("the device", sdcrt_cuda_wait, NULL);
    WRONG("the device", sdcrt_cuda_event_create, NULL, &event);
    WRONG("event: out", sdcrt_cuda_event_create, gpu, NULL);
    ck_assert_int_eq(sdcrt_cuda_event_create(gpu, &event, NULL), SDCRT_OK);
    WRONG("the device", sdcrt_cuda_event_record, NULL, event, NULL);
    WRONG("event_record: event", sdcrt_cuda_event_record, gpu, NULL, NULL);
    WRONG("the device", sdcrt_cuda_event_ms, NULL, event, event, &ms);
    WRONG("event_ms: from", sdcrt_cuda_event_ms, gpu, NULL, event, &ms);
    WRONG("event_ms: to", sdcrt_cuda_event_ms, gpu, event, NULL, &ms);
    WRONG("event_ms: ms", sdcrt_cuda_event_ms, gpu, event, event, NULL);
    sdcrt_cuda_event_destroy(NULL, event);
    sdcrt_cuda_event_destroy(gpu, NULL);
    sdcrt_cuda_event_destroy(gpu, event);
    WRONG("the device", sdcrt_cuda_capture, NULL, NULL);
    ck_assert_int_eq(sdcrt_cuda_is_capturing(NULL, NULL), 1);
    ck_assert_int_eq(sdcrt_cuda_is_capturing(gpu, NULL), 0);
    WRONG("the device", sdcrt_cuda_captured, NULL, NULL, &out);
    WRONG("captured: graph", sdcrt_cuda_captured, gpu, NULL, NULL);
    WRONG("the device", sdcrt_cuda_graph_launch, NULL, &ms, NULL);
    WRONG("graph_launch: graph", sdcrt_cuda_graph_launch, gpu, NULL, NULL);
    sdcrt_cuda_graph_destroy(NULL, &ms);
    sdcrt_cuda_graph_destroy(gpu, NULL);
}
END_TEST

START_TEST(kernels_are_checked)
{
    static const char text[] = "import triton\n"
                               "import triton.language as tl\n"
                               "@triton.jit\n"
                               "def k(x):\n"
                               "    tl.store(x, 1.0)\n";
    SdcContext *cx;
    SdcModule *m;
    SdcOutput *ptx;
    SdcrtCudaKernel *k;
    int n;
    SdcCompileOptions o = {.signature = "*fp32", .target = "sm_80", .emit = SDC_EMIT_ASM};
    ck_assert_int_eq(sdc_context_create(NULL, &cx), SDC_OK);
    ck_assert_int_eq(sdc_module_load_text(cx, "k.tk", text, sizeof text - 1, 0, &m), 0);
    ck_assert_msg(sdc_compile(m, &o, &ptx) == SDC_OK, "%s", sdc_error(cx));
    const char *code = sdc_output_data(ptx, NULL);
    const SdcrtMeta *meta = sdc_output_meta(ptx, &n);
    WRONG("the device", sdcrt_cuda_load, NULL, code, meta, &k);
    WRONG("load: ptx", sdcrt_cuda_load, gpu, NULL, meta, &k);
    WRONG("load: meta", sdcrt_cuda_load, gpu, code, NULL, &k);
    WRONG("load: out", sdcrt_cuda_load, gpu, code, meta, NULL);
    WRONG("load: out", sdcrt_cuda_load_beside, gpu, code, meta, NULL);
    ck_assert_int_eq(sdcrt_cuda_load(gpu, code, meta, &k, NULL), SDCRT_OK);
    const SdcGrid grid = {1, 1, 1};
    const uint64_t args[1] = {256};
    WRONG("the device", sdcrt_cuda_launch, NULL, k, args, grid, NULL);
    WRONG("launch: the kernel", sdcrt_cuda_launch, gpu, NULL, args, grid, NULL);
    WRONG("launch: args", sdcrt_cuda_launch, gpu, k, NULL, grid, NULL);
    ck_assert_ptr_null(sdcrt_cuda_use(NULL));
    sdcrt_cuda_unload(gpu, NULL);
    sdcrt_cuda_unload(NULL, k);
    sdcrt_cuda_unload(gpu, k);
    sdc_output_destroy(ptx);
    sdc_context_destroy(cx);
}
END_TEST

static void
entry(const uint64_t *args, const SdcGrid *grid, int64_t first, int64_t last,
      void *scratch)
{
    (void)args, (void)grid, (void)first, (void)last, (void)scratch;
}

START_TEST(programs_are_checked)
{
    const SdcGrid grid = {2, 1, 1};
    SdcrtPool *pool = sdcrt_pool_create(-5);
    ck_assert_ptr_nonnull(pool);
    sdcrt_pool_destroy(NULL);
    ck_assert_int_eq(sdcrt_pool_threads(NULL), 0);
    ck_assert_int_eq(sdcrt_grid_size(sdc_grid(2, -3, 1)), -1);
    ck_assert_int_eq(sdcrt_cpu_level(NULL), 0);
    ck_assert_int_eq(sdcrt_cpu_level("x86-64-v5"), 0);
    ck_assert_int_eq(sdcrt_cpu_level("sapphirerapids"), 5);
    ck_assert_int_ge(sdcrt_cpu_host_level(), 1);
    int bad = SDCRT_ERROR_ARGUMENT;
    ck_assert_int_eq(sdcrt_cpu_launch(NULL, entry, NULL, grid, 0, 0), bad);
    ck_assert_int_eq(sdcrt_cpu_launch(pool, NULL, NULL, grid, 0, 0), bad);
    ck_assert_int_eq(sdcrt_cpu_launch(pool, entry, NULL, grid, -1, 0), bad);
    ck_assert_int_eq(sdcrt_cpu_launch(pool, entry, NULL, grid, 0, -9), SDCRT_OK);
    ck_assert_int_eq(sdcrt_run_range(NULL, NULL, grid, 0, 0, 2), bad);
    ck_assert_int_eq(sdcrt_run_range(entry, NULL, grid, -1, 0, 2), bad);
    ck_assert_int_eq(sdcrt_run_range(entry, NULL, grid, 0, -1, 2), bad);
    ck_assert_int_eq(sdcrt_run_range(entry, NULL, grid, 0, 0, 3), bad);
    sdcrt_pool_destroy(pool);
}
END_TEST

START_TEST(bundles_are_checked)
{
    static const SdcrtBundle b = {.name = "k"};
    SdcrtCall call;
    WRONG("the bundle", sdcrt_bundle_prepare, NULL, &call, NULL, NULL, 0);
    WRONG("prepare: call", sdcrt_bundle_prepare, &b, NULL, NULL, NULL, 0);
    WRONG("the arguments", sdcrt_bundle_prepare, &b, &call, NULL, NULL, 1);
    WRONG("the bundle", sdcrt_bundle_cpu, NULL, NULL, NULL, NULL, 0);
    WRONG("the arguments", sdcrt_bundle_cpu, &b, NULL, NULL, NULL, 1);
    WRONG("the bundle", sdcrt_bundle_cuda, NULL, gpu, NULL, NULL, NULL, 0);
    WRONG("the device", sdcrt_bundle_cuda, &b, NULL, NULL, NULL, NULL, 0);
    WRONG("the arguments", sdcrt_bundle_cuda, &b, gpu, NULL, NULL, NULL, 1);
    WRONG("the bundle", sdcrt_bundle_load, NULL, gpu);
    WRONG("the device", sdcrt_bundle_load, &b, NULL);
}
END_TEST

static int
lookup(void *user, const char *name, size_t n, int64_t *value)
{
    (void)user, (void)name, (void)n;
    *value = 0;
    return 2; /* argument 0 */
}

START_TEST(expressions_are_checked)
{
    SdcrtExpr x;
    SdcrtExprError e;
    int64_t v;
    ck_assert_int_eq(sdcrt_expr_parse(NULL, 3, lookup, NULL, &x, 1, &e), -1);
    ck_assert_int_eq(sdcrt_expr_parse("1+1", 3, NULL, NULL, &x, 1, &e), -1);
    ck_assert_int_eq(sdcrt_expr_parse("1+1", 3, lookup, NULL, NULL, 1, &e), -1);
    ck_assert_int_eq(sdcrt_expr_parse("1+", 2, lookup, NULL, &x, 1, NULL), -1);
    ck_assert_int_eq(sdcrt_expr_parse("1+1", 3, lookup, NULL, &x, 0, &e), -1);
    ck_assert_int_eq(sdcrt_expr_parse("1+1", 3, lookup, NULL, &x, -1, &e), -1);
    ck_assert_int_eq(sdcrt_expr_parse("a", 1, lookup, NULL, &x, 1, &e), 1);
    ck_assert_int_eq(sdcrt_expr_eval(&x, NULL, &v, &e), 0);
    ck_assert_int_eq(sdcrt_expr_eval(NULL, NULL, &v, &e), 0);
    ck_assert_int_eq(sdcrt_expr_eval(&x, NULL, NULL, &e), 0);
    ck_assert_int_eq(sdcrt_expr_eval(&x, NULL, &v, NULL), 0);
}
END_TEST

START_TEST(nothing_is_left_out)
{
    static const char *const headers[] = {"runtime/rt/sdcrt.h", "runtime/rt/cuda.h",
                                          "runtime/rt/bundle.h", "runtime/rt/expr.h"};
    const char *self = "tests/unit/test_api_misuse_rt.c";
    int n = 0;
    for (size_t h = 0; h < sizeof headers / sizeof *headers; h++)
        n += all_called(headers[h], "\nSDCRT_API ", "", self);
    ck_assert_int_gt(n, 35);
}
END_TEST

int
main(void)
{
    Suite *suite = suite_create("api_misuse_rt");
    TCase *c = tcase_create("api_misuse_rt");
    tcase_add_checked_fixture(c, setup, teardown);
    tcase_set_timeout(c, 100);
    tcase_add_test(c, devices_are_checked);
    tcase_add_test(c, memory_is_checked);
    tcase_add_test(c, streams_are_checked);
    tcase_add_test(c, kernels_are_checked);
    tcase_add_test(c, programs_are_checked);
    tcase_add_test(c, bundles_are_checked);
    tcase_add_test(c, expressions_are_checked);
    tcase_add_test(c, nothing_is_left_out);
    suite_add_tcase(suite, c);
    SRunner *r = srunner_create(suite);
    srunner_run_all(r, CK_NORMAL);
    int failed = srunner_ntests_failed(r);
    srunner_free(r);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
