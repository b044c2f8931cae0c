/* What happens when LLVM gets no memory. LLVM and libstdc++ end the process then, and a
   library must not. So all that is linked with LLVM allocates by the functions here (the
   linker's --wrap): in a section of LLVM, see llvm.h, they never say no.

   A request that the C library refuses is served from a reserve, so that LLVM returns
   from what it is doing; whoever opened the section sees that memory was short, disposes
   of everything and reports it. When the reserve is used up, too, the section is left by
   its fail point: C++ frames are skipped, and what LLVM held stays allocated. Such
   compiles are counted, with their bytes, and past a limit no further one begins.

   A section is never left while LLVM holds a lock or initialises a static variable, which
   later compiles would wait for: locks are counted, and the last part of the reserve is
   theirs alone. Only when that is used up can LLVM still end the process. The reserve is
   one word of state, so a fork finds it in order. */
#include "codegen/codegen.h"
#include "codegen/llvm.h"

#include <errno.h>
#include <malloc.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

enum { RESERVE = 8 << 20, FOR_LOCKS = 1 << 20, ALIGN = 16 };

/* A host's process may lose so much before compiling stops. */
static const int64_t MOST_LOST = (int64_t)1 << 30;

static _Alignas(64) unsigned char reserve[RESERVE];
static atomic_uint_fast64_t reserve_state; /* blocks in use << 32 | bytes taken */

/* Each allocation asks: found without a call. A word of the room that a C library keeps
   for libraries that are loaded later. */
static _Thread_local LlvmSection *here __attribute__((tls_model("initial-exec")));

static atomic_int lost_compiles;
static atomic_int_fast64_t lost_bytes;

/* ---------------------------------------------------------------- sections */

void
ll_enter(LlvmSection *s, FailPoint *fail)
{
    *s = (LlvmSection){.outer = here, .fail = fail};
    if (fail && atomic_load(&lost_bytes) > MOST_LOST)
        fail_jump(fail, FAIL_MEMORY,
                  "out of memory: %d compiles that had none left %lld MiB behind, and no "
                  "further one begins; a compile worker keeps them out of this process",
                  atomic_load(&lost_compiles),
                  (long long)(atomic_load(&lost_bytes) >> 20));
    here = s;
}

void
ll_exit(LlvmSection *s)
{
    here = s->outer;
}

void
ll_leave(int reason, const char *what)
{
    LlvmSection *s = here;
    if (!s || !s->fail)
        return;
    s->left = true;
    atomic_fetch_add(&lost_compiles, 1);
    atomic_fetch_add(&lost_bytes, s->bytes > 0 ? s->bytes : 0);
    here = NULL; /* until ll_exit */
    fail_jump(s->fail, reason, "%s", what);
}

void
ll_callback(bool begins)
{
    if (here)
        here->in_callback = begins;
}

int
codegen_lost(int64_t *bytes)
{
    *bytes = atomic_load(&lost_bytes);
    return atomic_load(&lost_compiles);
}

/* ---------------------------------------------------------------- the reserve */

static bool
in_reserve(const void *p)
{
    return (uintptr_t)p - (uintptr_t)reserve < RESERVE;
}

/* A block has its size in front. */
static void *
reserve_take(size_t size, size_t align, size_t most)
{
    align = align < ALIGN ? ALIGN : align;
    if (size > RESERVE || align > RESERVE)
        return NULL;
    uint64_t old = atomic_load(&reserve_state), next;
    uintptr_t base = (uintptr_t)reserve, at;
    do {
        at = base + (uint32_t)old + ALIGN;
        at = (at + align - 1) & ~(uintptr_t)(align - 1);
        size_t end = (at - base + size + ALIGN - 1) & ~(size_t)(ALIGN - 1);
        if (end > most)
            return NULL;
        next = ((old >> 32) + 1) << 32 | end;
    } while (!atomic_compare_exchange_weak(&reserve_state, &old, next));
    memcpy((void *)(at - sizeof size), &size, sizeof size);
    return (void *)at;
}

/* Blocks come back all at once, when none is in use. */
static void
reserve_give(void)
{
    uint64_t old = atomic_load(&reserve_state), next;
    do
        next = (old >> 32) == 1 ? 0 : old - ((uint64_t)1 << 32);
    while (!atomic_compare_exchange_weak(&reserve_state, &old, next));
}

static size_t
reserve_size(const void *p)
{
    size_t size;
    memcpy(&size, (const unsigned char *)p - sizeof size, sizeof size);
    return size;
}

