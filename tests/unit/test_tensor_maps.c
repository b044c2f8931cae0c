/* Tensor maps behind the public interface, with the fake driver: what a launch makes of
   its arguments, when maps are made again, and the code that runs when none can be. */
#include "runtime/rt/cuda.h"
#include "runtime/sdc.h"
#include "runtime/sdc_nn.h"
#include "tests/fake_cuda/fake_cuda.h"

#include <check.h>
#include <dlfcn.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FAKE SDC_TMP "/../../libfakecuda.so"

/* c [64]: the sums of the rows of a [64, K] b [K, 64] */
static const char text[] =
    "import triton\n"
    "import triton.language as tl\n"
    "@triton.jit\n"
    "def mm(a, b, c, K, SA):\n"
    "    m = tl.arange(0, 64)\n"
    "    k = tl.arange(0, 64)\n"
    "    acc = tl.zeros((64, 64), dtype=tl.float32)\n"
    "    for i in range(0, K, 64):\n"
    "        x = tl.load(a + m[:, None] * SA + (i + k)[None, :],\n"
    "                    mask=(i + k)[None, :] < K, other=0.0)\n"
    "        y = tl.load(b + (i + k)[:, None] * 64 + m[None, :],\n"
    "                    mask=(i + k)[:, None] < K, other=0.0)\n"
    "        acc = tl.dot(x, y, acc)\n"
    "    tl.store(c + m, tl.sum(acc, 1))\n";

/* c [64, K]: rows of a tensor whose address and size are in memory */
static const char loaded[] =
    "import triton\n"
    "import triton.language as tl\n"
    "@triton.jit\n"
    "def mm(list, sizes, c):\n"
    "    n = tl.load(sizes)\n"
    "    p = tl.load(list).to(tl.pointer_type(tl.float16))\n"
    "    a = tl.make_tensor_descriptor(p, [n, n], [n, 1], [64, 64])\n"
    "    acc = tl.zeros((64, 64), dtype=tl.float32)\n"
    "    for i in range(0, n, 64):\n"
    "        acc = tl.dot(a.load([0, i]), a.load([i, 0]), acc)\n"
    "    m = tl.arange(0, 64)\n"
    "    tl.store(c + m[:, None] * 64 + m[None, :], acc)\n";

typedef struct Env {
    FakeCuda *fake;
    SdcContext *cx;
    SdcModule *mod;
    SdcFunction *mm;
    SdcArg args[5];
} Env;

static Env
setup(void)
{
    static const char *const bind[] = {"num_warps=4"};
    Env e = {0};
    void *lib = dlopen(FAKE, RTLD_NOW | RTLD_LOCAL), *p;
    ck_assert_msg(lib != NULL && (p = dlsym(lib, "fake_cuda")) != NULL, "%s", dlerror());
    FakeCudaGet *get;
    memcpy(&get, &p, sizeof get);
    setenv("SDC_LIBCUDA", FAKE, 1);
    e.fake = get();
    SdcContextOptions o = {.target = "cuda"};
    ck_assert_int_eq(sdc_context_create(&o, &e.cx), SDC_OK);
    ck_assert_int_eq(sdc_module_load_text(e.cx, "mm.tk", text, sizeof text - 1,
                                          SDC_LANG_AUTO, &e.mod),
                     SDC_OK);
    ck_assert_int_eq(sdc_function_get(e.mod, "mm", bind, 1, &e.mm), SDC_OK);
    for (int i = 0; i < 3; i++)
        e.args[i] = sdc_ptr(i < 2 ? SDC_FP16 : SDC_FP32,
                            (void *)(uintptr_t)(((unsigned)i + 1) << 20));
    e.args[3] = sdc_int(208);
    e.args[4] = sdc_int(256);
    return e;
}

static const FakeLaunch *
launch(Env *e)
{
    SdcStatus s = sdc_launch(e->mm, sdc_grid(1, 1, 1), e->args, 5, NULL);
    ck_assert_msg(s == SDC_OK, "%s", sdc_error(e->cx));
    return &e->fake->last;
}

