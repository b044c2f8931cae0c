/* The runtime on a real GPU: streams, graphs, contexts of the caller, threads; every
   refusal and a failing kernel, with the context usable afterwards where it can be;
   several devices at once. What a launch costs is launch.c. The same with the fake
   driver, and every call failing, is tests/unit/test_cuda.c. */
#include "runtime/rt/cuda.h"
#include "runtime/sdc.h"

#include <check.h>
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { N = 1 << 16, BYTES = N * 4, GRID = N / 1024 };

static const char text[] =
    "import triton\n"
    "import triton.language as tl\n"
    "@triton.jit\n"
    "def more(x, y, n, BLOCK: tl.constexpr):\n"
    "    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)\n"
    "    a = tl.load(x + i, mask=i < n)\n"
    "    tl.store(x + i, a + tl.load(y + i, mask=i < n), mask=i < n)\n"
    "@triton.jit\n"
    "def wild(x, far):\n"
    "    tl.store(x + far, 1.0)\n";

typedef struct Env {
    SdcContext *cx;
    SdcModule *mod;
    SdcFunction *more;
    SdcrtCuda *cuda;
    SdcrtError e;
    uint64_t x, y;
} Env;

#define OK(call)                                                                         \
    ck_assert_msg((call) == 0, "%s: %s%s", #call, env.e.text, sdc_error(env.cx))

static Env
setup(int device)
{
    static const char *const bind[] = {"BLOCK=1024"};
    SdcContextOptions o = {.target = "cuda", .device = device};
    Env env = {0};
    SdcDevice d;
    float *ones = calloc(N, sizeof *ones);
    for (int i = 0; i < N; i++)
        ones[i] = 1;
    ck_assert_int_eq(sdc_context_create(&o, &env.cx), SDC_OK);
    OK(sdc_context_device(env.cx, &d));
    env.cuda = d.cuda;
    OK(sdc_module_load_text(env.cx, "more.tk", text, sizeof text - 1, SDC_LANG_AUTO,
                            &env.mod));
    OK(sdc_function_get(env.mod, "more", bind, 1, &env.more));
    OK(sdcrt_cuda_alloc(env.cuda, BYTES, &env.x, &env.e));
    OK(sdcrt_cuda_alloc(env.cuda, BYTES, &env.y, &env.e));
    OK(sdcrt_cuda_fill(env.cuda, env.x, 0, BYTES, &env.e));
    OK(sdcrt_cuda_write(env.cuda, env.y, ones, BYTES, &env.e));
    free(ones);
    return env;
}

static SdcStatus
launch(Env *env, void *stream)
{
    SdcArg args[] = {sdc_ptr(SDC_FP32, (void *)(uintptr_t)env->x),
                     sdc_ptr(SDC_FP32, (void *)(uintptr_t)env->y), sdc_int(N)};
    return sdc_launch(env->more, sdc_grid(GRID, 1, 1), args, 3, stream);
}

/* All of x is `want`. */
static void
expect(Env *e, float want)
{
    Env env = *e;
    float *got = malloc(BYTES);
    OK(sdcrt_cuda_wait(env.cuda, &env.e));
    OK(sdcrt_cuda_read(env.cuda, got, env.x, BYTES, &env.e));
    for (int i = 0; i < N; i++)
        ck_assert_msg(got[i] == want, "element %d is %g, not %g", i, (double)got[i],
                      (double)want);
    free(got);
}

static void
done(Env *e)
{
    Env env = *e;
    OK(sdcrt_cuda_free(env.cuda, env.x, &env.e));
    OK(sdcrt_cuda_free(env.cuda, env.y, &env.e));
    sdc_context_destroy(env.cx);
}

START_TEST(streams_and_graphs)
{
    Env env = setup(0);
    void *stream, *graph;
    OK(sdcrt_cuda_stream_create(env.cuda, &stream, &env.e));
    OK(launch(&env, NULL));
    expect(&env, 1);
    OK(launch(&env, stream));
    OK(sdcrt_cuda_stream_wait(env.cuda, stream, &env.e));
    expect(&env, 2);
    OK(sdcrt_cuda_capture(env.cuda, stream, &env.e));
    OK(launch(&env, stream));
    OK(launch(&env, stream));
    OK(sdcrt_cuda_captured(env.cuda, stream, &graph, &env.e));
    expect(&env, 2); /* nothing has run */
    for (int i = 0; i < 3; i++)
        OK(sdcrt_cuda_graph_launch(env.cuda, graph, stream, &env.e));
    OK(sdcrt_cuda_stream_wait(env.cuda, stream, &env.e));
    expect(&env, 8);
    sdcrt_cuda_graph_destroy(env.cuda, graph);
    sdcrt_cuda_stream_destroy(env.cuda, stream);
    done(&env);
}
END_TEST

START_TEST(refusals)
{
    Env env = setup(0);
    SdcArg args[] = {sdc_ptr(SDC_FP32, (void *)(uintptr_t)env.x), sdc_ptr(SDC_FP32, NULL),
                     sdc_int(N)};
    uint64_t at;
    const struct {
        SdcGrid grid;
        int nargs;
        const char *says;
    } bad[] = {
        {sdc_grid(GRID, 1, 1), 2, "'more' takes 3 arguments, 2 are given"},
        {sdc_grid(1, 70000, 1), 3, "'more'"},
        {sdc_grid(-1, 1, 1), 3, "'more' is out of range"},
    };
    args[2] = sdc_int(0); /* nothing of nothing */
    OK(sdc_launch(env.more, sdc_grid(GRID, 1, 1), args, 3, NULL));
    OK(launch(&env, NULL));
    args[1] = sdc_ptr(SDC_FP32, (void *)(uintptr_t)env.y);
    args[2] = sdc_int(N);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        ck_assert_int_eq(sdc_launch(env.more, bad[i].grid, args, bad[i].nargs, NULL),
                         SDC_ERROR_ARGUMENT);
        ck_assert_msg(strstr(sdc_error(env.cx), bad[i].says), "%s", sdc_error(env.cx));
        OK(launch(&env, NULL));
    }
    OK(sdc_launch(env.more, sdc_grid(0, 1, 1), args, 3, NULL));
    ck_assert_int_eq(sdcrt_cuda_alloc(env.cuda, (size_t)1 << 50, &at, &env.e),
                     SDCRT_ERROR_MEMORY);
    ck_assert_msg(strstr(env.e.text, "bytes of device memory"), "%s", env.e.text);
    static const char bad_ptx[] = ".version 7.4\n.target sm_80\n.address_size 64\n"
                                  ".visible .entry f()\n{ mov.nonsense a, b; }\n";
    static SdcrtMeta meta = {
        .name = "f", .symbol = "f", .target = "sm_80", .num_warps = 4, .threads = 128};
    SdcrtCudaKernel *k;
    ck_assert_int_eq(sdcrt_cuda_load(env.cuda, bad_ptx, &meta, &k, &env.e),
                     SDCRT_ERROR_CODE);
    ck_assert_msg(strstr(env.e.text, "kernel 'f'") && strstr(env.e.text, "line"), "%s",
                  env.e.text);
    meta.shared_bytes = 1 << 20;
    ck_assert_int_eq(sdcrt_cuda_load(env.cuda, bad_ptx, &meta, &k, &env.e),
                     SDCRT_ERROR_LIMIT);
    OK(launch(&env, NULL));
    expect(&env, 5);
    done(&env);
}
END_TEST

