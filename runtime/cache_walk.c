/* Looking after the folder of the kernel cache: what is there, what is not whole, what
   was not used for longest. Another process may add and remove files meanwhile; whatever
   goes wrong with one file is left to the next walk. */
#include "runtime/cache_file.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { OLD_TEMPORARY = 3600 }; /* seconds: whoever wrote it has died */

typedef struct File {
    char name[48]; /* "ab/cdef..." */
    int64_t bytes, used;
} File;

typedef struct Files {
    File *at;
    size_t n, cap;
} Files;

int64_t
cache_limit(void)
{
    const char *text = getenv("SDC_CACHE_SIZE");
    char *end;
    long long mib = text ? strtoll(text, &end, 10) : 0;
    return text && *text && !*end && mib >= 0 && mib < (1 << 30) ? mib << 20
                                                                 : (int64_t)1 << 30;
}

static bool
is_hex(const char *s, size_t n)
{
    return strlen(s) == n && strspn(s, "0123456789abcdef") == n;
}

static void
keep(Files *f, const char *dir, const char *name, const struct stat *st)
{
    if (f->n == f->cap) {
        size_t cap = 2 * f->cap + 64;
        File *more = realloc(f->at, cap * sizeof *more);
        if (!more)
            return;
        f->at = more;
        f->cap = cap;
    }
    File *x = &f->at[f->n++];
    snprintf(x->name, sizeof x->name, "%.2s/%.30s", dir, name);
    x->bytes = st->st_size;
    x->used = st->st_mtime;
}

/* One file of a folder "ab". */
static void
visit(Files *files, int dir_fd, const char *dir, const char *name, CacheAction action,
      CacheFound *out)
{
    struct stat st;
    if (*name == '.' || fstatat(dir_fd, name, &st, AT_SYMLINK_NOFOLLOW) != 0 ||
        !S_ISREG(st.st_mode))
        return;
    if (is_hex(name, 2 * CACHE_DIGEST - 2)) {
        out->entries++;
        out->bytes += st.st_size;
        keep(files, dir, name, &st);
    } else if (strstr(name, ".tmp.")) {
        out->temporaries++;
        bool old = time(NULL) - st.st_mtime > OLD_TEMPORARY;
        if (action == CACHE_CLEAR || (action == CACHE_GC && old))
            unlinkat(dir_fd, name, 0);
    }
}

static bool
list(const Cache *c, Files *files, CacheAction action, CacheFound *out)
{
    DIR *top = opendir(c->dir);
    if (!top)
        return errno == ENOENT;
    for (struct dirent *d; (d = readdir(top)) != NULL;) {
        if (!is_hex(d->d_name, 2))
            continue;
        int fd = openat(dirfd(top), d->d_name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        DIR *sub = fd < 0 ? NULL : fdopendir(fd);
        if (!sub && fd >= 0)
            close(fd);
        for (struct dirent *e; sub && (e = readdir(sub)) != NULL;)
            visit(files, dirfd(sub), d->d_name, e->d_name, action, out);
        if (sub)
            closedir(sub);
    }
    closedir(top);
    return true;
}

static bool
is_whole(const char *path)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    struct stat st;
    char *bytes = NULL;
    size_t n = 0;
    CacheHeader h;
    if (fd < 0)
        return true; /* gone: nothing to say of it */
    if (fstat(fd, &st) == 0)
        bytes = malloc((size_t)st.st_size + 1);
    for (ssize_t got = 1; bytes && got > 0 && n < (size_t)st.st_size; n += (size_t)got)
        if ((got = read(fd, bytes + n, (size_t)st.st_size - n)) < 0)
            got = 0;
    close(fd);
    bool whole = !bytes || cache_check(bytes, n, &h);
    free(bytes);
    return whole;
}

static int
oldest_first(const void *a, const void *b)
{
    const File *x = a, *y = b;
    return (x->used > y->used) - (x->used < y->used);
}

static void
remove_file(const Cache *c, const File *f, CacheFound *out)
{
    char *path;
    if (asprintf(&path, "%s/%s", c->dir, f->name) < 0)
        return;
    if (unlink(path) == 0) {
        out->removed++;
        out->entries--;
        out->bytes -= f->bytes;
    }
    free(path);
}

bool
cache_walk(Cache *c, CacheAction action, int64_t limit, CacheFound *out)
{
    Files files = {0};
    *out = (CacheFound){0};
    bool ok = list(c, &files, action, out);
    if (action == CACHE_GC && files.n)
        qsort(files.at, files.n, sizeof *files.at, oldest_first);
    for (size_t i = 0; i < files.n; i++) {
        char *path = NULL;
        bool bad = action == CACHE_VERIFY &&
                   asprintf(&path, "%s/%s", c->dir, files.at[i].name) >= 0 &&
                   !is_whole(path);
        free(path);
        out->bad += bad;
        if (bad || action == CACHE_CLEAR || (action == CACHE_GC && out->bytes > limit))
            remove_file(c, &files.at[i], out);
    }
    free(files.at);
    return ok;
}