START_TEST(maps_follow_the_arguments)
{
    Env e = setup();
    const FakeLaunch *l = launch(&e);
    ck_assert_int_eq(l->nparam, 7); /* five of the kernel, two maps */
    ck_assert_int_eq(e.fake->maps, 2);
    ck_assert(l->params[5] + l->params[6] == (1 << 20) + (2 << 20));
    launch(&e); /* the same: nothing is made */
    ck_assert_int_eq(e.fake->maps, 2);
    e.args[3] = sdc_int(192);
    launch(&e);
    ck_assert_int_eq(e.fake->maps, 4);
    ck_assert(e.fake->last_map[0] == 192 || e.fake->last_map[1] == 192);
    e.args[0] = sdc_ptr(SDC_FP16, (void *)(uintptr_t)(5 << 20));
    l = launch(&e);
    ck_assert_int_eq(e.fake->maps, 6);
    ck_assert(l->params[5] == 5 << 20 || l->params[6] == 5 << 20);
    sdc_context_destroy(e.cx);
    ck_assert_int_eq(e.fake->live, 0);
}
END_TEST

/* Sizes below one, strides of no bytes and null pointers make no map, nor do rows that do
   not begin on 16 bytes. */
START_TEST(without_a_map_other_code_runs)
{
    Env e = setup();
    launch(&e);
    e.args[3] = sdc_int(0);
    ck_assert_int_eq(launch(&e)->nparam, 5);
    e.args[3] = sdc_int(-16);
    ck_assert_int_eq(launch(&e)->nparam, 5);
    e.args[3] = sdc_int(208);
    e.args[4] = sdc_int(0);
    ck_assert_int_eq(launch(&e)->nparam, 5);
    e.args[4] = sdc_int(256);
    e.args[1].v.ptr = NULL; /* of a tensor without elements */
    ck_assert_int_eq(launch(&e)->nparam, 5);
    ck_assert(e.fake->last.params[1] == 0);
    e.args[1].v.ptr = (void *)(uintptr_t)(2 << 20);
    ck_assert_int_eq(launch(&e)->nparam, 7);
    ck_assert_int_eq(e.fake->launches, 6);
    e.args[4] = sdc_int(72); /* 144 bytes */
    ck_assert_int_eq(launch(&e)->nparam, 7);
    e.args[4] = sdc_int(76); /* 152 */
    ck_assert_int_eq(launch(&e)->nparam, 5);
    sdc_context_destroy(e.cx);
    ck_assert_int_eq(e.fake->live, 0);
}
END_TEST

/* The driver compiles what runs, not what is refused first. */
START_TEST(one_module_a_launch)
{
    long live[2];
    for (int i = 0; i < 2; i++) {
        Env e = setup();
        e.args[4] = sdc_int(i ? 76 : 80);
        ck_assert_int_eq(launch(&e)->nparam, i ? 5 : 7);
        live[i] = e.fake->live;
        long calls = e.fake->calls;
        launch(&e);
        live[i] += (e.fake->calls - calls) << 20;
        sdc_context_destroy(e.cx);
    }
    ck_assert_int_eq(live[0], live[1]);
}
END_TEST