/* The context is lost, and that is said; nothing hangs or crashes. */
START_TEST(a_kernel_that_fails)
{
    Env env = setup(0);
    SdcFunction *wild;
    SdcArg args[] = {sdc_ptr(SDC_FP32, (void *)(uintptr_t)env.x),
                     sdc_int((int64_t)1 << 40)};
    OK(sdc_function_get(env.mod, "wild", NULL, 0, &wild));
    OK(sdc_launch(wild, sdc_grid(1, 1, 1), args, 2, NULL));
    ck_assert_int_eq(sdcrt_cuda_wait(env.cuda, &env.e), SDCRT_ERROR_DEVICE);
    ck_assert_msg(strstr(env.e.text, "the CUDA context is lost"), "%s", env.e.text);
    ck_assert_int_eq(launch(&env, NULL), SDC_ERROR_ENVIRONMENT);
    ck_assert_msg(strstr(sdc_error(env.cx), "this launch or an earlier one"), "%s",
                  sdc_error(env.cx));
    sdc_context_destroy(env.cx);
}
END_TEST

typedef int CreateContext(void **, unsigned, int);
typedef int DestroyContext(void *);

START_TEST(context_of_the_caller)
{
    Env env = setup(0);
    const char *file = getenv("SDC_LIBCUDA");
    void *lib = dlopen(file && *file ? file : "libcuda.so.1", RTLD_NOW), *own;
    void *p = dlsym(lib, "cuCtxCreate_v2"), *q = dlsym(lib, "cuCtxDestroy_v2");
    CreateContext *create;
    DestroyContext *destroy;
    uint64_t primary, id;
    ck_assert(p && q);
    memcpy(&create, &p, sizeof p);
    memcpy(&destroy, &q, sizeof q);
    OK(sdcrt_cuda_context(env.cuda, &primary, &env.e));
    OK(launch(&env, NULL));
    expect(&env, 1);
    ck_assert_int_eq(create(&own, 0, 0), 0);
    OK(sdcrt_cuda_context(env.cuda, &id, &env.e));
    ck_assert(id != primary);
    Env there = env;
    OK(sdcrt_cuda_alloc(env.cuda, BYTES, &there.x, &env.e));
    OK(sdcrt_cuda_alloc(env.cuda, BYTES, &there.y, &env.e));
    OK(sdcrt_cuda_fill(env.cuda, there.x, 0, BYTES, &env.e));
    OK(sdcrt_cuda_fill(env.cuda, there.y, 0, BYTES, &env.e));
    OK(launch(&there, NULL));
    expect(&there, 0);
    sdc_context_destroy(env.cx);
    ck_assert_int_eq(destroy(own), 0);
}
END_TEST

