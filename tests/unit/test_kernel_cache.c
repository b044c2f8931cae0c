/* Kernels out of the cache behind the public interface: found by the next context, not
   found when anything that the compiler is given differs, and never needed. */
#include "runtime/rt/cuda.h"
#include "runtime/sdc.h"

#include <check.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char dir[512];

static void
setup(void)
{
    snprintf(dir, sizeof dir, "%s/kernels-XXXXXX", SDC_TMP);
    ck_assert_ptr_nonnull(mkdtemp(dir));
    unsetenv("SDC_CACHE");
    setenv("SDC_LIBCUDA", SDC_TMP "/../../libfakecuda.so", 1);
}

static void
teardown(void)
{
    char cmd[600];
    snprintf(cmd, sizeof cmd, "chmod -R u+rwx '%s'; rm -rf '%s'", dir, dir);
    ck_assert_int_eq(system(cmd), 0);
}

static void
write_text(const char *name, const char *text)
{
    char path[600];
    snprintf(path, sizeof path, "%s/%s", dir, name);
    FILE *f = fopen(path, "w");
    ck_assert_ptr_nonnull(f);
    fputs(text, f);
    fclose(f);
}

static const char source[] = "import triton\n"
                             "import triton.language as tl\n"
                             "from helper import change\n"
                             "@triton.jit\n"
                             "def k(x, n, flag, BLOCK: tl.constexpr):\n"
                             "    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)\n"
                             "    v = tl.load(x + i, mask=i < n)\n"
                             "    if flag is not None:\n"
                             "        v = v + 100\n"
                             "    tl.store(x + i, change(v), mask=i < n)\n";
static const char helper[] = "import triton\n"
                             "@triton.jit\n"
                             "def change(v):\n"
                             "    return v %s\n";

static void
write_helper(const char *what)
{
    char text[200];
    snprintf(text, sizeof text, helper, what);
    write_text("helper.py", text);
}

typedef struct Result {
    float first;
    int64_t hits, misses, entries;
} Result;

/* A launch in a context of its own: what it computed of 1, and what the cache did. */
static Result
launch(const char *target, const char *block, SdcArg flag)
{
    char path[600], cache[600];
    snprintf(path, sizeof path, "%s/k.tk", dir);
    snprintf(cache, sizeof cache, "%s/cache", dir);
    SdcContextOptions o = {.target = target, .cache_dir = cache};
    SdcContext *cx;
    SdcModule *m;
    SdcFunction *f;
    SdcCacheInfo info;
    static _Alignas(64) float x[256];
    for (int i = 0; i < 256; i++)
        x[i] = 1;
    ck_assert_int_eq(sdc_context_create(&o, &cx), SDC_OK);
    ck_assert_msg(sdc_module_load_file(cx, path, &m) == SDC_OK, "%s", sdc_error(cx));
    ck_assert_int_eq(sdc_function_get(m, "k", &block, 1, &f), SDC_OK);
    SdcArg args[] = {sdc_ptr(SDC_FP32, x), sdc_int(256), flag};
    SdcKernel *k;
    ck_assert_msg(sdc_specialize(f, args, 3, &k) == SDC_OK, "%s", sdc_error(cx));
    if (strcmp(target, "cpu") == 0)
        ck_assert_msg(sdc_launch(f, sdc_grid(4, 1, 1), args, 3, NULL) == SDC_OK, "%s",
                      sdc_error(cx));
    int64_t value;
    ck_assert_int_eq(sdc_kernel_constant(k, "BLOCK", &value), 1);
    ck_assert_int_eq(value, atoi(block + 6));
    Result r = {.first = x[0]};
    if (sdc_cache(cx, SDC_CACHE_STAT, -1, &info) == SDC_OK) {
        r.hits = info.hits;
        r.misses = info.misses;
        r.entries = info.entries;
    }
    sdc_context_destroy(cx);
    return r;
}

