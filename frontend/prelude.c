/* Files of kernels_dsl/lib: parsed once a session, when a kernel first needs them. */
#include "frontend/prelude.h"

#include "frontend/module.h"
#include "frontend/prelude_text.h"

#include <string.h>

bool
prelude_owns(const FrontModule *m)
{
    const char *path = module_path(m);
    return strncmp(path, LIB_PATH, sizeof LIB_PATH - 1) == 0;
}

Val
prelude_function(Sema *s, const char *file, const char *name, Loc loc)
{
    Name key = name_of(&s->s->names, arena_printf(s->a, LIB_PATH "%s.tk", file));
    FrontModule *m = module_cached(s->m, key);
    for (const PreludeText *t = prelude_texts; !m && t->name; t++) {
        if (strcmp(t->name, file) != 0)
            continue;
        Source *src = arena_new(&s->s->perm, Source);
        *src = (Source){ .path = key, .text = t->text, .size = t->size,
                         .id = s->s->next_source++ };
        m = module_add(s->m, src);
    }
    Val v = m ? module_lookup(s, m, name_of(&s->s->names, name), loc, false) : NULL;
    if (!v)
        bug(&s->s->fail, "the library has no '%s' in %s", name, file);
    return v;
}
