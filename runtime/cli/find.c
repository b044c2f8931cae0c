/* Source files below a folder. */
#include "runtime/cli/cli.h"

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { MAX_DEPTH = 64 };

bool
is_folder(const char *path)
{
    struct stat st;
    return stat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

static bool
ends_with(const char *s, const char *end)
{
    size_t n = strlen(s), m = strlen(end);
    return n >= m && strcmp(s + n - m, end) == 0;
}

/* Of Python's files only those that say jit: a folder has many others. */
static bool
may_hold_kernels(const char *path)
{
    static const char word[] = "jit";
    if (ends_with(path, ".tk"))
        return true;
    FILE *f = ends_with(path, ".py") ? fopen(path, "rb") : NULL;
    size_t at = 0;
    int ch;
    while (f && at < sizeof word - 1 && (ch = getc(f)) != EOF)
        at = ch == word[at] ? at + 1 : ch == word[0];
    if (f)
        fclose(f);
    return f && at == sizeof word - 1;
}

static int
by_name(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static bool
find(Cli *c, const char *dir, int depth, TextList *out)
{
    DIR *d = depth < MAX_DEPTH ? opendir(dir) : NULL;
    TextList names = {0};
    if (!d) {
        cli_error(c, EXIT_INPUT, "cannot read '%s': %s", dir,
                  depth < MAX_DEPTH ? strerror(errno) : "too many folders in folders");
        return false;
    }
    for (const struct dirent *e; (e = readdir(d)) != NULL;)
        if (e->d_name[0] != '.' && strcmp(e->d_name, "__pycache__") != 0)
            vec_push(&c->arena, &names, arena_printf(&c->arena, "%s", e->d_name));
    closedir(d);
    if (names.n)
        qsort(names.at, (size_t)names.n, sizeof *names.at, by_name);
    size_t n = strlen(dir);
    const char *slash = n && dir[n - 1] == '/' ? "" : "/";
    bool ok = true;
    for (int i = 0; i < names.n && ok; i++) {
        const char *path = arena_printf(&c->arena, "%s%s%s", dir, slash, names.at[i]);
        struct stat st;
        if (lstat(path, &st) != 0)
            continue;
        if (S_ISDIR(st.st_mode)) /* links to folders may go round in circles */
            ok = find(c, path, depth + 1, out);
        else if (may_hold_kernels(path))
            vec_push(&c->arena, out, path);
    }
    return ok;
}

bool
find_sources(Cli *c, const char *dir, TextList *out)
{
    return find(c, dir, 0, out);
}
