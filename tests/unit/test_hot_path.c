/* A launch of what is compiled already takes no lock and no memory: malloc and its like,
   and the locks of pthreads, are this program's, and count who in libsdc calls them. The
   driver is the fake one, whose own locks do not count. */
#include "runtime/sdc.h"
#include "tests/fake_cuda/fake_cuda.h"

#include <check.h>
#include <dlfcn.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define COUNTED 0 /* the sanitizer has its own malloc */
#else
#define COUNTED 1
#endif

static atomic_int counting, calls;
static const void *library; /* where libsdc.so is mapped */

#if COUNTED
#define EXPORT __attribute__((visibility("default")))

/* The caller is libsdc itself. */
static void
count(const void *from)
{
    Dl_info info;
    if (atomic_load(&counting) && dladdr(from, &info) && info.dli_fbase == library)
        atomic_fetch_add(&calls, 1);
}

extern void *__libc_malloc(size_t size);
extern void *__libc_calloc(size_t n, size_t size);
extern void *__libc_realloc(void *p, size_t size);
typedef int LockCall(pthread_mutex_t *m);

EXPORT void *
malloc(size_t size)
{
    count(__builtin_return_address(0));
    return __libc_malloc(size);
}

EXPORT void *
calloc(size_t n, size_t size)
{
    count(__builtin_return_address(0));
    return __libc_calloc(n, size);
}

EXPORT void *
realloc(void *p, size_t size)
{
    count(__builtin_return_address(0));
    return __libc_realloc(p, size);
}

EXPORT int
pthread_mutex_lock(pthread_mutex_t *m)
{
    static _Atomic(LockCall *) real;
    LockCall *f = atomic_load(&real);
    count(__builtin_return_address(0));
    if (!f) {
        void *p = dlsym(RTLD_NEXT, "pthread_mutex_lock");
        memcpy(&f, &p, sizeof f);
        atomic_store(&real, f);
    }
    return f(m);
}
#endif

static const char add_text[] = "import triton\n"
                               "import triton.language as tl\n"
                               "@triton.jit\n"
                               "def add(x, out, n, by, BLOCK: tl.constexpr):\n"
                               "    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)\n"
                               "    a = tl.load(x + i, mask=i < n)\n"
                               "    tl.store(out + i, a * by, mask=i < n)\n";

/* Launches of two specializations one after another, with a grid and with a tuned
   configuration: what they called after the first of each. */
static int
launches(const char *target, const void *x, int grid)
{
    static const char *const bind[] = {"BLOCK=64", "launch_pdl=True"};
    SdcContextOptions o = {.target = target};
    SdcContext *cx;
    SdcModule *mod;
    SdcFunction *f;
    Dl_info info;
    void *p;
    p = dlsym(RTLD_DEFAULT, "sdc_launch");
    ck_assert(dladdr(p, &info) != 0);
    library = info.dli_fbase;
    ck_assert_int_eq(sdc_context_create(&o, &cx), SDC_OK);
    ck_assert_msg(sdc_module_load_text(cx, "add.tk", add_text, sizeof add_text - 1,
                                       SDC_LANG_AUTO, &mod) == SDC_OK,
                  "%s", sdc_error(cx));
    ck_assert_int_eq(sdc_module_tune(mod, "add | x | cpu | *fp32,*fp32,i32,fp32 | n=64 | "
                                          "BLOCK=64 num_warps=2 | 1 us\n"),
                     SDC_OK);
    ck_assert_int_eq(sdc_function_get(mod, "add", bind, 2, &f), SDC_OK);
    SdcArg args[] = {sdc_ptr(SDC_FP32, x), sdc_ptr(SDC_FP32, x), sdc_int(64),
                     sdc_float(2)};
    for (int i = 0; i < 100; i++) {
        args[2] = sdc_int(i % 2 ? 64 : 63);
        if (i == 2) { /* both are compiled: the counters have seen that */
            ck_assert_int_gt(atomic_load(&calls), 0);
            atomic_store(&calls, 0);
        }
        atomic_store(&counting, 1);
        ck_assert_msg(sdc_launch(f, sdc_grid(grid, 1, 1), args, 4, NULL) == SDC_OK, "%s",
                      sdc_error(cx));
        ck_assert_msg(sdc_launch_tuned(f, "cdiv(n,BLOCK)", args, 4, NULL) == SDC_OK, "%s",
                      sdc_error(cx));
    }
    atomic_store(&counting, 0);
    sdc_context_destroy(cx);
    return atomic_load(&calls);
}

START_TEST(no_lock_no_memory)
{
    static _Alignas(64) float x[64];
    setenv("SDC_LIBCUDA", SDC_TMP "/../../libfakecuda.so", 1);
    uint64_t there = 4096; /* any address: the fake runs nothing */
    /* On the CPU a grid of one program never touches the pool. */
    ck_assert_int_eq(launches("cpu", x, 1), 0);
    ck_assert_int_eq(launches("cuda", (void *)(uintptr_t)there, 7), 0);
}
END_TEST

int
main(void)
{
    Suite *s = suite_create("hot path");
    TCase *c = tcase_create("launches");
    if (COUNTED)
        tcase_add_test(c, no_lock_no_memory);
    suite_add_tcase(s, c);
    SRunner *r = srunner_create(s);
    srunner_run_all(r, CK_NORMAL);
    int failed = srunner_ntests_failed(r);
    srunner_free(r);
    return failed != 0;
}
