/* What code for Hopper counts on and only a device can show:

   registers_move   the driver's compiler honours setmaxnreg
   shared_begins    dynamic shared memory begins at a multiple of 1024
   operands         the descriptors of shared memory that dots read by: every way the
                    operands lie x swizzle x N, against plain loops
   registers_fit    the shipped configurations fit the registers that the driver's
                    compiler gives them, as they do with ptxas (tests/gpu/assemble)

   SKIPPED on other devices. */
#include "runtime/rt/cuda.h"
#include "runtime/sdc.h"

#include <check.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct Env {
    SdcContext *cx;
    SdcrtCuda *cuda;
    SdcrtError e;
} Env;

#define OK(call)                                                                         \
    ck_assert_msg((call) == 0, "%s: %s%s", #call, env.e.text, sdc_error(env.cx))

static Env
setup(void)
{
    SdcContextOptions o = {.target = "cuda"};
    Env env = {0};
    SdcDevice d;
    ck_assert_int_eq(sdc_context_create(&o, &env.cx), SDC_OK);
    OK(sdc_context_device(env.cx, &d));
    env.cuda = d.cuda;
    return env;
}

/* ---------------------------------------------------------------- texts of PTX */

typedef struct Text {
    char *at;
    size_t n, room;
} Text;

static void
add(Text *t, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    int n = vsnprintf(t->at + t->n, t->room - t->n, format, args);
    va_end(args);
    ck_assert(n >= 0 && t->n + (size_t)n < t->room);
    t->n += (size_t)n;
}

static Text
text_new(size_t room)
{
    return (Text){.at = calloc(1, room), .room = room};
}

/* A kernel f(p) of `threads`. */
static SdcrtCudaKernel *
load(Env *e, const Text *t, int threads, int64_t shared)
{
    Env env = *e;
    SdcrtCudaKernel *k;
    SdcrtMeta *meta = calloc(1, sizeof *meta);
    *meta = (SdcrtMeta){.name = "f",
                        .symbol = "f",
                        .target = "sm_90a",
                        .nparam = 1,
                        .num_warps = threads / 32,
                        .num_stages = 1,
                        .num_ctas = 1,
                        .threads = threads,
                        .shared_bytes = shared,
                        .params = {{.name = "p", .sig = "*fp32", .bits = 64, .div = 1}}};
    OK(sdcrt_cuda_load(env.cuda, t->at, meta, &k, &env.e));
    free(meta);
    return k;
}

static const char head[] = ".version 8.0\n.target sm_90a\n.address_size 64\n";

/* ---------------------------------------------------------------- registers */

enum { MANY = 200, THREADS = 384, PRODUCERS = 128 };

/* Two groups of warps hold MANY numbers at a time, the first nothing; three groups of
   equal shares have 168 registers a thread. */
static Text
holds_many(bool moves)
{
    Text t = text_new(1 << 16);
    add(&t,
        "%s.visible .entry f(.param .u64 p)\n.reqntid %d, 1, 1\n.minnctapersm 1\n{\n"
        ".reg .b32 %%r<2>;\n.reg .b64 %%d<4>;\n.reg .f32 %%f<%d>;\n.reg .pred %%p<2>;\n"
        "ld.param.u64 %%d0, [p];\ncvta.to.global.u64 %%d3, %%d0;\nmov.u32 %%r0, "
        "%%tid.x;\n"
        "mul.wide.u32 %%d1, %%r0, 4;\nadd.s64 %%d2, %%d3, %%d1;\n"
        "setp.ge.u32 %%p0, %%r0, %d;\n@%%p0 bra HOLDS;\n",
        head, THREADS, 2 * MANY, PRODUCERS);
    if (moves)
        add(&t, "setmaxnreg.dec.sync.aligned.u32 24;\n");
    add(&t, "bra DONE;\nHOLDS:\n");
    if (moves)
        add(&t, "setmaxnreg.inc.sync.aligned.u32 240;\n");
    for (int i = 0; i < MANY; i++)
        add(&t, "ld.volatile.global.f32 %%f%d, [%%d2+%d];\n", i, i * THREADS * 4);
    add(&t, "bar.sync 1, %d;\n", THREADS - PRODUCERS); /* no load moves behind a store */
    for (int i = 0; i < MANY; i++)
        add(&t,
            "fma.rn.f32 %%f%d, %%f%d, 0f40000000, %%f%d;\n"
            "st.volatile.global.f32 [%%d2+%d], %%f%d;\n",
            MANY + i, i, (i + 1) % MANY, i * THREADS * 4, MANY + i);
    add(&t, "DONE:\nret;\n}\n");
    return t;
}

START_TEST(registers_move)
{
    enum { BLOCKS = 1, COUNT = MANY * THREADS };
    Env env = setup();
    Text moves = holds_many(true), stays = holds_many(false);
    SdcrtCudaKernel *k = load(&env, &moves, THREADS, 0);
    SdcrtCudaKernel *spills = load(&env, &stays, THREADS, 0);
    const SdcrtCudaUse *use = sdcrt_cuda_use(k);
    float *x = calloc(COUNT, sizeof *x), *y = calloc(COUNT, sizeof *y);
    uint64_t at;
    ck_assert_int_gt(sdcrt_cuda_use(spills)->local_bytes, 0);
    ck_assert_msg(use->local_bytes == 0 && use->registers == 168,
                  "%d registers, %d bytes of local memory", use->registers,
                  use->local_bytes);
    for (int i = 0; i < COUNT; i++)
        x[i] = (float)(i % 1021);
    OK(sdcrt_cuda_alloc(env.cuda, COUNT * sizeof *x, &at, &env.e));
    OK(sdcrt_cuda_write(env.cuda, at, x, COUNT * sizeof *x, &env.e));
    OK(sdcrt_cuda_launch(env.cuda, k, &at, sdc_grid(BLOCKS, 1, 1), NULL, &env.e));
    OK(sdcrt_cuda_wait(env.cuda, &env.e));
    OK(sdcrt_cuda_read(env.cuda, y, at, COUNT * sizeof *y, &env.e));
    for (int i = 0; i < COUNT; i++) {
        float want = i % THREADS < PRODUCERS ? x[i] : 2 * x[i] + x[(i + THREADS) % COUNT];
        ck_assert_msg(y[i] == want, "element %d is %g, not %g", i, (double)y[i],
                      (double)want);
    }
    OK(sdcrt_cuda_free(env.cuda, at, &env.e));
    sdcrt_cuda_unload(env.cuda, k);
    sdcrt_cuda_unload(env.cuda, spills);
    free(x), free(y), free(moves.at), free(stays.at);
    sdc_context_destroy(env.cx);
}
END_TEST

/* ---------------------------------------------------------------- shared memory */

/* Each block writes where its shared memory begins; small ones are several at a time on
   an SM. */
START_TEST(shared_begins)
{
    enum { BLOCKS = 2048 };
    static const int sizes[] = {16, 1000, 1024, 5000, 33000, 49153, 100000, 232448};
    Env env = setup();
    Text t = text_new(4096);
    uint32_t *begin = calloc(BLOCKS, sizeof *begin);
    uint64_t at;
    add(&t,
        "%s.extern .shared .align 1024 .b8 shared[];\n"
        ".visible .entry f(.param .u64 p)\n.reqntid 32, 1, 1\n{\n"
        ".reg .b32 %%r<4>;\n.reg .b64 %%d<4>;\nld.param.u64 %%d0, [p];\n"
        "cvta.to.global.u64 %%d1, %%d0;\nmov.u32 %%r0, %%ctaid.x;\n"
        "mul.wide.u32 %%d2, %%r0, 4;\nadd.s64 %%d3, %%d1, %%d2;\n"
        "mov.u32 %%r1, shared;\nst.shared.u32 [%%r1], %%r1;\nbar.sync 0;\n"
        "ld.shared.u32 %%r2, [%%r1];\nst.global.u32 [%%d3], %%r2;\nret;\n}\n",
        head);
    OK(sdcrt_cuda_alloc(env.cuda, BLOCKS * sizeof *begin, &at, &env.e));
    for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++) {
        SdcrtCudaKernel *k = load(&env, &t, 32, sizes[s]);
        OK(sdcrt_cuda_fill(env.cuda, at, 0xff, BLOCKS * sizeof *begin, &env.e));
        OK(sdcrt_cuda_launch(env.cuda, k, &at, sdc_grid(BLOCKS, 1, 1), NULL, &env.e));
        OK(sdcrt_cuda_wait(env.cuda, &env.e));
        OK(sdcrt_cuda_read(env.cuda, begin, at, BLOCKS * sizeof *begin, &env.e));
        for (int i = 0; i < BLOCKS; i++)
            ck_assert_msg(begin[i] % 1024 == 0, "%d bytes begin at %" PRIu32, sizes[s],
                          begin[i]);
        sdcrt_cuda_unload(env.cuda, k);
    }
    OK(sdcrt_cuda_free(env.cuda, at, &env.e));
    free(begin), free(t.at);
    sdc_context_destroy(env.cx);
}
END_TEST

