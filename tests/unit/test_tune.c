/* sdc_tune as a function: what it leaves in memory, what it keeps when it is ended early,
   and every call of the driver made to fail while it works on a (fake) GPU. */
#include "runtime/rt/cuda.h"
#include "runtime/sdc.h"
#include "tests/fake_cuda/fake_cuda.h"

#include <check.h>
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { N = 256 };

static const char source[] =
    "import triton\n"
    "import triton.language as tl\n"
    "configs = [triton.Config({'BLOCK': b}) for b in [32, 64, 128]]\n"
    "@triton.autotune(configs=configs, key=['n'], restore_value=['x'])\n"
    "@triton.jit\n"
    "def more(x, out, n, BLOCK: tl.constexpr):\n"
    "    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)\n"
    "    a = tl.load(x + i, mask=i < n) + 1\n"
    "    tl.store(x + i, a, mask=i < n)\n"
    "    tl.store(out + i, a, mask=i < n)\n"
    "@triton.autotune(configs=configs, key=['n'], reset_to_zero=['sum'])\n"
    "@triton.jit\n"
    "def total(x, sum, n, BLOCK: tl.constexpr):\n"
    "    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)\n"
    "    tl.atomic_add(sum, tl.sum(tl.load(x + i, mask=i < n, other=0.0)))\n";

typedef struct Env {
    SdcContext *cx;
    SdcModule *m;
} Env;

static Env
setup(const char *target)
{
    Env env;
    SdcContextOptions o = {.target = target};
    ck_assert_int_eq(sdc_context_create(&o, &env.cx), SDC_OK);
    ck_assert_msg(sdc_module_load_text(env.cx, "tune.tk", source, sizeof source - 1,
                                       SDC_LANG_AUTO, &env.m) == SDC_OK,
                  "%s", sdc_error(env.cx));
    return env;
}

static int
stop_after(void *user, int done, int all, const SdcTrial *best)
{
    (void)all, (void)best;
    return done >= *(const int *)user;
}

START_TEST(memory_is_as_before)
{
    static const char *const kernels[] = {"more", "total"};
    for (int k = 0; k < 2; k++) {
        _Alignas(64) float x[N], y[N];
        Env env = setup("cpu");
        SdcTuning *t;
        const SdcTrial *trial;
        for (int i = 0; i < N; i++)
            x[i] = (float)i, y[i] = -1;
        SdcArg args[] = {sdc_ptr(SDC_FP32, x), sdc_ptr(SDC_FP32, y), sdc_int(N)};
        const size_t bytes[] = {sizeof x, k ? sizeof *y : sizeof y, 0};
        SdcTuneOptions o = {.kernel = kernels[k],
                            .grid = "cdiv(n,BLOCK)",
                            .args = args,
                            .nargs = 3,
                            .bytes = bytes};
        ck_assert_msg(sdc_tune(env.m, &o, &t) == SDC_OK, "%s", sdc_error(env.cx));
        for (int i = 0; (trial = sdc_tuning_trial(t, i)) != NULL; i++)
            ck_assert_msg(trial->times.n > 0 && !trial->why, "%s: %s", trial->config,
                          trial->why ? trial->why : "not measured");
        for (int i = 0; i < N; i++)
            ck_assert(x[i] == (float)i && y[i] == -1);
        ck_assert(strstr(sdc_tuning_times(t), "ms  in all"));
        ck_assert_str_eq(sdc_tuning_warnings(t), "");
        sdc_tuning_destroy(t);
        sdc_context_destroy(env.cx);
    }
}
END_TEST

