/* The GPU behind the public interface, with the fake driver: what reaches the driver,
   what is refused before it, several contexts, devices and threads; and every call of the
   driver made to fail, one after another, without a leak and with the context usable
   afterwards. */
#include "runtime/rt/cuda.h"
#include "runtime/sdc.h"
#include "tests/fake_cuda/fake_cuda.h"

#include <check.h>
#include <dlfcn.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FAKE SDC_TMP "/../../libfakecuda.so"

static const char add_text[] = "import triton\n"
                               "import triton.language as tl\n"
                               "@triton.jit\n"
                               "def add(x, y, out, n, by, BLOCK: tl.constexpr):\n"
                               "    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)\n"
                               "    a = tl.load(x + i, mask=i < n)\n"
                               "    b = tl.load(y + i, mask=i < n)\n"
                               "    tl.store(out + i, a + b * by, mask=i < n)\n";

typedef struct Env {
    FakeCuda *fake;
    SdcContext *cx;
    SdcModule *mod;
    SdcFunction *add;
    SdcrtCuda *cuda;
    uint64_t x; /* 4096 bytes */
} Env;

static FakeCuda *
fake_driver(void)
{
    void *lib = dlopen(FAKE, RTLD_NOW | RTLD_LOCAL);
    ck_assert_msg(lib != NULL, "%s", dlerror());
    void *p = dlsym(lib, "fake_cuda");
    FakeCudaGet *get;
    ck_assert_ptr_nonnull(p);
    memcpy(&get, &p, sizeof get);
    setenv("SDC_LIBCUDA", FAKE, 1);
    return get();
}

static SdcContext *
context_on(int device)
{
    SdcContextOptions o = {.target = "cuda", .device = device};
    SdcContext *cx;
    ck_assert_int_eq(sdc_context_create(&o, &cx), SDC_OK);
    return cx;
}

static SdcFunction *
load_add(SdcContext *cx, SdcModule **mod)
{
    static const char *const bind[] = {"BLOCK=256", "num_warps=2"};
    SdcFunction *f;
    ck_assert_msg(sdc_module_load_text(cx, "add.tk", add_text, sizeof add_text - 1,
                                       SDC_LANG_AUTO, mod) == SDC_OK,
                  "%s", sdc_error(cx));
    ck_assert_msg(sdc_function_get(*mod, "add", bind, 2, &f) == SDC_OK, "%s",
                  sdc_error(cx));
    return f;
}

static Env
setup(void)
{
    Env e = {.fake = fake_driver()};
    SdcDevice d;
    SdcrtError why;
    e.cx = context_on(0);
    ck_assert_msg(sdc_context_device(e.cx, &d) == SDC_OK, "%s", sdc_error(e.cx));
    e.cuda = d.cuda;
    e.add = load_add(e.cx, &e.mod);
    ck_assert_msg(sdcrt_cuda_alloc(e.cuda, 4096, &e.x, &why) == SDCRT_OK, "%s", why.text);
    return e;
}

static void
done(Env *e)
{
    ck_assert_int_eq(sdcrt_cuda_free(e->cuda, e->x, NULL), SDCRT_OK);
    sdc_context_destroy(e->cx);
    ck_assert_int_eq(e->fake->live, 0);
}

static void
add_args(uint64_t x, int n, SdcArg args[5])
{
    args[0] = sdc_ptr(SDC_FP32, (void *)(uintptr_t)x);
    args[1] = sdc_ptr(SDC_FP32, (void *)(uintptr_t)(x + 1024));
    args[2] = sdc_ptr(SDC_FP32, (void *)(uintptr_t)(x + 2048));
    args[3] = sdc_int(n);
    args[4] = sdc_float(0.5);
}

/* ---------------------------------------------------------------- launches */

