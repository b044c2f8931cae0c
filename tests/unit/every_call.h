/* Every function of runtime/sdc.h, and of runtime/rt/sdcrt.h, once: for tests of what
   must hold for all of them. tests/lint/every_call.sh sees that none is missing. */
#ifndef SDC_TESTS_EVERY_CALL_H
#define SDC_TESTS_EVERY_CALL_H

#include "runtime/rt/cuda.h"
#include "runtime/sdc.h"
#include "runtime/sdc_measure.h"
#include "runtime/sdc_nn.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

enum { EVERY_N = 64 };

static const char every_source[] =
    "import triton\n"
    "import triton.language as tl\n"
    "@triton.autotune(configs=[triton.Config({'BLOCK': 32}),\n"
    "                          triton.Config({'BLOCK': 64})], key=['n'])\n"
    "@triton.jit\n"
    "def k(x, n, BLOCK: tl.constexpr):\n"
    "    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)\n"
    "    tl.store(x + i, tl.load(x + i, mask=i < n) + 1, mask=i < n)\n";

/* A context with one kernel that is compiled. */
typedef struct Every {
    SdcContext *cx;
    SdcModule *m;
    SdcFunction *f;
    SdcKernel *k;
    SdcrtCuda *cuda; /* NULL on the CPU */
    void *memory;    /* EVERY_N floats that the kernel reaches */
} Every;

static const char *const every_bind[] = {"BLOCK=64"};

static SdcStatus
every_open(Every *e, const char *target, float *memory)
{
    SdcContextOptions o = {.target = target, .threads = 2};
    SdcDevice d;
    *e = (Every){.memory = memory};
    SdcStatus status = sdc_context_create(&o, &e->cx);
    if (status == SDC_OK)
        status = sdc_module_load_text(e->cx, "k.tk", every_source,
                                      sizeof every_source - 1, SDC_LANG_AUTO, &e->m);
    if (status == SDC_OK && target)
        status = sdc_context_device(e->cx, &d);
    if (status == SDC_OK && target) {
        uint64_t at;
        e->cuda = d.cuda;
        if (sdcrt_cuda_alloc(d.cuda, EVERY_N * sizeof(float), &at, NULL) != SDCRT_OK)
            return SDC_ERROR_MEMORY;
        e->memory = (void *)(uintptr_t)at;
    }
    SdcArg args[] = {sdc_ptr(SDC_FP32, e->memory), sdc_int(EVERY_N)};
    if (status == SDC_OK)
        status = sdc_function_get(e->m, "k", every_bind, 1, &e->f);
    return status == SDC_OK ? sdc_specialize(e->f, args, 2, &e->k) : status;
}

/* Leaves the function with the call's text when its result is another one. */
#define EVERY(call, want)                                                                \
    do {                                                                                 \
        int every_got = (int)(call);                                                     \
        if (every_got != (int)(want)) {                                                  \
            static _Thread_local char every_text[400];                                   \
            snprintf(every_text, sizeof every_text, "%s gives %d, not %d", #call,        \
                     every_got, (int)(want));                                            \
            return every_text;                                                           \
        }                                                                                \
    } while (0)

static SdcStatus
every_launch(void *user, void *stream)
{
    const Every *e = user;
    SdcArg args[] = {sdc_ptr(SDC_FP32, e->memory), sdc_int(EVERY_N)};
    return sdc_launch(e->f, sdc_grid(1, 1, 1), args, 2, stream);
}

/* What needs no object, or only looks at one. */
static const char *
every_look(Every *e)
{
    SdcPlace place;
    SdcCacheInfo cache;
    int64_t value;
    float one = 1;
    EVERY(sdc_status_name(SDC_OK)[0], 'S');
    EVERY(sdc_version()[0] != 0 && strstr(sdc_targets(), "cpu"), 1);
    EVERY(sdc_context_threads(e->cx), 2);
    EVERY(strlen(sdc_warnings(e->cx)) + strlen(sdc_error_reproducer(e->cx)), 0);
    EVERY(sdc_error_place(e->cx, &place), 0);
    EVERY(sdc_lost_compiles(&value), 0);
    (void)sdc_error(e->cx);
    (void)sdc_cache(e->cx, SDC_CACHE_STAT, -1, &cache);
    EVERY(sdc_module_kernel_count(e->m), 1);
    EVERY(strcmp(sdc_module_kernel_name(e->m, 0), "k"), 0);
    EVERY(strcmp(sdc_dtype_name(SDC_FP32), "fp32"), 0);
    EVERY(sdc_dtype_size(SDC_FP32), 4);
    EVERY(sdc_dtype_by_name("fp32", 4), SDC_FP32);
    EVERY(sdc_dtype_is_float(SDC_FP32), 1);
    EVERY(sdc_dtype_load(SDC_FP32, &one), 1);
    sdc_dtype_store(SDC_FP32, 2, &one);
    EVERY(sdc_kernel_writes(e->k, 0), 1);
    EVERY(sdc_kernel_constant(e->k, "BLOCK", &value), 1);
    EVERY(!sdc_kernel_ptx(e->k), !e->cuda);
    EVERY(sdc_kernel_code(e->k) != 0, 1);
    return NULL;
}

