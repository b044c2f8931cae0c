/* Sequences of calls of sdc.h on a few objects, in any order, with wrong arguments among
   right ones. A status each time, never a signal; nothing is left behind. Each byte is a
   call or one of its arguments. */
#include "runtime/sdc.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { FEW = 3, CALLS = 40, BYTES = 4096 };

static const char *const sources[] = {
    "import triton\n"
    "import triton.language as tl\n"
    "@triton.jit\n"
    "def k(x, y, n, f, B: tl.constexpr):\n"
    "    o = tl.program_id(0)*B + tl.arange(0, B)\n"
    "    m = o < n\n"
    "    tl.store(y + o, tl.load(x + o, mask=m) * f, mask=m)\n",
    "import triton\n"
    "import triton.language as tl\n"
    "@triton.jit\n"
    "def k(x, y, n: 'i32', f=None, B: tl.constexpr = 16):\n"
    "    tl.store(y + tl.arange(0, B), n, mask=tl.arange(0, B) < n)\n",
    "kernel @k(%p: ptr<f32> {sig=\"*fp32\"}) {warps=4, stages=3} {\n  return\n}\n",
    "import triton\n@triton.jit\ndef k(x): frobnicate(x)\n",
    "def f(:\n",
    "",
};
static const char *const binds[] = {"B=64", "B=16", "B=63", "num_warps=2", "n=3", "zz=1",
                                    "B",    "",     NULL,   "f=None",      "B=tl.int8"};
static const char *const signatures[] = {
    "*fp32,*fp32,i32,fp32,64", "*fp32:16,*fp32,i32,fp32,B=16", "*fp16,*fp32,i64,1,32",
    "x=*fp32,n=i32",           "*fp32",                        "",
    NULL,                      "i32,i32,i32,i32,i32"};
static const char *const grids[] = {"1", "cdiv(n,B)", "n//0", "", NULL, "B,B,B,B", "-1"};
static const char *const names[] = {"k", "k", "k", "zz", "", NULL};
#define ANY(list) list[next(r) % (sizeof list / sizeof *list)]

typedef struct Reader {
    const uint8_t *at, *end;
} Reader;

typedef struct World {
    SdcContext *cx;
    SdcModule *mod[FEW];
    SdcFunction *fn[FEW]; /* of mod[i] */
    SdcKernel *kernel[FEW];
} World;

static unsigned
next(Reader *r)
{
    return r->at < r->end ? *r->at++ : 0;
}

static SdcArg
argument(Reader *r, float *memory)
{
    unsigned what = next(r);
    SdcDtype t = (SdcDtype)(next(r) % (SDC_DTYPE_COUNT + 2));
    switch (what % 8) {
    case 0:
    case 1:
    case 2: return sdc_ptr(what % 16 < 8 ? SDC_FP32 : t, memory);
    case 3: return sdc_int_of(t, (int64_t)next(r) % 20);
    case 4: return sdc_int((int64_t)next(r) % 20);
    case 5: return sdc_float_of(t, (double)next(r));
    case 6: return sdc_none();
    default: break;
    }
    /* Of no kind that there is: one of a descriptor would have it read from memory. */
    int32_t kind = what % 16 < 8 ? -1 - (int32_t)next(r) : 9 + (int32_t)next(r);
    return (SdcArg){kind, (int32_t)next(r) - 3, {memory}};
}

/* Mostly what the first kernel takes; what the kernel writes is in bounds anyway. */

static int
arguments(Reader *r, SdcArg *args, float (*memory)[BYTES / sizeof(float)])
{
    args[0] = sdc_ptr(SDC_FP32, memory[0]);
    args[1] = sdc_ptr(SDC_FP32, memory[1]);
    args[2] = sdc_int((int64_t)next(r) % 20);
    args[3] = sdc_float(2);
    unsigned odd = next(r);
    if (odd % 3 == 0)
        args[odd / 3 % 4] = argument(r, memory[odd % 2]);
    return odd % 11 == 0 ? (int)(odd % 7) - 1 : 4;
}

static void
drop(World *w, int i)
{
    sdc_module_unload(w->mod[i]);
    w->mod[i] = NULL;
    w->fn[i] = NULL;
    w->kernel[i] = NULL;
}