START_TEST(a_launch_reaches_the_driver)
{
    Env e = setup();
    SdcArg args[5];
    SdcDevice d;
    SdcKernel *k;
    SdcKernelUse use;
    void *stream = &e;
    uint32_t half = 0x3f000000;
    add_args(e.x, 200, args);
    ck_assert_int_eq(sdc_context_device(e.cx, &d), SDC_OK);
    ck_assert_str_eq(d.target, "sm_90a");
    ck_assert_str_eq(d.name, "Fake GPU 0");
    ck_assert_msg(sdc_launch(e.add, sdc_grid(3, 2, 1), args, 5, stream) == SDC_OK, "%s",
                  sdc_error(e.cx));
    const FakeLaunch *l = &e.fake->last;
    ck_assert_int_eq(e.fake->launches, 1);
    ck_assert_str_eq(l->kernel, "add");
    ck_assert(l->grid[0] == 3 && l->grid[1] == 2 && l->grid[2] == 1);
    ck_assert(l->block[0] == 64 && l->block[1] == 1 && l->block[2] == 1);
    ck_assert_ptr_eq(l->stream, stream);
    ck_assert_int_eq(l->nparam, 5);
    ck_assert(l->params[0] == e.x && l->params[2] == e.x + 2048);
    ck_assert_int_eq((int32_t)l->params[3], 200);
    ck_assert_int_eq(memcmp(&l->params[4], &half, 4), 0);
    /* Found again: nothing is loaded and no memory taken for the second. */
    long live = e.fake->live;
    e.fake->calls = 0;
    ck_assert_int_eq(sdc_launch(e.add, sdc_grid(1, 1, 1), args, 5, NULL), SDC_OK);
    ck_assert_int_eq(e.fake->live, live);
    ck_assert_int_le(e.fake->calls, 5); /* of the driver, the launch among them */
    ck_assert_ptr_null(e.fake->last.stream);
    ck_assert_int_eq(sdc_specialize(e.add, args, 5, &k), SDC_OK);
    ck_assert_int_eq(sdc_kernel_use(k, &use), SDC_OK);
    ck_assert(use.registers == 40 && use.num_warps == 2);
    ck_assert_ptr_nonnull(strstr(sdc_kernel_ptx(k), ".target sm_90a"));
    ck_assert_ptr_null(strstr(sdc_kernel_ptx(k), ".loc"));
    ck_assert_int_eq(sdc_kernel_launch_threads(k, sdc_grid(1, 1, 1), args, 5, 2),
                     SDC_ERROR_ARGUMENT);
    done(&e);
}
END_TEST

/* That of a tensor without elements, say: whether the kernel touches it, the host cannot
   know. */
START_TEST(null_pointers_are_passed)
{
    Env e = setup();
    SdcArg args[5];
    add_args(e.x, 200, args);
    args[1] = sdc_ptr(SDC_FP32, NULL);
    SdcStatus s = sdc_launch(e.add, sdc_grid(1, 1, 1), args, 5, NULL);
    ck_assert_msg(s == SDC_OK, "%s", sdc_error(e.cx));
    ck_assert_int_eq(e.fake->launches, 1);
    ck_assert(e.fake->last.params[0] == e.x && e.fake->last.params[1] == 0);
    done(&e);
}
END_TEST

