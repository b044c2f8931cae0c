/* Checked launches through the public interface: where sizes come from, what is said,
   what stays as it was. The messages of wrong kernels are tests/cli/checked. */
#include "runtime/sdc.h"

#include <check.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char source[] =
    "import triton\n"
    "import triton.language as tl\n"
    "@triton.jit\n"
    "def copy(x, y, n, BLOCK: tl.constexpr):\n"
    "    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)\n"
    "    v = tl.load(x + i, mask=i < n)\n"
    "    tl.store(y + i, v, mask=i < n)\n"
    "@triton.jit\n"
    "def rows(d, y):\n"
    "    tl.store(y, tl.sum(d.load([0, 0])))\n"
    "@triton.jit\n"
    "def touch(x, y, plan):\n"
    "    p = tl.program_id(0)\n"
    "    lo = tl.load(plan + p * 3)\n"
    "    n = tl.load(plan + p * 3 + 1)\n"
    "    i = tl.arange(0, 128)\n"
    "    if tl.load(plan + p * 3 + 2) > 0:\n"
    "        tl.store(x + lo + i, (p + 1) * 1000.0 + i, mask=i < n)\n"
    "    else:\n"
    "        tl.store(y + p, tl.sum(tl.load(x + lo + i, mask=i < n)))\n";

typedef struct Env {
    SdcContext *cx;
    SdcModule *mod;
} Env;

static Env
setup(int check)
{
    Env e;
    SdcContextOptions o = {.check = check, .threads = 4};
    ck_assert_int_eq(sdc_context_create(&o, &e.cx), SDC_OK);
    ck_assert_int_eq(sdc_module_load_text(e.cx, "k.tk", source, sizeof source - 1,
                                          SDC_LANG_TRITON, &e.mod),
                     SDC_OK);
    return e;
}

static SdcFunction *
get(Env *e, const char *kernel)
{
    SdcFunction *f;
    const char *bind = "BLOCK=64";
    int n = strcmp(kernel, "copy") == 0;
    ck_assert_int_eq(sdc_function_get(e->mod, kernel, &bind, n, &f), SDC_OK);
    return f;
}

static void
expect(Env *e, SdcStatus got, const char *text)
{
    ck_assert_int_eq(got, SDC_ERROR_CHECK);
    if (!strstr(sdc_error(e->cx), text))
        ck_abort_msg("'%s' is not in: %s", text, sdc_error(e->cx));
}

enum { N = 1000, PROGRAMS = (N + 63) / 64 };

START_TEST(buffers_have_sizes)
{
    Env e = setup(SDC_CHECK_ACCESS);
    SdcFunction *f = get(&e, "copy");
    float *x = calloc(N, sizeof *x), *y = calloc(N, sizeof *y);
    SdcBuffer bx = {SDC_FP32, x, N * sizeof *x}, by = {SDC_FP32, y, N * sizeof *y};
    SdcArg args[] = {sdc_buffer(&bx), sdc_buffer(&by), sdc_int(N)};
    x[N - 1] = 5;
    ck_assert_int_eq(sdc_launch(f, sdc_grid(PROGRAMS, 1, 1), args, 3, NULL), SDC_OK);
    ck_assert(y[N - 1] == 5);
    by.bytes -= 2 * sizeof *y;
    x[N - 1] = 6;
    x[N - 3] = 7;
    expect(&e, sdc_launch(f, sdc_grid(PROGRAMS, 1, 1), args, 3, NULL),
           "k.tk:7:5: error: store outside of 'y', fp32[998]: element 998, 1 past the "
           "end");
    ck_assert_ptr_nonnull(strstr(sdc_error(e.cx), "pid (15, 0, 0) idx (38) of 'copy'"));
    ck_assert(y[N - 1] == 5); /* nothing of the strip was stored */
    SdcPlace place;
    ck_assert_int_eq(sdc_error_place(e.cx, &place), 1);
    ck_assert_int_eq(place.line, 7);
    /* Part of an element is outside as well. */
    by.bytes = N * sizeof *y - 1;
    expect(&e, sdc_launch(f, sdc_grid(PROGRAMS, 1, 1), args, 3, NULL), "element 999");
    sdc_context_destroy(e.cx);
    free(x);
    free(y);
}
END_TEST

