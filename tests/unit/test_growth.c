/* Compile time grows as the program does: four times the statements, loops or branches
   take less than three times as long as twice as many. CPU time of the compiling thread
   is what counts, and the median of tries that compile both one after the other: a busy
   neighbour slows down both. And code for what is too large for LLVM's
   optimisations is right. */
#include "runtime/sdc.h"

#include <check.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* Tries end as soon as their median is clear. */
enum { N = 64, TRIES = 15 };

typedef struct Text {
    char *s;
    size_t n, cap;
} Text;

static void
say(Text *t, const char *fmt, ...)
{
    char line[300];
    va_list ap;
    va_start(ap, fmt);
    size_t n = (size_t)vsnprintf(line, sizeof line, fmt, ap);
    va_end(ap);
    if (t->n + n + 1 > t->cap) {
        t->cap = 2 * t->cap + 4096;
        ck_assert_ptr_nonnull(t->s = realloc(t->s, t->cap));
    }
    memcpy(t->s + t->n, line, n + 1);
    t->n += n;
}

static void
head(Text *t)
{
    say(t, "import triton\nimport triton.language as tl\n"
           "@triton.jit\ndef g(a, b):\n"
           "    if a > b:\n        a = a * b\n    return a + b\n"
           "@triton.jit\ndef k(x, n, N: tl.constexpr):\n"
           "    a = tl.load(x)\n    o = tl.arange(0, N)\n    t = tl.load(x + o)\n");
}

static void
statements(Text *t, int n)
{
    for (int i = 0; i < n; i++)
        say(t, "    t = t * 3 + (t >> %d)\n", i % 31 + 1);
}

static void
loads(Text *t, int n)
{
    for (int i = 0; i < n; i++)
        say(t, "    t += tl.load(x + o * %d, mask=o < n)\n", i + 2);
}

static void
stores(Text *t, int n)
{
    for (int i = 0; i < n; i++)
        say(t, "    tl.store(x + o + %d * n, t + %d, mask=o < n)\n", i, i);
}

static void
loops(Text *t, int n)
{
    for (int i = 0; i < n; i++)
        say(t, "    for i in range(0, n):\n        a = a * 3 + i\n");
    say(t, "    t += a\n");
}

/* Each as long as the one before says. */
static void
chained_loops(Text *t, int n)
{
    for (int i = 0; i < n; i++)
        say(t, "    for i in range(0, a):\n        a = a * 3 + i\n");
    say(t, "    t += a\n");
}

static void
whiles(Text *t, int n)
{
    for (int i = 0; i < n; i++)
        say(t, "    while a > %d:\n        a = a // 3\n", i);
    say(t, "    t += a\n");
}

static void
branches(Text *t, int n)
{
    for (int i = 0; i < n; i++)
        say(t, "    if a > %d:\n        a = a * 3 + %d\n    else:\n        a += 1\n", i,
            i);
    say(t, "    t += a\n");
}

static void
helpers(Text *t, int n)
{
    for (int i = 0; i < n; i++)
        say(t, "    a = g(a, %d)\n", i);
    say(t, "    t += a\n");
}

static void
carried(Text *t, int n)
{
    for (int i = 0; i < n; i++)
        say(t, "    v%d = a * %d\n", i, i + 7);
    say(t, "    for i in range(0, n):\n");
    for (int i = 0; i < n; i++)
        say(t, "        v%d = v%d * 3 + i\n", i, i);
    for (int i = 0; i < n; i++)
        say(t, "    tl.store(x + %d, v%d)\n", i, i);
}

static const struct {
    const char *name;
    void (*write)(Text *t, int n);
    int cpu, gpu; /* n; measured are 2 n and 4 n */
} families[] = {
    {"statements", statements, 150, 500},
    {"loads", loads, 100, 500},
    {"stores", stores, 150, 400},
    {"loops", loops, 200, 250},
    {"chained loops", chained_loops, 200, 250},
    {"whiles", whiles, 200, 250},
    {"branches", branches, 250, 600},
    {"helpers", helpers, 250, 600},
    {"carried values", carried, 100, 400},
};

static char *
kernel(int family, int n)
{
    Text t = {0};
    head(&t);
    families[family].write(&t, n);
    say(&t, "    tl.store(x + o, t)\n");
    return t.s;
}