START_TEST(wrong_launches_are_refused)
{
    Env e = setup();
    SdcArg args[5], good[5];
    add_args(e.x, 200, good);
    memcpy(args, good, sizeof args);
    ck_assert_int_eq(sdc_launch(e.add, sdc_grid(1, 1, 1), args, 4, NULL),
                     SDC_ERROR_ARGUMENT);
    ck_assert(strstr(sdc_error(e.cx), "'add' takes 5 arguments, 4 are given"));
    args[1] = sdc_int(4);
    ck_assert_int_eq(sdc_launch(e.add, sdc_grid(1, 1, 1), args, 5, NULL),
                     SDC_ERROR_SOURCE); /* an integer cannot be loaded from */
    SdcKernel *k;
    ck_assert_int_eq(sdc_specialize(e.add, good, 5, &k), SDC_OK);
    ck_assert_int_eq(sdc_kernel_launch(k, sdc_grid(1, 1, 1), args, 5, NULL),
                     SDC_ERROR_ARGUMENT);
    ck_assert(strstr(sdc_error(e.cx), "argument 'y' of 'add' must be a pointer"));
    memcpy(args, good, sizeof args);
    args[2] = sdc_ptr(SDC_FP16, (void *)(uintptr_t)e.x);
    ck_assert_int_eq(sdc_kernel_launch(k, sdc_grid(1, 1, 1), args, 5, NULL),
                     SDC_ERROR_ARGUMENT);
    ck_assert(strstr(sdc_error(e.cx), "argument 'out' of 'add' points to elements of"));
    ck_assert_int_eq(e.fake->launches, 0);
    static const SdcGrid bad[] = {
        {-1, 1, 1}, {65536, 65536, 1}, {65536, 1, 65536}, {1, -5, 1}};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        ck_assert_int_eq(sdc_launch(e.add, bad[i], good, 5, NULL), SDC_ERROR_ARGUMENT);
        ck_assert(strstr(sdc_error(e.cx), "'add'"));
    }
    /* Nothing to do is no error, whatever the pointers are. */
    args[2] = sdc_ptr(SDC_FP32, NULL);
    ck_assert_int_eq(sdc_launch(e.add, sdc_grid(0, 1, 1), args, 5, NULL), SDC_OK);
    ck_assert_int_eq(sdc_launch(e.add, sdc_grid(4, 1, 0), args, 5, NULL), SDC_OK);
    ck_assert_int_eq(e.fake->launches, 0);
    ck_assert_int_eq(sdc_launch(e.add, sdc_grid(INT32_MAX, 65535, 65535), good, 5, NULL),
                     SDC_OK);
    ck_assert_int_eq(e.fake->launches, 1);
    /* Beyond the second axis all programs are launched along the first. */
    ck_assert_int_eq(sdc_launch(e.add, sdc_grid(3, 70000, 2), good, 5, NULL), SDC_OK);
    ck_assert_int_eq(e.fake->launches, 2);
    ck_assert(e.fake->last.grid[0] == 420000 && e.fake->last.grid[1] == 1 &&
              e.fake->last.grid[2] == 1);
    done(&e);
}
END_TEST

/* Above what every kernel has it is asked for; above what the device has, stages get
   fewer. */
START_TEST(shared_memory)
{
    Env e = setup();
    SdcModule *m;
    SdcFunction *f;
    SdcKernel *k;
    SdcKernelUse use;
    const char *bind[] = {"BLOCK_M=128", "BLOCK_N=128", "BLOCK_K=64", "num_stages=3"};
    SdcArg args[13];
    for (int i = 0; i < 13; i++)
        args[i] = i < 4 ? sdc_ptr(SDC_FP16, (void *)(uintptr_t)e.x) : sdc_int(512);
    args[8] = args[10] = args[12] = sdc_int(1);
    ck_assert_int_eq(sdc_module_load_file(e.cx, SDC_ROOT "/kernels_dsl/matmul.tk", &m),
                     SDC_OK);
    ck_assert_int_eq(sdc_function_get(m, "matmul", bind, 4, &f), SDC_OK);
    ck_assert_msg(sdc_launch(f, sdc_grid(16, 1, 1), args, 13, NULL) == SDC_OK, "%s",
                  sdc_error(e.cx));
    ck_assert_int_eq(sdc_specialize(f, args, 13, &k), SDC_OK);
    ck_assert_int_eq(sdc_kernel_use(k, &use), SDC_OK);
    ck_assert_int_gt(use.shared_bytes, 48 << 10);
    ck_assert_int_eq(e.fake->last.shared, use.shared_bytes);
    bind[3] = "num_stages=8"; /* there is room for seven */
    ck_assert_int_eq(sdc_function_get(m, "matmul", bind, 4, &f), SDC_OK);
    ck_assert_int_eq(sdc_launch(f, sdc_grid(16, 1, 1), args, 13, NULL), SDC_OK);
    ck_assert_int_eq(e.fake->launches, 2);
    ck_assert_int_gt(e.fake->last.shared, 6 * 32768);
    done(&e);
}
END_TEST

