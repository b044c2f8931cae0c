/* Bump allocator: a list of chunks, each twice the size of the last up to a cap, so that
   small sessions stay small. Chunks are calloc'd, but only memory that is fresh from the
   system is zero for free. So a reset clears what was used, and keeps a chunk for the
   next that has to grow: scratch that is reset after each pass stays the same memory. */
#include "ir/base/arena.h"

#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct ArenaChunk {
    ArenaChunk *prev;
    size_t cap;
    size_t used;
    alignas(max_align_t) unsigned char data[];
};

enum { FIRST_CHUNK = 16 << 10, MAX_CHUNK = 1 << 20 };

_Noreturn void
fail_jump(FailPoint *f, int reason, const char *fmt, ...)
{
    if (!f || !f->set)
        __builtin_trap(); /* an owner forgot its fail point: nothing sane is left to do */
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(f->message, sizeof f->message, fmt, ap);
    va_end(ap);
    f->reason = reason;
    longjmp(f->env, 1);
}

void
arena_init(Arena *a, FailPoint *fail, size_t limit)
{
    *a = (Arena){.fail = fail, .limit = limit};
}

void
arena_done(Arena *a)
{
    for (ArenaChunk *c = a->top; c;) {
        ArenaChunk *prev = c->prev;
        free(c);
        c = prev;
    }
    free(a->spare);
    a->top = a->spare = NULL;
    a->total = 0;
}

/* Which limit, where, and what to do about it. */
static _Noreturn void
no_memory(FailPoint *f, int reason, const char *what)
{
    if (!f || !f->stage || !f->kernel)
        fail_jump(f, reason, "%s", what);
    fail_jump(f, reason, "%s in '%s' of kernel '%s', %s:%d; smaller tiles or fewer "
                         "unrolled iterations need less%s",
              what, f->stage, f->kernel, f->path ? f->path : "", f->line,
              reason == FAIL_LIMIT ? ", and a context's memory_limit allows more" : "");
}

/* What is too small goes, so that a limit counts what is used alone. */
static bool
use_spare(Arena *a, size_t need)
{
    ArenaChunk *c = a->spare;
    a->spare = NULL;
    if (c->cap < need) {
        a->total -= c->cap;
        free(c);
        return false;
    }
    c->prev = a->top;
    a->top = c;
    return true;
}

static void
grow(Arena *a, size_t need)
{
    char what[80];
    if (a->spare && use_spare(a, need))
        return;
    size_t cap = a->top ? a->top->cap * 2 : FIRST_CHUNK;
    if (cap > MAX_CHUNK)
        cap = MAX_CHUNK;
    if (cap < need)
        cap = need;
    if (a->limit && (cap > a->limit || a->total > a->limit - cap)) {
        snprintf(what, sizeof what, "memory limit of %zu MiB reached", a->limit >> 20);
        no_memory(a->fail, FAIL_LIMIT, what);
    }
    ArenaChunk *c = calloc(1, sizeof *c + cap);
    if (!c) {
        snprintf(what, sizeof what, "out of memory (%zu bytes wanted)", cap);
        no_memory(a->fail, FAIL_MEMORY, what);
    }
    c->prev = a->top;
    c->cap = cap;
    a->top = c;
    a->total += cap;
}

/* NULL: the chunk has no room. It begins where calloc wants, so addresses are aligned. */
static void *
take(ArenaChunk *c, size_t size, size_t align)
{
    uintptr_t base = (uintptr_t)c->data;
    size_t at = ((base + c->used + align - 1) & ~(uintptr_t)(align - 1)) - base;
    if (at > c->cap || size > c->cap - at)
        return NULL;
    c->used = at + size;
    return c->data + at;
}

void *
arena_alloc(Arena *a, size_t size, size_t align)
{
    if (size > SIZE_MAX / 4)
        fail_jump(a->fail, FAIL_LIMIT, "allocation of %zu bytes refused", size);
    void *p = a->top ? take(a->top, size, align) : NULL;
    if (!p) {
        grow(a, size + align);
        p = take(a->top, size, align);
    }
    return p;
}

void *
arena_calloc(Arena *a, size_t n, size_t size, size_t align)
{
    if (size && n > SIZE_MAX / 4 / size)
        fail_jump(a->fail, FAIL_LIMIT, "allocation of %zu objects refused", n);
    return arena_alloc(a, n * size, align);
}

ArenaMark
arena_mark(const Arena *a)
{
    return (ArenaMark){a->top, a->top ? a->top->used : 0};
}

static void
keep_or_free(Arena *a, ArenaChunk *c)
{
    ArenaChunk *goes = c;
    if (c->cap <= MAX_CHUNK && (!a->spare || a->spare->cap < c->cap)) {
        goes = a->spare;
        memset(c->data, 0, c->used);
        c->used = 0;
        a->spare = c;
    }
    a->total -= goes ? goes->cap : 0;
    free(goes);
}

void
arena_reset(Arena *a, ArenaMark m)
{
    while (a->top != m.top) {
        ArenaChunk *c = a->top;
        a->top = c->prev;
        keep_or_free(a, c);
    }
    if (a->top) {
        memset(a->top->data + m.used, 0, a->top->used - m.used);
        a->top->used = m.used;
    }
}

char *
arena_strndup(Arena *a, const char *s, size_t n)
{
    char *p = arena_alloc(a, n + 1, 1);
    if (n)
        memcpy(p, s, n);
    return p;
}

char *
arena_printf(Arena *a, const char *fmt, ...)
{
    va_list ap, again;
    va_start(ap, fmt);
    va_copy(again, ap);
    int n = vsnprintf(NULL, 0, fmt, ap);
    va_end(ap);
    char *p = arena_alloc(a, (size_t)(n < 0 ? 0 : n) + 1, 1);
    if (n > 0)
        vsnprintf(p, (size_t)n + 1, fmt, again);
    va_end(again);
    return p;
}
