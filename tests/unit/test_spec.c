/* Grid expressions and argument specs of `sdc run`. */
#include "runtime/cli/spec.h"

#include <check.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static bool
lookup(void *user, const char *name, size_t n, int64_t *value)
{
    (void)user;
    if (n == 1 && *name == 'n')
        *value = 1000;
    else if (n == 5 && memcmp(name, "BLOCK", 5) == 0)
        *value = 128;
    else if (n == 3 && memcmp(name, "big", 3) == 0)
        *value = INT64_MAX;
    else
        return false;
    return true;
}

static const struct {
    const char *text;
    int count; /* -1: an error that mentions `why` */
    int64_t value[3];
    const char *why;
} grids[] = {
    {"1", 1, {1}, NULL},
    {" 4 , 5,6 ", 3, {4, 5, 6}, NULL},
    {"cdiv(n,BLOCK)", 1, {8}, NULL},
    {"triton.cdiv(n, BLOCK) * 2, 3", 2, {16, 3}, NULL},
    {"min(n, 7, 9) + max(1, 2)", 1, {9}, NULL},
    {"2 + 3 * 4 - 1", 1, {13}, NULL},
    {"(2 + 3) * -4", 1, {-20}, NULL},
    {"-7 // 2", 1, {-4}, NULL},
    {"-7 % 3", 1, {2}, NULL},
    {"7 % -3", 1, {-2}, NULL},
    {"1_000_000", 1, {1000000}, NULL},
    {"cdiv(-7, 2)", 1, {-3}, NULL},
    {"", -1, {0}, "missing at column 1"},
    {"1,", -1, {0}, "missing at column 3"},
    {"1,2,3,4", -1, {0}, "too many"},
    {"m", -1, {0}, "'m' is no integer"},
    {"1 / 2", -1, {0}, "'//'"},
    {"1 // 0", -1, {0}, "zero"},
    {"1 % 0", -1, {0}, "zero"},
    {"cdiv(1, 0)", -1, {0}, "above zero"},
    {"cdiv(1)", -1, {0}, "two numbers"},
    {"f(1)", -1, {0}, "no such function"},
    {"(1", -1, {0}, "')'"},
    {"1 2", -1, {0}, "operator"},
    {"big + 1", -1, {0}, "too large"},
    {"big * 2", -1, {0}, "too large"},
    {"-big - 2", -1, {0}, "too large"},
    {"(-big - 1) // -1", -1, {0}, "too large"},
    {"99999999999999999999", -1, {0}, "too large"},
};

START_TEST(grids_are_evaluated)
{
    for (size_t i = 0; i < sizeof grids / sizeof *grids; i++) {
        Expr e = {.lookup = lookup};
        int64_t out[3] = {0};
        int n = expr_list(&e, grids[i].text, strlen(grids[i].text), out, 3);
        ck_assert_msg(n == grids[i].count, "'%s': %d, %s", grids[i].text, n, e.error);
        for (int k = 0; k < n; k++)
            ck_assert_int_eq(out[k], grids[i].value[k]);
        if (n < 0)
            ck_assert_msg(strstr(e.error, grids[i].why), "'%s': %s", grids[i].text,
                          e.error);
    }
}
END_TEST

START_TEST(depth_is_limited)
{
    static char text[200001];
    Expr e = {.lookup = lookup};
    int64_t out;
    memset(text, '(', sizeof text - 1);
    ck_assert_int_eq(expr_list(&e, text, sizeof text - 1, &out, 1), -1);
    ck_assert(strstr(e.error, "deeply"));
    memset(text, '-', sizeof text - 1);
    ck_assert_int_eq(expr_list(&e, text, sizeof text - 1, &out, 1), -1);
}
END_TEST

static bool
read_spec(const char *text, RunArg *a, char *why, size_t n)
{
    Expr e = {.lookup = lookup};
    bool environment;
    *a = (RunArg){0};
    return spec_read(text, &e, a, why, n, &environment);
}

static const struct {
    const char *text;
    SdcArgKind kind;
    SdcDtype dtype;
    double value;
} scalars[] = {
    {"3", SDC_ARG_INT, SDC_I32, 3},
    {"-1", SDC_ARG_INT, SDC_I32, -1},
    {"0x10", SDC_ARG_INT, SDC_I32, 16},
    {"2147483648", SDC_ARG_INT, SDC_I64, 2147483648.0},
    {"i64:3", SDC_ARG_INT, SDC_I64, 3},
    {"int8:-3", SDC_ARG_INT, SDC_I8, -3},
    {"0.5", SDC_ARG_FLOAT, SDC_FP32, 0.5},
    {"1e-5", SDC_ARG_FLOAT, SDC_FP32, 1e-5},
    {"-inf", SDC_ARG_FLOAT, SDC_FP32, -INFINITY},
    {"fp64:3", SDC_ARG_FLOAT, SDC_FP64, 3},
    {"true", SDC_ARG_INT, SDC_BOOL, 1},
    {"none", SDC_ARG_NONE, SDC_DTYPE_NONE, 0},
};