/* ---------------------------------------------------------------- descriptors */

static const char product[] =
    "import triton\n"
    "import triton.language as tl\n"
    "@triton.jit\n"
    "def product(a, b, c, K, am, ak, bk, bn, M: tl.constexpr, N: tl.constexpr,\n"
    "            STEP: tl.constexpr, SUM: tl.constexpr):\n"
    "    m = tl.arange(0, M)\n"
    "    n = tl.arange(0, N)\n"
    "    k = tl.arange(0, STEP)\n"
    "    acc = tl.zeros((M, N), dtype=SUM)\n"
    "    for i in range(0, K, STEP):\n"
    "        x = tl.load(a + m[:, None] * am + (i + k)[None, :] * ak)\n"
    "        y = tl.load(b + (i + k)[:, None] * bk + n[None, :] * bn)\n"
    "        acc = tl.dot(x, y, acc)\n"
    "    tl.store(c + m[:, None] * N + n[None, :], acc)\n";

enum { MOST_N = 256, MOST_K = 512, MOST_M = 128, LOOPS = 2 };

typedef struct Operands {
    SdcDtype type;
    int m, n, step;
    bool a_by_m, b_by_n; /* what is contiguous in memory: M, N, or else K */
    int warps;
} Operands;

typedef struct Sweep {
    SdcModule *mod;
    uint64_t a, b, c;
    int seen[2][2][4]; /* [operand][by M or N][swizzle]: dots that read so */
    int products;
} Sweep;

