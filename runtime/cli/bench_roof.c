/* The roofline of this machine by two kernels of its own: a copy of more than caches
   hold, and products of tiles that stay where they are. */
#include "runtime/cli/bench.h"

#include "runtime/rt/cuda.h"

#include <stdlib.h>
#include <string.h>

static const char source[] =
    "import triton\n"
    "import triton.language as tl\n"
    "@triton.jit\n"
    "def copy(x, y, n, BLOCK: tl.constexpr):\n"
    "    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)\n"
    "    tl.store(y + i, tl.load(x + i, mask=i < n), mask=i < n)\n"
    "@triton.jit\n"
    "def product(x, y, n, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr):\n"
    "    m = tl.arange(0, M)[:, None]\n"
    "    k = tl.arange(0, K)\n"
    "    a = tl.load(x + m * K + k[None, :])\n"
    "    b = tl.load(x + k[:, None] * N + tl.arange(0, N)[None, :])\n"
    "    acc = tl.zeros([M, N], tl.float32)\n"
    "    for _ in range(n):\n"
    "        acc = tl.dot(a, b, acc)\n"
    "    at = tl.program_id(0) * M * N + m * N + tl.arange(0, N)[None, :]\n"
    "    tl.store(y + at, acc)\n";

enum { COPY_BLOCK = 4096, GPU_ROUNDS = 512, CPU_ROUNDS = 64 };
enum { NOISE = 64 * 128 }; /* elements of a tile */

typedef struct Work {
    SdcFunction *f;
    SdcGrid grid;
    SdcArg args[3];
} Work;

static SdcStatus
launch(void *user, void *stream)
{
    Work *w = user;
    return sdc_launch(w->f, w->grid, w->args, 3, stream);
}

static SdcStatus
seconds(SdcContext *cx, Work *w, double *out)
{
    SdcMeasureOptions o = {.seconds = 0.1, .warm = 1};
    SdcTimes t;
    SdcStatus status = sdc_measure(cx, launch, w, &o, &t);
    *out = t.min;
    return status;
}

static SdcStatus
measure_both(SdcContext *cx, const SdcDevice *gpu, SdcModule *m, void *x, void *y,
             size_t bytes, Roof *out)
{
    static const char *const copy[] = {"BLOCK=4096", "num_warps=8"};
    static const char *const big[] = {"M=128", "N=128", "K=64", "num_warps=4"};
    static const char *const small[] = {"M=64", "N=64", "K=64", "num_warps=4"};
    const double side = gpu ? 128 : 64;
    const int64_t rounds = gpu ? GPU_ROUNDS : CPU_ROUNDS, n = (int64_t)(bytes / 4);
    const int64_t programs =
        gpu ? 4 * sdcrt_cuda_info(gpu->cuda)->processors : 4 * sdc_context_threads(cx);
    const SdcDtype type = gpu ? SDC_FP16 : SDC_FP32;
    Work w;
    double t;
    SdcStatus status = sdc_function_get(m, "copy", copy, 2, &w.f);
    w.grid = sdc_grid((n + COPY_BLOCK - 1) / COPY_BLOCK, 1, 1);
    w.args[0] = sdc_ptr(SDC_FP32, x);
    w.args[1] = sdc_ptr(SDC_FP32, y);
    w.args[2] = sdc_int(n);
    if (status == SDC_OK && (status = seconds(cx, &w, &t)) == SDC_OK)
        out->bytes = 2 * (double)bytes / t;
    if (status == SDC_OK)
        status = sdc_function_get(m, "product", gpu ? big : small, 4, &w.f);
    w.grid = sdc_grid(programs, 1, 1);
    w.args[0] = sdc_ptr(type, x);
    w.args[2] = sdc_int(rounds);
    if (status == SDC_OK && (status = seconds(cx, &w, &t)) == SDC_OK)
        out->flops = 2 * side * side * 64 * (double)rounds * (double)programs / t;
    out->product = gpu ? "fp16" : "fp32";
    return status;
}

/* What the product reads: numbers of either sign from 0.25 to 0.5, for multipliers of
   zeros need less power, and a GPU's clock is higher then than any product with data
   sees. */
static void
noise(void *to, bool half)
{
    uint32_t r = 1;
    for (int i = 0; i < NOISE; i++) {
        r = r * 1664525u + 1013904223u;
        if (half)
            ((uint16_t *)to)[i] = (uint16_t)(0x3400 | (r >> 16 & 0x83ff));
        else
            ((uint32_t *)to)[i] = 0x3e800000u | (r & 0x807fffffu);
    }
}

SdcStatus
roof_measure(SdcContext *cx, const SdcDevice *gpu, Roof *out)
{
    const size_t bytes = gpu ? (size_t)min_i64(gpu->memory / 8, 512 << 20) : 64 << 20;
    uint64_t dx = 0, dy = 0;
    void *x = NULL, *y = NULL;
    SdcModule *m;
    uint32_t some[NOISE];
    *out = (Roof){0};
    noise(some, gpu != NULL);
    SdcStatus status = sdc_module_load_text(cx, "roofline.tk", source, sizeof source - 1,
                                            SDC_LANG_TRITON, &m);
    if (status != SDC_OK)
        return status;
    if (gpu) {
        if (sdcrt_cuda_alloc(gpu->cuda, bytes, &dx, NULL) == SDCRT_OK &&
            sdcrt_cuda_alloc(gpu->cuda, bytes, &dy, NULL) == SDCRT_OK &&
            sdcrt_cuda_fill(gpu->cuda, dx, 0, bytes, NULL) == SDCRT_OK &&
            sdcrt_cuda_write(gpu->cuda, dx, some, sizeof some, NULL) == SDCRT_OK) {
            x = (void *)(uintptr_t)dx;
            y = (void *)(uintptr_t)dy;
        }
    } else {
        x = aligned_alloc(64, bytes);
        y = aligned_alloc(64, bytes);
        if (x && y) {
            memset(x, 0, bytes);
            memset(y, 0, bytes);
            memcpy(x, some, sizeof some);
        }
    }
    if (x && y)
        status = measure_both(cx, gpu, m, x, y, bytes, out);
    if (gpu) {
        sdcrt_cuda_free(gpu->cuda, dx, NULL);
        sdcrt_cuda_free(gpu->cuda, dy, NULL);
    } else {
        free(x);
        free(y);
    }
    sdc_module_unload(m);
    return status;
}

double
roof_share(const Roof *roof, const BenchRow *row)
{
    double t = row->times.median;
    double memory = roof->bytes > 0 ? row->bytes / t / roof->bytes : 0;
    double compute = roof->flops > 0 ? row->flops / t / roof->flops : 0;
    return memory > compute ? memory : compute;
}