/* Results whose rows end off 16 bytes go by threads; the operands still come by maps. */
START_TEST(maps_of_loads_alone)
{
    static const char product[] =
        "import triton\n"
        "import triton.language as tl\n"
        "@triton.jit\n"
        "def product(a, b, c, N, K, SA, SB, SC):\n"
        "    m = tl.arange(0, 64)\n"
        "    k = tl.arange(0, 64)\n"
        "    acc = tl.zeros((64, 64), dtype=tl.float32)\n"
        "    for i in range(0, K, 64):\n"
        "        x = tl.load(a + m[:, None] * SA + (i + k)[None, :],\n"
        "                    mask=(i + k)[None, :] < K, other=0.0)\n"
        "        y = tl.load(b + (i + k)[:, None] * SB + m[None, :],\n"
        "                    mask=((i + k)[:, None] < K) & (m[None, :] < N), other=0.0)\n"
        "        acc = tl.dot(x, y, acc)\n"
        "    tl.store(c + m[:, None] * SC + m[None, :], acc.to(tl.float16),\n"
        "             mask=m[None, :] < N)\n";
    static const struct {
        int n, sb, sc, maps;
    } cases[] = {{64, 64, 64, 3}, {63, 64, 63, 2}, {63, 64, 64, 2}, {63, 63, 63, 0}};
    static const char *const bind[] = {"num_warps=4"};
    Env e = setup();
    SdcModule *mod;
    SdcFunction *f;
    ck_assert_int_eq(sdc_module_load_text(e.cx, "p.tk", product, sizeof product - 1,
                                          SDC_LANG_AUTO, &mod),
                     SDC_OK);
    ck_assert_int_eq(sdc_function_get(mod, "product", bind, 1, &f), SDC_OK);
    for (int i = 0; i < 8; i++) {
        SdcArg args[8] = {e.args[0], e.args[1], e.args[0]};
        args[2].v.ptr = e.args[2].v.ptr;
        args[3] = sdc_int(cases[i % 4].n);
        args[4] = args[5] = sdc_int(200);
        args[6] = sdc_int(cases[i % 4].sb);
        args[7] = sdc_int(cases[i % 4].sc);
        SdcStatus s = sdc_launch(f, sdc_grid(1, 1, 1), args, 8, NULL);
        ck_assert_msg(s == SDC_OK, "%s", sdc_error(e.cx));
        ck_assert_int_eq(e.fake->last.nparam, 8 + cases[i % 4].maps);
    }
    sdc_context_destroy(e.cx);
    ck_assert_int_eq(e.fake->live, 0);
}
END_TEST

/* L2 asks DRAM for two lines at a time, and for one of rows that are narrower than a line
   or begin between lines. */
START_TEST(what_dram_is_asked_for_at_a_time)
{
    static const char tk[] =
        "import triton\n"
        "import triton.language as tl\n"
        "@triton.jit\n"
        "def nt(a, b, c, K, W: tl.constexpr):\n"
        "    x = tl.make_tensor_descriptor(a, [128, K], [K, 1], [128, W])\n"
        "    y = tl.make_tensor_descriptor(b, [128, K], [K, 1], [128, W])\n"
        "    acc = tl.zeros((128, 128), dtype=tl.float32)\n"
        "    for k in range(0, K, W):\n"
        "        acc = tl.dot(x.load([0, k]), y.load([0, k]).T, acc)\n"
        "    i = tl.arange(0, 128)\n"
        "    tl.store(c + i[:, None] * 128 + i[None, :], acc)\n";
    static const char *const binds[3][1] = {{"W=64"}, {"W=32"}, {"W=64"}};
    static const int64_t pitch[] = {256, 256, 264};
    Env e = setup();
    SdcModule *mod;
    SdcFunction *f;
    ck_assert_int_eq(
        sdc_module_load_text(e.cx, "nt.tk", tk, sizeof tk - 1, SDC_LANG_AUTO, &mod),
        SDC_OK);
    for (int i = 0; i < 3; i++) {
        ck_assert_int_eq(sdc_function_get(mod, "nt", binds[i], 1, &f), SDC_OK);
        e.args[3] = sdc_int(pitch[i]);
        SdcStatus s = sdc_launch(f, sdc_grid(1, 1, 1), e.args, 4, NULL);
        ck_assert_msg(s == SDC_OK, "%s", sdc_error(e.cx));
        ck_assert_int_eq(e.fake->promotions[2], 2 * i);
        ck_assert_int_ge(e.fake->promotions[3], 2);
    }
    sdc_context_destroy(e.cx);
}
END_TEST

