/* The oracle itself: the interpreter of tile IR against values that Triton computed on a
   GPU (tests/golden), and what it says of accesses outside, endless loops, assertions. */
#include "tests/interp/interp.h"
#include "tests/interp/source.h"
#include "tests/run/support/json.h"

#include <check.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { N = 128 };

#define HEAD "import triton\nimport triton.language as tl\n@triton.jit\n"

static Json *
read_golden(const char *name)
{
    char path[4096];
    snprintf(path, sizeof path, "%s/tests/golden/%s.json", SDC_ROOT, name);
    return json_read(path);
}

static Json *
golden(const char *name)
{
    Json *j = read_golden(name);
    ck_assert_msg(j != NULL, "cannot read %s.json", name);
    return j;
}

static Func *
kernel_of(Session *s, const char *path, const char *text, const char *name,
          const char *signature, const char *binds)
{
    Func *f = source_kernel(s, path, text, name, signature, binds);
    ck_assert_msg(f != NULL, "%s: %s", name ? name : path, source_errors(s));
    return f;
}

static void
run_one(const Func *f, const InterpArg *args, int n)
{
    char why[512];
    const int64_t grid[3] = {1, 1, 1};
    InterpStatus got = interp_run(f, args, n, grid, NULL, why, sizeof why);
    ck_assert_msg(got == INTERP_OK, "%s: %s", f->name, why);
}

/* ---- the language */

/* Numbers in hexadecimal, of `size` bytes each. */
static void
hex_read(const Json *list, int size, void *out)
{
    ck_assert_int_eq(list->count, N);
    unsigned char *to = out;
    for (const Json *m = list->first; m; m = m->next, to += size) {
        uint64_t bits = strtoull(m->text, NULL, 16);
        memcpy(to, &bits, (size_t)size);
    }
}

static int
element_size(const char *type)
{
    return strstr(type, "64") ? 8 : strstr(type, "32") ? 4 : strstr(type, "16") ? 2 : 1;
}

static bool
close_enough(const unsigned char *got, const unsigned char *want, int tolerance)
{
    float g, w;
    memcpy(&g, got, sizeof g);
    memcpy(&w, want, sizeof w);
    double allowed = tolerance ? ldexp(fmax(1, fabs((double)w)), tolerance) : 0;
    return g == w || fabs((double)g - (double)w) <= allowed || (isnan(g) && isnan(w));
}

START_TEST(kernels_agree_with_triton)
{
    Json *g = golden("language");
    const Json *k = json_at(json_get(g, "kernels"), _i);
    const char *name = json_get(k, "name")->text, *out = json_get(k, "out")->text;
    static unsigned char x[N * 4], y[N * 4], ints[N * 4], got[N * 8], want[N * 8];
    char path[4096], signature[128];
    int size = element_size(out);
    hex_read(json_get(g, "x"), 4, x);
    hex_read(json_get(g, "y"), 4, y);
    hex_read(json_get(g, "i"), 4, ints);
    hex_read(json_get(k, "values"), size, want);
    memset(got, 0, sizeof got);
    snprintf(path, sizeof path, "%s/tests/run/lang/%s.tk", SDC_ROOT,
             json_get(k, "file")->text);
    snprintf(signature, sizeof signature, "*fp32:16,*fp32:16,*i32:16,*%s:16", out);
    Session *s = session_new(0);
    Func *f = kernel_of(s, path, NULL, name, signature, json_get(k, "binds")->text);
    InterpArg args[] = {{.data = x, .bytes = sizeof x},
                        {.data = y, .bytes = sizeof y},
                        {.data = ints, .bytes = sizeof ints},
                        {.data = got, .bytes = (uint64_t)(N * size)}};
    run_one(f, args, 4);
    int tolerance = (int)json_int(json_get(k, "tolerance"));
    for (int i = 0; i < N; i++) {
        const unsigned char *a = got + i * size, *b = want + i * size;
        bool same = !memcmp(a, b, (size_t)size) ||
                    (!strcmp(out, "fp32") && close_enough(a, b, tolerance));
        uint64_t ua = 0, ub = 0;
        memcpy(&ua, a, (size_t)size);
        memcpy(&ub, b, (size_t)size);
        ck_assert_msg(same, "%s: element %d is 0x%llx, not 0x%llx", name, i,
                      (unsigned long long)ua, (unsigned long long)ub);
    }
    session_free(s);
    json_free(g);
}
END_TEST

/* ---- conversions, quotients, random numbers */

