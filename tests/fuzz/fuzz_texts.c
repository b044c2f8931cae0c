/* Texts of the C interface: signatures, bindings, grids, .tune files, chains to fuse. The
   first byte says which. */
#include "runtime/sdc.h"
#include "tests/fuzz/words.h"

#include <stdbool.h>
#include <stdio.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char source[] =
    "import triton\n"
    "import triton.language as tl\n"
    "@triton.autotune(configs=[triton.Config({'B': 64}, num_warps=2),\n"
    "                          triton.Config({'B': 128})], key=['n'])\n"
    "@triton.jit\n"
    "def k(x, y, n, f, B: tl.constexpr, S: tl.constexpr = 'a'):\n"
    "    o = tl.program_id(0)*B + tl.arange(0, B)\n"
    "    m = o < n\n"
    "    tl.store(y + o, tl.load(x + o, mask=m) * f, mask=m)\n"
    "@triton.jit\n"
    "def j(y, z, n, B: tl.constexpr):\n"
    "    o = tl.program_id(0)*B + tl.arange(0, B)\n"
    "    m = o < n\n"
    "    tl.store(z + o, tl.load(y + o, mask=m) + 1, mask=m)\n";

static SdcContext *cx;
static SdcModule *mod;
static SdcKernel *kernel;
static float x[256], y[256];

static void
start(void)
{
    static int n;
    if (cx && ++n % 2000)
        return;
    sdc_context_destroy(cx);
    setenv("SDC_CACHE", "off", 1);
    if (sdc_context_create(&(SdcContextOptions){.threads = 1}, &cx) != SDC_OK ||
        sdc_module_load_text(cx, "k.tk", source, strlen(source), 0, &mod) != SDC_OK ||
        sdc_kernel_get(mod, "k", "*fp32,*fp32,i32,fp32,B=64", NULL, 0, &kernel) != SDC_OK)
        abort();
}

static SdcStatus
lower(const char *signature, const char *const *bind, int nbind)
{
    SdcCompileOptions o = {.kernel = "k",
                           .signature = signature,
                           .bind = bind,
                           .nbind = nbind,
                           .emit = SDC_EMIT_TIR};
    SdcOutput *out = NULL;
    SdcStatus status = sdc_compile(mod, &o, &out);
    sdc_output_destroy(out);
    return status;
}

static SdcStatus
tune(const char *text, const SdcArg *args, bool compile)
{
    SdcModule *m;
    SdcFunction *f;
    SdcKernel *k;
    if (sdc_module_load_text(cx, "k.tk", source, strlen(source), 0, &m) != SDC_OK)
        return SDC_OK;
    SdcStatus status = sdc_module_tune(m, text);
    if (status == SDC_OK && compile)
        status = sdc_function_get(m, "k", NULL, 0, &f);
    if (status == SDC_OK && compile)
        status = sdc_specialize_tuned(f, args, 4, &k);
    sdc_module_unload(m);
    return status;
}

static SdcStatus
fuse(char *text)
{
    const SdcCheck *check;
    SdcModule *m;
    char *bind = strchr(text, '|');
    if (bind)
        *bind++ = '\0';
    SdcFuseOptions o = {.kernels = text, .bind = bind};
    SdcStatus status = sdc_fuse(mod, &o, &m);
    if (status == SDC_OK) {
        status = sdc_module_check(m, NULL, &check);
        sdc_module_unload(m);
    }
    return status;
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 1 || size > 2000)
        return -1;
    start();
    char *text = strndup((const char *)data + 1, size - 1);
    const SdcArg args[] = {sdc_ptr(SDC_FP32, x), sdc_ptr(SDC_FP32, y), sdc_int(200),
                           sdc_float(2)};
    const char *bind[] = {text, "n=i32"};
    SdcGrid grid;
    SdcStatus status = SDC_OK;
    if (!text)
        return 0;
    switch (data[0] % 5) {
    case 0: status = lower(text, NULL, 0); break;
    case 1: status = lower("*fp32,*fp32,i32,fp32", bind, 1); break;
    case 2: status = sdc_kernel_grid(kernel, text, args, 4, &grid); break;
    case 3: status = tune(text, args, size % 16 == 0); break;
    default: status = fuse(text); break;
    }
    free(text);
    if (status == SDC_ERROR_INTERNAL) {
        fprintf(stderr, "\ninternal error: %s", sdc_error(cx));
        abort();
    }
    return 0;
}

size_t
LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max, unsigned seed)
{
    static const char *const words[] = {
        "*fp32:16", "i32", "*fp16", "fp32", "B=64", "num_warps=4", "num_stages=0", "1",
        "None", "True", "tensordesc<fp16[64,64]>", "cdiv(n,B)", "(", ")", "//", "%", "-",
        "min(", "max(", "n", "k", "j", "k.y=j.y", ":fp16", " | ", "cpu", ",", "=",
        "9223372036854775807", "0", "'a'", "tl.float16", "1e300", "nan",
    };
    return words_mutate(data, size, max, seed, words, sizeof words / sizeof *words);
}
