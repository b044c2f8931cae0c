/* A host's thread with 256 KiB of stack: every function works there, and a compile whose
   analyses recurse deeply does, since it runs on a stack of the library's own. */
#include "runtime/sdc.h"
#include "tests/unit/every_call.h"

#include <check.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/resource.h>

enum { STACK = 256 << 10, LOOPS = 400 };

static const char *
on_small_stack(void *(*fn)(void *), void *arg)
{
    pthread_attr_t a;
    pthread_t t;
    void *wrong;
    ck_assert_int_eq(pthread_attr_init(&a), 0);
    ck_assert_int_eq(pthread_attr_setstacksize(&a, STACK), 0);
    ck_assert_int_eq(pthread_create(&t, &a, fn, arg), 0);
    ck_assert_int_eq(pthread_join(t, &wrong), 0);
    pthread_attr_destroy(&a);
    return wrong;
}

static const char *
whole_life(const char *target)
{
    static _Alignas(64) float x[EVERY_N + 1];
    Every e;
    EVERY(every_open(&e, target, x), SDC_OK);
    const char *wrong = every_call(&e, SDC_OK, SDC_OK);
    if (wrong)
        fprintf(stderr, "%s\n", sdc_error(e.cx));
    sdc_context_destroy(e.cx);
    return wrong ? wrong : every_pool(sdcrt_pool_create(2));
}

static void *
every_function(void *arg)
{
    return (void *)(uintptr_t)whole_life(arg);
}

START_TEST(all_functions)
{
    setenv("SDC_LIBCUDA", SDC_TMP "/../../libfakecuda.so", 1);
    const char *wrong = on_small_stack(every_function, NULL);
    ck_assert_msg(!wrong, "on the CPU: %s", wrong);
    wrong = on_small_stack(every_function, (void *)(uintptr_t) "cuda");
    ck_assert_msg(!wrong, "on a GPU: %s", wrong);
}
END_TEST

/* Loops behind each other, each as long as the one before says. */
static char *
loops(void)
{
    char *text = malloc(200 + 80 * LOOPS), *p = text;
    p += sprintf(p, "import triton\nimport triton.language as tl\n@triton.jit\n"
                    "def k(x):\n    a = tl.load(x)\n");
    for (int i = 0; i < LOOPS; i++)
        p += sprintf(p, "    for i in range(0, a):\n        a = a * 3 + i\n");
    sprintf(p, "    tl.store(x, a)\n");
    return text;
}

static void *
deep(void *arg)
{
    SdcContext *cx;
    SdcModule *m;
    char *text = loops();
    static const char *const targets[] = {"cpu", "sm_80"};
    SdcStatus status = sdc_context_create(NULL, &cx);
    if (status == SDC_OK)
        status = sdc_module_load_text(cx, "k.tk", text, strlen(text), SDC_LANG_AUTO, &m);
    for (int i = 0; i < 2 && status == SDC_OK; i++) {
        SdcOutput *out;
        SdcCompileOptions o = {.signature = "*i32", .target = targets[i],
                               .emit = SDC_EMIT_ASM};
        status = sdc_compile(m, &o, &out);
        sdc_output_destroy(out);
    }
    free(text);
    *(SdcStatus *)arg = status;
    sdc_context_destroy(cx);
    return NULL;
}

START_TEST(deep_recursion)
{
    SdcStatus status;
    on_small_stack(deep, &status);
    ck_assert_int_eq(status, SDC_OK);
}
END_TEST

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
/* Without address space for that stack there is a status, and later calls work. */
START_TEST(no_address_space)
{
    SdcContext *cx;
    SdcModule *m;
    struct rlimit before, little;
    long pages;
    FILE *f = fopen("/proc/self/statm", "r");
    ck_assert(f && fscanf(f, "%ld", &pages) == 1);
    fclose(f);
    ck_assert_int_eq(sdc_context_create(NULL, &cx), SDC_OK);
    ck_assert_int_eq(getrlimit(RLIMIT_AS, &before), 0);
    little = before;
    little.rlim_cur = (rlim_t)pages * 4096 + (64 << 20);
    ck_assert_int_eq(setrlimit(RLIMIT_AS, &little), 0);
    SdcStatus status =
        sdc_module_load_text(cx, "k.tk", every_source, sizeof every_source - 1,
                             SDC_LANG_AUTO, &m);
    ck_assert_int_eq(setrlimit(RLIMIT_AS, &before), 0);
    ck_assert_int_eq(status, SDC_ERROR_MEMORY);
    ck_assert(strstr(sdc_error(cx), "address space"));
    ck_assert_int_eq(sdc_module_load_text(cx, "k.tk", every_source,
                                          sizeof every_source - 1, SDC_LANG_AUTO, &m),
                     SDC_OK);
    sdc_context_destroy(cx);
}
END_TEST
#endif

int
main(void)
{
    Suite *s = suite_create("small stack");
    TCase *t = tcase_create("small stack");
    tcase_set_timeout(t, 60);
    tcase_add_test(t, all_functions);
    tcase_add_test(t, deep_recursion);
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
    tcase_add_test(t, no_address_space);
#endif
    suite_add_tcase(s, t);
    SRunner *r = srunner_create(s);
    srunner_run_all(r, CK_NORMAL);
    int failed = srunner_ntests_failed(r);
    srunner_free(r);
    return failed != 0;
}
