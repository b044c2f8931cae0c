/* A reader of JSON files: recursive descent, nested at most 64 deep. The literals true,
   false and null do not occur in the tests' data and are refused. */
#include "tests/run/support/json.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct Cursor {
    const char *p;
    int depth;
} Cursor;

static void
skip_space(Cursor *c)
{
    while (isspace((unsigned char)*c->p))
        c->p++;
}

static char *
copy_text(const char *p, size_t n)
{
    char *text = malloc(n + 1);
    if (text) {
        memcpy(text, p, n);
        text[n] = 0;
    }
    return text;
}

/* The text between quotes, or NULL. */
static char *
read_text(Cursor *c)
{
    if (*c->p != '"')
        return NULL;
    const char *start = ++c->p;
    while (*c->p && *c->p != '"')
        c->p += *c->p == '\\' && c->p[1] ? 2 : 1;
    if (!*c->p)
        return NULL;
    return copy_text(start, (size_t)(c->p++ - start));
}

static Json *read_value(Cursor *c);

/* Members up to the closing bracket. */
static int
read_members(Cursor *c, Json *j, char close)
{
    Json **link = &j->first;
    c->p++;
    for (skip_space(c); *c->p != close; skip_space(c)) {
        char *key = NULL;
        if (j->count > 0 && *c->p++ != ',')
            return 0;
        skip_space(c);
        if (close == '}') {
            key = read_text(c);
            skip_space(c);
            if (!key || *c->p++ != ':') {
                free(key);
                return 0;
            }
        }
        Json *member = read_value(c);
        if (!member) {
            free(key);
            return 0;
        }
        member->key = key;
        *link = member;
        link = &member->next;
        j->count++;
    }
    c->p++;
    return 1;
}

static Json *
read_value(Cursor *c)
{
    Json *j = calloc(1, sizeof(*j));
    int ok = 0;
    if (!j || ++c->depth > 64) {
        free(j);
        return NULL;
    }
    skip_space(c);
    if (*c->p == '[' || *c->p == '{') {
        j->kind = *c->p == '[' ? JSON_LIST : JSON_OBJECT;
        ok = read_members(c, j, *c->p == '[' ? ']' : '}');
    } else if (*c->p == '"') {
        j->kind = JSON_TEXT;
        j->text = read_text(c);
        ok = j->text != NULL;
    } else {
        size_t n = strspn(c->p, "+-.0123456789eE");
        j->kind = JSON_NUMBER;
        j->text = n ? copy_text(c->p, n) : NULL;
        ok = j->text != NULL;
        c->p += n;
    }
    c->depth--;
    if (ok)
        return j;
    json_free(j);
    return NULL;
}

Json *
json_read(const char *path)
{
    FILE *f = fopen(path, "rb");
    if (!f)
        return NULL;
    char *text = NULL;
    size_t size = 0, room = 0;
    for (;;) {
        if (size + 65536 + 1 > room) {
            char *more = realloc(text, room = 2 * room + 65536 + 1);
            if (!more)
                break;
            text = more;
        }
        size_t n = fread(text + size, 1, 65536, f);
        size += n;
        if (n == 0)
            break;
    }
    fclose(f);
    if (!text)
        return NULL;
    text[size] = 0;
    Cursor c = {.p = text};
    Json *j = read_value(&c);
    free(text);
    return j;
}

void
json_free(Json *j)
{
    while (j) {
        Json *next = j->next;
        json_free(j->first);
        free(j->key);
        free(j->text);
        free(j);
        j = next;
    }
}

const Json *
json_get(const Json *object, const char *key)
{
    for (const Json *m = object ? object->first : NULL; m; m = m->next)
        if (m->key && !strcmp(m->key, key))
            return m;
    return NULL;
}

const Json *
json_at(const Json *list, int i)
{
    const Json *m = list ? list->first : NULL;
    while (m && i-- > 0)
        m = m->next;
    return m;
}

int64_t
json_int(const Json *j)
{
    return strtoll(j->text, NULL, 10);
}

uint64_t
json_uint(const Json *j)
{
    return strtoull(j->text, NULL, 10);
}

double
json_double(const Json *j)
{
    return strtod(j->text, NULL);
}
