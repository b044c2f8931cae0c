/* Values of string literals: prefixes, escapes, adjacent literals, f-strings. The
   fields of an f-string are parsed in place, so that their errors point at the right
   column. */
#include "frontend/grammar.h"

#include "frontend/ast.h"
#include "frontend/literal.h"
#include "ir/base/util.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

typedef struct Literal {
    const char *s; /* between the quotes */
    size_t n;
    bool raw, bytes, formatted;
    bool spec;     /* the format of a field: braces are fields, doubled or not */
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
   stay as they are, as in Python; one that is cut short makes `ok` false. */
static size_t
escape(Buf *b, const char *s, size_t n, bool bytes, bool *ok)
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
        *ok &= used == digits && v <= 0x10ffff;
        bytes ? buf_char(b, (char)v) : add_utf8(b, v);
        return used + 1;
    }
    if (s[0] == 'N' && !bytes) /* \N{name}: the names are not known here, it stays */
        *ok &= n > 2 && s[1] == '{' && s[2] != '}' && memchr(s, '}', n);
    buf_char(b, '\\');
    return 0;
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

static void
decode(Parser *p, Buf *b, const Literal *l, size_t from, size_t n)
{
    const char *s = l->s + from;
    for (size_t i = 0; i < n;) {
        bool ok = true;
        size_t at = i;
        if (s[i] == '\\' && !l->raw && i + 1 < n) {
            i++;
            i += escape(b, s + i, n - i, l->bytes, &ok);
        } else {
            if (l->bytes && (s[i] & 0x80))
                parse_error(p, place_in(l, from + i),
                            "bytes hold ASCII characters only: write \\x%02x",
                            (unsigned char)s[i]);
            buf_char(b, s[i++]);
        }
        if (!ok)
            parse_error(p, place_in(l, from + at), "this escape is cut short");
    }
}

/* Length of what begins at i within the text of an f-string. */
static size_t
text_step(const Literal *l, size_t i)
{
    const char *s = l->s + i;
    if (s[0] != '\\' || l->raw || i + 1 >= l->n || s[1] == '{' || s[1] == '}')
        return 1;
    const char *close = s[1] == 'N' && i + 2 < l->n && s[2] == '{'
                            ? memchr(s, '}', l->n - i)
                            : NULL;
    return close ? (size_t)(close - s) + 1 : 2;
}

static Node *
text_node(Parser *p, Loc loc, const Buf *b, bool bytes)
{
    Node *n = ast_constant(p, loc, bytes ? CK_BYTES : CK_STR);
    n->v.str.s = b->s ? b->s : "";
    n->v.str.n = b->n;
    return n;
}

static void format_text(Parser *p, const Literal *l, NodeList *out, int depth);

/* {expr=!r:format}; i is behind the brace. Returns the place behind the closing brace. */
static size_t
field(Parser *p, const Literal *l, size_t i, NodeList *out, int depth)
{
    size_t end = i + literal_expr_end(l->s + i, l->n - i);
    Loc at = place_in(l, i);
    Node *f = ast_new(p, ND_FORMATTED, at);
    f->a = syntax_parse_field(p, l->s + i, end - i, at);
    bool shown = false; /* {x = } prints "x = ", too */
    while (end < l->n && (l->s[end] == '=' || isspace((unsigned char)l->s[end])))
        shown |= l->s[end++] == '=';
    if (shown) {
        Buf b;
        buf_init(&b, &p->s->ast);
        decode(p, &b, l, i, end - i);
        ast_push(p, out, text_node(p, l->loc, &b, false));
    }
    if (end < l->n && l->s[end] == '!') {
        size_t from = ++end;
        while (end < l->n && isalnum((unsigned char)l->s[end]))
            end++;
        if (end != from + 1 || !strchr("rsa", l->s[from]))
            parse_error(p, place_in(l, from), "a conversion is '!r', '!s' or '!a'");
        else
            f->name = name_intern(&p->s->names, l->s + from, 1);
        while (end < l->n && l->s[end] == ' ')
            end++;
    }
    if (end < l->n && l->s[end] == ':') {
        size_t stop = ++end;
        stop += literal_spec_end(l->s + end, l->n - end);
        Literal spec = *l;
        spec.spec = true;
        spec.s = l->s + end;
        spec.n = stop - end;
        spec.loc = place_in(l, end);
        f->b = ast_new(p, ND_JOINED_STR, spec.loc);
        format_text(p, &spec, &f->b->list, depth + 1);
        ast_done(p, f->b);
        end = stop;
    }
    if (shown && !f->name && !f->b)
        f->name = name_intern(&p->s->names, "r", 1);
    if (end >= l->n || l->s[end] != '}')
        parse_error(p, at, "this field of an f-string has no '}'");
    ast_push(p, out, ast_done(p, f));
    return end + 1;
}

static void
format_text(Parser *p, const Literal *l, NodeList *out, int depth)
{
    if (depth > MAX_FIELD_DEPTH) {
        parse_limit(p, l->loc, "f-strings nested deeper than %d levels",
                    MAX_FIELD_DEPTH);
        return;
    }
    for (size_t i = 0; i < l->n && !p->errors;) {
        size_t from = i;
        Buf b;
        buf_init(&b, &p->s->ast);
        while (i < l->n) {
            char c = l->s[i], next = i + 1 < l->n ? l->s[i + 1] : '\0';
            if ((c == '{' || c == '}') && next == c && !l->spec) {
                decode(p, &b, l, from, i + 1 - from);
                i += 2;
                from = i;
            } else if (c == '{' || c == '}') {
                break;
            } else {
                i += text_step(l, i);
            }
        }
        i = (size_t)min_i64((int64_t)i, (int64_t)l->n);
        decode(p, &b, l, from, i - from);
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
        decode(p, joined ? &one : &b, &l, 0, l.n);
        if (joined)
            ast_push(p, &joined->list, text_node(p, l.loc, &one, false));
    }
    return joined ? ast_done(p, joined) : text_node(p, loc, &b, bytes);
}
