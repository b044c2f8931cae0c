/* The roofline of this machine: references that run in the same rounds as the kernel, now
   and then, and the best that any round has seen. Copies and sums of more than caches
   hold, for a kernel may read without writing; with warm caches the same of the row's
   size; products of tiles that stay where they are, of the narrowest type that the kernel
   has, and of a few shapes, for which one is best depends on the device. What the kernel
   itself reaches counts as well: nobody passes what was reached here. */
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
    "def add_up(x, y, n, BLOCK: tl.constexpr):\n"
    "    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)\n"
    "    tl.store(y + tl.program_id(0), tl.sum(tl.load(x + i, mask=i < n, other=0), 0))\n"
    "@triton.jit\n"
    "def fma(x, y, n, BLOCK: tl.constexpr):\n"
    "    i = tl.arange(0, BLOCK)\n"
    "    a = tl.load(x + i)\n"
    "    acc = a\n"
    "    for _ in range(n):\n"
    "        for k in tl.static_range(16):\n"
    "            acc = acc * a + a\n"
    "    tl.store(y + tl.program_id(0) * BLOCK + i, acc)\n"
    "@triton.jit\n"
    "def product(x, y, n, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr,\n"
    "            ACC: tl.constexpr):\n"
    "    m = tl.arange(0, M)[:, None]\n"
    "    k = tl.arange(0, K)\n"
    "    a = tl.load(x + m * K + k[None, :])\n"
    "    b = tl.load(x + k[:, None] * N + tl.arange(0, N)[None, :])\n"
    "    acc = tl.zeros([M, N], ACC)\n"
    "    for _ in range(n):\n"
    "        acc = tl.dot(a, b, acc)\n"
    "    at = tl.program_id(0) * M * N + m * N + tl.arange(0, N)[None, :]\n"
    "    tl.store(y + at, acc)\n";

enum { BLOCK = 4096, FMA_BLOCK = 64, FMA_STEPS = 16 };
enum { NOISE = 64 * 1024 }; /* bytes that products read */

typedef struct Reference {
    SdcFunction *f;
    SdcGrid grid;
    SdcArg args[3];
    double bytes, flops; /* of a launch */
    bool both;           /* reads and writes */
    bool of_row;
} Reference;

struct RoofWork {
    const SdcDevice *gpu;
    SdcModule *mod;
    SdcContext *cx;
    void *x, *y;
    size_t bytes; /* of each */
    Reference at[ROOF_MOST];
    int n;
    int first_of_row; /* those behind are measured with warm caches alone */
};

static SdcStatus
launch(void *user, void *stream)
{
    Reference *w = user;
    return sdc_launch(w->f, w->grid, w->args, 3, stream);
}

static void
set_memory(RoofWork *w, Reference *r, bool both, size_t bytes)
{
    int64_t n = (int64_t)(bytes / 4);
    r->grid = sdc_grid((n + BLOCK - 1) / BLOCK, 1, 1);
    r->args[0] = sdc_ptr(SDC_FP32, w->x);
    r->args[1] = sdc_ptr(SDC_FP32, w->y);
    r->args[2] = sdc_int(n);
    r->bytes = (both ? 2 : 1) * 4 * (double)n;
}

static SdcStatus
add_memory(RoofWork *w, bool of_row)
{
    static const char *const bind[] = {"BLOCK=4096", "num_warps=8"};
    static const char *const name[] = {"copy", "add_up"};
    SdcStatus status = SDC_OK;
    for (int i = 0; i < 2 && status == SDC_OK; i++) {
        Reference *r = &w->at[w->n++];
        status = sdc_function_get(w->mod, name[i], bind, 2, &r->f);
        r->both = i == 0;
        r->of_row = of_row;
        set_memory(w, r, r->both, w->bytes);
    }
    return status;
}

