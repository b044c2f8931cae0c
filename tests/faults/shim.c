/* Lets the k-th allocation or file operation of a process fail: LD_PRELOAD names it. A
   program sets what fails through faults_get(); a command through its environment,
   SDC_FAULT="memory 17 0" or "file 3 28" (kind, number, errno); with SDC_FAULT_COUNT it
   prints how many operations of the kind there were. */
#include "tests/faults/shim.h"

#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define API __attribute__((visibility("default")))

static Faults faults;

API Faults *
faults_get(void)
{
    return &faults;
}

__attribute__((constructor)) static void
from_environment(void)
{
    char kind[16];
    long at;
    int error;
    const char *text = getenv("SDC_FAULT");
    if (!text || sscanf(text, "%15s %ld %d", kind, &at, &error) != 3)
        return;
    atomic_store(&faults.at, at);
    atomic_store(&faults.error, error);
    atomic_store(&faults.kind, strcmp(kind, "file") == 0 ? FAULT_FILE : FAULT_MEMORY);
}

__attribute__((destructor)) static void
print_count(void)
{
    if (getenv("SDC_FAULT_COUNT"))
        dprintf(STDERR_FILENO, "%ld\n", atomic_load(&faults.count));
}

static int
fails(FaultKind kind)
{
    if (atomic_load(&faults.kind) != (int)kind)
        return 0;
    long n = atomic_fetch_add(&faults.count, 1) + 1, at = atomic_load(&faults.at);
    return at && (n == at || (n > at && atomic_load(&faults.forever)));
}

/* ---------------------------------------------------------------- memory */

void *__libc_malloc(size_t);
void *__libc_calloc(size_t, size_t);
void *__libc_realloc(void *, size_t);
void *__libc_memalign(size_t, size_t);
void __libc_free(void *);

static void *
refuse(void)
{
    errno = ENOMEM;
    return NULL;
}

static void *
counted(void *p)
{
    if (p)
        atomic_fetch_add(&faults.live, 1);
    return p;
}

API void *
malloc(size_t n)
{
    return fails(FAULT_MEMORY) ? refuse() : counted(__libc_malloc(n));
}

API void *
calloc(size_t n, size_t size)
{
    return fails(FAULT_MEMORY) ? refuse() : counted(__libc_calloc(n, size));
}

API void *
realloc(void *p, size_t n)
{
    if (fails(FAULT_MEMORY))
        return refuse();
    void *to = __libc_realloc(p, n);
    return p ? to : counted(to);
}

API void
free(void *p)
{
    if (p)
        atomic_fetch_sub(&faults.live, 1);
    __libc_free(p);
}

API void *
aligned_alloc(size_t align, size_t n)
{
    return fails(FAULT_MEMORY) ? refuse() : counted(__libc_memalign(align, n));
}

API int
posix_memalign(void **out, size_t align, size_t n)
{
    void *p = fails(FAULT_MEMORY) ? NULL : counted(__libc_memalign(align, n));
    if (p)
        *out = p;
    return p ? 0 : ENOMEM;
}

/* ---------------------------------------------------------------- files */

/* The C library's function of this name, as a pointer of its type. */
#define NEXT(name, type)                                                                 \
    static type *name##_next;                                                            \
    if (!name##_next) {                                                                  \
        void *at_ = dlsym(RTLD_NEXT, #name);                                             \
        memcpy(&name##_next, &at_, sizeof at_);                                          \
    }

#define FILE_FAULT(result)                                                               \
    if (fails(FAULT_FILE) && atomic_load(&faults.error) != FAULT_SHORT) {                \
        errno = atomic_load(&faults.error);                                              \
        return result;                                                                   \
    }

typedef int OpenFn(const char *, int, ...);
typedef int OpenatFn(int, const char *, int, ...);
typedef ssize_t ReadFn(int, void *, size_t);
typedef ssize_t WriteFn(int, const void *, size_t);
typedef int IntFn(int);
typedef int PathsFn(const char *, const char *);
typedef int PathFn(const char *);
typedef int MkdirFn(const char *, mode_t);
typedef FILE *FopenFn(const char *, const char *);
typedef size_t FreadFn(void *, size_t, size_t, FILE *);
typedef DIR *OpendirFn(const char *);
typedef int FstatFn(int, struct stat *);

API int
open(const char *path, int flags, ...)
{
    NEXT(open, OpenFn)
    va_list ap;
    va_start(ap, flags);
    mode_t mode = flags & O_CREAT ? va_arg(ap, mode_t) : 0;
    va_end(ap);
    FILE_FAULT(-1)
    return open_next(path, flags, mode);
}

API int
openat(int dir, const char *path, int flags, ...)
{
    NEXT(openat, OpenatFn)
    va_list ap;
    va_start(ap, flags);
    mode_t mode = flags & O_CREAT ? va_arg(ap, mode_t) : 0;
    va_end(ap);
    FILE_FAULT(-1)
    return openat_next(dir, path, flags, mode);
}

/* A short transfer is half of it, and the fault is used up. */
static size_t
shortened(size_t n)
{
    if (atomic_load(&faults.kind) != FAULT_FILE ||
        atomic_load(&faults.error) != FAULT_SHORT ||
        atomic_load(&faults.count) != atomic_load(&faults.at))
        return n;
    return n > 1 ? n / 2 : n;
}

API ssize_t
read(int fd, void *to, size_t n)
{
    NEXT(read, ReadFn)
    FILE_FAULT(-1)
    return read_next(fd, to, shortened(n));
}

API ssize_t
write(int fd, const void *from, size_t n)
{
    NEXT(write, WriteFn)
    FILE_FAULT(-1)
    return write_next(fd, from, shortened(n));
}

API int
fsync(int fd)
{
    NEXT(fsync, IntFn)
    FILE_FAULT(-1)
    return fsync_next(fd);
}

API int
rename(const char *from, const char *to)
{
    NEXT(rename, PathsFn)
    FILE_FAULT(-1)
    return rename_next(from, to);
}

API int
unlink(const char *path)
{
    NEXT(unlink, PathFn)
    FILE_FAULT(-1)
    return unlink_next(path);
}

API int
mkdir(const char *path, mode_t mode)
{
    NEXT(mkdir, MkdirFn)
    FILE_FAULT(-1)
    return mkdir_next(path, mode);
}

API FILE *
fopen(const char *path, const char *mode)
{
    NEXT(fopen, FopenFn)
    FILE_FAULT(NULL)
    return fopen_next(path, mode);
}

API size_t
fread(void *to, size_t size, size_t n, FILE *f)
{
    NEXT(fread, FreadFn)
    FILE_FAULT(0)
    return fread_next(to, size, n, f);
}

API DIR *
opendir(const char *path)
{
    NEXT(opendir, OpendirFn)
    FILE_FAULT(NULL)
    return opendir_next(path);
}

API int
fstat(int fd, struct stat *st)
{
    NEXT(fstat, FstatFn)
    FILE_FAULT(-1)
    return fstat_next(fd, st);
}