START_TEST(scalars_are_read)
{
    char why[200] = "";
    for (size_t i = 0; i < sizeof scalars / sizeof *scalars; i++) {
        RunArg a;
        ck_assert_msg(read_spec(scalars[i].text, &a, why, sizeof why), "%s", why);
        ck_assert(spec_is_scalar(scalars[i].text));
        ck_assert_int_eq(a.value.kind, scalars[i].kind);
        ck_assert_int_eq(a.value.dtype, scalars[i].dtype);
        double v = a.value.kind == SDC_ARG_FLOAT ? a.value.v.f : (double)a.value.v.i;
        ck_assert(a.value.kind == SDC_ARG_NONE || v == scalars[i].value);
    }
}
END_TEST

START_TEST(arrays_are_made)
{
    char why[200] = "";
    RunArg a, b, c;
    ck_assert_msg(read_spec("arange:i32[2,n//10]", &a, why, sizeof why), "%s", why);
    ck_assert_int_eq(a.array.rank, 2);
    ck_assert_int_eq(a.array.shape[1], 100);
    ck_assert_int_eq(((int32_t *)a.array.data)[199], 199);
    array_done(&a.array);

    ck_assert(read_spec("randn:f32[4096]", &a, why, sizeof why));
    ck_assert(read_spec("randn:float32[4096]:0", &b, why, sizeof why));
    ck_assert(read_spec("randn:fp32[4096]:1", &c, why, sizeof why));
    ck_assert_mem_eq(a.array.data, b.array.data, a.array.bytes);
    ck_assert(memcmp(a.array.data, c.array.data, a.array.bytes) != 0);
    double sum = 0, square = 0;
    for (int i = 0; i < 4096; i++) {
        double v = ((float *)a.array.data)[i];
        sum += v;
        square += v * v;
    }
    ck_assert(fabs(sum / 4096) < 0.08 && fabs(square / 4096 - 1) < 0.1);
    array_done(&a.array);
    array_done(&b.array);
    array_done(&c.array);

    ck_assert(read_spec("ones:bf16[3]", &a, why, sizeof why));
    ck_assert_int_eq(((uint16_t *)a.array.data)[2], 0x3f80);
    array_done(&a.array);
    ck_assert(read_spec("empty:f32[3]", &a, why, sizeof why));
    ck_assert(isnan(((float *)a.array.data)[0]));
    array_done(&a.array);
    ck_assert(read_spec("zeros:fp64", &a, why, sizeof why)); /* no shape: one element */
    ck_assert_int_eq(a.array.count, 1);
    array_done(&a.array);
}
END_TEST

static const char *const refused[][2] = {
    {"", "neither"},
    {"what", "neither"},
    {"randn", "neither"},
    {"randn:", "element type"},
    {"randn:f31[3]", "element type"},
    {"randn:f32[3", "']'"},
    {"randn:f32[3]x", "left over"},
    {"randn:f32[3]:x", "seed"},
    {"randn:f32[-3]", "negative"},
    {"randn:f32[x]", "no integer"},
    {"zeros:f32[big,2]", "memory"},
    {"zeros:f32[big//64]", "memory"},
    {"@/no/such/file.npy", "cannot read"},
    {"@/", "cannot read"},
    {"i32:0.5", "neither"},
};

START_TEST(bad_specs_are_refused)
{
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++) {
        char why[300] = "";
        RunArg a;
        ck_assert_msg(!read_spec(refused[i][0], &a, why, sizeof why), "%s",
                      refused[i][0]);
        ck_assert_msg(strstr(why, refused[i][1]), "'%s': %s", refused[i][0], why);
    }
}
END_TEST

static const RunArg *
only_x(void *user, const char *name, size_t n)
{
    return n == 1 && *name == 'x' ? user : NULL;
}