static SdcStatus
add_product(RoofWork *w, SdcDtype type, int m, int n, int warps, int64_t programs)
{
    enum { K = 64 };
    const int64_t rounds = w->gpu ? 512 : 32;
    const char *acc = type == SDC_I8 ? "ACC=tl.int32" : "ACC=tl.float32";
    char tm[16], tn[16], tw[24];
    snprintf(tm, sizeof tm, "M=%d", m);
    snprintf(tn, sizeof tn, "N=%d", n);
    snprintf(tw, sizeof tw, "num_warps=%d", warps);
    const char *const bind[] = {tm, tn, "K=64", acc, tw};
    Reference *r = &w->at[w->n++];
    r->grid = sdc_grid(programs, 1, 1);
    r->args[0] = sdc_ptr(type, w->x);
    r->args[1] = sdc_ptr(type == SDC_I8 ? SDC_I32 : SDC_FP32, w->y);
    r->args[2] = sdc_int(rounds);
    r->flops = 2.0 * m * n * K * (double)rounds * (double)programs;
    return sdc_function_get(w->mod, "product", bind, 5, &r->f);
}

/* Products run on a few programs a processor, so that all are busy to the end. */
static SdcStatus
add_products(RoofWork *w, SdcDtype type)
{
    if (w->gpu) {
        int64_t programs = 4 * sdcrt_cuda_info(w->gpu->cuda)->processors;
        SdcStatus status = add_product(w, type, 128, 128, 4, programs);
        return status == SDC_OK ? add_product(w, type, 128, 256, 8, programs) : status;
    }
    static const char *const bind[] = {"BLOCK=64", "num_warps=4"};
    const int64_t programs = 4 * sdc_context_threads(w->cx), rounds = 4096;
    SdcStatus status = add_product(w, type, 64, 64, 4, programs);
    Reference *r = &w->at[w->n++];
    r->grid = sdc_grid(programs, 1, 1);
    r->args[0] = sdc_ptr(SDC_FP32, w->x);
    r->args[1] = sdc_ptr(SDC_FP32, w->y);
    r->args[2] = sdc_int(rounds);
    r->flops = 2.0 * FMA_BLOCK * FMA_STEPS * (double)rounds * (double)programs;
    return status == SDC_OK ? sdc_function_get(w->mod, "fma", bind, 2, &r->f) : status;
}

/* The narrowest that the arrays have and the device multiplies; half precision at the
   widest, for kernels may make their elements narrower. */
static SdcDtype
product_type(const Run *r, const SdcDevice *gpu)
{
    SdcDtype type = SDC_FP16;
    if (!gpu)
        return SDC_FP32;
    int sm = sdcrt_cuda_info(gpu->cuda)->sm;
    for (int i = 0; i < r->narg; i++) {
        const Array *a = &r->args[i].array;
        if (a->data && sdc_dtype_size(a->dtype) == 1)
            type = sdc_dtype_is_float(a->dtype) && sm >= 89 ? SDC_FP8E4NV : SDC_I8;
    }
    return type;
}

/* What products read: numbers of either sign that are small but not zero, for multipliers
   of zeros need less power, and a GPU's clock is higher then than any product with data
   sees. Sums of products stay finite. */
static void
noise(unsigned char *to, SdcDtype type)
{
    uint32_t r = 1;
    int size = sdc_dtype_size(type);
    for (int i = 0; i < NOISE; i += size) {
        r = r * 1664525u + 1013904223u;
        double v = (0.25 + 0.25 * (double)(r >> 16 & 0xff) / 256) * (r >> 31 ? 1 : -1);
        sdc_dtype_store(type, type == SDC_I8 ? 100 * v : v, to + i);
    }
}

static bool
get_memory(RoofWork *w, SdcDtype type)
{
    unsigned char *some = calloc(1, NOISE);
    uint64_t x = 0, y = 0;
    bool ok = some != NULL;
    if (ok)
        noise(some, type);
    if (ok && w->gpu) {
        SdcrtCuda *cuda = w->gpu->cuda;
        ok = sdcrt_cuda_alloc(cuda, w->bytes, &x, NULL) == SDCRT_OK &&
             sdcrt_cuda_alloc(cuda, w->bytes, &y, NULL) == SDCRT_OK &&
             sdcrt_cuda_fill(cuda, x, 0, w->bytes, NULL) == SDCRT_OK &&
             sdcrt_cuda_write(cuda, x, some, NOISE, NULL) == SDCRT_OK;
        w->x = (void *)(uintptr_t)x;
        w->y = (void *)(uintptr_t)y;
    } else if (ok) {
        w->x = aligned_alloc(64, w->bytes);
        w->y = aligned_alloc(64, w->bytes);
        if ((ok = w->x && w->y)) {
            memset(w->x, 0, w->bytes);
            memset(w->y, 0, w->bytes);
            memcpy(w->x, some, NOISE);
        }
    }
    free(some);
    return ok;
}

