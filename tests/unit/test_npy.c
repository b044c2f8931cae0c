/* .npy files: what NumPy writes is read, what is written is read back, and anything else
   is refused with a reason and without harm: cut short at every byte, flipped in every
   bit of the header, lying about its size. */
#include "runtime/cli/npy.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static Arena arena;

static void
path_of(char *to, size_t size)
{
    snprintf(to, size, "%s/test_npy.%ld.npy", SDC_TMP, (long)getpid());
}

static void
put(const void *bytes, size_t size)
{
    char path[512];
    path_of(path, sizeof path);
    FILE *f = fopen(path, "wb");
    ck_assert_ptr_nonnull(f);
    ck_assert_uint_eq(fwrite(bytes, 1, size, f), size);
    fclose(f);
}

static bool
get(SdcDtype as, Array *a, char *why, size_t n)
{
    char path[512];
    bool environment;
    path_of(path, sizeof path);
    bool ok = npy_read(path, as, a, why, n, &environment);
    remove(path);
    return ok;
}

static size_t
header(const char *dict, unsigned char *to, int version)
{
    size_t n = strlen(dict), at = version == 1 ? 10 : 12;
    memcpy(to, "\x93NUMPY", 6);
    to[6] = (unsigned char)version;
    to[7] = 0;
    to[8] = (unsigned char)n;
    to[9] = (unsigned char)(n >> 8);
    to[10] = to[11] = 0;
    memcpy(to + at, dict, n);
    return at + n;
}

START_TEST(every_type_survives)
{
    for (int t = 1; t < SDC_DTYPE_COUNT; t++) {
        Array a = { .dtype = (SdcDtype)t, .rank = 2, .shape = { 3, 5 } }, b;
        char why[300];
        ck_assert(array_alloc(&a));
        ck_assert_uint_eq((uintptr_t)a.data % 64, 0);
        for (size_t i = 0; i < a.bytes; i++)
            ((unsigned char *)a.data)[i] = (unsigned char)(i * 37 + 1);
        size_t size;
        const char *bytes = npy_bytes(&arena, &a, &size);
        ck_assert_uint_eq((size - a.bytes) % 64, 0);
        put(bytes, size);
        bool small = sdc_dtype_is_float((SdcDtype)t) && sdc_dtype_size((SdcDtype)t) < 4;
        ck_assert_msg(get(small ? (SdcDtype)t : SDC_DTYPE_NONE, &b, why, sizeof why),
                      "%s", why);
        ck_assert_int_eq(b.dtype, a.dtype);
        ck_assert_int_eq(b.rank, 2);
        ck_assert_int_eq(b.shape[1], 5);
        ck_assert_mem_eq(b.data, a.data, a.bytes);
        array_done(&a);
        array_done(&b);
    }
}
END_TEST

START_TEST(scalars_and_empty_arrays)
{
    for (int rank = 0; rank < 2; rank++) {
        Array a = { .dtype = SDC_FP32, .rank = rank }, b;
        char why[300];
        ck_assert(array_alloc(&a));
        size_t size;
        const char *bytes = npy_bytes(&arena, &a, &size);
        put(bytes, size);
        ck_assert_msg(get(SDC_DTYPE_NONE, &b, why, sizeof why), "%s", why);
        ck_assert_int_eq(b.rank, rank);
        ck_assert_int_eq(b.count, rank == 0 ? 1 : 0);
        array_done(&a);
        array_done(&b);
    }
}
END_TEST

