/* Bump allocation. A stage of the compiler owns an arena; nothing in it is freed singly.
   Memory comes back zeroed. An arena has a byte limit: past it, or when malloc fails,
   arena_alloc jumps to the arena's `fail` buffer (set by the API entry that owns the
   session), so that callers never check for NULL and the library never aborts. */
#ifndef SDC_IR_BASE_ARENA_H
#define SDC_IR_BASE_ARENA_H

#include <setjmp.h>
#include <stdalign.h>
#include <stddef.h>
#include <stdint.h>

typedef struct ArenaChunk ArenaChunk;

/* Where control goes when memory runs out or an internal bug is found. One per session;
   all arenas and the Diag of a session point to it. */
typedef struct FailPoint {
    jmp_buf env;
    int set;            /* nonzero while env is valid */
    int reason;         /* FAIL_* */
    char message[512];  /* text for the user, no newline at the end */
    /* What is being done, for messages; NULL and 0: not known. */
    const char *stage, *kernel, *path;
    int line;
} FailPoint;

enum { FAIL_NONE, FAIL_MEMORY, FAIL_LIMIT, FAIL_BUG };

typedef struct Arena {
    ArenaChunk *top;
    ArenaChunk *spare; /* zeroed, the largest that was given back; may be NULL */
    size_t total;      /* bytes taken from the system */
    size_t limit;      /* 0: none */
    FailPoint *fail;   /* may be NULL: then running out of memory traps */
} Arena;

typedef struct ArenaMark {
    ArenaChunk *top;
    size_t used;
} ArenaMark;

void arena_init(Arena *a, FailPoint *fail, size_t limit);
void arena_done(Arena *a);

/* `size` zeroed bytes aligned to `align` (a power of two <= 64). Never NULL. */
void *arena_alloc(Arena *a, size_t size, size_t align);

/* A zeroed copy target of `n` objects of `size`; checks n * size for overflow. */
void *arena_calloc(Arena *a, size_t n, size_t size, size_t align);

#define arena_new(a, T) ((T *)arena_alloc((a), sizeof(T), alignof(T)))
#define arena_array(a, T, n) ((T *)arena_calloc((a), (size_t)(n), sizeof(T), alignof(T)))

/* Everything allocated after `arena_mark` is given back by `arena_reset`. */
ArenaMark arena_mark(const Arena *a);
void arena_reset(Arena *a, ArenaMark m);

/* Copies of text, NUL-terminated. */
char *arena_strndup(Arena *a, const char *s, size_t n);
char *arena_printf(Arena *a, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* Leaves through the fail point with a printf-like message; never returns. */
_Noreturn void fail_jump(FailPoint *f, int reason, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

#endif
