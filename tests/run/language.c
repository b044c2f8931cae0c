/* The kernels of tests/run/lang against what Triton computed on a GPU
   (tests/golden/language.json, made by tests/oracle/language.py): statements, operators,
   shapes, reductions, memory, one behaviour a kernel. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/run/support/harness.h"
#include "tests/run/support/json.h"

enum { N = 128 };

static Json *
golden_read(void)
{
    char path[4096];
    snprintf(path, sizeof(path), "%s/tests/golden/language.json", test_root());
    Json *j = json_read(path);
    if (!j)
        fprintf(stderr, "cannot read %s\n", path);
    return j;
}

/* Hexadecimal numbers of `size` bytes each. */
static void
hex_read(const Json *list, int size, void *out)
{
    ck_assert_ptr_nonnull(list);
    ck_assert_int_eq(list->count, N);
    unsigned char *to = out;
    for (const Json *m = list->first; m; m = m->next, to += size) {
        uint64_t bits = strtoull(m->text, NULL, 16);
        memcpy(to, &bits, (size_t)size); /* little-endian, as all our hosts are */
    }
}

static double
element(SdcDtype t, const unsigned char *at)
{
    int32_t i32;
    if (t == SDC_FP32)
        return ref_load(REF_FP32, at, 0);
    memcpy(&i32, at, sizeof(i32));
    return (double)i32;
}

static void
values_check(const char *name, SdcDtype t, int tolerance, const unsigned char *got,
             const unsigned char *want)
{
    int size = sdc_dtype_size(t);
    for (int i = 0; i < N; i++, got += size, want += size) {
        if (!memcmp(got, want, (size_t)size))
            continue;
        if (t == SDC_FP32) {
            double g = element(t, got), w = element(t, want);
            double allowed = tolerance ? ldexp(fmax(1, fabs(w)), tolerance) : 0;
            if (g == w || fabs(g - w) <= allowed || (isnan(g) && isnan(w)))
                continue;
            ck_abort_msg("%s: element %d is %.9g, not %.9g", name, i, g, w);
        }
        uint64_t g = 0, w = 0;
        memcpy(&g, got, (size_t)size);
        memcpy(&w, want, (size_t)size);
        ck_abort_msg("%s: element %d is 0x%llx, not 0x%llx", name, i,
                     (unsigned long long)g, (unsigned long long)w);
    }
}

START_TEST(kernel)
{
    Json *golden = golden_read();
    ck_assert_ptr_nonnull(golden);
    const Json *k = json_at(json_get(golden, "kernels"), _i);
    const char *name = json_get(k, "name")->text;
    const char *file = json_get(k, "file")->text;
    const char *type = json_get(k, "out")->text;
    SdcDtype t = sdc_dtype_by_name(type, strlen(type));
    static _Alignas(16) float x[N], y[N];
    static _Alignas(16) int32_t ints[N];
    static _Alignas(16) unsigned char got[N * 8], want[N * 8];
    hex_read(json_get(golden, "x"), 4, x);
    hex_read(json_get(golden, "y"), 4, y);
    hex_read(json_get(golden, "i"), 4, ints);
    hex_read(json_get(k, "values"), sdc_dtype_size(t), want);
    memset(got, 0, sizeof(got));
    char path[256];
    snprintf(path, sizeof(path), "../tests/run/lang/%s", file);
    Env env = env_open(path);
    const char *binds = json_get(k, "binds")->text;
    LEND(&env, x), LEND(&env, y), LEND(&env, ints), LEND(&env, got);
    if (LAUNCH(&env, name, sdc_grid(1, 1, 1), binds, sdc_ptr(SDC_FP32, x),
               sdc_ptr(SDC_FP32, y), sdc_ptr(SDC_I32, ints), sdc_ptr(t, got)))
        values_check(name, t, (int)json_int(json_get(k, "tolerance")), got, want);
    env_close(&env);
    json_free(golden);
}
END_TEST

int
main(void)
{
    Json *golden = golden_read();
    const Json *kernels = golden ? json_get(golden, "kernels") : NULL;
    int n = kernels ? kernels->count : 0;
    json_free(golden);
    if (n < 70) {
        fprintf(stderr, "tests/golden/language.json: %d kernels\n", n);
        return 1;
    }
    Suite *suite = suite_create("language");
    TCase *tc = tcase_create("kernels");
    tcase_set_timeout(tc, 300);
    tcase_add_loop_test(tc, kernel, 0, n);
    suite_add_tcase(suite, tc);
    return suite_finish("language", suite);
}