/* The launcher below libsdc, with metadata made by hand. */
START_TEST(shared_memory_limit)
{
    Env e = setup();
    static const char ptx[] =
        ".version 8.0\n.target sm_90a\n.entry big(.param .u64 p)\n{ ret; }\n";
    static SdcrtMeta meta = {.name = "big",
                             .symbol = "big",
                             .target = "sm_90a",
                             .nparam = 1,
                             .num_warps = 4,
                             .threads = 128};
    const SdcGrid grid = {1, 1, 1};
    SdcrtCudaKernel *k;
    SdcrtError why;
    meta.shared_bytes = 200 << 10;
    ck_assert_int_eq(sdcrt_cuda_load(e.cuda, ptx, &meta, &k, &why), SDCRT_OK);
    ck_assert_int_eq(sdcrt_cuda_launch(e.cuda, k, &e.x, grid, NULL, &why), SDCRT_OK);
    ck_assert_int_eq(e.fake->last.shared, 200 << 10);
    sdcrt_cuda_unload(e.cuda, k);
    meta.shared_bytes = 300 << 10;
    ck_assert_int_eq(sdcrt_cuda_load(e.cuda, ptx, &meta, &k, &why), SDCRT_ERROR_LIMIT);
    ck_assert(strstr(why.text, "kernel 'big' needs 307200 bytes of shared memory, "
                               "Fake GPU 0 has 232448"));
    ck_assert_ptr_null(k);
    done(&e);
}
END_TEST

/* ---------------------------------------------------------------- contexts */

typedef int CreateContext(void **, unsigned, int);
typedef int DestroyContext(void *);

static void *
driver_symbol(const char *name)
{
    void *p = dlsym(dlopen(FAKE, RTLD_NOW | RTLD_LOCAL), name);
    ck_assert_ptr_nonnull(p);
    return p;
}

/* The caller's context when it is of the device, else the primary one; what was current
   stays current, and a context in the place of a destroyed one is another. */
START_TEST(contexts_of_the_caller)
{
    Env e = setup();
    SdcArg args[5];
    CreateContext *create;
    DestroyContext *destroy;
    void *p = driver_symbol("cuCtxCreate_v2"), *q = driver_symbol("cuCtxDestroy_v2");
    void *own, *foreign, *primary;
    memcpy(&create, &p, sizeof p);
    memcpy(&destroy, &q, sizeof q);
    add_args(e.x, 200, args);
    ck_assert_int_eq(sdc_launch(e.add, sdc_grid(1, 1, 1), args, 5, NULL), SDC_OK);
    primary = e.fake->last.context;
    for (int i = 0; i < 3; i++) {
        ck_assert_int_eq(create(&own, 0, 0), 0);
        ck_assert_msg(sdc_launch(e.add, sdc_grid(1, 1, 1), args, 5, NULL) == SDC_OK, "%s",
                      sdc_error(e.cx));
        ck_assert_ptr_eq(e.fake->last.context, own);
        ck_assert_int_eq(create(&foreign, 0, 1), 0);
        ck_assert_int_eq(sdc_launch(e.add, sdc_grid(1, 1, 1), args, 5, NULL), SDC_OK);
        ck_assert_ptr_eq(e.fake->last.context, primary);
        destroy(foreign);
        ck_assert_int_eq(sdc_launch(e.add, sdc_grid(1, 1, 1), args, 5, NULL), SDC_OK);
        ck_assert_ptr_eq(e.fake->last.context, own);
        sdc_context_destroy(e.cx); /* while the modules' context is there */
        e.cx = context_on(0);
        e.add = load_add(e.cx, &e.mod);
        destroy(own);
        ck_assert_int_eq(sdc_launch(e.add, sdc_grid(1, 1, 1), args, 5, NULL), SDC_OK);
        primary = e.fake->last.context;
    }
    SdcDevice d;
    ck_assert_int_eq(sdc_context_device(e.cx, &d), SDC_OK);
    e.cuda = d.cuda;
    done(&e);
}
END_TEST

START_TEST(two_devices)
{
    Env e = setup();
    SdcContext *other = context_on(1);
    SdcModule *mod;
    SdcFunction *f = load_add(other, &mod);
    SdcArg args[5];
    add_args(e.x, 200, args);
    ck_assert_int_eq(sdc_launch(e.add, sdc_grid(1, 1, 1), args, 5, NULL), SDC_OK);
    void *first = e.fake->last.context;
    ck_assert_int_eq(sdc_launch(f, sdc_grid(1, 1, 1), args, 5, NULL), SDC_OK);
    ck_assert_ptr_ne(e.fake->last.context, first);
    ck_assert_int_eq(sdc_launch(e.add, sdc_grid(1, 1, 1), args, 5, NULL), SDC_OK);
    ck_assert_ptr_eq(e.fake->last.context, first);
    sdc_context_destroy(other);
    done(&e);
}
END_TEST