/* What launches the compiled kernel: `launched` is the status that it has. */
static const char *
every_run(Every *e, SdcStatus launched)
{
    SdcArg args[] = {sdc_ptr(SDC_FP32, e->memory), sdc_int(EVERY_N)};
    SdcGrid one = sdc_grid(1, 1, 1);
    SdcMeasureOptions brief = {.seconds = 1e-4, .warm = 1};
    SdcTimes times;
    SdcKernelUse use;
    EVERY(sdc_launch(e->f, one, args, 2, NULL), launched);
    EVERY(sdc_kernel_launch(e->k, one, args, 2, NULL), launched);
    EVERY(sdc_kernel_launch_threads(e->k, one, args, 2, 1),
          e->cuda ? SDC_ERROR_ARGUMENT : SDC_OK);
    EVERY(sdc_kernel_use(e->k, &use), e->cuda ? launched : SDC_ERROR_ARGUMENT);
    EVERY(sdc_measure(e->cx, every_launch, e, &brief, &times), launched);
    SdcMeasured both[] = {{.launch = every_launch, .user = e},
                          {.launch = every_launch, .user = e, .share = 0.5}};
    EVERY(sdc_measure_rounds(e->cx, both, 2, &brief), launched);
    return NULL;
}

/* What compiles, makes or changes an object: `made` is the status that it has. */
static const char *
every_make(Every *e, SdcStatus made)
{
    const char *const other[] = {"BLOCK=16"};
    const SdcCheck *check;
    SdcArg args[] = {sdc_ptr(SDC_FP32, (char *)e->memory + 4), sdc_int(3)};
    const size_t bytes[] = {(EVERY_N - 1) * sizeof(float), 0};
    SdcTuneOptions tune = {.grid = "cdiv(n,BLOCK)", .args = args, .nargs = 2,
                           .bytes = bytes, .budget = 1e-3, .threads = 1};
    const char *gpu = e->cuda ? "sm_80" : "cpu";
    SdcCompileOptions compile = {.signature = "*fp32,i32,16", .target = gpu,
                                 .emit = SDC_EMIT_ASM, .explain = 1};
    SdcBundleOptions bundle = {.signatures = &compile.signature, .nsignature = 1};
    SdcFuseOptions fuse = {.kernels = "k,l=k", .bind = "k.x=x,l.x=x"};
    SdcFunction *f = NULL;
    SdcKernel *k;
    SdcModule *m;
    SdcTuning *t;
    SdcOutput *out, *header;
    const SdcParam *params;
    SdcGrid grid;
    size_t size;
    int n;
    EVERY(sdc_module_load_text(e->cx, "k.tk", every_source, sizeof every_source - 1,
                               SDC_LANG_AUTO, &m),
          made);
    if (made == SDC_OK)
        sdc_module_unload(m);
    EVERY(sdc_module_load_file(e->cx, SDC_ROOT "/kernels_dsl/vector_add.tk", &m), made);
    if (made == SDC_OK)
        sdc_module_unload(m);
    EVERY(sdc_register_range(e->cx, e, sizeof *e, "e"), made);
    EVERY(sdc_range_shape(e->cx, e, 0, NULL), made);
    EVERY(sdc_range_unwritten(e->cx, e), made);
    sdc_unregister_range(e->cx, e);
    EVERY(sdc_module_params(e->m, "k", &params, &n), SDC_OK);
    EVERY(sdc_module_check(e->m, NULL, &check), made);
    EVERY(sdc_message(e->cx, 1000) != NULL, 0);
    EVERY(sdc_fuse(e->m, &fuse, &m), made);
    EVERY(sdc_module_tune(e->m, NULL), made);
    EVERY(sdc_function_get(e->m, "k", other, 1, &f), made);
    f = f ? f : e->f;
    EVERY(sdc_specialize(f, args, 2, &k), made);
    EVERY(sdc_specialize_tuned(f, args, 2, &k), made);
    EVERY(sdc_kernel_grid(e->k, "cdiv(n,16)", args, 2, &grid), made);
    EVERY(sdc_launch_tuned(f, "cdiv(n,BLOCK)", args, 2, NULL), made);
    EVERY(sdc_kernel_get(e->m, "k", "*fp32,i32,32", NULL, 0, &k), made);
    EVERY(sdc_tune(e->m, &tune, &t), made);
    if (made == SDC_OK) {
        EVERY(!sdc_tuning_trial(t, 0) || !*sdc_tuning_line(t), 0);
        EVERY(!sdc_tuning_warnings(t) || !sdc_tuning_times(t), 0);
        sdc_tuning_destroy(t);
    }
    EVERY(sdc_compile(e->m, &compile, &out), made);
    if (made == SDC_OK) {
        EVERY(!sdc_output_data(out, &size) || !sdc_output_meta(out, &n), 0);
        EVERY(!*sdc_output_times(out) || !*sdc_output_explain(out), 0);
        sdc_output_destroy(out);
    }
    EVERY(sdc_bundle(e->m, &bundle, &out, &header), made);
    if (made == SDC_OK) {
        sdc_output_destroy(out);
        sdc_output_destroy(header);
    }
    return NULL;
}

