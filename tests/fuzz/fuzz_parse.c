/* Any bytes through lexer and grammar: errors, never a crash, within the session's memory
   limit. What parses is printed as well, so that the printer sees strange trees. */
#include "frontend/syntax.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    Session *s = session_new((size_t)256 << 20);
    if (!s)
        return 0;
    if (setjmp(s->fail.env) == 0) {
        s->fail.set = 1;
        char *text = arena_strndup(&s->perm, (const char *)data, size);
        Source src = {.path = "fuzz.tk", .text = text, .size = size};
        NodeList body;
        Buf out;
        buf_init(&out, &s->perm);
        if (syntax_parse(s, &src, &body))
            ast_print(&out, &body);
        else
            diag_render(&s->diag, &out, false);
    } else if (s->fail.reason == FAIL_BUG) {
        __builtin_trap();
    }
    session_free(s);
    return 0;
}
