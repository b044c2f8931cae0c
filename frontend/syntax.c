/* The driver between lexer and grammar: cuts a file into its statements of column 0 and
   parses each on its own. */
#include "frontend/syntax.h"

#include "frontend/grammar.h"
#include "frontend/parse.h"
#include "ir/base/util.h"

#include <string.h>

static void
one_error(Session *s, const Source *src, const char *text, int line, int col)
{
    diag_error(&s->diag, (Loc){src, line, col, line, col + 1, NULL}, "%s", text);
}

/* NUL bytes and malformed UTF-8 are refused before anything looks at the text. */
static bool
check_encoding(Session *s, const Source *src)
{
    const unsigned char *t = (const unsigned char *)src->text;
    int line = 1, col = 1;
    for (size_t i = 0; i < src->size;) {
        int extra = t[i] < 0x80              ? 0
                    : t[i] >= 0xc2 && t[i] < 0xe0 ? 1
                    : t[i] >= 0xe0 && t[i] < 0xf0 ? 2
                    : t[i] >= 0xf0 && t[i] < 0xf5 ? 3
                                                  : -1;
        if (!t[i] || extra < 0 || i + (size_t)extra >= src->size + (extra == 0)) {
            one_error(s, src,
                      t[i] ? "this is not UTF-8 text" : "this is a NUL byte, not text",
                      line, col);
            return false;
        }
        for (int k = 1; k <= extra; k++) {
            if ((t[i + (size_t)k] & 0xc0) != 0x80) {
                one_error(s, src, "this is not UTF-8 text", line, col);
                return false;
            }
        }
        col += 1 + extra;
        if (t[i] == '\n') {
            line++;
            col = 1;
        }
        i += 1 + (size_t)extra;
    }
    return true;
}

/* ---- tokens for bison */

int
grammar_next(Parser *p, Loc *loc, Node **node, Name *name)
{
    if (p->start) {
        int start = p->start;
        *loc = p->tok->loc;
        p->start = 0;
        return start;
    }
    const Tok *t = p->tok;
    *loc = t->loc;
    if (t >= p->end)
        return 0;
    p->tok++;
    const Tok *next = p->tok;
    if (next < p->end && ((t->kind == KW_IS && next->kind == KW_NOT) ||
                          (t->kind == KW_NOT && next->kind == KW_IN))) {
        p->tok++;
        *loc = loc_span(t->loc, next->loc);
        return t->kind == KW_IS ? IS_NOT : NOT_IN;
    }
    if (t->kind == BAD_TOKEN)
        parse_error(p, t->loc, "%s", t->name);
    if (t->limit)
        parse_limit(p, t->loc, "%s", t->limit);
    *name = t->name;
    *node = t->node;
    return t->kind;
}

/* The innermost bracket that is open at a later line. */
static void
note_unclosed(Parser *p, Loc at)
{
    const Tok *open[MAX_NESTING];
    int n = 0;
    for (const Tok *t = p->first; t && t < p->end; t++) {
        if (t->loc.line > at.line || (t->loc.line == at.line && t->loc.col >= at.col))
            break;
        if ((t->kind == '(' || t->kind == '[' || t->kind == '{') && n < MAX_NESTING)
            open[n++] = t;
        else if ((t->kind == ')' || t->kind == ']' || t->kind == '}') && n)
            n--;
    }
    if (n && open[n - 1]->loc.line < at.line && p->errors == 1)
        diag_note(&p->s->diag, open[n - 1]->loc, "this '%c' is not closed",
                  open[n - 1]->kind);
}

void
grammar_report(Parser *p, Loc at, const char *found, const char *const *wanted, int n)
{
    /* Python's own words where a newcomer is likely to look. */
    if (n == 1)
        parse_error(p, at, "expected %s, found %s", wanted[0], found);
    else if (n == 2)
        parse_error(p, at, "expected %s or %s, found %s", wanted[0], wanted[1], found);
    else
        parse_error(p, at, "%s is not expected here", found);
    note_unclosed(p, at);
}

/* ---- blocks */

/* Is there a jit function, nested or not? What it calls may be anything. */
static bool
mentions_jit(const Tok *t, const Tok *end)
{
    for (bool first = true, decorator = false; t < end; t++) {
        decorator = first ? t->kind == '@' : decorator;
        if (decorator && t->kind == IDENT && strcmp(t->name, "jit") == 0)
            return true;
        first = t->kind == NEWLINE || t->kind == INDENT || t->kind == DEDENT;
    }
    return false;
}