/* Small integers: every sum is exact in every type. */
static int
small(int i, int j, int salt)
{
    return (int)(((unsigned)i * 2654435761u + (unsigned)j * 40503u + (unsigned)salt) >>
                 13) %
               5 -
           2;
}

static void
fill(Env *e, uint64_t at, SdcDtype t, int rows, int cols, bool turned, int salt)
{
    Env env = *e;
    size_t size = (size_t)sdc_dtype_size(t), bytes = (size_t)rows * (size_t)cols * size;
    unsigned char *mem = calloc(1, bytes);
    for (int i = 0; i < rows; i++)
        for (int j = 0; j < cols; j++)
            sdc_dtype_store(t, small(i, j, salt),
                            mem + (size_t)(turned ? j * rows + i : i * cols + j) * size);
    OK(sdcrt_cuda_write(env.cuda, at, mem, bytes, &env.e));
    free(mem);
}

/* The high words of the descriptors that the text gives to its dots: the layout is in
   the two highest bits, 1 of 128 bytes, 2 of 64, 3 of 32. */
static void
count_swizzles(Sweep *s, const Operands *o, const char *ptx)
{
    for (int side = 0; side < 2; side++) {
        const char *name = side ? "mov.b64 db, {" : "mov.b64 da, {";
        for (const char *p = ptx; (p = strstr(p, name)) != NULL; p++) {
            const char *word = strchr(p + strlen(name), ',');
            uint32_t high = (uint32_t)strtoll(word + 1, NULL, 10);
            s->seen[side][side ? o->b_by_n : o->a_by_m][high >> 30]++;
        }
    }
}