static const char cast_text[] = HEAD
    "def f(x, y, B: tl.constexpr):\n"
    "    i = tl.arange(0, B)\n"
    "    tl.store(y + i, tl.load(x + i).to(y.dtype.element_ty))\n";

START_TEST(casts_agree_with_triton)
{
    static const struct {
        const char *key, *type;
    } rows[] = {
        {"f16", "fp16"}, {"bf16", "bf16"}, {"fp8e5", "fp8e5"}, {"fp8e4nv", "fp8e4nv"},
        {"i8", "i8"},    {"u8", "u8"},     {"i32", "i32"},     {"i64", "i64"},
    };
    Json *g = golden("triton-golden");
    const Json *c = json_get(g, "cast_from_f32"), *in = json_get(c, "inputs");
    const Json *out = json_get(c, rows[_i].key);
    int n = in->count, size = element_size(rows[_i].type), at = 0;
    static unsigned char x[4 * 128], y[8 * 128];
    char signature[64];
    ck_assert_int_le(n, 128);
    ck_assert_int_eq(out->count, n);
    for (const Json *v = in->first; v; v = v->next, at++) {
        uint32_t bits = __builtin_bswap32((uint32_t)strtoul(v->text, NULL, 16));
        memcpy(x + 4 * at, &bits, 4);
    }
    Session *s = session_new(0);
    snprintf(signature, sizeof signature, "*fp32,*%s,128", rows[_i].type);
    Func *f = kernel_of(s, "cast.tk", cast_text, "f", signature, NULL);
    InterpArg args[] = {{.data = x, .bytes = sizeof x},
                        {.data = y, .bytes = (uint64_t)(128 * size)}};
    run_one(f, args, 2);
    at = 0;
    for (const Json *v = out->first; v; v = v->next, at++) {
        uint64_t got = 0, want = (uint64_t)json_int(v);
        if (v->text[0] != '-')
            want = strtoull(v->text, NULL, 10);
        memcpy(&got, y + at * size, (size_t)size);
        want &= size == 8 ? ~(uint64_t)0 : ((uint64_t)1 << 8 * size) - 1;
        ck_assert_msg(got == want, "%s of %s: 0x%llx, not 0x%llx", rows[_i].type,
                      json_at(in, at)->text, (unsigned long long)got,
                      (unsigned long long)want);
    }
    session_free(s);
    json_free(g);
}
END_TEST

static const char div_text[] = HEAD
    "def f(a, b, q, r):\n"
    "    i = tl.arange(0, 8)\n"
    "    x = tl.load(a + i)\n"
    "    y = tl.load(b + i)\n"
    "    tl.store(q + i, x // y)\n"
    "    tl.store(r + i, x % y)\n";

START_TEST(quotients_agree_with_triton)
{
    static const char *const keys[] = {"a", "b", "q", "r"};
    Json *g = golden("triton-golden");
    const Json *d = json_get(g, "int_div");
    int32_t v[4][8], want[4][8];
    for (int k = 0; k < 4; k++)
        for (int i = 0; i < 8; i++)
            v[k][i] = want[k][i] = (int32_t)json_int(json_at(json_get(d, keys[k]), i));
    memset(v[2], 0, sizeof v[2]);
    memset(v[3], 0, sizeof v[3]);
    Session *s = session_new(0);
    Func *f = kernel_of(s, "div.tk", div_text, "f", "*i32,*i32,*i32,*i32", NULL);
    InterpArg args[4];
    for (int k = 0; k < 4; k++)
        args[k] = (InterpArg){.data = v[k], .bytes = sizeof v[k]};
    run_one(f, args, 4);
    ck_assert_mem_eq(v, want, sizeof v);
    session_free(s);
    json_free(g);
}
END_TEST

static const char random_text[] = HEAD
    "def f(o, n, u, seed):\n"
    "    i = tl.arange(0, 16)\n"
    "    at = tl.load(o + i)\n"
    "    tl.store(n + i, tl.randint(seed, at))\n"
    "    tl.store(u + i, tl.rand(seed, at))\n";