START_TEST(found_again)
{
    write_text("k.tk", source);
    write_helper("* 3");
    Result r = launch("cpu", "BLOCK=64", sdc_none());
    ck_assert(r.first == 3 && r.misses == 1 && r.hits == 0 && r.entries == 1);
    r = launch("cpu", "BLOCK=64", sdc_none());
    ck_assert(r.first == 3 && r.misses == 0 && r.hits == 1 && r.entries == 1);
    /* Each of these is another kernel. */
    r = launch("cpu", "BLOCK=128", sdc_none());
    ck_assert(r.first == 3 && r.misses == 1);
    r = launch("cpu", "BLOCK=64", sdc_int(2));
    ck_assert(r.first == 303 && r.misses == 1);
    r = launch("cuda", "BLOCK=64", sdc_none());
    ck_assert(r.misses == 1);
    r = launch("cuda", "BLOCK=64", sdc_none());
    ck_assert(r.hits == 1 && r.entries == 4);
    /* So is an import that has changed, and the one before is found no more. */
    write_helper("* 5");
    r = launch("cpu", "BLOCK=64", sdc_none());
    ck_assert(r.first == 5 && r.misses == 1);
    r = launch("cpu", "BLOCK=64", sdc_none());
    ck_assert(r.first == 5 && r.hits == 1);
}
END_TEST

static const char product[] =
    "import triton\n"
    "import triton.language as tl\n"
    "@triton.jit\n"
    "def p(a, b, c, K):\n"
    "    m = tl.program_id(0) * 128 + tl.arange(0, 128)\n"
    "    n = tl.arange(0, 256)\n"
    "    k = tl.arange(0, 64)\n"
    "    acc = tl.zeros((128, 256), tl.float32)\n"
    "    for i in range(0, K, 64):\n"
    "        x = tl.load(a + m[:, None] * K + (i + k)[None, :])\n"
    "        y = tl.load(b + (i + k)[:, None] * 256 + n[None, :])\n"
    "        acc = tl.dot(x, y, acc)\n"
    "    tl.store(c + m[:, None] * 256 + n[None, :], acc.to(tl.float16))\n";

/* A persistent kernel has other code for launches of as many programs as the 132 SMs of
   the driver run at once, and the same for more. */
START_TEST(other_code_for_one_round)
{
    static const struct {
        int programs;
        int64_t misses;
        bool captured; /* nothing may be compiled or loaded then */
    } launches[] = {{133, 1, false}, {132, 1, true}, {132, 2, false},
                    {1, 2, true},    {1, 2, false},  {400, 2, false}};
    char path[600], cache[600];
    snprintf(path, sizeof path, "%s/p.tk", dir);
    snprintf(cache, sizeof cache, "%s/cache", dir);
    write_text("p.tk", product);
    setenv("FAKE_CUDA_SM", "90", 1);
    SdcContextOptions o = {.target = "cuda", .cache_dir = cache};
    SdcContext *cx;
    SdcModule *m;
    SdcFunction *f;
    SdcCacheInfo info;
    static const char *const bind[] = {"num_warps=8", "num_stages=3"};
    ck_assert_int_eq(sdc_context_create(&o, &cx), SDC_OK);
    ck_assert_msg(sdc_module_load_file(cx, path, &m) == SDC_OK, "%s", sdc_error(cx));
    ck_assert_int_eq(sdc_function_get(m, "p", bind, 2, &f), SDC_OK);
    void *at = (void *)(uintptr_t)(1 << 20);
    SdcArg args[] = {sdc_ptr(SDC_FP16, at), sdc_ptr(SDC_FP16, at), sdc_ptr(SDC_FP16, at),
                     sdc_int(128)};
    for (size_t i = 0; i < sizeof launches / sizeof *launches; i++) {
        SdcDevice d;
        SdcrtError why;
        void *stream = NULL, *graph = NULL;
        ck_assert_int_eq(sdc_context_device(cx, &d), SDC_OK);
        if (launches[i].captured) {
            ck_assert_int_eq(sdcrt_cuda_stream_create(d.cuda, &stream, &why), SDCRT_OK);
            ck_assert_int_eq(sdcrt_cuda_capture(d.cuda, stream, &why), SDCRT_OK);
        }
        ck_assert_msg(sdc_launch(f, sdc_grid(launches[i].programs, 1, 1), args, 4,
                                 stream) == SDC_OK,
                      "%s", sdc_error(cx));
        if (launches[i].captured) {
            ck_assert_int_eq(sdcrt_cuda_captured(d.cuda, stream, &graph, &why), SDCRT_OK);
            sdcrt_cuda_graph_destroy(d.cuda, graph);
            sdcrt_cuda_stream_destroy(d.cuda, stream);
        }
        ck_assert_int_eq(sdc_cache(cx, SDC_CACHE_STAT, -1, &info), SDC_OK);
        ck_assert_int_eq(info.misses, launches[i].misses);
    }
    sdc_context_destroy(cx);
    unsetenv("FAKE_CUDA_SM");
}
END_TEST

