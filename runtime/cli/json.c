/* Recursive descent over the text; strings are copied without their escapes. */
#include "runtime/cli/json.h"

#include <stdlib.h>
#include <string.h>

enum { DEEPEST = 32 };

typedef struct Reader {
    Arena *arena;
    const char *p;
    int depth;
} Reader;

static Json *read_value(Reader *r);

static void
skip(Reader *r)
{
    r->p += strspn(r->p, " \t\r\n");
}

static bool
take(Reader *r, char c)
{
    skip(r);
    bool there = *r->p == c;
    r->p += there;
    return there;
}

static void
put_code(Buf *b, unsigned c)
{
    if (c < 0x80) {
        buf_char(b, (char)c);
    } else if (c < 0x800) {
        buf_char(b, (char)(0xc0 | c >> 6));
        buf_char(b, (char)(0x80 | (c & 63)));
    } else {
        buf_char(b, (char)(0xe0 | c >> 12));
        buf_char(b, (char)(0x80 | (c >> 6 & 63)));
        buf_char(b, (char)(0x80 | (c & 63)));
    }
}

static bool
read_escape(Reader *r, Buf *b)
{
    static const char from[] = "nrtbf\"\\/", to[] = "\n\r\t\b\f\"\\/";
    const char *at = *r->p ? strchr(from, *r->p) : NULL;
    if (at) {
        buf_char(b, to[at - from]);
        r->p++;
        return true;
    }
    char hex[5] = "";
    if (*r->p != 'u' || strspn(r->p + 1, "0123456789abcdefABCDEF") < 4)
        return false;
    memcpy(hex, r->p + 1, 4);
    unsigned code = (unsigned)strtoul(hex, NULL, 16);
    put_code(b, code ? code : ' '); /* a text has no zero in it here */
    r->p += 5;
    return true;
}

/* Behind the first quote; NULL: it does not end. */
static const char *
read_text(Reader *r)
{
    Buf b;
    buf_init(&b, r->arena);
    buf_str(&b, "");
    while (*r->p && *r->p != '"') {
        if (*r->p != '\\')
            buf_char(&b, *r->p++);
        else if (r->p++, !read_escape(r, &b))
            return NULL;
    }
    return *r->p++ == '"' ? b.s : NULL;
}

/* Members or elements up to the bracket; false: something else is there. */
static bool
read_members(Reader *r, Json *of, char end)
{
    Json **last = &of->first;
    if (take(r, end))
        return true;
    do {
        const char *name = NULL;
        if (of->kind == JSON_OBJECT &&
            (!take(r, '"') || !(name = read_text(r)) || !take(r, ':')))
            return false;
        Json *one = read_value(r);
        if (!one)
            return false;
        one->name = name;
        *last = one;
        last = &one->next;
    } while (take(r, ','));
    return take(r, end);
}

static bool
read_word(Reader *r, const char *word)
{
    size_t n = strlen(word);
    bool there = strncmp(r->p, word, n) == 0;
    r->p += there ? n : 0;
    return there;
}

static Json *
read_value(Reader *r)
{
    Json *j = arena_new(r->arena, Json);
    bool ok = r->depth++ < DEEPEST;
    char *end;
    skip(r);
    if (take(r, '{')) {
        j->kind = JSON_OBJECT;
        ok = ok && read_members(r, j, '}');
    } else if (take(r, '[')) {
        j->kind = JSON_LIST;
        ok = ok && read_members(r, j, ']');
    } else if (take(r, '"')) {
        j->kind = JSON_TEXT;
        ok = ok && (j->text = read_text(r)) != NULL;
    } else if (read_word(r, "true") || read_word(r, "false")) {
        j->kind = JSON_BOOL;
        j->number = r->p[-2] == 'u';
    } else if (!read_word(r, "null")) {
        j->kind = JSON_NUMBER;
        j->number = strtod(r->p, &end);
        ok = ok && end != r->p;
        r->p = end;
    }
    r->depth--;
    return ok ? j : NULL;
}

const Json *
json_read(Arena *arena, const char *text)
{
    Reader r = {arena, text, 0};
    const Json *j = read_value(&r);
    skip(&r);
    return j && !*r.p ? j : NULL;
}

const Json *
json_get(const Json *j, const char *name)
{
    const Json *m = j && j->kind == JSON_OBJECT ? j->first : NULL;
    while (m && strcmp(m->name, name) != 0)
        m = m->next;
    return m;
}

double
json_number(const Json *j, const char *name, double otherwise)
{
    const Json *m = json_get(j, name);
    return m && (m->kind == JSON_NUMBER || m->kind == JSON_BOOL) ? m->number : otherwise;
}

const char *
json_text(const Json *j, const char *name, const char *otherwise)
{
    const Json *m = json_get(j, name);
    return m && m->kind == JSON_TEXT ? m->text : otherwise;
}

void
json_quote(Buf *to, const char *text)
{
    buf_char(to, '"');
    for (; *text; text++) {
        unsigned char c = (unsigned char)*text;
        if (c == '"' || c == '\\')
            buf_printf(to, "\\%c", c);
        else if (c < 32)
            buf_printf(to, "\\u%04x", c);
        else
            buf_char(to, (char)c);
    }
    buf_char(to, '"');
}