START_TEST(random_numbers)
{
    Json *g = golden("triton-golden");
    for (const Json *row = json_get(g, "rng")->first; row; row = row->next) {
        const Json *offsets = json_get(row, "offsets");
        bool wide = !strcmp(json_get(row, "offset_type")->text, "i64");
        int64_t at[16];
        int32_t narrow[16], n[16];
        float u[16];
        ck_assert_int_eq(offsets->count, 16);
        for (int i = 0; i < 16; i++)
            narrow[i] = (int32_t)(at[i] = json_int(json_at(offsets, i)));
        Session *s = session_new(0);
        Func *f = kernel_of(s, "rand.tk", random_text, "f",
                            wide ? "*i64,*i32,*fp32,i64" : "*i32,*i32,*fp32,i64", NULL);
        InterpArg args[] = {{.data = wide ? (void *)at : narrow,
                             .bytes = wide ? sizeof at : sizeof narrow},
                            {.data = n, .bytes = sizeof n},
                            {.data = u, .bytes = sizeof u},
                            {.i = (int64_t)json_uint(json_get(row, "seed"))}};
        run_one(f, args, 4);
        const Json *want = json_get(row, "randint");
        for (int i = 0; i < 16; i++) {
            ck_assert_uint_eq((uint32_t)n[i], json_uint(json_at(want, i)));
            ck_assert(u[i] >= 0 && u[i] < 1);
        }
        session_free(s);
    }
    json_free(g);
}
END_TEST

/* ---- what goes wrong */

typedef struct Wrong {
    const char *body;
    InterpStatus status;
    const char *says[3];
} Wrong;

static const Wrong wrongs[] = {
    {"    tl.store(x + i, i)\n", INTERP_OK, {0}},
    {"    tl.store(x + i, i, mask=i < 12)\n", INTERP_OK, {0}},
    {"    tl.store(x + i + 1, i)\n", INTERP_BOUNDS,
     {"wrong.tk:6:", "lane [15]", "offset 64 of 'x', which has 64"}},
    {"    tl.store(x + i - 1, i, mask=i != 3)\n", INTERP_BOUNDS,
     {"program (0,0,0)", "lane [0]", "offset -4 of 'x'"}},
    {"    tl.store(x + i, tl.load(y + i * 2, mask=i < 9))\n", INTERP_BOUNDS,
     {"load", "lane [8]", "offset 64 of 'y'"}},
    {"    tl.atomic_add(x + i * 4, i, mask=i < 5)\n", INTERP_BOUNDS,
     {"atomic_rmw", "lane [4]", ""}},
    {"    n = 0\n    while n < 1:\n        n = n * 1\n    tl.store(x, n)\n", INTERP_LIMIT,
     {"more than", "", ""}},
    {"    tl.device_assert(i < 15, 'too many')\n", INTERP_ASSERT,
     {"lane [15]", "too many", ""}},
};

START_TEST(wrong_programs_are_reported)
{
    const Wrong *w = &wrongs[_i];
    int32_t x[16] = {0}, y[16] = {0};
    char text[1024], why[512];
    const int64_t grid[3] = {2, 1, 1};
    const InterpOptions options = {.max_steps = 100000};
    snprintf(text, sizeof text, "%sdef f(x, y):\n    i = tl.arange(0, 16)\n%s", HEAD,
             w->body);
    Session *s = session_new(0);
    Func *f = kernel_of(s, "wrong.tk", text, "f", "*i32,*i32", NULL);
    InterpArg args[] = {{.data = x, .bytes = sizeof x}, {.data = y, .bytes = sizeof y}};
    InterpStatus got = interp_run(f, args, 2, grid, &options, why, sizeof why);
    ck_assert_msg(got == w->status, "%s: %d: %s", w->body, got, why);
    for (int i = 0; i < 3 && w->says[i]; i++)
        ck_assert_msg(strstr(why, w->says[i]) != NULL, "'%s' is not in '%s'", w->says[i],
                      why);
    session_free(s);
}
END_TEST

int
main(void)
{
    Json *g = read_golden("language");
    int kernels = g ? json_get(g, "kernels")->count : 0, failed;
    json_free(g);
    if (kernels < 70) {
        fprintf(stderr, "tests/golden/language.json: %d kernels\n", kernels);
        return EXIT_FAILURE;
    }
    Suite *suite = suite_create("interp");
    TCase *t = tcase_create("interp");
    tcase_set_timeout(t, 60);
    tcase_add_loop_test(t, kernels_agree_with_triton, 0, kernels);
    tcase_add_loop_test(t, casts_agree_with_triton, 0, 8);
    tcase_add_test(t, quotients_agree_with_triton);
    tcase_add_test(t, random_numbers);
    tcase_add_loop_test(t, wrong_programs_are_reported, 0,
                        (int)(sizeof wrongs / sizeof *wrongs));
    suite_add_tcase(suite, t);
    SRunner *r = srunner_create(suite);
    srunner_run_all(r, CK_NORMAL);
    failed = srunner_ntests_failed(r);
    srunner_free(r);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
