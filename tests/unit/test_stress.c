/* 64 threads on one context: they load the same and other modules, specialize, launch on
   the CPU, with a tuned configuration, too, and on two fake GPUs, fail and read messages,
   all at once. What it shows is
   that nothing is wrong, hangs or is reported by AddressSanitizer or ThreadSanitizer. */
#include "runtime/rt/cuda.h"
#include "runtime/sdc.h"

#include <check.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { THREADS = 64, ROUNDS = 12, N = 512 };

static const char source[] =
    "import triton\n"
    "import triton.language as tl\n"
    "@triton.jit\n"
    "def k(x, out, n, by, BLOCK: tl.constexpr):\n"
    "    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)\n"
    "    tl.store(out + i, tl.load(x + i, mask=i < n) * by, mask=i < n)\n";

static const char tuned[] =
    "k | any | cpu | *fp32,*fp32,i32,i32 | n=512 | BLOCK=64 | 1 us\n"
    "k | any | cpu | *fp32,*fp32,i32,i32 | n=64 | BLOCK=16 | 1 us\n";

typedef struct Shared {
    SdcContext *cpu, *gpu[2];
    SdcModule *on_cpu, *on_gpu[2];
    uint64_t memory[2];
} Shared;

typedef struct Worker {
    pthread_t thread;
    Shared *s;
    int id;
    const char *wrong;
} Worker;

static SdcStatus
launch(SdcModule *m, int block, const float *x, const float *out, int by)
{
    char text[32];
    const char *const bind[] = {text};
    SdcFunction *f;
    snprintf(text, sizeof text, "BLOCK=%d", block);
    SdcStatus status = sdc_function_get(m, "k", bind, 1, &f);
    SdcArg args[] = {sdc_ptr(SDC_FP32, x), sdc_ptr(SDC_FP32, out), sdc_int(N),
                     sdc_int(by)};
    return status == SDC_OK ? sdc_launch(f, sdc_grid(N / block, 1, 1), args, 4, NULL)
                            : status;
}

/* By the lines of a .tune file: the grid follows. */
static SdcStatus
launch_tuned(SdcModule *m, const float *x, const float *out, int n, int by)
{
    SdcFunction *f;
    SdcStatus status = sdc_function_get(m, "k", NULL, 0, &f);
    SdcArg args[] = {sdc_ptr(SDC_FP32, x), sdc_ptr(SDC_FP32, out), sdc_int(n),
                     sdc_int(by)};
    return status == SDC_OK ? sdc_launch_tuned(f, "cdiv(n,BLOCK)", args, 4, NULL)
                            : status;
}

static const char *
one_round(Worker *w, int round)
{
    static const int blocks[] = {32, 64, 128};
    _Alignas(64) float x[N], out[N] = {0};
    Shared *s = w->s;
    int by = 1 + (w->id + round) % 3, block = blocks[(w->id / 2 + round) % 3];
    int device = w->id % 2;
    for (int i = 0; i < N; i++)
        x[i] = (float)(i + w->id);
    if (launch(s->on_cpu, block, x, out, by) != SDC_OK)
        return "launch";
    for (int i = 0; i < N; i++)
        if (out[i] != x[i] * (float)by)
            return "result";
    memset(out, 0, sizeof out);
    if (launch_tuned(s->on_cpu, x, out, N - w->id % 2, by) != SDC_OK)
        return "a tuned launch";
    for (int i = 0; i < N - w->id % 2; i++)
        if (out[i] != x[i] * (float)by)
            return "result of a tuned launch";
    const float *there = (const float *)(uintptr_t)s->memory[device];
    if (launch(s->on_gpu[device], block, there, there, by) != SDC_OK)
        return "launch on a GPU";
    if (launch(s->on_cpu, block + 1, x, out, by) != SDC_ERROR_SOURCE ||
        !strstr(sdc_error(s->cpu), "power of 2"))
        return "an error and its message";
    if (round % 4)
        return NULL;
    SdcModule *own;
    if (sdc_module_load_text(s->cpu, "own.tk", source, sizeof source - 1, SDC_LANG_AUTO,
                             &own) != SDC_OK ||
        launch(own, block, x, out, 2) != SDC_OK || out[N - 1] != 2 * x[N - 1])
        return "a module of its own";
    sdc_module_unload(own);
    return NULL;
}

static void *
work(void *arg)
{
    Worker *w = arg;
    for (int i = 0; i < ROUNDS && !w->wrong; i++)
        w->wrong = one_round(w, i);
    return NULL;
}

START_TEST(all_at_once)
{
    Shared s = {0};
    static Worker w[THREADS];
    setenv("SDC_LIBCUDA", SDC_TMP "/../../libfakecuda.so", 1);
    ck_assert_int_eq(sdc_context_create(NULL, &s.cpu), SDC_OK);
    ck_assert_int_eq(sdc_module_load_text(s.cpu, "k.tk", source, sizeof source - 1,
                                          SDC_LANG_AUTO, &s.on_cpu),
                     SDC_OK);
    ck_assert_int_eq(sdc_module_tune(s.on_cpu, tuned), SDC_OK);
    for (int i = 0; i < 2; i++) {
        SdcContextOptions o = {.target = "cuda", .device = i};
        SdcDevice d;
        ck_assert_int_eq(sdc_context_create(&o, &s.gpu[i]), SDC_OK);
        ck_assert_int_eq(sdc_context_device(s.gpu[i], &d), SDC_OK);
        ck_assert_int_eq(sdcrt_cuda_alloc(d.cuda, 4 * N, &s.memory[i], NULL), SDCRT_OK);
        ck_assert_int_eq(sdc_module_load_text(s.gpu[i], "k.tk", source, sizeof source - 1,
                                              SDC_LANG_AUTO, &s.on_gpu[i]),
                         SDC_OK);
    }
    for (int i = 0; i < THREADS; i++) {
        w[i] = (Worker){.s = &s, .id = i};
        ck_assert_int_eq(pthread_create(&w[i].thread, NULL, work, &w[i]), 0);
    }
    for (int i = 0; i < THREADS; i++)
        pthread_join(w[i].thread, NULL);
    for (int i = 0; i < THREADS; i++)
        ck_assert_msg(!w[i].wrong, "thread %d: %s", i, w[i].wrong);
    for (int i = 0; i < 2; i++)
        sdc_context_destroy(s.gpu[i]);
    sdc_context_destroy(s.cpu);
}
END_TEST

int
main(void)
{
    Suite *s = suite_create("stress");
    TCase *t = tcase_create("stress");
    tcase_set_timeout(t, 60);
    tcase_add_test(t, all_at_once);
    suite_add_tcase(s, t);
    SRunner *r = srunner_create(s);
    srunner_run_all(r, CK_NORMAL);
    int failed = srunner_ntests_failed(r);
    srunner_free(r);
    return failed != 0;
}
