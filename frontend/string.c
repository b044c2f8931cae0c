/* Values of string literals: prefixes, escapes, adjacent literals, f-strings. The
   fields of an f-string are parsed in place, so that their errors point at the right
   column. */
#include "frontend/grammar.h"

#include "frontend/ast.h"
#include "ir/base/util.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_STRING_DEPTH = 4 };

typedef struct Literal {
    const char *s; /* between the quotes */
    size_t n;
    bool raw, bytes, formatted;
    Loc loc;       /* of s */
} Literal;

static Literal
take_apart(const Node *token)
{
    Literal l = {.s = token->v.str.s, .n = token->v.str.n, .loc = token->loc};
    size_t skip = 0;
    for (; l.s[skip] != '"' && l.s[skip] != '\''; skip++) {
        int c = l.s[skip] | 32;
        l.raw |= c == 'r';
        l.bytes |= c == 'b';
        l.formatted |= c == 'f';
    }
    char q = l.s[skip];
    size_t quotes = l.n - skip >= 6 && l.s[skip + 1] == q && l.s[skip + 2] == q ? 3 : 1;
    l.s += skip + quotes;
    l.n -= skip + 2 * quotes;
    l.loc.col += (int)(skip + quotes);
    return l;
}

static void
add_utf8(Buf *b, uint32_t c)
{
    if (c < 0x80) {
        buf_char(b, (char)c);
    } else if (c < 0x800) {
        buf_char(b, (char)(0xc0 | c >> 6));
        buf_char(b, (char)(0x80 | (c & 63)));
    } else if (c < 0x10000) {
        buf_char(b, (char)(0xe0 | c >> 12));
        buf_char(b, (char)(0x80 | (c >> 6 & 63)));
        buf_char(b, (char)(0x80 | (c & 63)));
    } else {
        buf_char(b, (char)(0xf0 | (c >> 18 & 7)));
        buf_char(b, (char)(0x80 | (c >> 12 & 63)));
        buf_char(b, (char)(0x80 | (c >> 6 & 63)));
        buf_char(b, (char)(0x80 | (c & 63)));
    }
}

static uint32_t
number(const char *s, size_t n, int base, size_t most, size_t *used)
{
    uint32_t v = 0;
    size_t i = 0;
    for (; i < n && i < most; i++) {
        int c = (unsigned char)s[i];
        int d = isdigit(c) ? c - '0' : isxdigit(c) ? (c | 32) - 'a' + 10 : 99;
        if (d >= base)
            break;
        v = v * (uint32_t)base + (uint32_t)d;
    }
    *used = i;
    return v;
}

/* One escape after the backslash; returns how many characters it took. Unknown escapes
   stay as they are, as in Python. */
static size_t
escape(Buf *b, const char *s, size_t n, bool bytes)
{
    static const char from[] = "\\'\"abfnrtv", to[] = "\\'\"\a\b\f\n\r\t\v";
    size_t used;
    const char *hit = memchr(from, s[0], sizeof from - 1);
    if (hit) {
        buf_char(b, to[hit - from]);
        return 1;
    }
    if (s[0] == '\n')
        return 1;
    if (s[0] == '\r' && n > 1 && s[1] == '\n')
        return 2;
    uint32_t v = number(s, n, 8, 3, &used);
    if (used) {
        bytes ? buf_char(b, (char)v) : add_utf8(b, v);
        return used;
    }
    size_t digits = s[0] == 'x' ? 2 : s[0] == 'u' ? 4 : s[0] == 'U' ? 8 : 0;
    if (digits && !(bytes && s[0] != 'x')) {
        v = number(s + 1, n - 1, 16, digits, &used);
        if (used == digits) {
            bytes ? buf_char(b, (char)v) : add_utf8(b, v);
            return used + 1;
        }
    }
    buf_char(b, '\\');
    return 0;
}

static void
decode(Buf *b, const char *s, size_t n, bool raw, bool bytes)
{
    for (size_t i = 0; i < n;) {
        if (s[i] == '\\' && !raw && i + 1 < n) {
            i++;
            i += escape(b, s + i, n - i, bytes);
        } else {
            buf_char(b, s[i++]);
        }
    }
}

static Node *
text_node(Parser *p, Loc loc, const Buf *b, bool bytes)
{
    Node *n = ast_constant(p, loc, bytes ? CK_BYTES : CK_STR);
    n->v.str.s = b->s ? b->s : "";
    n->v.str.n = b->n;
    return n;
}

/* Position after the first `n` characters of a literal that begins at l->loc. */
static Loc
place_in(const Literal *l, size_t n)
{
    Loc at = l->loc;
    for (size_t i = 0; i < n; i++) {
        if (l->s[i] == '\n') {
            at.line++;
            at.col = 1;
        } else {
            at.col++;
        }
    }
    at.end_line = at.line;
    at.end_col = at.col + 1;
    return at;
}

