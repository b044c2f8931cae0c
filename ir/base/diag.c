/* Collecting and rendering diagnostics. Carets follow the source line's own tabs so that
   they line up; lines longer than a terminal are shown in a window around the place. */
#include "ir/base/diag.h"

#include "ir/base/util.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum { ERROR_LIMIT = 20, WINDOW = 160 };

void
diag_init(Diag *d, Arena *arena, FailPoint *fail)
{
    *d = (Diag){.arena = arena, .fail = fail, .limit = ERROR_LIMIT};
}

static void
add(Diag *d, DiagLevel level, Loc loc, const char *fmt, va_list ap)
{
    Buf b;
    buf_init(&b, d->arena);
    buf_vprintf(&b, fmt, ap);
    DiagItem *it = arena_new(d->arena, DiagItem);
    it->level = level;
    it->loc = loc;
    it->text = b.s ? b.s : "";
    it->stage = d->stage;
    if (d->last)
        d->last->next = it;
    else
        d->first = it;
    d->last = it;
}

void
diag_error(Diag *d, Loc loc, const char *fmt, ...)
{
    d->muted = ++d->errors > d->limit;
    if (d->muted)
        return;
    va_list ap;
    va_start(ap, fmt);
    add(d, DIAG_ERROR, loc, fmt, ap);
    va_end(ap);
}

void
diag_warning(Diag *d, Loc loc, const char *fmt, ...)
{
    d->muted = ++d->warnings > d->limit;
    if (d->muted)
        return;
    va_list ap;
    va_start(ap, fmt);
    add(d, DIAG_WARNING, loc, fmt, ap);
    va_end(ap);
}

void
diag_note(Diag *d, Loc loc, const char *fmt, ...)
{
    if (d->muted)
        return;
    va_list ap;
    va_start(ap, fmt);
    add(d, DIAG_NOTE, loc, fmt, ap);
    va_end(ap);
}

void
diag_rewind(Diag *d, const Diag *to)
{
    *d = *to;
    if (d->last)
        d->last->next = NULL;
}

bool
diag_ok(const Diag *d)
{
    return d->errors == 0;
}

static const char *
line_start(const Source *src, int line)
{
    const char *p = src->text;
    const char *end = src->text + src->size;
    if (line <= src->skipped)
        return NULL;
    for (int i = src->skipped + 1; i < line; i++) {
        const char *nl = memchr(p, '\n', (size_t)(end - p));
        if (!nl)
            return NULL;
        p = nl + 1;
    }
    return p;
}

static void
render_line(const Loc *loc, Buf *out)
{
    const char *p = line_start(loc->src, loc->line);
    if (!p)
        return;
    const char *end = loc->src->text + loc->src->size;
    const char *nl = memchr(p, '\n', (size_t)(end - p));
    int len = (int)min_i64((nl ? nl : end) - p, 1 << 20);
    int col = loc->col > len + 1 ? len + 1 : loc->col;
    int from = col > WINDOW / 2 && len > WINDOW ? col - WINDOW / 2 : 0;
    int to = (int)min_i64(len, from + WINDOW);
    buf_str(out, "   ");
    for (int i = from; i < to; i++) {
        unsigned char c = (unsigned char)p[i];
        buf_char(out, c < 0x20 && c != '\t' ? '?' : (char)c);
    }
    buf_str(out, "\n   ");
    for (int i = from; i < col - 1; i++)
        if (p[i] == '\t')
            buf_char(out, '\t');
        else if (((unsigned char)p[i] & 0xc0) != 0x80)
            buf_char(out, ' '); /* one column per UTF-8 character */
    buf_char(out, '^');
    int stop = loc->end_line == loc->line ? loc->end_col : to + 1;
    for (int i = col; i < stop - 1 && i < to; i++)
        if (((unsigned char)p[i] & 0xc0) != 0x80)
            buf_char(out, '~');
    buf_char(out, '\n');
}

void
diag_render_item(const DiagItem *it, Buf *out, bool color)
{
    static const char *const word[] = {"error", "warning", "note"};
    static const char *const paint[] = {"\033[1;31m", "\033[1;35m", "\033[1;36m"};
    const Loc *loc = &it->loc;
    if (color)
        buf_str(out, "\033[1m");
    if (loc->src && loc->line > 0)
        buf_printf(out, "%s:%d:%d: ", loc->src->path, loc->line, loc->col);
    else if (loc->src)
        buf_printf(out, "%s: ", loc->src->path);
    else
        buf_str(out, "sdc: ");
    if (color)
        buf_printf(out, "%s%s:\033[0;1m %s\033[0m\n", paint[it->level], word[it->level],
                   it->text);
    else
        buf_printf(out, "%s: %s\n", word[it->level], it->text);
    if (loc->src && loc->src->text && loc->line > 0)
        render_line(loc, out);
}

void
diag_render(const Diag *d, Buf *out, bool color)
{
    for (const DiagItem *it = d->first; it; it = it->next)
        diag_render_item(it, out, color);
    if (d->errors > d->limit)
        buf_printf(out, "sdc: %d further errors not shown\n", d->errors - d->limit);
}

_Noreturn void
bug_at(FailPoint *fail, const char *file, int line, const char *fmt, ...)
{
    char text[400];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    fail_jump(fail, FAIL_BUG, "internal error at %s:%d: %s", file, line, text);
}
