/* The semantic half on small texts: reading of signatures, what a host is told of
   parameters, the promotion table against the values that Triton computed, limits. */
#include "frontend/frontend.h"
#include "frontend/promote.h"
#include "ir/text.h"
#include "ir/verify.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define HEAD   "import triton\nimport triton.language as tl\n"
#define KERNEL HEAD "@triton.jit\n"

static FrontModule *
load(Session *s, const char *text)
{
    Source *src = arena_new(&s->perm, Source);
    *src = (Source){.path = "test.tk", .text = text, .size = strlen(text)};
    FrontModule *m = front_load(s, src, NULL);
    ck_assert_ptr_nonnull(m);
    return m;
}

static Session *
session(void)
{
    Session *s = session_new(0);
    ck_assert_ptr_nonnull(s);
    return s;
}

/* The first diagnostic that contains the text. */
static const DiagItem *
said(const Session *s, const char *text)
{
    for (const DiagItem *d = s->diag.first; d; d = d->next)
        if (strstr(d->text, text))
            return d;
    return NULL;
}

static const char three[] = KERNEL
    "def f(x, n: 'i32', eps: float, B: tl.constexpr = 8, ACT: tl.constexpr = 'id'):\n"
    "    tl.store(x, n)\n";

START_TEST(signature_by_position)
{
    Session *s = session();
    FrontModule *m = load(s, three);
    FrontSpec spec;
    ck_assert(
        front_spec_parse(m, "f", "*bf16:16, i64:16, fp32, 128, 'relu'", NULL, 0, &spec));
    ck_assert_int_eq(spec.narg, 5);
    ck_assert_int_eq(spec.args[0].kind, SPEC_TYPE);
    ck_assert_str_eq(spec.args[0].sig, "*bf16");
    ck_assert_int_eq(spec.args[0].div, 16);
    ck_assert_str_eq(spec.args[1].sig, "i64");
    ck_assert_int_eq(spec.args[1].div, 16);
    ck_assert_int_eq(spec.args[2].div, 1);
    ck_assert_int_eq(spec.args[3].kind, SPEC_INT);
    ck_assert_int_eq(spec.args[3].i, 128);
    ck_assert_str_eq(spec.args[4].str, "relu");
    session_free(s);
}
END_TEST

START_TEST(signature_by_name)
{
    static const char *const over[] = {"ACT=None", "n=1"};
    Session *s = session();
    FrontModule *m = load(s, three);
    FrontSpec spec;
    ck_assert(front_spec_parse(m, "f", "x=*fp32,B=0x20", over, 2, &spec));
    ck_assert_str_eq(spec.args[0].sig, "*fp32");
    ck_assert_int_eq(spec.args[1].kind, SPEC_INT);
    ck_assert_int_eq(spec.args[1].i, 1);
    ck_assert_str_eq(spec.args[2].sig, "fp32"); /* from the annotation */
    ck_assert_int_eq(spec.args[3].i, 32);
    ck_assert_int_eq(spec.args[4].kind, SPEC_NONE);
    session_free(s);
}
END_TEST

START_TEST(signature_constants)
{
    static const struct {
        const char *text;
        SpecKind kind;
    } rows[] = {
        {"B=3", SPEC_INT},
        {"B=-3", SPEC_INT},
        {"B=0.5", SPEC_FLOAT},
        {"B=1e-3", SPEC_FLOAT},
        {"B=True", SPEC_BOOL},
        {"B=false", SPEC_BOOL},
        {"B=None", SPEC_NONE},
        {"B='3'", SPEC_STR},
        {"B=relu", SPEC_NAME},
        {"B=tl.float16", SPEC_DTYPE},
        {"B=fp16", SPEC_DTYPE},
        {"n=i32:1", SPEC_INT},
        {"x=tensordesc<fp16[64,64]>", SPEC_TYPE},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        Session *s = session();
        FrontModule *m = load(s, three);
        FrontSpec spec;
        char sig[80];
        snprintf(sig, sizeof sig, "x=*fp32,%s", rows[i].text);
        ck_assert_msg(front_spec_parse(m, "f", sig, NULL, 0, &spec), "%s", sig);
        int at = rows[i].text[0] == 'B' ? 3 : rows[i].text[0] == 'n' ? 1 : 0;
        ck_assert_msg(spec.args[at].kind == rows[i].kind, "%s", sig);
        session_free(s);
    }
}
END_TEST

