/* A session's arenas and tables. The session itself lives outside of its arenas. */
#include "ir/session.h"

#include "ir/ir.h"

#include <stdlib.h>

/* A function of its own: what is live across a setjmp may be lost. */
static bool
make_tables(Session *s)
{
    if (setjmp(s->fail.env))
        return false;
    s->fail.set = 1;
    names_init(&s->names, &s->perm);
    diag_init(&s->diag, &s->perm, &s->fail);
    s->types = types_new(&s->perm);
    s->fail.set = 0;
    return true;
}

Session *
session_new(size_t limit)
{
    Session *s = calloc(1, sizeof *s);
    if (!s)
        return NULL;
    size_t most = limit ? limit : (size_t)2 << 30;
    arena_init(&s->perm, &s->fail, most);
    arena_init(&s->ast, &s->fail, most);
    arena_init(&s->mod, &s->fail, most);
    arena_init(&s->tmp, &s->fail, most);
    if (make_tables(s))
        return s;
    session_free(s);
    return NULL;
}

void
session_free(Session *s)
{
    if (!s)
        return;
    arena_done(&s->tmp);
    arena_done(&s->mod);
    arena_done(&s->ast);
    arena_done(&s->perm);
    free(s);
}
