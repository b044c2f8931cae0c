/* Softmax of the rows of a matrix, on the CPU or with "rows cuda" on a GPU: the kernel of
   kernels_dsl/softmax.tk, compiled at its first launch.

       rows kernels_dsl/softmax.tk [cuda] */
#include <sdc/cuda.h>
#include <sdc/sdc.h>

#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

enum { ROWS = 64, COLS = 500 };

static float x[ROWS][COLS], y[ROWS][COLS];

/* On a GPU the kernel works on copies there. */
static int
softmax_gpu(SdcContext *ctx, SdcFunction *softmax)
{
    SdcDevice gpu;
    SdcrtError why;
    uint64_t dx, dy;
    if (sdc_context_device(ctx, &gpu) != SDC_OK)
        return fputs(sdc_error(ctx), stderr), 1;
    if (sdcrt_cuda_alloc(gpu.cuda, sizeof x, &dx, &why) ||
        sdcrt_cuda_alloc(gpu.cuda, sizeof y, &dy, &why) ||
        sdcrt_cuda_write(gpu.cuda, dx, x, sizeof x, &why))
        return fprintf(stderr, "%s\n", why.text), 1;
    SdcArg args[] = {sdc_ptr(SDC_FP32, (void *)(uintptr_t)dx),
                     sdc_ptr(SDC_FP32, (void *)(uintptr_t)dy),
                     sdc_int(COLS),
                     sdc_int(COLS),
                     sdc_int(ROWS),
                     sdc_int(COLS)};
    if (sdc_launch(softmax, sdc_grid(ROWS, 1, 1), args, 6, NULL) != SDC_OK)
        return fputs(sdc_error(ctx), stderr), 1;
    if (sdcrt_cuda_read(gpu.cuda, y, dy, sizeof y, &why))
        return fprintf(stderr, "%s\n", why.text), 1;
    sdcrt_cuda_free(gpu.cuda, dx, NULL);
    sdcrt_cuda_free(gpu.cuda, dy, NULL);
    return 0;
}

static int
softmax_cpu(SdcContext *ctx, SdcFunction *softmax)
{
    SdcArg args[] = {sdc_ptr(SDC_FP32, x), sdc_ptr(SDC_FP32, y), sdc_int(COLS),
                     sdc_int(COLS),        sdc_int(ROWS),        sdc_int(COLS)};
    if (sdc_launch(softmax, sdc_grid(ROWS, 1, 1), args, 6, NULL) != SDC_OK)
        return fputs(sdc_error(ctx), stderr), 1;
    return 0;
}

int
main(int argc, char **argv)
{
    const int on_gpu = argc > 2 && strcmp(argv[2], "cuda") == 0;
    SdcContextOptions options = {.target = on_gpu ? "cuda" : "cpu"};
    const char *bind[] = {"BLOCK=512"};
    SdcContext *ctx;
    SdcModule *module;
    SdcFunction *softmax;
    if (argc < 2 || sdc_context_create(&options, &ctx) != SDC_OK)
        return fprintf(stderr, "usage: rows softmax.tk [cuda]\n"), 2;
    if (sdc_module_load_file(ctx, argv[1], &module) ||
        sdc_function_get(module, "softmax", bind, 1, &softmax))
        return fputs(sdc_error(ctx), stderr), 1;
    for (int r = 0; r < ROWS; r++)
        for (int c = 0; c < COLS; c++)
            x[r][c] = (float)((r * 31 + c * 17) % 101) / 25.0f;
    if (on_gpu ? softmax_gpu(ctx, softmax) : softmax_cpu(ctx, softmax))
        return 1;
    double most = 0;
    for (int r = 0; r < ROWS; r++) {
        double sum = 0;
        for (int c = 0; c < COLS; c++)
            sum += y[r][c];
        most = fmax(most, fabs(sum - 1));
    }
    printf("rows add up to 1 within %s\n", most < 1e-5 ? "1e-5" : "nothing");
    sdc_context_destroy(ctx);
    return 0;
}