START_TEST(registered_memory_has_names)
{
    Env e = setup(SDC_CHECK_ACCESS);
    SdcFunction *f = get(&e, "copy");
    float *pool = calloc(2 * N, sizeof *pool);
    SdcArg args[] = {sdc_ptr(SDC_FP32, pool), sdc_ptr(SDC_FP32, pool + N), sdc_int(N)};
    SdcGrid grid = sdc_grid(PROGRAMS, 1, 1);
    /* Nothing is known: nothing is said. */
    ck_assert_int_eq(sdc_launch(f, grid, args, 3, NULL), SDC_OK);
    const size_t most = (N - 1) * sizeof *pool;
    ck_assert_int_eq(sdc_register_range(e.cx, pool, most, "weights"), SDC_OK);
    expect(&e, sdc_launch(f, grid, args, 3, NULL),
           "load outside of 'weights', fp32[999]");
    /* The smallest range that an address is in counts. */
    ck_assert_int_eq(sdc_register_range(e.cx, pool, 2 * N * sizeof *pool, NULL), SDC_OK);
    ck_assert_int_eq(sdc_launch(f, grid, args, 3, NULL), SDC_OK);
    ck_assert_int_eq(sdc_register_range(e.cx, pool + N, 8, "bias"), SDC_OK);
    const int64_t shape[] = {1, 2};
    ck_assert_int_eq(sdc_range_shape(e.cx, pool + N, 2, shape), SDC_OK);
    expect(&e, sdc_launch(f, grid, args, 3, NULL), "store outside of 'bias', fp32[1,2]");
    sdc_unregister_range(e.cx, pool + N);
    ck_assert_int_eq(sdc_launch(f, grid, args, 3, NULL), SDC_OK);
    ck_assert_int_eq(sdc_range_shape(e.cx, pool + N, 1, shape), SDC_ERROR_ARGUMENT);
    ck_assert_int_eq(sdc_register_range(e.cx, NULL, 8, NULL), SDC_ERROR_ARGUMENT);
    ck_assert_int_eq(sdc_register_range(NULL, pool, 8, NULL), SDC_ERROR_ARGUMENT);
    ck_assert_int_eq(sdc_register_range(e.cx, pool, SIZE_MAX, NULL), SDC_ERROR_ARGUMENT);
    ck_assert_int_eq(sdc_range_shape(e.cx, pool, 99, shape), SDC_ERROR_ARGUMENT);
    sdc_unregister_range(e.cx, NULL);
    sdc_context_destroy(e.cx);
    free(pool);
}
END_TEST

START_TEST(null_pointers_are_reported)
{
    Env e = setup(SDC_CHECK_ACCESS);
    SdcFunction *f = get(&e, "copy");
    float y[64];
    SdcArg args[] = {sdc_ptr(SDC_FP32, NULL), sdc_ptr(SDC_FP32, y), sdc_int(0)};
    /* No lane is active: a null pointer is an array of nothing. */
    ck_assert_int_eq(sdc_launch(f, sdc_grid(1, 1, 1), args, 3, NULL), SDC_OK);
    args[2] = sdc_int(3);
    expect(&e, sdc_launch(f, sdc_grid(1, 1, 1), args, 3, NULL),
           "k.tk:6:9: error: load through 'x', which is a null pointer");
    ck_assert_ptr_nonnull(strstr(sdc_error(e.cx), "pid (0, 0, 0) idx (0) of 'copy'"));
    sdc_context_destroy(e.cx);
}
END_TEST

START_TEST(descriptors_have_sizes)
{
    Env e = setup(SDC_CHECK_ACCESS);
    _Alignas(16) float x[16 * 16] = {0};
    float y[2];
    SdcDesc d = {.dtype = SDC_FP32,
                 .rank = 2,
                 .base = x,
                 .shape = {16, 8},
                 .strides = {16, 1},
                 .block = {16, 16}};
    SdcArg args[] = {sdc_desc(&d), sdc_ptr(SDC_FP32, y)};
    ck_assert_int_eq(sdc_launch(get(&e, "rows"), sdc_grid(1, 1, 1), args, 2, NULL),
                     SDC_OK);
    /* What the descriptor says is more than there is. */
    ck_assert_int_eq(sdc_register_range(e.cx, x, 15 * 16 * sizeof *x, "t"), SDC_OK);
    expect(&e, sdc_launch(get(&e, "rows"), sdc_grid(1, 1, 1), args, 2, NULL),
           "k.tk:10:24: error: load outside of 't', fp32[240]: element 240, 1 past");
    ck_assert_ptr_nonnull(strstr(sdc_error(e.cx), "pid (0, 0, 0) idx (15, 0) of"));
    sdc_context_destroy(e.cx);
}
END_TEST

/* DLTensor of DLPack. */
typedef struct Tensor {
    void *data;
    int32_t device, id, ndim;
    uint8_t code, bits;
    uint16_t lanes;
    int64_t *shape, *strides;
    uint64_t offset;
} Tensor;

