/* Any text as a module whose every kernel is typed and lowered with one fixed signature:
   errors, never a crash; what lowers is well-formed IR. The mutator exchanges whole lines
   and words, so that most inputs still parse and reach the semantic half. */
#include "frontend/frontend.h"
#include "ir/verify.h"
#include "tests/fuzz/words.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

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

size_t
LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max, unsigned seed)
{
    static const char *const words[] = {
        "0", "1", "-1", "2.5", "None", "True", "x", "tl.float16", "tl.int64", "(1, 2)",
        "tl.arange(0, 8)", "i", "acc", "''", "[]", "9223372036854775808", "not", "if",
        "else", "return", "tl.static_range", "range", "while", "tl.load", "tl.sum",
        "x.shape", "tl.zeros((4, 4), tl.float32)", "lambda", "is", "tl.constexpr",
        "try", "except ImportError", "raise ValueError", "for x in range(9)", "[x, *x]",
        "{x: 1, **x}", "x.append(x)", "f(x, *x, **x)", "yield x", "nonlocal x",
        "global x", "class x(x)", "import x", "from . import x", "from x import *",
        "torch.x", "x()()",
        "x[1:2]", "sorted(x, key=x)", "f'{x:5}'", "x % (x,)", "@x",
        "triton.jit(x)",
    };
    return words_mutate(data, size, max, seed, words, sizeof words / sizeof *words);
}