enum { THREADS = 8, LAUNCHES = 200 };

static void *
launch_many(void *user)
{
    Env *e = user;
    SdcArg args[5];
    for (int i = 0; i < LAUNCHES; i++) {
        add_args(e->x, 200 + 8 * (i % 2), args);
        if (sdc_launch(e->add, sdc_grid(1, 1, 1), args, 5, NULL) != SDC_OK)
            return (void *)sdc_error(e->cx);
    }
    return NULL;
}

START_TEST(threads_launch_at_once)
{
    Env e = setup();
    pthread_t t[THREADS];
    for (int i = 0; i < THREADS; i++)
        ck_assert_int_eq(pthread_create(&t[i], NULL, launch_many, &e), 0);
    for (int i = 0; i < THREADS; i++) {
        void *said;
        pthread_join(t[i], &said);
        ck_assert_msg(!said, "%s", (const char *)said);
    }
    ck_assert_int_eq(e.fake->launches, THREADS * LAUNCHES);
    done(&e);
}
END_TEST

/* ---------------------------------------------------------------- no GPU */

START_TEST(no_usable_gpu)
{
    FakeCuda *fake = fake_driver();
    SdcContextOptions o = {.target = "metal"};
    SdcContext *cx;
    SdcDevice d;
    ck_assert_int_eq(sdc_context_create(&o, &cx), SDC_ERROR_ARGUMENT);
    o = (SdcContextOptions){.target = "cuda", .device = -1};
    ck_assert_int_eq(sdc_context_create(&o, &cx), SDC_ERROR_ARGUMENT);
    ck_assert_int_eq(sdc_context_create(NULL, &cx), SDC_OK);
    ck_assert_int_eq(sdc_context_device(cx, &d), SDC_ERROR_ARGUMENT);
    sdc_context_destroy(cx);

    cx = context_on(9);
    ck_assert_int_eq(sdc_context_device(cx, &d), SDC_ERROR_ENVIRONMENT);
    ck_assert(strstr(sdc_error(cx), "no GPU number 9, the driver offers 2"));
    sdc_context_destroy(cx);
    cx = context_on(0);
    fake->sm = 75;
    ck_assert_int_eq(sdc_context_device(cx, &d), SDC_ERROR_ENVIRONMENT);
    ck_assert(strstr(sdc_error(cx), "has compute capability 7.5"));
    setenv("SDC_LIBCUDA", SDC_TMP "/../../libfakecuda_old.so", 1);
    ck_assert_int_eq(sdc_context_device(cx, &d), SDC_ERROR_ENVIRONMENT);
    ck_assert(strstr(sdc_error(cx), "too old (CUDA 13.0): it lacks cuLaunchKernelEx"));
    setenv("SDC_LIBCUDA", SDC_TMP "/none.so", 1);
    SdcModule *mod;
    SdcFunction *f = load_add(cx, &mod);
    SdcArg args[5];
    add_args(4096, 200, args);
    ck_assert_int_eq(sdc_launch(f, sdc_grid(1, 1, 1), args, 5, NULL),
                     SDC_ERROR_ENVIRONMENT);
    ck_assert(strstr(sdc_error(cx), "no CUDA driver"));
    /* It is asked again each time: the driver may come. */
    setenv("SDC_LIBCUDA", FAKE, 1);
    fake->sm = 87;
    ck_assert_msg(sdc_launch(f, sdc_grid(1, 1, 1), args, 5, NULL) == SDC_OK, "%s",
                  sdc_error(cx));
    ck_assert_int_eq(sdc_context_device(cx, &d), SDC_OK);
    ck_assert_str_eq(d.target, "sm_86");
    sdc_context_destroy(cx);
    ck_assert_int_eq(fake->live, 0);
}
END_TEST

/* ---------------------------------------------------------------- injected faults */

