/* A kernel's text as tile IR: what runtime/compile.c does up to the passes. */
#include "tests/interp/source.h"

#include "frontend/frontend.h"
#include "ir/text.h"
#include "ir/verify.h"

#include <string.h>

enum { MAX_BINDS = 64 };

static int
split_binds(Session *s, const char *binds, const char **out)
{
    int n = 0;
    while (binds && *binds && n < MAX_BINDS) {
        size_t len = strcspn(binds, ", ");
        char *one = arena_array(&s->perm, char, len + 1);
        memcpy(one, binds, len);
        if (len)
            out[n++] = one;
        binds += len + (binds[len] != '\0');
    }
    return n;
}

static Func *
lower(Session *s, const Source *src, const char *kernel, const char *signature,
      const char *binds)
{
    const char *list[MAX_BINDS];
    int n = split_binds(s, binds, list);
    FrontModule *fm = front_load(s, src, NULL);
    FrontSpec spec;
    if (!fm || !diag_ok(&s->diag))
        return NULL;
    if (!kernel && front_kernel_count(fm) > 0)
        kernel = front_kernel_name(fm, 0);
    if (!kernel || !front_spec_parse(fm, kernel, signature, list, n, &spec))
        return NULL;
    spec.debug = true; /* assertions are there to be checked */
    Module *m = module_new(s);
    Func *f = front_lower(fm, kernel, &spec, m);
    return f && diag_ok(&s->diag) && module_verify(m) ? f : NULL;
}

Func *
source_kernel(Session *s, const char *path, const char *text, const char *kernel,
              const char *signature, const char *binds)
{
    size_t n = strlen(path);
    Source *src = arena_new(&s->perm, Source);
    if (text)
        *src = (Source){.path = path, .text = text, .size = strlen(text)};
    else if (!(src = (Source *)front_read_disk(s, path)))
        return NULL;
    if (n < 4 || strcmp(path + n - 4, ".tir"))
        return lower(s, src, kernel, signature, binds);
    Module *m = module_read(s, src);
    if (!m || !diag_ok(&s->diag) || !m->nfunc)
        return NULL;
    return kernel ? module_func(m, kernel) : m->funcs[0];
}

const char *
source_errors(Session *s)
{
    Buf b;
    buf_init(&b, &s->perm);
    buf_str(&b, "");
    diag_render(&s->diag, &b, false);
    return b.s;
}