START_TEST(never_needed)
{
    write_text("k.tk", source);
    write_helper("+ 1");
    write_text("cache", "a file, where the folder should be\n");
    Result r = launch("cpu", "BLOCK=64", sdc_none());
    ck_assert(r.first == 2 && r.hits == 0 && r.entries == 0);
    setenv("SDC_CACHE", "off", 1);
    r = launch("cpu", "BLOCK=64", sdc_none());
    ck_assert(r.first == 2 && r.hits == 0);
}
END_TEST

static void *
launch_thread(void *arg)
{
    (void)arg;
    char path[600], cache[600];
    snprintf(path, sizeof path, "%s/k.tk", dir);
    snprintf(cache, sizeof cache, "%s/cache", dir);
    SdcContextOptions o = {.cache_dir = cache, .threads = 1};
    for (int i = 0; i < 6; i++) {
        SdcContext *cx;
        SdcModule *m;
        SdcFunction *f;
        float x[64] = {1};
        const char *bind = i % 2 ? "BLOCK=64" : "BLOCK=32";
        if (sdc_context_create(&o, &cx) != SDC_OK)
            return "context";
        if (sdc_module_load_file(cx, path, &m) != SDC_OK ||
            sdc_function_get(m, "k", &bind, 1, &f) != SDC_OK)
            return "function";
        SdcArg args[] = {sdc_ptr(SDC_FP32, x), sdc_int(64), sdc_none()};
        if (sdc_launch(f, sdc_grid(1, 1, 1), args, 3, NULL) != SDC_OK)
            return "launch";
        if (x[0] != 8)
            return "result";
        sdc_context_destroy(cx);
    }
    return NULL;
}

START_TEST(shared_by_threads)
{
    enum { THREADS = 8 };
    pthread_t t[THREADS];
    write_text("k.tk", source);
    write_helper("* 8");
    for (int i = 0; i < THREADS; i++)
        ck_assert_int_eq(pthread_create(&t[i], NULL, launch_thread, NULL), 0);
    for (int i = 0; i < THREADS; i++) {
        void *wrong;
        pthread_join(t[i], &wrong);
        ck_assert_msg(!wrong, "%s", (char *)wrong);
    }
}
END_TEST

int
main(void)
{
    Suite *s = suite_create("kernel cache");
    TCase *t = tcase_create("kernel cache");
    tcase_set_timeout(t, 60);
    tcase_add_checked_fixture(t, setup, teardown);
    tcase_add_test(t, found_again);
    tcase_add_test(t, other_code_for_one_round);
    tcase_add_test(t, never_needed);
    tcase_add_test(t, shared_by_threads);
    suite_add_tcase(s, t);
    SRunner *r = srunner_create(s);
    srunner_run_all(r, CK_NORMAL);
    int failed = srunner_ntests_failed(r);
    srunner_free(r);
    return failed != 0;
}