static SdcStatus
launch(World *w, Reader *r, int i)
{
    static float memory[2][BYTES / sizeof(float)];
    static const int64_t sizes[] = {1, 1, 2, 3, 0, -1, 1LL << 32, -(1LL << 32) + 1};
    SdcArg args[8];
    SdcGrid g = sdc_grid(ANY(sizes), 1, 1);
    SdcKernel *k;
    int n = arguments(r, args, memory);
    const SdcArg *given = next(r) % 16 ? args : NULL;
    switch (next(r) % 6) {
    case 0: return sdc_specialize(w->fn[i], given, n, &k);
    case 1: return sdc_launch_tuned(w->fn[i], ANY(grids), given, n, NULL);
    case 2: return sdc_kernel_launch(w->kernel[i], g, given, n, NULL);
    case 3: return sdc_kernel_launch_threads(w->kernel[i], g, given, n, (int)next(r) - 1);
    case 4: return sdc_kernel_grid(w->kernel[i], ANY(grids), given, n, &g);
    default: return sdc_launch(w->fn[i], g, given, n, NULL);
    }
}

static SdcStatus
ask(World *w, Reader *r, int i)
{
    const char *bind[] = {ANY(binds), ANY(binds)};
    const SdcParam *params;
    const SdcCheck *check;
    SdcCacheInfo info;
    int64_t value;
    int n, nbind = (int)(next(r) % 4) - 1;
    SdcOutput *out = NULL;
    SdcCompileOptions o = {.kernel = ANY(names), .signature = ANY(signatures),
                           .bind = bind, .nbind = nbind, .emit = SDC_EMIT_TIR};
    SdcStatus status = SDC_OK;
    if (nbind > 2)
        nbind = 2;
    switch (next(r) % 9) {
    case 0: return sdc_function_get(w->mod[i], ANY(names), bind, nbind, &w->fn[i]);
    case 1:
        return sdc_kernel_get(w->mod[i], ANY(names), ANY(signatures), bind, nbind,
                              &w->kernel[i]);
    case 2: return sdc_module_params(w->mod[i], ANY(names), &params, &n);
    case 3: return sdc_module_check(w->mod[i], NULL, &check);
    case 4: return sdc_module_tune(w->mod[i], ANY(signatures));
    case 5: return sdc_cache(w->cx, (SdcCacheAction)((int)(next(r) % 3) - 1), 0, &info);
    case 6:
        status = sdc_compile(w->mod[i], next(r) % 8 ? &o : NULL, &out);
        sdc_output_destroy(out);
        return status;
    case 7: sdc_kernel_constant(w->kernel[i], ANY(names), &value); break;
    default: sdc_kernel_writes(w->kernel[i], (int)next(r) - 2); break;
    }
    return SDC_OK;
}

static SdcStatus
step(World *w, Reader *r)
{
    int i = (int)(next(r) % FEW);
    switch (next(r) % 16) {
    case 0: drop(w, i); return SDC_OK;
    case 1:
    case 2: {
        const char *text = ANY(sources);
        drop(w, i);
        return sdc_module_load_text(w->cx, next(r) % 9 ? "a" : NULL, text, strlen(text),
                                    (SdcLang)(next(r) % 5 / 4 * 3), &w->mod[i]);
    }
    case 3:
        for (int k = 0; k < FEW; k++) /* those of the context go with it */
            w->mod[k] = NULL, w->fn[k] = NULL, w->kernel[k] = NULL;
        sdc_context_destroy(w->cx);
        w->cx = NULL;
        return sdc_context_create(
            &(SdcContextOptions){.threads = (int)(next(r) % 4) - 1, .debug = 1}, &w->cx);
    case 4:
    case 5:
    case 6:
    case 7:
    case 8: return ask(w, r, i);
    default: return launch(w, r, i);
    }
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    Reader r = {data, data + size};
    World w = {0};
    if (size > 1000)
        return -1;
    setenv("SDC_CACHE", "off", 1);
    if (sdc_context_create(&(SdcContextOptions){.threads = 1}, &w.cx) != SDC_OK)
        abort();
    for (int i = 0; i < FEW; i++) {
        const char *bind[] = {"B=16"};
        sdc_module_load_text(w.cx, "a.tk", sources[i % 2], strlen(sources[i % 2]), 0,
                             &w.mod[i]);
        sdc_function_get(w.mod[i], "k", bind, 1, &w.fn[i]);
    }
    for (int i = 0; i < CALLS && r.at < r.end; i++) {
        SdcStatus status = step(&w, &r);
        if (!*sdc_status_name(status) || !sdc_error(w.cx))
            abort();
        if (status == SDC_ERROR_INTERNAL) {
            fprintf(stderr, "\ninternal error: %s", sdc_error(w.cx));
            abort();
        }
    }
    sdc_context_destroy(w.cx);
    return 0;
}
