/* Reproduces every value of tests/golden/triton-golden.json: random bits, conversions
   from fp32 and division of integers, which Triton 3.6 computed on a GPU, and the types
   of operations' results in Triton 3.9 (tests/oracle/promotion.py). */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "tests/run/support/harness.h"
#include "tests/run/support/json.h"

#define HEAD "import triton\nimport triton.language as tl\n\n\n@triton.jit\n"

static Json *
golden_read(void)
{
    char path[4096];
    snprintf(path, sizeof(path), "%s/tests/golden/triton-golden.json", test_root());
    Json *j = json_read(path);
    ck_assert_ptr_nonnull(j);
    return j;
}

static const Json *
member(const Json *j, const char *key)
{
    const Json *m = json_get(j, key);
    ck_assert_msg(m != NULL, "the golden file has no \"%s\"", key);
    return m;
}

/* ---------------------------------------------------------------- random bits */

enum { OFFSETS = 16 };

static const char rng_text[] = HEAD
    "def rng(off_ptr, seed, bits_ptr, four_ptr, rand_ptr, randn_ptr):\n"
    "    i = tl.arange(0, 16)\n"
    "    off = tl.load(off_ptr + i)\n"
    "    tl.store(bits_ptr + i, tl.randint(seed, off))\n"
    "    a, b, c, d = tl.randint4x(seed, off)\n"
    "    tl.store(four_ptr + i, a)\n"
    "    tl.store(four_ptr + 16 + i, b)\n"
    "    tl.store(four_ptr + 32 + i, c)\n"
    "    tl.store(four_ptr + 48 + i, d)\n"
    "    tl.store(rand_ptr + i, tl.rand(seed, off))\n"
    "    tl.store(randn_ptr + i, tl.randn(seed, off))\n";

static void
rng_check(const Json *entry, const char *what, const uint32_t *bits, const uint32_t *four,
          const float *uniform, const float *normal)
{
    for (int i = 0; i < OFFSETS; i++) {
        uint64_t want = json_uint(json_at(member(entry, "randint"), i));
        ck_assert_msg(bits[i] == want, "%s: randint %d is %u, not %llu", what, i, bits[i],
                      (unsigned long long)want);
        for (int w = 0; w < 4; w++) {
            want = json_uint(json_at(json_at(member(entry, "randint4x"), w), i));
            ck_assert_msg(four[w * OFFSETS + i] == want, "%s: randint4x %d of %d is %u",
                          what, w, i, four[w * OFFSETS + i]);
        }
        double u = json_double(json_at(member(entry, "rand"), i));
        ck_assert_msg((double)uniform[i] == u, "%s: rand %d is %.9g, not %.9g", what, i,
                      (double)uniform[i], u);
        double z = json_double(json_at(member(entry, "randn"), i));
        ck_assert_msg(fabs((double)normal[i] - z) <= 0x1p-20 * fmax(1, fabs(z)),
                      "%s: randn %d is %.9g, not %.9g", what, i, (double)normal[i], z);
    }
}

START_TEST(random_numbers)
{
    Json *golden = golden_read();
    Env env = env_open_text("rng.tk", rng_text);
    int entries = 0;
    for (const Json *e = member(golden, "rng")->first; e; e = e->next, entries++) {
        int64_t seed = json_int(member(e, "seed")), wide[OFFSETS];
        bool is_wide = !strcmp(member(e, "offset_type")->text, "i64");
        int32_t narrow[OFFSETS];
        uint32_t bits[OFFSETS], four[4 * OFFSETS];
        float uniform[OFFSETS], normal[OFFSETS];
        ck_assert_int_eq(member(e, "offsets")->count, OFFSETS);
        for (int i = 0; i < OFFSETS; i++) {
            wide[i] = json_int(json_at(member(e, "offsets"), i));
            narrow[i] = (int32_t)wide[i];
        }
        LEND(&env, wide), LEND(&env, narrow), LEND(&env, bits), LEND(&env, four);
        LEND(&env, uniform), LEND(&env, normal);
        if (!LAUNCH(&env, "rng", sdc_grid(1, 1, 1), "",
                    is_wide ? sdc_ptr(SDC_I64, wide) : sdc_ptr(SDC_I32, narrow),
                    sdc_int(seed), sdc_ptr(SDC_U32, bits), sdc_ptr(SDC_U32, four),
                    sdc_ptr(SDC_FP32, uniform), sdc_ptr(SDC_FP32, normal)))
            continue;
        rng_check(e, env_text(&env, "seed %lld, offsets %s", (long long)seed,
                              is_wide ? "i64" : "i32"),
                  bits, four, uniform, normal);
    }
    ck_assert_int_eq(entries, 16);
    env_close(&env);
    json_free(golden);
}
END_TEST