/* End of the expression of a field that starts at i: '!', ':', '=' or '}' outside of
   brackets and strings. */
static size_t
field_end(const Literal *l, size_t i)
{
    int depth = 0;
    for (; i < l->n; i++) {
        char c = l->s[i], next = i + 1 < l->n ? l->s[i + 1] : '\0';
        if (c == '\'' || c == '"') {
            for (i++; i < l->n && l->s[i] != c; i++)
                ;
        } else if (c == '(' || c == '[' || c == '{') {
            depth++;
        } else if (depth && (c == ')' || c == ']' || c == '}')) {
            depth--;
        } else if (!depth) {
            if (c == '}' || c == ':' || (c == '!' && next != '='))
                return i;
            if (strchr("=!<>", c) && next == '=')
                i++; /* a comparison */
            else if (c == '=')
                return i;
        }
    }
    return i;
}

static void format_text(Parser *p, const Literal *l, NodeList *out, int depth);

/* {expr!r:format}; i is behind the brace. Returns the place behind the closing brace. */
static size_t
field(Parser *p, const Literal *l, size_t i, NodeList *out, int depth)
{
    size_t end = field_end(l, i);
    Loc at = place_in(l, i);
    Node *f = ast_new(p, ND_FORMATTED, at);
    f->a = syntax_parse_field(p, l->s + i, end - i, at);
    while (end < l->n && (l->s[end] == '=' || l->s[end] == ' '))
        end++;
    if (end + 1 < l->n && l->s[end] == '!') {
        f->name = name_intern(&p->s->names, l->s + end + 1, 1);
        end += 2;
    }
    if (end < l->n && l->s[end] == ':') {
        size_t stop = ++end;
        int nested = 0;
        while (stop < l->n && (nested || l->s[stop] != '}')) {
            nested += l->s[stop] == '{' ? 1 : l->s[stop] == '}' ? -1 : 0;
            stop++;
        }
        Literal spec = *l;
        spec.s = l->s + end;
        spec.n = stop - end;
        spec.loc = place_in(l, end);
        f->b = ast_new(p, ND_JOINED_STR, spec.loc);
        format_text(p, &spec, &f->b->list, depth + 1);
        ast_done(p, f->b);
        end = stop;
    }
    if (end >= l->n || l->s[end] != '}')
        parse_error(p, at, "this field of an f-string has no '}'");
    ast_push(p, out, ast_done(p, f));
    return end + 1;
}

static void
format_text(Parser *p, const Literal *l, NodeList *out, int depth)
{
    if (depth > MAX_STRING_DEPTH) {
        parse_error(p, l->loc, "f-strings nested deeper than %d levels",
                    MAX_STRING_DEPTH);
        return;
    }
    for (size_t i = 0; i < l->n && !p->errors;) {
        size_t from = i;
        Buf b;
        buf_init(&b, &p->s->ast);
        while (i < l->n) {
            char c = l->s[i], next = i + 1 < l->n ? l->s[i + 1] : '\0';
            if ((c == '{' || c == '}') && next == c) {
                decode(&b, l->s + from, i + 1 - from, l->raw, false);
                i += 2;
                from = i;
            } else if (c == '{' || c == '}') {
                break;
            } else {
                i += c == '\\' && next ? 2 : 1;
            }
        }
        i = (size_t)min_i64((int64_t)i, (int64_t)l->n);
        decode(&b, l->s + from, i - from, l->raw, false);
        if (b.n)
            ast_push(p, out, text_node(p, l->loc, &b, false));
        if (i < l->n && l->s[i] == '}') {
            parse_error(p, place_in(l, i), "a single '}' in an f-string is written '}}'");
            return;
        }
        if (i < l->n)
            i = field(p, l, i + 1, out, depth);
    }
}

Node *
string_decode(Parser *p, Loc loc, const NodeList *tokens)
{
    bool any_formatted = false;
    Buf b;
    buf_init(&b, &p->s->ast);
    for (int i = 0; i < tokens->n; i++)
        any_formatted |= take_apart(tokens->at[i]).formatted;
    Node *joined = any_formatted ? ast_new(p, ND_JOINED_STR, loc) : NULL;
    bool bytes = take_apart(tokens->at[0]).bytes;
    for (int i = 0; i < tokens->n; i++) {
        Literal l = take_apart(tokens->at[i]);
        if (l.bytes != bytes)
            parse_error(p, l.loc, "bytes and text cannot be joined");
        if (l.formatted) {
            format_text(p, &l, &joined->list, p->string_depth);
            continue;
        }
        Buf one;
        buf_init(&one, &p->s->ast);
        decode(joined ? &one : &b, l.s, l.n, l.raw, l.bytes);
        if (joined)
            ast_push(p, &joined->list, text_node(p, l.loc, &one, false));
    }
    return joined ? ast_done(p, joined) : text_node(p, loc, &b, bytes);
}