START_TEST(specs_are_over_arrays)
{
    static const struct {
        const char *spec, *why;
    } cases[] = {{"desc:x[16,n//100]", NULL}, {"desc:x", "missing"},
                 {"desc:x[]", "missing"},     {"desc:x[16", "missing"},
                 {"desc:x[16]", "rank 1"},    {"desc:x[16,0]", "2^20"},
                 {"desc:x[16,y]", "'y'"},     {"desc:x[1,2,3,4,5,6]", "too many"}};
    char why[300] = "";
    RunArg x, d = {0};
    Expr e = {.lookup = lookup};
    ck_assert(read_spec("zeros:fp16[128,256]", &x, why, sizeof why));
    ck_assert(!spec_is_over("zeros:fp16[1]"));
    ck_assert(spec_names("desc:x[16]", "x", 1));
    ck_assert(spec_names("(3, desc:ab[16])", "ab", 2));
    ck_assert(!spec_names("(xy, 3)", "x", 1) && !spec_names("(desc:y[2])", "desc", 4));
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        bool ok = spec_read_over(cases[i].spec, &e, only_x, &x, &d, why, sizeof why);
        ck_assert_msg(ok == !cases[i].why, "%s: %s", cases[i].spec, why);
        ck_assert_msg(ok || strstr(why, cases[i].why), "%s: %s", cases[i].spec, why);
    }
    static char place[16];
    static const char tuple[] = "( (x, desc:x[8,8]),0.5 , () )";
    ck_assert(spec_read_over(tuple, &e, only_x, &x, &d, why, sizeof why));
    const SdcArg *item = d.value.v.ptr, *inner = item[0].v.ptr;
    ck_assert(d.value.kind == SDC_ARG_TUPLE && d.value.dtype == 3);
    ck_assert(item[0].dtype == 2 && item[2].kind == SDC_ARG_TUPLE && !item[2].dtype);
    ck_assert(inner[0].v.ptr == x.array.data && inner[1].v.ptr == &d.desc[0]);
    ck_assert(spec_uses(&d, x.array.data) && !spec_uses(&d, place));
    spec_move(&d, x.array.data, place);
    ck_assert(inner[0].v.ptr == place && d.desc[0].base == place);
    ck_assert(spec_read_over("desc:x[16,32]", &e, only_x, &x, &d, why, sizeof why));
    ck_assert_int_eq(d.value.kind, SDC_ARG_DESC);
    ck_assert_ptr_eq(d.desc[0].base, x.array.data);
    ck_assert_int_eq(d.desc[0].strides[0], 256);
    ck_assert_int_eq(d.desc[0].block[1], 32);
    array_done(&x.array);
}
END_TEST

/* Every value of the small floats goes to double and back; ties go to even. */
START_TEST(small_floats_convert)
{
    static const SdcDtype types[] = {SDC_FP16, SDC_BF16, SDC_FP8E5, SDC_FP8E4NV};
    for (int t = 0; t < 4; t++) {
        unsigned count = sdc_dtype_size(types[t]) == 2 ? 65536 : 256;
        for (unsigned i = 0; i < count; i++) {
            uint16_t bits = (uint16_t)i, again = 0;
            double v = sdc_dtype_load(types[t], &bits);
            sdc_dtype_store(types[t], v, &again);
            if (isnan(v))
                ck_assert(isnan(sdc_dtype_load(types[t], &again)));
            else
                ck_assert_uint_eq(again, bits);
        }
    }
    static const struct {
        SdcDtype t;
        double x;
        uint16_t bits;
    } rounds[] = {
        {SDC_FP16, 2049, 0x6800},  {SDC_FP16, 2051, 0x6802},  {SDC_FP16, 65519, 0x7bff},
        {SDC_FP16, 65520, 0x7c00}, {SDC_FP16, 1e300, 0x7c00}, {SDC_FP16, 0x1p-25, 0},
        {SDC_FP16, 0x1.8p-25, 1},  {SDC_BF16, 257, 0x4380},   {SDC_BF16, 259, 0x4382},
        {SDC_FP8E4NV, 448, 0x7e},  {SDC_FP8E4NV, 1e9, 0x7f},  {SDC_FP8E5, 57344, 0x7b},
        {SDC_FP8E5, 61440, 0x7c},  {SDC_FP16, -0.0, 0x8000},
    };
    for (size_t i = 0; i < sizeof rounds / sizeof *rounds; i++) {
        uint16_t got = 0;
        sdc_dtype_store(rounds[i].t, rounds[i].x, &got);
        ck_assert_msg(got == rounds[i].bits, "%s %g: %x, not %x",
                      sdc_dtype_name(rounds[i].t), rounds[i].x, got, rounds[i].bits);
    }
}
END_TEST

int
main(void)
{
    Suite *suite = suite_create("spec");
    TCase *c = tcase_create("spec");
    tcase_add_test(c, grids_are_evaluated);
    tcase_add_test(c, depth_is_limited);
    tcase_add_test(c, scalars_are_read);
    tcase_add_test(c, arrays_are_made);
    tcase_add_test(c, bad_specs_are_refused);
    tcase_add_test(c, specs_are_over_arrays);
    tcase_add_test(c, small_floats_convert);
    suite_add_tcase(suite, c);
    SRunner *r = srunner_create(suite);
    srunner_run_all(r, CK_NORMAL);
    int failed = srunner_ntests_failed(r);
    srunner_free(r);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
