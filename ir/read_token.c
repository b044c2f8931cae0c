/* Tokens and types of tile IR text. */
#include "ir/read.h"

#include "ir/base/util.h"
#include "ir/layout.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_TOKEN = 64 << 10, TYPE_DEPTH = 8 };

static Loc
here(const Reader *r, const char *from)
{
    int col = (int)(from - r->line_start) + 1;
    return (Loc){r->src, r->line, col, r->line, col + (int)(r->p - from), NULL};
}

bool
read_error(Reader *r, const char *fmt, ...)
{
    Buf b;
    if (r->t.kind == T_BAD)
        return false;
    buf_init(&b, &r->s->perm);
    va_list ap;
    va_start(ap, fmt);
    buf_vprintf(&b, fmt, ap);
    va_end(ap);
    const char *found = r->t.kind == T_END ? "the end"
                        : r->t.name        ? r->t.name
                                           : "a number";
    diag_error(&r->s->diag, r->t.loc, "%s, found '%.40s'", b.s, found);
    r->t.kind = T_BAD;
    return false;
}

static void
skip_space(Reader *r)
{
    for (;; r->p++) {
        if (r->p[0] == '/' && r->p[1] == '/')
            while (*r->p && *r->p != '\n')
                r->p++;
        if (*r->p == '\n') {
            r->line++;
            r->line_start = r->p + 1;
        } else if (*r->p != ' ' && *r->p != '\t' && *r->p != '\r') {
            return;
        }
    }
}

static bool
is_word(char c)
{
    return isalnum((unsigned char)c) || c == '_' || c == '.';
}

static void
take_word(Reader *r, TokenKind kind)
{
    const char *from = r->p;
    while (is_word(*r->p))
        r->p++;
    r->t.name = name_intern(&r->s->names, from, (size_t)(r->p - from));
    r->t.kind = r->p > from ? kind : T_BAD;
}

/* Integers, decimal or hexadecimal floats. A trailing 'x' of a shape is no part of
   them. */
static void
take_number(Reader *r)
{
    char *end_f;
    const char *from = r->p;
    bool hex = (from[0] == '-' ? from[1] == '0' && (from[2] | 32) == 'x'
                               : from[0] == '0' && (from[1] | 32) == 'x');
    const char *digits = from + (*from == '-');
    while (isdigit((unsigned char)*digits))
        digits++;
    bool is_int = !hex && *digits != '.' && (*digits | 32) != 'e';
    errno = 0;
    if (is_int) {
        char *end;
        r->t.i = strtoll(from, &end, 10);
        r->t.kind = errno || end == from ? T_BAD : T_INT;
        r->p = end > from ? end : from + 1;
        return;
    }
    r->t.f = strtod(from, &end_f);
    r->t.kind = end_f == from ? T_BAD : T_FLOAT;
    r->p = end_f > from ? end_f : from + 1;
}

static int
hex_digit(char c)
{
    return isdigit((unsigned char)c)    ? c - '0'
           : isxdigit((unsigned char)c) ? (c | 32) - 'a' + 10
                                        : -1;
}

static void
take_string(Reader *r)
{
    Buf b;
    buf_init(&b, &r->s->mod);
    r->p++;
    while (*r->p && *r->p != '"' && *r->p != '\n' && b.n < MAX_TOKEN) {
        if (r->p[0] == '\\' && r->p[1] == 'x' && hex_digit(r->p[2]) >= 0 &&
            hex_digit(r->p[3]) >= 0) {
            int c = hex_digit(r->p[2]) * 16 + hex_digit(r->p[3]);
            buf_char(&b, (char)(c ? c : '?'));
            r->p += 4;
        } else if (r->p[0] == '\\' && r->p[1] && r->p[1] != '\n') {
            buf_char(&b, r->p[1]);
            r->p += 2;
        } else {
            buf_char(&b, *r->p++);
        }
    }
    r->t.kind = *r->p == '"' ? T_STRING : T_BAD;
    if (*r->p == '"')
        r->p++;
    r->t.name = name_intern(&r->s->names, b.s ? b.s : "", b.n);
}

static bool
named_float(Reader *r)
{
    static const struct {
        const char *text;
        double f;
    } table[] = {{"inf", INFINITY}, {"-inf", -INFINITY}, {"nan", NAN}, {"-nan", -NAN}};
    for (int i = 0; i < COUNT_OF(table); i++) {
        size_t n = strlen(table[i].text);
        if (strncmp(r->p, table[i].text, n) == 0 && !is_word(r->p[n])) {
            r->t.f = table[i].f;
            r->t.kind = T_FLOAT;
            r->p += n;
            return true;
        }
    }
    return false;
}