/* Tensors of others, the library of kernels, libsdcrt. */
static const char *
every_other(Every *e, SdcStatus made)
{
    struct {
        void *data;
        int32_t device, device_id, ndim;
        uint8_t code, bits;
        uint16_t lanes;
        const int64_t *shape, *strides;
        uint64_t byte_offset;
    } dl = {.data = e->memory, .device = e->cuda ? 2 : 1, .ndim = 2, .code = 2,
            .bits = 32, .lanes = 1, .shape = (const int64_t[]){8, 8}};
    SdcKernels *kernels = NULL;
    SdcArg arg;
    SdcDesc desc;
    SdcDevice device;
    SdcTensor x = sdc_matrix(SDC_FP32, e->memory, 8, 8);
    SdcDropout drop = {.p = 0};
    EVERY(sdc_arg_dlpack(e->cx, &dl, &arg), SDC_OK);
    EVERY(sdc_desc_dlpack(e->cx, &dl, (const int32_t[]){8, 8}, &desc), SDC_OK);
    EVERY(sdc_context_device(e->cx, &device), e->cuda ? made : SDC_ERROR_ARGUMENT);
    EVERY(sdc_kernels_create(e->cx, &kernels), e->cuda ? made : SDC_OK);
    if (kernels)
        EVERY(sdc_dropout_forward(kernels, &x, NULL, NULL, &x, &drop, NULL), made);
    sdc_kernels_destroy(kernels);
    return NULL;
}

static void
every_program(const uint64_t *args, const SdcGrid *grid, int64_t first, int64_t last,
              void *scratch)
{
    (void)args, (void)grid, (void)first, (void)last, (void)scratch;
}

/* `pool`, which this frees, may be the parent's. */
static const char *
every_pool(SdcrtPool *pool)
{
    static const SdcGrid grid = {64, 1, 1};
    EVERY(sdcrt_grid_size(grid), 64);
    EVERY(sdcrt_cpu_level("x86-64-v3"), 3);
    EVERY(sdcrt_cpu_level("native"), 0);
    EVERY(sdcrt_cpu_host_level() >= 1, 1);
    EVERY(sdcrt_pool_threads(pool), 2);
    EVERY(sdcrt_cpu_launch(pool, every_program, NULL, grid, 1 << 16, 0), SDCRT_OK);
    EVERY(sdcrt_run_range(every_program, NULL, grid, 1 << 16, 0, 64), SDCRT_OK);
    sdcrt_pool_destroy(pool);
    pool = sdcrt_pool_create(2);
    EVERY(pool == NULL, 0);
    EVERY(sdcrt_cpu_launch(pool, every_program, NULL, grid, 1 << 16, 0), SDCRT_OK);
    sdcrt_pool_destroy(pool);
    return NULL;
}

/* All of them; NULL, or which call was not as expected. */
static const char *
every_call(Every *e, SdcStatus launched, SdcStatus made)
{
    const char *wrong = every_look(e);
    wrong = wrong ? wrong : every_run(e, launched);
    wrong = wrong ? wrong : every_make(e, made);
    return wrong ? wrong : every_other(e, made);
}

#endif
