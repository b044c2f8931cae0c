/* Kernels of tests/run/twice, each of which computes something in two ways: what it
   stores is where they differ, so every element is 0. For functions whose meaning is said
   by other functions (matmuls of scaled operands, orders, functions by element). */
#include <stdio.h>
#include <string.h>

#include "tests/run/support/harness.h"

enum { N = 1024 };

static const char *const files[] = {"scaled",     "sort",    "topk",    "classes",
                                    "by_element", "libdevice", "atomics", "decided",
                                    "buckets",    "zeros",   "combine",   "divided",
                                    "steps",      "strips",  "random",    "bytes",
                                    "skipped", "rows"};

static void
kernel_check(Env *env, const char *file, const char *name)
{
    static _Alignas(16) float x[N];
    static _Alignas(16) int32_t ints[N], out[N];
    for (int i = 0; i < N; i++) {
        x[i] = (float)env_normal(env);
        ints[i] = (int32_t)env_random(env);
    }
    memset(out, 0, sizeof(out));
    LEND(env, x), LEND(env, ints), LEND(env, out);
    if (!LAUNCH(env, name, sdc_grid(1, 1, 1), "", sdc_ptr(SDC_FP32, x),
                sdc_ptr(SDC_I32, ints), sdc_ptr(SDC_I32, out)))
        return;
    for (int i = 0; i < N; i++)
        ck_assert_msg(!out[i], "%s.tk, %s: element %d is %d", file, name, i, out[i]);
}

START_TEST(file)
{
    char path[256];
    snprintf(path, sizeof(path), "../tests/run/twice/%s", files[_i]);
    Env env = env_open(path);
    int n = sdc_module_kernel_count(env.mod), checked = 0;
    for (int i = 0; i < n; i++) {
        const char *name = sdc_module_kernel_name(env.mod, i);
        if (name[0] == '_') /* a helper */
            continue;
        kernel_check(&env, files[_i], name);
        checked++;
    }
    ck_assert_int_gt(checked, 0);
    env_close(&env);
}
END_TEST

/* What a load of a descriptor finds outside of its tensor: 0, or NaN where that is asked
   for. One function, so that both specializations are kept apart. */
START_TEST(padding)
{
    static const char text[] = "import triton\n"
                               "import triton.language as tl\n"
                               "@triton.jit\n"
                               "def padded(d, out_ptr):\n"
                               "    v = d.load([0, 0])\n"
                               "    o = tl.arange(0, 16)\n"
                               "    kind = tl.where(v != v, 2, tl.where(v == 0, 1, 0))\n"
                               "    tl.store(out_ptr + o[:, None] * 16 + o, kind)\n";
    static _Alignas(16) float x[16 * 16];
    static _Alignas(16) int32_t out[16 * 16];
    Env env = env_open_text("padded.tk", text);
    for (int i = 0; i < 16 * 16; i++)
        x[i] = 1;
    LEND(&env, x), LEND(&env, out);
    SdcDesc d = {.dtype = SDC_FP32, .rank = 2, .base = x, .shape = {10, 12},
                 .strides = {16, 1}, .block = {16, 16}};
    for (int round = 0; round < 4; round++) {
        int nan = round & 1;
        if (!LAUNCH(&env, "padded", sdc_grid(1, 1, 1), "",
                    nan ? sdc_desc_nan(&d) : sdc_desc(&d), sdc_ptr(SDC_I32, out)))
            break;
        for (int i = 0; i < 16 * 16; i++)
            ck_assert_int_eq(out[i], i / 16 < 10 && i % 16 < 12 ? 0 : 1 + nan);
    }
    env_close(&env);
}
END_TEST

int
main(void)
{
    Suite *suite = suite_create("twice");
    TCase *tc = tcase_create("files");
    tcase_set_timeout(tc, 300);
    tcase_add_loop_test(tc, file, 0, (int)(sizeof files / sizeof *files));
    tcase_add_test(tc, padding);
    suite_add_tcase(suite, tc);
    return suite_finish("twice", suite);
}
