/* How far string literals reach. That of a plain string is a regular language and lex.l
   would do; a formatted one holds expressions with strings of their own, which since
   Python 3.12 may use the same quotes. The lexer and the decoder of strings both ask
   here, so they cannot disagree on where a field ends. What the fields hold is not
   judged: the parser reads them. */
#include "frontend/literal.h"

#include <ctype.h>
#include <stdbool.h>
#include <string.h>

enum { MAX_DEPTH = 150 }; /* strings within strings, as CPython */

typedef struct Scan {
    const char *s;
    size_t n, i; /* length, place */
    int depth;
} Scan;

static bool scan_string(Scan *c);

static char
at(const Scan *c, size_t ahead)
{
    return c->i + ahead < c->n ? c->s[c->i + ahead] : '\0';
}

static void
move(Scan *c, size_t n)
{
    c->i = c->n - c->i < n ? c->n : c->i + n;
}

/* Moves to a prefix of a string or past a name; true at a prefix. */
static bool
scan_name(Scan *c)
{
    size_t k = 0;
    while (isalnum((unsigned char)at(c, k)) || at(c, k) == '_' || (at(c, k) & 0x80))
        k++;
    if (k <= 2 && (at(c, k) == '"' || at(c, k) == '\'') &&
        strspn(c->s + c->i, "rRbBuUfF") >= k)
        return true;
    move(c, k);
    return false;
}

/* The expression of a field: up to what cannot be part of it. */
static bool
scan_expr(Scan *c)
{
    int open = 0;
    while (c->i < c->n) {
        char x = at(c, 0), next = at(c, 1);
        if (isalnum((unsigned char)x) || x == '_' || (x & 0x80)) {
            if (scan_name(c) && !scan_string(c))
                return false;
            continue;
        }
        if (x == '"' || x == '\'') {
            if (!scan_string(c))
                return false;
            continue;
        }
        if (x == '#') {
            while (c->i < c->n && at(c, 0) != '\n')
                c->i++;
            continue;
        }
        if (x == '(' || x == '[' || x == '{')
            open++;
        else if (open && (x == ')' || x == ']' || x == '}'))
            open--;
        else if (!open && (x == '}' || x == ':' || (x == '!' && next != '=')))
            return true;
        else if (!open && next == '=' && strchr("=!<>", x))
            c->i++; /* a comparison */
        else if (!open && x == '=')
            return true;
        c->i++;
    }
    return true;
}

static bool scan_spec(Scan *c, char quote, size_t quotes);

/* A field, behind its '{', and its '}'. */
static bool
scan_field(Scan *c, char quote, size_t quotes)
{
    if (c->depth >= MAX_DEPTH)
        return false;
    c->depth++;
    bool ok = scan_expr(c);
    while (ok && (at(c, 0) == '=' || isspace((unsigned char)at(c, 0))))
        c->i++;
    if (ok && at(c, 0) == '!')
        for (c->i++; isalnum((unsigned char)at(c, 0)) || at(c, 0) == ' ';)
            c->i++;
    if (ok && at(c, 0) == ':') {
        c->i++;
        ok = scan_spec(c, quote, quotes);
    }
    c->depth--;
    if (!ok || at(c, 0) != '}')
        return false;
    c->i++;
    return true;
}

static bool
closes(const Scan *c, char quote, size_t quotes)
{
    for (size_t k = 0; k < quotes; k++)
        if (at(c, k) != quote)
            return false;
    return quotes > 0;
}

/* The format of a field, up to its '}'; it may hold fields, and no other braces. */
static bool
scan_spec(Scan *c, char quote, size_t quotes)
{
    while (c->i < c->n && at(c, 0) != '}') {
        if (closes(c, quote, quotes) || (quotes == 1 && at(c, 0) == '\n'))
            return false;
        bool field = at(c, 0) == '{';
        move(c, at(c, 0) == '\\' && !strchr("{}", at(c, 1)) ? 2 : 1);
        if (field && !scan_field(c, quote, quotes))
            return false;
    }
    return true;
}

/* Past a backslash and what it takes with it. Fields begin behind one, too; \N{..} is a
   character's name. */
static void
scan_escape(Scan *c, bool raw, bool formatted)
{
    char next = at(c, 1);
    if (formatted && (next == '{' || next == '}')) {
        c->i++;
    } else if (formatted && !raw && next == 'N' && at(c, 2) == '{') {
        while (c->i < c->n && !strchr("}\"'\n", at(c, 0)))
            c->i++;
        if (at(c, 0) == '}')
            c->i++;
    } else {
        move(c, next == '\r' && at(c, 2) == '\n' ? 3 : 2);
    }
}

static bool
scan_string(Scan *c)
{
    bool formatted = false, raw = false;
    if (c->depth >= MAX_DEPTH)
        return false;
    for (; isalpha((unsigned char)at(c, 0)); c->i++) {
        formatted |= (at(c, 0) | 32) == 'f';
        raw |= (at(c, 0) | 32) == 'r';
    }
    char quote = at(c, 0);
    size_t quotes = at(c, 1) == quote && at(c, 2) == quote ? 3 : 1;
    move(c, quotes);
    c->depth++;
    while (c->i < c->n && !closes(c, quote, quotes)) {
        char x = at(c, 0);
        if (quotes == 1 && (x == '\n' || x == '\r'))
            return false;
        if (x == '\\') {
            scan_escape(c, raw, formatted);
        } else if (formatted && x == '{' && at(c, 1) != '{') {
            c->i++;
            if (!scan_field(c, quote, quotes))
                return false;
        } else {
            move(c, formatted && x == '{' ? 2 : 1);
        }
    }
    c->depth--;
    if (c->i >= c->n)
        return false;
    move(c, quotes);
    return true;
}

size_t
literal_length(const char *s, size_t n)
{
    Scan c = {.s = s, .n = n};
    return scan_string(&c) ? c.i : 0;
}

size_t
literal_expr_end(const char *s, size_t n)
{
    Scan c = {.s = s, .n = n};
    return scan_expr(&c) ? c.i : n;
}

size_t
literal_spec_end(const char *s, size_t n)
{
    Scan c = {.s = s, .n = n};
    return scan_spec(&c, '\0', 0) ? c.i : n;
}
