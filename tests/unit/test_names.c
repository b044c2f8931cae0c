/* Every name of Triton that a kernel can use (tests/names): the statement that uses it
   becomes IR, or is refused with the words that its line gives. A name that is neither
   fails the test, and so does one whose refusal is no longer needed. */
#include "frontend/frontend.h"
#include "ir/text.h"
#include "ir/verify.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LINE = 512 };

static const char head[] =
    "import triton\n"
    "import triton.language as tl\n"
    "from triton.language.extra import libdevice, cuda\n"
    "@triton.aggregate\n"
    "class Pair:\n"
    "    a: tl.tensor\n"
    "    b: tl.constexpr\n"
    "@triton.jit\n"
    "def plus(a, b):\n"
    "    return a + b\n"
    "@triton.jit\n"
    "def k(x, y, n, desc, idesc):\n"
    "    o = tl.arange(0, 32)\n"
    "    p = x + o\n"
    "    q = y + o\n"
    "    v = tl.load(p)\n"
    "    w = tl.load(q)\n"
    "    f = tl.load(x + o[:, None] * 32 + o[None, :])\n"
    "    d = f.to(tl.float64)\n"
    "    h = f.to(tl.float16)\n"
    "    i = f.to(tl.int32)\n"
    "    u = i.to(tl.uint32)\n"
    "    l = i.to(tl.int64)\n"
    "    b = i.to(tl.uint8)\n"
    "    m = f > 0\n"
    "    ";

static const char signature[] =
    "*fp32:16,*i32:16,i32,tensordesc<fp32[32,32]>,tensordesc<i32[32,32]>";

/* The first error, or NULL when the statement becomes IR that is valid. */
static const char *
refusal(Session *s, const char *statement)
{
    size_t n = strlen(head) + strlen(statement) + 2;
    char *text = malloc(n);
    snprintf(text, n, "%s%s\n", head, statement);
    Source *src = arena_new(&s->perm, Source);
    *src = (Source){.path = "names.tk", .text = text, .size = n - 1};
    FrontModule *m = front_load(s, src, NULL);
    FrontSpec spec;
    Module *out = module_new(s);
    const char *why = NULL;
    Func *f = m && front_spec_parse(m, "k", signature, NULL, 0, &spec)
                  ? front_lower(m, "k", &spec, out)
                  : NULL;
    if (!f || !func_verify(f))
        why = s->diag.first ? s->diag.first->text : "no reason";
    free(text);
    return why;
}

/* The parts of a line between bars, trimmed; how many. */
static int
split(char *line, char *part[3])
{
    int n = 0;
    for (char *at = line; at && n < 3; n++) {
        char *bar = n < 2 ? strstr(at, " | ") : NULL;
        part[n] = at;
        at = bar ? bar + 3 : NULL;
        if (bar)
            *bar = '\0';
    }
    return n;
}

START_TEST(every_name)
{
    char path[4096], line[LINE], *part[3];
    snprintf(path, sizeof path, "%s/tests/names/triton-3.9.txt", SDC_ROOT);
    FILE *f = fopen(path, "r");
    ck_assert_ptr_nonnull(f);
    int names = 0, refused = 0, wrong = 0;
    while (fgets(line, sizeof line, f)) {
        line[strcspn(line, "\n")] = '\0';
        int n = line[0] == '#' ? 0 : split(line, part);
        if (n < 2)
            continue;
        Session *s = session_new(0);
        const char *why = refusal(s, part[1]);
        bool expected = n == 3;
        bool right = expected ? why && strstr(why, part[2]) : !why;
        if (!right)
            fprintf(stderr, "%s: %s: %s\n", part[0], part[1], why ? why : "is taken");
        names++;
        refused += expected;
        wrong += !right;
        session_free(s);
    }
    fclose(f);
    ck_assert_msg(names >= 365, "%d names", names);
    ck_assert_msg(!wrong, "%d of %d names (%d refused) are not as their line says", wrong,
                  names, refused);
}
END_TEST

int
main(void)
{
    Suite *suite = suite_create("names");
    TCase *tc = tcase_create("names");
    tcase_set_timeout(tc, 300);
    tcase_add_test(tc, every_name);
    suite_add_tcase(suite, tc);
    SRunner *r = srunner_create(suite);
    srunner_run_all(r, CK_ENV);
    int failed = srunner_ntests_failed(r);
    srunner_free(r);
    return failed != 0;
}