START_TEST(tensors_have_sizes)
{
    Env e = setup(SDC_CHECK_ACCESS);
    float x[8 * 16], y[128];
    memset(x, 0, sizeof x);
    int64_t shape[] = {5, 3}, strides[] = {16, 2};
    Tensor t = {x, 1, 0, 2, 2, 32, 1, shape, NULL, 16};
    SdcArg args[] = {sdc_none(), sdc_ptr(SDC_FP32, y), sdc_int(16)};
    ck_assert_int_eq(sdc_arg_dlpack(e.cx, &t, &args[0]), SDC_OK);
    expect(&e, sdc_launch(get(&e, "copy"), sdc_grid(1, 1, 1), args, 3, NULL),
           "load outside of 'x', fp32[5,3]: element 15, 1 past the end");
    t.strides = strides;
    ck_assert_int_eq(sdc_arg_dlpack(e.cx, &t, &args[0]), SDC_OK);
    ck_assert_int_eq(sdc_launch(get(&e, "copy"), sdc_grid(1, 1, 1), args, 3, NULL),
                     SDC_OK);
    args[2] = sdc_int(70); /* 4 * 16 + 2 * 2 + 1 elements from first to last */
    expect(&e, sdc_launch(get(&e, "copy"), sdc_grid(2, 1, 1), args, 3, NULL),
           "load outside of 'x', fp32[69]: element 69, 1 past the end");
    sdc_context_destroy(e.cx);
}
END_TEST

START_TEST(values_are_remembered)
{
    Env e = setup(SDC_CHECK_ACCESS);
    SdcFunction *f = get(&e, "copy");
    float x[64] = {1}, y[64], z[64];
    SdcArg first[] = {sdc_ptr(SDC_FP32, x), sdc_ptr(SDC_FP32, y), sdc_int(40)};
    SdcArg then[] = {sdc_ptr(SDC_FP32, y), sdc_ptr(SDC_FP32, z), sdc_int(40)};
    ck_assert_int_eq(sdc_register_range(e.cx, y, sizeof y, "y"), SDC_OK);
    ck_assert_int_eq(sdc_range_unwritten(e.cx, y), SDC_OK);
    expect(&e, sdc_launch(f, sdc_grid(1, 1, 1), then, 3, NULL),
           "load of element 0 of 'y', fp32[64], which nothing has written");
    ck_assert_int_eq(sdc_launch(f, sdc_grid(1, 1, 1), first, 3, NULL), SDC_OK);
    ck_assert_int_eq(sdc_launch(f, sdc_grid(1, 1, 1), then, 3, NULL), SDC_OK);
    then[2] = sdc_int(41);
    expect(&e, sdc_launch(f, sdc_grid(1, 1, 1), then, 3, NULL), "load of element 40");
    ck_assert_int_eq(sdc_range_unwritten(e.cx, z), SDC_ERROR_ARGUMENT);
    sdc_context_destroy(e.cx);
}
END_TEST

START_TEST(races_over_views_of_one_array)
{
    Env e = setup(SDC_CHECK_ACCESS);
    SdcFunction *f = get(&e, "copy");
    float x[256] = {0};
    for (int i = 0; i < 256; i++)
        x[i] = (float)i;
    /* y is x moved by one: program 1 reads what program 0 stores. */
    SdcBuffer bx = {SDC_FP32, x, 200 * sizeof *x}, by = {SDC_FP32, x + 1, sizeof x - 4};
    SdcArg args[] = {sdc_buffer(&bx), sdc_buffer(&by), sdc_int(200)};
    expect(&e, sdc_launch(f, sdc_grid(4, 1, 1), args, 3, NULL), "error: race: this load");
    /* Once more, all equal: the result is the same in any order. */
    memset(x, 0, sizeof x);
    SdcArg plain[] = {sdc_buffer(&by), sdc_buffer(&by), sdc_int(200)};
    ck_assert_int_eq(sdc_launch(f, sdc_grid(4, 1, 1), plain, 3, NULL), SDC_OK);
    sdc_context_destroy(e.cx);
}
END_TEST

/* Programs that each load or store a run of elements, at random, beside a plain account
   of who touched what: the first that meets another is told. Runs fall on groups of
   entries (runtime/checked.h), on parts of them, and on more than one; entries of
   launches before lie about. */