static const struct {
    int code;
    bool for_ever;
    SdcStatus status;
} faults[] = {
    {2, false, SDC_ERROR_MEMORY},        /* out of memory */
    {4, true, SDC_ERROR_ENVIRONMENT},    /* the driver shuts down */
    {201, false, SDC_ERROR_ENVIRONMENT}, /* invalid context */
    {209, false, SDC_ERROR_INTERNAL},    /* no code for the device */
    {218, false, SDC_ERROR_INTERNAL},    /* invalid PTX */
    {222, false, SDC_ERROR_ENVIRONMENT}, /* PTX newer than the driver */
    {700, true, SDC_ERROR_ENVIRONMENT},  /* a kernel's illegal address: sticky */
    {701, false, SDC_ERROR_SOURCE},      /* too many resources */
    {719, true, SDC_ERROR_ENVIRONMENT},
};
enum { NFAULTS = sizeof faults / sizeof *faults };

/* What a host does with a GPU. The first status that is not SDC_OK, or SDC_OK. */
static SdcStatus
scenario(SdcContext *cx, SdcFunction *f)
{
    SdcDevice d;
    SdcArg args[5];
    SdcKernel *k;
    SdcKernelUse use;
    SdcStatus s = sdc_context_device(cx, &d);
    if (s != SDC_OK)
        return s;
    add_args(1 << 20, 200, args);
    s = sdc_launch(f, sdc_grid(2, 1, 1), args, 5, NULL);
    if (s == SDC_OK)
        s = sdc_specialize(f, args, 5, &k);
    if (s == SDC_OK)
        s = sdc_kernel_use(k, &use);
    args[3] = sdc_int(208); /* another specialization */
    if (s == SDC_OK)
        s = sdc_launch(f, sdc_grid(2, 1, 1), args, 5, NULL);
    if (s == SDC_OK)
        s = sdc_launch(f, sdc_grid(2, 1, 1), args, 5, NULL);
    return s;
}

/* Each call fails once; then the same context does it all without a fault. */
START_TEST(every_call_may_fail)
{
    FakeCuda *fake = fake_driver();
    int seen = 0, k = 1;
    for (;; k++) {
        SdcContext *cx = context_on(0);
        SdcModule *mod;
        SdcFunction *f = load_add(cx, &mod);
        fake->calls = 0;
        fake->fail_at = k;
        fake->fail_code = faults[_i].code;
        fake->fail_for_ever = faults[_i].for_ever;
        SdcStatus s = scenario(cx, f);
        bool reached = fake->calls >= k;
        fake->fail_at = 0;
        if (s != SDC_OK) {
            seen++;
            ck_assert_msg(s == faults[_i].status, "call %d, %s, error %d: %s: %s", k,
                          fake->failed, faults[_i].code, sdc_status_name(s),
                          sdc_error(cx));
            ck_assert_msg(strstr(sdc_error(cx), "(CUDA error ") != NULL, "%s",
                          sdc_error(cx));
        }
        s = scenario(cx, f);
        ck_assert_msg(s == SDC_OK, "after call %d, %s: %s", k, fake->failed,
                      sdc_error(cx));
        sdc_context_destroy(cx);
        ck_assert_msg(fake->live == 0, "call %d, %s: %ld things are left", k,
                      fake->failed, fake->live);
        if (!reached)
            break;
    }
    ck_assert_int_gt(k, 30);
    ck_assert_int_gt(seen, 25);
}
END_TEST

