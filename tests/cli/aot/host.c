/* A host of kernels compiled ahead of time: C and C++, linked with libsdcrt alone. On the
   CPU results are checked; on the GPU, which is the fake one, what reaches the driver. */
#include <k.h>
#include "tests/fake_cuda/fake_cuda.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

enum { N = 1000, THREADS = 16 };

static int failures;
static float x[2 * N + 64], out[N + 64];

static void
check(int ok, const char *what)
{
    if (!ok) {
        printf("wrong: %s\n", what);
        failures++;
    }
}

static void
result(const char *what, int n, int step, float by)
{
    for (int i = 0; i < N; i++)
        if (out[i] != (i < n ? x[i * step] * by : -1.0f)) {
            printf("wrong: %s at %d: %g\n", what, i, (double)out[i]);
            failures++;
            break;
        }
    for (int i = 0; i < N; i++)
        out[i] = -1;
}

static void
on_cpu(void)
{
    SdcrtError e;
    SdcrtPool *pool = sdcrt_pool_create(4);
    SdcrtCall call;
    result("nothing", 0, 1, 1);
    check(scale_fp32_cpu(pool, x, out, N, 1, 2.0f, &e) == SDCRT_OK, "step 1");
    result("step 1", N, 1, 2);
    check(scale_fp32_cpu(NULL, x, out, 999, 2, 3.0f, &e) == SDCRT_OK, "step 2");
    result("step 2", 999, 2, 3);
    check(scale_fp32_cpu(pool, x + 1, out, 10, 2, 3.0f, &e) == SDCRT_OK, "odd address");
    check(out[3] == x[7] * 3, "odd address");
    out[0] = out[1] = out[2] = out[3] = -1;
    for (int i = 0; i < N; i++)
        out[i] = -1;

    /* Threads of the caller's own. */
    check(scale_fp32_prepare(&call, x, out, N, 1, 4.0f, &e) == SDCRT_OK, "prepare");
    int64_t programs = sdcrt_grid_size(call.grid);
    check(programs == (N + 63) / 64, "programs");
    for (int64_t i = 0; i < programs; i += 3)
        check(sdcrt_run_range(call.entry, call.slots, call.grid, call.scratch, i,
                              i + 3 < programs ? i + 3 : programs) == SDCRT_OK,
              "range");
    result("ranges", N, 1, 4);

    check(scale_fp32_cpu(pool, x, out, -64 * 3, 1, 1.0f, &e) == SDCRT_ERROR_ARGUMENT,
          "a grid below zero");
    check(strstr(e.text, "grid of 'scale_fp32' is -3") != NULL, e.text);
    check(scale_fp32_cpu(pool, x, out, 0, 1, 1.0f, NULL) == SDCRT_OK, "nothing to do");
    check(scale_fp16_cpu(pool, x, (char *)out + 2, 4, 1, 1.0f, &e) ==
              SDCRT_ERROR_ARGUMENT,
          "fp16 at an odd address");
    check(strstr(e.text, "compiled for 'out' divisible by 16 alone") != NULL, e.text);
    sdcrt_pool_destroy(pool);
}

static SdcrtCuda *gpu;

static void *
launch(void *arg)
{
    SdcrtError e;
    float *p = (float *)arg;
    for (int i = 0; i < 20; i++)
        if (scale_fp32_cuda(gpu, NULL, p, p, N, 1 + i % 2, 1.0f, &e) != SDCRT_OK) {
            printf("wrong: %s\n", e.text);
            return arg;
        }
    return NULL;
}

static void
on_gpu(const char *driver)
{
    SdcrtError e;
    FakeCudaGet *get;
    uint64_t at;
    void *lib = dlopen(driver, RTLD_NOW), *p = lib ? dlsym(lib, "fake_cuda") : NULL;
    if (!p || sdcrt_cuda_open(0, &gpu, &e) != SDCRT_OK ||
        sdcrt_cuda_alloc(gpu, 1 << 16, &at, &e) != SDCRT_OK) {
        check(0, "no fake driver");
        return;
    }
    memcpy(&get, &p, sizeof get);
    FakeCuda *fake = get();
    float *there = (float *)(uintptr_t)at;
    pthread_t thread[THREADS];
    long live = fake->live;
    for (int i = 0; i < THREADS; i++)
        pthread_create(&thread[i], NULL, launch, there);
    for (int i = 0; i < THREADS; i++) {
        void *failed;
        pthread_join(thread[i], &failed);
        check(failed == NULL, "a thread's launches");
    }
    check(fake->launches == THREADS * 20, "launches");
    /* The context and two codes: each is loaded once. */
    check(fake->live - live == 2, "loaded once");
    check(scale_fp32_cuda(gpu, NULL, there, there, N, 1, 2.0f, &e) == SDCRT_OK, "one");
    check(fake->last.nparam == 4 && fake->last.grid[0] == (N + 63) / 64, "step is bound");
    check(scale_fp32_cuda(gpu, NULL, there, there, N, 2, 2.0f, &e) == SDCRT_OK, "two");
    check(fake->last.nparam == 5 && (int32_t)fake->last.params[3] == 2, "step is passed");
    check(fake->last.overlap, "launch_pdl");
    check(fake->last.params[0] == at && (int32_t)fake->last.params[2] == N, "arguments");
    /* This one was compiled for addresses divisible by 16 alone. */
    check(scale_fp16_cuda(gpu, NULL, there + 1, there, N, 1, 2.0f, &e) ==
              SDCRT_ERROR_ARGUMENT,
          "a promise that is not kept");
    check(strstr(e.text, "divisible by 16") != NULL, e.text);
    check(scale_fp32_cuda(gpu, NULL, there, there, N, 1, 2.0f, NULL) == SDCRT_OK, "fp32");
    check(scale_fp32_cuda(gpu, NULL, NULL, there, N, 1, 2.0f, &e) == SDCRT_OK &&
              fake->last.params[0] == 0,
          "a null pointer");
    check(sdcrt_bundle_load(&scale_fp16_bundle, gpu, &e) == SDCRT_OK, e.text);
    sdcrt_cuda_free(gpu, at, NULL);
    sdcrt_cuda_close(gpu);
}

int
main(int argc, char **argv)
{
    for (int i = 0; i < 2 * N + 64; i++)
        x[i] = (float)(i % 97);
    for (int i = 0; i < N; i++)
        out[i] = -1;
    on_cpu();
    if (argc > 1)
        on_gpu(argv[1]);
    printf("%d failures\n", failures);
    return failures != 0;
}