/* ---------------------------------------------------------------- result types */

typedef struct Operation {
    const char *key;  /* in the golden file */
    const char *expr;
    bool binary;
} Operation;

static const Operation operations[] = {
    {"+", "a + b", true},
    {"/", "a / b", true},
    {"//", "a // b", true},
    {"%", "a % b", true},
    {"&", "a & b", true},
    {"<<", "a << b", true},
    {"where", "tl.where(i < 8, a, b)", true},
    {"maximum", "tl.maximum(a, b)", true},
    {"a<b", "a < b", true},
    {"+2", "a + 2", false},
    {"+2.5", "a + 2.5", false},
    {"where0", "tl.where(i < 8, a, 0.0)", false},
    {"sum", "tl.sum(a, axis=0)", false},
    {"max", "tl.max(a, axis=0)", false},
    {"cumsum", "tl.cumsum(a, axis=0)", false},
    {"-a", "-a", false},
    {"~a", "~a", false},
    {"/2", "a / 2", false},
    {"%2.5", "a % 2.5", false},
    {"a<-1", "a < -1", false},
    {"a==300", "a == 300", false},
    {"maximum1", "tl.maximum(1, a)", false},
    {"minimum.5", "tl.minimum(a, 0.5)", false},
    {"clamp", "tl.clamp(a, b, a)", true},
    {"clamp01", "tl.clamp(a, 0, 1)", false},
    {"clamp.5", "tl.clamp(a, 0.5, 1)", false},
    {"fma", "tl.fma(a, 2, 0.5)", false},
    {"fdiv2", "tl.fdiv(a, 2)", false},
    {"div_rn3", "tl.div_rn(a, 3)", false},
    {"umulhi7", "tl.umulhi(a, 7)", false},
    {"max2", "tl.max(a, axis=0, return_indices=True)[0]", false},
    {"cumprod", "tl.cumprod(a, axis=0)", false},
    {"softmax", "tl.softmax(a)", false},
    {"flip", "tl.flip(a)", false},
};
enum { NOPERATIONS = sizeof(operations) / sizeof(operations[0]) };

/* A type of the golden file as it stands in a signature and after "tl.". */
static const struct {
    const char *key, *signature, *result, *name;
} type_names[] = {
    {"i1", "i1", "int1", "int1"},
    {"i8", "i8", "int8", "int8"},
    {"u8", "u8", "uint8", "uint8"},
    {"i16", "i16", "int16", "int16"},
    {"u16", "u16", "uint16", "uint16"},
    {"i32", "i32", "int32", "int32"},
    {"u32", "u32", "uint32", "uint32"},
    {"i64", "i64", "int64", "int64"},
    {"u64", "u64", "uint64", "uint64"},
    {"f16", "fp16", "fp16", "float16"},
    {"bf16", "bf16", "bf16", "bfloat16"},
    {"f32", "fp32", "fp32", "float32"},
    {"f64", "fp64", "fp64", "float64"},
    {"fp8e5", "fp8e5", "fp8e5", "float8e5"},
    {"fp8e4nv", "fp8e4nv", "fp8e4nv", "float8e4nv"},
};
enum { NTYPES = sizeof(type_names) / sizeof(type_names[0]) };

static int
type_by_key(const char *key)
{
    for (int t = 0; t < NTYPES; t++)
        if (!strcmp(type_names[t].key, key))
            return t;
    ck_abort_msg("unknown type %s", key);
    return 0;
}

/* Types the kernel `op`, which holds the operation and asserts its type when `want` is
   given; `probe` holds the operation alone. */