/* What a header says against what is expected to be complained of. */
static const struct {
    const char *dict, *why;
} headers[] = {
    { "{'descr': '<f4', 'fortran_order': False, 'shape': (2,), }", NULL },
    { "{\"shape\":(2,),\"descr\":\"<f4\",\"fortran_order\":False}\n", NULL },
    { "{'descr': '=f4', 'fortran_order': False, 'shape': (1, 2)}", NULL },
    { "{'descr': '>f4', 'fortran_order': False, 'shape': (2,)}", "big-endian" },
    { "{'descr': '<f4', 'fortran_order': True, 'shape': (2,)}", "Fortran" },
    { "{'descr': '<c8', 'fortran_order': False, 'shape': (2,)}", "no counterpart" },
    { "{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (2,)}", "structured" },
    { "{'descr': '|V2', 'fortran_order': False, 'shape': (2,)}", "say what they are" },
    { "{'descr': '<f4', 'fortran_order': False, 'shape': (-2,)}", "shape" },
    { "{'descr': '<f4', 'fortran_order': False, 'shape': (2 2)}", "shape" },
    { "{'descr': '<f4', 'fortran_order': False, 'shape': (2,3)}", "cut short" },
    { "{'descr': '<f4', 'fortran_order': False, 'shape': (99999999999999999999,)}",
      "shape" },
    { "{'descr': '<f4', 'fortran_order': False, 'shape': (4611686018427387904,4)}",
      "too large" },
    { "{'descr': '<f4', 'fortran_order': False, 'shape': (1000000000,1000000)}",
      "cut short" },
    { "{'descr': '<f4', 'fortran_order': False, 'shape': "
      "(1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1)}",
      "shape" },
    { "{'descr': '<f4', 'shape': (2,)}", "damaged" },
    { "{'descr': '<f4', 'descr': '<f4', 'fortran_order': False, 'shape': (2,)}",
      "damaged" },
    { "{'descr': '<f4', 'fortran_order': False, 'shape': (2,)", "damaged" },
    { "{'descr': '<f4444444444444444444444444444444444444444', 'shape': (2,)}",
      "structured" },
    { "[]", "no dictionary" },
    { "", "no dictionary" },
};

START_TEST(headers_are_judged)
{
    unsigned char file[512];
    char why[300] = "";
    for (size_t i = 0; i < sizeof headers / sizeof *headers; i++) {
        for (int version = 1; version <= 3; version++) {
            Array a;
            size_t n = header(headers[i].dict, file, version);
            memset(file + n, 0, 8);
            put(file, n + 8);
            bool ok = get(SDC_DTYPE_NONE, &a, why, sizeof why);
            ck_assert_msg(ok == !headers[i].why, "%s: %s", headers[i].dict, why);
            if (ok)
                array_done(&a);
            else
                ck_assert_msg(strstr(why, headers[i].why), "%s: %s", headers[i].dict,
                              why);
        }
    }
}
END_TEST

START_TEST(small_floats_need_their_name)
{
    unsigned char file[512];
    char why[300] = "";
    Array a;
    size_t n = header("{'descr': '<u2', 'fortran_order': False, 'shape': (2,)}", file, 1);
    memset(file + n, 0x3f, 4);
    put(file, n + 4);
    ck_assert(get(SDC_BF16, &a, why, sizeof why));
    ck_assert_int_eq(a.dtype, SDC_BF16);
    array_done(&a);
    put(file, n + 4);
    ck_assert(!get(SDC_FP8E5, &a, why, sizeof why)); /* two bytes are no fp8 */
    n = header("{'descr': '<f4', 'fortran_order': False, 'shape': (1,)}", file, 1);
    put(file, n + 4);
    ck_assert(!get(SDC_BF16, &a, why, sizeof why));
}
END_TEST

START_TEST(damage_does_no_harm)
{
    unsigned char file[512], broken[512];
    char why[300];
    Array a;
    size_t n =
        header("{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }", file, 1);
    memset(file + n, 0, 24);
    for (size_t cut = 0; cut < n + 24; cut++) {
        put(file, cut);
        ck_assert_msg(!get(SDC_DTYPE_NONE, &a, why, sizeof why), "cut at %zu", cut);
    }
    for (size_t bit = 0; bit < n * 8; bit++) {
        memcpy(broken, file, n + 24);
        broken[bit / 8] ^= (unsigned char)(1u << bit % 8);
        size_t at = npy_header(broken, n + 24, SDC_DTYPE_NONE, &a, why, sizeof why);
        ck_assert(at <= n + 24);
        put(broken, n + 24);
        if (get(SDC_DTYPE_NONE, &a, why, sizeof why)) {
            ck_assert(a.bytes <= 24); /* never more than the file holds */
            array_done(&a);
        }
    }
}
END_TEST

int
main(void)
{
    static FailPoint fail;
    arena_init(&arena, &fail, 0);
    Suite *suite = suite_create("npy");
    TCase *c = tcase_create("npy");
    tcase_add_test(c, every_type_survives);
    tcase_add_test(c, scalars_and_empty_arrays);
    tcase_add_test(c, headers_are_judged);
    tcase_add_test(c, small_floats_need_their_name);
    tcase_add_test(c, damage_does_no_harm);
    suite_add_tcase(suite, c);
    SRunner *r = srunner_create(suite);
    srunner_run_all(r, CK_NORMAL);
    int failed = srunner_ntests_failed(r);
    srunner_free(r);
    arena_done(&arena);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