void
read_next(Reader *r)
{
    skip_space(r);
    const char *from = r->p;
    r->t = (Token){.kind = T_END};
    char c = *from;
    if (!c && from < r->src->text + r->src->size) {
        r->t.kind = T_BAD;
    } else if (c == '%' || c == '@' || c == '#') {
        r->p++;
        take_word(r, c == '%' ? T_VALUE : c == '@' ? T_SYMBOL : T_ALIAS);
    } else if (c == '"') {
        take_string(r);
    } else if (!named_float(r)) {
        if (isdigit((unsigned char)c) || (c == '-' && isdigit((unsigned char)from[1]))) {
            take_number(r);
        } else if (is_word(c)) {
            take_word(r, T_WORD);
        } else if (c) {
            r->p++;
            r->t.kind = strchr("(){}[]<>,=:", c) ? T_PUNCT : T_BAD;
            r->t.name = name_intern(&r->s->names, &c, 1);
        }
    }
    r->t.loc = here(r, from);
    if (r->t.kind == T_BAD)
        diag_error(&r->s->diag, r->t.loc, "this is not a token of tile IR");
}

bool
read_is(const Reader *r, const char *punct)
{
    return r->t.kind == T_PUNCT && strcmp(r->t.name, punct) == 0;
}

bool
read_expect(Reader *r, const char *punct)
{
    if (!read_is(r, punct))
        return read_error(r, "expected '%s'", punct);
    read_next(r);
    return true;
}

/* The word after '{' is an attribute's name with '=', ',' or '}' behind it, or the brace
   closes at once on the same line ("{}" is an empty list). */
bool
read_brace_is_attrs(const Reader *r)
{
    const char *p = r->p;
    while (*p == ' ' || *p == '\t')
        p++;
    const char *word = p;
    while (is_word(*p))
        p++;
    size_t n = (size_t)(p - word);
    while (*p == ' ' || *p == '\t')
        p++;
    if (!n || (*p != '=' && *p != ',' && *p != '}'))
        return *p == '}' && !n;
    for (int i = 0; i < ATTR_COUNT; i++)
        if (strlen(attr_info[i].name) == n && memcmp(attr_info[i].name, word, n) == 0)
            return true;
    return *p == '='; /* an op without results is never followed by '=' */
}

bool
read_alias(Reader *r)
{
    Name name = r->t.name;
    read_next(r);
    if (!read_is(r, "="))
        return read_error(r, "expected '='");
    while (*r->p == ' ' || *r->p == '\t')
        r->p++;
    const char *from = r->p;
    while (*r->p && *r->p != '\n' && strncmp(r->p, "//", 2) != 0)
        r->p++;
    const char *to = r->p;
    while (to > from && isspace((unsigned char)to[-1]))
        to--;
    map_set(&r->aliases, name,
            (void *)(uintptr_t)name_intern(&r->s->names, from, (size_t)(to - from)));
    read_next(r);
    return true;
}

/* ---- types */

/* 128x64xf16 is lexed as a number and a word like x64xf16: taken apart by hand. */
static bool
read_shape(Reader *r, int64_t *shape, int *rank)
{
    const char *p = r->t.loc.col - 1 + r->line_start;
    int64_t numel = 1;
    *rank = 0;
    while (isdigit((unsigned char)*p)) {
        char *end;
        errno = 0;
        int64_t n = strtoll(p, &end, 10);
        if (errno || n < 1 || n > MAX_NUMEL || *end != 'x' || *rank == MAX_RANK ||
            numel > MAX_NUMEL / n)
            return read_error(r, "expected sizes like 128x64x, %d at most, %d elements",
                              MAX_RANK, MAX_NUMEL);
        shape[(*rank)++] = n;
        numel *= n;
        p = end + 1;
    }
    if (!*rank)
        return read_error(r, "expected sizes like 128x64x");
    r->p = p;
    read_next(r);
    return true;
}

static bool
read_list_shape(Reader *r, int64_t *shape, int *rank)
{
    int64_t numel = 1;
    *rank = 0;
    if (!read_expect(r, "["))
        return false;
    while (!read_is(r, "]")) {
        if (r->t.kind != T_INT || r->t.i < 1 || *rank == MAX_RANK ||
            r->t.i > (16 * MAX_NUMEL) / numel)
            return read_error(r, "expected sizes like [64,64]");
        shape[(*rank)++] = r->t.i;
        numel *= r->t.i;
        read_next(r);
        if (!read_is(r, "]") && !read_expect(r, ","))
            return false;
    }
    read_next(r);
    return *rank > 0 || read_error(r, "expected sizes like [64,64]");
}

static bool
read_layout(Reader *r, int rank, const int64_t *shape, const Layout **out)
{
    const char *text = map_get(&r->aliases, r->t.name);
    Buf why;
    buf_init(&why, &r->s->mod);
    if (!text)
        return read_error(r, "this layout alias is not defined");
    *out = layout_read(r->s, text, strlen(text), rank, shape, &why);
    if (!*out)
        return read_error(r, "layout does not fit: %s", why.s ? why.s : text);
    read_next(r);
    return true;
}