START_TEST(runs_of_elements)
{
    enum { ELEMENTS = 300, MOST = 6, ROUNDS = 400 };
    Env e = setup(SDC_CHECK_ACCESS);
    SdcFunction *f = get(&e, "touch");
    static float x[ELEMENTS], y[MOST];
    uint32_t random = 1;
    int races = 0;
    for (int round = 0; round < ROUNDS; round++) {
        int32_t plan[MOST][3], writer[ELEMENTS] = {0}, reader[ELEMENTS] = {0};
        int n = 2 + round % (MOST - 1), first = -1;
        for (int p = 0; p < n; p++) {
            for (int k = 0; k < 3; k++)
                plan[p][k] = (int32_t)((random = random * 1664525 + 1013904223) >> 8);
            plan[p][0] = plan[p][0] % 4 ? plan[p][0] % 11 * 16 : plan[p][0] % 170;
            plan[p][1] = plan[p][1] % 3 ? 16 * (1 + plan[p][1] % 8) : plan[p][1] % 129;
            plan[p][2] = plan[p][2] % 3 == 0;
            for (int i = plan[p][0]; i < plan[p][0] + plan[p][1]; i++) {
                bool meets = writer[i] || (plan[p][2] && reader[i]);
                if (meets && first < 0)
                    first = p;
                (plan[p][2] ? writer : reader)[i] = 1;
            }
        }
        SdcArg args[] = {sdc_ptr(SDC_FP32, x), sdc_ptr(SDC_FP32, y),
                         sdc_ptr(SDC_I32, plan)};
        ck_assert_int_eq(sdc_register_range(e.cx, x, sizeof x, "x"), SDC_OK);
        memset(x, 0, sizeof x);
        SdcStatus got = sdc_launch(f, sdc_grid(n, 1, 1), args, 3, NULL);
        if (first < 0) {
            ck_assert_int_eq(got, SDC_OK);
            continue;
        }
        char pid[32];
        snprintf(pid, sizeof pid, "pid (%d, 0, 0)", first);
        expect(&e, got, "error: race: ");
        expect(&e, got, pid);
        races++;
    }
    ck_assert_int_gt(races, ROUNDS / 4);
    ck_assert_int_lt(races, ROUNDS);
    sdc_context_destroy(e.cx);
}
END_TEST

START_TEST(others_are_as_before)
{
    Env plain = setup(0);
    float x[64] = {3}, y[64];
    SdcBuffer b = {SDC_FP32, y, 4};
    SdcArg args[] = {sdc_ptr(SDC_FP32, x), sdc_buffer(&b), sdc_int(64)};
    ck_assert_int_eq(sdc_launch(get(&plain, "copy"), sdc_grid(1, 1, 1), args, 3, NULL),
                     SDC_OK);
    ck_assert(y[0] == 3);
    ck_assert_int_eq(sdc_register_range(plain.cx, x, 4, NULL), SDC_OK);
    args[1] = sdc_buffer(&(SdcBuffer){SDC_FP16, y, sizeof y});
    SdcKernel *k;
    ck_assert_int_eq(sdc_specialize(get(&plain, "copy"), args, 3, &k), SDC_OK);
    SdcArg none = {.kind = SDC_ARG_BUFFER};
    args[1] = none;
    ck_assert_int_eq(sdc_launch(get(&plain, "copy"), sdc_grid(1, 1, 1), args, 3, NULL),
                     SDC_ERROR_ARGUMENT);
    sdc_context_destroy(plain.cx);
    SdcContext *cx;
    SdcContextOptions gpu = {.target = "cuda", .check = SDC_CHECK_ACCESS};
    ck_assert_int_eq(sdc_context_create(&gpu, &cx), SDC_ERROR_ARGUMENT);
    SdcContextOptions odd = {.check = 8};
    ck_assert_int_eq(sdc_context_create(&odd, &cx), SDC_ERROR_ARGUMENT);
}
END_TEST

int
main(void)
{
    Suite *s = suite_create("checked");
    TCase *t = tcase_create("checked");
    tcase_add_test(t, buffers_have_sizes);
    tcase_add_test(t, registered_memory_has_names);
    tcase_add_test(t, null_pointers_are_reported);
    tcase_add_test(t, descriptors_have_sizes);
    tcase_add_test(t, tensors_have_sizes);
    tcase_add_test(t, values_are_remembered);
    tcase_add_test(t, races_over_views_of_one_array);
    tcase_add_test(t, runs_of_elements);
    tcase_add_test(t, others_are_as_before);
    suite_add_tcase(s, t);
    SRunner *r = srunner_create(s);
    srunner_run_all(r, CK_NORMAL);
    int failed = srunner_ntests_failed(r);
    srunner_free(r);
    return failed != 0;
}