/* As many programs as run at once; how many were asked for is a parameter more. */
START_TEST(programs_in_turn)
{
    static const char tir[] =
        "kernel @turns(%p: ptr<i32> {sig=\"*i32\"}) {warps=4} {\n"
        "  %n = num_programs {axis=0, ctas_per_sm=2} : i32\n"
        "  store %p, %n\n"
        "  return\n"
        "}\n";
    Env e = setup();
    SdcModule *mod;
    SdcFunction *f;
    const FakeLaunch *l = &e.fake->last;
    const unsigned asked[] = {1000, 7, 264};
    ck_assert_int_eq(sdc_module_load_text(e.cx, "turns.tir", tir, sizeof tir - 1,
                                          SDC_LANG_AUTO, &mod),
                     SDC_OK);
    ck_assert_int_eq(sdc_function_get(mod, "turns", NULL, 0, &f), SDC_OK);
    SdcArg p = sdc_ptr(SDC_I32, (void *)(uintptr_t)(1 << 20));
    for (int i = 0; i < 3; i++) {
        SdcStatus s = sdc_launch(f, sdc_grid((int)asked[i], 3, 1), &p, 1, NULL);
        ck_assert_msg(s == SDC_OK, "%s", sdc_error(e.cx));
        ck_assert_int_eq(l->nparam, 2);
        ck_assert_uint_eq((uint32_t)l->params[1], asked[i]);
        ck_assert_uint_eq(l->grid[0], asked[i] < 264 ? asked[i] : 264);
        ck_assert_uint_eq(l->grid[1], 3);
    }
    sdc_context_destroy(e.cx);
}
END_TEST

/* What the code counts on and only the launch can see. */
START_TEST(whole_numbers_of_tiles)
{
    static const char tir[] =
        "kernel @whole(%p: ptr<i32> {sig=\"*i32\"}, %n: i32 {sig=\"i32\", multiple=64}) "
        "{warps=4} {\n"
        "  store %p, %n\n"
        "  return\n"
        "}\n";
    Env e = setup();
    SdcModule *mod;
    SdcFunction *f;
    ck_assert_int_eq(sdc_module_load_text(e.cx, "whole.tir", tir, sizeof tir - 1,
                                          SDC_LANG_AUTO, &mod),
                     SDC_OK);
    ck_assert_int_eq(sdc_function_get(mod, "whole", NULL, 0, &f), SDC_OK);
    for (int n = 0; n <= 640; n += 16) {
        SdcArg args[] = {sdc_ptr(SDC_I32, (void *)(uintptr_t)(1 << 20)), sdc_int(n)};
        SdcStatus s = sdc_launch(f, sdc_grid(1, 1, 1), args, 2, NULL);
        ck_assert_int_eq(s == SDC_OK, n % 64 == 0);
        ck_assert(s == SDC_OK || strstr(sdc_error(e.cx), "'n' is no multiple of 64"));
    }
    sdc_context_destroy(e.cx);
}
END_TEST

/* Each call of a launch fails once; then the same launch does it all. */
START_TEST(every_call_may_fail)
{
    static const int code[] = {1, 2, 700};
    for (int k = 1;; k++) {
        Env e = setup();
        SdcDevice d;
        ck_assert_int_eq(sdc_context_device(e.cx, &d), SDC_OK);
        e.fake->calls = 0;
        e.fake->fail_at = k;
        e.fake->fail_code = code[_i];
        SdcStatus s = sdc_launch(e.mm, sdc_grid(1, 1, 1), e.args, 5, NULL);
        bool reached = e.fake->calls >= k;
        bool map = strcmp(e.fake->failed, "cuTensorMapEncodeTiled") == 0;
        e.fake->fail_at = 0;
        /* a map that the driver finds invalid is no error: there is other code */
        if (reached && map)
            ck_assert_int_eq(s == SDC_OK, code[_i] == 1);
        ck_assert_int_eq(launch(&e)->nparam, 7);
        sdc_context_destroy(e.cx);
        ck_assert_msg(e.fake->live == 0, "call %d, %s: %ld things are left", k,
                      e.fake->failed, e.fake->live);
        if (!reached)
            break;
    }
}
END_TEST

