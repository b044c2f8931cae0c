/* A host that forks while other threads compile: the child never hangs on a lock that
   nobody will open, launches what was compiled before, is told of the rest, and a context
   of its own works. */
#include "runtime/sdc.h"

#include <check.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

/* The sanitizers' malloc does not open its locks in a child, as the C library's does:
   with them nobody else is at work. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
enum { OTHERS = 0 };
#else
enum { OTHERS = 2 };
#endif

static const char source[] =
    "import triton\n"
    "import triton.language as tl\n"
    "@triton.jit\n"
    "def k(x, n, BLOCK: tl.constexpr):\n"
    "    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)\n"
    "    tl.store(x + i, tl.load(x + i, mask=i < n) + 1, mask=i < n)\n";

static SdcModule *
load(SdcContext **cx)
{
    SdcModule *m = NULL;
    if (sdc_context_create(NULL, cx) != SDC_OK ||
        sdc_module_load_text(*cx, "k.tk", source, sizeof source - 1, SDC_LANG_AUTO, &m) !=
            SDC_OK)
        return NULL;
    return m;
}

static SdcStatus
launch(SdcModule *m, int block, float *first)
{
    char bind[32];
    const char *const list[] = {bind};
    static _Thread_local float x[4096];
    SdcFunction *f;
    snprintf(bind, sizeof bind, "BLOCK=%d", block);
    SdcStatus status = sdc_function_get(m, "k", list, 1, &f);
    if (status != SDC_OK)
        return status;
    x[0] = 41;
    SdcArg args[] = {sdc_ptr(SDC_FP32, x), sdc_int(1000)};
    status = sdc_launch(f, sdc_grid(4096 / block, 1, 1), args, 2, NULL);
    *first = x[0];
    return status;
}

static atomic_bool stop;

/* Compiles again and again, so that a fork finds locks in any state. */
static void *
compile(void *arg)
{
    float x;
    SdcContext *cx = NULL;
    SdcModule *m = arg;
    for (int block = 16; !atomic_load(&stop); block = block < 2048 ? 2 * block : 16) {
        launch(m, block, &x);
        SdcModule *other = load(&cx);
        launch(other, block, &x);
        sdc_context_destroy(cx);
    }
    return NULL;
}

/* What the child does; its exit status, 0 when all is as promised. */
static int
child(SdcContext *cx, SdcFunction *ready, SdcModule *m)
{
    float x[64] = {41}, first;
    SdcContext *own;
    SdcArg args[] = {sdc_ptr(SDC_FP32, x), sdc_int(64)};
    if (sdc_launch(ready, sdc_grid(1, 1, 1), args, 2, NULL) != SDC_OK || x[0] != 42)
        return 1;
    SdcArg odd[] = {sdc_ptr(SDC_FP32, x + 1), sdc_int(3)};
    if (sdc_launch(ready, sdc_grid(1, 1, 1), odd, 2, NULL) != SDC_ERROR_ENVIRONMENT)
        return 2;
    const char *said = sdc_error(cx);
    if (*said && !strstr(said, "fork"))
        return 3;
    if (launch(m, 1024, &first) != SDC_ERROR_ENVIRONMENT)
        return 4;
    SdcModule *mine = load(&own);
    if (!mine || launch(mine, 128, &first) != SDC_OK || first != 42)
        return 5;
    return 0;
}

START_TEST(forks)
{
    SdcContext *cx;
    SdcModule *m = load(&cx);
    SdcFunction *ready;
    pthread_t t[OTHERS + 1];
    static const char *const bind[] = {"BLOCK=64"};
    float x[64] = {1};
    ck_assert_ptr_nonnull(m);
    ck_assert_int_eq(sdc_function_get(m, "k", bind, 1, &ready), SDC_OK);
    SdcArg args[] = {sdc_ptr(SDC_FP32, x), sdc_int(64)};
    ck_assert_int_eq(sdc_launch(ready, sdc_grid(1, 1, 1), args, 2, NULL), SDC_OK);
    for (int i = 0; i < OTHERS; i++)
        ck_assert_int_eq(pthread_create(&t[i], NULL, compile, m), 0);
    for (int i = 0; i < 20; i++) {
        int status;
        usleep(3000);
        pid_t pid = fork();
        if (!pid) {
            alarm(20);
            _exit(child(cx, ready, m));
        }
        ck_assert_int_eq(waitpid(pid, &status, 0), pid);
        ck_assert_msg(WIFEXITED(status) && WEXITSTATUS(status) == 0,
                      "round %d: status %x", i, (unsigned)status);
    }
    atomic_store(&stop, true);
    for (int i = 0; i < OTHERS; i++)
        pthread_join(t[i], NULL);
    sdc_context_destroy(cx);
}
END_TEST

int
main(void)
{
    Suite *s = suite_create("fork");
    TCase *t = tcase_create("fork");
    tcase_set_timeout(t, 100);
    tcase_add_test(t, forks);
    suite_add_tcase(s, t);
    SRunner *r = srunner_create(s);
    srunner_run_all(r, CK_NORMAL);
    int failed = srunner_ntests_failed(r);
    srunner_free(r);
    return failed != 0;
}