/* First token after the statement of column 0 that begins at t. */
static const Tok *
block_end(const Tok *t, const Tok *end)
{
    int depth = 0;
    for (bool first = true; t < end; first = false) {
        bool decorator = t->kind == '@';
        bool goes_on = t->kind == KW_ELSE || t->kind == KW_ELIF || t->kind == KW_EXCEPT ||
                       t->kind == KW_FINALLY;
        if (!first && !depth && !goes_on)
            return t;
        /* a line and the block below it */
        while (t < end && t->kind != NEWLINE)
            depth += t->kind == INDENT ? 1 : t->kind == DEDENT ? -1 : 0, t++;
        if (t < end)
            t++;
        if (t < end && t->kind == INDENT) {
            for (int level = 0; t < end; t++) {
                level += t->kind == INDENT ? 1 : t->kind == DEDENT ? -1 : 0;
                if (!level)
                    break;
            }
            if (t < end)
                t++;
        }
        if (decorator)
            first = true;
        if (decorator && t < end) {
            /* what is decorated belongs to it */
            const Tok *rest = block_end(t, end);
            return rest;
        }
    }
    return t;
}

static void
push_skipped(Session *s, const Source *src, const Tok *from, const Tok *to, NodeList *out)
{
    Parser p = {.s = s, .src = src};
    ast_push(&p, out, ast_leaf(&p, ND_SKIPPED, loc_span(from->loc, to[-1].loc)));
}

/* The statement of column 0 between two tokens. */
static bool
parse_block(Session *s, const Source *src, const Tok *from, const Tok *to, NodeList *out)
{
    Parser p = {.s = s, .src = src, .first = from, .tok = from, .end = to,
                .start = START_FILE, .host = !mentions_jit(from, to)};
    bool read = yyparse(&p) == 0;
    if (!p.errors && p.limits) {
        push_skipped(s, src, from, to, out);
        return true;
    }
    if (!read && !p.errors)
        diag_error(&s->diag, from->loc, "this statement cannot be read");
    if (!read || p.errors)
        return false;
    ast_append(&p, out, &p.body);
    return true;
}

static bool
parse_blocks(Session *s, const Source *src, const TokList *toks, NodeList *out)
{
    const Tok *end = toks->at + toks->n - 1; /* less the final 0 */
    bool ok = true;
    for (const Tok *t = toks->at; t < end;) {
        const Tok *next = block_end(t, end);
        ok &= parse_block(s, src, t, next, out);
        t = next;
    }
    return ok;
}

bool
syntax_parse(Session *s, const Source *src, NodeList *out)
{
    *out = (NodeList){0};
    if (src->size > MAX_SOURCE) {
        diag_error(&s->diag, (Loc){.src = src},
                   "the file has %zu MiB, the limit is 4 MiB", src->size >> 20);
        return false;
    }
    if (!check_encoding(s, src))
        return false;
    size_t bom = src->size >= 3 && memcmp(src->text, "\xef\xbb\xbf", 3) == 0 ? 3 : 0;
    Lexer lx = {
        .s = s, .src = src, .line = 1, .base_line = 1, .pos = bom, .line_start = bom};
    if (!lex_text(&lx, src->text + bom, src->size - bom))
        fail_jump(&s->fail, FAIL_MEMORY, "out of memory while reading %s", src->path);
    syntax_soft_keywords(&lx.out);
    return parse_blocks(s, src, &lx.out, out);
}

Node *
syntax_parse_field(Parser *p, const char *text, size_t n, Loc at)
{
    Lexer lx = {.s = p->s, .src = p->src, .line = at.line, .base_line = at.line};
    lx.pos = (size_t)(text - p->src->text);
    lx.line_start = lx.pos;
    lx.col_shift = at.col - 1;
    lx.depth = lx.base_depth = 1; /* as if in parentheses: line ends do not matter */
    lx.open[0] = at;
    lx.line_has_token = true;
    Node *none = ast_constant(p, at, CK_NONE);
    if (p->string_depth >= MAX_FIELD_DEPTH) {
        parse_limit(p, at, "f-strings nested too deeply");
        return none;
    }
    if (!lex_text(&lx, text, n))
        fail_jump(&p->s->fail, FAIL_MEMORY, "out of memory while reading %s",
                  p->src->path);
    TokList *l = &lx.out;
    while (l->n && (!l->at[l->n - 1].kind || l->at[l->n - 1].kind == NEWLINE))
        l->n--;
    if (!l->n) {
        parse_error(p, at, "this field of an f-string is empty");
        return none;
    }
    Parser in = {.s = p->s, .src = p->src, .tok = l->at, .end = l->at + l->n,
                 .start = START_EXPR, .host = p->host, .errors = p->errors,
                 .limits = p->limits, .string_depth = p->string_depth + 1};
    bool read = yyparse(&in) == 0;
    if (!read && in.errors == p->errors && in.limits == p->limits)
        parse_error(&in, at, "this field of an f-string cannot be read");
    p->errors = in.errors;
    p->limits = in.limits;
    return read && in.expr ? in.expr : none;
}