START_TEST(ended_early)
{
    _Alignas(64) float x[N] = {0}, y[N] = {0};
    for (int most = 0; most < 2; most++) {
        Env env = setup("cpu");
        SdcTuning *t;
        SdcArg args[] = {sdc_ptr(SDC_FP32, x), sdc_ptr(SDC_FP32, y), sdc_int(N)};
        const size_t bytes[] = {sizeof x, sizeof y, 0};
        SdcTuneOptions o = {.kernel = "more",
                            .grid = "cdiv(n,BLOCK)",
                            .args = args,
                            .nargs = 3,
                            .bytes = bytes,
                            .progress = stop_after,
                            .progress_user = &most};
        SdcStatus status = sdc_tune(env.m, &o, &t);
        if (most) {
            ck_assert_int_eq(status, SDC_OK);
            ck_assert(strstr(sdc_tuning_line(t), "BLOCK=32"));
            ck_assert_int_eq(sdc_tuning_trial(t, 1)->times.n, 0);
            sdc_tuning_destroy(t);
        } else {
            ck_assert_int_eq(status, SDC_ERROR_ARGUMENT);
            ck_assert(strstr(sdc_error(env.cx), "ended before"));
        }
        sdc_context_destroy(env.cx);
    }
}
END_TEST

static FakeCuda *
fake_driver(void)
{
    void *lib = dlopen(getenv("SDC_LIBCUDA"), RTLD_NOW), *p = NULL;
    FakeCudaGet *get;
    ck_assert_msg(lib && (p = dlsym(lib, "fake_cuda")), "%s", dlerror());
    memcpy(&get, &p, sizeof p);
    return get();
}

static SdcStatus
tune_there(Env *env, uint64_t at)
{
    SdcTuning *t;
    void *p = (void *)(uintptr_t)at;
    SdcArg args[] = {sdc_ptr(SDC_FP32, p), sdc_ptr(SDC_FP32, p), sdc_int(N)};
    const size_t bytes[] = {N * sizeof(float), N * sizeof(float), 0};
    SdcTuneOptions o = {.kernel = "more",
                        .grid = "cdiv(n,BLOCK)",
                        .args = args,
                        .nargs = 3,
                        .bytes = bytes,
                        .threads = 1};
    SdcStatus status = sdc_tune(env->m, &o, &t);
    if (status == SDC_OK)
        sdc_tuning_destroy(t);
    return status;
}

/* The first calls one by one, then some of the many launches that are measured. What
   fails in one candidate is no failure of the tuning. */
START_TEST(every_call_may_fail)
{
    setenv("SDC_LIBCUDA", SDC_TMP "/../../libfakecuda.so", 1);
    FakeCuda *fake = fake_driver();
    int seen = 0;
    for (int k = 1; k < 200; k += k < 90 ? 1 : 30) {
        Env env = setup("cuda");
        SdcDevice d;
        uint64_t at;
        ck_assert_int_eq(sdc_context_device(env.cx, &d), SDC_OK);
        ck_assert_int_eq(sdcrt_cuda_alloc(d.cuda, N * sizeof(float), &at, NULL),
                         SDCRT_OK);
        fake->calls = 0;
        fake->fail_at = k;
        fake->fail_code = 719;
        fake->fail_for_ever = 0;
        SdcStatus status = tune_there(&env, at);
        fake->fail_at = 0;
        seen += status != SDC_OK;
        ck_assert_msg(status == SDC_OK || strlen(sdc_error(env.cx)) > 5, "call %d, %s", k,
                      fake->failed);
        ck_assert_int_eq(sdcrt_cuda_free(d.cuda, at, NULL), SDCRT_OK);
        sdc_context_destroy(env.cx);
        ck_assert_msg(fake->live == 0, "call %d, %s: %ld things are left", k,
                      fake->failed, fake->live);
    }
    ck_assert_int_gt(seen, 4);
    fprintf(stderr, "faults of the driver: %d tunings failed and left nothing\n", seen);
}
END_TEST

int
main(void)
{
    Suite *s = suite_create("tune");
    TCase *t = tcase_create("tune");
    tcase_set_timeout(t, 240);
    tcase_add_test(t, memory_is_as_before);
    tcase_add_test(t, ended_early);
    tcase_add_test(t, every_call_may_fail);
    suite_add_tcase(s, t);
    SRunner *r = srunner_create(s);
    srunner_run_all(r, CK_NORMAL);
    int failed = srunner_ntests_failed(r);
    srunner_free(r);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