enum { THREADS = 8, LAUNCHES = 300 };

static void *
launch_many(void *user)
{
    Env *env = user;
    void *stream;
    if (sdcrt_cuda_stream_create(env->cuda, &stream, NULL) != SDCRT_OK)
        return "no stream";
    for (int i = 0; i < LAUNCHES; i++)
        if (launch(env, stream) != SDC_OK)
            return (void *)sdc_error(env->cx);
    if (sdcrt_cuda_stream_wait(env->cuda, stream, NULL) != SDCRT_OK)
        return "a stream failed";
    sdcrt_cuda_stream_destroy(env->cuda, stream);
    return NULL;
}

/* Each thread has arrays of its own. */
START_TEST(threads)
{
    Env env = setup(0), each[THREADS];
    pthread_t t[THREADS];
    for (int i = 0; i < THREADS; i++) {
        each[i] = env;
        OK(sdcrt_cuda_alloc(env.cuda, BYTES, &each[i].x, &env.e));
        OK(sdcrt_cuda_fill(env.cuda, each[i].x, 0, BYTES, &env.e));
        ck_assert_int_eq(pthread_create(&t[i], NULL, launch_many, &each[i]), 0);
    }
    for (int i = 0; i < THREADS; i++) {
        void *said;
        pthread_join(t[i], &said);
        ck_assert_msg(!said, "%s", (const char *)said);
        expect(&each[i], LAUNCHES);
        OK(sdcrt_cuda_free(env.cuda, each[i].x, &env.e));
    }
    done(&env);
}
END_TEST

/* Contexts on every device, launched one after another; with one device, two on that. */
START_TEST(several_devices)
{
    enum { MOST = 8 };
    int devices, driver, n;
    Env each[MOST], env = {0};
    OK(sdcrt_cuda_count(&devices, &driver, &env.e));
    n = devices > MOST ? MOST : devices < 2 ? 2 : devices;
    for (int i = 0; i < n; i++)
        each[i] = setup(i % devices);
    for (int round = 0; round < 5; round++)
        for (int i = 0; i < n; i++)
            for (int k = 0; k <= i; k++) {
                env = each[i];
                OK(launch(&each[i], NULL));
            }
    for (int i = 0; i < n; i++) {
        expect(&each[i], (float)(5 * (i + 1)));
        done(&each[i]);
    }
    printf("%d contexts on %d devices\n", n, devices);
    fflush(stdout);
}
END_TEST

int
main(void)
{
    int devices, driver;
    SdcrtError e;
    if (sdcrt_cuda_count(&devices, &driver, &e) != SDCRT_OK || !devices) {
        printf("SKIPPED: %s\n", e.text);
        return 0;
    }
    Suite *s = suite_create("runtime");
    TCase *t = tcase_create("gpu");
    tcase_set_timeout(t, 120);
    tcase_add_test(t, streams_and_graphs);
    tcase_add_test(t, refusals);
    tcase_add_test(t, context_of_the_caller);
    tcase_add_test(t, threads);
    tcase_add_test(t, several_devices);
    tcase_add_test(t, a_kernel_that_fails); /* last: it takes the context with it */
    suite_add_tcase(s, t);
    SRunner *r = srunner_create(s);
    srunner_run_all(r, CK_NORMAL);
    int failed = srunner_ntests_failed(r);
    srunner_free(r);
    printf("%s runtime\n", failed ? "WRONG" : "ok");
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
