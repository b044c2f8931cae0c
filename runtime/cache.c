/* Entries: names, reading and checking, writing. See cache.h for the idea and
   cache_walk.c for looking after the folder. */
#include "runtime/cache_file.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

enum { MAX_ENTRY = 256 << 20, TOUCH_AFTER = 3600 };

/* ---------------------------------------------------------------- bytes */

void
cache_add(CacheBytes *b, const void *bytes, size_t size)
{
    if (b->failed)
        return;
    if (b->size + size > b->cap) {
        size_t cap = 2 * (b->size + size) + 256;
        char *more = realloc(b->data, cap);
        if (!more) {
            b->failed = true;
            return;
        }
        b->data = more;
        b->cap = cap;
    }
    if (size)
        memcpy(b->data + b->size, bytes, size);
    b->size += size;
}

void
cache_field(CacheBytes *b, const void *bytes, size_t size)
{
    uint64_t n = size;
    cache_add(b, &n, sizeof n);
    cache_add(b, bytes, size);
}

void
cache_bytes_done(CacheBytes *b)
{
    free(b->data);
    *b = (CacheBytes){0};
}

void
cache_digest(const void *bytes, size_t size, unsigned char out[CACHE_DIGEST])
{
    XXH128_canonical_t c;
    XXH128_canonicalFromHash(&c, XXH3_128bits(bytes, size));
    memcpy(out, c.digest, CACHE_DIGEST);
}

/* ---------------------------------------------------------------- opening */

/* The folder is ours, and nobody else may write to it. There being none is fine. */
static bool
trusted(const char *dir)
{
    struct stat st;
    if (stat(dir, &st) != 0)
        return errno == ENOENT;
    return S_ISDIR(st.st_mode) && st.st_uid == geteuid() && !(st.st_mode & 022);
}

Cache *
cache_open(const char *dir)
{
    const char *off = getenv("SDC_CACHE"), *own = getenv("SDC_CACHE_DIR");
    const char *xdg = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
    char *path = NULL;
    int n = -1;
    if (off && (strcmp(off, "off") == 0 || strcmp(off, "0") == 0))
        return NULL;
    if (dir && *dir)
        n = asprintf(&path, "%s", dir);
    else if (own && *own)
        n = asprintf(&path, "%s", own);
    else if (xdg && *xdg == '/')
        n = asprintf(&path, "%s/sdc", xdg);
    else if (home && *home == '/')
        n = asprintf(&path, "%s/.cache/sdc", home);
    if (n < 0)
        return NULL;
    Cache *c = trusted(path) ? calloc(1, sizeof *c) : NULL;
    if (!c) {
        free(path);
        return NULL;
    }
    c->dir = path;
    return c;
}

void
cache_close(Cache *c)
{
    if (!c)
        return;
    free(c->dir);
    free(c);
}

const char *
cache_dir(const Cache *c)
{
    return c->dir;
}

/* DIR/ab/cdef...: 256 folders, so that none has too many files. */
static char *
entry_path(const Cache *c, const CacheBytes *key)
{
    unsigned char digest[CACHE_DIGEST];
    char hex[2 * CACHE_DIGEST + 1], *path;
    cache_digest(key->data, key->size, digest);
    for (int i = 0; i < CACHE_DIGEST; i++)
        snprintf(hex + 2 * i, 3, "%02x", digest[i]);
    return asprintf(&path, "%s/%.2s/%s", c->dir, hex, hex + 2) < 0 ? NULL : path;
}

/* ---------------------------------------------------------------- reading */

/* The whole file; NULL on any trouble. An entry gets the time of its use, at most once an
   hour. */
static char *
read_file(const char *path, bool entry, size_t *size)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | (entry ? O_NOFOLLOW : 0));
    if (fd < 0)
        return NULL;
    struct stat st;
    char *text = NULL;
    *size = 0;
    if (fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && st.st_size <= MAX_ENTRY &&
        (text = malloc((size_t)st.st_size + 1)) != NULL) {
        while (*size < (size_t)st.st_size) {
            ssize_t n = read(fd, text + *size, (size_t)st.st_size - *size);
            if (n < 0 && errno == EINTR)
                continue;
            if (n <= 0)
                break;
            *size += (size_t)n;
        }
        if (entry && time(NULL) - st.st_mtime > TOUCH_AFTER)
            futimens(fd, NULL);
    }
    close(fd);
    return text;
}

bool
cache_check(const char *bytes, size_t size, CacheHeader *h)
{
    unsigned char digest[CACHE_DIGEST];
    if (size < sizeof *h)
        return false;
    memcpy(h, bytes, sizeof *h);
    size_t left = size - sizeof *h;
    if (memcmp(h->magic, CACHE_MAGIC, sizeof h->magic) != 0 ||
        h->format != CACHE_FORMAT || h->key > left || h->deps > left - h->key ||
        h->meta > left - h->key - h->deps || h->code != left - h->key - h->deps - h->meta)
        return false;
    cache_digest(bytes + CACHE_DIGEST, size - CACHE_DIGEST, digest);
    return memcmp(digest, h->digest, CACHE_DIGEST) == 0;
}

/* The text of a file as it is now. */
static bool
digest_file(const char *path, unsigned char *digest)
{
    size_t size;
    char *text = read_file(path, false, &size);
    if (text)
        cache_digest(text, size, digest);
    free(text);
    return text != NULL;
}