START_TEST(signature_errors)
{
    static const struct {
        const char *sig, *text;
    } rows[] = {
        {"*fp32,i32,fp32,1,a,7", "too many entries"},
        {"y=i32", "no parameter 'y'"},
        {"x=*fp33", "cannot read '*fp33'"},
        {"x=*fp32:8", "cannot read '*fp32:8'"},
        {"n=i32", "no type for parameter 'x'"},
        {"x=*fp32,B=[1", "cannot read '[1'"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        Session *s = session();
        FrontModule *m = load(s, three);
        FrontSpec spec;
        ck_assert_msg(!front_spec_parse(m, "f", rows[i].sig, NULL, 0, &spec), "%s",
                      rows[i].sig);
        ck_assert_msg(said(s, rows[i].text) != NULL, "%s: %s", rows[i].sig,
                      s->diag.first ? s->diag.first->text : "nothing");
        session_free(s);
    }
}
END_TEST

START_TEST(parameters_for_the_host)
{
    static const char text[] = HEAD
        "@triton.jit(do_not_specialize=['n', 3])\n"
        "def f(x: '*fp32', n, B: tl.constexpr, k: tl.int64 = 5):\n    tl.store(x, n)\n";
    Session *s = session();
    FrontModule *m = load(s, text);
    const FrontParam *p;
    int n;
    ck_assert(front_params(m, "f", &p, &n));
    ck_assert_int_eq(n, 4);
    ck_assert_str_eq(p[0].annotated, "*fp32");
    ck_assert(!p[0].no_specialize && p[1].no_specialize && p[3].no_specialize);
    ck_assert(p[2].is_constexpr && !p[2].has_default && p[3].has_default);
    ck_assert_ptr_null(p[1].annotated);
    ck_assert_str_eq(p[3].annotated, "i64");
    ck_assert(!front_params(m, "g", &p, &n));
    session_free(s);
}
END_TEST

/* ---- promotion */

static char *
read_file(const char *path)
{
    FILE *f = fopen(path, "rb");
    ck_assert_ptr_nonnull(f);
    ck_assert_int_eq(fseek(f, 0, SEEK_END), 0);
    long n = ftell(f);
    rewind(f);
    char *text = calloc((size_t)n + 1, 1);
    ck_assert_int_eq((long)fread(text, 1, (size_t)n, f), n);
    fclose(f);
    return text;
}

/* The value of the first "key" at or after p that begins with `first`. */
static const char *
value_of(const char *p, const char *key, char first)
{
    char quoted[40];
    snprintf(quoted, sizeof quoted, "\"%s\":", key);
    do {
        p = strstr(p, quoted);
        ck_assert_msg(p != NULL, "no %s", quoted);
        p += strlen(quoted);
        p += strspn(p, " \n");
    } while (*p != first);
    return p;
}

START_TEST(promotion_table)
{
    static const char *const keys[] = {"i1",   "i8",  "u8",  "i16",   "u16",
                                       "i32",  "u32", "i64", "u64",   "f16",
                                       "bf16", "f32", "f64", "fp8e5", "fp8e4nv"};
    enum { N = sizeof keys / sizeof *keys };
    char *golden = read_file(SDC_ROOT "/tests/golden/triton-golden.json");
    const char *table = value_of(golden, "promotion", '{');
    static const char *const ops[] = {"+", "/"};
    for (int op = 0; op < 2; op++)
        for (int i = 0; i < N; i++)
            for (int k = 0; k < N; k++) {
                const char *row = value_of(value_of(table, ops[op], '{'), keys[i], '{');
                const char *cell = value_of(row, keys[k], '"');
                DType a = dtype_by_sig(keys[i], strlen(keys[i]));
                DType b = dtype_by_sig(keys[k], strlen(keys[k])), got = DT_NONE;
                PromoteResult r = promote(a, false, b, false, op == 1, &got);
                bool fails = strncmp(cell, "\"error", 6) == 0;
                ck_assert_msg((r != PROMOTE_OK) == fails, "%s %s %s", keys[i], ops[op],
                              keys[k]);
                if (op == 1 && !fails && dtype_is_int(got))
                    got = DT_FP32; /* a quotient of integers is a float */
                if (!fails)
                    ck_assert_msg(strncmp(cell + 1, dtype_info[got].name,
                                          strlen(dtype_info[got].name)) == 0,
                                  "%s %s %s is not %s", keys[i], ops[op], keys[k],
                                  dtype_info[got].name);
            }
    free(golden);
}
END_TEST

START_TEST(promotion_of_literals)
{
    DType got;
    ck_assert_int_eq(promote(DT_FP16, false, DT_FP32, true, false, &got), PROMOTE_OK);
    ck_assert_int_eq(got, DT_FP16);
    promote(DT_FP16, false, DT_FP32, true, true, &got);
    ck_assert_int_eq(got, DT_FP32);
    promote(DT_INT32, true, DT_UINT8, false, false, &got);
    ck_assert_int_eq(got, DT_UINT8);
    promote(DT_INT32, true, DT_INT1, false, false, &got);
    ck_assert_int_eq(got, DT_INT32);
    promote(DT_FP32, true, DT_INT64, false, false, &got);
    ck_assert_int_eq(got, DT_FP32);
}
END_TEST

/* ---- limits */

/* Lowers f(x: "*i32", n: "i32") with the body; the error it must end with. */
static void
expect(const char *body, const char *text)
{
    Session *s = session();
    if (setjmp(s->fail.env) == 0) {
        s->fail.set = 1;
        FrontModule *m =
            load(s, arena_printf(&s->perm, "%sdef f(x, n):\n%s", KERNEL, body));
        FrontSpec spec;
        ck_assert(front_spec_parse(m, "f", "*i32,i32", NULL, 0, &spec));
        Func *f = front_lower(m, "f", &spec, module_new(s));
        if (text) {
            ck_assert_ptr_null(f);
            const DiagItem *d = said(s, text);
            ck_assert_msg(d != NULL, "not said: %s", text);
            ck_assert_int_gt(d->loc.line, 0);
            ck_assert_int_le(s->diag.errors, 2);
        } else {
            ck_assert_ptr_nonnull(f);
            ck_assert(func_verify(f));
        }
    } else {
        ck_abort_msg("%s", s->fail.message);
    }
    session_free(s);
}

/* n copies of a line with its number; `indent` deepens it line by line. */
static char *
lines(const char *fmt, int n, bool indent)
{
    size_t cap = (size_t)n * (strlen(fmt) + 16 + (indent ? 4 * (size_t)n : 0)) + 64;
    char *text = calloc(cap, 1), *at = text;
    for (int i = 0; i < n; i++) {
        at +=
            snprintf(at, cap - (size_t)(at - text), "%*s", indent ? 4 * (i + 1) : 0, "");
        at += snprintf(at, cap - (size_t)(at - text), fmt, i, i);
    }
    if (indent)
        snprintf(at, cap - (size_t)(at - text), "%*sn = n + 1\n", 4 * (n + 1), "");
    return text;
}

START_TEST(limits_are_errors)
{
    static const struct {
        const char *fmt;
        int n;
        bool indent;
        const char *text;
    } rows[] = {
        {"for i%d in range(n):\n", 170, true, NULL},
        {"for i%d in range(n):\n", 190, true, "nested deeper than 180 levels"},
        {"while n > %d:\n", 190, true, "nested deeper than 180 levels"},
        {"if n > %d:\n", 190, true, "nested deeper than 180 levels"},
        {"    if n > %d:\n        if n > 5:\n            return\n", 5, false, NULL},
        {"    if n > %d:\n        if n > 5:\n            return\n", 30, false,
         "too many conditional returns"},
        {"    for i in tl.static_range(1000000000):\n        pass\n", 1, false,
         "takes more than 10000000 steps"},
        {"    for i in tl.static_range(100000):\n        tl.store(x, i)\n", 1, false,
         "unrolls to more than 65536 operations"},
        {"    a: tl.constexpr = 2 ** 1000000\n", 1, false, "too large"},
        {"    a: tl.constexpr = (1,) * 100000000\n", 1, false, "too long"},
        {"    a = tl.zeros((1,) * 33, tl.int32)\n", 1, false,
         "at most 32 dimensions"},
        {"    a = tl.zeros((1 << 21,), tl.int32)\n", 1, false,
         "at most 1048576 elements"},
        {"    a = tl.zeros((1 << 20,), tl.int32)\n", 1, false, NULL},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char *body = lines(rows[i].fmt, rows[i].n, rows[i].indent);
        expect(body, rows[i].text);
        free(body);
    }
}
END_TEST

/* The same kernel lowered twice gives the same text, and a failed lowering leaves
 * nothing. */
START_TEST(lowering_repeats)
{
    Session *s = session();
    FrontModule *m = load(s, three);
    FrontSpec spec;
    Buf text[2];
    ck_assert(front_spec_parse(m, "f", "*fp32,i32,fp32", NULL, 0, &spec));
    for (int i = 0; i < 2; i++) {
        Module *out = module_new(s);
        ck_assert_ptr_nonnull(front_lower(m, "f", &spec, out));
        buf_init(&text[i], &s->perm);
        module_print(&text[i], out);
    }
    ck_assert_str_eq(text[0].s, text[1].s);
    spec.args[0].sig = "i32";
    Module *out = module_new(s);
    ck_assert_ptr_null(front_lower(m, "f", &spec, out));
    ck_assert_int_eq(out->nfunc, 0);
    session_free(s);
}
END_TEST

/* What `sdc check` tries of a kernel that nothing suits, and that it tries enough. */
START_TEST(guesses_are_bounded)
{
    for (int n = 10; n <= 160; n *= 4) {
        char text[8000];
        int at = snprintf(text, sizeof text, "%s", KERNEL "def f(");
        for (int i = 0; i < n; i++)
            at += snprintf(text + at, sizeof text - (size_t)at,
                           i % 2 ? "c%d: tl.constexpr, " : "p%d, ", i);
        at += snprintf(text + at, sizeof text - (size_t)at, "):\n");
        for (int i = 0; i < n; i += 2)
            at += snprintf(text + at, sizeof text - (size_t)at,
                           "    tl.store(p%d, c%d)\n", i, i + 1);
        Session *s = session();
        FrontGuess g;
        ck_assert(front_guess(load(s, text), "f", NULL, NULL, 0, NULL, &g));
        ck_assert_int_ge(g.n, 9 * n < 512 ? 9 * n : 512);
        ck_assert_int_le(g.n, 512);
        session_free(s);
    }
}
END_TEST

int
main(void)
{
    Suite *suite = suite_create("sema");
    TCase *c = tcase_create("sema");
    tcase_set_timeout(c, 60);
    tcase_add_test(c, signature_by_position);
    tcase_add_test(c, signature_by_name);
    tcase_add_test(c, signature_constants);
    tcase_add_test(c, signature_errors);
    tcase_add_test(c, parameters_for_the_host);
    tcase_add_test(c, promotion_table);
    tcase_add_test(c, promotion_of_literals);
    tcase_add_test(c, limits_are_errors);
    tcase_add_test(c, lowering_repeats);
    tcase_add_test(c, guesses_are_bounded);
    suite_add_tcase(suite, c);
    SRunner *r = srunner_create(suite);
    srunner_run_all(r, CK_NORMAL);
    int failed = srunner_ntests_failed(r);
    srunner_free(r);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
