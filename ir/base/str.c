/* Interning by open addressing over FNV-1a hashes; text buffers that double. */
#include "ir/base/str.h"

#include <stdio.h>
#include <string.h>

uint64_t
hash_bytes(const void *p, size_t n, uint64_t seed)
{
    const unsigned char *s = p;
    uint64_t h = 1469598103934665603u ^ seed;
    for (size_t i = 0; i < n; i++)
        h = (h ^ s[i]) * 1099511628211u;
    return h ^ (h >> 29);
}

void
names_init(NameTable *t, Arena *arena)
{
    *t = (NameTable){.arena = arena, .cap = 256};
    t->slots = arena_array(arena, Name, t->cap);
    t->hashes = arena_array(arena, uint32_t, t->cap);
}

static void
names_grow(NameTable *t)
{
    NameTable old = *t;
    t->cap *= 2;
    t->slots = arena_array(t->arena, Name, t->cap);
    t->hashes = arena_array(t->arena, uint32_t, t->cap);
    for (int i = 0; i < old.cap; i++) {
        if (!old.slots[i])
            continue;
        uint32_t j = old.hashes[i] & (uint32_t)(t->cap - 1);
        while (t->slots[j])
            j = (j + 1) & (uint32_t)(t->cap - 1);
        t->slots[j] = old.slots[i];
        t->hashes[j] = old.hashes[i];
    }
}

Name
name_intern(NameTable *t, const char *s, size_t n)
{
    uint32_t h = (uint32_t)hash_bytes(s, n, 0);
    uint32_t i = h & (uint32_t)(t->cap - 1);
    for (; t->slots[i]; i = (i + 1) & (uint32_t)(t->cap - 1))
        if (t->hashes[i] == h && strncmp(t->slots[i], s, n) == 0 && !t->slots[i][n])
            return t->slots[i];
    Name copy = arena_strndup(t->arena, s, n);
    t->slots[i] = copy;
    t->hashes[i] = h;
    if (++t->n * 2 > t->cap)
        names_grow(t);
    return copy;
}

Name
name_of(NameTable *t, const char *s)
{
    return name_intern(t, s, strlen(s));
}

void
buf_init(Buf *b, Arena *arena)
{
    *b = (Buf){.arena = arena};
}

static void
buf_room(Buf *b, size_t n)
{
    if (b->cap - b->n > n)
        return;
    size_t cap = b->cap ? b->cap : 256;
    while (cap - b->n <= n)
        cap *= 2;
    char *s = arena_alloc(b->arena, cap, 1);
    if (b->n)
        memcpy(s, b->s, b->n);
    b->s = s;
    b->cap = cap;
}

void
buf_add(Buf *b, const char *s, size_t n)
{
    buf_room(b, n);
    if (n)
        memcpy(b->s + b->n, s, n);
    b->n += n;
    b->s[b->n] = '\0';
}

void
buf_str(Buf *b, const char *s)
{
    buf_add(b, s, strlen(s));
}

void
buf_char(Buf *b, char c)
{
    buf_add(b, &c, 1);
}

void
buf_vprintf(Buf *b, const char *fmt, va_list ap)
{
    va_list again;
    va_copy(again, ap);
    int n = vsnprintf(NULL, 0, fmt, ap);
    if (n > 0) {
        buf_room(b, (size_t)n);
        vsnprintf(b->s + b->n, (size_t)n + 1, fmt, again);
        b->n += (size_t)n;
    }
    va_end(again);
}

void
buf_printf(Buf *b, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    buf_vprintf(b, fmt, ap);
    va_end(ap);
}