/* , #layout and , stages=N, each optional, up to '>'. */
static bool
read_tail(Reader *r, int rank, const int64_t *shape, const Layout **layout, int *stages)
{
    while (read_is(r, ",")) {
        read_next(r);
        if (r->t.kind == T_ALIAS && layout) {
            if (!read_layout(r, rank, shape, layout))
                return false;
        } else if (r->t.kind == T_WORD && stages && strcmp(r->t.name, "stages") == 0) {
            read_next(r);
            if (!read_expect(r, "="))
                return false;
            if (r->t.kind != T_INT || r->t.i < 1 || r->t.i > 64)
                return read_error(r, "expected 1 to 64 stages");
            *stages = (int)r->t.i;
            read_next(r);
        } else {
            return read_error(r, "expected a layout or stages");
        }
    }
    return read_expect(r, ">");
}

static const Type *
read_shaped(Reader *r, const char *kind, int depth)
{
    TypeTable *tt = r->s->types;
    int64_t shape[MAX_RANK];
    int rank, stages = 0;
    const Layout *layout = NULL;
    bool list = strcmp(kind, "mem") == 0 || strcmp(kind, "buf") == 0;
    const Type *elem = NULL;
    if (list && (!(elem = read_type(r, depth)) || !read_expect(r, ",")))
        return NULL;
    if (!(list ? read_list_shape(r, shape, &rank) : read_shape(r, shape, &rank)))
        return NULL;
    if (!list && !(elem = read_type(r, depth)))
        return NULL;
    if (elem->kind != TY_SCALAR && elem->kind != TY_PTR) {
        read_error(r, "an element must be a scalar or a pointer");
        return NULL;
    }
    bool mem = strcmp(kind, "mem") == 0, tile = strcmp(kind, "tile") == 0;
    if (!read_tail(r, rank, shape, mem || tile ? &layout : NULL, mem ? &stages : NULL))
        return NULL;
    if (tile)
        return type_tile(tt, elem, rank, shape, layout);
    if (mem)
        return type_mem(tt, elem, rank, shape, layout, stages);
    if (strcmp(kind, "buf") == 0)
        return type_buf(tt, elem, rank, shape);
    return strcmp(kind, "desc") == 0 ? type_desc(tt, elem, rank, shape)
                                     : type_block_ptr(tt, elem, rank, shape);
}

static const Type *
read_ptr(Reader *r, int depth)
{
    const Type *elem = read_type(r, depth);
    int64_t space = 0;
    if (!elem)
        return NULL;
    if (read_is(r, ",")) {
        read_next(r);
        space = r->t.kind == T_INT ? r->t.i : -1;
        if (space != 0 && space != 3)
            return read_error(r, "expected address space 0 or 3"), NULL;
        read_next(r);
    }
    return read_expect(r, ">") ? type_ptr(r->s->types, elem, (int)space) : NULL;
}

const Type *
read_type(Reader *r, int depth)
{
    static const char *const shaped[] = {"tile", "mem", "buf", "desc", "block_ptr"};
    TypeTable *tt = r->s->types;
    if (r->t.kind != T_WORD || depth > TYPE_DEPTH) {
        read_error(r, "expected a type");
        return NULL;
    }
    Name word = r->t.name;
    ScalarKind k = scalar_by_name(word, strlen(word));
    read_next(r);
    if (k != SK_NONE)
        return type_scalar(tt, k);
    if (strcmp(word, "token") == 0)
        return type_token(tt);
    if (strcmp(word, "bar") == 0 && !read_is(r, "<"))
        return type_bar(tt, 0);
    if (!read_expect(r, "<"))
        return NULL;
    if (strcmp(word, "bar") == 0) {
        int stages = 0;
        if (r->t.kind != T_WORD || strcmp(r->t.name, "stages") != 0)
            return read_error(r, "expected 'stages'"), NULL;
        read_next(r);
        if (!read_expect(r, "="))
            return NULL;
        if (r->t.kind != T_INT || r->t.i < 1 || r->t.i > 64)
            return read_error(r, "expected 1 to 64 stages"), NULL;
        stages = (int)r->t.i;
        read_next(r);
        return read_expect(r, ">") ? type_bar(tt, stages) : NULL;
    }
    if (strcmp(word, "ptr") == 0)
        return read_ptr(r, depth + 1);
    if (strcmp(word, "async") == 0) {
        const Type *t = read_type(r, depth + 1);
        return t && read_expect(r, ">") ? type_async(tt, t) : NULL;
    }
    for (int i = 0; i < COUNT_OF(shaped); i++)
        if (strcmp(word, shaped[i]) == 0)
            return read_shaped(r, word, depth + 1);
    diag_error(&r->s->diag, r->t.loc, "unknown type '%.40s'", word);
    r->t.kind = T_BAD;
    return NULL;
}
