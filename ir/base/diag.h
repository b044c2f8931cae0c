/* Source places and diagnostics. Errors are collected, never printed here: the command
   line prints them, the API hands them out. Wording: lower case, no full stop, names
   quoted, what was needed and what was found. */
#ifndef SDC_IR_BASE_DIAG_H
#define SDC_IR_BASE_DIAG_H

#include "ir/base/arena.h"
#include "ir/base/str.h"

#define PRINTF_DIAG __attribute__((format(printf, 3, 4)))

/* One text that was read. `text` is NUL-terminated and outlives every Loc in it. */
typedef struct Source {
    const char *path; /* as the user spelled it; for printing */
    const char *text;
    size_t size;
    int id;
    int skipped; /* lines of the file that stand before the text */
} Source;

/* Paths of sources that sdc brings along begin with this. */
#define LIB_PATH "<lib>/"

/* A range of one line. Line and column count from 1; columns count bytes. line 0:
   unknown. */
typedef struct Loc {
    const Source *src;
    int line, col;
    int end_line, end_col; /* first column after the range */
    const struct CallSite *call; /* of the inlined function it is in; NULL: the kernel */
} Loc;

/* A call that was replaced by the body of what it calls. */
typedef struct CallSite {
    Loc at;
    const char *fn;
} CallSite;

typedef enum DiagLevel { DIAG_ERROR, DIAG_WARNING, DIAG_NOTE } DiagLevel;

typedef struct DiagItem {
    DiagLevel level;
    Loc loc;
    const char *text;
    const char *stage; /* of the compiler, when it was said; NULL: none */
    struct DiagItem *next;
} DiagItem;

typedef struct Diag {
    Arena *arena;
    FailPoint *fail;
    DiagItem *first, *last;
    int errors, warnings;
    int limit;      /* errors kept; further ones are counted only */
    bool muted;     /* the last error was dropped: its notes are too */
    const char *stage; /* static text: "syntax", "type", ... */
} Diag;

void diag_init(Diag *d, Arena *arena, FailPoint *fail);
void diag_error(Diag *d, Loc loc, const char *fmt, ...) PRINTF_DIAG;
void diag_warning(Diag *d, Loc loc, const char *fmt, ...) PRINTF_DIAG;
/* Attaches to the last error or warning. */
void diag_note(Diag *d, Loc loc, const char *fmt, ...) PRINTF_DIAG;
bool diag_ok(const Diag *d);
/* Forgets what was collected since `to` was copied from it. */
void diag_rewind(Diag *d, const Diag *to);

/* All diagnostics as text: "path:line:col: error: ...", the source line, a caret range.
   `color`: ANSI colours. */
void diag_render(const Diag *d, Buf *out, bool color);
void diag_render_item(const DiagItem *it, Buf *out, bool color);

/* An internal inconsistency: leaves through the fail point with FAIL_BUG. */
#define bug(fail, ...) bug_at((fail), __FILE__, __LINE__, __VA_ARGS__)
_Noreturn void bug_at(FailPoint *fail, const char *file, int line, const char *fmt, ...)
    __attribute__((format(printf, 4, 5)));

#endif
