/* Interned names and a growing text buffer.
   A Name is a pointer to an interned, NUL-terminated string: two names are equal exactly
   when their pointers are. */
#ifndef SDC_IR_BASE_STR_H
#define SDC_IR_BASE_STR_H

#include "ir/base/arena.h"

#include <stdarg.h>
#include <stdbool.h>

typedef const char *Name;

typedef struct NameTable {
    Arena *arena;
    Name *slots;
    uint32_t *hashes;
    int cap, n;
} NameTable;

void names_init(NameTable *t, Arena *arena);
Name name_intern(NameTable *t, const char *s, size_t n);
Name name_of(NameTable *t, const char *s);

/* Text buffer. `s` is always NUL-terminated once anything was added. */
typedef struct Buf {
    Arena *arena;
    char *s;
    size_t n, cap;
} Buf;

void buf_init(Buf *b, Arena *arena);
void buf_add(Buf *b, const char *s, size_t n);
void buf_str(Buf *b, const char *s);
void buf_char(Buf *b, char c);
void buf_printf(Buf *b, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void buf_vprintf(Buf *b, const char *fmt, va_list ap);

uint64_t hash_bytes(const void *p, size_t n, uint64_t seed);

#endif
