/* Any bytes as tile IR text: errors, never a crash. What is read is printed, and that
   text must read back and print to the same again; and it can be analysed. */
#include <string.h>

#include "ir/analysis/axis.h"
#include "ir/text.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char *
print(Session *s, const Module *m)
{
    Buf b;
    buf_init(&b, &s->perm);
    module_print(&b, m);
    return b.s ? b.s : "";
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    Session *s = session_new((size_t)256 << 20);
    if (!s)
        return 0;
    if (setjmp(s->fail.env) == 0) {
        s->fail.set = 1;
        char *text = arena_strndup(&s->perm, (const char *)data, size);
        Source src = {.path = "fuzz.tir", .text = text, .size = size};
        Module *m = module_read(s, &src);
        Buf out;
        buf_init(&out, &s->perm);
        if (m) {
            const char *once = print(s, m);
            for (int i = 0; i < m->nfunc; i++)
                axis_new(m->funcs[i], &s->tmp);
            Source again = {.path = "again.tir", .text = once, .size = strlen(once)};
            Module *m2 = module_read(s, &again);
            if (!m2 || strcmp(once, print(s, m2)) != 0)
                __builtin_trap();
        } else {
            diag_render(&s->diag, &out, false);
        }
    } else if (s->fail.reason == FAIL_BUG) {
        __builtin_trap();
    }
    session_free(s);
    return 0;
}