/* The same for what the launcher offers beside launches. */
static SdcrtStatus
memory_scenario(SdcrtCuda *c, SdcrtCudaKernel **k, SdcrtError *e)
{
    static const char ptx[] =
        ".version 7.4\n.target sm_80\n.entry f(.param .u64 a)\n{}\n";
    static const SdcrtMeta meta = {
        .name = "f", .symbol = "f", .target = "sm_80", .num_warps = 4, .threads = 128};
    uint64_t at = 0;
    char bytes[64] = {0};
    size_t left, total;
    void *stream = NULL, *from = NULL, *to = NULL, *graph = NULL;
    float ms;
    SdcrtStatus s = sdcrt_cuda_alloc(c, 128, &at, e);
    if (!s)
        s = sdcrt_cuda_memory(c, &left, &total, e);
    if (!s)
        s = sdcrt_cuda_fill(c, at, 7, 64, e);
    if (!s)
        s = sdcrt_cuda_read(c, bytes, at, 64, e);
    if (!s && bytes[63] != 7)
        s = SDCRT_ERROR_ARGUMENT;
    if (!s)
        s = sdcrt_cuda_write(c, at, bytes, 64, e);
    if (!s)
        s = sdcrt_cuda_copy(c, at + 64, at, 64, e);
    if (!s)
        s = sdcrt_cuda_load_beside(c, ptx, &meta, k, e);
    if (!s)
        s = sdcrt_cuda_stream_create(c, &stream, e);
    if (!s)
        s = sdcrt_cuda_event_create(c, &from, e);
    if (!s)
        s = sdcrt_cuda_event_create(c, &to, e);
    if (!s)
        s = sdcrt_cuda_capture(c, stream, e);
    if (!s)
        s = sdcrt_cuda_captured(c, stream, &graph, e);
    if (!s)
        s = sdcrt_cuda_event_record(c, from, stream, e);
    if (!s)
        s = sdcrt_cuda_graph_launch(c, graph, stream, e);
    if (!s)
        s = sdcrt_cuda_event_record(c, to, stream, e);
    if (!s)
        s = sdcrt_cuda_event_ms(c, from, to, &ms, e);
    if (!s)
        s = sdcrt_cuda_stream_wait(c, stream, e);
    if (!s)
        s = sdcrt_cuda_wait(c, e);
    SdcrtStatus freed = sdcrt_cuda_free(c, at, s ? NULL : e);
    sdcrt_cuda_graph_destroy(c, graph);
    sdcrt_cuda_event_destroy(c, from);
    sdcrt_cuda_event_destroy(c, to);
    sdcrt_cuda_stream_destroy(c, stream);
    return s ? s : freed;
}

START_TEST(every_call_of_memory_may_fail)
{
    FakeCuda *fake = fake_driver();
    int k = 1;
    for (;; k++) {
        SdcrtError e;
        SdcrtCuda *c;
        ck_assert_int_eq(sdcrt_cuda_open(0, &c, &e), SDCRT_OK);
        fake->calls = 0;
        fake->fail_at = k;
        fake->fail_code = 2;
        fake->fail_for_ever = false;
        SdcrtCudaKernel *loaded[2] = {NULL, NULL};
        SdcrtStatus s = memory_scenario(c, &loaded[0], &e);
        bool reached = fake->calls >= k;
        fake->fail_at = 0;
        ck_assert_msg(s == SDCRT_OK ||
                          (s == SDCRT_ERROR_MEMORY && strstr(e.text, "(CUDA")),
                      "call %d, %s: %d %s", k, fake->failed, (int)s, e.text);
        ck_assert_int_eq(memory_scenario(c, &loaded[1], &e), SDCRT_OK);
        for (int i = 0; i < 2; i++)
            sdcrt_cuda_unload(c, loaded[i]);
        sdcrt_cuda_close(c);
        ck_assert_msg(fake->live == 0, "call %d, %s: %ld things are left", k,
                      fake->failed, fake->live);
        if (!reached)
            break;
    }
    ck_assert_int_gt(k, 50);
    fprintf(stderr, "faults of the driver: %d calls of memory, streams, graphs\n", k);
}
END_TEST

int
main(void)
{
    Suite *s = suite_create("cuda");
    TCase *t = tcase_create("cuda");
    tcase_set_timeout(t, 120);
    tcase_add_test(t, a_launch_reaches_the_driver);
    tcase_add_test(t, null_pointers_are_passed);
    tcase_add_test(t, wrong_launches_are_refused);
    tcase_add_test(t, shared_memory);
    tcase_add_test(t, shared_memory_limit);
    tcase_add_test(t, contexts_of_the_caller);
    tcase_add_test(t, two_devices);
    tcase_add_test(t, threads_launch_at_once);
    tcase_add_test(t, no_usable_gpu);
    tcase_add_loop_test(t, every_call_may_fail, 0, NFAULTS);
    tcase_add_test(t, every_call_of_memory_may_fail);
    suite_add_tcase(s, t);
    SRunner *r = srunner_create(s);
    srunner_run_all(r, CK_NORMAL);
    int failed = srunner_ntests_failed(r);
    srunner_free(r);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
