/* Kernels of tests/run/twice, each of which computes something in two ways: what it
   stores is where they differ, so every element is 0. For functions whose meaning is said
   by other functions (products of scaled operands, orders, functions by element). */
#include <stdio.h>
#include <string.h>

#include "tests/run/support/harness.h"

enum { N = 1024 };

static const char *const files[] = {"scaled", "sort", "classes", "by_element",
                                    "libdevice", "atomics"};

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

int
main(void)
{
    Suite *suite = suite_create("twice");
    TCase *tc = tcase_create("files");
    tcase_set_timeout(tc, 300);
    tcase_add_loop_test(tc, file, 0, (int)(sizeof files / sizeof *files));
    suite_add_tcase(suite, tc);
    return suite_finish("twice", suite);
}