static double
cpu_seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static double
seconds_of(SdcContext *cx, const char *text, const char *target)
{
    SdcModule *m;
    SdcOutput *out;
    SdcCompileOptions o = {.kernel = "k", .signature = "*i32:16,i32,64", .target = target,
                           .emit = SDC_EMIT_ASM};
    double start = cpu_seconds();
    SdcStatus status =
        sdc_module_load_text(cx, "k.tk", text, strlen(text), SDC_LANG_AUTO, &m);
    if (status == SDC_OK)
        status = sdc_compile(m, &o, &out);
    double seconds = cpu_seconds() - start;
    ck_assert_msg(status == SDC_OK, "%.300s", sdc_error(cx));
    sdc_output_destroy(out);
    sdc_module_unload(m);
    return seconds;
}

static void
grows(int family, const char *target, int n)
{
    SdcContext *cx;
    double two = 0, four = 0, ratio[TRIES], median = 1e9;
    ck_assert_int_eq(sdc_context_create(NULL, &cx), SDC_OK);
    char *text2 = kernel(family, 2 * n), *text4 = kernel(family, 4 * n);
    for (int i = 0; i < TRIES && (i < 3 || i % 2 == 0 || median >= 2.7); i++) {
        two = seconds_of(cx, text2, target);
        four = seconds_of(cx, text4, target);
        int at = i; /* in order */
        for (; at > 0 && ratio[at - 1] > four / two; at--)
            ratio[at] = ratio[at - 1];
        ratio[at] = four / two;
        median = ratio[i / 2];
    }
    free(text2);
    free(text4);
    sdc_context_destroy(cx);
    printf("%-15s %-7s n = %5d: %6.1f ms, n = %5d: %6.1f ms, %.2f times\n",
           families[family].name, target, 2 * n, 1e3 * two, 4 * n, 1e3 * four, median);
    ck_assert_msg(median < 3, "%s for %s: %.2f times, at last %.1f ms and %.1f ms",
                  families[family].name, target, median, 1e3 * two, 1e3 * four);
}

START_TEST(time_grows_linearly)
{
    grows(_i, "cpu", families[_i].cpu);
    grows(_i, "sm_90a", families[_i].gpu);
}
END_TEST

/* More instructions in a loop's body than the backend optimises: blocks are cut, and the
   values that the loop carries come from another one. */
START_TEST(large_is_right)
{
    enum { STATEMENTS = 700, TURNS = 3 };
    static _Alignas(64) int32_t x[N];
    Text t = {0};
    SdcContext *cx;
    SdcModule *m;
    SdcFunction *f;
    static const char *const bind[] = {"N=64"};
    SdcArg args[] = {sdc_ptr(SDC_I32, x), sdc_int(TURNS)};
    head(&t);
    say(&t, "    for i in range(0, n):\n");
    for (int i = 0; i < STATEMENTS; i++)
        say(&t, "        t = t * 3 + (t >> %d)\n", i % 31 + 1);
    say(&t, "        if n == i + 1:\n            t += 1\n    tl.store(x + o, t)\n");
    for (int i = 0; i < N; i++)
        x[i] = 1000 * i + 1;
    ck_assert_int_eq(sdc_context_create(NULL, &cx), SDC_OK);
    ck_assert_int_eq(sdc_module_load_text(cx, "k.tk", t.s, t.n, SDC_LANG_AUTO, &m),
                     SDC_OK);
    ck_assert_int_eq(sdc_function_get(m, "k", bind, 1, &f), SDC_OK);
    ck_assert_msg(sdc_launch(f, sdc_grid(1, 1, 1), args, 2, NULL) == SDC_OK, "%s",
                  sdc_error(cx));
    ck_assert_msg(strstr(sdc_warnings(cx), "'k' is too large") != NULL, "%s",
                  sdc_warnings(cx));
    for (int i = 0; i < N; i++) {
        int32_t v = 1000 * i + 1;
        for (int k = 0; k < TURNS * STATEMENTS; k++)
            v = (int32_t)((uint32_t)v * 3 + (uint32_t)(v >> (k % STATEMENTS % 31 + 1)));
        ck_assert_int_eq(x[i], v + 1);
    }
    free(t.s);
    sdc_context_destroy(cx);
}
END_TEST

int
main(void)
{
    Suite *s = suite_create("growth");
    TCase *t = tcase_create("growth");
    tcase_set_timeout(t, 100);
    tcase_add_loop_test(t, time_grows_linearly, 0, sizeof families / sizeof *families);
    tcase_add_test(t, large_is_right);
    suite_add_tcase(s, t);
    SRunner *r = srunner_create(s);
    srunner_run_all(r, CK_NORMAL);
    int failed = srunner_ntests_failed(r);
    srunner_free(r);
    return failed != 0;
}