/* The C library has refused. */
static void *
short_of_memory(size_t size, size_t align)
{
    LlvmSection *s = here;
    if (!s)
        return NULL;
    s->is_short = true;
    bool stay = !s->fail || s->held > 0;
    void *p = reserve_take(size, align, stay ? RESERVE : RESERVE - FOR_LOCKS);
    if (!p && !stay)
        ll_leave(FAIL_MEMORY, "out of memory");
    return p;
}

static void *
count(void *p, int sign)
{
    if (here && p)
        here->bytes += sign * (int64_t)malloc_usable_size(p);
    return p;
}

/* ---------------------------------------------------------------- what the linker puts
   in the place of the C library's functions */

#define WRAP(type, name, parameters)                                                     \
    type __real_##name parameters;                                                       \
    type __wrap_##name parameters;                                                       \
    type __wrap_##name parameters

WRAP(void *, malloc, (size_t size))
{
    void *p = __real_malloc(size);
    return p ? count(p, 1) : short_of_memory(size, ALIGN);
}

WRAP(void *, calloc, (size_t n, size_t size))
{
    void *p = __real_calloc(n, size);
    if (p || (size && n > SIZE_MAX / size))
        return count(p, 1);
    p = short_of_memory(n * size, ALIGN);
    return p ? memset(p, 0, n * size) : NULL;
}

WRAP(void, free, (void *p))
{
    if (in_reserve(p)) {
        reserve_give();
        return;
    }
    count(p, -1);
    __real_free(p);
}

WRAP(void *, realloc, (void *p, size_t size))
{
    bool ours = in_reserve(p);
    size_t had = ours ? reserve_size(p) : p ? malloc_usable_size(p) : 0;
    void *to = ours ? __wrap_malloc(size) : __real_realloc(p, size);
    if (to && !ours) {
        if (here)
            here->bytes += (int64_t)malloc_usable_size(to) - (int64_t)had;
        return to;
    }
    if (!to && size)
        to = short_of_memory(size, ALIGN);
    if (to && had)
        memcpy(to, p, had < size ? had : size);
    if (to)
        __wrap_free(p);
    return to;
}

/* The C library's would allocate by itself, and LLVM does not ask whether it could. */
WRAP(char *, strdup, (const char *text))
{
    size_t size = strlen(text) + 1;
    void *to = here ? __wrap_malloc(size) : __real_strdup(text);
    return to && here ? memcpy(to, text, size) : to;
}

WRAP(int, posix_memalign, (void **out, size_t align, size_t size))
{
    int code = __real_posix_memalign(out, align, size);
    if (code == 0)
        count(*out, 1);
    if (code != ENOMEM)
        return code;
    void *p = short_of_memory(size, align);
    if (p)
        *out = p;
    return p ? 0 : ENOMEM;
}

WRAP(void *, aligned_alloc, (size_t align, size_t size))
{
    void *p = __real_aligned_alloc(align, size);
    return p ? count(p, 1) : short_of_memory(size, align);
}

static void
hold(int by)
{
    if (here)
        here->held += by;
}

WRAP(int, pthread_mutex_lock, (pthread_mutex_t * m))
{
    int code = __real_pthread_mutex_lock(m);
    hold(code == 0);
    return code;
}

WRAP(int, pthread_mutex_trylock, (pthread_mutex_t * m))
{
    int code = __real_pthread_mutex_trylock(m);
    hold(code == 0);
    return code;
}

WRAP(int, pthread_mutex_unlock, (pthread_mutex_t * m))
{
    hold(-1);
    return __real_pthread_mutex_unlock(m);
}

WRAP(int, pthread_rwlock_rdlock, (pthread_rwlock_t * l))
{
    int code = __real_pthread_rwlock_rdlock(l);
    hold(code == 0);
    return code;
}

WRAP(int, pthread_rwlock_wrlock, (pthread_rwlock_t * l))
{
    int code = __real_pthread_rwlock_wrlock(l);
    hold(code == 0);
    return code;
}

WRAP(int, pthread_rwlock_unlock, (pthread_rwlock_t * l))
{
    hold(-1);
    return __real_pthread_rwlock_unlock(l);
}

WRAP(int, pthread_once, (pthread_once_t * once, void (*init)(void)))
{
    hold(1);
    int code = __real_pthread_once(once, init);
    hold(-1);
    return code;
}

/* Initialisation of static variables in C++: 1 means that the caller is to do it. */
WRAP(int, __cxa_guard_acquire, (void *guard))
{
    int mine = __real___cxa_guard_acquire(guard);
    hold(mine != 0);
    return mine;
}

WRAP(void, __cxa_guard_release, (void *guard))
{
    hold(-1);
    __real___cxa_guard_release(guard);
}