static void
operands_case(Env *e, Sweep *s, const Operands *o)
{
    Env env = *e;
    int k = LOOPS * o->step;
    SdcDtype sum = o->type == SDC_I8 ? SDC_I32 : SDC_FP32;
    char bind[5][32];
    const char *binds[5];
    SdcFunction *fn;
    SdcKernel *kernel;
    snprintf(bind[0], 32, "M=%d", o->m);
    snprintf(bind[1], 32, "N=%d", o->n);
    snprintf(bind[2], 32, "STEP=%d", o->step);
    snprintf(bind[3], 32, "SUM=tl.%s", sum == SDC_I32 ? "int32" : "float32");
    snprintf(bind[4], 32, "num_warps=%d", o->warps);
    for (int i = 0; i < 5; i++)
        binds[i] = bind[i];
    fill(&env, s->a, o->type, o->m, k, o->a_by_m, 1);
    fill(&env, s->b, o->type, k, o->n, !o->b_by_n, 2);
    SdcArg args[] = {sdc_ptr(o->type, (void *)(uintptr_t)s->a),
                     sdc_ptr(o->type, (void *)(uintptr_t)s->b),
                     sdc_ptr(sum, (void *)(uintptr_t)s->c),
                     sdc_int(k),
                     sdc_int(o->a_by_m ? 1 : k),
                     sdc_int(o->a_by_m ? o->m : 1),
                     sdc_int(o->b_by_n ? o->n : 1),
                     sdc_int(o->b_by_n ? 1 : k)};
    size_t bytes = (size_t)o->m * (size_t)o->n * 4;
    OK(sdc_function_get(s->mod, "product", binds, 5, &fn));
    OK(sdc_specialize(fn, args, 8, &kernel));
    const char *ptx = sdc_kernel_ptx(kernel);
    ck_assert(ptx != NULL);
    s->products += strstr(ptx, "wgmma.mma_async") != NULL;
    count_swizzles(s, o, ptx);
    OK(sdcrt_cuda_fill(env.cuda, s->c, 0xff, bytes, &env.e));
    OK(sdc_launch(fn, sdc_grid(1, 1, 1), args, 8, NULL));
    OK(sdcrt_cuda_wait(env.cuda, &env.e));
    unsigned char *got = malloc(bytes);
    OK(sdcrt_cuda_read(env.cuda, got, s->c, bytes, &env.e));
    for (int i = 0; i < o->m; i++)
        for (int j = 0; j < o->n; j++) {
            int want = 0;
            for (int x = 0; x < k; x++)
                want += small(i, x, 1) * small(x, j, 2);
            double is = sdc_dtype_load(sum, got + (size_t)(i * o->n + j) * 4);
            ck_assert_msg(is == want,
                          "%s %dx%dx%d, %d warps, a by %s, b by %s: (%d, %d) is %g, not "
                          "%d",
                          sdc_dtype_name(o->type), o->m, o->n, o->step, o->warps,
                          o->a_by_m ? "m" : "k", o->b_by_n ? "n" : "k", i, j, is, want);
        }
    free(got);
}

START_TEST(operands)
{
    static const struct {
        SdcDtype type;
        bool turns; /* wgmma reads it transposed, too */
    } types[] = {{SDC_FP16, true},     {SDC_BF16, true},   {SDC_FP32, false},
                 {SDC_FP8E4NV, false}, {SDC_FP8E5, false}, {SDC_I8, false}};
    Env env = setup();
    Sweep s = {0};
    int cases = 0;
    OK(sdc_module_load_text(env.cx, "product.tk", product, sizeof product - 1,
                            SDC_LANG_AUTO, &s.mod));
    OK(sdcrt_cuda_alloc(env.cuda, MOST_M * MOST_K * 4, &s.a, &env.e));
    OK(sdcrt_cuda_alloc(env.cuda, MOST_N * MOST_K * 4, &s.b, &env.e));
    OK(sdcrt_cuda_alloc(env.cuda, MOST_M * MOST_N * 4, &s.c, &env.e));
    for (size_t t = 0; t < sizeof types / sizeof *types; t++) {
        int least = sdc_dtype_size(types[t].type) == 1 ? 32 : 16; /* else mma.sync */
        for (int way = 0; way < (types[t].turns ? 4 : 1); way++)
            for (int n = least; n <= MOST_N; n *= 2)
                for (int row = 32; row <= 128; row *= 2) {
                    bool two = n == 128 && row == 64; /* of each, one by two groups */
                    Operands o = {.type = types[t].type,
                                  .m = two ? 128 : 64,
                                  .n = n,
                                  .step = row / sdc_dtype_size(types[t].type),
                                  .a_by_m = way & 1,
                                  .b_by_n = way & 2,
                                  .warps = two ? 8 : 4};
                    operands_case(&env, &s, &o);
                    cases++;
                }
    }
    printf("operands: %d kernels, %d by wgmma;", cases, s.products);
    for (int side = 0; side < 2; side++)
        for (int by = 0; by < 2; by++)
            printf(" %c by %c %d/%d/%d", "ab"[side], by ? "mn"[side] : 'k',
                   s.seen[side][by][3], s.seen[side][by][2], s.seen[side][by][1]);
    printf(" with swizzles of 32/64/128 bytes\n");
    fflush(stdout);
    ck_assert_int_eq(s.products, cases);
    for (int i = 1; i <= 3; i++) /* m is at least 64 elements: 128 bytes */
        ck_assert(s.seen[0][0][i] && s.seen[1][0][i] && s.seen[1][1][i]);
    ck_assert(s.seen[0][1][1]);
    OK(sdcrt_cuda_free(env.cuda, s.a, &env.e));
    OK(sdcrt_cuda_free(env.cuda, s.b, &env.e));
    OK(sdcrt_cuda_free(env.cuda, s.c, &env.e));
    sdc_context_destroy(env.cx);
}
END_TEST

