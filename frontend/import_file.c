/* The file of an import: beside the file that imports, in the folders of -I, above it as
   far as its package goes. A package whose files import one another by `*` asks for the
   same few a hundred thousand times, so every answer is kept, that there is none too. */
#include "frontend/module.h"
#include "frontend/py.h"
#include "frontend/syntax.h"

#include <stdio.h>
#include <string.h>

enum { MAX_ANCESTORS = 8 };

const Source *
front_read_disk(Session *s, const char *path)
{
    FILE *f = fopen(path, "rb");
    if (!f)
        return NULL;
    Buf b;
    char part[4096];
    size_t n;
    buf_init(&b, &s->perm);
    buf_str(&b, "");
    while ((n = fread(part, 1, sizeof part, f)) > 0 && b.n <= MAX_SOURCE)
        buf_add(&b, part, n);
    bool ok = !ferror(f) && b.n <= MAX_SOURCE;
    fclose(f);
    if (!ok)
        return NULL;
    Source *src = arena_new(&s->perm, Source);
    *src = (Source){.path = arena_strndup(&s->perm, path, strlen(path)),
                    .text = b.s,
                    .size = b.n,
                    .id = s->next_source++};
    return src;
}

static const Source *
read_source(FrontModule *m, const char *path)
{
    const FrontOptions *opt = module_options(m);
    if (opt && opt->read_file)
        return opt->read_file(opt->user, module_session(m), path);
    return front_read_disk(module_session(m), path);
}

/* dir/a/b.py, dir/a/b.tk or dir/a/b/__init__.py. */
static FrontModule *
load_in(FrontModule *from, const char *dir, size_t ndir, const char *path)
{
    static const char *const endings[] = {".py", ".tk", "/__init__.py"};
    for (size_t i = 0; i < sizeof endings / sizeof *endings; i++) {
        Buf b;
        buf_init(&b, &module_session(from)->tmp);
        buf_add(&b, dir, ndir);
        if (ndir && dir[ndir - 1] != '/')
            buf_char(&b, '/');
        for (const char *p = path; *p; p++)
            buf_char(&b, *p == '.' ? '/' : *p);
        buf_str(&b, *path ? endings[i] : *endings[i] == '/' ? "__init__.py" : "");
        if (!*path && *endings[i] != '/')
            continue;
        FrontModule *m = module_cached(from, b.s);
        if (m)
            return m;
        const Source *src = read_source(from, b.s);
        if (src)
            return module_add(from, src);
    }
    return NULL;
}

/* The folder `up` levels above the file: 0 is the file's own. False above the root. */
static bool
folder_of(const char *path, int up, size_t *n)
{
    size_t at = strlen(path);
    for (int i = 0; i <= up; i++) {
        while (at && path[at - 1] != '/')
            at--;
        if (!at)
            return i == up; /* the current folder, written as nothing */
        if (i < up)
            at--;
    }
    *n = at;
    return true;
}

static FrontModule *
search(FrontModule *from, const char *text, int level)
{
    const FrontOptions *opt = module_options(from);
    const char *own = module_path(from);
    size_t n = 0;
    if (level > 0)
        return folder_of(own, level - 1, &n) ? load_in(from, own, n, text) : NULL;
    FrontModule *m = folder_of(own, 0, &n) ? load_in(from, own, n, text) : NULL;
    for (int i = 0; opt && !m && i < opt->ninclude; i++) {
        const char *dir = opt->include_dirs[i];
        m = load_in(from, dir, strlen(dir), text);
    }
    for (int up = 1; !m && up <= MAX_ANCESTORS; up++) {
        n = 0;
        m = folder_of(own, up, &n) ? load_in(from, own, n, text) : NULL;
    }
    return m;
}

FrontModule *
module_load_included(FrontModule *from, Name path)
{
    const FrontOptions *opt = module_options(from);
    FrontModule *m = NULL;
    for (int i = 0; opt && !m && i < opt->ninclude; i++)
        m = load_in(from, opt->include_dirs[i], strlen(opt->include_dirs[i]), path);
    return m;
}

FrontModule *
module_load_import(FrontModule *from, Name path, int level)
{
    static const char none; /* in the place of a file: there is none */
    Session *s = module_session(from);
    Map *found = &module_interp(from)->found;
    const char *own = module_path(from), *text = path ? path : "";
    const char *slash = strrchr(own, '/');
    int n = slash ? (int)(slash - own) : 0;
    Name key = name_of(&s->names,
                       arena_printf(&s->tmp, "%d %s %.*s", level, text, n, own));
    FrontModule *m = map_get(found, key);
    if (!m) {
        m = search(from, text, level);
        map_set(found, key, m ? (void *)m : (void *)(uintptr_t)&none);
    }
    return (const char *)m == &none ? NULL : m;
}