START_TEST(one_matrix_with_a_residual)
{
    enum { N = 1024 };
    Env e = setup();
    SdcKernels *k;
    ck_assert_int_eq(sdc_kernels_create(e.cx, &k), SDC_OK);
    SdcTensor t[4];
    for (int i = 0; i < 4; i++)
        t[i] = sdc_matrix(SDC_FP16, (void *)(uintptr_t)(((unsigned)i + 1) << 24), N, N);
    SdcMatmulOptions o = {.size = sizeof o, .residual = &t[3]};
    SdcStatus s = sdc_matmul_with(k, &t[0], &t[1], &t[2], &o, NULL);
    ck_assert_msg(s == SDC_OK, "%s", sdc_error(e.cx));
    ck_assert_int_ge(e.fake->maps, 2); /* of a and b, at least */
    sdc_kernels_destroy(k);
    sdc_context_destroy(e.cx);
}
END_TEST

/* Maps that the kernel writes are no matter of the launch, but of the driver, whose
   assembler must know them: an older one gets code without, without stages then. */
START_TEST(written_by_the_kernel)
{
    static const char *const bind[] = {"num_warps=4"};
    unsigned shared[2];
    for (int i = 0; i < 2; i++) {
        Env e = setup();
        SdcFunction *fn;
        e.fake->driver = i ? 12040 : 12050;
        sdc_context_destroy(e.cx); /* another one, with that driver */
        SdcContextOptions o = {.target = "cuda"};
        ck_assert_int_eq(sdc_context_create(&o, &e.cx), SDC_OK);
        ck_assert_int_eq(sdc_module_load_text(e.cx, "mm.tk", loaded, sizeof loaded - 1,
                                              SDC_LANG_AUTO, &e.mod),
                         SDC_OK);
        ck_assert_int_eq(sdc_function_get(e.mod, "mm", bind, 1, &fn), SDC_OK);
        const SdcArg args[] = {sdc_ptr(SDC_I64, (void *)(uintptr_t)(1 << 20)),
                               sdc_ptr(SDC_I32, (void *)(uintptr_t)(2 << 20)),
                               sdc_ptr(SDC_FP32, (void *)(uintptr_t)(3 << 20))};
        for (int n = 0; n < 2; n++) {
            SdcStatus s = sdc_launch(fn, sdc_grid(1, 1, 1), args, 3, NULL);
            ck_assert_msg(s == SDC_OK, "%s", sdc_error(e.cx));
        }
        ck_assert_int_eq(e.fake->last.nparam, i ? 3 : 4); /* the results' map */
        shared[i] = e.fake->last.shared;
        e.fake->driver = 0;
        sdc_context_destroy(e.cx);
        ck_assert_int_eq(e.fake->live, 0);
    }
    ck_assert_uint_gt(shared[0], shared[1]);
}
END_TEST

int
main(void)
{
    Suite *s = suite_create("tensor_maps");
    TCase *t = tcase_create("tensor_maps");
    tcase_set_timeout(t, 120);
    tcase_add_test(t, maps_follow_the_arguments);
    tcase_add_test(t, without_a_map_other_code_runs);
    tcase_add_test(t, one_module_a_launch);
    tcase_add_test(t, maps_of_loads_alone);
    tcase_add_test(t, what_dram_is_asked_for_at_a_time);
    tcase_add_test(t, programs_in_turn);
    tcase_add_test(t, whole_numbers_of_tiles);
    tcase_add_test(t, written_by_the_kernel);
    tcase_add_test(t, one_matrix_with_a_residual);
    tcase_add_loop_test(t, every_call_may_fail, 0, 3);
    suite_add_tcase(s, t);
    SRunner *r = srunner_create(s);
    srunner_run_all(r, CK_NORMAL);
    int failed = srunner_ntests_failed(r);
    srunner_free(r);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