/* ---------------------------------------------------------------- registers that ship */

static const char *
root(void)
{
    const char *r = getenv("SDC_TEST_ROOT");
    return r ? r : SDC_ROOT;
}

/* A line of tests/gpu/shipped; whether it is for this GPU. */
static bool
shipped_case(Env *e, const char *line)
{
    Env env = *e;
    char file[64], name[64], stages[32], sig[2048], path[4096], bind[2][32];
    const char *binds[2] = {bind[0], bind[1]};
    int warps;
    SdcModule *mod;
    SdcKernel *k;
    SdcKernelUse use;
    if (*line == '#' || *line == '\n')
        return false;
    ck_assert_int_eq(
        sscanf(line, "%63s %63s %d %31s %2047s", file, name, &warps, stages, sig), 5);
    char *only = strchr(stages, ':');
    if (only && strcmp(only + 1, "sm_90a") != 0)
        return false;
    if (only)
        *only = '\0';
    snprintf(path, sizeof path, "%s/kernels_dsl/%s.tk", root(), file);
    snprintf(bind[0], sizeof bind[0], "num_warps=%d", warps);
    snprintf(bind[1], sizeof bind[1], "num_stages=%s", stages);
    OK(sdc_module_load_file(env.cx, path, &mod));
    OK(sdc_kernel_get(mod, name, sig, binds, 2, &k));
    OK(sdc_kernel_use(k, &use));
    ck_assert_msg(!use.local_bytes, "%s, %d warps: %d registers and %d bytes: %s", name,
                  warps, use.registers, use.local_bytes, sig);
    sdc_module_unload(mod);
    return true;
}

START_TEST(registers_fit)
{
    Env env = setup();
    char path[4096], line[4096];
    int n = 0;
    snprintf(path, sizeof path, "%s/tests/gpu/shipped", root());
    FILE *f = fopen(path, "r");
    ck_assert_msg(f != NULL, "%s cannot be read", path);
    while (fgets(line, sizeof line, f))
        n += shipped_case(&env, line);
    fclose(f);
    printf("registers: %d shipped configurations, none spills\n", n);
    fflush(stdout);
    ck_assert_int_gt(n, 20);
    sdc_context_destroy(env.cx);
}
END_TEST

int
main(void)
{
    int devices, driver;
    SdcrtCuda *c;
    SdcrtError e = {0};
    if (sdcrt_cuda_count(&devices, &driver, &e) != SDCRT_OK || !devices ||
        sdcrt_cuda_open(0, &c, &e) != SDCRT_OK) {
        printf("SKIPPED: %s\n", e.text);
        return 0;
    }
    int sm = sdcrt_cuda_info(c)->sm;
    sdcrt_cuda_close(c);
    if (sm != 90) {
        printf("SKIPPED: compute capability %d.%d\n", sm / 10, sm % 10);
        return 0;
    }
    Suite *s = suite_create("hopper");
    TCase *t = tcase_create("gpu");
    TCase *also = tcase_create("operands"); /* those the simulator runs, too */
    tcase_set_timeout(t, 120);
    tcase_set_timeout(also, 120);
    tcase_add_test(t, registers_move);
    tcase_add_test(t, shared_begins);
    tcase_add_test(also, operands);
    tcase_add_test(t, registers_fit);
    suite_add_tcase(s, t);
    suite_add_tcase(s, also);
    SRunner *r = srunner_create(s);
    srunner_run_all(r, CK_NORMAL);
    int failed = srunner_ntests_failed(r);
    srunner_free(r);
    printf("%s hopper\n", failed ? "WRONG" : "ok");
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