static SdcStatus
operation_type(Env *env, int a, int b, const char *want)
{
    SdcOutput *out = NULL;
    SdcCompileOptions o = {.kernel = want ? "op" : "probe", .emit = SDC_EMIT_TIR};
    o.signature = env_text(env, "a_ptr=*%s,b_ptr=*%s%s%s", type_names[a].signature,
                           type_names[b].signature, want ? ",WANT=tl." : "",
                           want ? want : "");
    SdcStatus s = sdc_compile(env->mod, &o, &out);
    sdc_output_destroy(out);
    return s;
}

static void
operation_check(Env *env, const Operation *op, int a, int b, const char *result)
{
    const char *at = env_text(env, "%s with %s and %s", op->expr, type_names[a].key,
                              type_names[b].key);
    if (!strncmp(result, "error", 5)) {
        SdcStatus s = operation_type(env, a, b, NULL);
        ck_assert_msg(s == SDC_ERROR_SOURCE, "%s: Triton refuses it, here: %s %s", at,
                      sdc_status_name(s), sdc_error(env->ctx));
        return;
    }
    int t = 0;
    while (t < NTYPES && strcmp(type_names[t].result, result) != 0)
        t++;
    ck_assert_msg(t < NTYPES, "%s: unknown result type %s", at, result);
    SdcStatus s = operation_type(env, a, b, type_names[t].name);
    ck_assert_msg(s == SDC_OK, "%s should be %s: %s", at, result, sdc_error(env->ctx));
    /* The assertion can fail. */
    s = operation_type(env, a, b, type_names[(t + 1) % NTYPES].name);
    ck_assert_msg(s == SDC_ERROR_SOURCE, "%s is also %s", at,
                  type_names[(t + 1) % NTYPES].name);
}

START_TEST(result_types)
{
    const Operation *op = &operations[_i];
    Json *golden = golden_read();
    const Json *table = member(member(golden, "promotion"), op->key);
    char text[1024];
    snprintf(text, sizeof(text),
             HEAD "def op(a_ptr, b_ptr, WANT: tl.constexpr):\n"
                  "    i = tl.arange(0, 16)\n"
                  "    a = tl.load(a_ptr + i)\n"
                  "    b = tl.load(b_ptr + i)\n"
                  "    r = %s\n"
                  "    tl.static_assert(r.dtype == WANT)\n"
                  "\n\n@triton.jit\n"
                  "def probe(a_ptr, b_ptr):\n"
                  "    i = tl.arange(0, 16)\n"
                  "    a = tl.load(a_ptr + i)\n"
                  "    b = tl.load(b_ptr + i)\n"
                  "    r = %s\n",
             op->expr, op->expr);
    Env env = env_open_text("op.tk", text);
    ck_assert_int_eq(member(golden, "promotion")->count, NOPERATIONS);
    ck_assert_int_eq(table->count, NTYPES);
    for (const Json *row = table->first; row; row = row->next) {
        int a = type_by_key(row->key);
        if (!op->binary) {
            operation_check(&env, op, a, a, row->text);
            continue;
        }
        ck_assert_int_eq(row->count, NTYPES);
        for (const Json *cell = row->first; cell; cell = cell->next)
            operation_check(&env, op, a, type_by_key(cell->key), cell->text);
    }
    env_close(&env);
    json_free(golden);
}
END_TEST

/* ---------------------------------------------------------------- conversions */

enum { INPUTS = 64 };

static const struct {
    const char *key;
    SdcDtype type;
    uint64_t nan; /* bits above this, without the sign, are NaN; 0: an integer type */
} conversions[] = {
    {"f16", SDC_FP16, 0x7c00},
    {"bf16", SDC_BF16, 0x7f80},
    {"fp8e5", SDC_FP8E5, 0x7c},
    {"fp8e4nv", SDC_FP8E4NV, 0x7e},
    {"i8", SDC_I8, 0},
    {"u8", SDC_U8, 0},
    {"i32", SDC_I32, 0},
    {"i64", SDC_I64, 0},
};
enum { NCONVERSIONS = sizeof(conversions) / sizeof(conversions[0]) };

/* Little-endian hexadecimal bytes. */
static float
input_of(const char *hex)
{
    static const char digits[] = "0123456789abcdef";
    unsigned char bytes[4];
    float f;
    ck_assert_uint_eq(strlen(hex), 8);
    for (int i = 0; i < 4; i++)
        bytes[i] = (unsigned char)((strchr(digits, hex[2 * i]) - digits) * 16 +
                                   (strchr(digits, hex[2 * i + 1]) - digits));
    memcpy(&f, bytes, sizeof(f));
    return f;
}

