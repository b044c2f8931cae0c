/* Any text as a module whose every kernel is typed and lowered with one fixed signature:
   errors, never a crash; what lowers is well-formed IR. The mutator exchanges whole lines
   and words, so that most inputs still parse and reach the semantic half. */
#include <stdlib.h>
#include <string.h>

#include "frontend/frontend.h"
#include "ir/verify.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max, unsigned seed);
/* Only libFuzzer has it. */
size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t max) __attribute__((weak));

static void
lower_one(FrontModule *m, const char *kernel, Module *out)
{
    static const char *const types[] = {"*fp32", "i32", "*fp16", "fp32", "*i64", "i64"};
    const FrontParam *params;
    SpecArg args[64];
    int n;
    if (!front_params(m, kernel, &params, &n) || n > 64)
        return;
    for (int i = 0; i < n; i++) {
        args[i] = (SpecArg){.kind = SPEC_TYPE, .sig = types[i % 6], .div = 16};
        if (params[i].is_constexpr)
            args[i] = (SpecArg){.kind = SPEC_INT, .i = 16 << i % 3};
        else if (params[i].annotated)
            args[i].sig = params[i].annotated;
        if (params[i].has_default)
            args[i].kind = SPEC_UNSET;
    }
    FrontSpec spec = {.args = args, .narg = n, .debug = true};
    Func *f = front_lower(m, kernel, &spec, out);
    if (f && !func_verify(f))
        __builtin_trap();
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    Session *s = session_new((size_t)512 << 20);
    if (!s)
        return 0;
    if (setjmp(s->fail.env) == 0) {
        s->fail.set = 1;
        char *text = arena_strndup(&s->perm, (const char *)data, size);
        Source src = {.path = "fuzz.tk", .text = text, .size = size};
        FrontModule *m = front_load(s, &src, NULL);
        for (int i = 0; m && i < front_kernel_count(m) && i < 8; i++)
            lower_one(m, front_kernel_name(m, i), module_new(s));
    } else if (s->fail.reason == FAIL_BUG) {
        __builtin_trap();
    }
    session_free(s);
    return 0;
}

/* ---- mutation */

typedef struct Span {
    size_t at, n;
} Span;

static int
is_word(int c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           c == '_' || c == '.';
}

/* A word, or a run without blanks, at or after a random place. */
static Span
pick(const uint8_t *d, size_t n, unsigned r, int line)
{
    size_t at = r % n;
    if (line) {
        while (at && d[at - 1] != '\n')
            at--;
        size_t end = at;
        while (end < n && d[end] != '\n')
            end++;
        return (Span){at, end - at + (end < n)};
    }
    while (at < n && !is_word(d[at]))
        at++;
    while (at && at < n && is_word(d[at - 1]))
        at--;
    size_t end = at;
    while (end < n && is_word(d[end]))
        end++;
    return (Span){at, end - at};
}

static size_t
replace(uint8_t *d, size_t n, size_t max, Span old, const uint8_t *by, size_t nby)
{
    if (n - old.n + nby > max)
        return n;
    uint8_t *copy = malloc(nby + 1);
    if (!copy)
        return n;
    memcpy(copy, by, nby);
    memmove(d + old.at + nby, d + old.at + old.n, n - old.at - old.n);
    memcpy(d + old.at, copy, nby);
    free(copy);
    return n - old.n + nby;
}

size_t
LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max, unsigned seed)
{
    static const char *const words[] = {
        "0", "1", "-1", "2.5", "None", "True", "x", "tl.float16", "tl.int64", "(1, 2)",
        "tl.arange(0, 8)", "i", "acc", "''", "[]", "9223372036854775808", "not", "if",
        "else", "return", "tl.static_range", "range", "while", "tl.load", "tl.sum",
        "x.shape", "tl.zeros((4, 4), tl.float32)", "lambda", "is", "tl.constexpr",
    };
    unsigned r = seed;
    if (size < 16 && !LLVMFuzzerMutate)
        return size;
    if (LLVMFuzzerMutate && (size < 16 || seed % 16 == 0))
        return LLVMFuzzerMutate(data, size, max);
    r = r * 1103515245u + 12345u;
    int line = seed % 16 < 5;
    Span to = pick(data, size, r >> 8, line);
    r = r * 1103515245u + 12345u;
    if (seed % 16 > 11) {
        const char *w = words[(r >> 16) % (sizeof words / sizeof *words)];
        return replace(data, size, max, to, (const uint8_t *)w, strlen(w));
    }
    Span from = pick(data, size, r >> 8, line);
    return replace(data, size, max, to, data + from.at, from.n);
}