void
cache_dep(CacheBytes *deps, const char *path, const char *text, size_t size)
{
    unsigned char dep[1 + CACHE_DIGEST] = {text != NULL};
    if (text)
        cache_digest(text, size, dep + 1);
    cache_add(deps, dep, sizeof dep);
    cache_field(deps, path, strlen(path) + 1);
}

/* Every file that the compile read is as it was, and what was not there is not there. */
static bool
deps_hold(const char *p, size_t left)
{
    while (left) {
        uint64_t n;
        unsigned char now[CACHE_DIGEST];
        const size_t head = 1 + CACHE_DIGEST + sizeof n;
        if (left < head)
            return false;
        memcpy(&n, p + 1 + CACHE_DIGEST, sizeof n);
        if (n < 1 || n > left - head || p[head + n - 1])
            return false;
        bool was = *p != 0, is = digest_file(p + head, now);
        if (was != is || (is && memcmp(now, p + 1, CACHE_DIGEST) != 0))
            return false;
        p += head + n;
        left -= head + n;
    }
    return true;
}

bool
cache_get(Cache *c, const CacheBytes *key, CacheEntry *out)
{
    CacheHeader h;
    size_t size = 0;
    char *path = c && !key->failed ? entry_path(c, key) : NULL;
    char *bytes = path ? read_file(path, true, &size) : NULL;
    bool whole = bytes && cache_check(bytes, size, &h);
    const char *p = whole ? bytes + sizeof h : NULL;
    bool hit = whole && h.key == key->size && memcmp(p, key->data, h.key) == 0 &&
               deps_hold(p + h.key, h.deps);
    if (hit)
        *out = (CacheEntry){.memory = bytes,
                            .meta = (const unsigned char *)p + h.key + h.deps,
                            .meta_size = h.meta,
                            .code = (const unsigned char *)p + h.key + h.deps + h.meta,
                            .code_size = h.code};
    else
        free(bytes);
    if (bytes && !whole)
        unlink(path); /* it would never be read */
    free(path);
    return hit;
}

/* ---------------------------------------------------------------- writing */

static bool
write_all(int fd, const void *bytes, size_t size)
{
    const char *p = bytes;
    while (size) {
        ssize_t n = write(fd, p, size);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return false;
        p += n;
        size -= (size_t)n;
    }
    return true;
}

/* A file beyond this limit would bring the host a signal that ends it. */
static bool
within_limit(size_t size)
{
    struct rlimit most;
    return getrlimit(RLIMIT_FSIZE, &most) == 0 &&
           (most.rlim_cur == RLIM_INFINITY || size <= most.rlim_cur);
}

/* Makes the folder of the path and those above it that are missing. */
static bool
make_dirs(char *path)
{
    for (char *p = path + 1; *p; p++) {
        if (*p != '/')
            continue;
        *p = '\0';
        bool ok = mkdir(path, 0700) == 0 || errno == EEXIST || errno == EROFS ||
                  errno == EACCES; /* one above ours may be somebody else's */
        *p = '/';
        if (!ok)
            return false;
    }
    return true;
}

static void
store(Cache *c, char *path, const CacheBytes *file)
{
    char *tmp;
    unsigned number = atomic_fetch_add(&c->stores, 1);
    if (asprintf(&tmp, "%s.tmp.%ld.%p.%u", path, (long)getpid(), (void *)c, number) < 0)
        return;
    int flags = O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC;
    int fd = open(tmp, flags, 0600);
    if (fd < 0 && errno == ENOENT && make_dirs(path))
        fd = open(tmp, flags, 0600);
    if (fd >= 0) {
        bool ok = write_all(fd, file->data, file->size) && fsync(fd) == 0;
        ok = close(fd) == 0 && ok;
        if (!ok || rename(tmp, path) != 0)
            unlink(tmp);
    }
    free(tmp);
}

void
cache_put(Cache *c, const CacheBytes *key, const CacheBytes *deps, const void *meta,
          size_t meta_size, const void *code, size_t code_size)
{
    if (!c || key->failed || deps->failed)
        return;
    CacheHeader h = {.format = CACHE_FORMAT,
                     .key = key->size,
                     .deps = deps->size,
                     .meta = meta_size,
                     .code = code_size};
    CacheBytes file = {0};
    memcpy(h.magic, CACHE_MAGIC, sizeof h.magic);
    cache_add(&file, &h, sizeof h);
    cache_add(&file, key->data, key->size);
    cache_add(&file, deps->data, deps->size);
    cache_add(&file, meta, meta_size);
    cache_add(&file, code, code_size);
    char *path = file.failed || file.size > MAX_ENTRY || !within_limit(file.size)
                     ? NULL
                     : entry_path(c, key);
    if (path && trusted(c->dir)) {
        cache_digest(file.data + CACHE_DIGEST, file.size - CACHE_DIGEST,
                     (unsigned char *)file.data);
        store(c, path, &file);
        /* Now and then what was not used for longest goes. */
        CacheFound found;
        if (atomic_load(&c->stores) % CACHE_GC_EVERY == 0)
            cache_walk(c, CACHE_GC, cache_limit(), &found);
    }
    free(path);
    cache_bytes_done(&file);
}