START_TEST(conversion)
{
    Json *golden = golden_read();
    const Json *table = member(golden, "cast_from_f32");
    const Json *wants = member(table, conversions[_i].key);
    Env env = env_open_text("cast.tk", HEAD
                            "def cast(x_ptr, out_ptr):\n"
                            "    i = tl.arange(0, 64)\n"
                            "    x = tl.load(x_ptr + i)\n"
                            "    y = x.to(out_ptr.dtype.element_ty)\n"
                            "    tl.store(out_ptr + i, y)\n");
    float x[INPUTS];
    unsigned char out[INPUTS * 8];
    ck_assert_int_eq(table->count, NCONVERSIONS + 1);
    ck_assert_int_eq(member(table, "inputs")->count, INPUTS);
    ck_assert_int_eq(wants->count, INPUTS);
    for (int i = 0; i < INPUTS; i++)
        x[i] = input_of(json_at(member(table, "inputs"), i)->text);
    LEND(&env, x), LEND(&env, out);
    bool done = LAUNCH(&env, "cast", sdc_grid(1, 1, 1), "", sdc_ptr(SDC_FP32, x),
                       sdc_ptr(conversions[_i].type, out));
    int size = sdc_dtype_size(conversions[_i].type);
    uint64_t bits = size == 8 ? UINT64_MAX : (1ull << (8 * size)) - 1;
    uint64_t magnitude = bits >> 1, nan = conversions[_i].nan;
    for (int i = 0; i < INPUTS && done; i++) {
        uint64_t want = (uint64_t)json_int(json_at(wants, i)) & bits, got = 0;
        memcpy(&got, out + i * size, (size_t)size);
        /* Which NaN it is differs between machines; that it is one does not. */
        if (nan && (want & magnitude) > nan && (got & magnitude) > nan)
            continue;
        ck_assert_msg(got == want, "%s of %a is 0x%llx, not 0x%llx", conversions[_i].key,
                      (double)x[i], (unsigned long long)got, (unsigned long long)want);
    }
    env_close(&env);
    json_free(golden);
}
END_TEST

/* ---------------------------------------------------------------- integer division */

START_TEST(integer_division)
{
    enum { N = 8 };
    Json *golden = golden_read();
    const Json *table = member(golden, "int_div");
    Env env = env_open_text("div.tk", HEAD
                            "def div(a_ptr, b_ptr, q_ptr, r_ptr):\n"
                            "    i = tl.arange(0, 8)\n"
                            "    a = tl.load(a_ptr + i)\n"
                            "    b = tl.load(b_ptr + i)\n"
                            "    tl.store(q_ptr + i, a // b)\n"
                            "    tl.store(r_ptr + i, a % b)\n");
    int32_t a[N], b[N], q[N], r[N];
    ck_assert_int_eq(member(table, "a")->count, N);
    for (int i = 0; i < N; i++) {
        a[i] = (int32_t)json_int(json_at(member(table, "a"), i));
        b[i] = (int32_t)json_int(json_at(member(table, "b"), i));
    }
    LEND(&env, a), LEND(&env, b), LEND(&env, q), LEND(&env, r);
    bool done = LAUNCH(&env, "div", sdc_grid(1, 1, 1), "", sdc_ptr(SDC_I32, a),
                       sdc_ptr(SDC_I32, b), sdc_ptr(SDC_I32, q), sdc_ptr(SDC_I32, r));
    for (int i = 0; i < N && done; i++) {
        ck_assert_int_eq(q[i], json_int(json_at(member(table, "q"), i)));
        ck_assert_int_eq(r[i], json_int(json_at(member(table, "r"), i)));
    }
    env_close(&env);
    json_free(golden);
}
END_TEST

int
main(void)
{
    Suite *suite = suite_create("golden_json");
    TCase *tc = tcase_create("golden");
    tcase_set_timeout(tc, 300);
    tcase_add_test(tc, random_numbers);
    tcase_add_loop_test(tc, result_types, 0, NOPERATIONS);
    tcase_add_loop_test(tc, conversion, 0, NCONVERSIONS);
    tcase_add_test(tc, integer_division);
    suite_add_tcase(suite, tc);
    return suite_finish("golden_json", suite);
}