/* What does not compile for this device is no reference; the rest are. */
static void
drop_failing(RoofWork *w, int first)
{
    int n = first;
    for (int i = first; i < w->n; i++) {
        SdcKernel *k;
        Reference *r = &w->at[i];
        if (r->f && sdc_specialize(r->f, r->args, 3, &k) == SDC_OK)
            w->at[n++] = *r;
    }
    w->n = n;
}

SdcStatus
roof_open(Bench *b, const Run *r, bool products, RoofWork **out)
{
    RoofWork *w = *out = arena_new(&b->c->arena, RoofWork);
    SdcDtype type = product_type(r, b->gpu);
    w->gpu = b->gpu;
    w->cx = r->cx;
    w->bytes = b->gpu ? (size_t)min_i64(b->gpu->memory / 8, 512 << 20) : 64 << 20;
    SdcStatus status = sdc_module_load_text(r->cx, "roofline.tk", source,
                                            sizeof source - 1, SDC_LANG_TRITON, &w->mod);
    if (status != SDC_OK || !get_memory(w, type))
        return status; /* without memory there is no roofline */
    status = add_memory(w, false);
    if (status == SDC_OK && products)
        status = add_products(w, type);
    drop_failing(w, 0);
    w->first_of_row = w->n;
    if (status == SDC_OK)
        status = add_memory(w, true);
    drop_failing(w, w->first_of_row);
    b->roof.product = products ? sdc_dtype_name(type) : NULL;
    return status;
}

/* A quarter of the time for all of them. */
int
roof_measured(RoofWork *w, double bytes, bool warm, SdcMeasured *out)
{
    int n = warm ? w->n : w->first_of_row;
    size_t most = w->bytes, size = bytes < (double)most ? (size_t)bytes : most;
    for (int i = 0; i < n; i++) {
        Reference *r = &w->at[i];
        if (r->of_row) /* a copy touches twice as much as it reads */
            set_memory(w, r, r->both, (r->both ? size / 2 : size) + 64);
        out[i] =
            (SdcMeasured){.launch = launch, .user = r, .share = 0.25 / w->first_of_row};
    }
    return n;
}

static double
more(double a, double b)
{
    return a > b ? a : b;
}

void
roof_take(RoofWork *w, Bench *b, int row, const SdcMeasured *from)
{
    int n = b->warm ? w->n : w->first_of_row;
    BenchRow *at = &b->row[row];
    for (int i = 0; i < n; i++) {
        const Reference *r = &w->at[i];
        double bytes = r->bytes / from[i].times.min;
        if (r->of_row)
            at->roof_bytes = more(at->roof_bytes, bytes);
        else
            b->roof.seen_bytes = more(b->roof.seen_bytes, bytes);
        b->roof.seen_flops = more(b->roof.seen_flops, r->flops / from[i].times.min);
    }
    b->roof.bytes = more(b->roof.bytes, b->roof.seen_bytes);
    b->roof.flops = more(b->roof.flops, b->roof.seen_flops);
    for (int i = 0; i < b->nseries; i++) {
        const SdcTimes *t = &b->series[i].at[row].times;
        if (b->series[i].kind == SERIES_FILE || !(t->min > 0))
            continue;
        double *bytes = b->warm ? &at->roof_bytes : &b->roof.bytes;
        *bytes = more(*bytes, at->bytes / t->min);
        b->roof.flops = more(b->roof.flops, at->flops / t->min);
    }
}

void
roof_done(RoofWork *w)
{
    if (!w)
        return;
    if (w->gpu) {
        sdcrt_cuda_free(w->gpu->cuda, (uint64_t)(uintptr_t)w->x, NULL);
        sdcrt_cuda_free(w->gpu->cuda, (uint64_t)(uintptr_t)w->y, NULL);
    } else {
        free(w->x);
        free(w->y);
    }
    sdc_module_unload(w->mod);
}

double
roof_share(const Bench *b, int row, const BenchPoint *p)
{
    const BenchRow *r = &b->row[row];
    double t = p->times.median, top = more(b->roof.bytes, r->roof_bytes);
    if (!(t > 0))
        return 0;
    return more(top > 0 ? r->bytes / t / top : 0,
                b->roof.flops > 0 ? r->flops / t / b->roof.flops : 0);
}
